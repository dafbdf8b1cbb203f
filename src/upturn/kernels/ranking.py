"""Ranking: run down a sorted list summing weights and outcomes of control and one arm.

Everything that judges a ranking starts from one table of running sums with a row per *distinct* score,

    =========  =========  =====  =====
    W_control  S_control  W_arm  S_arm
    =========  =========  =====  =====

W is the weight and S the weighted outcome of the rows scored at least that high; the first row is zero. Rows that
share a score enter together, so between two rows of the table a curve is a straight line: ties are averaged over all
orders they could have, a constant score is the random line, and shuffling the data changes nothing. Unweighted sums
of integer outcomes are exact (float64 holds integers up to 2**53).

A bootstrap replicate is a count per row. It walks the same sorted list, so nothing is sorted again.
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import (
    B1,
    F8,
    F8_2,
    I8,
    U1,
    U4,
    F8_2_out,
    F8_out,
    I4_out,
    U1_out,
    f8,
    i8,
    inner,
    kernel,
    u8,
    void,
)
from upturn.kernels.hashing import BOOTSTRAP, below, draw, fold

# Columns of the table of running sums.
W0, S0, W1, S1 = range(4)

# Areas over the random line, by code.
SEPARATE, JOINT = 0, 1


@kernel(void, U4, F8, U1, F8, F8_out, U1_out, F8_out)
def arrange(order, y, side, weight, y_sorted, side_sorted, weight_sorted):
    """Copy the columns into sorted order; ``weight`` may be empty, which stands for 1 everywhere."""
    for i in range(len(order)):
        row = order[i]
        y_sorted[i] = y[row]
        side_sorted[i] = side[row]
    if len(weight):
        for i in range(len(order)):
            weight_sorted[i] = weight[order[i]]


@kernel(void, B1, F8, U1, F8, F8_2_out)
def running_sums(last, y, side, weight, table):
    """Fill the table of running sums from sorted columns."""
    weighted = len(weight) > 0
    w0 = s0 = w1 = s1 = 0.0
    table[0, :] = 0.0
    end = 1
    for i in range(len(y)):
        w = weight[i] if weighted else 1.0
        if side[i]:
            w1 += w
            s1 += w * y[i]
        else:
            w0 += w
            s0 += w * y[i]
        if last[i]:
            table[end, W0], table[end, S0], table[end, W1], table[end, S1] = w0, s0, w1, s1
            end += 1


@inner
def _gain(w0, s0, w1, s1):
    """(S_1 / W_1 - S_0 / W_0) (W_0 + W_1): what treating everybody down to here gains, an empty arm counting as rate 0."""
    rate1 = s1 / w1 if w1 > 0 else 0.0
    rate0 = s0 / w0 if w0 > 0 else 0.0
    return (rate1 - rate0) * (w0 + w1)


@kernel(void, F8_2, F8_out)
def gain_curve(table, out):
    """The gain at every row of the table, per person of the whole population."""
    total = table[-1, W0] + table[-1, W1]
    for i in range(len(table)):
        out[i] = _gain(table[i, W0], table[i, S0], table[i, W1], table[i, S1]) / total


@inner
def _lift_area(twice, total, success):
    """Area between an arm's lift curve and its diagonal, from twice the area under it in raw sums.

    The curve joins the points (W / W_n, S / W_n): its area is Σ (W_i - W_{i-1})(S_i + S_{i-1}) / (2 W_n²) and the
    diagonal's is S_n / (2 W_n). For integers both numerators are exact.
    """
    return (twice - total * success) / (2.0 * total * total)


@inner
def _area(code, order, last, y, side, weight, counts):
    """Area over the random line in one walk down the list; empty weights or counts stand for 1 everywhere."""
    weighted, resampled = len(weight) > 0, len(counts) > 0
    w0 = s0 = w1 = s1 = 0.0
    before_w0 = before_s0 = before_w1 = before_s1 = before = 0.0
    twice0 = twice1 = twice = 0.0
    for i in range(len(y)):
        w = weight[i] if weighted else 1.0
        if resampled:
            w *= counts[order[i]]
        if side[i]:
            w1 += w
            s1 += w * y[i]
        else:
            w0 += w
            s0 += w * y[i]
        if last[i]:
            if code == SEPARATE:
                twice0 += (w0 - before_w0) * (s0 + before_s0)
                twice1 += (w1 - before_w1) * (s1 + before_s1)
            else:
                here = _gain(w0, s0, w1, s1)
                twice += ((w0 - before_w0) + (w1 - before_w1)) * (here + before)
                before = here
            before_w0, before_s0, before_w1, before_s1 = w0, s0, w1, s1
    if code == SEPARATE:
        return _lift_area(twice1, w1, s1) - _lift_area(twice0, w0, s0)
    total = w0 + w1
    return (twice - total * before) / (2.0 * total * total)


@kernel(f8, i8, U4, B1, F8, U1, F8)
def area(code, order, last, y, side, weight):
    """Area between the uplift curve and its diagonal, ``SEPARATE`` or ``JOINT``, of sorted columns."""
    return _area(code, order, last, y, side, weight, np.empty(0, np.int32))


@inner
def _resample(key, rows, starts, counts):
    """Draw as many rows of every arm as it has, with replacement, as counts per row.

    ``rows`` lists the rows arm by arm, those of arm a in ``rows[starts[a] : starts[a + 1]]``.
    """
    counts[:] = 0
    for a in range(len(starts) - 1):
        arm_key = fold(key, np.uint64(a))
        size = np.uint64(starts[a + 1] - starts[a])
        for i in range(starts[a + 1] - starts[a]):
            counts[rows[starts[a] + np.int64(below(draw(arm_key, np.uint64(i)), size))]] += 1


@kernel(void, u8, i8, U4, I8, I4_out)
def resample(seed, replicate, rows, starts, counts):
    """The counts of one bootstrap replicate, a pure function of its arguments."""
    _resample(fold(fold(seed, BOOTSTRAP), np.uint64(replicate)), rows, starts, counts)


@kernel(void, i8, u8, i8, U4, I8, U4, B1, F8, U1, F8, I4_out, F8_out)
def bootstrap_areas(code, seed, first, rows, starts, order, last, y, side, weight, counts, areas):
    """The area of replicates ``first``, ``first + 1``, … on the sorted columns, counts being scratch."""
    base = fold(seed, BOOTSTRAP)
    for r in range(len(areas)):
        _resample(fold(base, np.uint64(first + r)), rows, starts, counts)
        areas[r] = _area(code, order, last, y, side, weight, counts)
