"""Per-arm histograms of weight and outcome over the codes of a feature.

A histogram is a flat int64 array ``cells[(arm * n_words + word) * 256 + code]``; several features lie one after the
other. A cell has one of two forms, fixed for a whole forest:

packed
    one word a cell: the number of rows above bit ``shift``, the sum of an integer outcome below it. For unweighted
    binary or small-integer outcomes. One addition a row.
paired
    two words a cell, (weight, weight * outcome), both fixed-point numbers with one power-of-two scale each. The words
    of a row are neighbours, those of a histogram lie in two planes, so that a scan of the codes reads straight runs.
    Where all weights are equal, ``weight_word`` is the word of them all and a row has only the second: less to move about.

Either way sums are exact integers: subtraction is exact, the order of rows is of no consequence, and a tree is the same
to the last bit however the work was shared out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from upturn.kernels._jit import (
    F8,
    I8,
    U1,
    U4,
    F8_out,
    I8_2_out,
    I8_out,
    U1_out,
    U4_out,
    b1,
    f8,
    i8,
    inner,
    kernel,
    void,
)


class Rows(NamedTuple):
    """Rows in node order: which row, what a histogram adds for it, its arm."""

    index: object  # type: ignore[assignment]  # tuples have a method of that name, which nobody calls here
    word: object
    arm: object


class SeenRows(NamedTuple):
    """The same, to be read only: a type of its own, because older numba does not look at flags of arrays inside a tuple."""

    index: object  # type: ignore[assignment]
    word: object
    arm: object


class Layout(NamedTuple):
    """How a histogram cell is read: value = units * integer + origin * weight.

    Units are 1 with one word, the origin is 0 with two. ``weight_word`` is the first word of every row, if rows have
    only the second of two; 0 otherwise.
    """

    n_words: int
    shift: int
    weight_unit: float
    total_unit: float
    origin: float
    weight_word: int


ROWS = types.NamedTuple((U4_out, I8_out, U1_out), Rows)
SEEN_ROWS = types.NamedTuple((U4, I8, U1), SeenRows)
LAYOUT = types.NamedTuple((i8, i8, f8, f8, f8, i8), Layout)
CELLS = 256  # codes of a feature
PASS_BYTES = 16 * 2**10  # of histograms that one pass over the rows fills
_ONE = np.uint64(1)
_BYTE, _NINE = np.uint64(8), np.uint64(9)
_PLANE = np.uint64(CELLS)
EXPONENTS = 2048  # places of a table of exponents: those of float64
_MANTISSA, _TRIMMED, _NOUGHT = (
    np.uint64(52),
    np.uint64(22),
    np.uint64(0),
)  # bits of a mantissa, and those of it that are left out
_FRACTION, _HIDDEN = np.uint64(2**52 - 1), np.uint64(2**52)


def seen(rows):
    """Rows for kernels that only read them; of the arrays inside a tuple a kernel takes one kind only."""
    return SeenRows(*map(frozen, rows))


def frozen(array):
    """The same numbers, read-only."""
    view = array.view()
    view.flags.writeable = False
    return view


def empty_rows(n, layout):
    """Room for ``n`` rows."""
    return Rows(np.empty(n, np.uint32), np.empty(n * _words_a_row(layout), np.int64), np.empty(n, np.uint8))


def _words_a_row(layout):
    return 1 if layout.weight_word > 0 else layout.n_words


words_a_row = inner(_words_a_row)


@inner
def _add_exponent(table, which, value):
    """Add a number that is not negative to a table of exponents: its leading 31 bits, at the place of its exponent.

    Integers add up exactly in any order, and what the other bits are worth cannot matter to a power of two with room to spare.
    """
    bits = np.float64(value).view(np.uint64)
    place, mantissa = bits >> _MANTISSA, bits & _FRACTION
    if place > _NOUGHT:
        mantissa |= _HIDDEN
    else:
        place = _ONE
    table[which, place] += np.int64(mantissa >> _TRIMMED)


@kernel(b1, F8, F8, I8_2_out, F8_out)
def outcome_sums(y, weight, tables, largest):
    """Add the weights and the products weight * |y| to two tables of exponents; return whether all weights are whole.

    An empty ``weight`` stands for 1 everywhere, which is not added up. ``largest`` gets the largest |y| and the largest weight.
    """
    whole, bare = True, weight.size == 0
    most, heaviest = 0.0, 0.0
    for i in range(y.size):
        w, size = 1.0 if bare else weight[i], abs(y[i])
        if not bare:
            _add_exponent(tables, 0, w)
        _add_exponent(tables, 1, w * size)
        most = size if size > most else most
        heaviest = w if w > heaviest else heaviest
        whole &= w == np.floor(w)
    largest[0], largest[1] = most, heaviest
    return whole


@kernel(void, F8, F8, b1, f8, f8, I8_out)
def write_pairs(y, weight, whole, weight_scale, scale, words):
    """Fixed-point words (weight, weight * outcome) of every row.

    With ``whole`` weights the outcome is rounded to its grid before it is multiplied, so a weight counts as repeated rows
    do. Other weights are multiplied first: where they are heavy, an outcome's own grid would be too coarse.
    """
    for i in range(y.size):
        w = weight[i]
        words[2 * i] = np.int64(np.rint(w * weight_scale))
        if whole:
            words[2 * i + 1] = np.int64(np.rint(y[i] * scale)) * np.int64(w)
        else:
            words[2 * i + 1] = np.int64(np.rint(w * y[i] * scale))


@inner
def features_a_pass(n_arms, layout):
    """How many histograms one pass over the rows fills: 4 (of one word a cell), 2 or 1, the most that take at most 16 KiB together.

    A row touches a cell of each of them, anywhere in it. So they have to stay in the smallest cache, which holds 32 KiB in
    many processors, beside the rows and codes that stream through it. Nothing but time hangs on the number.
    """
    most = PASS_BYTES // (8 * CELLS * layout.n_words * n_arms)
    return 4 if most >= 4 and layout.n_words == 1 else (2 if most >= 2 else 1)


@inner
def add_rows(codes, stride, features, first, last, rows, start, stop, layout, n_arms, cells, base):
    """Add rows ``start:stop`` of the node order to the histograms of ``features[first:last]``, a few features a pass.

    ``codes[feature * stride + index[i]]`` is the code of the i-th row; the first feature's histogram starts at
    ``cells[base]``, the others follow. Unsigned indices spare the test for negative ones in the innermost loops.
    """
    index, word, arm = rows.index, rows.word, rows.arm
    n_words, weight_word = layout.n_words, layout.weight_word
    size, few = n_arms * CELLS * n_words, features_a_pass(n_arms, layout)
    begin, end = np.uint64(start), np.uint64(stop)
    wide = np.uint64(stride)
    at = base
    j = first
    while few == 4 and j + 4 <= last:  # packed
        c0, c1 = np.uint64(features[j]) * wide, np.uint64(features[j + 1]) * wide
        c2, c3 = np.uint64(features[j + 2]) * wide, np.uint64(features[j + 3]) * wide
        h0, h1 = np.uint64(at), np.uint64(at + size)
        h2, h3 = np.uint64(at + 2 * size), np.uint64(at + 3 * size)
        _packed_four(codes, c0, c1, c2, c3, index, word, arm, begin, end, h0, h1, h2, h3, cells)
        at += 4 * size
        j += 4
    while few >= 2 and j + 2 <= last:
        c0, c1 = np.uint64(features[j]) * wide, np.uint64(features[j + 1]) * wide
        h0, h1 = np.uint64(at), np.uint64(at + size)
        if n_words == 1:
            _packed_two(codes, c0, c1, index, word, arm, begin, end, h0, h1, cells)
        else:
            _paired_two(codes, c0, c1, index, word, weight_word, arm, begin, end, h0, h1, cells)
        at += 2 * size
        j += 2
    while j < last:
        c0, h0 = np.uint64(features[j]) * wide, np.uint64(at)
        if n_words == 1:
            _packed_one(codes, c0, index, word, arm, begin, end, h0, cells)
        else:
            _paired_one(codes, c0, index, word, weight_word, arm, begin, end, h0, cells)
        at += size
        j += 1


@inner
def _packed_four(codes, c0, c1, c2, c3, index, word, arm, first, last, h0, h1, h2, h3, cells):
    for i in range(first, last):
        row = np.uint64(index[i])
        w = word[i]
        o = np.uint64(arm[i]) << _BYTE
        cells[h0 + o + np.uint64(codes[c0 + row])] += w
        cells[h1 + o + np.uint64(codes[c1 + row])] += w
        cells[h2 + o + np.uint64(codes[c2 + row])] += w
        cells[h3 + o + np.uint64(codes[c3 + row])] += w


@inner
def _packed_two(codes, c0, c1, index, word, arm, first, last, h0, h1, cells):
    for i in range(first, last):
        row = np.uint64(index[i])
        w = word[i]
        o = np.uint64(arm[i]) << _BYTE
        cells[h0 + o + np.uint64(codes[c0 + row])] += w
        cells[h1 + o + np.uint64(codes[c1 + row])] += w


@inner
def _packed_one(codes, c0, index, word, arm, first, last, h0, cells):
    for i in range(first, last):
        cells[h0 + (np.uint64(arm[i]) << _BYTE) + np.uint64(codes[c0 + np.uint64(index[i])])] += word[i]


@inner
def _paired_two(codes, c0, c1, index, word, weight_word, arm, first, last, h0, h1, cells):
    bare = weight_word > 0
    for i in range(first, last):
        row = np.uint64(index[i])
        w = weight_word if bare else word[i + i]
        v = word[i] if bare else word[i + i + _ONE]
        o = np.uint64(arm[i]) << _NINE
        k0, k1 = h0 + o + np.uint64(codes[c0 + row]), h1 + o + np.uint64(codes[c1 + row])
        cells[k0] += w
        cells[k0 + _PLANE] += v
        cells[k1] += w
        cells[k1 + _PLANE] += v


@inner
def _paired_one(codes, c0, index, word, weight_word, arm, first, last, h0, cells):
    bare = weight_word > 0
    for i in range(first, last):
        k = h0 + (np.uint64(arm[i]) << _NINE) + np.uint64(codes[c0 + np.uint64(index[i])])
        cells[k] += weight_word if bare else word[i + i]
        cells[k + _PLANE] += word[i] if bare else word[i + i + _ONE]


@inner
def subtract(cells, parent, child, length):
    """Take a child's histograms from its parent's: what is left is the other child's."""
    start, other = np.uint64(parent), np.uint64(child)
    for i in range(np.uint64(length)):
        cells[start + i] -= cells[other + i]


@inner
def node_sums(rows, start, stop, n_arms, layout, out, at):
    """Integer sums of rows ``start:stop``: weights of the arms into ``out[at:]``, outcomes right after."""
    word, arm, weight_word = rows.word, rows.arm, layout.weight_word
    for a in range(2 * n_arms):
        out[at + a] = 0
    first, last = np.uint64(start), np.uint64(stop)
    if layout.n_words == 1:
        for i in range(first, last):
            out[at + arm[i]] += word[i]
        mask = (np.int64(1) << layout.shift) - 1
        for a in range(n_arms):
            packed = out[at + a]
            out[at + a] = packed >> layout.shift
            out[at + n_arms + a] = packed & mask
    else:
        for i in range(first, last):
            out[at + arm[i]] += weight_word if weight_word > 0 else word[i + i]
            out[at + n_arms + arm[i]] += word[i] if weight_word > 0 else word[i + i + _ONE]


@kernel(void, SEEN_ROWS, i8, i8, LAYOUT, I8_out)
def sum_rows(rows, start, stop, layout, sums):
    """Integer sums of rows ``start:stop``: the weight of each arm, then the outcome of each."""
    node_sums(rows, start, stop, sums.size // 2, layout, sums, 0)


@kernel(void, U1, i8, I8, SEEN_ROWS, i8, i8, LAYOUT, i8, I8_out)
def build(codes, stride, features, rows, start, stop, layout, n_arms, cells):
    """Histograms of the listed features over rows ``start:stop``, one after the other."""
    for i in range(cells.size):
        cells[i] = 0
    add_rows(codes, stride, features, 0, features.size, rows, start, stop, layout, n_arms, cells, 0)
