"""The look at the arms before a forest is fitted, where nobody has said how they were given: could chance alone have made them so unlike?

Two tests on some 20,000 rows of each arm. The joint test of balance compares the arms column by column. And trees that are grown on one half of the rows
predict who was treated in the other half: where they tell treated rows from control, columns drive the treatment together, as the sign of a product does, which
no column shows alone. That half has not been seen, so that given the trees every assignment of its arms is equally likely in a trial, whatever they found.

It is not where arms were given to whole households or shops: trees then know the others of a house. So copies of a row count once, and where arms look
unlike, so do rows that share the value of a column which always has the same arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Arms, Bools, Floats, Ints
from upturn._balance import column_pvalues, each_column, joint_pvalue, mean_ranks, weighted_pvalues
from upturn._experiment import Experiment
from upturn._table import Schema
from upturn.kernels.hashing import LOOK, words_of
from upturn.trees._bins import Bins
from upturn.trees._center import outcome_rules
from upturn.trees._growth import Soil
from upturn.trees._nodes import Nodes
from upturn.trees._samples import Sampling

_PER_ARM, _AT_LEAST = 20_000, 1_000  # rows of an arm that are looked at, and at least, of wide tables
_NUMBERS = 1 << 20  # numbers of an arm beyond which its rows are fewer
_DRAWS = 50  # of each arm at least, for copies of rows to count once, and in either half for trees
_BLOCK = 1 << 20  # rows that are hashed at a time
_UNLIKE = 1e-4  # p-value below which chance alone does not make arms so unlike
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_TREES, _DEPTH, _SEEN = 20, 6, Sampling(fraction=0.5)
_AREA, _SURE = 0.6, 4.7322  # an area that should be seen; z(.99995) + z(.8): a test at _UNLIKE sees it 4 times in 5


class Told(NamedTuple):
    """How well trees tell an arm from control on rows that they have not seen (the arm they tell best), and how often chance does as well."""

    auc: float | None = None  # of too few rows it is not known
    pvalue: float = 1.0
    enough: bool = False  # whether an area of 0.6 would be seen, in every arm


class Look(NamedTuple):
    """The joint test of balance on some rows, how many they are, and what trees told of their arms."""

    pvalue: float
    rows: int
    told: Told = Told()

    @property
    def unlike(self) -> bool:
        """Whether chance alone does not make arms so unlike as these."""
        return self.pvalue < _UNLIKE or self.told.pvalue < _UNLIKE


class Seen(NamedTuple):
    """Rows that are looked at, by their ids in ascending order."""

    ids: NDArray[np.uint64]
    X: Floats
    arm: Arms
    weight: Floats | None

    def take(self, rows: NDArray[np.intp]) -> Seen:
        """Some of them, in their order."""
        ids, X, arm, weight = self
        if len(rows) == len(arm):
            return self
        return Seen(ids[rows], X[rows], arm[rows], None if weight is None else weight[rows])


def in_look(ids: NDArray[np.uint64], arm: Arms, rows: Ints, n_features: int) -> Bools:
    """Which rows the look is at, there being so many ``rows`` of each arm: of every arm some 20,000 by the hash of their ids, wherever they lie."""
    most = max(_AT_LEAST, min(_PER_ARM, _NUMBERS // max(n_features, 1)))
    cuts = np.array([min(most * 2**64 // max(int(n), 1), 2**64 - 1) for n in rows], np.uint64)
    word = np.empty(len(ids), np.uint64)
    words_of(np.uint64(0), LOOK, np.uint64(0), ids, word)
    return np.asarray(word <= cuts[arm])


def look_at(seen: Seen, schema: Schema, n_arms: int) -> Look:
    """Compare the arms of the rows that were found; an arm that is not among them is not seen.

    Where rows with the same features always have the same arm, the arm was given to whatever they are rows of (a person, a shop), which counts once,
    unless that leaves too few to tell: a rule that gives a few kinds of people their arms looks the same. If arms then are unlike, the same is done
    for a column whose rows of one value always have the same arm.
    """
    arm = seen.arm
    found = _compare(seen.take(_counted(_draws(seen.X, arm), arm, n_arms)), schema, n_arms)
    if not found.unlike:
        return found
    fewest = min((_counted(_draws_of(one, arm), arm, n_arms) for one in each_column(seen.X)), key=len)
    return _compare(seen.take(fewest), schema, n_arms) if len(fewest) < found.rows else found


def _counted(rows: NDArray[np.intp], arm: Arms, n_arms: int) -> NDArray[np.intp]:
    """These rows if they are enough of every arm, else all."""
    return rows if np.bincount(arm[rows], minlength=n_arms + 1).min() >= _DRAWS else np.arange(len(arm))


def _compare(seen: Seen, schema: Schema, n_arms: int) -> Look:
    if seen.weight is not None and np.ptp(seen.weight) == 0:
        seen = seen._replace(weight=None)
    arm = seen.arm
    if not ((arm == 0).any() and (arm > 0).any()):
        return Look(1.0, len(arm))
    return Look(
        joint_pvalue(seen.X, schema, arm, n_arms, seen.weight, gaps=True), len(arm), _tell(seen, schema, n_arms)
    )


def _tell(seen: Seen, schema: Schema, n_arms: int) -> Told:
    """What trees that learnt from half of the rows tell of the arms of the others; p-values are corrected for several arms."""
    word = np.empty(len(seen.ids), np.uint64)
    words_of(np.uint64(0), LOOK, np.uint64(1), seen.ids, word)
    if seen.weight is not None:
        seen = seen._replace(weight=seen.weight / seen.weight.max())  # of any size
    learnt = word < np.uint64(2**63)
    n_levels = [None if levels is None else len(levels) for levels in schema.levels]
    found, enough = [], True
    for code in range(1, n_arms + 1):
        mine = (seen.arm == 0) | (seen.arm == code)
        grown, judged = (seen.take(np.flatnonzero(mine & half)) for half in (learnt, ~learnt))
        sizes = [np.bincount(half.arm > 0, minlength=2) for half in (grown, judged)]
        enough = enough and _sees(sizes[1])
        if np.min(sizes) >= _DRAWS:
            found.append(_told_of(_chance_of_arm(grown, n_levels, judged.X), judged.arm > 0, judged.weight))
    if not found:
        return Told()
    best = min(found, key=lambda told: told.pvalue)
    return Told(best.auc, min(1.0, best.pvalue * len(found)), enough)


def _sees(sizes: Ints) -> bool:
    """Whether the rank test of so many rows of control and of an arm would see an area of 0.6."""
    control, arm = sizes.tolist()
    return bool(_SURE**2 * (control + arm + 1) <= (_AREA - 0.5) ** 2 * 12 * control * arm)


def _chance_of_arm(grown: Seen, n_levels: Sequence[int | None], X: Floats) -> Floats:
    """The chance of being treated that shallow trees grown on some rows predict for others."""
    bins = Bins.learn(grown.X, n_levels)
    alike = np.zeros(len(grown.arm), np.uint8)
    soil = Soil.prepare(bins, bins.encode(grown.X), alike, 0, (grown.arm > 0).astype(np.float64), grown.weight)
    rules = outcome_rules(bins.n_features)._replace(max_depth=_DEPTH)
    trees = [soil.grow(rules, _SEEN, np.uint64(0), tree) for tree in range(_TREES)]
    return Nodes.join(trees).respond(bins, X)[:, 0]


def _told_of(chance: Floats, treated: Bools, weight: Floats | None) -> Told:
    """The area under the ROC curve of predicted chances, and the rank test's p-value; 1 if treated rows have the smaller ones."""
    own, ranks = np.ones(len(chance)) if weight is None else weight, mean_ranks(chance)
    if min(own[treated].sum(), own[~treated].sum()) <= 0.0:  # next to weights of another size
        return Told()
    auc, means = (
        _area(chance, treated, own),
        [np.average(ranks[mine], weights=own[mine]) for mine in (treated, ~treated)],
    )
    if means[0] <= means[1]:
        return Told(auc, 1.0)
    pvalues = (
        column_pvalues(chance, None, treated) if weight is None else weighted_pvalues(chance, None, treated, weight)
    )
    return Told(auc, pvalues[0])


def _area(score: Floats, treated: Bools, weight: Floats) -> float:
    """The chance, by weight, that a treated row has a larger score than one of control, ties counting half; by sums that no thread changes."""
    _, codes = np.unique(score, return_inverse=True)
    ones, others = (np.bincount(codes, weight * mine) for mine in (treated, ~treated))
    below = np.cumsum(others) - others / 2.0
    return min(float((ones / ones.sum() * (below / others.sum())).sum()), 1.0)


def _draws(X: Floats, arm: Arms) -> NDArray[np.intp]:
    """The first of all rows with the same features, if they always have the same arm; else all rows."""
    mixed = np.zeros(len(X), np.uint64)
    for column in each_column(X):
        same = np.where(np.isnan(column), np.nan, column.astype(np.float64) + 0.0)  # one NaN, one 0
        mixed = (mixed ^ same.view(np.uint64)) * _PRIME
        mixed ^= mixed >> np.uint64(29)
    return _draws_of(mixed, arm)


def _draws_of(values: NDArray[Any], arm: Arms) -> NDArray[np.intp]:
    """The first of all rows with the same value, if they always have the same arm, and those without one; else all rows."""
    known = np.flatnonzero(values == values)
    mine = arm[known]
    _, first, kind = np.unique(values[known], return_index=True, return_inverse=True)
    if not (mine[first][kind] == mine).all():
        return np.arange(len(arm))
    return np.sort(np.concatenate([known[first], np.flatnonzero(values != values)]))


def look_at_arms(data: Experiment) -> Look:
    """Compare the arms of some rows of weight above 0."""
    used = None if data.weight is None else np.flatnonzero(data.weight > 0.0)
    arm = data.arm if used is None else data.arm[used]
    rows, n = np.bincount(arm, minlength=data.n_arms + 1), len(arm)
    blocks = (np.arange(start, min(start + _BLOCK, n), dtype=np.uint64) for start in range(0, n, _BLOCK))
    found = [ids[in_look(ids, arm[int(ids[0]) :][: len(ids)], rows, data.X.shape[1])] for ids in blocks]
    ids = np.concatenate(found)
    if len(ids) == len(data):
        return look_at(Seen(ids, np.asarray(data.X), data.arm, data.weight), data.schema, data.n_arms)
    at = ids.astype(np.intp) if used is None else used[ids.astype(np.intp)]
    weight = None if data.weight is None else data.weight[at]
    return look_at(Seen(ids, np.asarray(data.X[at]), data.arm[at], weight), data.schema, data.n_arms)
