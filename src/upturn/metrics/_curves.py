"""Curves: what treating the best-scored share of the population does."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from upturn._arrays import Floats
from upturn._columns import as_column, as_floats, check_finite, power_of_two, to_numpy
from upturn._parameters import INTERVAL, NONE, check, is_flag, is_whole, whole
from upturn._results import level_text, library_of, new_frame, number_text
from upturn._rows import same_rows
from upturn.kernels.ranking import S0, S1, W0, W1, separate_curve
from upturn.metrics._conventions import Convention, Ranking, check_convention, check_ranking, check_target
from upturn.metrics._estimate import reach_of
from upturn.metrics._formulas import gains, rates, ratio
from upturn.metrics._gate import read_group
from upturn.metrics._ranked import Judged, Ranked, rank, rank_one_group, read_one_arm
from upturn.metrics._replicates import Replicates
from upturn.metrics._statistic import Statistic, replicate
from upturn.metrics._strata import Strata

GRID = np.linspace(0, 1, 101)  # where bands are computed, and averages over splits by default


@dataclass(frozen=True, repr=False)
class Curve:
    """Points of a curve, joined by straight lines; ``x, y = curve`` takes it apart.

    Attributes
    ----------
    x : array
        Share of the population that is treated, from 0 to 1.
    y : array
        What that gains, per person of the whole population.
    low, high : array or None
        A band of pointwise intervals, when one was asked for.
    interval : float or None
        Its confidence level.
    random : (float, float) or None
        Heights of the line of random targeting at shares 0 and 1, where they are not the ends of the curve itself.
    library : str or None
        Name of the library the data came in, which ``to_frame`` makes a frame of.
    """

    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    interval: float | None = None
    random: tuple[float, float] | None = None
    library: str | None = field(default=None, compare=False)

    def __iter__(self) -> Iterator[Floats]:
        return iter((self.x, self.y))

    def __call__(self, x: Any) -> Floats:
        """The curve's height at any share, or at each of several."""
        raw = to_numpy(x, "x")
        shares = as_floats(np.atleast_1d(raw), "x")
        check_finite(shares, "x", "every share must be a finite number")
        return np.asarray(np.interp(shares.reshape(raw.shape), self.x, self.y))

    def __repr__(self) -> str:
        band = "" if self.interval is None else f", {level_text(self.interval)} band"
        return f"Curve({len(self.x):,} points, from {number_text(self.y[0])} to {number_text(self.y[-1])} at full treatment{band})"

    def to_frame(self) -> Any:
        """The points as a frame of the library the data came in, with the band when there is one."""
        columns = {"x": self.x, "y": self.y}
        band = {} if self.low is None else {"low": self.low, "high": self.high}
        return new_frame({**columns, **band}, self.library)


@same_rows
def uplift_curve(
    y: Any,
    score: Any,
    treatment: Any = None,
    *,
    sample_weight: Any = None,
    control: Any = None,
    ranking: Ranking | None = None,
    convention: Convention | None = None,
    groups: Any = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Curve:
    r"""The uplift curve: what treating the best-scored share of the population gains.

    With ``ranking="separate"``, each arm is ranked by itself. At share x,

    .. math:: u(x) = L_T(x) - L_C(x), \qquad L_A(x) = \frac{1}{W_A} \sum_{i \in \text{top } x \text{ of } A} w_i y_i,

    the lift curve of the treated minus that of control, as in the papers on uplift support vector machines and
    boosting. With ``ranking="joint"``, everybody is ranked together and

    .. math:: u(x) = x \, (\bar y_T - \bar y_C) \quad \text{among the top } x.

    Both end at the average effect, and rows with equal scores enter together, so a constant score gives the straight
    line of random targeting.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcome, binary or real-valued; or a packed target, and then no treatment.
    score : array-like of shape (n,)
        Predicted uplift, larger meaning treat first.
    treatment : array-like of shape (n,), optional
        Arm labels: control and one treatment.
    sample_weight : array-like of shape (n,), optional
        Weights, such as inverse propensities.
    control : label, optional
        Which label is control, when its name does not tell.
    ranking : {"separate", "joint"}, optional
        Whether each arm is ranked by itself (the default) or both together.
    convention : {"sklift", "causalml", "criteo", "libuplift"}, optional
        Give the points another library gives. Those of scikit-uplift and causalml are in counts of rows.
    groups : array-like of shape (n,), optional
        Clusters that are drawn whole for the band, as in :func:`auuc`.
    interval : float, optional
        A confidence level such as 0.95: the curve then has a band of pointwise intervals, ``low`` and ``high``.
    n_bootstrap, random_state, n_jobs
        Replicates for the band, their seed, and threads, as in :func:`auuc`.

    Returns
    -------
    Curve
        Its ``x`` and ``y``; it can be unpacked, or called at any share.

    References
    ----------
    Rzepakowski, Jaroszewicz, "Decision trees for uplift modeling with single and multiple treatments", 2012.

    Examples
    --------
    >>> from upturn.metrics import uplift_curve
    >>> x, u = uplift_curve([1, 0, 0, 1], [4, 3, 2, 1], [1, 0, 1, 0])
    >>> x, u
    (array([0. , 0.5, 1. ]), array([0. , 0.5, 0. ]))
    """
    check_ranking(ranking)
    check_convention(convention, [None, "sklift", "causalml", "criteo", "libuplift"], "uplift_curve")
    joint = ranking == "joint" or convention in ("sklift", "causalml")
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs, groups)
    target, scores = read_one_arm(
        y, score, treatment, sample_weight, control, "auuc, which averages over arms, or modified_uplift_curve"
    )
    check_target(convention, target)
    ranked = rank(target, scores, 1)
    curve = curve_of(ranked.table, "joint" if joint else "separate", convention)
    curve = replace(curve, library=library_of(score, y, treatment))
    if replicates is None:
        return curve
    if convention in ("sklift", "causalml") or (convention == "libuplift" and joint):
        raise ValueError(
            f"a band is drawn for upturn's own curves: leave convention={convention!r} or the interval out"
        )
    return banded(curve, JOINT if joint else SEPARATE, ranked, Strata.of_arms(target, replicates.clusters), replicates)


@same_rows
def lift_curve(
    y: Any,
    score: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Curve:
    r"""The lift curve of one group, in counts: successes among its best-scored share.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcome of the rows of one group.
    score : array-like of shape (n,)
        Their score, larger meaning a success is more likely.
    sample_weight : array-like of shape (n,), optional
        Weights.
    groups, interval, n_bootstrap, random_state, n_jobs
        A band, as in :func:`uplift_curve`.

    Returns
    -------
    Curve
        ``x`` is the share of the group, ``y`` the number of successes (the weighted sum of outcomes).

    References
    ----------
    Kuusisto et al., "Support vector machines for differential prediction", 2014, section 3.1.

    Examples
    --------
    >>> from upturn.metrics import lift_curve
    >>> lift_curve([1, 1, 0, 0], [4, 3, 2, 1]).y
    array([0., 1., 2., 2., 2.])
    """
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs, groups)
    values, scores, weight, unit = read_group(y, score, sample_weight)
    ranked = rank_one_group(values, scores, weight, unit)
    table = ranked.table
    curve = Curve(table[:, W1] / table[-1, W1], table[:, S1] * unit, library=library_of(score, y))
    if replicates is None:
        return curve
    statistic = Statistic(_lift_heights, shares=GRID, sized=True)
    return banded(curve, statistic, ranked, Strata.one(values, weight, replicates.clusters), replicates)


def average_curves(curves: Sequence[Curve], grid: Any = 101, *, interval: float | None = None) -> Curve:
    """The mean of several curves on a grid, such as the curves of the test parts of repeated splits.

    Parameters
    ----------
    curves : sequence of Curve
        Curves over the same axis.
    grid : int or array
        Points at which they are averaged: a number of equal steps from 0 to 1, or the points.
    interval : float, optional
        Adds a band: mean ± z times the standard deviation *over curves*, which shows how far one split's curve is from
        another's. It is not a confidence interval of the mean, because splits share rows.

    Returns
    -------
    Curve

    Examples
    --------
    >>> from upturn.metrics import average_curves, uplift_curve
    >>> one = uplift_curve([1, 0, 0, 1], [4, 3, 2, 1], [1, 0, 1, 0])
    >>> two = uplift_curve([1, 0, 0, 1], [4, 4, 1, 1], [1, 0, 1, 0])
    >>> average_curves([one, two], grid=5).y
    array([0.  , 0.25, 0.5 , 0.25, 0.  ])
    """
    if not isinstance(curves, list | tuple) or not curves or not all(isinstance(curve, Curve) for curve in curves):
        raise ValueError(
            f"there is no curve to average in curves={reprlib.repr(curves)}: expected a list of at least one Curve"
        )
    check("interval", interval, INTERVAL | NONE)
    x = _read_grid(grid)
    heights = np.array([curve(x) for curve in curves])
    mean = heights.mean(axis=0)
    ends = [curve.random for curve in curves if curve.random is not None]
    random = tuple(np.mean(ends, axis=0).tolist()) if len(ends) == len(curves) else None
    average = Curve(x, mean, random=random, library=curves[0].library)
    if interval is None:
        return average
    if len(curves) < 2:
        raise ValueError("a band needs at least two curves")
    reach = reach_of(interval) * heights.std(axis=0, ddof=1)
    return replace(average, low=mean - reach, high=mean + reach, interval=interval)


def _read_grid(grid: Any) -> Floats:
    """Points to average at: a number of them, or the points."""
    if is_whole(grid) or is_flag(grid):
        check("grid", grid, whole(least=2))
        return np.linspace(0, 1, grid)
    points = as_floats(as_column(to_numpy(grid, "grid"), "grid"), "grid")
    check_finite(points, "grid", "expected points from 0 to 1")
    return points


def curve_of(table: Floats, ranking: Ranking, convention: Convention | None = None) -> Curve:
    """The curve of a ranked experiment, by its table of running sums."""
    population, totals = table[:, W0] + table[:, W1], table[-1]
    if ranking == "joint":
        height = gains(table) / population[-1]
        height[-1] = rates(totals)
        if convention == "sklift":
            return Curve(population, height * population[-1])
        if convention == "causalml":
            both = (table[:, W0] > 0) & (table[:, W1] > 0)
            return person_by_person(population, height * population[-1], both, head_of_rates=True)
        if convention == "libuplift":
            return Curve(
                (table[:, W0] / totals[W0] + table[:, W1] / totals[W1]) / 2,
                table[:, S1] / totals[W1] - table[:, S0] / totals[W0],
            )
        return Curve(population / population[-1], height)
    x, height = np.empty(2 * len(table)), np.empty(2 * len(table))
    points = separate_curve(table, x, height)
    return Curve(x[:points].copy(), height[:points].copy())


def person_by_person(population: Floats, height: Floats, ready: Any, *, head_of_rates: bool) -> Curve:
    """A curve in counts at every row, as causalml has it: where it is not defined yet it fills in a straight line.

    The line is one of height, or (``head_of_rates``) of height per person, which makes the height a parabola. Where it is
    defined from the first tie on, that tie is a straight line like any other.
    """
    start = int(np.argmax(ready))
    x = np.arange(int(population[-1]) + 1, dtype=np.float64)
    y = np.interp(x, population[start:], height[start:])
    head, k = x < population[start], population[start]
    y[head] = height[start] * (x[head] / k) ** (2 if head_of_rates and start > 1 else 1)
    return Curve(x, y)


def banded(
    curve: Curve,
    statistic: Statistic,
    ranked: Ranked,
    strata: Strata,
    replicates: Replicates,
) -> Curve:
    """The curve with a band: standard errors of the heights at the statistic's shares, carried to all of its points."""
    samples = replicate([statistic], [Judged([ranked], np.ones(1))], strata, replicates)[0][0]
    assert statistic.shares is not None
    return with_band(curve, samples, statistic.shares, replicates)


def with_band(curve: Curve, samples: Floats, shares: Floats, replicates: Replicates) -> Curve:
    """The curve with a band from replicates of its heights at some shares."""
    largest = float(np.abs(samples).max(initial=0.0, where=np.isfinite(samples)))
    # Counts in weights of any size have squares that are no numbers.
    unit = power_of_two(largest) if largest > 1e140 else 1.0
    spread = replicates.spread(samples / unit) * unit
    reach = replicates.z * np.interp(curve.x, shares, spread)
    return replace(curve, low=curve.y - reach, high=curve.y + reach, interval=replicates.interval)


def _lift_heights(sums: Floats, totals: Floats, whole: Floats) -> Floats:
    return np.asarray(sums[..., S1] * (whole[W1] / totals[..., None, W1]))


def _separate_heights(sums: Floats, totals: Floats) -> Floats:
    w0, w1 = totals[..., None, W0], totals[..., None, W1]
    return np.asarray(sums[..., S1] / w1 - ratio(sums[..., S0], w0))


def _joint_heights(sums: Floats, totals: Floats) -> Floats:
    share = (sums[..., W0] + sums[..., W1]) / (totals[..., None, W0] + totals[..., None, W1])
    return np.asarray(rates(sums) * share)


SEPARATE = Statistic(_separate_heights, shares=GRID, by_arm=True)
JOINT = Statistic(_joint_heights, shares=GRID)
