"""The formulas that end the sums, in upturn's definitions and in those of other libraries.

Each takes ``sums``, what a walk down the ranking gathered, and ``totals`` W_0, S_0, W_1, S_1: weight and weighted outcome
of control and of the arm. Leading axes are replicates. What a curve's height is (gain, Radcliffe's Q, deviation) is
written once, in :mod:`upturn.kernels.ranking`; this is the same for arrays of any shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from upturn._arrays import Floats
from upturn.kernels import ranking


def ratio(a: Floats, b: Floats) -> Floats:
    """Divide, giving 0 where b is 0: the rate of an arm nobody is in yet."""
    return np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=np.asarray(b) > 0)


def ratio_or_nan(a: Floats, b: Floats) -> Floats:
    """Divide, giving NaN where b is 0: there is no such number."""
    return np.asarray(np.divide(a, b, out=np.full(np.broadcast(a, b).shape, np.nan), where=np.asarray(b) != 0))


def rates(sums: Floats) -> Floats:
    """Outcome rate of the arm minus that of control, from rows of the table of running sums."""
    w0, s0, w1, s1 = np.moveaxis(sums, -1, 0)
    return np.asarray(ratio(s1, w1) - ratio(s0, w0))


def rates_or_nan(sums: Floats) -> Floats:
    """The same, NaN where one of the two has no rows."""
    w0, s0, w1, s1 = np.moveaxis(sums, -1, 0)
    return ratio_or_nan(s1, w1) - ratio_or_nan(s0, w0)


def _heights(kernel: Callable[..., None], sums: Floats, *others: Any) -> Floats:
    """A height for every row of a table; the leading axes of ``sums`` stay."""
    rows = np.ascontiguousarray(sums, dtype=np.float64).reshape(-1, 4)
    heights = np.empty(len(rows))
    kernel(rows, *others, heights)
    return heights.reshape(sums.shape[:-1])


def gains(sums: Floats) -> Floats:
    """V = (S_1 / W_1 - S_0 / W_0) (W_0 + W_1): the effect down to here times everybody's weight."""
    return _heights(ranking.gains, sums)


def radcliffe(sums: Floats) -> Floats:
    """Q = S_1 - S_0 W_1 / W_0."""
    return _heights(ranking.radcliffes, sums)


def deviations(sums: Floats, totals: Floats) -> Floats:
    """D / n: effect scores above their mean, summed to here, per person; see :func:`upturn.kernels.ranking.deviation`."""
    ends = totals[None, :] if totals.ndim == 1 else np.broadcast_to(totals, sums.shape).reshape(-1, 4)
    return _heights(ranking.deviations, sums, np.ascontiguousarray(ends))


def _last_radcliffe(totals: Floats) -> Floats:
    """Q at the end, exactly 0 where the rates are equal."""
    w0, s0, w1, s1 = np.moveaxis(totals, -1, 0)
    return np.asarray(np.where((w0 > 0) & (w0 * s1 == s0 * w1), 0.0, radcliffe(totals)))


# --------------------------------------------------------------------------------------------- areas


def over_diagonals(sums: Floats, totals: Floats) -> Floats:
    """Separate lift curves, each over its diagonal: (2A - W S) / 2W² an arm, whose numerators are exact for integers."""
    w0, s0, w1, s1 = np.moveaxis(totals, -1, 0)
    return np.asarray((sums[..., 1] - w1 * s1) / (2 * w1 * w1) - (sums[..., 0] - w0 * s0) / (2 * w0 * w0))


def under_lifts(sums: Floats, totals: Floats) -> Floats:
    """The same areas with the diagonals left in."""
    w0, w1 = totals[..., 0], totals[..., 2]
    return np.asarray(sums[..., 1] / (2 * w1 * w1) - sums[..., 0] / (2 * w0 * w0))


def lift_counts(sums: Floats, totals: Floats, whole: Floats) -> Floats:
    """AUL of one arm, or AUU of two, in counts of successes: the x axis is a share and the y axis is not."""
    w0, w1 = totals[..., 0], totals[..., 2]
    arm, control = sums[..., 1] / (2 * w1), ratio(sums[..., 0], 2 * w0)
    return np.asarray(arm * (whole[2] / w1) - control * ratio(whole[0], w0))


def gain_over_diagonal(sums: Floats, totals: Floats) -> Floats:
    """The joint curve of gains over its diagonal, per person."""
    n = totals[..., 0] + totals[..., 2]
    return np.asarray((sums[..., 0] - n * gains(totals)) / (2 * n * n))


def balanced(sums: Floats, totals: Floats) -> Floats:
    """The joint curve whose x axis is the mean of the arms' shares, over its diagonal."""
    return np.asarray((sums[..., 0] - rates(totals)) / 2)


def _perfect_area(totals: Floats, groups: list[tuple[Floats, Floats, Floats, Floats]], height: Callable) -> Floats:  # type: ignore[type-arg]
    """Area over the diagonal of the curve that meets the groups, given as table increments, in this order."""
    points = np.cumsum(np.stack([np.zeros_like(totals), *(np.stack(group, axis=-1) for group in groups)]), axis=0)
    heights, n = height(points), points[..., 0] + points[..., 2]
    area = np.sum(np.diff(n, axis=0) * (heights[1:] + heights[:-1]) / 2, axis=0)
    return np.asarray(area - n[-1] * heights[-1] / 2)


def sklift_auuc(sums: Floats, totals: Floats) -> Floats:
    """Gain over its diagonal, as a share of the curve of a model that knows every outcome."""
    w0, s0, w1, s1 = np.moveaxis(totals, -1, 0)
    zero = np.zeros_like(w0)
    treated_success, control_failure = (zero, zero, s1, s1), (w0 - s0, zero, zero, zero)
    control_success, treated_failure = (s0, s0, zero, zero), (zero, zero, w1 - s1, zero)
    first = [treated_success, control_failure]
    perfect = np.where(
        s0 > w1 - s1,
        _perfect_area(totals, [*first, control_success, treated_failure], gains),
        _perfect_area(totals, [*first, treated_failure, control_success], gains),
    )
    n = w0 + w1
    return ratio_or_nan((sums[..., 0] - n * gains(totals)) / 2, perfect)


def causalml_auuc(sums: Floats, totals: Floats) -> Floats:
    """Mean of V(k) / |V(n)| over rows."""
    n = totals[..., 0] + totals[..., 2]
    return ratio_or_nan(sums[..., 0] / (n + 1), np.abs(gains(totals)))


# --------------------------------------------------------------------------------------------- qini and autoc


def deviation_area(sums: Floats, totals: Floats) -> Floats:
    """∫ q TOC(q) dq: the area under the curve of deviations."""
    n = totals[..., 0] + totals[..., 2]
    return np.asarray(sums[..., 0] / (2 * n * n))


def deviation_mean(sums: Floats, totals: Floats) -> Floats:
    """The same as a right-hand sum over rows."""
    n = totals[..., 0] + totals[..., 2]
    return np.asarray(sums[..., 1] / (n * n))


def harmonic_mean(sums: Floats, totals: Floats) -> Floats:
    """Mean of TOC over rows."""
    return np.asarray(sums[..., 0] / (totals[..., 0] + totals[..., 2]))


def sklift_qini(negative_effect: bool) -> Callable[[Floats, Floats], Floats]:
    """Q over its line, as a share of a perfect curve's, which falls at the end where the treatment can harm."""

    def finish(sums: Floats, totals: Floats) -> Floats:
        w0, s0, w1, s1 = np.moveaxis(totals, -1, 0)
        n, end, zero = w0 + w1, _last_radcliffe(totals), np.zeros_like(w0)
        if negative_effect:
            groups = [(zero, zero, s1, s1), (w0 - s0, zero, w1 - s1, zero), (s0, s0, zero, zero)]
            perfect = _perfect_area(totals, groups, _last_radcliffe)
        else:
            perfect = np.where(end > 0, end * end / 2 + end * (n - end) - n * end / 2, 0.0)
        return ratio_or_nan((sums[..., 0] - n * end) / 2, perfect)

    return finish


def causalml_qini(sums: Floats, totals: Floats) -> Floats:
    """Mean of Q(k) / |Q(n)| over rows, less that of the line."""
    n, end = totals[..., 0] + totals[..., 2], _last_radcliffe(totals)
    return ratio_or_nan(sums[..., 0] / (n + 1) - end / 2, np.abs(end))


def weighted_toc(sums: Floats, totals: Floats) -> Floats:
    """TOC by differences in means, averaged with weights 1 / q."""
    return np.asarray(sums[..., 0] / sums[..., 1])


def arm_times_area(sums: Floats, totals: Floats, whole: Floats) -> Floats:
    """The separate curve over its diagonal, times the size of the arm."""
    return np.asarray(whole[2] * over_diagonals(sums, totals))
