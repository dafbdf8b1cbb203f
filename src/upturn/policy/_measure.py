"""Measuring a plan in an experiment, beside the plans it competes with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats
from upturn._target import Label, Target
from upturn.metrics import Estimate, Table
from upturn.policy._path import Path, PathGains, measure

_BAND = 0.1  # the marginal gain is measured among the last tenth of the upgrades before the cut


class Ruler:
    """Measures a plan in an experiment: all numbers come from the same replicates, so differences are paired."""

    def __init__(
        self,
        path: Path,
        cut: int,
        experiment: Target,
        worth: float | Floats | None,
        level: float,
        n_bootstrap: int,
        random_state: Any,
        n_jobs: int | None,
    ) -> None:
        start = cut - int(np.ceil(_BAND * cut))
        stops = np.array([start, cut, len(path)])
        settings: dict[str, Any] = {"n_bootstrap": n_bootstrap, "random_state": random_state, "n_jobs": n_jobs}
        self.units = measure(path, stops, experiment, experiment.y, **settings)
        self.money: PathGains | None = None
        if isinstance(worth, float):
            scaled = [worth * array for array in vars(self.units).values()]
            self.money = PathGains(*scaled)
        elif worth is not None:
            self.money = measure(path, stops, experiment, experiment.y * worth, **settings)
        self.level, self.n = level, len(experiment.y)
        weight = np.ones(self.n) if experiment.weight is None else experiment.weight
        self.weight = weight / weight.sum()  # people count in shares and costs as they do in the gains
        self.band = float(self.weight[path.row[start:cut]] @ path.cost[start:cut])

    def gain(self, people: int) -> Estimate:
        return self._estimate(people * self.units.gains[-1], people * self.units.gain_samples[:, -1])

    def profit(self, people: int, spent: float) -> Estimate | None:
        """Of ``people`` people, ``spent`` being what is spent on as many."""
        if self.money is None:
            return None
        return self._estimate(people * self.money.gains[-1] - spent, people * self.money.gain_samples[:, -1] - spent)

    def cost_per_person(self, arm: NDArray[np.uint8], costs: Floats | None) -> float:
        """What a plan costs per person, treated or not."""
        if costs is None:
            return 0.0
        paid = np.where(arm > 0, costs[np.arange(len(arm)), np.maximum(arm, 1).astype(np.intp) - 1], 0.0)
        return float(self.weight @ paid)

    def marginal(self) -> Estimate | None:
        source = self.units if self.money is None else self.money
        if self.band <= 0:
            return None
        scale = 1.0 / self.band
        value = scale * (source.gains[1] - source.gains[0])
        return self._estimate(value, scale * (source.gain_samples[:, 1] - source.gain_samples[:, 0]))

    def comparison(self, arm: NDArray[np.uint8], costs: Floats | None, labels: list[Label]) -> Table:
        shares = np.bincount(arm, self.weight, minlength=len(labels))[1:].astype(np.float64)
        whom: list[tuple[str, Floats | None]] = [("this plan", None), ("nobody", np.zeros(len(shares)))]
        whom.append(("as many at random", shares))
        whom += [(f"everybody: {label}", np.eye(len(shares))[k]) for k, label in enumerate(labels[1:])]
        average = np.zeros(len(shares)) if costs is None else self.weight @ costs
        mine_costs = self.cost_per_person(arm, costs)
        columns: dict[str, list[Any]] = {}
        for name, share in whom:
            gain = self._per_1000(self.units, share, 0.0)
            treated = float(shares.sum() if share is None else share.sum())
            line = {"whom": name, "treated": treated, "gain per 1,000": float(gain), "low": gain.low, "high": gain.high}
            mine, other = self._per_1000(self.units, None, 0.0), gain
            cost = mine_costs if share is None else float(share @ average)
            if costs is not None:
                line["cost per 1,000"] = 1000 * cost
            if self.money is not None:
                mine, other = self._per_1000(self.money, None, mine_costs), self._per_1000(self.money, share, cost)
                line |= {"profit per 1,000": float(other), "profit low": other.low, "profit high": other.high}
            over = self._estimate(float(mine) - float(other), mine.samples - other.samples)
            line |= {"this plan better by": float(over), "better low": over.low, "better high": over.high}
            for key, entry in line.items():
                columns.setdefault(key, []).append(entry)
        what = "gain" if self.money is None else "net profit"
        return Table(
            columns, notes=[f"{self.level:.0%} intervals; better by: paired difference in {what} per 1,000 people"]
        )

    def _per_1000(self, source: PathGains, share: Floats | None, cost: float) -> Estimate:
        """What a plan brings per 1,000 people; ``share`` of people are given each arm at random, None is this plan."""
        if share is None:
            value, samples = float(source.gains[-1]), source.gain_samples[:, -1]
        else:
            value, samples = float(source.effects @ share), source.effect_samples @ share
        return self._estimate(1000 * (value - cost), 1000 * (samples - cost))

    def _estimate(self, value: float, samples: Floats) -> Estimate:
        return Estimate(float(value), samples, self.level)


def predicted_comparison(
    uplift: Floats,
    arm: NDArray[np.uint8],
    costs: Floats | None,
    worth: float | Floats | None,
    labels: list[Label],
) -> Table:
    n, k = uplift.shape
    rows = np.flatnonzero(arm)
    codes = arm[rows].astype(np.intp) - 1
    shares = np.bincount(codes, minlength=k) / n
    plans = [("nobody", np.zeros(k)), ("as many at random", shares)]
    plans += [(f"everybody: {label}", np.eye(k)[j]) for j, label in enumerate(labels[1:])]
    columns: dict[str, list[Any]] = {"whom": ["this plan", *(name for name, _ in plans)]}
    columns["treated"] = [float(share.sum()) for share in (shares, *(share for _, share in plans))]

    def both(name: str, matrix: Floats, scale: float) -> None:
        """A column: the plan's total of a matrix, and every other plan's from its shares and the arms' means."""
        means = matrix.mean(axis=0)
        columns[name] = [
            scale * float(matrix[rows, codes].sum()) / n,
            *(scale * float(share @ means) for _, share in plans),
        ]

    both("predicted gain per 1,000", uplift, 1000.0)
    if costs is not None:
        both("cost per 1,000", costs, 1000.0)
    if worth is not None:
        money = uplift * np.reshape(worth, (-1, 1))
        both("predicted profit per 1,000", money if costs is None else money - costs, 1000.0)
    return Table(columns, notes=["predicted by the model; pass y and treatment of an experiment to measure it"])
