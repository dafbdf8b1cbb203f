"""The SVM family as estimators: what a user sees, and what a user may do wrong."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

import upturn as up
from naive.svm import energy_sum
from upturn.kernels.hashing import LANDMARKS, words
from upturn.metrics import auuc
from upturn.svm import (
    DifferentialSVM,
    StandardSVM,
    SubgroupSVM,
    TwoCostSVM,
    UpliftSVM,
    UpliftSVMCV,
    VanishingWarning,
    _solve,
    energy_distance,
    score_balance,
    sign_shares,
)


def experiment(n=300, m=3, seed=0, biased=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    treated = rng.random(n) < (1 / (1 + np.exp(-1.5 * X[:, 1])) if biased else 0.5)
    y = rng.random(n) < 0.5 + 0.35 * treated * np.tanh(2 * X[:, 0])
    return X, y.astype(int), treated.astype(int)


MODELS = {
    "uplift": UpliftSVM(ratio=1.3, p=1.0),
    "lp": UpliftSVM(p=1.5, ratio=1.5),
    "balanced": UpliftSVM(C=1.0, p=1.0, balance=1.0, group_average=True),
    "rbf": UpliftSVM(kernel="rbf", p=2.0, random_state=0),
    "poly": UpliftSVM(kernel="poly", degree=2, coef0=1.0, C=0.1),
    "differential": DifferentialSVM(C=1e-3),
    "standard": StandardSVM(),
    "flipped": StandardSVM(flip_control=True, p=1.2),
    "two-cost": TwoCostSVM(),
    "subgroup": SubgroupSVM(),
    "cv": UpliftSVMCV(Cs=[0.01, 1.0], ratios=[1.0, 1.5], cv=3, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_fit_is_certified_and_survives_saving(name, tmp_path):
    X, y, t = experiment()
    model = MODELS[name].fit(X, y, t)
    assert model.dual_gap_ <= 1e-8
    assert model.dual_bound_ <= model.objective_ * (1 + 1e-9)
    model.save(tmp_path / "model")
    again = up.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.dual_gap_ == model.dual_gap_
    if hasattr(model, "coef_"):
        np.testing.assert_array_equal(again.coef_, model.coef_)
        assert again.coef_names_ == model.coef_names_
    if hasattr(model, "predict_sign"):
        np.testing.assert_array_equal(again.predict_sign(X), model.predict_sign(X))


@pytest.mark.parametrize("name", MODELS)
def test_same_answer_for_any_order_of_rows(name):
    X, y, t = experiment()
    order = np.random.default_rng(1).permutation(len(y))
    model = MODELS[name]
    if name == "cv":
        pytest.skip("folds are dealt by row")
    first, second = model.fit(X, y, t).predict(X), model.fit(X[order], y[order], t[order]).predict(X)
    np.testing.assert_allclose(first, second, atol=2e-3 * np.ptp(first))


@pytest.mark.parametrize("name", ["uplift", "lp", "balanced", "differential", "standard", "two-cost", "subgroup"])
def test_weights_count_rows(name):
    """An integer weight is a repeated row, in the encoder, the penalties and the energy term alike."""
    X, y, t = experiment(n=120)
    weight = np.random.default_rng(2).integers(0, 4, 120)
    rows = np.repeat(np.arange(120), weight)
    weighted = MODELS[name].fit(X, y, t, sample_weight=weight)
    objective, scores = weighted.objective_, weighted.predict(X)
    repeated = MODELS[name].fit(X[rows], y[rows], t[rows])
    assert repeated.objective_ == pytest.approx(objective, rel=1e-6)
    np.testing.assert_allclose(repeated.predict(X), scores, atol=2e-3 * np.ptp(scores))


def test_signs_follow_the_two_hyperplanes():
    """(3.1.2): strictly above b1 is +1, at or below b2 is -1; recommend treats the rows above b1."""
    X, y, t = experiment()
    model = UpliftSVM(p=2.0, ratio=2.0).fit(X, y, t)
    score = X @ model.coef_
    b1, b2 = model.intercepts_
    expected = np.where(score > b1, 1, np.where(score > b2, 0, -1))
    np.testing.assert_array_equal(model.predict_sign(X), expected)
    np.testing.assert_allclose(model.predict(X), score - (b1 + b2) / 2)
    labels = UpliftSVM(p=2.0, ratio=2.0).fit(X, y, np.where(t, "mail", "control")).recommend(X)
    np.testing.assert_array_equal(labels, np.where(expected == 1, "mail", "control"))
    assert set(np.unique(expected)) == {-1, 0, 1}


def test_coefficients_are_in_the_users_units():
    X, y, t = experiment()
    plain = UpliftSVM(p=2.0).fit(X, y, t)
    stretched = UpliftSVM(p=2.0).fit(X * [1000.0, 1.0, 0.01] + [5.0, -7.0, 1.0], y, t)
    np.testing.assert_allclose(stretched.coef_ * [1000.0, 1.0, 0.01], plain.coef_, rtol=1e-4, atol=1e-7)
    raw = UpliftSVM(p=2.0, standardize=False).fit(X, y, t)
    np.testing.assert_allclose(raw.predict(X), X @ raw.coef_ - raw.intercepts_.mean())


def test_raw_tables():
    X, y, t = experiment(n=200)
    frame = pd.DataFrame({"recency": X[:, 0], "channel": np.where(X[:, 1] > 0, "web", "phone"), "empty": X[:, 2]})
    frame.loc[::7, "recency"] = np.nan
    frame.loc[::5, "channel"] = None
    for model in (UpliftSVM(p=1.5), DifferentialSVM(), SubgroupSVM()):
        model.fit(frame, y, t)
        assert model.coef_names_ == ["recency", "channel=phone", "channel=web", "empty", "recency is missing"]
        scores = model.predict(frame)
        other = pl.DataFrame({name: [None if pd.isna(v) else v for v in frame[name]] for name in frame})
        np.testing.assert_allclose(model.predict(other), scores)
    by_hand = pd.DataFrame(
        {
            "recency": frame["recency"].fillna(frame["recency"].mean()),
            "phone": (frame["channel"] == "phone").astype(float),
            "web": (frame["channel"] == "web").astype(float),
            "empty": frame["empty"],
            "gap": frame["recency"].isna().astype(float),
        }
    )
    model = UpliftSVM(p=1.5).fit(frame, y, t)
    same = UpliftSVM(p=1.5).fit(by_hand, y, t)
    np.testing.assert_allclose(model.predict(frame), same.predict(by_hand), atol=1e-6)


def test_importances_are_shares_of_the_spread_of_the_scores():
    X, y, t = experiment(n=300)
    frame = pd.DataFrame({"a": X[:, 0] * 50, "text": np.where(X[:, 1] > 0, "web", "phone"), "b": X[:, 2], "c": 1.0})
    frame.loc[::7, "a"] = np.nan
    for standardize in (True, False):
        for model in (
            UpliftSVM(p=1.5, standardize=standardize),
            DifferentialSVM(standardize=standardize),
            StandardSVM(),
        ):
            model.fit(frame, y, t)
            a, phone, web, b, _, gap = model.coef_
            spread = frame["a"].fillna(frame["a"].mean()).std(ddof=0), (frame["text"] == "web").std(ddof=0)
            missing = abs(gap) * frame["a"].isna().std(ddof=0)
            wanted = [
                abs(a) * spread[0] + missing,
                (abs(phone) + abs(web)) * spread[1],
                abs(b) * frame["b"].std(ddof=0),
                0.0,
            ]
            np.testing.assert_allclose(model.feature_importances_, wanted, rtol=1e-10)
    treated = t == 1
    model = SubgroupSVM().fit(frame, y, t)
    assert model.feature_importances_[2] == pytest.approx(abs(model.coef_[3]) * frame["b"][treated].std(ddof=0))


def test_importances_are_saved_and_kernels_have_none(tmp_path):
    X, y, t = experiment(n=120)
    model = UpliftSVM(standardize=False).fit(X, y, t)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(up.load(tmp_path / "model").feature_importances_, model.feature_importances_)
    assert not hasattr(UpliftSVM(), "feature_importances_")
    assert not hasattr(DifferentialSVM(), "feature_importances_")
    curved = UpliftSVM(kernel="rbf", C=0.1).fit(X, y, t)
    assert not hasattr(curved, "feature_importances_")
    with pytest.raises(AttributeError, match="no coefficients"):
        curved.feature_importances_  # noqa: B018


def test_landmarks_are_a_function_of_seed_and_row():
    """The same seed draws the same rows, whatever was drawn before; another seed others."""
    X, y, t = experiment(n=200)
    part = {"kernel": "rbf", "n_components": 20, "C": 0.1}
    first, second, other = (UpliftSVM(**part, random_state=seed).fit(X, y, t) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.kernel_map_.landmarks, second.kernel_map_.landmarks)
    assert not np.array_equal(first.kernel_map_.landmarks, other.kernel_map_.landmarks)
    hashes = np.empty(200, np.uint64)
    words(np.uint64(0), LANDMARKS, np.uint64(0), hashes)
    encoded = first.encoder_.transform(X[np.sort(np.argsort(hashes)[:20])])
    np.testing.assert_array_equal(first.kernel_map_.landmarks, np.unique(encoded, axis=0))
    grid = {"Cs": [0.1], "ratios": [1.0, 1.2], "cv": 3, "kernel": "rbf", "n_components": 20}
    threads = [UpliftSVMCV(**grid, random_state=np.random.default_rng(3), n_jobs=k).fit(X, y, t) for k in (1, 2)]
    np.testing.assert_array_equal(threads[0].fold_scores_, threads[1].fold_scores_)


def test_ratio_1_is_a_class_transformed_classifier():
    X, y, t = experiment()
    uplift = UpliftSVM(C=0.5, p=1.5).fit(X, y, t)
    flipped = StandardSVM(C=1.0, p=1.5, flip_control=True).fit(X, y, t)
    np.testing.assert_allclose(uplift.coef_, flipped.coef_, rtol=1e-6)
    np.testing.assert_array_equal(uplift.recommend(X), flipped.recommend(X))


def test_classifiers_equal_scikit_learns():
    X, y, t = experiment()
    ours = StandardSVM(C=0.3, standardize=False).fit(X, y, t)
    theirs = SVC(C=0.3, kernel="linear", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_[0], atol=1e-4)
    np.testing.assert_allclose(ours.intercepts_, -theirs.intercept_, atol=1e-4)
    theirs = SVC(C=0.3, kernel="linear", tol=1e-9).fit(X[t == 1], y[t == 1])
    np.testing.assert_allclose(SubgroupSVM(C=0.3, standardize=False).fit(X, y, t).coef_, theirs.coef_[0], atol=1e-4)
    theirs = SVC(C=1.0, kernel="linear", tol=1e-9).fit(X, y, sample_weight=np.where(t, 0.3, 0.07))
    two = TwoCostSVM(C=0.3, C_control=0.07, standardize=False).fit(X, y, t)
    np.testing.assert_allclose(two.coef_, theirs.coef_[0], atol=1e-4)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_kernels_equal_scikit_learns(kernel):
    X, y, t = experiment(n=150)
    ours = StandardSVM(C=0.7, kernel=kernel, gamma=0.3, degree=2, coef0=1.0, standardize=False).fit(X, y, t)
    theirs = SVC(C=0.7, kernel=kernel, gamma=0.3, degree=2, coef0=1.0, tol=1e-9).fit(X, y)
    new = np.random.default_rng(9).normal(size=(50, 3))
    np.testing.assert_allclose(ours.predict(new), theirs.decision_function(new), atol=2e-4)


def test_precomputed_and_nystroem():
    X, y, t = experiment(n=150)
    new = np.random.default_rng(9).normal(size=(50, 3))
    exact = UpliftSVM(kernel="rbf", gamma=0.3, p=2.0, standardize=False).fit(X, y, t)

    def rbf(A, B):
        return np.exp(-0.3 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    given = UpliftSVM(kernel="precomputed", p=2.0).fit(rbf(X, X), y, t)
    np.testing.assert_allclose(given.predict(rbf(new, X)), exact.predict(new), atol=1e-5)
    for count, least in ((20, 0.85), (100, 0.99)):
        part = UpliftSVM(kernel="rbf", gamma=0.3, p=2.0, standardize=False, n_components=count, random_state=0)
        part.fit(X, y, t)
        assert np.corrcoef(part.predict(new), exact.predict(new))[0, 1] > least
        assert part.kernel_map_.landmarks.shape == (count, 3)
    with pytest.raises(ValueError, match="square matrix"):
        UpliftSVM(kernel="precomputed").fit(X, y, t)
    with pytest.raises(ValueError, match="not symmetric"):
        UpliftSVM(kernel="precomputed").fit(np.random.default_rng(0).normal(size=(150, 150)), y, t)
    with pytest.raises(ValueError, match="negative eigenvalue"):
        UpliftSVM(kernel="precomputed").fit(-np.eye(150), y, t)


def test_a_kernel_finds_what_no_hyperplane_can():
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(800, 2)), rng.integers(0, 2, 800)
    y = rng.random(800) < 0.5 + 0.4 * t * np.where((X**2).sum(axis=1) < 1.4, 1, -1)
    train, test = slice(0, 400), slice(400, 800)
    linear = UpliftSVM(p=2.0).fit(X[train], y[train], t[train]).score(X[test], y[test], t[test])
    curved = UpliftSVM(p=2.0, kernel="rbf").fit(X[train], y[train], t[train]).score(X[test], y[test], t[test])
    assert curved > linear + 0.05


@pytest.mark.parametrize(("p", "wanted"), [(2.0, 0.3), (2.0, 0.7), (1.2, 0.5), (1.0, 0.3)])
def test_auto_ratio_leaves_the_share_asked_for(p, wanted):
    X, y, t = experiment(n=400)
    model = UpliftSVM(p=p, ratio="auto", neutral=wanted).fit(X, y, t)
    share = np.mean(model.predict_sign(X) == 0)
    assert share == pytest.approx(wanted, abs=0.01)
    assert model.ratio_ > 1.0
    direct = UpliftSVM(p=p, ratio=model.ratio_).fit(X, y, t)
    np.testing.assert_allclose(direct.intercepts_, model.intercepts_, atol=1e-3)


def test_balance_makes_the_groups_scores_alike():
    X, y, t = experiment(n=400, biased=True)
    found = []
    for balance in (0.0, 0.1, 1.0, 10.0, 100.0):
        model = UpliftSVM(C=1.0, p=1.0, balance=balance, group_average=True, at_zero="zero")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if balance == 100.0 else "error", VanishingWarning)  # the last w is 0
            model.fit(X, y, t)
        found.append(score_balance(model.predict(X), t))
    energies = [f.energy for f in found]
    assert energies == sorted(energies, reverse=True)
    assert abs(found[-1].mean_difference) < 0.05 * abs(found[0].mean_difference)
    assert found[-1].ks < found[0].ks


def test_group_average_gives_both_groups_the_same_say():
    """Copying every control row changes nothing when slacks are averaged within groups."""
    X, y, t = experiment(n=150)
    rows = np.concatenate([np.arange(150), np.flatnonzero(t == 0)])
    once = UpliftSVM(p=1.5, group_average=True, standardize=False).fit(X, y, t)
    twice = UpliftSVM(p=1.5, group_average=True, standardize=False).fit(X[rows], y[rows], t[rows])
    np.testing.assert_allclose(once.coef_, twice.coef_, rtol=1e-5)


def test_comparison_solvers_come_close_and_say_how_close():
    X, y, t = experiment(n=150)
    exact = UpliftSVM(C=0.01, p=1.0).fit(X, y, t)
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        slow = UpliftSVM(C=0.01, p=1.0, solver="dcd", max_iter=200, random_state=0).fit(X, y, t)
    assert slow.solver_ == "dcd"
    assert slow.objective_ == pytest.approx(exact.objective_, rel=1e-2)
    assert slow.dual_gap_ >= (slow.objective_ - exact.objective_) / slow.objective_ - 1e-8
    exact = UpliftSVM(p=1.0, balance=1.0, group_average=True).fit(X, y, t)
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        slow = UpliftSVM(p=1.0, balance=1.0, group_average=True, solver="asgd", max_iter=300, random_state=0).fit(
            X, y, t
        )
    assert slow.objective_ == pytest.approx(exact.objective_, rel=1e-3)
    assert slow.objective_ >= exact.objective_ * (1 - 1e-7)


def test_differential_ranks_by_uplift():
    """AUU in counts is affine in -(bad_A/n_A + bad_B/n_B), which is why lam is n_A/n_B on raw pairs."""
    X, y, t = experiment(n=200)
    rng = np.random.default_rng(0)
    points = []
    for _ in range(6):
        score = rng.normal(size=200)
        bad, area = [], 0.0
        for group, sign in ((t == 1, 1), (t == 0, -1)):
            s, o = score[group], y[group]
            difference = s[o == 1][:, None] - s[o == 0][None]
            bad.append((difference * sign < 0).sum() / group.sum())
            order = np.argsort(-s)
            lift = np.cumsum(o[order])
            area += sign * (lift.mean() - 0.5 * lift[-1] / group.sum())
        points.append((sum(bad), area))
    points = np.array(points)
    slope, offset = np.polyfit(points[:, 0], points[:, 1], 1)
    np.testing.assert_allclose(points[:, 1], slope * points[:, 0] + offset, atol=1e-9)
    assert slope == pytest.approx(-1.0)
    model = DifferentialSVM().fit(X, y, t)
    assert model.lam_ == pytest.approx((t == 1).sum() / (t == 0).sum())
    share = [y[t == g].mean() for g in (0, 1)]
    count = [(t == g).sum() for g in (0, 1)]
    paper = count[0] * share[0] * (1 - share[0]) / (count[1] * share[1] * (1 - share[1]))
    assert DifferentialSVM(lam="paper").fit(X, y, t).lam_ == pytest.approx(paper)
    assert DifferentialSVM(lam=0.0).fit(X, y, t).lam_ == 0.0
    assert auuc(y, model.predict(X), t) > auuc(y, StandardSVM().fit(X, y, t).predict(X), t) - 0.01


@pytest.mark.parametrize("name", ["differential", "standard", "two-cost", "subgroup"])
def test_rankings_refuse_to_recommend(name):
    X, y, t = experiment()
    with pytest.raises(ValueError, match="no zero"):
        MODELS[name].fit(X, y, t).recommend(X)


def test_grid_search_finds_the_best_point():
    X, y, t = experiment()
    model = UpliftSVMCV(Cs=[1e-3, 1e-2, 1.0], ratios=[1.0, 1.2, 2.0], cv=3, random_state=4).fit(X, y, t)
    assert model.scores_.shape == (3, 3)
    assert model.fold_scores_.shape == (3, 3, 3)
    assert model.best_score_ == model.scores_.max()
    again = UpliftSVM(C=model.C_, ratio=model.ratio_).fit(X, y, t)
    np.testing.assert_allclose(model.coef_, again.coef_, rtol=1e-6)
    threads = UpliftSVMCV(Cs=[1e-3, 1e-2, 1.0], ratios=[1.0, 1.2, 2.0], cv=3, random_state=4, n_jobs=2).fit(X, y, t)
    np.testing.assert_array_equal(threads.fold_scores_, model.fold_scores_)

    splits = list(up.model_selection.UpliftKFold(3, random_state=4).split(X, y, t))
    train, test = splits[0]
    alone = UpliftSVM(C=1e-2, ratio=1.2).fit(X[train], y[train], t[train])
    assert model.fold_scores_[0, 1, 1] == pytest.approx(alone.score(X[test], y[test], t[test]), abs=1e-9)
    given = UpliftSVMCV(Cs=[1e-2], ratios=[1.2], cv=splits).fit(X, y, t)
    assert given.fold_scores_[0, 0, 0] == pytest.approx(model.fold_scores_[0, 1, 1], abs=1e-9)


def test_sign_shares_grow_with_the_ratio():
    X, y, t = experiment()
    shares = sign_shares(UpliftSVM(C=5.0, p=2.0), X, y, t, [1.0, 1.5, 3.0, 30.0])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert (np.diff(shares[:, 1]) > 0).all()
    assert shares[0, 1] == 0.0


def test_score_balance_and_energy_distance():
    rng = np.random.default_rng(0)
    score, t, weight = rng.normal(size=60).round(1), rng.integers(0, 2, 60), rng.exponential(size=60)
    found = score_balance(score, t, sample_weight=weight)
    grid = np.unique(score)
    cdf = [np.array([weight[(t == g) & (score <= x)].sum() / weight[t == g].sum() for x in grid]) for g in (0, 1)]
    np.testing.assert_allclose(found.control_cdf, cdf[0])
    np.testing.assert_allclose(found.treated_cdf, cdf[1])
    assert found.ks == pytest.approx(np.abs(cdf[1] - cdf[0]).max())
    means = [np.average(score[t == g], weights=weight[t == g]) for g in (0, 1)]
    assert found.mean_difference == pytest.approx(means[1] - means[0])
    naive, _ = energy_sum(score, t == 1, weight, 1.3)
    fast = energy_distance(score[t == 1], score[t == 0], 1.3, sample_weight=(weight[t == 1], weight[t == 0]))
    assert fast == pytest.approx(naive, rel=1e-9)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (UpliftSVM(C=0.0), "C=0.0: expected a number above 0"),
        (UpliftSVM(C=-1), "C=-1"),
        (UpliftSVM(C="1"), "C='1': expected a number above 0"),
        (UpliftSVM(C=True), "C=True: expected a number above 0"),
        (UpliftSVM(ratio=0.9), "ratio=0.9: expected a number of at least 1"),
        (UpliftSVM(ratio="best"), "or 'auto'"),
        (UpliftSVM(p=0.5), "p=0.5"),
        (UpliftSVM(p=1.01), "nearly that of p=1"),
        (UpliftSVM(balance=-1.0), "balance=-1.0"),
        (UpliftSVM(exponent=2.0), r"exponent=2.0.*\[1, 2\)"),
        (UpliftSVM(exponent=0.9), "exponent=0.9"),
        (UpliftSVM(standardize=1), "standardize=1: expected True or False"),
        (UpliftSVM(group_average="yes"), "group_average='yes'"),
        (UpliftSVM(coef0=np.nan), "coef0=nan"),
        (UpliftSVM(kernel="sigmoid"), "kernel='sigmoid'"),
        (UpliftSVM(gamma=-1.0, kernel="rbf"), "gamma=-1.0"),
        (UpliftSVM(neutral=0.3), "needs ratio='auto'"),
        (UpliftSVM(ratio="auto", neutral=1.0), "strictly between 0 and 1"),
        (UpliftSVM(solver="smo"), "solver='smo'"),
        (UpliftSVM(solver="dcd"), "p=1 without balance"),
        (UpliftSVM(solver="asgd"), "p=1 only"),
        (UpliftSVM(tol=0.0), "tol=0.0"),
        (UpliftSVM(max_iter=0), "max_iter=0"),
        (UpliftSVM(n_components=0), "n_components=0"),
        (TwoCostSVM(C_control=-0.1), "C_control=-0.1"),
        (DifferentialSVM(C=0.0), "C=0.0"),
        (DifferentialSVM(lam=-1.0), "lam=-1.0"),
        (DifferentialSVM(lam="best"), "lam='best'"),
        (UpliftSVMCV(Cs=[]), "Cs is empty"),
        (UpliftSVMCV(Cs=[1.0, 0.0]), "Cs=0.0: expected a number above 0"),
        (UpliftSVMCV(ratios=[0.5]), "ratios=0.5: expected a number of at least 1"),
        (UpliftSVMCV(n_jobs=0), "n_jobs=0"),
        (StandardSVM(flip_control=0), "flip_control=0"),
    ],
)
def test_bad_parameters_say_what_to_do(model, message):
    X, y, t = experiment(n=60)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, t)


def test_bad_data_says_what_to_do():
    X, y, t = experiment(n=60)
    for model in (UpliftSVM(), DifferentialSVM(), SubgroupSVM()):
        with pytest.raises(ValueError, match=r"two|binary|classes"):
            model.fit(X, np.random.default_rng(0).normal(size=60), t)
        broken = X.copy()
        broken[3, 1] = np.inf
        with pytest.raises(ValueError, match="inf"):
            model.fit(broken, y, t)


def test_degenerate_data_give_correct_degenerate_models():
    X, y, t = experiment(n=60)
    # one outcome only in the treatment group: still a problem with both labels
    partly = np.where(t == 1, 1, y)
    model = UpliftSVM(p=1.5).fit(X, partly, t)
    assert model.dual_gap_ <= 1e-8
    assert DifferentialSVM(C=1e-2).fit(X, partly, t).dual_gap_ <= 1e-8
    # treated always succeed and controls always fail: everybody is helped, and no coefficient is needed
    for p in (1.0, 2.0):
        with pytest.warns(VanishingWarning, match="same label"):
            model = UpliftSVM(p=p, ratio=1.5).fit(X, t, t)
        assert model.vanishing_
        assert not model.predict(X).any()
        assert not model.coef_.any()
        assert (model.predict_sign(X) == 1).all()
        assert model.objective_ == 0.0
        np.testing.assert_array_equal(model.intercept_intervals_[:, 0], [-np.inf, -np.inf])
    with pytest.warns(VanishingWarning, match="same label"):
        model = UpliftSVM(p=1.0).fit(X, 1 - t, t)
    assert (model.predict_sign(X) == -1).all()
    assert not DifferentialSVM().fit(X, t, t).coef_.any()
    with pytest.warns(VanishingWarning, match="same label"):
        assert (SubgroupSVM().fit(X, partly, t).coef_ == 0).all()
    # constant columns carry no weight
    constant = np.column_stack([X, np.full(60, 7.0)])
    model = UpliftSVM(p=1.5).fit(constant, y, t)
    assert model.coef_[-1] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(model.predict(constant), UpliftSVM(p=1.5).fit(X, y, t).predict(X), atol=1e-5)
    with pytest.warns(VanishingWarning, match="no column varies"):
        nothing = UpliftSVM().fit(np.zeros((60, 1)), y, t)
    assert nothing.dual_gap_ <= 1e-8
    assert not nothing.coef_.any()


def test_more_columns_than_rows():
    X, y, t = experiment(n=40, m=100)
    model = UpliftSVM(C=1.0, ratio=1.2, p=1.0).fit(X, y, t)
    assert model.dual_gap_ <= 1e-8
    assert model.coef_.shape == (100,)


def test_damaged_state_is_refused():
    X, y, t = experiment(n=60)
    model = UpliftSVM().fit(X, y, t)
    for key, value in (
        ("w", np.zeros(2)),
        ("w", np.array([0.0, np.nan, 0.0])),
        ("b", np.zeros(3)),
        ("b", np.zeros(1)),
        ("interval", np.zeros((2, 3))),
        ("ratio", -1.0),
        ("encoder", None),
        ("kernel", {"name": "rbf"}),
    ):
        state = model._get_state() | {key: value}
        fresh = UpliftSVM()
        fresh._schema = model._schema
        with pytest.raises((ValueError, KeyError)):
            fresh._set_state(state)
    state = UpliftSVM(kernel="rbf").fit(X, y, t)._get_state()
    fresh = UpliftSVM(kernel="rbf")
    fresh._schema = model._schema
    with pytest.raises(ValueError, match="landmarks"):
        fresh._set_state(state | {"kernel": state["kernel"] | {"landmarks": np.zeros((5, 9))}})
    with pytest.raises(ValueError, match="damaged"):
        fresh._set_state(state | {"kernel": state["kernel"] | {"projection": np.full((60, 60), np.nan)}})


def test_loose_iteration_limit_warns_and_is_honest():
    X, y, t = experiment()
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = UpliftSVM(p=1.0, max_iter=3).fit(X, y, t)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exact = UpliftSVM(p=1.0).fit(X, y, t)
    assert model.objective_ - model.dual_bound_ >= model.objective_ - exact.objective_
    assert model.dual_gap_ > 1e-8


@pytest.mark.parametrize(
    ("exhausted", "reason"),
    [(True, "ran out of iterations; raise max_iter"), (False, "steps no longer bring it nearer")],
)
def test_the_reason_why_it_stopped_is_that_of_the_last_stage(exhausted, reason, monkeypatch):
    """Whatever the stages before took."""
    solve = _solve.Prepared.solve

    def stopped(self, *arguments):
        return replace(solve(self, *arguments), gap=0.1, iterations=1000 - 999 * exhausted, exhausted=exhausted)

    monkeypatch.setattr(_solve.Prepared, "solve", stopped)
    X, y, t = experiment()
    with pytest.warns(ConvergenceWarning, match=reason):
        UpliftSVM(p=1.2).fit(X, y, t)


def test_newton_and_the_interior_point_say_when_they_run_out():
    X, y, t = experiment()
    for p in (1.0, 1.05, 1.2):
        with pytest.warns(ConvergenceWarning, match="ran out of iterations; raise max_iter"):
            model = UpliftSVM(p=p, max_iter=1).fit(X, y, t)
        assert not model.vanishing_  # w = 0 is where it has begun, not what is best


def weak(n=600, seed=0):
    """An effect too weak for w to leave 0 at p = 1."""
    rng = np.random.default_rng(seed)
    X, t = rng.normal(size=(n, 3)) * [1.0, 5.0, 0.1], rng.integers(0, 2, n)
    y = rng.random(n) < 0.3 + 0.1 * t * np.tanh(X[:, 0])
    return X, y.astype(int), t


def vanishing(model, X, y, t):
    with pytest.warns(VanishingWarning, match=r"best w is 0.*p=1\.2"):
        return model.fit(X, y, t)


def test_where_w_is_0_the_ranking_is_that_of_p_1_2():
    X, y, t = weak()
    smooth = UpliftSVM(C=0.3, ratio=1.3, p=1.2, tol=1e-11).fit(X, y, t)
    scores = smooth.predict(X) - smooth.predict(X).mean()
    order = np.random.default_rng(1).permutation(len(y))
    for tol in (1e-3, 1e-8, 1e-11):
        model = vanishing(UpliftSVM(C=0.3, ratio=1.3, p=1.0, tol=tol), X, y, t)
        assert model.vanishing_
        assert not model.coef_.any()
        assert model.dual_gap_ <= 1e-8
        assert np.std(model.predict(X)) == pytest.approx(1.0)
        np.testing.assert_allclose(model.predict(X), scores / np.std(scores), atol=1e-7)
        moved = vanishing(UpliftSVM(C=0.3, ratio=1.3, p=1.0, tol=tol), X[order], y[order], t[order])
        np.testing.assert_allclose(moved.predict(X), model.predict(X), atol=1e-7)
    np.testing.assert_allclose(X @ model.ranking_coef_, X @ smooth.coef_ / np.std(scores), atol=1e-6)
    np.testing.assert_allclose(model.feature_importances_, smooth.feature_importances_ / np.std(scores), atol=1e-6)
    # signs and recommendations are those of the optimum: a hyperplane has everybody on the side of the dearer label
    up, down = np.sum(y == t), np.sum(y != t)
    sign = int(up > 1.3 * down) + int(1.3 * up > down) - 1
    assert set(model.predict_sign(X)) == {sign}
    assert set(model.recommend(X)) == {int(sign == 1)}


def test_where_w_is_0_zeros_may_be_asked_for():
    X, y, t = weak()
    with pytest.warns(VanishingWarning, match="predict gives 0"):
        model = UpliftSVM(p=1.0, at_zero="zero").fit(X, y, t)
    assert model.vanishing_
    assert not model.predict(X).any()
    assert not model.feature_importances_.any()
    with pytest.raises(ValueError, match="at_zero='none'"):
        UpliftSVM(at_zero="none").fit(X, y, t)


def test_where_w_is_not_0_nothing_is_said():
    X, y, t = experiment()
    model = UpliftSVM(p=1.0).fit(X, y, t)
    assert not model.vanishing_
    assert model.coef_.any()
    np.testing.assert_array_equal(model.ranking_coef_, model.coef_)


@pytest.mark.parametrize(
    "model",
    [
        UpliftSVM(p=1.0, kernel="poly", degree=1),
        UpliftSVM(p=1.0, balance=1.0),
        StandardSVM(),
        StandardSVM(flip_control=True),
        TwoCostSVM(),
        SubgroupSVM(),
        UpliftSVMCV(Cs=[0.01], ratios=[1.0, 1.5], p=1.0, cv=3, random_state=0),
    ],
    ids=lambda model: str(model)[:40],
)
def test_every_machine_ranks_where_its_w_is_0(model, tmp_path):
    X, y, t = weak()
    model = vanishing(model, X, y, t)
    scores = model.predict(X)
    weight = t == 1 if isinstance(model, SubgroupSVM) else np.ones(len(y), bool)
    assert np.std(scores[weight]) == pytest.approx(1.0)
    model.save(tmp_path / "model")
    again = up.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), scores)
    assert again.vanishing_
    if isinstance(model, UpliftSVM) or getattr(model, "flip_control", False):
        assert len(set(model.recommend(X).tolist())) == 1
        np.testing.assert_array_equal(again.recommend(X), model.recommend(X))
    if model.kernel == "linear":
        np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    state = model._get_state()
    fresh = type(model)(**model.get_params())
    fresh._schema = model._schema
    for wrong in ({"w": np.zeros(1), "middle": 0.0}, {"w": np.full_like(state["ranking"]["w"], np.nan), "middle": 0.0}):
        with pytest.raises(ValueError, match="ranking does not fit"):
            fresh._set_state(state | {"ranking": wrong})
    with pytest.raises(ValueError, match="ranking does not fit"):
        fresh._set_state(state | {"vanishing": False})


def test_a_grid_is_scored_as_its_points_predict():
    X, y, t = weak()
    splits = list(up.model_selection.UpliftKFold(3, random_state=4).split(X, y, t))
    with pytest.warns(VanishingWarning, match="cross-validation chose"):
        model = UpliftSVMCV(Cs=[0.01, 0.3], ratios=[1.0, 1.4], p=1.0, cv=splits).fit(X, y, t)
    train, test = splits[1]
    for i, C in enumerate((0.01, 0.3)):
        for j, ratio in enumerate((1.0, 1.4)):
            alone = vanishing(UpliftSVM(C=C, ratio=ratio, p=1.0), X[train], y[train], t[train])
            assert model.fold_scores_[1, i, j] == pytest.approx(alone.score(X[test], y[test], t[test]), abs=1e-9)


def test_auto_ratio_says_that_a_share_cannot_be_reached():
    X, y, t = weak()
    with pytest.warns() as said:
        model = UpliftSVM(p=1.0, ratio="auto", neutral=0.3).fit(X, y, t)
    (message,) = [str(one.message) for one in said if "neutral" in str(one.message)]
    assert "no ratio that leaves 30.0% of the training rows neutral: there are 0.0% at ratio=" in message
    assert "and 100.0% at ratio=" in message
    assert "p=1.2" in message
    assert np.mean(model.predict_sign(X) == 0) in (0.0, 1.0)
    smooth = UpliftSVM(p=1.2, ratio="auto", neutral=0.3).fit(X, y, t)  # what the message advises
    assert np.mean(smooth.predict_sign(X) == 0) == pytest.approx(0.3, abs=0.01)


def test_labels_so_unbalanced_that_w_is_too_short_to_see():
    """At p = 1.2 and labels of 200 to 1, w is of the order 200^-5: predict shows its scores on a scale of their own."""
    rng = np.random.default_rng(0)
    n = 20_000
    X, t = rng.normal(size=(n, 2)), (rng.random(n) < 0.003).astype(int)
    y = (rng.random(n) < 0.002 + 0.3 * t * (X[:, 0] > 0)).astype(int)
    with pytest.warns(VanishingWarning, match=r"label is so rare.*p=2"):
        model = UpliftSVM(p=1.2).fit(X, y, t)
    assert model.dual_gap_ <= 1e-8
    assert 0 < np.abs(model.coef_).max() < 1e-8
    assert np.std(model.predict(X)) == pytest.approx(1.0)
    np.testing.assert_allclose(
        model.ranking_coef_ / np.abs(model.ranking_coef_).max(), model.coef_ / np.abs(model.coef_).max()
    )
    assert set(model.predict_sign(X)) == {1}
    assert not UpliftSVM(p=2.0).fit(X, y, t).vanishing_
    with pytest.warns(VanishingWarning):
        turned = UpliftSVM(p=1.2).fit(X[::-1], y[::-1], t[::-1])
    np.testing.assert_allclose(turned.predict(X), model.predict(X), atol=1e-4)
