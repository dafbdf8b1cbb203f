"""Rank-weighted average treatment effects: TOC, AUTOC and Qini, as defined by Yadlowsky et al. and in grf."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from upturn._run import make_seed
from upturn.kernels.ranking import S0, S1, W0, W1
from upturn.metrics._areas import estimate, judge_one_group
from upturn.metrics._conventions import (
    Convention,
    autoc_statistic,
    check_convention,
    check_target,
    qini_statistic,
    rates,
    ratio,
)
from upturn.metrics._curves import GRID, Curve, _person_by_person, banded, curve_of
from upturn.metrics._effects import dr_effects
from upturn.metrics._estimate import Estimate, check_level, metric
from upturn.metrics._gate import read_group
from upturn.metrics._ranked import Floats, Ranked, arm_shares, judge, rank, rank_one_group, read_one_arm, read_ranked
from upturn.metrics._statistic import Statistic, Strata, measure, replicate


@metric
def autoc(
    y: Any,
    score: Any,
    treatment: Any = None,
    *,
    sample_weight: Any = None,
    control: Any = None,
    propensity: Any = None,
    response: Any = None,
    convention: Convention | None = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> float:
    r"""Area under the TOC curve: how much more the effect is at the top of the ranking than on average.

    .. math:: \mathrm{TOC}(q) = \text{mean effect score in the top } q - \text{overall mean}, \qquad
              \mathrm{AUTOC} = \frac1n \sum_{i=1}^n \mathrm{TOC}(i/n)

    Zero is random, larger is better. It weighs the very top of the ranking most, so it finds effects that few people
    have; :func:`qini` weighs everybody alike. The effect score of a row is, by default, the doubly robust one of a
    randomised experiment with the arms' mean outcomes as outcome model; equal scores share theirs.

    Parameters
    ----------
    y, score, treatment, sample_weight, control
        As in :func:`auuc`.
    propensity : array-like or mapping, optional
        Chance of treatment, when it was not the same for everybody: shape (n,), (n, 1 + K) with control first, or a
        mapping from label to chance.
    response : array-like of shape (n, 1 + K), optional
        Outcomes expected under control and each arm, from a model that has not seen these rows: makes the effect scores
        doubly robust and the interval narrower.
    convention : {"grf", "causalml"}, optional
        "grf" is upturn's own definition; "causalml" gives the number of causalml's ``rate_score``.
    interval, n_bootstrap, random_state, n_jobs
        As in :func:`auuc`; the replicates are half-samples of each arm without replacement.

    Returns
    -------
    float or Estimate

    References
    ----------
    Yadlowsky, Fleming, Shah, Brunskill, Wager, "Evaluating treatment prioritization rules via rank-weighted average
    treatment effects", 2025.

    Examples
    --------
    >>> from upturn.metrics import autoc
    >>> autoc([1, 0, 0, 0], [4, 3, 2, 1], [1, 0, 1, 0])
    0.375
    """
    statistic = autoc_statistic(convention)
    return _rate(
        statistic, y, score, treatment, sample_weight, control, propensity, response, convention, interval,
        n_bootstrap, random_state, n_jobs,
    )  # fmt: skip


@metric
def qini(
    y: Any,
    score: Any,
    treatment: Any = None,
    *,
    sample_weight: Any = None,
    control: Any = None,
    propensity: Any = None,
    response: Any = None,
    convention: Convention | None = None,
    negative_effect: bool = True,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> float:
    r"""Area between the Qini curve and the line of random targeting, in units of the outcome.

    .. math:: \mathrm{QINI} = \frac1n \sum_{i=1}^n \frac{i}{n}\, \mathrm{TOC}(i/n)

    with the TOC of :func:`autoc`. Zero is random, larger is better. The number is close to :func:`auuc`, which ranks
    each arm by itself instead of weighing effect scores.

    Parameters
    ----------
    y, score, treatment, sample_weight, control
        As in :func:`auuc`.
    propensity, response
        As in :func:`autoc`.
    convention : {"grf", "sklift", "causalml", "libuplift"}, optional
        Give the number another library gives: grf's QINI (upturn's own; they differ only with weights, where grf takes a
        right-hand sum), scikit-uplift's ``qini_auc_score``, causalml's ``qini_score``, or libuplift's
        ``area_under_Qini_curve``.
    negative_effect : bool
        With ``convention="sklift"``, whether its perfect curve knows that the treatment can harm.
    interval, n_bootstrap, random_state, n_jobs
        As in :func:`auuc`; the replicates are half-samples of each arm without replacement.

    Returns
    -------
    float or Estimate

    References
    ----------
    Radcliffe, "Using control groups to target on predicted lift", 2007; Yadlowsky et al., see :func:`autoc`.

    Examples
    --------
    >>> from upturn.metrics import qini
    >>> qini([1, 0, 0, 0], [4, 3, 2, 1], [1, 0, 1, 0])
    0.125
    >>> qini([1, 0, 0, 0], [4, 3, 2, 1], [1, 0, 1, 0], convention="sklift")
    1.0
    """
    statistic = qini_statistic(convention, negative_effect)
    return _rate(
        statistic, y, score, treatment, sample_weight, control, propensity, response, convention, interval,
        n_bootstrap, random_state, n_jobs,
    )  # fmt: skip


@metric
def rate(
    effect: Any,
    score: Any,
    *,
    target: Literal["autoc", "qini"] = "autoc",
    sample_weight: Any = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> float:
    """AUTOC or Qini of effect scores you already have, such as doubly robust ones or a simulation's true effects.

    Parameters
    ----------
    effect : array-like of shape (n,)
        Effect score of every row; see :func:`effect_scores`.
    score : array-like of shape (n,)
        Predicted uplift, larger meaning treat first.
    target : {"autoc", "qini"}
        Which of the two.
    sample_weight : array-like of shape (n,), optional
        Weights.
    interval, n_bootstrap, random_state, n_jobs
        As in :func:`autoc`, half-samples of all rows.

    Returns
    -------
    float or Estimate

    Examples
    --------
    >>> from upturn.metrics import rate
    >>> rate([3, 2, 1], [3, 2, 1])
    0.5
    """
    statistics = {"autoc": autoc_statistic(None), "qini": qini_statistic(None)}
    if target not in statistics:
        raise ValueError(f"target={target!r}: expected 'autoc' or 'qini'")
    level = None if interval is None else check_level(interval)
    values, scores, weight = read_group(effect, score, sample_weight)
    strata = Strata.one(values, weight)
    judged = judge_one_group(values, scores, weight)
    return estimate(statistics[target], judged, strata, level, n_bootstrap, random_state, n_jobs)


def _rate(
    statistic: Statistic,
    y: Any,
    score: Any,
    treatment: Any,
    sample_weight: Any,
    control: Any,
    propensity: Any,
    response: Any,
    convention: Convention | None,
    interval: float | None,
    n_bootstrap: int,
    random_state: Any,
    n_jobs: int | None,
) -> float:
    level = None if interval is None else check_level(interval)
    target, scores = read_ranked(y, score, treatment, sample_weight, control)
    check_target(convention, target)
    if propensity is None and response is None:
        return estimate(statistic, judge(target, scores), target, level, n_bootstrap, random_state, n_jobs)
    _only_effects(convention)
    effects, seed = dr_effects(target, propensity, response), make_seed(random_state)
    value, samples = 0.0, np.zeros(n_bootstrap)
    for k, share in enumerate(arm_shares(target)):
        judged = judge_one_group(effects[:, k], scores[:, k], target.weight)
        value += share * float(measure([statistic], judged)[0])
        if level is not None:
            strata = Strata.of_values(target, effects[:, k])
            options: dict[str, Any] = {"seed": seed, "n_bootstrap": n_bootstrap, "n_jobs": n_jobs}
            samples += share * replicate([statistic], [judged], strata, **options)[0][0]
    return value if level is None else Estimate(value, samples, level)


def _only_effects(convention: Convention | None) -> None:
    if convention not in (None, "grf"):
        raise ValueError(f"convention={convention!r} has no effect scores: leave propensity and response out")


# --------------------------------------------------------------------------------------------- curves


def qini_curve(
    y: Any,
    score: Any,
    treatment: Any = None,
    *,
    sample_weight: Any = None,
    control: Any = None,
    propensity: Any = None,
    response: Any = None,
    convention: Convention | None = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Curve:
    r"""The Qini curve: summed effect scores of the best-scored share, per person of the whole population.

    .. math:: Q(q) = q\,(\mathrm{TOC}(q) + \text{average effect})

    It runs from 0 to the average effect; random targeting is the straight line between. Its area over that line is
    :func:`qini`.

    Parameters
    ----------
    y, score, treatment, sample_weight, control
        As in :func:`uplift_curve`.
    propensity, response
        As in :func:`autoc`.
    convention : {"grf", "sklift", "causalml", "libuplift"}, optional
        Give the points another library gives, Radcliffe's Q = R_T - R_C n_T / n_C in counts for scikit-uplift and
        causalml, and the separate uplift curve times n_T for libuplift.
    interval, n_bootstrap, random_state, n_jobs
        A band, as in :func:`uplift_curve`.

    Returns
    -------
    Curve

    Examples
    --------
    >>> from upturn.metrics import qini_curve
    >>> qini_curve([1, 0, 0, 0], [4, 3, 2, 1], [1, 0, 1, 0]).y
    array([0.  , 0.375, 0.5 , 0.375, 0.5 ])
    """
    check_convention(convention, [None, "grf", "sklift", "causalml", "libuplift"], "qini_curve")
    ranked, strata = _read_curve(y, score, treatment, sample_weight, control, propensity, response, convention)
    table = ranked.table
    population = table[:, W0] + table[:, W1]
    if convention in ("sklift", "causalml"):
        height = table[:, S1] - table[:, S0] * ratio(table[:, W1], table[:, W0])
        curve = Curve(population, height)
        if convention == "causalml":
            curve = _person_by_person(population, height, table[:, W0] > 0, head_of_rates=False)
    elif convention == "libuplift":
        x, u = curve_of(ranked, "separate")
        curve = Curve(x, u * table[-1, W1])
    else:
        share = population / population[-1]
        curve = Curve(share, _deviation(table, table[-1]) + share * _average(table[-1]))
    if interval is None:
        return curve
    if convention not in (None, "grf"):
        raise ValueError(
            f"a band is drawn for upturn's own curves: leave convention={convention!r} or the interval out"
        )
    statistic = Statistic(_qini_heights, shares=GRID, scheme="half")
    return banded(curve, statistic, ranked, strata, check_level(interval), n_bootstrap, random_state, n_jobs)


def toc_curve(
    y: Any,
    score: Any,
    treatment: Any = None,
    *,
    sample_weight: Any = None,
    control: Any = None,
    propensity: Any = None,
    response: Any = None,
    convention: Convention | None = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Curve:
    r"""The targeting operator characteristic: how much more the effect is in the top share q than on average.

    Parameters
    ----------
    y, score, treatment, sample_weight, control
        As in :func:`uplift_curve`.
    propensity, response
        As in :func:`autoc`.
    convention : {"grf", "causalml"}, optional
        "grf" is upturn's own definition; "causalml" gives the points of causalml's ``get_toc``.
    interval, n_bootstrap, random_state, n_jobs
        A band, as in :func:`uplift_curve`; the replicates are half-samples.

    Returns
    -------
    Curve
        ``y`` at ``x = 0`` is that of the highest score, and 0 at ``x = 1``.

    Examples
    --------
    >>> from upturn.metrics import toc_curve
    >>> float(toc_curve([1, 0, 0, 0], [4, 3, 2, 1], [1, 0, 1, 0])(0.5))
    0.5
    """
    check_convention(convention, [None, "grf", "causalml"], "toc_curve")
    ranked, strata = _read_curve(y, score, treatment, sample_weight, control, propensity, response, convention)
    table = ranked.table
    if convention == "causalml":
        curve = curve_of(ranked, "joint", "causalml")
        n, k = len(curve.x) - 1, np.maximum(curve.x, 1)
        ready = np.interp(curve.x, table[:, W0] + table[:, W1], (table[:, W0] > 0) & (table[:, W1] > 0)) == 1
        toc = np.where(ready, curve.y / k - rates(table[-1]), 0.0)
        curve = Curve(curve.x / n, toc)
    else:
        population = table[:, W0] + table[:, W1]
        share = population / population[-1]
        # Within a tie the curve is a hyperbola, so a wide one gets points of its own.
        x = np.union1d(share, np.linspace(0, 1, 201))
        x[-1] = 1.0
        height = np.interp(x, share, _deviation(table, table[-1]))
        height[1:] /= x[1:]
        height[0], height[-1] = height[1], 0.0
        curve = Curve(x, height)
    if interval is None:
        return curve
    if convention not in (None, "grf"):
        raise ValueError(
            f"a band is drawn for upturn's own curves: leave convention={convention!r} or the interval out"
        )
    statistic = Statistic(_toc_heights, shares=GRID[1:], scheme="half")
    return banded(curve, statistic, ranked, strata, check_level(interval), n_bootstrap, random_state, n_jobs)


def _read_curve(
    y: Any,
    score: Any,
    treatment: Any,
    sample_weight: Any,
    control: Any,
    propensity: Any,
    response: Any,
    convention: Convention | None,
) -> tuple[Ranked, Strata]:
    target, scores = read_one_arm(y, score, treatment, sample_weight, control, "autoc or qini, which average over arms")
    check_target(convention, target)
    if propensity is None and response is None:
        return rank(target, scores, 1), Strata.of_arms(target)
    _only_effects(convention)
    effects = np.ascontiguousarray(dr_effects(target, propensity, response)[:, 0])
    return rank_one_group(effects, scores, target.weight), Strata.of_values(target, effects)


def _average(totals: Floats) -> Floats:
    """The mean effect score."""
    return rates(totals)


def _deviation(sums: Floats, totals: Floats) -> Floats:
    """Effect scores above their mean, summed to here, per person: the kernel's D(k) / n."""
    w0, s0, w1, s1 = np.moveaxis(totals, -1, 0)
    arm = (sums[..., S1] - s1 * (sums[..., W1] / w1)) / w1
    return np.asarray(arm - ratio(sums[..., S0] - s0 * ratio(sums[..., W0], w0), w0))


def _qini_heights(sums: Floats, totals: Floats) -> Floats:
    ends = totals[..., None, :]
    share = (sums[..., W0] + sums[..., W1]) / (ends[..., W0] + ends[..., W1])
    return np.asarray(_deviation(sums, ends) + share * _average(ends))


def _toc_heights(sums: Floats, totals: Floats) -> Floats:
    ends = totals[..., None, :]
    share = (sums[..., W0] + sums[..., W1]) / (ends[..., W0] + ends[..., W1])
    return np.asarray(_deviation(sums, ends) / share)
