"""The path of upgrades from nobody treated to everybody, and what an experiment says it gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats, Ints
from upturn._parallel import run_parallel
from upturn._seeds import make_seed
from upturn._target import Target
from upturn.kernels.budget import bootstrap_path_gains, fill, path_gains, upgrades
from upturn.kernels.sorting import argsort_descending
from upturn.metrics._estimate import check_replicates, rows_by_stratum

_BLOCK = 25  # replicates of one kernel call


@dataclass(frozen=True)
class Path:
    """Upgrades from the steepest down: ``row`` goes from arm ``before`` to arm ``after`` at ``cost``, gaining ``benefit``.

    ``slope`` is benefit per unit of cost, or per person when people are what is limited.
    """

    row: NDArray[np.uint32]
    before: NDArray[np.uint8]
    after: NDArray[np.uint8]
    slope: Floats
    cost: Floats
    benefit: Floats

    def __len__(self) -> int:
        return len(self.row)

    def affordable(self, budget: float) -> int:
        """How many upgrades from the top a budget pays for."""
        spent = np.cumsum(self.cost)
        return int(np.searchsorted(spent, _rounded_up(budget), side="right"))

    def spend(self, budget: float, n: int) -> tuple[Path, int]:
        """The upgrades a budget is spent on: those from the top (returns how many), then what fits into the rest."""
        stop = self.affordable(budget)
        taken = np.arange(len(self)) < stop
        left = _rounded_up(budget) - float(self.cost[:stop].sum())
        fill(self.row, self.before, self.after, self.cost, stop, left, self.assignment(n, stop), taken)
        return Path(*(column[taken] for column in vars(self).values())), stop

    def assignment(self, n: int, stop: int) -> NDArray[np.uint8]:
        """The arm of every row after ``stop`` upgrades."""
        arm = np.zeros(n, dtype=np.uint8)
        arm[self.row[:stop]] = self.after[:stop]  # a row's later upgrades come later, and the last one stays
        return arm


def _rounded_up(budget: float) -> float:
    """A budget that sums of costs do not miss by a rounding error."""
    return budget + 1e-9 * max(abs(budget), 1e-300)


def make_path(cost: Floats, benefit: Floats, floor: float, random_state: Any) -> Path:
    """The path that gains most at every budget, of upgrades steeper than ``floor``; ties are in random order."""
    size = cost.size
    row, before, after = np.empty(size, np.uint32), np.empty(size, np.uint8), np.empty(size, np.uint8)
    slope, extra_cost, extra_benefit = np.empty(size), np.empty(size), np.empty(size)
    columns: tuple[NDArray[Any], ...] = (row, before, after, slope, extra_cost, extra_benefit)
    count = upgrades(cost, benefit, float(floor), *columns)
    if not count:
        return Path(*(column[:0] for column in columns))
    order, last = argsort_descending(slope[:count])
    if not last.all():  # upgrades of one slope belong to different rows, so any order of them will do
        tie = np.concatenate(([0], np.cumsum(last[:-1])))
        order = order[np.lexsort((np.random.default_rng(make_seed(random_state)).random(count), tie))]
    return Path(*(column[order] for column in columns))


@dataclass(frozen=True)
class PathGains:
    """Gains per person at some stops of a path, and average effects of the arms, with their bootstrap replicates."""

    gains: Floats
    effects: Floats
    gain_samples: Floats
    effect_samples: Floats


def measure(
    path: Path,
    stops: Ints,
    target: Target,
    y: Floats,
    *,
    n_bootstrap: int,
    random_state: Any,
    n_jobs: int | None,
) -> PathGains:
    """What an experiment on the same rows says a path gains; ``y`` may be the outcome in money."""
    weight = np.empty(0) if target.weight is None else target.weight
    columns = (path.row, path.before, path.after, np.ascontiguousarray(stops, dtype=np.int64), target.arm, y, weight)
    gains, effects = np.empty(len(stops)), np.empty(target.n_arms)
    path_gains(*columns, gains, effects)
    draws = rows_by_stratum(target.arm, target.n_arms + 1, target.weight)
    check_replicates(n_bootstrap)
    gain_samples, effect_samples = np.empty((n_bootstrap, len(stops))), np.empty((n_bootstrap, target.n_arms))
    seed = make_seed(random_state)

    def block(first: int) -> None:
        part = slice(first, first + _BLOCK)
        bootstrap_path_gains(seed, first, *draws, *columns, gain_samples[part], effect_samples[part])

    run_parallel(block, range(0, n_bootstrap, _BLOCK), n_jobs=n_jobs)
    return PathGains(gains, effects, gain_samples, effect_samples)
