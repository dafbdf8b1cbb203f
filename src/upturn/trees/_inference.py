"""Intervals of ``UpliftForest(inference=True)``: leaves corrected for what they smooth, and the variance of what comes out.

A leaf averages the effects of the people in it, so a forest flattens: with S for that averaging, its expectation is S tau, not
tau. The correction is Tukey's twicing. Every bag of trees predicts the effect of its own half-sample's rows, each by
the trees whose leaf values do not rest on it; the mean of these predictions over the rows of a leaf, S S tau, shows how
much the leaf flattens, and that much is put back:

    value = effect of the leaf + (effect of the leaf - mean prediction over its rows),

whose expectation is (2 S - S S) tau, nearer to tau by a factor I - S. Where effects differ much more between people than chance explains, the same is done
once more with the corrected predictions, which takes another factor I - S off the bias for some more variance. All of it happens within bags of trees, two or more to a
group, so that groups differ as forests on fresh experiments would, correction included, and the bags of a group as their draws of rows do.

The variance of a forest is that of group means, V + N, less the noise N of averaging the few bags of a group. N is known well at every
point, V badly: it is the small difference of two large numbers. But V / N hardly depends on the point, so the ratio is pooled over rows,
each seen by groups that did not see it, and the variance at a point is the pooled ratio times its N.

Leaves of a fixed number of rows would average no more people in a large table than in a small one, and intervals would hardly become
narrower with n; so leaves grow with the rows of the smallest arm beyond 2,500, and soon with their root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats, Ints
from upturn.kernels.sampling import ESTIMATE
from upturn.trees._bins import Codes
from upturn.trees._center import node_means, word_sums
from upturn.trees._nodes import Nodes
from upturn.trees._outcome import Grid, grid_within, make_words
from upturn.trees._samples import unseen

_MOST_ROWS = 2000  # over which the ratio of variances is pooled
GROUP, BAG = 10, 5  # trees that share a half-sample, and that are corrected together
_VARIES = 1.3  # variance of predicted effects over rows, as a multiple of that by chance, from which smoothing is corrected again


def rows_in_leaf(smallest: float) -> int:
    """Fewest rows of each arm in a leaf, for a smallest arm of so many: 2 up to 2,500, one more every 400 rows from there, and later fewer.

    >>> [rows_in_leaf(n) for n in (100, 2_500, 3_500, 5_000, 25_000, 500_000)]
    [2, 2, 4, 8, 18, 80]
    """
    return 2 + int(min(max(smallest - 2_500, 0) / 400, np.sqrt(max(smallest - 2_000, 0) / 80)))


def correct_groups(
    trees: Sequence[Nodes], correct: Callable[[Sequence[Floats]], None], pool: Callable[[Nodes], Pooled]
) -> tuple[Nodes, Pooled]:
    """Trees of all groups, every bag of them corrected once or twice, and their pooled variances (see the module).

    ``correct`` corrects all bags, given the effects of the trees' nodes before any correction.
    """
    own = [tree.value[:, 1:] - tree.value[:, :1] for tree in trees]
    for _ in range(2):
        correct(own)
        nodes = Nodes.join(trees)
        pooled = pool(nodes)
        if (pooled.varies < _VARIES).all():
            break
    return nodes, pooled


def effect_grid(trees: Sequence[Nodes], total: float, *, weighted: bool) -> Grid:
    """How effects that trees predict are added up: as integers, so that it does not matter where rows lie; ``total`` is the rows' weight."""
    most = max(float(np.abs(tree.value[:, 1:] - tree.value[:, :1]).max()) for tree in trees)
    return grid_within(total, most, weighted=weighted)


def smoothed_sums(
    trees: Sequence[Nodes], roles: Sequence[NDArray[np.uint8]], codes: Codes, weight: Floats | None, grid: Grid
) -> list[list[Ints]]:
    """For every tree of a bag and every arm, sums by leaf of the effects that other trees predict for the rows its values rest on."""
    inside = np.flatnonzero(np.logical_or.reduce([role == ESTIMATE for role in roles]))
    predicted = _unseen_effects(trees, roles, codes[inside], inside)
    effect_of = np.full((len(codes), predicted.shape[1]), np.nan)
    effect_of[inside] = predicted
    found = []
    for nodes, role in zip(trees, roles, strict=True):
        rows = np.flatnonzero(role == ESTIMATE)
        leaf, own = nodes.leaves(codes[rows])[0].astype(np.int64), None if weight is None else weight[rows]
        words = [make_words(effect_of[rows, k], own, grid) for k in range(predicted.shape[1])]
        found.append([word_sums(leaf, len(nodes.feature), one, grid.layout) for one in words])
    return found


def correct_smoothing(
    trees: Sequence[Nodes], own: Sequence[Floats], sums: Sequence[Sequence[Ints]], grid: Grid, shares: Floats
) -> None:
    """Put back, in every node of a bag of trees, what its leaf flattens; the arms' mean response stays (see the module).

    ``own`` are the effects of the trees' nodes before any correction, ``sums`` those of ``smoothed_sums``.
    """
    for nodes, before, arms in zip(trees, own, sums, strict=True):
        put_back = before - np.column_stack([node_means(nodes, one, grid.layout) for one in arms])
        nodes.value[:, 1:] += put_back
        nodes.value[:] -= weigh_arms(put_back, shares[1:])[:, None]


def weigh_arms(columns: Floats, shares: Floats) -> Floats:
    """Columns weighted by shares and added up, row by row: a product of matrices would depend on how many rows there are, in the last digit."""
    total = columns[:, 0] * shares[0]
    for k in range(1, len(shares)):
        total = total + columns[:, k] * shares[k]
    return np.asarray(total)


def _unseen_effects(trees: Sequence[Nodes], roles: Sequence[NDArray[np.uint8]], codes: Codes, rows: Ints) -> Floats:
    """Effects of rows, each the mean over the trees of a bag whose values do not rest on it; all trees if there are none."""
    total = np.zeros((2, len(rows), trees[0].value.shape[1] - 1))
    count = np.zeros(len(rows))
    for nodes, role in zip(trees, roles, strict=True):
        effect = (nodes.value[:, 1:] - nodes.value[:, :1])[nodes.leaves(codes)[0]]
        unseen = role[rows] != ESTIMATE
        total[0] += effect
        total[1, unseen] += effect[unseen]
        count += unseen
    none = count == 0
    total[1, none], count[none] = total[0, none], len(trees)
    effects: Floats = total[1] / count[:, None]
    return effects


class Pooled(NamedTuple):
    """What rows that groups did not see say about variances, one number per arm.

    ``ratio`` is V / N, ``varies`` the variance of predicted effects over rows as a multiple of V, ``reach`` how much further than their
    standard errors say intervals go (``_rehearsal``).
    """

    ratio: Floats
    varies: Floats
    reach: Floats


def pooled_rows(n: int) -> Ints:
    """The rows, of ``n`` by the order of their ids, over which the ratio of variances is pooled."""
    return np.arange(n) if n <= _MOST_ROWS else np.linspace(0, n - 1, _MOST_ROWS).astype(np.int64)


def pool_variance(nodes: Nodes, roles: Iterable[NDArray[np.uint8]], codes: Codes, size: int, bag_size: int) -> Pooled:
    """Pool V / N over rows (see the module): between-group variance at rows outside the groups, less N, over N.

    ``roles`` are those of the rows in each group of ``size`` trees.
    """
    n = len(codes)
    sums, squares, noise = (np.zeros((n, nodes.value.shape[1] - 1)) for _ in range(3))
    count = np.zeros(n)
    for first, role in zip(range(0, nodes.n_trees, size), roles, strict=True):
        at = np.flatnonzero(unseen(role))
        effects = np.stack([_effects(nodes.tree(tree), codes[at]) for tree in range(first, first + size)])
        bags = effects.reshape(size // bag_size, bag_size, *effects.shape[1:]).mean(axis=1)
        group = bags.mean(axis=0)
        sums[at] += group
        squares[at] += group**2
        noise[at] += bags.var(axis=0, ddof=1) / len(bags)
        count[at] += 1.0
    enough = count >= 2.0
    count, sums, squares, noise = count[enough, None], sums[enough], squares[enough], noise[enough]
    noise /= count
    mean = sums / count
    between = np.maximum(squares - sums**2 / count, 0.0) / (count - 1.0)
    if not len(noise):
        nothing = np.zeros(noise.shape[1])
        return Pooled(nothing, nothing, nothing + 1.0)
    level = noise.mean(axis=0)
    variance = np.maximum((between - noise).mean(axis=0), 0.0)
    ratio = variance / np.where(level > 0.0, level, 1.0)
    varies = mean.var(axis=0) / np.where(variance > 0.0, variance, np.inf)
    return Pooled(ratio, varies, np.ones_like(ratio))


def _effects(nodes: Nodes, codes: Codes) -> Floats:
    effects: Floats = (nodes.value[:, 1:] - nodes.value[:, :1])[nodes.leaves(codes)[0]]
    return effects


def pooled_variance(between: Floats, total: Floats, n_bags: int, n_groups: int, pooled: Pooled) -> Floats:
    """Variance of the forest at points, from the variances of its group means and of its bags, ``n_bags`` a group (see the module).

    To V comes what is left of N in the mean of all groups, which another seed would change.
    """
    variance: Floats = (pooled.ratio + 1.0 / n_groups) * np.maximum(total - between, 0.0) / (n_bags - 1)
    return variance
