"""From one column of a table to its cheapest partition."""

from __future__ import annotations

import numpy as np

from upturn._arrays import Floats, Ints
from upturn.features._cells import Cells
from upturn.features._cost import group_prior, interval_prior, part_costs
from upturn.features._groups import MOST_GROUPS, best_groups
from upturn.features._moves import MOST_INTERVALS
from upturn.features._partition import Partition
from upturn.features._points import Magnitudes, scan_column, sort_column
from upturn.features._search import ALL_POINTS, exact_cuts, fast_cuts, greedy_cuts, refined_cuts

EXACT_POINTS = 2048  # with search="auto", columns of at most so many boundary points are searched exactly
MOST_EXACT_POINTS = 30_000  # with search="exact", more than this would take minutes


def column_of(X: Floats, j: int) -> Floats:
    """Return a column in one piece and in double precision, of which any floats are a part."""
    return np.ascontiguousarray(X[:, j], dtype=np.float64)


def partition_column(column: Floats, cells: Cells, n_levels: int | None, search: str) -> Partition:
    """Find the cheapest partition of one column; ``n_levels`` is None for a numeric one.

    Missing values are a part of their own, or the whole feature is a single part, whichever is cheaper.
    """
    n_missing, magnitudes = scan_column(column)
    if n_missing == len(column):
        edges, groups = (np.empty(0), None) if n_levels is None else (None, np.full(n_levels, -1, dtype=np.int64))
        return _single(cells.everything, cells, edges, groups, np.log(cells.n if n_levels is None else 1) + np.log(2.0))
    some = n_missing > 0
    missing = np.isnan(column) if some else None
    values, present = (column[~missing], cells.take(~missing)) if missing is not None else (column, cells)
    if n_levels is None:
        edges, parts, prior = _cut(values, present, cells.n, some, search, magnitudes)
        groups = None
    else:
        groups, parts, prior = _group(values, present, n_levels, some, search)
        edges = None
    if missing is not None:
        parts = np.vstack([parts, cells.take(missing).everything])
    everything = parts.sum(axis=0, keepdims=True)
    pooled, separate = part_costs(parts, cells.n_arms, cells.n_classes)
    cost = float(np.minimum(pooled, separate).sum() + prior[len(parts)])
    if len(parts) > 1:
        null_cost = float(np.min(part_costs(everything, cells.n_arms, cells.n_classes)) + prior[1])
        if cost < null_cost:
            shape = (len(parts), cells.n_arms, cells.n_classes)
            missing_part = len(parts) - 1 if some else -1
            return Partition(edges, groups, missing_part, parts.reshape(shape), separate < pooled, cost, null_cost)
    if groups is not None:
        groups = np.minimum(groups, 0)
    return _single(everything, cells, None if edges is None else np.empty(0), groups, float(prior[1]))


def _single(everything: Ints, cells: Cells, edges: Floats | None, groups: Ints | None, prior: float) -> Partition:
    pooled, separate = part_costs(everything, cells.n_arms, cells.n_classes)
    cost = float(min(pooled[0], separate[0]) + prior)
    counts = everything.reshape(1, cells.n_arms, cells.n_classes)
    return Partition(edges, groups, 0, counts, separate < pooled, cost, cost)


def _cut(
    values: Floats, cells: Cells, n: int, some_missing: bool, search: str, magnitudes: Magnitudes
) -> tuple[Floats, Ints, Floats]:
    """Return edges, counts of the intervals, and the prior by number of parts (missing values included)."""
    column = sort_column(values, cells, magnitudes)
    boundary = column.boundary_points(ALL_POINTS if search == "auto" else None, merge_runs=search != "greedy")
    if search == "exact" and boundary is not None and len(boundary[0]) > MOST_EXACT_POINTS:
        raise ValueError(
            f"search='exact' weighs every pair of boundary points, and a column has {len(boundary[0]):,} of them: the limit is "
            f"{MOST_EXACT_POINTS:,}; use search='auto', which finds the same or almost the same partition"
        )
    many = len(values) if boundary is None else len(boundary[0]) - 1
    most = (many if search == "greedy" else min(many, MOST_INTERVALS)) + 1
    prior = interval_prior(n, 1 << most.bit_length())[: most + 1]  # a rounded length, so that columns share it
    of_intervals = np.concatenate([[np.inf], prior[2:]]) if some_missing else prior
    if boundary is None:
        ends, rows = refined_cuts(column, of_intervals)
    else:
        points, rows = boundary
        if search == "greedy":
            find = greedy_cuts
        else:
            find = exact_cuts if search == "exact" or len(points) <= EXACT_POINTS else fast_cuts
        cuts = find(points, of_intervals)
        ends, rows = points.take(cuts), rows[cuts]
    below, above = column.values(rows[1:-1] - 1), column.values(rows[1:-1])
    middle = below + (above - below) / 2
    edges = np.where(middle < above, middle, below)  # neighbouring floats have nothing between them
    before = ends.counts.astype(np.int64)
    return edges, before[1:] - before[:-1], prior


def _group(codes: Floats, cells: Cells, n_levels: int, some_missing: bool, search: str) -> tuple[Ints, Ints, Floats]:
    """Return the group of each level, counts of the groups, and the prior by number of parts."""
    counts = cells.count(codes.astype(np.int64), n_levels)
    there = counts.sum(axis=1) > 0
    n_values = int(there.sum()) + some_missing
    prior = group_prior(n_values, min(n_values, MOST_GROUPS + 1))
    of_groups = np.concatenate([[np.inf], prior[1 + some_missing :]])
    found = best_groups(counts[there], cells.n_arms, cells.n_classes, of_groups, greedy=search == "greedy")
    groups = np.full(n_levels, -1, dtype=np.int64)
    groups[there] = found
    parts = np.zeros((int(found.max()) + 1, cells.n_cells), dtype=np.int64)
    np.add.at(parts, found, counts[there])
    return groups, parts, prior
