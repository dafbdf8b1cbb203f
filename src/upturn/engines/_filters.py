"""``FilterSelector``, and the fillers of ``UMODLSelector``, from counts of rows that lie in several places.

A filter looks at one column at a time, and all it needs of it is how many rows each value has of each arm and class, with what weight: parts count that, and
the driver scores the values as if each were a row that is there so often. Of real-valued outcomes, means and sums of squares take the place of classes. Of a
column with more than ``MOST`` values, rows are counted between that many of its quantiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from upturn._arrays import Arms, Floats, Ints
from upturn._parallel import progress
from upturn.engines import _umodl
from upturn.engines._gather import Roles
from upturn.engines._numbers import Numbers, Raw, Whole, column_schema, describe, to_numbers, understand
from upturn.engines._places import Places
from upturn.features import FilterSelector, UMODLSelector
from upturn.features._filters import DIVERGENCES, check_outcome, interaction, regressors
from upturn.features._percentiles import bins_of, divergence
from upturn.kernels.criteria import CRITERIA


class _Cells(NamedTuple):
    """Sums by value, arm and class: rows, their weight, its product with the outcome and with its square.

    Then, of what counts as one value, the smallest, the largest, and the sum over its rows.
    """

    rows: Ints
    sums: Floats  # (3, cells)
    low: Floats
    high: Floats
    total: Floats


class _Column(NamedTuple):
    """A part's rows in one column."""

    values: Floats
    y: Floats
    arm: Arms
    weight: Floats


def learn_filter(model: FilterSelector, raws: Places, roles: Roles, library: str) -> None:
    """Fit the filters to places of raw frames."""
    whole = understand(raws.ask(partial(describe, roles)), roles, model.control)
    if not (whole.scale.binary and whole.varies):
        check_outcome(3 if whole.varies else 1, model.criterion)
    scores = _score_columns(model, raws, roles, whole, range(len(roles.features)))
    model._rank(scores)
    model._library, model._rate = library, whole.rate
    model._remember(whole.labels[0], whole.labels[1:], whole.schema)


def learn_selector(model: UMODLSelector, raws: Places, roles: Roles, library: str) -> None:
    """Fit the selector of UMODL to places of raw frames; a filter finds the features that ``min_features`` adds."""
    _umodl.learn_umodl(model, raws, roles, library)
    columns, wanted = np.flatnonzero(model.scores_ == 0), model.min_features - int((model.scores_ > 0).sum())
    if wanted <= 0:
        return
    whole = understand(raws.ask(partial(describe, roles)), roles, model.control)
    apart = FilterSelector(criterion="euclidean", max_bins=10, verbose=model.verbose)
    scores = _score_columns(apart, raws, roles, whole, columns.tolist())[:, 0]
    model.fillers_ = columns[np.argsort(-scores, kind="stable")[:wanted]]


def _score_columns(model: FilterSelector, raws: Places, roles: Roles, whole: Whole, columns: Sequence[int]) -> Floats:
    """Scores of some columns and logarithms of their p-values, a row for each."""
    binary, n_arms, weighted = whole.scale.binary and whole.varies, len(whole.labels), roles.sample_weight is not None
    found = []
    for j in progress(columns, model.verbose, model.criterion):
        read = partial(_read, roles._replace(features=[roles.features[j]]), whole, j)
        levels = whole.schema.levels[j]
        if levels is not None:
            points: Floats = np.arange(len(levels), dtype=np.float64)
        else:
            few: Floats | None = raws.ask(partial(_values, read), partial(_umodl.merge_values, _umodl.MOST))
            points = _umodl.quantiles(raws.ask(partial(_points, read))) if few is None else few
        cells: _Cells = raws.ask(partial(_count, read, points, n_arms, binary), _merge)
        found.append(_score(model, cells, n_arms, None if levels is None else len(levels), binary, weighted))
    scores = np.array(found).reshape(-1, 2)
    if model.criterion == "euclidean" and not binary:
        scores[:, 0] *= whole.scale.span**2
    return scores


def _score(
    model: FilterSelector, cells: _Cells, n_arms: int, n_levels: int | None, binary: bool, weighted: bool
) -> tuple[float, float]:
    """Score and logarithm of the p-value of a column, each cell standing for its rows."""
    at = np.flatnonzero(cells.rows)
    slot, side = np.divmod(at, n_arms * (1 + binary))
    arm = (side // (1 + binary)).astype(np.uint8)
    rows, (weight, total, squares) = cells.rows[at], cells.sums[:, at]
    y = (side % 2).astype(np.float64) if binary else total / weight
    if n_levels is None:
        often = cells.rows.reshape(len(cells.low) + 1, -1).sum(axis=1)[:-1]
        mean = np.clip(cells.total / np.maximum(often, 1), cells.low, cells.high)
        values = np.append(np.where(cells.low == cells.high, cells.low, mean), np.nan)[slot]
    else:
        values = np.append(np.arange(n_levels, dtype=np.float64), np.nan)[slot]
    if model.criterion in DIVERGENCES:
        bins = bins_of(values, n_levels, model.max_bins, rows)
        heavy = weight if weighted else rows.astype(np.float64)
        return divergence(bins, arm, n_arms - 1, y, heavy, binary, CRITERIA[model.criterion].code), 0.0
    regression: list[Any] = [regressors(values, n_levels, rows), arm, n_arms - 1, y, weight]
    if model.criterion == "f":
        within = 0.0 if binary else max(float((squares - weight * y**2).sum()), 0.0)
        regression += [int(rows.sum()), within]
    return interaction(model.criterion, *regression)


# ------------------------------------------------------------------------------------------- what a part answers


def _read(roles: Roles, whole: Whole, j: int, raw: Raw) -> _Column:
    """One column of a part."""
    part: Numbers = to_numbers(
        roles, column_schema(whole.schema, j), whole.labels, whole.scale, whole.firsts, None, raw
    )
    weight = np.ones(len(part.y)) if part.weight is None else part.weight
    return _Column(np.add(part.X[:, 0], 0.0, dtype=np.float64), part.y, part.arm, weight)


def _values(read: Any, raw: Raw) -> Floats | None:
    return _umodl.values_of(_umodl.MOST, read(raw))


def _points(read: Any, raw: Raw) -> tuple[Floats, float]:
    return _umodl.points_of(_umodl.MOST, read(raw))


def _count(read: Any, points: Floats, n_arms: int, binary: bool, raw: Raw) -> _Cells:
    """Rows up to each point and above the one before, and those without a value, by arm and class."""
    column: _Column = read(raw)
    low, high = np.full(len(points), np.inf), np.full(len(points), -np.inf)
    known = ~np.isnan(column.values)
    slot = np.full(len(column.values), len(points))
    slot[known] = np.searchsorted(points, column.values[known])
    np.minimum.at(low, slot[known], column.values[known])
    np.maximum.at(high, slot[known], column.values[known])
    cell = slot * n_arms + column.arm
    if binary:
        cell = 2 * cell + (column.y > 0.5)
    size = (len(points) + 1) * n_arms * (1 + binary)
    products = column.weight, column.weight * column.y, column.weight * column.y**2
    sums = np.stack([np.bincount(cell, one, size).astype(np.float64) for one in products])
    total = np.bincount(slot[known], column.values[known], len(points)).astype(np.float64)
    return _Cells(np.bincount(cell, minlength=size), sums, low, high, total)


def _merge(parts: Sequence[_Cells]) -> _Cells:
    rows, sums, low, high, total = zip(*parts, strict=True)
    ends = np.min(low, axis=0), np.max(high, axis=0)
    return _Cells(np.sum(rows, axis=0), np.asarray(np.sum(sums, axis=0)), *ends, np.asarray(np.sum(total, axis=0)))
