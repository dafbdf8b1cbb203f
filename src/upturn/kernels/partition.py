"""The rows of a node, divided by its split: those that go left in front, the order kept on both sides.

A row is followed by what it carries, so that both children are again ranges of the same arrays.
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import U1, i8, inner, kernel
from upturn.kernels.histogram import LAYOUT, ROWS, words_a_row


@inner
def move_rows(codes, stride, feature, goes_left, rows, start, stop, n_words, spare):
    """Move rows of ``n_words`` words that go left to the front of ``start:stop``; return where the others begin."""
    index, arm, index2, arm2 = rows.index, rows.arm, spare.index, spare.arm
    base, first, last = np.uint64(feature) * np.uint64(stride), np.uint64(start), np.uint64(stop)
    if n_words == 1:
        left = _move_ones(codes, base, goes_left, index, rows.word, arm, first, last, index2, spare.word, arm2)
    else:
        left = _move_pairs(codes, base, goes_left, index, rows.word, arm, first, last, index2, spare.word, arm2)
    for i in range(last - left):
        index[left + i] = index2[i]
        arm[left + i] = arm2[i]
    words, word, word2 = np.uint64(n_words), rows.word, spare.word
    for i in range((last - left) * words):
        word[left * words + i] = word2[i]
    return np.int64(left)


# Every row is written to both sides, and only the side it belongs to moves on: no branch to guess. What a row carries is read
# just before it is written: the loop then fits the registers.


@inner
def _move_ones(codes, base, goes_left, index, word, arm, first, last, index2, word2, arm2):
    left, right, one = first, np.uint64(0), np.uint64(1)
    for i in range(first, last):
        row = index[i]
        g = np.uint64(goes_left[codes[base + np.uint64(row)]])
        index[left] = row
        index2[right] = row
        a = arm[i]
        arm[left] = a
        arm2[right] = a
        w = word[i]
        word[left] = w
        word2[right] = w
        left += g
        right += one - g
    return left


@inner
def _move_pairs(codes, base, goes_left, index, word, arm, first, last, index2, word2, arm2):
    left, right, one = first, np.uint64(0), np.uint64(1)
    for i in range(first, last):
        row = index[i]
        g = np.uint64(goes_left[codes[base + np.uint64(row)]])
        index[left] = row
        index2[right] = row
        a = arm[i]
        arm[left] = a
        arm2[right] = a
        w, t = word[i + i], word[i + i + one]
        word[left + left] = w
        word[left + left + one] = t
        word2[right + right] = w
        word2[right + right + one] = t
        left += g
        right += one - g
    return left


@kernel(i8, U1, i8, i8, U1, ROWS, i8, i8, LAYOUT, ROWS)
def partition(codes, stride, feature, goes_left, rows, start, stop, layout, spare):
    """Divide rows ``start:stop`` by the codes of a feature; return where those begin that go right.

    ``codes[feature * stride + index[i]]`` is the code of the i-th row, ``goes_left[code]`` is 1 or 0. ``spare`` has room for
    as many rows.
    """
    return move_rows(codes, stride, feature, goes_left, rows, start, stop, words_a_row(layout), spare)
