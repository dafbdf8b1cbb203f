"""The tests behind `upturn.check` besides those of balance: plain functions on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, ndtr, ndtri, stdtr, stdtrit

from upturn._arrays import Bools, Floats, Indices, Ints
from upturn._balance import chances, mean_ranks
from upturn._columns import power_of_two


def share_pvalue(counts: Ints, shares: Floats) -> float:
    """P-value of group sizes against intended shares: exact for two groups of moderate size, else chi-square."""
    total = int(counts.sum())
    if len(counts) == 2 and total < 10_000:
        k = np.arange(total)
        law = chances(np.log((total - k) / (k + 1.0)) + np.log(shares[1]) - np.log1p(-shares[1]))
        return float(min(1.0, law[law <= law[counts[1]] * (1 + 1e-7)].sum()))  # all that is no likelier
    expected = shares * total
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return float(chdtrc(len(counts) - 1, statistic))


def standardised_difference(values: Floats, treated: Bools, weight: Floats) -> float:
    """Return (m_1 - m_0) / sqrt((s_1² + s_0²) / 2), weighted; 0 for a constant column."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest and not 1e-70 < largest < 1e70:  # squares may not fit a float: in other units
        values = values / power_of_two(largest)
    means, variances = [], []
    for group in (~treated, treated):
        w, v = weight[group], values[group]
        total = float(w.sum())
        if total <= 0:
            return 0.0
        mean = float(w @ v / total)
        means.append(mean)
        variances.append(float(w @ (v - mean) ** 2 / total))
    return in_deviations(means, variances)


def level_differences(codes: Ints, n_levels: int, treated: Bools, weight: Floats) -> list[float]:
    """The standardised difference of every level of a column, each taken as 0 and 1, from one pass."""
    totals = [float(weight[group].sum()) for group in (~treated, treated)]
    if min(totals) <= 0:
        return [0.0] * n_levels
    shares = [
        np.bincount(codes[group], weight[group], n_levels) / total
        for group, total in zip((~treated, treated), totals, strict=True)
    ]
    return share_differences(*shares)


def share_differences(control: Floats, treated: Floats) -> list[float]:
    """The same from the share of every level in either group."""
    pairs = zip(control.tolist(), treated.tolist(), strict=True)
    return [in_deviations([a, b], [a * (1 - a), b * (1 - b)]) for a, b in pairs]


def in_deviations(means: Sequence[float], variances: Sequence[float]) -> float:
    """The difference of two means in standard deviations, averaged over the groups."""
    spread = float(np.sqrt((variances[0] + variances[1]) / 2))
    gap = means[1] - means[0]
    if spread <= 1e-12 * max(abs(means[0]), abs(means[1]), 1e-300):
        return 0.0 if abs(gap) <= 1e-12 * max(abs(means[0]), abs(means[1])) else float(np.copysign(np.inf, gap))
    return gap / spread


def effective_rows(weight: Floats) -> float:
    """The number of equal weights worth as much: (Σw)² / Σw²."""
    total = float(weight.sum())
    return total**2 / float(weight @ weight) if total > 0 else 0.0


def student_tail(t: float, freedom: float) -> float:
    """P(T > t) by Student's law, the normal one with endless degrees of freedom."""
    return float(stdtr(freedom, -t) if np.isfinite(freedom) else ndtr(-t))


@dataclass(frozen=True)
class Effect:
    """A difference of means with its standard error, interval and the p-value of there being none."""

    value: float
    se: float
    low: float
    high: float
    pvalue: float

    @classmethod
    def of(cls, value: float, se: float, freedom: float, interval: float) -> Effect:
        """By Student's law."""
        tail = 0.5 + interval / 2
        half = float(stdtrit(freedom, tail) if np.isfinite(freedom) else ndtri(tail)) * se
        if se > 0:
            pvalue = 2 * student_tail(abs(value) / se, freedom)
        else:
            pvalue = float(value == 0)
        return cls(value, se, value - half, value + half, pvalue)


_UNKNOWN = Effect(np.nan, np.nan, np.nan, np.nan, np.nan)


def mean_difference(
    y: Floats, treated: Bools, weight: Floats, clusters: Indices | None = None, interval: float = 0.95
) -> Effect:
    """Return the difference of (weighted) means with Welch's interval; of rows in clusters, with one by cluster."""
    largest = float(np.abs(y).max(initial=0.0))
    if largest and not 1e-70 < largest < 1e70:  # fourth powers do not fit a float: in other units
        unit = power_of_two(largest)
        found = mean_difference(y / unit, treated, weight, clusters, interval)
        return Effect(found.value * unit, found.se * unit, found.low * unit, found.high * unit, found.pvalue)
    if clusters is not None:
        return _clustered_difference(y, treated, weight, clusters, interval)
    groups = []
    for group in (treated, ~treated):
        w, v = weight[group], y[group]
        effective = effective_rows(w)
        if effective < 2:
            return _UNKNOWN
        total = float(w.sum())
        mean = float(w @ v / total)
        groups.append((effective, mean, float(w @ (v - mean) ** 2 / total)))
    return welch(groups, interval)


def welch(groups: Sequence[tuple[float, float, float]], interval: float = 0.95) -> Effect:
    """The difference between the treated and control, from how many rows each is worth, its mean and its mean squared deviation."""
    value, square, parts = 0.0, 0.0, []
    for (effective, mean, spread), sign in zip(groups, (1.0, -1.0), strict=True):
        if effective < 2:
            return _UNKNOWN
        variance = spread * effective / (effective - 1)
        value += sign * mean
        square += variance / effective
        parts.append((variance / effective) ** 2 / (effective - 1))
    se = float(np.sqrt(square))
    freedom = square**2 / sum(parts) if sum(parts) > 0 else np.inf
    return Effect.of(value, se, freedom, interval)


def _clustered_difference(y: Floats, treated: Bools, weight: Floats, clusters: Indices, interval: float) -> Effect:
    r"""The difference with the error of what whole clusters contribute to it.

    .. math:: \mathrm{se}^2 = \frac{G}{G - 1} \sum_g \Big(\sum_{i \in g} \pm \frac{w_i (y_i - m_{t_i})}{W_{t_i}}\Big)^2

    With clusters that lie in one arm each, the arms' sums are taken by themselves, each with its own G, and degrees of
    freedom are Welch's; otherwise they are G - 1.
    """
    counted = weight > 0
    y, treated, weight, clusters = y[counted], treated[counted], weight[counted], clusters[counted]
    totals = [float(weight[group].sum()) for group in (~treated, treated)]
    if min(totals) <= 0:
        return _UNKNOWN
    means = [float(weight[g] @ y[g]) / t for g, t in zip((~treated, treated), totals, strict=True)]
    part = np.where(treated, weight * (y - means[1]) / totals[1], -weight * (y - means[0]) / totals[0])
    code = np.unique(clusters, return_inverse=True)[1]
    sums, share = np.bincount(code, part), np.bincount(code, treated) / np.bincount(code)
    sides = [share == 0, share == 1] if np.isin(share, (0, 1)).all() else [np.ones(len(share), bool)]
    sizes = [int(side.sum()) for side in sides]
    if min(sizes) < 2:
        return _UNKNOWN
    squares = [float(sums[side] @ sums[side]) * g / (g - 1) for side, g in zip(sides, sizes, strict=True)]
    below = sum(square**2 / (g - 1) for square, g in zip(squares, sizes, strict=True))
    freedom = sum(squares) ** 2 / below if below > 0 else np.inf
    return Effect.of(means[1] - means[0], float(np.sqrt(sum(squares))), freedom, interval)


def auc_test(score: Floats, treated: Bools) -> tuple[float, float]:
    """Return the area under the ROC curve of a score made without these labels, and P(as large | labels at random)."""
    n, n1 = len(score), int(treated.sum())
    n0 = n - n1
    if n1 == 0 or n0 == 0:
        return 0.5, 1.0
    centred = mean_ranks(score) - (n + 1) / 2
    spread = float(centred @ centred)
    if spread == 0:
        return 0.5, 1.0
    excess = float(centred[treated].sum())
    z = excess / np.sqrt(n1 * n0 / (float(n) * (n - 1)) * spread)
    return 0.5 + excess / (n1 * n0), float(ndtr(-z))


def calibration_test(
    y: Floats, treated: Bools, baseline: Floats, score: Floats, clusters: Indices | None = None
) -> float:
    """Return P(slope as large | no link between effect and score) for a score made without these rows.

    Regresses y on baseline, treatment, and (treatment - share) · (score - mean), and tests whether the last slope is
    positive with a standard error that allows for unequal variances, and for clusters of rows that are alike: the best linear
    predictor of the effect [1]_.

    References
    ----------
    .. [1] V. Chernozhukov, M. Demirer, E. Duflo, I. Fernández-Val, "Generic machine learning inference on heterogeneous
       treatment effects in randomized experiments", 2018.
    """
    n = len(y)
    if score.std() <= 1e-12 * (1 + np.abs(score).max()) or treated.sum() < 5 or (~treated).sum() < 5:
        return 1.0
    push = treated - treated.mean()
    design = np.column_stack(
        [np.ones(n), baseline - baseline.mean(), push, push * (score - score.mean()) / score.std()]
    )
    scale = np.sqrt((design**2).mean(axis=0))
    design = design[:, scale > 1e-12] / scale[scale > 1e-12]
    inverse = np.linalg.pinv(design.T @ design)
    coefficients = inverse @ (design.T @ y)
    leverage = np.clip(np.einsum("ij,jk,ik->i", design, inverse, design), 0, 0.999)
    residual = (y - design @ coefficients) / (1 - leverage)  # the cautious variance, good at small n (HC3)
    pushes, freedom = design * residual[:, None], n - design.shape[1]
    if clusters is not None:
        code = np.unique(clusters, return_inverse=True)[1]
        pushes = np.column_stack([np.bincount(code, column) for column in pushes.T])
        freedom = len(pushes) - 1
        pushes = pushes * np.sqrt(len(pushes) / max(freedom, 1))
    meat = pushes.T @ pushes
    se = float(np.sqrt((inverse @ meat @ inverse)[-1, -1]))
    if se == 0:
        return 1.0
    return student_tail(coefficients[-1] / se, max(freedom, 1))
