r"""Whether effects differ at all: the two looks that decide between a stack and one effect for everybody.

The first asks whether what candidates predict for rows they have not seen goes with effects, the second whether any single feature does. The
first sees what only models see, such as interactions; the second is surer of itself where one feature tells it all, because it need not
learn a direction first. Their p-values are combined by the Cauchy distribution, which holds however they hang together:

.. math:: p = \tfrac12 - \tfrac1\pi \arctan \Bigl( \tfrac12 \sum_{i=1}^2 \tan\bigl((\tfrac12 - p_i)\,\pi\bigr) \Bigr).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from upturn._arrays import Floats
from upturn._experiment import Experiment
from upturn._results import number_text
from upturn.ensemble._losses import Problem

LEVEL = 0.08  # of the test; with several arms, of all together
_MOST_LEVELS = 20  # of a categorical column that are looked at, the most frequent ones
_SEEN = 4.0  # standard errors of the best ranking there could be at which differences are found 9 times in 10
_HINT = 0.3  # standard errors below which predictions say nothing about how many rows would show more


@dataclass(frozen=True)
class Evidence:
    """The statistics of both looks, the p-value of both together, and whether that is enough.

    ``rows`` is how many would show effects that differ as much as these rows suggest, NaN where they suggest nothing; ``spread`` the
    standard deviation of effects that these rows would have shown.
    """

    z: float
    z_feature: float
    pvalue: float
    rows: float
    spread: float
    enough: bool


def weigh_evidence(problem: Problem, effects: Floats, features: Floats, n_folds: int, n_arms: int) -> Evidence:
    """Test whether effects differ, from candidates' effects of unseen rows and from features, a column each."""
    response, slope = _without_average(problem, problem.response), problem.slope
    score = _average_score(problem, effects, n_folds)
    # A pair of rows in different folds counts twice, each having taught what the other was asked: the variance doubles.
    z = float(_standard_errors(problem, response, score[:, None])[0]) / np.sqrt(2.0)
    single = np.abs(_standard_errors(problem, response, features[problem.rows]))
    largest = float(single.max(initial=0.0))
    chance = -np.expm1(max(len(single), 1) * np.log1p(-min(2 * float(ndtr(-largest)), 1 - 1e-12)))  # Šidák
    pvalue = cauchy_combination([float(ndtr(-z)), float(chance)])
    level = -np.expm1(np.log1p(-LEVEL) / n_arms)
    n, weight = len(problem.rows), problem.weight
    noise, steep = (float(weight @ values**2 / weight.sum()) for values in (response, slope))
    spread = _SEEN * float(np.sqrt(noise / (steep * n))) if steep > 0 else np.inf
    needed = float(ndtri(1 - level) + ndtri(0.9))
    rows = n * max(needed / z, 1.0) ** 2 if z > _HINT else np.nan
    return Evidence(z, largest, pvalue, rows, spread, bool(pvalue < level))


def cauchy_combination(pvalues: list[float]) -> float:
    """One p-value of several, however they depend on each other (Liu and Xie, 2020)."""
    inside = np.clip(pvalues, 1e-15, 1 - 1e-6)
    return float(0.5 - np.arctan(np.mean(np.tan((0.5 - inside) * np.pi))) / np.pi)


def _without_average(problem: Problem, columns: Floats) -> Floats:
    """What the intercept and the average effect leave of columns."""
    free = [problem.slope] if not problem.intercept else [np.ones(len(problem.rows)), problem.slope]
    root = np.sqrt(problem.weight)
    table = root[:, None] * np.column_stack(free)
    by = root if columns.ndim == 1 else root[:, None]
    fitted = np.column_stack(free) @ np.linalg.lstsq(table, by * columns, rcond=None)[0]
    return np.asarray(columns - fitted)


def _standard_errors(problem: Problem, response: Floats, scores: Floats) -> Floats:
    """How many standard errors every score's covariance with effects is from 0, whatever the distribution of outcomes."""
    table = _without_average(problem, problem.slope[:, None] * scores)
    table *= (problem.weight * response)[:, None]
    size = np.sqrt(np.einsum("ij,ij->j", table, table))
    return np.asarray(np.divide(table.sum(axis=0), size, out=np.zeros(table.shape[1]), where=size > 1e-300))


def _average_score(problem: Problem, effects: Floats, n_folds: int) -> Floats:
    """Mean of the candidates' predictions, each in units of its spread and without the means of folds."""
    mine, weight, fold = effects[problem.rows], problem.weight, problem.fold
    total = np.maximum(np.bincount(fold, weight, n_folds), 1e-300)
    means = np.array([np.bincount(fold, weight * column, n_folds) / total for column in mine.T])
    centred = mine - means[:, fold].T
    spread = np.sqrt(weight @ centred**2 / weight.sum())
    told = spread > 1e-9 * np.sqrt(weight @ mine**2 / weight.sum())
    return np.asarray((centred[:, told] / spread[told]).sum(axis=1))


def feature_scores(data: Experiment) -> Floats:
    """Every feature as the second look sees it: normal scores of ranks, levels as 0 and 1, missing values in the middle."""
    columns: list[Floats] = []
    for j, categorical in enumerate(data.schema.categorical):
        x = data.X[:, j]
        known = np.isfinite(x)
        if known.sum() < len(x) and 0.01 < known.mean() < 0.99:
            columns.append(known.astype(np.float64))
        if categorical:
            levels, counts = np.unique(x[known], return_counts=True)
            common = levels[np.argsort(-counts, kind="stable")][: min(_MOST_LEVELS, max(len(levels) - 1, 0))]
            columns += [(x == level).astype(np.float64) for level in common]
        elif known.any() and np.ptp(x[known]) > 0:
            score = np.zeros(len(x))
            score[known] = ndtri((rankdata(x[known]) - 0.5) / known.sum())
            columns.append(score)
    return np.column_stack(columns) if columns else np.empty((len(data), 0))


def words_of(evidence: Floats, n: int) -> str:
    """What to tell people of a model that predicts one effect for everybody; a row of ``evidence`` is an arm."""
    suggested = evidence[:, 3][np.isfinite(evidence[:, 3])]
    rows, spread = float(suggested.min(initial=np.inf)), float(evidence[:, 4].min())
    more = (
        f"at about {number_text(float(f'{rows:.1g}'))} rows they would show, if they are what the models suspect"
        if n < rows < np.inf
        else "nothing suggests how many rows would show any"
    )
    return (
        f"no differences between people's effects that {n:,} rows can show, so everybody is predicted the average effect; {more}. Effects with a "
        f"standard deviation of {number_text(float(f'{spread:.2g}'))} or more would probably have been seen. Outcomes that vary less, or features "
        "that say more, help as rows do"
    )
