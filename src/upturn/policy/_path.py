"""The path of upgrades from nobody treated to everybody, and where it leads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Arms, Floats, Indices
from upturn.kernels.budget import fill, upgrades
from upturn.kernels.hashing import TIES, words
from upturn.kernels.sorting import argsort_descending


@dataclass(frozen=True)
class Assignment:
    """The arm everybody is given, by number."""

    arm: Arms

    @cached_property
    def treated(self) -> tuple[Indices, Indices]:
        """The rows that are treated, and the column of the arm of each."""
        rows = np.flatnonzero(self.arm)
        return rows, self.arm[rows].astype(np.intp) - 1

    def total(self, matrix: Floats, weight: Floats | None = None) -> float:
        """The sum, over those treated, of their entry in the column of their arm."""
        rows, columns = self.treated
        entries = matrix[rows, columns]
        return float(entries.sum() if weight is None else weight[rows] @ entries)

    def shares(self, n_arms: int, weight: Floats | None = None) -> Floats:
        """The share of people, or of their weight, that is given each treatment arm."""
        rows, columns = self.treated
        weights = None if weight is None else weight[rows]
        everybody = float(len(self.arm) if weight is None else weight.sum())
        return np.asarray(np.bincount(columns, weights, minlength=n_arms) / everybody)


@dataclass(frozen=True)
class Path:
    """Upgrades from the steepest down: ``row`` goes from arm ``before`` to arm ``after`` at ``cost``, gaining ``benefit``.

    ``slope`` is benefit per unit of cost, or per person when people are what is limited.
    """

    row: NDArray[np.uint32]
    before: Arms
    after: Arms
    slope: Floats
    cost: Floats
    benefit: Floats

    def __len__(self) -> int:
        return len(self.row)

    def affordable(self, budget: float) -> int:
        """How many upgrades from the top a budget pays for."""
        spent = np.cumsum(self.cost)
        return int(np.searchsorted(spent, rounded_up(budget), side="right"))

    def spend(self, budget: float, n: int) -> tuple[Path, int]:
        """The upgrades a budget is spent on: those from the top (returns how many), then what fits into the rest."""
        stop = self.affordable(budget)
        taken = np.arange(len(self)) < stop
        left = rounded_up(budget) - float(self.cost[:stop].sum())
        fill(self.row, self.before, self.after, self.cost, stop, left, self.assignment(n, stop), taken)
        return Path(*(column[taken] for column in vars(self).values())), stop

    def assignment(self, n: int, stop: int) -> Arms:
        """The arm of every row after ``stop`` upgrades."""
        arm = np.zeros(n, dtype=np.uint8)
        arm[self.row[:stop]] = self.after[:stop]  # a row's later upgrades come later, and the last one stays
        return arm

    def first_visits(self) -> NDArray[np.uint32]:
        """The rows in the order in which they first appear."""
        _, first = np.unique(self.row, return_index=True)
        return self.row[np.sort(first)]


def rounded_up(budget: float) -> float:
    """A budget that sums of costs do not miss by a rounding error."""
    return budget + 1e-9 * max(abs(budget), 1e-300)


def make_path(cost: Floats, benefit: Floats, floor: float, seed: np.uint64) -> Path:
    """The path that gains most at every budget, of upgrades steeper than ``floor``.

    Ties are in the order of a word drawn for every row, a function of the seed and the row's number.
    """
    columns = list_upgrades(cost, benefit, floor)
    row, slope = columns[0], columns[3]
    if not len(row):
        return Path(*columns)
    order, last = argsort_descending(slope)
    if not last.all():  # upgrades of one slope belong to different rows, so any order of them will do
        tie, word = np.concatenate(([0], np.cumsum(last[:-1]))), np.empty(len(cost), np.uint64)
        words(seed, TIES, np.uint64(0), word)
        order = order[np.lexsort((word[row[order]], tie))]
    return Path(*(column[order] for column in columns))


def list_upgrades(cost: Floats, benefit: Floats, floor: float) -> tuple[NDArray[Any], ...]:
    """The upgrades steeper than ``floor``, person by person: the columns of a path."""
    size = cost.size
    row, before, after = np.empty(size, np.uint32), np.empty(size, np.uint8), np.empty(size, np.uint8)
    columns: tuple[NDArray[Any], ...] = (row, before, after, np.empty(size), np.empty(size), np.empty(size))
    count = upgrades(cost, benefit, float(floor), *columns)
    return tuple(column[:count] for column in columns)
