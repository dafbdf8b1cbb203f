"""Several groups at once: adjusted p-values, simultaneous intervals, and whether the effects differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from upturn._arrays import Floats
from upturn._subgroups._cells import Cells
from upturn._subgroups._scales import Comparison


def sidak(interval: float, n: int) -> float:
    """The level of each of n intervals that hold all together with at least the level asked for, by Šidák's inequality."""
    return float(interval ** (1.0 / max(n, 1)))


@dataclass(frozen=True)
class Interaction:
    """Wald's test that all groups have the same effect.

    Attributes
    ----------
    arm : label, or "all arms"
    statistic : float
        Chi-square.
    freedom : int
        Degrees of freedom.
    p_value : float
    """

    arm: object
    statistic: float
    freedom: int
    p_value: float


def equality(comparisons: list[Comparison], cells: Cells, arms: list[int], name: object) -> Interaction:
    r"""Test that the effects of some arms are alike in all groups: :math:`(L\theta)'(L\Sigma L')^{-1}(L\theta)`.

    θ are the effects on their nearly normal scale, Σ their covariance (arms share control, and groups that overlap share
    rows), and L takes the differences from the first group. For one arm and disjoint groups it is Cochran's Q. Groups without a
    standard error are left out.
    """
    chosen = [comparisons[k - 1] for k in arms]
    good = np.flatnonzero(np.logical_and.reduce([np.isfinite(c.value) & (c.se > 0) for c in chosen]))
    g, k = len(good), len(arms)
    if g < 2:
        return Interaction(name, float("nan"), 0, float("nan"))
    if k == 1 and cells.independent:  # Cochran's Q is the same, without a matrix
        effect, weight = chosen[0].value[good], 1.0 / chosen[0].se[good] ** 2
        statistic = float(weight @ (effect - np.average(effect, weights=weight)) ** 2)
        return Interaction(name, statistic, g - 1, float(stats.chi2.sf(statistic, g - 1)))
    value = np.concatenate([c.value[good] for c in chosen])
    sigma = np.zeros((k * g, k * g))
    for i, first in enumerate(chosen):
        for j, second in enumerate(chosen):
            block = _between(first, second, cells, 0, 0, good)
            if i == j or cells.across is not None:
                block = block + _between(first, second, cells, arms[i], arms[j], good)
            if cells.across is not None:
                block = block + _between(first, second, cells, 0, arms[j], good)
                block = block + _between(first, second, cells, arms[i], 0, good)
            sigma[i * g : (i + 1) * g, j * g : (j + 1) * g] = block
    contrast = np.kron(np.eye(k), np.hstack([-np.ones((g - 1, 1)), np.eye(g - 1)]))
    gap, spread = contrast @ value, contrast @ sigma @ contrast.T
    unit = float(np.diag(sigma).mean())
    gap, spread = gap / np.sqrt(unit), spread / unit
    freedom = int(np.linalg.matrix_rank(spread, tol=1e-10 * len(spread), hermitian=True))
    statistic = float(gap @ np.linalg.pinv(spread, rcond=1e-10, hermitian=True) @ gap)
    return Interaction(name, statistic, freedom, float(stats.chi2.sf(statistic, freedom)))


def _between(first: Comparison, second: Comparison, cells: Cells, arm: int, other: int, good: np.ndarray) -> Floats:
    """What the means of an arm contribute, with those of another, to the covariance of two arms' effects, between groups."""
    side, beside = int(arm > 0), int(other > 0)
    mine, theirs = first.variance[good, side], second.variance[good, beside]
    variance = np.diag(mine) if arm == other else np.zeros((len(good), len(good)))
    raw = cells.between(arm, other)
    if raw is not None:
        shared = raw[np.ix_(good, good)]
        with np.errstate(
            invalid="ignore", divide="ignore"
        ):  # the corrections of single variances, for small groups, in pairs
            left, right = (
                np.sqrt(corrected / np.diag(np.asarray(cells.between(a, a)))[good])
                for a, corrected in ((arm, mine), (other, theirs))
            )
            pairs = shared * np.outer(left, right)
            variance = np.where(np.eye(len(good)) > 0, variance, pairs) if arm == other else pairs
        variance = np.where(np.isfinite(variance), variance, 0.0)
    return np.asarray(first.slope[good, side][:, None] * variance * second.slope[good, beside][None, :])
