"""Calibrated effects, calibration tables, inverse propensity weights and the four groups."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import upturn as up
from upturn._target import read_target
from upturn.meta import ClassTransformation, SLearner, TLearner, TreatedOnly
from upturn.metrics import calibration_table
from upturn.model_selection import UpliftKFold
from upturn.policy import UpliftCalibrator, four_groups, iptw_weights, overlap
from upturn.policy._maps import row_effects
from upturn.trees import UpliftForest


def experiment(n=4000, seed=0, arms=1):
    rng = np.random.default_rng(seed)
    X, t = rng.normal(size=(n, 3)), rng.integers(0, arms + 1, n)
    effect = 0.5 * X[:, 0] - 0.1
    y = X[:, 1] + effect * (t > 0) * np.where(t == 2, 2, 1) + rng.normal(size=n)
    return X, y, t, effect


@pytest.mark.parametrize("method", ["isotonic", "linear"])
def test_scores_of_any_scale_become_effects(method):
    X, y, t, _ = experiment(16_000)
    new, _, _, effect = experiment(seed=1)

    class Scaled(TLearner):
        _score_has_zero = False

        def _predict(self, X):
            return np.exp(3 * super()._predict(X)) if method == "isotonic" else 7 + 40 * super()._predict(X)

    model = UpliftCalibrator(Scaled(Ridge()), method=method, random_state=0).fit(X, y, t)
    found = model.predict(new)
    assert np.sqrt(np.mean((found - effect) ** 2)) < 0.12
    raw = model.estimator_.predict(new)
    assert (np.diff(found[np.argsort(raw)]) >= 0).all()  # monotone
    assert np.mean((model.recommend(new) == 1) == (effect > 0)) > 0.9
    with pytest.raises(ValueError, match="UpliftCalibrator"):
        model.estimator_.recommend(new)


def test_a_score_that_ranks_the_wrong_way_becomes_a_constant():
    X, y, t, effect = experiment()

    class Backwards(TLearner):
        def _predict(self, X):
            return -super()._predict(X)

    for method in ("isotonic", "linear"):
        model = UpliftCalibrator(Backwards(Ridge()), method=method, random_state=0)
        with pytest.warns(UserWarning, match="higher scores did not go with larger effects"):
            found = model.fit(X, y, t).predict(X)
        middle = np.quantile(found, [0.05, 0.95])
        np.testing.assert_allclose(middle, effect.mean(), atol=0.15)


class FirstColumn(TLearner):
    """A model whose score is the first column."""

    def _predict(self, X):
        return X[:, :1].copy()


@pytest.mark.parametrize("n", [300, 5000])
@pytest.mark.parametrize("seed", range(3))
def test_ends_rest_on_enough_rows_of_both_arms(n, seed):
    rng = np.random.default_rng(seed)
    X, t = rng.normal(size=(n, 1)), (rng.random(n) < 0.3).astype(int)
    y = X[:, 0] * t + rng.standard_t(2, size=n)
    model = UpliftCalibrator(FirstColumn(Ridge()), random_state=0).fit(X, y, t)
    found = model.predict(X)
    assert np.ptp(found) > 0
    for end in (found.min(), found.max()):
        mine = found == end
        assert mine.sum() >= max(20, 0.01 * n)
        assert set(t[mine]) == {0, 1}
    assert model.predict([[-99.0], [99.0]]).tolist() == [found.min(), found.max()]
    rows = model.table_["treated"] + model.table_["control"]
    assert model.table_["calibrated"] @ rows / n == pytest.approx(
        row_effects(y, t > 0, np.ones(n), X[:, 0]).mean()
    )  # pooling moves no mean


def test_no_effect_is_larger_than_the_range_of_the_outcome():
    rng = np.random.default_rng(0)
    X, t = np.arange(1000.0)[:, None], (rng.random(1000) < 0.05).astype(int)
    y = (rng.random(1000) < 0.5).astype(float)
    t[-30:-1], y[-30:-1], t[-1], y[-1] = 1, 1, 0, 0
    found = UpliftCalibrator(FirstColumn(Ridge()), cv=2, random_state=0).fit(X, y, t).predict(X)
    assert found.max() == 1
    assert found.min() >= -1


@pytest.mark.parametrize("method", ["isotonic", "linear"])
@pytest.mark.parametrize("level", [0.1, 7.3])
def test_an_outcome_that_never_varies_has_no_effect(method, level):
    X, _, t, _ = experiment(1000)
    model = UpliftCalibrator(FirstColumn(Ridge()), method=method, random_state=0)
    with pytest.warns(UserWarning, match="the same for everybody: the outcome is the same in all rows"):
        model.fit(X, np.full(1000, level), t)
    assert (model.predict(X) == 0).all()
    assert (model.recommend(X) == 0).all()


def test_prefit_uses_the_model_as_it_is_and_folds_fit_it():
    X, y, t, _ = experiment()
    held, y_held, t_held, _ = experiment(seed=2)
    model = TLearner(Ridge()).fit(X, y, t)
    prefit = UpliftCalibrator(model, cv="prefit").fit(held, y_held, t_held)
    assert prefit.estimator_ is model
    folded = UpliftCalibrator(TLearner(Ridge()), random_state=0).fit(X, y, t)
    np.testing.assert_allclose(folded.estimator_.predict(held), model.predict(held))
    assert np.corrcoef(prefit.predict(held), folded.predict(held))[0, 1] > 0.95
    with pytest.raises(ValueError, match="not seen"):
        UpliftCalibrator(model, cv="prefit").fit(held, y_held, np.where(t_held, "mail", "control"))
    with pytest.raises(Exception, match="not fitted"):
        UpliftCalibrator(TLearner(), cv="prefit").fit(held, y_held, t_held)


def test_table_measures_what_was_predicted():
    X, y, t, _ = experiment(20_000)
    model = UpliftCalibrator(TLearner(Ridge()), random_state=0, n_bins=8).fit(X, y, t)
    table = model.table_
    assert table["bin"].tolist() == list(range(1, 9))
    np.testing.assert_allclose(table["treated"] + table["control"], 2500)
    assert (np.abs(table["calibrated"] - table["observed"]) < 4 * table["se"]).all()
    assert set(table["arm"]) == {1}
    assert list(table.to_frame().columns)[:3] == ["arm", "bin", "treated"]
    assert (np.diff(table["calibrated"]) <= 0).all()  # the highest scores come first
    with pytest.raises(ValueError, match=r"n_bins=0: expected a whole number of at least 1"):
        UpliftCalibrator(TLearner(Ridge()), n_bins=0).fit(X, y, t)


def test_table_is_that_of_the_unseen_scores():
    X, y, t, _ = experiment(3000, arms=2)
    names = np.array(["control", "mail", "call"])[t]
    folds = list(UpliftKFold(2, random_state=0).split(X, y, names))
    model = UpliftCalibrator(TLearner(Ridge()), cv=folds, random_state=7).fit(X, y, names)
    unseen = np.empty((3000, 2))
    for train, test in folds:
        unseen[test] = TLearner(Ridge()).fit(X[train], y[train], names[train]).predict(X[test])
    expected = calibration_table(y, unseen, names, random_state=7)
    for column in expected.columns:
        np.testing.assert_array_equal(model.table_[column], expected[column])
    assert repr(model.table_).splitlines()[0] == repr(expected).splitlines()[0]


def test_few_rows_have_a_table_without_intervals():
    X, y, t, _ = experiment(60)
    t = np.where(np.arange(60) < 8, 1, 0)
    table = UpliftCalibrator(TLearner(Ridge()), cv=2, n_bins=2, random_state=0).fit(X, y, t).table_
    assert np.isnan(table["se"]).all()
    assert np.isfinite(table["calibrated"]).all()


def test_importances_are_those_of_the_model():
    X, y, t, _ = experiment(1000)
    forest = UpliftCalibrator(UpliftForest(n_estimators=3, random_state=0), cv=2, random_state=0).fit(X, y, t)
    np.testing.assert_array_equal(forest.feature_importances_, forest.estimator_.feature_importances_)
    assert not hasattr(UpliftCalibrator(TLearner(KNeighborsRegressor()), cv=2).fit(X, y, t), "feature_importances_")


def test_a_fit_that_fails_leaves_the_calibrator_as_it_was():
    X, y, t, _ = experiment(400)
    model = UpliftCalibrator(TLearner(Ridge()).fit(X, y, t), cv="prefit").fit(X, y, t)
    before = model.predict(X)
    with pytest.raises(ValueError, match="have no row in this sample"):
        model.fit(X, y, np.zeros(400))
    np.testing.assert_array_equal(model.predict(X), before)


def test_row_effects_average_to_the_effect():
    X, y, t, effect = experiment(50_000)
    psi = row_effects(y, t > 0, np.ones(50_000), X[:, 1])
    assert psi.mean() == pytest.approx(effect.mean(), abs=0.03)
    plain = np.where(t > 0, 2 * y, -2 * y)
    assert psi.std() < 0.8 * plain.std()  # the means by rank take noise away: here y depends on the score itself


@pytest.mark.parametrize("arms", [1, 2])
def test_saved_and_loaded(arms, tmp_path):
    X, y, t, _ = experiment(1500, arms=arms)
    for method in ("isotonic", "linear"):
        model = UpliftCalibrator(SLearner(random_state=0), method=method, cv=2, random_state=0).fit(X, y, t)
        model.save(tmp_path / "model")
        again = up.load(tmp_path / "model")
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.table_["observed"], model.table_["observed"])
        assert model.predict(X).shape == ((1500,) if arms == 1 else (1500, 2))


def test_in_scikit_learn_tools():
    X, y, t, _ = experiment(600)
    model = UpliftCalibrator(ClassTransformation(), cv=2, random_state=0)
    scores = cross_val_score(model, X, up.pack(y > 0, t), cv=UpliftKFold(3, random_state=0))
    assert np.isfinite(scores).all()
    piped = make_pipeline(StandardScaler(), clone(model)).fit(X, up.pack(y > 0, t))
    assert piped.predict(X).shape == (600,)
    with pytest.raises(TypeError, match="is not an uplift model of upturn"):
        UpliftCalibrator(LogisticRegression()).fit(X, y, t)
    with pytest.raises(ValueError, match="method='sigmoid'"):
        UpliftCalibrator(ClassTransformation(), method="sigmoid").fit(X, y > 0, t)
    with pytest.raises(ValueError, match="cv='no'"):
        UpliftCalibrator(ClassTransformation(), cv="no").fit(X, y > 0, t)
    with pytest.raises(ValueError, match="needs exactly two"):
        UpliftCalibrator(ClassTransformation()).fit(X, y, t)


def biased(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.normal(size=n), "g": rng.choice(["a", "b"], n)})
    chance = 1 / (1 + np.exp(-X["x"] - 0.5 * (X["g"] == "a"))).to_numpy()
    t = (rng.random(n) < chance).astype(int)
    y = 2 * X["x"].to_numpy() + t + rng.normal(size=n)
    return X, y, t, chance


def test_weights_undo_a_biased_assignment():
    X, y, t, chance = biased()
    weights = iptw_weights(X, t)
    np.testing.assert_allclose(weights, np.where(t, 1 / chance, 1 / (1 - chance)), rtol=0.3)
    target = read_target(y, t, weights)
    means = [np.average(y[t == k], weights=target.weight[t == k]) for k in (0, 1)]
    assert means[1] - means[0] == pytest.approx(1, abs=0.1)
    assert y[t == 1].mean() - y[t == 0].mean() > 2
    stable = iptw_weights(X, t, stabilize=True)
    assert stable.mean() == pytest.approx(1, abs=0.02)


def test_overlap_says_what_the_weights_do():
    X, _, t, _ = biased()
    found = overlap(X, t)
    assert found.labels == [0, 1]
    assert found.propensity.shape == (len(t), 2)
    before, after = found.balance["before"], found.balance["after"]
    assert found.balance["column"].tolist() == ["x", "g=a", "g=b"]
    assert before[0] > 0.5
    assert np.abs(after).max() < 0.05
    assert 0.65 < found.auc < 0.85
    assert (found.arms["effective rows"] < found.arms["rows"]).all()
    assert "0 row(s) clipped" in repr(found)
    randomised = overlap(X, np.random.default_rng(1).integers(0, 3, len(t)), cv=2)
    assert randomised.auc == pytest.approx(0.5, abs=0.02)
    assert randomised.propensity.shape == (len(t), 3)
    assert randomised.to_frame().shape[0] == 3


def test_clipping_is_off_and_reported_when_on():
    X, _, t, _ = biased(2000)
    assert overlap(X, t).n_clipped == 0
    with pytest.warns(UserWarning, match=r"the propensity of \d+ of 2,000 row\(s\) was within 0.2 of 0 or 1"):
        weights = iptw_weights(X, t, clip=0.2)
    assert weights.max() <= 5 + 1e-12
    forest = RandomForestClassifier(5, min_samples_leaf=50, random_state=0)
    assert (iptw_weights(X, t, propensity=forest) >= 1).all()
    with pytest.raises(ValueError, match=r"is 0 for 1 row\(s\), the first at row 0.*clip=0.01"):
        overlap(pd.DataFrame({"p": [0.0, 0.5, 0.5, 0.5]}), [1, 0, 1, 0], propensity="p")
    with pytest.raises(ValueError, match=r"clip=0\.5"):
        overlap(X, t, clip=0.5)


def test_four_groups_and_what_can_be_known():
    rng = np.random.default_rng(0)
    n = 50_000
    kind = rng.choice(4, n, p=[0.2, 0.3, 0.4, 0.1])  # persuadable, sure thing, lost cause, sleeping dog
    x = (rng.random((n, 4)) < 0.1 + 0.6 * np.eye(4)[kind]).astype(float)
    t = rng.integers(0, 2, n)
    outcome = np.array([[0, 1], [1, 1], [0, 0], [1, 0]])
    y = outcome[kind, t]
    response = TLearner(random_state=0).fit(x, y, t).predict_response(x)
    groups = four_groups(response, margin=0.05)
    assert groups.summary["people"].sum() == n
    shares = np.array([0.2, 0.3, 0.4, 0.1])
    assert (groups.summary["at least"] <= shares + 0.01).all()
    assert (groups.summary["at most"] >= shares - 0.01).all()
    assert groups.summary["effect"][0] > 0.05 > -0.05 > groups.summary["effect"][3]
    assert groups.summary["untreated"][1] > groups.summary["untreated"][2]
    assert "never known" in repr(groups)
    assert groups.to_frame().shape == (4, 8)
    usual = four_groups(response)
    assert usual.margin == pytest.approx((response[:, 1] - response[:, 0]).std() / 2)
    assert (usual.summary["people"] > 0.01 * n).all()
    assert f"within ±{usual.margin:.4g}" in repr(usual)
    money = four_groups(100 * response, margin=5)
    np.testing.assert_array_equal(money.group, groups.group)
    assert "at least" not in money.summary.columns
    assert "bounds" not in repr(money)


@pytest.mark.parametrize(
    ("response", "margin", "message"),
    [
        (np.zeros((3, 3)), 0, r"response\[:, \[0, k\]\]"),
        (np.array([[0.1, np.nan]]), 0, "response holds 1 NaN"),
        (np.zeros((2, 2)), -1, "margin=-1"),
    ],
)
def test_four_groups_bad_input(response, margin, message):
    with pytest.raises(ValueError, match=message):
        four_groups(response, margin=margin)


def test_treated_only_is_calibrated_too():
    X, y, t, _ = experiment()
    model = UpliftCalibrator(TreatedOnly(Ridge()), random_state=0).fit(X, y, t)
    assert set(model.recommend(X)) == {0, 1}


def test_tables_come_in_the_library_of_the_table_that_was_fitted():
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    X, t = polars.DataFrame({"x": rng.normal(size=400)}), rng.integers(0, 2, 400)
    y = rng.normal(size=400)
    whole = UpliftCalibrator(TreatedOnly(), random_state=0).fit(X, y, t)
    later = UpliftCalibrator(TreatedOnly().fit(X.to_numpy(), y, t), cv="prefit", random_state=0).fit(X.to_numpy(), y, t)
    assert isinstance(whole.table_.to_frame(), polars.DataFrame)
    assert not isinstance(later.table_.to_frame(), polars.DataFrame)
