"""The outcome as the integers that histograms add (see ``upturn.kernels.histogram`` for the two forms of a cell).

In two steps, so that the rows may lie in several places: a summary of all outcomes, which can be added up in any order, decides the
layout and the grid, and the grid makes every row's words by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from upturn._arrays import Floats, Ints
from upturn.kernels.histogram import EXPONENTS, Layout, outcome_sums, write_pairs

_TOP_BIT = 57  # sums stay below 2^57; the bits above are for the copies of a bootstrap (at most 15)
_MOST_ROWS = 32  # exponent of two of what weights may add up to, if whole ones are to stand for repeated rows
_NEAR = 30  # exponent of two up to which the heaviest weight counts as near 1
_BIAS = 1053  # a count in place e of a table of exponents stands for 2^(e - 1053)


class OutcomeSummary(NamedTuple):
    """What all outcomes and weights together say; the weights are divided by a ``unit``.

    ``weights`` and ``products`` are the sums of the weights and of weight times \\|y\\| as tables of exponents, whose integers add up
    exactly in any order.
    """

    n: int
    low: float
    high: float
    whole: bool  # every outcome is an integer
    weighted: bool
    weights: Ints
    products: Ints
    heaviest: float
    whole_weights: bool
    unit: float


class Grid(NamedTuple):
    """How to make a row's words: their layout, the scales of both, and what weights are divided by."""

    layout: Layout
    weight_scale: float
    scale: float
    whole_weights: bool
    unit: float


def summarise(y: Floats, weight: Floats | None, unit: float = 1.0) -> OutcomeSummary:
    """The summary of some rows, at least none."""
    tables, largest = np.zeros((2, EXPONENTS), np.int64), np.zeros(2)
    scaled = np.empty(0) if weight is None else weight if unit == 1.0 else weight / unit
    whole = outcome_sums(y, scaled, tables, largest)
    low, high = (float(y.min()), float(y.max())) if len(y) else (np.inf, -np.inf)
    integers = bool((y == np.floor(y)).all())
    weights, products = tables
    heaviest = float(largest[1])
    return OutcomeSummary(
        len(y), low, high, integers, weight is not None, weights, products, heaviest, bool(whole), unit
    )


def merge_summaries(parts: Sequence[OutcomeSummary]) -> OutcomeSummary:
    """The summary of the rows of all parts."""
    n, low, high, whole, weighted, weights, products, heaviest, whole_weights, unit = zip(*parts, strict=True)
    return OutcomeSummary(
        sum(n),
        min(low),
        max(high),
        all(whole),
        any(weighted),
        np.sum(weights, axis=0),
        np.sum(products, axis=0),
        max(heaviest),
        all(whole_weights),
        unit[0],
    )


def unit_of(summary: OutcomeSummary) -> float:
    """What weights are to be divided by: a power of two that brings the heaviest near 1, if it is far; 1 for whole weights."""
    exponent = int(np.frexp(summary.heaviest)[1])
    near = not summary.weighted or _are_counts(summary) or abs(exponent) <= _NEAR
    return 1.0 if near else 2.0 ** (exponent - 1)


def grid_of(summary: OutcomeSummary) -> Grid:
    """The grid of a summary made with its own unit (``unit_of``).

    Unweighted integers of a small range are packed, exactly, with the row count into one word. Anything else takes two
    fixed-point words: the scale is the largest power of two that leaves room for the sum over all rows. With integer
    weights the outcome is rounded to that grid before it is multiplied, so they count exactly as repeated rows do. Other
    weights are brought near 1 by a power of two, if they are far from it.
    """
    n, low, span = summary.n, summary.low, summary.high - summary.low
    if not summary.weighted:
        count_bits = int(16 * n).bit_length()
        if span <= 2.0**31 and summary.whole and abs(low) <= 2.0**31:
            shift = int(span * 16 * n).bit_length()
            if shift + count_bits <= 62:
                return Grid(Layout(1, shift, 1.0, 1.0, low, 0), 1.0, 1.0, True, 1.0)
    most = max(abs(summary.low), abs(summary.high))
    largest = int(np.frexp(most)[1]) if most > 0.0 else None
    total, products = _exponent(summary.weights), _exponent(summary.products)
    if not summary.weighted:
        weight_scale, scale = _scale(int(np.frexp(float(n))[1])), _scale(products, largest)
        return Grid(
            Layout(2, 0, 1.0 / weight_scale, 1.0 / scale, 0.0, int(weight_scale)), weight_scale, scale, True, 1.0
        )
    counts = summary.unit == 1.0 and _are_counts(summary)
    weight_scale, scale = _scale(total), _scale(products, largest) if counts else _scale(products)
    layout = Layout(2, 0, summary.unit / weight_scale, summary.unit / scale, 0.0, 0)
    return Grid(layout, weight_scale, scale, counts, summary.unit)


def grid_within(total: float, most: float, *, weighted: bool) -> Grid:
    """The grid of numbers of at most a size whose weights add up to ``total``, which is known before any row is looked at."""
    exponents = [int(np.frexp(number)[1]) if number > 0.0 else None for number in (total, most)]
    weight_scale = _scale(exponents[0])
    scale = _scale(None if None in exponents else sum(exponents))  # type: ignore[arg-type]
    word = 0 if weighted else int(weight_scale)
    return Grid(Layout(2, 0, 1.0 / weight_scale, 1.0 / scale, 0.0, word), weight_scale, scale, False, 1.0)


def make_words(y: Floats, weight: Floats | None, grid: Grid) -> Ints:
    """Words of some rows, as a grid says."""
    if grid.layout.n_words == 1:
        return (y - grid.layout.origin).astype(np.int64) + (np.int64(1) << np.int64(grid.layout.shift))
    if weight is None:  # the word of the weights is the same for all rows, that of a weight of 1
        return np.rint(y * grid.scale).astype(np.int64)
    words = np.empty(2 * len(y), np.int64)
    scaled = weight if grid.unit == 1.0 else weight / grid.unit
    write_pairs(y, scaled, grid.whole_weights, grid.weight_scale, grid.scale, words)
    return words


def encode_outcome(y: Floats, weight: Floats | None) -> tuple[Ints, Layout]:
    """Words of the rows of one table and how to read sums of them."""
    summary = summarise(y, weight)
    if (unit := unit_of(summary)) != 1.0:
        summary = summarise(y, weight, unit)
    grid = grid_of(summary)
    return make_words(y, weight, grid), grid.layout


def read_sums(weight: Ints, outcome: Ints, layout: Layout) -> tuple[Floats, Floats]:
    """Weight and outcome from integer sums of words, whose order is of no consequence."""
    size: Floats = weight * np.float64(layout.weight_unit)
    return size, outcome * layout.total_unit + layout.origin * size


def _are_counts(summary: OutcomeSummary) -> bool:
    """Whether weights are whole and add up to so little that they can stand for repeated rows."""
    return summary.whole_weights and _total(summary.weights) <= 1 << (_MOST_ROWS + _BIAS)


def _total(table: Ints) -> int:
    """The sum of a table of exponents, times 2^1053."""
    return sum(int(table[e]) << int(e) for e in np.flatnonzero(table))


def _exponent(table: Ints) -> int | None:
    """The exponent of two of the sum of a table, as ``frexp`` gives it; None for nothing."""
    total = _total(table)
    return total.bit_length() - _BIAS if total else None


def _scale(*exponents: int | None) -> float:
    """The power of two that brings sums of these exponents just below 2^57."""
    known = [exponent for exponent in exponents if exponent is not None]
    return float(2.0 ** np.clip(_TOP_BIT - max(known), -900, 900)) if known else 1.0
