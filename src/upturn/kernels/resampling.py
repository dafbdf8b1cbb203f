"""Replicates of an experiment: how often each row is drawn.

Rows are listed stratum by stratum (usually arm by arm), stratum a filling the *slots* ``starts[a] : starts[a + 1]``, and
a replicate is a count per slot. A draw is a pure function of the seed, the replicate, the stratum and its number, so one
seed gives the same replicates to every model and every metric: differences between them are paired.

BOOTSTRAP
    as many rows of every stratum as it has, with replacement;
HALF
    half of them, without. The spread of the half-samples of n rows is that of n rows, and no row is ever tied with a copy
    of itself, which is what suits a mean over ranks (Yadlowsky et al., 2025).
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import F8, I8, U4, F8_2_out, I4_out, U1_out, i8, inner, kernel, u8, void
from upturn.kernels.hashing import BOOTSTRAP as PURPOSE
from upturn.kernels.hashing import below, draw, fold, uniform

BOOTSTRAP, HALF = 0, 1

_LOW = np.uint64(0xFFFFFFFF)
_S32 = np.uint64(32)


@inner
def _bootstrap(key, start, stop, counts):
    size = np.uint64(stop - start)
    # Every 64-bit word makes two draws.
    for i in range((stop - start) >> 1):
        word = draw(key, np.uint64(i))
        counts[start + np.int64(below(word, size))] += np.uint8(1)
        counts[start + np.int64(((word & _LOW) * size) >> _S32)] += np.uint8(1)
    if (stop - start) & 1:
        word = draw(key, np.uint64((stop - start) >> 1))
        counts[start + np.int64(below(word, size))] += np.uint8(1)


@inner
def _half(key, start, stop, counts):
    """Take each slot with probability (still wanted) / (still to come): every half is equally likely."""
    left = stop - start
    odd = np.int64(draw(key, np.uint64(left)) >> np.uint64(63)) if left & 1 else 0
    wanted = max(1, (left >> 1) + odd)
    for i in range(stop - start):
        take = uniform(draw(key, np.uint64(i))) * left < wanted
        counts[start + i] = np.uint8(1) if take else np.uint8(0)
        wanted -= 1 if take else 0
        left -= 1


@inner
def _counts(scheme, seed, replicate, starts, counts):
    key = fold(fold(seed, PURPOSE), np.uint64(replicate))
    counts[:] = 0
    for a in range(len(starts) - 1):
        stratum = fold(key, np.uint64(a))
        if scheme == HALF:
            _half(stratum, starts[a], starts[a + 1], counts)
        else:
            _bootstrap(stratum, starts[a], starts[a + 1], counts)


@kernel(void, i8, u8, i8, I8, F8, F8, U1_out, F8_2_out)
def draw_replicate(scheme, seed, replicate, starts, y, weight, counts, totals):
    """The counts of one replicate, and the weight and weighted outcome it holds of every stratum.

    ``y`` and ``weight`` are in the order of the slots; empty weights stand for 1 everywhere. A count does not overflow its
    byte: a row drawn 256 times in n draws from n rows has probability below n / 256!.
    """
    _counts(scheme, seed, replicate, starts, counts)
    weighted = len(weight) > 0
    for a in range(len(starts) - 1):
        w_sum = s_sum = 0.0
        for i in range(starts[a], starts[a + 1]):
            w = weight[i] * counts[i] if weighted else 1.0 * counts[i]
            w_sum += w
            s_sum += w * y[i]
        totals[a, 0], totals[a, 1] = w_sum, s_sum


@inner
def count_rows(seed, replicate, rows, starts, slots, counts):
    """Counts by row of a bootstrap replicate, from counts by slot."""
    _counts(BOOTSTRAP, seed, replicate, starts, slots)
    for i in range(len(rows)):
        counts[rows[i]] = slots[i]


@kernel(void, u8, i8, U4, I8, I4_out)
def resample(seed, replicate, rows, starts, counts):
    """The counts of one bootstrap replicate by row; ``rows[starts[a] : starts[a + 1]]`` are the rows of stratum a."""
    count_rows(seed, replicate, rows, starts, np.empty(len(rows), np.uint8), counts)
