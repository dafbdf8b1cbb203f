"""Rank-weighted average treatment effects: TOC, AUTOC and Qini, as defined by Yadlowsky et al. and in grf."""

from __future__ import annotations

import reprlib
from functools import partial
from typing import Any, Literal

from upturn._parameters import FLAG, check
from upturn.metrics._conventions import Convention
from upturn.metrics._estimate import metric
from upturn.metrics._gate import read_group
from upturn.metrics._ranked import judge_one_group
from upturn.metrics._registry import AUTOC, AUTOC_MEAN, QINI, QINI_AREA
from upturn.metrics._replicates import Replicates
from upturn.metrics._statistic import estimate
from upturn.metrics._strata import Strata

_OF_EFFECTS = {"qini": QINI_AREA, "autoc": AUTOC_MEAN}


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
    groups: Any = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = 0,
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
    groups, interval, n_bootstrap, random_state, n_jobs
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
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs, groups)
    options = {"propensity": propensity, "response": response, "convention": convention}
    return AUTOC.number(y, score, treatment, sample_weight, control, options, replicates)


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
    groups: Any = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = 0,
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
    groups, interval, n_bootstrap, random_state, n_jobs
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
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs, groups)
    check("negative_effect", negative_effect, FLAG)
    options = {
        "propensity": propensity,
        "response": response,
        "convention": convention,
        "negative_effect": negative_effect,
    }
    return QINI.number(y, score, treatment, sample_weight, control, options, replicates)


@metric
def rate(
    effect: Any,
    score: Any,
    *,
    metric: Literal["autoc", "qini"] = "autoc",
    sample_weight: Any = None,
    groups: Any = None,
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> float:
    """AUTOC or Qini of effect scores you already have, such as doubly robust ones or a simulation's true effects.

    Parameters
    ----------
    effect : array-like of shape (n,)
        Effect score of every row; see :func:`effect_scores`.
    score : array-like of shape (n,)
        Predicted uplift, larger meaning treat first.
    metric : {"autoc", "qini"}
        Which of the two.
    sample_weight : array-like of shape (n,), optional
        Weights.
    groups, interval, n_bootstrap, random_state, n_jobs
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
    found = _OF_EFFECTS[metric] if isinstance(metric, str) and metric in _OF_EFFECTS else None
    if found is None:
        raise ValueError(f"metric={reprlib.repr(metric)}: expected one of {', '.join(_OF_EFFECTS)}")
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs, groups)
    values, scores, weight, _ = read_group(effect, score, sample_weight)
    judged = judge_one_group(values, scores, weight)
    return estimate(found, judged, partial(Strata.one, values, weight), replicates)
