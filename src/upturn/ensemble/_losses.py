r"""Losses of predicted effects on rows they were not learnt from, as a weighted regression of a response on a slope.

=======  =====================================  ==================  =========
loss     response r                             slope s             rows
=======  =====================================  ==================  =========
``r``    Y − m(X)                               T − e(X)            the arm's and control's
``dr``   doubly robust effect ψ                 1                   all
=======  =====================================  ==================  =========

The loss of effects τ is the mean of (r − b − s τ)², with an intercept b for the R-loss. Nuisance models are cross-fitted
once, on the folds of the candidates. What features explain of the outcome is noise to all that is asked of effects, so where no outcome
model is given it is the better mixture of boosted trees and a line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.linear_model import Ridge

from upturn._arrays import Bools, Floats, Indices, Ints
from upturn._experiment import Experiment
from upturn._nuisance import Shelf, crossfit_responses
from upturn.metrics._robust import robust_effects

Loss = Literal["r", "dr"]


@dataclass(frozen=True)
class Problem:
    """The regression of one arm: rows of the experiment, and for each a response, a slope, a weight and a fold."""

    rows: Indices
    response: Floats
    slope: Floats
    weight: Floats
    fold: Ints
    intercept: bool  # whether b is fitted beside the average effect

    @property
    def n_free(self) -> int:
        """Columns that are always fitted."""
        return 2 if self.intercept else 1

    def part(self, of_rows: Bools) -> Problem:
        """The regression of some of the experiment's rows; folds keep their numbers, and some may be empty."""
        keep = of_rows[self.rows]
        return replace(
            self,
            rows=self.rows[keep],
            response=self.response[keep],
            slope=self.slope[keep],
            weight=self.weight[keep],
            fold=self.fold[keep],
        )

    def grams(self, effects: Floats, n_folds: int) -> Floats:
        """Gram matrices, one a fold, of the free columns, candidates' effects and response; weights add up to as many rows as they are worth."""
        columns = [*self._free(), *(self.slope * effects[self.rows].T), self.response]
        worth = self.weight.sum() / (self.weight @ self.weight)
        table = np.sqrt(worth * self.weight)[:, None] * np.column_stack(columns)
        return np.array([table[mine].T @ table[mine] for mine in (self.fold == f for f in range(n_folds))])

    def _free(self) -> list[Floats]:
        return [np.ones(len(self.rows)), self.slope] if self.intercept else [self.slope]

    def losses(self, coefficients: list[Floats], effects: Floats) -> Floats:
        """Squared residuals of the rows, those of a fold by its own coefficients of the free columns and candidates."""
        columns = np.column_stack([*self._free(), *(self.slope * effects[self.rows].T)])
        fitted = np.einsum("ij,ij->i", columns, np.array(coefficients)[self.fold])
        return np.asarray((self.response - fitted) ** 2)

    def losses_as_predicted(self, effect: Floats, n_folds: int) -> Floats:
        """Squared residuals of effects taken as they are; only the intercept is fitted, on the other folds."""
        left = self.response - self.slope * effect[self.rows]
        if self.intercept:
            weight = np.bincount(self.fold, self.weight, n_folds)
            total = np.bincount(self.fold, self.weight * left, n_folds)
            left = left - ((total.sum() - total) / (weight.sum() - weight))[self.fold]
        return np.asarray(left**2)


def make_problems(
    loss: Loss,
    estimator: Any,
    data: Experiment,
    chance: Floats,
    folds: list[tuple[Indices, Indices]],
    seed: np.uint64,
    n_jobs: int | None,
    shelves: Sequence[Shelf] | None = None,
) -> list[Problem]:
    """The regressions of all arms; ``chance`` are cross-fitted propensities, control first, ``shelves`` those of the folds."""
    fold = np.empty(len(data), np.int64)
    for f, (_, test) in enumerate(folds):
        fold[test] = f
    make: Callable[..., list[Problem]] = _r_problems if loss == "r" else _dr_problems
    return make(estimator, data, chance, folds, fold, seed, n_jobs, shelves)


def _r_problems(estimator, data, chance, folds, fold, seed, n_jobs, shelves):  # type: ignore[no-untyped-def]
    pairs = [(0, k) for k in range(1, data.n_arms + 1)]
    means = _responses(estimator, data, pairs, folds, seed, n_jobs, shelves)
    problems = []
    for k in range(data.n_arms):
        rows = data.target.pair(k + 1)
        among_pair = chance[rows, k + 1] / (chance[rows, k + 1] + chance[rows, 0])
        slope = (data.arm[rows] == k + 1) - among_pair
        problems.append(Problem(rows, data.y[rows] - means[rows, k], slope, data.weights[rows], fold[rows], True))
    return problems


def _dr_problems(estimator, data, chance, folds, fold, seed, n_jobs, shelves):  # type: ignore[no-untyped-def]
    arms = [(code,) for code in range(data.n_arms + 1)]
    psi = robust_effects(data.y, data.arm, _responses(estimator, data, arms, folds, seed, n_jobs, shelves), chance)
    rows, ones = np.arange(len(data)), np.ones(len(data))
    return [Problem(rows, psi[:, k], ones, data.weights, fold, False) for k in range(data.n_arms)]


def _responses(
    estimator: Any,
    data: Experiment,
    groups: Sequence[tuple[int, ...]],
    folds: list[tuple[Indices, Indices]],
    seed: np.uint64,
    n_jobs: int | None,
    shelves: Sequence[Shelf] | None,
) -> Floats:
    """Expected outcomes of unseen rows, a column per group of arms; by default a mixture of trees and a line, a share for every group."""
    found = crossfit_responses(estimator, data, groups, folds, seed, n_jobs, shelves)
    if estimator is not None:
        return found
    lines = crossfit_responses(Ridge(), data, groups, folds, seed, n_jobs)
    for j, arms in enumerate(groups):
        weight, apart = data.weights * np.isin(data.arm, arms), found[:, j] - lines[:, j]
        size = float(weight @ apart**2)
        share = float(weight @ (apart * (data.y - lines[:, j]))) / size if size > 0 else 1.0
        found[:, j] = lines[:, j] + min(max(share, 0.0), 1.0) * apart
    return found
