"""Tables out: the library of the user's data, the install line, one printer."""

from __future__ import annotations

import importlib.util
import pickle

import numpy as np
import pandas as pd
import pytest

from upturn._results import Table, aligned, library_of, new_frame, number_text, plural

COLUMNS = {"name": np.array(["a", "b"]), "value": np.array([1.5, np.nan]), "count": [1, 2]}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_of_the_library_named(library):
    pytest.importorskip(library)
    frame = Table(COLUMNS, library=library).to_frame()
    assert type(frame).__module__.split(".")[0] == library
    assert [str(name) for name in getattr(frame, "column_names", getattr(frame, "columns", None))] == list(COLUMNS)
    assert len(frame) == 2


def test_the_library_is_that_of_the_first_frame_or_column():
    polars = pytest.importorskip("polars")
    assert library_of(np.ones(3), [1, 2], None) is None
    assert library_of(np.ones(3), polars.Series([1, 2]), pd.Series([1, 2])) == "polars"
    assert library_of(pd.DataFrame({"a": [1]})) == "pandas"
    assert library_of(polars.DataFrame({"a": [1]}).lazy()) is None


def test_without_a_library_named_whichever_is_installed_or_the_install_line(monkeypatch):
    assert isinstance(new_frame(COLUMNS), pd.DataFrame)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pandas" else find(name))
    polars = pytest.importorskip("polars")
    assert isinstance(new_frame(COLUMNS), polars.DataFrame)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'upturn\[data\]'"):
        new_frame(COLUMNS)


def test_a_table_prints_numbers_flush_right_and_survives_pickling():
    table = Table(COLUMNS, title="two rows", notes=["that is all"], library="pandas")
    assert repr(table) == "two rows\nname  value  count\na       1.5      1\nb       n/a      2\nthat is all"
    assert repr(pickle.loads(pickle.dumps(table))) == repr(table)
    assert aligned(["x", "y"], [["1", "long"]], [True, False]) == "x  y\n1  long"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7_247_000.0, "7,247,000"),
        (7_246_951.2, "7,247,000"),
        (0.00012344, "0.0001234"),
        (-0.5, "-0.5"),
        (1351.2, "1,351"),
        (99999.0, "100,000"),
        (12.3456, "12.35"),
        (3.0, "3"),
        (100.0, "100"),
        (0.0, "0"),
        (float("nan"), "n/a"),
        (float("inf"), "inf"),
    ],
)
def test_numbers_have_four_digits_and_no_exponent(value, text):
    assert number_text(value) == text
    if np.isfinite(value):
        assert number_text(value, "+") == (text if value < 0 else f"+{text}")
        assert float(number_text(value).replace(",", "")) == pytest.approx(value, rel=5.1e-4)


def test_one_and_many():
    assert plural(1, "row") == "1 row"
    assert plural(2000, "row") == "2,000 rows"


EVIL = "<script>alert('&')</script>"


def in_html(result):
    """The HTML of a result, in which nothing that comes from data is code."""
    text = result._repr_html_()
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text
    return text


def evil_experiment(n=400):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({EVIL: rng.normal(size=n), "b": rng.normal(size=n)})
    t = np.where(rng.random(n) < 0.5, "control", EVIL)
    return X, (rng.random(n) < 0.4 + 0.3 * (t != "control") * (X[EVIL] > 0)).astype(int), t


def test_everything_in_a_notebook_is_escaped():
    import upturn as up
    from upturn.metrics import compare, evaluate
    from upturn.policy import four_groups, target
    from upturn.trees import UpliftForest, UpliftTree

    X, y, t = evil_experiment()
    assert "<table>" in in_html(Table({EVIL: [1.0]}, title=EVIL, notes=[EVIL]))
    assert "What to do" in in_html(up.check(X, y, t))
    scores = {EVIL: X[EVIL].to_numpy(), "b": X["b"].to_numpy()}
    in_html(evaluate(y, scores, t, n_bootstrap=10))
    in_html(compare(y, scores, t, n_bootstrap=10))
    plan = target(X[EVIL].to_numpy(), fraction=0.3, y=y, treatment=t, n_bootstrap=10)
    assert "this plan" in in_html(plan)
    assert "persuadable" in four_groups(np.array([[0.2, 0.4], [0.5, 0.4]]))._repr_html_()
    tree = UpliftTree(max_depth=2, random_state=0).fit(X, y, t)
    assert "<pre>" in in_html(tree)
    assert "fitted: control" in in_html(tree)
    assert tree._repr_mimebundle_()["text/html"].endswith(tree._fitted_html())
    forest = UpliftForest(n_estimators=3, random_state=0).fit(X, y, t)
    assert "<pre>" not in forest._fitted_html()
    assert "2 features" in in_html(forest)
    assert "fitted" not in UpliftTree()._fitted_html()


def test_a_long_text_is_cut():
    from upturn._html import preformatted

    text = preformatted("\n".join(str(i) for i in range(100)))
    assert "… 20 more lines" in text
    assert "\n79\n" in text
    assert "\n80\n" not in text
