"""Pruning of a single tree by AUUC on rows that did not grow it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools, Ints
from upturn.kernels.histogram import Layout
from upturn.metrics import auuc
from upturn.trees._nodes import Nodes
from upturn.trees._outcome import read_sums


def prune(nodes: Nodes, sums: Ints, layout: Layout) -> Nodes:
    """Prune one tree, bottom up: a split goes unless the AUUC of the validation rows is better with it.

    ``sums`` are those of the validation rows by leaf and arm (``leaf_sums``). Rows of one leaf share a score, so the area needs no
    more than each leaf's weight and outcome by arm.
    """
    n_nodes, n_responses = nodes.value.shape
    sums = sums.reshape(n_nodes, n_responses, 2).copy()
    left = nodes.left.copy()
    for node in np.flatnonzero(left >= 0)[::-1]:  # children come after their parents: sums of all nodes, bottom up
        sums[node] = sums[left[node]] + sums[left[node] + 1]
    weights, totals = read_sums(sums[..., 0], sums[..., 1], layout)
    effect = nodes.value[:, 1:] - nodes.value[:, :1]

    def area(leaves: Ints) -> float:
        at, arms = np.nonzero(weights[leaves] > 0.0)
        rows = leaves[at]
        w = weights[rows, arms]
        score = effect[rows, 0] if n_responses == 2 else effect[rows]
        return float(auuc(totals[rows, arms] / w, score, arms, sample_weight=w, control=0))

    current = area(_leaves(left))
    for node in np.flatnonzero(left >= 0)[::-1]:
        kept = left[node]
        left[node] = -1
        without = area(_leaves(left))
        if without >= current - 1e-12 * abs(current):
            current = without
        else:
            left[node] = kept
    return _compress(nodes, left)


def _leaves(left: NDArray[np.int32]) -> Ints:
    """Leaves that can be reached from the root."""
    reached = _reached(left)
    return np.flatnonzero(reached & (left < 0))


def _reached(left: NDArray[np.int32]) -> Bools:
    reached = np.zeros(len(left), bool)
    front = np.array([0])
    while len(front):
        reached[front] = True
        inner = front[left[front] >= 0]
        front = np.concatenate([left[inner], left[inner] + 1])
    return reached


def _compress(nodes: Nodes, left: NDArray[np.int32]) -> Nodes:
    """Drop the nodes that pruning cut off."""
    keep = np.flatnonzero(_reached(left))
    number = np.full(len(left), -1, np.int32)
    number[keep] = np.arange(len(keep), dtype=np.int32)
    leaf = left[keep] < 0
    sets = np.where(leaf, -1, nodes.category_set[keep])
    return replace(
        nodes,
        first=np.array([0, len(keep)]),
        feature=np.where(leaf, -1, nodes.feature[keep]).astype(np.int32),
        cut=np.where(leaf, 0, nodes.cut[keep]).astype(np.int32),
        left=np.where(leaf, -1, number[left[keep]]).astype(np.int32),
        category_set=np.where(sets < 0, -1, np.cumsum(sets >= 0) - 1).astype(np.int32),
        missing_left=nodes.missing_left[keep] & ~leaf,
        gain=np.where(leaf, 0.0, nodes.gain[keep]),
        value=nodes.value[keep],
        weight=nodes.weight[keep],
        sets=nodes.sets[sets[sets >= 0]],
    )
