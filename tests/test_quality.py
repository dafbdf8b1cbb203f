"""The harness of quality: halves, pairs, truths, and a run from end to end."""

import math
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from benchmarks.quality import ranks, rivals, run, sets, show, tuned
from benchmarks.quality.contestants import CONTESTANTS, named
from benchmarks.quality.simulated import SIMULATED
from benchmarks.rivals import __main__ as rivals_main
from benchmarks.rivals import _call, _drive, _speed

from upturn.datasets import PAPER_ROWS
from upturn.persist._format import REGISTRY


def test_every_set_has_one_half():
    assert set(SIMULATED) | set(PAPER_ROWS) <= set(sets.HALVES)
    assert abs(len(sets.names("choose")) - len(sets.names("report"))) <= 1
    assert set(sets.names("choose")) | set(sets.names("report")) == set(sets.HALVES)
    assert set(sets.names("choose,simulated")) == set(sets.names("choose")) & set(SIMULATED)
    for table in sets.TABLES:  # at least ten real ones and eight simulated
        assert len(sets.names(f"{table},real")) >= 10
        assert len(sets.names(f"{table},simulated")) >= 8
    with pytest.raises(SystemExit, match="no sets are called"):
        sets.names("nothing")


@pytest.mark.parametrize("name", sorted(SIMULATED))
def test_simulated_sets_know_their_effect(name):
    """Treated rows of a large effect do better than those of a small one, as the stated truth says."""
    train, test = sets.load(name).split(0)
    again, _ = sets.load(name).split(0)
    assert np.array_equal(train.y, again.y)
    assert len(train.y) == sets.load(name).rows
    assert len(test.y) == sets.TEST_ROWS
    assert test.effect.shape == test.y.shape
    assert set(np.unique(test.treatment)) == {0, 1}
    response = SIMULATED[name][0](4000, 7).details["response"]
    data = SIMULATED[name][0](4000, 7)
    assert np.array_equal(response[:, 1] - response[:, 0], data.effect)
    expected = response[np.arange(4000), data.treatment]
    assert abs(np.mean(data.y - expected)) < 5 * np.std(data.y - expected) / math.sqrt(4000)


def test_truth_of_a_perfect_a_reversed_and_a_constant_score():
    effect = np.random.default_rng(0).normal(0.5, 1, 500)
    perfect = run.truth(np.exp(effect), effect, (effect > 0).astype(int))
    assert perfect["share"] == pytest.approx(1)
    assert perfect["rank_correlation"] == pytest.approx(1)
    assert perfect["policy"] == pytest.approx(1)
    assert run.truth(-effect, effect, np.zeros(500, int))["share"] == pytest.approx(-1)
    flat = run.truth(np.zeros(500), effect, np.ones(500, int))
    assert flat["rank_correlation"] == 0
    assert flat["share"] == pytest.approx(0)
    assert 0 < flat["policy"] < 1
    assert run.truth(effect, np.full(500, 0.5), np.ones(500, int))["share"] is None


def test_a_run_adds_to_its_file_and_is_shown(tmp_path, capsys):
    path = tmp_path / "small.json"
    run.run(["sim-crescents", "sim-randomised-small"], ["svm-p1.2", "class-transformation"], 2, 1, path)
    run.run(["sim-crescents", "sim-zhao-2d"], ["svm-p2"], 2, 1, path)
    rows = run.read(path)
    run.write(path, rows)
    assert run.read(path) == rows
    assert len(rows) == 2 * 2 * 2 + 2 * 2
    failed = [row for row in rows if "failed" in row]
    assert {row["set"] for row in failed} == {"sim-zhao-2d"}  # a machine needs two outcomes
    assert all(row["auuc"] > 0 and row["share"] > 0.3 for row in rows if row["set"] == "sim-crescents")
    show.show(path, "svm-p1.2")
    printed = capsys.readouterr().out
    pairs = {
        model: [row["auuc"] for row in rows if row["set"] == "sim-crescents" and row["model"] == model]
        for model in ("svm-p1.2", "svm-p2")
    }
    difference = np.subtract(pairs["svm-p2"], pairs["svm-p1.2"])
    assert f"{difference.mean():+.4f} ± {difference.std(ddof=1) / math.sqrt(2):.4f}" in printed
    assert "svm-p2 did not fit sim-zhao-2d" in printed


def test_a_run_goes_on_where_it_stopped_and_pairs_what_is_there(tmp_path, monkeypatch):
    """What was fitted is not fitted again; differences are to the best of all models of a split, on the same rows."""
    path, kept, fits = tmp_path / "few.json", tmp_path / "kept", []
    one = run._one

    def counted(model, train, test):
        fits.append(len(train.y))
        return one(model, train, test)

    monkeypatch.setattr(run, "_one", counted)
    run.run(["sim-crescents"], ["svm-p1.2", "standard-svm"], 1, 1, path, 200, kept)
    run.run(["sim-crescents"], ["svm-p1.2", "standard-svm", "tree"], 1, 1, path, 200, kept)
    assert fits == [200] * 3
    rows = {row["model"]: row for row in run.read(path)}
    assert {row["learnt"] for row in rows.values()} == {200}
    assert "policy" not in rows["standard-svm"] or rows["standard-svm"]["policy"] is None  # it only ranks
    best = max(rows.values(), key=lambda row: row["auuc"])
    assert (best["difference"], best["low"], best["high"]) == (0.0, 0.0, 0.0)
    for row in rows.values():
        assert row["difference"] == pytest.approx(row["auuc"] - best["auuc"], abs=2e-5)
        assert row["low"] <= row["difference"] <= row["high"]
    run.run(["sim-crescents"], ["tree"], 2, 1, path, 200)
    assert fits == [200] * 5
    assert all("difference" not in row for row in run.read(path))  # judged apart: the best may be another
    assert sorted(row["split"] for row in run.read(path) if row["model"] == "tree") == [0, 1]


def test_some_rows_are_a_part_of_them():
    train, _ = sets.load("sim-crescents").split(0)
    few = train.some(100, 3)
    assert len(few.y) == len(few.X) == len(few.treatment) == len(few.effect) == 100
    whole = {tuple(row) for row in np.asarray(train.X)}
    assert all(tuple(row) in whole for row in np.asarray(few.X))
    assert np.array_equal(few.y, train.some(100, 3).y)
    assert train.some(10**6, 3) is train


def test_standard_error_counts_the_overlap_of_splits():
    pairs = [0.1, 0.3, 0.2, 0.4]
    plain = np.std(pairs, ddof=1) / 2
    assert show.standard_error(pairs, True) == pytest.approx(plain)
    assert show.standard_error(pairs, False) == pytest.approx(np.std(pairs, ddof=1) * math.sqrt(1 / 4 + 0.25))


def test_rivals_that_are_not_installed_are_skipped_with_a_message(monkeypatch, capsys):
    monkeypatch.setattr(rivals, "installed", lambda: ["upturn"])
    assert rivals.available(["forest", "forest-tuned", "econml-causal-forest", "econml-forest-dr-tuned"]) == [
        "forest",
        "forest-tuned",
    ]
    said = capsys.readouterr().err
    assert "econml-causal-forest is skipped: econml is not installed; `make bench-install` does that" in said
    assert "econml-forest-dr-tuned is skipped" in said


@pytest.fixture
def stub(monkeypatch, tmp_path):
    """A rival whose effect is the first column times a factor, called as others are."""
    (tmp_path / "stub.py").write_text(
        "REQUIRES = ('numpy',)\n"
        "def model(X, y, t, asked, seed, factor=1.0):\n"
        "    assert len(X) == len(y) == len(t) and int(seed) == 3\n"
        "    return asked[:, 0] * factor\n"
        "def refuse(X, y, t, asked, seed):\n"
        "    raise ValueError('no such luck')\n"
        "JOBS, MODELS = {}, {'stub': model, 'refuses': refuse}\n"
        "DRAWS = {'stub': lambda rng: {'factor': float(rng.normal())}}\n"
    )
    monkeypatch.setattr(_call, "HERE", tmp_path)
    monkeypatch.setattr(_call, "python_of", lambda name: sys.executable)
    monkeypatch.setattr(rivals, "RIVALS", {"stub": "stub", "refuses": "stub"})
    yield from sessions(monkeypatch)


@pytest.fixture
def many(monkeypatch, tmp_path):
    """A rival that says in which process it runs, what is drawn there and what it shares."""
    (tmp_path / "many.py").write_text(
        "import contextlib, os, random\n"
        "import numpy as np\n"
        "state = []\n"
        "@contextlib.contextmanager\n"
        "def shared():\n"
        "    state.append('open')\n"
        "    yield\n"
        "def model(X, y, t, asked, seed, how='well'):\n"
        "    print('a library that talks')\n"
        "    if how == 'raises':\n"
        "        raise RuntimeError('two\\nlines')\n"
        "    if how == 'ends':\n"
        "        os._exit(3)\n"
        "    return [os.getpid(), len(state), random.random(), np.random.rand()]\n"
        "REQUIRES, JOBS, DRAWS, SHARED, MODELS = ('numpy',), {}, {}, shared, {'many': model}\n"
    )
    monkeypatch.setattr(_call, "HERE", tmp_path)
    monkeypatch.setattr(_call, "python_of", lambda name: sys.executable)
    monkeypatch.setattr(rivals, "RIVALS", {"many": "many"})
    yield from sessions(monkeypatch)


def sessions(monkeypatch):
    """Processes of the test's own, which end with it."""
    monkeypatch.setattr(rivals, "_sessions", {})
    yield
    for session in rivals._sessions.values():
        session.close()


def test_one_process_takes_all_draws_and_none_sees_the_one_before(many):
    rows = {"X": np.zeros((2, 1)), "y": np.zeros(2), "t": np.zeros(2), "asked": np.zeros((4, 1)), "seed": 3}
    first, again = (rivals.together("many", rows).result for _ in range(2))
    assert np.array_equal(first, again)  # the process, and its draws
    assert first[1] == 1
    with pytest.raises(ValueError, match="many, many: RuntimeError: two lines"):
        rivals.together("many", {**rows, "how": "raises"})
    assert np.array_equal(rivals.together("many", rows).result, first)
    with pytest.raises(ValueError, match="many, many: ended with 3"):
        rivals.together("many", {**rows, "how": "ends"})
    restarted = rivals.together("many", rows).result
    assert restarted[0] != first[0]
    assert np.array_equal(restarted[1:], first[1:])
    session = rivals._sessions["many"]
    assert session.close() == 0
    assert session.close() is None
    assert rivals.alone("many", rows).result[0] not in (first[0], restarted[0])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="as the kernel of Linux counts")
def test_a_small_table_may_come_first(monkeypatch, tmp_path):
    """What a call loads and keeps is there when the memory of the next is looked at."""
    (tmp_path / "slow.py").write_text(
        "import numpy as np\n"
        "seen = []\n"
        "def job(n):\n"
        "    seen.append(n if seen else np.ones(10_000_000))\n"
        "    return [len(seen), float(np.sum(seen[-1]))]\n"
        "REQUIRES, JOBS, MODELS, DRAWS = ('numpy',), {'job': job}, {}, {}\n"
    )
    monkeypatch.setattr(_call, "HERE", tmp_path)
    monkeypatch.setattr(_call, "python_of", lambda name: sys.executable)
    warm = _call.call("slow", "JOBS", "job", {"n": 7}, first={"n": 3})
    assert warm.result.tolist() == [2.0, 7.0]
    cold = _call.call("slow", "JOBS", "job", {"n": 7})
    assert cold.result[0] == 1
    assert warm.extra + 70e6 < cold.extra


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="as the kernel of Linux counts")
def test_a_process_that_left_the_session_is_counted():
    work = "x = bytearray(50_000_000); y = sum(range(3_000_000)); print(flush=True); input()"
    before = _drive.family()
    with subprocess.Popen(
        [sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as started:
        started.stdout.readline()
        seconds, held = (now - then for now, then in zip(_drive.family(), before, strict=True))
        started.communicate(b"\n")
    assert held > 50e6
    assert seconds > 0.02


def test_a_rival_is_fitted_in_a_process_of_its_own(stub):
    train, test = sets.load("sim-crescents").split(0)
    model = rivals.Rival("stub", 3, factor=2.0).fit(train.X, train.y, train.treatment)
    score = model.predict(test.X)
    assert np.array_equal(score, 2.0 * np.asarray(test.X, float)[:, 0])
    assert 0 <= model.seconds < 60
    assert np.array_equal(model.recommend(test.X), score > 0)
    with pytest.raises(ValueError, match="stub, refuses: ValueError: no such luck"):
        rivals.Rival("refuses", 3).fit(train.X, train.y, train.treatment).predict(test.X)


def test_tuning_takes_the_draw_that_ranks_best_on_folds(stub, monkeypatch):
    """Effects go with the first column: any draw with a positive factor is right, and any other wrong."""
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(600, 2)), rng.integers(0, 2, 600)
    y = X[:, 0] * t + 0.1 * rng.normal(size=600)
    monkeypatch.setattr(tuned, "DRAWS", 4)
    monkeypatch.setitem(tuned.TUNED, "stub", (tuned._rival("stub"), lambda rng: {"factor": float(rng.normal())}))
    draws = np.random.default_rng(3).normal(size=4)
    assert draws.min() < 0 < draws.max()
    model = tuned.Tuned("stub", 3).fit(X, y, t)
    assert model.parameters["factor"] == draws[draws > 0][0]
    assert np.array_equal(model.predict(X), model.parameters["factor"] * X[:, 0])
    assert model.seconds > model.model.seconds >= 0  # of all fits


@pytest.mark.parametrize("name", [name for name in tuned.TUNED if name not in rivals.RIVALS])
def test_draws_of_upturns_models_are_parameters_that_they_take(name):
    make, draw = tuned.TUNED[name]
    train, test = sets.load("sim-crescents").split(0)
    train, test = train.some(150, 0), test.some(150, 0)
    rng = np.random.default_rng(1)
    for parameters in (draw(rng), draw(rng)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            score = make(train.y, 0, **parameters).fit(train.X, train.y, train.treatment).predict(test.X)
        assert np.isfinite(score).all()


def test_every_model_of_upturn_is_a_contestant():
    made = {type(CONTESTANTS[name](0)).__name__ for name in CONTESTANTS if name not in rivals.RIVALS}
    models = {name for name, home in REGISTRY.items() if home != "upturn.features"}
    # one is several of others where there are several arms, the other calibrates what it is given
    assert models - made == {"OneVsControl", "UpliftCalibrator"}
    ranked = named("upturn")
    assert {type(CONTESTANTS[name](0)).__name__ for name in ranked} == models & made
    tuned_too = {name.removesuffix("-tuned") for name in named("tuned")}
    assert set(ranked) - tuned_too == {"auto", "stacking", "svm-cv"}  # which choose for themselves
    assert set(named("tuned,rivals,upturn,forest")) == {
        *ranked,
        *rivals.RIVALS,
        *(f"{name}-tuned" for name in tuned_too),
    }
    assert set(rivals.RIVALS) <= tuned_too


def test_every_rival_declares_what_it_needs_and_draws():
    for name, module in _call.files().items():
        assert module.REQUIRES, name
        assert module.JOBS or module.MODELS, name
        assert set(module.JOBS) <= set(_speed.JOBS), name
        assert set(module.DRAWS) == set(module.MODELS), name
        for draw in module.DRAWS.values():
            assert draw(np.random.default_rng(0)) == draw(np.random.default_rng(0)) != draw(np.random.default_rng(1))
    assert set(_call.files()["upturn"].JOBS) == set(_speed.JOBS)


@pytest.mark.parametrize("job", list(_speed.JOBS))
def test_upturns_jobs_run_and_are_measured(job):
    answer = _call.call("upturn", "JOBS", job, _speed.JOBS[job].make(600))
    assert np.isfinite(answer.result).all()
    assert answer.seconds >= 0


def test_ratios_are_at_the_largest_common_size_and_growth_is_a_slope():
    ours = {"version": "1", "rows": [100, 400, 1600], "seconds": [0.1, 0.2, 0.4], "megabytes": [1, 2, 3]}
    theirs = {"version": "2", "rows": [100, 400], "seconds": [1.0, 16.0], "megabytes": [10, 20]}
    lines = _speed.page({"AUUC": {"upturn": ours, "other": theirs}}).splitlines()
    assert "| upturn | 1 | 1,600 | 0.4 | 1.0 | 3 | 0.50 |" in lines
    assert "| other | 2 | 400 | 16 | 80.0 | 20 | – |" in lines
    assert _speed.exponent([10, 100, 1000], [2.0, 20.0, 200.0]) == pytest.approx(1.0)
    assert "| other | 2 | 400 | 16 | – | – | – |" in _speed.page(
        {"AUUC": {"other": {**theirs, "megabytes": [None, None]}}}
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="as the kernel of Linux counts")
def test_memory_that_an_earlier_run_filled_and_freed_is_not_hidden():
    def job():
        return sum(block[0] for block in [np.ones(1000) for _ in range(10_000)])  # 80 MB of the heap

    job()
    with _drive.Peak() as peak:
        job()
    assert 70e6 < peak.extra < 200e6


def test_ranks_and_their_critical_difference(tmp_path):
    rows = [
        {"set": f"s{k}", "model": model, "auuc": value}
        for k in range(6)
        for model, value in (("a", 3.0), ("b", 1.0 + (k % 2)), ("c", 1.5))
    ]
    rows.append({"set": "not everybody", "model": "a", "auuc": 1.0})
    found = ranks.ranks(rows)
    assert found.models == ["a", "b", "c"]
    np.testing.assert_allclose(found.mean, [1.0, 2.5, 2.5])
    assert found.sets == 6
    assert found.critical == pytest.approx(2.343 * math.sqrt(3 * 4 / 36), abs=2e-3)  # Demšar's table 5(a)
    assert ranks.cliques(found) == [(1, 2)]
    ranks.draw(found, tmp_path / "ranks.png")
    assert (tmp_path / "ranks.png").stat().st_size > 1000


def test_paired_intervals_count_a_trial_once():
    """Six sets of one trial that say the same are one observation; so are those of two that share their name."""
    apart = {"colon-death": 0.2, "colon-recur": 0.4, "pbc": -0.1, "sim-steps": 0.3, "sim-steep": 0.1}
    rows = [
        {
            "set": name,
            "model": model,
            "split": k,
            "scale": 2.0,
            "auuc": 1.0 + k + (2.0 * apart[name] if model == "b" else 0.0),
        }
        for name in apart
        for model in ("a", "b")
        for k in range(2)
    ]
    rows.append({"set": "only b", "model": "b", "split": 0, "scale": 1.0, "auuc": 9.0})
    found = ranks.paired(rows, "b", "a")
    assert found.sets == 5
    assert found.mean == pytest.approx(0.18)
    sums = np.array([0.2 + 0.4 - 0.36, -0.1 - 0.18, 0.3 - 0.18, 0.1 - 0.18])
    error = math.sqrt(4 / 3 * (sums**2).sum()) / 5
    assert found.high - found.mean == pytest.approx(3.182 * error, rel=1e-3)  # t with 3 degrees
    assert found.mean - found.low == pytest.approx(found.high - found.mean)
    alone = ranks.paired([row for row in rows if row["set"].startswith("colon")], "b", "a")
    assert alone.mean == pytest.approx(0.3)
    assert math.isnan(alone.low)


def test_the_page_of_rivals_is_made_of_the_committed_results():
    text = rivals_main.PAGE.read_text()
    assert rivals_main.page(text) == text
