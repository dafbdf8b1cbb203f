r"""Whether effects differ at all: the three looks that decide between a stack and one effect for everybody.

The first asks whether what candidates predict for rows they have not seen goes with effects, the second whether any single feature does, the third
whether all features together do, along a line. The first sees what only models see, such as interactions; the others are surer of themselves where
one feature, or many a little, tell it all, because they need not learn a direction first. The p-values are combined by the Cauchy
distribution, which holds however they hang together:

.. math:: p = \tfrac12 - \tfrac1\pi \arctan \Bigl( \tfrac13 \sum_{i=1}^3 \tan\bigl((\tfrac12 - p_i)\,\pi\bigr) \Bigr).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, ndtr, ndtri
from scipy.stats import rankdata

from upturn._arrays import Floats
from upturn._experiment import Experiment
from upturn._results import number_text
from upturn.ensemble._losses import Problem

LEVEL = 0.09  # of the test; with several arms, of all together
_MOST_LEVELS = 20  # of a categorical column that are looked at, the most frequent ones
_SEEN = 4.0  # standard errors of the best ranking there could be at which differences are found 9 times in 10
_ROWS_A_FEATURE = 20  # below which features are not looked at together
_NOTHING = 1e-300
_HINT = 0.3  # standard errors below which predictions say nothing about how many rows would show more


@dataclass(frozen=True)
class Evidence:
    """The statistics of the first two looks, the p-value of all, and whether that is enough.

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
    first = _terms(problem, response, score[:, None])[:, 0]
    z = float(first.sum() / max(np.sqrt(2.0 * (first @ first)), _NOTHING))
    terms = _terms(problem, response, features[problem.rows])
    size = np.sqrt(np.einsum("ij,ij->j", terms, terms))
    single = np.abs(terms.sum(axis=0)) / np.where(size > _NOTHING, size, np.inf)
    largest, n_features = float(single.max(initial=0.0)), len(single)
    alone = -np.expm1(max(n_features, 1) * np.log1p(-min(2 * float(ndtr(-largest)), 1 - 1e-12)))  # Šidák
    looks = [float(ndtr(-z)), float(alone)]
    if 1 < n_features <= len(terms) / _ROWS_A_FEATURE:
        looks.append(_together(terms))
    pvalue = cauchy_combination(looks)
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


def _terms(problem: Problem, response: Floats, scores: Floats) -> Floats:
    """What every row adds to the covariance of every score with effects."""
    table = _without_average(problem, problem.slope[:, None] * scores)
    table *= (problem.weight * response)[:, None]
    return table


def _together(terms: Floats) -> float:
    """The p-value of all scores' covariances with effects being 0: χ² of as many degrees as they have directions."""
    total, (size, direction) = terms.sum(axis=0), np.linalg.eigh(terms.T @ terms)
    kept = size > 1e-9 * max(float(size[-1]), _NOTHING)
    along = direction[:, kept].T @ total
    return float(chdtrc(int(kept.sum()), along @ (along / size[kept]))) if kept.any() else 1.0


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
