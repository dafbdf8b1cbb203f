"""Slow, plain twins of the UMODL kernels: equation (2) written down with exact binomials, and searches that try it all."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np


def log_comb(n, k):
    return math.log(math.comb(n, k))


def log_multinomial(counts):
    return math.lgamma(sum(counts) + 1) - sum(math.lgamma(c + 1) for c in counts)


def part_cost(part, w):
    """The terms of equation (2) that belong to one interval; ``part[arm][class]`` are counts."""
    n_classes = len(part[0])
    groups = part if w else [[sum(arm[j] for arm in part) for j in range(n_classes)]]
    return sum(log_comb(sum(g) + n_classes - 1, n_classes - 1) + log_multinomial(g) for g in groups)


def interval_prior(n, n_intervals):
    """Log N + log C(N+I-1, I-1) + I log 2."""
    return math.log(n) + log_comb(n + n_intervals - 1, n_intervals - 1) + n_intervals * math.log(2)


def partitions_into_at_most(n, k):
    """Return B(V, I): ways to put n values into at most k groups."""
    stirling = [[0] * (n + 1) for _ in range(n + 1)]
    stirling[0][0] = 1
    for v in range(1, n + 1):
        for g in range(1, v + 1):
            stirling[v][g] = g * stirling[v - 1][g] + stirling[v - 1][g - 1]
    return sum(stirling[n][1 : k + 1])


def group_prior(n_values, n_groups):
    """Log V + log B(V, I) + I log 2."""
    return math.log(n_values) + math.log(partitions_into_at_most(n_values, n_groups)) + n_groups * math.log(2)


def cost(parts, prior):
    """C(M) of a partition given as a list of count tables, each with its better W."""
    return prior + sum(min(part_cost(part, 0), part_cost(part, 1)) for part in parts)


def cost_with_all_w(parts, prior):
    """Return the least C(M) over every choice of the W_i."""
    return min(
        prior + sum(part_cost(part, w) for part, w in zip(parts, ws, strict=True))
        for ws in product((0, 1), repeat=len(parts))
    )


def tables(values, arm, cls, n_arms, n_classes, edges):
    """Count tables of the intervals between edges: interval i holds edge[i-1] < x <= edge[i]."""
    out = []
    bounds = [-math.inf, *edges, math.inf]
    for lo, hi in pairwise(bounds):
        rows = [k for k in range(len(values)) if lo < values[k] <= hi]
        table = [[0] * n_classes for _ in range(n_arms)]
        for k in rows:
            table[arm[k]][cls[k]] += 1
        out.append(table)
    return out


def best_cost(values, arm, cls, n_arms, n_classes):
    """Return the optimum of equation (2) over all cuts between distinct values, by a table over the number of intervals.

    F[k][h] is the least sum of interval costs of the first h distinct values in k intervals. No run is merged, no
    price is used, and k goes on until the prior alone is dearer than the best model found.
    """
    n = len(values)
    distinct, where = np.unique(values, return_inverse=True)
    m = len(distinct)
    counts = np.zeros((m + 1, n_arms, n_classes))
    np.add.at(counts, (where + 1, arm, cls), 1)
    counts = counts.cumsum(axis=0)
    lgamma = np.array([math.lgamma(k + 1) for k in range(n + n_classes + 1)])

    def lf(x):
        return lgamma[x.astype(int)]

    interval = np.full((m + 1, m + 1), np.inf)
    for hi in range(1, m + 1):
        part = counts[hi] - counts[:hi]  # (lo, arm, class)
        j = n_classes
        pooled, by_arm = part.sum(axis=1), part.sum(axis=2)
        w0 = lf(pooled.sum(axis=1) + j - 1) - lf(np.array(j - 1)) - lf(pooled).sum(axis=1)
        w1 = (lf(by_arm + j - 1) - lf(np.array(j - 1))).sum(axis=1) - lf(part).sum(axis=(1, 2))
        interval[:hi, hi] = np.minimum(w0, w1)
    free = np.zeros(m + 1)  # with no prior at all: a lower bound of every F[k]
    for hi in range(1, m + 1):
        free[hi] = np.min(free[:hi] + interval[:hi, hi])
    layer = interval[0].copy()
    best = layer[m] + interval_prior(n, 1)
    for k in range(2, m + 1):
        if free[m] + interval_prior(n, k) >= best:
            break
        layer = np.concatenate([[np.inf], [np.min(layer[:hi] + interval[:hi, hi]) for hi in range(1, m + 1)]])
        best = min(best, layer[m] + interval_prior(n, k))
    return best


def set_partitions(items):
    """All partitions of a list into groups."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for partition in set_partitions(rest):
        yield [[first], *partition]
        for k in range(len(partition)):
            yield [*partition[:k], [first, *partition[k]], *partition[k + 1 :]]


def best_group_cost(values):
    """Return the optimum over all groupings; ``values[v][arm][class]`` are counts."""
    n = len(values)
    array = np.asarray(values)
    return min(
        cost([array[group].sum(axis=0).tolist() for group in partition], group_prior(n, len(partition)))
        for partition in set_partitions(list(range(n)))
    )


def greedy_parts(parts, n, prior):
    """Return the paper's bottom-up search: merge the neighbours that lower C(M) most, until none does."""
    parts = [np.asarray(p) for p in parts]

    def one(p):
        return min(part_cost(p.tolist(), 0), part_cost(p.tolist(), 1))

    while len(parts) > 1:
        changes = [one(parts[k] + parts[k + 1]) - one(parts[k]) - one(parts[k + 1]) for k in range(len(parts) - 1)]
        k = int(np.argmin(changes))
        if changes[k] + prior(n, len(parts) - 1) - prior(n, len(parts)) >= 0:
            break
        parts[k : k + 2] = [parts[k] + parts[k + 1]]
    return [p.tolist() for p in parts]
