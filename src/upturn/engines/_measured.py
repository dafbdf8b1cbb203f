"""An experiment that something is measured in, whose rows lie in several places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Arms, Floats, Ints
from upturn._columns import as_column, as_floats, check_finite, check_magnitude, read_outcome, read_weight, to_numpy
from upturn._target import (
    Label,
    Target,
    check_totals,
    find_labels,
    name_arms,
    read_labels,
    weight_unit,
)
from upturn.engines._ids import Ends, check_ids, ends_of, merge_ends
from upturn.engines._numbers import Raw, few_outcomes, read_ids, series_of
from upturn.engines._places import Places
from upturn.kernels.sampling import NO_IDS
from upturn.metrics._strata import Strata


class Roles(NamedTuple):
    """Which columns of a table are what: ``numbers`` are those that are read as they are, such as scores; ``labels`` may name arms."""

    y: str
    treatment: str
    sample_weight: str | None
    numbers: tuple[str, ...]
    labels: tuple[str, ...] = ()
    row_id: str | None = None

    @property
    def columns(self) -> list[str]:
        """All of them, each once."""
        single = (self.y, self.treatment, self.sample_weight, self.row_id)
        return list(dict.fromkeys(name for name in (*single, *self.numbers, *self.labels) if name is not None))


class Rows(NamedTuple):
    """A part's rows of weight above 0. ``ids`` may be empty: then they are numbers from ``first`` on."""

    y: Floats
    arm: Arms
    weight: Floats  # empty for 1 everywhere
    numbers: dict[str, Floats]
    labels: dict[str, NDArray[Any]]
    first: int
    ids: NDArray[np.uint64]


@dataclass(frozen=True)
class Merged(Target):
    """The target of rows that lie elsewhere: how many there are and what they weigh; ``y`` holds a few outcomes that say what kind they are."""

    counts: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    mass: Floats = field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        return int(self.counts.sum())

    @property
    def sizes(self) -> Ints:
        """Number of rows of control and of every arm."""
        return self.counts

    @property
    def totals(self) -> Floats:
        """Weight of control and of every arm."""
        return self.mass


@dataclass(frozen=True)
class Measured:
    """What all parts together are, and places of ``Rows``.

    Attributes
    ----------
    target : Merged
        Arms and their sizes.
    outcome : array of shape (1 + K,)
        Sum of the weighted outcomes of every arm.
    strata : Strata
        Numbers of rows, for warnings.
    used : array of shape (1 + K,)
        Rows of weight above 0 of every arm.
    places : Places
    """

    target: Merged
    outcome: Floats
    strata: Strata
    used: Ints
    places: Places


def read_measured_parts(places: Places, roles: Roles, control: Label | None) -> Measured:
    """From places of ``Raw`` to places of ``Rows``: what ``read_measured`` does with rows in one place."""
    looks: list[_Look] = places.ask(partial(_look, roles))
    counts: dict[Label, int] = {}
    for look in looks:
        for label, count in look.rows.items():
            counts[label] = counts.get(label, 0) + count
    n = sum(counts.values())
    if not n:
        raise ValueError("the table has no rows: expected one row per person")
    name, arms = name_arms(list(counts), control, n)
    labels = [name, *arms]
    heaviest = max(look.heaviest for look in looks)
    unit = 1.0 if roles.sample_weight is None else weight_unit(heaviest)
    firsts = np.cumsum([0, *(sum(look.rows.values()) for look in looks)]).tolist()
    rows = places.change(partial(_to_rows, roles, labels, unit, firsts))
    sums, ends = rows.ask(partial(_sums, len(labels)), _merge_sums)
    used, mass, squares, outcome = sums
    empty = [label for label, weight in zip(labels, mass, strict=True) if weight <= 0]
    if empty:
        raise ValueError(
            f"sample_weight is zero for every row of arm(s) {empty!r}: each arm needs some positive weight"
        )
    values = np.array(sorted({value for look in looks for value in look.values}))
    check_magnitude(values, "y")
    if roles.row_id is not None:
        check_ids(rows, int(used.sum()), roles.row_id, ends)
    weight = None if roles.sample_weight is None else np.ones(len(values))
    sizes = np.array([counts[label] for label in labels])
    target = Merged(values, np.zeros(len(values), np.uint8), weight, name, arms, unit, sizes, mass)
    check_totals(mass, target)
    worth = None if roles.sample_weight is None else mass * mass / squares
    whole = used.astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(whole)))
    nothing = np.empty(0)
    names = [f"arm {label!r}" for label in labels]
    strata = Strata(np.empty(0, np.uint32), starts, nothing, nothing, names, whole, worth)
    return Measured(target, outcome, strata, whole, rows)


def _merge_sums(parts: Sequence[tuple[Floats, Ends]]) -> tuple[Floats, Ends]:
    sums, ends = zip(*parts, strict=True)
    return np.sum(sums, axis=0), merge_ends(ends)


# ------------------------------------------------------------------------------------------- what a part answers


class _Look(NamedTuple):
    """Rows of a part by label, its largest weight, and a few of its outcomes: the smallest, the largest, another."""

    rows: Mapping[Label, int]
    heaviest: float
    values: tuple[float, ...]


def _look(roles: Roles, raw: Raw) -> _Look:
    if not len(nw.from_native(raw.frame, eager_only=True)):
        return _Look({}, 0.0, ())
    y = read_outcome(series_of(raw, roles.y))
    labels, codes = find_labels(read_labels(series_of(raw, roles.treatment)))
    counts = np.bincount(codes, minlength=len(labels)).tolist()
    heaviest = 1.0 if roles.sample_weight is None else float(read_weight(series_of(raw, roles.sample_weight)).max())
    return _Look(dict(zip(labels, counts, strict=True)), heaviest, few_outcomes(y))


def _to_rows(roles: Roles, labels: list[Label], unit: float, firsts: list[int], raw: Raw) -> Rows:
    n, first = len(nw.from_native(raw.frame, eager_only=True)), firsts[raw.number]
    if not n:
        nothing = np.empty(0)
        numbers = dict.fromkeys(roles.numbers, nothing)
        return Rows(nothing, np.empty(0, np.uint8), nothing, numbers, dict.fromkeys(roles.labels, nothing), 0, NO_IDS)
    y = read_outcome(series_of(raw, roles.y))
    found, codes = find_labels(read_labels(series_of(raw, roles.treatment)))
    arm = np.array([labels.index(label) for label in found], np.uint8)[codes]
    numbers = {name: read_number(raw, name) for name in roles.numbers}
    named = {name: read_labels(series_of(raw, name), name) for name in roles.labels}
    ids = NO_IDS if roles.row_id is None else read_ids(series_of(raw, roles.row_id), roles.row_id)
    if roles.sample_weight is None:
        return Rows(y, arm, np.empty(0), numbers, named, first, ids)
    weight = read_weight(series_of(raw, roles.sample_weight)) / unit
    used = weight > 0.0
    if not used.all() and not len(ids):
        ids = np.arange(first, first + n, dtype=np.uint64)
    return Rows(
        y[used],
        arm[used],
        weight[used],
        {name: column[used] for name, column in numbers.items()},
        {name: column[used] for name, column in named.items()},
        first,
        ids[used] if len(ids) else ids,
    )


def read_number(raw: Raw, name: str) -> Floats:
    """A column of finite numbers."""
    values = as_floats(as_column(to_numpy(series_of(raw, name), name), name), name)
    check_finite(values, name, "every row needs a finite score; look at the model that made it")
    return np.add(values, 0.0)  # -0 is 0


def _sums(n_arms: int, rows: Rows) -> tuple[Floats, Ends]:
    """By arm: rows, weight, squared weight and weighted outcome; and the ends of the ids."""
    w = rows.weight if len(rows.weight) else np.ones(len(rows.y))
    columns = (None, w, w * w, w * rows.y)
    sums = np.array([np.bincount(rows.arm, column, minlength=n_arms) for column in columns], dtype=np.float64)
    return sums, ends_of(rows)
