"""A report looks once whether arms were given at random, for all its models."""

import numpy as np
import pytest

from upturn._nuisance import Choice
from upturn._report import _held_out
from upturn._report._held_out import Experiment, _settle
from upturn._target import read_target
from upturn.ensemble import UpliftStacking
from upturn.meta import DRLearner, SLearner, XLearner


@pytest.mark.parametrize(
    ("sound", "found", "looks"), [(True, "logistic", 0), (False, "shares", 1), (False, "logistic", 1)]
)
def test_one_look_for_all_models(monkeypatch, sound, found, looks):
    seen = []
    monkeypatch.setattr(_held_out, "choose_propensity", lambda *some: seen.append(some) or Choice(found))
    data = Experiment(np.zeros((6, 1)), read_target([0, 1] * 3, [0, 1] * 3))
    models = {"x": XLearner(), "dr": DRLearner(propensity=0.5), "stack": UpliftStacking(), "s": SLearner()}
    made = _settle(models, data, sound=sound)
    assert len(seen) == looks
    kept = "shares" if sound or found == "shares" else "auto"
    assert made["x"].propensity == made["stack"].propensity == kept
    assert made["dr"].propensity == 0.5
    assert made["s"] is models["s"]
    assert models["x"].propensity == "auto"
