"""Importances of the models inside meta-learners, told for the columns of the user's table."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import upturn
from upturn.boosting import UpliftBagging
from upturn.meta import ClassTransformation, DRLearner, RLearner, SLearner, TLearner, TreatedOnly, XLearner

LEARNERS = (SLearner, TLearner, XLearner, DRLearner, RLearner, TreatedOnly)


@pytest.fixture(scope="module")
def experiment():
    """The effect depends on ``a`` and a level of ``d``; nothing depends on ``c``, which is wide."""
    rng = np.random.default_rng(0)
    n = 2000
    X = pd.DataFrame({"c": 50 * rng.normal(size=n), "d": rng.choice(["x", "y", "z"], n), "a": rng.normal(size=n)})
    treatment = rng.integers(0, 2, n)
    y = (2.0 * X["a"] - 3.0 * (X["d"] == "y")) * treatment + 0.3 * rng.normal(size=n)
    return X, y.to_numpy(), treatment


def spread(column, weight=None):
    return np.sqrt(np.average((column - np.average(column, weights=weight)) ** 2, weights=weight))


@pytest.mark.parametrize("learner", LEARNERS)
def test_default_bases_find_what_matters(learner, experiment):
    X, y, treatment = experiment
    model = learner(random_state=0).fit(X, y, treatment)
    noise, *real = model.feature_importances_
    assert 0.0 <= noise < 0.1 * min(real)


def test_class_transformation_finds_what_matters(experiment):
    X, y, treatment = experiment
    for estimator in (None, LogisticRegression(), RandomForestClassifier(max_depth=3, random_state=0)):
        model = ClassTransformation(estimator).fit(X, y > 0, treatment)
        noise, *real = model.feature_importances_
        assert 0.0 <= noise < min(real)


def test_coefficients_count_by_the_spread_of_what_they_multiply(experiment):
    X, y, treatment = experiment
    model = TLearner(LinearRegression()).fit(X, y, treatment)
    expected = np.zeros((2, 3))
    for arm, member in enumerate(model._members):
        rows = X[treatment == arm]
        columns = [rows["c"], *((rows["d"] == level).astype(float) for level in "xyz"), rows["a"]]
        by_column = np.abs(member.model.coef_) * [spread(column) for column in columns]
        expected[arm] = by_column[0], by_column[1:4].sum(), by_column[4]
    np.testing.assert_allclose(model.feature_importances_, expected.mean(axis=0), rtol=1e-9)


def test_coefficients_of_the_logistic_regression_are_of_standardised_columns(experiment):
    X, y, treatment = experiment
    model = ClassTransformation().fit(X, y > 0, treatment)
    by_column = np.abs(model.coef_)
    expected = [by_column[0], by_column[1:4].sum(), by_column[4]]
    np.testing.assert_allclose(model.feature_importances_, expected, rtol=1e-9)


def test_interactions_count_for_their_feature(experiment):
    X, y, _ = experiment
    treatment = np.random.default_rng(1).integers(0, 3, len(X))
    model = SLearner(Ridge(), interactions=True).fit(X, y, treatment)
    (member,) = model._members
    wide = model._features(model._encode(X), np.eye(3)[treatment, 1:])
    by_column = np.abs(member.model.coef_) * [spread(column) for column in wide.T]
    assert len(by_column) == 5 + 2 + 2 * 5
    own = by_column[:5] + by_column[7:12] + by_column[12:]
    np.testing.assert_allclose(model.feature_importances_, [own[0], own[1:4].sum(), own[4]], rtol=1e-9)


def test_importances_of_foreign_trees_are_theirs(experiment):
    X, y, treatment = experiment
    model = TLearner(RandomForestRegressor(10, random_state=0)).fit(X, y, treatment)
    expected = np.mean([member.model.feature_importances_ for member in model._members], axis=0)
    np.testing.assert_array_equal(model.feature_importances_, expected)
    alone = SLearner(RandomForestRegressor(10, random_state=0)).fit(X, y, treatment)
    theirs = alone._members[0].model.feature_importances_
    assert theirs[3] > 0  # the arm's own column, which is no feature
    np.testing.assert_array_equal(alone.feature_importances_, theirs[:3])


def test_a_model_that_is_a_number_counts_as_nothing(experiment):
    X, y, treatment = experiment
    y = np.where(treatment == 0, 1.0, y)
    model = TLearner(Ridge()).fit(X, y, treatment)
    np.testing.assert_allclose(
        model.feature_importances_, TreatedOnly(Ridge()).fit(X, y, treatment).feature_importances_ / 2
    )


def test_no_importances_where_the_base_has_none(experiment):
    X, y, treatment = experiment
    for learner in (*LEARNERS, ClassTransformation):
        assert not hasattr(learner(), "feature_importances_")  # not fitted
    for base in (KNeighborsRegressor(), make_pipeline(StandardScaler(), Ridge())):
        model = TLearner(base).fit(X, y, treatment)
        assert not hasattr(model, "feature_importances_")
        with pytest.raises(
            AttributeError, match=r"neither feature_importances_ nor coefficients.*permutation_importance"
        ):
            _ = model.feature_importances_
    assert not hasattr(ClassTransformation(SVC()).fit(X, y > 0, treatment), "feature_importances_")
    assert hasattr(ClassTransformation(SVC(kernel="linear")).fit(X[["a"]], y > 0, treatment), "feature_importances_")


@pytest.mark.parametrize("learner", [*LEARNERS, ClassTransformation])
def test_importances_survive_a_file_and_weights_scale_nothing(learner, experiment, tmp_path):
    X, y, treatment = experiment
    y = (y > 0).astype(float)
    seed = {"random_state": 0} if learner is not ClassTransformation else {}
    model = learner(**seed).fit(X, y, treatment)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(upturn.load(tmp_path / "model").feature_importances_, model.feature_importances_)
    heavy = learner(**seed).fit(X, y, treatment, sample_weight=np.full(len(y), 2.0))
    # Penalties weigh less against heavier rows, so the trees differ a little; importances of twice the weight would be double.
    assert 2 / 3 < heavy.feature_importances_.sum() / model.feature_importances_.sum() < 3 / 2


def test_bags_of_learners_have_their_mean(experiment):
    X, y, treatment = experiment
    bag = UpliftBagging(TLearner(Ridge()), n_estimators=3, random_state=0).fit(X, y, treatment)
    np.testing.assert_allclose(
        bag.feature_importances_, np.mean([member.feature_importances_ for member in bag.estimators_], axis=0)
    )
