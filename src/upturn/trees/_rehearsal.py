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
90% of them. Rows keep their codes and ids, by which that forest draws its samples. The ratio of that to 1.645 widens the forest's intervals, or narrows them a little: errors at the points of one
rehearsal go together, so a small ratio is more often luck than a large one is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Arms, Bools, Floats, Indices, Ints
from upturn._experiment import Experiment
from upturn.kernels import sampling
from upturn.kernels.hashing import words_of
from upturn.kernels.sampling import GROW, IN, REHEARSAL
from upturn.metrics._estimate import reach_of
from upturn.trees._base import Scale
from upturn.trees._inference import weigh_arms
from upturn.trees._outcome import Grid, grid_within, make_words
from upturn.trees._samples import Choice, Lot

LEVEL = 0.9  # of the intervals that are looked at
_SHARE = 0.75  # of the rows that the rehearsed forest is fitted to
_FEWEST = 20  # rows that can say anything about it
_NARROWEST = 0.85  # of the width that standard errors alone would give
_SPLIT, _NOISE, _SEED = (np.uint64(k) for k in range(3))


class Script(NamedTuple):
    """How outcomes are made, row by row: what all rows together decide of it."""

    mean: Floats  # effect of each arm
    spread: Floats  # how much of the effects' differences from it is kept
    shares: Floats
    scale: Scale
    seed: np.uint64

    def responses(self, response: Floats) -> Floats:
        """Responses with effects spread as in the module's formula; the mean response of the arms stays, row by row."""
        effect = self.mean + self.spread * (response[:, 1:] - response[:, :1] - self.mean)
        control = weigh_arms(response, self.shares) - weigh_arms(effect, self.shares[1:])
        made = np.column_stack([control, control[:, None] + effect])
        low, span, binary = self.scale
        return np.clip(made, low, low + span) if binary else made

    def outcomes(self, made: Floats, response: Floats, seen: Floats, lot: Lot) -> Floats:
        """Outcomes of rows around the responses ``made``; trees see their real outcomes as ``seen``."""
        drawn = np.empty(len(seen), np.uint64)
        words_of(self.seed, REHEARSAL, _NOISE, lot.numbers, drawn)
        own, (low, span, binary) = (np.arange(len(seen)), lot.arm), self.scale
        if binary:
            chance = (made[own] - low) / span
            return np.asarray(low + span * ((drawn >> np.uint64(11)) * 2.0**-53 < chance), np.float64)
        sign = np.where(drawn >> np.uint64(63), 1.0, -1.0)
        return np.asarray(made[own] + (self.scale.tell(seen) - response[own]) * sign)


class Counts(NamedTuple):
    """Rows with a response out of bag: those of each arm that a forest is fitted to, how many others, and sums of words of their effects."""

    rows: Ints
    others: int
    sums: Ints

    @property
    def enough(self) -> bool:
        """Whether they can say anything."""
        return self.others >= _FEWEST and bool((self.rows > 0).all())


def split_rows(size: Ints, seed: np.uint64) -> Choice:
    """The draw of the rows that the rehearsed forest is fitted to."""
    wanted = np.maximum(np.floor(_SHARE * size).astype(np.int64), 1)
    return Choice(sampling.purpose_key(seed, REHEARSAL, _SPLIT), IN, GROW, size, wanted)


def count_known(response: Floats, role: NDArray[np.uint8], arm: Arms, n_arms: int, grid: Grid) -> Counts:
    """What some rows of these roles are; ``n_arms`` counts control, too."""
    known = is_known(response)
    rows = np.bincount(arm[known & (role == GROW)], minlength=n_arms)
    effect = response[known, 1:] - response[known, :1]
    sums = [make_words(np.ascontiguousarray(column), None, grid).sum() for column in effect.T]
    return Counts(rows, int(np.count_nonzero(known & (role != GROW))), np.array(sums, np.int64))


def is_known(response: Floats) -> Bools:
    """Which rows have a response out of bag."""
    return np.asarray(np.isfinite(response).all(axis=1))


def write_script(counts: Counts, grid: Grid, varies: Floats, size: Ints, scale: Scale, seed: np.uint64) -> Script:
    """How outcomes are made, from what all rows are; ``varies`` is how much predicted effects vary, as a multiple of chance."""
    mean = counts.sums * grid.layout.total_unit / (counts.rows.sum() + counts.others)
    spread = np.sqrt(np.maximum(1.0 - 1.0 / np.where(varies > 0.0, varies, 1.0), 0.0))
    return Script(mean, spread, size / size.sum(), scale, seed)


def forest_seed(seed: np.uint64) -> np.uint64:
    """The seed of the rehearsed forest."""
    return np.uint64(sampling.purpose_key(seed, REHEARSAL, _SEED))


class Rehearsal(NamedTuple):
    """Rows to fit a forest to, of made outcomes, and others with the effects it should find."""

    rows: Indices
    y: Floats
    others: Indices
    effects: Floats


def stage(data: Experiment, response: Floats, varies: Floats, scale: Scale, seed: np.uint64) -> Rehearsal | None:
    """Make outcomes whose effects are known; None if there are too few rows to learn from.

    ``response`` are the arms' responses that the forest predicts out of bag, ``varies`` how much predicted effects vary, as a
    multiple of chance.
    """
    size, role, lot = np.bincount(data.arm, minlength=data.n_arms + 1), np.full(len(data), IN), Lot(data.arm)
    split_rows(size, seed).settle(lot, role)
    known = is_known(response)
    most = float(np.abs(response[known, 1:] - response[known, :1]).max(initial=0.0))
    grid = grid_within(float(len(data)), most, weighted=False)
    counts = count_known(response, role, data.arm, len(size), grid)
    if not counts.enough:
        return None
    script = write_script(counts, grid, varies, size, scale, seed)
    rows, others = np.flatnonzero((role == GROW) & known), np.flatnonzero((role != GROW) & known)
    made = script.responses(response)
    y = script.outcomes(made[rows], response[rows], scale.see(data.y[rows]), lot.take(rows))
    return Rehearsal(rows, y, others, made[others, 1:] - made[others, :1])


def errors_of(error: Floats, variance: Floats) -> Floats:
    """Errors in standard errors; 0 where nothing is known of the variance."""
    return np.asarray(np.abs(error) / np.sqrt(np.where(variance > 0.0, variance, np.inf)))


def level_places(n: int) -> tuple[int, int, float]:
    """Between which places of ``n`` sorted errors the one lies that ``LEVEL`` of them do not exceed, and where in between."""
    at = LEVEL * (n - 1)
    return int(at), min(int(at) + 1, n - 1), at - int(at)


def reach_between(low: Floats, high: Floats, share: float, told: Bools) -> Floats:
    """By how much intervals must be wider, per arm, from the errors at both places; hardly narrower, and 1 where nothing is ``told``."""
    wider = np.maximum((low + share * (high - low)) / reach_of(LEVEL), _NARROWEST)
    return np.where(told, wider, 1.0)


def reach(error: Floats, variance: Floats) -> Floats:
    """By how much intervals must be wider to hold ``LEVEL`` of these errors, per arm; hardly narrower."""
    low, high, share = level_places(len(error))
    errors = np.partition(errors_of(error, variance), (low, high), axis=0)
    return reach_between(errors[low], errors[high], share, np.asarray((variance > 0.0).any(axis=0)))
