"""Binning: from values to one byte each.

A feature's codes are

=====  =============================================================================
 0     missing
 c     the c-th bin: ``edges[c - 2] < x <= edges[c - 1]``, open at both ends; or level c - 1
=====  =============================================================================

so ``code <= c`` says exactly ``x <= edges[c - 1]`` for every value that is not missing: a split found on codes is a
split on values. A feature with at most ``max_bins`` distinct values gets one bin a value, and nothing is lost.
Codes are feature-major (``codes[feature, row]``) for growing, and row-major with two columns a feature for prediction
(see ``forest``).
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import F8, F8_2, I4, I8, I8_2, F8_out, I8_out, U1_out, i8, inner, kernel, void

MAX_BINS = 255  # bins of values; with the code for missing they fill a byte
_SLOTS = 1024  # of the hash set below; four times the most values it ever holds
_MASK = np.uint64(_SLOTS - 1)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_TOP = np.uint64(54)
_FIRST_LOOK, _LOOK = 4096, 65_536  # values of a column looked at in one go
_ROWS = 128  # rows encoded at a time: they stay in the cache, and so do the edges of the feature at hand
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_SHIFTS = tuple(np.uint64(k) for k in (7, 6, 5, 4, 3, 2, 1, 0))


def distinct_values(X, column, limit, out):
    """Write the distinct values of a column into ``out`` (unsorted); return how many, or ``limit + 1`` if more.

    Missing values are left out. It stops as soon as there are too many, so a continuous feature costs nothing. Numbers
    of any type are read a part at a time, as float64.
    """
    table, found, start, rows = np.full(_SLOTS, -1), 0, 0, _FIRST_LOOK
    while start < len(X) and found <= limit:
        part = X[start : start + rows, column].astype(np.float64)
        found = _distinct_values(part, limit, table, found, out)
        start, rows = start + rows, _LOOK
    return found


@kernel(i8, F8, i8, I8_out, i8, F8_out)
def _distinct_values(values, limit, table, found, out):
    """Add to the ``found`` values of ``out``, which ``table`` knows by their hash, those that are new."""
    last = np.nan
    for i in range(values.size):
        value = values[i] + 0.0  # -0.0 and 0.0 are one value
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


@kernel(i8, F8_out, F8_out, i8, F8_out)
def quantile_edges(values, mass, max_bins, out):
    """Edges of at most ``max_bins`` bins of about equal mass over sorted ``values``; return how many edges.

    A value heavier than a fair share is a bin of its own; the others share the remaining bins, each closed when it holds
    its share of what is left of them. Equal values are put together first, in place.
    """
    n = 0
    for i in range(values.size):
        if n > 0 and values[i] == values[n - 1]:
            mass[n - 1] += mass[i]
        else:
            values[n], mass[n] = values[i], mass[i]
            n += 1
    if n <= max_bins:
        for i in range(n - 1):
            out[i] = edge_between(values[i], values[i + 1])
        return n - 1 if n > 0 else 0
    light = 0.0
    for i in range(n):
        light += mass[i]
    fair = light / max_bins
    bins = max_bins  # of light values
    for i in range(n):
        if mass[i] >= fair:
            light -= mass[i]
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
    """Code of a value: one more than the number of edges below it, 0 for missing.

    A search over 255 padded edges in eight steps without a branch: which way a step goes is a coin toss, and a wrong
    guess of the processor costs more than the step.
    """
    position = np.uint64(0)
    for shift in _SHIFTS:
        position += np.uint64(edges[feature, position + (_ONE << shift) - _ONE] < x) << shift
    return (position + _ONE) * np.uint64(x == x)


@inner
def encode_rows(X, first, end, edges, level_range, level_code, features, start, row_step, feature_step, out):
    """What ``encode`` does, of the rows from ``first`` to ``end`` alone; the codes of the first are at ``start``."""
    begin = first
    while begin < end:
        stop = begin + _ROWS if begin + _ROWS < end else end
        for j in range(features.size):
            f = np.uint64(features[j])
            low, high = level_range[f, _ZERO], level_range[f, _ONE]
            at = np.uint64(start + (begin - first) * row_step + features[j] * feature_step)
            for row in range(np.uint64(begin), np.uint64(stop)):
                x = X[row, f]
                if low >= 0:
                    code = _level_code(x, low, high, level_code)
                else:
                    code = numeric_code(x, edges, f)
                out[at] = code
                if row_step > 1:
                    out[at + _ONE] = code - _ONE
                at += np.uint64(row_step)
        begin = stop


@kernel(void, F8_2, F8_2, I8_2, I4, I8, i8, i8, i8, U1_out)
def encode(X, edges, level_range, level_code, features, start, row_step, feature_step, out):
    """Codes of the listed ``features``: that of ``X[row, f]`` at ``out[start + row * row_step + f * feature_step]``.

    With a ``row_step`` of 1 codes lie feature by feature. Otherwise they lie row by row, and a feature has a second
    column, its code less one modulo 256. ``edges[f]`` is padded with infinity to 255; a categorical feature has
    ``level_range[f, 0] >= 0`` and reads its levels' codes from ``level_code[level_range[f, 0] : level_range[f, 1]]``. A
    level out of range counts as missing.
    """
    encode_rows(X, 0, X.shape[0], edges, level_range, level_code, features, start, row_step, feature_step, out)


@inner
def _level_code(x, first, last, level_code):
    if not 0.0 <= x < last - first:  # also where x is missing
        return _ZERO
    return np.uint64(level_code[first + np.int64(x)])
