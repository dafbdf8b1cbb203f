"""The catalogue: bad, strange and good but unusual values for every kind of argument.

Each comes with what must become of a call that is given it:

==========  ========================================================================================================
``refuse``  an error in our words; an answer would be silent nonsense
``same``    the answer for the good value, which it equals; or an error in our words
``sound``   an answer whose numbers are finite wherever they are for the good value; or an error in our words
==========  ========================================================================================================
"""

from __future__ import annotations

import array
import datetime
import decimal
import fractions
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse


@dataclass(frozen=True)
class Bad:
    """A value made from the good one, and what must become of the call: "refuse", "same" or "sound"."""

    name: str
    make: Callable[[Any], Any]
    must: str = "refuse"


class _RaisesWhenRead:
    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("cannot be read")


class _LiesAboutLength:
    def __len__(self) -> int:
        return 60

    def __getitem__(self, i: int) -> float:
        if i > 5:
            raise IndexError
        return 1.0


def _recursive() -> list[Any]:
    found: list[Any] = [1.0] * 59
    found.append(found)
    return found


def _with(good: Any, value: Any, dtype: Any = object, at: int = 3) -> Any:
    changed = np.asarray(good).astype(dtype)
    changed[at] = value
    return changed


def _plain(good: Any) -> Any:
    """The good column as an array of numbers or text."""
    return np.asarray(good)


# What is no column, whatever it is for.
_NO_COLUMN = [
    Bad("a number", lambda g: 1.0),
    Bad("text", lambda g: "text"),
    Bad("text of the right length", lambda g: "1" * len(g)),
    Bad("bytes", lambda g: b"bytes"),
    Bad("an empty dict", lambda g: {}),
    Bad("a dict", lambda g: {"a": list(_plain(g))}),
    Bad("a set", lambda g: {0, 1}),
    Bad("a generator", lambda g: (value for value in _plain(g).tolist())),
    Bad("an object", lambda g: object()),
    Bad("a function", lambda g: len),
    Bad("a type", lambda g: int),
    Bad("an empty list", lambda g: []),
    Bad("an empty array", lambda g: np.empty(0)),
    Bad("one too few", lambda g: _plain(g)[:-1]),
    Bad("one too many", lambda g: np.concatenate((_plain(g), _plain(g)[:1]))),
    Bad("the first alone", lambda g: _plain(g)[:1]),
    Bad("0-d", lambda g: np.array(1.0)),
    Bad("two columns", lambda g: np.column_stack((_plain(g), _plain(g)))),
    Bad("three dimensions", lambda g: _plain(g)[:, None, None]),
    Bad("a row", lambda g: _plain(g)[None, :]),
    Bad("ragged", lambda g: [[1.0], [1.0, 2.0]] * (len(g) // 2)),
    Bad("lists in cells", lambda g: [[value] for value in _plain(g).tolist()], "sound"),
    Bad("a list in a cell", lambda g: _with(g, [1.0])),
    Bad("a dict in a cell", lambda g: _with(g, {})),
    Bad("an object in a cell", lambda g: _with(g, object())),
    Bad("a column of itself", lambda g: _recursive()),
    Bad("NaN", lambda g: _with(g, np.nan)),
    Bad("None in a list", lambda g: [None, *_plain(g).tolist()[1:]]),
    Bad("pandas' NA", lambda g: pd.array([pd.NA, *_plain(g).tolist()[1:]])),
    Bad("all NaN", lambda g: np.full(len(g), np.nan)),
    Bad("all None", lambda g: [None] * len(g)),
    Bad("complex", lambda g: np.arange(len(g)) + 1j),
    Bad("complex in a list", lambda g: [1j, *_plain(g).tolist()[1:]]),
    Bad("dates", lambda g: np.arange(len(g)).astype("M8[D]")),
    Bad("durations", lambda g: np.arange(len(g)).astype("m8[s]")),
    Bad("dates in a list", lambda g: [datetime.date(2020, 1, 1)] * len(g)),
    Bad("dates of pandas", lambda g: pd.Series(pd.date_range("2020", periods=len(g)))),
    Bad("a masked array", lambda g: np.ma.masked_array(_plain(g), mask=np.arange(len(g)) % 3 == 0)),
    Bad("a sparse matrix", lambda g: scipy.sparse.csr_matrix(np.eye(len(g))[:, :1])),
    Bad("a structured array", lambda g: np.zeros(len(g), dtype=[("a", float), ("b", float)])),
    Bad("bytes in cells", lambda g: np.array([b"1"] * len(g))),
    Bad("void", lambda g: np.zeros(len(g), dtype="V4")),
    Bad("a lazy frame", lambda g: pl.DataFrame({"a": np.arange(len(g))}).lazy()),
    Bad("a frame of two columns", lambda g: pd.DataFrame({"a": _plain(g), "b": _plain(g)})),
    Bad("raises when read", lambda g: _RaisesWhenRead()),
    Bad("lies about its length", lambda g: _LiesAboutLength(), "sound"),
    Bad("pandas' intervals", lambda g: pd.interval_range(0, len(g))),
    Bad("pandas' periods", lambda g: pd.period_range("2020", periods=len(g))),
]

# Other clothes for the same numbers.
_SAME_COLUMN = [
    Bad("a list", lambda g: _plain(g).tolist(), "same"),
    Bad("a tuple", lambda g: tuple(_plain(g).tolist()), "same"),
    Bad("pandas, index upside down", lambda g: pd.Series(_plain(g), index=range(len(g))[::-1]), "same"),
    Bad("pandas, one index for all", lambda g: pd.Series(_plain(g), index=[0] * len(g)), "same"),
    Bad("polars", lambda g: pl.Series("a", _plain(g)), "same"),
    Bad("pyarrow", lambda g: pa.array(_plain(g)), "same"),
    Bad("pyarrow in chunks", lambda g: pa.chunked_array([_plain(g)[:7], _plain(g)[7:]]), "same"),
    Bad("every second", lambda g: np.repeat(_plain(g), 2)[::2], "same"),
    Bad("read-only", lambda g: _read_only(g), "same"),
    Bad("objects", lambda g: _plain(g).astype(object), "same"),
    Bad("a subclass of arrays", lambda g: _plain(g).view(type("Sub", (np.ndarray,), {})), "same"),
    Bad("a column vector", lambda g: _plain(g)[:, None], "same"),
    Bad("a frame of one column", lambda g: pd.DataFrame({"a": _plain(g)}), "same"),
]
_SAME_NUMBERS = [
    Bad("float32", lambda g: _plain(g).astype(np.float32), "same"),
    Bad("float16", lambda g: _plain(g).astype(np.float16), "same"),
    Bad("long double", lambda g: _plain(g).astype(np.longdouble), "same"),
    Bad("other byte order", lambda g: _plain(g).astype(np.float64).astype(">f8"), "same"),
    Bad("array.array", lambda g: array.array("d", _plain(g).tolist()), "same"),
    Bad("fractions", lambda g: [fractions.Fraction(float(value)) for value in _plain(g)], "same"),
    Bad("decimals", lambda g: [decimal.Decimal(float(value)) for value in _plain(g)], "same"),
    Bad("pandas' Float64", lambda g: pd.Series(_plain(g), dtype="Float64"), "same"),
    Bad("categories of pandas", lambda g: pd.Series(pd.Categorical(_plain(g))), "same"),
    Bad("np.matrix", lambda g: np.asmatrix(_plain(g)).T, "same"),
]
_BAD_NUMBERS = [
    Bad("words", lambda g: np.array(["yes", "no"] * (len(g) // 2))),
    Bad("numbers as text", lambda g: _plain(g).astype(str)),
    Bad("one number as text", lambda g: [str(_plain(g)[0]), *_plain(g).tolist()[1:]]),
    Bad("infinite", lambda g: _with(g, np.inf, float)),
    Bad("minus infinity", lambda g: _with(g, -np.inf, float)),
    Bad("a number of 400 digits", lambda g: _with(g, 10**400)),
    Bad("words of polars", lambda g: pl.Series(["yes", "no"] * (len(g) // 2))),
    Bad("words of pandas", lambda g: pd.Series(["yes", "no"] * (len(g) // 2))),
    Bad("lists of pyarrow", lambda g: pa.array([[1.0]] * len(g))),
]
_LARGE_NUMBERS = [
    Bad("near the largest float", lambda g: np.where(np.arange(len(g)) % 2 == 0, 1.7e308, -1.7e308), "sound"),
    Bad("one near the largest float", lambda g: _with(g, 1.7e308, float), "sound"),
    Bad("all of them 1.7e308", lambda g: np.full(len(g), 1.7e308), "sound"),
    Bad("times 1e300", lambda g: _plain(g) * 1e300, "sound"),
    Bad("times 1e-300", lambda g: _plain(g) * 1e-300, "sound"),
    Bad("times 1e160", lambda g: _plain(g) * 1e160, "sound"),
    Bad("denormal", lambda g: _plain(g) * 5e-324, "sound"),
    Bad("constant", lambda g: np.ones(len(g)), "sound"),
    Bad("zeros", lambda g: np.zeros(len(g)), "sound"),
    Bad("numbers of pandas with a name", lambda g: pd.Series(_plain(g), name="y"), "same"),
]


def _read_only(good: Any) -> Any:
    copy = _plain(good).copy()
    copy.flags.writeable = False
    return copy


OUTCOME = [
    Bad("None", lambda g: None),
    *_NO_COLUMN,
    *_BAD_NUMBERS,
    *_SAME_COLUMN,
    *_SAME_NUMBERS,
    *_LARGE_NUMBERS,
    Bad("bools", lambda g: _plain(g).astype(bool), "sound"),
    Bad("int8", lambda g: _plain(g).astype(np.int8), "sound"),
    Bad("uint64 at its end", lambda g: np.where(_plain(g) > 0, np.uint64(2**64 - 1), np.uint64(0)), "sound"),
]
WEIGHT = [
    *_NO_COLUMN,
    *_BAD_NUMBERS,
    *_SAME_COLUMN,
    *_SAME_NUMBERS,
    Bad("negative", lambda g: _with(g, -1.0, float)),
    Bad("all of them 0", lambda g: np.zeros(len(g))),
    Bad("1e160", lambda g: np.full(len(g), 1e160), "sound"),
    Bad("1e-160", lambda g: np.full(len(g), 1e-160), "sound"),
    Bad("1e-300", lambda g: np.full(len(g), 1e-300), "sound"),
    Bad("1e300", lambda g: np.full(len(g), 1e300), "sound"),
    Bad("1.7e308", lambda g: np.full(len(g), 1.7e308), "sound"),
    Bad("denormal", lambda g: np.full(len(g), 5e-324), "sound"),
    Bad("from 1e-300 to 1e300", lambda g: np.logspace(-300, 300, len(g)), "sound"),
    Bad("0 in every other row", lambda g: np.repeat([1.0, 0.0, 0.0, 1.0], len(g) // 4 + 1)[: len(g)], "sound"),
    Bad("bools", lambda g: np.ones(len(g), bool), "sound"),
]
LABELS = [
    Bad("None", lambda g: None),
    *[bad for bad in _NO_COLUMN if bad.name not in ("lists in cells",)],
    *_SAME_COLUMN,
    Bad("lists in cells", lambda g: _with(g, [1.0])),
    Bad("one arm", lambda g: np.zeros(len(g))),
    Bad("an arm for everybody", lambda g: np.arange(len(g)), "sound"),
    Bad("words", lambda g: np.where(_plain(g) == 0, "control", "mail"), "sound"),
    Bad("words and numbers", lambda g: _with(np.where(_plain(g) == 0, "control", "mail"), 7), "sound"),
    Bad("two that look like control", lambda g: np.where(_plain(g) == 0, "control", "0")),
    Bad("none that looks like control", lambda g: np.where(_plain(g) == 0, "a", "b"), "sound"),
    Bad("infinite", lambda g: _with(g, np.inf, float)),
    Bad("bools", lambda g: _plain(g) > 0, "sound"),
    Bad("categories", lambda g: pd.Series(pd.Categorical(_plain(g).astype(str))), "sound"),
    Bad("categories with a gap", lambda g: pd.Series(pd.Categorical(_with(_plain(g).astype(str), None)))),
    Bad("far apart", lambda g: np.where(_plain(g) == 0, 0, 2**62), "sound"),
    Bad("uint64 at its end", lambda g: np.where(_plain(g) == 0, np.uint64(0), np.uint64(2**64 - 1)), "sound"),
    Bad("empty text", lambda g: np.where(_plain(g) == 0, "control", ""), "sound"),
    Bad("lone surrogates", lambda g: np.where(_plain(g) == 0, "control", "\ud800"), "sound"),
    Bad("very long text", lambda g: np.where(_plain(g) == 0, "control", "x" * 5000), "sound"),
]
SCORE = [
    Bad("None", lambda g: None),
    *[bad for bad in _NO_COLUMN if bad.name not in ("two columns",)],
    *_BAD_NUMBERS,
    *_SAME_COLUMN,
    *_SAME_NUMBERS,
    *_LARGE_NUMBERS,
    Bad("two columns", lambda g: np.column_stack((_plain(g), _plain(g))), "sound"),
    Bad("no columns", lambda g: np.empty((len(g), 0))),
]
# Scores that nothing else is there to be compared with: any number of them will do, from one on.
NUMBERS = [
    bad
    if bad.name not in ("one too few", "one too many", "the first alone", "two columns")
    else Bad(bad.name, bad.make, "sound")
    for bad in SCORE
]


def allowing(values: list[Bad], *names: str) -> list[Bad]:
    """The same values for an argument that some of them are good for, which then may be taken; who asks says why."""
    known = {bad.name for bad in values}
    assert known >= set(names), f"no such value: {set(names) - known}"
    return [Bad(bad.name, bad.make, "sound") if bad.name in names else bad for bad in values]


# ------------------------------------------------------------------------------------------------------------- tables


def _cell(good: Any, value: Any) -> Any:
    changed = np.asarray(good).astype(object)
    changed[3, 1] = value
    return changed


def _frame(good: Any, **columns: Any) -> Any:
    return pd.DataFrame(np.asarray(good)).rename(columns=lambda j: f"x{j}").assign(**columns)


def _apart(good: Any, *values: Any) -> list[Any]:
    """The values in turn, each for two rows: in one row each, they would tell arms that take turns apart, and the distance between
    such arms, in standard deviations of which there are none, is rightly infinite."""
    return [values[i // 2 % len(values)] for i in range(len(good))]


def _replaced(good: Any, value: Any, rows: Any = slice(None)) -> Any:
    changed = np.asarray(good).astype(float)
    changed[rows, 1] = value
    return changed


_NO_TABLE = [
    Bad("None", lambda g: None),
    Bad("a number", lambda g: 1.0),
    Bad("text", lambda g: "text"),
    Bad("bytes", lambda g: b"bytes"),
    Bad("a dict of columns", lambda g: {"a": np.asarray(g)[:, 0], "b": np.asarray(g)[:, 1]}),
    Bad("a list of dicts", lambda g: [{"a": 1.0}] * len(g)),
    Bad("a set", lambda g: {0, 1}),
    Bad("a generator", lambda g: (row for row in np.asarray(g).tolist())),
    Bad("an object", lambda g: object()),
    Bad("a function", lambda g: len),
    Bad("a type", lambda g: int),
    Bad("an empty list", lambda g: []),
    Bad("one dimension", lambda g: np.asarray(g)[:, 0]),
    Bad("three dimensions", lambda g: np.asarray(g)[:, :, None]),
    Bad("no rows", lambda g: np.empty((0, np.asarray(g).shape[1]))),
    Bad("no columns", lambda g: np.empty((len(g), 0))),
    Bad("a frame without rows", lambda g: _frame(g).iloc[:0]),
    Bad("a frame without columns", lambda g: _frame(g).iloc[:, :0]),
    Bad("ragged", lambda g: [[1.0], [1.0, 2.0]] * (len(g) // 2)),
    Bad("ragged by one", lambda g: [[1.0], *np.asarray(g).tolist()[1:]]),
    Bad("a sparse matrix", lambda g: scipy.sparse.csr_matrix(np.asarray(g))),
    Bad("a masked array", lambda g: np.ma.masked_array(np.asarray(g), mask=np.asarray(g) > 0)),
    Bad("a lazy frame", lambda g: pl.DataFrame(np.asarray(g)).lazy()),
    Bad("complex", lambda g: np.asarray(g) + 1j),
    Bad("dates", lambda g: np.asarray(g).astype("M8[D]")),
    Bad("durations", lambda g: np.asarray(g).astype("m8[D]")),
    Bad("a column of dates", lambda g: _frame(g, x1=pd.date_range("2020", periods=len(g)))),
    Bad("a column of durations", lambda g: _frame(g, x1=pd.to_timedelta(np.arange(len(g)), unit="D"))),
    Bad("a column of periods", lambda g: _frame(g, x1=pd.period_range("2020", periods=len(g)))),
    Bad("a column of complex numbers", lambda g: _frame(g, x1=np.arange(len(g)) * 1j)),
    Bad("a column of lists", lambda g: pl.DataFrame({"x0": [[1.0]] * len(g)})),
    Bad("a list in a cell", lambda g: _cell(g, [1.0])),
    Bad("a dict in a cell", lambda g: _cell(g, {})),
    Bad("an object in a cell", lambda g: _cell(g, object())),
    Bad("a complex number in a cell", lambda g: _cell(g, 1j)),
    Bad("a date in a cell", lambda g: _cell(g, datetime.date(2020, 1, 1))),
    Bad("bytes in a cell", lambda g: _cell(g, b"1")),
    Bad("infinite", lambda g: _replaced(g, np.inf, 3)),
    Bad("minus infinity", lambda g: _replaced(g, -np.inf, 3)),
    Bad("infinite in a frame", lambda g: _frame(g, x1=np.inf)),
    Bad("a number of 400 digits", lambda g: _cell(g, 10**400)),
    Bad("bytes in cells", lambda g: np.asarray(g).astype("S8")),
    Bad("a structured array", lambda g: np.zeros(len(g), dtype=[("a", float), ("b", float)])),
    Bad("void", lambda g: np.zeros(np.asarray(g).shape, dtype="V4")),
    Bad("a column of pandas", lambda g: pd.Series(np.asarray(g)[:, 0])),
    Bad("a column of polars", lambda g: pl.Series(np.asarray(g)[:, 0])),
    Bad("names twice", lambda g: _frame(g).set_axis(["a"] * np.asarray(g).shape[1], axis=1)),
    Bad("names of two kinds", lambda g: _frame(g).set_axis(["a", *range(1, np.asarray(g).shape[1])], axis=1)),
    Bad("raises when read", lambda g: _RaisesWhenRead()),
    Bad("lies about its length", lambda g: _LiesAboutLength(), "sound"),
]
_SAME_TABLE = [
    Bad("a list", lambda g: np.asarray(g).tolist(), "same"),
    Bad("a tuple of tuples", lambda g: tuple(map(tuple, np.asarray(g).tolist())), "same"),
    Bad("columns first", lambda g: np.asfortranarray(g), "same"),
    Bad("every second row", lambda g: np.repeat(np.asarray(g), 2, axis=0)[::2], "same"),
    Bad("every second column", lambda g: np.repeat(np.asarray(g), 2, axis=1)[:, ::2], "same"),
    Bad("rows upside down", lambda g: np.asarray(g)[::-1].copy()[::-1], "same"),
    Bad("read-only", lambda g: _read_only(g), "same"),
    Bad("objects", lambda g: np.asarray(g).astype(object), "same"),
    Bad("float32", lambda g: np.asarray(g).astype(np.float32), "same"),
    Bad("float16", lambda g: np.asarray(g).astype(np.float16), "same"),
    Bad("long double", lambda g: np.asarray(g).astype(np.longdouble), "same"),
    Bad("other byte order", lambda g: np.asarray(g).astype(">f8"), "same"),
    Bad("np.matrix", lambda g: np.asmatrix(g), "same"),
    Bad("numbers of columns as names", lambda g: pd.DataFrame(np.asarray(g)), "same"),
    Bad("pandas", lambda g: _frame(g), "same"),
    Bad("pandas, one index for all", lambda g: _frame(g).set_axis([0] * len(g)), "same"),
    Bad("polars", lambda g: pl.from_pandas(_frame(g)), "same"),
    Bad("pyarrow", lambda g: pa.Table.from_pandas(_frame(g)), "same"),
    Bad("pandas' Float64", lambda g: _frame(g).astype("Float64"), "same"),
    Bad("decimals", lambda g: [[decimal.Decimal(float(v)) for v in row] for row in np.asarray(g)], "same"),
]
_STRANGE_TABLE = [
    Bad("NaN in a cell", lambda g: _replaced(g, np.nan, 3), "sound"),
    Bad("an empty column", lambda g: _replaced(g, np.nan), "sound"),
    Bad("an empty column but for one row", lambda g: _replaced(g, np.nan, slice(1, None)), "sound"),
    Bad("an empty column in a frame", lambda g: _frame(g, x1=None), "sound"),
    Bad("a column of pandas' NA", lambda g: _frame(g, x1=pd.array([pd.NA] * len(g), dtype="Int64")), "sound"),
    Bad("a null column of pyarrow", lambda g: pa.table({"x0": pa.nulls(len(g)), "x1": np.asarray(g)[:, 1]}), "sound"),
    Bad("all empty", lambda g: np.full(np.asarray(g).shape, np.nan), "sound"),
    Bad("a constant column", lambda g: _replaced(g, 3.0), "sound"),
    Bad("all constant", lambda g: np.zeros(np.asarray(g).shape), "sound"),
    Bad("one column", lambda g: np.asarray(g)[:, :1], "sound"),
    Bad("a column twice", lambda g: np.column_stack((g, np.asarray(g)[:, 0])), "sound"),
    Bad("one row", lambda g: np.asarray(g)[:1], "sound"),
    Bad("one row too few", lambda g: np.asarray(g)[:-1], "sound"),
    Bad("a column near the largest float", lambda g: _replaced(g, _apart(g, 1.7e308, -1.7e308)), "sound"),
    Bad("one cell near the largest float", lambda g: _replaced(g, 1.7e308, 3), "sound"),
    Bad("a column of 1.7e308", lambda g: _replaced(g, 1.7e308), "sound"),
    Bad("times 1e300", lambda g: np.asarray(g) * 1e300, "sound"),
    Bad("times 1e160", lambda g: np.asarray(g) * 1e160, "sound"),
    Bad("times 1e-160", lambda g: np.asarray(g) * 1e-160, "sound"),
    Bad("times 1e-300", lambda g: np.asarray(g) * 1e-300, "sound"),
    Bad("denormal", lambda g: np.asarray(g) * 5e-324, "sound"),
    Bad("large and far from 0", lambda g: np.asarray(g) + 1e15, "sound"),
    Bad("a column of ids", lambda g: _frame(g, x1=[f"id{i}" for i in range(len(g))]), "sound"),
    Bad("a column of text", lambda g: _frame(g, x1=_apart(g, "a", "b")), "sound"),
    Bad("a column of one text", lambda g: _frame(g, x1="a"), "sound"),
    Bad("text and numbers", lambda g: _frame(g, x1=_apart(g, "a", 1)), "sound"),
    Bad("text with gaps", lambda g: _frame(g, x1=_apart(g, "a", None, "b", np.nan)), "sound"),
    Bad("categories, all empty", lambda g: _frame(g, x1=pd.Categorical([None] * len(g), ["a", "b"])), "sound"),
    Bad("empty text", lambda g: _frame(g, x1=_apart(g, "", " ")), "sound"),
    Bad("lone surrogates", lambda g: _frame(g, x1=pd.Series(_apart(g, "\ud800", "\udfff"), dtype=object)), "sound"),
    Bad("null characters", lambda g: _frame(g, x1=_apart(g, "\0", "a\0b")), "sound"),
    Bad("very long text", lambda g: _frame(g, x1=_apart(g, "x" * 5000, "y")), "sound"),
    Bad("an array of text", lambda g: np.asarray(g).astype(str), "sound"),
    Bad("text in a cell", lambda g: _cell(g, "a"), "sound"),
    Bad("None in a cell", lambda g: _cell(g, None), "sound"),
    Bad("bools", lambda g: np.asarray(g) > 0, "sound"),
    Bad("integers at their end", lambda g: np.where(np.asarray(g) > 0, 2**63 - 1, -(2**63)), "sound"),
    Bad("names without letters", lambda g: _frame(g).set_axis(["", " ", "\0"][: np.asarray(g).shape[1]], axis=1), "sound"),
    Bad("names of several levels", lambda g: _frame(g).set_axis(pd.MultiIndex.from_product([["a"], range(np.asarray(g).shape[1])]), axis=1), "sound"),
    Bad("a record batch", lambda g: pa.RecordBatch.from_pandas(_frame(g)), "sound"),
]  # fmt: skip
TABLE = [*_NO_TABLE, *_SAME_TABLE, *_STRANGE_TABLE]
# At predict, a fitted model knows its columns: other names, numbers of columns and kinds of values are mistakes.
_LATER = {"one column", "a column twice", "names without letters", "names of several levels", "lone surrogates"}
LATER_TABLE = [
    *(bad for bad in TABLE if bad.name not in _LATER and bad.name not in {"one row", "one row too few"}),
    Bad("one row", lambda g: np.asarray(g)[:1], "sound"),
    Bad("one column", lambda g: np.asarray(g)[:, :1]),
    Bad("a column twice", lambda g: np.column_stack((g, np.asarray(g)[:, 0]))),
    Bad("other names", lambda g: _frame(g).rename(columns=str.upper), "sound"),
]

# --------------------------------------------------------------------------------------------------------- parameters

PARAMETERS: dict[str, Any] = {
    "None": lambda: None,
    "True": lambda: True,
    "False": lambda: False,
    "numpy's True": lambda: np.True_,
    "0": lambda: 0,
    "1": lambda: 1,
    "2": lambda: 2,
    "3": lambda: 3,
    "-1": lambda: -1,
    "-5": lambda: -5,
    "0.0": lambda: 0.0,
    "-0.0": lambda: -0.0,
    "0.5": lambda: 0.5,
    "1.0": lambda: 1.0,
    "1.5": lambda: 1.5,
    "2.5": lambda: 2.5,
    "-0.5": lambda: -0.5,
    "NaN": lambda: float("nan"),
    "numpy's NaN": lambda: np.float64("nan"),
    "infinity": lambda: float("inf"),
    "minus infinity": lambda: float("-inf"),
    "1e308": lambda: 1e308,
    "1e-308": lambda: 1e-308,
    "5e-324": lambda: 5e-324,
    "2**31": lambda: 2**31,
    "2**40": lambda: 2**40,
    "2**63": lambda: 2**63,
    "10**400": lambda: 10**400,
    "-10**400": lambda: -(10**400),
    "int64 1": lambda: np.int64(1),
    "uint8 3": lambda: np.uint8(3),
    "float32 0.5": lambda: np.float32(0.5),
    "0-d array": lambda: np.array(1.0),
    "complex": lambda: 1j,
    "a complex 1": lambda: complex(1, 0),
    "decimal": lambda: decimal.Decimal("0.5"),
    "fraction": lambda: fractions.Fraction(1, 2),
    "empty text": lambda: "",
    "a": lambda: "a",
    "no": lambda: "no",
    "yes": lambda: "yes",
    "auto": lambda: "auto",
    "1 as text": lambda: "1",
    "text of numpy": lambda: np.str_("a"),
    "bytes": lambda: b"a",
    "empty list": lambda: [],
    "list of 1": lambda: [1],
    "list of floats": lambda: [0.5, 1.0],
    "list of text": lambda: ["a", "b"],
    "tuple": lambda: (1,),
    "empty dict": lambda: {},
    "dict": lambda: {"a": 1},
    "set": lambda: {1, 2},
    "array": lambda: np.array([1, 2]),
    "array of floats": lambda: np.array([0.5, np.nan]),
    "empty array": lambda: np.empty(0),
    "a generator": lambda: (value for value in [1, 2]),
    "range": lambda: range(3),
    "object": lambda: object(),
    "a type": lambda: int,
    "a function": lambda: len,
    "pandas' NA": lambda: pd.NA,
    "NaT": lambda: np.datetime64("NaT"),
    "a date": lambda: datetime.date(2020, 1, 1),
    "a Series": lambda: pd.Series([1.0, 2.0]),
    "a frame": lambda: pd.DataFrame({"a": [1.0]}),
    "masked": lambda: np.ma.masked,
    "raises when read": lambda: _RaisesWhenRead(),
}
HUGE = {"2**31", "2**40", "2**63", "1e308", "10**400", "infinity"}


def parameters(allowed: Callable[[Any], bool | None]) -> Iterator[Bad]:
    """Values for a parameter; ``allowed`` says whether a value may be taken, and None skips it."""
    for name, make in PARAMETERS.items():
        value = make()
        may = allowed(value)
        if may is not None:
            yield Bad(name, lambda _, make=make: make(), "sound" if may else "refuse")
