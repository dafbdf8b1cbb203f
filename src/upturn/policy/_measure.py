"""What a plan brings, measured in an experiment or predicted by the model, beside the plans it competes with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from upturn._arrays import Floats, Ints
from upturn._results import Table, level_text
from upturn._target import Target
from upturn._units import unit_scale, unit_text
from upturn.kernels.budget import bootstrap_path_gains, path_gains
from upturn.kernels.resampling import BOOTSTRAP, rows_by_stratum
from upturn.metrics import Estimate
from upturn.metrics._replicates import Replicates
from upturn.metrics._robust import dr_effects
from upturn.metrics._strata import Strata
from upturn.policy._gate import People
from upturn.policy._path import Assignment, Path

_ROWS = 1 << 22  # of replicates that are walked in one call, after which Ctrl-C is heard
_BAND = 0.1  # the marginal gain is measured among the last tenth of the upgrades before the cut


@dataclass(frozen=True)
class PathGains:
    """Gains per person at some stops of a path, and average effects of the arms.

    ``gain_samples`` and ``effect_samples`` have a row per replicate, and none where nothing was resampled.
    """

    gains: Floats
    effects: Floats
    gain_samples: Floats
    effect_samples: Floats

    def times(self, value: float) -> PathGains:
        """The same in money, where a unit of outcome is worth as much for everybody."""
        return PathGains(*(value * array for array in vars(self).values()))


def read_effects(target: Target, propensity: Any, response: Any) -> Floats | None:
    """Effect scores of an experiment's rows, a column per arm, where more is known than who had which arm; else None."""
    if propensity is None and response is None:
        return None
    return dr_effects(target, propensity, response)


def measure_effects(
    path: Path, stops: Ints, target: Target, effects: Floats, replicates: Replicates | None
) -> PathGains:
    """What effect scores of the same rows (n, K) say a path gains: an upgrade gains the difference of its two arms' scores."""
    weight = target.weights
    after, before = path.after.astype(np.intp) - 1, path.before.astype(np.intp) - 1
    change = effects[path.row, after] - np.where(before >= 0, effects[path.row, np.maximum(before, 0)], 0.0)

    def gains(w: Floats) -> tuple[Floats, Floats]:
        so_far = np.concatenate(([0.0], np.cumsum(w[path.row] * change)))[stops]
        total = float(w.sum())
        return so_far / total, np.einsum("i,ik->k", w, effects) / total

    if replicates is None:
        return PathGains(*gains(weight), np.empty((0, len(stops))), np.empty((0, target.n_arms)))
    strata = Strata.of_arms(target, replicates.clusters)
    strata.warn_if_few()

    def block(numbers: range) -> list[tuple[Floats, Floats]]:
        counts, _ = strata.draw(BOOTSTRAP, replicates.seed, numbers)
        return [gains(weight * counts[strata.unit, j]) for j in range(len(numbers))]

    drawn = [one for part in replicates.map(block) for one in part]
    samples = (np.stack([one[i] for one in drawn]) for i in range(2))
    return PathGains(*gains(weight), *samples)


def measure(path: Path, stops: Ints, target: Target, y: Floats, replicates: Replicates | None) -> PathGains:
    """What an experiment on the same rows says a path gains; ``y`` may be the outcome in money."""
    weight = np.empty(0) if target.weight is None else target.weight
    columns = (path.row, path.before, path.after, np.ascontiguousarray(stops, dtype=np.int64), target.arm, y, weight)
    gains, effects = np.empty(len(stops)), np.empty(target.n_arms)
    path_gains(*columns, gains, effects)
    count = 0 if replicates is None else replicates.n
    gain_samples, effect_samples = np.empty((count, len(stops))), np.empty((count, target.n_arms))
    if replicates is not None and replicates.clusters is not None:
        strata = Strata.of_arms(target, replicates.clusters)
        strata.warn_if_few()

        def clusters(numbers: range) -> None:
            """A row weighs as much more as its cluster was drawn."""
            counts, _ = strata.draw(BOOTSTRAP, replicates.seed, numbers)
            for j, r in enumerate(numbers):
                path_gains(*columns[:-1], target.weights * counts[strata.unit, j], gain_samples[r], effect_samples[r])

        replicates.map(clusters)
    elif replicates is not None:
        draws, seed = rows_by_stratum(target.arm, target.n_arms + 1, target.weight), replicates.seed
        at_once = max(1, _ROWS // len(y))

        def block(numbers: range) -> None:
            for r in range(numbers.start, numbers.stop, at_once):
                part = slice(r, min(r + at_once, numbers.stop))
                bootstrap_path_gains(seed, r, *draws, *columns, gain_samples[part], effect_samples[part])

        replicates.map(block)
    return PathGains(gains, effects, gain_samples, effect_samples)


def measure_money(
    units: PathGains,
    path: Path,
    stops: Ints,
    people: People,
    target: Target,
    effects: Floats | None,
    replicates: Replicates | None,
) -> PathGains | None:
    """The same gains in money, costs not taken off; None where nothing has a value."""
    if people.value is None:
        return None
    if isinstance(people.value, float):
        return units.times(people.value)
    if effects is not None:
        return measure_effects(path, stops, target, effects * people.value[:, None], replicates)
    return measure(path, stops, target, target.y * people.value, replicates)


@dataclass(frozen=True)
class PlanValue:
    """What a plan brings, per person, and what others would: all from the same replicates, so differences are paired.

    Attributes
    ----------
    people, plan : People, Assignment
        Whom it is for, and the arm it gives everybody.
    weight : array or None
        How much everybody counts in shares and costs; None means all alike.
    units, money : PathGains, PathGains or None
        In units of the outcome, and in money. The plan is the last stop.
    replicates : Replicates or None
        What the intervals are made of; None makes none.
    band : float
        What the upgrades between the first two stops, just above the cut, cost per person; 0 where there are no such stops.
    word : str
        "predicted " in front of what the model says, nothing in front of what was measured.
    before : PathGains or None
        In money where there is any, else in units, before what was expected of everybody was taken off; None where nothing was.
    """

    people: People
    plan: Assignment
    weight: Floats | None
    units: PathGains
    money: PathGains | None
    replicates: Replicates | None = None
    band: float = 0.0
    word: str = ""
    before: PathGains | None = None

    @classmethod
    def predicted(cls, people: People, plan: Assignment) -> PlanValue:
        """By the model."""

        def gains(matrix: Floats) -> PathGains:
            mean = np.array([plan.total(matrix) / len(people)])
            return PathGains(mean, matrix.mean(axis=0), np.empty((0, 1)), np.empty((0, people.n_arms)))

        money = None if people.value is None else gains(people.worth)
        return cls(people, plan, None, gains(people.uplift), money, word="predicted ")

    @classmethod
    def measured(
        cls,
        people: People,
        plan: Assignment,
        made: Path,
        cut: int,
        experiment: Target,
        effects: Floats | None,
        replicates: Replicates | None,
    ) -> PlanValue:
        """In an experiment, or by its rows' effect scores; ``made`` are the upgrades of the plan, those above the cut first."""
        start = cut - int(np.ceil(_BAND * cut))
        stops = np.array([start, cut, len(made)])
        if effects is None:
            units = measure(made, stops, experiment, experiment.y, replicates)
        else:
            units = measure_effects(made, stops, experiment, effects, replicates)
        money = measure_money(units, made, stops, people, experiment, effects, replicates)
        weights = experiment.weights
        band = float(weights[made.row[start:cut]] @ made.cost[start:cut]) / float(weights.sum())
        return cls(people, plan, experiment.weight, units, money, replicates, band)

    def adjusted_from(self, plain: PlanValue) -> PlanValue:
        """The same, knowing what the plan brought before what was expected of everybody was taken off."""
        return replace(self, before=plain.units if plain.money is None else plain.money)

    def gain(self, n: int) -> float:
        """Of ``n`` people."""
        return self._number(n * self.units.gains[-1], n * self.units.gain_samples[:, -1], self._reduction())

    def profit(self, n: int) -> float | None:
        """Of ``n`` people: what the gain is worth minus what it costs; None where nothing has a value."""
        if self.money is None:
            return None
        spent = n * self.cost_per_person
        return self._number(
            n * self.money.gains[-1] - spent, n * self.money.gain_samples[:, -1] - spent, self._reduction()
        )

    def _reduction(self) -> float | None:
        """By what share the plan's error is smaller for the adjustment; None where there was none."""
        if self.before is None or self.replicates is None:
            return None
        now = self.units if self.money is None else self.money
        old, new = (float(self.replicates.spread(gains.gain_samples)[-1]) for gains in (self.before, now))
        return 1 - new / old if old > 0 else None

    def marginal(self) -> float | None:
        """Per unit of cost, just above the cut; None where nothing was spent there."""
        if self.band <= 0:
            return None
        source, scale = self.units if self.money is None else self.money, 1.0 / self.band
        value = scale * (source.gains[1] - source.gains[0])
        return self._number(value, scale * (source.gain_samples[:, 1] - source.gain_samples[:, 0]))

    @cached_property
    def cost_per_person(self) -> float:
        """What the plan costs per person, treated or not."""
        cost, weight = self.people.cost, self.weight
        if cost is None:
            return 0.0
        return self.plan.total(cost, weight) / float(len(cost) if weight is None else weight.sum())

    def comparison(self, library: str | None, rate: bool) -> Table:
        """The plan beside nobody, as many people at random, and everybody with either arm.

        Numbers are per person; gains in rates (``rate``) are printed per 1,000 people.
        """
        k, cost, money = self.people.n_arms, self.people.cost, self.money
        shares = self.plan.shares(k, self.weight)
        whom: list[tuple[str, Floats | None]] = [("this plan", None), ("nobody", np.zeros(k))]
        whom.append(("as many at random", shares))
        whom += [(f"everybody: {label}", np.eye(k)[j]) for j, label in enumerate(self.people.labels[1:])]
        average = np.zeros(k) if cost is None else np.average(cost, axis=0, weights=self.weight)
        columns: dict[str, list[Any]] = {}

        def add(name: str, value: float, ends: str) -> None:
            columns.setdefault(name, []).append(float(value))
            if isinstance(value, Estimate):
                columns.setdefault(f"{ends}low", []).append(value.low)
                columns.setdefault(f"{ends}high", []).append(value.high)

        for name, share in whom:
            spent = self.cost_per_person if share is None else float(share @ average)
            columns.setdefault("whom", []).append(name)
            columns.setdefault("treated", []).append(float(shares.sum() if share is None else share.sum()))
            add(f"{self.word}gain", self._per_person(self.units, share, 0.0), "")
            if cost is not None:
                columns.setdefault("cost", []).append(spent)
            if money is not None:
                add(f"{self.word}profit", self._per_person(money, share, spent), "profit ")
            add("this plan better by", self._better_by(share, spent), "better ")
        gains = [f"{self.word}gain", "low", "high"]
        gains += [] if money is not None else ["this plan better by", "better low", "better high"]
        heads = {gains[0]: f"{gains[0]} {unit_text(rate)}"}
        heads |= {name: f"{name} per person" for name in ("cost", f"{self.word}profit")}
        scales = {name: unit_scale(rate) for name in gains}
        return Table(columns, notes=[self._note(rate)], heads=heads, scales=scales, library=library)

    def _note(self, rate: bool) -> str:
        what = f"gain {unit_text(rate)}" if self.money is None else "net profit per person"
        if self.word:
            return "predicted by the model; pass y and treatment of an experiment to measure it"
        if self.replicates is None:
            return f"better by: difference in {what}"
        return f"{level_text(self.replicates.interval)} intervals; better by: paired difference in {what}"

    def _brings(self, source: PathGains, share: Floats | None) -> tuple[float, Floats]:
        """What a plan brings per person, with its replicates; ``share`` of people get each arm at random, None is this plan."""
        if share is None:
            return float(source.gains[-1]), source.gain_samples[:, -1]
        return float(source.effects @ share), source.effect_samples @ share

    def _per_person(self, source: PathGains, share: Floats | None, cost: float) -> float:
        value, samples = self._brings(source, share)
        return self._number(value - cost, samples - cost)

    def _better_by(self, share: Floats | None, cost: float) -> float:
        """How much more this plan brings per person, in money where there is a value."""
        source, paid = (self.units, 0.0) if self.money is None else (self.money, self.cost_per_person - cost)
        (mine, my_samples), (other, their_samples) = self._brings(source, None), self._brings(source, share)
        return self._number(mine - other - paid, my_samples - their_samples - paid)

    def _number(self, value: float, samples: Floats, reduction: float | None = None) -> float:
        if self.replicates is None:
            return float(value)
        return Estimate(float(value), samples, self.replicates.interval, reduction)
