"""The walk down a ranking: all sums of all statistics, for the data or for several replicates of it, in one pass.

A row belongs to a *unit* of resampling (itself, or in large samples a group of rows), and ``counts[unit, r]`` says how often
replicate r holds it. The data themselves are one replicate with a count of 1. Replicates stand side by side:

    row i  →  sums[column, 0 … R-1] += weight[i] · counts[unit[i], 0 … R-1]  (· y[i])

so that a row and its counts are fetched once for all of them. At the end of every tie the sums become a row of each
replicate's block of the table of running sums; full blocks are folded by :mod:`upturn.kernels.areas` while they are in the
cache.
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import (
    B1,
    F8,
    F8_2,
    F8_3,
    I8,
    U1,
    U1_2,
    U4,
    B1_out,
    F8_2_out,
    F8_3_out,
    I8_2_out,
    I8_out,
    b1,
    f8,
    i8,
    inner,
    kernel,
    void,
)
from upturn.kernels.areas import fold_block, read_arm_shares, read_shares
from upturn.kernels.ranking import ROWS, S0, S1, W0, W1

BLOCK = 128  # rows of each replicate's table that are in the works at once: 5 kB, and 80 kB for sixteen replicates


@inner
def _consume(codes, shares, arm_shares, totals, blocks, ends, places, final, folds, at, arms_at):
    """Fold what the blocks hold: rows 1 … ends[r] - 1 of the block of every replicate, row 0 being where it began."""
    for r in range(len(ends)):
        block, rows = blocks[r], ends[r] - 1
        for c in range(len(codes)):
            fold_block(codes[c], block, rows, totals[r], final, folds[r], c)
        if len(shares):
            places[r, 0] = read_shares(shares, places[r, 0], totals[r], block, rows, at[r])
        if len(arm_shares):
            for arm in range(2):
                places[r, 1 + arm] = read_arm_shares(
                    arm_shares, arm, places[r, 1 + arm], totals[r], block, rows, arms_at[r]
                )


@inner
def _fill_data(i, last, y, side, weight, sums, blocks, ends):
    """Continue the table of the data themselves from row i until the block is full; returns the next row.

    Arms are told apart by multiplication and rows of the block are always written and only sometimes kept: the branches
    would go either way at random, and a processor that guesses wrong waits longer than it adds.
    """
    weighted, end = len(weight) > 0, 1
    w0, s0, w1, s1, people = sums[W0, 0], sums[S0, 0], sums[W1, 0], sums[S1, 0], sums[ROWS, 0]
    while i < len(y) and end < BLOCK:
        w, arm = weight[i] if weighted else 1.0, 1.0 * side[i]
        wy = w * y[i]
        people += 1.0
        w1 += w * arm
        s1 += wy * arm
        w0 += w * (1.0 - arm)
        s0 += wy * (1.0 - arm)
        blocks[0, end, W0], blocks[0, end, S0], blocks[0, end, W1], blocks[0, end, S1] = w0, s0, w1, s1
        blocks[0, end, ROWS] = people
        end += 1 if last[i] else 0
        i += 1
    sums[W0, 0], sums[S0, 0], sums[W1, 0], sums[S1, 0], sums[ROWS, 0] = w0, s0, w1, s1, people
    ends[0] = end
    return i


@inner
def _fill_replicates(i, last, y, side, weight, unit, counts, sums, blocks, ends):
    """The same for replicates. Ties in which nobody was drawn make no row of the table."""
    weighted, replicates, ties = len(weight) > 0, counts.shape[1], 1
    while i < len(y) and ties < BLOCK:
        u, s, value = unit[i], 2 * side[i], y[i]
        if weighted:
            w = weight[i]
            for r in range(replicates):
                drawn = w * counts[u, r]
                sums[s, r] += drawn
                sums[s + 1, r] += drawn * value
                sums[ROWS, r] += counts[u, r]
        else:
            for r in range(replicates):
                sums[s, r] += counts[u, r]
                sums[s + 1, r] += counts[u, r] * value
        if last[i]:
            for r in range(replicates):
                people, end = sums[ROWS, r] if weighted else sums[W0, r] + sums[W1, r], ends[r]
                for c in range(4):
                    blocks[r, end, c] = sums[c, r]
                blocks[r, end, ROWS] = people
                ends[r] = end + (1 if people > blocks[r, end - 1, ROWS] else 0)
            ties += 1
        i += 1
    return i


@kernel(void, I8, F8, F8, F8_2, B1, F8, U1, F8, U4, U1_2, F8_3_out, F8_3_out, F8_3_out, F8_2_out)
def walk(codes, shares, arm_shares, totals, last, y, side, weight, unit, counts, folds, at, arms_at, tops):
    """Gather every fold of ``codes``, and the table at ``shares`` of everybody and at ``arm_shares`` of each arm.

    The first axis of ``totals`` (the sums of all rows, known beforehand) and of the results is that of the replicates:
    ``folds[r, c]`` receives the two accumulators of ``codes[c]``, ``at[r]`` and ``arms_at[r]`` rows of the table, and
    ``tops[r]`` its last row. An empty ``unit`` stands for the data themselves, empty weights for 1; weights are above 0.
    """
    n, replicates = len(y), len(totals)
    blocks, sums = np.empty((replicates, BLOCK, 5)), np.zeros((5, replicates))
    ends, places = np.ones(replicates, np.int64), np.zeros((replicates, 3), np.int64)
    folds[:, :, :] = 0.0
    blocks[:, 0, :] = 0.0
    i = 0
    while i < n:
        if len(unit):
            i = _fill_replicates(i, last, y, side, weight, unit, counts, sums, blocks, ends)
        else:
            i = _fill_data(i, last, y, side, weight, sums, blocks, ends)
        _consume(codes, shares, arm_shares, totals, blocks, ends, places, i == n, folds, at, arms_at)
        for r in range(replicates):
            blocks[r, 0, :] = blocks[r, ends[r] - 1, :]
            ends[r] = 1
    for r in range(replicates):
        tops[r, W0], tops[r, S0], tops[r, W1], tops[r, S1] = sums[W0, r], sums[S0, r], sums[W1, r], sums[S1, r]
        for g in range(places[r, 0], len(shares)):  # the last share, when rounding leaves it just beyond the end
            at[r, g, :] = tops[r]
        for arm in range(2):
            for g in range(places[r, 1 + arm], len(arm_shares)):
                arms_at[r, g, 2 * arm], arms_at[r, g, 2 * arm + 1] = sums[2 * arm, r], sums[2 * arm + 1, r]


@kernel(void, B1, B1_out)
def thin(last, out):
    """Which ties stay apart in replicates of a long ranking: about 2¹⁴ of them, finer towards the top.

    Ties are joined until they hold 1 + i / 2¹⁰ rows at row i, or n / 2¹⁴ if that is less: the first thousand rows stay as
    they are, for areas that weigh the top most, and further down a step is too short to matter to a standard error.
    """
    n, kept = len(last), -1
    widest = n >> 14
    for i in range(n):
        keep = last[i] and (i - kept >= min(1 + (i >> 10), widest) or i == n - 1)
        out[i] = keep
        if keep:
            kept = i


@kernel(void, I8, F8, F8, F8_2, F8_3, I8, b1, I8_2_out, F8_3_out, F8_3_out, F8_3_out)
def walk_tables(codes, shares, arm_shares, totals, tables, ends, final, places, folds, at, arms_at):
    """Go on down tables of running sums that are there already, one for each replicate: rows 1 … ends[r] - 1 of each.

    Row 0 is where the walk has come to, ``places`` and ``folds`` what it has read; it begins with zeros. ``final`` says that the
    tables end here. Rankings whose rows lie in several places are walked down range by range.
    """
    _consume(codes, shares, arm_shares, totals, tables, ends, places, final, folds, at, arms_at)
    if final:
        for r in range(len(ends)):
            for g in range(places[r, 0], len(shares)):
                at[r, g, :] = totals[r]
            for arm in range(2):
                for g in range(places[r, 1 + arm], len(arm_shares)):
                    arms_at[r, g, 2 * arm], arms_at[r, g, 2 * arm + 1] = totals[r, 2 * arm], totals[r, 2 * arm + 1]


@kernel(i8, F8, f8, f8, i8, B1_out)
def thin_table(people, total, kept, cells, out):
    """Which rows of a table stay apart in replicates: about ``cells`` of them, finer towards the top, as in ``thin``.

    ``people`` is the number of rows so far, ``kept`` that of the last one kept; returns how many are kept.
    """
    count, widest, grain = 0, max(total / cells, 1.0), max(cells // 16, 1)
    for i in range(len(people)):
        keep = people[i] - kept >= min(1.0 + people[i] // grain, widest) or people[i] == total
        out[i] = keep
        if keep:
            kept = people[i]
            count += 1
    return count


@kernel(void, F8_3, F8_3_out, I8_out)
def run_down(sums, tables, ends):
    """Tables of running sums from the sums of cells (cells, 5, replicates); cells in which nobody was drawn make no row."""
    tables[:, 0, :] = 0.0
    for r in range(sums.shape[2]):
        end = 1
        for c in range(len(sums)):
            for j in range(5):
                tables[r, end, j] = tables[r, end - 1, j] + sums[c, j, r]
            if sums[c, ROWS, r] > 0.0:
                end += 1
        ends[r] = end
