"""Centring: the outcome that the features alone predict is taken off before trees look for effects.

A forest of regression trees, grown by the same engine whatever the arms, predicts every row by the trees that did not see
it. What is left of the outcome varies less, so that differences between arms stand out; their expectation is unchanged,
because the same number is taken off every arm. Draws are by row, like all draws of trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats, Ints
from upturn._parallel import run_parallel
from upturn.kernels import sampling
from upturn.kernels.criteria import ANY_WEIGHT, OF_OUTCOMES, Rules
from upturn.kernels.forest import twin_codes
from upturn.kernels.sampling import OUTCOME
from upturn.trees._bins import Codes
from upturn.trees._growth import Soil
from upturn.trees._nodes import Nodes
from upturn.trees._samples import Sampling, unseen

_TREES = 50
_SEEN = Sampling(fraction=0.5)
_MIN_LEAF = 10.0  # rows: means of fewer would bring more noise than they take away


def outcome_out_of_bag(soil: Soil, seed: np.uint64, n_jobs: int | None, number: int = 0) -> Floats:
    """The outcome of every row, predicted by regression trees that did not see it; on the scale of the soil's words.

    ``number`` tells the draws of several such predictions apart.
    """
    weight = soil.size.sum()
    pooled = float(soil.size @ soil.mean) / weight
    rows, size, mean = np.array([len(soil)]), np.array([weight]), np.array([pooled])
    alone = replace(soil, arm=np.zeros_like(soil.arm), rows=rows, size=size, mean=mean)
    own_seed = sampling.purpose_key(seed, OUTCOME, np.uint64(number))
    n_features = soil.bins.n_features
    rules = Rules(
        criterion=OF_OUTCOMES.code,
        binary=False,
        normalize=False,
        laplace=0.0,
        min_split=2.0,
        n_reg=0.0,
        inherit_below=ANY_WEIGHT,
        min_share=0.0,
        min_leaf=_MIN_LEAF,
        min_arm=0.0,
        min_gain=OF_OUTCOMES.min_gain,
        max_depth=10_000,
        max_features=max(1, -(-n_features // 2)),
        random_share=0.0,
        honest=False,
        plain_leaves=False,
        subtraction=False,
    )
    trees = run_parallel(lambda tree: alone.grow(rules, _SEEN, own_seed, tree), range(_TREES), n_jobs=n_jobs)
    total, count = np.zeros(len(soil)), np.zeros(len(soil))
    codes = twin_codes(soil.codes)
    for tree, rows in unseen_rows(alone, _SEEN, own_seed, _TREES):
        nodes = trees[tree]
        total[rows] += nodes.value[nodes.leaves(codes[rows])[0], 0]
        count[rows] += 1.0
    return np.where(count > 0.0, total / np.maximum(count, 1.0), pooled)


def out_of_bag_twice(
    soil: Soil, y: Floats, weight: Floats | None, seed: np.uint64, number: int, n_jobs: int | None
) -> Floats:
    """A number per row predicted out of bag, and what that leaves predicted once more: leaves flatten less of it so.

    For data that are not randomised, where what stays of the outcome and of the arms' chances is taken for an effect.
    """
    first = outcome_out_of_bag(soil.reweighted(y, weight), seed, n_jobs, 2 * number)
    return first + outcome_out_of_bag(soil.reweighted(y - first, weight), seed, n_jobs, 2 * number + 1)


def unseen_rows(soil: Soil, plan: Sampling, seed: np.uint64, n_trees: int) -> Iterator[tuple[int, Ints]]:
    """Every tree with the rows it did not see: its sample is drawn once more from the seed."""
    for tree in range(n_trees):
        role, _ = soil.roles(plan, seed, tree)
        yield tree, np.flatnonzero(unseen(role))


def node_means(nodes: Nodes, codes: Codes, rows: Ints, weight: Floats, level: Floats) -> Floats:
    """Weighted mean of a number per row over the rows of every node of one tree; a node without rows has its parent's."""
    leaf = nodes.leaves(codes[rows])[0]
    n = len(nodes.feature)
    sums: NDArray[np.float64] = np.stack(
        [np.bincount(leaf, weight, n), np.bincount(leaf, weight * level[rows], n)], axis=1
    )
    split = np.flatnonzero(nodes.left >= 0)
    by_depth = [split[nodes.depth[split] == depth] for depth in range(int(nodes.depth.max()) + 1)]
    for inner in reversed(by_depth):
        sums[inner] = sums[nodes.left[inner]] + sums[nodes.left[inner] + 1]
    mean = sums[:, 1] / np.where(sums[:, 0] > 0.0, sums[:, 0], 1.0)
    for inner in by_depth:
        for child in (nodes.left[inner], nodes.left[inner] + 1):
            mean[child] = np.where(sums[child, 0] > 0.0, mean[child], mean[inner])
    return mean
