"""Naive twins of the policy code: linear programs, and the gain of a plan straight from its definition."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix


def budget_program(cost, benefit, budget):
    """max Σ benefit x such that Σ cost x ≤ budget, Σ_k x_ik ≤ 1, x ≥ 0, by HiGHS: (optimum, price of the budget)."""
    n, k = cost.shape
    columns = np.arange(n * k)
    rows = np.concatenate([np.zeros(n * k, int), 1 + columns // k])
    matrix = coo_matrix(
        (np.concatenate([cost.ravel(), np.ones(n * k)]), (rows, np.tile(columns, 2))), shape=(1 + n, n * k)
    )
    limits = np.concatenate([[budget], np.ones(n)])
    solution = linprog(-benefit.ravel(), A_ub=matrix.tocsr(), b_ub=limits, bounds=(0, None), method="highs")
    assert solution.success
    return -solution.fun, -solution.ineqlin.marginals[0]


def plan_gain(plan, y, arm, weight):
    """Gain per person of a plan (an arm per row) over treating nobody: AIPW with the arms' means, row by row."""
    total, mean = sum(weight), {}
    share = {a: sum(weight[arm == a]) / total for a in set(arm)}
    for a in set(arm):
        mean[a] = sum(weight[arm == a] * y[arm == a]) / sum(weight[arm == a])
    gain = 0.0
    for p, y_i, a, w in zip(plan, y, arm, weight, strict=True):
        if p == 0:
            continue
        effect = mean[p] - mean[0]
        if a == p:
            effect += (y_i - mean[p]) / share[p]
        if a == 0:
            effect -= (y_i - mean[0]) / share[0]
        gain += w * effect
    return gain / total
