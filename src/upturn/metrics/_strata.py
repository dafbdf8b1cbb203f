"""Strata of an experiment and the units that are drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Arms, Floats, Ints
from upturn._columns import warn_user
from upturn._target import Target
from upturn.kernels.resampling import assign_units, draw_replicates
from upturn.metrics._estimate import SmallSampleWarning

FEW_ROWS = 10  # rows of an arm, below which an interval comes with a warning
_MOST_ROWS = 1 << 16  # rows of a stratum that are drawn one by one
_GROUPS = 1 << 14  # groups that are drawn in place of the rows of a larger one


@dataclass(frozen=True)
class Strata:
    """Rows with weight, stratum by stratum, and the units that a replicate draws of each.

    Up to 65,536 rows of a stratum are units themselves. Of more rows, 16,384 groups are drawn, which rows are put into at
    random. A sum over independent rows varies as much when groups of them are drawn, whatever the groups: the standard
    error is the same, known to half a percent, where 200 replicates know it to five, and a replicate of ten million rows
    needs a few thousand draws.

    Attributes
    ----------
    unit : array of shape (n,)
        Number of every row's unit; 0 for rows without weight, which are in none.
    starts : array
        Where the units of each stratum begin, and their number at the end.
    y, weight : arrays
        Mean outcome and weight of every unit.
    names : sequence of str
        What an error calls each stratum.
    rows : array
        Number of rows with weight of each stratum.
    worth : array or None
        How many rows of equal weight would say as much, where there are weights.
    """

    unit: NDArray[np.uint32]
    starts: Ints
    y: Floats
    weight: Floats
    names: Sequence[str]
    rows: Ints
    worth: Floats | None

    @classmethod
    def of_arms(cls, target: Target) -> Strata:
        """One stratum per arm."""
        return cls.of_values(target, target.y)

    @classmethod
    def of_values(cls, target: Target, values: Floats) -> Strata:
        """One stratum per arm, with values of the rows in place of their outcome."""
        return cls._of(target.arm, [f"arm {label!r}" for label in target.labels], values, target.weight)

    @classmethod
    def one(cls, y: Floats, weight: Floats | None) -> Strata:
        """All rows together."""
        return cls._of(np.zeros(len(y), np.uint8), ["the group"], y, weight)

    @classmethod
    def _of(cls, codes: Arms, names: Sequence[str], y: Floats, weight: Floats | None) -> Strata:
        if weight is None:
            rows, worth = np.bincount(codes, minlength=len(names)), None
        else:
            rows = np.bincount(codes[weight > 0], minlength=len(names))
            scaled = weight / weight.max()
            sums, squares = (np.bincount(codes, weights=w, minlength=len(names)) for w in (scaled, scaled * scaled))
            worth = sums * sums / squares
        units = np.where(rows > _MOST_ROWS, _GROUPS, rows)
        starts = np.concatenate(([0], np.cumsum(units))).astype(np.int64)
        unit, unit_y, unit_weight = np.empty(len(y), np.uint32), np.empty(starts[-1]), np.empty(starts[-1])
        values, heavy = np.ascontiguousarray(y), np.empty(0) if weight is None else weight
        assign_units(codes, starts, rows.astype(np.int64), values, heavy, unit, unit_y, unit_weight)
        return cls(unit, starts, unit_y, unit_weight, names, rows, worth)

    def draw(self, scheme: int, seed: np.uint64, numbers: range) -> tuple[NDArray[np.uint8], Floats]:
        """Counts (units, replicates) of some replicates, and their weight and outcome (replicates, strata, 2)."""
        counts = np.empty((len(self.y), len(numbers)), np.uint8)
        totals = np.empty((len(numbers), len(self.names), 2))
        draw_replicates(scheme, seed, numbers.start, self.starts, self.y, self.weight, counts, totals)
        return counts, totals

    def warn_if_few(self) -> None:
        """Say so when a stratum has too few rows, or its weight lies on too few, for the spread of its replicates to mean much."""
        few = []
        for a, (name, rows) in enumerate(zip(self.names, self.rows.tolist(), strict=True)):
            worth = rows if self.worth is None else self.worth[a]
            if worth < FEW_ROWS:
                value = "" if self.worth is None else f" (weights worth {worth:.1f})"
                few.append(f"{name} has {rows:,} row(s){value}")
        if few:
            warn_user(
                f"{', '.join(few)}: a standard error and an interval from fewer than {FEW_ROWS} say little, and are too narrow",
                SmallSampleWarning,
            )
