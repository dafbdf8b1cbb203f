"""FilterSelector against plain loops, least squares and scikit-learn's logistic regression."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import upturn
from naive.trees import divergence
from upturn.features import FilterSelector, UMODLDiscretizer
from upturn.kernels.criteria import CRITERIA, TINY
from upturn.kernels.filters import bin_divergence

SCORES = ("kl", "euclidean", "chi2", "f", "lr")


def experiment(n=1200, n_arms=1, seed=0, real=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    arm = rng.integers(0, n_arms + 1, n)
    lift = 0.25 * (arm > 0) * np.sign(X[:, 3])
    y = rng.normal(size=n) + 2 * lift if real else (rng.random(n) < 0.4 + lift + 0.1 * np.sign(X[:, 1])).astype(int)
    return X, y, arm


def naive_score(score, bins, arm, y, weight):
    total = 0.0
    for b in np.unique(bins):
        control = (bins == b) & (arm == 0)
        if not control.any():
            continue
        q = np.average(y[control], weights=weight[control])
        for a in np.unique(arm[arm > 0]):
            treated = (bins == b) & (arm == a)
            if treated.any():
                p = np.average(y[treated], weights=weight[treated])
                total += weight[bins == b].sum() / weight.sum() * divergence(score, p, q)
    return total


@pytest.mark.parametrize("score", ["kl", "euclidean", "chi2"])
@pytest.mark.parametrize("n_arms", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_divergences_on_percentile_bins(score, n_arms, weighted):
    X, y, arm = experiment(n_arms=n_arms)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    model = FilterSelector(criterion=score, k=1, max_bins=5).fit(X, y, arm, sample_weight=weight if weighted else None)
    for j in range(6):
        inner = np.percentile(X[:, j], [20, 40, 60, 80])
        bins = (X[:, [j]] > inner).sum(axis=1)
        assert model.scores_[j] == pytest.approx(naive_score(score, bins, arm, y, weight), rel=1e-10)
    assert model.get_support(indices=True).tolist() == [3]
    assert model.pvalues_ is None


def test_levels_and_missing_values_are_bins():
    rng = np.random.default_rng(0)
    n = 900
    arm, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    city = rng.choice(["a", "b", "c"], n).astype(object)
    city[::7] = None
    age = np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 3, n))
    model = FilterSelector(criterion="euclidean", k="all", max_bins=50).fit(pd.DataFrame({"c": city, "x": age}), y, arm)
    city_bins = np.array([{"a": 0, "b": 1, "c": 2, None: 3}[v] for v in city])
    age_bins = np.where(np.isnan(age), 3, age)
    for j, bins in enumerate((city_bins, age_bins)):
        assert model.scores_[j] == pytest.approx(naive_score("euclidean", bins, arm, y, np.ones(n)), rel=1e-10)


@given(
    st.lists(st.lists(st.integers(0, 20), min_size=4, max_size=4), min_size=1, max_size=6).filter(
        lambda rows: sum(map(sum, rows)) > 0
    ),
    st.sampled_from(["kl", "euclidean", "chi2"]),
)
def test_bin_divergence_is_finite_and_not_negative(rows, score):
    counts = np.array(rows, dtype=float)
    total = counts[:, ::2].copy()
    weight = total + counts[:, 1::2]
    value = bin_divergence(CRITERIA[score].code, True, weight, total)
    assert np.isfinite(value)
    assert value >= -1e-12
    same = np.column_stack([total[:, 0], total[:, 0]]), np.column_stack([weight[:, 0], weight[:, 0]])
    if same[1].sum() > 0:
        assert bin_divergence(CRITERIA[score].code, True, same[1], same[0]) == pytest.approx(0.0, abs=2 * TINY)


def residuals(design, y, weight):
    root = np.sqrt(weight)
    beta, *_ = np.linalg.lstsq(design * root[:, None], y * root, rcond=None)
    return float((weight * (y - design @ beta) ** 2).sum())


def plain_designs(x, arm, n_arms):
    dummies = [(arm == a).astype(float) for a in range(1, n_arms + 1)]
    small = np.column_stack([np.ones(len(x)), *dummies, x])
    return small, np.column_stack([small, *[d * x for d in dummies]])


@pytest.mark.parametrize("n_arms", [1, 2])
@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_f_is_the_test_of_the_interaction(n_arms, real, weighted):
    X, y, arm = experiment(n_arms=n_arms, real=real)
    X = X * 100 + 1e4
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    model = FilterSelector(criterion="f", k=1).fit(X, y, arm, sample_weight=weight if weighted else None)
    for j in range(6):
        small, large = (residuals(d, y, weight) for d in plain_designs((X[:, j] - 1e4) / 100, arm, n_arms))
        free = len(y) - 2 * (n_arms + 1)
        expected = (small - large) / n_arms / (large / free)
        assert model.scores_[j] == pytest.approx(expected, rel=1e-6)
        assert model.pvalues_[j] == pytest.approx(stats.f.sf(expected, n_arms, free), rel=1e-5)
    assert model.get_support(indices=True).tolist() == [3]


@pytest.mark.parametrize("n_arms", [1, 2])
def test_lr_is_the_likelihood_ratio_of_two_logistic_regressions(n_arms):
    X, y, arm = experiment(n=600, n_arms=n_arms)
    model = FilterSelector(criterion="lr", k=1).fit(X, y, arm)

    def likelihood(design):
        fitted = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000, fit_intercept=False).fit(design, y)
        p = fitted.predict_proba(design)[:, 1]
        return np.log(np.where(y == 1, p, 1 - p)).sum()

    for j in range(6):
        small, large = (likelihood(d) for d in plain_designs(X[:, j], arm, n_arms))
        assert model.scores_[j] == pytest.approx(2 * (large - small), abs=1e-5)
        assert model.pvalues_[j] == pytest.approx(stats.chi2.sf(2 * (large - small), n_arms), rel=1e-4)
    assert model.get_support(indices=True).tolist() == [3]


def test_tests_of_categories_and_missing_values_use_their_degrees_of_freedom():
    rng = np.random.default_rng(0)
    n = 800
    arm, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    city = rng.choice(["a", "b", "c"], n)
    age = np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n))
    frame = pd.DataFrame({"c": city, "x": age})
    f, lr = (FilterSelector(criterion=s, k="all").fit(frame, y, arm) for s in ("f", "lr"))
    for j, columns in enumerate(
        (
            np.column_stack([city == "b", city == "c"]).astype(float),
            np.column_stack([np.where(np.isnan(age), 0, age), np.isnan(age)]),
        )
    ):
        small = np.column_stack([np.ones(n), arm, columns])
        large = np.column_stack([small, columns * arm[:, None]])
        a, b = residuals(small, y, np.ones(n)), residuals(large, y, np.ones(n))
        statistic = (a - b) / 2 / (b / (n - 6))
        assert f.scores_[j] == pytest.approx(statistic, rel=1e-8)
        assert f.pvalues_[j] == pytest.approx(stats.f.sf(statistic, 2, n - 6), rel=1e-8)
        assert lr.pvalues_[j] == pytest.approx(stats.chi2.sf(lr.scores_[j], 2), rel=1e-8)
        assert lr.scores_[j] == pytest.approx(2 * f.scores_[j], rel=0.05, abs=0.1)  # near no effect they agree


@pytest.mark.parametrize("score", ["f", "lr"])
def test_p_values_of_noise_are_uniform(score):
    rng = np.random.default_rng(0)
    arm, y = rng.integers(0, 2, 500), rng.integers(0, 2, 500)
    model = FilterSelector(criterion=score, k="all").fit(rng.normal(size=(500, 300)), y, arm)
    assert stats.kstest(model.pvalues_, "uniform").pvalue > 0.01


@pytest.mark.parametrize("score", SCORES)
def test_columns_that_say_nothing_score_nothing_special(score):
    X, y, arm = experiment()
    X[:, 0] = 7.0
    X[:, 1] = np.nan
    X[:, 2] = arm  # the feature is the treatment: no interaction can be told from it
    model = FilterSelector(criterion=score, k=1).fit(X, y, arm)
    assert np.isfinite(model.scores_).all()
    assert model.ranking_[3] == 1
    if score in ("f", "lr"):
        assert model.scores_[:3].tolist() == [0.0, 0.0, 0.0]
        assert model.pvalues_[:3].tolist() == [1.0, 1.0, 1.0]


def test_separated_outcomes_do_not_break_the_likelihood_ratio():
    rng = np.random.default_rng(0)
    x, arm = rng.normal(size=300), np.tile([0, 1], 150)
    y = np.where(arm == 1, x > 0, rng.random(300) < 0.5).astype(int)
    model = FilterSelector(criterion="lr", k=1).fit(np.column_stack([rng.normal(size=300), x]), y, arm)
    assert np.isfinite(model.scores_).all()
    assert model.get_support(indices=True).tolist() == [1]


def test_real_outcomes_where_they_make_sense():
    X, y, arm = experiment(real=True)
    for score in ("f", "euclidean"):
        assert FilterSelector(criterion=score, k=1).fit(X, y, arm).get_support(indices=True).tolist() == [3]
    for score in ("kl", "chi2", "lr"):
        with pytest.raises(ValueError, match="criterion='f' or criterion='euclidean'"):
            FilterSelector(criterion=score).fit(X, y, arm)


def test_euclidean_of_a_real_outcome_compares_means():
    X, y, arm = experiment(real=True)
    model = FilterSelector(criterion="euclidean", k=1, max_bins=2).fit(X, y, arm)
    high = X[:, 0] > np.median(X[:, 0])
    gaps = [(y[(high == h) & (arm == 1)].mean() - y[(high == h) & (arm == 0)].mean()) ** 2 for h in (False, True)]
    assert model.scores_[0] == pytest.approx(np.mean(gaps))


def test_k_and_ranking():
    X, y, arm = experiment()
    model = FilterSelector(k=3).fit(X, y, arm)
    assert model.get_support().sum() == 3
    assert sorted(model.ranking_.tolist()) == [1, 2, 3, 4, 5, 6]
    assert np.argsort(model.ranking_).tolist() == np.argsort(-model.scores_, kind="stable").tolist()
    np.testing.assert_array_equal(model.feature_importances_, model.scores_)
    assert not hasattr(FilterSelector(), "feature_importances_")
    assert FilterSelector(k="all").fit(X, y, arm).get_support().all()
    assert FilterSelector(k=99).fit(X, y, arm).get_support().all()
    for wrong in (0, -1, 1.5, "some", True):
        with pytest.raises(ValueError, match="expected how many"):
            FilterSelector(k=wrong).fit(X, y, arm)
    with pytest.raises(ValueError, match="max_bins=1: expected a whole number of at least 2"):
        FilterSelector(max_bins=1).fit(X, y, arm)
    with pytest.raises(ValueError, match="criterion='gain': expected 'kl'"):
        FilterSelector(criterion="gain").fit(X, y, arm)
    with pytest.raises(ValueError, match="one value only"):
        FilterSelector().fit(X, np.ones(len(y)), arm)


@pytest.mark.parametrize("score", SCORES)
def test_saved_and_loaded(score, tmp_path):
    X, y, arm = experiment()
    model = FilterSelector(criterion=score, k=2, n_jobs=2).fit(X, y, arm)
    model.save(tmp_path / "filter")
    again = upturn.load(tmp_path / "filter")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.scores_, model.scores_)


def test_a_damaged_state_is_refused():
    X, y, arm = experiment()
    model = FilterSelector(criterion="f").fit(X, y, arm)
    for name, value in (
        ("scores", np.zeros(3)),
        ("scores", np.full(6, np.nan)),
        ("pvalues", np.full(6, 2.0)),
        ("ranking", np.ones(6, dtype=np.int64)),
        ("n_selected", 7),
    ):
        with pytest.raises(ValueError, match=r"well formed|not a ranking"):
            model._set_state({**model._get_state(), name: value})


@pytest.mark.parametrize(
    "model", [UMODLDiscretizer(), *(FilterSelector(criterion=score) for score in SCORES)], ids=repr
)
def test_single_precision_and_frozen_tables_say_the_same(model):
    X, y, arm = experiment()
    X = X.astype(np.float32)
    X.flags.writeable = False
    double = clone(model).fit(X.astype(np.float64), y, arm)
    single = model.fit(X, y, arm)
    np.testing.assert_array_equal(single.feature_importances_, double.feature_importances_)
    np.testing.assert_array_equal(single.transform(X), double.transform(X.astype(np.float64)))
