"""Copies of all rows, in processes that can hold one each: codes and words are few bytes, and no tree waits for what others of its level are told.

What a process does that grows whole trees; which trees, the driver says (``_grow``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from upturn._arrays import Ints
from upturn._parallel import run_parallel
from upturn.engines._parts import Part
from upturn.engines._places import Failure, Weighed, merged
from upturn.kernels.criteria import Rules
from upturn.kernels.sampling import NO_IDS
from upturn.trees._bins import Codes
from upturn.trees._growth import Soil
from upturn.trees._nodes import Nodes
from upturn.trees._samples import Lot, Sampling

HELD = 2  # copies, by a process that joins what it was told
WHERE = "on a copy of all rows"  # in errors


class Uncopied(Exception):
    """Some process cannot be told of all rows."""


class _Rows(NamedTuple):
    """What is copied of a part."""

    codes: Codes
    words: Ints
    lot: Lot


@dataclass
class Copy(Weighed):
    """All rows, in the process with number ``k``, which may use so many threads."""

    k: int
    threads: int
    soil: Soil


def take(part: Part) -> _Rows:
    """What a part tells of its rows."""
    return _Rows(part.codes, part.words, part.lot)


def join(bare: Soil, threads: Sequence[int], k: int, parts: Sequence[_Rows]) -> Copy:
    """All rows, in the order of their parts; ``bare`` is what all know of them."""
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
    return Copy(k, threads[k], soil)


def join_all(join: Callable[[int, list[Any]], Any], k: int, taken: Sequence[Any]) -> Any:
    """What process ``k`` joins; a failure, of this or of what was taken, is passed on."""
    try:
        return merged(partial(join, k), taken)
    except Exception as error:
        return Failure(k, type(error).__name__, str(error))


@dataclass(frozen=True)
class TreesQuestion:
    """Which trees each process grows."""

    rules: Rules
    plan: Sampling
    seed: np.uint64
    each: Sequence[Sequence[int]]

    def __call__(self, copy: Copy) -> list[tuple[int, Nodes]]:
        def grow(tree: int) -> Nodes:
            return copy.soil.grow(self.rules, self.plan, self.seed, tree)

        mine = self.each[copy.k]
        return list(zip(mine, run_parallel(grow, mine, n_jobs=copy.threads), strict=True))
