r"""Scales of an effect: how two means are compared, with which interval, and how likely so large a difference is by chance.

===============  ============================  =====================================================================
scale            effect                        interval
===============  ============================  =====================================================================
``difference``   m_1 - m_0                     outcomes of 0 and 1: Newcombe's, from Wilson's intervals of the two rates;
                                               other outcomes: Welch's
``ratio``        m_1 / m_0                     normal on the logarithm, with its variance by the delta method
``odds_ratio``   m_1(1 - m_0) / (m_0(1-m_1))   the same (Woolf's)
``nnt``          1 / (m_1 - m_0)               the ends of the difference's, turned over
===============  ============================  =====================================================================

A p-value is the level at which the interval touches no effect, so that the two never disagree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import ndtr, ndtri

from upturn._arrays import Bools, Floats
from upturn._results import NOT_AVAILABLE, number_text
from upturn._subgroups._cells import Cells

SCALES = ("difference", "ratio", "odds_ratio", "nnt")
NEED_TWO_VALUES = ("odds_ratio", "nnt")


@dataclass(frozen=True)
class Comparison:
    """One arm against control in every group, on the scale on which it is nearly normal.

    Attributes
    ----------
    value, se : arrays of shape (G,)
        Difference, logarithm of the ratio, or of the odds ratio; and its standard error.
    slope : array of shape (G, 2)
        How the value changes with the mean of control and of the arm.
    variance : array of shape (G, 2)
        Of these means.
    corrected : array of shape (G,)
        Where half a row was added to every outcome because one of them never happened.
    shared : array of shape (G,)
        Correlation of the two means: 0, unless arms share clusters.
    clustered : bool
        Whether rows come in clusters; ``worth`` is then the number of clusters.
    """

    value: Floats
    se: Floats
    slope: Floats
    variance: Floats
    corrected: Bools
    mean: Floats
    worth: Floats
    scale: str
    binary: bool
    shared: Floats
    clustered: bool
    counted: Floats

    @classmethod
    def of(cls, cells: Cells, arm: int, scale: str, binary: bool) -> Comparison:
        """Compare an arm with control."""
        pick = [0, arm]
        mean, variance, worth = cells.mean[:, pick], cells.variance[:, pick], cells.worth[:, pick]
        known, counted, clustered = worth > 0, worth, cells.clusters is not None
        shared = _correlation(cells, arm)
        if clustered and binary:  # outcomes that are not get it below
            with np.errstate(invalid="ignore", divide="ignore"):
                variance = np.where(worth > 1.5, variance * worth / (worth - 1.0), np.nan)
        if binary:
            # How many rows a rate is worth: as many as give it this variance. Where it is 0 or 1, the weights tell.
            with np.errstate(invalid="ignore", divide="ignore"):
                rows = np.where((mean > 0) & (mean < 1), mean * (1 - mean) / variance, worth)
            edge = known & ((mean <= 0) | (mean >= 1))
            if scale in ("ratio", "odds_ratio"):
                bad = edge if scale == "odds_ratio" else known & (mean <= 0)
                edge = np.broadcast_to(bad.any(axis=1, keepdims=True), mean.shape) & known
            with np.errstate(invalid="ignore"):  # a rate worth any number of rows, which is not at the edge
                near = (rows * mean + 0.5) / (rows + 1.0)
            used = np.where(edge, near, mean)
            variance = np.where(edge, near * (1 - near) / (rows + 1.0), variance)
            worth = rows
        else:
            edge, used = np.zeros(mean.shape, dtype=bool), mean
            with np.errstate(invalid="ignore", divide="ignore"):  # one row has no variance
                variance = np.where(worth > 1.5, variance * worth / (worth - 1.0), np.nan)
        m0, m1 = used.T
        sign = np.array([-1.0, 1.0])
        with np.errstate(invalid="ignore", divide="ignore"):
            if scale == "ratio":
                positive = (m0 > 0) & (m1 > 0)
                value, slope = np.where(positive, np.log(m1 / m0), np.nan), sign / used
            elif scale == "odds_ratio":
                value, slope = np.log(m1 / (1 - m1)) - np.log(m0 / (1 - m0)), sign / (used * (1 - used))
            else:
                value, slope = m1 - m0, np.broadcast_to(sign, used.shape)
                value = mean[:, 1] - mean[:, 0]  # a rate of 0 is shown as that
            parts = slope * np.sqrt(variance)
            se = np.sqrt((slope**2 * variance).sum(axis=1) + 2.0 * shared * parts[:, 0] * parts[:, 1])
        corrected = np.asarray(edge.any(axis=1) & (scale in ("ratio", "odds_ratio")))
        se = np.where(np.isnan(value), np.nan, se)
        return cls(
            value, se, slope, variance, corrected, mean, worth, scale, binary, shared, clustered, counted
        )  # fmt: skip

    @property
    def _newcombe(self) -> bool:
        return self.binary and self.scale in ("difference", "nnt")

    @property
    def _freedom(self) -> Floats:
        """Welch's degrees of freedom; without limit where the normal law is used."""
        if not self.clustered and (self.binary or self.scale != "difference"):
            return np.full(len(self.value), np.inf)
        parts = self.slope**2 * self.variance
        with np.errstate(invalid="ignore", divide="ignore"):
            freedom = parts.sum(axis=1) ** 2 / (parts**2 / (self.counted - 1.0)).sum(axis=1)
        return np.where(np.isfinite(freedom), freedom, np.inf)

    def bounds(self, interval: float) -> tuple[Floats, Floats]:
        """Ends of an interval of some confidence level, on the nearly normal scale."""
        if self._newcombe:
            z = np.full(len(self.value), float(ndtri(0.5 + interval / 2)))
            return self._newcombe_bounds(stats.t.ppf(0.5 + interval / 2, self._freedom) if self.clustered else z)
        half = stats.t.ppf(0.5 + interval / 2, self._freedom) * self.se
        return self.value - half, self.value + half

    def _newcombe_bounds(self, z: Floats) -> tuple[Floats, Floats]:
        low, high = wilson(self.mean, self.worth, z[:, None])
        p, value, twice = self.mean, self.value, 2.0 * self.shared
        below, above = p - low, high - p  # of control and of the arm
        down = np.sqrt(below[:, 1] ** 2 + above[:, 0] ** 2 - twice * below[:, 1] * above[:, 0])
        up = np.sqrt(above[:, 1] ** 2 + below[:, 0] ** 2 - twice * above[:, 1] * below[:, 0])
        return value - down, value + up

    def p_value(self) -> Floats:
        """Two-sided, of the hypothesis that there is no effect; NaN where there is no standard error."""
        if not self._newcombe:
            with np.errstate(invalid="ignore", divide="ignore"):
                t = np.abs(self.value) / self.se
            t = np.where((self.se == 0) & (self.value == 0), 0.0, t)
            return np.asarray(2 * stats.t.sf(t, self._freedom))
        # The interval that just touches 0, by halving: its reach in normal standard errors is the test statistic.
        least, most = np.zeros(len(self.value)), np.full(len(self.value), 1e6)
        for _ in range(100):
            middle = (least + most) / 2
            low, high = self._newcombe_bounds(middle)
            inside = (low <= 0) & (high >= 0)
            most, least = np.where(inside, middle, most), np.where(inside, least, middle)
        p = 2 * (stats.t.sf(most, self._freedom) if self.clustered else ndtr(-most))
        p = np.where(self.value == 0, 1.0, p)
        return np.where(np.isnan(self.value), np.nan, p)

    def shown(self, values: Floats) -> Floats:
        """Values of the nearly normal scale as they are read: ratios of logarithms, persons of differences."""
        with np.errstate(divide="ignore", over="ignore"):
            if self.scale in ("ratio", "odds_ratio"):
                return np.asarray(np.exp(values))
            return np.asarray(1.0 / (values + 0.0)) if self.scale == "nnt" else np.asarray(values)

    def shown_bounds(self, interval: float) -> tuple[Floats, Floats]:
        """Ends of the interval as they are read.

        The number needed to treat runs the other way, 1/high to 1/low. Where the difference's interval holds 0 it runs
        through infinity: ``low`` is then 1/low, the persons for whom one is harmed, negative, and ``high`` is 1/high, the
        persons for whom one is helped, and the numbers compatible with the data lie *outside* of (low, high).
        """
        low, high = self.bounds(interval)
        if self.scale != "nnt":
            return self.shown(low), self.shown(high)
        through = (low <= 0) & (high >= 0)
        with np.errstate(divide="ignore"):
            worst, best = np.where(low == 0, -np.inf, 1.0 / low), np.where(high == 0, np.inf, 1.0 / high)
        return np.where(through, worst, best), np.where(through, best, worst)


def _correlation(cells: Cells, arm: int) -> Floats:
    """Of the means of control and an arm, group by group."""
    shared = cells.between(0, arm)
    if shared is None:
        return np.zeros(len(cells.mean))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.diag(shared) / np.sqrt(cells.variance[:, 0] * cells.variance[:, arm])
    return np.where(np.isfinite(found), np.clip(found, -1.0, 1.0), 0.0)


def wilson(mean: Floats, rows: Floats, z: Floats) -> tuple[Floats, Floats]:
    """Wilson's interval of a rate."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share = z * z / rows
        middle = (mean + share / 2) / (1 + share)
        half = np.sqrt(share) * np.sqrt(mean * (1 - mean) + share / 4) / (1 + share)
    return np.minimum(middle - half, mean), np.maximum(middle + half, mean)


def nnt_words(low: float, high: float) -> str:
    """The interval of a number needed to treat in words, in the way of Altman: benefit for one of so many, or harm to one."""
    if np.isnan(low) or np.isnan(high):
        return NOT_AVAILABLE
    if low > 0:
        return f"benefit {_persons(low)} to {_persons(high)}"
    if high < 0:
        return f"harm {_persons(-high)} to {_persons(-low)}"
    return f"benefit {_persons(high)} to infinity to harm {_persons(-low)}"


def _persons(number: float) -> str:
    return "infinity" if np.isinf(number) else number_text(number, digits=3)
