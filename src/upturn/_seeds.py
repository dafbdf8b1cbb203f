"""Seeds: whatever people pass as ``random_state``, as one 64-bit number."""

from __future__ import annotations

from typing import Any

import numpy as np


def make_seed(random_state: Any) -> np.uint64:
    """A 64-bit seed from None, an int, a ``RandomState`` or a ``Generator``; only the last two are advanced."""
    if random_state is None:
        return np.uint64(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, np.random.Generator):
        return np.uint64(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return np.uint64(random_state.randint(2**63 - 1, dtype=np.int64))
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0:
        return np.uint64(int(random_state) & 0xFFFFFFFFFFFFFFFF)
    raise ValueError(
        f"random_state={random_state!r}: expected None, an integer of 0 or more, a RandomState or a Generator"
    )
