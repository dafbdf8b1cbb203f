"""Moments and 0-1 coding of a table's columns, a block of rows at a time.

Column j of the table becomes the encoded columns from ``first[j]`` on: one if ``n_levels[j]`` is -1 (numbers), else one per
level. Codes of levels and numbers are float64, NaN is missing; a code is below the number of levels.
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import F8, F8_2, I8, F8_2_out, f8, kernel, void


@kernel(f8, F8_2, F8, I8, I8, F8_2_out)
def block_moments(X, weight, first, n_levels, out):
    """Moments of the encoded columns: ``out`` (3, q) of zeros gets the weight seen, the mean, and Σ w (x - mean)².

    ``weight`` may be empty: every row counts 1. Returns the weight of all rows. Numbers are summed as differences from
    the block's first one, so a constant column has exactly its mean; a missing value is not seen. Of a level, all rows
    are seen.
    """
    n, p = X.shape
    weighted = weight.size > 0
    total = 0.0
    for i in range(n):
        w = weight[i] if weighted else 1.0
        if w > 0.0:
            total += w
            for j in range(p):
                x = X[i, j]
                c = first[j]
                if x != x:
                    continue
                if n_levels[j] >= 0:
                    out[1, c + np.int64(x)] += w
                else:
                    if out[0, c] == 0.0:
                        out[2, c] = x
                    out[0, c] += w
                    out[1, c] += w * (x - out[2, c])
    for j in range(p):
        c = first[j]
        if n_levels[j] < 0:
            if out[0, c] > 0.0:
                out[1, c] = out[2, c] + out[1, c] / out[0, c]
            out[2, c] = 0.0
        for level in range(c, c + n_levels[j]):
            held = out[1, level]
            out[0, level] = total
            out[1, level] = held / total if total > 0.0 else 0.0
            out[2, level] = held * (1.0 - out[1, level])
    for i in range(n):
        w = weight[i] if weighted else 1.0
        if w > 0.0:
            for j in range(p):
                deviation = X[i, j] - out[1, first[j]]
                if n_levels[j] < 0 and deviation == deviation:
                    out[2, first[j]] += w * deviation * deviation
    return total


@kernel(void, F8_2, I8, I8, F8_2, F8_2_out)
def encode_block(X, first, n_levels, values, out):
    """Write the encoded rows. ``values`` (5, q) holds fill, mean and scale of numbers, and what a level is coded by where it
    does not and where it does stand."""
    n, p = X.shape
    for i in range(n):
        for j in range(p):
            x = X[i, j]
            c = first[j]
            if n_levels[j] < 0:
                out[i, c] = ((x if x == x else values[0, c]) - values[1, c]) / values[2, c]
            else:
                for level in range(c, c + n_levels[j]):
                    out[i, level] = values[3, level]
                if x == x:
                    out[i, c + np.int64(x)] = values[4, c + np.int64(x)]
