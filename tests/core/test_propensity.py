"""One reader of what is known about propensities: models and metrics mean the same by it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge

import upturn as up
from upturn import metrics
from upturn._propensity import read_chances, read_propensity
from upturn._target import read_target
from upturn.meta import ClassTransformation, DRLearner, RLearner, XLearner
from upturn.policy import iptw_weights

RNG = np.random.default_rng(0)
N = 300
T = RNG.integers(0, 2, N)
ARMS = np.array(["control", "mail", "call"])[RNG.integers(0, 3, N)]
X = pd.DataFrame({"x": RNG.normal(size=N), "p": RNG.uniform(0.2, 0.8, N)})
Y = X["x"].to_numpy() * T + RNG.normal(size=N)


@pytest.mark.parametrize("given", [0.3, np.float32(0.3), [0.3], np.array([0.3]), {0: 0.7, 1: 0.3}])
def test_what_holds_for_everybody_is_one_row(given):
    np.testing.assert_allclose(read_chances(given, [0, 1]), [0.7, 0.3], rtol=1e-6)
    target = read_target(Y, T)
    np.testing.assert_allclose(read_propensity(given, target), [[0.7, 0.3]], rtol=1e-6)
    if not isinstance(given, dict):
        shares = np.where(T == 1, 1 / 0.3, 1 / 0.7)
        np.testing.assert_allclose(iptw_weights(X, T, propensity=given), shares, rtol=1e-6)


def test_several_arms_are_in_the_order_of_the_labels():
    target = read_target(Y, ARMS)
    assert target.labels == ["control", "call", "mail"]
    by_label = {"mail": 0.2, "control": 0.5, "call": 0.3}
    np.testing.assert_allclose(read_propensity([0.3, 0.2], target), [[0.5, 0.3, 0.2]])
    np.testing.assert_array_equal(read_propensity(by_label, target), [[by_label[label] for label in target.labels]])
    rows = np.tile([0.5, 0.3, 0.2], (N, 1))
    np.testing.assert_array_equal(read_propensity(rows, target), rows)
    for propensity in ([0.3, 0.2], by_label):
        found = metrics.policy_value(Y, ARMS, ARMS, propensity=propensity)
        assert found == pytest.approx(metrics.policy_value(Y, ARMS, ARMS, propensity=rows))


def test_no_word_means_the_shares():
    weight = RNG.uniform(0.5, 2, N)
    target = read_target(Y, ARMS, weight)
    shares = [weight[label == ARMS].sum() / weight.sum() for label in target.labels]
    np.testing.assert_allclose(read_propensity(None, target), [shares])
    found = iptw_weights(X, ARMS, propensity="shares", sample_weight=weight)
    np.testing.assert_allclose(found, weight / np.array(shares)[target.arm])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            [0.3, 0.3],
            r"expected one number for each of the 1 treatment arm\(s\) \[1\], in this order; control 0 has what",
        ),
        (1.5, r"\[1.5\] at row 0 are not probabilities"),
        (np.nan, r"missing \(NaN\)"),
        (0.0, r"gives the arms the probabilities \[1.0, 0.0\], control first"),
        ({0: 0.5}, r"no entry for \[1\]"),
        ({0: 0.5, 1: 0.4}, r"do not add up to 1"),
        ({0: np.nan, 1: 0.4}, r"probabilities \[nan, 0.4\]"),
        ("half", r"'half' is not made of numbers"),
    ],
)
def test_what_is_no_chance_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        read_chances(given, [0, 1])


@pytest.mark.parametrize(
    "model",
    [DRLearner(Ridge()), XLearner(Ridge()), RLearner(Ridge()), ClassTransformation()],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("given", [X["p"].to_numpy(), X["p"], X["p"].tolist(), np.full((N, 2), 0.5)], ids=str)
def test_models_refuse_a_chance_per_row_and_say_why(model, given):
    with pytest.raises(ValueError, match=r"for each of the 300 rows: a model is copied.*pass that column's name"):
        clone(model).set_params(propensity=given).fit(X, Y > 0, T)
    with pytest.raises(ValueError, match=r"for each of the 300 rows"):
        iptw_weights(X, T, propensity=given)


@pytest.mark.parametrize("given", ["shares", "logistic", 0.5, [0.5], "p", ["p"], LogisticRegression()], ids=str)
def test_every_word_survives_clone_folds_and_files(given, tmp_path):
    model = XLearner(Ridge(), propensity=given).fit(X, Y, T)
    again = clone(model).fit(X, Y, T)
    np.testing.assert_array_equal(again.predict(X[:9]), model.predict(X[:9]))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(up.load(tmp_path / "model").predict(X[:9]), model.predict(X[:9]))
    assert np.isfinite(DRLearner(Ridge(), propensity=given, cv=2, random_state=0).fit(X, Y, T).predict(X[:9])).all()


def test_a_column_with_the_name_of_a_word_is_named_in_a_list():
    named = X.rename(columns={"p": "shares"})
    np.testing.assert_array_equal(iptw_weights(named, T, propensity=["shares"]), iptw_weights(X, T, propensity="p"))
    assert not np.allclose(iptw_weights(named, T, propensity="shares"), iptw_weights(X, T, propensity="p"))
