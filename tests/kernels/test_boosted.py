"""Boosted trees, against the histogram boosting of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from upturn import _boosted_trees
from upturn._boosted_trees import Bins, Size, find_edges, grow
from upturn._check._classifier import held_out_scores
from upturn.kernels.boosted import MISSING


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
    np.testing.assert_array_equal(find_edges(np.array([3.0, 1.0, 1.0, 2.0])), [1.5, 2.5])
    assert 1.6e308 < find_edges(np.array([1.7e308, 1.6e308]))[0] < 1.7e308
    assert len(find_edges(np.array([4.0, 4.0]))) == 0
    values = np.random.default_rng(0).normal(size=5000)
    counts = np.diff(np.concatenate(([0], np.searchsorted(np.sort(values), find_edges(values), side="right"), [5000])))
    assert len(counts) == 255
    assert counts.min() >= 19
    assert counts.max() <= 21


@pytest.mark.parametrize("wide", [False, True], ids=["histograms kept", "one column at a time"])
@pytest.mark.parametrize("seed", range(4))
def test_numbers_levels_gaps_and_weights_as_in_scikit_learn(seed, wide, monkeypatch):
    """Regression and classification, with a ridge and large leaves; also where there is no room for all histograms."""
    if wide:
        monkeypatch.setattr(_boosted_trees, "_KEPT", 0)
    rng = np.random.default_rng(seed)
    X, categorical, _, _ = table(seed, seed % 2 == 1)
    X[:, 0] = np.round(X[:, 0], 2)
    y = np.nan_to_num(X[:, 2]) + (X[:, 3] % 2 == 0) + rng.normal(size=len(X))
    logit = seed < 2
    y = (y > 0).astype(float) if logit else y
    weight = rng.uniform(0.5, 2, len(X)) if seed in (1, 2) else None
    kind = HistGradientBoostingClassifier if logit else HistGradientBoostingRegressor
    theirs = kind(
        max_iter=15, learning_rate=0.1, max_leaf_nodes=6, min_samples_leaf=7, l2_regularization=2.0, early_stopping=False,
        categorical_features=categorical,
    ).fit(X, y, sample_weight=weight)  # fmt: skip
    order = np.argsort(~categorical, kind="stable")
    bins = Bins.of(X[:, order], categorical[order], weight)
    codes = bins.code(X[:, order])
    size = Size(trees=15, leaves=6, rate=0.1, rows_in_leaf=7, ridge=2.0)
    ours = grow(codes, bins, y, weight, size, logit=logit).predict_coded(codes)
    expected = theirs.decision_function(X) if logit else theirs.predict(X)
    assert np.ptp(expected) > 0.3
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-9)


def test_codes_count_the_edges_below():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=700), rng.integers(0, 3, 700), np.round(rng.normal(size=700), 1)]).astype(
        float
    )
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 2] = np.where(np.arange(700) < 5, np.inf, X[:, 2])
    bins = Bins.of(X, np.array([False, True, False]))
    codes = bins.code(X)
    for j, edges in enumerate(bins.edges):
        column = X[:, j]
        naive = column if edges is None else (edges[None, :] < column[:, None]).sum(axis=1)
        np.testing.assert_array_equal(codes[j], np.where(np.isnan(column), MISSING, np.nan_to_num(naive)))
