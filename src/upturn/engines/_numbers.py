"""Parts of a table behind the gates: what each says about itself, and how the driver makes one experiment of them.

    Raw       a frame as the engine keeps it
    Numbers   features as a matrix, outcome as trees see it, arms, weights, ids of rows
    Part      the same rows as trees need them: codes and words (``_parts``)

Between them the driver learns what only all rows together know: labels and levels, the scale of the outcome, bins, the grid of words.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Arms, Floats, Ints
from upturn._columns import is_missing, read_outcome, read_weight
from upturn._results import plural
from upturn._table import Schema, encode_columns, levels_of, read_columns
from upturn._target import Label, find_labels, name_arms, read_labels, sort_labels, weight_unit
from upturn.engines._gather import Roles
from upturn.engines._places import Places
from upturn.kernels.sampling import NO_IDS
from upturn.trees._base import Scale, check_weights, scale_between
from upturn.trees._bins import Bins
from upturn.trees._look import Look
from upturn.trees._samples import Lot


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


# ------------------------------------------------------------------------------------------- what a part answers


def columns_of(raw: Raw, names: Sequence[str]) -> Any:
    """Columns of a part behind the gate."""
    frame = nw.from_native(raw.frame, eager_only=True)
    return read_columns(frame.select(*names).to_native())[0]


def series_of(raw: Raw, name: str) -> Any:
    """A column of a part as its library has it."""
    return nw.from_native(raw.frame, eager_only=True)[name].to_native()


def describe(roles: Roles, raw: Raw) -> Described:
    """The first look at a part."""
    if len(nw.from_native(raw.frame, eager_only=True)) == 0:
        return Described(None, {}, 0, (), (np.inf, 0.0, 0.0), True)
    return look_at(roles, raw, series_of(raw, roles.treatment))[0]


def describe_columns(raw: Raw, names: Sequence[str]) -> list[_Column]:
    """What a part with rows knows of its columns."""
    columns = []
    for column, name in zip(columns_of(raw, names), names, strict=True):
        found = frozenset(levels_of(column, name)) if column.categorical else None
        if column.values.dtype.kind == "O":
            gap = any(map(is_missing, set(column.values.tolist())))
        else:
            gap = column.values.dtype.kind == "f" and bool(np.isnan(column.values.min()))
        columns.append(_Column(found, gap, raw.number))
    return columns


def look_at(roles: Roles, raw: Raw, treatment: Any) -> tuple[Described, Floats, Arms, Floats | None]:
    """What a part with rows says about itself; its outcome, places of its labels among those it names, and weights."""
    columns = describe_columns(raw, roles.features)
    outcome = read_outcome(series_of(raw, roles.y))
    rate = bool(((outcome == 0.0) | (outcome == 1.0)).all())
    labels, codes = find_labels(read_labels(treatment))
    weight = None if roles.sample_weight is None else read_weight(series_of(raw, roles.sample_weight))
    used = slice(None) if weight is None else weight > 0.0
    counts = np.bincount(codes[used], minlength=len(labels)).tolist()
    weighed, y = None if weight is None else weight[used], outcome[used]
    rows = dict(zip(labels, counts, strict=True))
    said = Described(tuple(columns), rows, len(y), few_outcomes(y), few_weights(weighed), rate)
    return said, outcome, codes, weight


def few_weights(weight: Floats | None) -> tuple[float, float, float]:
    """The smallest and the largest weight, and the sum of all."""
    if weight is None or not len(weight):
        return np.inf, 0.0, 0.0
    return float(weight.min()), float(weight.max()), float(weight.sum())


def few_outcomes(y: Floats) -> tuple[float, ...]:
    """The smallest and the largest outcome, and one that is neither if there is any."""
    if not len(y):
        return ()
    low, high = float(y.min()), float(y.max())
    other = np.flatnonzero((y != low) & (y != high))[:1]
    return (low, high, *y[other].tolist())


def to_numbers(
    roles: Roles, schema: Schema, labels: list[Label], scale: Scale, firsts: list[int], row_id: str | None, raw: Raw
) -> Numbers:
    """The rows of a part as numbers."""
    n, p = len(nw.from_native(raw.frame, eager_only=True)), len(roles.features)
    if n == 0:
        weight = None if roles.sample_weight is None else np.empty(0)
        nothing = np.empty(0)
        return Numbers(np.empty((0, p)), nothing, np.empty(0, np.uint8), weight, firsts[raw.number], NO_IDS)
    X = encode_columns(columns_of(raw, roles.features), schema, True)  # float32 where that holds every value
    y = scale.see(read_outcome(series_of(raw, roles.y)))
    found, codes = find_labels(read_labels(series_of(raw, roles.treatment)))
    arm = np.array([labels.index(label) for label in found], np.uint8)[codes]
    ids = NO_IDS if row_id is None else read_ids(series_of(raw, row_id), row_id)
    if roles.sample_weight is None:
        return Numbers(X, y, arm, None, firsts[raw.number], ids)
    weight = read_weight(series_of(raw, roles.sample_weight))
    used = weight > 0.0
    return Numbers(X[used], y[used], arm[used], weight[used], firsts[raw.number], ids[used] if len(ids) else ids)


def read_ids(column: Any, name: str) -> NDArray[np.uint64]:
    """A column of row ids."""
    missing = nw.from_native(column, series_only=True).null_count()
    if missing:
        raise ValueError(
            f"row_id={name!r} is missing in {plural(missing, 'row')}: expected a whole number for each row, no two the same; leave row_id out, "
            "and rows are numbered as they lie"
        )
    values = np.asarray(column)
    if values.dtype.kind not in "iu":
        raise TypeError(
            f"row_id={name!r} holds values of type {values.dtype}: expected whole numbers of 64 bits, each once"
        )
    return values.astype(np.uint64)


# ------------------------------------------------------------------------------------------- what the driver makes of it


class Whole(NamedTuple):
    """What all parts together are: the schema, arms and rows of each, the scale of the outcome, places of ``Numbers``; once they are found, bins and the look at the arms.

    ``passing`` are places that these were made of: if there are any, neither they nor these are asked much once there are codes.
    """

    schema: Schema
    labels: list[Label]  # control first
    rows: Ints
    scale: Scale
    varies: bool
    heaviest: float
    firsts: list[int]  # number of the first row of each part
    rate: bool
    places: Any = None
    bins: Bins | None = None
    look: Look | None = None
    passing: tuple[Places, ...] = ()

    @property
    def n_places(self) -> int:
        """Number of parts."""
        return len(self.firsts)


def read_parts(places: Places, roles: Roles, control: Label | None, row_id: str | None) -> Whole:
    """From places of ``Raw`` to places of ``Numbers``."""
    whole = understand(places.ask(partial(describe, roles)), roles, control)
    step = partial(to_numbers, roles, whole.schema, whole.labels, whole.scale, whole.firsts, row_id)
    return whole._replace(places=places.change(step))


def understand(described: Sequence[Described], roles: Roles, control: Label | None) -> Whole:
    """What all parts are together, from what each says about itself; without the places."""
    if not any(one.columns for one in described):
        raise ValueError("the table has no rows: expected one row per person")
    schema = union([one.columns for one in described if one.columns is not None], roles)
    return sum_up(described, schema, control, weighted=roles.sample_weight is not None)


def sum_up(described: Sequence[Described], schema: Schema, control: Label | None, *, weighted: bool) -> Whole:
    """What all parts are together, where the schema is known; without the places."""
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
    if weighted:
        least, total = min(one.weights[0] for one in described), sum(one.weights[2] for one in described)
        largest = float(np.abs(scale.see(np.array([low, high]))).max())
        check_weights(least, heaviest, total, largest)
    rate = all(one.rate for one in described)
    firsts = np.cumsum([0, *(one.n for one in described)]).tolist()[:-1]
    rows = np.array([found[label] for label in labels])
    return Whole(schema, labels, rows, scale, low < high, heaviest, firsts, rate)


def in_units(whole: Whole) -> Whole:
    """The same rows with weights of a size that can be squared and summed (see ``_target.in_units``)."""
    if (unit := weight_unit(whole.heaviest)) == 1.0:
        return whole
    return whole._replace(places=whole.places.change(partial(_divide, unit)), heaviest=whole.heaviest / unit)


def _divide(unit: float, part: Numbers) -> Numbers:
    return part if part.weight is None else part._replace(weight=part.weight / unit)


def check_classes(whole: Whole) -> None:
    """Refuse an outcome that has not two values, for models that need them."""
    if not whole.varies:
        raise ValueError("y has one value only (1 class): this model learns from two, such as 0 and 1")
    if not whole.scale.binary:
        raise ValueError(
            "y has more than two values and this model needs exactly two: choose a threshold yourself, as in y = (spend > 0), or use a "
            "model for real-valued outcomes such as UpliftForest"
        )


def column_schema(schema: Schema, j: int) -> Schema:
    """The schema of one of the columns."""
    return Schema((schema.names[j],), True, (schema.levels[j],), schema.taken, schema.gaps)


def union(parts: Sequence[Sequence[_Column]], roles: Roles) -> Schema:
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
