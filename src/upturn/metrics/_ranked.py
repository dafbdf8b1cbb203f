"""A ranked experiment: scores sorted once, columns laid out in that order, ready for every metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools, Floats
from upturn._target import Target, read_measured, read_score
from upturn.kernels.ranking import arrange, running_sums, sum_columns
from upturn.kernels.sorting import argsort_descending

NONE = np.empty(0)  # weights that are 1 everywhere


@dataclass(frozen=True)
class Ranked:
    """Rows of control and one arm that have weight, from the highest score to the lowest.

    ``order`` holds row numbers of the whole experiment, ``side`` is 0 in control and 1 in the arm, ``weight`` is empty
    for unweighted data, and ``last`` marks the last row of every tie. ``strata`` are the two arm codes behind the sides, and a weight of 1 stands
    for ``unit`` of what was given.
    """

    order: NDArray[np.uint32]
    last: Bools
    y: Floats
    side: NDArray[np.uint8]
    weight: Floats
    strata: tuple[int, int] = (0, 1)
    unit: float = 1.0

    @property
    def columns(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """What the kernels walk down."""
        return self.last, self.y, self.side, self.weight

    @cached_property
    def table(self) -> Floats:
        """Running sums per distinct score; see :mod:`upturn.kernels.ranking`."""
        table = np.empty((int(self.last.sum()) + 1, 4))
        running_sums(self.last, self.y, self.side, self.weight, table)
        return table

    @cached_property
    def totals(self) -> Floats:
        """The last row of the table."""
        totals = np.empty(4)
        sum_columns(self.y, self.side, self.weight, totals)
        return totals


def rank(target: Target, score: Floats, code: int, values: Floats | None = None) -> Ranked:
    """Sort the rows of control and arm ``code`` by a score given for all rows; ``values`` may stand for the outcome."""
    side = (target.arm == code).view(np.uint8)
    rows = None if target.n_arms == 1 else target.pair(code).astype(np.uint32)
    return _ranked(target.y if values is None else values, score, side, target.weight, rows, (0, code), target.unit)


def rank_one_group(y: Floats, score: Floats, weight: Floats | None, unit: float = 1.0) -> Ranked:
    """Sort all rows as one arm without control: the values of one group, or effect scores."""
    return _ranked(y, score, np.ones(len(y), np.uint8), weight, None, (0, 0), unit)


def _ranked(
    y: Floats,
    score: Floats,
    side: NDArray[np.uint8],
    weight: Floats | None,
    rows: NDArray[np.uint32] | None,
    strata: tuple[int, int],
    unit: float,
) -> Ranked:
    heavy = NONE if weight is None else weight
    if not heavy.all():
        counted = np.flatnonzero(heavy) if rows is None else rows[heavy[rows] > 0]
        rows = counted.astype(np.uint32)
    if rows is None:
        order, last = argsort_descending(np.ascontiguousarray(score))
    else:
        order, last = argsort_descending(score[rows])
        order = rows[order]
    n = len(order)
    y_sorted, side_sorted, weight_sorted = np.empty(n), np.empty(n, np.uint8), np.empty(n if len(heavy) else 0)
    arrange(order, y, side, heavy, y_sorted, side_sorted, weight_sorted)
    return Ranked(order, last, y_sorted, side_sorted, weight_sorted, strata, unit)


@dataclass(frozen=True)
class Judged:
    """One model's rankings, one per arm, and the weight each has in the model's number."""

    rankings: Sequence[Ranked]
    shares: Floats


def judge(target: Target, scores: Floats) -> Judged:
    """Rank every arm by its own column of scores."""
    return Judged([rank(target, scores[:, k], k + 1) for k in range(target.n_arms)], arm_shares(target))


def judge_one_group(values: Floats, score: Floats, weight: Floats | None, unit: float = 1.0) -> Judged:
    """One ranking of one group."""
    return Judged([rank_one_group(values, score, weight, unit)], np.ones(1))


def read_ranked(y: Any, score: Any, treatment: Any, sample_weight: Any, control: Any) -> tuple[Target, Floats]:
    """Gate the arguments every ranking metric shares; the scores come as a matrix with one column per arm."""
    target = read_measured(y, treatment, sample_weight, control=control)
    return target, read_score(score, target)


def read_one_arm(
    y: Any, score: Any, treatment: Any, sample_weight: Any, control: Any, instead: str
) -> tuple[Target, Floats]:
    """The same for curves and tables, which compare one arm with control."""
    target = read_measured(y, treatment, sample_weight, control=control)
    if target.n_arms > 1:
        raise ValueError(
            f"this compares one arm with control, and treatment holds {target.n_arms} arms {target.arms!r}: keep the rows of "
            f"one of them and of control, or use {instead}"
        )
    return target, read_score(score, target)[:, 0]


def arm_shares(target: Target) -> Floats:
    """Share of each treatment arm in the weight of all treated rows."""
    if target.n_arms == 1:
        return np.ones(1)
    totals = target.totals[1:]
    return np.asarray(totals / totals.sum())
