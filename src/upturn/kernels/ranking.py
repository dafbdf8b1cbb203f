"""Ranking: run down a sorted list summing weights and outcomes of control and one arm.

Everything that judges a ranking starts from one table of running sums with a row per *distinct* score,

    =========  =========  =====  =====
    W_control  S_control  W_arm  S_arm
    =========  =========  =====  =====

W is the weight and S the weighted outcome of the rows scored at least that high; the first row is zero. Rows that
share a score enter together, so between two rows of the table a curve is a straight line: ties are averaged over all
orders they could have, a constant score is the random line, and shuffling the data changes nothing. Unweighted sums
of integer outcomes are exact (float64 holds integers up to 2**53).

The table of ten million rows is large, so areas never hold it: :func:`fill` makes it a block at a time, with the number
of rows as a fifth column, and each *fold* of :mod:`upturn.kernels.areas` consumes the block while it is in the cache.

A replicate is a count per row, made by :mod:`upturn.kernels.resampling`. It walks the same sorted list, so nothing is
sorted again.
"""

from __future__ import annotations

from upturn.kernels._jit import B1, F8, F8_2, U1, U4, F8_2_out, F8_out, U1_out, i8, inner, kernel, void

# Columns of the table of running sums; a block has one more, the number of rows so far.
W0, S0, W1, S1, ROWS = range(5)

BLOCK = 512  # rows of the table that are in the works at once: 20 kB, which stays in the first-level cache


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


@kernel(void, F8, U1, F8, F8_out)
def sum_columns(y, side, weight, totals):
    """The last row of the table, added in the same order and so to the last bit."""
    weighted = len(weight) > 0
    w0 = s0 = w1 = s1 = 0.0
    for i in range(len(y)):
        arm = 1.0 * side[i]
        w = weight[i] if weighted else 1.0
        w1 += w * arm
        s1 += w * arm * y[i]
        w0 += w * (1.0 - arm)
        s0 += w * (1.0 - arm) * y[i]
    totals[W0], totals[S0], totals[W1], totals[S1] = w0, s0, w1, s1


@inner
def gain(w0, s0, w1, s1):
    """(S_1 / W_1 - S_0 / W_0) (W_0 + W_1): what treating everybody down to here gains, an empty arm counting as rate 0."""
    rate1 = s1 / w1 if w1 > 0 else 0.0
    rate0 = s0 / w0 if w0 > 0 else 0.0
    return (rate1 - rate0) * (w0 + w1)


@inner
def radcliffe(w0, s0, w1, s1):
    """S_1 - S_0 W_1 / W_0: successes of the arm beyond those control would have had, an empty control counting as none."""
    return s1 - s0 * (w1 / w0 if w0 > 0 else 0.0)


@inner
def deviation(table, i, totals):
    """Sum over the rows above of (effect score - its mean), ending at 0.

    A row's effect score is m_1 - m_0 + (y - m_1) / p_1 in the arm and m_1 - m_0 - (y - m_0) / p_0 in control, with m the
    arm's mean outcome and p its share of the weight: the doubly robust score of a randomised experiment whose outcome
    model is a constant per arm. Its mean is the difference m_1 - m_0. Without control, y itself is the effect score.
    """
    n = totals[W0] + totals[W1]
    arm = (table[i, S1] - totals[S1] * (table[i, W1] / totals[W1])) * (n / totals[W1])
    if totals[W0] == 0.0:
        return arm
    return arm - (table[i, S0] - totals[S0] * (table[i, W0] / totals[W0])) * (n / totals[W0])


@kernel(void, F8_2, F8_out)
def gains(table, out):
    """The gain at every row of a table."""
    for i in range(len(table)):
        out[i] = gain(table[i, W0], table[i, S0], table[i, W1], table[i, S1])


@kernel(void, F8_2, F8_out)
def radcliffes(table, out):
    """Radcliffe's Q at every row of a table."""
    for i in range(len(table)):
        out[i] = radcliffe(table[i, W0], table[i, S0], table[i, W1], table[i, S1])


@kernel(void, F8_2, F8_2, F8_out)
def deviations(table, totals, out):
    """The deviation at every row of a table per person, ``totals`` being those of each row, or one row for all."""
    for i in range(len(table)):
        ends = totals[i if len(totals) > 1 else 0]
        out[i] = deviation(table, i, ends) / (ends[W0] + ends[W1])


@inner
def _next_knot(table, w, row):
    """The next row of the table in which this arm moves; scores that only the other arm has leave it alone."""
    after = row + 1
    while after < len(table) and table[after, w] == table[row, w]:
        after += 1
    return after


@inner
def _lift(table, w, s, row, after, x):
    """Height of an arm's lift curve at its share x, on the straight line between two rows in which it moves."""
    total = table[-1, w]
    if after == len(table):
        return table[-1, s] / total
    low, high = table[row, w] / total, table[after, w] / total
    if x == high:
        return table[after, s] / total
    return (table[row, s] + (table[after, s] - table[row, s]) * ((x - low) / (high - low))) / total


@kernel(i8, F8_2, F8_out, F8_out)
def separate_curve(table, x, y):
    """The arm's lift curve minus control's, at every share at which either moves; returns the number of points.

    ``x`` and ``y`` have room for two points per row of the table.
    """
    row0 = row1 = 0
    next0, next1 = _next_knot(table, W0, 0), _next_knot(table, W1, 0)
    x[0] = y[0] = 0.0
    points = 1
    while next0 < len(table) or next1 < len(table):
        x0 = table[next0, W0] / table[-1, W0] if next0 < len(table) else 2.0
        x1 = table[next1, W1] / table[-1, W1] if next1 < len(table) else 2.0
        here = min(x0, x1)
        x[points] = here
        y[points] = _lift(table, W1, S1, row1, next1, here) - _lift(table, W0, S0, row0, next0, here)
        points += 1
        if x0 == here:
            row0, next0 = next0, _next_knot(table, W0, next0)
        if x1 == here:
            row1, next1 = next1, _next_knot(table, W1, next1)
    return points
