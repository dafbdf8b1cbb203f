"""The papers' experiments: each runs, results are kept and resumed, and no page says what its results do not."""

import json
import re
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]
import make_tables
from experiments import __main__, _compare, _declared, _draw, _kept, _pages, _papers, _runner

PARTS = {part.name: part for part in _declared.parts()}


def quiet(text):
    pass


@pytest.fixture
def counted():
    """An experiment of two cases whose value is its seed, and the seeds that were run."""

    class Module:
        EXPERIMENT = _declared.Experiment("000", ("Table 9",), "a title", "data.", "protocol.", summed=("line",))
        ran: ClassVar = []

        @staticmethod
        def plan(size):
            yield {"case": "first"}, {"quick": 2, "full": 4}[size]
            yield {"case": "second"}, 1

        @staticmethod
        def run(case, seed):
            Module.ran.append((case["case"], seed))
            return {"value": seed + 0.5, "line": [seed, 2.0 * seed]}

    part = _declared.Part("zaniewicz.counted", Module.EXPERIMENT, Module)
    before = _runner.parts
    _runner.parts = lambda: [part]
    yield part
    _runner.parts = before


@pytest.mark.parametrize("name", PARTS)
def test_every_experiment_runs_and_its_results_are_kept(name, tmp_path):
    part = PARTS[name]
    _runner.run(part, "smoke", folder=tmp_path, tell=quiet)
    found = _kept.read(part, tmp_path)
    if not found:
        pytest.skip("its data are not here")
    planned = {json.dumps(case, sort_keys=True): seeds for case, seeds in part.plan("smoke")}
    assert {json.dumps(row.case, sort_keys=True) for row in found.rows} <= set(planned)
    assert all(len(row.seeds) == len(row.values) == planned[json.dumps(row.case, sort_keys=True)] for row in found.rows)
    assert _runner.run(part, "smoke", folder=tmp_path, tell=quiet) == 0, "nothing is run twice"


@pytest.mark.parametrize("name", PARTS)
def test_plans_are_plain_and_without_repetition(name):
    for size in _declared.SIZES:
        cases = [json.dumps(case, sort_keys=True) for case, seeds in PARTS[name].plan(size) if seeds > 0]
        assert cases
        assert len(set(cases)) == len(cases)


def test_a_larger_run_goes_on_where_the_smaller_ended(counted, tmp_path):
    assert _runner.run(counted, "quick", folder=tmp_path, tell=quiet) == 3
    assert _runner.run(counted, "full", folder=tmp_path, tell=quiet) == 2
    assert counted.module.ran == [("first", 0), ("first", 1), ("second", 0), ("first", 2), ("first", 3)]
    row = _kept.read(counted, tmp_path).one(case="first")
    assert row.seeds == [0, 1, 2, 3]
    assert row.numbers("value").tolist() == [0.5, 1.5, 2.5, 3.5]
    mean, error = row.mean("value")
    assert (mean, error) == pytest.approx((2.0, np.std([0, 1, 2, 3], ddof=1) / 2))
    line, spread = row.mean("line")
    assert line.tolist() == [1.5, 3.0]
    assert spread == pytest.approx([error, 2 * error])
    assert row.commits


def test_what_is_done_stays_when_a_run_is_stopped(counted, tmp_path, monkeypatch):
    def stops(case, seed):
        if seed == 1:
            raise KeyboardInterrupt
        return {"value": seed}

    monkeypatch.setattr(counted.module, "run", stops)
    with pytest.raises(KeyboardInterrupt):
        _runner.run(counted, "full", folder=tmp_path, tell=quiet)
    assert _kept.read(counted, tmp_path).one(case="first").seeds == [0]


def test_a_raised_version_and_a_changed_case_are_run_again(counted, tmp_path):
    _runner.run(counted, "quick", folder=tmp_path, tell=quiet)
    path = _kept.path_of(counted, tmp_path)
    path.write_text(path.read_text().replace('"version": 1', '"version": 0'))
    assert not _kept.read(counted, tmp_path)
    assert _runner.run(counted, "quick", folder=tmp_path, tell=quiet) == 3
    path.write_text(path.read_text().replace('{"case": "second"}', '{"case": "third"}'))
    assert _runner.run(counted, "quick", folder=tmp_path, tell=quiet) == 1


def test_absent_data_are_named_and_left_out(counted, tmp_path, monkeypatch):
    from upturn.datasets import DataNotFoundError

    def absent(case, seed):
        raise DataNotFoundError("no such file")

    monkeypatch.setattr(counted.module, "run", absent)
    told = []
    assert _runner.run(counted, "quick", folder=tmp_path, tell=told.append) == 0
    assert any("no such file" in line for line in told)


def test_names_choose():
    assert {part.declared.paper for part in _declared.chosen(["000"])} == {"000"}
    assert [part.name for part in _declared.chosen(["table 6.4.1"])] == ["zaniewicz.table_6_4_1"]
    assert _declared.chosen(["6.4.1"]) == _declared.chosen(["zaniewicz.table_6_4_1"])
    assert len(_declared.chosen([])) == len(PARTS)
    with pytest.raises(SystemExit, match="nothing is called"):
        _declared.chosen(["table 77"])


def test_agreement_counts_both_errors_and_the_rounding():
    one = _compare.Beside(paper=0.040, ours=0.050, error=0.003, n=32, their_n=128, rounded=0.0005)
    assert one.z == pytest.approx(0.010 / np.sqrt(0.003**2 * 1.25 + 0.0005**2 / 3))
    assert one.verdict == "agrees"
    assert _compare.Beside(0.040, 0.060, 0.003, 32, 128, 0.0005).verdict == "does not agree"
    assert _compare.Beside(0.040, 0.060, 0.003, 7, 128, 0.0005).verdict == "too few runs"
    assert _compare.Beside(0.040, 0.060, np.nan, 1).verdict == "too few runs"
    assert _compare.count([one, _compare.Beside(0.040, 0.060, 0.003, 7)]) == "1 of 1"


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.0415, 3, ".042"), (-0.5, 2, "-.50"), (-0.00001, 3, ".000"), (12.34, 1, "12.3"), (np.nan, 2, "–")],
)
def test_numbers_of_tables(value, digits, text):
    assert _compare.number(value, digits) == text


def test_scores_are_calibrated_as_by_a_logistic_regression():
    from experiments.zaniewicz._methods import calibrated
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    score = rng.normal(3.0, 20.0, 300)
    y = (rng.random(300) < 1 / (1 + np.exp(-0.1 * (score - 3)))).astype(int)
    model = LogisticRegression(C=1e8, tol=1e-10, max_iter=1000).fit(score[:, None] / 20, y)
    assert calibrated(score, y) == pytest.approx((model.coef_[0, 0] / 20, model.intercept_[0]), rel=1e-4)
    slope, level = calibrated(
        np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 0, 1, 1])
    )  # apart: the penalty keeps it finite
    assert np.isfinite(slope)
    assert -level / slope == pytest.approx(2.5, rel=1e-3)


# ------------------------------------------------------------------------------------------------------------------- pages


def test_pages_quotes_and_pictures_agree_with_the_results():
    assert _pages.stale() == []


def test_every_table_and_figure_has_its_row():
    page = (_pages.REPLICATION / "README.md").read_text()
    for paper in _papers.PAPERS:
        section = page[page.index(paper.title) :].split("\n## ")[0]
        for label, _, _ in paper.items:
            assert re.search(rf"^\| {re.escape(label)} \| .+ \| \S.+ \|$", section, re.MULTILINE), label
    known = {(paper.number, label) for paper in _papers.PAPERS for label, _, _ in paper.items}
    shown = [(part.declared.paper, label) for part in PARTS.values() for label in part.declared.shows]
    assert set(shown) <= known
    assert len(set(shown)) == len(shown)


def test_a_number_changed_by_hand_is_seen(tmp_path, monkeypatch):
    for path in (*_pages.pages(), *_pages.quoting()):
        copy = tmp_path / path.relative_to(_pages.DOCS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text())
    quoting = [path.name for path in _pages.quoting()]
    assert quoting
    monkeypatch.setattr(_pages, "DOCS", tmp_path)
    monkeypatch.setattr(_pages, "REPLICATION", tmp_path / "replication")
    assert _pages.stale() == []
    page = tmp_path / "replication" / "000.md"
    page.write_text(re.sub(r"\.(\d)(\d)", r".\2\1", page.read_text(), count=1) + " ")
    assert _pages.stale() == ["docs/replication/000.md is not what the results say"]
    page.write_text(_pages.pages()[page])
    quote = tmp_path / quoting[0]
    match = _pages.QUOTE.search(quote.read_text())
    quote.write_text(quote.read_text().replace(match[0], match[1] + match[4].replace("1", "2") + " " + match[5], 1))
    assert _pages.stale() == [f"docs/{quoting[0]} quotes what the results do not say"]


# How many tables of a page are of a benchmark or an earlier run whose results are not committed, and in how many nothing was
# measured: formulas, options, sizes of data sets. These numbers may only fall.
OWED: dict[str, int] = {}
NOT_MEASURED = {"check.md": 1, "command.md": 2, "datasets.md": 3, "ensemble.md": 1, "scale.md": 1, "svm.md": 2, "trees.md": 1, "umodl.md": 2}  # fmt: skip
OTHERS = {
    "rivals.md": {"speed"},
    "metrics.md": {"metrics", "conventions"},
}  # made elsewhere, and compared by other tests


@pytest.mark.parametrize("page", sorted(path.name for path in _pages.DOCS.glob("*.md")))
def test_numbers_in_tables_come_from_results(page):
    text = (_pages.DOCS / page).read_text()
    assert _pages.unmarked(text) == []
    excuses = _pages.excuses(text)
    owed = [excuse.split()[-1] for excuse in excuses if excuse != "not measured"]
    assert len(owed) <= OWED.get(page, 0)
    assert all(by in PARTS or (ROOT / by).is_file() for by in owed)
    assert excuses.count("not measured") <= NOT_MEASURED.get(page, 0)
    assert set(_pages.marks(text)) <= make_tables.PAGES.get(page, {}).keys() | OTHERS.get(page, set())


@pytest.mark.parametrize("page", make_tables.PAGES)
def test_tables_are_those_of_the_committed_results(page):
    text = (_pages.DOCS / page).read_text(encoding="utf-8")
    assert make_tables.page(page, text) == text, "run python docs/make_tables.py"


def test_an_unmarked_number_is_seen():
    row = "| a | .5 |\n"
    assert _pages.unmarked("| x | y |\n|---|---|\n" + row) == [row.strip()]
    assert _pages.unmarked("<!-- not measured -->\n" + row) == []
    assert _pages.unmarked("<!-- not measured -->\n" + row + "\n" + row + "<!-- result:a.b/c --><!-- end -->") == [
        row.strip()
    ]
    assert _pages.unmarked("<!-- result:a.b/c -->\n" + row + "<!-- end -->") == []
    assert _pages.unmarked("<!-- not measured -->\n\n" + row + "<!-- end -->") == [row.strip()]
    assert _pages.unmarked("| `p=1.2` | L1 machine, 2^I |\n") == ["| `p=1.2` | L1 machine, 2^I |"]
    assert _pages.unmarked("| `p=1.2` | L1 machine |\n") == []


def test_a_picture_carries_the_digest_of_its_results(tmp_path):
    found = _kept.Found([_kept.Row({"a": 1}, [0], [0.5])])
    figure, axes = _draw.panels(1, 1)
    axes[0, 0].plot([0, 1])
    _draw.save(figure, tmp_path / "picture.png", found)
    assert _draw.stamp(tmp_path / "picture.png") == _draw.digest(found) != ""
    assert _draw.digest(_kept.Found([_kept.Row({"a": 1}, [0], [0.6])])) != _draw.digest(found)


@pytest.mark.parametrize("picture", make_tables.rivals.PICTURES)
def test_the_pictures_of_ranks_show_the_committed_results(picture):
    shown = make_tables.rivals.digest(make_tables.rivals.PICTURES[picture])
    assert _draw.stamp(_pages.DOCS / picture) == shown, "run python docs/make_tables.py"


def test_the_tuned_are_ranked_with_those_that_choose_for_themselves():
    rows = [{"model": model, "set": "s"} for model in ("auto", "x", "x-tuned")]
    assert [row["model"] for row in make_tables.rivals._finals(rows)] == ["auto", "x-tuned"]
    assert make_tables.rivals._library("econml-forest-dr-tuned") == "econml"
    lines = [line.split(" | ") for line in make_tables.rivals.drawn().splitlines() if line.startswith("| ")][1:]
    ranked = {line[0].removeprefix("| ") for line in lines}
    assert {"auto", "stacking", "svm-cv", "x", "standard-svm", "econml-forest-dr", "causalml-r"} <= ranked
    assert {line[0].removeprefix("| ") for line in lines if "chooses for itself" in line[-1]} == {
        "auto",
        "stacking",
        "svm-cv",
    }


def test_weights_of_a_regression_that_stops_early_are_those_of_its_chances():
    from experiments.zaniewicz._rhc import inverse, stopped

    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(400, 3)) * [1.0, 1.0, 1000.0], rng.integers(0, 2, 400)
    early, late = (stopped(X, t, steps) for steps in (1, 1000))
    assert 0 < early.min() <= early.max() < 1
    assert not np.allclose(early, late)
    assert inverse(late, t) == pytest.approx(np.where(t == 1, 1 / late, 1 / (1 - late)))


def test_a_finding_that_does_not_hold_says_why():
    page = _compare.claims([("a", True, "1", "b"), ("c", False, "2", "other data"), ("d", False, "3"), ("e", None, "")])
    assert "| a | holds | 1 |  |" in page
    assert "| c | does not hold | 2 | other data |" in page
    assert "| d | does not hold | 3 | not found out |" in page
    assert "| e | not run yet |  |  |" in page
    assert _compare.held([("a", True, "1"), ("c", False, "2"), ("e", None, "")]) == "1 of 2 findings hold"


def test_marks_in_a_line_and_on_lines_of_their_own_are_filled(monkeypatch):
    monkeypatch.setitem(make_tables.PAGES, "some.md", {"a": lambda: "7 s", "b": lambda: "| x |"})
    before = "It takes <!-- a -->9 s<!-- end -->.\n<!-- b -->\n| y |\n<!-- end -->\n"
    after = "It takes <!-- a -->7 s<!-- end -->.\n<!-- b -->\n| x |\n<!-- end -->\n"
    assert make_tables.page("some.md", before) == after


def test_the_command_lists_and_refuses(capsys):
    assert __main__.main(["list", "000"]) == 0
    listed = capsys.readouterr().out
    assert "zaniewicz.table_6_4_1" in listed
    assert "rafla" not in listed
    with pytest.raises(SystemExit, match="nothing is called"):
        __main__.main(["list", "nowhere"])
