"""Parts of a table behind the gates: what each says about itself, and how the driver makes one experiment of them.

    Raw       a frame as the engine keeps it
    Numbers   features as a matrix, outcome as trees see it, arms, weights, ids of rows
    Part      the same rows as trees need them: codes and words

Between them the driver learns what only all rows together know: labels and levels, the scale of the outcome, bins, the grid of words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Arms, Floats, Ints
from upturn._columns import is_missing, read_outcome, read_weight
from upturn._table import Schema, encode_columns, levels_of, read_columns
from upturn._target import Label, find_labels, name_arms, read_labels, sort_labels
from upturn.engines._gather import Roles
from upturn.engines._places import Places
from upturn.kernels import sampling
from upturn.kernels.binning import distinct_values
from upturn.kernels.histogram import Layout
from upturn.kernels.sampling import NO_IDS
from upturn.trees._base import Scale, check_weights, scale_between
from upturn.trees._bins import (
    KNOWN,
    SAMPLE,
    Bins,
    Codes,
    edges_of_few,
    edges_of_many,
    level_codes,
    level_mass,
    sample_key,
)
from upturn.trees._growth import arm_means, sum_words
from upturn.trees._outcome import Grid, grid_of, make_words, merge_summaries, summarise, unit_of
from upturn.trees._samples import Lot

_NOTHING, _NO_WORDS = np.empty(0), np.empty(0, np.int64)


class Raw(NamedTuple):
    """A part of the table as it comes, and its number."""

    number: int
    frame: Any


class _Column(NamedTuple):
    """What a part knows of a column: its levels (None for numbers), whether something is missing, where it was."""

    levels: frozenset[Label] | None
    gap: bool
    part: int


class Described(NamedTuple):
    """What a part says about its rows; ``columns`` is None if it has none."""

    columns: tuple[_Column, ...] | None
    rows: dict[Label, int]  # by label, those of weight 0 not counted
    n: int
    values: tuple[float, ...]  # smallest and largest outcome, and one of the others if there are any
    weights: tuple[float, float, float]  # smallest above 0, largest, sum
    rate: bool  # every outcome is 0 or 1, also of rows of weight 0


class Numbers(NamedTuple):
    """A part's rows of weight above 0, as numbers."""

    X: Floats
    y: Floats
    arm: Arms
    weight: Floats | None
    first: int
    ids: NDArray[np.uint64]

    @property
    def lot(self) -> Lot:
        """The rows without their arms: one arm for all."""
        return Lot(np.zeros(len(self.y), np.uint8), self.first, self.ids)


@dataclass
class Part:
    """A part's rows as trees need them; ``kept`` is what can be computed again, and is left out when a part travels.

    Where the outcome is centred, there are also the outcome and the weights, and in the end what was taken off, with its words.
    """

    codes: Codes
    words: Ints
    lot: Lot
    y: Floats = field(default_factory=lambda: _NOTHING)
    weight: Floats | None = None
    level: Floats = field(default_factory=lambda: _NOTHING)
    level_words: Ints = field(default_factory=lambda: _NO_WORDS)
    kept: dict[Any, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "kept": {}}


# ------------------------------------------------------------------------------------------- what a part answers


def _columns_of(raw: Raw, names: Sequence[str]) -> Any:
    frame = nw.from_native(raw.frame, eager_only=True)
    return read_columns(frame.select(*names).to_native())[0]


def _series(raw: Raw, name: str) -> Any:
    return nw.from_native(raw.frame, eager_only=True)[name].to_native()


def describe(roles: Roles, raw: Raw) -> Described:
    """The first look at a part."""
    n = len(nw.from_native(raw.frame, eager_only=True))
    if n == 0:
        return Described(None, {}, 0, (), (np.inf, 0.0, 0.0), True)
    columns = []
    for column, name in zip(_columns_of(raw, roles.features), roles.features, strict=True):
        found = frozenset(levels_of(column, name)) if column.categorical else None
        if column.values.dtype.kind == "O":
            gap = any(map(is_missing, set(column.values.tolist())))
        else:
            gap = column.values.dtype.kind == "f" and bool(np.isnan(column.values.min()))
        columns.append(_Column(found, gap, raw.number))
    y = read_outcome(_series(raw, roles.y))
    rate = bool(((y == 0.0) | (y == 1.0)).all())
    labels, codes = find_labels(read_labels(_series(raw, roles.treatment)))
    weight = None if roles.sample_weight is None else read_weight(_series(raw, roles.sample_weight))
    used = slice(None) if weight is None else weight > 0.0
    counts = np.bincount(codes[used], minlength=len(labels)).tolist()
    weighed, y = (None, y) if weight is None else (weight[used], y[used])
    values = _few_outcomes(y)
    if weighed is None or not len(weighed):
        heavy = (np.inf, 0.0, 0.0)
    else:
        heavy = (float(weighed.min()), float(weighed.max()), float(weighed.sum()))
    return Described(tuple(columns), dict(zip(labels, counts, strict=True)), len(y), values, heavy, rate)


def _few_outcomes(y: Floats) -> tuple[float, ...]:
    """The smallest and the largest outcome, and one that is neither if there is any."""
    if not len(y):
        return ()
    low, high = float(y.min()), float(y.max())
    other = np.flatnonzero((y != low) & (y != high))[:1]
    return (low, high, *y[other].tolist())


def _to_numbers(
    roles: Roles, schema: Schema, labels: list[Label], scale: Scale, firsts: list[int], row_id: str | None, raw: Raw
) -> Numbers:
    """The rows of a part as numbers."""
    n, p = len(nw.from_native(raw.frame, eager_only=True)), len(roles.features)
    if n == 0:
        weight = None if roles.sample_weight is None else np.empty(0)
        nothing = np.empty(0)
        return Numbers(np.empty((0, p)), nothing, np.empty(0, np.uint8), weight, firsts[raw.number], NO_IDS)
    X = encode_columns(_columns_of(raw, roles.features), schema, False)
    y = scale.see(read_outcome(_series(raw, roles.y)))
    found, codes = find_labels(read_labels(_series(raw, roles.treatment)))
    arm = np.array([labels.index(label) for label in found], np.uint8)[codes]
    ids = NO_IDS if row_id is None else _read_ids(_series(raw, row_id), row_id)
    if roles.sample_weight is None:
        return Numbers(X, y, arm, None, firsts[raw.number], ids)
    weight = read_weight(_series(raw, roles.sample_weight))
    used = weight > 0.0
    return Numbers(X[used], y[used], arm[used], weight[used], firsts[raw.number], ids[used] if len(ids) else ids)


def _read_ids(column: Any, name: str) -> NDArray[np.uint64]:
    values = np.asarray(column)
    if values.dtype.kind not in "iu":
        raise TypeError(f"row_id={name!r} holds values of type {values.dtype}: expected whole numbers, each once")
    return values.astype(np.uint64)


def _few_values(max_bins: int, numeric: Sequence[int], part: Numbers) -> list[tuple[Floats | None, int]]:
    """Of each numeric column its values, None if there are too many, and how many rows have one."""
    out = []
    for j in numeric:
        few = np.empty(max_bins + 1)
        found = distinct_values(part.X, j, max_bins, few)
        known = int(np.count_nonzero(part.X[:, j] == part.X[:, j]))
        out.append((few[:found].copy() if found <= max_bins else None, known))
    return out


def _masses(columns: Sequence[tuple[int, int]], heaviest: float, part: Numbers) -> list[Floats]:
    return [level_mass(part.X[:, j], levels, part.weight, heaviest) for j, levels in columns]


def _known(part: Numbers, j: int | None) -> NDArray[np.uint8]:
    """1 for the rows that have a value in a column; in any, for None."""
    if j is None:
        return np.ones(len(part.y), np.uint8)
    return np.asarray(part.X[:, j] == part.X[:, j]).astype(np.uint8)


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
    return ids, np.add(part.X[rows][:, columns], 0.0), weight


def _to_part(bins: Bins, grid: Grid, outcomes: bool, part: Numbers) -> Part:
    codes = bins.encode(np.ascontiguousarray(part.X), 1)
    words = make_words(part.y, part.weight, grid)
    lot = Lot(part.arm, part.first, part.ids)
    return Part(codes, words, lot, part.y, part.weight) if outcomes else Part(codes, words, lot)


def _sums(n_arms: int, layout: Layout, part: Part) -> Ints:
    return sum_words(part.words, part.lot.arm, n_arms, layout)


def _summarise(name: str, unit: float, part: Any) -> Any:
    return summarise(getattr(part, name), part.weight, unit)


def _add(arrays: Sequence[Any]) -> Any:
    return np.sum(arrays, axis=0)


# ------------------------------------------------------------------------------------------- what the driver makes of it


class Whole(NamedTuple):
    """What all parts together are: the schema, arms and rows of each, the scale of the outcome, places of ``Numbers``."""

    schema: Schema
    labels: list[Label]  # control first
    rows: Ints
    scale: Scale
    varies: bool
    heaviest: float
    places: Places
    n_places: int
    rate: bool


def read_parts(places: Places, roles: Roles, control: Label | None, row_id: str | None) -> Whole:
    """From places of ``Raw`` to places of ``Numbers``."""
    described: list[Described] = places.ask(partial(describe, roles))
    if not any(one.columns for one in described):
        raise ValueError("the table has no rows: expected one row per person")
    schema = _union([one.columns for one in described if one.columns is not None], roles)
    found: dict[Label, int] = {}
    for one in described:
        for label, count in one.rows.items():
            found[label] = found.get(label, 0) + count
    n = sum(one.n for one in described)
    name, arms = name_arms(list(found), control, n)
    labels = [name, *arms]
    empty = [label for label in labels if found[label] == 0]
    if empty:
        raise ValueError(
            f"sample_weight is zero for every row of arm(s) {empty!r}: each arm needs some positive weight"
        )
    values = sorted({value for one in described for value in one.values})
    low, high = values[0], values[-1]
    scale = scale_between(low, high, two=len(values) <= 2)
    heaviest = max(one.weights[1] for one in described)
    if roles.sample_weight is not None:
        least, total = min(one.weights[0] for one in described), sum(one.weights[2] for one in described)
        largest = float(np.abs(scale.see(np.array([low, high]))).max())
        check_weights(least, heaviest, total, largest)
    rate = all(one.rate for one in described)
    firsts = np.cumsum([0, *(one.n for one in described)]).tolist()[:-1]
    numbers = places.change(partial(_to_numbers, roles, schema, labels, scale, firsts, row_id))
    rows = np.array([found[label] for label in labels])
    return Whole(schema, labels, rows, scale, low < high, heaviest, numbers, len(described), rate)


def _union(parts: Sequence[Sequence[_Column]], roles: Roles) -> Schema:
    """The schema of all parts."""
    levels: list[tuple[Label, ...] | None] = []
    gaps = []
    for name, columns in zip(roles.features, zip(*parts, strict=True), strict=True):
        text = [column for column in columns if column.levels is not None]
        numbers = [column for column in columns if column.levels is None]
        if text and numbers:
            raise TypeError(
                f"column {name!r} holds text in partition {text[0].part} and numbers in partition {numbers[0].part}: expected the same kind "
                "of values everywhere; convert it, as in table.astype or cast"
            )
        levels.append(
            tuple(sort_labels(list(frozenset().union(*(column.levels for column in text))))) if text else None
        )
        if any(column.gap for column in columns):
            gaps.append(name)
    return Schema(tuple(roles.features), True, tuple(levels), roles.taken, tuple(gaps))


def learn_bins(whole: Whole, max_bins: int, *, weighted: bool) -> Bins:
    """The bins that ``Bins.learn`` learns from all rows together."""
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
    if numeric:
        few = whole.places.ask(partial(_few_values, max_bins, numeric), partial(_merge_few, max_bins))
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
    return Bins.of([columns[j] for j in range(len(n_levels))], n_levels)


def _merge_masses(parts: Sequence[list[Floats]]) -> list[Floats]:
    return [np.sum(masses, axis=0) for masses in zip(*parts, strict=True)]


def _merge_few(max_bins: int, parts: Sequence[list[tuple[Floats | None, int]]]) -> list[tuple[Floats | None, int]]:
    out = []
    for columns in zip(*parts, strict=True):
        values = [few for few, _ in columns]
        union = None if any(few is None for few in values) else np.unique(np.concatenate(values))
        out.append((None if union is None or len(union) > max_bins else union, sum(count for _, count in columns)))
    return out


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


@dataclass(frozen=True)
class Far:
    """A binned experiment whose rows lie in several places: what ``Soil`` is for rows in one."""

    bins: Bins
    places: Places
    rows: Ints
    size: Floats
    mean: Floats
    layout: Layout
    n_places: int
    token: str  # tells this experiment from others that the same parts may see

    def features_constant(self) -> bool:
        """Whether every feature has the same code in all rows."""
        low, high = self.places.ask(_code_ends, _merge_ends)
        return bool((low >= high).all())

    def outcome_constant(self) -> bool:
        """Whether the outcome is the same in all rows, as far as words without a weight of their own show it."""
        bare = self.layout.n_words == 1 or self.layout.weight_word > 0
        if not bare:
            return False
        low, high = self.places.ask(_word_ends, _merge_ends)
        return bool((low >= high).all())

    def __len__(self) -> int:
        return int(self.rows.sum())


def _code_ends(part: Part) -> tuple[Ints, Ints]:
    return part.codes.min(axis=1, initial=255).astype(np.int64), part.codes.max(axis=1, initial=0).astype(np.int64)


def _word_ends(part: Part) -> tuple[Ints, Ints]:
    info = np.iinfo(np.int64)
    return np.array([part.words.min(initial=info.max)]), np.array([part.words.max(initial=info.min)])


def _merge_ends(parts: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    low, high = zip(*parts, strict=True)
    return np.min(low, axis=0), np.max(high, axis=0)


def grid_of_parts(places: Places, name: str) -> Grid:
    """The grid of all parts' outcomes, or of another number per row by its ``name``."""
    summary = places.ask(partial(_summarise, name, 1.0), merge_summaries)
    if (unit := unit_of(summary)) != 1.0:
        summary = places.ask(partial(_summarise, name, unit), merge_summaries)
    return grid_of(summary)


def sums_of_parts(places: Places, n_arms: int, layout: Layout) -> Ints:
    """Integer sums of all rows: the weight of each arm, then the outcome of each."""
    sums: Ints = places.ask(partial(_sums, n_arms, layout), _add)
    return sums


def prepare(whole: Whole, max_bins: int, *, weighted: bool, outcomes: bool) -> Far:
    """Bins, codes and words of all parts, which keep their ``outcomes`` if these are to be centred."""
    bins = learn_bins(whole, max_bins, weighted=weighted)
    grid = grid_of_parts(whole.places, "y")
    places = whole.places.change(partial(_to_part, bins, grid, outcomes))
    size, mean = arm_means(sums_of_parts(places, len(whole.rows), grid.layout), grid.layout)
    return Far(bins, places, whole.rows, size, mean, grid.layout, whole.n_places, uuid4().hex)
