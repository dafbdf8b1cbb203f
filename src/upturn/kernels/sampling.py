"""Which rows a tree sees: exact subsamples by arm and Poisson bootstraps, row by row.

Every row has a role (``OUT``, ``IN``, ``GROW``, ``ESTIMATE``, ...). ``choose`` moves, in each arm, an exact number of
rows from one role to another: those with the smallest hashes. It needs two passes and small tables, no sort of the
rows: the first counts hashes by their leading bits, which gives the cell where the cut lies; only the rows of that cell
are sorted.
"""

from __future__ import annotations

import math

import numpy as np

from upturn.kernels._jit import I8, U1, I8_2_out, I8_out, U1_out, U4_out, U8_out, f8, i8, kernel, u1, u8, void
from upturn.kernels.hashing import draw, fold, uniform

OUT, IN, GROW, ESTIMATE = np.uint8(0), np.uint8(1), np.uint8(2), np.uint8(3)
# What the draws of trees are for (``hashing`` has the other purposes).
ROWS = np.uint64(16)  # the rows a tree is grown on
HALF = np.uint64(17)  # the half sample a group of trees shares
HONEST = np.uint64(18)  # approximation against estimation rows
NODE = np.uint64(19)  # the root of the keys of a tree's nodes
EDGES = np.uint64(20)  # the rows whose values decide the edges of the bins
PRUNE = np.uint64(21)  # the validation rows of a pruned tree
OUTCOME = np.uint64(22)  # all draws of the trees that predict the outcome
REHEARSAL = np.uint64(23)  # the made experiment that intervals are calibrated on

_CELLS = 4096
_SHIFT = np.uint64(52)
_MOST = 15  # copies of a row in one bootstrap: the chance of more is 2e-14 a row


@kernel(u8, u8, u8, u8)
def purpose_key(seed, purpose, number):
    """Key of all draws for a purpose in tree (or group of trees) ``number``."""
    return fold(fold(seed, purpose), number)


def choose(key, arm, source, target, wanted, role):
    """Give ``wanted[a]`` rows of each arm a role ``target`` instead of ``source``; all of them if there are fewer."""
    counts = np.zeros((wanted.size, _CELLS), np.int64)
    _count_hashes(key, arm, source, role, counts)
    # Of each arm: the cell that holds the cut, and how many of its rows are still to be chosen.
    running = np.cumsum(counts, axis=1)
    border = np.minimum((running <= wanted[:, None]).sum(axis=1), _CELLS - 1)
    arms = np.arange(wanted.size)
    held = counts[arms, border]
    still = wanted - (running[arms, border] - held)
    rows, hashes = np.empty(held.sum(), np.uint32), np.empty(held.sum(), np.uint64)
    _choose_below(key, arm, source, target, border, role, rows, hashes)
    rows = rows[np.argsort(hashes)]
    for a in arms:
        role[rows[arm[rows] == a][: still[a]]] = target


@kernel(void, u8, U1, u1, U1, I8_2_out)
def _count_hashes(key, arm, source, role, counts):
    """Count the hashes of each arm by their leading bits."""
    for row in range(np.uint64(role.size)):
        if role[row] == source:
            counts[np.uint64(arm[row]), draw(key, row) >> _SHIFT] += 1


@kernel(void, u8, U1, u1, u1, I8, U1_out, U4_out, U8_out)
def _choose_below(key, arm, source, target, border, role, rows, hashes):
    """Choose the rows in cells before the border, and list those in the cell at the border."""
    size = np.uint64(0)
    for row in range(np.uint64(role.size)):
        if role[row] == source:
            h = draw(key, row)
            side = np.int64(h >> _SHIFT) - border[np.uint64(arm[row])]
            if side < 0:
                role[row] = target
            elif side == 0:
                rows[size], hashes[size] = row, h
                size += np.uint64(1)


@kernel(void, u8, f8, u1, u1, U1_out, U1_out)
def poisson_bootstrap(key, rate, source, target, role, copies):
    """Draw how often each row of role ``source`` appears, Poisson with mean ``rate``; rows that do get ``target``."""
    none = math.exp(-rate)
    for row in range(role.size):
        if role[row] != source:
            continue
        u = uniform(draw(key, np.uint64(row)))
        k = 0
        chance = none
        below = none
        while u >= below and k < _MOST:
            k += 1
            chance *= rate / k
            below += chance
        copies[row] = k
        if k > 0:
            role[row] = target


@kernel(void, U1, u1, U1, I8_out)
def count_roles(role, value, arm, out):
    """Add the number of rows of a role to ``out``, by arm."""
    for row in range(role.size):
        if role[row] == value:
            out[arm[row]] += 1


@kernel(i8, U1, u1, U1, I8, i8, i8, U1, U4_out, I8_out, U1_out)
def gather_rows(role, value, copies, words, n_words, weight_word, arm, index, word, row_arm):
    """List the rows of a role, ascending, with what the histograms add for them; return how many.

    ``copies`` may be empty (every row once). Without them, rows that come without their weight, ``weight_word``, stay so.
    """
    m = 0
    for row in range(role.size):
        if role[row] == value:
            times = np.int64(copies[row]) if copies.size > 0 else 1
            index[m] = row
            row_arm[m] = arm[row]
            if n_words == 1 or (weight_word > 0 and copies.size == 0):
                word[m] = words[row] * times
            else:
                word[2 * m] = (weight_word if weight_word > 0 else words[2 * row]) * times
                word[2 * m + 1] = (words[row] if weight_word > 0 else words[2 * row + 1]) * times
            m += 1
    return m
