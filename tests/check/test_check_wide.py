"""upturn.check on tables with far more columns than rows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from upturn import check
from upturn._check import _models
from upturn._check._models import _in_errors, _ridge, _telling


def wide(n, p, seed=0):
    rng = np.random.default_rng(seed)
    X, treatment = rng.normal(size=(n, p)), np.arange(n) % 2
    return X, rng.integers(0, 2, n).astype(float), rng.permutation(treatment)


def test_memory_grows_with_the_table_and_not_with_its_columns_squared():
    X, y, treatment = wide(120, 10_000)  # a matrix of columns by columns has 800 MB
    check(X[:, :3], y, treatment)  # imported, compiled
    tracemalloc.start()
    try:
        report = check(X, y, treatment)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert report.ok, report
    assert len(report.features) == 10_000
    assert peak < 150e6


@pytest.mark.parametrize("missing", [False, True])
def test_the_classifier_finds_what_tells_the_arms_apart_among_very_many_columns(missing):
    X, y, treatment = wide(400, 3_000)
    j = 2_345
    if missing:
        X[(treatment == 1) & (np.arange(len(X)) % 3 > 0), j] = np.nan
    else:
        X[:, j] = np.abs(X[:, j]) * 1e200 * np.where(treatment == 1, 1, -1)
    report = check(X, y, treatment)
    assert "classifier" in report.warnings
    assert ("missing features" if missing else "balance") in report.warnings


def test_columns_are_chosen_by_the_rows_of_the_fit_alone():
    X, _, treatment = wide(100, _models.MOST_COLUMNS + 50)
    rows, treated = np.arange(50), treatment[:50] == 1
    chosen = _telling(X, rows, treated)
    assert len(chosen) == _models.MOST_COLUMNS
    assert (np.diff(chosen) > 0).all()
    apart = [abs(X[:50][treated, j].mean() - X[:50][~treated, j].mean())
             / np.sqrt(X[:50][treated, j].var() / treated.sum() + X[:50][~treated, j].var() / (~treated).sum())
             for j in range(X.shape[1])]  # fmt: skip
    left_out = np.setdiff1d(np.arange(X.shape[1]), chosen)
    assert max(np.array(apart)[left_out]) <= min(np.array(apart)[chosen])
    X[50:] = 7.0
    np.testing.assert_array_equal(_telling(X, rows, treated), chosen)


def test_of_few_columns_only_those_without_values_are_left_out():
    X, _, treatment = wide(60, 5)
    X[:30, 3] = np.nan
    np.testing.assert_array_equal(_telling(X, np.arange(30), treatment[:30] == 1), [0, 1, 2, 4])


def test_differences_in_errors_of_columns_without_spread():
    values = np.array([[1.0, 0.0, np.nan], [1.0, 0.0, np.nan], [1.0, 1.0, 5.0], [1.0, 1.0, 6.0]])
    treated = np.array([False, False, True, True])
    np.testing.assert_array_equal(_in_errors(values, ~np.isnan(values), treated)[:2], [0.0, np.inf])


def test_the_ridge_regression_of_more_columns_than_rows_solves_the_same_equations():
    rng = np.random.default_rng(1)
    Z, y = rng.normal(size=(30, 80)) + 3.0, rng.normal(size=30)
    intercept, slopes = _ridge(Z, y)
    A = Z - Z.mean(axis=0)
    np.testing.assert_allclose(A.T @ (A @ slopes - (y - y.mean())) + 3.0 * slopes, 0.0, atol=1e-9)
    assert intercept == pytest.approx(y.mean() - Z.mean(axis=0) @ slopes)
