"""The classifier of `upturn.check`: who is treated, by boosted trees, learnt on some rows and said of the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools, Floats
from upturn.kernels.telling import MISSING, add_tree

_TREES = 20


def held_out_scores(X: Floats, categorical: Bools, treated: Bools, fit: Bools) -> Floats:
    """Log-odds of being treated of the rows not in ``fit``, by a model of those in it; codes of levels are 0, 1, …, 254.

    Of equal splits the first is taken, and columns of levels come first, as in scikit-learn.
    """
    order = np.argsort(~categorical, kind="stable")
    X, categorical = X[:, order], categorical[order]
    codes, n_bins = _bin(X, categorical, fit)
    gaps = (codes[:, fit] == MISSING).any(axis=1)
    share = float(treated[fit].mean())
    score = np.full(len(X), np.log(share / (1 - share)))
    rows = np.flatnonzero(fit), np.flatnonzero(~fit)
    for _ in range(_TREES):  # one call each, so that Ctrl-C is heard between them
        add_tree(codes, n_bins, gaps, categorical, treated, *rows, score)
    return score[~fit]


def _bin(X: Floats, categorical: Bools, fit: Bools) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Every column's bins, one row each, and how many there are in the rows of ``fit``."""
    codes, n_bins = np.full(X.shape[::-1], MISSING, np.uint8), np.empty(X.shape[1], np.int64)
    for j, levels in enumerate(categorical):
        known = ~np.isnan(X[:, j])
        values, learnt = X[known, j], X[known & fit, j]
        if levels:
            codes[j, known], n_bins[j] = values, int(learnt.max()) + 1
        else:
            edges = _edges(learnt)
            codes[j, known], n_bins[j] = np.searchsorted(edges, values), len(edges) + 1
    return codes, n_bins


def _edges(values: Floats) -> Floats:
    """Where bins end: half-way between values, or at quantiles where there are more than bins."""
    distinct = np.unique(values)
    if len(distinct) <= MISSING:
        return np.asarray(distinct[:-1] / 2 + distinct[1:] / 2)
    percentiles = np.linspace(0, 100, MISSING + 1)[1:-1]
    return np.unique(np.percentile(values, percentiles, method="averaged_inverted_cdf"))
