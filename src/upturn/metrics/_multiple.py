"""Several tests at once."""

from __future__ import annotations

import numpy as np

from upturn._arrays import Floats


def holm(p: Floats) -> Floats:
    """P-values adjusted by Holm's step-down rule: the j-th smallest of m times (m - j + 1), never falling. NaN stays."""
    adjusted = np.full(len(p), np.nan)
    order = np.argsort(p, kind="stable")[: int((~np.isnan(p)).sum())]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
