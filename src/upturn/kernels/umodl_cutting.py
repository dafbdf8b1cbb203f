"""Cutting a numeric feature: the cheapest path through its points, and the moves that improve a partition.

A partition is the increasing list of the points it cuts at, both ends included.
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import F8, I4_2, I8, F8_out, I8_out, b1, f8, i8, inner, kernel, void
from upturn.kernels.umodl import TOLERANCE, costs_of_cutting, costs_up_to, interval_cost

SCAN = 2048  # a longer span is scanned in strides,
CLOSE_LOOKS = 6  # and so many of the best places are then looked at closely


@kernel(void, I4_2, i8, i8, F8, F8_out)
def all_costs(points, n_arms, n_classes, table, costs):
    """Write the costs of all intervals, those that end at point k from place k (k - 1) / 2 on."""
    for hi in range(1, points.shape[0]):
        row = hi * (hi - 1) // 2
        costs_up_to(points, 0, hi, n_arms, n_classes, table, costs[row : row + hi])


@kernel(void, I4_2, i8, i8, F8, F8, I8, f8, F8_out, I8_out)
def cheapest_path(points, n_arms, n_classes, table, costs, earliest, price, best, back):
    """Write the least cost up to every point at a price per interval, and the point before it on that path."""
    stored = costs.shape[0] > 0
    buffer = np.empty(0 if stored else points.shape[0])
    best[0] = 0.0
    for hi in range(1, points.shape[0]):
        start = hi * (hi - 1) // 2
        if stored:
            row = costs[start : start + hi]
        else:
            row = buffer[:hi]
            costs_up_to(points, earliest[hi], hi, n_arms, n_classes, table, row)
        least, at = np.inf, 0
        for lo in range(earliest[hi], hi):
            value = best[lo] + row[lo]
            if value < least:
                least, at = value, lo
        best[hi] = least + price
        back[hi] = at


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


@kernel(i8, I4_2, i8, i8, F8, F8, f8, i8, I8_out, i8)
def polish_cuts(points, n_arms, n_classes, table, prior, scale, rounds, cuts, n):
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


@kernel(b1, I4_2, i8, i8, F8, I8, I8, f8, I8_out)
def shift_cuts(points, n_arms, n_classes, table, first, last, least_gain, cuts):
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
