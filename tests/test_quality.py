"""The harness of quality: halves, pairs, truths, and a run from end to end."""

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from benchmarks.quality import rivals, run, sets, show
from benchmarks.quality.simulated import SIMULATED

from upturn.datasets import PAPER_ROWS


def test_every_set_has_one_half():
    assert set(SIMULATED) | set(PAPER_ROWS) <= set(sets.HALVES)
    assert abs(len(sets.names("choose")) - len(sets.names("report"))) <= 1
    assert set(sets.names("choose")) | set(sets.names("report")) == set(sets.HALVES)
    assert set(sets.names("choose,simulated")) == set(sets.names("choose")) & set(SIMULATED)
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


def test_standard_error_counts_the_overlap_of_splits():
    pairs = [0.1, 0.3, 0.2, 0.4]
    plain = np.std(pairs, ddof=1) / 2
    assert show.standard_error(pairs, True) == pytest.approx(plain)
    assert show.standard_error(pairs, False) == pytest.approx(np.std(pairs, ddof=1) * math.sqrt(1 / 4 + 0.25))


def test_rivals_without_an_interpreter_are_skipped_with_a_message(monkeypatch, capsys):
    monkeypatch.delenv(rivals.VARIABLE, raising=False)
    rivals.interpreters.cache_clear()
    assert rivals.available(["forest", "econml-causal-forest"]) == ["forest"]
    assert (
        "econml-causal-forest is skipped: UPTURN_RIVALS names no interpreter that has econml" in capsys.readouterr().err
    )
    rivals.interpreters.cache_clear()


def test_a_rival_is_fitted_in_another_interpreter(monkeypatch, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import json, sys, numpy as np\n"
        "name, seed, given, answer = sys.argv[1:]\n"
        "rows = np.load(given)\n"
        "assert name == 'stub' and set(rows) == {'X', 'y', 't', 'asked'}\n"
        "json.dump({'score': rows['asked'][:, 0].tolist(), 'seconds': 7.0}, open(answer, 'w'))\n"
    )
    monkeypatch.setattr(rivals, "_SCRIPT", script)
    monkeypatch.setattr(rivals, "RIVALS", {"stub": "numpy", "absent": "no_such_library"})
    monkeypatch.setenv(rivals.VARIABLE, sys.executable)
    rivals.interpreters.cache_clear()
    assert rivals.available(["stub", "absent"]) == ["stub"]
    train, test = sets.load("sim-crescents").split(0)
    model = rivals.Rival("stub", 3).fit(train.X, train.y, train.treatment)
    score = model.predict(test.X)
    assert np.array_equal(score, np.asarray(test.X, float)[:, 0])
    assert model.seconds == 7.0
    assert np.array_equal(model.recommend(test.X), score > 0)
    script.write_text("raise SystemExit('no such luck')")
    with pytest.raises(ValueError, match="stub: no such luck"):
        model.predict(test.X)
    rivals.interpreters.cache_clear()


def test_the_page_of_defaults_is_made_of_the_committed_results():
    spec = importlib.util.spec_from_file_location("make_defaults", ROOT / "docs" / "make_defaults.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    text = made.PAGE.read_text()
    assert made.page(text) == text
    assert text.count("±") > 10
