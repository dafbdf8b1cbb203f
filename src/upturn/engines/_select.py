"""Order statistics of numbers that lie in several places: exact, by counting how many of them are no larger than some pivots.

Every round divides what may still be the answer by sixteen, so that 64 bits take at most sixteen questions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats, Ints
from upturn.engines._places import AnyOrder, Places

Keys = NDArray[np.uint64]
_WAYS = 16


def select(places: Places, read: Callable[[Any], Keys], ranks: Ints) -> Keys:
    """The numbers at ``ranks`` (from 0, ascending) of all those that ``read`` finds in the states."""
    ends: list[int] = places.ask(partial(_ends, read), AnyOrder(_merge_ends))
    low, high = np.full(len(ranks), ends[0], np.uint64), np.full(len(ranks), ends[1], np.uint64)
    while (low < high).any():
        span: Keys = high - low
        steps: Any = (span // np.uint64(_WAYS) + np.uint64(1))[:, None] * np.arange(_WAYS, dtype=np.uint64)
        pivots: Keys = low[:, None] + np.minimum(steps, span[:, None])
        where: Ints
        tried, where = np.unique(pivots, return_inverse=True)
        counts: Ints = places.ask(partial(_count, read, tried), AnyOrder(_add))
        enough = counts[where.reshape(pivots.shape)] > ranks[:, None]
        first = np.where(enough.any(axis=1), enough.argmax(axis=1), _WAYS)
        at = np.arange(len(ranks))
        below = pivots[at, np.maximum(first - 1, 0)]
        low = np.where(first > 0, np.minimum(below + np.uint64(1), high), low)
        high = np.where(first < _WAYS, pivots[at, np.minimum(first, _WAYS - 1)], high)
    return low


def keys_of(numbers: Floats) -> Keys:
    """Keys of numbers that are not negative, in their order."""
    return np.add(numbers, 0.0).view(np.uint64)


def numbers_of(keys: Keys) -> Floats:
    """The numbers of keys."""
    return keys.view(np.float64)


# ------------------------------------------------------------------------------------------- what a part answers


def _ends(read: Callable[[Any], Keys], part: Any) -> list[int]:
    keys = read(part)
    return [int(keys.min()), int(keys.max())] if len(keys) else [2**64 - 1, 0]


def _merge_ends(parts: Sequence[list[int]]) -> list[int]:
    low, high = zip(*parts, strict=True)
    return [min(low), max(high)]


def _count(read: Callable[[Any], Keys], pivots: Keys, part: Any) -> Ints:
    """How many keys are no larger than each of the pivots, which ascend."""
    place = np.searchsorted(pivots, read(part))
    return np.cumsum(np.bincount(place, minlength=len(pivots) + 1)[:-1])


def _add(parts: Sequence[Ints]) -> Ints:
    total: Ints = np.sum(parts, axis=0)
    return total
