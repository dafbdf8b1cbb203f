"""Do the arms agree in their features? The tests of balance, on rows behind the gates, for `check` and for propensities.

All compare two groups under randomisation: given who is in the experiment, every assignment with the same group sizes
is equally likely. Ranks and exact tails keep them honest with heavy tails, rare levels and unequal groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from upturn._arrays import Arms, Bools, Floats, Ints
from upturn._experiment import Experiment
from upturn._table import Schema, few_levels

_ENOUGH = 50.0  # expected rows in every cell from which the normal tail is close enough
_BLOCK = 1 << 17  # numbers of the table that are turned at a time
_FEW = 25  # a numeric column with fewer values besides its commonest one is judged as "is it the commonest?"


def balance_pvalue(data: Experiment) -> float:
    """The joint test: P(a column in which the arms differ as much | arms at random), corrected for all comparisons."""
    return joint_pvalue(data.X, data.schema, data.arm, data.n_arms)


def joint_pvalue(
    X: Floats, schema: Schema, arm: Arms, n_arms: int, weight: Floats | None = None, *, gaps: bool = False
) -> float:
    """The same of a matrix and the arms of its rows, which may have weights; with ``gaps`` also of whether a value is missing."""
    pvalues = []
    for raw, levels in zip(each_column(X), schema.levels, strict=True):
        column, n_levels = few_levels(raw, levels)
        missing = np.isnan(column)
        found: list[float] = []
        for code in range(1, n_arms + 1):
            rows = np.flatnonzero((arm == 0) | (arm == code))
            compared = [(column, n_levels, rows[~missing[rows]])]
            if gaps and missing.any():
                compared.append((missing.astype(np.float64), 2, rows))
            for values, n, mine in compared:
                treated = arm[mine] == code
                if weight is None:
                    found += column_pvalues(values[mine], n, treated)
                else:
                    found += weighted_pvalues(values[mine], n, treated, weight[mine])
        pvalues.append(min(1.0, min(found) * len(found)))
    return min(1.0, min(pvalues) * len(pvalues))


def each_column(X: Floats) -> Iterator[Floats]:
    """The columns of a matrix one after the other, each in one piece: of a wide table, every number lies in another line of the cache."""
    step = max(1, _BLOCK // max(len(X), 1))
    for start in range(0, X.shape[1], step):
        yield from np.ascontiguousarray(X[:, start : start + step].T)


def column_pvalues(values: Floats, n_levels: int | None, treated: Bools) -> list[float]:
    """P-values of what is compared of a column without missing values: its numbers, or every level as yes or no."""
    if n_levels is None:
        return [rank_pvalue(values, treated)]
    codes = values.astype(np.int64)
    return level_pvalues(np.bincount(codes, minlength=n_levels), np.bincount(codes[treated], minlength=n_levels))


def weighted_pvalues(values: Floats, n_levels: int | None, treated: Bools, weight: Floats) -> list[float]:
    r"""The same of rows with weights: the difference of two weighted means of ranks (or shares of a level) over its standard error.

    :math:`z = (m_1 - m_0) / \sqrt{v_1 + v_0}` with :math:`v = \sum w^2 (r - m)^2 / (\sum w)^2`; 1 where weights leave too few rows
    for a normal tail. Sums are over distinct values, and no product is left to BLAS, whose order of summing depends on its threads.
    """
    if len(values) == 0:
        return [1.0]
    ranks = np.empty(0)
    if n_levels is None:
        _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
        ranks, n = np.cumsum(counts) - (counts - 1) / 2, len(counts)
    else:
        codes, n = values.astype(np.int64), n_levels
    means, variances, rows = [], [], np.inf
    for mine in (treated, ~treated):
        heaviest = float(weight[mine].max(initial=0.0))
        if heaviest <= 0.0:
            return [1.0]
        own = weight[mine] / heaviest  # so that squares of any weights are numbers
        ones, squares = (np.bincount(codes[mine], power, n) for power in (own, own**2))
        total, square = ones.sum(), squares.sum()
        rows = min(rows, float(total**2 / square))  # as many of equal weight would vary as much
        if n_levels is None:
            mean = (ones * ranks).sum(keepdims=True) / total
            variance = (squares * (ranks - mean) ** 2).sum(keepdims=True)
        else:
            mean = ones / total
            variance = squares * (1.0 - mean) ** 2 + (square - squares) * mean**2
        means.append(mean)
        variances.append(variance / total**2)
    mass = np.bincount(codes, weight / weight.max(), n)
    share = mass / mass.sum()
    others = (
        np.array([1.0 - share.max()]) if n_levels is None else np.minimum(share, 1.0 - share)
    )  # than the commonest value
    error = np.sqrt(variances[0] + variances[1])
    judged = (rows * np.minimum(2.0 * others, 1.0) >= _ENOUGH) & (error > 0.0)
    z = np.divide(means[0] - means[1], error, out=np.zeros_like(error), where=judged)
    found = [two_sided(one) for one in z.tolist()]
    return found if len(found) != 2 else found[1:]  # of two levels, one says it all


def level_pvalues(ones: Ints, seen: Ints) -> list[float]:
    """P-values of every level, from its rows and those of them that are treated."""
    n, n1 = int(ones.sum()), int(seen.sum())
    found = [count_pvalue(n, one, n1, both) for one, both in zip(ones.tolist(), seen.tolist(), strict=True)]
    return found if len(ones) > 2 else found[1:] or [1.0]  # of two levels, one says it all


def flag_pvalue(flag: Bools, treated: Bools) -> float:
    """Two-sided p-value for a yes/no column: hypergeometric, exact where any cell is small."""
    return count_pvalue(len(flag), int(flag.sum()), int(treated.sum()), int((flag & treated).sum()))


@lru_cache(1 << 16)
def count_pvalue(n: int, ones: int, n1: int, seen: int) -> float:
    """The same from counts: of n rows ``ones`` say yes, n1 are treated, and ``seen`` are both."""
    if ones in (0, n) or n1 in (0, n):
        return 1.0
    if min(ones, n - ones) * min(n1, n - n1) / n < _ENOUGH:
        least, most = max(0, ones + n1 - n), min(ones, n1)
        k = np.arange(least, most)  # P(k + 1) / P(k), by the law of draws without putting back
        law = chances(np.log((ones - k) * (n1 - k)) - np.log((k + 1.0) * (n - ones - n1 + k + 1.0)))
        at = seen - least
        return float(min(1.0, 2 * min(law[: at + 1].sum(), law[at:].sum())))
    variance = n1 * (n - n1) * ones * (n - ones) / (float(n) * n * (n - 1))
    return two_sided((seen - n1 * ones / n) / np.sqrt(variance))


def chances(log_ratios: Floats) -> Floats:
    """The chances of 0, 1, … from the logarithms of the ratio of each to the one before: scipy's laws take long to import."""
    logs = np.concatenate(([0.0], np.cumsum(log_ratios)))
    parts = np.exp(logs - logs.max())
    return np.asarray(parts / parts.sum())


def mean_ranks(values: Floats) -> Floats:
    """The ranks of numbers from 1 on; equal ones share the mean of theirs."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[codes])


def rank_pvalue(values: Floats, treated: Bools) -> float:
    """Two-sided p-value for a numeric column without missing values: rank sum, with the variance of tied ranks.

    A column with two values, or with few values besides its commonest one, is judged as a yes/no column.
    """
    n, n1 = len(values), int(treated.sum())
    if n1 in (0, n):
        return 1.0
    order = np.argsort(values)
    ascending = values[order]
    first = np.flatnonzero(ascending[1:] != ascending[:-1]) + 1  # where a run of equal values begins, but for the first
    edges = np.concatenate(([0], first, [n]))
    test = RankTest(n, n1)
    test.add(np.diff(edges), np.add.reduceat(treated[order].astype(np.int64), edges[:-1]))
    return test.pvalue()


class RankTest:
    """The same test from counts of distinct values that come in order, some at a time, of all rows and of the treated ones.

    It adds up whole numbers, so that it does not matter how many come at a time.
    """

    def __init__(self, n: int, n1: int) -> None:
        self._n, self._n1, self._before, self._distinct = n, n1, 0, 0
        self._ties = self._treated = 0
        self._common = self._common_treated = 0

    def add(self, counts: Ints, treated: Ints) -> None:
        """The next values."""
        ends = self._before + np.cumsum(counts)
        twice = np.concatenate(([self._before], ends[:-1])) + ends - self._n
        self._treated += int(treated @ twice)  # mean rank (first + last + 1) / 2, less (n + 1) / 2, twice
        sizes, times = np.unique(counts[counts > 1], return_counts=True)
        self._ties += sum(k * (t**3 - t) for t, k in zip(sizes.tolist(), times.tolist(), strict=True))
        self._before, self._distinct = int(ends[-1]), self._distinct + len(counts)
        most = int(counts.argmax())
        if counts[most] > self._common:
            self._common, self._common_treated = int(counts[most]), int(treated[most])

    def pvalue(self) -> float:
        """After all of them."""
        n, n1 = self._n, self._n1
        if n1 in (0, n) or self._distinct < 2:
            return 1.0
        others = n - self._common
        # Where most rows have one value and few of the others are expected in the smaller group, ranks are far from normal.
        skewed = 2 * self._common > n and others * min(n1, n - n1) / n < _ENOUGH
        if self._distinct == 2 or others < _FEW or skewed:
            return count_pvalue(n, self._common, n1, self._common_treated)
        square = (n**3 - n - self._ties) / 12  # of ranks less their mean
        variance = n1 * (n - n1) / (float(n) * (n - 1)) * square
        return two_sided(self._treated / 2 / np.sqrt(variance))


def two_sided(z: float) -> float:
    """Return the two-sided normal tail."""
    return float(2 * ndtr(-abs(z)))
