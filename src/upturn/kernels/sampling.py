"""Which rows a tree sees: exact subsamples by arm and Poisson bootstraps, row by row.

Every row has a role (``OUT``, ``IN``, ``GROW``, ``ESTIMATE``, ...). ``choose`` moves, in each arm, an exact number of
rows from one role to another: those with the smallest hashes. It needs two passes and small tables, no sort of the
rows: the first counts hashes by their leading bits, which gives the cell where the cut lies; only the rows of that cell
are sorted.
"""

from __future__ import annotations

import math

import numpy as np

from upturn.kernels._jit import I8, U1, I8_out, U1_out, U4_out, f8, i8, kernel, u1, u8, void
from upturn.kernels.hashing import draw, fold, uniform

OUT, IN, GROW, ESTIMATE = np.uint8(0), np.uint8(1), np.uint8(2), np.uint8(3)
# What the draws of trees are for (``hashing`` has the other purposes).
ROWS = np.uint64(16)  # the rows a tree is grown on
HALF = np.uint64(17)  # the half sample a group of trees shares
HONEST = np.uint64(18)  # approximation against estimation rows
NODE = np.uint64(19)  # the root of the keys of a tree's nodes
EDGES = np.uint64(20)  # the rows whose values decide the edges of the bins
PRUNE = np.uint64(21)  # the validation rows of a pruned tree

_CELLS = 4096
_SHIFT = np.uint64(52)
_MOST = 15  # copies of a row in one bootstrap: the chance of more is 2e-14 a row


@kernel(u8, u8, u8, u8)
def purpose_key(seed, purpose, number):
    """Key of all draws for a purpose in tree (or group of trees) ``number``."""
    return fold(fold(seed, purpose), number)


@kernel(void, u8, U1, u1, u1, I8, U1_out)
def choose(key, arm, source, target, wanted, role):
    """Give ``wanted[a]`` rows of each arm a role ``target`` instead of ``source``; all of them if there are fewer."""
    n_arms = wanted.size
    counts = np.zeros((n_arms, _CELLS), np.int64)
    n = role.size
    for row in range(n):
        if role[row] == source:
            counts[arm[row], np.int64(draw(key, np.uint64(row)) >> _SHIFT)] += 1
    border = np.zeros(n_arms, np.int64)  # the cell that holds the cut, and how many rows it still gives
    still = np.zeros(n_arms, np.int64)
    size = 0
    for a in range(n_arms):
        left = wanted[a]
        cell = 0
        while cell < _CELLS - 1 and left >= counts[a, cell]:
            left -= counts[a, cell]
            cell += 1
        border[a] = cell
        still[a] = left
        size += counts[a, cell]
    hashes = np.empty(size, np.uint64)
    rows = np.empty(size, np.int64)
    size = 0
    for row in range(n):
        if role[row] == source:
            h = draw(key, np.uint64(row))
            cell = np.int64(h >> _SHIFT)
            a = arm[row]
            if cell < border[a]:
                role[row] = target
            elif cell == border[a]:
                hashes[size] = h
                rows[size] = row
                size += 1
    for i in np.argsort(hashes[:size]):
        a = arm[rows[i]]
        if still[a] > 0:
            role[rows[i]] = target
            still[a] -= 1


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
    """Count the rows of a role by arm."""
    out[:] = 0
    for row in range(role.size):
        if role[row] == value:
            out[arm[row]] += 1


@kernel(i8, U1, u1, U1, I8, i8, U1, U4_out, I8_out, U1_out)
def gather_rows(role, value, copies, words, n_words, arm, index, word, row_arm):
    """List the rows of a role, ascending, with what the histograms add for them; return how many.

    ``copies`` may be empty (every row once).
    """
    m = 0
    for row in range(role.size):
        if role[row] == value:
            times = np.int64(copies[row]) if copies.size > 0 else 1
            index[m] = row
            row_arm[m] = arm[row]
            for k in range(n_words):
                word[m * n_words + k] = words[row * n_words + k] * times
            m += 1
    return m
