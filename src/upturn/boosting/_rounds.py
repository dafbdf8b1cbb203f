"""What a round of boosting asks of its rows, wherever they lie; and the answers of rows that lie in one place.

Whatever is added up over rows is an integer, or rests on one, so that it depends neither on their order nor on where they lie: the weight of cells
(``kernels.boosting.tally``), of arms and of leaves. A weight is brought back to a sum of 1 by the cells' weights, in the step that changes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from upturn._arrays import Floats, Ints
from upturn._experiment import Experiment
from upturn.base import UpliftEstimator
from upturn.kernels.boosting import UNIT, reweigh, tally
from upturn.kernels.hashing import RESTART, exponentials
from upturn.kernels.histogram import Layout
from upturn.kernels.sampling import NO_IDS
from upturn.trees._center import word_sums
from upturn.trees._growth import arm_means, sum_words, weight_of_arms
from upturn.trees._outcome import encode_outcome

FEW = 10  # votes; with fewer different ones an ensemble hardly ranks, unless it was asked to be small
_ASKED = 1000  # rows that are looked at to tell whether the table itself has so few different ones


class Votes(NamedTuple):
    """What the votes of all rows are like: different ones, as far as they are few; the smallest and the largest."""

    few: Floats
    low: float
    high: float


class Rounds(Protocol):
    """Rows with weights that add up to 1, which members so far have changed, and votes."""

    n: int
    mean: Floats  # outcome of control and of the treated
    layout: Layout  # how sums of leaves are read

    def fit(self, member: Any) -> None:
        """Fit a member under the weights, which add up to what the experiment's own do."""

    def tally(self, member: Any) -> Floats:
        """The weight of right and wrong control rows, then of right and wrong treated rows."""

    def go_on(self, member: Any, factors: Floats, voice: float) -> None:
        """Multiply the weights of the same four cells by factors, and add a member's votes."""

    def restart(self, m: int) -> None:
        """Draw weights anew."""

    def leaves(self, members: Sequence[Any]) -> list[Ints]:
        """Sums of the experiment's own weight and outcome by leaf and arm, for every member: integers of shape (nodes * 2, 2)."""

    def votes(self, heard: float) -> Votes:
        """What the votes are, as shares of the voices heard."""

    def different(self) -> int:
        """Different rows among some that are spread over the table, as far as they are few."""


def divisors(totals: Floats, *, balanced: bool) -> Floats:
    """What weights of the two arms are divided by so that they add up to 1, or to one half in each."""
    return 2.0 * totals if balanced else np.full(2, totals.sum())


def drawn(seed: np.uint64, m: int, weight: Floats, first: int = 0, ids: Any = NO_IDS) -> Floats:
    """Weights of a restart, before they are divided."""
    out = np.empty(len(weight))
    exponentials(seed, RESTART, np.uint64(m), np.uint64(first), ids, out)
    out *= weight
    return out


def few_votes(votes: Floats) -> Votes:
    """What some votes are like; there may be none."""
    if not len(votes):
        return Votes(votes, np.inf, -np.inf)
    return Votes(np.unique(votes.round(9))[:FEW], float(votes.min()), float(votes.max()))


class Near:
    """Rows that lie in one place (see ``Rounds``)."""

    def __init__(self, base: UpliftEstimator, data: Experiment, seed: np.uint64, *, balanced: bool) -> None:
        self._data, self._seed, self._balanced, self._prepared = data, seed, balanced, base._prepare(data)
        self._rows, self._success = base._rows_of(self._prepared), data.y.astype(np.uint8)
        self._words, self.layout = encode_outcome(data.y, data.weight)
        totals, self.mean = arm_means(sum_words(self._words, data.arm, 2, self.layout), self.layout)
        self.n, self._total, self._votes = len(data), float(totals.sum()), np.zeros(len(data))
        self._weight = data.weights / divisors(totals, balanced=balanced)[data.arm]

    def fit(self, member: Any) -> None:
        """As many rows as there are, or a Laplace correction swamps them."""
        member._fit_prepared(self._prepared, self._weight * self._total)

    def tally(self, member: Any) -> Floats:
        """See ``Rounds``."""
        self._decision = (member._recommend_rows(self._rows) == 1).view(np.uint8)
        cells = np.empty(4, np.int64)
        tally(self._weight, self._decision, self._success, self._data.arm, cells)
        return np.asarray(cells * UNIT)

    def go_on(self, member: Any, factors: Floats, voice: float) -> None:
        """See ``Rounds``; the member is the one that was just tallied."""
        reweigh(self._decision, self._success, self._data.arm, factors, self._weight)
        self._votes += voice * self._decision

    def restart(self, m: int) -> None:
        """See ``Rounds``."""
        raw = drawn(self._seed, m, self._data.weights)
        totals = weight_of_arms(raw, self._data.arm, 2)
        self._weight = raw / divisors(totals, balanced=self._balanced)[self._data.arm]

    def leaves(self, members: Sequence[Any]) -> list[Ints]:
        """See ``Rounds``."""
        return [
            word_sums(2 * one._nodes_of(self._rows) + self._data.arm, 2 * one._n_nodes, self._words, self.layout)
            for one in members
        ]

    def votes(self, heard: float) -> Votes:
        """See ``Rounds``."""
        return few_votes(self._votes / heard)

    def different(self) -> int:
        """See ``Rounds``."""
        some = self._data.X[:: max(self.n // _ASKED, 1)]
        return min(len({row.tobytes() for row in np.nan_to_num(some, nan=np.inf)}), FEW)
