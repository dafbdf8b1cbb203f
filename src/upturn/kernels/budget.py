"""Budgets: the order in which people are moved to better and dearer arms, and what that gains in an experiment.

For every row, the points (cost, benefit) of control, (0, 0), and of its arms span a concave hull. Walking a row's hull
is a chain of *upgrades*, each with a falling slope: benefit per unit of cost. Taking the upgrades of all rows from the
steepest down solves, at every budget, the linear program

    max Σ benefit[i, k] x[i, k]   such that   Σ cost[i, k] x[i, k] ≤ budget,  Σ_k x[i, k] ≤ 1,  x ≥ 0,

and leaves at most one upgrade half done. People cannot be halved: what that upgrade would have cost goes to later
upgrades that still fit.
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import (
    F8,
    F8_2,
    I8,
    U1,
    U4,
    B1_out,
    F8_2_out,
    F8_out,
    U1_out,
    U4_out,
    f8,
    i8,
    inner,
    kernel,
    u8,
    void,
)
from upturn.kernels.resampling import count_rows

_STEEPEST = 1.7e308  # of an upgrade that costs nothing


@inner
def _slope(cost, benefit):
    return min(benefit / cost, _STEEPEST) if cost > 0.0 else _STEEPEST


@kernel(i8, F8_2, F8_2, f8, U4_out, U1_out, U1_out, F8_out, F8_out, F8_out)
def upgrades(cost, benefit, floor, row, before, after, slope, extra_cost, extra_benefit):
    """List the upgrades steeper than ``floor``, row by row; returns how many there are.

    Arms are numbered from 1, control is 0. Within a row, slopes strictly fall.
    """
    n_arms = cost.shape[1]
    ordered, hull = np.empty(n_arms, np.int64), np.empty(n_arms + 1, np.int64)
    x, y, steep = np.empty(n_arms + 1), np.empty(n_arms + 1), np.empty(n_arms + 1)
    count = 0
    for i in range(len(cost)):
        for k in range(n_arms):  # by cost, the better of equally dear ones first
            place = k
            while place > 0:
                other = ordered[place - 1]
                if cost[i, other] < cost[i, k] or (cost[i, other] == cost[i, k] and benefit[i, other] >= benefit[i, k]):
                    break
                ordered[place] = other
                place -= 1
            ordered[place] = k
        size, x[0], y[0], hull[0] = 1, 0.0, 0.0, 0
        for place in range(n_arms):
            k = ordered[place]
            if cost[i, k] == x[size - 1] and (benefit[i, k] <= y[size - 1] or size > 1):
                continue
            s = _slope(cost[i, k] - x[size - 1], benefit[i, k] - y[size - 1])
            while size > 1 and s >= steep[size - 1]:
                size -= 1
                s = _slope(cost[i, k] - x[size - 1], benefit[i, k] - y[size - 1])
            x[size], y[size], steep[size], hull[size] = cost[i, k], benefit[i, k], s, k + 1
            size += 1
        for j in range(1, size):
            if steep[j] <= floor:
                break
            row[count], before[count], after[count] = i, np.uint8(hull[j - 1]), np.uint8(hull[j])
            slope[count], extra_cost[count], extra_benefit[count] = steep[j], x[j] - x[j - 1], y[j] - y[j - 1]
            count += 1
    return count


@kernel(f8, U4, U1, U1, F8, i8, f8, U1_out, B1_out)
def fill(row, before, after, extra_cost, stop, left, arm, taken):
    """Go on beyond the first upgrade that is too dear: take what still fits into ``left``, in order; returns what is left.

    ``arm`` holds every row's arm after ``stop`` upgrades. A row that missed an upgrade has no use for its later ones.
    """
    for at in range(stop, len(row)):
        if extra_cost[at] <= left and arm[row[at]] == before[at]:
            arm[row[at]] = after[at]
            taken[at] = True
            left -= extra_cost[at]
    return left


# Columns of the sums kept for the people assigned to an arm: all weight; weight and outcome of those who had the arm;
# weight and outcome of those who had control.
_ALL, _W, _S, _W0, _S0 = range(5)


@inner
def _gain(sums, arm_weight, arm_total, k, total):
    """What assigning arm k to its people gains, per person of everybody.

    The arm's average effect for the share of people it is assigned to, corrected by how much better (worse) than their
    arm's average those did who had the arm (control): the augmented inverse-propensity estimate with constant means.
    """
    mean, mean0 = arm_total[k] / arm_weight[k], arm_total[0] / arm_weight[0]
    mine = (sums[k, _S] - mean * sums[k, _W]) / arm_weight[k]
    control = (sums[k, _S0] - mean0 * sums[k, _W0]) / arm_weight[0]
    return sums[k, _ALL] / total * (mean - mean0) + mine - control


@inner
def _move(sums, k, given, w, wy, sign):
    sums[k, _ALL] += sign * w
    if given == k:
        sums[k, _W] += sign * w
        sums[k, _S] += sign * wy
    elif given == 0:
        sums[k, _W0] += sign * w
        sums[k, _S0] += sign * wy


@inner
def _walk(row, before, after, stops, arm, y, weight, counts, n_arms, gains, effects):
    weighted, resampled = len(weight) > 0, len(counts) > 0
    arm_weight, arm_total = np.zeros(n_arms + 1), np.zeros(n_arms + 1)
    for i in range(len(y)):
        w = weight[i] if weighted else 1.0
        if resampled:
            w *= counts[i]
        arm_weight[arm[i]] += w
        arm_total[arm[i]] += w * y[i]
    total = arm_weight.sum()
    sums = np.zeros((n_arms + 1, 5))
    at = 0
    for stop in range(len(stops)):
        while at < stops[stop]:
            i = row[at]
            w = weight[i] if weighted else 1.0
            if resampled:
                w *= counts[i]
            if before[at] > 0:
                _move(sums, before[at], arm[i], w, w * y[i], -1.0)
            _move(sums, after[at], arm[i], w, w * y[i], 1.0)
            at += 1
        gain = 0.0
        for k in range(1, n_arms + 1):
            gain += _gain(sums, arm_weight, arm_total, k, total)
        gains[stop] = gain
    for k in range(1, n_arms + 1):
        effects[k - 1] = arm_total[k] / arm_weight[k] - arm_total[0] / arm_weight[0]


@kernel(void, U4, U1, U1, I8, U1, F8, F8, F8_out, F8_out)
def path_gains(row, before, after, stops, arm, y, weight, gains, effects):
    """Gain per person after ``stops[j]`` upgrades (rising), and the average effect of every arm."""
    _walk(row, before, after, stops, arm, y, weight, np.empty(0, np.int32), len(effects), gains, effects)


@kernel(void, u8, i8, U4, I8, U4, U1, U1, I8, U1, F8, F8, F8_2_out, F8_2_out)
def bootstrap_path_gains(seed, first, rows, starts, row, before, after, stops, arm, y, weight, gains, effects):
    """The same for replicates ``first``, ``first + 1``, …, a row of ``gains`` and ``effects`` each."""
    slots, counts = np.empty(len(y), np.uint8), np.empty(len(y), np.int32)
    for r in range(len(gains)):
        count_rows(seed, first + r, rows, starts, slots, counts)
        _walk(row, before, after, stops, arm, y, weight, counts, effects.shape[1], gains[r], effects[r])
