"""Parts of the rows as trees need them, codes and words, and what the driver knows of all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np

from upturn._arrays import Floats, Ints
from upturn.engines._bins import learn_bins
from upturn.engines._numbers import Numbers, Whole
from upturn.engines._places import Places, Weighed, forget
from upturn.kernels.forest import twin_codes
from upturn.kernels.histogram import Layout
from upturn.kernels.sampling import NO_IDS
from upturn.trees._bins import Bins, Codes
from upturn.trees._growth import Soil, arm_means, sum_words
from upturn.trees._outcome import Grid, grid_of, make_words, merge_summaries, summarise, unit_of
from upturn.trees._samples import Lot


@dataclass
class Part(Weighed):
    """A part's rows as trees need them; ``kept`` is what can be computed again, and is left out when a part travels.

    ``numbers`` are those per row that a forest needs to centre outcomes or to weigh rows: first the outcome, "y".
    """

    codes: Codes
    words: Ints
    lot: Lot
    weight: Floats | None = None
    numbers: dict[str, Any] = field(default_factory=dict)
    kept: dict[Any, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "kept": {}}


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
    soil: Soil | None = None  # all rows together, if they can be reached from here

    @property
    def weighted(self) -> bool:
        """Whether rows have weights of their own."""
        return self.layout.n_words == 2 and self.layout.weight_word == 0

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


def with_soil(far: Far) -> Far:
    """The experiment with all its rows together, where places keep arrays of them (``_files``)."""
    arrays = getattr(far.places, "arrays", None)
    if arrays is None:
        return far
    codes, arm, words = (arrays[name] for name in ("codes", "arm", "words"))
    ids = arrays.get("ids", NO_IDS)
    return replace(far, soil=Soil(far.bins, codes, arm, far.rows, far.size, far.mean, words, far.layout, ids))


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
    sums: Ints = places.ask(partial(_sums, n_arms, layout), add)
    return sums


def with_bins(whole: Whole, max_bins: int, *, weighted: bool, looks: bool = False) -> Whole:
    """The same rows with their bins and, if ``looks``, the look at their arms."""
    if whole.bins is not None:
        return whole
    bins, look = learn_bins(whole, max_bins, weighted=weighted, looks=looks)
    return whole._replace(bins=bins, look=look)


def prepare(whole: Whole, max_bins: int, *, weighted: bool, outcomes: bool, columns: Sequence[int]) -> Far:
    """Bins, codes and words of all parts, which keep their ``outcomes`` and some columns if rows are to be centred or weighed."""
    bins = with_bins(whole, max_bins, weighted=weighted).bins
    assert bins is not None
    grid = grid_of_parts(whole.places, "y")
    places = whole.places.change(partial(_to_part, bins, grid, outcomes, columns))
    if whole.passing:
        forget(*whole.passing, whole.places)
    size, mean = arm_means(sums_of_parts(places, len(whole.rows), grid.layout), grid.layout)
    return with_soil(Far(bins, places, whole.rows, size, mean, grid.layout, whole.n_places, uuid4().hex))


def twins(codes: Codes) -> Codes:
    """Codes for prediction; there may be no rows."""
    made: Codes = twin_codes(np.ascontiguousarray(codes)) if codes.size else np.empty((0, 2 * len(codes)), np.uint8)
    return made


# ------------------------------------------------------------------------------------------- what a part answers


def _to_part(bins: Bins, grid: Grid, outcomes: bool, columns: Sequence[int], part: Numbers) -> Part:
    X = part.X
    codes = bins.encode(X, 1)
    words = make_words(part.y, part.weight, grid)
    lot = Lot(part.arm, part.first, part.ids)
    if not outcomes:
        return Part(codes, words, lot)
    return Part(codes, words, lot, part.weight, {"y": part.y, "columns": X[:, list(columns)].astype(np.float64)})


def _sums(n_arms: int, layout: Layout, part: Part) -> Ints:
    return sum_words(part.words, part.lot.arm, n_arms, layout)


def _summarise(name: str, unit: float, part: Numbers | Part) -> Any:
    return summarise(part.numbers[name] if isinstance(part, Part) else part.y, part.weight, unit)


def add(arrays: Sequence[Any]) -> Any:
    """Answers that are added up."""
    return np.sum(arrays, axis=0)
