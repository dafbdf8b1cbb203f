"""Curves of effect scores: Qini and TOC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from upturn._arrays import Floats, Indices
from upturn._results import library_of
from upturn._rows import same_rows
from upturn.kernels.ranking import W0, W1
from upturn.metrics._conventions import Convention, check_convention, check_target
from upturn.metrics._curves import GRID, Curve, banded, curve_of, person_by_person
from upturn.metrics._formulas import deviations, radcliffe, rates
from upturn.metrics._metric import only_own_effects
from upturn.metrics._ranked import Ranked, rank, rank_one_group, read_one_arm
from upturn.metrics._replicates import Replicates
from upturn.metrics._robust import dr_effects
from upturn.metrics._statistic import Statistic
from upturn.metrics._strata import Strata


@same_rows
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
    groups: Any = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = 0,
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
    groups, interval, n_bootstrap, random_state, n_jobs
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
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs, groups)
    ranked, strata = _read_curve(y, score, treatment, sample_weight, control, propensity, response, convention)
    table = ranked.table
    population = table[:, W0] + table[:, W1]
    if convention in ("sklift", "causalml"):
        height = radcliffe(table)
        curve = Curve(population, height)
        if convention == "causalml":
            curve = person_by_person(population, height, table[:, W0] > 0, head_of_rates=False)
    elif convention == "libuplift":
        x, u = curve_of(table, "separate")
        curve = Curve(x, u * table[-1, W1] * ranked.unit)
    else:
        curve = qini_points(table)
    curve = replace(curve, library=library_of(score, y, treatment))
    if replicates is None:
        return curve
    if convention not in (None, "grf"):
        raise ValueError(
            f"a band is drawn for upturn's own curves: leave convention={convention!r} or the interval out"
        )
    return banded(curve, QINI_HEIGHTS, ranked, strata(replicates.clusters), replicates)


@same_rows
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
    groups: Any = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = 0,
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
    groups, interval, n_bootstrap, random_state, n_jobs
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
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs, groups)
    ranked, strata = _read_curve(y, score, treatment, sample_weight, control, propensity, response, convention)
    table = ranked.table
    if convention == "causalml":
        curve = curve_of(table, "joint", "causalml")
        n, k = len(curve.x) - 1, np.maximum(curve.x, 1)
        ready = np.interp(curve.x, table[:, W0] + table[:, W1], (table[:, W0] > 0) & (table[:, W1] > 0)) == 1
        toc = np.where(ready, curve.y / k - rates(table[-1]), 0.0)
        curve = Curve(curve.x / n, toc)
    else:
        curve = toc_points(table)
    curve = replace(curve, library=library_of(score, y, treatment))
    if replicates is None:
        return curve
    if convention not in (None, "grf"):
        raise ValueError(
            f"a band is drawn for upturn's own curves: leave convention={convention!r} or the interval out"
        )
    return banded(curve, TOC_HEIGHTS, ranked, strata(replicates.clusters), replicates)


def _read_curve(
    y: Any,
    score: Any,
    treatment: Any,
    sample_weight: Any,
    control: Any,
    propensity: Any,
    response: Any,
    convention: Convention | None,
) -> tuple[Ranked, Callable[[Indices | None], Strata]]:
    target, scores = read_one_arm(y, score, treatment, sample_weight, control, "autoc or qini, which average over arms")
    check_target(convention, target)
    if propensity is None and response is None:
        return rank(target, scores, 1), partial(Strata.of_arms, target)
    only_own_effects(convention)
    effects = np.ascontiguousarray(dr_effects(target, propensity, response)[:, 0])
    return rank_one_group(effects, scores, target.weight), partial(Strata.of_values, target, effects)


def qini_points(table: Floats) -> Curve:
    """The Qini curve of a table of running sums."""
    population = table[:, W0] + table[:, W1]
    share = population / population[-1]
    return Curve(share, deviations(table, table[-1]) + share * rates(table[-1]))


def toc_points(table: Floats) -> Curve:
    """The TOC curve of a table of running sums."""
    population = table[:, W0] + table[:, W1]
    share = population / population[-1]
    deviation = deviations(table, table[-1])
    # Within a tie the curve is a hyperbola, so a wide one gets points of its own.
    extra = np.linspace(0, 1, 201)[1:-1]
    place = np.searchsorted(share, extra)
    extra, place = extra[share[place] != extra], place[share[place] != extra]
    x, height = np.insert(share, place, extra), np.insert(deviation, place, np.interp(extra, share, deviation))
    height[1:] /= x[1:]
    height[0], height[-1] = height[1], 0.0
    return Curve(x, height)


def _qini_heights(sums: Floats, totals: Floats) -> Floats:
    ends = totals[..., None, :]
    share = (sums[..., W0] + sums[..., W1]) / (ends[..., W0] + ends[..., W1])
    return np.asarray(deviations(sums, ends) + share * rates(ends))


def _toc_heights(sums: Floats, totals: Floats) -> Floats:
    ends = totals[..., None, :]
    share = (sums[..., W0] + sums[..., W1]) / (ends[..., W0] + ends[..., W1])
    return np.asarray(deviations(sums, ends) / share)


QINI_HEIGHTS = Statistic(_qini_heights, shares=GRID, scheme="half")
TOC_HEIGHTS = Statistic(_toc_heights, shares=GRID[1:], scheme="half")
