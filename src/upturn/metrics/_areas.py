"""Areas under uplift and lift curves: auuc, auu, lift_area."""

from __future__ import annotations

from functools import partial
from typing import Any

from upturn._arrays import Floats
from upturn._target import Target
from upturn.metrics._conventions import Convention, Ranking
from upturn.metrics._estimate import metric
from upturn.metrics._gate import read_group
from upturn.metrics._ranked import judge, judge_one_group
from upturn.metrics._registry import AREA, AUU, AUUC, LIFTS
from upturn.metrics._replicates import Replicates
from upturn.metrics._statistic import estimate, measure
from upturn.metrics._strata import Strata


@metric
def auuc(
    y: Any,
    score: Any,
    treatment: Any = None,
    *,
    sample_weight: Any = None,
    control: Any = None,
    propensity: Any = None,
    response: Any = None,
    ranking: Ranking | None = None,
    convention: Convention | None = None,
    groups: Any = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> float:
    r"""Area between the uplift curve and the diagonal of random targeting, in units of the outcome.

    .. math:: \mathrm{AUUC} = \int_0^1 u(x)\,dx - \tfrac12 u(1)

    with u the :func:`uplift_curve`. Zero is random, larger is better. A constant score gives exactly 0 and rows with
    equal scores are averaged over, so the order of the data never matters.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcome, binary or real-valued; or a packed target, and then no treatment.
    score : array-like of shape (n,) or (n, K)
        Predicted uplift; one column per treatment arm, in the order of ``model.arms_``, when there are several. The
        result is then the mean of the columns' areas, each against control, weighted by the size of the arm. Columns of a frame
        that are named as the arms are taken by their names, in any order; where no column is, by their place.
    treatment : array-like of shape (n,), optional
        Arm labels.
    sample_weight : array-like of shape (n,), optional
        Weights, such as inverse propensities.
    control : label, optional
        Which label is control, when its name does not tell.
    propensity : number(s), mapping or array-like, optional
        Chance of every arm where it differs between rows, as in :func:`effect_scores`. Everybody is then ranked together, and the
        curve's heights are summed doubly robust effect scores.
    response : array-like of shape (n, 1 + K), optional
        Outcomes expected of every row under control and each arm, from a model that has not seen these rows (out of folds, or of
        other data). What was expected, h = p_0 μ_k + p_k μ_0 with p the arms' shares, is taken off the outcomes, in both arms
        alike: the number keeps its expectation under randomisation, and what the features say of the outcome is gone from its
        error. ``estimate.reduction`` says how much that was.
    ranking : {"separate", "joint"}, optional
        Whether each arm is ranked by itself (the papers' curve, the default) or both together.
    convention : {"sklift", "causalml", "criteo", "libuplift"}, optional
        Give the number another library gives: scikit-uplift's ``uplift_auc_score``, causalml's ``auuc_score``, the
        Criteo benchmark's AUUC (the diagonal not subtracted), or libuplift's ``area_under_uplift_curve`` (upturn's own
        number; with ``ranking="joint"``, its ``area_under_uplift_curve_j``). Where the other library divides by 0, as
        causalml does when the average effect is 0, the result is NaN, with a warning.
    groups : array-like of shape (n,), optional
        The cluster of every row, such as a household, a centre or a shop: replicates are then drawn of whole clusters, within
        each arm where every cluster lies in one arm. Rows that are alike say less than independent ones, and an interval that
        does not know is too narrow. The number itself stays as it is. Fewer than 30 clusters get a warning.
    interval : float, optional
        A confidence level such as 0.95: the result is then an :class:`Estimate` with ``se``, ``low`` and ``high``.
    n_bootstrap : int
        Replicates for the interval, drawn with replacement within each arm (of rows, or of ``groups``).
    random_state : int, RandomState, Generator or None
        Seed of the replicates. It is 0 by default, so that the same data give the same interval and models measured one
        after the other are measured on the same replicates; None draws others every time.
    n_jobs : int, optional
        Threads for the replicates; the result does not depend on it.

    Returns
    -------
    float or Estimate

    References
    ----------
    Zaniewicz, "Support Vector Machines for Uplift Modeling", 2018, section 6.1.

    Examples
    --------
    >>> from upturn.metrics import auuc
    >>> y, score, treatment = [1, 0, 0, 1], [4, 3, 2, 1], [1, 0, 1, 0]
    >>> auuc(y, score, treatment)
    0.25
    >>> auuc(y, [7, 7, 7, 7], treatment)
    0.0
    """
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs, groups)
    options = {"ranking": ranking, "convention": convention, "propensity": propensity, "response": response}
    return AUUC.number(y, score, treatment, sample_weight, control, options, replicates)


@metric
def auu(
    y: Any,
    score: Any,
    treatment: Any = None,
    *,
    sample_weight: Any = None,
    control: Any = None,
    groups: Any = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> float:
    r"""Area under the uplift curve of Kuusisto et al., in counts of successes.

    .. math:: \mathrm{AUU} = \mathrm{AUL}_{\text{treated}} - \mathrm{AUL}_{\text{control}}

    with AUL the :func:`lift_area` of each arm. Unlike :func:`auuc` it is in counts, so it depends on the arms' sizes and
    does not subtract the random line: a constant score gives half the difference in successes.

    Parameters
    ----------
    y, score, treatment, sample_weight, control, groups, interval, n_bootstrap, random_state, n_jobs
        As in :func:`auuc`.

    Returns
    -------
    float or Estimate

    References
    ----------
    Kuusisto et al., "Support vector machines for differential prediction", 2014, equation (1).

    Examples
    --------
    >>> from upturn.metrics import auu
    >>> auu([1, 0, 0, 1], [4, 3, 2, 1], [1, 0, 1, 0])
    0.5
    """
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs, groups)
    return AUU.number(y, score, treatment, sample_weight, control, {}, replicates)


@metric
def lift_area(
    y: Any,
    score: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> float:
    r"""Area under the lift curve of one group, in counts of successes.

    The curve shows how many successes are among the best-scored share of the group. With P successes of rate π,

    .. math:: \mathrm{AUL} = P \left(\frac{\pi}{2} + (1 - \pi)\,\mathrm{AUC}\right),

    AUC being the area under the ROC curve.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcome of the rows of one group.
    score : array-like of shape (n,)
        Their score, larger meaning a success is more likely.
    sample_weight, groups, interval, n_bootstrap, random_state, n_jobs
        As in :func:`auuc`.

    Returns
    -------
    float or Estimate

    References
    ----------
    Kuusisto et al., "Support vector machines for differential prediction", 2014, equation (12).

    Examples
    --------
    >>> from upturn.metrics import lift_area
    >>> lift_area([1, 1, 0, 0], [4, 3, 2, 1])
    1.5
    """
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs, groups)
    values, scores, weight, unit = read_group(y, score, sample_weight)
    judged = judge_one_group(values, scores, weight, unit)
    return estimate(LIFTS, judged, partial(Strata.one, values, weight), replicates)


def mean_area(target: Target, scores: Floats) -> float:
    """AUUC of gated arguments; ``scores`` has a column per arm."""
    return float(measure([AREA], judge(target, scores))[0])
