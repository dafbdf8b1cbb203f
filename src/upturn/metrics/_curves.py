"""The uplift curve."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from upturn.kernels.ranking import S0, S1, W0, W1, gain_curve
from upturn.metrics._ranked import Ranked, rank, read_ranked

Ranking = Literal["separate", "joint"]


@dataclass(frozen=True)
class Curve:
    """Points of a curve, joined by straight lines; ``x, y = curve`` takes it apart.

    Attributes
    ----------
    x : array
        Share of the population that is treated, from 0 to 1.
    y : array
        What that gains, per person of the whole population.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]

    def __iter__(self) -> Iterator[NDArray[np.float64]]:
        return iter((self.x, self.y))

    def __call__(self, x: Any) -> NDArray[np.float64]:
        """The curve's height at any share."""
        return np.asarray(np.interp(x, self.x, self.y))

    def __repr__(self) -> str:
        return f"Curve({len(self.x):,} points, from 0 to {self.y[-1]:.4g} at full treatment)"


def uplift_curve(
    y: Any,
    score: Any,
    treatment: Any = None,
    *,
    sample_weight: Any = None,
    control: Any = None,
    ranking: Ranking = "separate",
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
    ranking : {"separate", "joint"}
        Whether each arm is ranked by itself or both together.

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
    target, scores = read_ranked(y, score, treatment, sample_weight, control)
    if target.n_arms > 1:
        raise ValueError(
            f"a curve compares one arm with control, and treatment holds {target.n_arms} arms {target.arms!r}: keep the rows of "
            "one of them and of control, or use auuc, which averages over arms"
        )
    return curve_of(rank(target, scores[:, 0], 1), ranking)


def curve_of(ranked: Ranked, ranking: Ranking) -> Curve:
    """The curve of a ranked experiment."""
    table = ranked.table
    if ranking == "joint":
        population, height = table[:, W0] + table[:, W1], np.empty(len(table))
        gain_curve(table, height)
        return Curve(population / population[-1], height)
    if ranking != "separate":
        raise ValueError(f"ranking={ranking!r}: expected 'separate' (each arm ranked by itself) or 'joint'")
    x1, lift1 = _lift_curve(table, W1, S1)
    x0, lift0 = _lift_curve(table, W0, S0)
    x = np.union1d(x0, x1)
    return Curve(x, np.interp(x, x1, lift1) - np.interp(x, x0, lift0))


def _lift_curve(table: NDArray[np.float64], w: int, s: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    weight, total = table[:, w], table[-1, w]
    moves = np.concatenate(
        ([True], weight[1:] > weight[:-1])
    )  # scores that only the other arm has leave this one alone
    return weight[moves] / total, table[moves, s] / total
