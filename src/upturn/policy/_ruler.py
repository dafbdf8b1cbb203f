"""Measuring a plan in an experiment, beside the plans it competes with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._target import Label, Target
from upturn.metrics import Estimate, Table
from upturn.policy._path import Path, PathGains, measure

_BAND = 0.1  # the marginal gain is measured among the last tenth of the upgrades before the cut


class Ruler:
    """Measures a plan in an experiment: all numbers come from the same replicates, so differences are paired."""

    def __init__(
        self,
        path: Path,
        stop: int,
        experiment: Target,
        worth: float | NDArray[np.float64] | None,
        level: float,
        n_bootstrap: int,
        random_state: Any,
        n_jobs: int | None,
    ) -> None:
        start = stop - int(np.ceil(_BAND * stop))
        stops = np.array([start, stop])
        settings: dict[str, Any] = {"n_bootstrap": n_bootstrap, "random_state": random_state, "n_jobs": n_jobs}
        self.units = measure(path, stops, experiment, experiment.y, **settings)
        self.money: PathGains | None = None
        if isinstance(worth, float):
            scaled = [worth * array for array in vars(self.units).values()]
            self.money = PathGains(*scaled)
        elif worth is not None:
            self.money = measure(path, stops, experiment, experiment.y * worth, **settings)
        self.level, self.n = level, len(experiment.y)
        self.band = float(path.cost[start:stop].sum())

    def gain(self, people: int) -> Estimate:
        return self._estimate(people * self.units.gains[1], people * self.units.gain_samples[:, 1])

    def profit(self, people: int, spent: float) -> Estimate | None:
        if self.money is None:
            return None
        return self._estimate(people * self.money.gains[1] - spent, people * self.money.gain_samples[:, 1] - spent)

    def marginal(self) -> Estimate | None:
        source = self.units if self.money is None else self.money
        if self.band <= 0:
            return None
        scale = self.n / self.band
        value = scale * (source.gains[1] - source.gains[0])
        return self._estimate(value, scale * (source.gain_samples[:, 1] - source.gain_samples[:, 0]))

    def comparison(self, arm: NDArray[np.uint8], costs: NDArray[np.float64] | None, labels: list[Label]) -> Table:
        shares = np.bincount(arm, minlength=len(labels))[1:] / self.n
        whom: list[tuple[str, NDArray[np.float64] | None]] = [("this plan", None), ("nobody", np.zeros(len(shares)))]
        whom.append(("as many at random", shares))
        whom += [(f"everybody: {label}", np.eye(len(shares))[k]) for k, label in enumerate(labels[1:])]
        average = np.zeros(len(shares)) if costs is None else costs.mean(axis=0)
        spent = 0.0 if costs is None else float(sum(costs[arm == k + 1, k].sum() for k in range(len(shares))))
        columns: dict[str, list[Any]] = {}
        for name, share in whom:
            value, samples = self._plan(self.units, share)
            gain = self._estimate(1000 * value, 1000 * samples)
            mine, mine_samples = self._plan(self.units, None)
            over = self._estimate(1000 * (mine - value), 1000 * (mine_samples - samples))
            line = {
                "whom": name,
                "treated": float(shares.sum() if share is None else share.sum()),
                "gain per 1,000": float(gain),
                "low": gain.low,
                "high": gain.high,
                "this plan better by": float(over),
                "better low": over.low,
                "better high": over.high,
            }
            if costs is not None:
                cost = spent if share is None else float(share @ average) * self.n
                line["cost"] = cost
                if self.money is not None:
                    line["net profit"] = self.n * self._plan(self.money, share)[0] - cost
            for key, entry in line.items():
                columns.setdefault(key, []).append(entry)
        return Table(columns)

    def _plan(self, source: PathGains, share: NDArray[np.float64] | None) -> tuple[float, NDArray[np.float64]]:
        if share is None:
            return float(source.gains[1]), source.gain_samples[:, 1]
        return float(source.effects @ share), source.effect_samples @ share

    def _estimate(self, value: float, samples: NDArray[np.float64]) -> Estimate:
        return Estimate(float(value), samples, self.level)


def predicted_comparison(
    uplift: NDArray[np.float64],
    arm: NDArray[np.uint8],
    costs: NDArray[np.float64] | None,
    worth: float | NDArray[np.float64] | None,
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

    def both(name: str, matrix: NDArray[np.float64], scale: float) -> None:
        """A column: the plan's total of a matrix, and every other plan's from its shares and the arms' means."""
        means = matrix.mean(axis=0)
        columns[name] = [
            scale * float(matrix[rows, codes].sum()) / n,
            *(scale * float(share @ means) for _, share in plans),
        ]

    both("predicted gain per 1,000", uplift, 1000.0)
    if costs is not None:
        both("cost", costs, float(n))
        if worth is not None:
            both("predicted net profit", uplift * np.reshape(worth, (-1, 1)) - costs, float(n))
    return Table(columns, notes=["predicted by the model; pass y and treatment of an experiment to measure it"])
