"""Parts under other weights: what boosting and bagging let their members see.

A view is made of a part whenever a question wants it, and kept beside the part for the next one: nothing travels but what the weights follow
from, and what is lost is made again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np

from upturn._arrays import Floats, Ints
from upturn.engines._parts import Far, Part, add, sums_of_parts
from upturn.engines._places import Merge, Places
from upturn.trees._growth import arm_means, sum_words
from upturn.trees._outcome import Grid, OutcomeSummary, grid_of, make_words, merge_summaries, summarise, unit_of

Weigh = Callable[[Part], Floats]  # the weight of every row of a part, from what a driver says
Number = Callable[[Part], Floats]  # the outcome of every row


@dataclass(frozen=True)
class Views:
    """Places whose states are seen through something (see ``Places``)."""

    places: Places
    view: Callable[[Any], Any]

    def ask(self, question: Callable[[Any], Any], merge: Merge | None = None) -> Any:
        """See ``Places``."""
        return self.places.ask(_Through(self.view, question), merge)

    def change(self, step: Callable[[Any], Any]) -> Any:
        """See ``Places``."""
        return self.places.change(_Through(self.view, step))


@dataclass(frozen=True)
class _Through:
    """A question to what a part is seen as."""

    view: Callable[[Any], Any]
    question: Callable[[Any], Any]

    def __call__(self, part: Any) -> Any:
        return self.question(self.view(part))


@dataclass(frozen=True)
class _Worded:
    """A part with the words of other weights."""

    token: str
    weigh: Weigh
    grid: Grid

    def __call__(self, part: Part) -> Part:
        kept = part.kept.get("view")
        if kept is None or kept[0] != self.token:
            words = make_words(part.numbers["y"], self.weigh(part), self.grid)
            kept = part.kept["view"] = self.token, words, {}
        return replace(part, words=kept[1], kept=kept[2])


def reweighted(far: Far, weigh: Weigh) -> Far:
    """The experiment under other weights, as ``Soil.reweighted`` has it."""
    token, grid = uuid4().hex, _grid(far.places, weigh, _outcome)
    places = Views(far.places, _Worded(token, weigh, grid))
    size, mean = arm_means(sums_of_parts(places, len(far.rows), grid.layout), grid.layout)
    return replace(far, places=places, size=size, mean=mean, layout=grid.layout, token=token, soil=None)


def weights_of_arms(far: Far, weigh: Weigh) -> Floats:
    """The weight of each arm (see ``trees._growth.weight_of_arms``)."""
    grid = _grid(far.places, weigh, _nothing)
    sums: Ints = far.places.ask(partial(_weights, weigh, grid, len(far.rows)), add)
    return sums[: len(far.rows)] * np.float64(grid.layout.weight_unit)


def _grid(places: Places, weigh: Weigh, number: Number) -> Grid:
    summary: OutcomeSummary = places.ask(partial(_summary, weigh, number, 1.0), merge_summaries)
    if (unit := unit_of(summary)) != 1.0:
        summary = places.ask(partial(_summary, weigh, number, unit), merge_summaries)
    return grid_of(summary)


# ------------------------------------------------------------------------------------------- what a part answers


def _outcome(part: Part) -> Floats:
    y: Floats = part.numbers["y"]
    return y


def _nothing(part: Part) -> Floats:
    return np.zeros(len(part.lot.arm))


def _summary(weigh: Weigh, number: Number, unit: float, part: Part) -> OutcomeSummary:
    return summarise(number(part), weigh(part), unit)


def _weights(weigh: Weigh, grid: Grid, n_arms: int, part: Part) -> Ints:
    return sum_words(make_words(_nothing(part), weigh(part), grid), part.lot.arm, n_arms, grid.layout)


def own_weights(part: Part) -> Floats:
    """The weights of a part's rows, ones when there are none."""
    return np.ones(len(part.lot.arm)) if part.weight is None else part.weight
