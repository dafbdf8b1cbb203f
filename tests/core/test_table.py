"""The gate for features: the same matrix from every library, and clear words about tables it cannot take."""

from __future__ import annotations

import decimal
import time
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import NotFittedError

from upturn._table import Schema, conform_table, read_table
from upturn.meta import ClassTransformation
from upturn.svm import DifferentialSVM, StandardSVM, UpliftSVM
from upturn.trees import UpliftForest, UpliftTree

NAN, INF = float("nan"), float("inf")
COLUMNS = {
    "age": [31, 42, 25, 67],
    "spend": [1.5, None, 0.0, 3.25],
    "visits": [3, None, 1, 2],
    "channel": ["web", "phone", None, "web"],
    "member": [True, False, None, True],
    "empty": [None, None, None, None],
}
MATRIX = np.array(
    [
        [31, 1.5, 3, 1, 1, NAN],
        [42, NAN, NAN, 0, 0, NAN],
        [25, 0, 1, NAN, NAN, NAN],
        [67, 3.25, 2, 1, 1, NAN],
    ]
)
LEVELS = (None, None, None, ("phone", "web"), None, None)

FRAMES = {
    "pandas": pd.DataFrame(COLUMNS),
    "pandas object": pd.DataFrame(COLUMNS, dtype=object),
    "pandas nullable": pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas arrow": pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "pandas category": pd.DataFrame(COLUMNS).astype({"channel": "category", "visits": "Int64", "member": "boolean"}),
    "pandas odd index": pd.DataFrame(COLUMNS, index=[7, 7, -1, 0]),
    "polars": pl.DataFrame(COLUMNS),
    "polars categorical": pl.DataFrame(COLUMNS).with_columns(pl.col("channel").cast(pl.Categorical)),
    "polars enum": pl.DataFrame(COLUMNS).with_columns(pl.col("channel").cast(pl.Enum(["web", "tv", "phone"]))),
    "pyarrow": pa.table(COLUMNS),
    "pyarrow dictionary": pa.table({**COLUMNS, "channel": pa.array(COLUMNS["channel"]).dictionary_encode()}),
    "pyarrow chunks": pa.concat_tables([pa.table(COLUMNS)[:1], pa.table(COLUMNS)[1:]]),
}
every_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)


def same(left, right):
    return np.array_equal(left, right, equal_nan=True)


# --------------------------------------------------------------------------------------------- the same from everywhere


@every_frame
def test_every_library_gives_the_same_matrix(frame):
    matrix, schema = read_table(frame)
    assert same(matrix, MATRIX)
    assert matrix.flags.c_contiguous
    assert matrix.dtype == np.float64
    assert schema.names == tuple(COLUMNS)
    assert schema.named
    assert schema.levels == LEVELS
    assert schema.categorical.tolist() == [False, False, False, True, False, False]
    assert schema.n_features == 6


@every_frame
def test_fit_in_one_library_and_predict_in_another(frame):
    schema = read_table(FRAMES["pandas"])[1]
    assert same(conform_table(frame, schema, "Model"), MATRIX)


@every_frame
def test_named_columns_may_come_in_any_order(frame):
    schema = read_table(frame)[1]
    order = ["channel", "empty", "age", "member", "visits", "spend"]
    assert same(
        conform_table(frame.select(order) if not isinstance(frame, pd.DataFrame) else frame[order], schema, "M"), MATRIX
    )


def test_object_arrays_and_lists_are_tables():
    rows = [list(row) for row in zip(*COLUMNS.values(), strict=True)]
    for table in (np.array(rows, dtype=object), rows, tuple(map(tuple, rows))):
        matrix, schema = read_table(table)
        assert same(matrix, MATRIX)
        assert schema.levels == LEVELS
        assert not schema.named
        assert schema.names == ("x0", "x1", "x2", "x3", "x4", "x5")
        assert same(conform_table(table, schema, "M"), MATRIX)


def test_a_list_with_text_keeps_its_numbers_and_gaps():
    matrix, schema = read_table([[1, "a"], [NAN, "b"], [2.5, "a"]])
    assert schema.levels == (None, ("a", "b"))
    assert same(matrix, [[1, 0], [NAN, 1], [2.5, 0]])


@given(
    hnp.arrays(
        st.sampled_from([np.float64, np.float32, np.float16, np.int64, np.int8, np.uint16, np.bool_]),
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
        elements={"allow_infinity": False},
    )
)
def test_plain_arrays(array):
    matrix, schema = read_table(array)
    assert same(matrix, array.astype(np.float64))
    assert matrix.flags.c_contiguous
    assert schema.levels == (None,) * array.shape[1]
    assert same(conform_table(array, schema, "M"), matrix)


def test_layout_of_the_array_does_not_matter():
    array = np.random.default_rng(0).normal(size=(8, 6))
    views = [np.asfortranarray(array), np.repeat(array, 2, axis=1)[:, ::2], array[::-1][::-1], array.astype(">f8")]
    frozen = array.copy()
    frozen.flags.writeable = False
    for view in [*views, frozen]:
        matrix = read_table(view)[0]
        assert same(matrix, array)
        assert matrix.flags.c_contiguous
        assert type(matrix) is np.ndarray
        assert matrix.dtype == np.float64
        assert matrix.dtype.isnative


def test_who_asks_gets_float32_without_a_copy():
    array = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    matrix, schema = read_table(array, float32=True)
    assert np.shares_memory(matrix, array)
    assert np.shares_memory(conform_table(array, schema, "M", float32=True), array)
    assert read_table(array)[0].dtype == np.float64
    assert read_table(array.astype(np.float64), float32=True)[0].dtype == np.float64
    assert read_table(array.astype(np.int32), float32=True)[0].dtype == np.float64  # 2**24 + 1 is no float32
    assert read_table(array.astype(np.int16), float32=True)[0].dtype == np.float32


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_frames_of_float32(library):
    columns = {"a": np.arange(4, dtype=np.float32) / 3, "b": ["x", "y", "x", "y"], "c": np.arange(4, dtype=np.int8)}
    narrow, schema = read_table(library(columns), float32=True)
    assert narrow.dtype == np.float32
    assert same(narrow, read_table(library(columns))[0])
    assert conform_table(library(columns), schema, "M", float32=True).dtype == np.float32
    wide = {**columns, "c": np.array([1.0, 1e300, 0.1, 2.0])}
    assert same(read_table(library(wide), float32=True)[0], read_table(library(wide))[0])


@pytest.mark.parametrize(
    "model",
    [
        UpliftSVM(p=1.5),
        UpliftSVM(kernel="rbf", C=0.1),
        DifferentialSVM(),
        StandardSVM(),
        UpliftTree(random_state=0),
        UpliftForest(n_estimators=3, random_state=0),
    ],
    ids=repr,
)
def test_models_learn_the_same_from_float32(model):
    rng = np.random.default_rng(1)
    X, t = rng.normal(size=(400, 3)).astype(np.float32), rng.integers(0, 2, 400)
    X[::9, 1] = np.nan
    y = (rng.random(400) < 0.5 + 0.3 * t * np.tanh(X[:, 0])).astype(int)
    narrow, wide = model.fit(X, y, t).predict(X), model.fit(X.astype(np.float64), y, t).predict(X.astype(np.float64))
    np.testing.assert_array_equal(narrow, wide)
    assert model._float32
    with pytest.raises(ValueError, match="infinity"):
        model.predict(np.full((2, 3), np.inf, np.float32))
    assert np.isfinite(model.predict(np.full((9, 3), 3e38, np.float32))).all()  # whose sum is no float32


def test_decimals_and_wide_integers():
    values = [decimal.Decimal("1.5"), None, decimal.Decimal("-2.0")]
    for frame in (pd.DataFrame({"a": values}), pl.DataFrame({"a": values}), pa.table({"a": pa.array(values)})):
        assert same(read_table(frame)[0], [[1.5], [NAN], [-2]])
    wide = pl.DataFrame({"a": pl.Series([1, 2], dtype=pl.Int128)})
    assert same(read_table(wide)[0], [[1], [2]])


def test_categories_that_are_integers():
    pandas = pd.DataFrame({"a": pd.Categorical([30, None, 10, 30])})
    arrow = pa.table({"a": pa.array([30, None, 10, 30]).dictionary_encode()})
    for frame in (pandas, arrow):
        matrix, schema = read_table(frame)
        assert schema.levels == ((10, 30),)
        assert type(schema.levels[0][0]) is int
        assert same(matrix, [[1], [NAN], [0], [1]])
    for other in (pl.DataFrame({"a": [30, None, 10, 30]}), np.array([[30.0], [NAN], [10.0], [30.0]]), arrow):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            assert same(conform_table(other, schema, "M"), matrix)


def test_levels_do_not_depend_on_the_order_of_rows_or_categories():
    a = pd.DataFrame({"a": pd.Categorical(["b", "a", "c"], categories=["c", "unused", "b", "a"])})
    b = pd.DataFrame({"a": ["c", "b", "a"]})
    assert read_table(a)[1].levels == read_table(b)[1].levels == (("a", "b", "c"),)


def test_mixed_levels_are_never_compared():
    levels = read_table(pd.DataFrame({"a": ["x", 3, 2.5, None, "b"]}, dtype=object))[1].levels
    assert levels == ((2.5, 3, "b", "x"),)


def test_all_missing_columns():
    frame = pd.DataFrame(
        {"text": pd.array([None] * 40, dtype="string"), "number": [NAN] * 40, "x": np.arange(40.0) % 7}
    )
    matrix, schema = read_table(frame)
    assert schema.levels == ((), None, None)
    assert np.isnan(matrix[:, :2]).all()
    y, treatment = np.arange(40) % 2, np.arange(40) // 2 % 2
    assert np.isfinite(ClassTransformation().fit(frame, y, treatment).predict(frame)).all()


def wide(library, width):
    names = [f"column {j}" for j in range(width)]
    return library(dict(zip(names, np.arange(5.0 * width).reshape(width, 5), strict=True)))


def columns(frame, names):
    return frame[names] if isinstance(frame, pd.DataFrame) else frame.select(names)


def seconds(frame, backwards):
    """Processor time to read a table and to read it again with its columns in another order."""
    start = time.thread_time()
    schema = read_table(frame)[1]
    conform_table(backwards, schema, "M")
    return time.thread_time() - start


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_wide_tables_take_time_in_proportion(library):
    """Eight times the columns take about eight times as long; finding each column by a search would take 64 times."""
    took = []
    for width in (120, 960):
        frame = wide(library, width)
        backwards = columns(frame, [f"column {j}" for j in reversed(range(width))])
        matrix, schema = read_table(frame)
        assert same(matrix, np.arange(5.0 * width).reshape(width, 5).T)
        assert same(conform_table(backwards, schema, "M"), matrix)
        took.append(min(seconds(frame, backwards) for _ in range(3)))
    assert took[1] / took[0] < 24


def test_numbers_without_names():
    for frame in (
        pd.DataFrame([[1, 2]]),
        pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])),
    ):
        assert not read_table(frame)[1].named


# --------------------------------------------------------------------------------------------- other columns at predict


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.normal(50, 10, 200), "channel": rng.choice(["web", "phone"], 200), "n": rng.integers(0, 5, 200)}
    )
    return ClassTransformation().fit(frame, rng.integers(0, 2, 200), rng.integers(0, 2, 200))


GOOD = {"age": [31.0, 42.0], "channel": ["web", "phone"], "n": [1, 2]}
LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
every_library = pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)


@every_library
def test_missing_columns(model, library):
    with pytest.raises(
        ValueError, match=r"(?s)names should match.*seen at fit time, yet now missing: 'channel', 'n': add them"
    ):
        model.predict(library({"age": [1.0]}))


@every_library
def test_extra_columns(model, library):
    with pytest.raises(
        ValueError, match=r"(?s)Feature names unseen at fit time: 'id': drop them, as in X\[list\(model\.feature"
    ):
        model.predict(library({**GOOD, "id": [1, 2]}))


@every_library
def test_renamed_columns(model, library):
    renamed = {"Age" if name == "age" else name: values for name, values in GOOD.items()}
    with pytest.raises(
        ValueError, match=r"(?s)unseen at fit time: 'Age'.*now missing: 'age': add them, or rename the columns back"
    ):
        model.predict(library(renamed))


def test_duplicated_columns(model):
    arrow = pa.table([[1.0], ["web"], [1], [1]], names=["age", "channel", "n", "n"])
    pandas = pd.DataFrame([[1.0, "web", 1, 1]], columns=["age", "channel", "n", "n"])
    for frame in (arrow, pandas):
        with pytest.raises(ValueError, match="X has duplicated column names, 'n': each column needs a name of its own"):
            model.predict(frame)
        with pytest.raises(ValueError, match="X has duplicated column names, 'n'"):
            read_table(frame)


def test_a_long_list_of_names_is_shortened():
    schema = read_table(pd.DataFrame(np.zeros((1, 30)), columns=[f"c{j}" for j in range(30)]))[1]
    with pytest.raises(ValueError, match=r"'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8' and 21 more"):
        conform_table(pd.DataFrame({"c0": [0.0]}), schema, "M")


@pytest.mark.parametrize("columns", [2, 4])
def test_another_number_of_columns(model, columns):
    with pytest.raises(
        ValueError, match=rf"X has {columns} features, but ClassTransformation is expecting 3 features .*'age', 'ch"
    ):
        model.predict(np.zeros((2, columns)))


def test_names_on_one_side_only(model):
    cells = np.array([[31.0, "web", 1], [42.0, "phone", 2]], dtype=object)
    with pytest.warns(
        UserWarning, match="X does not have valid feature names, but ClassTransformation was fitted with"
    ) as caught:
        by_position = model.predict(cells)
    assert caught[0].filename == __file__  # the warning points at the user's line
    assert np.array_equal(by_position, model.predict(pd.DataFrame(GOOD)))
    schema = read_table(np.zeros((2, 1)))[1]
    with pytest.warns(
        UserWarning, match="X has feature names, but M was fitted without feature names: columns are taken by pos"
    ):
        assert conform_table(pl.DataFrame({"a": [5.0]}), schema, "M").tolist() == [[5.0]]


@every_library
def test_unseen_categories_are_missing(model, library):
    with pytest.warns(
        UserWarning, match=r"column 'channel' holds 1 level\(s\) not seen at fit \('fax'; 1 row\(s\)\)"
    ) as caught:
        unseen = model.predict(library({**GOOD, "channel": ["web", "fax"]}))
    assert caught[0].filename == __file__
    assert np.array_equal(unseen, model.predict(library({**GOOD, "channel": ["web", None]})))


@every_library
def test_text_where_numbers_were(model, library):
    for text in (["1", "2"], ["one", "two"]):
        with pytest.raises(
            ValueError, match=rf"column 'n' held numbers at fit and holds text now, such as '{text[0]}': pass the"
        ):
            model.predict(library({**GOOD, "n": text}))


@every_library
def test_numbers_where_text_was(model, library):
    with pytest.raises(
        ValueError, match=r"column 'channel' held text at fit \('phone', 'web'\) and holds numbers now \('1', '2'\)"
    ):
        model.predict(library({**GOOD, "channel": [1, 2]}))


def test_numbers_in_an_array_where_text_was(model):
    with (
        pytest.warns(UserWarning, match="does not have valid feature names"),
        pytest.raises(ValueError, match="column 'channel' held text at fit"),
    ):
        model.predict(np.ones((2, 3)))


def test_an_unfitted_model():
    for call in ("predict", "recommend", "_encode"):
        with pytest.raises(NotFittedError, match=r"ClassTransformation instance is not fitted yet\. Call 'fit'"):
            getattr(ClassTransformation(), call)([[1.0]])
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ClassTransformation().score([[1.0], [2.0]], [0, 1], [0, 1])
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ClassTransformation().save("nowhere")


# --------------------------------------------------------------------------------------------- what is no table

BAD = {
    "none": (None, ValueError, "X is None: expected a table with one row per person"),
    "sparse": (
        scipy.sparse.csr_matrix(np.eye(2)),
        TypeError,
        r"X is a sparse matrix .*pass a dense one, as in X\.toarray\(\)",
    ),
    "sparse array": (scipy.sparse.csr_array(np.eye(2)), TypeError, "X is a sparse matrix or array"),
    "lazy": (pl.LazyFrame({"a": [1]}), TypeError, r"X is a lazy frame: collect it first, as in X\.collect\(\)"),
    "series": (
        pd.Series([1, 2]),
        ValueError,
        r"X is a single column\. Reshape your data: pass a table, as in X\.to_frame\(\)",
    ),
    "polars series": (pl.Series([1, 2]), ValueError, "X is a single column"),
    "chunked": (pa.chunked_array([[1]]), ValueError, "X is a single column"),
    "batch": (
        pa.RecordBatch.from_pydict({"a": [1]}),
        TypeError,
        "X is a RecordBatch, which upturn does not take: convert it to",
    ),
    "1d": (np.ones(3), ValueError, r"Expected 2D array, got 1D array instead \(shape \(3,\)\)\. Reshape your data"),
    "3d": (np.ones((2, 2, 2)), ValueError, "Expected 2D array, got 3D array instead"),
    "text": ("a table", ValueError, "Expected 2D array, got 0D array instead"),
    "complex": (np.ones((2, 2)) * 1j, ValueError, "Complex data not supported: X holds complex numbers"),
    "bytes": (np.array([[b"a"]]), TypeError, r"X has type \|S1: expected numbers, or a table with named columns"),
    "dates": (np.array([["2020"]], dtype="M8[D]"), TypeError, r"X has type datetime64\[D\]: expected numbers"),
    "masked": (
        np.ma.array([[1.0]], mask=[[True]]),
        TypeError,
        r"X is a masked array, .*X\.astype\(float\)\.filled\(np\.nan\)",
    ),
    "no rows": (
        np.empty((0, 3)),
        ValueError,
        r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required: X has no rows",
    ),
    "no columns": (
        np.empty((3, 0)),
        ValueError,
        r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 .* X has no columns",
    ),
    "no rows pandas": (pd.DataFrame({"a": []}), ValueError, "X has no rows"),
    "no rows polars": (pl.DataFrame({"a": []}), ValueError, "X has no rows"),
    "no rows pyarrow": (pa.table({"a": []}), ValueError, "X has no rows"),
    "no columns pandas": (pd.DataFrame(index=[0, 1]), ValueError, "X has no columns"),
    "date column": (
        pd.DataFrame({"a": pd.date_range("2020", periods=2)}),
        TypeError,
        "column 'a' holds dates or durations .*days",
    ),
    "polars date": (
        pl.DataFrame({"a": pd.date_range("2020", periods=2)}),
        TypeError,
        "column 'a' holds dates or durations",
    ),
    "durations": (pa.table({"a": pa.array([1], pa.duration("s"))}), TypeError, "column 'a' holds dates or durations"),
    "lists": (
        pl.DataFrame({"a": [[1], [2]]}),
        TypeError,
        r"column 'a' holds List\(Int64\) values: expected numbers, booleans",
    ),
    "structs": (pl.DataFrame({"a": [{"b": 1}]}), TypeError, "column 'a' holds Struct"),
    "objects": (
        np.array([[{"a": 1}, 1.0]], dtype=object),
        TypeError,
        r"column 'x0' holds \{'a': 1\}: argument must be a string, a",
    ),
    "arrays": (np.array([[np.arange(2), 1]], dtype=object), TypeError, "column 'x0' holds array"),
    "binary": (pl.DataFrame({"a": [b"1"]}), TypeError, "column 'a' holds b'1'"),
    "huge": (
        np.array([[10**400]], dtype=object),
        ValueError,
        "column 'x0' holds a number at row 0 that is too large for float64",
    ),
    "intervals": (
        pd.DataFrame({"a": pd.cut([1, 2, 3], 2)}),
        TypeError,
        r"column 'a' holds Interval.* as in column\.astype\(str\)",
    ),
    "text and dates": (
        pd.DataFrame({"a": ["x", pd.Timestamp(0)]}, dtype=object),
        TypeError,
        "column 'a' holds Timestamp.* of type Timestamp: the levels of a categorical column are text, numbers or booleans",
    ),
    "text and lists": (
        pd.DataFrame({"a": ["x", [1]]}, dtype=object),
        TypeError,
        r"column 'a' holds \[1\] of type list",
    ),
    "mixed names": (
        pd.DataFrame([[1, 2]], columns=["a", 1]),
        TypeError,
        r"Feature names are only supported if all .*astype\(str\)",
    ),
}


@pytest.mark.parametrize(("table", "error", "message"), BAD.values(), ids=BAD)
def test_what_is_no_table(table, error, message):
    with pytest.raises(error, match=message):
        read_table(table)


@pytest.mark.parametrize(("table", "error", "message"), [BAD["lazy"], BAD["sparse"], BAD["no rows"], BAD["1d"]])
def test_what_is_no_table_at_predict(table, error, message):
    schema = read_table(np.ones((2, 3)))[1]
    with pytest.raises(error, match=message):
        conform_table(table, schema, "M")


@pytest.mark.parametrize("value", [INF, -INF])
@every_library
def test_infinities(library, value):
    table = library({"a": [1.0, 2.0], "b": [NAN, value], "c": [-value, 0.0]})
    message = r"X contains infinity in column\(s\) 'b', 'c': replace inf by a number, or by NaN if it is missing"
    with pytest.raises(ValueError, match=message):
        read_table(table)
    with pytest.raises(ValueError, match=r"X contains infinity in column\(s\) 'x0'"):
        read_table(np.array([[value], [-value]]))


def test_large_numbers_are_not_infinite():
    big = np.full((3, 2), 1e308)
    assert same(read_table(big)[0], big)
    assert same(read_table(pd.DataFrame(big))[0], big)


# --------------------------------------------------------------------------------------------- schema


@every_frame
def test_schema_survives_json(frame):
    schema = read_table(frame)[1]
    assert Schema.from_json(schema.to_json()) == schema


@pytest.mark.parametrize(
    "change",
    [
        {"names": ["a"]},
        {"names": ["a", "a"]},
        {"names": ["a", 1]},
        {"names": []},
        {"names": "ab"},
        {"named": 1},
        {"levels": [None]},
        {"levels": [None, [None]]},
        {"levels": [None, [[1]]]},
        {"levels": [None, ["x", "x"]]},
        {"levels": [None, "xy"]},
        {"levels": None},
        {"taken": "visit"},
        {"taken": [1]},
        {"taken": ["a"]},
        {"gaps": "a"},
        {"gaps": ["c"]},
    ],
)
def test_schema_that_is_not_well_formed(change):
    good = {"names": ["a", "b"], "named": True, "levels": [None, ["x", "y"]], "taken": ["visit"], "gaps": ["b"]}
    Schema.from_json(good)
    with pytest.raises(ValueError, match="schema is not well formed"):
        Schema.from_json({**good, **change})
