"""Intervals of ``UpliftForest(inference=True)`` where rows lie in several places (see ``trees._inference`` and ``trees._rehearsal``).

What trees predict of a row stays with it; sums of it travel as integers, and of some two thousand rows the codes. The rehearsal is a forest on other
parts, made of the same rows' codes and made outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools, Floats, Indices, Ints
from upturn.engines._centred import Sown, worded
from upturn.engines._numbers import few_outcomes
from upturn.engines._parts import Far, Part, twins
from upturn.engines._places import Places
from upturn.engines._select import Keys, keys_of, numbers_of, select
from upturn.kernels.sampling import GROW, IN, Cut
from upturn.trees import UpliftForest
from upturn.trees._base import Scale, scale_between
from upturn.trees._center import respond_unseen
from upturn.trees._inference import (
    BAG,
    GROUP,
    Pooled,
    correct_groups,
    correct_smoothing,
    effect_grid,
    pool_variance,
    pooled_rows,
    smoothed_sums,
)
from upturn.trees._nodes import Nodes
from upturn.trees._outcome import Grid, grid_within
from upturn.trees._rehearsal import (
    Counts,
    Script,
    count_known,
    errors_of,
    forest_seed,
    is_known,
    level_places,
    reach_between,
    split_rows,
    write_script,
)
from upturn.trees._samples import Answers, Choice, Lot

_BAGS = 5  # that are corrected in one pass
_NO_WORDS = np.empty(0, np.int64)
Draws = dict[int, Answers]
GrowForest = Callable[[UpliftForest, Far, Scale, np.uint64], None]


# ------------------------------------------------------------------------------------------- correction and variance


def correct_parts(trees: list[Nodes], sown: Sown, draws: Draws) -> tuple[Nodes, Pooled]:
    """What ``UpliftForest._grow_groups`` does with trees that are grown."""
    far = sown.far
    total, shares = float(far.size.sum()), far.size / far.size.sum()
    pool = _pooled_lot(far)

    def correct(own: Sequence[Floats]) -> None:
        for first in range(0, len(trees), BAG * _BAGS):
            bags = [
                _Bag(trees[a : a + BAG], [draws[tree] for tree in range(a, a + BAG)], grid)
                for a in range(first, min(first + BAG * _BAGS, len(trees)), BAG)
                for grid in [effect_grid(trees[a : a + BAG], total, weighted=far.weighted)]
            ]
            found = far.places.ask(partial(_smooth, bags), _add_smoothed)
            for i, (bag, sums) in enumerate(zip(bags, found, strict=True)):
                before = own[first + i * BAG : first + (i + 1) * BAG]
                correct_smoothing(bag.trees, before, sums, bag.grid, shares)

    def pool_all(nodes: Nodes) -> Pooled:
        roles = (draws[first].roles(pool.lot)[0] for first in range(0, len(trees), GROUP))
        return pool_variance(nodes, roles, pool.codes, GROUP, BAG)

    return correct_groups(trees, correct, pool_all)


class _Bag(NamedTuple):
    """Trees that are corrected together, their draws, and how what they predict is added up."""

    trees: Sequence[Nodes]
    draws: Sequence[Answers]
    grid: Grid


class _Some(NamedTuple):
    """Some rows with their codes for prediction, in the order of their ids."""

    lot: Lot
    codes: NDArray[np.uint8]


def _pooled_lot(far: Far) -> _Some:
    """The rows over which variances are pooled: by the places of their ids among all."""
    wanted = pooled_rows(len(far)).astype(np.uint64)
    if any(far.places.ask(_has_ids)):
        wanted = select(far.places, _ids, wanted.astype(np.int64))
    ids, arm, codes = (
        np.concatenate(column) for column in zip(*far.places.ask(partial(_take_ids, wanted)), strict=True)
    )
    order = np.argsort(ids)
    return _Some(Lot(arm[order], 0, ids[order]), codes[order])


def _has_ids(part: Part) -> bool:
    return len(part.lot.ids) > 0


def _ids(part: Part) -> Keys:
    return part.lot.numbers


def _take_ids(wanted: Keys, part: Part) -> tuple[Keys, NDArray[np.uint8], NDArray[np.uint8]]:
    numbers = part.lot.numbers
    rows = np.flatnonzero(np.isin(numbers, wanted))
    return numbers[rows], part.lot.arm[rows], twins(part.codes[:, rows])


def _smooth(bags: Sequence[_Bag], part: Part) -> list[list[list[Ints]]]:
    codes, found = twins(part.codes), []
    for bag in bags:
        roles = [one.roles(part.lot)[0] for one in bag.draws]
        found.append(smoothed_sums(bag.trees, roles, codes, part.weight, bag.grid))
    return found


def _add_smoothed(parts: Sequence[Any]) -> Any:
    """Sums of lists in lists of arrays, whose order is of no consequence."""
    if isinstance(parts[0], list):
        return [_add_smoothed(some) for some in zip(*parts, strict=True)]
    return np.sum(parts, axis=0)


# ------------------------------------------------------------------------------------------- the rehearsal


def rehearse_parts(
    forest: UpliftForest, far: Far, draws: Draws, scale: Scale, seed: np.uint64, grow: GrowForest
) -> Floats:
    """What ``UpliftForest._rehearse`` does; ``grow`` fits a forest to parts."""
    assert forest._pooled is not None
    places = far.places.change(partial(_respond, forest.nodes_, list(draws.values())))
    choice = split_rows(far.rows, seed)
    split = _Split(choice, _find_cut(places, choice))
    most = max(places.ask(_largest))
    grid = grid_within(float(len(far)), most, weighted=False)
    found: list[Counts] = places.ask(partial(_count, split, len(far.rows), grid))
    counts = Counts(
        np.sum([one.rows for one in found], axis=0),
        sum(one.others for one in found),
        np.sum([one.sums for one in found], axis=0),
    )
    if not counts.enough:
        return np.ones(len(far.rows) - 1)
    script = write_script(counts, grid, forest._pooled.varies, far.rows, scale, seed)
    values = sorted({value for some in places.ask(partial(_made_outcomes, split, script)) for value in some})
    own = scale_between(values[0], values[-1], two=len(values) <= 2)
    sizes = [int(one.rows.sum()) for one in found]
    made = places.change(_Take(split, script, own, tuple(sizes)))
    ground = worded(replace(far, rows=counts.rows), made, "y")
    rehearsed = forest._rehearsed()
    grow(rehearsed, ground, own, forest_seed(seed))
    others = places.change(_Judge(split, script, rehearsed, tuple(one.others for one in found)))
    return _reach(others, counts.others, len(far.rows) - 1)


def _reach(places: Places, n: int, n_effects: int) -> Floats:
    """How far intervals must reach, from parts whose rows have errors."""
    told = np.any(places.ask(_told), axis=0)
    low, high, share = level_places(n)
    errors = [
        numbers_of(select(places, partial(_errors, k), np.array([low, high], np.int64))) for k in range(n_effects)
    ]
    at_low, at_high = np.array(errors).T
    return reach_between(at_low, at_high, share, told)


def _find_cut(places: Places, choice: Choice) -> Cut:
    """The cut of a draw of an exact number of rows."""
    cut = choice.merge(places.ask(partial(_look, choice, False)))
    if cut is None:
        cut = choice.merge(places.ask(partial(_look, choice, True)))
    found: Cut = cut
    return found


# ------------------------------------------------------------------------------------------- what a part answers


def _respond(nodes: Nodes, draws: Sequence[Answers], part: Part) -> Part:
    response = respond_unseen(nodes, (one.roles(part.lot)[0] for one in draws), twins(part.codes))
    return replace(part, numbers={**part.numbers, "response": response}, kept={})


def _look(choice: Choice, wide: bool, part: Part) -> Any:
    return choice.look(part.lot, np.full(len(part.lot.arm), IN), wide=wide)


def _largest(part: Part) -> float:
    response = part.numbers["response"][is_known(part.numbers["response"])]
    return float(np.abs(response[:, 1:] - response[:, :1]).max(initial=0.0))


@dataclass(frozen=True)
class _Split:
    """Which rows a rehearsal's forest is fitted to."""

    choice: Choice
    cut: Cut

    def roles(self, lot: Lot) -> NDArray[np.uint8]:
        """``GROW`` for those rows."""
        role = np.full(len(lot.arm), IN)
        self.choice.carry_out(lot, self.cut, role)
        return role

    def rows(self, part: Part, *, others: bool) -> Indices:
        """The rows of a part it is fitted to, or the others."""
        mine: Bools = (self.roles(part.lot) == GROW) != others
        return np.flatnonzero(mine & is_known(part.numbers["response"]))


def _count(split: _Split, n_arms: int, grid: Grid, part: Part) -> Counts:
    return count_known(part.numbers["response"], split.roles(part.lot), part.lot.arm, n_arms, grid)


def _outcomes(split: _Split, script: Script, part: Part) -> tuple[Indices, Floats]:
    """Rows that a forest is fitted to, and the outcomes made for them."""
    rows = split.rows(part, others=False)
    response = part.numbers["response"][rows]
    return rows, script.outcomes(script.responses(response), response, part.numbers["y"][rows], part.lot.take(rows))


def _made_outcomes(split: _Split, script: Script, part: Part) -> tuple[float, ...]:
    return few_outcomes(_outcomes(split, script, part)[1])


@dataclass(frozen=True)
class _Take:
    """The part of the rows that a forest is fitted to, with made outcomes on a scale; ``sizes`` is how many each place has."""

    split: _Split
    script: Script
    scale: Scale
    sizes: tuple[int, ...]

    def __call__(self, part: Part) -> Part:
        rows, y = _outcomes(self.split, self.script, part)
        weight = None if part.weight is None else part.weight[rows]
        numbers = {"y": self.scale.see(y), "columns": part.numbers["columns"][rows]}
        return Part(np.ascontiguousarray(part.codes[:, rows]), _NO_WORDS, part.lot.take(rows), weight, numbers)


@dataclass(frozen=True)
class _Judge:
    """The other rows, with the forest's errors in standard errors, and whether anything is known of its variance."""

    split: _Split
    script: Script
    forest: UpliftForest
    sizes: tuple[int, ...]

    def __call__(self, part: Part) -> Part:
        rows = self.split.rows(part, others=True)
        codes = np.ascontiguousarray(part.codes[:, rows])
        made = self.script.responses(part.numbers["response"][rows])
        mean, variance = self.forest._moments_of(twins(codes), 1)
        error = mean - (made[:, 1:] - made[:, :1])
        numbers = {"errors": errors_of(error, variance), "told": (variance > 0.0).astype(np.uint8)}
        return Part(codes, _NO_WORDS, part.lot.take(rows), None, numbers)


def _told(part: Part) -> Bools:
    told: Bools = part.numbers["told"].any(axis=0)
    return told


def _errors(k: int, part: Part) -> Keys:
    return keys_of(np.ascontiguousarray(part.numbers["errors"][:, k]))
