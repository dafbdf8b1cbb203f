"""Percentile bins of one feature, and how far apart the arms are in them."""

from __future__ import annotations

import numpy as np

from upturn._arrays import Arms, Floats, Ints
from upturn._experiment import Experiment
from upturn.features._column import column_of
from upturn.kernels.filters import bin_divergence


def bins_of(column: Floats, n_levels: int | None, max_bins: int, rows: Ints | None = None) -> Ints:
    """Return the bin of each row: percentile bins, or levels; missing values last. With ``rows``, each stands for so many."""
    missing = np.isnan(column)
    if n_levels is not None:
        return np.where(missing, n_levels, column).astype(np.int64)
    values = column[~missing] if missing.any() else column
    if len(values) == 0:
        return np.zeros(len(column), dtype=np.int64)
    half = (
        2.0 if max(values.max(), -values.min()) > np.finfo(np.float64).max / 2 else 1.0
    )  # differences must fit a float
    shares = np.linspace(0, 100, max_bins + 1)[1:-1]
    if rows is None:
        cuts = np.percentile(values / half, shares)
    else:
        cuts = quantiles_of(values / half, rows[~missing], shares / 100)
    inner = half * np.unique(cuts)
    codes = np.searchsorted(inner, column, side="left").astype(np.int64)
    codes[missing] = len(inner) + 1
    return codes


def quantiles_of(values: Floats, rows: Ints, shares: Floats) -> Floats:
    """What ``numpy.quantile`` finds where every value is there as often as it has rows."""
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(rows[order])
    at = (ends[-1] - 1) * shares
    low = np.floor(at)
    pairs = [values[order][np.searchsorted(ends, low + k, side="right").clip(max=len(ends) - 1)] for k in (0, 1)]
    return np.array([np.quantile(pair, part) for pair, part in zip(np.stack(pairs, axis=1), at - low, strict=True)])


def bin_score(data: Experiment, y: Floats, binary: bool, code: int, max_bins: int, j: int) -> tuple[float, float]:
    """Return the divergence of the arms from control over the bins of column j, and 0, the logarithm of no p-value."""
    levels = data.schema.levels[j]
    bins = bins_of(column_of(data.X, j), None if levels is None else len(levels), max_bins)
    return divergence(bins, data.arm, data.n_arms, y, data.weight, binary, code), 0.0


def divergence(bins: Ints, arm: Arms, n_arms: int, y: Floats, weights: Floats | None, binary: bool, code: int) -> float:
    """How far ``n_arms`` arms are from control over bins."""
    cells = bins * (n_arms + 1) + arm
    shape = (int(bins.max()) + 1, n_arms + 1)
    size = shape[0] * shape[1]
    weight = np.bincount(cells, weights=weights, minlength=size).astype(np.float64).reshape(shape)
    outcome = y if weights is None else y * weights
    total = np.bincount(cells, weights=outcome, minlength=size).reshape(shape)
    return float(bin_divergence(code, binary, weight, total))
