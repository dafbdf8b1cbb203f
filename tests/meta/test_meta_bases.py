"""The default base against scikit-learn itself, foreign bases, and what is saved of them."""

import re
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.utils.fixes import parse_version

import upturn as up
from upturn import _boosted_trees
from upturn._boosted_trees import Bins
from upturn._nuisance._boosted import SIZES, fit_boosted
from upturn._nuisance._flat_trees import FlatTrees
from upturn._parallel import run_parallel
from upturn._table import Schema, read_table
from upturn.meta import ClassTransformation, DRLearner, RLearner, SLearner, TLearner, TreatedOnly, XLearner
from upturn.svm import StandardSVM


def raw_table(n, seed=0, levels=4):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "channel": rng.choice([f"c{j}" for j in range(levels)], n),
            "age": rng.normal(40, 10, n),
            "region": rng.choice(["n", "s"], n).astype(object),
            "spend": rng.exponential(size=n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    frame.loc[rng.random(n) < 0.1, "channel"] = None
    return frame


def as_in_sklearn(size):
    return {
        "learning_rate": size.rate, "max_iter": size.trees, "max_leaf_nodes": size.leaves,
        "min_samples_leaf": size.rows_in_leaf, "l2_regularization": size.ridge,
    }  # fmt: skip


@pytest.mark.parametrize("digits", [0, 9], ids=["few values", "many values"])
@pytest.mark.parametrize("classify", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_boosted_trees_predict_what_scikit_learn_predicts(classify, weighted, digits):
    """scikit-learn's histogram boosting is the twin: the same trees, from the same rules."""
    if digits == 9 and parse_version(sklearn.__version__) < parse_version("1.8"):
        pytest.skip("older versions take other quantiles of columns with many values")
    X, schema = read_table(raw_table(2000).round(digits))
    rng = np.random.default_rng(1)
    code, age = np.nan_to_num(X[:, 0], nan=7.0), np.nan_to_num(X[:, 1], nan=30.0)
    y = (code % 2) + 0.05 * age + rng.normal(size=2000)
    y = (y > np.median(y)).astype(int) if classify else y
    weight = rng.uniform(0.5, 2, 2000) if weighted else None
    ours = fit_boosted(X, y, weight, schema, classify=classify, seed=0)
    kind = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
    theirs = kind(
        categorical_features=schema.categorical,
        early_stopping=False,
        random_state=0,
        **as_in_sklearn(SIZES["outcome"]),
    ).fit(X, y, sample_weight=weight)
    new, _ = read_table(raw_table(500, seed=2))
    expected = theirs.predict_proba(new)[:, 1] if classify else theirs.predict(new)
    assert np.ptp(expected) > 0.1
    assert (ours.start >= 0).any()  # some splits are categorical
    np.testing.assert_allclose(ours.predict(new), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [1e-160, 1e39, 1e150])
def test_outcomes_of_any_size_are_learnt(size):
    """Gradients have 24 bits and a small exponent, so such outcomes are counted in units."""
    X, schema = read_table(np.arange(2000.0)[:, None])
    plain = fit_boosted(X, np.sign(X[:, 0] - 900) + 3, None, schema, classify=False, seed=0)
    large = fit_boosted(X, size * (np.sign(X[:, 0] - 900) + 3), None, schema, classify=False, seed=0)
    np.testing.assert_allclose(large.predict(X) / size, plain.predict(X), rtol=1e-6)
    assert np.isfinite(large.gain).all()


def test_weights_that_leave_one_class_alone_give_a_chance_near_it():
    X, schema = read_table(np.arange(200.0)[:, None])
    weight = np.where(np.arange(200) % 2 == 0, 1e-300, 1e300)
    model = fit_boosted(X, np.arange(200) % 2, weight, schema, classify=True, seed=0)
    assert ((model.predict(X) > 0.99) & (model.predict(X) <= 1)).all()


def test_rows_of_a_long_table_are_sampled_for_its_edges(monkeypatch):
    monkeypatch.setattr(_boosted_trees, "_SAMPLE", 400)
    X = np.random.default_rng(0).normal(size=(5000, 1))
    one, same, other = (Bins.of(X, np.array([False]), seed=seed).edges[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    shares = np.searchsorted(np.sort(X[:, 0]), one) / 5000
    np.testing.assert_allclose(shares, np.arange(1, len(one) + 1) / (len(one) + 1), atol=0.08)


def test_levels_without_rows_in_a_part_count_as_missing_and_many_levels_are_pooled():
    X, schema = read_table(raw_table(4000, levels=300))
    assert len(schema.levels[0]) == 300
    y = (np.nan_to_num(X[:, 0]) % 3 == 0) + 0.1 * np.random.default_rng(0).normal(size=4000)
    model = fit_boosted(X, y, None, schema, classify=False, seed=0)
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.3
    few = X[(X[:, 0] < 10) | np.isnan(X[:, 0])]
    part = fit_boosted(few, np.arange(len(few)) % 7.0, None, schema, classify=False, seed=0)
    unseen, missing = few[:20].copy(), few[:20].copy()
    unseen[:, 0], missing[:, 0] = 250.0, np.nan
    np.testing.assert_array_equal(part.predict(unseen), part.predict(missing))


BASES = {
    "default": (None, None),
    "logistic": (LogisticRegression(max_iter=1000), None),
    "linear": (LinearRegression(), LinearRegression()),
    "double SVM": (LinearSVC(), None),
    "forest": (RandomForestRegressor(5, random_state=0), RandomForestRegressor(5, random_state=0)),
    "neighbours": (KNeighborsRegressor(), None),
    "support vectors": (SVR(), None),
    "adaboost": (AdaBoostClassifier(n_estimators=5, random_state=0), AdaBoostRegressor(n_estimators=5, random_state=0)),
    "pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), None),
    "boosting": (HistGradientBoostingClassifier(max_iter=5), HistGradientBoostingRegressor(max_iter=5)),
}


def campaign(n=400, arms=1, seed=0, binary=True):
    rng = np.random.default_rng(seed + 1000)
    X = raw_table(n, seed)
    labels = np.array(["control", "mail", "call"])[: arms + 1]
    t = rng.choice(labels, n)
    lift = 0.4 * (t == "mail") * (X["region"] == "n") + 0.2 * (t == "call")
    y = rng.random(n) < 0.3 + lift if binary else 5 * lift + rng.normal(size=n)
    return X, y.astype(float).to_numpy(), t


@pytest.mark.parametrize("base", BASES)
def test_papers_baselines_fit_raw_tables_and_are_saved(base, tmp_path):
    X, y, t = campaign()
    estimator, effect = BASES[base]
    model = TLearner(estimator, random_state=0).fit(X, y, t)
    response = model.predict_response(X)
    np.testing.assert_allclose(response[:, 1] - response[:, 0], model.predict(X))
    model.save(tmp_path / "model")
    try:
        trusted = []
        up.load(tmp_path / "model")
    except up.ModelFileError as error:
        trusted = re.findall(r"'([\w.]+)'", str(error).split("trusted=")[1])
    again = up.load(tmp_path / "model", trusted=trusted)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    dr = DRLearner(estimator, effect, cv=2, random_state=0).fit(X, y, t)
    assert np.isfinite(dr.predict(X)).all()


LEARNERS = {
    "S": lambda **k: SLearner(random_state=0),
    "S interactions": lambda **k: SLearner(Ridge(), interactions=True),
    "T": lambda **k: TLearner(random_state=0, **k),
    "X": lambda **k: XLearner(random_state=0, **k),
    "DR": lambda **k: DRLearner(cv=2, random_state=0, **k),
    "R": lambda **k: RLearner(cv=2, random_state=0, **k),
    "treated": lambda **k: TreatedOnly(random_state=0),
}


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("arms", [1, 2])
@pytest.mark.parametrize("name", LEARNERS)
def test_default_base_takes_raw_tables_arms_and_outcomes_and_needs_nobodys_trust(name, arms, binary, tmp_path):
    X, y, t = campaign(600, arms, binary=binary)
    model = LEARNERS[name]().fit(X, y, t)
    scores = model.predict(X)
    assert scores.shape == ((600,) if arms == 1 else (600, 2))
    assert np.isfinite(scores).all()
    model.save(tmp_path / "model")
    again = up.load(tmp_path / "model")  # no trusted types
    np.testing.assert_array_equal(again.predict(X), scores)
    if name != "treated":
        assert model.arms_ == (["mail"] if arms == 1 else ["call", "mail"])
        gain = scores if arms == 1 else scores[:, 1]
        assert gain[X["region"] == "n"].mean() > gain[X["region"] == "s"].mean()
        np.testing.assert_array_equal(again.recommend(X), model.recommend(X))


@pytest.mark.parametrize("name", ["T", "X", "DR", "R"])
def test_same_bits_on_any_number_of_threads_and_for_the_same_seed(name):
    X, y, t = campaign(600)
    one, two = (LEARNERS[name](n_jobs=jobs).fit(X, y, t).predict(X) for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", ["S", "T", "X", "DR", "R"])
def test_weights_count_and_zero_leaves_a_row_out(name):
    X, y, t = campaign(800, binary=False)
    weight = np.random.default_rng(0).uniform(0.2, 3, 800)
    plain, weighted = (LEARNERS[name]().fit(X, y, t, w).predict(X) for w in (None, weight))
    assert not np.allclose(plain, weighted)
    half = np.arange(800) % 2 * 1.0
    if name in ("S", "T"):  # the others deal rows to folds, or count them for the arms' shares
        left_out = LEARNERS[name]().fit(X, y, t, half).predict(X)
        keep = half > 0
        fewer = LEARNERS[name]().fit(X[keep], y[keep], t[keep]).predict(X)
        np.testing.assert_allclose(left_out, fewer)


def test_two_values_other_than_zero_and_one_keep_their_scale():
    X, y, t = campaign(500)
    for base in (None, LogisticRegression(max_iter=1000)):
        plain = TLearner(base, random_state=0).fit(X, y, t)
        scaled = TLearner(base, random_state=0).fit(X, 5 + 20 * y, t)
        np.testing.assert_allclose(scaled.predict(X), 20 * plain.predict(X))
        np.testing.assert_allclose(scaled.predict_response(X), 5 + 20 * plain.predict_response(X))


def test_an_arm_with_one_outcome_is_a_constant():
    X = np.random.default_rng(0).normal(size=(60, 2))
    t, y = np.arange(60) % 2, np.where(np.arange(60) % 2, np.arange(60) % 4 == 1, 0)
    response = TLearner(LogisticRegression()).fit(X, y, t).predict_response(X)
    assert (response[:, 0] == 0).all()
    assert 0 < response[:, 1].min() < response[:, 1].max() < 1


@pytest.mark.parametrize(
    "learner", [SLearner, TLearner, XLearner, DRLearner, RLearner, TreatedOnly, ClassTransformation]
)
def test_default_bases_are_those_the_module_names(learner):
    rng = np.random.default_rng(0)
    X, y, t = rng.normal(size=(300, 2)), rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    model = learner().fit(X, y, t)
    if learner is ClassTransformation:
        assert model.coef_.shape == (2,)
    else:
        assert all(isinstance(member.model, FlatTrees) for member in model._members)
    words = " ".join(up.meta.__doc__.split())
    assert "the base of ClassTransformation is logistic regression, and that of all others gradient boosting" in words


def test_support_vector_machines_are_calibrated_by_logistic_regression():
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(400, 2)), np.arange(400) % 2
    y = (rng.random(400) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(float)
    response = TLearner(SVC(kernel="linear")).fit(X, y, t).predict_response(X)
    for arm in (0, 1):
        mine = t == arm
        scores = SVC(kernel="linear").fit(X[mine], y[mine]).decision_function(X)
        curve = LogisticRegression().fit(scores[mine, None], y[mine])
        np.testing.assert_allclose(response[:, arm], curve.predict_proba(scores[:, None])[:, 1])
    flipped = ClassTransformation(SVC(kernel="linear")).fit(X, y, t)
    assert np.abs(flipped.predict(X)).max() < 1  # a difference of probabilities, not a distance from a plane


def test_class_transformation_undoes_unequal_propensities():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 40_000)
    chance = np.where(x == 1, 0.8, 0.2)
    t = (rng.random(40_000) < chance).astype(int)
    y = rng.random(40_000) < 0.2 + 0.4 * x + 0.2 * t  # a constant effect
    X = pd.DataFrame({"x": x, "p": chance})
    biased = ClassTransformation(propensity="shares").fit(X[["x"]], y, t).predict(pd.DataFrame({"x": [0, 1]}))
    for propensity in ("p", "logistic", "auto", LogisticRegression(C=1e6)):
        model = ClassTransformation(propensity=propensity).fit(X, y, t)
        np.testing.assert_allclose(model.predict(pd.DataFrame({"x": [0, 1], "p": [0.2, 0.8]})), 0.2, atol=0.03)
    assert np.abs(biased - 0.2).max() > 0.1


def test_saved_members_are_checked(tmp_path):
    X, y, t = campaign(300)
    trees = TLearner(random_state=0).fit(X, y, t)._members[0].model
    schema = read_table(X)[1]
    state = trees.get_state()
    FlatTrees.from_state(state, schema)

    def spoiled(name, index, value):
        array = state[name].copy()
        array[index] = value
        return {**state, name: array}

    inside, categorical = np.flatnonzero(trees.feature >= 0), np.flatnonzero(trees.start >= 0)
    bad = {
        "column that does not exist": spoiled("feature", inside[0], 99),
        "further down": spoiled("left", inside[0], inside[0]),
        "not finite": spoiled("threshold", np.flatnonzero(trees.feature < 0)[0], np.inf),
        "outside the table": spoiled("roots", 0, len(trees.feature)),
        "neither side": spoiled("sides", 0, 3),
        "another kind": spoiled("start", inside[0], -1 if trees.start[inside[0]] >= 0 else 0),
        "all levels": spoiled("start", categorical[0], len(trees.sides) - 1),
        "left is not well formed": {**state, "left": state["left"][:-1]},
        "baseline": {**state, "baseline": np.nan},
        "gains do not fit": {**state, "gain": state["gain"][:-1]},
        "gains are not numbers": spoiled("gain", 0, -1.0),
    }
    for message, wrong in bad.items():
        with pytest.raises(ValueError, match=message):
            FlatTrees.from_state(wrong, schema)


X0, T0 = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
Y0 = np.random.default_rng(1).normal(size=40)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            TLearner(LogisticRegression()),
            r"LogisticRegression is a classifier, and y has 20 distinct values.*pass a regressor",
        ),
        (DRLearner(Ridge(), LogisticRegression()), r"effect_estimator=LogisticRegression is not a regressor"),
        (RLearner(Ridge(), KNeighborsRegressor(), propensity=0.4), r"KNeighborsRegressor takes no sample_weight"),
        (DRLearner(Ridge(), cv=30), r"the control arm 0 has 20 row\(s\), fewer than cv=30 folds.*lower cv"),
        (DRLearner(Ridge(), cv=1), r"cv=1: expected at least 2 folds"),
        (
            DRLearner(Ridge(), cv=[(np.arange(20), np.arange(20, 40))]),
            r"hold 20 rows, 20 of them distinct, and there are 40",
        ),
        (DRLearner(Ridge(), cv=[(np.arange(40), np.arange(40))]), r"rows of its own test part"),
        (DRLearner(Ridge(), cv="five"), r"cv='five': expected a number of folds"),
        (
            DRLearner(Ridge(), propensity=1.0),
            r"probabilities \[0.0, 1.0\], control first: all must be above 0 and below 1",
        ),
        (DRLearner(Ridge(), propensity=[0.2, 0.2]), r"the known probability of each of the 1 treatment arm"),
        (
            DRLearner(Ridge(), propensity=np.full(40, 0.5)),
            r"propensity has shape \(40,\), a probability for each of the 40 rows: .*would not go with them; make it a column of X",
        ),
        (
            DRLearner(Ridge(), propensity=None),
            r"propensity=None: expected 'auto', 'shares', 'logistic', 'boosting', a classifier",
        ),
        (DRLearner(Ridge(), propensity={0: 0.5, 1: 0.5}), r"propensity=\{0: 0.5, 1: 0.5\}: expected 'auto', 'shares'"),
        (
            DRLearner(Ridge(), propensity="share"),
            r"\['share'\], which X does not have: expected 'auto', 'shares', 'logistic', 'boosting' or",
        ),
        (DRLearner(Ridge(), propensity="p"), r"names the column\(s\) \['p'\], which X does not have"),
        (DRLearner(Ridge(), propensity=Ridge()), r"propensity=Ridge predicts no probabilities"),
        (DRLearner(Ridge(), propensity=SVC()), r"propensity=SVC predicts no probabilities.*Calibrated"),
        (DRLearner(Ridge(), clip=0.7), r"clip=0.7: expected a number from 0"),
        (SLearner(Ridge(), interactions="no"), r"interactions='no': expected True or False"),
        (TLearner(Ridge(), n_jobs=0), r"n_jobs=0: expected None, a number of threads"),
        (ClassTransformation(reweight=1), r"reweight=1: expected True or False"),
        (RLearner(Ridge(), random_state=-1), r"random_state=-1: expected None, an integer of 0 or more"),
        (XLearner(Ridge(), propensity=-0.5), r"\[-0.5\] at row 0 are not probabilities"),
    ],
    ids=lambda value: None,
)
def test_bad_input(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X0, Y0, T0)


def test_a_base_that_is_no_estimator():
    for wrong in ("svm", Ridge):
        with pytest.raises(TypeError, match="cannot be fitted and asked"):
            TLearner(wrong).fit(X0, Y0, T0)
    for learner in (TLearner, ClassTransformation):
        with pytest.raises(TypeError, match=r"StandardSVM\(…\) is an uplift model itself.*flip_control=True"):
            learner(StandardSVM()).fit(X0, Y0 > 0, T0)


def test_propensities_of_0_and_1():
    X = pd.DataFrame({"x": X0[:, 0], "p": np.where(np.arange(40) < 6, 0.0, 0.5)})
    with pytest.warns(UserWarning, match=r"DRLearner: the propensity of 6 of 40 row\(s\) was below 0.01 or above 0.99"):
        DRLearner(Ridge(), propensity="p", cv=2).fit(X, Y0, T0)
    with pytest.raises(
        ValueError, match=r"of 6 of 40 row\(s\) is 0 or 1, the first at row 0.*remove them, or pass clip"
    ):
        DRLearner(Ridge(), propensity="p", clip=0, cv=2).fit(X, Y0, T0)
    with pytest.raises(ValueError, match="missing"):
        DRLearner(Ridge(), propensity="p", cv=2).fit(X.assign(p=np.nan), Y0, T0)


def test_a_row_that_neither_arm_nor_control_could_have_been_in():
    chance = np.array([0.3, 0.3])
    X = pd.DataFrame({"x": X0[:, 0], "p1": chance[0], "p2": chance[1]})
    arm = np.arange(40) % 3
    model = XLearner(Ridge(), propensity=["p1", "p2"], clip=0.0).fit(X, Y0, arm)
    new = X.iloc[:1].assign(p1=1.0, p2=0.0)  # the second arm and control: both impossible
    assert np.isfinite(model.predict(new)).all()


def test_rows_without_weight_are_no_rows_of_a_fold():
    weight = np.where(np.arange(40) < 20, T0, 1.0)  # the first half has no control row that counts
    with pytest.raises(ValueError, match=r"the control arm 0 has no row that counts in a train part of cv"):
        DRLearner(Ridge(), cv=KFold(2)).fit(X0, Y0, T0, sample_weight=weight)


def test_three_arms_name_the_small_one():
    t = np.where(np.arange(40) < 2, "rare", np.where(T0 == 1, "mail", "control"))
    with pytest.raises(ValueError, match=r"the treatment arm 'rare' has 2 row\(s\), fewer than cv=5"):
        DRLearner(Ridge()).fit(X0, Y0, t)


def test_calibrated_classifier_as_propensity_and_clone():
    model = DRLearner(Ridge(), propensity=CalibratedClassifierCV(SVC(), cv=2, ensemble=False), cv=2, random_state=0)
    np.testing.assert_array_equal(clone(model).fit(X0, Y0, T0).predict(X0), model.fit(X0, Y0, T0).predict(X0))
    assert TLearner(KNeighborsClassifier(3)).fit(X0, Y0 > 0, T0).predict(X0).shape == (40,)


def test_predictions_do_not_depend_on_how_many_rows_are_walked_at_once(monkeypatch):
    from upturn._nuisance import _flat_trees

    rng = np.random.default_rng(0)
    X, treatment = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    model = SLearner(random_state=0).fit(X, (rng.random(500) < 0.3 + 0.3 * treatment * (X[:, 0] > 0)), treatment)
    usual = model.predict(X)
    monkeypatch.setattr(_flat_trees, "_ROWS", 70)
    np.testing.assert_array_equal(model.predict(X), usual)


def test_fits_on_several_threads_leave_the_filters_of_warnings_alone(monkeypatch):
    """scikit-learn empties and refills them in every task of its own; two at once put back what they find of each other."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    X[:, :2] = rng.integers(0, 4, (300, 2))
    schema = Schema(tuple(f"x{j}" for j in range(12)), True, ((0, 1, 2, 3),) * 2 + (None,) * 10)
    heard: list[str] = []
    interval = sys.getswitchinterval()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", lambda message, *_: heard.append(str(message)))
        before = list(warnings.filters)
        sys.setswitchinterval(1e-5)
        try:
            run_parallel(
                lambda seed: fit_boosted(X, X[:, 3], None, schema, classify=False, what="effect", seed=seed),
                range(16),
                n_jobs=8,
            )
        finally:
            sys.setswitchinterval(interval)
        assert list(warnings.filters) == before
    assert not heard
