"""Models inside scikit-learn's tools: packed targets on a stock scikit-learn, and plain treatment with routing on."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.inspection import permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import upturn as up
from upturn.meta import ClassTransformation
from upturn.model_selection import RepeatedUpliftSplit, UpliftKFold

GRID = {"reweight": [True, False]}


@pytest.fixture(scope="module")
def experiment():
    rng = np.random.default_rng(0)
    n = 400
    X, treatment = rng.normal(size=(n, 4)), np.repeat(["control", "mail"], [150, 250])  # sorted by arm
    y = (rng.random(n) < 0.4 + 0.25 * (treatment == "mail") * np.sign(X[:, 1])).astype(int)
    return X, y, treatment, rng.uniform(0.5, 2, n)


SEARCHES = {
    "grid": lambda cv: GridSearchCV(ClassTransformation(), GRID, cv=cv),
    "random": lambda cv: RandomizedSearchCV(ClassTransformation(), GRID, n_iter=2, cv=cv, random_state=0),
    "halving": lambda cv: HalvingGridSearchCV(ClassTransformation(), GRID, cv=cv, random_state=0, min_resources=100),
    "pipeline": lambda cv: GridSearchCV(
        Pipeline([("scale", StandardScaler()), ("model", ClassTransformation())]),
        {"model__reweight": [True, False]},
        cv=cv,
    ),
}
FOLDS = UpliftKFold(3, random_state=0)


# Before scikit-learn 1.8 a Pipeline's own score is handed no treatment, so that there only the packed form works.
PIPELINE_ROUTES = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 8)
UNROUTED = pytest.mark.xfail(not PIPELINE_ROUTES, reason="scikit-learn before 1.8", raises=UserWarning)


@pytest.mark.parametrize(
    "search", [pytest.param(name, marks=UNROUTED) if name == "pipeline" else name for name in SEARCHES]
)
def test_search_packed_and_routed_agree(search, experiment):
    X, y, treatment, _ = experiment
    packed = SEARCHES[search](FOLDS).fit(X, up.pack(y, treatment))
    assert np.isfinite(packed.cv_results_["mean_test_score"]).all()
    assert packed.predict(X[:5]).shape == (5,)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = SEARCHES[search](FOLDS).fit(X, y, treatment=treatment)
    np.testing.assert_array_equal(packed.cv_results_["mean_test_score"], routed.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(packed.predict(X), routed.predict(X))


def test_weights_packed_and_routed_agree(experiment):
    X, y, treatment, weight = experiment
    packed = SEARCHES["grid"](FOLDS).fit(X, up.pack(y, treatment, weight))
    unweighted = SEARCHES["grid"](FOLDS).fit(X, up.pack(y, treatment))
    with sklearn.config_context(enable_metadata_routing=True):
        routed = SEARCHES["grid"](FOLDS).fit(X, y, treatment=treatment, sample_weight=weight)
    np.testing.assert_array_equal(packed.predict(X), routed.predict(X))
    assert not np.array_equal(packed.predict(X), unweighted.predict(X))


def test_cross_validation_packed_and_routed_agree(experiment):
    X, y, treatment, _ = experiment
    model = ClassTransformation()
    packed = up.pack(y, treatment)
    scores = cross_val_score(model, X, packed, cv=FOLDS)
    np.testing.assert_array_equal(cross_validate(model, X, packed, cv=FOLDS)["test_score"], scores)
    with sklearn.config_context(enable_metadata_routing=True):
        params = {"treatment": treatment}
        np.testing.assert_array_equal(cross_val_score(model, X, y, cv=FOLDS, params=params), scores)
        np.testing.assert_array_equal(cross_validate(model, X, y, cv=FOLDS, params=params)["test_score"], scores)
    repeated = cross_val_score(model, X, packed, cv=RepeatedUpliftSplit(4, random_state=0))
    assert repeated.shape == (4,)
    assert np.isfinite(repeated).all()
    assert cross_val_predict(model, X, packed, cv=FOLDS).shape == (len(y),)


def test_pipeline(experiment):
    X, y, treatment, _ = experiment
    packed = make_pipeline(StandardScaler(), ClassTransformation()).fit(X, up.pack(y, treatment))
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(StandardScaler(), ClassTransformation()).fit(X, y, treatment=treatment)
        assert routed.score(X, y, treatment=treatment) == packed.score(X, up.pack(y, treatment))
    np.testing.assert_array_equal(packed.predict(X), routed.predict(X))


@pytest.mark.parametrize("routed", [False, True])
def test_permutation_importance_finds_the_effect_modifier(routed, experiment):
    X, y, treatment, _ = experiment
    with sklearn.config_context(enable_metadata_routing=routed):
        model = ClassTransformation().fit(X, y, treatment)
        importance = permutation_importance(model, X, up.pack(y, treatment), random_state=0, n_repeats=3)
    assert importance.importances_mean.argmax() == 1


def test_sequential_selection_packed_and_routed(experiment):
    X, y, treatment, _ = experiment
    selector = SequentialFeatureSelector(ClassTransformation(), n_features_to_select=1, cv=FOLDS)
    assert clone(selector).fit(X, up.pack(y, treatment)).get_support().argmax() == 1
    with sklearn.config_context(enable_metadata_routing=True):
        assert clone(selector).fit(X, y, treatment=treatment).get_support().argmax() == 1


def test_rfecv_with_a_scorer(experiment):
    X, y, treatment, _ = experiment
    selector = RFECV(
        ClassTransformation(), cv=FOLDS, scoring=lambda model, X, y: model.score(X, y), importance_getter="coef_"
    )
    assert selector.fit(X, up.pack(y, treatment)).support_[1]


def test_clone_and_params():
    model = ClassTransformation(reweight=False, control="mail")
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == "ClassTransformation(control='mail', reweight=False)"


def test_repr_of_a_fitted_model(experiment):
    X, y, treatment, _ = experiment
    assert repr(ClassTransformation().fit(X, y, treatment)) == (
        "ClassTransformation() [fitted: control 'control', arm 'mail', 4 features, propensity: shares (by 'auto': area under the ROC "
        "curve 0.545, balance p = 0.23)]"
    )


def test_plain_folds_without_an_arm_say_which(experiment):
    X, y, treatment, _ = experiment
    with pytest.raises(ValueError, match=r"arm\(s\) \['mail'\] have no row.*UpliftKFold"):
        cross_val_score(ClassTransformation(), X, up.pack(y, treatment), cv=4, error_score="raise")


def test_treatment_without_routing_is_a_clear_error(experiment):
    X, y, treatment, _ = experiment
    with pytest.raises(ValueError, match=r"treatment"):
        GridSearchCV(ClassTransformation(), GRID, cv=FOLDS).fit(X, y, treatment=treatment)
    with pytest.raises(ValueError, match=r"treatment is missing: .*upturn.pack"):
        GridSearchCV(ClassTransformation(), GRID, cv=FOLDS).fit(X, y)
    with pytest.raises(ValueError, match=r"treatment is missing: .*upturn.pack"):
        GridSearchCV(ClassTransformation(), GRID, cv=3, error_score="raise").fit(X, y)
    # With plain folds only scoring goes wrong, and scikit-learn turns an error there into a warning that quotes it.
    shuffled = np.random.default_rng(0).permutation(len(y))
    with pytest.warns(UserWarning, match=r"(?s)Scoring failed.*treatment is missing: pass|non-finite") as caught:
        GridSearchCV(ClassTransformation(), GRID, cv=3).fit(X[shuffled], y[shuffled], treatment=treatment[shuffled])
    assert any("treatment is missing: pass" in str(warning.message) for warning in caught)
