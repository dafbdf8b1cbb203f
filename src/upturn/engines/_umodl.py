"""UMODL from counts of rows that lie in several places.

A partition of a column depends on how many rows each of its values has of each arm and class, and on nothing else. Parts count those, one column
after the other; the driver makes a row of every value and cell, as often as it occurs, and searches as always. Of a column with more than ``MOST`` values,
rows are counted between that many of its quantiles, and only there can it be cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np

from upturn._arrays import Floats, Ints
from upturn._columns import read_outcome, read_weight
from upturn._experiment import Experiment
from upturn._parallel import run_parallel
from upturn._table import Schema, encode_columns
from upturn._target import Label, Target, find_labels, name_arms, read_labels
from upturn.engines._gather import Roles
from upturn.engines._numbers import Raw, column_schema, columns_of, describe_columns, series_of, union
from upturn.engines._places import Places
from upturn.features import UMODLDiscretizer, UMODLSelector
from upturn.features._cells import MOST_ROWS, Cells, read_cells
from upturn.features._column import partition_column
from upturn.features._partition import Partition

MOST = 1 << 16  # values of a column that are counted one by one, or quantiles between which rows are
_CLASSES = 1 << 10  # distinct outcomes, above which they are not listed


def learn_umodl(model: Any, raws: Places, roles: Roles, library: str) -> None:
    """Fit a discretiser or a selector to places of raw frames."""
    if isinstance(model, UMODLSelector) and model.pairs:
        raise ValueError(
            "UMODLSelector(pairs=True) looks at several columns of a row together, and does not run on tables in parts: leave pairs "
            "out, or fit it to engines.sample(table, n)"
        )
    looks: list[_Look] = raws.ask(partial(_look, roles))
    counts: dict[Label, int] = {}
    for look in looks:
        for label, count in look.rows.items():
            counts[label] = counts.get(label, 0) + count
    n = sum(look.n for look in looks)
    if not counts:
        raise ValueError("the table has no rows: expected one row per person")
    if n > MOST_ROWS:
        raise ValueError(
            f"the table has {n:,} rows, and UMODL counts up to {MOST_ROWS:,}: fit it to engines.sample(table, n)"
        )
    control, arms = name_arms(list(counts), model.control, n)
    labels = [control, *arms]
    empty = [label for label in labels if not any(look.used.get(label) for look in looks)]
    if empty:
        raise ValueError(
            f"sample_weight is zero for every row of arm(s) {empty!r}: each arm needs some positive weight"
        )
    schema = union([look.columns for look in looks if look.columns is not None], roles)
    y = np.unique(np.concatenate([look.classes for look in looks]))
    few = Target(y, np.zeros(len(y), np.uint8), None, control, arms)
    classes, _ = read_cells(Experiment(np.zeros((len(y), 1)), schema, few))
    inner = model
    if isinstance(model, UMODLSelector):
        inner = UMODLDiscretizer(search=model.search, n_jobs=model.n_jobs, verbose=model.verbose, control=model.control)
    problems = (_column(raws, roles, schema, labels, classes, j) for j in range(len(roles.features)))
    inner.partitions_ = [partition for (partition,) in (_search(problem, inner) for problem in problems)]
    inner.classes_, inner.encoding_ = classes, inner.encode
    rate = set(np.unique(np.concatenate([look.everything for look in looks])).tolist()) <= {0.0, 1.0}
    model._rate = rate
    for one in (inner, model):
        one._library = library
        one._remember(control, arms, schema)
    if inner is not model:
        model._adopt(inner, bool(model.effect_only), np.empty((0, 2), dtype=np.int64), np.empty(0))
        model.fillers_ = np.empty(0, dtype=np.int64)


class _Counted(NamedTuple):
    """A column by its counts: a row for each value and one for what is missing, if anything is; where each value begins and ends."""

    counts: Ints  # (values, cells)
    missing: Ints  # (cells,)
    low: Floats
    high: Floats
    n_levels: int | None
    n_arms: int
    n_classes: int


def _search(found: _Counted, model: UMODLDiscretizer) -> list[Partition]:
    """The cheapest partition, interruptibly."""
    return run_parallel(partial(_partition, found), [model.search], n_jobs=1)


def _partition(found: _Counted, search: str) -> Partition:
    counts = np.vstack([found.counts, found.missing[None]])
    value, cell = np.nonzero(counts)
    weight = counts[value, cell]
    column = np.where(value < len(found.counts), value, np.nan)
    often = None if (weight == 1).all() else weight
    cells = Cells(cell.astype(np.uint8), often, found.n_arms, found.n_classes)
    partition = partition_column(column, cells, found.n_levels, search)
    if partition.edges is None:
        return partition
    at = np.floor(partition.edges).astype(np.intp)  # a cut lies after this value
    below, above = found.high[at], found.low[at + 1]
    middle = below + (above - below) / 2
    return replace(partition, edges=np.where(middle < above, middle, below))


def _column(raws: Places, roles: Roles, schema: Schema, labels: list[Label], classes: Floats, j: int) -> _Counted:
    own = roles._replace(features=[schema.names[j]])
    places = raws.change(partial(_to_cells, own, column_schema(schema, j), labels, classes))
    levels, n_cells = schema.levels[j], len(labels) * len(classes)
    if levels is not None:
        points: Floats = np.arange(len(levels), dtype=np.float64)
    else:
        found: Floats | None = places.ask(partial(values_of, MOST), partial(merge_values, MOST))
        points = quantiles(places.ask(partial(points_of, MOST))) if found is None else found
    counts, missing, low, high = places.ask(partial(_count, points, n_cells), _merge_counts)
    if levels is None:
        there = counts.sum(axis=1) > 0
        counts, low, high = counts[there], low[there], high[there]
    n_levels = None if levels is None else len(levels)
    return _Counted(counts, missing, low, high, n_levels, len(labels), len(classes))


def quantiles(parts: Sequence[tuple[Floats, float]]) -> Floats:
    """Quantiles of all rows, from evenly spaced ones of every part and the rows that each stands for."""
    values = np.concatenate([points for points, _ in parts])
    mass = np.concatenate([np.full(len(points), each) for points, each in parts])
    order = np.argsort(values, kind="stable")
    share = np.cumsum(mass[order]) / mass.sum()
    at = np.searchsorted(share, np.arange(1, MOST + 1) / MOST - 1e-12).clip(max=len(order) - 1)
    return np.unique(np.append(values[order][at], values.max()))


# ------------------------------------------------------------------------------------------- what a part answers


class _Look(NamedTuple):
    columns: Any
    rows: dict[Label, int]
    used: dict[Label, bool]
    n: int  # as often as rows occur
    classes: Floats
    everything: Floats  # outcomes, also of rows of weight 0


class _Values(NamedTuple):
    """A column of a part with the cell of every row and how often it occurs."""

    values: Floats
    cell: Ints
    weight: Ints


def _weights(roles: Roles, raw: Raw, n: int) -> Ints:
    if roles.sample_weight is None:
        return np.ones(n, np.int64)
    weight = read_weight(series_of(raw, roles.sample_weight))
    if (weight != np.rint(weight)).any():
        example = weight[np.argmax(weight != np.rint(weight))]
        raise ValueError(
            f"sample_weight holds {example:g}: UMODL counts rows, so a weight must be a whole number (how often the row occurs)"
        )
    return weight.astype(np.int64)


def _look(roles: Roles, raw: Raw) -> _Look:
    rows = len(nw.from_native(raw.frame, eager_only=True))
    if not rows:
        return _Look(None, {}, {}, 0, np.empty(0), np.empty(0))
    labels, codes = find_labels(read_labels(series_of(raw, roles.treatment)))
    weight, y = _weights(roles, raw, rows), read_outcome(series_of(raw, roles.y))
    counts, mass = np.bincount(codes, minlength=len(labels)), np.bincount(codes, weight, len(labels))
    found = dict(zip(labels, counts.tolist(), strict=True)), dict(zip(labels, (mass > 0).tolist(), strict=True))
    few = [np.unique(values)[:_CLASSES] for values in (y[weight > 0], y)]
    return _Look(describe_columns(raw, roles.features), *found, int(weight.sum()), *few)


def _to_cells(roles: Roles, schema: Schema, labels: list[Label], classes: Floats, raw: Raw) -> _Values:
    n = len(nw.from_native(raw.frame, eager_only=True))
    if not n:
        return _Values(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
    found, codes = find_labels(read_labels(series_of(raw, roles.treatment)))
    arm = np.array([labels.index(label) for label in found])[codes]
    weight, y = _weights(roles, raw, n), read_outcome(series_of(raw, roles.y))
    values = np.add(encode_columns(columns_of(raw, roles.features), schema, False)[:, 0], 0.0)
    cell = arm * len(classes) + np.searchsorted(classes, y).clip(max=len(classes) - 1)
    used = weight > 0
    return _Values(values[used], cell[used], weight[used])


def _known(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def values_of(most: int, part: Any) -> Floats | None:
    """The different ``values`` of a part's column; None if there are too many."""
    found = np.unique(_known(part.values))
    return found if len(found) <= most else None


def merge_values(most: int, parts: Sequence[Floats | None]) -> Floats | None:
    """The different values of all parts; None if there are too many."""
    some = [part for part in parts if part is not None]
    if len(some) < len(parts):
        return None
    found = np.unique(np.concatenate(some))
    return found if len(found) <= most else None


def points_of(most: int, part: Any) -> tuple[Floats, float]:
    """Evenly spaced quantiles of a part's ``values``, and the rows that each stands for."""
    ordered = np.sort(_known(part.values))
    if not len(ordered):
        return ordered, 0.0
    at = np.ceil(np.arange(1, min(len(ordered), most) + 1) * len(ordered) / min(len(ordered), most)).astype(np.intp) - 1
    return ordered[at], len(ordered) / len(at)


def _count(points: Floats, n_cells: int, part: _Values) -> tuple[Ints, Ints, Floats, Floats]:
    """Rows up to each point and above the one before, by cell; those without a value; the smallest and largest value there."""
    low, high = np.full(len(points), np.inf), np.full(len(points), -np.inf)
    known = ~np.isnan(part.values)
    values, cell, weight = part.values[known], part.cell[known], part.weight[known]
    at = np.searchsorted(points, values)
    np.minimum.at(low, at, values)
    np.maximum.at(high, at, values)
    size = len(points) * n_cells
    counts = np.bincount(at * n_cells + cell, weight, size).astype(np.int64).reshape(len(points), n_cells)
    missing = np.bincount(part.cell[~known], part.weight[~known], n_cells).astype(np.int64)
    return counts, missing, low, high


def _merge_counts(parts: Sequence[tuple[Ints, Ints, Floats, Floats]]) -> tuple[Ints, Ints, Floats, Floats]:
    counts, missing, low, high = zip(*parts, strict=True)
    return np.sum(counts, axis=0), np.sum(missing, axis=0), np.min(low, axis=0), np.max(high, axis=0)
