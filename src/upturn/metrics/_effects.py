"""Effect scores and policy values: averages over rows instead of rankings."""

from __future__ import annotations

from typing import Any

import numpy as np

from upturn._arrays import Floats
from upturn._propensity import read_propensity
from upturn._results import library_of
from upturn._rows import same_rows
from upturn._target import Target, read_measured
from upturn.kernels.ranking import S1, W1
from upturn.metrics._curves import GRID, Curve, with_band
from upturn.metrics._estimate import metric
from upturn.metrics._formulas import ratio
from upturn.metrics._gate import read_response
from upturn.metrics._ranked import Judged, arm_shares, rank_one_group, read_ranked
from upturn.metrics._registry import EXPECTED_RESPONSE, POLICY_VALUE
from upturn.metrics._replicates import Replicates
from upturn.metrics._robust import dr_effects, no_responses, robust_values
from upturn.metrics._statistic import Statistic, replicate, replicate_means
from upturn.metrics._strata import Strata


@same_rows
def effect_scores(
    y: Any,
    treatment: Any = None,
    *,
    propensity: Any = None,
    response: Any = None,
    sample_weight: Any = None,
    control: Any = None,
) -> Floats:
    r"""Doubly robust effect scores: a noisy, unbiased reading of every row's effect.

    .. math:: \Gamma_{ik} = \mu_k(x_i) - \mu_0(x_i) + \frac{1[t_i = k]}{p_k(x_i)}(y_i - \mu_k(x_i))
              - \frac{1[t_i = 0]}{p_0(x_i)}(y_i - \mu_0(x_i))

    Their mean over any group of rows estimates the group's average effect, without bias when either the propensities p
    or the expected responses μ are right.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcome; or a packed target, and then no treatment.
    treatment : array-like of shape (n,), optional
        Arm labels.
    propensity : number(s), mapping or array-like, optional
        Chance of every arm: a number per treatment arm, a mapping from label to chance or, row by row, an array of shape
        (n,) for one treatment, or (n, 1 + K) with control first. By default the arms' shares.
    response : array-like of shape (n, 1 + K), optional
        Expected outcomes under control and each arm, from a model that has not seen these rows. By default the arms' mean
        outcomes.
    sample_weight : array-like of shape (n,), optional
        Weights, which enter the default shares and means.
    control : label, optional
        Which label is control, when its name does not tell.

    Returns
    -------
    array of shape (n,), or (n, K) for K arms

    References
    ----------
    Robins, Rotnitzky, Zhao, "Estimation of regression coefficients when some regressors are not always observed", 1994.

    Examples
    --------
    >>> from upturn.metrics import effect_scores
    >>> effect_scores([1, 0, 0, 0], [1, 0, 1, 0])
    array([ 1.5,  0.5, -0.5,  0.5])
    """
    target = read_measured(y, treatment, sample_weight, control=control)
    effects = dr_effects(target, propensity, response)
    return effects[:, 0] if target.n_arms == 1 else effects


@metric
def expected_response(
    y: Any,
    recommended: Any,
    treatment: Any = None,
    *,
    propensity: Any = None,
    sample_weight: Any = None,
    control: Any = None,
    groups: Any = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> float:
    r"""The mean outcome if everybody got the recommended arm, by inverse propensity.

    .. math:: \frac1n \sum_{i=1}^n \frac{y_i}{p_{t_i}}\, 1[\text{recommended}_i = t_i]

    Rows that happened to get the arm recommended for them stand in for those that did not.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcome; or a packed target, and then no treatment.
    recommended : array-like of shape (n,)
        The label each row should get, as ``model.recommend(X)`` says.
    treatment : array-like of shape (n,), optional
        The label of the arm each row was in.
    propensity : number(s), mapping or array-like, optional
        Chance of every arm: a number per treatment arm, a mapping from label to chance or, row by row, an array of shape
        (n,) for one treatment, or (n, 1 + K) with control first. By default the arms' shares.
    sample_weight, control, groups, interval, n_bootstrap, random_state, n_jobs
        As in :func:`auuc`.

    Returns
    -------
    float or Estimate

    References
    ----------
    Zhao, Fang, Simchi-Levi, "A practically competitive and provably consistent algorithm for uplift modeling", 2017.

    Examples
    --------
    >>> from upturn.metrics import expected_response
    >>> expected_response([1, 0, 0, 1], [1, 1, 0, 0], [1, 0, 1, 0])
    1.0
    """
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs, groups)
    options = {"propensity": propensity}
    return EXPECTED_RESPONSE.number(y, recommended, treatment, sample_weight, control, options, replicates)


@metric
def policy_value(
    y: Any,
    recommended: Any,
    treatment: Any = None,
    *,
    propensity: Any = None,
    response: Any = None,
    sample_weight: Any = None,
    control: Any = None,
    groups: Any = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> float:
    r"""The mean outcome if everybody got the recommended arm, doubly robust.

    .. math:: \frac1n \sum_{i=1}^n \mu_{r_i}(x_i) + \frac{1[r_i = t_i]}{p_{t_i}}\,(y_i - \mu_{t_i}(x_i)),
              \qquad r_i = \text{recommended}_i

    It is right when either the propensities or the expected responses μ are, and is less noisy than
    :func:`expected_response`, which it equals with μ = 0.

    Parameters
    ----------
    y, recommended, treatment, propensity
        As in :func:`expected_response`.
    response : array-like of shape (n, 1 + K), optional
        Expected outcomes under control and each arm, from a model that has not seen these rows. By default the arms' mean
        outcomes.
    sample_weight, control, groups, interval, n_bootstrap, random_state, n_jobs
        As in :func:`auuc`.

    Returns
    -------
    float or Estimate

    References
    ----------
    Dudík, Langford, Li, "Doubly robust policy evaluation and learning", 2011.

    Examples
    --------
    >>> from upturn.metrics import policy_value
    >>> policy_value([1, 0, 0, 1], [1, 1, 0, 0], [1, 0, 1, 0])
    1.0
    """
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs, groups)
    options = {"propensity": propensity, "response": response}
    return POLICY_VALUE.number(y, recommended, treatment, sample_weight, control, options, replicates)


@same_rows
def modified_uplift_curve(
    y: Any,
    score: Any,
    treatment: Any = None,
    *,
    propensity: Any = None,
    response: Any = None,
    sample_weight: Any = None,
    control: Any = None,
    groups: Any = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Curve:
    r"""The mean outcome when only a share of the people is treated, each with the arm that is best for them.

    Rows are ranked by the largest of their scores. At share x, the top x get the arm of that score and the rest control
    (arms that tie share the row in proportion to their sizes):

    .. math:: \frac1n \Big( \sum_{\text{top } x} \frac{y_i}{p_{t_i}} 1[t_i = \text{best}_i]
              + \sum_{\text{rest}} \frac{y_i}{p_0} 1[t_i = 0] \Big)

    It starts at the mean outcome of control, and its height at 1 is the :func:`expected_response` of treating everybody.
    Random targeting is the straight line from the mean outcome of control to that of arms drawn at random in proportion to
    their sizes, ``curve.random``; a constant score gives exactly that line.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcome; or a packed target, and then no treatment.
    score : array-like of shape (n,) or (n, K)
        Predicted uplift of every arm.
    treatment : array-like of shape (n,), optional
        Arm labels.
    propensity, response
        As in :func:`policy_value`; without a response the curve is the plain inverse propensity one above, with it doubly
        robust.
    sample_weight, control, groups, interval, n_bootstrap, random_state, n_jobs
        As in :func:`uplift_curve`.

    Returns
    -------
    Curve

    References
    ----------
    Zhao, Fang, Simchi-Levi, "A practically competitive and provably consistent algorithm for uplift modeling", 2017,
    section III-C.

    Examples
    --------
    >>> from upturn.metrics import modified_uplift_curve
    >>> modified_uplift_curve([1, 0, 0, 1], [4, 3, 2, 1], [1, 0, 1, 0]).y
    array([0.5, 1. , 1. , 1. , 0.5])
    """
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs, groups)
    target, scores = read_ranked(y, score, treatment, sample_weight, control)
    chance = read_propensity(propensity, target)
    mu = no_responses(target) if response is None else read_response(response, target)
    untreated = robust_values(target.y, target.arm, 0, mu, chance)
    best, treated, at_random = _best_arms(target, scores, mu, chance)
    gain = treated - untreated
    ranked = rank_one_group(gain, best, target.weight)
    base = float(np.average(untreated, weights=target.weight))
    table = ranked.table
    share, height = table[:, W1] / table[-1, W1], base + table[:, S1] / table[-1, W1]
    curve = Curve(share, height, random=(base, at_random), library=library_of(score, y, treatment))
    if replicates is None:
        return curve
    # A height is the mean of control's value over everybody plus that of the gain over the top: the same replicates of
    # both, added.
    bases = replicate_means(Strata.of_values(target, untreated, replicates.clusters), replicates)
    statistic, judged = Statistic(_gain_heights, shares=GRID), Judged([ranked], np.ones(1))
    strata = Strata.of_values(target, gain, replicates.clusters)
    gains = replicate([statistic], [judged], strata, replicates)[0][0]
    return with_band(curve, bases[:, None] + gains, GRID, replicates)


def _best_arms(target: Target, scores: Floats, mu: Floats, chance: Floats) -> tuple[Floats, Floats, float]:
    """Every row's best score, its value under the arm of that score, and the mean value of arms drawn by their shares.

    Arms that share a row's best score share the row, in proportion to their sizes.
    """
    shares, best = arm_shares(target), scores.max(axis=1)
    treated, claims, at_random = np.zeros(len(best)), np.zeros(len(best)), 0.0
    for k, share in enumerate(shares.tolist()):
        values = robust_values(target.y, target.arm, k + 1, mu, chance)
        at_random += share * float(np.average(values, weights=target.weight))
        if len(shares) == 1:
            return best, values, at_random
        claim = share * (scores[:, k] == best)
        claims += claim
        treated += (values - treated) * ratio(claim, claims)
    return best, treated, at_random


def _gain_heights(sums: Floats, totals: Floats) -> Floats:
    return np.asarray(sums[..., S1] / totals[..., None, W1])
