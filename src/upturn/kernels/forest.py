"""Prediction: the flat node table of a forest, and rows dropped down it eight at a time.

A node is two 32-bit halves, so that it lies in one cache line and a step is few instructions:

    nodes[2 i]      column of the codes in bits 31..8, cut in bits 7..0
    nodes[2 i + 1]  left child; the right child is the next node

Codes are one byte a value with 0 for missing, and every feature has two columns: the code c, and c - 1 modulo 256, which
has missing at the other end of the scale (``twin_codes``). A split where missing values go right reads the second
column, and ``code > cut`` is the whole test. A leaf has a cut of 255, which no code exceeds, and is its own left child:
rows that have arrived stay where they are until the last of the eight has. Eight at once, because a step waits for the
one before it. Trees with splits on sets of categories go a slower way, as do the last rows of a table.

``add_up`` does all of it, from values to sums over the trees, a block of rows after the other in one call: threads that
share the rows out meet neither in Python nor in memory. ``find_leaves`` is for those who want the leaves.
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import F8_2, I4, I8, I8_2, U1, U4, U4_2, U8_2, F8_2_out, U4_out, i8, inner, kernel, void
from upturn.kernels.binning import encode_rows

MOST_FEATURES = 1 << 22
_LEAF = np.uint64(255)
_CUT, _COLUMN = np.uint64(255), np.uint64(8)
_SIX, _LOW_SIX = np.uint64(6), np.uint64(63)
_ZERO, _ONE, _EIGHT = np.uint64(0), np.uint64(1), np.uint64(8)


@inner
def _drop_eight(codes, width, at, root, nodes, leaf, first):
    """Leaves of eight rows, written from ``leaf[first]`` on; their codes start at ``codes[at]``."""
    for i in range(_EIGHT):
        leaf[first + i] = root
    arrived = _ZERO
    while arrived != _LEAF:
        arrived = _LEAF
        here = at
        for i in range(_EIGHT):
            node = np.uint64(leaf[first + i])
            split = np.uint64(nodes[node + node])
            arrived &= split
            right = np.uint64(codes[here + (split >> _COLUMN)]) > (split & _CUT)
            leaf[first + i] = np.uint64(nodes[node + node + _ONE]) + np.uint64(right)
            here += width


@inner
def _drop_one(codes, at, root, nodes, set_of, sets):
    """Leaf of one row, whatever the splits are."""
    node = np.uint64(root)
    while True:
        split = np.uint64(nodes[node + node])
        code = np.uint64(codes[at + (split >> _COLUMN)])
        if set_of[node] >= 0:
            chosen = sets[np.uint64(set_of[node]), code >> _SIX]
            right = _ONE - ((chosen >> (code & _LOW_SIX)) & _ONE)
        elif split & _CUT == _LEAF:
            return node
        else:
            right = np.uint64(code > (split & _CUT))
        node = np.uint64(nodes[node + node + _ONE]) + right


@inner
def _drop(codes, width, root, plain, nodes, set_of, sets, leaf, first, n):
    """Leaves of ``n`` rows in one tree, written from ``leaf[first]`` on."""
    row = _ZERO
    if plain:
        while row + _EIGHT <= n:
            _drop_eight(codes, width, row * width, root, nodes, leaf, first + row)
            row += _EIGHT
    while row < n:
        leaf[first + row] = _drop_one(codes, row * width, root, nodes, set_of, sets)
        row += _ONE


@kernel(void, U1, i8, U4, U4, U4, I4, U8_2, U4_out)
def _find_leaves(codes, columns, roots, plain, nodes, set_of, sets, leaf):
    width = np.uint64(columns)
    n = np.uint64(leaf.size // roots.size)
    for tree in range(np.uint64(roots.size)):
        _drop(codes, width, roots[tree], plain[tree], nodes, set_of, sets, leaf, tree * n, n)


def find_leaves(codes, roots, plain, nodes, set_of, sets):
    """Return the node each row ends in, of shape (trees, rows); ``plain`` trees have no split on a set."""
    leaf = np.empty((len(roots), len(codes)), np.uint32)
    if leaf.size:
        _find_leaves(codes.reshape(-1), codes.shape[1], roots, plain, nodes, set_of, sets, leaf.reshape(-1))
    return leaf


@inner
def _add_values(leaf, n, values, begin, out):
    """Add the values of ``n`` leaves to the rows from ``begin`` on."""
    for row in range(n):
        at = np.uint64(leaf[row])
        for k in range(np.uint64(values.shape[1])):
            out[begin + row, k] += values[at, k]


@kernel(void, F8_2, F8_2, I8_2, I4, I8, U4, U4, U4, I4, U8_2, F8_2, i8, F8_2_out)
def add_up(X, edges, level_range, level_code, features, roots, plain, nodes, set_of, sets, values, size, out):
    """Add to each row of a matrix the values of its leaves, tree after tree; the trees look at ``features`` only.

    Rows are encoded, dropped and added up ``size`` at a time: their codes stay in the cache, and no others exist.
    """
    columns = 2 * X.shape[1]
    codes, leaf = np.empty(size * columns, np.uint8), np.empty(size, np.uint32)
    for begin in range(0, X.shape[0], size):
        end = min(begin + size, X.shape[0])
        n = np.uint64(end - begin)
        encode_rows(X, begin, end, edges, level_range, level_code, features, 0, columns, 2, codes)
        for tree in range(np.uint64(roots.size)):
            _drop(codes, np.uint64(columns), roots[tree], plain[tree], nodes, set_of, sets, leaf, _ZERO, n)
            _add_values(leaf, n, values, np.uint64(begin), out)


@kernel(void, U4_2, F8_2, i8, i8, F8_2_out, F8_2_out, F8_2_out, F8_2_out)
def group_moments(leaf, values, first, size, group, mean, between, total):
    """Add up effects over groups of ``size`` consecutive trees: their sum, squared group means and squared trees.

    ``first`` is the number of the first tree of ``leaf``; ``group`` holds the sums of a group that is not complete.
    """
    for tree in range(np.uint64(leaf.shape[0])):
        closes = (first + np.int64(tree) + 1) % size == 0
        for row in range(np.uint64(leaf.shape[1])):
            at = np.uint64(leaf[tree, row])
            control = values[at, _ZERO]
            for k in range(np.uint64(mean.shape[1])):
                effect = values[at, k + _ONE] - control
                group[row, k] += effect
                total[row, k] += effect * effect
                if closes:
                    average = group[row, k] / size
                    mean[row, k] += average
                    between[row, k] += average * average
                    group[row, k] = 0.0


def pack_nodes(feature, cut, left, is_set, missing_left):
    """Halves of a node table whose children are numbered through the whole table; leaves have a left child of -1."""
    leaf = left < 0
    right = np.where(leaf | is_set | missing_left, 0, 1)  # which of the feature's columns
    column = np.where(leaf, 0, 2 * feature.astype(np.int64) + right)
    nodes = np.empty((left.size, 2), np.uint32)
    nodes[:, 0] = column << 8 | np.where(leaf, 255, np.where(is_set, 0, cut - right))
    nodes[:, 1] = np.where(leaf, np.arange(left.size), left)
    return nodes.reshape(-1)


def twin_codes(codes):
    """Both columns of every feature, shape (n, 2 p), from feature-major codes of shape (p, n)."""
    twins = np.empty((codes.shape[1], codes.shape[0], 2), np.uint8)
    twins[:, :, 0] = codes.T
    np.subtract(twins[:, :, 0], np.uint8(1), out=twins[:, :, 1])
    return twins.reshape(codes.shape[1], -1)
