"""What ranks the rows whose votes are tied: the effects of the members' leaves, under the experiment's own weights.

A member is grown under the weights of its round, and the means of its leaves are those of that reweighted experiment, in
which all that earlier members know has been levelled out. Under the original weights they are effects again.
"""

from __future__ import annotations

import numpy as np

from upturn._arrays import Floats, Indices
from upturn._experiment import Experiment
from upturn.base import UpliftEstimator

TIE = 1e-6  # how much an effect as large as the outcome's range adds to a vote
_FEW = 10  # votes; with fewer different ones an ensemble hardly ranks, unless it was asked to be small
_ASKED = 1000  # rows that are looked at to tell whether the table itself has so few different ones


def leaf_effects(leaf: Indices, n_nodes: int, data: Experiment) -> Floats:
    """Mean outcome of the treated less that of control in every leaf, over the range of the outcome: from -1 to 1.

    A leaf without rows of one of the groups takes the effect of the whole experiment; nodes that are not leaves have 0.
    """
    cell, size = 2 * leaf.astype(np.intp) + data.arm, 2 * n_nodes
    weight = np.bincount(cell, data.weight, size).reshape(-1, 2)
    total = np.bincount(cell, data.y if data.weight is None else data.weight * data.y, size).reshape(-1, 2)
    whole = total.sum(axis=0) / weight.sum(axis=0)
    both = (weight > 0).all(axis=1, keepdims=True)
    mean = np.where(both, total / np.where(both, weight, 1.0), whole)
    return np.where(weight.sum(axis=1) > 0, mean[:, 1] - mean[:, 0], 0.0)


def ranked_votes(member: UpliftEstimator, effects: Floats) -> Floats:
    """What every leaf of a member adds to the score: its vote, and a little of its effect; a column."""
    return np.asarray(member._node_opinions("vote") + TIE * effects[:, None])


def collapse(votes: Floats, decision: Indices, rounds: int, ranked: bool, data: Experiment) -> str | None:
    """What is wrong with an ensemble whose training rows have these votes (shares of the voices), and what helps.

    ``rounds`` were asked for; ``ranked`` is whether effects rank what is tied.
    """
    found, few = np.unique(votes.round(9)), min(_FEW, rounds // 3)
    better = "algorithm='adaboost' with estimator=UpliftTree(max_depth=4)"
    if len(found) < few and len(found) < _different_rows(data, few):
        left = "only the effects in the members' leaves rank people" if ranked else "there is no finer ranking"
        return (
            f"the votes of {len(data):,} rows take only {len(found)} different value(s), within which {left}: let members tell more people "
            f"apart, as in {better}, or use UpliftForest, which averages effects and not votes"
        )
    if decision.min() == decision.max():
        return (
            f"the vote is {'for' if decision[0] else 'against'} treatment in every row, so recommend says the same about everybody: rank "
            f"people by predict and say how many to treat with upturn.policy.target, or try {better}"
        )
    return None


def _different_rows(data: Experiment, enough: int) -> int:
    """Different rows among some that are spread over the table, at most ``enough``."""
    some = data.X[:: max(len(data) // _ASKED, 1)]
    return min(len({row.tobytes() for row in np.nan_to_num(some, nan=np.inf)}), enough)
