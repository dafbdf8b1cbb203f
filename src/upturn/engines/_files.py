"""Tables in files, read in parts: their rows end up as codes and words in files of a scratch folder, from which trees are grown as from memory.

The table is read whole a few times: what its columns hold, the values that decide bins, the codes. Outcome, arms and weights are
kept from the first time on. Whatever has a value per row lies in files that the system maps into memory and may drop from it at any time, so that what a fit
needs of memory itself does not grow with the features.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Condition, Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Arms, Floats
from upturn._parallel import run_parallel
from upturn._table import Schema, encode_columns, read_columns
from upturn._target import Coded, Label
from upturn.engines._gather import Roles
from upturn.engines._margins import Margins
from upturn.engines._numbers import (
    Described,
    Raw,
    Whole,
    few_outcomes,
    few_weights,
    look_at,
    read_ids,
    sum_up,
    understand,
)
from upturn.engines._parts import Part
from upturn.engines._places import Failure, Merge, answer, merged
from upturn.engines._scan import Span, polars, read, spans_of
from upturn.kernels.sampling import NO_IDS
from upturn.trees._base import Scale
from upturn.trees._samples import Lot

if TYPE_CHECKING:
    import polars as pl

_MOST_ROWS = 2**32 - 1  # that the grower can number
_AHEAD = 4  # answers that may wait for one of an earlier place


class Scratch:
    """A folder for arrays that the system may drop from memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def empty(self, shape: tuple[int, ...], kind: Any) -> NDArray[Any]:
        """An array in a file, whose room is there before anything is written; the file goes when nobody uses the array."""
        size = int(np.prod(shape)) * np.dtype(kind).itemsize
        if size == 0:
            return np.empty(shape, kind)
        path = self._folder / uuid4().hex
        with open(path, "wb") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
        array = np.memmap(path, kind, "r+", shape=shape).view(np.ndarray)
        with contextlib.suppress(OSError):  # a system that cannot: the folder goes in the end
            path.unlink()
        return array


class Files:
    """Places whose states are read from files, some at a time, and whose numbers per row lie in files (see ``Places``).

    ``arrays`` are those of all rows, of which states have their parts.
    """

    def __init__(
        self,
        states: Sequence[Any],
        spans: Sequence[Span],
        scratch: Scratch,
        n_jobs: int | None,
        arrays: dict[str, NDArray[Any]] | None = None,
        verbose: int = 0,
    ) -> None:
        self.states, self._spans, self._scratch, self._n_jobs = list(states), spans, scratch, n_jobs
        self._verbose = verbose
        self.arrays = arrays or {}

    def ask(self, question: Callable[[Any], Any], merge: Merge | None = None) -> Any:
        """See ``Places``."""
        if merge is None:
            return self._each(lambda place: answer(question, self.states[place], place))
        merging = _Merging(merge)
        try:
            self._each(lambda place: merging.add(place, answer(question, self.states[place], place)))
        finally:
            merging.end()
        return merging.found

    def change(self, step: Callable[[Any], Any]) -> Files:
        """See ``Places``."""
        sizes = getattr(step, "sizes", None)  # of a step that takes some of the rows, which says how many
        shelf = _Shelf(self._scratch, [len(state.lot.arm) for state in self.states] if sizes is None else sizes)

        def make(place: int) -> Any:
            made = answer(step, self.states[place], place)
            if isinstance(made, Margins):
                return made.stored(self._scratch.empty)
            return shelf.put(made, place) if isinstance(made, Part) else made

        made = self._each(make)
        return Files(made, self._spans, self._scratch, self._n_jobs, {**self.arrays, **shelf.arrays}, self._verbose)

    def some(self, chosen: Sequence[NDArray[np.bool_]], firsts: Sequence[int], k: int, scale: Scale) -> Files:
        """Some rows of states of ``Stored``, in which arm ``k`` is the only one."""
        sizes = [int(rows.sum()) for rows in chosen]
        arm, ids = self._scratch.empty((sum(sizes),), np.uint8), self.arrays.get("ids")
        ids = None if ids is None else self._scratch.empty((sum(sizes),), np.uint64)
        states = []
        for state, rows, first, size in zip(self.states, chosen, firsts, sizes, strict=True):
            mine, used = slice(first, first + size), np.zeros(state.span.stop - state.span.start, np.bool_)
            used[state.used] = rows
            arm[mine] = state.arm[rows] == k
            if ids is not None:
                ids[mine] = state.ids[rows]
            kept = replace(
                state, scale=scale, outcome=self._file(state.outcome[rows]), arm=arm[mine], used=used, first=first
            )
            weight = None if state.weight is None else self._file(state.weight[rows])
            states.append(replace(kept, weight=weight, ids=state.ids if ids is None else ids[mine]))
        arrays = {"arm": arm} if ids is None else {"arm": arm, "ids": ids}
        return Files(states, self._spans, self._scratch, self._n_jobs, arrays, self._verbose)

    def _file(self, found: NDArray[Any]) -> NDArray[Any]:
        """An array, in a file."""
        array = self._scratch.empty(found.shape, found.dtype)
        array[...] = found
        return array

    def _each(self, function: Callable[[int], Any]) -> list[Any]:
        """What comes of all places; a failure is raised, and says where in the table it happened."""
        reads = bool(self.states) and isinstance(self.states[0], Span | Stored)  # other states are there already
        answers = run_parallel(
            function,
            range(len(self.states)),
            n_jobs=self._n_jobs,
            verbose=self._verbose if reads else 0,
            description="reading",
        )
        for one in answers:
            if isinstance(one, Failure):
                span = self._spans[one.place]
                raise one.raised(f"in the part of the table from row {span.start:,} to {span.stop - 1:,}") from None
        return answers


class _Merging:
    """Answers that are merged as they come, in the order of places: a thread that is far ahead waits, so that few are there at once."""

    def __init__(self, merge: Merge) -> None:
        self._merge, self._moved, self._ended = merge, Condition(), False
        self._early: dict[int, Any] = {}
        self._next = 0
        self.found: Any = None

    def add(self, place: int, one: Any) -> Failure | None:
        """Take the answer of a place; given back is only a failure."""
        with self._moved:
            self._early[place] = one
            while self._next in self._early:
                own = self._early.pop(self._next)
                self.found = merged(self._merge, [self.found, own] if self._next else [own])
                self._next += 1
                self._moved.notify_all()
            self._moved.wait_for(lambda: self._ended or place < self._next + _AHEAD)  # the next place never waits
        return one if isinstance(one, Failure) else None

    def end(self) -> None:
        """Nobody waits any longer, whatever has happened."""
        with self._moved:
            self._ended = True
            self._moved.notify_all()


class _Shelf:
    """What parts have per row, in files: one for the rows of all parts."""

    def __init__(self, scratch: Scratch, sizes: Sequence[int]) -> None:
        self._scratch, self._lock = scratch, Lock()
        self._firsts = np.cumsum([0, *sizes]).tolist()
        self.arrays: dict[str, NDArray[Any]] = {}

    def put(self, part: Part, place: int) -> Part:
        """The same part, its numbers per row in files."""
        put = partial(self._put, place)
        numbers = {
            name: [put(f"{name} {i}", one) for i, one in enumerate(found)]
            if isinstance(found, list)
            else put(name, found)
            for name, found in part.numbers.items()
        }
        ids = put("ids", part.lot.ids) if len(part.lot.ids) else part.lot.ids
        lot = part.lot._replace(arm=put("arm", part.lot.arm), ids=ids)
        weight = None if part.weight is None else put("weight", part.weight)
        return replace(
            part,
            codes=put("codes", part.codes),
            words=put("words", part.words),
            lot=lot,
            weight=weight,
            numbers=numbers,
        )

    def _put(self, place: int, name: str, found: NDArray[Any]) -> NDArray[Any]:
        first, last, n = self._firsts[place], self._firsts[place + 1], self._firsts[-1]
        if first == last or isinstance(found.base, np.memmap):  # nothing, or there already
            return found
        by_feature = name == "codes"
        times = 1 if found.ndim == 2 else len(found) // (last - first)
        with self._lock:
            if name not in self.arrays:
                shape = (len(found), n) if by_feature else (times * n, *found.shape[1:])
                self.arrays[name] = self._scratch.empty(shape, found.dtype)
        whole = self.arrays[name]
        mine = whole[:, first:last] if by_feature else whole[times * first : times * last]
        mine[...] = found
        return mine


@dataclass
class Stored:
    """What ``Numbers`` are for rows in memory: the features are read from the table whenever they are asked for."""

    frame: pl.LazyFrame
    span: Span
    schema: Schema
    scale: Scale
    outcome: Floats
    arm: Arms
    weight: Floats | None
    used: NDArray[np.bool_] | slice
    first: int
    ids: Any = field(default_factory=lambda: NO_IDS)

    @property
    def X(self) -> Floats:
        """The features, of float32 where that holds every value."""
        columns, _, _ = read_columns(read(self.frame, self.span))
        assert columns is not None
        return encode_columns(columns, self.schema, True)[self.used]

    @property
    def y(self) -> Floats:
        """The outcome as trees see it."""
        return self.scale.see(self.outcome)

    @property
    def lot(self) -> Lot:
        """The rows without their arms: one arm for all."""
        return Lot(np.zeros(len(self.arm), np.uint8), self.first, self.ids)

    def _replace(self, **changes: Any) -> Stored:
        """The same rows with other numbers: the word that ``Numbers`` has for it."""
        return replace(self, **changes)


# ------------------------------------------------------------------------------------------- reading


@dataclass
class _Targets:
    """Outcome, labels, weights and ids of all rows."""

    y: Floats
    code: Arms
    weight: Floats | None
    ids: NDArray[np.uint64] | None


def read_files(
    frame: pl.LazyFrame,
    n: int,
    roles: Roles,
    folder: Path,
    control: Label | None,
    n_jobs: int | None,
    row_id: str | None = None,
    verbose: int = 0,
) -> Whole:
    """From a table of ``n`` rows to places of ``Stored``."""
    if n > _MOST_ROWS:
        raise ValueError(f"the table has {n:,} rows, and trees of files number up to {_MOST_ROWS:,}: use Dask or Spark")
    scratch, spans = Scratch(folder), spans_of(n, len(roles.features))
    weight = None if roles.sample_weight is None else scratch.empty((n,), np.float64)
    ids = None if row_id is None else scratch.empty((n,), np.uint64)
    targets = _Targets(scratch.empty((n,), np.float64), scratch.empty((n,), np.uint8), weight, ids)
    texts = frame.collect_schema()[roles.treatment] in (polars().String, polars().Categorical, polars().Enum)
    columns = frame.select(roles.columns(row_id))
    described: list[Described] = Files(spans, spans, scratch, n_jobs, None, verbose).ask(
        partial(_look_and_keep, columns, roles, targets, texts, row_id)
    )
    whole = understand(described, roles, control)
    arm, y, heavy = targets.code, targets.y, targets.weight
    rows = int(whole.rows.sum())
    some = rows < n  # weights of 0 leave rows out
    if some:
        arm, y, heavy = (
            scratch.empty((rows,), np.uint8),
            scratch.empty((rows,), np.float64),
            scratch.empty((rows,), np.float64),
        )
        ids = None if ids is None else scratch.empty((rows,), np.uint64)
    states, features = [], frame.select(roles.features)
    for span, one, first in zip(spans, described, whole.firsts, strict=True):
        raw, mine = slice(span.start, span.stop), slice(first, first + one.n)
        used: Any = targets.weight[raw] > 0.0 if some and targets.weight is not None else slice(None)
        lookup = np.array([whole.labels.index(label) for label in one.rows], np.uint8)
        arm[mine] = lookup[targets.code[raw][used]]
        if some and targets.weight is not None and heavy is not None:
            y[mine], heavy[mine] = targets.y[raw][used], targets.weight[raw][used]
            if ids is not None and targets.ids is not None:
                ids[mine] = targets.ids[raw][used]
        own, named = None if heavy is None else heavy[mine], NO_IDS if ids is None else ids[mine]
        states.append(Stored(features, span, whole.schema, whole.scale, y[mine], arm[mine], own, used, first, named))
    arrays = {"arm": arm} if ids is None else {"arm": arm, "ids": ids}
    return whole._replace(places=Files(states, spans, scratch, n_jobs, arrays, verbose))


def pair_of(whole: Whole, k: int, scale: Scale | None = None) -> Whole:
    """The rows of control and of arm ``k``, as an experiment of their own; on a ``scale``, or on that of their outcomes."""
    files, control, label = whole.places, whole.labels[0], whole.labels[k]
    chosen = [(state.arm == 0) | (state.arm == k) for state in files.states]
    described = []
    for state, rows in zip(files.states, chosen, strict=True):
        y, n = state.outcome[rows], {control: int((state.arm == 0).sum()), label: int((state.arm == k).sum())}
        weight = None if state.weight is None else state.weight[rows]
        rate = bool(((y == 0.0) | (y == 1.0)).all())
        described.append(Described(None, n, len(y), few_outcomes(y), few_weights(weight), rate))
    own = sum_up(described, whole.schema, control, weighted=files.states[0].weight is not None)
    own = own._replace(heaviest=whole.heaviest, scale=scale or own.scale)
    return own._replace(places=files.some(chosen, own.firsts, k, own.scale))


def _look_and_keep(
    columns: pl.LazyFrame, roles: Roles, targets: _Targets, texts: bool, row_id: str | None, span: Span
) -> Described:
    """The first look at a part; its outcome, labels, weights and ids are kept."""
    part, mine = read(columns, span), slice(span.start, span.stop)
    labels = coded(part[roles.treatment]) if texts else part[roles.treatment]
    described, targets.y[mine], targets.code[mine], weight = look_at(roles, Raw(span.number, part), labels)
    if targets.weight is not None:
        targets.weight[mine] = weight
    if targets.ids is not None and row_id is not None:
        targets.ids[mine] = read_ids(part[row_id], row_id)
    return described


def coded(labels: pl.Series) -> Any:
    """Labels that are text as numbers, without a Python object for every row; what is missing is left to be refused."""
    if labels.null_count():
        return labels
    labels = labels.cast(polars().String)
    texts = labels.unique().sort()
    codes = labels.replace_strict(texts, range(len(texts)), return_dtype=polars().UInt32)
    return Coded(texts.to_list(), codes.to_numpy())
