"""A driver of levels: a tree grown from histograms that are added up over partitions of the rows.

What an engine whose rows lie in several places would do, in plain Python around the same stages: every partition keeps its
rows to itself and gives away integers only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from upturn.kernels.growing import child_key
from upturn.kernels.histogram import CELLS, Rows, build, empty_rows, seen, sum_rows
from upturn.kernels.partition import partition
from upturn.kernels.splitting import best_split, make_search, read_means


@dataclass
class Leaf:
    """A node; one that is split has the rest too."""

    value: np.ndarray
    weight: np.ndarray
    own: np.ndarray
    gain: float = 0.0
    split: tuple = (-1, 0, 0)  # feature, cut, missing goes left
    levels: list = field(default_factory=list)  # codes that go left, of a categorical split
    children: tuple = ()


class Partition:
    """Some of the rows, with codes of their own; a node is a range of rows."""

    def __init__(self, codes, rows, held, layout):
        self.codes, self.stride = np.ascontiguousarray(codes).reshape(-1), codes.shape[1]
        self.codes.flags.writeable = False
        self.rows, self.held = (Rows(*(array.copy() for array in part)) for part in (rows, held))
        self.layout = layout
        self.spare = empty_rows(max(self.rows.index.size, self.held.index.size), layout)
        self.range = {(): (0, self.rows.index.size)}
        self.held_range = {(): (0, self.held.index.size)}

    def sums(self, path, n_arms, held=False):
        out = np.empty(2 * n_arms, np.int64)
        rows, ranges = (self.held, self.held_range) if held else (self.rows, self.range)
        sum_rows(seen(rows), *ranges[path], self.layout, out)
        return out

    def histograms(self, path, n_features, n_arms):
        cells = np.empty(n_features * n_arms * CELLS * self.layout.n_words, np.int64)
        rows, (start, stop) = seen(self.rows), self.range[path]
        build(self.codes, self.stride, np.arange(n_features), rows, start, stop, self.layout, n_arms, cells)
        return cells

    def divide(self, path, feature, goes_left):
        for rows, ranges in ((self.rows, self.range), (self.held, self.held_range)):
            start, stop = ranges[path]
            border = partition(self.codes, self.stride, feature, goes_left, rows, start, stop, self.layout, self.spare)
            ranges[(*path, 0)], ranges[(*path, 1)] = (start, border), (border, stop)


def grow_by_levels(root_key, root_mean, partitions, n_codes, categorical, rules, layout):
    """Grow a tree, one level of nodes after the other; return its root."""
    n_arms, n_features = len(root_mean), len(n_codes)
    search = make_search(n_arms, n_features)
    node, best = search.node, search.best
    root: list = []
    level = [((), root_key, root_mean, root_mean, root)]
    while level:
        below: list = []
        for path, key, value, own, place in level:
            depth = len(path)
            sums = sum(part.sums(path, n_arms) for part in partitions)
            last = depth == rules.max_depth
            cells = np.empty(0, np.int64)
            if not last:
                cells = sum(part.histograms(path, n_features, n_arms) for part in partitions)
            leaf = Leaf(value, np.empty(0), np.empty(0))
            apart = rules.honest or rules.plain_leaves
            if apart:
                node.mean[:] = value
                read_means(sum(part.sums(path, n_arms, held=rules.honest) for part in partitions), rules, layout, node)
                leaf.value, leaf.weight = node.mean.copy(), node.weight.copy()
            node.mean[:] = own
            best_split(key, depth, sums, cells, np.arange(n_features), n_codes, categorical, rules, layout, search)
            leaf.own = node.mean.copy()
            if not apart:
                leaf.value, leaf.weight = node.mean.copy(), node.weight.copy()
            place.append(leaf)
            feature, cut, is_set, _ = best.place.tolist()
            if feature < 0:
                continue
            goes_left = best.goes_left.copy()
            for part in partitions:
                part.divide(path, feature, goes_left)
            left = sum(part.sums((*path, 0), n_arms) for part in partitions)
            np.testing.assert_array_equal(left, np.r_[best.weight, best.total])
            leaf.gain, leaf.split = best.gain[0], (feature, cut, int(goes_left[0]))
            leaf.levels = np.flatnonzero(goes_left).tolist() if is_set else []
            children: tuple = ([], [])
            leaf.children = children
            for side in (0, 1):
                child = child_key(key, side == 0)
                below.append(((*path, side), child, leaf.value, leaf.own, children[side]))
        level = below
    return root[0]
