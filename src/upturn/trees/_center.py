"""Centring: the outcome that the features alone predict is taken off before trees look for effects.

A forest of regression trees, grown by the same engine whatever the arms, predicts every row by the trees that did not see
it. What is left of the outcome varies less, so that differences between arms stand out; their expectation is unchanged,
because the same number is taken off every arm. Draws are by row, like all draws of trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats, Ints
from upturn._parallel import run_parallel
from upturn.kernels import sampling
from upturn.kernels.criteria import ANY_WEIGHT, OF_OUTCOMES, Rules
from upturn.kernels.forest import twin_codes
from upturn.kernels.histogram import Layout, Rows
from upturn.kernels.sampling import OUTCOME
from upturn.trees._bins import Codes
from upturn.trees._growth import Soil
from upturn.trees._nodes import Nodes
from upturn.trees._outcome import read_sums
from upturn.trees._samples import Sampling, unseen

TREES = 50
SEEN = Sampling(fraction=0.5)
_MIN_LEAF = 10.0  # rows: means of fewer would bring more noise than they take away


def outcome_out_of_bag(soil: Soil, seed: np.uint64, n_jobs: int | None, number: int = 0) -> Floats:
    """The outcome of every row, predicted by regression trees that did not see it; on the scale of the soil's words.

    ``number`` tells the draws of several such predictions apart.
    """
    rows, size, mean = pooled_arms(soil.rows, soil.size, soil.mean)
    alone, pooled = replace(soil, arm=np.zeros_like(soil.arm), rows=rows, size=size, mean=mean), float(mean[0])
    own_seed = sampling.purpose_key(seed, OUTCOME, np.uint64(number))
    rules = outcome_rules(soil.bins.n_features)
    trees = run_parallel(lambda tree: alone.grow(rules, SEEN, own_seed, tree), range(TREES), n_jobs=n_jobs)
    roles = (alone.roles(SEEN, own_seed, tree)[0] for tree in range(TREES))
    return predict_unseen(trees, roles, twin_codes(soil.codes), pooled)


def predict_unseen(
    trees: Sequence[Nodes], roles: Iterable[NDArray[np.uint8]], codes: Codes, otherwise: float
) -> Floats:
    """The outcome of every row, the mean over the trees that did not see it; a number for rows that all of them saw."""
    total, count = np.zeros(len(codes)), np.zeros(len(codes))
    for nodes, role in zip(trees, roles, strict=True):
        rows = np.flatnonzero(unseen(role))
        total[rows] += nodes.value[nodes.leaves(codes[rows])[0], 0]
        count[rows] += 1.0
    return np.where(count > 0.0, total / np.maximum(count, 1.0), otherwise)


def respond_unseen(nodes: Nodes, roles: Iterable[NDArray[np.uint8]], codes: Codes) -> Floats:
    """Responses of every row, the mean over the trees that did not see it; NaN where all of them did. Shape (n, 1 + K)."""
    total, count = np.zeros((len(codes), nodes.value.shape[1])), np.zeros(len(codes))
    for tree, role in enumerate(roles):
        rows, one = np.flatnonzero(unseen(role)), nodes.tree(tree)
        total[rows] += one.value[one.leaves(codes[rows])[0]]
        count[rows] += 1.0
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count[:, None])


def pooled_arms(rows: Ints, size: Floats, mean: Floats) -> tuple[Ints, Floats, Floats]:
    """Number of rows, weight and mean of all arms as one."""
    weight = size.sum()
    return np.array([rows.sum()]), np.array([weight]), np.array([float((size * mean).sum()) / weight])


def outcome_rules(n_features: int) -> Rules:
    """How the trees grow that predict an outcome."""
    return Rules(
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


def out_of_bag_twice(
    soil: Soil, y: Floats, weight: Floats | None, seed: np.uint64, number: int, n_jobs: int | None
) -> Floats:
    """A number per row predicted out of bag, and what that leaves predicted once more: leaves flatten less of it so.

    For data that are not randomised, where what stays of the outcome and of the arms' chances is taken for an effect.
    """
    first = outcome_out_of_bag(soil.reweighted(y, weight), seed, n_jobs, 2 * number)
    return first + outcome_out_of_bag(soil.reweighted(y - first, weight), seed, n_jobs, 2 * number + 1)


def leaf_sums(nodes: Nodes, codes: Codes, rows: Rows, layout: Layout, n_arms: int = 1) -> Ints:
    """Sums of the words of rows by leaf, weight and outcome: shape (nodes, 2); with several arms, each has a row of its own: (nodes * arms, 2)."""
    cell = nodes.leaves(codes)[0].astype(np.int64)
    if n_arms > 1:
        cell = n_arms * cell + np.asarray(rows.arm)
    return word_sums(cell, n_arms * len(nodes.feature), np.asarray(rows.word), layout)


def word_sums(cell: Ints, n_cells: int, words: Ints, layout: Layout) -> Ints:
    """Sums of words by cell, weight and outcome: integers, which add up exactly wherever rows lie; shape (cells, 2)."""
    if layout.n_words == 1:
        columns = (words >> layout.shift, words & ((1 << layout.shift) - 1))
    elif layout.weight_word > 0:
        columns = (np.full(len(cell), layout.weight_word), words)
    else:
        columns = (words[0::2], words[1::2])
    sums = np.zeros((n_cells, 2), np.int64)
    for k, column in enumerate(columns):
        np.add.at(sums[:, k], cell, column)
    return sums


def put_back(nodes: Nodes, sums: Ints, layout: Layout) -> None:
    """Add to the values of every node of one tree, of all arms, the mean of what was taken off its rows, from its sums by leaf."""
    nodes.value[:] += node_means(nodes, sums, layout)[:, None]


def node_means(nodes: Nodes, sums: Ints, layout: Layout) -> Floats:
    """Weighted mean of a number per row over the rows of every node of one tree, from its sums by leaf; a node without rows has its parent's."""
    sums = sums.copy()
    _add_upwards(nodes, sums)
    return _inherited(nodes, *read_sums(sums[:, 0], sums[:, 1], layout))


def _levels(nodes: Nodes) -> list[Ints]:
    """Nodes that are split, by their depth."""
    split = np.flatnonzero(nodes.left >= 0)
    return [split[nodes.depth[split] == depth] for depth in range(int(nodes.depth.max()) + 1)]


def _add_upwards(nodes: Nodes, sums: NDArray[Any]) -> None:
    """Give every node that is split the sums of its children."""
    for inner in reversed(_levels(nodes)):
        sums[inner] = sums[nodes.left[inner]] + sums[nodes.left[inner] + 1]


def _inherited(nodes: Nodes, weight: Floats, total: Floats) -> Floats:
    """Means of nodes; one without weight has that of the node above."""
    mean: Floats = total / np.where(weight > 0.0, weight, 1.0)
    for inner in _levels(nodes):
        for child in (nodes.left[inner], nodes.left[inner] + 1):
            mean[child] = np.where(weight[child] > 0.0, mean[child], mean[inner])
    return mean
