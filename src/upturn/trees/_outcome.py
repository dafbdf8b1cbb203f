"""The outcome as the integers that histograms add (see ``upturn.kernels.histogram`` for the two forms of a cell)."""

from __future__ import annotations

import numpy as np

from upturn._arrays import Floats, Ints
from upturn.kernels.histogram import Layout, outcome_sums, write_pairs

_TOP_BIT = 57  # sums stay below 2^57; the bits above are for the copies of a bootstrap (at most 15)
_MOST_ROWS = 2.0**32  # more than that, whole weights cannot stand for repeated rows
_NEAR = 30  # exponent of two up to which the heaviest weight counts as near 1


def encode_outcome(y: Floats, weight: Floats | None) -> tuple[Ints, Layout]:
    """Words of the rows and how to read sums of them.

    Unweighted integers of a small range are packed, exactly, with the row count into one word. Anything else takes two
    fixed-point words: the scale is the largest power of two that leaves room for the sum over all rows. With integer
    weights the outcome is rounded to that grid before it is multiplied, so they count exactly as repeated rows do. Other
    weights are brought near 1 by a power of two, if they are far from it.
    """
    n = len(y)
    if weight is None:
        low = float(y.min())
        span = float(y.max()) - low
        count_bits = int(16 * n).bit_length()
        if span <= 2.0**31 and (y == np.floor(y)).all() and abs(low) <= 2.0**31:
            shift = int(span * 16 * n).bit_length()
            if shift + count_bits <= 62:
                words = (y - low).astype(np.int64) + (np.int64(1) << np.int64(shift))
                return words, Layout(1, shift, 1.0, 1.0, low, 0)
        return _encode_unweighted(y)
    words, sums = np.empty(2 * n, np.int64), np.empty(5)
    outcome_sums(y, weight, sums)
    whole = bool(sums[4] == 1.0 and sums[0] <= _MOST_ROWS)
    exponent, unit = int(np.frexp(sums[3])[1]), 1.0
    if not whole and abs(exponent) > _NEAR:
        unit = 2.0 ** (exponent - 1)
        weight = weight / unit
        outcome_sums(y, weight, sums)
    weight_scale, scale = _scale(sums[0]), _scale(sums[1], sums[2]) if whole else _scale(sums[1])
    write_pairs(y, weight, whole, weight_scale, scale, words)
    return words, Layout(2, 0, unit / weight_scale, unit / scale, 0.0, 0)


def _encode_unweighted(y: Floats) -> tuple[Ints, Layout]:
    """The outcome alone; the word of the weights is the same for all rows, that of a weight of 1."""
    sums = np.empty(5)
    outcome_sums(y, np.ones(len(y)), sums)
    weight_scale, scale = _scale(sums[0]), _scale(sums[1], sums[2])
    words = np.rint(y * scale).astype(np.int64)
    return words, Layout(2, 0, 1.0 / weight_scale, 1.0 / scale, 0.0, int(weight_scale))


def _scale(*sums: float) -> float:
    """The power of two that brings all sums just below 2^57."""
    _, exponent = np.frexp(max(sums))
    return float(2.0 ** np.clip(_TOP_BIT - int(exponent), -900, 900)) if max(sums) > 0.0 else 1.0
