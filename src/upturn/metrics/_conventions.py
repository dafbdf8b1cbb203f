"""The numbers by name: which sums, and the formula that ends them, in upturn's definition and in those of other libraries.

Totals are W_0, S_0, W_1, S_1: weight and weighted outcome of control and of the arm. ``docs/metrics.md`` translates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from upturn._arrays import Floats
from upturn._target import Target
from upturn.kernels import areas
from upturn.metrics._statistic import Statistic

Convention = Literal["sklift", "causalml", "criteo", "grf", "libuplift"]
Ranking = Literal["separate", "joint"]

_UNWEIGHTED = {"sklift": "scikit-uplift", "causalml": "causalml"}


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


def total_gain(totals: Floats) -> Floats:
    """V(n): the average effect times everybody's weight."""
    return np.asarray(rates(totals) * (totals[..., 0] + totals[..., 2]))


def radcliffe(totals: Floats) -> Floats:
    """Q(n) = S_1 - S_0 W_1 / W_0, exactly 0 where the rates are equal."""
    w0, s0, w1, s1 = np.moveaxis(totals, -1, 0)
    return np.asarray(np.where((w0 > 0) & (w0 * s1 == s0 * w1), 0.0, s1 - s0 * ratio(w1, w0)))


# --------------------------------------------------------------------------------------------- areas


def _over_diagonals(sums: Floats, totals: Floats) -> Floats:
    """Separate lift curves, each over its diagonal: (2A - W S) / 2W² an arm, whose numerators are exact for integers."""
    w0, s0, w1, s1 = np.moveaxis(totals, -1, 0)
    return np.asarray((sums[..., 1] - w1 * s1) / (2 * w1 * w1) - (sums[..., 0] - w0 * s0) / (2 * w0 * w0))


def _under_lifts(sums: Floats, totals: Floats) -> Floats:
    w0, w1 = totals[..., 0], totals[..., 2]
    return np.asarray(sums[..., 1] / (2 * w1 * w1) - sums[..., 0] / (2 * w0 * w0))


def _lift_counts(sums: Floats, totals: Floats, whole: Floats) -> Floats:
    """AUL of one arm, or AUU of two, in counts of successes: the x axis is a share and the y axis is not."""
    w0, w1 = totals[..., 0], totals[..., 2]
    arm, control = sums[..., 1] / (2 * w1), ratio(sums[..., 0], 2 * w0)
    return np.asarray(arm * (whole[2] / w1) - control * ratio(whole[0], w0))


def _gain_over_diagonal(sums: Floats, totals: Floats) -> Floats:
    n = totals[..., 0] + totals[..., 2]
    return np.asarray((sums[..., 0] - n * total_gain(totals)) / (2 * n * n))


def _balanced(sums: Floats, totals: Floats) -> Floats:
    return np.asarray((sums[..., 0] - rates(totals)) / 2)


def _perfect_area(totals: Floats, groups: list[tuple[Floats, Floats, Floats, Floats]], height: Callable) -> Floats:  # type: ignore[type-arg]
    """Area over the diagonal of the curve that meets the groups, given as table increments, in this order."""
    points = np.cumsum(np.stack([np.zeros_like(totals), *(np.stack(group, axis=-1) for group in groups)]), axis=0)
    heights, n = height(points), points[..., 0] + points[..., 2]
    area = np.sum(np.diff(n, axis=0) * (heights[1:] + heights[:-1]) / 2, axis=0)
    return np.asarray(area - n[-1] * heights[-1] / 2)


def _sklift_auuc(sums: Floats, totals: Floats) -> Floats:
    """Gain over its diagonal, as a share of the curve of a model that knows every outcome."""
    w0, s0, w1, s1 = np.moveaxis(totals, -1, 0)
    zero = np.zeros_like(w0)
    treated_success, control_failure = (zero, zero, s1, s1), (w0 - s0, zero, zero, zero)
    control_success, treated_failure = (s0, s0, zero, zero), (zero, zero, w1 - s1, zero)
    first = [treated_success, control_failure]
    perfect = np.where(
        s0 > w1 - s1,
        _perfect_area(totals, [*first, control_success, treated_failure], total_gain),
        _perfect_area(totals, [*first, treated_failure, control_success], total_gain),
    )
    n = w0 + w1
    return ratio_or_nan((sums[..., 0] - n * total_gain(totals)) / 2, perfect)


def _causalml_auuc(sums: Floats, totals: Floats) -> Floats:
    n = totals[..., 0] + totals[..., 2]
    return ratio_or_nan(sums[..., 0] / (n + 1), np.abs(total_gain(totals)))


# --------------------------------------------------------------------------------------------- qini and autoc


def _deviation_area(sums: Floats, totals: Floats) -> Floats:
    n = totals[..., 0] + totals[..., 2]
    return np.asarray(sums[..., 0] / (2 * n * n))


def _deviation_mean(sums: Floats, totals: Floats) -> Floats:
    n = totals[..., 0] + totals[..., 2]
    return np.asarray(sums[..., 1] / (n * n))


def _harmonic_mean(sums: Floats, totals: Floats) -> Floats:
    return np.asarray(sums[..., 0] / (totals[..., 0] + totals[..., 2]))


def _sklift_qini(negative_effect: bool) -> Callable[[Floats, Floats], Floats]:
    def finish(sums: Floats, totals: Floats) -> Floats:
        w0, s0, w1, s1 = np.moveaxis(totals, -1, 0)
        n, end, zero = w0 + w1, radcliffe(totals), np.zeros_like(w0)
        if negative_effect:
            groups = [(zero, zero, s1, s1), (w0 - s0, zero, w1 - s1, zero), (s0, s0, zero, zero)]
            perfect = _perfect_area(totals, groups, radcliffe)
        else:
            perfect = np.where(end > 0, end * end / 2 + end * (n - end) - n * end / 2, 0.0)
        return ratio_or_nan((sums[..., 0] - n * end) / 2, perfect)

    return finish


def _causalml_qini(sums: Floats, totals: Floats) -> Floats:
    n, end = totals[..., 0] + totals[..., 2], radcliffe(totals)
    return ratio_or_nan(sums[..., 0] / (n + 1) - end / 2, np.abs(end))


def _weighted_toc(sums: Floats, totals: Floats) -> Floats:
    return np.asarray(sums[..., 0] / sums[..., 1])


def _arm_times_area(sums: Floats, totals: Floats, whole: Floats) -> Floats:
    return np.asarray(whole[2] * _over_diagonals(sums, totals))


# --------------------------------------------------------------------------------------------- by name

_ADVICE = "leave the convention out for a number that is not divided by anything of the sort"
_NO_EFFECT = f"causalml divides by the average effect, which is 0 in this sample; {_ADVICE}"
_NO_PERFECT = f"scikit-uplift divides by the area of a perfect curve over its diagonal, which is 0 here; {_ADVICE}"
_NO_GAIN = (
    f"scikit-uplift's negative_effect=False needs an average effect above 0, which this sample has not; {_ADVICE}"
)
_AUUC: dict[tuple[str, Convention | None], Statistic] = {
    ("separate", None): Statistic(_over_diagonals, areas.LIFTS),
    ("joint", None): Statistic(_gain_over_diagonal, areas.GAIN),
    ("joint", "sklift"): Statistic(_sklift_auuc, areas.GAIN, undefined=_NO_PERFECT),
    ("joint", "causalml"): Statistic(_causalml_auuc, areas.GAIN_SUM, undefined=_NO_EFFECT),
    ("separate", "criteo"): Statistic(_under_lifts, areas.LIFTS),
    ("separate", "libuplift"): Statistic(_over_diagonals, areas.LIFTS),
    ("joint", "libuplift"): Statistic(_balanced, areas.BALANCED),
}
_QINI: dict[Convention | None, Statistic] = {
    None: Statistic(_deviation_area, areas.DEVIATION, scheme="half"),
    "grf": Statistic(_deviation_mean, areas.DEVIATION, scheme="half"),
    "sklift": Statistic(_sklift_qini(True), areas.RADCLIFFE, undefined=_NO_PERFECT),
    "causalml": Statistic(_causalml_qini, areas.RADCLIFFE_SUM, undefined=_NO_EFFECT),
    "libuplift": Statistic(_arm_times_area, areas.LIFTS, sized=True),
}
_AUTOC: dict[Convention | None, Statistic] = {
    None: Statistic(_harmonic_mean, areas.HARMONIC, scheme="half"),
    "grf": Statistic(_harmonic_mean, areas.HARMONIC, scheme="half"),
    "causalml": Statistic(_weighted_toc, areas.TOC_SUM, scheme="half"),
}
LIFT_COUNTS = Statistic(_lift_counts, areas.LIFTS, sized=True)


def auuc_statistic(ranking: Ranking | None, convention: Convention | None) -> Statistic:
    """AUUC by ranking and convention; a convention that knows one ranking only brings its own."""
    check_ranking(ranking)
    known: list[Convention | None] = list(dict.fromkeys(name for _, name in _AUUC))
    check_convention(convention, known, "auuc")
    if ranking is None:
        ranking = "joint" if convention in ("sklift", "causalml") else "separate"
    if (ranking, convention) not in _AUUC:
        other = "joint" if ranking == "separate" else "separate"
        raise ValueError(f"convention={convention!r} ranks {other}ly: leave ranking={ranking!r} out")
    return _AUUC[ranking, convention]


def qini_statistic(convention: Convention | None, negative_effect: bool = True) -> Statistic:
    """Qini by convention."""
    check_convention(convention, list(_QINI), "qini")
    if negative_effect is not True:
        if convention != "sklift":
            raise ValueError(
                "negative_effect=False belongs to convention='sklift' alone, whose perfect curve it changes"
            )
        return Statistic(_sklift_qini(False), areas.RADCLIFFE, undefined=_NO_GAIN)
    return _QINI[convention]


def autoc_statistic(convention: Convention | None) -> Statistic:
    """AUTOC by convention."""
    check_convention(convention, list(_AUTOC), "autoc")
    return _AUTOC[convention]


def check_metric_options(metric: str, options: Mapping[str, Any]) -> None:
    """Refuse a convention or ranking that a metric does not have, before there are any data."""
    ranking, convention = options.get("ranking"), options.get("convention")
    if metric == "auuc":
        auuc_statistic(ranking, convention)
    elif metric == "qini":
        qini_statistic(convention, options.get("negative_effect", True))
    elif metric == "autoc":
        autoc_statistic(convention)
    elif metric == "uplift_at":
        check_ranking(ranking)
        check_convention(convention, [None, "sklift"], "uplift_at")


def check_ranking(ranking: Ranking | None) -> None:
    """Refuse a ranking there is not."""
    if ranking not in ("separate", "joint", None):
        raise ValueError(f"ranking={ranking!r}: expected 'separate' (each arm ranked by itself) or 'joint'")


def check_convention(convention: Convention | None, known: list[Convention | None], metric: str) -> None:
    """Refuse a convention a metric does not have."""
    if convention not in known:
        names = ", ".join(repr(name) for name in known if name)
        raise ValueError(f"convention={convention!r}: {metric} is there as upturn's own (None) and as in {names}")


def check_target(convention: Convention | None, target: Target) -> None:
    """Refuse data the other library could not have taken."""
    if convention in _UNWEIGHTED and target.weight is not None:
        raise ValueError(
            f"{_UNWEIGHTED[convention]} has no weights: leave sample_weight out, or convention={convention!r}"
        )
    if convention == "sklift" and not ((target.y == 0) | (target.y == 1)).all():
        raise ValueError("scikit-uplift takes outcomes 0 and 1 only: leave convention='sklift' out for other outcomes")
