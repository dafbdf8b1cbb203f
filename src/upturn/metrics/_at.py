"""The effect at the top of the ranking."""

from __future__ import annotations

from typing import Any

from upturn._parameters import check, one_of
from upturn.metrics._conventions import Convention, Ranking
from upturn.metrics._estimate import metric
from upturn.metrics._registry import UPLIFT_AT
from upturn.metrics._replicates import Replicates


@metric
def uplift_at(
    y: Any,
    score: Any,
    treatment: Any = None,
    k: float = 0.3,
    *,
    sample_weight: Any = None,
    control: Any = None,
    propensity: Any = None,
    response: Any = None,
    ranking: Ranking = "separate",
    convention: Convention | None = None,
    groups: Any = None,
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
    sample_weight, control, propensity, response
        As in :func:`auuc`.
    ranking : {"separate", "joint"}
        Whether the top is taken of each arm by itself or of everybody. The top of everybody may hold nobody of one arm:
        the result is then NaN, with a warning.
    convention : {"sklift"}, optional
        Give the number of scikit-uplift's ``uplift_at_k``, which rounds k down to whole rows; "separate" is its strategy
        "by_group" and "joint" its "overall".
    groups, interval, n_bootstrap, random_state, n_jobs
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
    replicates = Replicates.read(interval, n_bootstrap, random_state, n_jobs, groups)
    check("ranking", ranking, one_of("separate", "joint"))
    options = {
        "k": k,
        "ranking": ranking,
        "convention": convention,
        "propensity": propensity,
        "response": response,
    }
    return UPLIFT_AT.number(y, score, treatment, sample_weight, control, options, replicates)
