"""Prediction: the flat node table of a forest, and rows dropped down it four at a time.

A node is one 64-bit word, so a step is one load of the word, one of a code, a comparison and an addition:

    bits 63..32  left child; the right child is the next node
    bits 31..12  feature
    bits 11..4   cut (less one if missing values go right)
    bit  2       leaf: its left child is itself
    bit  1       the split is a set of categories
    bit  0       missing values go right

Codes are one byte a value with 0 for missing: taking bit 0 from the code modulo 256 sends missing to either end of the
scale, and ``code <= cut`` is the whole test. Rows are interleaved because a step waits for the one before it; four rows
at once keep the processor busy.
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import F8_2, U1_2, U8, U8_2, F8_2_out, I4_2_out, U8_out, i8, inner, kernel, void

MOST_FEATURES = 1 << 20
_LEAF, _SET, _RIGHT = np.uint64(4), np.uint64(2), np.uint64(1)
_CHILD, _FEATURE, _CUT = np.uint64(32), np.uint64(12), np.uint64(4)
_FEATURE_MASK, _BYTE_MASK = np.uint64(MOST_FEATURES - 1), np.uint64(255)
_SIX, _LOW_SIX = np.uint64(6), np.uint64(63)
_ONE, _TWO, _THREE, _FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@inner
def _step(word, node, codes, row, set_of, sets):
    code = np.uint64(codes[row, (word >> _FEATURE) & _FEATURE_MASK])
    if word & _SET:
        chosen = sets[set_of[node], code >> _SIX]
        right = _ONE - ((chosen >> (code & _LOW_SIX)) & _ONE)
    else:
        right = np.uint64(((code - (word & _RIGHT)) & _BYTE_MASK) > ((word >> _CUT) & _BYTE_MASK))
    return (word >> _CHILD) + right


@inner
def _find_leaves(codes, root, words, set_of, sets, leaf):
    n = np.uint64(codes.shape[0])
    row = np.uint64(0)
    while row + _FOUR <= n:
        a, b, c, d = root, root, root, root
        wa, wb, wc, wd = words[a], words[b], words[c], words[d]
        while not wa & wb & wc & wd & _LEAF:
            a = _step(wa, a, codes, row, set_of, sets)
            b = _step(wb, b, codes, row + _ONE, set_of, sets)
            c = _step(wc, c, codes, row + _TWO, set_of, sets)
            d = _step(wd, d, codes, row + _THREE, set_of, sets)
            wa, wb, wc, wd = words[a], words[b], words[c], words[d]
        leaf[row], leaf[row + _ONE], leaf[row + _TWO], leaf[row + _THREE] = a, b, c, d
        row += _FOUR
    while row < n:
        a = root
        wa = words[a]
        while not wa & _LEAF:
            a = _step(wa, a, codes, row, set_of, sets)
            wa = words[a]
        leaf[row] = a
        row += _ONE


@kernel(void, U1_2, U8, U8, U8, U8_2, F8_2, U8_out, F8_2_out)
def add_values(codes, roots, words, set_of, sets, values, leaf, out):
    """Add to each row the values of the leaves it falls in, tree after tree."""
    for tree in range(roots.size):
        _find_leaves(codes, roots[tree], words, set_of, sets, leaf)
        for row in range(np.uint64(codes.shape[0])):
            for k in range(np.uint64(values.shape[1])):
                out[row, k] += values[leaf[row], k]


@kernel(void, U1_2, U8, U8, U8, U8_2, U8_out, I4_2_out)
def apply(codes, roots, words, set_of, sets, leaf, out):
    """Write the leaf of each row in each tree, counted from the tree's own root."""
    for tree in range(roots.size):
        root = roots[tree]
        _find_leaves(codes, root, words, set_of, sets, leaf)
        for row in range(np.uint64(codes.shape[0])):
            out[row, tree] = leaf[row] - root


@kernel(void, U1_2, U8, U8, U8, U8_2, F8_2, i8, U8_out, F8_2_out, F8_2_out, F8_2_out, F8_2_out)
def group_moments(codes, roots, words, set_of, sets, values, size, leaf, group, mean, between, total):
    """Add up effects over groups of ``size`` consecutive trees: their sum, squared group means and squared trees."""
    n = np.uint64(codes.shape[0])
    effects = np.uint64(mean.shape[1])
    for tree in range(roots.size):
        _find_leaves(codes, roots[tree], words, set_of, sets, leaf)
        closes = (tree + 1) % size == 0
        for row in range(n):
            control = values[leaf[row], 0]
            for k in range(effects):
                effect = values[leaf[row], k + _ONE] - control
                group[row, k] += effect
                total[row, k] += effect * effect
                if closes:
                    average = group[row, k] / size
                    mean[row, k] += average
                    between[row, k] += average * average
                    group[row, k] = 0.0


def pack_nodes(feature, cut, left, is_set, missing_left):
    """Words of a node table whose children are numbered through the whole table; leaves have a left child of -1."""
    leaf = left < 0
    right = np.where(leaf | missing_left, 0, 1).astype(np.uint64)
    child = np.where(leaf, np.arange(left.size), left).astype(np.uint64)
    at = np.where(leaf, 255, np.where(is_set, 0, cut - right.astype(np.int64))).astype(np.uint64)
    which = np.where(leaf, 0, feature).astype(np.uint64)
    flags = np.where(leaf, _LEAF, np.where(is_set, _SET, np.uint64(0))) | right
    return (child << _CHILD) | (which << _FEATURE) | (at << _CUT) | flags
