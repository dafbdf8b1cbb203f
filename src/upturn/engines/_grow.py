"""The driver: trees grown from histograms that parts of the rows add up, a level of several trees at a time; or whole, by processes that each hold a copy of all rows.

It takes the grower's own stages (``kernels.splitting``) and gives the grower's own table of nodes: sums are integers, so it does not matter where
they were added up. A node so small that its rows are fewer bytes than the histograms below it is gathered, and the grower finishes it.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from upturn._arrays import Floats, Ints
from upturn._parallel import progress, run_parallel
from upturn.engines._copies import TreesQuestion, Uncopied, join, take
from upturn.engines._level import Gathered, LevelQuestion, Split, Told, Wanted, look_at_draws, merge_told
from upturn.engines._parts import Far
from upturn.engines._places import AnyOrder
from upturn.kernels import growing, sampling
from upturn.kernels.criteria import Rules
from upturn.kernels.growing import child_key
from upturn.kernels.histogram import CELLS, Rows
from upturn.kernels.sampling import NODE
from upturn.kernels.splitting import best_split, features_of, make_search, read_means
from upturn.trees._growth import Soil, binned_by, layout_with, to_nodes
from upturn.trees._nodes import Nodes
from upturn.trees._samples import Answers, Sampling

MOST_GATHERED = 50_000  # rows of a node that travel to the driver
MOST_COPIED = 2**30  # bytes of a copy of all rows
_HISTOGRAMS = 256 * 2**20  # bytes of histograms of one pass, from each part
_ORDERS = 2 * 2**30  # bytes of rows in the order of nodes that the parts on one machine keep
_MOST_TREES = 32  # of one pass
_NO_CELLS = np.empty(0, np.int64)


def grow_trees(
    far: Far,
    rules: Rules,
    plan: Sampling,
    seed: np.uint64,
    n_trees: int,
    n_jobs: int | None,
    verbose: int = 0,
) -> list[Nodes]:
    """Trees 0 … n_trees - 1 of a forest, the same to the last bit as those of ``Soil.grow``."""
    if (soil := far.soil) is not None:
        return run_parallel(
            lambda tree: soil.grow(rules, plan, seed, tree),
            range(n_trees),
            n_jobs=n_jobs,
            verbose=verbose,
            description="trees",
        )
    if (on_copies := _grow_on_copies(far, rules, plan, seed, n_trees, verbose)) is not None:
        return on_copies
    n_batch = _batch(far, rules, plan, n_trees)
    grown: list[Nodes] = []
    for first in progress(range(0, n_trees, n_batch), verbose, f"batches of up to {n_batch} trees"):
        numbers = range(first, min(first + n_batch, n_trees))
        draws = draw_samples(far, plan, seed, numbers)
        trees = [_Tree(far, rules, plan, seed, number) for number in numbers]
        while any(tree.front for tree in trees):
            open_trees = [tree for tree in trees if tree.front]
            asked = tuple(tree.wanted() for tree in open_trees)
            some = {tree.number: draws[tree.number] for tree in open_trees}
            question = LevelQuestion(
                (int(seed), first, far.token), some, asked, len(far.rows), far.layout, rules.honest
            )
            told = far.places.ask(question, AnyOrder(merge_told))
            run_parallel(lambda pair: pair[0].hear(pair[1]), list(zip(open_trees, told, strict=True)), n_jobs=n_jobs)
        grown += [tree.assemble() for tree in trees]
    return grown


def _grow_on_copies(
    far: Far, rules: Rules, plan: Sampling, seed: np.uint64, n_trees: int, verbose: int
) -> list[Nodes] | None:
    """Trees 0 … n_trees - 1, if the engine knows processes that can hold a copy each; threads take turns, tree by tree.

    An engine that knows says so by two more verbs: ``copies(n_bytes, a_tree)``, the threads of every process that can hold so many bytes more, and so many
    for each thread that grows a tree; and ``together(take, join, n)``, places with what is joined of what is taken of all states. It tells by ``Uncopied``
    if it cannot, after all.
    """
    n_bytes = len(far) * (far.bins.n_features + 9 + 8 * far.layout.n_words)
    seen = len(far) * min(plan.share, 1.0)
    a_tree = int(
        len(far) + seen * (18 + 8 * far.layout.n_words) + min(seen * far.bins.n_features, growing.FAR_BLOCK_BYTES)
    )
    known = getattr(far.places, "copies", None)
    threads: list[int] = known(n_bytes, a_tree) if known is not None and n_bytes <= MOST_COPIED else []
    turns = [k for k, own in enumerate(threads) for _ in range(own)]
    if not 0 < len(turns) <= n_trees:
        return None
    nothing = np.empty((0, 0), np.uint8), np.empty(0, np.uint8), np.empty(0, np.int64)
    bare = Soil(far.bins, *nothing[:2], far.rows, far.size, far.mean, nothing[2], far.layout)
    grown: list[Nodes] = []
    try:
        everywhere = far.places.together(take, partial(join, bare, threads), len(threads))  # type: ignore[attr-defined]
        at_once = max(int(everywhere.ROUND // max(len(far), 1)), 1) * len(turns)
        for first in progress(range(0, n_trees, at_once), verbose, f"rounds of up to {at_once} trees"):
            numbers = range(first, min(first + at_once, n_trees))
            each = [[tree for i, tree in enumerate(numbers) if turns[i % len(turns)] == k] for k in range(len(threads))]
            answers = everywhere.ask(TreesQuestion(rules, plan, seed, each))
            found = dict(pair for own in answers for pair in own)
            grown += [found[tree] for tree in numbers]
    except Uncopied:
        return None
    return grown


def _batch(far: Far, rules: Rules, plan: Sampling, n_trees: int) -> int:
    """Trees of one pass: as many as their histograms and rows allow."""
    size = len(far.rows) * CELLS * far.layout.n_words * 8
    widest = 2 ** min(max(rules.max_depth - 1, 0), 10)
    histograms = widest * min(rules.max_features, far.bins.n_features) * size // (2 if rules.subtraction else 1)
    most = int(np.clip(_HISTOGRAMS // max(histograms, 1), 1, min(_MOST_TREES, n_trees)))
    orders = len(far) * min(plan.share, 1.0) * (5 + 8 * far.layout.n_words)
    if most * orders <= _ORDERS:
        return most
    machines = len(set(far.places.ask(_machine)))
    return int(np.clip(machines * _ORDERS / orders, 1, most))


def _machine(_: Any) -> str:
    """The machine that a part is on."""
    return platform.node()


def draw_samples(far: Far, plan: Sampling, seed: np.uint64, numbers: Sequence[int]) -> dict[int, Answers]:
    """The samples of several trees: every open question is asked of all parts, for some of the trees at once."""
    draws = {number: Answers(far.rows, plan, seed, number) for number in numbers}
    while waiting := [one for one in draws.values() if not one.complete][:_MOST_TREES]:
        found = far.places.ask(partial(look_at_draws, waiting))
        for i, one in enumerate(waiting):
            draws[one.tree] = one.tell([part[i] for part in found])
    return draws


@dataclass(eq=False)
class _Node:
    """A node on its way: what comes from above, what parts said, and what became of it."""

    depth: int
    key: np.uint64
    value_above: Floats
    own_above: Floats
    sums: Ints | None
    weight_guess: float  # rows, as far as weights tell
    at: int = -1  # its number in the parts; -1 if they do not know it
    how: str = "leaf"  # "search", "derive" (from its sibling and the node above), "gather"
    features: Ints | None = None
    cells: Ints = field(default_factory=lambda: _NO_CELLS)
    held: Ints | None = None
    rows: int = 0
    above: _Node | None = None
    sibling: _Node | None = None
    value: Floats | None = None
    weight: Floats | None = None
    own: Floats | None = None
    gain: float = 0.0
    split: tuple[int, int, int, Any] | None = None  # feature, cut, whether it is a set, codes that go left
    children: tuple[_Node, _Node] | None = None
    table: Any = None  # of a node that the grower finished


class _Tree:
    """A tree on its way: ``wanted`` says what parts should be asked, ``hear`` goes one level on."""

    def __init__(self, far: Far, rules: Rules, plan: Sampling, seed: np.uint64, number: int) -> None:
        self.far, self.rules, self.number = far, rules, number
        self.layout = layout_with(far.layout, plan.bootstrap)
        self.n_arms, self.n_features = len(far.rows), far.bins.n_features
        self.search = make_search(self.n_arms, self.n_features)
        self.splits: list[Split] = []
        self.size = self.n_arms * CELLS * self.layout.n_words
        key = np.uint64(sampling.purpose_key(seed, NODE, np.uint64(number)))
        self.root = _Node(0, key, far.mean, far.mean, None, len(far) * plan.share, at=0)
        self._plan(self.root)
        self.front = [self.root]

    # --------------------------------------------------------------------------------------- asking

    def _plan(self, node: _Node) -> None:
        """Decide how a node that may be split is looked at."""
        wanted = int(features_of(node.key, self.rules, self.search))
        left = 2.0 ** min(self.rules.max_depth - node.depth, 30) - 1.0
        row = self.n_features + 1 + 8 * self.layout.n_words
        histograms = self.far.n_places * wanted * self.size * 8 * min(left, node.weight_guess / 16 + 1)
        few = node.weight_guess <= MOST_GATHERED and node.weight_guess * row <= histograms
        node.how = "gather" if few else "search"
        node.features = np.arange(self.n_features) if self.rules.subtraction else self.search.order[:wanted].copy()

    def wanted(self) -> Wanted:
        """What the tree wants to know in this pass."""
        front = self.front
        held = tuple(node.at for node in front if self.rules.honest and node.how != "gather" and node.held is None)
        return Wanted(
            self.number,
            tuple(self.splits),
            tuple((node.at, node.features) for node in front if node.how == "search" and node.features is not None),
            tuple(node.at for node in front if node.sums is None and node.how != "gather"),
            held,
            tuple(node.at for node in front if node.how in ("search", "derive")),
            tuple(node.at for node in front if node.how == "gather"),
        )

    # --------------------------------------------------------------------------------------- hearing

    def hear(self, told: Told) -> None:
        """Take the answers of all parts, split what can be split, and see what is wanted next."""
        front, self.front = self.front, []
        self._take(front, told)
        for node in front:
            if node.how == "derive":
                assert node.above is not None
                assert node.sibling is not None
                node.cells = node.above.cells - node.sibling.cells
        for node in front:
            node.sibling = None
            if node.above is not None and node.how != "gather":
                node.above.cells = _NO_CELLS
            node.above = None
            if node.how != "gather":
                self._split(node)

    def _take(self, front: Sequence[_Node], told: Told) -> None:
        """Give every node its part of the answers, in the order they were asked for."""
        at, sums, held = 0, iter(told.sums), iter(told.held)
        counts, rows = iter(told.counts), iter(told.rows)
        for node in front:
            if node.how == "search":
                assert node.features is not None
                room = len(node.features) * self.size
                node.cells = told.cells[at : at + room]
                at += room
            if node.how == "gather":
                self._finish(node, next(rows))
                continue
            if node.sums is None:
                node.sums = next(sums)
            if self.rules.honest and node.held is None:
                node.held = next(held)
            if node.how in ("search", "derive"):
                node.rows = int(next(counts))

    def _split(self, node: _Node) -> None:
        """Describe a node, find its split, and make its children."""
        search, rules, bins = self.search, self.rules, self.far.bins
        assert node.sums is not None
        apart = rules.honest or rules.plain_leaves
        if apart:
            search.node.mean[:] = node.value_above
            read_means(node.held if rules.honest else node.sums, rules, self.layout, search.node)
            node.value, node.weight = search.node.mean.copy(), search.node.weight.copy()
        search.node.mean[:] = node.own_above
        place = np.full(self.n_features, -1)
        if node.how != "leaf" and node.features is not None:
            place[node.features] = np.arange(len(node.features))
        whole = best_split(
            node.key,
            node.depth,
            node.sums,
            node.cells,
            place,
            bins.n_codes,
            bins.categorical,
            rules,
            self.layout,
            search,
        )
        if node.how != "leaf" and not whole and node.rows > 1:  # no drawn feature can be cut: look at all of them
            node.how, node.features = "search", np.arange(self.n_features)
            self.front.append(node)
            return
        node.own = search.node.mean.copy()
        if not apart:
            node.value, node.weight = node.own, search.node.weight.copy()
        feature, cut, is_set, _ = search.best.place.tolist()
        if node.how == "leaf" or feature < 0 or node.rows <= 1:
            node.cells = _NO_CELLS
            return
        node.gain, node.split = float(search.best.gain[0]), (feature, cut, is_set, search.best.goes_left.copy())
        self._make_children(node, np.concatenate([search.best.weight, search.best.total]))

    def _make_children(self, node: _Node, left_sums: Ints) -> None:
        assert node.sums is not None
        assert node.split is not None
        made = []
        whole = float(node.sums[: self.n_arms].sum())
        for side, sums in ((True, left_sums), (False, node.sums - left_sums)):
            share = float(sums[: self.n_arms].sum()) / whole
            key = np.uint64(child_key(node.key, side))
            child = _Node(node.depth + 1, key, node.value, node.own, sums, node.rows * share)  # type: ignore[arg-type]
            heavy = (sums[: self.n_arms] * self.layout.weight_unit >= self.rules.min_split).any()
            if heavy and child.depth < self.rules.max_depth:
                self._plan(child)
            made.append(child)
        node.children = (made[0], made[1])
        if self.rules.honest or any(child.how != "leaf" for child in made):
            left = np.packbits(node.split[3], bitorder="little").tobytes()
            made[0].at, made[1].at = 2 * len(self.splits) + 1, 2 * len(self.splits) + 2
            self.splits.append(Split(node.at, node.split[0], left))
        if self.rules.subtraction and all(child.how == "search" for child in made):
            small, large = sorted(made, key=lambda child: child.weight_guess)
            large.how, large.above, large.sibling = "derive", node, small
        else:
            node.cells = _NO_CELLS
        for child in made:
            if child.how == "leaf" and not self.rules.honest:
                self._split(child)
            else:
                self.front.append(child)

    def _finish(self, node: _Node, rows: Gathered) -> None:
        """Grow a node to the end from its rows."""
        n, n_held = len(rows.arm), len(rows.held_arm)
        codes = np.concatenate([rows.codes, rows.held_codes], axis=1)
        mine = Rows(np.arange(n, dtype=np.uint32), rows.words, rows.arm)
        held = Rows(np.arange(n, n + n_held, dtype=np.uint32), rows.held_words, rows.held_arm)
        binned = binned_by(self.far.bins, codes.reshape(-1), codes.shape[1], self.rules)
        above = np.concatenate([node.value_above, node.own_above])
        grown = growing.grow(node.key, node.depth, above, mine, held, binned, self.rules, self.layout)
        node.rows, node.table = n, grown

    # --------------------------------------------------------------------------------------- the table

    def assemble(self) -> Nodes:
        """The tree as the grower would have written it: depth first, the child of fewer rows before its sibling."""
        width = 1 + 3 * self.n_arms
        n = _count(self.root)
        links, numbers = np.full((n, growing.LINKS), -1, np.int32), np.zeros((n, width))
        sets: list[Any] = []
        n_nodes, stack = 1, [(self.root, 0)]
        while stack:
            node, me = stack.pop()
            if node.table is not None:
                n_below, below, own, n_sets, own_sets = node.table
                shift = n_nodes - 1
                rows = np.concatenate([[me], np.arange(n_nodes, n_nodes + n_below - 1)])
                part = below[:n_below].copy()
                column = part[:, growing.LEFT_CHILD]
                part[:, growing.LEFT_CHILD] = np.where(column < 0, -1, column + shift)
                column = part[:, growing.CATEGORY_SET]
                part[:, growing.CATEGORY_SET] = np.where(column < 0, -1, column + len(sets))
                links[rows], numbers[rows] = part, own[:n_below]
                sets += list(own_sets[:n_sets])
                n_nodes += n_below - 1
                continue
            numbers[me, 0], numbers[me, 1 : 1 + self.n_arms] = node.gain, node.value
            numbers[me, 1 + self.n_arms : 1 + 2 * self.n_arms] = node.weight
            links[me, growing.CUT], links[me, growing.MISSING_LEFT] = 0, 0
            if node.split is None or node.children is None:
                continue
            feature, cut, is_set, goes_left = node.split
            links[me, growing.FEATURE_COLUMN], links[me, growing.CUT] = feature, cut
            links[me, growing.LEFT_CHILD], links[me, growing.MISSING_LEFT] = n_nodes, goes_left[0]
            if is_set:
                links[me, growing.CATEGORY_SET] = len(sets)
                sets.append(np.packbits(goes_left, bitorder="little").view("<i8"))
            left, right = (node.children[0], n_nodes), (node.children[1], n_nodes + 1)
            n_nodes += 2
            smaller_left = node.children[0].rows <= node.children[1].rows
            stack += [right, left] if smaller_left else [left, right]
        table = np.array(sets, np.int64).reshape(-1, 4)
        return to_nodes((n, links, numbers, len(table), table), self.n_arms)


def _count(root: _Node) -> int:
    """Nodes of a tree."""
    n, stack = 0, [root]
    while stack:
        node = stack.pop()
        if node.table is not None:
            n += int(node.table[0])
            continue
        n += 1
        stack += node.children or ()
    return n
