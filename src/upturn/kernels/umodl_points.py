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

import numpy as np

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

_SIGN = np.uint64(1 << 63)
_INFINITY = np.uint64(0x7FF0000000000000)
_NONE = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@kernel(b1, F8, U1, F8_out, U1_out)
def find_two_classes(y, arm, classes, cells):
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


@kernel(i8, F8, U8_out)
def find_magnitudes(values, ends):
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


@kernel(void, F8, U1, u8, i8, I8_out)
def pack_values(values, cells, base, bits, packed):
    """Write value and cell of every row as one integer."""
    words = values.view(np.uint64)
    for i in range(words.shape[0]):
        word = words[i] & ~_SIGN
        key = np.int64(word - base) if word != _ZERO else np.int64(0)
        packed[i] = ((-key if words[i] & _SIGN else key) << bits) | np.int64(cells[i])


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
def find_boundaries(packed, weights, bits, merge_runs, counts, rows):
    """Write all boundary points; return where the last one is, or -1 if there is no room for it."""
    return _walk(packed, weights, bits, 0, packed.shape[0], merge_runs, counts, rows, 0)


@kernel(i8, I8, i8, I8_out)
def find_even_rows(packed, bits, rows):
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
def count_bits(packed, rows, counts):
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
def count_cells(packed, weights, bits, rows, counts):
    """Count any number of cells at each of these rows."""
    weighted, mask = weights.shape[0] > 0, np.int64((1 << bits) - 1)
    for k in range(1, rows.shape[0]):
        counts[k] = counts[k - 1]
        for i in range(rows[k - 1], rows[k]):
            counts[k, packed[i] & mask] += np.int32(weights[i] if weighted else 1)


@kernel(i8, I8, I8, i8, I4_2, I8, U1, I4_2_out, I8_out)
def open_bins(packed, weights, bits, points, rows, is_open, counts, fine):
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
