"""OneVsControl: a member per arm, as if each had been fitted alone; whom it treats; what it saves."""

from __future__ import annotations

import numpy as np
import pytest

import upturn as up
from upturn.boosting import UpliftBoosting
from upturn.meta import ClassTransformation, OneVsControl, TreatedOnly
from upturn.metrics import auuc
from upturn.svm import UpliftSVM
from upturn.trees import UpliftTree

MODELS = {
    "class transformation": lambda: None,
    "machine": lambda: UpliftSVM(p=1.2, ratio=1.1),
    "boosting": lambda: UpliftBoosting(n_estimators=5, random_state=0),
    "tree": lambda: UpliftTree(max_depth=2, random_state=0),
}


@pytest.fixture(scope="module")
def trial():
    rng = np.random.default_rng(0)
    n = 3000
    X, t = rng.normal(size=(n, 3)), rng.choice(["control", "mail", "phone"], n, p=[0.5, 0.3, 0.2])
    helped = np.where(t == "mail", np.sign(X[:, 0]), np.where(t == "phone", np.sign(X[:, 1]), 0))
    return X, (rng.random(n) < 0.5 + 0.25 * helped).astype(int), t


@pytest.mark.parametrize("name", MODELS)
def test_members_are_the_models_of_the_pairs(trial, name, tmp_path):
    X, y, t = trial
    model = OneVsControl(MODELS[name]()).fit(X, y, t)
    assert model.arms_ == ["mail", "phone"]
    score = model.predict(X)
    for k, arm in enumerate(model.arms_):
        rows = np.isin(t, ["control", arm])
        alone = (MODELS[name]() or ClassTransformation()).fit(X[rows], y[rows], t[rows])
        assert np.array_equal(alone.predict(X), score[:, k])
        assert np.array_equal(model.estimators_[k].predict(X), score[:, k])
        assert auuc(y[rows], score[rows, k], t[rows]) > 0.05
    model.save(tmp_path / "model.upturn")
    again = up.load(tmp_path / "model.upturn")
    assert np.array_equal(again.predict(X), score)
    assert np.array_equal(again.recommend(X), model.recommend(X))
    assert again.estimators_[1].arms_ == ["phone"]


@pytest.mark.parametrize("name", MODELS)
def test_whom_it_treats(trial, name):
    """Control where no member says yes, the one that does; of several the largest effect, or the highest rank."""
    X, y, t = trial
    model = OneVsControl(MODELS[name]()).fit(X, y, t)
    given, score = model.recommend(X), model.predict(X)
    says = np.column_stack([member.recommend(X) != "control" for member in model.estimators_])
    assert (given[~says.any(axis=1)] == "control").all()
    for k, arm in enumerate(model.arms_):
        only = says[:, k] & (says.sum(axis=1) == 1)
        assert (given[only] == arm).all()
    both = says.all(axis=1)
    assert both.any()
    merit = score
    if not model._score_is_effect:
        merit = np.empty_like(score)
        for k, arm in enumerate(model.arms_):
            own = np.sort(score[np.isin(t, ["control", arm]), k])
            merit[:, k] = np.searchsorted(own, score[:, k]) / len(own)
    clear = both & (np.abs(merit[:, 0] - merit[:, 1]) > 0.02)
    expected = np.array(model.arms_)[merit.argmax(axis=1)]
    if name != "boosting":  # five votes tie over wide stretches, where a rank depends on how ties count
        assert np.mean(given[clear] == expected[clear]) > 0.99
    assert np.mean(given == np.where(X[:, 0] > 0, "mail", np.where(X[:, 1] > 0, "phone", "control"))) > 0.5


def test_units():
    assert OneVsControl()._score_is_effect
    assert OneVsControl(UpliftTree())._score_is_effect
    assert not OneVsControl(UpliftSVM())._score_is_effect
    assert not OneVsControl(UpliftBoosting())._score_is_effect


def test_errors(trial):
    X, y, t = trial
    with pytest.raises(TypeError, match="is not an uplift model"):
        OneVsControl(np.ones).fit(X, y, t)
    with pytest.raises(ValueError, match="rank people but have no zero"):
        OneVsControl(TreatedOnly()).fit(X, y, t).recommend(X)
    always = np.where(t == "phone", 1, np.where(t == "control", 0, y))
    with pytest.raises(ValueError, match="arm 'phone' against control 'control'"):
        OneVsControl().fit(X, always, t)


@pytest.mark.parametrize("damage", ["members", "ladder", "order"])
def test_a_damaged_state_is_refused(trial, damage):
    X, y, t = trial
    model = OneVsControl().fit(X, y, t)
    state = model._get_state()
    if damage == "members":
        state["members"] = state["members"][:1]
    elif damage == "ladder":
        state["ladder"] = state["ladder"][:, :5]
    else:
        state["ladder"] = state["ladder"][:, ::-1].copy()
    with pytest.raises(ValueError, match=r"OneVsControl|do not fit|not in order"):
        model._set_state(state)
