"""Tables out: the library of the user's data, the install line, one printer."""

from __future__ import annotations

import importlib.util
import pickle

import numpy as np
import pandas as pd
import pytest

from upturn._results import Table, aligned, library_of, new_frame

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
