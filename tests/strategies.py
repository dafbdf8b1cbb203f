"""Hypothesis strategies for small experiments full of ties."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st


@st.composite
def experiments(draw, *, max_rows=30, integer=False, weights=True):
    """(y, score, arm, weight) with both arms present; scores from few values, so most are tied."""
    n = draw(st.integers(2, max_rows))
    arm = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    arm[:2] = [0, 1]
    outcome = st.integers(-3, 3) if integer else st.integers(0, 1) | st.floats(-5, 5, width=32)
    y = np.array(draw(st.lists(outcome, min_size=n, max_size=n)), dtype=float)
    ranks = st.integers(-3, 3) | st.sampled_from([-0.0, 0.0, 1e-300, 1 + 2**-52, 1 + 2**-51, 1e300])
    score = np.array(draw(st.lists(ranks, min_size=n, max_size=n)), dtype=float)
    if weights and draw(st.booleans()):
        heavy = st.integers(1, 4) if integer else st.floats(0.125, 8, width=16)
        weight = np.array(draw(st.lists(heavy, min_size=n, max_size=n)), dtype=float)
    else:
        weight = None
    return y, score, arm, weight
