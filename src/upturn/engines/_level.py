"""What a part answers while trees grow: histograms of a level's nodes, sums of rows held out, rows of small nodes.

A row's place in a tree follows from its codes and the splits so far, so a part can answer any question by itself. The order of its rows by node is
kept from one level to the next, which saves the time to find it again; it may be lost at any moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Ints
from upturn.engines._parts import Part
from upturn.kernels.histogram import CELLS, Layout, Rows, build, empty_rows, seen, sum_rows
from upturn.kernels.partition import partition
from upturn.kernels.sampling import ESTIMATE, GROW
from upturn.trees._growth import NO_ROWS, layout_with, rows_of
from upturn.trees._samples import Answers


class Split(NamedTuple):
    """A node's split: its number, feature, and a bit for each code that goes left. The children of the k-th split are nodes 2 k + 1 and 2 k + 2."""

    node: int
    feature: int
    left: bytes

    @property
    def goes_left(self) -> NDArray[np.uint8]:
        """1 for every code that goes left."""
        return np.unpackbits(np.frombuffer(self.left, np.uint8), bitorder="little")


class Wanted(NamedTuple):
    """What a driver asks of the nodes of one tree: histograms of features, plain sums, sums of rows held out, and the rows themselves."""

    tree: int
    splits: tuple[Split, ...]
    histograms: tuple[tuple[int, Ints], ...] = ()  # node, features
    sums: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()


class Gathered(NamedTuple):
    """Rows of a node with all their codes: those it is grown on, and those held out."""

    codes: NDArray[np.uint8]  # (p, m)
    words: Ints
    arm: NDArray[np.uint8]
    held_codes: NDArray[np.uint8]
    held_words: Ints
    held_arm: NDArray[np.uint8]


class Told(NamedTuple):
    """The answer for one tree, in the order of what was wanted."""

    cells: Ints
    sums: Ints  # (nodes, 2 arms)
    held: Ints
    counts: Ints  # rows of each node
    rows: list[Gathered]


@dataclass(frozen=True)
class LevelQuestion:
    """One pass over the rows: what several trees want to know."""

    batch: Any  # which trees are on their way: what is kept of others is forgotten
    draws: dict[int, Answers]
    wanted: tuple[Wanted, ...]
    n_arms: int
    layout: Layout
    honest: bool

    def __call__(self, part: Part) -> list[Told]:
        if part.kept.get("batch") != self.batch:
            part.kept.clear()
            part.kept["batch"] = self.batch
        orders = [self._order(part, one) for one in self.wanted]
        spare = empty_rows(max((order.most for order in orders), default=0), layout_with(self.layout, self._copied))
        return [self._answer(part, *both, spare) for both in zip(self.wanted, orders, strict=True)]

    @property
    def _copied(self) -> bool:
        """Whether rows are drawn with copies."""
        return any(draws.plan.bootstrap for draws in self.draws.values())

    def _order(self, part: Part, wanted: Wanted) -> _Order:
        """A tree's rows by node, from the last time if they are still there."""
        order: _Order | None = part.kept.get(wanted.tree)
        if order is None or order.done > len(wanted.splits):
            order = part.kept[wanted.tree] = _start(part, self.draws[wanted.tree], self.layout, self.honest)
        return order

    def _answer(self, part: Part, wanted: Wanted, order: _Order, spare: Rows) -> Told:
        order.advance(part.codes, wanted.splits, spare)
        size = self.n_arms * CELLS * self.layout.n_words
        cells = np.empty(sum(len(features) for _, features in wanted.histograms) * size, np.int64)
        at, codes, stride = 0, _flat(part.codes), part.codes.shape[1]
        for node, features in wanted.histograms:
            room = len(features) * size
            start, stop = order.ranges[node]
            mine = cells[at : at + room]
            build(codes, stride, features, seen(order.rows), start, stop, order.layout, self.n_arms, mine)
            at += room
        return Told(
            cells,
            order.sums(order.rows, order.ranges, wanted.sums, self.n_arms),
            order.sums(order.held, order.held_ranges, wanted.held, self.n_arms),
            np.array([order.ranges[node][1] - order.ranges[node][0] for node in wanted.counts], np.int64),
            [order.gather(part.codes, node) for node in wanted.rows],
        )


def _flat(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    flat = codes.reshape(-1).view()
    flat.flags.writeable = False
    return flat


@dataclass
class _Order:
    """A tree's rows in the order of its nodes: each node is a range of them."""

    rows: Rows
    held: Rows
    layout: Layout
    ranges: list[tuple[int, int]] = field(default_factory=list)
    held_ranges: list[tuple[int, int]] = field(default_factory=list)
    done: int = 0  # splits

    @property
    def most(self) -> int:
        """Rows of the larger of both kinds."""
        return max(len(self.rows.arm), len(self.held.arm))  # type: ignore[arg-type]

    def advance(self, codes: NDArray[np.uint8], splits: Sequence[Split], spare: Rows) -> None:
        """Divide the rows by splits that are new; ``spare`` is room for as many."""
        flat, stride = _flat(codes), codes.shape[1]
        for split in splits[self.done :]:
            goes_left = split.goes_left
            for rows, ranges in ((self.rows, self.ranges), (self.held, self.held_ranges)):
                start, stop = ranges[split.node]
                border = start
                if stop > start:
                    border = partition(flat, stride, split.feature, goes_left, rows, start, stop, self.layout, spare)
                ranges += [(start, border), (border, stop)]
        self.done = len(splits)

    def sums(self, rows: Rows, ranges: list[tuple[int, int]], nodes: Sequence[int], n_arms: int) -> Ints:
        out = np.zeros((len(nodes), 2 * n_arms), np.int64)
        for i, node in enumerate(nodes):
            sum_rows(seen(rows), *ranges[node], self.layout, out[i])
        return out

    def gather(self, codes: NDArray[np.uint8], node: int) -> Gathered:
        return Gathered(*_take(codes, self.rows, *self.ranges[node]), *_take(codes, self.held, *self.held_ranges[node]))


def _take(codes: NDArray[np.uint8], rows: Rows, start: int, stop: int) -> tuple[Any, Any, Any]:
    index: Any = rows.index
    words: Any = rows.word
    arm: Any = rows.arm
    wide = len(words) // len(index) if len(index) else 1
    return codes[:, index[start:stop]], words[wide * start : wide * stop].copy(), arm[start:stop].copy()


def _start(part: Part, draws: Answers, layout: Layout, honest: bool) -> _Order:
    """All rows of a tree at its root."""
    role, copies = draws.roles(part.lot)
    drawn = (part.words, part.lot.arm, layout)
    rows = rows_of(role, copies, GROW, *drawn)
    held = rows_of(role, copies, ESTIMATE, *drawn) if honest else NO_ROWS
    own = layout_with(layout, draws.plan.bootstrap)
    n, n_held = len(rows.arm), len(held.arm)  # type: ignore[arg-type]
    return _Order(rows, held, own, [(0, n)], [(0, n_held)])


def merge_told(parts: Sequence[list[Told]]) -> list[Told]:
    """What all parts say together."""
    out = []
    for told in zip(*parts, strict=True):
        cells, sums, held, counts = (_sum_up([getattr(one, name) for one in told]) for name in Told._fields[:4])
        rows = [_join(nodes) for nodes in zip(*(one.rows for one in told), strict=True)]
        out.append(Told(cells, sums, held, counts, rows))
    return out


def _sum_up(arrays: Sequence[Ints]) -> Ints:
    total = arrays[0].copy()
    for one in arrays[1:]:
        total += one
    return total


def _join(parts: Sequence[Gathered]) -> Gathered:
    columns = zip(*parts, strict=True)
    return Gathered(*(np.concatenate(column, axis=-1) for column in columns))


def look_at_draws(draws: Sequence[Answers], part: Part) -> list[Any]:
    """What a part has to say to the open questions of several trees' draws."""
    return [one.look(part.lot) for one in draws]
