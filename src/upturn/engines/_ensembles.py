"""Boosting and bagging of trees learnt from rows in several places.

Weights of rows follow from the members so far, so a question brings these along, and a part that has lost its weights makes them again. Whatever is added up is
an integer, as in memory (``boosting._rounds``), and the model is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools, Floats, Ints
from upturn._parallel import progress
from upturn._seeds import make_seed
from upturn._target import Target, check_totals
from upturn.boosting import UpliftBagging, UpliftBoosting
from upturn.boosting._base import seeded
from upturn.boosting._rounds import FEW, Votes, divisors, drawn, few_votes
from upturn.engines._gather import Roles
from upturn.engines._numbers import Whole, check_classes, in_units
from upturn.engines._parts import Far, Part, add, prepare, twins
from upturn.engines._places import Places
from upturn.engines._unseen import find_unweighed, fit_tree
from upturn.engines._views import own_weights, reweighted, weights_of_arms
from upturn.kernels.boosting import UNIT, reweigh, tally
from upturn.kernels.histogram import Layout, Rows
from upturn.kernels.resampling import resample_part
from upturn.trees import UpliftTree
from upturn.trees._base import Scale
from upturn.trees._center import leaf_sums

_ASKED = 1000  # rows that are looked at to tell whether the table itself has few different ones


def is_ensemble(model: Any) -> bool:
    """Whether a model is boosting or bagging of trees."""
    inside = getattr(model, "estimator", None)
    return isinstance(model, UpliftBoosting | UpliftBagging) and (inside is None or isinstance(inside, UpliftTree))


def learn_ensemble(model: Any, whole: Whole, raws: Places, roles: Roles, library: str) -> None:
    """Fit boosting or bagging of trees to places of numbers, which are made of places of raw frames."""
    weighted = roles.sample_weight is not None
    control, arms = whole.labels[0], whole.labels[1:]
    model._refuse_arms(control, arms)
    scale, boosted = whole.scale, isinstance(model, UpliftBoosting)
    if boosted:
        check_classes(whole)
        scale = Scale(0.0, 1.0, True)
    base, seed = model._fresh_base(), make_seed(model.random_state)
    base._check_outcome(scale, varies=whole.varies)
    if weighted:
        whole = in_units(whole)
    far = prepare(whole, base.max_bins, weighted=weighted, outcomes=True, columns=[])
    nobody = np.empty(0)
    check_totals(far.size, Target(nobody, nobody.astype(np.uint8), None, control, arms))
    if boosted:
        model._boost(FarRounds(far, seed, balanced=model._balanced), base, seed)
        model._tell_doubts()
    else:
        draws = _bag(model, base, far, scale, seed)
        out = np.concatenate(far.places.ask(partial(_out_of_bag, model.estimators_, model.average, draws)))
        model.oob_prediction_ = _with_unweighed(model, out, *find_unweighed(raws, roles, whole.schema))
    model._library, model._rate = library, boosted or whole.rate  # classes are 0 and 1
    model._remember(control, arms, whole.schema)


# ------------------------------------------------------------------------------------------- bagging


def _bag(model: UpliftBagging, base: Any, far: Far, scale: Scale, seed: np.uint64) -> _Draws:
    """All members, one after the other; how their rows were drawn."""
    low: dict[int, Ints] = {}  # how many rows of each arm come before those of a part, by the number of its first row
    before = np.zeros(len(far.rows), np.int64)
    for first, counts in far.places.ask(partial(_arm_counts, len(far.rows))):
        if counts.any():
            low[first] = before
        before = before + counts
    draws, members = _Draws(seed, far.rows, low), []
    for m in progress(range(model.n_estimators), model.verbose, "bagging"):
        member = seeded(base, seed, m)
        fit_tree(member, reweighted(far, partial(draws.weigh, m)), scale)
        members.append(member)
    model.estimators_, model._n_arms = members, len(far.rows) - 1
    return draws


def _arm_counts(n_arms: int, part: Part) -> tuple[int, Ints]:
    return part.lot.first, np.bincount(part.lot.arm, minlength=n_arms)


@dataclass(frozen=True)
class _Draws:
    """Bootstrap samples within each arm: rows are drawn by their place in it."""

    seed: np.uint64
    sizes: Ints
    low: dict[int, Ints]

    def times(self, m: int, part: Part) -> NDArray[np.int32]:
        """How often every row of a part is in the sample of member ``m``."""
        arm = part.lot.arm
        times = np.empty(len(arm), np.int32)
        if not len(arm):
            return times
        low, counts = self.low[part.lot.first], np.empty(len(arm), np.uint8)
        high = low + np.bincount(arm, minlength=len(low))
        resample_part(self.seed, m, self.sizes, low, high, counts)
        times[np.argsort(arm, kind="stable")] = counts
        return times

    def weigh(self, m: int, part: Part) -> Floats:
        """Weights of that sample."""
        return own_weights(part) * self.times(m, part)


def _out_of_bag(members: Sequence[Any], average: Any, draws: _Draws, part: Part) -> Floats:
    """The average of a part's rows over the members that did not see them."""
    codes, n_arms = twins(part.codes), len(draws.sizes) - 1
    total, seen = np.zeros((len(codes), n_arms)), np.zeros((len(codes), 1))
    for m, member in enumerate(members if len(codes) else []):
        out = draws.times(m, part) == 0
        total[out] += member._opinion(codes[out], average, n_arms)
        seen[out] += 1
    with np.errstate(invalid="ignore"):
        return np.asarray(total / seen)


def _with_unweighed(model: UpliftBagging, out: Floats, weighed: Bools, X: Floats | None) -> Floats:
    """What is out of bag, in the order of the table; rows of weight 0 all members did not see."""
    mean = out
    if X is not None:
        mean = np.empty((len(weighed), out.shape[1]))
        mean[weighed], mean[~weighed] = out, model._predict(X)
    return mean[:, 0] if mean.shape[1] == 1 else mean


# ------------------------------------------------------------------------------------------- boosting


class _Step(NamedTuple):
    """A round: a member that changed weights, or, without one, a restart by its number."""

    member: Any
    factors: Floats  # of the four cells, or what the arms' weights are divided by
    voice: float
    m: int = -1


class _Now(NamedTuple):
    """Weights and votes of a part's rows after some steps."""

    done: int
    weight: Floats
    votes: Floats


@dataclass(frozen=True)
class _Track:
    """What weights and votes follow from: what the arms' weights were divided by at first, and all steps since."""

    token: str
    seed: np.uint64
    start: Floats
    steps: tuple[_Step, ...] = ()

    def at(self, part: Part) -> _Now:
        """Where a part's rows are now; from where they were when it was last asked, if it still knows."""
        token, kept = part.kept.get("track", ("", None))
        now: _Now = kept
        if token != self.token or now.done > len(self.steps):
            now = _Now(0, own_weights(part) / self.start[part.lot.arm], np.zeros(len(part.lot.arm)))
        for step in self.steps[now.done :]:
            if step.member is None:
                raw = drawn(self.seed, step.m, own_weights(part), part.lot.first, part.lot.ids)
                now = _Now(now.done + 1, raw / step.factors[part.lot.arm], now.votes)
                continue
            decision, weight = self._decision(step.member, now.done, part), now.weight.copy()
            reweigh(decision, _success(part), part.lot.arm, step.factors, weight)
            now = _Now(now.done + 1, weight, now.votes + step.voice * decision)
        part.kept["track"] = self.token, now
        return now

    def _decision(self, member: Any, done: int, part: Part) -> NDArray[np.uint8]:
        """Whom a member treats after so many steps: remembered, since it is asked for twice."""
        key = self.token, done
        kept = part.kept.get("decision")
        if kept is None or kept[0] != key:
            kept = part.kept["decision"] = key, (member._recommend_rows(twins(part.codes)) == 1).view(np.uint8)
        decision: NDArray[np.uint8] = kept[1]
        return decision

    def tally(self, member: Any, part: Part) -> Ints:
        """The weight of the four cells that a member makes."""
        weight, cells = self.at(part).weight, np.empty(4, np.int64)
        tally(weight, self._decision(member, len(self.steps), part), _success(part), part.lot.arm, cells)
        return cells

    def weigh(self, total: float, part: Part) -> Floats:
        """The weights, of a sum."""
        return self.at(part).weight * total

    def votes(self, heard: float, part: Part) -> Votes:
        """What the votes are like."""
        return few_votes(self.at(part).votes / heard)


def _success(part: Part) -> NDArray[np.uint8]:
    success: NDArray[np.uint8] = part.numbers["y"].astype(np.uint8)
    return success


class FarRounds:
    """Rows that lie in several places (see ``boosting._rounds.Rounds``)."""

    def __init__(self, far: Far, seed: np.uint64, *, balanced: bool) -> None:
        self._far, self._seed, self._balanced = far, seed, balanced
        self.n, self.mean, self.layout = len(far), far.mean, far.layout
        self._total = float(far.size.sum())
        self._track = _Track(uuid4().hex, seed, divisors(far.size, balanced=balanced))

    @property
    def _places(self) -> Places:
        return self._far.places

    def fit(self, member: Any) -> None:
        """See ``Rounds``."""
        fit_tree(member, reweighted(self._far, partial(self._track.weigh, self._total)), Scale(0.0, 1.0, True))

    def tally(self, member: Any) -> Floats:
        """See ``Rounds``."""
        cells: Ints = self._places.ask(partial(self._track.tally, member), add)
        return np.asarray(cells * UNIT)

    def go_on(self, member: Any, factors: Floats, voice: float) -> None:
        """See ``Rounds``."""
        self._track = replace(self._track, steps=(*self._track.steps, _Step(member, factors, voice)))

    def restart(self, m: int) -> None:
        """See ``Rounds``."""
        totals = weights_of_arms(self._far, partial(_drawn, self._seed, m))
        step = _Step(None, divisors(totals, balanced=self._balanced), 0.0, m)
        self._track = replace(self._track, steps=(*self._track.steps, step))

    def leaves(self, members: Sequence[Any]) -> list[Ints]:
        """See ``Rounds``."""
        found: list[Ints] = self._places.ask(partial(_leaves, list(members), self.layout), _add_all)
        return found

    def votes(self, heard: float) -> Votes:
        """See ``Rounds``."""
        found: Votes = self._places.ask(partial(self._track.votes, heard), _merge_votes)
        return found

    def different(self) -> int:
        """See ``Rounds``; as far as codes tell rows apart."""
        found = self._places.ask(partial(_some_rows, max(self.n // _ASKED, 1)))
        return min(len(frozenset().union(*found)), FEW)


def _drawn(seed: np.uint64, m: int, part: Part) -> Floats:
    return drawn(seed, m, own_weights(part), part.lot.first, part.lot.ids)


def _leaves(members: Sequence[Any], layout: Layout, part: Part) -> list[Ints]:
    codes, rows = twins(part.codes), Rows(None, part.words, part.lot.arm)
    return [leaf_sums(member.nodes_, codes, rows, layout, 2) for member in members]


def _add_all(parts: Sequence[list[Ints]]) -> list[Ints]:
    return [np.sum(sums, axis=0) for sums in zip(*parts, strict=True)]


def _merge_votes(parts: Sequence[Votes]) -> Votes:
    few, low, high = zip(*parts, strict=True)
    return Votes(np.unique(np.concatenate(few))[:FEW], min(low), max(high))


def _some_rows(step: int, part: Part) -> frozenset[bytes]:
    """Codes of rows whose numbers are multiples of ``step``."""
    return frozenset(row.tobytes() for row in part.codes[:, -part.lot.first % step :: step].T)
