"""Replicates of an experiment: how often each row is drawn.

Rows are listed stratum by stratum (usually arm by arm). What is drawn is a *unit*: a row, or, of a stratum of very many
rows, one of a fixed number of groups that rows are put into at random. Units of stratum a are numbered from ``starts[a]`` to
``starts[a + 1]``, and a replicate is a count per unit. A draw is a pure function of the seed, the replicate, the stratum and
its number, so one seed gives the same replicates to every model and every metric: differences between them are paired.

BOOTSTRAP
    as many units of every stratum as it has, with replacement;
HALF
    half of them, without. The spread of the half-samples of n rows is that of n rows, and no row is ever tied with a copy
    of itself, which is what suits a mean over ranks (Yadlowsky et al., 2025).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Arms, Floats, Ints
from upturn.kernels._jit import (
    F8,
    I8,
    U1,
    U4,
    U8,
    F8_3_out,
    F8_out,
    I4_out,
    U1_2_out,
    U1_out,
    U4_out,
    i8,
    inner,
    kernel,
    u8,
    void,
)
from upturn.kernels.hashing import BOOTSTRAP as PURPOSE
from upturn.kernels.hashing import GROUPS, REPLICATES, below, draw, fold, uniform

BOOTSTRAP, HALF = 0, 1

_LOW = np.uint64(0xFFFFFFFF)
_S32 = np.uint64(32)


def rows_by_stratum(codes: Arms, n: int, weight: Floats | None = None) -> tuple[NDArray[np.uint32], Ints]:
    """Row numbers listed stratum by stratum, and where each starts: what a stratified bootstrap draws from.

    Rows of no weight are not listed: a replicate that drew nothing else of an arm would have nothing to say.
    """
    if weight is not None and not weight.all():
        rows = np.flatnonzero(weight)
        order, starts = rows_by_stratum(codes[rows], n)
        return rows[order].astype(np.uint32), starts
    starts = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=n))))
    return np.argsort(codes, kind="stable").astype(np.uint32), starts.astype(np.int64)


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
    """Take each unit with probability (still wanted) / (still to come): every half is equally likely."""
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


@kernel(void, i8, u8, i8, I8, F8, F8, U1_2_out, F8_3_out)
def draw_replicates(scheme, seed, first, starts, y, weight, counts, totals):
    """The counts of replicates ``first``, ``first + 1``, … side by side, and what each holds of every stratum.

    ``y`` and ``weight`` are the mean outcome and the weight of every unit; ``totals[r, a]`` receives weight and weighted
    outcome. A count does not overflow its byte: a unit drawn 256 times in n draws from n units has probability below
    n / 256!.
    """
    column = np.empty(len(y), np.uint8)
    for r in range(counts.shape[1]):
        _counts(scheme, seed, first + r, starts, column)
        for a in range(len(starts) - 1):
            w_sum = s_sum = 0.0
            for i in range(starts[a], starts[a + 1]):
                counts[i, r] = column[i]
                w = weight[i] * column[i]
                w_sum += w
                s_sum += w * y[i]
            totals[r, a, 0], totals[r, a, 1] = w_sum, s_sum


@kernel(void, U1, I8, I8, F8, F8, U4_out, F8_out, F8_out)
def assign_units(stratum, starts, rows, y, weight, unit, unit_y, unit_weight):
    """The unit of every row that has weight, and the mean outcome and weight of every unit.

    A stratum with as many units as ``rows`` has one for each row, in their order; another has rows put into its units by
    the hash of the row's number, each independently of all others, so that no order the data have can matter.
    """
    weighted, key = len(weight) > 0, fold(GROUPS, GROUPS)
    following = starts[:-1].copy()
    unit_y[:] = 0.0
    unit_weight[:] = 0.0
    for i in range(len(y)):
        a, w = stratum[i], weight[i] if weighted else 1.0
        unit[i] = 0
        if w > 0.0:
            units = starts[a + 1] - starts[a]
            if units == rows[a]:
                u = following[a]
                following[a] += 1
                unit_weight[u], unit_y[u] = w, y[i]
            else:
                u = starts[a] + np.int64(below(draw(key, np.uint64(i)), np.uint64(units)))
                unit_weight[u] += w
                unit_y[u] += w * y[i]
            unit[i] = u
    for a in range(len(rows)):
        if starts[a + 1] - starts[a] < rows[a]:
            for u in range(starts[a], starts[a + 1]):
                unit_y[u] = unit_y[u] / unit_weight[u] if unit_weight[u] > 0.0 else 0.0


@inner
def count_rows(seed, replicate, rows, starts, slots, counts):
    """Counts by row of a bootstrap replicate, from counts by place in the list of rows."""
    _counts(BOOTSTRAP, seed, replicate, starts, slots)
    for i in range(len(rows)):
        counts[rows[i]] = slots[i]


@kernel(void, u8, i8, U4, I8, I4_out)
def resample(seed, replicate, rows, starts, counts):
    """The counts of one bootstrap replicate by row; ``rows[starts[a] : starts[a + 1]]`` are the rows of stratum a."""
    count_rows(seed, replicate, rows, starts, np.empty(len(rows), np.uint8), counts)


@kernel(void, u8, i8, I8, I8, I8, U1_out)
def resample_part(seed, replicate, sizes, low, high, counts):
    """The counts of ``resample`` of some rows: those from ``low[a]`` to ``high[a]`` of the ``sizes[a]`` in stratum a, one stratum after the other.

    All draws are made, and those of other rows passed over: nothing has to be remembered of them.
    """
    key = fold(fold(seed, PURPOSE), np.uint64(replicate))
    counts[:] = 0
    first = 0
    for a in range(len(sizes)):
        stratum, size = fold(key, np.uint64(a)), np.uint64(sizes[a])
        for i in range((sizes[a] + 1) >> 1 if high[a] > low[a] else 0):
            word = draw(stratum, np.uint64(i))
            one = np.int64(below(word, size))
            if low[a] <= one < high[a]:
                counts[first + one - low[a]] += np.uint8(1)
            two = np.int64(((word & _LOW) * size) >> _S32)
            if low[a] <= two < high[a] and 2 * i + 1 < sizes[a]:
                counts[first + two - low[a]] += np.uint8(1)
        first += high[a] - low[a]


@inner
def _poisson(u):
    """A Poisson number of mean 1 from a uniform one."""
    count, chance = 0, 0.36787944117144233
    below = chance
    while u >= below and count < 15:
        count += 1
        chance /= count
        below += chance
    return count


@kernel(void, i8, u8, i8, U8, I8, U1, F8, F8, F8_3_out)
def replicate_cells(scheme, seed, number, ids, cell, side, y, weight, sums):
    """Add up replicates ``number``, ``number + 1``, … of rows that may lie anywhere, by cell: ``sums`` is (cells, 5, replicates).

    A row is drawn by the hash of its id, whatever lies beside it: a Poisson number of times of mean 1, or every other time for HALF.
    The five are weight and outcome of control and of the arm, and rows. ``weight`` may be empty, which stands for 1 everywhere.
    """
    keys = np.empty(sums.shape[2], np.uint64)
    for r in range(len(keys)):
        keys[r] = fold(fold(seed, REPLICATES), np.uint64(number + r))
    for i in range(len(y)):
        c, s, w = cell[i], 2 * np.int64(side[i]), weight[i] if len(weight) else 1.0
        for r in range(len(keys)):
            word = draw(keys[r], ids[i])
            count = np.int64(word >> np.uint64(63)) if scheme == HALF else _poisson(uniform(word))
            if count:
                sums[c, s, r] += count * w
                sums[c, s + 1, r] += count * w * y[i]
                sums[c, 4, r] += count
