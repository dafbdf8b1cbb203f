"""Grouping the values of a categorical feature: trying all groupings, moving values and merging groups.

``values[v]`` holds the counts of value v in every cell (arm, class); a grouping is a group number for each value.
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import F8, I4_2, F8_2_out, I4_2_out, I8_out, f8, i8, inner, kernel
from upturn.kernels.umodl import TOLERANCE, interval_cost


@inner
def _sum_into(sums, row, values, labels, group):
    """Write the counts of one group into a row of ``sums``, whose row 0 stays zero."""
    for c in range(values.shape[1]):
        sums[row, c] = 0
    for v in range(values.shape[0]):
        if labels[v] == group:
            for c in range(values.shape[1]):
                sums[row, c] += values[v, c]


@kernel(f8, I4_2, i8, i8, F8, F8, I8_out)
def try_all_groupings(values, n_arms, n_classes, table, prior, best):
    """Walk through all set partitions (as restricted growth strings) and leave the cheapest in ``best``."""
    n = values.shape[0]
    labels = np.zeros(n, dtype=np.int64)
    highest = np.zeros(n, dtype=np.int64)  # largest label up to each place
    sums = np.zeros((2, values.shape[1]), dtype=np.int32)
    least = np.inf
    while True:
        groups = highest[n - 1] + 1
        total = prior[groups]
        for g in range(groups):
            _sum_into(sums, 1, values, labels, g)
            total += interval_cost(sums, 0, 1, n_arms, n_classes, table)
        if total < least:
            least = total
            best[:] = labels
        v = n - 1
        while v > 0 and labels[v] == highest[v - 1] + 1:
            v -= 1
        if v == 0:
            return least
        labels[v] += 1
        highest[v] = max(highest[v - 1], labels[v])
        for k in range(v + 1, n):
            labels[k] = 0
            highest[k] = highest[v]


@kernel(f8, I4_2, i8, i8, F8, F8, f8, I8_out, I4_2_out)
def improve_groups(values, n_arms, n_classes, table, prior, scale, labels, sums):
    """Sweep once over moves of values and merges of groups; return how much the cost fell.

    Row g + 1 of ``sums`` holds group g, row 0 is zero, and the last two rows are room to work in. Empty groups cost
    nothing; one of them at a time is offered as a new group.
    """
    n, n_cells = values.shape
    room = sums.shape[0] - 3
    a, b = sums.shape[0] - 2, sums.shape[0] - 1
    sizes = np.zeros(room, dtype=np.int64)
    costs = np.zeros(room)
    groups = 0
    for v in range(n):
        sizes[labels[v]] += 1
    for g in range(room):
        if sizes[g]:
            groups += 1
            costs[g] = interval_cost(sums, 0, g + 1, n_arms, n_classes, table)
    fallen = 0.0
    for v in range(n):
        g = labels[v]
        for c in range(n_cells):
            sums[a, c] = sums[g + 1, c] - values[v, c]
        without = interval_cost(sums, 0, a, n_arms, n_classes, table) if sizes[g] > 1 else 0.0
        least, target, target_cost, offered = -scale * TOLERANCE, -1, 0.0, sizes[g] == 1
        for h in range(room):
            if h == g or (sizes[h] == 0 and offered):
                continue
            after = groups - (1 if sizes[g] == 1 else 0)
            if sizes[h] == 0:
                offered = True
                after += 1
            if after >= prior.shape[0]:
                continue
            for c in range(n_cells):
                sums[b, c] = sums[h + 1, c] + values[v, c]
            joined = interval_cost(sums, 0, b, n_arms, n_classes, table)
            change = without + joined - costs[g] - costs[h] + prior[after] - prior[groups]
            if change < least:
                least, target, target_cost = change, h, joined
        if target >= 0:
            groups += (1 if sizes[target] == 0 else 0) - (1 if sizes[g] == 1 else 0)
            for c in range(n_cells):
                sums[g + 1, c] -= values[v, c]
                sums[target + 1, c] += values[v, c]
            costs[g], costs[target] = without, target_cost
            sizes[g] -= 1
            sizes[target] += 1
            labels[v] = target
            fallen -= least
    for g in range(room):
        for h in range(g + 1, room):
            if sizes[g] == 0 or sizes[h] == 0:
                continue
            for c in range(n_cells):
                sums[a, c] = sums[g + 1, c] + sums[h + 1, c]
            joined = interval_cost(sums, 0, a, n_arms, n_classes, table)
            change = joined - costs[g] - costs[h] + prior[groups - 1] - prior[groups]
            if change < -scale * TOLERANCE:
                for c in range(n_cells):
                    sums[g + 1, c] += sums[h + 1, c]
                    sums[h + 1, c] = 0
                for v in range(n):
                    if labels[v] == h:
                        labels[v] = g
                costs[g], costs[h] = joined, 0.0
                sizes[g] += sizes[h]
                sizes[h] = 0
                groups -= 1
                fallen -= change
    return fallen


@kernel(i8, I4_2, i8, i8, F8, F8, F8_2_out, I8_out)
def merge_groups(values, n_arms, n_classes, table, prior, change, labels):
    """Merge the best pair of groups while the cost falls; return how many are left.

    ``change[g, h]`` (g < h) is what merging the two adds to the sum of costs.
    """
    n, n_cells = values.shape
    sums = np.zeros((n + 2, n_cells), dtype=np.int32)
    costs = np.zeros(n)
    alive = np.ones(n, dtype=np.bool_)
    room = n + 1
    for g in range(n):
        labels[g] = g
        for c in range(n_cells):
            sums[g + 1, c] = values[g, c]
        costs[g] = interval_cost(sums, 0, g + 1, n_arms, n_classes, table)
    for g in range(n):
        for h in range(g + 1, n):
            for c in range(n_cells):
                sums[room, c] = sums[g + 1, c] + sums[h + 1, c]
            change[g, h] = interval_cost(sums, 0, room, n_arms, n_classes, table) - costs[g] - costs[h]
    groups = n
    while groups > 1:
        least, first, second = np.inf, 0, 0
        for g in range(n):
            if alive[g]:
                for h in range(g + 1, n):
                    if alive[h] and change[g, h] < least:
                        least, first, second = change[g, h], g, h
        if groups < prior.shape[0] and least + prior[groups - 1] - prior[groups] >= 0.0:
            break
        alive[second] = False
        groups -= 1
        for c in range(n_cells):
            sums[first + 1, c] += sums[second + 1, c]
        costs[first] = interval_cost(sums, 0, first + 1, n_arms, n_classes, table)
        for v in range(n):
            if labels[v] == second:
                labels[v] = first
        for h in range(n):
            if alive[h] and h != first:
                for c in range(n_cells):
                    sums[room, c] = sums[first + 1, c] + sums[h + 1, c]
                both = interval_cost(sums, 0, room, n_arms, n_classes, table) - costs[first] - costs[h]
                change[min(first, h), max(first, h)] = both
    return groups
