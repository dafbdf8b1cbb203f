"""``propensity="auto"``: what it keeps, what it chooses, and that it never looks at the outcome."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score

import upturn as up
from upturn._experiment import Experiment
from upturn._nuisance import _choice, choose_propensity, fit_propensity
from upturn._nuisance._choice import _fit_calibration
from upturn._table import read_table
from upturn._target import read_target
from upturn.boosting import UpliftBagging
from upturn.meta import ClassTransformation, DRLearner, RLearner, XLearner
from upturn.policy import iptw_weights, overlap

LEARNERS = [
    DRLearner(Ridge(), random_state=0),
    RLearner(Ridge(), random_state=0),
    XLearner(Ridge(), random_state=0),
    ClassTransformation(),
]


def study(n=1500, how="random", seed=0, n_arms=1):
    """Confounded by a line, by steps that a line cannot see, or not at all."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    driver = {"random": np.zeros(n), "line": X[:, 0] + X[:, 1], "steps": 2.0 * np.sign(X[:, 0] * X[:, 1])}[how]
    odds = np.exp(np.column_stack([np.zeros(n), *([driver] * n_arms)]))
    chance = np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)
    t = (rng.random(n)[:, None] > chance).sum(axis=1)
    y = (rng.random(n) < 1 / (1 + np.exp(-driver - X[:, 2] * (t > 0)))).astype(int)
    return X, y, t


def read(X, y, t, weight=None):
    matrix, schema = read_table(X)
    return Experiment(matrix, schema, read_target(y, t, weight))


@pytest.mark.parametrize("n_arms", [1, 2])
@pytest.mark.parametrize(("how", "kind"), [("random", "shares"), ("line", "logistic"), ("steps", "boosting")])
def test_the_kind_that_fits_is_chosen(how, kind, n_arms):
    choice = choose_propensity("auto", read(*study(2000, how, n_arms=n_arms)))
    assert choice.kind == kind
    assert choice.enough
    assert (choice.pvalue < 1e-6) == (how == "line")
    assert (choice.auc > 0.6) == (how != "random")
    assert (choice.calibration is None) == (how == "random")


@pytest.mark.filterwarnings("ignore:.*such rows have hardly anybody")
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda model: type(model).__name__)
def test_every_learner_keeps_what_was_chosen(learner, tmp_path):
    for how, kind in (("random", "shares"), ("line", "logistic"), ("steps", "boosting")):
        X, y, t = study(1500, how, seed=1)
        model = learner.fit(X, y, t)
        assert model.propensity_kind_ == kind
        choice = choose_propensity("auto", read(X, y, t))
        assert (model.propensity_auc_, model.propensity_pvalue_) == (choice.auc, choice.pvalue)
        assert repr(model).endswith(f", propensity: {choice}]")
        model.save(tmp_path / "model.upturn")
        loaded = up.load(tmp_path / "model.upturn")
        assert repr(loaded) == repr(model)
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    given = learner.set_params(propensity=0.5).fit(X, y, t)
    assert (given.propensity_kind_, given.propensity_auc_, given.propensity_pvalue_) == ("known", None, None)
    learner.set_params(propensity="auto")


def test_shares_kept_are_shares_given():
    X, y, t = study(800)
    for make in (DRLearner, RLearner, XLearner):
        auto, shares = (make(Ridge(), propensity=p, random_state=0).fit(X, y, t) for p in ("auto", "shares"))
        np.testing.assert_array_equal(auto.predict(X), shares.predict(X))


def test_the_outcome_has_no_say():
    X, y, t = study(1000, "line")
    first = choose_propensity("auto", read(X, y, t))
    second = choose_propensity("auto", read(X, np.random.default_rng(1).normal(size=1000), t))
    assert first.auc == second.auc
    np.testing.assert_array_equal(first.calibration, second.calibration)


def test_rows_of_weight_0_have_no_say():
    X, y, t = study(900, "line")
    weight = np.random.default_rng(3).integers(0, 2, 900).astype(float)
    some = choose_propensity("auto", read(X, y, t, weight))
    alone = choose_propensity("auto", read(X[weight > 0], y[weight > 0], t[weight > 0]))
    assert (some.kind, some.auc, some.pvalue) == (alone.kind, alone.auc, alone.pvalue)


def test_at_most_so_many_rows_are_looked_at(monkeypatch):
    X, y, t = study(3000, "line")
    monkeypatch.setattr(_choice, "MOST_ROWS", 500)
    data = read(X, y, t)
    some = _choice._some(data)
    assert len(some) == 500
    kept = {row.tobytes() for row in some.X}
    assert len(kept & {row.tobytes() for row in data.X[:1500]}) == pytest.approx(250, abs=60)
    assert choose_propensity("auto", data).auc == choose_propensity("auto", some).auc


def test_few_rows_are_told():
    X, y, t = study(150)
    model = DRLearner(Ridge(), random_state=0).fit(X, y, t)
    assert repr(model).endswith("too few rows to see an area of 0.6)]")
    assert "too few rows" in repr(overlap(X, t))
    assert "too few rows" not in repr(DRLearner(Ridge(), propensity="shares", random_state=0).fit(X, y, t))
    assert not _choice._enough(np.array([100, 100]))
    assert _choice._enough(np.array([105, 105]))
    assert not _choice._enough(np.array([100_000, 50]))  # the smallest arm counts
    assert choose_propensity("auto", read(*study(24))).kind == "shares"


@pytest.mark.parametrize("slope", [0.0, 0.4, 1.7])
def test_calibration_is_a_logistic_regression_with_a_slope_from_0_to_3(slope):
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(600, 1)), rng.random(600)
    arm = (rng.random(600) < 1 / (1 + np.exp(-slope * x[:, 0] - 0.3))).astype(np.uint8)
    ((found, intercept),) = _fit_calibration(x, arm, weight)
    free = LogisticRegression(C=1e9, tol=1e-10).fit(x, arm, sample_weight=weight)
    if free.coef_[0, 0] > 0:
        assert (found, intercept) == pytest.approx((free.coef_[0, 0], free.intercept_[0]), abs=1e-4)
    ((found, intercept),) = _fit_calibration(-x - 5.0, arm, weight)
    if slope:
        assert found == 0
        assert intercept == pytest.approx(np.log((weight @ arm) / (weight @ (1 - arm))), abs=1e-9)


def test_boosting_can_be_asked_for_and_has_its_own_probabilities():
    X, y, t = study(2000, "steps", n_arms=2)
    chance = fit_propensity("boosting", read(X, y, t)).predict(X)
    np.testing.assert_allclose(chance.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(chance.mean(axis=0), np.bincount(t) / 2000, atol=0.03)
    assert roc_auc_score(t > 0, 1 - chance[:, 0]) > 0.75
    model = DRLearner(Ridge(), propensity="boosting", random_state=0).fit(X, y, t)
    assert (model.propensity_kind_, model.propensity_auc_) == ("boosting", None)


def test_weights_of_a_confounded_study():
    X, _, t = study(4000, "steps")
    found = overlap(X, t)
    assert found.choice.kind == "boosting"
    remembered = fit_propensity("boosting", read(X, np.zeros(4000), t)).predict(X)
    assert (
        0.6 < found.auc < roc_auc_score(t, remembered[:, 1]) - 0.01
    )  # rows are judged by models that have not seen them
    assert "propensity: boosting (by 'auto'" in repr(found)
    np.testing.assert_array_equal(iptw_weights(X, t), found.weights)
    product = X[:, 0] * X[:, 1]
    gaps = [abs(np.average(product[t == 1], weights=w[t == 1]) - np.average(product[t == 0], weights=w[t == 0]))
            for w in (np.ones(4000), found.weights)]  # fmt: skip
    assert gaps[1] < 0.4 * gaps[0]


def test_levels_and_gaps():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"level": rng.choice(["a", "b", "c", None], 1200), "x": rng.normal(size=1200)})
    X.loc[::4, "x"] = np.nan
    t = (rng.random(1200) < np.where(X["level"] == "a", 0.8, 0.4)).astype(int)
    model = DRLearner(Ridge(), random_state=0).fit(X, rng.normal(size=1200), t)
    assert model.propensity_kind_ in ("logistic", "boosting")
    assert model.propensity_pvalue_ < 1e-6


def test_members_of_an_ensemble_share_one_choice(monkeypatch):
    X, y, t = study(600, "line")
    calls = []
    monkeypatch.setattr(
        "upturn.meta._base.choose_propensity", lambda *some: calls.append(1) or choose_propensity(*some)
    )
    bag = UpliftBagging(ClassTransformation(), n_estimators=4, random_state=0).fit(X, y, t)
    assert len(calls) == 1
    assert {member.propensity_kind_ for member in bag.estimators_} == {"logistic"}


@pytest.mark.parametrize(("key", "value"), [("kind", "guess"), ("auc", 1.5), ("pvalue", "no"), ("enough", 1)])
def test_a_spoiled_choice_is_refused(key, value):
    X, y, t = study(400)
    model = RLearner(Ridge(), random_state=0).fit(X, y, t)
    state = model._get_state()
    state["choice"][key] = value
    with pytest.raises(ValueError, match="said about the propensity"):
        model._set_state(state)
