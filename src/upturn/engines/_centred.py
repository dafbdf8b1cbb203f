"""Centring and chances where rows lie in several places: numbers per row that regression trees predict, part by part (see ``trees._center``).

What is predicted stays with the rows it is for; only sums of it travel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from upturn._arrays import Floats, Ints
from upturn.engines._grow import draw_samples, grow_trees
from upturn.engines._parts import Far, Part, grid_of_parts, sums_of_parts, twins, with_soil
from upturn.engines._places import Places
from upturn.kernels import sampling
from upturn.kernels.histogram import Layout
from upturn.kernels.sampling import ESTIMATE, GROW, OUTCOME
from upturn.trees._center import SEEN, TREES, leaf_sums, outcome_rules, pooled_arms, predict_unseen, put_back
from upturn.trees._growth import arm_means, layout_with, rows_of
from upturn.trees._nodes import Nodes
from upturn.trees._outcome import Grid, make_words
from upturn.trees._overlap import chances_from, column_chances, overlap_left, overlap_of, overlap_sums
from upturn.trees._samples import Answers, Sampling

_TREES = 16  # whose samples are drawn at a time
_ONCE, _TWICE = 1, 2  # how often what is left of a number is predicted again


class Sown(NamedTuple):
    """Rows with the outcome and the weights that trees see, and how the words of what was taken off are read."""

    far: Far
    layout: Layout | None


def estimated(far: Far, seed: np.uint64, n_jobs: int | None) -> Far:
    """Parts with the chances of the arms that trees predict out of bag."""
    places = far.places
    for arm in range(1, len(far.rows)):
        places = _predicted(far, places, partial(_start_arm, arm), seed, arm, _TWICE, n_jobs)
        places = places.change(_keep_chance)
    return replace(far, places=places)


def left_by(far: Far) -> float:
    """How much these chances leave to compare."""
    return overlap_left(far.places.ask(_overlap_sums, _add_up))


def sow(far: Far, seed: np.uint64, n_jobs: int | None, *, centred: bool, weighed: bool, chances: Floats | None) -> Sown:
    """Take predicted outcomes off, if ``centred``, and weigh rows for overlap, if ``weighed``, by chances that are known or in the parts."""
    places, level_grid = far.places, None
    if centred:
        places = _predicted(far, places, _start_outcome, seed, 0, _TWICE if weighed else _ONCE, n_jobs)
        places = places.change(_centre)
    if weighed:
        places = _weigh(far, places, chances)
    if centred:
        level_grid = grid_of_parts(places, "off")
        places = places.change(partial(_with_words, "off", "off_words", level_grid))
    sown = worded(far, places, "y")
    return Sown(sown, None if level_grid is None else level_grid.layout)


def restore(trees: list[Nodes], sown: Sown, plan: Sampling, seed: np.uint64) -> None:
    """Put the mean of what was taken off a node's rows back on all its arms."""
    assert sown.layout is not None
    own = layout_with(sown.layout, plan.bootstrap)
    for first in range(0, len(trees), _TREES):
        some = trees[first : first + _TREES]
        draws = draw_samples(sown.far, plan, seed, range(first, first + len(some)))
        question = partial(_level_sums, some, list(draws.values()), sown.layout)
        for nodes, sums in zip(some, sown.far.places.ask(question, _add), strict=True):
            put_back(nodes, sums, own)


def _predicted(
    far: Far,
    places: Places,
    start: Callable[[Part], Part],
    seed: np.uint64,
    number: int,
    times: int,
    n_jobs: int | None,
) -> Places:
    """Parts whose ``level`` is a number per row, predicted by trees that did not see it; ``start`` says which number."""
    places = places.change(start)
    for again in range(times):
        own = worded(far, places, "work")
        rows, size, mean = pooled_arms(own.rows, own.size, own.mean)
        alone = replace(own, places=own.places.change(_one_arm), rows=rows, size=size, mean=mean, token=uuid4().hex)
        alone = with_soil(alone)
        key = np.uint64(sampling.purpose_key(seed, OUTCOME, np.uint64(times * number + again)))
        trees = grow_trees(alone, outcome_rules(far.bins.n_features), SEEN, key, TREES, n_jobs)
        draws = draw_samples(alone, SEEN, key, range(TREES))
        places = places.change(partial(_take_off, trees, list(draws.values()), float(mean[0])))
    return places


def worded(far: Far, places: Places, name: str) -> Far:
    """The experiment with another number per row as its outcome."""
    grid = grid_of_parts(places, name)
    worded = places.change(partial(_with_words, name, "words", grid))
    size, mean = arm_means(sums_of_parts(worded, len(far.rows), grid.layout), grid.layout)
    return with_soil(replace(far, places=worded, size=size, mean=mean, layout=grid.layout, token=uuid4().hex))


def _weigh(far: Far, places: Places, chances: Floats | None) -> Places:
    """Weights that let every arm stand for the same people, scaled to the weight the arm had (see ``trees._overlap``)."""
    raw = places.change(partial(_overlap, chances))
    grid = grid_of_parts(raw, "none")
    worded = raw.change(partial(_with_words, "none", "words", grid))
    sums, _ = arm_means(sums_of_parts(worded, len(far.rows), grid.layout), grid.layout)
    return raw.change(partial(_scale, far.size / np.where(sums > 0.0, sums, 1.0)))


# ------------------------------------------------------------------------------------------- what parts do


def _changed(part: Part, **numbers: Any) -> Part:
    """A part with other numbers per row."""
    return replace(part, numbers={**part.numbers, **numbers}, kept={})


def _start_outcome(part: Part) -> Part:
    return _changed(part, work=part.numbers["y"], level=np.zeros(len(part.lot.arm)))


def _start_arm(arm: int, part: Part) -> Part:
    return _changed(part, work=(part.lot.arm == arm).astype(np.float64), level=np.zeros(len(part.lot.arm)))


def _one_arm(part: Part) -> Part:
    return replace(part, lot=part.lot._replace(arm=np.zeros_like(part.lot.arm)), kept={})


def _take_off(trees: Sequence[Nodes], draws: Sequence[Answers], pooled: float, part: Part) -> Part:
    alone = part.lot._replace(arm=np.zeros_like(part.lot.arm))
    roles = (one.roles(alone)[0] for one in draws)
    level = predict_unseen(trees, roles, twins(part.codes), pooled)
    return _changed(part, work=part.numbers["work"] - level, level=part.numbers["level"] + level)


def _centre(part: Part) -> Part:
    level = part.numbers["level"]
    return _changed(part, y=part.numbers["y"] - level, off=level)


def _keep_chance(part: Part) -> Part:
    return _changed(part, chances=[*part.numbers.get("chances", []), part.numbers["level"]])


def _estimated_chances(part: Part) -> Floats:
    return chances_from(np.column_stack(part.numbers["chances"]))


def _overlap_sums(part: Part) -> Ints:
    return overlap_sums(_estimated_chances(part))


def _add_up(parts: Sequence[Ints]) -> Ints:
    return np.asarray(np.sum(parts, axis=0))


def _overlap(chances: Floats | None, part: Part) -> Part:
    n = len(part.lot.arm)
    if chances is not None:
        own = np.tile(chances, (n, 1))
    elif "chances" in part.numbers:
        own = _estimated_chances(part)
    else:
        own = column_chances(part.numbers["columns"])
    raw = overlap_of(own, part.lot.arm)
    weight = raw if part.weight is None else raw * part.weight
    return replace(_changed(part, none=np.zeros(n)), weight=weight)


def _scale(ratio: Floats, part: Part) -> Part:
    assert part.weight is not None
    return replace(part, weight=part.weight * ratio[part.lot.arm], kept={})


def _with_words(name: str, words: str, grid: Grid, part: Part) -> Part:
    made = make_words(part.numbers[name], part.weight, grid)
    return replace(part, words=made, kept={}) if words == "words" else _changed(part, **{words: made})


def _level_sums(trees: Sequence[Nodes], draws: Sequence[Answers], layout: Layout, part: Part) -> list[Ints]:
    codes, out = twins(part.codes), []
    for nodes, one in zip(trees, draws, strict=True):
        role, copies = one.roles(part.lot)
        value_role = GROW if one.plan.rho is None else ESTIMATE
        rows = rows_of(role, copies, value_role, part.numbers["off_words"], part.lot.arm, layout)
        out.append(leaf_sums(nodes, codes[np.asarray(rows.index)], rows, layout_with(layout, one.plan.bootstrap)))
    return out


def _add(parts: Sequence[list[Ints]]) -> list[Ints]:
    return [np.sum(sums, axis=0) for sums in zip(*parts, strict=True)]
