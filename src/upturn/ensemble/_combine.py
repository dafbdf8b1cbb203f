"""One arm of a stack: the weights of its candidates, what they are centred at, and what each of them gains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from upturn._arrays import Floats
from upturn.ensemble._losses import Problem
from upturn.ensemble._weights import Weighting, choose_ridge, fit_weights, fit_without_each


@dataclass(frozen=True)
class Combined:
    """What predicts the effects of one arm: ``average + weights · (effects - means)``.

    ``losses`` has a row for the average effect, the stack and every candidate: the cross-validated loss, how much less it is
    than that of the average effect, and the standard error of that difference.
    """

    weights: Floats
    means: Floats
    average: float
    ridge: float
    losses: Floats


def combine(problem: Problem, effects: Floats, n_folds: int, ridge: float | str, weighting: Weighting) -> Combined:
    """The weights of candidates whose effects of unseen rows, a column each, are given; "auto" lets the folds choose the ridge."""
    predicted = np.ascontiguousarray(effects)
    means = problem.weight @ predicted[problem.rows] / problem.weight.sum()
    centred, n_free = predicted - means, problem.n_free
    grams = problem.grams(centred, n_folds)
    ridge = choose_ridge(grams, n_free, weighting) if isinstance(ridge, str) else float(ridge)
    coefficients = fit_weights(grams.sum(axis=0), n_free, ridge, weighting)
    losses = [problem.losses(fit_without_each(grams, n_free, shrunk, weighting), centred) for shrunk in (np.inf, ridge)]
    losses += [problem.losses_as_predicted(column, n_folds) for column in predicted.T]
    table = [
        (np.average(loss, weights=problem.weight), *mean_and_error(losses[0] - loss, problem.weight)) for loss in losses
    ]
    return Combined(coefficients[n_free:], means, float(coefficients[n_free - 1]), ridge, np.array(table))


def mean_and_error(values: Floats, weight: Floats) -> tuple[float, float]:
    """Weighted mean and its standard error."""
    total = weight.sum()
    mean = float(weight @ values / total)
    return mean, float(np.sqrt(weight**2 @ (values - mean) ** 2) / total)
