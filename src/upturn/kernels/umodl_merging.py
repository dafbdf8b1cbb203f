"""Merging neighbouring intervals of a numeric feature, the cheapest merge first: in rounds, or one by one."""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import F8, I4_2, I8, F8_out, I4_2_out, I8_out, i8, inner, kernel, void
from upturn.kernels.umodl import costs_of_spans, general_cost, two_by_two_cost


@kernel(i8, I4_2, i8, i8, F8, i8, I4_2_out, I8_out)
def thin_points(points, n_arms, n_classes, table, enough, left, kept):
    """Merge in rounds, in each all pairs that are cheaper to merge than the pairs beside them; return what is left.

    ``kept`` are the indices of the points left, ``left`` these points side by side. A round merges about a third of the
    intervals, and none is started with fewer than twice ``enough``.
    """
    m, n_cells = points.shape[0] - 1, points.shape[1]
    for k in range(m + 1):
        kept[k] = k
        for c in range(n_cells):
            left[k, c] = points[k, c]
    costs, unions, added = np.empty(m), np.empty(m), np.empty(m + 1)
    costs_of_spans(left, 1, n_arms, n_classes, table, costs)
    while m > 2 * enough:
        costs_of_spans(left[: m + 1], 2, n_arms, n_classes, table, unions)
        for k in range(m - 1):
            added[k] = unions[k] - costs[k] - costs[k + 1]
        added[m - 1] = np.inf
        before, to, k = np.inf, 0, 0
        while k < m:  # interval k stays as it is, or takes in the next one
            if added[k] < before and added[k] <= added[k + 1]:
                costs[to] = unions[k]
                before = added[k + 1]
                k += 2
            else:
                costs[to] = costs[k]
                before = added[k]
                k += 1
            to += 1
            kept[to] = kept[k]
            for c in range(n_cells):
                left[to, c] = left[k, c]
        m = to
    return m + 1


@inner
def _lift(tree, leaf):
    """Repair the path from a leaf that was set to the root of a tournament tree: the least of each pair moves up."""
    at = leaf >> 1
    while at >= 1:
        least = min(tree[2 * at], tree[2 * at + 1])
        if tree[at] == least:
            return
        tree[at] = least
        at >>= 1


@kernel(void, I4_2, i8, i8, F8, F8_out, F8_out, F8_out)
def start_merging(points, n_arms, n_classes, table, costs, unions, tree):
    """Fill the costs of all intervals and of all pairs of neighbours, and the tree of what merging a pair adds."""
    m, size = costs.shape[0], tree.shape[0] // 2
    costs_of_spans(points, 1, n_arms, n_classes, table, costs)
    costs_of_spans(points, 2, n_arms, n_classes, table, unions)
    for k in range(m - 1):
        tree[size + k] = unions[k] - costs[k] - costs[k + 1]
    for at in range(size - 1, 0, -1):
        tree[at] = min(tree[2 * at], tree[2 * at + 1])


@kernel(i8, I4_2, i8, i8, F8, F8, i8, i8, i8, F8_out, F8_out, F8_out, I8_out, I8_out)
def merge_neighbours(
    points, n_arms, n_classes, table, prior, enough, rounds, intervals, costs, unions, tree, end, before
):
    """Merge the pair that adds least, up to ``rounds`` times; return how many intervals are left.

    Leaf k of the tree stands for the merge of interval k with the next one, which starts at ``end[k]``.
    """
    m, size = costs.shape[0], tree.shape[0] // 2
    two_by_two, by_cost = n_arms == 2 and n_classes == 2, prior.shape[0] > 0
    for _ in range(rounds):
        if intervals <= enough or (by_cost and tree[1] + prior[intervals - 1] - prior[intervals] >= 0.0):
            break
        at = 1
        while at < size:
            at = 2 * at if tree[2 * at] <= tree[2 * at + 1] else 2 * at + 1
        k = at - size
        gone = end[k]
        costs[k] = unions[k]
        end[k] = end[gone]
        intervals -= 1
        tree[size + gone] = np.inf
        _lift(tree, size + gone)
        if end[k] < m:
            before[end[k]] = k
        else:
            tree[size + k] = np.inf
            _lift(tree, size + k)
        for left in (k, before[k]):
            if left < 0 or end[left] == m:
                continue
            right = end[left]
            if two_by_two:  # not through interval_cost: its call costs more than the sum
                unions[left] = two_by_two_cost(points, left, end[right], table)
            else:
                unions[left] = general_cost(points, left, end[right], n_arms, n_classes, table)
            tree[size + left] = unions[left] - costs[left] - costs[right]
            _lift(tree, size + left)
    return intervals


@kernel(void, I8, I8_out)
def follow_ends(end, cuts):
    """Write the starts of the intervals, from one to the next, and the end of the last."""
    cuts[0] = 0
    for k in range(1, cuts.shape[0]):
        cuts[k] = end[cuts[k - 1]]
