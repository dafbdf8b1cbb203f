"""The area under the uplift curve."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from upturn._run import make_seed
from upturn._target import Target
from upturn.kernels.ranking import JOINT, SEPARATE, area, bootstrap_areas
from upturn.metrics._curves import Ranking
from upturn.metrics._estimate import Estimate, bootstrap, check_level, rows_by_arm
from upturn.metrics._ranked import Ranked, arm_shares, rank, read_ranked

_CODES = {"separate": SEPARATE, "joint": JOINT}


@overload
def auuc(
    y: Any,
    score: Any,
    treatment: Any = ...,
    *,
    sample_weight: Any = ...,
    control: Any = ...,
    ranking: Ranking = ...,
    interval: None = ...,
    n_bootstrap: int = ...,
    random_state: Any = ...,
    n_jobs: int | None = ...,
) -> float: ...


@overload
def auuc(
    y: Any,
    score: Any,
    treatment: Any = ...,
    *,
    sample_weight: Any = ...,
    control: Any = ...,
    ranking: Ranking = ...,
    interval: float,
    n_bootstrap: int = ...,
    random_state: Any = ...,
    n_jobs: int | None = ...,
) -> Estimate: ...


def auuc(
    y: Any,
    score: Any,
    treatment: Any = None,
    *,
    sample_weight: Any = None,
    control: Any = None,
    ranking: Ranking = "separate",
    interval: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = None,
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
        result is then the mean of the columns' areas, each against control, weighted by the size of the arm.
    treatment : array-like of shape (n,), optional
        Arm labels.
    sample_weight : array-like of shape (n,), optional
        Weights, such as inverse propensities.
    control : label, optional
        Which label is control, when its name does not tell.
    ranking : {"separate", "joint"}
        Whether each arm is ranked by itself (the papers' curve) or both together.
    interval : float, optional
        A confidence level such as 0.95: the result is then an :class:`Estimate` with ``se``, ``low`` and ``high``.
    n_bootstrap : int
        Replicates for the interval, drawn with replacement within each arm.
    random_state : int, RandomState, Generator or None
        Seed of the replicates.
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
    if ranking not in _CODES:
        raise ValueError(f"ranking={ranking!r}: expected 'separate' (each arm ranked by itself) or 'joint'")
    level = None if interval is None else check_level(interval)
    target, scores = read_ranked(y, score, treatment, sample_weight, control)
    code = _CODES[ranking]
    if level is None:
        return mean_area(target, scores, code)
    value, samples, seed = 0.0, np.zeros(n_bootstrap), make_seed(random_state)
    for k, share in enumerate(arm_shares(target)):
        ranked = rank(target, scores[:, k], k + 1)
        value += share * area(code, *ranked.columns)
        samples += share * _replicates(code, ranked, rows_by_arm(target), seed, n_bootstrap, n_jobs)
    return Estimate(value, samples, level)


def mean_area(target: Target, scores: NDArray[np.float64], code: int = SEPARATE) -> float:
    """The arms' areas over the random line, averaged by arm size; ``scores`` has a column per arm."""
    areas = [area(code, *rank(target, scores[:, k], k + 1).columns) for k in range(target.n_arms)]
    return float(arm_shares(target) @ areas)


def _replicates(
    code: int,
    ranked: Ranked,
    draws: tuple[NDArray[np.uint32], NDArray[np.int64]],
    seed: np.uint64,
    n_bootstrap: int,
    n_jobs: int | None,
) -> NDArray[np.float64]:
    def block(first: int, out: NDArray[np.float64]) -> None:
        counts = np.empty(len(draws[0]), np.int32)
        bootstrap_areas(code, seed, first, *draws, *ranked.columns, counts, out)

    return bootstrap(block, n_bootstrap, n_jobs)
