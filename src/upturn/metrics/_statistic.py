"""The one mechanism behind every number: gather sums over a ranking, end them by a formula, repeat on replicates.

A :class:`Statistic` names the sums a kernel gathers and holds the formula that turns them into a number. The formula is
written once, in numpy, for one ranking or for an axis of replicates. Replicates are counts per row that depend on the
seed alone, so all models and all metrics see the same ones and their differences are paired. All statistics that are drawn
in the same way come from one walk down the ranking.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools, Floats, Indices
from upturn._columns import warn_user
from upturn.kernels.resampling import BOOTSTRAP, HALF
from upturn.kernels.walking import thin, walk
from upturn.metrics._estimate import SmallSampleWarning
from upturn.metrics._ranked import Judged, Ranked
from upturn.metrics._replicates import Replicates
from upturn.metrics._strata import FEW_ROWS, Strata

Scheme = Literal["bootstrap", "half"]

SCHEMES: dict[Scheme, int] = {"bootstrap": BOOTSTRAP, "half": HALF}
_NO_UNITS, _ONCE = np.empty(0, np.uint32), np.ones((1, 1), np.uint8)  # the data as their own replicate
_LONG = 1 << 17  # rows of a ranking, beyond which its replicates join neighbouring ties


class Sized(Protocol):
    """A ranking by its size: the last row of its table, and what a weight of 1 stands for."""

    @property
    def totals(self) -> Floats:
        """Weight and weighted outcome of control and of the arm."""

    @property
    def unit(self) -> float:
        """In the weights that were given."""


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
    sized : bool
        Whether the number grows with the arms, as counts do. The formula is then given the data's own totals as well:
        replicates that hold a little more or less than the data must not make it vary.
    undefined : str
        Why the number can be NaN, where it can: what a formula divides by that may be 0.
    top : str
        What to call the part of the ranking that the number is of, where it is a part: an interval from few rows warns.
    """

    finish: Callable[..., Floats]
    code: int = -1
    shares: Floats | None = None
    by_arm: bool = False
    scheme: Scheme = "bootstrap"
    sized: bool = False
    undefined: str = ""
    top: str = ""

    def end(self, sums: Floats, totals: Floats, ranked: Sized) -> Floats:
        """The number, or one per replicate, of a ranking; counts are in the weights that were given."""
        if self.sized:
            return self.finish(sums, totals, ranked.totals) * ranked.unit
        return self.finish(sums, totals)


class Plan:
    """What several statistics ask of one walk: folds by code, and two lists of rising shares, without repetitions."""

    def __init__(self, statistics: Sequence[Statistic]) -> None:
        self.statistics = statistics
        self.codes = np.array(sorted({s.code for s in statistics if s.shares is None}), dtype=np.int64)
        self.shares, self.arm_shares = (
            np.unique(
                np.concatenate(
                    [np.empty(0), *(s.shares for s in statistics if s.shares is not None and s.by_arm == arm)]
                )
            )
            for arm in (False, True)
        )

    def gather(
        self,
        ranked: Ranked,
        totals: Floats,
        last: Bools,
        unit: NDArray[np.uint32] = _NO_UNITS,
        counts: NDArray[np.uint8] = _ONCE,
    ) -> tuple[list[Floats], Floats]:
        """The sums of every statistic and the last rows of the tables, first axis the replicates."""
        n = counts.shape[1]
        folds, tops = np.empty((n, len(self.codes), 2)), np.empty((n, 4))
        at, arms_at = np.empty((n, len(self.shares), 4)), np.empty((n, len(self.arm_shares), 4))
        columns = last, ranked.y, ranked.side, ranked.weight
        walk(self.codes, self.shares, self.arm_shares, totals, *columns, unit, counts, folds, at, arms_at, tops)
        return self.sums(folds, at, arms_at), tops

    def sums(self, folds: Floats, at: Floats, arms_at: Floats) -> list[Floats]:
        """What each statistic asked for, of what was gathered; the first axis is that of replicates."""
        sums = []
        for statistic in self.statistics:
            if statistic.shares is None:
                sums.append(folds[:, int(np.searchsorted(self.codes, statistic.code))])
            elif statistic.by_arm:
                sums.append(arms_at[:, np.searchsorted(self.arm_shares, statistic.shares)])
            else:
                sums.append(at[:, np.searchsorted(self.shares, statistic.shares)])
        return sums


def measure(statistics: Sequence[Statistic], judged: Judged) -> list[Floats]:
    """Each statistic of one model: the mean over its rankings."""
    plan, values = Plan(statistics), [0.0] * len(statistics)
    for ranked, share in zip(judged.rankings, judged.shares, strict=True):
        sums, tops = plan.gather(ranked, ranked.totals[None, :], ranked.last)
        for j, statistic in enumerate(statistics):
            values[j] = values[j] + share * statistic.end(sums[j][0], tops[0], ranked)
    return [np.asarray(value) for value in values]


def replicate(
    statistics: Sequence[Statistic],
    models: Sequence[Judged],
    strata: Strata,
    replicates: Replicates,
) -> list[list[Floats]]:
    """``result[model][statistic]``: the statistic on every replicate, first axis, the same replicates for all."""
    strata.warn_if_few()
    warn_if_thin(statistics, strata)
    rankings = [
        [(ranked, _replicated_ties(ranked), strata.unit[ranked.order]) for ranked in model.rankings] for model in models
    ]
    result: list[list[Any]] = [[None] * len(statistics) for _ in models]
    # Clusters that lie in several arms may leave a replicate without one: nothing is defined on it, and it is left out.
    defined: Any = {} if strata.sums is None else {"invalid": "ignore", "divide": "ignore"}
    for scheme in SCHEMES:
        mine = [j for j, statistic in enumerate(statistics) if statistic.scheme == scheme]
        if not mine:
            continue
        plan = Plan([statistics[j] for j in mine])

        def block(numbers: range, scheme: Scheme = scheme, plan: Plan = plan) -> list[list[Any]]:
            counts, totals = strata.draw(SCHEMES[scheme], replicates.seed, numbers)
            return [
                [plan.gather(ranked, _pick(totals, ranked), ties, unit, counts) for ranked, ties, unit in places]
                for places in rankings
            ]

        blocks = replicates.map(block)
        for m, model in enumerate(models):
            for c, j in enumerate(mine):
                total: Any = 0.0
                for k, (ranked, share) in enumerate(zip(model.rankings, model.shares, strict=True)):
                    sums = np.concatenate([found[m][k][0][c] for found in blocks])
                    tops = np.concatenate([found[m][k][1] for found in blocks])
                    with np.errstate(**defined):
                        total = total + share * statistics[j].end(sums, tops, ranked)
                result[m][j] = np.asarray(total)
    return result


def estimate(
    statistic: Statistic, judged: Judged, strata: Callable[[Indices | None], Strata], replicates: Replicates | None
) -> float:
    """A number, with its interval where there are replicates: of ``strata`` by clusters, which are made only for them."""
    value = float(measure([statistic], judged)[0])
    warn_if_undefined(statistic, value)
    if replicates is None:
        return value
    samples = replicate([statistic], [judged], strata(replicates.clusters), replicates)[0][0]
    return replicates.estimate(value, samples)


def warn_if_undefined(statistic: Statistic, *values: float) -> None:
    """Say why a number is NaN."""
    if not np.isnan(values).any():
        return
    from sklearn.exceptions import UndefinedMetricWarning

    warn_user(f"the number is not defined, and NaN stands for it: {statistic.undefined}", UndefinedMetricWarning)


def warn_if_thin(statistics: Sequence[Statistic], strata: Strata) -> None:
    """Say so when the part of the ranking that a number is of has few rows; of a small arm the strata have said it."""
    whole = float(strata.rows.min())
    for statistic in statistics:
        if statistic.top and statistic.shares is not None:
            rows = whole * float(statistic.shares.min())
            if rows < FEW_ROWS <= whole:
                warn_user(
                    f"{statistic.top} holds about {rows:.3g} rows of the smallest arm: an interval from so few is not to be "
                    "trusted",
                    SmallSampleWarning,
                )


def _replicated_ties(ranked: Ranked) -> Bools:
    """Where ties end in replicates of a ranking: where they end in itself, unless it is long."""
    if len(ranked.last) <= _LONG:
        return ranked.last
    joined = np.empty(len(ranked.last), dtype=bool)
    thin(ranked.last, joined)
    return joined


def _pick(totals: Floats, ranked: Ranked) -> Floats:
    """Totals of control and the arm of a ranking in every replicate, from those of all strata."""
    control, arm = ranked.strata
    if control == arm:
        return np.column_stack([np.zeros((len(totals), 2)), totals.sum(axis=1)])
    return np.concatenate((totals[:, control], totals[:, arm]), axis=1)


def replicate_means(strata: Strata, replicates: Replicates) -> Floats:
    """The weighted mean of the strata's values on every bootstrap replicate."""
    strata.warn_if_few()

    def block(numbers: range) -> Floats:
        weight, value = strata.draw(BOOTSTRAP, replicates.seed, numbers)[1].sum(axis=1).T
        return np.asarray(value / weight)

    return np.concatenate(replicates.map(block))
