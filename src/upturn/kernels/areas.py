"""Areas and other sums over a ranking: one small *fold* per formula, over blocks of the table of running sums.

A fold reads a block (row 0 is where the last block ended) and adds to two accumulators. With k = W_0 + W_1, a step from
row i - 1 to row i of the table, and totals n (the last row):

==============  =====================================================================================================
LIFTS           Σ ΔW_a (S_a + S_a'), a = 0, 1: twice the area under each arm's own lift curve, in raw sums
GAIN            Σ Δk (V + V') with V = (S_1 / W_1 - S_0 / W_0) k
RADCLIFFE       Σ Δk (Q + Q') with Q = S_1 - S_0 W_1 / W_0
BALANCED        Σ Δx (u + u') with x = (W_0 / W_0n + W_1 / W_1n) / 2, u = S_1 / W_1n - S_0 / W_0n
DEVIATION       Σ Δk (D + D') with D the summed effect scores above their mean; and Σ_j w_j D(j)
HARMONIC        Σ_j w_j D(j) / k(j) over rows j = 1 … n, D running straight through a tie
GAIN_SUM        Σ_j V(j), with V as it runs in causalml where an arm is still empty
RADCLIFFE_SUM   Σ_j Q(j), likewise
TOC_SUM         Σ_j (T(j - 1) + T(j)) / 2 / (j - 1/2) and Σ_j 1 / (j - 1/2), T = V / k - V_n / n
==============  =====================================================================================================

What the formulas mean, and how they end, is in :mod:`upturn.metrics`.
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import inner
from upturn.kernels.ranking import ROWS, S0, S1, W0, W1, deviation, gain, radcliffe

LIFTS, GAIN, RADCLIFFE, BALANCED, DEVIATION, HARMONIC, GAIN_SUM, RADCLIFFE_SUM, TOC_SUM = range(9)


@inner
def _fold_lifts(block, rows, out, c):
    twice0, twice1 = out[c, 0], out[c, 1]
    for i in range(1, rows + 1):
        twice0 += (block[i, W0] - block[i - 1, W0]) * (block[i, S0] + block[i - 1, S0])
        twice1 += (block[i, W1] - block[i - 1, W1]) * (block[i, S1] + block[i - 1, S1])
    out[c, 0], out[c, 1] = twice0, twice1


@inner
def _step(block, i):
    return (block[i, W0] - block[i - 1, W0]) + (block[i, W1] - block[i - 1, W1])


@inner
def _fold_gain(block, rows, out, c):
    before = gain(block[0, W0], block[0, S0], block[0, W1], block[0, S1])
    for i in range(1, rows + 1):
        here = gain(block[i, W0], block[i, S0], block[i, W1], block[i, S1])
        out[c, 0] += _step(block, i) * (here + before)
        before = here


@inner
def _fold_radcliffe(block, rows, out, c):
    before = radcliffe(block[0, W0], block[0, S0], block[0, W1], block[0, S1])
    for i in range(1, rows + 1):
        here = radcliffe(block[i, W0], block[i, S0], block[i, W1], block[i, S1])
        out[c, 0] += _step(block, i) * (here + before)
        before = here


@inner
def _fold_balanced(block, rows, totals, out, c):
    x = block[0, W0] / totals[W0] + block[0, W1] / totals[W1]
    u = block[0, S1] / totals[W1] - block[0, S0] / totals[W0]
    for i in range(1, rows + 1):
        x_here = block[i, W0] / totals[W0] + block[i, W1] / totals[W1]
        u_here = block[i, S1] / totals[W1] - block[i, S0] / totals[W0]
        out[c, 0] += 0.5 * (x_here - x) * (u_here + u)
        x, u = x_here, u_here


@inner
def _fold_deviation(block, rows, totals, final, out, c):
    before = deviation(block, 0, totals)
    for i in range(1, rows + 1):
        here = 0.0 if final and i == rows else deviation(block, i, totals)
        m, r = _step(block, i), block[i, ROWS] - block[i - 1, ROWS]
        out[c, 0] += m * (here + before)
        out[c, 1] += m * before + (here - before) * (m * (r + 1) / (2 * r))
        before = here


@inner
def _digamma_tail(x):
    """What digamma(x) lacks of log x - 1 / 2x, for x of 10 or more."""
    r = 1.0 / (x * x)
    return r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132 - r * (691 / 32760 - r / 12))))))


@inner
def reciprocals(k, m):
    """1/(k + 1) + … + 1/(k + m) for a whole m: digamma(k + m + 1) - digamma(k + 1), without cancellation."""
    if m == 1.0:
        return 1.0 / (k + 1.0)
    low, total = k + 1.0, 0.0
    while low < 10.0:
        total += 1.0 / low - 1.0 / (low + m)
        low += 1.0
    high = low + m
    return total + np.log1p(m / low) + 0.5 * m / (low * high) + _digamma_tail(low) - _digamma_tail(high)


@inner
def _fold_harmonic(block, rows, totals, final, out, c):
    """Rows that share a score share its weight m equally, so row j of r stands at k + j m / r."""
    before = deviation(block, 0, totals)
    for i in range(1, rows + 1):
        here = 0.0 if final and i == rows else deviation(block, i, totals)
        m, r = _step(block, i), block[i, ROWS] - block[i - 1, ROWS]
        if m > 0:
            k, slope = block[i - 1, W0] + block[i - 1, W1], (here - before) / m
            out[c, 0] += m * slope + (before - k * slope) * reciprocals(k * (r / m), r)
        before = here


@inner
def _fold_gain_sum(block, rows, out, c):
    for i in range(1, rows + 1):
        w0, w1 = block[i, W0], block[i, W1]
        if w0 == 0 or w1 == 0:  # causalml draws a straight line of V / k from the start to where both arms are there
            continue
        here = gain(w0, block[i, S0], w1, block[i, S1])
        m = _step(block, i)
        if block[i - 1, W0] + block[i - 1, W1] == 0:  # a first tie with both arms is like any other tie
            out[c, 0] += here * (m + 1) / 2
        elif block[i - 1, W0] == 0 or block[i - 1, W1] == 0:
            k = w0 + w1
            out[c, 0] += here / k * (k + 1) * (2 * k + 1) / 6
        else:
            before = gain(block[i - 1, W0], block[i - 1, S0], block[i - 1, W1], block[i - 1, S1])
            out[c, 0] += m * before + (here - before) * (m + 1) / 2


@inner
def _fold_radcliffe_sum(block, rows, out, c):
    for i in range(1, rows + 1):
        w0, w1 = block[i, W0], block[i, W1]
        if w0 == 0:  # a straight line of Q from the start to where control begins
            continue
        here = radcliffe(w0, block[i, S0], w1, block[i, S1])
        if block[i - 1, W0] == 0:
            out[c, 0] += here * (w0 + w1 + 1) / 2
        else:
            before = radcliffe(block[i - 1, W0], block[i - 1, S0], block[i - 1, W1], block[i - 1, S1])
            m = _step(block, i)
            out[c, 0] += m * before + (here - before) * (m + 1) / 2


@inner
def _fold_toc_sum(block, rows, totals, out, c):
    average = totals[S1] / totals[W1] - totals[S0] / totals[W0]
    for i in range(1, rows + 1):
        k, m = block[i - 1, W0] + block[i - 1, W1], int(_step(block, i))
        empty0 = block[i - 1, W0] == 0 or block[i - 1, W1] == 0
        empty1 = block[i, W0] == 0 or block[i, W1] == 0
        v0 = average * k if empty0 else gain(block[i - 1, W0], block[i - 1, S0], block[i - 1, W1], block[i - 1, S1])
        v1 = average * (k + m) if empty1 else gain(block[i, W0], block[i, S0], block[i, W1], block[i, S1])
        before = 0.0 if k == 0 else v0 / k - average
        for j in range(1, m + 1):
            here = (v0 + (v1 - v0) * j / m) / (k + j) - average
            out[c, 0] += 0.5 * (before + here) / (k + j - 0.5)
            out[c, 1] += 1.0 / (k + j - 0.5)
            before = here


@inner
def fold_block(code, block, rows, totals, final, out, c):
    """Add what a block holds to the two accumulators ``out[c]``; ``final`` says that the table ends with it."""
    if code == LIFTS:
        _fold_lifts(block, rows, out, c)
    elif code == GAIN:
        _fold_gain(block, rows, out, c)
    elif code == RADCLIFFE:
        _fold_radcliffe(block, rows, out, c)
    elif code == BALANCED:
        _fold_balanced(block, rows, totals, out, c)
    elif code == DEVIATION:
        _fold_deviation(block, rows, totals, final, out, c)
    elif code == HARMONIC:
        _fold_harmonic(block, rows, totals, final, out, c)
    elif code == GAIN_SUM:
        _fold_gain_sum(block, rows, out, c)
    elif code == RADCLIFFE_SUM:
        _fold_radcliffe_sum(block, rows, out, c)
    else:
        _fold_toc_sum(block, rows, totals, out, c)


@inner
def _between(low, high, x):
    """Where x lies on the way from low to high, as a share; no slivers of a row where rounding misses its edge."""
    if high - x <= 1e-12 * x:
        return 1.0
    if x - low <= 1e-12 * x:
        return 0.0
    return min(1.0, max(0.0, (x - low) / (high - low)))


@inner
def read_shares(shares, g, totals, block, rows, out):
    """Read the table at ``shares`` (rising) of everybody's weight, from share ``g`` on, straight lines between its rows.

    Returns the first share that lies beyond the block.
    """
    total = totals[W0] + totals[W1]
    for r in range(1, rows + 1):
        before, here = block[r - 1, W0] + block[r - 1, W1], block[r, W0] + block[r, W1]
        while g < len(shares) and shares[g] * total <= here:
            part = _between(before, here, shares[g] * total)
            for c in range(4):
                out[g, c] = block[r - 1, c] + part * (block[r, c] - block[r - 1, c])
            g += 1
    return g


@inner
def read_arm_shares(shares, arm, g, totals, block, rows, out):
    """The same of one arm, at shares of its own weight."""
    w, s = 2 * arm, 2 * arm + 1
    for r in range(1, rows + 1):
        before, here = block[r - 1, w], block[r, w]
        if here == before:
            continue
        while g < len(shares) and shares[g] * totals[w] <= here:
            part = _between(before, here, shares[g] * totals[w])
            out[g, w] = before + part * (here - before)
            out[g, s] = block[r - 1, s] + part * (block[r, s] - block[r - 1, s])
            g += 1
    return g
