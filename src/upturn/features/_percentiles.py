"""Percentile bins of one feature, and how far apart the arms are in them."""

from __future__ import annotations

import numpy as np

from upturn._arrays import Floats, Ints
from upturn._experiment import Experiment
from upturn.features._column import column_of
from upturn.kernels.filters import bin_divergence


def bins_of(column: Floats, n_levels: int | None, max_bins: int) -> Ints:
    """Return the bin of each row: percentile bins, or levels; missing values last."""
    missing = np.isnan(column)
    if n_levels is not None:
        return np.where(missing, n_levels, column).astype(np.int64)
    values = column[~missing] if missing.any() else column
    if len(values) == 0:
        return np.zeros(len(column), dtype=np.int64)
    half = (
        2.0 if max(values.max(), -values.min()) > np.finfo(np.float64).max / 2 else 1.0
    )  # differences must fit a float
    inner = half * np.unique(np.percentile(values / half, np.linspace(0, 100, max_bins + 1)[1:-1]))
    codes = np.searchsorted(inner, column, side="left").astype(np.int64)
    codes[missing] = len(inner) + 1
    return codes


def bin_score(data: Experiment, y: Floats, binary: bool, code: int, max_bins: int, j: int) -> tuple[float, float]:
    """Return the divergence of the arms from control over the bins of column j, and 0, the logarithm of no p-value."""
    levels = data.schema.levels[j]
    bins = bins_of(column_of(data.X, j), None if levels is None else len(levels), max_bins)
    n_arms = data.n_arms + 1
    cells = bins * n_arms + data.arm
    shape, size = (int(bins.max()) + 1, n_arms), (int(bins.max()) + 1) * n_arms
    weight = np.bincount(cells, weights=data.weight, minlength=size).astype(np.float64).reshape(shape)
    outcome = y if data.weight is None else y * data.weight
    total = np.bincount(cells, weights=outcome, minlength=size).reshape(shape)
    return float(bin_divergence(code, binary, weight, total)), 0.0
