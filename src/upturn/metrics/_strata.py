"""Strata of an experiment and the units that are drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Arms, Floats, Indices, Ints
from upturn._clusters import arms_of, check_clusters
from upturn._columns import warn_user
from upturn._target import Target
from upturn.kernels.hashing import GROUPS, words
from upturn.kernels.resampling import assign_units, draw_replicates
from upturn.metrics._estimate import SmallSampleWarning

FEW_ROWS = 10  # rows of an arm, below which an interval comes with a warning
FEW_CLUSTERS = 30  # clusters in all, below which it does
_MOST_ROWS = 1 << 16  # rows of a stratum that are drawn one by one
_GROUPS = 1 << 14  # groups that are drawn in place of the rows of a larger one


@dataclass(frozen=True)
class Strata:
    """Rows with weight, stratum by stratum, and the units that a replicate draws of each.

    Up to 65,536 rows of a stratum are units themselves. Of more rows, 16,384 groups are drawn, which rows are put into at
    random. A sum over independent rows varies as much when groups of them are drawn, whatever the groups: the standard
    error is the same, known to half a percent, where 200 replicates know it to five, and a replicate of ten million rows
    needs a few thousand draws.

    Rows that come in clusters are not independent, and then clusters are the units: of every arm by itself where each lies in
    one arm, else of all arms together, and a replicate may then hold more or fewer rows of an arm than the data.

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
    clusters : array or None
        Number of clusters in every stratum they are drawn from, where there are any.
    sums : array of shape (units, arms, 2) or None
        Weight and weighted outcome of every unit by arm, where units lie in several.
    """

    unit: NDArray[np.uint32]
    starts: Ints
    y: Floats
    weight: Floats
    names: Sequence[str]
    rows: Ints
    worth: Floats | None
    clusters: Ints | None = None
    sums: Floats | None = None

    @classmethod
    def of_arms(cls, target: Target, clusters: Indices | None) -> Strata:
        """One stratum per arm."""
        return cls.of_values(target, target.y, clusters)

    @classmethod
    def of_values(cls, target: Target, values: Floats, clusters: Indices | None) -> Strata:
        """One stratum per arm, with values of the rows in place of their outcome."""
        return cls._of(target.arm, [f"arm {label!r}" for label in target.labels], values, target.weight, clusters)

    @classmethod
    def one(cls, y: Floats, weight: Floats | None, clusters: Indices | None) -> Strata:
        """All rows together."""
        return cls._of(np.zeros(len(y), np.uint8), ["the group"], y, weight, clusters)

    @classmethod
    def _of(
        cls, codes: Arms, names: Sequence[str], y: Floats, weight: Floats | None, clusters: Indices | None
    ) -> Strata:
        if weight is None:
            rows, worth = np.bincount(codes, minlength=len(names)), None
        else:
            rows = np.bincount(codes[weight > 0], minlength=len(names))
            scaled = weight / weight.max()
            sums, squares = (np.bincount(codes, weights=w, minlength=len(names)) for w in (scaled, scaled * scaled))
            worth = sums * sums / squares
        if clusters is not None:
            return cls._of_clusters(codes, names, y, weight, clusters, rows, worth)
        units = np.where(rows > _MOST_ROWS, _GROUPS, rows)
        starts = np.concatenate(([0], np.cumsum(units))).astype(np.int64)
        unit, unit_y, unit_weight = np.empty(len(y), np.uint32), np.empty(starts[-1]), np.empty(starts[-1])
        values, heavy = np.ascontiguousarray(y), np.empty(0) if weight is None else weight
        assign_units(codes, starts, rows.astype(np.int64), values, heavy, unit, unit_y, unit_weight)
        return cls(unit, starts, unit_y, unit_weight, names, rows, worth)

    @classmethod
    def _of_clusters(
        cls,
        codes: Arms,
        names: Sequence[str],
        y: Floats,
        weight: Floats | None,
        clusters: Indices,
        rows: Ints,
        worth: Floats | None,
    ) -> Strata:
        """Clusters with weight as units, arm by arm where each lies in one."""
        check_clusters(clusters, len(y))
        counted = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
        w = np.ones(len(y)) if weight is None else weight[counted]
        arm, mine = codes[counted], np.unique(clusters[counted], return_inverse=True)[1]
        home, alone = arms_of(mine, arm)
        nested = bool(alone.all())
        home = home if nested else np.zeros_like(home)
        counts = np.bincount(home, minlength=len(names) if nested else 1)
        _check_counts(counts, names)
        # Units of a stratum are its clusters in their order, or groups that very many clusters are put into at random.
        units = np.where(counts > _MOST_ROWS, _GROUPS, counts)
        starts = np.concatenate(([0], np.cumsum(units))).astype(np.int64)
        place, hashes = np.empty(len(home), np.int64), np.empty(len(home), np.uint64)
        words(GROUPS, GROUPS, np.uint64(0), hashes)
        for a in range(len(units)):
            here = np.flatnonzero(home == a)
            own = (
                np.arange(len(here)) if units[a] == len(here) else (hashes[here] % np.uint64(_GROUPS)).astype(np.int64)
            )
            place[here] = starts[a] + own
        unit = np.zeros(len(y), np.uint32)
        unit[counted] = place[mine]
        cells, shape = place[mine] * len(names) + arm, (int(starts[-1]), len(names))
        weights, values = (np.bincount(cells, c, minlength=shape[0] * shape[1]) for c in (w, w * y[counted]))
        sums = np.asarray(np.stack((weights, values), axis=-1), dtype=np.float64).reshape(*shape, 2)
        unit_weight, unit_sum = np.moveaxis(sums.sum(axis=1), -1, 0)
        unit_y = np.divide(unit_sum, unit_weight, out=np.zeros(shape[0]), where=unit_weight > 0)
        weight_of_units = np.ascontiguousarray(unit_weight)
        return cls(unit, starts, unit_y, weight_of_units, names, rows, worth, counts, None if nested else sums)

    def draw(self, scheme: int, seed: np.uint64, numbers: range) -> tuple[NDArray[np.uint8], Floats]:
        """Counts (units, replicates) of some replicates, and their weight and outcome (replicates, strata, 2)."""
        counts = np.empty((len(self.y), len(numbers)), np.uint8)
        totals = np.empty((len(numbers), len(self.starts) - 1, 2))
        draw_replicates(scheme, seed, numbers.start, self.starts, self.y, self.weight, counts, totals)
        if self.sums is not None:  # of arms, which share the units; one loop in one order, whatever the threads
            totals = np.einsum("ur,uac->rac", counts, self.sums)
        return counts, totals

    def warn_if_few(self) -> None:
        """Say so when a stratum has too few rows, its weight lies on too few, or there are too few clusters, for the spread of its replicates to mean much."""
        if self.clusters is not None and warn_if_few_clusters(int(self.clusters.sum())):
            return
        few = []
        for a, (name, rows) in enumerate(zip(self.names, self.rows.tolist(), strict=True)):
            worth = rows if self.worth is None else self.worth[a]
            if worth < FEW_ROWS:
                value = "" if self.worth is None else f" (weights worth {worth:.1f})"
                few.append(f"{name} has {rows:,} row(s){value}")
            elif self.clusters is not None and self.sums is None and self.clusters[a] < FEW_ROWS:
                few.append(f"{name} has {self.clusters[a]} clusters")
        if few:
            warn_user(
                f"{', '.join(few)}: a standard error and an interval from fewer than {FEW_ROWS} say little, and are too narrow",
                SmallSampleWarning,
            )


def _check_counts(counts: Ints, names: Sequence[str]) -> None:
    """Refuse a stratum of one cluster, whose replicates would all be alike."""
    if counts.min() < 2:
        where = names[int(counts.argmin())] if len(counts) == len(names) else "the experiment"
        raise ValueError(
            f"{where} is one cluster by groups: nothing tells how much clusters differ, so there is no interval; leave interval out, or "
            "groups if its rows are independent"
        )


def warn_if_few_clusters(count: int) -> bool:
    """Say so when there are too few clusters for intervals to mean much, whatever the number of rows."""
    if count < FEW_CLUSTERS:
        warn_user(
            f"groups holds {count} clusters: an interval from fewer than {FEW_CLUSTERS} clusters is too narrow, however many rows they have",
            SmallSampleWarning,
        )
    return count < FEW_CLUSTERS
