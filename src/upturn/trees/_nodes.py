"""The fitted form of trees: one flat table of nodes for a whole forest, and prediction from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools, Floats, Ints
from upturn._parallel import count_threads, run_parallel
from upturn.base import Opinion, votes_for
from upturn.kernels.forest import MOST_FEATURES, add_up, find_leaves, group_moments, pack_nodes
from upturn.trees._bins import Bins, Codes, as_floats, pieces

_CODES = 256_000  # bytes of codes at a time, which a core's own cache holds beside a tree's nodes
_LEAST_ROWS, _MOST_ROWS = 4096, 65_536  # of a task
_TASKS = 4  # a thread, so that none waits long for the last
_TREES = 16  # trees whose leaves are found before their values are read


@dataclass(frozen=True)
class Nodes:
    """Nodes of one or more trees, a tree after the other.

    Attributes
    ----------
    first : int64 array of shape (n_trees + 1,)
        Where each tree starts.
    feature, cut, left, category_set : int32 arrays of shape (n_nodes,)
        Split: its feature and largest code that goes left, or a set of codes that do; left child in the whole table (the
        right one follows it). All -1 (``cut`` 0) in a leaf.
    missing_left : bool array of shape (n_nodes,)
        Whether missing values go left.
    gain : float64 array of shape (n_nodes,)
        Gain of the split.
    value, weight : float64 arrays of shape (n_nodes, 1 + K)
        Estimated response and weight of the rows it rests on, control first.
    sets : uint64 array of shape (n_sets, 4)
        256 bits a set.
    """

    first: Ints
    feature: NDArray[np.int32]
    cut: NDArray[np.int32]
    left: NDArray[np.int32]
    category_set: NDArray[np.int32]
    missing_left: Bools
    gain: Floats
    value: Floats
    weight: Floats
    sets: NDArray[np.uint64]

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.first) - 1

    @property
    def is_leaf(self) -> Bools:
        """Mask of the leaves."""
        return self.left < 0

    @classmethod
    def join(cls, trees: Sequence[Nodes]) -> Nodes:
        """One table of several."""
        sizes, counts = [len(tree.feature) for tree in trees], [len(tree.sets) for tree in trees]
        starts, set_starts = np.cumsum([0, *sizes]), np.cumsum([0, *counts])

        def joined(name: str, by: Ints | None = None) -> NDArray[Any]:
            column = np.concatenate([getattr(tree, name) for tree in trees])
            if by is None:
                return column
            return np.where(column < 0, -1, column + np.repeat(by[:-1], sizes)).astype(np.int32)

        first = np.concatenate([tree.first[:-1] + start for tree, start in zip(trees, starts[:-1], strict=True)])
        return cls(
            np.append(first, starts[-1]),
            joined("feature"),
            joined("cut"),
            joined("left", starts),
            joined("category_set", set_starts),
            joined("missing_left"),
            joined("gain"),
            joined("value"),
            joined("weight"),
            joined("sets"),
        )

    def tree(self, number: int) -> Nodes:
        """A table of one of the trees."""
        a, b = self.first[number], self.first[number + 1]
        sets = self.category_set[a:b]
        used = sets[sets >= 0]
        return Nodes(
            np.array([0, b - a]),
            self.feature[a:b],
            self.cut[a:b],
            np.where(self.left[a:b] < 0, -1, self.left[a:b] - a).astype(np.int32),
            np.where(sets < 0, -1, np.cumsum(sets >= 0) - 1).astype(np.int32),
            self.missing_left[a:b],
            self.gain[a:b],
            self.value[a:b],
            self.weight[a:b],
            self.sets[used],
        )

    @cached_property
    def depth(self) -> Ints:
        """Depth of every node, 0 at the roots."""
        depth = np.zeros(len(self.feature), np.int64)
        front = self.first[:-1]
        while len(front):
            inner = front[self.left[front] >= 0]
            children = self.left[inner].astype(np.int64)
            depth[children] = depth[children + 1] = depth[inner] + 1
            front = np.concatenate([children, children + 1])
        return depth

    @cached_property
    def _packed(self) -> tuple[Any, Any, Any, Any, Any]:
        """What the kernel walks: roots, which trees have no categorical split, nodes, the sets."""
        is_set = self.category_set >= 0
        nodes = pack_nodes(self.feature, self.cut, self.left, is_set, self.missing_left)
        plain = ~np.logical_or.reduceat(is_set, self.first[:-1])
        sets = np.ascontiguousarray(self.sets)
        return self.first[:-1].astype(np.uint32), plain.astype(np.uint32), nodes, self.category_set, sets

    @cached_property
    def used_features(self) -> Ints:
        """Features that some split uses."""
        return np.unique(self.feature[self.feature >= 0]).astype(np.int64)

    def _leaves(self, codes: Codes) -> Iterator[tuple[int, NDArray[np.uint32]]]:
        """Leaf of every row in some of the trees, shape (trees, n), and the number of the first of them."""
        roots, plain, *table = self._packed
        for first in range(0, self.n_trees, _TREES):
            some = slice(first, first + _TREES)
            yield first, find_leaves(codes, roots[some], plain[some], *table)

    def leaves(self, codes: Codes) -> NDArray[np.uint32]:
        """Leaf of every row in every tree, shape (n_trees, n), from codes for prediction."""
        leaf: NDArray[np.uint32] = find_leaves(codes, *self._packed)
        return leaf

    def _encoded(self, bins: Bins, X: Floats, span: slice) -> Iterator[tuple[slice, Codes]]:
        """Codes of a span of rows, a block after the other."""
        size = block_size(bins.n_features)
        for start in range(span.start, span.stop, size):
            rows = slice(start, min(start + size, span.stop))
            yield rows, bins.encode_rows(X[rows], self.used_features)

    def add_up(self, bins: Bins, X: Floats, values: Floats, out: Floats) -> None:
        """Add to each row of ``out``, tree after tree, the row of ``values`` (one per node) of its leaf."""
        size = block_size(bins.n_features)
        for rows in pieces(len(X)):
            add_up(as_floats(X[rows]), *bins.arrays, self.used_features, *self._packed, values, size, out[rows])

    def respond(self, bins: Bins, X: Floats, n_jobs: int | None = None) -> Floats:
        """Mean over the trees of the responses, control first: shape (n, 1 + K)."""
        out = np.zeros((len(X), self.value.shape[1]))

        def fill(rows: slice) -> None:
            self.add_up(bins, X[rows], self.value, out[rows])
            out[rows] /= self.n_trees

        share_rows(fill, len(X), n_jobs)
        return out

    def effects(self, bins: Bins, X: Floats, n_jobs: int | None = None) -> Floats:
        """The arms' responses less that of control: shape (n, K)."""
        out = np.empty((len(X), self.value.shape[1] - 1))

        def fill(rows: slice) -> None:
            response = self.respond(bins, X[rows])
            np.subtract(response[:, 1:], response[:, :1], out=out[rows])

        share_rows(fill, len(X), n_jobs)
        return out

    def opinions(self, how: Opinion) -> Floats:
        """What every node says: its effects, or 1 for the arm with the largest response; shape (n_nodes, K)."""
        if how == "score":
            return self.value[:, 1:] - self.value[:, :1]
        return votes_for(self.value.argmax(axis=1), self.value.shape[1] - 1)

    def apply(self, bins: Bins, X: Floats, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Leaf of every row in every tree, counted from the tree's root: shape (n, n_trees)."""
        out = np.empty((len(X), self.n_trees), np.int32)

        def write(span: slice) -> None:
            for rows, codes in self._encoded(bins, X, span):
                for first, leaf in self._leaves(codes):
                    trees = slice(first, first + len(leaf))
                    out[rows, trees] = leaf.T - self.first[trees]

        share_rows(write, len(X), n_jobs)
        return out

    def moments(
        self, bins: Bins, X: Floats, group_size: int, n_jobs: int | None = None
    ) -> tuple[Floats, Floats, Floats]:
        """Mean effect, variance of group means and variance of trees, each of shape (n, K)."""
        return self._moments(len(X), lambda span: self._encoded(bins, X, span), group_size, n_jobs)

    def moments_of(self, codes: Codes, group_size: int, n_jobs: int | None = None) -> tuple[Floats, Floats, Floats]:
        """The same from codes for prediction."""
        return self._moments(len(codes), lambda span: iter([(span, codes[span])]), group_size, n_jobs)

    def _moments(
        self,
        n: int,
        encoded: Callable[[slice], Iterator[tuple[slice, Codes]]],
        group_size: int,
        n_jobs: int | None,
    ) -> tuple[Floats, Floats, Floats]:
        n_effects = self.value.shape[1] - 1
        mean, between, total = (np.zeros((n, n_effects)) for _ in range(3))

        def add(span: slice) -> None:
            for rows, codes in encoded(span):
                group = np.zeros((len(codes), n_effects))
                for first, leaf in self._leaves(codes):
                    group_moments(leaf, self.value, first, group_size, group, mean[rows], between[rows], total[rows])

        share_rows(add, n, n_jobs)
        n_groups = self.n_trees // group_size
        mean /= n_groups
        return mean, between / n_groups - mean**2, total / (n_groups * group_size) - mean**2

    def importances(self, n_features: int) -> Floats:
        """Gain that each feature brought, weighted by the nodes' shares of their trees' rows; mean over the trees."""
        rows = self.weight.sum(axis=1)
        share = rows / np.repeat(rows[self.first[:-1]], np.diff(self.first))
        split = self.feature >= 0
        gains = np.maximum(self.gain[split], 0.0) * share[split]
        return np.bincount(self.feature[split], gains, n_features) / self.n_trees

    def get_state(self) -> dict[str, Any]:
        """Arrays for the saved form."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_state(cls, state: dict[str, Any], bins: Bins, n_responses: int) -> Nodes:
        """Rebuild a table from a saved form, checking everything a kernel relies on."""
        kinds = ("<i8", "<i4", "<i4", "<i4", "<i4", "|b1", "<f8", "<f8", "<f8", "<u8")
        names = list(cls.__dataclass_fields__)
        if set(state) != set(names) or any(
            state[name].dtype.str != kind for name, kind in zip(names, kinds, strict=True)
        ):
            raise ValueError("the node table lacks a column or has one of a wrong type")
        nodes = cls(*(np.ascontiguousarray(state[name]) for name in names))
        n = len(nodes.feature)
        shapes = [getattr(nodes, name).shape for name in names[1:-1]]
        if shapes != [(n,)] * 6 + [(n, n_responses)] * 2 or nodes.sets.shape[1:] != (4,) or nodes.first.ndim != 1:
            raise ValueError("the columns of the node table do not fit together")
        first = nodes.first
        # Compared, not subtracted: a difference can wrap around.
        if len(first) < 2 or first[0] != 0 or first[-1] != n or (first[1:] <= first[:-1]).any():
            raise ValueError("the trees do not tile the node table")
        leaf, at = nodes.is_leaf, np.arange(n)
        end = np.repeat(first[1:], np.diff(first))
        split, is_set = ~leaf, nodes.category_set >= 0
        left = nodes.left[split].astype(np.int64)  # adding 1 must not wrap around
        sound = (
            (left > at[split]).all()
            and (left + 1 < end[split]).all()
            and len(np.unique([left, left + 1])) == 2 * len(left)
            and (nodes.feature[leaf] == -1).all()
            and not is_set[leaf].any()
            and ((nodes.feature[split] >= 0) & (nodes.feature[split] < min(bins.n_features, MOST_FEATURES))).all()
            and (nodes.category_set < len(nodes.sets)).all()
            and ((nodes.cut >= 0) & (nodes.cut <= 255)).all()
            and (nodes.missing_left | leaf | is_set | (nodes.cut >= 1)).all()
            and (~nodes.missing_left | leaf | is_set | (nodes.cut <= 254)).all()
            and np.isfinite(nodes.gain).all()
            and np.isfinite(nodes.value).all()
            and np.isfinite(nodes.weight).all()
        )
        if not sound:
            raise ValueError("the node table has a link or a number out of range")
        return nodes


def block_size(n_features: int) -> int:
    """Rows whose codes are in memory at a time; a multiple of eight."""
    return int(np.clip(_CODES // (2 * n_features), 64, 2048)) // 8 * 8


def share_rows(function: Callable[[slice], None], n: int, n_jobs: int | None) -> None:
    """Call a function on spans of rows, in threads. No result depends on the spans: rows have nothing in common."""
    size = min(max(-(-n // (_TASKS * count_threads(n_jobs))), _LEAST_ROWS), _MOST_ROWS)
    run_parallel(function, [slice(start, min(start + size, n)) for start in range(0, n, size)], n_jobs=n_jobs)
