"""How much UpliftAuto does: the models it tries, the rows they see at every step, and the time there is.

Effort is counted in rows × trees, never in seconds, so that a seed gives the same bits on any machine and any number of threads. A
``time_budget`` can only cut what the effort allows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from upturn.base import UpliftEstimator
from upturn.meta import OneVsControl
from upturn.policy import UpliftCalibrator
from upturn.trees import UpliftForest

EffortName = Literal["low", "normal", "high"]
_STEP = 4  # rows of a step are that many times those of the one before
_FIRST = 2_000  # rows of the first step at least: on fewer, halving would throw dice
_ASKED = 4  # times as many rows are asked about as are learnt from, where there are as many
_BOOSTED, _LINEAR = 100, 2  # trees of a model of outcomes, and what a linear one counts as
# A tree of a forest that estimates chances: processor time over that of a plain one, one arm, outcomes centred or not (the geometric mean of 18 fits of
# 50 trees to 1,000, 4,000 and 16,000 rows; 5 to 32).
_CHANCES = 14
# Models of a number that a learner fits, for k arms and cv folds inside.
_FITS: dict[str, Callable[[int, int], int]] = {
    "SLearner": lambda k, cv: 1,
    "TLearner": lambda k, cv: 1 + k,
    "XLearner": lambda k, cv: 1 + 3 * k,
    "DRLearner": lambda k, cv: cv * (1 + k) + k,
    "RLearner": lambda k, cv: 2 * cv * k,
}


@dataclass(frozen=True)
class Effort:
    """Rows that candidates are compared on, rows × trees of a last fit, trees of a forest, and whether all candidates take part."""

    compared: int
    fitted: float
    trees: int
    all_candidates: bool


EFFORTS: dict[str, Effort] = {
    "low": Effort(8_000, 3e7, 50, False),
    "normal": Effort(40_000, 6e7, 100, True),
    "high": Effort(160_000, 2e9, 400, True),
}


@dataclass(frozen=True)
class Step:
    """A step of the halving: rows learnt from, rows asked about, and the share of its trees that a forest grows."""

    learnt: int
    asked: int
    trees: float


def make_steps(n: int, effort: Effort) -> list[Step]:
    """Steps up to all rows that candidates are compared on, each with four times the rows of the one before."""
    most = min(n, effort.compared)
    sizes = [most]
    while sizes[-1] // _STEP >= _FIRST:
        sizes.append(sizes[-1] // _STEP)
    sizes.reverse()
    return [Step(size, min(n, _ASKED * size), 0.5 ** (len(sizes) - 1 - place)) for place, size in enumerate(sizes)]


def with_trees(model: UpliftEstimator, share: float) -> UpliftEstimator:
    """The model with a share of its trees, at least 20; itself where it has no such number."""
    names = [name for name in model.get_params() if name.split("__")[-1] == "n_estimators"]
    values = model.get_params()
    fewer = {name: max(min(20, values[name]), round(share * values[name])) for name in names}
    return model.set_params(**fewer) if share < 1 and fewer else model


def trees_of(model: Any, n_arms: int) -> int:
    """About as many trees as the model fits, or work that takes as long."""
    if isinstance(model, UpliftCalibrator):
        return (1 + (model.cv if isinstance(model.cv, int) else 5)) * trees_of(model.estimator, n_arms)
    if isinstance(model, OneVsControl):
        return n_arms * (_LINEAR if model.estimator is None else trees_of(model.estimator, 1))
    if hasattr(model, "n_estimators"):
        return int(model.n_estimators) * _weight_of_tree(model)
    folds = getattr(model, "cv", 5)
    count = _FITS.get(type(model).__name__)
    fits = n_arms if count is None else count(n_arms, folds if isinstance(folds, int) else 5)
    return fits * (_BOOSTED if getattr(model, "estimator", 0) is None else _LINEAR)


def _weight_of_tree(model: Any) -> int:
    """How many plain trees take as long as one of the model's."""
    chances = getattr(model, "propensity", None)
    if isinstance(model, UpliftForest) and isinstance(chances, str) and chances == "trees":
        return _CHANCES
    return 2 if getattr(model, "center", False) is True else 1


class Clock:
    """The time that is left, and what a row of a tree takes."""

    def __init__(self, budget: float | None) -> None:
        self._start, self._budget, self.cuts = time.monotonic(), budget, list[str]()
        self._pace = 0.0

    @property
    def left(self) -> float:
        """Seconds until the budget is spent; infinity without one."""
        return np.inf if self._budget is None else self._start + self._budget - time.monotonic()

    def paced(self, work: float, seconds: float) -> None:
        """Remember how long some work, in rows × trees, has taken."""
        self._pace = seconds / max(work, 1.0)

    def affords(self, work: float, share: float) -> bool:
        """Whether work fits into a share of the time that is left, at the pace of the work before it."""
        return work * self._pace <= share * self.left

    def affordable(self, share: float) -> float:
        """Rows × trees that fit into a share of the time that is left."""
        if self._budget is None or self._pace == 0:
            return np.inf
        return max(share * self.left, 0.0) / self._pace
