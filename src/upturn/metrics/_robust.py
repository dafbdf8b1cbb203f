"""Doubly robust values and effects of single rows, from plain arrays: the one place that has the formula's shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats
from upturn.kernels import robust


def robust_values(y: Floats, arm: NDArray[np.uint8], code: Any, response: Floats, chance: Floats) -> Floats:
    """Doubly robust reading of every row's outcome under arm ``code``, one for all or one for each row.

    ``response`` and ``chance`` have a column per arm, control first, and a row per row or one for all.
    """
    values = np.empty(len(y))
    codes = np.ascontiguousarray(np.atleast_1d(code), dtype=np.uint8)
    robust.robust_values(y, arm, codes, np.ascontiguousarray(response), np.ascontiguousarray(chance), values)
    return values


def robust_effects(y: Floats, arm: NDArray[np.uint8], response: Floats, chance: Floats) -> Floats:
    """Doubly robust effect of every arm on every row, a contiguous column per arm."""
    control = robust_values(y, arm, 0, response, chance)
    effects = np.empty((len(y), chance.shape[1] - 1), order="F")
    for k in range(effects.shape[1]):
        np.subtract(robust_values(y, arm, k + 1, response, chance), control, out=effects[:, k])
    return effects
