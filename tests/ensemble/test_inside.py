"""Candidates of a stack share what several of them fit to the same rows."""

import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from upturn._experiment import Experiment
from upturn._nuisance import Choice, Shelf, _propensity, _shelf
from upturn._nuisance._propensity import kind_of
from upturn._table import read_table
from upturn._target import read_target
from upturn.boosting import UpliftBagging
from upturn.ensemble import UpliftAuto, UpliftStacking
from upturn.ensemble._candidates import default_candidates, read_candidates
from upturn.meta import DRLearner, OneVsControl, TLearner, XLearner
from upturn.policy import UpliftCalibrator
from upturn.trees import UpliftForest


def trial(n=600, arms=2, seed=0):
    rng = np.random.default_rng(seed)
    X, t = rng.normal(size=(n, 3)), rng.integers(0, arms, n)
    return X, X[:, 1] + t * X[:, 0] + rng.normal(size=n), t


@pytest.fixture
def fits(monkeypatch):
    """What was fitted: the estimator of every model of an arm's outcome, "arms" for every model of the arms."""
    found, lock = [], threading.Lock()

    def counted(kind, function):
        def count(first, *rest, **named):
            with lock:
                found.append(kind(first))
            return function(first, *rest, **named)

        return count

    monkeypatch.setattr(_shelf, "fit_response", counted(lambda estimator: estimator, _shelf.fit_response))
    for place in (_shelf, _propensity):
        monkeypatch.setattr(place, "fit_propensity", counted(lambda choice: "arms", _propensity.fit_propensity))
    return found


@pytest.mark.parametrize("arms", [2, 3])
def test_models_of_the_arms_outcomes_are_fitted_once_a_fold(fits, arms):
    X, y, t = trial(arms=arms)
    both = {"t": TLearner(), "x": XLearner(propensity="shares")}
    stack = UpliftStacking(both, cv=3, propensity="shares", weighting="least-squares", random_state=0).fit(X, y, t)
    last = arms if stack.estimators_ else 0
    assert fits.count(None) == 3 * arms + last  # in every fold and, if they have weight, to all rows
    fits.clear()
    UpliftStacking(both, cv=3, loss="dr", propensity="shares", random_state=0).fit(X, y, t)
    assert fits.count(None) == 3 * arms + last  # the loss takes them, too


def test_models_of_the_arms_are_fitted_once_a_fold(fits):
    X, y, t = trial()
    t = (np.random.default_rng(1).random(len(t)) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    y = X[:, 1] + 2 * t * X[:, 0] + np.random.default_rng(2).normal(size=len(t))
    given = {"x": XLearner(Ridge()), "said": XLearner(Ridge(), propensity="logistic")}
    given["own"] = XLearner(Ridge(), propensity="shares")
    stack = UpliftStacking(given, cv=3, propensity="logistic", random_state=0).fit(X, y, t)
    members = {name: model.propensity_kind_ for name, model in stack.estimators_.items()}
    assert set(members.items()) <= {("x", "logistic"), ("said", "logistic"), ("own", "shares")}
    whole = bool({"x", "said"} & set(members))
    # by the shelf of a fold, and by whoever has his own
    assert fits.count("arms") == 3 * 2 + whole + ("own" in members)


@pytest.mark.parametrize("given", ["logistic", LogisticRegression()])
def test_upturns_own_candidates_share_whatever_a_stack_is_given(fits, given):
    X, y, t = trial()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stack = UpliftStacking(cv=2, propensity=given, random_state=0).fit(X, y, t)
    members = stack.estimators_
    assert {model.propensity_kind_ for name, model in members.items() if "X-" in name} <= {stack.propensity_kind_}
    whole = bool({"X-learner", "linear X-learner"} & set(members))
    inside = 3 * (2 + ("DR-learner" in members))  # the DR-learner's own folds
    assert fits.count("arms") == 2 + whole + inside


def test_shared_or_not_is_the_same_and_so_are_threads():
    X, y, t = trial()
    both = {"t": TLearner(), "x": XLearner(propensity="shares"), "dr": DRLearner(propensity="shares", cv=2)}
    alone = {
        name: UpliftStacking({name: model}, cv=3, propensity="shares", random_state=0) for name, model in both.items()
    }
    together = [
        UpliftStacking(both, cv=3, propensity="shares", n_jobs=jobs, random_state=0).fit(X, y, t) for jobs in (1, 4)
    ]
    for name in ("t", "x"):
        found = alone[name].fit(X, y, t).oof_[name]
        np.testing.assert_array_equal(found, together[0].oof_[name])
    for name in both:
        np.testing.assert_array_equal(together[0].oof_[name], together[1].oof_[name])
    np.testing.assert_array_equal(together[0].predict(X), together[1].predict(X))


def test_a_model_that_fails_is_not_kept():
    shelf, asked = Shelf(0, Choice("shares")), []

    def fails():
        asked.append(1)
        raise ValueError("no such luck")

    for _ in range(2):
        with pytest.raises(ValueError, match="no such luck"):
            shelf._once("it", fails)
    assert len(asked) == 2
    assert shelf._once("it", lambda: 5) == 5


@pytest.mark.parametrize(("given", "kind"), [("logistic", "trees"), (0.5, "known"), ("shares", "shares")])
def test_forests_left_at_auto_have_the_chances_of_their_stack(given, kind):
    X, y, t = trial()
    forests = {
        "forest": UpliftForest(4, random_state=0),
        "calibrated": UpliftCalibrator(UpliftForest(4, random_state=0), cv=2),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stack = UpliftStacking(forests, cv=2, propensity=given, ridge=0.0, random_state=0).fit(X, y, t)
    found = [getattr(model, "estimator_", model) for model in stack.estimators_.values()]
    assert found
    assert {model.propensity_kind_ for model in found} == {kind}


class _OfOneArm(UpliftBagging):
    _multi_arm = False


@pytest.mark.parametrize("given", [[0.33, 0.33], ["p", "q"], "logistic"])
def test_forests_of_one_arm_of_several_look_for_themselves_where_chances_are_known(given):
    X, y, t = trial(arms=3)
    table = pd.DataFrame(X).set_axis(["a", "b", "c"], axis=1).assign(p=0.33, q=0.33)
    forests = {
        "arm by arm": OneVsControl(UpliftForest(4)),
        "calibrated": UpliftCalibrator(OneVsControl(UpliftForest(4)), cv=2),
        "of one": _OfOneArm(UpliftForest(4), n_estimators=2),
        "all": UpliftBagging(UpliftForest(4), n_estimators=2),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stack = UpliftStacking(
            forests, cv=2, propensity=given, estimator=Ridge(), weighting="least-squares", ridge=0.0, random_state=0
        ).fit(table, y, t)
    choice = Choice(kind_of(given), given)
    ready = read_candidates(forests, Experiment(*read_table(table), read_target(y, t)), choice, default_candidates)
    said = {
        name: [value for key, value in model.get_params().items() if key.endswith("propensity")]
        for name, model in ready.items()
    }
    alone = "trees" if given == "logistic" else "auto"
    assert said.pop("all") == ["trees" if given == "logistic" else given]
    assert said == {"arm by arm": [alone], "calibrated": [alone], "of one": [alone]}
    assert np.isfinite(stack.predict(table)).all()


@pytest.mark.parametrize("kind", [UpliftStacking, UpliftAuto])
def test_forests_estimate_chances_where_a_column_says_0_or_1(kind):
    X, y, t = trial(400)
    chance = np.where(X[:, 0] > 1.5, 1.0, 0.5)
    t = np.where(chance == 1.0, 1, t)
    table = pd.DataFrame(X).set_axis(["a", "b", "c"], axis=1).assign(p=chance)
    forests = {"forest": UpliftForest(4), "x": XLearner(Ridge())}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(estimators=forests, cv=3, propensity="p", estimator=Ridge(), random_state=0).fit(table, y, t)
    assert {one.propensity_kind_ for one in model.estimators_.values()} <= {"trees", "columns"}
    assert "forest" in set(model.weights_["model"])


def test_a_journal_is_of_one_choice_of_propensities(tmp_path):
    X, y, t = trial(400)
    t = (np.random.default_rng(1).random(len(t)) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    both = {"x": XLearner(Ridge()), "t": TLearner(Ridge())}

    def fit(given, journal=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return (
                UpliftAuto(estimators=both, propensity=given, resume=journal, cv=3, metric=None, random_state=0)
                .fit(X, y, t)
                .predict(X)
            )

    fit("logistic", str(tmp_path / "journal"))
    np.testing.assert_array_equal(fit(0.5, str(tmp_path / "journal")), fit(0.5))
