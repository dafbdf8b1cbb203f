"""Scorers in scikit-learn's searches, packed and routed; comparisons on repeated splits."""

import os

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import upturn as up
from naive import metrics as naive_metrics
from upturn import metrics
from upturn.meta import ClassTransformation
from upturn.model_selection import (
    RepeatedUpliftSplit,
    UpliftKFold,
    compare_models,
    signed_rank_test,
    uplift_scorer,
)
from upturn.trees import UpliftTree

NAMES = ["auuc", "qini", "autoc", "uplift_at", "auu", "expected_response", "policy_value"]


def campaign(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X, treatment = rng.normal(size=(n, 3)), rng.choice(["mail", "none"], n)
    y = (rng.random(n) < 0.4 + 0.3 * (treatment == "mail") * (X[:, 0] > 0)).astype(int)
    return X, y, treatment


def model(**options):
    return ClassTransformation(LogisticRegression(), control="none", **options)


@pytest.mark.parametrize("name", NAMES)
def test_scorers_say_what_the_metric_says(name):
    X, y, treatment = campaign()
    fitted = model().fit(X, y, treatment)
    scorer = uplift_scorer(name)
    judged = fitted.recommend(X) if name in ("expected_response", "policy_value") else fitted.predict(X)
    expected = getattr(metrics, name)(y, judged, treatment, control="none")
    assert scorer(fitted, X, up.pack(y, treatment)) == expected
    assert scorer(fitted, X, y, treatment) == expected
    assert repr(scorer) == f"uplift_scorer({name!r})"


@pytest.mark.parametrize("name", NAMES)
def test_scorers_in_grid_search(name):
    X, y, treatment = campaign()
    packed, grid = up.pack(y, treatment), {"estimator__C": [1e-6, 1.0]}
    folds = list(UpliftKFold(3, random_state=0).split(X, packed))
    search = GridSearchCV(model(), grid, cv=folds, scoring=uplift_scorer(name), error_score="raise").fit(X, packed)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = GridSearchCV(model(), grid, cv=folds, scoring=uplift_scorer(name), error_score="raise")
        routed.fit(X, y, treatment=treatment)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], routed.cv_results_["mean_test_score"])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_several_scorers_at_once_and_a_pipeline():
    X, y, treatment = campaign()
    scoring = {"auuc": uplift_scorer("auuc"), "top": uplift_scorer("uplift_at", k=0.1)}
    found = cross_validate(
        make_pipeline(StandardScaler(), model()),
        X,
        up.pack(y, treatment),
        cv=UpliftKFold(3, random_state=0),
        scoring=scoring,
        error_score="raise",
    )
    assert np.isfinite(found["test_auuc"]).all()
    assert np.isfinite(found["test_top"]).all()


def nested():
    """The same model at the end of a pipeline, in a search, and in searches and pipelines of those."""
    folds, grid = UpliftKFold(2, random_state=0), {"estimator__C": [1.0]}
    search = GridSearchCV(model(), grid, cv=folds, error_score="raise")
    of_pipeline = GridSearchCV(
        make_pipeline(FunctionTransformer(), model()),
        {f"classtransformation__{name}": values for name, values in grid.items()},
        cv=folds,
        scoring=uplift_scorer(),
        error_score="raise",
    )
    return {
        "pipeline": make_pipeline(FunctionTransformer(), model()),
        "search": search,
        "search in pipeline": make_pipeline(FunctionTransformer(), search),
        "pipeline in search": of_pipeline,
    }


@pytest.mark.parametrize("name", nested())
def test_control_is_found_behind_pipelines_and_searches(name):
    # Neither label looks like a control arm, so only the model knows which it is.
    X, y, treatment = campaign()
    treatment = np.where(treatment == "none", "wait", treatment)
    wrapped = clone(nested()[name])
    deep = [key for key in wrapped.get_params() if key == "control" or key.endswith("__control")]
    wrapped.set_params(**dict.fromkeys(deep, "wait"))
    plain, packed = model().set_params(control="wait"), up.pack(y, treatment)
    scorer = uplift_scorer("auuc")
    assert scorer(wrapped.fit(X, packed), X, packed) == scorer(plain.fit(X, packed), X, packed)
    found = compare_models({"plain": plain, "wrapped": wrapped}, X, packed, cv=2, random_state=0)
    np.testing.assert_array_equal(found["wrapped"], found["plain"])
    np.testing.assert_array_equal(found.curves["wrapped"].y, found.curves["plain"].y)


def three_arms(n=300):
    X, y, treatment = campaign(n)
    return X, y, np.where(np.arange(n) % 3 == 0, "post", treatment)


@pytest.mark.parametrize("name", NAMES)
def test_scorers_know_the_arms_of_the_model(name):
    X, y, treatment = three_arms()
    scorer = uplift_scorer(name)
    mail, post = treatment != "post", treatment != "mail"
    for wrapped in (model(), make_pipeline(StandardScaler(), model()), nested()["search"]):
        one = wrapped.fit(X[mail], up.pack(y, treatment)[mail])
        with pytest.raises(ValueError, match=r"treatment holds \['post'\], which the model has not seen"):
            scorer(one, X[post], y[post], treatment[post])
    both = UpliftTree(max_depth=2, control="none").fit(X, y, treatment)
    assert np.isfinite(scorer(both, X, y, treatment))
    with pytest.raises(ValueError, match=r"arm\(s\) \['post'\] have no row in this sample.*cv=UpliftKFold"):
        scorer(both, X[mail], up.pack(y, treatment)[mail])


class OneSplit:
    def __init__(self, train, test):
        self.parts = np.flatnonzero(train), np.flatnonzero(test)

    def split(self, X, y):
        return [self.parts]


@pytest.mark.parametrize("scoring", ["auuc", lambda fitted, X, y: 0.0])
def test_compared_models_know_all_arms(scoring):
    X, y, treatment = three_arms()
    first, mail = np.arange(300) < 150, treatment != "post"
    message = r"arm\(s\) \['post'\] have no row in this sample.*cv=UpliftKFold"
    tree = {"tree": UpliftTree(max_depth=2, control="none")}
    for cv in (OneSplit(first & mail, ~first), OneSplit(first, ~first & mail), OneSplit(first & mail, ~first & mail)):
        with pytest.raises(ValueError, match=message):
            compare_models(tree, X, y, treatment, cv=cv, metric=scoring)

    class OnlyMail(UpliftTree):
        def fit(self, X, y, treatment=None, sample_weight=None):
            chosen = y["treatment"] != "post"
            return super().fit(X[chosen], y[chosen])

    with pytest.raises(ValueError, match=r"treatment holds \['post'\], which the model has not seen"):
        compare_models({"mail": OnlyMail(max_depth=2, control="none")}, X, y, treatment, cv=2, metric=scoring)


def test_scorer_errors():
    with pytest.raises(ValueError, match="metric='mse': expected one of auuc"):
        uplift_scorer("mse")
    with pytest.raises(ValueError, match="leave interval out"):
        uplift_scorer("auuc", interval=0.9)
    with pytest.raises(
        ValueError,
        match=r"metric='auuc' has no option 'kk': its options are ranking, convention, propensity, response, control$",
    ):
        uplift_scorer("auuc", kk=3)
    with pytest.raises(
        ValueError,
        match=r"metric='uplift_at' has no option 'sample_weight': its options are k, ranking, convention, propensity, response, control",
    ):
        uplift_scorer("uplift_at", sample_weight=[1])
    with pytest.raises(
        ValueError, match=r"metric='expected_response' has no option 'k': its options are propensity, control$"
    ):
        uplift_scorer("expected_response", k=0.1)
    with pytest.raises(ValueError, match=r"convention='sklfit': qini is there as"):
        uplift_scorer("qini", convention="sklfit")


@pytest.mark.parametrize("seed", range(6))
def test_signed_rank_equals_naive_twin(seed):
    rng = np.random.default_rng(seed)
    d = np.round(rng.normal(0.4, 1, 9), 1 if seed % 2 else 6)
    assert signed_rank_test(d) == pytest.approx(naive_metrics.signed_rank_p(d), abs=1e-12)


def test_signed_rank_of_ten_folds():
    # The smallest p-value of Tables 3 and 4 of Kuusisto et al., .002 = 2 / 2^10.
    assert signed_rank_test(np.arange(10) + 1) == pytest.approx(2 / 2**10)
    assert signed_rank_test([0.0, 0.0]) == 1.0
    assert signed_rank_test([1, -1]) == 1.0
    from scipy.stats import wilcoxon

    d = np.random.default_rng(0).normal(0.2, 1, 40)
    assert signed_rank_test(d) == pytest.approx(wilcoxon(d, method="exact").pvalue, rel=1e-10)
    assert 0 < signed_rank_test(np.random.default_rng(0).normal(0.1, 1, 256)) < 1


MODELS = {"flat": model(), "shrunk": ClassTransformation(LogisticRegression(C=1e-7), control="none")}


def test_compare_models():
    X, y, treatment = campaign()
    cv = RepeatedUpliftSplit(6, random_state=1)
    models = MODELS | {"clone": model()}
    found = compare_models(models, X, y, treatment, cv=cv, n_jobs=2)
    packed = up.pack(y, treatment)
    again = compare_models(models, X, packed, cv=cv)
    for number, (train, test) in enumerate(cv.split(X, packed)):
        fitted = model().fit(X[train], y[train], treatment[train])
        area = metrics.auuc(y[test], fitted.predict(X[test]), treatment[test], control="none")
        assert found["flat"][number] == again["flat"][number] == area
    table = found.table()
    difference = found["shrunk"] - found["flat"]
    row = list(table["model"]).index("shrunk")
    assert table["difference"][row] == pytest.approx(difference.mean())
    assert table["wins"][row] == (difference > 0).sum()
    assert table["p_signed_rank"][row] == signed_rank_test(difference)
    spread = difference.std(ddof=1)
    assert table["mark"][row] == (
        "**" if abs(difference.mean()) > 2 * spread else "*" if abs(difference.mean()) > spread else ""
    )
    t = difference.mean() / (spread * np.sqrt(1 / 6 + 120 / 480))
    from scipy.stats import t as student

    assert table["p_corrected"][row] == pytest.approx(2 * student.sf(abs(t), 5))
    reach = student.ppf(0.975, 5) * difference.mean() / t
    assert table["low"][row] == pytest.approx(difference.mean() - abs(reach))
    assert table["high"][row] == pytest.approx(difference.mean() + abs(reach))
    same = list(table["model"]).index("clone")
    assert (table["p_signed_rank"][same], table["mark"][same]) == (1.0, "")
    curve = found.curves["flat"]
    assert len(curve.x) == 101
    assert curve.y[0] == 0
    assert repr(found).startswith("auuc, per 1,000 people, over 6 splits, against 'flat'")
    assert len(found.to_frame()) == 3
    known = [p for p in table["p_corrected"] if not np.isnan(p)]
    assert "p_holm" in repr(found)
    assert table["p_holm"][row] == pytest.approx(min(1.0, len(known) * min(known)))  # the smallest, times their number
    assert np.isnan(table["p_holm"][list(table["model"]).index("flat")])


def test_marks_of_one_and_two_sigma():
    from upturn.model_selection import ModelComparison

    base = np.zeros(5)
    wiggle = np.array([-1, -0.5, 0, 0.5, 1.0])  # sd 0.79
    scores = {"base": base, "none": wiggle + 0.5, "one": wiggle + 1.2, "two": wiggle - 1.7}
    table = ModelComparison(scores, "base", "auuc", {}, 0.2).table()
    assert list(table["mark"]) == ["", "", "*", "**"]


def test_splits_without_a_number_are_left_out():
    from upturn.model_selection import ModelComparison

    scores = {"base": np.array([1.0, 2, np.nan, 3]), "other": np.array([2.0, 4, 9, 4])}
    found = ModelComparison(scores, "base", "auuc", {}, 0.2)
    table = found.table()
    assert (table["mean"][1], table["difference"][1], table["wins"][1]) == (10 / 3, 4 / 3, 3)
    assert table["p_signed_rank"][1] == signed_rank_test([1, 2, 1])
    assert repr(found).splitlines()[0] == "auuc over 3 splits, against 'base', 95% intervals"
    assert repr(found).splitlines()[-1] == "left out: 1 split on which a score is not defined"
    nothing = ModelComparison({"base": np.full(2, np.nan), "other": np.ones(2)}, "base", "auuc", {}, 0.2)
    assert repr(nothing).splitlines()[2].split() == ["base", *["n/a"] * 5, "0", "n/a", "n/a"]


def test_an_interrupted_comparison_goes_on(tmp_path):
    X, y, treatment = campaign()
    path, cv = tmp_path / "results.jsonl", RepeatedUpliftSplit(4, random_state=1)
    whole = compare_models(MODELS, X, y, treatment, cv=cv)
    compare_models(MODELS, X, y, treatment, cv=cv, resume=path)
    lines = path.read_text().splitlines()
    assert len(lines) == 8
    path.write_text("\n".join(lines[:5]) + "\n" + lines[5][:20])  # stopped in the middle of a line

    fits = []

    class Counted(ClassTransformation):
        def fit(self, *arguments, **options):
            fits.append(1)
            return super().fit(*arguments, **options)

    Counted.__name__ = Counted.__qualname__ = "ClassTransformation"
    Counted.__module__ = ClassTransformation.__module__
    counted = {name: Counted(item.estimator, control="none") for name, item in MODELS.items()}
    resumed = compare_models(counted, X, y, treatment, cv=cv, resume=path)
    assert len(fits) == 3
    for name in MODELS:
        np.testing.assert_array_equal(resumed[name], whole[name])
    # Other data are other results.
    compare_models(counted, X, 1 - y, treatment, cv=cv, resume=path)
    assert len(fits) == 11


class Remembers(ClassTransformation):
    """A model with a parameter of any kind, which counts its fits."""

    fits = 0

    def __init__(self, estimator=None, *, control=None, extra=None):
        super().__init__(estimator, control=control)
        self.extra = extra

    def fit(self, *arguments, **options):
        type(self).fits += 1
        return super().fit(*arguments, **options)


def fits_of(path, X, y, treatment, extra=None, metric="auuc"):
    Remembers.fits = 0
    models = {"it": make_pipeline(FunctionTransformer(), Remembers(LogisticRegression(), control="none", extra=extra))}
    compare_models(models, X, y, treatment, cv=RepeatedUpliftSplit(2, random_state=1), resume=path, metric=metric)
    return Remembers.fits


def test_results_are_added_to_no_other_file(tmp_path):
    X, y, treatment = campaign()
    path = tmp_path / "mail.csv"

    class Never(ClassTransformation):
        def fit(self, *arguments, **options):
            raise AssertionError("work before the file was looked at")

    for text in ("age,visit\n41,0\n", '{"age": 41}\n{"key": 3, "found": {}}\n', '{"key": "a"}\n', "[]"):
        path.write_text(text)
        for kept in (path, str(path)):
            with pytest.raises(ValueError, match=r"^resume='.*mail.csv' holds something else than results"):
                compare_models({"it": Never(LogisticRegression(), control="none")}, X, y, treatment, resume=kept)
        assert path.read_text() == text
    for text in ("", "\n", '{"key": "it ab', '{"key": "other", "found": {"effects": ""}}\n'):
        path.write_text(text)
        assert fits_of(path, X, y, treatment) == 2
        assert fits_of(path, X, y, treatment) == 0
        assert path.read_text().startswith(text)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="cannot be written: expected a file"):
        fits_of(tmp_path / "pipe", X, y, treatment)


def test_resume_sees_every_change_of_the_data(tmp_path):
    X, y, treatment = campaign()
    path = tmp_path / "results.jsonl"
    assert (fits_of(path, X, y, treatment), fits_of(path, X, y, treatment)) == (2, 0)
    assert fits_of(path, X.tolist(), y, treatment) == 0
    other = X.copy()
    other[300, 1] += 1e-9
    assert fits_of(path, other, y, treatment) == 2
    assert fits_of(path, pd.DataFrame(X, columns=["a", "b", "c"]), y, treatment) == 2
    assert fits_of(path, pd.DataFrame(X, columns=["a", "c", "b"]), y, treatment) == 2
    assert fits_of(path, X, y, np.where(treatment == "mail", "none", "mail")) == 2
    assert fits_of(path, X, y, np.where(treatment == "mail", "post", "none")) == 2
    assert fits_of(path, X, y, treatment) == 0
    with pytest.raises(TypeError, match=r"leave resume out .*sparse"):
        fits_of(path, scipy.sparse.csr_array(X), y, treatment)


def test_resume_sees_every_change_of_a_model(tmp_path):
    X, y, treatment = campaign()
    path, long = tmp_path / "results.jsonl", np.zeros(5000)
    changed = long.copy()
    changed[2500] = 1  # where a repr shows dots
    several = [
        None,
        long,
        changed,
        changed.astype(np.float32),
        [long],
        [changed],
        {"prior": long},
        {"prior": changed},
        pd.Series(long),
        pd.Series(changed),
        long.astype(object),
        LogisticRegression(class_weight={0: 1.0}),
        LogisticRegression(class_weight={0: 2.0}),
        np.random.RandomState(0),
        np.random.RandomState(1),
        uplift_scorer("policy_value", propensity=long),
        uplift_scorer("policy_value", propensity=changed),
    ]
    for extra in several:
        assert fits_of(path, X, y, treatment, extra) == 2
    for extra in several:
        assert fits_of(path, X, y, treatment, extra) == 0
    assert fits_of(path, X, y, treatment, np.random.RandomState(1)) == 0
    assert fits_of(path, X, y, treatment, metric="qini") == 2


def test_comparison_errors():
    X, y, treatment = campaign(100)
    with pytest.raises(ValueError, match="models is empty"):
        compare_models({}, X, y, treatment)
    with pytest.raises(ValueError, match="baseline='x' is not among"):
        compare_models(MODELS, X, y, treatment, baseline="x")


def test_a_number_of_folds():
    X, y, treatment = campaign(200)
    found = compare_models(MODELS, X, y, treatment, cv=np.int64(3), random_state=4)
    same = compare_models(MODELS, X, y, treatment, cv=UpliftKFold(3, random_state=4))
    for name in MODELS:
        np.testing.assert_array_equal(found[name], same[name])
    for wrong in (True, "five", 2.5):
        with pytest.raises(ValueError, match=r"cv=.*: expected a number of folds, a splitter such as UpliftKFold"):
            compare_models(MODELS, X, y, treatment, cv=wrong)


def test_recommendations_are_judged_behind_pipelines_and_searches():
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(400, 2)), rng.integers(0, 2, 400)
    y = (rng.random(400) < 0.5 + 0.3 * t * np.sign(X[:, 0])).astype(int)
    packed, scorer = up.pack(y, t), uplift_scorer("policy_value")
    pipeline = make_pipeline(StandardScaler(), ClassTransformation()).fit(X, packed)
    plain = ClassTransformation().fit(X, packed)
    assert scorer(pipeline, X, packed) == pytest.approx(scorer(plain, X, packed))
    search = GridSearchCV(pipeline, {"classtransformation__reweight": [True]}, cv=UpliftKFold(2), scoring=scorer)
    assert scorer(search.fit(X, packed), X, packed) == pytest.approx(scorer(pipeline, X, packed))
    with pytest.raises(TypeError, match="StandardScaler has no recommend"):
        scorer(StandardScaler().fit(X), X, packed)
