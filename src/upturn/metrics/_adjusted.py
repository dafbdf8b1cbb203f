r"""What stands for the outcome where something is known of every row: covariate adjustment.

With μ the outcomes expected of a row under every arm, from a model that has not seen it, and p the shares of control and of
arm k among their rows, the outcome is replaced by

.. math:: y - h_k(x), \qquad h_k = p_0 \mu_k + p_k \mu_0.

The same is taken off in both arms, so that a difference between them keeps its expectation whatever μ is; what the features
say of the outcome is gone from its noise. It is the doubly robust score of a randomised experiment in other words: that is
:math:`(1[t = k] / p_k - 1[t = 0] / p_0)\,(y - h_k)`. Where the chance of an arm differs from row to row, the doubly robust scores
themselves are ranked, everybody together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from upturn._arrays import Floats
from upturn._target import Target
from upturn.metrics._gate import read_response
from upturn.metrics._ranked import Judged, arm_shares, rank, rank_one_group
from upturn.metrics._replicates import Replicates
from upturn.metrics._robust import dr_effects
from upturn.metrics._statistic import Statistic, measure, replicate
from upturn.metrics._strata import Strata

_ONE = np.ones(1)  # the share of the only ranking there is


def adjusted_outcomes(target: Target, response: Any) -> Floats:
    """Y - h_k(x), a contiguous column per arm; only rows of control and of the arm have a use for it."""
    mu, totals = read_response(response, target), target.totals
    values = np.empty((len(target), target.n_arms), order="F")
    for k in range(target.n_arms):
        share = totals[k + 1] / (totals[0] + totals[k + 1])
        values[:, k] = target.y - ((1 - share) * mu[:, k + 1] + share * mu[:, 0])
    return values


@dataclass(frozen=True)
class Reading:
    """A value of every row per arm: outcomes that are compared between the arm and control, or effects (``together``)."""

    target: Target
    values: Floats
    together: bool

    @classmethod
    def outcomes(cls, target: Target, response: Any) -> Reading:
        """Outcomes less what was expected."""
        return cls(target, adjusted_outcomes(target, response), together=False)

    @classmethod
    def effects(cls, target: Target, propensity: Any, response: Any) -> Reading:
        """Doubly robust effects."""
        return cls(target, dr_effects(target, propensity, response), together=True)

    def judge(self, scores: Floats, k: int) -> Judged:
        """One model's ranking for one arm."""
        if self.together:
            return Judged([rank_one_group(self.values[:, k], scores[:, k], self.target.weight)], _ONE)
        return Judged([rank(self.target, scores[:, k], k + 1, self.values[:, k])], _ONE)

    def measure(self, statistics: Sequence[Statistic], scores: Floats) -> list[Floats]:
        """Each statistic of one model: the mean over arms."""
        shares = arm_shares(self.target).tolist()
        found = [measure(statistics, self.judge(scores, k)) for k in range(len(shares))]
        return [sum(s * values[j] for s, values in zip(shares, found, strict=True)) for j in range(len(statistics))]

    def replicate(
        self, statistics: Sequence[Statistic], models: Sequence[Floats], replicates: Replicates
    ) -> list[list[Floats]]:
        """``result[model][statistic]``: the statistic on every replicate, the same ones for all."""
        total: list[list[Any]] = [[0.0] * len(statistics) for _ in models]
        for k, share in enumerate(arm_shares(self.target).tolist()):
            strata = Strata.of_values(self.target, self.values[:, k], replicates.clusters)
            judged = [self.judge(scores, k) for scores in models]
            for m, found in enumerate(replicate(statistics, judged, strata, replicates)):
                for j, samples in enumerate(found):
                    total[m][j] = total[m][j] + share * samples
        return total
