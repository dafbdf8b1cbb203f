"""The one mechanism behind every number: gather sums over a ranking, end them by a formula, repeat on replicates.

A :class:`Statistic` names the sums a kernel gathers and holds the formula that turns them into a number. The formula is
written once, in numpy, for one ranking or for an axis of replicates. Replicates are counts per row that depend on the
seed alone, so all models and all metrics see the same ones and their differences are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats, Ints
from upturn._target import Target
from upturn.kernels.areas import fold_ranking, read_arm_shares, read_shares
from upturn.kernels.resampling import BOOTSTRAP, HALF, draw_replicate
from upturn.metrics._estimate import SmallSampleWarning, rows_by_stratum, warn_user
from upturn.metrics._ranked import NONE, Judged, Ranked
from upturn.metrics._replicates import Replicates

Scheme = Literal["bootstrap", "half"]

_NO_SLOT, _NO_COUNT = np.empty(0, np.uint32), np.empty(0, np.uint8)
FEW_ROWS = 10  # rows of an arm, below which an interval comes with a warning


@dataclass(frozen=True)
class Statistic:
    """A number read off a ranking.

    Attributes
    ----------
    finish : callable
        ``finish(sums, totals)``. For a fold of :mod:`upturn.kernels.areas`, ``sums`` has shape (…, 2); for shares, it is
        the table of running sums at each of them, of shape (…, len(shares), 4). ``totals`` (…, 4) is the table's last row.
    code : int
        The fold to gather; -1 when the number is read off at shares.
    shares : array, optional
        Rising shares of the ranking at which the running sums are read.
    by_arm : bool
        Whether they are shares of each arm or of everybody.
    scheme : {"bootstrap", "half"}
        How its replicates are drawn.
    undefined : str
        Why the number can be NaN, where it can: what a formula divides by that may be 0.
    """

    finish: Callable[[Floats, Floats], Floats]
    code: int = -1
    shares: Floats | None = None
    by_arm: bool = False
    scheme: Scheme = "bootstrap"
    undefined: str = ""


@dataclass(frozen=True)
class Strata:
    """Rows with weight listed stratum by stratum, from which replicates are drawn.

    ``starts`` says where each stratum begins, ``names`` what an error calls it, and ``size`` is the number of all rows.
    """

    rows: NDArray[np.uint32]
    starts: Ints
    y: Floats
    weight: Floats
    names: Sequence[str]
    size: int

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
    def _of(cls, codes: NDArray[np.uint8], names: Sequence[str], y: Floats, weight: Floats | None) -> Strata:
        rows, starts = rows_by_stratum(codes, len(names), weight)
        return cls(rows, starts, y[rows], NONE if weight is None else weight[rows], names, len(y))

    def slots(self, ranked: Ranked) -> NDArray[np.uint32]:
        """Where each row of a ranking is listed."""
        slot = np.empty(self.size, np.uint32)
        slot[self.rows] = np.arange(len(self.rows), dtype=np.uint32)
        return slot[ranked.order]

    def warn_if_few(self) -> None:
        """Say so when a stratum has too few rows, or its weight lies on too few, for the spread of its replicates to mean much."""
        few = []
        for name, start, stop in zip(self.names, self.starts[:-1], self.starts[1:], strict=True):
            weight = self.weight[start:stop]
            rows = float(weight.sum() ** 2 / (weight @ weight)) if len(weight) else float(stop - start)
            if rows < FEW_ROWS:
                worth = f" (weights worth {rows:.1f})" if len(weight) else ""
                few.append(f"{name} has {stop - start:,} row(s){worth}")
        if few:
            warn_user(
                f"{', '.join(few)}: a standard error and an interval from fewer than {FEW_ROWS} say little, and are too narrow",
                SmallSampleWarning,
            )


def _gather(
    statistics: Sequence[Statistic],
    ranked: Ranked,
    totals: Floats,
    slot: NDArray[np.uint32] = _NO_SLOT,
    counts: NDArray[np.uint8] = _NO_COUNT,
) -> tuple[list[Floats], Floats]:
    """The sums every statistic asks for, and the table's last row."""
    folds = [j for j, statistic in enumerate(statistics) if statistic.shares is None]
    out, ends = np.empty((len(folds), 2)), totals
    if folds:
        codes, ends = np.array([statistics[j].code for j in folds]), np.empty(4)
        fold_ranking(codes, totals, *ranked.columns, slot, counts, out, ends)
    sums: dict[int, Floats] = {j: out[c] for c, j in enumerate(folds)}
    for j, statistic in enumerate(statistics):
        if statistic.shares is not None:
            sums[j] = np.empty((len(statistic.shares), 4))
            arguments = statistic.shares, totals, *ranked.columns, slot, counts, sums[j]
            if statistic.by_arm:
                read_arm_shares(*arguments)
            else:
                read_shares(*arguments)
    return [sums[j] for j in range(len(statistics))], ends


def measure(statistics: Sequence[Statistic], judged: Judged) -> list[Floats]:
    """Each statistic of one model: the mean over its rankings."""
    values: list[Any] = [0.0] * len(statistics)
    for ranked, share in zip(judged.rankings, judged.shares, strict=True):
        sums, ends = _gather(statistics, ranked, ranked.totals)
        for j, statistic in enumerate(statistics):
            values[j] = values[j] + share * statistic.finish(sums[j], ends)
    return [np.asarray(value) for value in values]


def replicate(
    statistics: Sequence[Statistic],
    models: Sequence[Judged],
    strata: Strata,
    replicates: Replicates,
) -> list[list[Floats]]:
    """``result[model][statistic]``: the statistic on every replicate, first axis, the same replicates for all."""
    strata.warn_if_few()
    slots = [[strata.slots(ranked) for ranked in model.rankings] for model in models]
    result: list[list[Any]] = [[None] * len(statistics) for _ in models]
    for scheme, code in (("bootstrap", BOOTSTRAP), ("half", HALF)):
        mine = [j for j, statistic in enumerate(statistics) if statistic.scheme == scheme]
        if not mine:
            continue
        chosen = [statistics[j] for j in mine]

        def block(numbers: range, code: int = code, chosen: list[Statistic] = chosen) -> Any:
            counts, totals = np.empty(len(strata.rows), np.uint8), np.empty((len(strata.starts) - 1, 2))
            gathered = []
            for r in numbers:
                draw_replicate(code, replicates.seed, r, strata.starts, strata.y, strata.weight, counts, totals)
                gathered.append(
                    [
                        [
                            _gather(chosen, ranked, _pick(totals, ranked), slot, counts)
                            for ranked, slot in zip(model.rankings, places, strict=True)
                        ]
                        for model, places in zip(models, slots, strict=True)
                    ]
                )
            return gathered

        gathered = [replicate for rows in replicates.map(block) for replicate in rows]
        for m, model in enumerate(models):
            for c, j in enumerate(mine):
                total: Any = 0.0
                for k, share in enumerate(model.shares):
                    sums = np.array([row[m][k][0][c] for row in gathered])
                    ends = np.array([row[m][k][1] for row in gathered])
                    total = total + share * statistics[j].finish(sums, ends)
                result[m][j] = np.asarray(total)
    return result


def _pick(totals: Floats, ranked: Ranked) -> Floats:
    """Totals of control and the arm of a ranking, from those of all strata."""
    control, arm = ranked.strata
    if control == arm:
        return np.array([0.0, 0.0, *totals.sum(axis=0)])
    return np.concatenate((totals[control], totals[arm]))


def replicate_means(strata: Strata, replicates: Replicates) -> Floats:
    """The weighted mean of the strata's values on every bootstrap replicate."""
    strata.warn_if_few()

    def block(numbers: range) -> list[float]:
        counts, totals, means = np.empty(len(strata.rows), np.uint8), np.empty((len(strata.starts) - 1, 2)), []
        for r in numbers:
            draw_replicate(BOOTSTRAP, replicates.seed, r, strata.starts, strata.y, strata.weight, counts, totals)
            weight, value = totals.sum(axis=0)
            means.append(float(value / weight))
        return means

    return np.array([mean for means in replicates.map(block) for mean in means])
