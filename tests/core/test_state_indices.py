"""Indices in saved state that wrap around when they are added or subtracted: refused before a kernel sees them."""

import copy

import numpy as np
import pandas as pd
import pytest

from upturn.meta import TLearner
from upturn.trees import UpliftForest

RNG = np.random.default_rng(0)
N = 600
X = pd.DataFrame({"a": RNG.normal(size=N), "g": pd.Categorical(RNG.choice(list("uvwxyz"), N))})
T = RNG.integers(0, 2, N)
Y = (RNG.random(N) < 0.2 + 0.5 * T * X["g"].isin(["u", "v"]).to_numpy()).astype(float)


def refuse(model, change, message):
    state = copy.deepcopy(model._get_state())
    change(state)
    with pytest.raises(ValueError, match=message):
        copy.copy(model)._set_state(state)


def test_trees_that_tile_only_by_wrapping_around():
    model = UpliftForest(n_estimators=3, random_state=0).fit(X, Y, T)
    n = int(model._get_state()["nodes"]["first"][-1])

    def wrap(state):
        state["nodes"]["first"] = np.array([0, 2**62, -(2**63), -(2**62), 0, n])

    assert (np.diff([0, 2**62, -(2**63), -(2**62), 0, n]) >= 1).all()  # what subtraction would say
    refuse(model, wrap, "do not tile")


def test_levels_that_lie_beyond_the_end_by_wrapping_around():
    model = TLearner(random_state=0).fit(X, Y, T)

    def find(node):
        if isinstance(node, dict) and "start" in node and (node["start"] >= 0).any():
            return node
        parts = node.values() if isinstance(node, dict) else node if isinstance(node, list | tuple) else []
        return next(filter(None, map(find, parts)), None)

    def wrap(state):
        trees = find(state)
        start = trees["start"].copy()
        start[start >= 0] = np.iinfo(np.int64).max
        trees["start"] = start

    assert find(model._get_state()) is not None
    refuse(model, wrap, "does not know all levels")
