"""What ranks the rows whose votes are tied: the effects of the members' leaves, under the experiment's own weights.

A member is grown under the weights of its round, and the means of its leaves are those of that reweighted experiment, in
which all that earlier members know has been levelled out. Under the original weights they are effects again.
"""

from __future__ import annotations

import numpy as np

from upturn._arrays import Floats, Ints
from upturn.base import UpliftEstimator
from upturn.boosting._rounds import FEW, Rounds, Votes
from upturn.kernels.histogram import Layout
from upturn.trees._outcome import read_sums

TIE = 1e-6  # how much an effect as large as the outcome's range adds to a vote


def leaf_effects(sums: Ints, layout: Layout) -> Floats:
    """Mean outcome of the treated less that of control in every leaf, over the range of the outcome: from -1 to 1.

    ``sums`` are those of weight and outcome by leaf and arm. A leaf without rows of one of the groups takes the effect of the whole
    experiment; nodes that are not leaves have 0.
    """
    cells = sums.reshape(-1, 2, 2)
    weight, total = read_sums(cells[..., 0], cells[..., 1], layout)
    whole_weight, whole_total = read_sums(cells[..., 0].sum(axis=0), cells[..., 1].sum(axis=0), layout)
    both = (weight > 0).all(axis=1, keepdims=True)
    mean = np.where(both, total / np.where(both, weight, 1.0), whole_total / whole_weight)
    return np.where(weight.sum(axis=1) > 0, mean[:, 1] - mean[:, 0], 0.0)


def ranked_votes(member: UpliftEstimator, effects: Floats) -> Floats:
    """What every leaf of a member adds to the score: its vote, and a little of its effect; a column."""
    return np.asarray(member._node_opinions("vote") + TIE * effects[:, None])


def collapse(rows: Rounds, votes: Votes, decided: tuple[int, int], rounds: int, ranked: bool) -> str | None:
    """What is wrong with an ensemble whose training rows have these votes (shares of the voices), and what helps.

    ``decided`` are the smallest and the largest decision, ``rounds`` were asked for; ``ranked`` is whether effects rank what is tied.
    """
    found, few = len(votes.few), min(FEW, rounds // 3)
    better = "algorithm='adaboost' with estimator=UpliftTree(max_depth=4)"
    if found < few and found < min(rows.different(), few):
        left = "only the effects in the members' leaves rank people" if ranked else "there is no finer ranking"
        return (
            f"the votes of {rows.n:,} rows take only {found} different value(s), within which {left}: let members tell more people "
            f"apart, as in {better}, or use UpliftForest, which averages effects and not votes"
        )
    if decided[0] == decided[1]:
        return (
            f"the vote is {'for' if decided[0] else 'against'} treatment in every row, so recommend says the same about everybody: rank "
            f"people by predict and say how many to treat with upturn.policy.target, or try {better}"
        )
    return None
