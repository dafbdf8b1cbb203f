"""The effect at the top of the ranking."""

from __future__ import annotations

from typing import Any

import numpy as np

from upturn._arrays import Floats
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
)
from upturn.metrics._estimate import SmallSampleWarning, metric, warn_user
from upturn.metrics._ranked import judge, read_ranked
from upturn.metrics._replicates import Replicates
from upturn.metrics._statistic import Statistic
from upturn.metrics._strata import FEW_ROWS


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
