"""Twins of the areas under lift and gain curves."""

from __future__ import annotations

import numpy as np
from scipy.integrate import trapezoid


def lift_area(y, score, weight):
    """Area under one arm's lift curve as a sum over pairs: j above i counts fully, level with i by half."""
    total = 0.0
    for score_i, weight_i in zip(score, weight, strict=True):
        for y_j, score_j, weight_j in zip(y, score, weight, strict=True):
            total += weight_i * weight_j * y_j * (1.0 if score_j > score_i else 0.5 if score_j == score_i else 0.0)
    return total / sum(weight) ** 2


def lift_curve_at(share, y, score, weight):
    """Height of one arm's lift curve: weighted outcome of the top share over the arm's weight, ties split evenly."""
    left, success = share * sum(weight), 0.0
    for value in sorted(set(score), reverse=True):
        tied = [(w, w * v) for v, s, w in zip(y, score, weight, strict=True) if s == value]
        here = sum(w for w, _ in tied)
        part = 1.0 if here <= left or here == 0 else left / here
        success += part * sum(wy for _, wy in tied)
        left -= part * here
        if left <= 0:
            break
    return success / sum(weight)


def separate_curve_at(share, y, score, arm, weight):
    heights = [lift_curve_at(share, y[arm == a], score[arm == a], weight[arm == a]) for a in (1, 0)]
    return heights[0] - heights[1]


def separate_auuc(y, score, arm, weight):
    areas = []
    for a in (1, 0):
        mine = arm == a
        average = sum(weight[mine] * y[mine]) / sum(weight[mine])
        areas.append(lift_area(y[mine], score[mine], weight[mine]) - average / 2)
    return areas[0] - areas[1]


def joint_curve(y, score, arm, weight):
    """(share, gain) at every distinct score: rate difference among the rows above times their share of the weight."""
    points = [(0.0, 0.0)]
    for value in sorted(set(score), reverse=True):
        top = score >= value
        rates = []
        for a in (1, 0):
            chosen = top & (arm == a)
            rates.append(sum(weight[chosen] * y[chosen]) / sum(weight[chosen]) if sum(weight[chosen]) > 0 else 0.0)
        share = sum(weight[top]) / sum(weight)
        points.append((share, (rates[0] - rates[1]) * share))
    return np.array(points)


def joint_auuc(y, score, arm, weight):
    x, gain = joint_curve(y, score, arm, weight).T
    return trapezoid(gain, x) - gain[-1] / 2
