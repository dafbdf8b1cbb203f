"""Bins of rows that lie in several places: those that ``Bins.learn`` learns from all of them together.

A column with few values has one bin a value, so the union of the parts' values is enough. Of one with many, quantiles of a sample decide, the rows with
the smallest hashes of their ids: a cut on the hash that all parts agree on, and the rows below it travel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats, Ints
from upturn.engines._numbers import Numbers, Whole
from upturn.engines._places import Places
from upturn.kernels import sampling
from upturn.kernels.binning import distinct_values
from upturn.trees._bins import KNOWN, SAMPLE, Bins, edges_of_few, edges_of_many, level_codes, level_mass, sample_key
from upturn.trees._look import Look, Seen, in_look, look_at


def learn_bins(whole: Whole, max_bins: int, *, weighted: bool, looks: bool = False) -> tuple[Bins, Look | None]:
    """The bins that ``Bins.learn`` learns from all rows together; on the way, if ``looks``, the look at the arms of some rows."""
    n_levels = [None if levels is None else len(levels) for levels in whole.schema.levels]
    numeric = [j for j, levels in enumerate(n_levels) if levels is None]
    many_levels = [(j, levels) for j, levels in enumerate(n_levels) if levels is not None and levels > max_bins]
    columns: dict[int, Any] = {}
    if many_levels:
        masses = whole.places.ask(partial(_masses, many_levels, whole.heaviest), _merge_masses)
        for (j, levels), mass in zip(many_levels, masses, strict=True):
            columns[j] = level_codes(mass, levels, max_bins)
    for j, few_levels in enumerate(n_levels):
        if few_levels is not None and few_levels <= max_bins:
            columns[j] = level_codes(None, few_levels, max_bins)
    many, known = [], {}
    seen: list[Seen] = []
    if numeric or looks:
        arms = whole.rows if looks else None
        few, seen = whole.places.ask(partial(_few_values, max_bins, numeric, arms), partial(_merge_few, max_bins))
        for j, (values, count) in zip(numeric, few, strict=True):
            known[j] = count
            if values is None:
                many.append(j)
            else:
                columns[j] = edges_of_few(values, max_bins)
    if many:
        n = int(whole.rows.sum())
        values, weight = _draw_sample(whole.places, n, None, many)
        for i, j in enumerate(many):
            column, mass = values[:, i], weight
            if n > SAMPLE and np.count_nonzero(column == column) < KNOWN:
                column, mass = _draw_sample(whole.places, known[j], j, [j])
                column = column[:, 0]
            columns[j] = edges_of_many(np.ascontiguousarray(column), mass if weighted else None, max_bins)
    return Bins.of([columns[j] for j in range(len(n_levels))], n_levels), _look_at(whole, seen) if looks else None


class _Few(NamedTuple):
    """Of each numeric column its values, None if there are too many, and how many rows have one; and the rows of the look, part by part."""

    columns: list[tuple[Floats | None, int]]
    seen: list[Seen]


def _look_at(whole: Whole, seen: Sequence[Seen]) -> Look:
    ids, X, arm = (np.concatenate([part[k] for part in seen]) for k in range(3))
    weights = [part.weight for part in seen if part.weight is not None]
    order = np.argsort(ids)  # answers may have been merged in any order
    weight = np.concatenate(weights)[order] if weights else None
    return look_at(Seen(ids[order], X[order], arm[order], weight), whole.schema, len(whole.labels) - 1)


def _merge_masses(parts: Sequence[list[Floats]]) -> list[Floats]:
    return [np.sum(masses, axis=0) for masses in zip(*parts, strict=True)]


def _merge_few(max_bins: int, parts: Sequence[_Few]) -> _Few:
    out = []
    for columns in zip(*(part.columns for part in parts), strict=True):
        values = [few for few, _ in columns]
        union = None if any(few is None for few in values) else np.unique(np.concatenate(values))
        out.append((None if union is None or len(union) > max_bins else union, sum(count for _, count in columns)))
    return _Few(out, [one for part in parts for one in part.seen])


def _draw_sample(places: Places, count: int, j: int | None, columns: Sequence[int]) -> tuple[Floats, Floats]:
    """Values of the rows in the sample, and their weights, in the order of ids."""
    cut = None
    if count > SAMPLE:
        wanted, total = np.array([SAMPLE]), np.array([count])
        for wide in (False, True):
            found = places.ask(partial(_look, count, j, wide), sampling.merge)
            cut = sampling.find_cut(found, total, wanted)
            if cut is not None:
                break
    parts = places.ask(partial(_sample, cut, j, columns))
    ids, values, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(ids, kind="stable")
    return values[order], weight[order] if len(weight) else weight


# ------------------------------------------------------------------------------------------- what a part answers


def _few_values(max_bins: int, numeric: Sequence[int], arms: Ints | None, part: Numbers) -> _Few:
    out, seen, X = [], [], part.X
    if arms is not None:
        ids = part.lot.numbers
        rows = in_look(ids, part.arm, arms, X.shape[1])
        seen.append(Seen(ids[rows], X[rows], part.arm[rows], None if part.weight is None else part.weight[rows]))
    for j in numeric:
        few = np.empty(max_bins + 1)
        found = distinct_values(X, j, max_bins, few)
        known = int(np.count_nonzero(X[:, j] == X[:, j]))
        out.append((few[:found].copy() if found <= max_bins else None, known))
    return _Few(out, seen)


def _masses(columns: Sequence[tuple[int, int]], heaviest: float, part: Numbers) -> list[Floats]:
    X = part.X
    return [level_mass(X[:, j], levels, part.weight, heaviest) for j, levels in columns]


def _known(part: Numbers, j: int | None) -> NDArray[np.uint8]:
    """1 for the rows that have a value in a column; in any, for None."""
    if j is None:
        return np.ones(len(part.arm), np.uint8)
    column = part.X[:, j]
    return np.asarray(column == column).astype(np.uint8)


def _look(count: int, j: int | None, wide: bool, part: Numbers) -> Any:
    """Hashes near the cut of the sample that decides edges."""
    wanted, role, lot = np.array([SAMPLE]), _known(part, j), part.lot
    window = sampling.whole_window(1) if wide else sampling.make_window(np.array([count]), wanted)
    return sampling.look(sample_key(), lot.arm, 1, role, window, lot.first, lot.ids)


def _sample(cut: Any, j: int | None, columns: Sequence[int], part: Numbers) -> tuple[Any, Any, Any]:
    """Ids, values and weights of the rows in the sample."""
    role, lot = _known(part, j), part.lot
    if cut is None:
        role += role  # all rows that have a value
    else:
        sampling.choose_up_to(sample_key(), np.uint64(lot.first), lot.ids, lot.arm, 1, 2, cut.last, cut.some, role)
    rows = np.flatnonzero(role == 2)
    ids = lot.ids[rows] if len(lot.ids) else rows.astype(np.uint64) + np.uint64(lot.first)
    weight = np.empty(0) if part.weight is None else part.weight[rows]
    return ids, np.add(part.X[rows][:, columns], 0.0, dtype=np.float64), weight
