"""From the rows of one numeric feature to the points where it may be cut.

A column is sorted once, each value with the cell (arm, class) of its row in the lowest bits of one integer, because
numpy sorts plain integers with vector instructions and an indirect sort of ten million rows takes as long as eight
such sorts::

    packed = | the value, as an integer of the same order | cell |

The integer is the value's bit pattern counted from the smallest magnitude in the column, negative numbers mirrored.
So no bit is lost unless the magnitudes of a column span hundreds of binary orders (then ranks take the place of
values), equal values are equal integers, and the value can be read back.

*Points* are places between rows with the number of rows of each cell before them. Kinds of points:

- boundary points: every place where an optimal cut can be;
- micro-points: places that share the rows evenly, and the boundary points around some of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats, Ints
from upturn.kernels._jit import (
    F8,
    I4_2,
    I8,
    U1,
    F8_out,
    I4_2_out,
    I8_out,
    U1_out,
    U8_out,
    b1,
    i8,
    inner,
    kernel,
    u8,
    void,
)

Points = NDArray[np.int32]

_SIGN = np.uint64(1 << 63)
_INFINITY = np.uint64(0x7FF0000000000000)
_NONE = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@kernel(b1, F8, U1, F8_out, U1_out)
def _two_classes(y, arm, classes, cells):
    """Write the cells of an outcome with at most two values, and the values; return whether there are no more."""
    low = high = y[0]
    for k in range(y.shape[0]):
        if y[k] != low:
            low, high = min(low, y[k]), max(low, y[k])
            break
    strange = 0
    for k in range(y.shape[0]):
        success = y[k] == high
        strange += not (success or y[k] == low)
        cells[k] = 2 * arm[k] + success
    classes[0], classes[1] = low, high
    return strange == 0


def cells_of_two_classes(y: Floats, arm: NDArray[np.uint8]) -> tuple[Floats, NDArray[np.uint8]] | None:
    """Return the two values of an outcome in order and the cell of each row; None if it has not exactly two values."""
    classes, cells = np.empty(2), np.empty(len(y), dtype=np.uint8)
    two = _two_classes(y, arm, classes, cells) and classes[0] < classes[1]
    return (classes, cells) if two else None


@kernel(i8, F8, U8_out)
def _magnitudes(values, ends):
    """Write the bit patterns of the smallest magnitude above 0, less 1, and of the largest; return how many are NaN."""
    words = values.view(np.uint64)
    least, largest, missing = _NONE, _ZERO, 0
    for i in range(words.shape[0]):
        word = words[i] & ~_SIGN
        nan = word > _INFINITY
        missing += nan
        least = min(least, _NONE if nan else word - _ONE)  # 0 wraps round to the largest number of all
        largest = max(largest, _ZERO if nan else word)
    ends[0], ends[1] = least, largest
    return missing


def scan_column(values: Floats) -> tuple[int, tuple[int, int]]:
    """Return how many values are NaN, and the bit patterns of the least magnitude above 0, less 1, and of the largest."""
    ends = np.empty(2, dtype=np.uint64)
    missing = int(_magnitudes(values, ends))
    least, largest = (int(end) for end in ends)
    return missing, (least if largest > 0 else 0, largest)


@kernel(void, F8, U1, u8, i8, I8_out)
def _pack(values, cells, base, bits, packed):
    words = values.view(np.uint64)
    for i in range(words.shape[0]):
        word = words[i] & ~_SIGN
        key = np.int64(word - base) if word != _ZERO else np.int64(0)
        packed[i] = ((-key if words[i] & _SIGN else key) << bits) | np.int64(cells[i])


@dataclass(frozen=True)
class SortedColumn:
    """The values of one column in increasing order, with the cells and the multiplicities of their rows.

    Attributes
    ----------
    packed : int64 array of shape (n,)
        Increasing; value and cell in one.
    bits, n_cells : int
        The lowest ``bits`` bits are the cell, one of ``n_cells``.
    weights : int64 array of shape (n,) or (0,)
        How often each row occurs; none means once.
    base : int
        A magnitude k other than 0 stands for the bit pattern ``base + k``,
    distinct : float64 array or None
        or, if there is this array, k stands for its k-th value.
    """

    packed: Ints
    bits: int
    n_cells: int
    weights: Ints
    base: int
    distinct: Floats | None

    def __len__(self) -> int:
        return len(self.packed)

    def values(self, rows: Ints) -> Floats:
        """Return the values at some places of the order."""
        keys = self.packed[rows] >> self.bits
        magnitudes = np.where(keys == 0, 0, np.abs(keys) + self.base).view(np.float64)
        signed = np.where(keys < 0, -magnitudes, magnitudes)
        values: Floats = signed if self.distinct is None else self.distinct[keys]
        return values

    def boundary_points(self, most: int | None = None, merge_runs: bool = True) -> tuple[Points, Ints] | None:
        """Return the boundary points: rows of each cell before each point, and rows in all; None if above ``most``.

        Cuts lie between distinct values. Inside a run of distinct values whose rows all fall in one cell, no cut is
        ever needed: as a function of how many rows of the run an interval takes, its cost is concave, log((n+J)/(n_j+1))
        being the decreasing step, so the best place is an end of the run. (Not so with ``merge_runs=False``.)
        """
        room = len(self) + 1 if most is None else min(most, len(self) + 1)
        counts, rows = np.empty((room, self.n_cells), dtype=np.int32), np.empty(room, dtype=np.int64)
        counts[0], rows[0] = 0, 0
        found = _boundaries(self.packed, self.weights, self.bits, merge_runs, counts, rows)
        return None if found < 0 else (counts[: found + 1], rows[: found + 1])

    def micro_points(self, bins: int) -> tuple[Points, Ints]:
        """Return up to ``bins + 1`` points that share the rows evenly, both ends included."""
        rows = np.empty(bins + 1, dtype=np.int64)
        rows = rows[: _even_rows(self.packed, self.bits, rows)]
        counts = np.zeros((len(rows), self.n_cells), dtype=np.int32)
        if len(self.weights) == 0 and self.n_cells <= 4:
            _count_bits(self.packed, rows, counts)
        else:
            _count_cells(self.packed, self.weights, self.bits, rows, counts)
        return counts, rows

    def refine(self, points: Points, rows: Ints, around: Ints, reach: int) -> tuple[Points, Ints]:
        """Return the points given and all boundary points at most ``reach`` points away from some of them."""
        is_open = np.zeros(len(rows) - 1, dtype=np.uint8)
        for shift in range(-reach, reach):
            is_open[np.clip(around + shift, 0, len(is_open) - 1)] = 1
        room = len(rows) + int(np.diff(rows)[is_open > 0].sum())
        counts, fine = np.empty((room, self.n_cells), dtype=np.int32), np.empty(room, dtype=np.int64)
        found = _open_bins(self.packed, self.weights, self.bits, points, rows, is_open, counts, fine)
        return counts[:found], fine[:found]


def sort_column(
    values: Floats,
    cells: NDArray[np.uint8],
    n_cells: int,
    weights: Ints | None = None,
    magnitudes: tuple[int, int] | None = None,
) -> SortedColumn:
    """Sort values (none of them NaN) and carry their cells and weights along; ``scan_column`` tells their magnitudes."""
    bits = max(int(n_cells - 1).bit_length(), 1)
    none = np.empty(0, dtype=np.int64)
    base, largest = scan_column(values)[1] if magnitudes is None else magnitudes
    if weights is None and largest - base < 1 << (63 - bits):
        packed = np.empty(len(values), dtype=np.int64)
        _pack(values, cells, base, bits, packed)
        packed.sort()
        return SortedColumn(packed, bits, n_cells, none, base, None)
    order = np.lexsort((cells, values))
    ordered = values[order]
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    packed = ((np.cumsum(new) - 1) << bits) | cells[order]
    return SortedColumn(packed, bits, n_cells, none if weights is None else weights[order], 0, ordered[new])


@inner
def _write(counts, rows, at, running, row):
    for c in range(running.shape[0]):
        counts[at, c] = running[c]
    rows[at] = row


@inner
def _walk(packed, weights, bits, first, last, merge_runs, counts, rows, at):
    """Write the boundary points after row ``first`` up to row ``last`` behind point ``at``, which is that of ``first``.

    Returns where the last point was written, or -1 if there is no room for it.
    """
    weighted, mask = weights.shape[0] > 0, np.int64((1 << bits) - 1)
    running = counts[at].copy()
    run = np.int64(-2)  # the one cell of the run that ends here, or -1 where the last value mixes cells
    start = first
    while start < last:
        value, atom = packed[start] >> bits, packed[start] & mask
        stop = start + 1
        while stop < last and packed[stop] >> bits == value:
            stop += 1
        if packed[stop - 1] & mask != atom:  # the cells of a value are in order, too
            atom = np.int64(-1)
        if start > first and not (merge_runs and atom >= 0 and atom == run):
            at += 1
            if at >= rows.shape[0] - 1:
                return -1
            _write(counts, rows, at, running, start)
        for k in range(start, stop):
            running[packed[k] & mask] += np.int32(weights[k] if weighted else 1)
        run = atom
        start = stop
    at += 1
    if at >= rows.shape[0]:
        return -1
    _write(counts, rows, at, running, last)
    return at


@kernel(i8, I8, I8, i8, b1, I4_2_out, I8_out)
def _boundaries(packed, weights, bits, merge_runs, counts, rows):
    return _walk(packed, weights, bits, 0, packed.shape[0], merge_runs, counts, rows, 0)


@kernel(i8, I8, i8, I8_out)
def _even_rows(packed, bits, rows):
    """Write rows that share all evenly and have another value before them; return how many. The last is the end."""
    n, bins = packed.shape[0], rows.shape[0] - 1
    rows[0] = 0
    found = 1
    for b in range(1, bins):
        row = b * n // bins
        if row <= rows[found - 1]:
            continue
        value, step = packed[row - 1] >> bits, 1
        while row < n and packed[row] >> bits == value:  # gallop to the end of a tie
            if row + step < n and packed[row + step] >> bits == value:
                row += step
                step *= 2
            elif step > 1:
                step = 1
            else:
                row += 1
        if row == n:
            break
        rows[found] = row
        found += 1
    rows[found] = n
    return found + 1


@kernel(void, I8, I8, I4_2_out)
def _count_bits(packed, rows, counts):
    """Count up to four cells at each of these rows, without branches: by how often each bit, and both, are set."""
    for k in range(1, rows.shape[0]):
        low, high, both = 0, 0, 0
        for i in range(rows[k - 1], rows[k]):
            word = packed[i]
            low += word & 1
            high += (word >> 1) & 1
            both += word & (word >> 1) & 1
        cells = (rows[k] - rows[k - 1] - low - high + both, low - both, high - both, both)
        for c in range(counts.shape[1]):
            counts[k, c] = counts[k - 1, c] + cells[c]


@kernel(void, I8, I8, i8, I8, I4_2_out)
def _count_cells(packed, weights, bits, rows, counts):
    weighted, mask = weights.shape[0] > 0, np.int64((1 << bits) - 1)
    for k in range(1, rows.shape[0]):
        counts[k] = counts[k - 1]
        for i in range(rows[k - 1], rows[k]):
            counts[k, packed[i] & mask] += np.int32(weights[i] if weighted else 1)


@kernel(i8, I8, I8, i8, I4_2, I8, U1, I4_2_out, I8_out)
def _open_bins(packed, weights, bits, points, rows, is_open, counts, fine):
    """Copy the points, and write the boundary points of open bins between them; return how many there are."""
    found = 0
    counts[0], fine[0] = points[0], rows[0]
    for k in range(1, rows.shape[0]):
        if is_open[k - 1]:
            found = _walk(packed, weights, bits, rows[k - 1], rows[k], True, counts, fine, found)
        else:
            found += 1
            counts[found], fine[found] = points[k], rows[k]
    return found + 1
