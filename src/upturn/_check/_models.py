"""The checks that fit a model on one half of the rows and look at the other: who is treated, and whose effect differs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from upturn._arrays import Bools, Floats, Indices
from upturn._check import _statistics as statistics
from upturn._check._classifier import held_out_scores
from upturn._check._clustered import by_cluster
from upturn._check._report import Finding, p_text
from upturn._check._trial import Pair, Trial
from upturn._encode import BLOCK, LinearEncoder
from upturn._levels import code_levels, number_levels
from upturn._target import Label
from upturn._units import is_rate, units_text

MOST_ROWS = 100_000  # of an arm and control that the models see
LEAST_ROWS = 50  # in every arm; with fewer no model is fitted
LEAST_CLUSTERS = 20  # in every arm, where clusters were assigned
MOST_COLUMNS = 1_000  # that the classifier sees, those in which the arms of its half differ most
_CLASSIFIER, _HETEROGENEITY = 0, 1  # what rows are drawn for
_POWER = 2.8016  # z(.975) + z(.8): a two-sided test at 5% finds a true value of 2.8 standard errors with 80% power


def tell_apart(trial: Trial, limit: float) -> Finding:
    """Fit on one half, test on the other, both ways: each of the two p-values is valid, twice the smaller one too."""
    if trial.data.target.sizes.min() < LEAST_ROWS:
        return Finding("classifier", "skipped", None, limit, f"fewer than {LEAST_ROWS} rows in an arm")
    if trial.whole and trial.arm_sizes.min() < LEAST_CLUSTERS:
        return Finding("classifier", "skipped", None, limit, f"fewer than {LEAST_CLUSTERS} clusters in an arm")
    pvalues, areas = [], []
    for whole in trial.pairs:
        pair = trial.thinned(whole, MOST_ROWS, _CLASSIFIER)
        half = trial.half(pair, _CLASSIFIER)
        sides = [_area(trial, pair, fit) for fit in (half, ~half)]
        areas.append(float(np.mean([area for area, _ in sides])))
        pvalues.append(min(1.0, 2 * min(p for _, p in sides)))
    best, labels = int(np.argmin(pvalues)), trial.data.target.labels
    pvalue = min(1.0, len(pvalues) * pvalues[best])
    whom = "" if len(pvalues) == 1 else f" for {labels[best + 1]!r} against {labels[0]!r}"
    seen = f"area under the ROC curve {areas[best]:.3f}{whom} (chance is .5), {p_text(pvalue)}"
    if pvalue >= limit:
        return Finding("classifier", "ok", pvalue, limit, seen)
    return Finding(
        "classifier",
        "warning",
        pvalue,
        limit,
        seen,
        f"A model can tell from the features who was treated{_apart(labels, pvalues, limit)}, which it cannot in a randomised "
        "experiment. If assignment followed rules, estimate the propensity and weight by it; if not, look for features that leak "
        "the arm.",
    )


def _apart(labels: list[Label], pvalues: list[float], limit: float) -> str:
    """Which of several arms can be told from control."""
    if len(pvalues) == 1:
        return ""
    found = [repr(label) for label, p in zip(labels[1:], pvalues, strict=True) if len(pvalues) * p < limit]
    return f" with {' and with '.join(found)}"


def _area(trial: Trial, pair: Pair, fit: Bools) -> tuple[float, float]:
    """Return area and p-value, on the rows not in ``fit``, of a model of who is treated made with those in it."""
    (_, rows, treated), data = pair, trial.data
    known = _telling(data.X, rows[fit], treated[fit])
    if not len(known):
        return 0.5, 1.0
    features, categorical = data.X[np.ix_(rows, known)], np.array([data.schema.levels[j] is not None for j in known])
    codes = number_levels(features[fit], replace(data.schema, levels=tuple(data.schema.levels[j] for j in known)))
    score = held_out_scores(code_levels(features, codes), categorical, treated, fit)
    if trial.whole and trial.clusters is not None:
        return statistics.auc_test(*by_cluster(score, treated[~fit], trial.clusters[rows[~fit]]))
    return statistics.auc_test(score, treated[~fit])


def _telling(X: Floats, rows: Indices, treated: Bools) -> Indices:
    """The columns that a model of who is treated is made with: those that have a value in these rows.

    A model costs its histograms for every column, so of more than ``MOST_COLUMNS`` those are kept in which the groups differ most, by
    mean or by how often they are missing, in standard errors. Only the rows of the fit are looked at, so what the model says of the
    others stays a fair test.
    """
    p = X.shape[1]
    step = p if p <= MOST_COLUMNS else max(1, BLOCK // len(rows))
    seen, apart = np.empty(p, dtype=bool), np.zeros(p)
    for start in range(0, p, step):
        columns = slice(start, start + step)
        block = X[rows, columns]
        gone = np.isnan(block)
        seen[columns] = ~gone.all(axis=0)
        if p > MOST_COLUMNS:
            apart[columns] = np.maximum(
                _in_errors(block, ~gone, treated), _in_errors(gone, np.ones_like(gone), treated)
            )
    known = np.flatnonzero(seen)
    if len(known) <= MOST_COLUMNS:
        return known
    return np.sort(known[np.argsort(-apart[known], kind="stable")[:MOST_COLUMNS]])


def _in_errors(values: Floats | Bools, known: Bools, treated: Bools) -> Floats:
    """How far the means of two groups are apart in every column, in standard errors; infinite where only that differs."""
    size = np.abs(values).max(axis=0, where=known, initial=0.0)
    units = np.where(known, values, 0.0) / np.where(size > 0, size, 1.0)
    means, errors = [], []
    for group in (treated, ~treated):
        n = np.maximum(known[group].sum(axis=0), 1)
        mean = units[group].sum(axis=0) / n
        means.append(mean)
        errors.append((np.where(known[group], units[group] - mean, 0.0) ** 2).sum(axis=0) / n**2)
    square = errors[0] + errors[1]
    gap = np.abs(means[0] - means[1])
    return np.where(square > 0, gap / np.sqrt(np.where(square > 0, square, 1.0)), np.where(gap > 0, np.inf, 0.0))


def heterogeneity(trial: Trial, sound: bool) -> Finding:
    """Fit two ridge regressions on one half and test their difference on the other, both ways, arm by arm."""
    data, parts = trial.data, []
    for k, rows, given in trial.pairs:
        seen = trial.observed[rows]
        whole = Pair(k, rows[seen], given[seen])
        clusters = trial.clusters_of(whole.rows)
        y, ones = data.y[whole.rows], np.ones(len(whole.rows))
        effect = statistics.mean_difference(y, whole.treated, ones, clusters)
        weighed = statistics.mean_difference(y, whole.treated, trial.weights[whole.rows], clusters).value
        pair = trial.thinned(whole, MOST_ROWS, _HETEROGENEITY)
        treated = pair.treated
        if min(treated.sum(), (~treated).sum()) < LEAST_ROWS:
            parts.append((1.0, effect, weighed, len(whole.rows)))
            continue
        X = data.X if len(pair.rows) == len(data) else data.X[pair.rows]  # a wide table is not copied
        y, half = data.y[pair.rows], trial.half(pair, _HETEROGENEITY)
        Z = LinearEncoder.fit(X, data.schema).transform(X)
        pvalues = []
        for fit in (half, ~half):
            models = [_ridge(Z[fit & group], y[fit & group]) for group in (~treated, treated)]
            base, gain = [m[0] + Z[~fit] @ m[1] for m in models]
            held = trial.clusters_of(pair.rows[~fit])
            pvalues.append(statistics.calibration_test(y[~fit], treated[~fit], base, gain - base, held))
        parts.append((min(1.0, 2 * min(pvalues)), effect, weighed, len(whole.rows)))
    pvalue = min(1.0, len(parts) * min(p for p, *_ in parts))
    _, effect, mean, n = min(parts, key=lambda part: part[0])
    # two halves of the people have effects with twice the variance each, so their difference has 2 se
    smallest = _POWER * 2 * effect.se
    if not np.isfinite(smallest):
        return Finding("heterogeneity", "skipped", None, None, "too few outcomes to tell")
    if smallest <= 1e-12 * np.abs(trial.data.y).max():
        return Finding(
            "heterogeneity", "skipped", None, None, "outcomes are all alike in each arm: nothing to tell people by"
        )
    if pvalue < 0.05:
        return Finding(
            "heterogeneity",
            "note",
            pvalue,
            0.05,
            f"seen, {p_text(pvalue)}: the features tell whose effect is larger",
            "Effects differ between people in a way the features can tell: an uplift model is worth fitting."
            if sound
            else "Effects seem to differ between people, but arms that are not alike can look the same: settle the warnings "
            "first.",
        )
    rate = is_rate(data.target)
    average = units_text(mean, rate, sign="+")
    wanted = n * (smallest / mean) ** 2 if mean else np.inf
    if wanted <= n:
        advice = (
            f"This is enough rows for halves whose effects differ by as much as the average effect ({average}), "
            "and a simple model found none: if effects differ, then by less, or in a less simple way."
        )
    else:
        rows_wanted = f"about {_rounded(wanted)} rows" if wanted < 1e9 else "far more rows than anyone has"
        advice = (
            "Differences in effect are not visible at this size with a simple model. To see halves whose effects differ "
            f"by as much as the average effect ({average}) takes {rows_wanted}; expect little of an uplift "
            "model below that."
        )
    return Finding(
        "heterogeneity",
        "note",
        pvalue,
        0.05,
        f"not seen, {p_text(pvalue)}; halves whose effects differ by {units_text(smallest, rate)} would be found 4 times in 5",
        advice,
    )


def _ridge(Z: Floats, y: Floats) -> tuple[float, Floats]:
    """Return intercept and slopes of a ridge regression with a penalty of one row in ten, at least one.

    With more columns than rows from (A A' + λ I) a = y - mean and slopes A' a, which is the same thing and as large as the rows.
    """
    mean, centre, penalty = float(y.mean()), Z.mean(axis=0), max(1.0, 0.1 * len(Z))
    A = Z - centre
    slopes: Floats
    if len(A) < A.shape[1]:
        slopes = A.T @ np.linalg.solve(A @ A.T + penalty * np.eye(len(A)), y - mean)
    else:
        slopes = np.linalg.solve(A.T @ A + penalty * np.eye(A.shape[1]), A.T @ (y - mean))
    return mean - float(centre @ slopes), slopes


def _rounded(rows: float) -> str:
    power = 10 ** max(int(np.floor(np.log10(max(rows, 1)))) - 1, 0)
    return f"{int(np.ceil(rows / power) * power):,}"
