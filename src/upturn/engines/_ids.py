"""Whether ids of rows are different, wherever the rows lie.

Two rows of one id would have the same part in every sample. Within a part ids are sorted and compared. Between parts, ids that lie close
together are marked in a map of bits; of others, a million travel, those with the smallest hashes: that is all of them if there are no more, and else finds
that ids repeat often, but not that a single one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from upturn.engines._places import Places
from upturn.kernels import sampling
from upturn.kernels.sampling import EDGES

MOST_BITS = 2**28  # of a map: 32 MiB
MOST_IDS = 2**20  # that travel
_KEY = np.uint64(sampling.purpose_key(np.uint64(0), EDGES, np.uint64(1)))


class WithIds(Protocol):
    """A part whose rows have ids."""

    @property
    def ids(self) -> NDArray[np.uint64]:
        """One for each row."""


class Ends(NamedTuple):
    """Smallest and largest id, and whether one repeats within a part."""

    low: int
    high: int
    repeated: bool


def check_ids(places: Places, n: int, name: str, ends: Ends | None = None) -> None:
    """Refuse ids that repeat among ``n`` rows; they are in a column of that ``name``, and ``ends`` may be known."""
    ends = places.ask(ends_of, merge_ends) if ends is None else ends
    span, repeated = ends.high - ends.low + 1, ends.repeated
    if not repeated and span <= MOST_BITS:
        marks: NDArray[np.uint8] = places.ask(partial(_marks, ends.low, span), _merge_marks)
        repeated = int.from_bytes(marks.tobytes(), "little").bit_count() < n
    elif not repeated:
        most = min(int(MOST_IDS / n * 2.0**64), 2**64 - 1)
        found = np.concatenate(places.ask(partial(_some_ids, most)))
        repeated = len(np.unique(found)) < len(found)
    if repeated:
        raise ValueError(
            f"row_id={name!r} has the same number in several rows: expected a number of its own for each row, by which samples are drawn; "
            "leave row_id out, and rows are numbered as they lie"
        )


# ------------------------------------------------------------------------------------------- what a part answers


def ends_of(part: WithIds) -> Ends:
    """What a part knows of its ids."""
    if not len(part.ids):
        return Ends(2**64, -1, False)
    ids = np.sort(part.ids)
    return Ends(int(ids[0]), int(ids[-1]), bool((ids[1:] == ids[:-1]).any()))


def merge_ends(parts: Sequence[Ends]) -> Ends:
    """What several know together."""
    low, high, repeated = zip(*parts, strict=True)
    return Ends(min(low), max(high), any(repeated))


def _marks(low: int, span: int, part: WithIds) -> NDArray[np.uint8]:
    """A bit for every id that could be, set for those that are."""
    marks = np.zeros(-(-span // 8), np.uint8)
    places = np.sort(part.ids - np.uint64(low)).astype(np.int64)
    if len(places):
        cells = places >> 3
        starts = np.flatnonzero(np.concatenate(([True], cells[1:] != cells[:-1])))
        marks[cells[starts]] = np.bitwise_or.reduceat(np.uint8(1) << (places & 7).astype(np.uint8), starts)
    return marks


def _merge_marks(parts: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    whole: NDArray[np.uint8] = np.bitwise_or.reduce(parts)
    return whole


def _some_ids(most: int, part: WithIds) -> NDArray[np.uint64]:
    """Ids whose hashes are up to a number: those that repeat are all among them, or none."""
    role, one = np.zeros(len(part.ids), np.uint8), np.ones(1, np.uint8)
    arm = np.zeros(len(part.ids), np.uint8)
    sampling.choose_up_to(_KEY, np.uint64(0), part.ids, arm, 0, 1, np.array([most], np.uint64), one, role)
    chosen: NDArray[np.uint64] = part.ids[role == 1]
    return chosen
