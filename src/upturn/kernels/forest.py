"""Prediction: the flat node table of a forest, and rows dropped down it eight at a time.

A node is two 32-bit halves, so that it lies in one cache line and a step is few instructions:

    nodes[2 i]      column of the codes in bits 31..8, cut in bits 7..0
    nodes[2 i + 1]  left child; the right child is the next node

Codes are one byte a value with 0 for missing, and every feature has two columns: the code c, and c - 1 modulo 256, which
has missing at the other end of the scale (``twin_codes``). A split where missing values go right reads the second
column, and ``code > cut`` is the whole test. A leaf has a cut of 255, which no code exceeds, and is its own left child:
rows that have arrived stay where they are until the last of the eight has. Eight at once, because a step waits for the
one before it. Trees with splits on sets of categories go a slower way, as do the last rows of a table.
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import F8_2, I4, U1, U4, U4_2, U8_2, F8_2_out, U4_out, i8, inner, kernel, void

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


@kernel(void, U1, i8, U4, U4, U4, I4, U8_2, U4_out)
def _find_leaves(codes, columns, roots, plain, nodes, set_of, sets, leaf):
    width = np.uint64(columns)
    n = np.uint64(leaf.size // roots.size)
    for tree in range(np.uint64(roots.size)):
        row = _ZERO
        if plain[tree]:
            while row + _EIGHT <= n:
                _drop_eight(codes, width, row * width, roots[tree], nodes, leaf, tree * n + row)
                row += _EIGHT
        while row < n:
            leaf[tree * n + row] = _drop_one(codes, row * width, roots[tree], nodes, set_of, sets)
            row += _ONE


def find_leaves(codes, roots, plain, nodes, set_of, sets):
    """Return the node each row ends in, of shape (trees, rows); ``plain`` trees have no split on a set."""
    leaf = np.empty((len(roots), len(codes)), np.uint32)
    if leaf.size:
        _find_leaves(codes.reshape(-1), codes.shape[1], roots, plain, nodes, set_of, sets, leaf.reshape(-1))
    return leaf


@kernel(void, U4_2, F8_2, F8_2_out)
def add_values(leaf, values, out):
    """Add to each row the values of its leaves, tree after tree."""
    for tree in range(np.uint64(leaf.shape[0])):
        for row in range(np.uint64(leaf.shape[1])):
            at = np.uint64(leaf[tree, row])
            for k in range(np.uint64(values.shape[1])):
                out[row, k] += values[at, k]


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
