"""UpliftStacking: weights that find the right model, the average effect where there is none, and its losses by hand."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

import upturn
from upturn._nuisance import Choice
from upturn.boosting import UpliftBagging
from upturn.ensemble import UpliftAuto, UpliftStacking
from upturn.ensemble._candidates import default_candidates, read_candidates
from upturn.ensemble._weights import LEAST
from upturn.meta import DRLearner, OneVsControl, SLearner, TLearner, XLearner
from upturn.svm import UpliftSVM
from upturn.trees import UpliftForest

QUICK = {"estimator": Ridge(), "propensity": "shares", "random_state": 0}


def trial(n=1500, seed=0, effect=lambda X: X[:, 0], noise=1.0):
    rng = np.random.default_rng(seed)
    X, t = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    return X, X[:, 1] + t * effect(X) + noise * rng.normal(size=n), t


def weight_of(model, name):
    table = model.weights_
    return float(table["weight"][list(table["model"]).index(name)])


def test_the_model_that_is_right_gets_the_weight():
    X, y, t = trial()
    candidates = {"right": TLearner(Ridge()), "wrong": SLearner(Ridge())}  # without interactions, one effect for all
    model = UpliftStacking(candidates, **QUICK).fit(X, y, t)
    assert weight_of(model, "right") > 0.9
    assert weight_of(model, "wrong") < 0.05
    assert model.predict([[1.0, 0, 0], [-1.0, 0, 0]]) == pytest.approx([1, -1], abs=0.25)
    gain = dict(zip(model.losses_["model"], model.losses_["gain"], strict=True))
    assert gain["right"] > 0
    assert gain["stack"] > 0
    assert gain["average effect"] == 0
    assert gain["wrong"] == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("weighting", ["exponential", "least-squares"])
def test_without_heterogeneity_it_shrinks_to_the_average_effect_and_says_so_when_nothing_is_left(weighting):
    candidates = {"x": XLearner(Ridge()), "t": TLearner(Ridge())}
    constant, faint, spread = 0, 0, []
    for seed in range(15):
        X, y, t = trial(600, seed, effect=lambda X: 0.5)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = UpliftStacking(candidates, weighting=weighting, **QUICK).fit(X, y, t)
        scores = model.predict(X)
        spread.append(scores.std() / TLearner(Ridge()).fit(X, y, t).predict(X).std())
        if np.ptp(scores) == 0:
            constant += 1
            assert any("average effect" in str(one.message) for one in told)
            assert model.estimators_ == {}
            assert scores[0] == pytest.approx(0.5, abs=0.35)
            assert not hasattr(model, "predict_response")
        else:  # a hundredth of the weight is next to nothing, and is told as well
            little = sum(model.weights_["weight"][1:]) <= LEAST * (1 + 1e-9)
            assert any("next to nothing more" in str(one.message) for one in told) == little
            faint += little
    assert constant >= 1 if weighting == "least-squares" else constant == 0
    assert faint >= 1
    assert np.median(spread) < 0.1
    assert np.mean(spread) < 0.4


@pytest.mark.parametrize("loss", ["r", "dr"])
def test_losses_by_hand(loss):
    X, y, t = trial(400)
    model = UpliftStacking(
        {"t": TLearner(Ridge())},
        loss=loss,
        ridge=0.0,
        estimator=LinearRegression(),
        propensity=0.5,
        cv=4,
        random_state=0,
    )
    model.fit(X, y, t)
    folds = _folds_of(model, X, y, t)
    tau, r, s = model.oof_["t"], np.empty(400), np.empty(400)
    for train, test in folds:
        again = TLearner(Ridge()).fit(X[train], y[train], t[train])
        assert again.predict(X[test]) == pytest.approx(tau[test])
        if loss == "r":
            r[test] = y[test] - LinearRegression().fit(X[train], y[train]).predict(X[test])
            s[test] = t[test] - 0.5
        else:
            mu = [
                LinearRegression().fit(X[train][t[train] == k], y[train][t[train] == k]).predict(X[test])
                for k in (0, 1)
            ]
            y_, t_ = y[test], t[test]
            r[test] = mu[1] - mu[0] + t_ / 0.5 * (y_ - mu[1]) - (1 - t_) / 0.5 * (y_ - mu[0])
            s[test] = 1.0
    free = [np.ones(400), s] if loss == "r" else [s]

    def fit(columns, rows, r=r):
        return np.linalg.lstsq(np.column_stack(columns)[rows], r[rows], rcond=None)[0]

    def fit_inside(candidate, rows):
        found = fit([*free, candidate], rows)
        return found if found[-1] <= 1 else np.append(fit(free, rows, r - candidate), 1.0)

    whole = fit([*free, s * (tau - tau.mean())], np.arange(400))
    assert 0 < whole[-1] < 1  # the constraints are idle here
    assert weight_of(model, "t") == pytest.approx(whole[-1])
    assert model.average_effects_ == pytest.approx(whole[-2:-1])
    average, stack, alone = np.empty(400), np.empty(400), np.empty(400)
    for train, test in folds:
        b = fit(free, train)
        average[test] = (r - np.column_stack(free) @ b)[test]
        columns = [*free, s * (tau - tau.mean())]
        stack[test] = (r - np.column_stack(columns) @ fit_inside(columns[-1], train))[test]
        left = r - s * tau
        alone[test] = left[test] - (left[train].mean() if loss == "r" else 0.0)
    table = model.losses_
    assert table["loss"] == pytest.approx([np.mean(v**2) for v in (average, stack, alone)])
    gains = average**2 - alone**2
    assert table["gain"][2] == pytest.approx(gains.mean())
    assert table["se"][2] == pytest.approx(gains.std() / 20)


def _folds_of(model, X, y, t):
    from upturn._nuisance import seed_of
    from upturn._splitters import folds_of
    from upturn._target import read_target
    from upturn.ensemble._stacking import _FOLDS

    return folds_of(X, read_target(y, t), model.cv, np.uint64(seed_of(np.uint64(0), _FOLDS)))


def test_prediction_is_the_formula_and_responses_carry_the_effects():
    X, y, t = trial(600)
    model = UpliftStacking({"t": TLearner(Ridge()), "forest": UpliftForest(10)}, ridge=0.1, **QUICK).fit(X, y, t)
    by_hand = np.full(600, model.average_effects_[0])
    for name, member in model.estimators_.items():
        by_hand += weight_of(model, name) * (member.predict(X) - np.mean(model.oof_[name]))
    assert model.predict(X) == pytest.approx(by_hand)
    responses = model.predict_response(X)
    assert responses[:, 1] - responses[:, 0] == pytest.approx(model.predict(X))
    assert weight_of(model, "average effect") == pytest.approx(1 - weight_of(model, "t") - weight_of(model, "forest"))


def test_every_arm_has_weights_of_its_own_and_scores_without_a_unit_are_calibrated():
    rng = np.random.default_rng(0)
    n = 3000
    X, t = rng.normal(size=(n, 2)), rng.choice(["control", "mail", "phone"], n)
    lift = np.where(t == "mail", 0.35 * np.sign(X[:, 0]), 0.0)
    y = (rng.random(n) < 0.5 + lift).astype(int)
    candidates = {"machine": UpliftSVM(), "linear": TLearner(Ridge())}
    with pytest.warns(UserWarning, match="no model inside predicts the effects of 'phone'"):
        model = UpliftStacking(candidates, cv=3, **QUICK).fit(X, y, t)
    table = model.weights_
    mail = np.asarray(table["arm"]) == "mail"
    assert table["weight"][mail][1:].sum() > 0.7
    assert table["weight"][~mail][1:].sum() < 0.5
    assert model.predict(X).shape == (n, 2)
    assert np.corrcoef(model.predict(X)[:, 0], np.sign(X[:, 0]))[0, 1] > 0.8
    assert abs(model.predict(X)[:, 0]).max() < 1


def test_weights_of_rows_count_and_rows_of_weight_0_do_not():
    X, y, t = trial(900)
    weight = np.r_[np.ones(600), np.zeros(300)]
    candidates = {"t": TLearner(Ridge()), "s": SLearner(Ridge())}
    model = UpliftStacking(candidates, **QUICK).fit(X, y, t, weight)
    again = UpliftStacking(candidates, **QUICK).fit(X[:600], y[:600], t[:600])
    assert model.predict(X) == pytest.approx(again.predict(X))
    assert np.isnan(model.oof_["t"][600:]).all()
    assert np.isfinite(model.oof_["t"][:600]).all()


def test_the_same_bits_on_any_number_of_threads_and_from_a_file(tmp_path):
    X, y, t = trial(600)
    candidates = [("forest", UpliftForest(10)), ("dr", DRLearner(Ridge()))]
    one = UpliftStacking(candidates, **QUICK).fit(X, y, t)
    two = UpliftStacking(candidates, n_jobs=2, **QUICK).fit(X, y, t)
    assert (one.predict(X) == two.predict(X)).all()
    one.save(tmp_path / "stack.upturn")
    back = upturn.load(tmp_path / "stack.upturn")
    assert (one.predict(X) == back.predict(X)).all()
    assert repr(back.losses_) == repr(one.losses_)
    assert repr(back.weights_) == repr(one.weights_)


def test_the_default_candidates_take_any_outcome():
    X, y, t = trial(300)
    from upturn._experiment import Experiment
    from upturn._table import read_table
    from upturn._target import read_target

    shares = Choice("shares")
    real = read_candidates(None, Experiment(*read_table(X), read_target(y, t)), shares, default_candidates)
    binary = read_candidates(None, Experiment(*read_table(X), read_target(y > 0, t)), shares, default_candidates)
    assert set(binary) == set(default_candidates())
    assert set(binary) - set(real) == {"uplift machine"}


@pytest.mark.parametrize("confounded", [False, True])
def test_propensities_are_looked_at_once_a_fit_where_shares_will_do(confounded):
    X, y, t = trial(1200)
    if confounded:
        given_by_chance, t = t, (np.random.default_rng(1).random(1200) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
        y = y + (t - given_by_chance) * X[:, 0]
    given = {
        "own": XLearner(Ridge(), propensity=0.5),
        "auto": XLearner(Ridge()),
        "inside": OneVsControl(XLearner(Ridge())),
    }
    model = UpliftStacking(given, estimator=Ridge(), weighting="exponential", random_state=0).fit(X, y, t)
    assert (model.propensity_kind_ == "shares") != confounded
    seen = {name: member.get_params() for name, member in model.estimators_.items()}
    looks = "auto" if confounded else "shares"
    assert seen["own"]["propensity"] == 0.5
    assert seen["auto"]["propensity"] == seen["inside"]["estimator__propensity"] == looks
    assert given["auto"].propensity == given["inside"].estimator.propensity == "auto"


@pytest.mark.parametrize(
    ("estimators", "words"),
    [
        ({}, "names and uplift models"),
        ([], "names and uplift models"),
        ("forest", "names and uplift models"),
        ({"ridge": Ridge()}, "names and uplift models"),
        ([UpliftForest()], "names and uplift models"),
        ([("a", UpliftForest()), ("a", UpliftForest())], "name of its own"),
        ({"machine": UpliftSVM()}, "0 and 1"),
        ({"forest": UpliftForest(n_estimators=0)}, "n_estimators"),
    ],
)
def test_what_are_no_candidates_is_refused(estimators, words):
    X, y, t = trial(200)
    with pytest.raises(ValueError, match=words):
        UpliftStacking(estimators, **QUICK).fit(X, y, t)


def test_the_default_model_of_outcomes_is_the_better_mixture_of_trees_and_a_line():
    from upturn._nuisance import crossfit_responses, make_folds
    from upturn._seeds import make_seed
    from upturn.ensemble._losses import make_problems

    X, _, t = trial(400)
    seed = make_seed(0)
    for y, nearer in ((X[:, 1] * 3.0, "line"), (np.sign(X[:, 1]) * 3.0, "trees")):
        noisy = y + np.random.default_rng(1).normal(size=400)
        data = _experiment_of(X, noisy, t)
        folds = make_folds(data, 4, seed)
        chance = np.full((400, 2), 0.5)
        (problem,) = make_problems("r", None, data, chance, folds, seed, None)
        trees, lines = (crossfit_responses(e, data, [(0, 1)], folds, seed)[:, 0] for e in (None, Ridge()))
        share = ((trees - lines) @ (noisy - lines)) / ((trees - lines) @ (trees - lines))
        assert (share < 0.5) == (nearer == "line")
        expected = noisy - lines - np.clip(share, 0, 1) * (trees - lines)
        np.testing.assert_allclose(problem.response, expected, atol=1e-9)
        for alone in (trees, lines):
            assert np.mean(problem.response**2) <= np.mean((noisy - alone) ** 2) + 1e-9


def _experiment_of(X, y, t):
    from upturn._experiment import Experiment
    from upturn._table import read_table
    from upturn._target import read_target

    matrix, schema = read_table(X)
    return Experiment(matrix, schema, read_target(y, t))


def clipped(model, X, y, t):
    """What a fit says about propensities that are clipped."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, y, t)
    return [str(one.message) for one in said if "was set to that bound" in str(one.message)]


@pytest.fixture(scope="module")
def confounded():
    X, y, t = trial(1200)
    given_by_chance, t = t, (np.random.default_rng(1).random(1200) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(int)
    return X, y + (t - given_by_chance) * X[:, 0], t


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("kind", [UpliftStacking, UpliftAuto])
def test_propensities_that_are_clipped_are_told_of_once(kind, n_jobs, confounded):
    inside = {
        "x": XLearner(Ridge()),
        "bag": UpliftBagging(DRLearner(Ridge(), propensity="logistic"), n_estimators=3, n_jobs=2),
    }
    model = kind(estimators=inside, estimator=Ridge(), random_state=0, n_jobs=n_jobs)
    assert [text.split(":")[0] for text in clipped(model, *confounded)] == [kind.__name__]


@pytest.mark.parametrize("kind", [UpliftStacking, UpliftAuto])
def test_candidates_that_clip_where_the_stack_does_not_are_told_of(kind, confounded):
    options = {"estimator": Ridge(), "propensity": "shares", "random_state": 0, "n_jobs": 2}
    inside = {"x": XLearner(Ridge(), propensity="logistic"), "s": SLearner(Ridge())}
    (text,) = clipped(kind(estimators=inside, **options), *confounded)
    assert text.startswith(f"{kind.__name__}: models inside (XLearner) clip propensities. The first was XLearner: ")
    assert clipped(kind(estimators={"s": SLearner(Ridge()), "t": TLearner(Ridge())}, **options), *confounded) == []
    wide = {"x": XLearner(Ridge(), propensity="logistic", clip=0.2), "s": SLearner(Ridge())}
    own, theirs = clipped(kind(estimators=wide, **options | {"propensity": "logistic"}), *confounded)
    assert "below 0.01" in own
    assert "below 0.2" in theirs


def test_an_arm_whose_effects_nothing_predicts_is_named():
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(1200, 3)), rng.choice(["none", "mail", "call"], 1200)
    y = X[:, 1] + (t == "mail") * 2 * X[:, 0] + rng.normal(size=1200)
    linear = {"linear": TLearner(Ridge())}
    with pytest.warns(UserWarning, match="no model inside predicts the effects of 'call' of unseen rows"):
        model = UpliftStacking(linear, estimator=Ridge(), propensity="shares", random_state=0).fit(X, y, t)
    assert model.arms_ == ["call", "mail"]
