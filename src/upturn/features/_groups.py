"""Searching for the cheapest grouping of the values of a categorical feature.

There is no order to cut along, so the optimum is certain only where all partitions can be tried (``EXACT_VALUES``).
Beyond, several starts are improved by moving single values and merging groups, and the best one is kept:

- dynamic programming along orders that matter: by the rate of each arm, of all arms, and by the effect;
- greedy merging of pairs, the paper's search with "neighbour" meaning every other group.
"""

from __future__ import annotations

import numpy as np

from upturn._arrays import Floats, Ints
from upturn.features._cost import log_factorials
from upturn.features._points import Counts, Points
from upturn.features._search import exact_cuts
from upturn.kernels.umodl_groups import improve_groups, merge_groups, try_all_groupings

Groups = Ints  # a group number for each value

EXACT_VALUES = 8  # 4,140 partitions
PAIR_VALUES = 256  # up to here all pairs are merged greedily
ORDER_POINTS = 1024  # an order of more values is cut at so many places only
MOST_GROUPS = 256  # no grouping of more values than this has more groups


def best_groups(values: Ints, n_arms: int, n_classes: int, prior: Floats, greedy: bool = False) -> Groups:
    """Return a group number for every value, numbered in the order of appearance, with the least cost found.

    ``values[v]`` are the counts of value v in every cell (arm, class), ``prior[I]`` is the cost of having I groups. With
    ``greedy`` only the paper's start is used.
    """
    counts = np.ascontiguousarray(values, dtype=np.int32)
    n = len(counts)
    table = log_factorials(int(values.sum()) + n_classes)
    labels = np.zeros(n, dtype=np.int64)
    if n == 1:
        return labels
    if n <= EXACT_VALUES and not greedy:
        try_all_groupings(counts, n_arms, n_classes, table, prior, labels)
        return labels
    starts = [labels] if greedy else [labels, *_ordered_starts(counts, n_arms, n_classes, prior)]
    if n <= PAIR_VALUES:
        merged = np.empty(n, dtype=np.int64)
        merge_groups(counts, n_arms, n_classes, table, prior, np.empty((n, n)), merged)
        starts.append(merged)
    improved = [_descend(counts, _renumber(start), n_arms, n_classes, table, prior) for start in starts]
    return _renumber(min(improved, key=lambda found: found[0])[1])


def _descend(
    counts: Counts, labels: Groups, n_arms: int, n_classes: int, table: Floats, prior: Floats
) -> tuple[float, Groups]:
    """Improve a grouping until nothing falls any more; return its cost and labels."""
    while True:
        used = int(labels.max()) + 1
        sums = np.zeros((used + 4, counts.shape[1]), dtype=np.int32)  # one empty group, and the rows the kernel wants
        np.add.at(sums, labels + 1, counts)
        scale = float(table[int(counts.sum())])
        if improve_groups(counts, n_arms, n_classes, table, prior, scale, labels, sums) <= 0.0:
            break
        labels = _renumber(labels)
    groups = np.zeros((int(labels.max()) + 2, counts.shape[1]), dtype=np.int32)
    np.add.at(groups, labels + 1, counts)
    points = Points(np.cumsum(groups, axis=0, dtype=np.int32), n_arms, n_classes, table)
    return points.total(np.arange(len(points), dtype=np.int64), prior), labels


def _ordered_starts(counts: Counts, n_arms: int, n_classes: int, prior: Floats) -> list[Groups]:
    cells = counts.reshape(len(counts), n_arms, n_classes).astype(np.float64)
    scale = np.arange(n_classes, dtype=np.float64)
    overall = float((cells.sum(axis=(0, 1)) @ scale) / cells.sum())
    by_arm = (cells @ scale + overall) / (cells.sum(axis=2) + 1.0)  # mean class of each arm, drawn to the overall mean
    pooled = (cells.sum(axis=1) @ scale + overall) / (cells.sum(axis=(1, 2)) + 1.0)
    keys = [pooled, *by_arm.T, *(by_arm[:, 1:] - by_arm[:, :1]).T]
    starts = []
    for key in keys:
        order = np.argsort(key, kind="stable")
        before = np.zeros((len(counts) + 1, counts.shape[1]), dtype=np.int32)
        np.cumsum(counts[order], axis=0, out=before[1:])
        points = Points.of(before, n_arms, n_classes)
        chosen = np.arange(len(points))
        if len(points) > ORDER_POINTS:
            chosen = np.unique(np.linspace(0, len(points) - 1, ORDER_POINTS).astype(np.int64))
        cuts = chosen[exact_cuts(points.take(chosen), prior)]
        labels = np.empty(len(counts), dtype=np.int64)
        labels[order] = np.searchsorted(cuts, np.arange(len(counts)), side="right") - 1
        starts.append(labels)
    return starts


def _renumber(labels: Groups) -> Groups:
    """Number groups by the first value in them."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]
