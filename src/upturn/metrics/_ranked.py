"""A ranked experiment: scores sorted once, columns laid out in that order, ready for every metric."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._target import Target, read_score, read_target
from upturn.kernels.ranking import arrange, running_sums
from upturn.kernels.sorting import argsort_descending

_NONE = np.empty(0)


@dataclass(frozen=True)
class Ranked:
    """Rows of control and one arm, from the highest score to the lowest.

    ``order`` holds row numbers of the whole experiment, ``side`` is 0 in control and 1 in the arm, ``weight`` is empty
    for unweighted data, and ``last`` marks the last row of every tie.
    """

    order: NDArray[np.uint32]
    last: NDArray[np.bool_]
    y: NDArray[np.float64]
    side: NDArray[np.uint8]
    weight: NDArray[np.float64]

    @property
    def columns(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """What the kernels walk down."""
        return self.order, self.last, self.y, self.side, self.weight

    @cached_property
    def table(self) -> NDArray[np.float64]:
        """Running sums per distinct score; see :mod:`upturn.kernels.ranking`."""
        table = np.empty((int(self.last.sum()) + 1, 4))
        running_sums(self.last, self.y, self.side, self.weight, table)
        return table


def rank(target: Target, score: NDArray[np.float64], code: int) -> Ranked:
    """Sort the rows of control and arm ``code`` by a score given for all rows."""
    side, weight = (target.arm == code).view(np.uint8), _NONE if target.weight is None else target.weight
    if target.n_arms == 1:
        order, last = argsort_descending(np.ascontiguousarray(score))
    else:
        rows = np.flatnonzero((target.arm == 0) | (target.arm == code)).astype(np.uint32)
        order, last = argsort_descending(score[rows])
        order = rows[order]
    n = len(order)
    y_sorted, side_sorted, weight_sorted = np.empty(n), np.empty(n, np.uint8), np.empty(n if len(weight) else 0)
    arrange(order, target.y, side, weight, y_sorted, side_sorted, weight_sorted)
    return Ranked(order, last, y_sorted, side_sorted, weight_sorted)


def read_ranked(
    y: Any, score: Any, treatment: Any, sample_weight: Any, control: Any
) -> tuple[Target, NDArray[np.float64]]:
    """Gate the arguments every ranking metric shares; the scores come as a matrix with one column per arm."""
    target = read_target(y, treatment, sample_weight, control=control)
    return target, read_score(score, len(target.y), target.n_arms)


def arm_shares(target: Target) -> NDArray[np.float64]:
    """Share of each treatment arm in the weight of all treated rows."""
    if target.n_arms == 1:
        return np.ones(1)
    sizes = np.bincount(target.arm, weights=target.weight, minlength=target.n_arms + 1)[1:]
    return np.asarray(sizes / sizes.sum())
