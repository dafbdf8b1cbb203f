"""A numeric column, sorted, and the points where it may be cut: all that a search looks at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats, Ints
from upturn.features._cells import Cells
from upturn.features._cost import log_factorials
from upturn.kernels.umodl import costs_of_cuts
from upturn.kernels.umodl_points import (
    count_bits,
    count_cells,
    find_boundaries,
    find_even_rows,
    find_magnitudes,
    open_bins,
    pack_values,
)

Counts = NDArray[np.int32]
Cuts = Ints  # a partition: increasing places in a list of points, both ends included
Magnitudes = tuple[int, int]


@dataclass(frozen=True)
class Points:
    """Places between the rows of a sorted column, with the rows of each cell before them.

    Attributes
    ----------
    counts : int32 array of shape (points, arms * classes)
        Rows before each point. The first point has none before it, the last all of them.
    n_arms, n_classes : int
        Numbers of arms, control included, and of classes.
    table : float64 array
        Log-factorials, as far as the criterion looks.
    """

    counts: Counts
    n_arms: int
    n_classes: int
    table: Floats

    @classmethod
    def of(cls, counts: Counts, n_arms: int, n_classes: int) -> Points:
        """Return points with the table that goes with them."""
        return cls(counts, n_arms, n_classes, log_factorials(int(counts[-1].sum()) + n_classes))

    @property
    def problem(self) -> tuple[Counts, int, int, Floats]:
        """The first four arguments of every kernel."""
        return self.counts, self.n_arms, self.n_classes, self.table

    def __len__(self) -> int:
        return len(self.counts)

    def take(self, places: Cuts) -> Points:
        """Return some of the points, the last one among them."""
        return Points(self.counts[places], self.n_arms, self.n_classes, self.table)

    @property
    def ends(self) -> Cuts:
        """The partition into a single interval."""
        return np.array([0, len(self) - 1], dtype=np.int64)

    def cost(self, cuts: Cuts) -> float:
        """Return the sum of the costs of the intervals between cuts, without the prior."""
        return float(costs_of_cuts(*self.problem, cuts))

    def total(self, cuts: Cuts, prior: Floats) -> float:
        """Return what a partition costs, ``prior`` by the number of intervals included."""
        return float(self.cost(cuts) + prior[len(cuts) - 1])


@dataclass(frozen=True)
class SortedColumn:
    """The values of one column in increasing order, with the cells and the multiplicities of their rows.

    Attributes
    ----------
    packed : int64 array of shape (n,)
        Increasing; value and cell in one.
    bits : int
        The lowest ``bits`` bits are the cell.
    n_arms, n_classes : int
        Numbers of arms, control included, and of classes.
    weight : int64 array of shape (n,) or (0,)
        How often each row occurs; none means once.
    base : int
        A magnitude k other than 0 stands for the bit pattern ``base + k``,
    distinct : float64 array or None
        or, if there is this array, k stands for its k-th value.
    """

    packed: Ints
    bits: int
    n_arms: int
    n_classes: int
    weight: Ints
    base: int
    distinct: Floats | None

    def __len__(self) -> int:
        return len(self.packed)

    @property
    def n_cells(self) -> int:
        """Number of (arm, class) pairs."""
        return self.n_arms * self.n_classes

    def values(self, rows: Ints) -> Floats:
        """Return the values at some places of the order."""
        keys = self.packed[rows] >> self.bits
        magnitudes = np.where(keys == 0, 0, np.abs(keys) + self.base).view(np.float64)
        signed = np.where(keys < 0, -magnitudes, magnitudes)
        values: Floats = signed if self.distinct is None else self.distinct[keys]
        return values

    def boundary_points(self, most: int | None = None, merge_runs: bool = True) -> tuple[Points, Ints] | None:
        """Return the boundary points, and the row of the order that each lies before; None if above ``most``.

        Cuts lie between distinct values. Inside a run of distinct values whose rows all fall in one cell, no cut is
        ever needed: as a function of how many rows of the run an interval takes, its cost is concave, log((n+J)/(n_j+1))
        being the decreasing step, so the best place is an end of the run. (Not so with ``merge_runs=False``.)
        """
        room = len(self) + 1 if most is None else min(most, len(self) + 1)
        counts, rows = np.empty((room, self.n_cells), dtype=np.int32), np.empty(room, dtype=np.int64)
        counts[0], rows[0] = 0, 0
        found = find_boundaries(self.packed, self.weight, self.bits, merge_runs, counts, rows)
        return None if found < 0 else (self._points(counts[: found + 1]), rows[: found + 1])

    def micro_points(self, bins: int) -> tuple[Points, Ints]:
        """Return up to ``bins + 1`` points that share the rows evenly, both ends included, and their rows."""
        rows = np.empty(bins + 1, dtype=np.int64)
        rows = rows[: find_even_rows(self.packed, self.bits, rows)]
        counts = np.zeros((len(rows), self.n_cells), dtype=np.int32)
        if len(self.weight) == 0 and self.n_cells <= 4:
            count_bits(self.packed, rows, counts)
        else:
            count_cells(self.packed, self.weight, self.bits, rows, counts)
        return self._points(counts), rows

    def refine(self, points: Points, rows: Ints, around: Ints, reach: int) -> tuple[Points, Ints]:
        """Return the points given and all boundary points at most ``reach`` points away from some of them."""
        is_open = np.zeros(len(rows) - 1, dtype=np.uint8)
        for shift in range(-reach, reach):
            is_open[np.clip(around + shift, 0, len(is_open) - 1)] = 1
        room = len(rows) + int(np.diff(rows)[is_open > 0].sum())
        counts, fine = np.empty((room, self.n_cells), dtype=np.int32), np.empty(room, dtype=np.int64)
        found = open_bins(self.packed, self.weight, self.bits, points.counts, rows, is_open, counts, fine)
        return self._points(counts[:found]), fine[:found]

    def _points(self, counts: Counts) -> Points:
        return Points.of(counts, self.n_arms, self.n_classes)


def scan_column(values: Floats) -> tuple[int, Magnitudes]:
    """Return how many values are NaN, and the bit patterns of the least magnitude above 0, less 1, and of the largest."""
    ends = np.empty(2, dtype=np.uint64)
    missing = int(find_magnitudes(values, ends))
    least, largest = (int(end) for end in ends)
    return missing, (least if largest > 0 else 0, largest)


def sort_column(values: Floats, cells: Cells, magnitudes: Magnitudes | None = None) -> SortedColumn:
    """Sort values (none of them NaN) and carry their cells along; ``scan_column`` tells their magnitudes."""
    bits = max(int(cells.n_cells - 1).bit_length(), 1)
    none = np.empty(0, dtype=np.int64)
    base, largest = scan_column(values)[1] if magnitudes is None else magnitudes
    if cells.weight is None and largest - base < 1 << (63 - bits):
        packed = np.empty(len(values), dtype=np.int64)
        pack_values(values, cells.cell, base, bits, packed)
        packed.sort()
        return SortedColumn(packed, bits, cells.n_arms, cells.n_classes, none, base, None)
    order = np.lexsort((cells.cell, values))
    ordered = values[order]
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    packed = ((np.cumsum(new) - 1) << bits) | cells.cell[order]
    weight = none if cells.weight is None else cells.weight[order]
    return SortedColumn(packed, bits, cells.n_arms, cells.n_classes, weight, 0, ordered[new])
