"""The outcome as the integers that histograms add (see ``upturn.kernels.histogram`` for the two forms of a cell)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from upturn.kernels.histogram import outcome_sums, write_pairs
from upturn.kernels.splitting import Layout

_TOP_BIT = 57  # sums stay below 2^57; the bits above are for the copies of a bootstrap (at most 15)


def encode_outcome(y: NDArray[np.float64], weight: NDArray[np.float64] | None) -> tuple[NDArray[np.int64], Layout]:
    """Words of the rows and how to read sums of them.

    Unweighted integers of a small range are packed, exactly, with the row count into one word. Anything else takes two
    fixed-point words: the scale is the largest power of two that leaves room for the sum over all rows. The outcome is
    rounded to that grid before it is multiplied by the weight, so an integer weight counts exactly as repeated rows do.
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
                return words, Layout(1, shift, 1.0, 1.0, low)
        weight = np.ones(n)
    words, sums = np.empty(2 * n, np.int64), np.empty(3)
    outcome_sums(y, weight, sums)
    weight_scale, scale = _scale(sums[0]), _scale(sums[1], sums[2])
    write_pairs(y, weight, weight_scale, scale, words)
    return words, Layout(2, 0, 1.0 / weight_scale, 1.0 / scale, 0.0)


def _scale(*sums: float) -> float:
    """The power of two that brings all sums just below 2^57."""
    _, exponent = np.frexp(max(sums))
    return float(2.0 ** np.clip(_TOP_BIT - int(exponent), -900, 900)) if max(sums) > 0.0 else 1.0
