"""Moves that improve a partition of one numeric feature: merging neighbours, moving cuts, post-optimisation."""

from __future__ import annotations

import numpy as np

from upturn._arrays import Floats
from upturn.features._points import Cuts, Points
from upturn.kernels.umodl import TOLERANCE
from upturn.kernels.umodl_cutting import polish_cuts, shift_cuts
from upturn.kernels.umodl_merging import follow_ends, merge_neighbours, start_merging, thin_points

MOST_INTERVALS = 1 << 14  # post-optimisation never grows a partition beyond this
MERGES = 1 << 20  # merges a call: about half a second
ROUNDS = 64  # moves of post-optimisation a call


def merged(points: Points, prior: Floats | None, enough: int) -> Cuts:
    """Merge neighbours, best merge first, while the cost falls (no prior: always) and more than ``enough`` are left."""
    m = len(points) - 1
    steps = np.empty(0) if prior is None else prior
    costs, unions, tree = np.empty(m), np.empty(m), np.full(2 << int(m - 1).bit_length(), np.inf)
    end, before = np.arange(1, m + 1), np.arange(-1, m - 1)
    start_merging(*points.problem, costs, unions, tree)
    intervals, left = m + 1, m
    while left < intervals:
        intervals = left
        left = merge_neighbours(*points.problem, steps, enough, MERGES, intervals, costs, unions, tree, end, before)
    cuts = np.empty(left + 1, dtype=np.int64)
    follow_ends(end, cuts)
    return cuts


def thinned(points: Points, enough: int) -> Cuts:
    """Merge neighbours, cheap merges first, until ``enough`` intervals are left: in rounds at first, then one by one."""
    kept, left = np.empty(len(points), dtype=np.int64), np.empty_like(points.counts)
    found = thin_points(*points.problem, enough, left, kept)
    few = Points(left[:found], points.n_arms, points.n_classes, points.table)
    return kept[merged(few, None, enough)]


def shifted(points: Points, cuts: Cuts, first: Cuts, last: Cuts) -> Cuts:
    """Move the cuts, each between its ``first`` and ``last`` point, until no single move lowers the cost."""
    cuts, least_gain = cuts.copy(), _scale(points) * TOLERANCE
    while shift_cuts(*points.problem, first, last, least_gain, cuts):
        pass
    return cuts


def polish(points: Points, cuts: Cuts, prior: Floats) -> Cuts:
    """Improve a partition until no split, merge, merge-split or merge-merge-split lowers its cost."""
    scale = _scale(points)
    room = min(len(points), max(MOST_INTERVALS, len(cuts)) + 1)
    n = len(cuts)
    buffer = np.zeros(min(room, 4 * n + 64), dtype=np.int64)
    buffer[:n] = cuts
    while True:
        n = int(polish_cuts(*points.problem, prior, scale, ROUNDS, buffer, n))
        full = abs(n) == len(buffer) < room
        if n > 0 and not full:
            return buffer[:n].copy()
        n = abs(n)
        buffer = np.concatenate([buffer[:n], np.zeros(min(room, 4 * n + 64) - n, dtype=np.int64)])


def _scale(points: Points) -> float:
    return abs(points.cost(points.ends)) + 1.0
