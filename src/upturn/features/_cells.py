"""The rows of an experiment as UMODL counts them: each in a cell, its arm and its class of the outcome."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools, Floats, Ints
from upturn._experiment import Experiment
from upturn.kernels.umodl_points import find_two_classes

MOST_CLASSES = 20  # an outcome with more distinct values is a quantity, not a class
MOST_CELLS = 256  # the number of a cell is a byte
MOST_ROWS = 10**8  # a log-factorial each is kept in memory


@dataclass(frozen=True)
class Cells:
    """What all columns of one experiment share: the cell (arm, class) and the multiplicity of every row.

    Attributes
    ----------
    cell : uint8 array of shape (n,)
        Arm times ``n_classes`` plus class.
    weight : int64 array of shape (n,) or None
        How often each row occurs; None means once.
    n_arms, n_classes : int
        Numbers of arms, control included, and of classes.
    """

    cell: NDArray[np.uint8]
    weight: Ints | None
    n_arms: int
    n_classes: int

    @property
    def n_cells(self) -> int:
        """Number of (arm, class) pairs."""
        return self.n_arms * self.n_classes

    @property
    def n(self) -> int:
        """Number of rows, as often as they occur."""
        return len(self.cell) if self.weight is None else int(self.weight.sum())

    @property
    def everything(self) -> Ints:
        """Rows of every cell, an array of shape (1, n_cells)."""
        return self.count(np.zeros(len(self.cell), dtype=np.int64), 1)

    def count(self, codes: Ints, n_codes: int) -> Ints:
        """Count cells by code: an array of shape (n_codes, n_cells)."""
        found = np.bincount(codes * self.n_cells + self.cell, weights=self.weight, minlength=n_codes * self.n_cells)
        return found.astype(np.int64).reshape(n_codes, self.n_cells)

    def take(self, rows: Bools) -> Cells:
        """Return the cells of some rows."""
        weight = None if self.weight is None else self.weight[rows]
        return Cells(self.cell[rows], weight, self.n_arms, self.n_classes)


def two_classes(y: Floats, arm: NDArray[np.uint8]) -> tuple[Floats, NDArray[np.uint8]] | None:
    """Return the two values of an outcome in order and the cell of each row; None if it has not exactly two values."""
    classes, cell = np.empty(2), np.empty(len(y), dtype=np.uint8)
    two = find_two_classes(y, arm, classes, cell) and classes[0] < classes[1]
    return (classes, cell) if two else None


def read_cells(data: Experiment) -> tuple[Floats, Cells]:
    """Read outcome and arms as classes and cells, refusing outcomes and weights that cannot be counted."""
    n_arms = data.n_arms + 1
    if n_arms <= MOST_CELLS // 2 and (two := two_classes(data.y, data.arm)) is not None:
        return two[0], Cells(two[1], _multiplicity(data), n_arms, 2)
    classes = np.unique(data.y)
    whole = bool((classes == np.rint(classes)).all())
    if len(classes) == 1:
        raise ValueError(f"y has one value only, {classes[0]:g} (1 class): UMODL compares how often classes occur")
    if len(classes) > MOST_CLASSES or (len(classes) > 2 and not whole):
        raise ValueError(
            f"y has {len(classes):,} distinct values (from {classes[0]:g} to {classes[-1]:g}): UMODL counts classes and does not "
            "take a real-valued outcome. Bin the outcome yourself, as in y = (spend > 0) or "
            "y = np.digitize(spend, np.quantile(spend, [.25, .5, .75])), or rank features with "
            "FilterSelector(criterion='f') or FilterSelector(criterion='euclidean'), which take real values"
        )
    if n_arms * len(classes) > MOST_CELLS:
        raise ValueError(
            f"{n_arms} arms times {len(classes)} classes make {n_arms * len(classes)} cells to count, and {MOST_CELLS} are the "
            "limit: merge arms or bin the outcome"
        )
    cell = data.arm * np.uint8(len(classes)) + np.searchsorted(classes, data.y).astype(np.uint8)
    return classes, Cells(cell, _multiplicity(data), n_arms, len(classes))


def _multiplicity(data: Experiment) -> Ints | None:
    if data.weight is None or (data.weight == 1).all():
        return None
    if (data.weight != np.rint(data.weight)).any() or data.weight.sum() > MOST_ROWS:
        example = data.weight[np.argmax(data.weight != np.rint(data.weight))]
        raise ValueError(
            f"sample_weight holds {example:g}, and the weights sum to {data.weight.sum():g}: UMODL counts rows, so a weight must "
            f"be a whole number (how often the row occurs) and the sum at most {MOST_ROWS:,}; for inverse-propensity weights "
            "use FilterSelector, which takes any"
        )
    return data.weight.astype(np.int64)
