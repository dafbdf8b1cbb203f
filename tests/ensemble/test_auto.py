"""UpliftAuto: what it chooses, when it predicts one effect for everybody, what it measures, and what it costs."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import upturn
from upturn._nuisance import fit_propensity
from upturn.ensemble import UpliftAuto, _auto, _effort
from upturn.ensemble._effort import EFFORTS, Effort, make_steps, trees_of, with_trees
from upturn.ensemble._search import Search
from upturn.ensemble._unseen import Unseen
from upturn.meta import DRLearner, OneVsControl, SLearner, TLearner, XLearner
from upturn.metrics import auuc
from upturn.policy import UpliftCalibrator
from upturn.svm import UpliftSVM
from upturn.trees import UpliftForest

CANDIDATES = {"forest": UpliftForest(10), "T": TLearner(Ridge()), "S": SLearner(Ridge())}  # S: one effect for all
QUICK = {"estimators": CANDIDATES, "estimator": Ridge(), "propensity": "shares", "random_state": 0}


def trial(n=800, seed=0, size=1.0, arms=1):
    rng = np.random.default_rng(seed)
    X, t = rng.normal(size=(n, 3)), rng.integers(0, 1 + arms, n)
    return X, X[:, 1] + (t == 1) * (0.5 + size * X[:, 0]) + rng.normal(size=n), t


def quiet(model, *data, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data, **more)


def test_the_model_that_is_right_wins_and_is_measured_on_rows_it_has_not_seen():
    X, y, t = trial()
    model = UpliftAuto(**QUICK).fit(X, y, t)
    weights = dict(zip(model.weights_["model"], model.weights_["weight"], strict=True))
    assert weights["T"] > 0.6
    assert weights["S"] < 0.1
    assert not model.constant_
    assert model.held_out_.low > 0
    assert model.predict([[1.0, 0, 0], [-1.0, 0, 0]]) == pytest.approx([1.5, -0.5], abs=0.4)
    board = model.leaderboard_
    assert list(board["model"][:2]) == ["UpliftAuto", "average effect"]
    assert board["gain"][0] > 2 * board["se"][0]
    assert set(board["model"][2:]) == set(CANDIDATES)
    assert "no candidate was fitted to" in repr(board)
    assert "<table>" in model._fitted_html()
    assert model.evidence_["pvalue"][0] < 1e-4


def test_without_differences_everybody_gets_the_average_effect_and_is_told_why():
    constant = 0
    for seed in range(12):
        X, y, t = trial(400, seed, size=0.0)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = UpliftAuto(**QUICK).fit(X, y, t)
        said = any("everybody is predicted the average effect" in str(one.message) for one in told)
        assert said == model.constant_ == (np.ptp(model.predict(X)) == 0)
        if model.constant_:
            constant += 1
            assert model.predict(X)[0] == pytest.approx(model.average_effects_[0])
            assert model.average_effects_[0] == pytest.approx(0.5, abs=0.4)
            assert "400 rows can show" in next(str(o.message) for o in told if "everybody" in str(o.message))
            assert not model.feature_importances_.any()
    assert constant >= 9


def test_a_hint_says_how_many_rows_would_show_more():
    evidence = np.array([[1.0, 2.0, 0.2, 4321.0, 0.37]])
    text = _auto.words_of(evidence, 500)
    assert "at about 4,000 rows" in text
    assert "0.37" in text
    assert "nothing suggests" in _auto.words_of(np.array([[-1.0, 2.0, 0.2, np.nan, 0.37]]), 500)


def test_what_is_held_out_is_what_the_same_search_without_a_fold_predicts():
    X, y, t = trial(500)
    model = UpliftAuto(cv=3, **QUICK).fit(X, y, t)
    seen = {}
    original = Unseen.fit

    def spy(self, job, learnt):
        seen.setdefault(job[2], set()).add(job[1])
        return original(self, job, learnt)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Unseen, "fit", spy)
        again = UpliftAuto(cv=3, **QUICK).fit(X, y, t)
    assert again.held_out_ == model.held_out_
    assert set(seen) == {(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)}  # a fit without two folds serves both searches
    # the number, by hand, from the predictions of the searches
    captured = {}
    measure = UpliftAuto._measure

    def keep(self, search, data, choice, scored, chance):
        captured.update(scored)
        measure(self, search, data, choice, scored, chance)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UpliftAuto, "_measure", keep)
        UpliftAuto(cv=3, **QUICK).fit(X, y, t)
    score = np.empty(500)
    for at, total, _ in captured.values():
        score[at] = total[:, 0] - total[:, 0].mean()
    assert float(model.held_out_) == pytest.approx(auuc(y, score, t))
    assert sorted(np.concatenate([at for at, _, _ in captured.values()])) == list(range(500))


def test_a_fold_that_is_held_out_changes_nothing_that_is_predicted_without_it(monkeypatch):
    X, y, t = trial(400)
    pinned = [(np.flatnonzero(np.arange(400) % 4 != f), np.flatnonzero(np.arange(400) % 4 == f)) for f in range(4)]
    monkeypatch.setattr(_auto, "make_folds", lambda data, cv, seed: pinned)
    searches, run = [], Search.run

    def keep(self, outer, description):
        searches.append(self)
        return run(self, outer, description)

    monkeypatch.setattr(Search, "run", keep)
    outer, found = 1, []
    changed = y.copy()
    changed[pinned[outer][1]] += 3 * y.std()
    for outcomes in (y, changed):
        quiet(UpliftAuto(**{**QUICK, "cv": 4}), X, outcomes, t)
        found.append(searches[-1].unseen)
    one, two = found
    jobs = [job for job in one._known if job in two._known]
    without = [job for job in jobs if outer in job[2]]
    assert {job[2] for job in without} == {(1,), (0, 1), (1, 2), (1, 3)}
    for step, j, out in without:
        np.testing.assert_array_equal(one.take(step, j, out, [outer]), two.take(step, j, out, [outer]))
    others = [(one.take(*job, job[2][:1]), two.take(*job, job[2][:1])) for job in jobs if outer not in job[2]]
    assert any((before != after).any() for before, after in others)  # who sees the fold does notice


def test_where_one_effect_was_found_no_search_without_a_fold_is_run(monkeypatch):
    X, y, t = trial(400, size=0.0)
    after, original, run = [], Unseen.fit, Search.run

    def searched(self, outer, description):
        result = run(self, outer, description)
        after.append("searched")
        return result

    def fitted(self, job, learnt):
        if after:
            after.append("fitted")
        return original(self, job, learnt)

    monkeypatch.setattr(Search, "run", searched)
    monkeypatch.setattr(Unseen, "fit", fitted)
    for arms in (1, 2):
        X, y, t = trial(400, size=0.0, arms=arms)
        after.clear()
        model = quiet(UpliftAuto(cv=3, **QUICK), X, y, t)
        assert model.constant_
        assert after == ["searched"]
        held = model.held_out_
        assert (float(held), held.low, held.high) == (0.0, 0.0, 0.0)
        assert list(model.leaderboard_["gain"][:2]) == [0.0, 0.0]
    monkeypatch.setattr(_auto, "_LARGE", 300)  # one fold held out, of which all rows are predicted
    assert quiet(UpliftAuto(cv=3, **QUICK), X, y, t).held_out_ == held


def test_chances_of_what_is_measured_are_by_models_that_have_not_seen_it(monkeypatch):
    X, y, _ = trial(600)
    t = (np.random.default_rng(1).random(600) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    y = y + t * X[:, 0]
    captured, measure = [], UpliftAuto._measure

    def keep(self, search, data, choice, scored, chance):
        captured.append((search, data, choice, scored))
        measure(self, search, data, choice, scored, chance)

    monkeypatch.setattr(UpliftAuto, "_measure", keep)
    model = quiet(UpliftAuto(cv=3, **{**QUICK, "propensity": "logistic"}), X, y, t)
    (_, data, choice, scored), score, chance = captured[0], np.empty(600), np.empty((600, 2))
    for at, total, _ in scored.values():
        score[at] = total[:, 0] - total[:, 0].mean()
        others = np.setdiff1d(np.arange(600), at)
        chance[at] = np.clip(fit_propensity(choice, data.take(others)).predict(X[at]), 0.01, 0.99)
    assert not model.constant_
    assert float(model.held_out_) == pytest.approx(auuc(y, score, t, propensity=chance))
    seen = fit_propensity(choice, data).predict(X)
    assert float(model.held_out_) != pytest.approx(auuc(y, score, t, propensity=seen), rel=1e-6)


@pytest.mark.parametrize("arms", [1, 2])
def test_the_same_bits_on_any_number_of_threads_and_from_a_file(tmp_path, arms):
    X, y, t = trial(450, arms=arms)
    one = quiet(UpliftAuto(cv=3, **QUICK), X, y, t)
    two = quiet(UpliftAuto(cv=3, n_jobs=2, **QUICK), X, y, t)
    assert (one.predict(X) == two.predict(X)).all()
    assert one.held_out_ == two.held_out_
    one.save(tmp_path / "auto.upturn")
    back = upturn.load(tmp_path / "auto.upturn")
    assert (one.predict(X) == back.predict(X)).all()
    for table in ("leaderboard_", "weights_", "evidence_"):
        assert repr(getattr(back, table)) == repr(getattr(one, table))
    assert (back.held_out_.low, back.constant_) == (one.held_out_.low, one.constant_)


def test_several_arms_are_decided_one_by_one():
    X, y, t = trial(1800, seed=1, arms=2)
    model = UpliftAuto(cv=3, **QUICK).fit(X, y, t)
    table = model.weights_
    first = np.asarray(table["arm"]) == 1
    assert table["weight"][first][0] < 0.4  # what is left to the average effect
    assert model.predict(X).shape == (1800, 2)
    assert model.evidence_["pvalue"][0] < 0.01 < model.evidence_["pvalue"][1]
    assert table["weight"][~first][0] == 1.0


def test_weights_count_and_rows_of_weight_0_do_not():
    X, y, t = trial(500)
    weight = np.r_[np.ones(400), np.zeros(100)]
    model = UpliftAuto(cv=3, metric=None, **QUICK).fit(X, y, t, weight)
    again = UpliftAuto(cv=3, metric=None, **QUICK).fit(X[:400], y[:400], t[:400])
    assert model.predict(X) == pytest.approx(again.predict(X))
    assert model.held_out_ is None
    assert np.isnan(model.leaderboard_["gain"][0])


def test_measuring_itself_changes_nothing_about_the_model():
    X, y, t = trial(400)
    one, two = (UpliftAuto(cv=3, metric=metric, **QUICK).fit(X, y, t) for metric in ("auuc", None))
    assert one.held_out_ is not None
    assert one.predict(X).tobytes() == two.predict(X).tobytes()


def test_a_journal_is_taken_up_where_it_stopped(tmp_path):
    X, y, t = trial(400)
    path = tmp_path / "auto.jsonl"
    first = quiet(UpliftAuto(cv=3, resume=str(path), **QUICK), X, y, t)
    lines = path.read_text().splitlines()
    assert len(lines) == 3 * (3 + 3)
    path.write_text("\n".join([*lines[:-2], lines[-2][:50], json.dumps({"key": "x", "found": {"effects": "!"}})]))
    fitted = []
    original = Unseen.fit

    def spy(self, job, learnt):
        fitted.append(job)
        return original(self, job, learnt)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Unseen, "fit", spy)
        again = quiet(UpliftAuto(cv=3, resume=str(path), **QUICK), X, y, t)
        assert sum(len(job[2]) > 0 for job in fitted) == 2
        quiet(UpliftAuto(cv=3, resume=str(path), **{**QUICK, "random_state": 1}), X, y, t)  # nothing of another seed
        assert sum(len(job[2]) > 0 for job in fitted) == 2 + 18
    assert (first.predict(X) == again.predict(X)).all()
    assert first.held_out_ == again.held_out_
    first.save(tmp_path / "auto.upturn")
    assert upturn.load(tmp_path / "auto.upturn").resume is None  # a file does not choose where a later fit writes


def test_halving_leaves_the_better_half_and_many_rows_have_one_part_held_out(monkeypatch):
    monkeypatch.setattr(_auto, "_LARGE", 1000)
    monkeypatch.setattr(_effort, "_FIRST", 100)
    monkeypatch.setitem(EFFORTS, "low", Effort(800, 1e9, 10, False))
    X, y, t = trial(2000)
    wrong = {f"S{i}": SLearner(Ridge()) for i in range(7)}
    options = {**QUICK, "estimators": {**wrong, "T": TLearner(Ridge()), "X": XLearner(Ridge(), propensity="shares")}}
    jobs = []
    original = Unseen.fit

    def spy(self, job, learnt):
        jobs.append((job, learnt))
        return original(self, job, learnt)

    monkeypatch.setattr(Unseen, "fit", spy)
    model = UpliftAuto("low", **options).fit(X, y, t)
    board = dict(zip(model.leaderboard_["model"], model.leaderboard_["rows"], strict=True))
    assert board["T"] == board["X"] == 800
    assert sum(board[name] == 200 for name in wrong) == 4  # 9 candidates, 5 of which go on
    assert {len(job[2]) for job, _ in jobs} == {0, 1, 2}
    assert all(0 in job[2] for job, _ in jobs if job[2])  # only the first fold is ever held out
    assert {learnt for job, learnt in jobs if job[2] == (0,)} == {2000}
    assert model.held_out_.low > 0
    weights = dict(zip(model.weights_["model"], model.weights_["weight"], strict=True))
    assert weights["T"] + weights["X"] > 0.8


def test_the_time_there_is_only_cuts_and_says_so():
    X, y, t = trial(600)
    model = UpliftAuto(time_budget=1e-3, **QUICK)
    with pytest.warns(UserWarning, match="time_budget=0.001 seconds were not enough"):
        model.fit(X, y, t)
    assert np.isfinite(model.predict(X)).all()
    assert any("fold" in note for note in model.notes_)
    long = UpliftAuto(time_budget=1e6, **QUICK).fit(X, y, t)
    assert (long.predict(X) == UpliftAuto(**QUICK).fit(X, y, t).predict(X)).all()
    assert long.notes_ == []


def test_a_candidate_that_fails_is_left_out_of_ours_and_an_error_of_yours(monkeypatch):
    X, y, t = trial(300)
    monkeypatch.setattr(_auto, "many_candidates", lambda effort: {**CANDIDATES, "bad": _Bad()})
    options = {name: value for name, value in QUICK.items() if name != "estimators"}
    model = quiet(UpliftAuto(cv=3, **options), X, y, t)
    assert any("bad could not be fitted: no such luck" in note for note in model.notes_)
    assert "bad" not in list(model.leaderboard_["model"])
    with pytest.raises(ValueError, match="no such luck"):
        UpliftAuto(cv=3, **{**QUICK, "estimators": {"bad": _Bad()}}).fit(X, y, t)


class _Bad(TLearner):
    def _fit(self, data):
        raise ValueError("no such luck")


def test_steps_and_the_order_of_rows():
    steps = make_steps(100_000, EFFORTS["normal"])
    assert [step.learnt for step in steps] == [2500, 10_000, 40_000]
    assert [step.asked for step in steps] == [10_000, 40_000, 100_000]
    assert [step.trees for step in steps] == [0.25, 0.5, 1.0]
    assert [step.learnt for step in make_steps(900, EFFORTS["normal"])] == [900]
    from upturn._experiment import Experiment
    from upturn._table import read_table
    from upturn._target import read_target

    rng = np.random.default_rng(0)
    y, t = (rng.random(5000) < 0.04).astype(int), (rng.random(5000) < 0.1).astype(int)
    place = _auto._order(Experiment(*read_table(rng.normal(size=(5000, 1))), read_target(y, t)), np.uint64(1))
    assert sorted(place) == list(range(5000))
    for size in (500, 1000, 2500):
        first = place < size
        for a in (0, 1):
            for b in (0, 1):
                mine = (y == a) & (t == b)
                assert abs(first[mine].sum() - mine.sum() * size / 5000) <= 1.0


def test_trees_are_counted():
    assert trees_of(UpliftForest(30), 1) == 30
    assert trees_of(UpliftForest(30, center=True), 1) == 60
    assert trees_of(UpliftForest(30, propensity="trees"), 1) == 30 * 14
    assert trees_of(UpliftForest(30, propensity="trees", center=True), 1) == 30 * 14
    assert trees_of(UpliftCalibrator(UpliftForest(10, propensity="trees"), cv=3), 1) == 40 * 14
    assert trees_of(TLearner(), 2) == 300
    assert trees_of(TLearner(Ridge()), 1) == 4
    assert trees_of(DRLearner(cv=3), 1) == 700
    assert trees_of(UpliftCalibrator(UpliftForest(10), cv=3), 1) == 40
    assert trees_of(OneVsControl(XLearner()), 3) == 1200
    assert trees_of(UpliftSVM(), 1) < 10
    assert with_trees(UpliftForest(100), 0.25).n_estimators == 25
    assert with_trees(UpliftForest(100), 0.1).n_estimators == 20
    assert with_trees(UpliftCalibrator(UpliftForest(100)), 0.5).estimator.n_estimators == 50


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"effort": "huge"}, "effort='huge'"),
        ({"time_budget": 0}, "time_budget=0"),
        ({"metric": "policy_value"}, "metric='policy_value'"),
        ({"cv": 2}, "cv=2"),
        ({"resume": 3}, "resume=3"),
        ({"resume": "/no/such/folder/file"}, "cannot be written"),
        ({"resume": __file__}, "holds something else than results"),
        ({"estimators": {"ridge": Ridge()}}, "names and uplift models"),
    ],
)
def test_what_it_cannot_take_is_refused(options, words):
    X, y, t = trial(100)
    with pytest.raises(ValueError, match=words):
        UpliftAuto(**{**QUICK, **options}).fit(X, y, t)
