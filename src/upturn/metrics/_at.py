"""The effect at the top of the ranking, and in every tenth of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from upturn._arrays import Floats
from upturn._parameters import check, whole
from upturn._results import Table, library_of
from upturn._target import Target
from upturn.kernels.ranking import S0, S1, W0, W1
from upturn.metrics._areas import estimate
from upturn.metrics._conventions import (
    Convention,
    Ranking,
    check_metric_options,
    check_target,
    rates_or_nan,
    ratio,
    ratio_or_nan,
)
from upturn.metrics._estimate import SmallSampleWarning, metric, warn_user
from upturn.metrics._ranked import Judged, judge, rank, read_one_arm, read_ranked
from upturn.metrics._replicates import Replicates
from upturn.metrics._statistic import FEW_ROWS, Statistic, Strata, measure, replicate


@metric
def uplift_at(
    y: Any,
    score: Any,
    treatment: Any = None,
    k: float = 0.3,
    *,
    sample_weight: Any = None,
    control: Any = None,
    ranking: Ranking = "separate",
    convention: Convention | None = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> float:
    """The effect among the best-scored: outcome rate of the treated minus that of control in the top k.

    Equal scores at the cut are averaged over, so the order of the data never matters.

    Parameters
    ----------
    y, score, treatment
        As in :func:`auuc`.
    k : float or int
        The share treated first, such as 0.3; or, as an int, a number of rows (of weight).
    sample_weight, control
        As in :func:`auuc`.
    ranking : {"separate", "joint"}
        Whether the top is taken of each arm by itself or of everybody. The top of everybody may hold nobody of one arm:
        the result is then NaN, with a warning.
    convention : {"sklift"}, optional
        Give the number of scikit-uplift's ``uplift_at_k``, which rounds k down to whole rows; "separate" is its strategy
        "by_group" and "joint" its "overall".
    interval, n_bootstrap, random_state, n_jobs
        As in :func:`auuc`.

    Returns
    -------
    float or Estimate

    Examples
    --------
    >>> from upturn.metrics import uplift_at
    >>> uplift_at([1, 0, 0, 1], [4, 3, 2, 1], [1, 0, 1, 0], k=0.5)
    1.0
    """
    check_metric_options("uplift_at", {"ranking": ranking, "convention": convention})
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs)
    target, scores = read_ranked(y, score, treatment, sample_weight, control)
    check_target(convention, target)
    statistic = at_statistic(target, k, ranking, convention)
    assert statistic.shares is not None
    whole = float(np.bincount(target.arm).min())
    top = whole * float(statistic.shares.min())
    if (
        replicates is not None and top < FEW_ROWS <= whole
    ):  # of an arm that is too small itself, the intervals warn anyway
        warn_user(
            f"the top k={k!r} holds about {top:.3g} rows of the smallest arm: an interval from so few is not to be trusted",
            SmallSampleWarning,
        )
    return estimate(statistic, judge(target, scores), target, replicates)


def at_statistic(target: Target, k: float, ranking: Ranking, convention: Convention | None = None) -> Statistic:
    """The rate difference among the top k of gated data."""
    sizes = np.bincount(target.arm, weights=target.weight, minlength=2)
    if target.n_arms > 1 and (convention or not isinstance(k, float)):
        raise ValueError("with several arms k must be a share such as 0.3: the arms differ in size")
    if ranking == "joint":
        share = np.array([_share(k, float(sizes.sum()), convention)])
        nobody = f"the best-scored k={k!r} of everybody are all of one arm; take a larger k, or ranking='separate'"
        return Statistic(lambda sums, totals: rates_or_nan(sums)[..., 0], shares=share, undefined=nobody)
    if target.n_arms > 1:
        cuts = [_share(k, 0.0, None)] * 2
    else:
        cuts = [_share(k, float(size), convention) for size in sizes]
    shares, place = np.unique(cuts, return_inverse=True)

    def finish(sums: Floats, totals: Floats) -> Floats:
        control, arm = sums[..., place[0], :], sums[..., place[1], :]
        return np.asarray(ratio(arm[..., S1], arm[..., W1]) - ratio(control[..., S0], control[..., W0]))

    return Statistic(finish, shares=shares, by_arm=True)


def _share(k: float, size: float, convention: Convention | None) -> float:
    if isinstance(k, bool) or not isinstance(k, int | float | np.number):
        raise ValueError(f"k={k!r}: expected a share such as 0.3, or a number of rows as an int")
    if isinstance(k, int | np.integer):
        if not 1 <= k <= size:
            raise ValueError(
                f"k={k}: as a number of rows it must be from 1 to {size:g}; a share is a float such as 0.3"
            )
        return float(k / size)
    if not 0 < k <= 1:
        raise ValueError(f"k={k!r}: as a share it must be above 0 and at most 1")
    if convention == "sklift":
        whole = int(size * k)
        if whole < 1:
            raise ValueError(f"k={k!r} of {size:g} rows is less than one row")
        return whole / size
    return float(k)


def decile_table(
    y: Any,
    score: Any,
    treatment: Any = None,
    *,
    n_bins: int = 10,
    sample_weight: Any = None,
    control: Any = None,
    interval: float | None = 0.95,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Table:
    """Predicted against observed effect, in tenths of the ranking from the highest score to the lowest.

    Parameters
    ----------
    y, score, treatment, sample_weight, control
        As in :func:`uplift_curve`.
    n_bins : int
        Number of bins, each with the same share of the weight. Equal scores at a cut are shared out between the bins.
    interval : float or None
        Confidence level of the observed effects' intervals; None gives none.
    n_bootstrap, random_state, n_jobs
        As in :func:`auuc`.

    Returns
    -------
    Table
        Columns ``bin`` (1 is the top), ``treated`` and ``control`` (weight of the rows), ``rate_treated``,
        ``rate_control``, ``predicted`` (mean score), ``observed`` and, with an interval, ``se``, ``low``, ``high``. Where a
        bin has nobody of an arm, there is no rate and no effect (NaN, printed as n/a).

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.metrics import decile_table
    >>> y, score, treatment = np.repeat([1, 0, 0, 1], 10), np.repeat([4, 3, 2, 1], 10), np.repeat([1, 0, 1, 0], 10)
    >>> decile_table(y, score, treatment, n_bins=2, random_state=0)["observed"]
    array([ 1., -1.])
    """
    check("n_bins", n_bins, whole(least=1))
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs)
    target, scores = read_one_arm(y, score, treatment, sample_weight, control, "one table per arm")
    shares = np.linspace(0, 1, n_bins + 1)
    ranked = rank(target, scores, 1)
    judged = Judged([ranked], np.ones(1))
    # The mean score of a bin comes from the same ranking, the scores in place of the outcomes of one group.
    one_group = replace(ranked, y=scores[ranked.order], side=np.ones(len(ranked.order), np.uint8))
    predicted = Judged([one_group], np.ones(1))
    sums = np.diff(measure([Statistic(_as_is, shares=shares)], judged)[0], axis=0)
    marks = np.diff(measure([Statistic(_as_is, shares=shares)], predicted)[0], axis=0)
    observed = rates_or_nan(sums)
    columns: dict[str, Any] = {
        "bin": np.arange(1, n_bins + 1),
        "treated": sums[:, W1],
        "control": sums[:, W0],
        "rate_treated": ratio_or_nan(sums[:, S1], sums[:, W1]),
        "rate_control": ratio_or_nan(sums[:, S0], sums[:, W0]),
        "predicted": marks[:, S1] / marks[:, W1],
        "observed": observed,
    }
    title = f"Predicted and observed effect in {n_bins} bins of the ranking"
    if replicates is not None:
        error = _spread(
            replicate([Statistic(_bin_effects, shares=shares)], [judged], Strata.of_arms(target), replicates)[0][0]
        )
        columns |= {"se": error, "low": observed - replicates.z * error, "high": observed + replicates.z * error}
        title += f", {replicates.interval:.0%} intervals"
    formats = dict.fromkeys(("treated", "control"), "{:,.0f}".format)
    return Table(columns, title=title, formats=formats, library=library_of(score, y, treatment))


def _as_is(sums: Floats, totals: Floats) -> Floats:
    return sums


def _bin_effects(sums: Floats, totals: Floats) -> Floats:
    return rates_or_nan(np.diff(sums, axis=-2))


def _spread(samples: Floats) -> Floats:
    """Standard deviation of every column over the replicates on which it is defined."""
    defined = np.isfinite(samples)
    count = defined.sum(axis=0)
    mean = np.where(defined, samples, 0.0).sum(axis=0) / np.maximum(count, 1)
    square = np.where(defined, (samples - mean) ** 2, 0.0).sum(axis=0)
    return np.where(count > 1, np.sqrt(square / np.maximum(count - 1, 1)), np.nan)
