"""Whole trees, grown by processes that each have all rows: codes and words are few bytes, and no tree waits for what others of its level are told.

So long as every process can hold a copy, and there are trees enough for all. Beyond that trees are grown from what parts count (``_grow``): the same trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from upturn._arrays import Ints
from upturn._parallel import progress, run_parallel
from upturn.engines._parts import Far, Part
from upturn.engines._places import Weighed
from upturn.kernels.criteria import Rules
from upturn.kernels.sampling import NO_IDS
from upturn.trees._bins import Codes
from upturn.trees._growth import Soil
from upturn.trees._nodes import Nodes
from upturn.trees._samples import Lot, Sampling

MOST = 2**30  # bytes of a copy


class _Rows(NamedTuple):
    """What is copied of a part."""

    codes: Codes
    words: Ints
    lot: Lot


@dataclass
class _Copy(Weighed):
    """All rows, in the process with number ``k``, which may use so many threads."""

    k: int
    threads: int
    soil: Soil


def grow_on_copies(
    far: Far, rules: Rules, plan: Sampling, seed: np.uint64, n_trees: int, verbose: int
) -> list[Nodes] | None:
    """Trees 0 … n_trees - 1, if the engine knows processes that can hold a copy each; threads take turns, tree by tree."""
    n_bytes = len(far) * (far.bins.n_features + 9 + 8 * far.layout.n_words)
    known = getattr(far.places, "copies", None)
    threads: list[int] = known(n_bytes) if known is not None and n_bytes <= MOST else []
    turns = [k for k, own in enumerate(threads) for _ in range(own)]
    if not 0 < len(turns) <= n_trees:
        return None
    bare = Soil(far.bins, _NO_CODES, _NO_ARMS, far.rows, far.size, far.mean, _NO_WORDS, far.layout)
    everywhere = far.places.together(_take, partial(_join, bare, threads), len(threads))  # type: ignore[attr-defined]
    at_once = max(int(everywhere.ROUND // max(len(far), 1)), 1) * len(turns)
    grown: list[Nodes] = []
    for first in progress(range(0, n_trees, at_once), verbose, f"rounds of up to {at_once} trees"):
        numbers = range(first, min(first + at_once, n_trees))
        each = [[tree for i, tree in enumerate(numbers) if turns[i % len(turns)] == k] for k in range(len(threads))]
        found = dict(pair for own in everywhere.ask(TreesQuestion(rules, plan, seed, each)) for pair in own)
        grown += [found[tree] for tree in numbers]
    return grown


_NO_CODES, _NO_ARMS, _NO_WORDS = np.empty((0, 0), np.uint8), np.empty(0, np.uint8), np.empty(0, np.int64)


# ------------------------------------------------------------------------------------------- what a process does


def _take(part: Part) -> _Rows:
    return _Rows(part.codes, part.words, part.lot)


def _join(bare: Soil, threads: Sequence[int], k: int, parts: Sequence[_Rows]) -> _Copy:
    """All rows, in the order of their parts."""
    lots = [part.lot for part in parts]
    before = np.cumsum([0, *(len(lot.arm) for lot in lots)])
    counted = all(not len(lot.ids) and lot.first == start for lot, start in zip(lots, before, strict=False))
    soil = replace(
        bare,
        codes=np.concatenate([part.codes for part in parts], axis=1),
        words=np.concatenate([part.words for part in parts]),
        arm=np.concatenate([lot.arm for lot in lots]),
        ids=NO_IDS if counted else np.concatenate([lot.numbers for lot in lots]),
    )
    return _Copy(k, threads[k], soil)


@dataclass(frozen=True)
class TreesQuestion:
    """Which trees each process grows."""

    rules: Rules
    plan: Sampling
    seed: np.uint64
    each: Sequence[Sequence[int]]

    def __call__(self, copy: _Copy) -> list[tuple[int, Nodes]]:
        def grow(tree: int) -> Nodes:
            return copy.soil.grow(self.rules, self.plan, self.seed, tree)

        mine = self.each[copy.k]
        return list(zip(mine, run_parallel(grow, mine, n_jobs=copy.threads), strict=True))
