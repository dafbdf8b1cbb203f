"""Boosted trees that tell two groups apart, against the histogram boosting of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from upturn._check._classifier import _edges, held_out_scores


def table(seed, gaps):
    """Numbers with and without ties, and levels, those of the last few rows of the held half unknown to the fit."""
    rng = np.random.default_rng(seed)
    n = 160 + 60 * (seed % 4)
    X = np.column_stack([
        rng.normal(size=n), rng.integers(0, 4, n), np.round(rng.normal(size=n), 1), rng.integers(0, 9, n), rng.integers(0, 2, n)
    ]).astype(float)  # fmt: skip
    categorical = np.array([False, True, False, True, False])
    if gaps:
        X[rng.random(n) < 0.2, 2] = np.nan
        X[rng.random(n) < 0.2, 3] = np.nan
    fit = np.arange(n) % 2 == 0
    X[~fit & (np.arange(n) > n - 20), 1] = np.nan
    push = (seed % 3) * (1.0 * (X[:, 0] > 0) + (X[:, 3] == 2) - np.isnan(X[:, 2]))
    return X, categorical, rng.random(n) < 1 / (1 + np.exp(0.5 - push)), fit


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_scikit_learn(seed, gaps):
    X, categorical, treated, fit = table(seed, gaps)
    model = HistGradientBoostingClassifier(
        max_iter=20, learning_rate=0.2, max_leaf_nodes=8, early_stopping=False, categorical_features=categorical
    )
    expected = model.fit(X[fit], treated[fit]).decision_function(X[~fit])
    assert np.ptp(expected) > 0.5
    np.testing.assert_allclose(held_out_scores(X, categorical, treated, fit), expected, rtol=0, atol=1e-9)


def test_too_few_rows_to_split_give_the_share():
    X, categorical, treated, _ = table(1, False)
    fit = np.arange(len(X)) < 39
    share = treated[fit].mean()
    np.testing.assert_allclose(held_out_scores(X, categorical, treated, fit), np.log(share / (1 - share)), rtol=1e-14)


def test_rows_of_the_fit_may_come_in_any_order():
    X, categorical, treated, fit = table(2, True)
    order = np.random.default_rng(0).permutation(len(X))
    found = np.empty(len(X))
    found[order[~fit[order]]] = held_out_scores(X[order], categorical, treated[order], fit[order])
    np.testing.assert_allclose(found[~fit], held_out_scores(X, categorical, treated, fit), rtol=0, atol=1e-12)


def test_edges_lie_between_values_or_at_quantiles():
    np.testing.assert_array_equal(_edges(np.array([3.0, 1.0, 1.0, 2.0])), [1.5, 2.5])
    assert 1.6e308 < _edges(np.array([1.7e308, 1.6e308]))[0] < 1.7e308
    assert len(_edges(np.array([4.0, 4.0]))) == 0
    values = np.random.default_rng(0).normal(size=5000)
    counts = np.diff(np.concatenate(([0], np.searchsorted(np.sort(values), _edges(values), side="right"), [5000])))
    assert len(counts) == 255
    assert counts.min() >= 19
    assert counts.max() <= 21
