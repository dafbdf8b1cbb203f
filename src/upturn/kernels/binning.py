"""Binning: from values to one byte each.

A feature's codes are

=====  =============================================================================
 0     missing
 c     the c-th bin: ``edges[c - 2] < x <= edges[c - 1]``, open at both ends; or level c - 1
=====  =============================================================================

so ``code <= c`` says exactly ``x <= edges[c - 1]`` for every value that is not missing: a split found on codes is a
split on values. A feature with at most ``max_bins`` distinct values gets one bin a value, and nothing is lost.
Codes are feature-major (``codes[feature, row]``) for growing and row-major for prediction.
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import F8, F8_2, I4, I8, I8_2, U1_2, F8_out, U1_2_out, b1, i8, inner, kernel, void

MISSING = 0
MAX_BINS = 255  # bins of values; with the code for missing they fill a byte
_SLOTS = 1024  # of the hash set below; four times the most values it ever holds
_MASK = np.uint64(_SLOTS - 1)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_TOP = np.uint64(54)
_ONE = np.uint64(1)
_HALVINGS = tuple(np.uint64(k) for k in (7, 6, 5, 4, 3, 2, 1, 0))
_ROWS = 512  # rows encoded at a time, so that a row-major table is read from the cache


@kernel(i8, F8_2, i8, i8, F8_out)
def distinct_values(X, column, limit, out):
    """Write the distinct values of a column into ``out`` (unsorted); return how many, or ``limit + 1`` if more.

    Missing values are left out. It stops as soon as there are too many, so a continuous feature costs nothing.
    """
    table = np.full(_SLOTS, -1, np.int64)
    found = 0
    last = np.nan
    for row in range(X.shape[0]):
        value = X[row, column] + 0.0  # -0.0 and 0.0 are one value
        if value == last or value != value:
            continue
        last = value
        slot = _slot(value)
        while table[slot] >= 0 and out[table[slot]] != value:
            slot = (slot + np.uint64(1)) & _MASK
        if table[slot] < 0:
            if found == limit:
                return limit + 1
            out[found] = value
            table[slot] = found
            found += 1
    return found


@inner
def _slot(value):
    bits = np.float64(value).view(np.uint64)
    return ((bits ^ (bits >> np.uint64(29))) * _MULTIPLIER) >> _TOP


@inner
def edge_between(low, high):
    """Return a threshold t with low <= t < high: the midpoint where floats allow it."""
    middle = 0.5 * low + 0.5 * high
    if middle >= high or middle < low or middle != middle:
        return low
    return middle


@kernel(i8, F8, F8, i8, F8_out)
def quantile_edges(values, mass, max_bins, out):
    """Edges of at most ``max_bins`` bins of about equal mass over sorted distinct ``values``; return how many edges.

    A value heavier than a fair share is a bin of its own; the others share the remaining bins, each closed when it holds
    its share of what is left of them.
    """
    n = values.size
    if n <= max_bins:
        for i in range(n - 1):
            out[i] = edge_between(values[i], values[i + 1])
        return max(n - 1, 0)
    light = 0.0
    for m in mass:
        light += m
    fair = light / max_bins
    bins = max_bins  # of light values
    for m in mass:
        if m >= fair:
            light -= m
            bins -= 1
    inside = 0.0
    n_edges = 0
    for i in range(n - 1):
        heavy, next_heavy = mass[i] >= fair, mass[i + 1] >= fair
        if not heavy:
            inside += mass[i]
        ahead = inside if next_heavy else 0.5 * mass[i + 1]  # before a heavy value, half a share is enough
        full = inside > 0.0 and (inside + ahead) * bins >= light
        if (heavy or full) and n_edges < max_bins - 1:
            out[n_edges] = edge_between(values[i], values[i + 1])
            n_edges += 1
            if not heavy:
                light -= inside
                bins -= 1
            inside = 0.0
    return n_edges


@inner
def numeric_code(x, edges, feature):
    """Code of a value: one more than the number of edges below it.

    Eight halvings of 255 padded edges. The outcome of a comparison is added, not branched on: no processor can guess it.
    """
    first = np.uint64(feature) * np.uint64(MAX_BINS)
    at = first
    for k in _HALVINGS:
        at += np.uint64(edges[at + (_ONE << k) - _ONE] < x) << k
    return at - first + _ONE


@kernel(void, F8_2, F8_2, I8_2, I4, I8, U1_2_out)
def encode_feature_major(X, edges, level_range, level_code, features, out):
    """Codes of the listed ``features`` of ``X``, one row of ``out`` a feature.

    ``edges[f]`` is padded with infinity to 255; a categorical feature has ``level_range[f, 0] >= 0`` and reads its
    levels' codes from ``level_code[level_range[f, 0] : level_range[f, 1]]``. A level out of range counts as missing.
    """
    n = X.shape[0]
    flat = edges.reshape(-1)
    for start in range(0, n, _ROWS):
        stop = min(start + _ROWS, n)
        for j in range(features.size):
            f = features[j]
            first, last = level_range[f, 0], level_range[f, 1]
            if first >= 0:
                for row in range(start, stop):
                    out[j, row] = _level_code(X[row, f], first, last, level_code)
            else:
                for row in range(start, stop):
                    x = X[row, f]
                    code = numeric_code(x, flat, f)
                    out[j, row] = code if x == x else 0


@kernel(void, F8_2, F8_2, I8_2, I4, I8, U1_2_out)
def encode_row_major(X, edges, level_range, level_code, features, out):
    """The same codes at ``out[row, feature]``; columns of features that are not listed stay as they are."""
    flat = edges.reshape(-1)
    for row in range(X.shape[0]):
        for j in range(features.size):
            f = features[j]
            x = X[row, f]
            if x != x:
                out[row, f] = 0
            elif level_range[f, 0] >= 0:
                out[row, f] = _level_code(x, level_range[f, 0], level_range[f, 1], level_code)
            else:
                out[row, f] = numeric_code(x, flat, f)


@inner
def _level_code(x, first, last, level_code):
    if not 0.0 <= x < last - first:  # also where x is missing
        return 0
    return level_code[first + np.int64(x)]


@kernel(b1, U1_2, I4)
def codes_in_range(codes, n_codes):
    """Tell whether every code of each feature is below that feature's number of codes."""
    for f in range(codes.shape[0]):
        limit = n_codes[f]
        for row in range(codes.shape[1]):
            if codes[f, row] >= limit:
                return False
    return True
