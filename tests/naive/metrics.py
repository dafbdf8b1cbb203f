"""Naive twins of the metrics: each definition as plainly and slowly as it can be written."""

from __future__ import annotations

import numpy as np
from scipy.integrate import trapezoid


def tied_positions(score):
    """Rows from the highest score to the lowest, as lists of rows that share a score."""
    return [np.flatnonzero(score == value) for value in sorted(set(score.tolist()), reverse=True)]


def effect_scores(y, arm, weight):
    """Doubly robust scores with the arms' means as outcome model and their shares as propensity."""
    total = weight.sum()
    mean = [sum(weight[arm == a] * y[arm == a]) / sum(weight[arm == a]) for a in (0, 1)]
    share = [sum(weight[arm == a]) / total for a in (0, 1)]
    effect = mean[1] - mean[0]
    return np.array([effect + (1 if t else -1) * (v - mean[t]) / share[t] for v, t in zip(y, arm, strict=True)])


def robust_value(y, arm, asked, response, chance):
    """Doubly robust reading of one row's outcome under the arm asked for."""
    if arm == asked:
        return response[asked] + (y - response[asked]) / chance[asked]
    return response[asked]


def toc_of_rows(effect, score, weight):
    """(weight so far, TOC) after every row, rows of a tie sharing the tie's effects and weights equally."""
    overall = sum(effect * weight) / sum(weight)
    points, k, total = [], 0.0, 0.0
    for rows in tied_positions(score):
        w = sum(weight[rows]) / len(rows)
        mean = sum(weight[rows] * effect[rows]) / sum(weight[rows])
        for _ in rows:
            k, total = k + w, total + w * mean
            points.append((w, k, total / k - overall))
    return points


def autoc(effect, score, weight):
    return sum(w * toc for w, _, toc in toc_of_rows(effect, score, weight)) / sum(weight)


def qini_right(effect, score, weight):
    """QINI as grf sums it: mean of (k / n) TOC at the end of every row."""
    return sum(w * k * toc for w, k, toc in toc_of_rows(effect, score, weight)) / sum(weight) ** 2


def qini(effect, score, weight):
    """Area between the curve of summed effects and its diagonal."""
    x, q = [0.0], [0.0]
    for rows in tied_positions(score):
        x.append(x[-1] + sum(weight[rows]))
        q.append(q[-1] + sum(weight[rows] * effect[rows]))
    return (trapezoid(q, x) - x[-1] * q[-1] / 2) / x[-1] ** 2


def top_rate(share, y, score, weight):
    """Mean outcome of the best-scored share of one group, a tie at the cut entering in part."""
    left, w_sum, s_sum = share * sum(weight), 0.0, 0.0
    for rows in tied_positions(score):
        here = sum(weight[rows])
        part = 1.0 if here <= left else max(left, 0) / here
        w_sum, s_sum, left = w_sum + part * here, s_sum + part * sum(weight[rows] * y[rows]), left - part * here
    return s_sum / w_sum if w_sum > 0 else 0.0


def uplift_at_separate(k, y, score, arm, weight):
    one, zero = arm == 1, arm == 0
    return top_rate(k, y[one], score[one], weight[one]) - top_rate(k, y[zero], score[zero], weight[zero])


def parts_of_top(share, score, weight):
    """How much of every row is in the best-scored share of everybody."""
    left, part = share * sum(weight), np.zeros(len(score))
    for rows in tied_positions(score):
        here = sum(weight[rows])
        part[rows] = 1.0 if here <= left else max(left, 0) / here
        left -= part[rows[0]] * here
    return part


def uplift_at_joint(k, y, score, arm, weight):
    inside = weight * parts_of_top(k, score, weight)
    if not all(sum(inside[arm == a]) > 0 for a in (0, 1)):
        return np.nan
    rates = [sum((inside * y)[arm == a]) / sum(inside[arm == a]) for a in (0, 1)]
    return rates[1] - rates[0]


def expected_response(y, recommended, arm, chance, weight):
    total = sum(w * v / chance[t] for v, r, t, w in zip(y, recommended, arm, weight, strict=True) if r == t)
    return total / sum(weight)


def modified_uplift_at(share, y, scores, arm, weight):
    """Mean outcome when the top share gets its best arm and the rest control, by inverse propensity.

    Arms that tie for the best share the row by their sizes.
    """
    top = parts_of_top(share, scores.max(axis=1), weight)
    chance = [sum(weight[arm == a]) / sum(weight) for a in range(scores.shape[1] + 1)]
    values = np.zeros(len(y))
    for i in range(len(y)):
        best = [k + 1 for k in range(scores.shape[1]) if scores[i, k] == max(scores[i])]
        if arm[i] == 0:
            part = 1 - top[i]
        elif arm[i] in best:
            part = top[i] * chance[arm[i]] / sum(chance[k] for k in best)
        else:
            part = 0.0
        values[i] = part * y[i] / chance[arm[i]]
    return sum(weight * values) / sum(weight)


def signed_rank_p(differences):
    """Exact two-sided Wilcoxon signed-rank test by trying all signs."""
    d = np.array([x for x in differences if x != 0])
    if len(d) == 0:
        return 1.0
    size = np.abs(d)
    ranks = np.array([(size < s).sum() + ((size == s).sum() + 1) / 2 for s in size])
    seen = ranks[d > 0].sum()
    mean, n = ranks.sum() / 2, len(d)
    far = 0
    for signs in range(2**n):
        value = sum(rank for j, rank in enumerate(ranks) if signs >> j & 1)
        far += abs(value - mean) >= abs(seen - mean) - 1e-9
    return far / 2**n
