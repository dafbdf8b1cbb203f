r"""A rehearsal: how far intervals must reach, learned from an experiment like this one whose effects are known.

The variance of a forest is estimated, and its bias is not: leaves still smooth what the correction left, so that intervals of
1.645 standard errors hold the effect less often than 90% of the time wherever effects differ sharply between people. How much less
can be seen by doing it all once more on data that are made, as a bootstrap does (Beran, "Prepivoting to reduce level error of
confidence sets", 1987; Loh, "Calibrating confidence coefficients", 1987). Rows keep their features and arms; their effects are those
the forest predicts out of bag, spread no more than effects really are,

.. math:: \tau^*_k = \bar\tau_k + \sqrt{(1 - 1 / v)_+}\,(\hat\tau_k - \bar\tau_k),

v the variance of predicted effects as a multiple of that by chance; their outcomes are drawn around the responses that follow: 0
or 1 with that chance, or the response plus the row's own residual with a random sign. A forest with half the trees is fitted to three
quarters of the rows, and the errors of its effects at the others, in standard errors, say what multiple of a standard error holds
90% of them. The ratio of that to 1.645 widens the forest's intervals, or narrows them a little: errors at the points of one
rehearsal go together, so a small ratio is more often luck than a large one is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from upturn._arrays import Bools, Floats, Indices
from upturn._experiment import Experiment
from upturn.kernels import sampling
from upturn.kernels.hashing import words
from upturn.kernels.sampling import GROW, IN, REHEARSAL
from upturn.metrics._estimate import reach_of
from upturn.trees._base import Scale

LEVEL = 0.9  # of the intervals that are looked at
_SHARE = 0.75  # of the rows that the rehearsed forest is fitted to
_FEWEST = 20  # rows that can say anything about it
_NARROWEST = 0.85  # of the width that standard errors alone would give
_SPLIT, _NOISE, _SEED = (np.uint64(k) for k in range(3))


class Rehearsal(NamedTuple):
    """Rows to fit a forest to, of made outcomes, and others with the effects it should find."""

    rows: Indices
    y: Floats
    others: Indices
    effects: Floats
    seed: np.uint64


def stage(data: Experiment, response: Floats, varies: Floats, scale: Scale, seed: np.uint64) -> Rehearsal | None:
    """Make outcomes whose effects are known; None if there are too few rows to learn from.

    ``response`` are the arms' responses that the forest predicts out of bag, ``varies`` how much predicted effects vary, as a
    multiple of chance.
    """
    size = np.bincount(data.arm, minlength=data.n_arms + 1)
    wanted = np.maximum(np.floor(_SHARE * size).astype(np.int64), 1)
    role = np.full(len(data), IN)
    sampling.choose(sampling.purpose_key(seed, REHEARSAL, _SPLIT), data.arm, IN, GROW, size, wanted, role)
    known: Bools = np.asarray(np.isfinite(response).all(axis=1))
    rows, others = np.flatnonzero((role == GROW) & known), np.flatnonzero((role != GROW) & known)
    if len(others) < _FEWEST or (np.bincount(data.arm[rows], minlength=len(size)) == 0).any():
        return None
    made = _responses(response, varies, size / size.sum(), known)
    drawn = np.empty(len(data), np.uint64)
    words(seed, REHEARSAL, _NOISE, drawn)
    own = np.arange(len(data)), data.arm
    if scale.binary:
        made = np.clip(made, scale.low, scale.low + scale.span)
        chance = (made[own] - scale.low) / scale.span
        y = scale.low + scale.span * ((drawn >> np.uint64(11)) * 2.0**-53 < chance)
    else:
        y = made[own] + (data.y - response[own]) * np.where(drawn >> np.uint64(63), 1.0, -1.0)
    effects = made[others, 1:] - made[others, :1]
    return Rehearsal(
        rows, np.asarray(y[rows], np.float64), others, effects, np.uint64(sampling.purpose_key(seed, REHEARSAL, _SEED))
    )


def _responses(response: Floats, varies: Floats, shares: Floats, known: Bools) -> Floats:
    """Responses with effects spread as in the module's formula; the mean response of the arms stays, row by row."""
    effect = response[:, 1:] - response[:, :1]
    mean = effect[known].mean(axis=0)
    spread = np.sqrt(np.maximum(1.0 - 1.0 / np.where(varies > 0.0, varies, 1.0), 0.0))
    effect = mean + spread * (effect - mean)
    control = response @ shares - effect @ shares[1:]
    return np.column_stack([control, control[:, None] + effect])


def reach(error: Floats, variance: Floats) -> Floats:
    """By how much intervals must be wider to hold ``LEVEL`` of these errors, per arm; hardly narrower."""
    errors = np.abs(error) / np.sqrt(np.where(variance > 0.0, variance, np.inf))
    wider = np.maximum(np.quantile(errors, LEVEL, axis=0) / reach_of(LEVEL), _NARROWEST)
    return np.where((variance > 0.0).any(axis=0), wider, 1.0)
