"""What is settled for all models of a report: one look whether arms were given at random, and the folds of calibration."""

import numpy as np
import pytest

from upturn._nuisance import Choice
from upturn._report import _held_out
from upturn._report._held_out import Experiment, _settle, prepare
from upturn._target import read_target
from upturn.boosting import UpliftBoosting
from upturn.ensemble import UpliftStacking
from upturn.meta import DRLearner, SLearner, XLearner
from upturn.svm import UpliftSVM, UpliftSVMCV
from upturn.trees import UpliftForest


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


def test_scores_that_are_no_effects_are_calibrated_in_fewer_folds_where_each_costs_much():
    """Two where a model searches, or where half of the rows make much the same ranking as all; effects stay as they are."""
    rng = np.random.default_rng(0)

    def folds(model, n):
        target = read_target(rng.integers(0, 2, n), rng.integers(0, 2, n))
        return getattr(prepare(model, target, 0, 2), "cv", None)

    assert folds(UpliftSVM(), 19_999) == 5
    assert folds(UpliftSVM(), 20_000) == 2
    assert folds(UpliftSVMCV(), 500) == 2
    assert folds(UpliftForest(), 500) is None
    assert prepare(UpliftBoosting(), read_target([0, 1] * 50, [0, 0, 1, 1] * 25), 0, 2).n_jobs == 2
