"""Merging and post-optimising partitions of one numeric feature: the paper's search, and the fast one's last step.

A partition is the increasing list of the boundary points it cuts at, both ends included.
"""

from __future__ import annotations

import numpy as np

from upturn._arrays import Floats, Ints
from upturn.kernels._jit import F8, I4_2, I8, F8_out, I4_2_out, I8_out, b1, f8, i8, inner, kernel, void
from upturn.kernels.umodl import (
    costs_of_cutting,
    costs_of_spans,
    general_cost,
    interval_cost,
    log_factorials,
    two_by_two_cost,
)
from upturn.kernels.umodl_points import Points

Cuts = Ints

MOST_INTERVALS = 1 << 14  # post-optimisation never grows a partition beyond this
SCAN = 2048  # a longer span is scanned in strides,
CLOSE_LOOKS = 6  # and so many of the best places are then looked at closely
MERGES = 1 << 20  # merges a call: about half a second
TOLERANCE = 1e-13  # a gain must exceed this part of the cost: a log-factorial's last bit is 3e-8 at ten million rows


@kernel(f8, I4_2, I8, i8, i8, F8)
def cuts_cost(points, cuts, n_arms, n_classes, table):
    """Return the sum of the costs of the intervals between cuts, without the prior."""
    total = 0.0
    for k in range(cuts.shape[0] - 1):
        total += interval_cost(points, cuts[k], cuts[k + 1], n_arms, n_classes, table)
    return total


def table_for(points: Points, n_classes: int) -> Floats:
    """Return log-factorials that reach as far as the criterion looks."""
    return log_factorials(int(points[-1].sum()) + n_classes)


@inner
def _best_cut(points, lo, hi, n_arms, n_classes, table):
    """Return where to cut a span in two, and what both parts cost; (lo, inf) when nothing lies between."""
    inside = hi - lo - 1
    if inside < 1:
        return lo, np.inf
    stride = max(inside // SCAN, 1)
    costs = np.empty((inside - 1) // stride + 1)
    costs_of_cutting(points, lo, hi, lo + 1, stride, n_arms, n_classes, table, costs)
    best_k = np.argmin(costs)
    best_at, best = lo + 1 + best_k * stride, costs[best_k]
    if stride == 1:
        return best_at, best
    close = np.empty(2 * stride - 1)
    for _ in range(CLOSE_LOOKS):
        k = np.argmin(costs)
        costs[k] = np.inf
        first = max(lo + 2 + (k - 1) * stride, lo + 1)
        last = min(lo + (k + 1) * stride, hi - 1)
        window = close[: last - first + 1]
        costs_of_cutting(points, lo, hi, first, 1, n_arms, n_classes, table, window)
        k = np.argmin(window)
        if window[k] < best:
            best_at, best = first + k, window[k]
    return best_at, best


@inner
def _refresh(points, cuts, n, old_lo, old_hi, old_at, old_cost, n_old, span, n_arms, n_classes, table, out):
    """Write (lo, hi, cut, cost) of the best cut of every ``span`` neighbouring intervals, keeping what did not change."""
    j = 0
    for i in range(n - span):
        lo, hi = cuts[i], cuts[i + span]
        while j < n_old and old_lo[j] < lo:
            j += 1
        out[0, i], out[1, i] = lo, hi
        if j < n_old and old_lo[j] == lo and old_hi[j] == hi:
            out[2, i], out[3, i] = old_at[j], old_cost[j]
        else:
            at, cost = _best_cut(points, lo, hi, n_arms, n_classes, table)
            out[2, i], out[3, i] = at, cost


@kernel(i8, I4_2, I8_out, i8, i8, i8, F8, F8, f8, i8)
def _polish(points, cuts, n, n_arms, n_classes, table, prior, scale, rounds):
    """Improve cuts[:n] in place, one best move at a time; return the new n, negative when ``rounds`` ran out."""
    room = cuts.shape[0]
    memory = np.zeros((3, 4, room))  # for spans of 1, 2, 3 intervals: lo, hi, best cut, its cost
    known = np.zeros(3, dtype=np.int64)
    scratch = np.zeros((4, room))
    costs = np.zeros(room)
    for _ in range(rounds):
        for i in range(n - 1):
            costs[i] = interval_cost(points, cuts[i], cuts[i + 1], n_arms, n_classes, table)
        for s in range(3):
            old = memory[s].copy()
            _refresh(
                points, cuts, n, old[0], old[1], old[2], old[3], known[s], s + 1, n_arms, n_classes, table, scratch
            )
            known[s] = max(n - 1 - s, 0)
            memory[s, :, : known[s]] = scratch[:, : known[s]]
        intervals = n - 1
        best_gain, kind, place = scale * TOLERANCE, -1, 0
        for i in range(n - 1):  # split one interval
            if n < room and intervals + 1 < prior.shape[0]:
                gain = costs[i] - memory[0, 3, i] + prior[intervals] - prior[intervals + 1]
                if gain > best_gain:
                    best_gain, kind, place = gain, 0, i
        for i in range(n - 2):  # merge two, or move the cut between them
            pair = costs[i] + costs[i + 1]
            gain = pair - memory[1, 3, i]
            if gain > best_gain:
                best_gain, kind, place = gain, 1, i
            merged = interval_cost(points, cuts[i], cuts[i + 2], n_arms, n_classes, table)
            gain = pair - merged + prior[intervals] - prior[intervals - 1]
            if gain > best_gain:
                best_gain, kind, place = gain, 2, i
        for i in range(n - 3):  # merge three and cut them in two
            three = costs[i] + costs[i + 1] + costs[i + 2]
            gain = three - memory[2, 3, i] + prior[intervals] - prior[intervals - 1]
            if gain > best_gain:
                best_gain, kind, place = gain, 3, i
        if kind < 0:
            return n
        if kind == 0:
            for k in range(n, place + 1, -1):
                cuts[k] = cuts[k - 1]
            cuts[place + 1] = np.int64(memory[0, 2, place])
            n += 1
        elif kind == 1:
            cuts[place + 1] = np.int64(memory[1, 2, place])
        else:
            if kind == 3:
                cuts[place + 2] = np.int64(memory[2, 2, place])
            for k in range(place + 1, n - 1):
                cuts[k] = cuts[k + 1]
            n -= 1
    return -n


def polish(points: Points, cuts: Cuts, n_arms: int, n_classes: int, prior: Floats) -> Cuts:
    """Improve a partition until no split, merge, merge-split or merge-merge-split lowers its cost."""
    table = table_for(points, n_classes)
    scale = _scale(points, n_arms, n_classes, table)
    room = min(len(points), max(MOST_INTERVALS, len(cuts)) + 1)
    n = len(cuts)
    buffer = np.zeros(min(room, 4 * n + 64), dtype=np.int64)
    buffer[:n] = cuts
    while True:
        n = int(_polish(points, buffer, n, n_arms, n_classes, table, prior, scale, 64))
        full = abs(n) == len(buffer) < room
        if n > 0 and not full:
            return buffer[:n].copy()
        n = abs(n)
        buffer = np.concatenate([buffer[:n], np.zeros(min(room, 4 * n + 64) - n, dtype=np.int64)])


@kernel(b1, I4_2, I8, I8, i8, i8, F8, f8, I8_out)
def _shift(points, first, last, n_arms, n_classes, table, least_gain, cuts):
    """Move each cut in turn to the best place in its window; return whether any was moved."""
    moved = False
    for k in range(1, cuts.shape[0] - 1):
        lo, hi = cuts[k - 1], cuts[k + 1]
        start, stop = max(first[k - 1], lo + 1), min(last[k - 1], hi - 1)
        costs = np.empty(stop - start + 1)
        costs_of_cutting(points, lo, hi, start, 1, n_arms, n_classes, table, costs)
        best = np.argmin(costs)
        if costs[cuts[k] - start] - costs[best] > least_gain:
            cuts[k] = start + best
            moved = True
    return moved


def shifted(points: Points, cuts: Cuts, first: Cuts, last: Cuts, n_arms: int, n_classes: int) -> Cuts:
    """Move the cuts, each between its ``first`` and ``last`` point, until no single move lowers the cost."""
    table, cuts = table_for(points, n_classes), cuts.copy()
    least_gain = _scale(points, n_arms, n_classes, table) * TOLERANCE
    while _shift(points, first, last, n_arms, n_classes, table, least_gain, cuts):
        pass
    return cuts


def _scale(points: Points, n_arms: int, n_classes: int, table: Floats) -> float:
    ends = np.array([0, len(points) - 1], dtype=np.int64)
    return abs(float(cuts_cost(points, ends, n_arms, n_classes, table))) + 1.0


@kernel(i8, I4_2, i8, i8, F8, i8, I4_2_out, I8_out)
def _thin(points, n_arms, n_classes, table, enough, left, kept):
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


def thinned(points: Points, n_arms: int, n_classes: int, enough: int) -> Cuts:
    """Merge neighbours, cheap merges first, until ``enough`` intervals are left: in rounds at first, then one by one."""
    kept, left = np.empty(len(points), dtype=np.int64), np.empty_like(points)
    found = _thin(points, n_arms, n_classes, table_for(points, n_classes), enough, left, kept)
    return kept[merged(left[:found], n_arms, n_classes, None, enough)]


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
def _start_merging(points, n_arms, n_classes, table, costs, unions, tree):
    """Fill the costs of all intervals and of all pairs of neighbours, and the tree of what merging a pair adds."""
    m, size = costs.shape[0], tree.shape[0] // 2
    costs_of_spans(points, 1, n_arms, n_classes, table, costs)
    costs_of_spans(points, 2, n_arms, n_classes, table, unions)
    for k in range(m - 1):
        tree[size + k] = unions[k] - costs[k] - costs[k + 1]
    for at in range(size - 1, 0, -1):
        tree[at] = min(tree[2 * at], tree[2 * at + 1])


@kernel(i8, I4_2, i8, i8, F8, F8, i8, i8, i8, F8_out, F8_out, F8_out, I8_out, I8_out)
def _merge(points, n_arms, n_classes, table, prior, enough, rounds, intervals, costs, unions, tree, end, before):
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
def _follow(end, cuts):
    """Write the starts of the intervals, from one to the next, and the end of the last."""
    cuts[0] = 0
    for k in range(1, cuts.shape[0]):
        cuts[k] = end[cuts[k - 1]]


def greedy_cuts(points: Points, n_arms: int, n_classes: int, prior: Floats) -> Cuts:
    """Return the paper's solution: merge neighbours while the cost falls, best merge first, then post-optimise.

    ``points`` are all distinct values here, and ``prior`` must reach that many intervals.
    """
    return polish(points, merged(points, n_arms, n_classes, prior, 1), n_arms, n_classes, prior)


def merged(points: Points, n_arms: int, n_classes: int, prior: Floats | None, enough: int) -> Cuts:
    """Merge neighbours, best merge first, while the cost falls (no prior: always) and more than ``enough`` are left."""
    m = len(points) - 1
    table, steps = table_for(points, n_classes), np.empty(0) if prior is None else prior
    costs, unions, tree = np.empty(m), np.empty(m), np.full(2 << int(m - 1).bit_length(), np.inf)
    end, before = np.arange(1, m + 1), np.arange(-1, m - 1)
    _start_merging(points, n_arms, n_classes, table, costs, unions, tree)
    intervals, left = m + 1, m
    while left < intervals:
        intervals = left
        left = _merge(
            points, n_arms, n_classes, table, steps, enough, MERGES, intervals, costs, unions, tree, end, before
        )
    cuts = np.empty(left + 1, dtype=np.int64)
    _follow(end, cuts)
    return cuts
