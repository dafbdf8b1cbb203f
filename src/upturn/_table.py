"""The gate for features: the only place that looks at raw ``X``.

A table of any kind (numpy, pandas, polars, pyarrow) becomes one C-contiguous float64 matrix (float32 for who asks) and a
:class:`Schema` that remembers what the columns were. Categorical columns hold the position of their level among the levels seen at fit;
NaN stands for a missing value and, at predict, for a level that was not seen at fit.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools, Floats, Ints
from upturn._columns import as_number, is_missing, warn_user
from upturn._sparse import is_sparse, read_sparse
from upturn._target import Label, plain_label, sort_labels

_ROWS = 2048  # written at a time
MOST_LEVELS = 256  # told apart where each costs a column; of more, the rarest are taken together
_IDENTIFIER = 50  # levels, below which a column is not suspected of naming rows
_LEVEL = (bool, int, float, str, np.bool_, np.integer, np.floating)  # what a level of a categorical column may be


@dataclass(frozen=True)
class Schema:
    """What the columns of a table are.

    ``levels[j]`` is None for a numeric column and the tuple of its levels for a categorical one. ``taken`` are columns that
    were in the table at fit as outcome, treatment or weight, and are passed over wherever they turn up again. ``gaps`` are the
    columns in which something was missing at fit.
    """

    names: tuple[str, ...]
    named: bool
    levels: tuple[tuple[Label, ...] | None, ...]
    taken: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.names)

    @property
    def categorical(self) -> Bools:
        """Mask of the categorical columns."""
        return np.array([levels is not None for levels in self.levels], dtype=bool)

    def to_json(self) -> dict[str, Any]:
        """The schema as JSON values."""
        return {
            "names": list(self.names),
            "named": self.named,
            "levels": [None if levels is None else list(levels) for levels in self.levels],
            "taken": list(self.taken),
            "gaps": list(self.gaps),
        }

    @classmethod
    def from_json(cls, value: Any) -> Schema:
        """Rebuild and check a schema that was read from a file."""
        names, named, levels = value["names"], value["named"], value["levels"]
        taken, gaps = value["taken"], value["gaps"]
        good = (
            isinstance(named, bool)
            and isinstance(names, list)
            and isinstance(levels, list)
            and isinstance(taken, list)
            and isinstance(gaps, list)
            and all(isinstance(name, str) for name in (*names, *taken, *gaps))
            and set(names).isdisjoint(taken)
            and set(names).issuperset(gaps)
            and len(names) == len(levels) > 0
            and all(level is None or isinstance(level, list) for level in levels)
            and all(
                isinstance(label, bool | int | float | str) and label == label
                for level in levels
                if level
                for label in level
            )
            and all(len(set(level)) == len(level) for level in levels if level)
        )
        if not good or len(set(names)) < len(names):
            raise ValueError("the column schema is not well formed")
        kinds = tuple(None if level is None else tuple(level) for level in levels)
        return cls(tuple(names), named, kinds, tuple(taken), tuple(gaps))


def read_table(X: Any, *, float32: bool = False, quiet: bool = False, sparse: bool = False) -> tuple[Floats, Schema]:
    """Read a table for the first time, at fit.

    With ``float32``, a table that fits float32 without loss stays or becomes that: a matrix of it is not copied. Columns of text
    that look like identifiers are warned of, unless ``quiet``. A sparse matrix stays one for who takes it (``sparse``), and is
    refused otherwise.
    """
    if sparse and is_sparse(X):
        thin = read_sparse(X)
        _not_empty(*thin.shape)
        names = _positions(thin.shape[1])
        return cast(Floats, thin), Schema(names, False, (None,) * len(names))
    columns, names, named = read_columns(X)
    if columns is None:
        array = _as_array(X)
        schema = Schema(names, False, (None,) * len(names))
        matrix = _to_matrix(array, schema, float32)
        return matrix, _with_gaps(schema, matrix)
    levels = tuple(
        levels_of(column, name) if column.categorical else None for column, name in zip(columns, names, strict=True)
    )
    schema = Schema(names, named, levels)
    matrix = encode_columns(columns, schema, float32)
    schema = _with_gaps(schema, matrix)
    found = [] if quiet else find_identifiers(matrix, schema)
    if found:
        warn_user(
            f"column(s) {_shorten(found)} hold text, and more than half of the rows have a value of their own: this looks like an "
            "identifier, from which nothing can be learnt about others; leave it out",
            UserWarning,
        )
    return matrix, schema


def _with_gaps(schema: Schema, matrix: Floats) -> Schema:
    """The schema with the columns in which something is missing: a minimum is NaN where any value is."""
    gone = np.isnan(np.minimum.reduce(matrix, axis=0))
    return replace(schema, gaps=tuple(name for name, gap in zip(schema.names, gone.tolist(), strict=True) if gap))


def find_identifiers(matrix: Floats, schema: Schema) -> list[str]:
    """Names of the categorical columns in which more than half of the rows have a value that no other row has."""
    found = []
    for j, levels in enumerate(schema.levels):
        if levels is not None and _may_name_rows(len(levels), len(matrix)):
            codes = matrix[:, j][~np.isnan(matrix[:, j])].astype(np.int64)
            if is_identifier(np.bincount(codes, minlength=len(levels)), len(matrix)):
                found.append(schema.names[j])
    return found


def is_identifier(counts: Ints, n: int) -> bool:
    """Whether a column looks like one, by the rows of its levels."""
    return _may_name_rows(len(counts), n) and _names_rows(counts, n)


def _may_name_rows(n_levels: int, n: int) -> bool:
    return n_levels >= _IDENTIFIER and 2 * n_levels > n


def _names_rows(counts: Ints, n: int) -> bool:
    """Whether more than half of the rows have a level that no other row has."""
    return 2 * int((counts == 1).sum()) > n


def conform_table(X: Any, schema: Schema, model: str, *, float32: bool = False, sparse: bool = False) -> Floats:
    """Read a table again, at predict: the columns must be those of ``schema``, in any order when they are named."""
    if sparse and is_sparse(X):
        if schema.categorical.any():
            raise TypeError(f"X is a sparse matrix, and {model} was fitted to a table with text: pass such a table")
        thin = read_sparse(X)
        _not_empty(*thin.shape)
        columns, names, named = None, _positions(thin.shape[1]), False
    else:
        thin, (columns, names, named) = None, read_columns(X)
    if schema.named and named:
        positions = _match_names(names, schema)
        columns = [columns[j] for j in positions] if columns else None
    elif len(names) != schema.n_features:
        raise ValueError(
            f"X has {len(names)} features, but {model} is expecting {schema.n_features} features as input: {_shorten(schema.names)}"
        )
    elif schema.named != named:
        warnings.warn(
            f"X has feature names, but {model} was fitted without feature names: columns are taken by position"
            if named
            else f"X does not have valid feature names, but {model} was fitted with feature names: columns are taken by position",
            UserWarning,
            stacklevel=4,
        )
    if thin is not None:
        return cast(Floats, thin)
    if columns is not None:
        return encode_columns(columns, schema, float32)
    array = _as_array(X)
    if schema.categorical.any():
        return encode_columns([_Column(array[:, j], False) for j in range(array.shape[1])], schema, float32)
    return _to_matrix(array, schema, float32)


def pool_levels(column: NDArray[Any], n_levels: int, weight: Floats | None = None) -> Ints | None:
    """The place of every level among those that are told apart; None where there are not too many of them.

    The levels that have the most rows (or weight) keep a place of their own, in the order of their codes; the others share the
    last. Of a column that looks like an identifier all share one place: one each for a few rows would make a hard problem of
    nothing. Outcomes play no part, so nothing about them is learnt here.
    """
    if n_levels <= MOST_LEVELS:
        return None
    known = ~np.isnan(column)
    codes = column[known].astype(np.int64)
    counts = np.bincount(codes, minlength=n_levels)
    return place_levels(counts, len(column), None if weight is None else np.bincount(codes, weight[known], n_levels))


def place_levels(counts: Ints, n: int, mass: NDArray[Any] | None = None) -> Ints | None:
    """The same from the rows of every level, of ``n`` in all, and its weight."""
    n_levels = len(counts)
    if n_levels <= MOST_LEVELS:
        return None
    if _names_rows(counts, n):
        return np.zeros(n_levels, dtype=np.int64)
    mass = counts if mass is None else mass
    frequent = np.sort(np.argsort(-mass, kind="stable")[: MOST_LEVELS - 1])
    place = np.full(n_levels, MOST_LEVELS - 1, dtype=np.int64)
    place[frequent] = np.arange(MOST_LEVELS - 1)
    return place


def pooled(column: NDArray[Any], place: Ints) -> NDArray[Any]:
    """The column with the places of its levels in place of their codes; NaN stays."""
    known = ~np.isnan(column)
    found = np.full_like(column, np.nan)
    found[known] = place[column[known].astype(np.int64)]
    return found


def few_levels(column: NDArray[Any], levels: Sequence[Label] | None) -> tuple[NDArray[Any], int | None]:
    """A column with no more levels than can be told apart, and their number; a column of numbers as it is, and None."""
    if levels is None:
        return column, None
    place = pool_levels(column, len(levels))
    return (column, len(levels)) if place is None else (pooled(column, place), int(place.max()) + 1)


# --------------------------------------------------------------------------------------------- what X is


def read_frame(X: Any) -> nw.DataFrame[Any] | None:
    """A table with named columns, for who reads them himself; None for what has none."""
    return _as_frame(X)


def _as_frame(X: Any) -> nw.DataFrame[Any] | None:
    if X is None:
        raise ValueError("X is None: expected a table with one row per person and one column per feature")
    if hasattr(X, "toarray"):
        raise TypeError(
            "X is a sparse matrix or array, which only linear machines and meta-learners over a base that takes it do: pass a dense one, as in "
            "X.toarray(), or use one of them, such as UpliftSVM or TLearner(LogisticRegression())"
        )
    if type(X) is np.ndarray:  # asking narwhals takes longer than a small fit
        return None
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError("X is a masked array, whose mask would be lost: pass X.astype(float).filled(np.nan)")
    try:
        native = nw.from_native(X, pass_through=True, allow_series=True)
        if isinstance(native, nw.DataFrame):
            len(native)  # a frame that narwhals only half knows, such as a pyarrow RecordBatch, has no length
    except NotImplementedError:
        raise TypeError(
            f"X is a {type(X).__name__}, which upturn does not take: convert it to a pandas, polars or pyarrow table"
        ) from None
    except Exception as error:
        names = list(X.column_names if hasattr(type(X), "column_names") else getattr(X, "columns", []))
        if len(set(names)) < len(names):  # pandas and pyarrow allow repeated names, narwhals does not
            _reject_repeated(names)
        raise ValueError(f"X could not be read as a table: {error}") from error
    if isinstance(native, nw.LazyFrame):
        raise TypeError("X is a lazy frame: collect it first, as in X.collect()")
    if isinstance(native, nw.Series):
        raise ValueError(
            "Expected 2D array, got 1D array instead: X is a single column. Reshape your data: pass a table, as in X.to_frame()"
        )
    return native if isinstance(native, nw.DataFrame) else None


def _as_array(X: Any) -> NDArray[Any]:
    try:
        array = np.asarray(X)
    except Exception as error:  # rows of different lengths, or whatever an object raises when it is read
        raise ValueError(
            f"X could not be read as a table: expected rows of the same length ({type(X).__name__}: {error})"
        ) from error
    if array.dtype.kind == "U" and isinstance(X, list | tuple):
        array = np.array(X, dtype=object)  # numpy turns numbers and NaN into text when they stand beside text
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: X holds complex numbers")
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead (shape {array.shape}). Reshape your data: "
            "X.reshape(-1, 1) for a single feature, X.reshape(1, -1) for a single row"
        )
    _not_empty(*array.shape)
    if array.dtype.kind not in "biufOU":
        raise TypeError(f"X has type {array.dtype}: expected numbers, or a table with named columns")
    return array.astype(object) if array.dtype.kind == "U" else array


def _not_empty(n: int, p: int) -> None:
    if n == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=({n}, {p})) while a minimum of 1 is required: X has no rows"
        )
    if p == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required: X has no columns; if "
            "a step before kept none of them, such as UMODLSelector() where all is noise, let it keep one, as in "
            "UMODLSelector(min_features=1), or leave that step out"
        )


def _positions(p: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(p))


def _column_names(frame: nw.DataFrame[Any]) -> tuple[tuple[str, ...], bool]:
    names = list(frame.columns)
    text = [isinstance(name, str) for name in names]
    if any(text) and not all(text):
        kinds = sorted({type(name).__name__ for name in names})
        raise TypeError(
            f"Feature names are only supported if all input features have string names, but your input has {kinds} as feature "
            "name / column name types: rename the columns, as in X.columns = X.columns.astype(str)"
        )
    if len(set(names)) < len(names):
        _reject_repeated(names)
    return (tuple(names), True) if all(text) else (_positions(len(names)), False)


def _reject_repeated(names: list[Any]) -> None:
    repeated = sorted(str(name) for name, count in Counter(names).items() if count > 1)
    raise ValueError(f"X has duplicated column names, {_shorten(repeated)}: each column needs a name of its own")


def _match_names(names: tuple[str, ...], schema: Schema) -> list[int]:
    where = {name: j for j, name in enumerate(names)}
    known = {*schema.names, *schema.taken}
    unseen = [name for name in names if name not in known]
    missing = [name for name in schema.names if name not in where]
    if unseen or missing:
        said = "The feature names should match those that were passed during fit."
        if unseen:
            said += f"\nFeature names unseen at fit time: {_shorten(unseen)}: drop them, as in X[list(model.feature_names_in_)]."
        if missing:
            said += f"\nFeature names seen at fit time, yet now missing: {_shorten(missing)}: add them, or rename the columns back."
        raise ValueError(said)
    return [where[name] for name in schema.names]


def _shorten(names: Sequence[str], most: int = 8) -> str:
    listed = ", ".join(repr(name) for name in names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"


# --------------------------------------------------------------------------------------------- columns


@dataclass(frozen=True)
class _Column:
    """One raw column: an array of numbers, or of objects."""

    values: NDArray[Any]
    categorical: bool


def read_columns(X: Any) -> tuple[list[_Column] | None, tuple[str, ...], bool]:
    """The raw columns with their names and whether these are the user's; no columns for a plain matrix of numbers."""
    frame = _as_frame(X)
    if frame is not None:
        names, named = _column_names(frame)
        _not_empty(len(frame), len(names))
        columns = [_frame_column(series, name) for series, name in zip(frame.iter_columns(), names, strict=True)]
        return columns, names, named
    array = _as_array(X)
    names = _positions(array.shape[1])
    if array.dtype.kind != "O":
        return None, names, False
    cells = [array[:, j] for j in range(array.shape[1])]
    return [_Column(column, any(isinstance(value, str) for value in column)) for column in cells], names, False


def _frame_column(series: Any, name: str) -> _Column:
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        plain = not series.null_count() and not dtype.is_decimal() and dtype not in (nw.Int128, nw.UInt128)
        return _Column(np.asarray((series if plain else series.cast(nw.Float64)).to_numpy()), False)
    if dtype.is_temporal():
        raise TypeError(
            f"column {name!r} holds dates or durations ({dtype}): turn it into numbers first, such as days since a fixed day"
        )
    if dtype.is_nested():
        raise TypeError(f"column {name!r} holds {dtype} values: expected numbers, booleans or text")
    values = np.empty(len(series), dtype=object)
    values[:] = series.to_list()
    text = dtype in (nw.String, nw.Categorical, nw.Enum) or any(isinstance(value, str) for value in values)
    return _Column(values, text)


def fits_float32(dtype: np.dtype[Any]) -> bool:
    """Whether every value of a type is one of float32, too."""
    return bool(np.can_cast(dtype, np.float32))


def encode_columns(columns: list[_Column], schema: Schema, float32: bool) -> Floats:
    """The matrix of raw columns; with ``float32`` of that type, where it holds every value."""
    narrow = float32 and all(
        len(levels) <= 1 << 24 if levels is not None else fits_float32(column.values.dtype)
        for column, levels in zip(columns, schema.levels, strict=True)
    )
    matrix: Floats = np.empty((len(columns[0].values), len(columns)), dtype=np.float32 if narrow else np.float64)
    plain = []
    for j, (column, name, levels) in enumerate(zip(columns, schema.names, schema.levels, strict=True)):
        if levels is None and column.values.dtype.kind != "O":
            plain.append(j)
        else:
            matrix[:, j] = _numbers(column.values, name) if levels is None else _codes(column.values, levels, name)
    for start in range(0, len(matrix), _ROWS):  # while they are in the cache, one column after the other
        rows = slice(start, start + _ROWS)
        for j in plain:
            matrix[rows, j] = columns[j].values[rows]
    _reject_infinite(matrix, schema)
    return matrix


def levels_of(column: _Column, name: str) -> tuple[Label, ...]:
    """Distinct values of a categorical column, in order."""
    try:
        distinct = {value for value in set(column.values.tolist()) if not is_missing(value)}
        return tuple(sort_labels([plain_label(value) for value in distinct]))
    except TypeError:
        raise _strange_level(column.values, name) from None


def _strange_level(values: NDArray[Any], name: str) -> TypeError:
    example = next(value for value in values if not isinstance(value, _LEVEL) and not is_missing(value))
    return TypeError(
        f"column {name!r} holds {example!r} of type {type(example).__name__}: the levels of a categorical column are text, "
        "numbers or booleans; turn other things into text first, as in column.astype(str)"
    )


class _Codes(dict[Any, float]):
    """Level to code; what is not a level is NaN."""

    def __missing__(self, key: Any) -> float:
        return np.nan


def _codes(values: NDArray[Any], levels: Sequence[Label], name: str) -> Floats:
    table = _Codes({level: float(code) for code, level in enumerate(levels)})
    try:
        codes = np.fromiter(map(table.__getitem__, values.tolist()), np.float64, len(values))
    except TypeError:  # a list or another thing without a hash
        raise _strange_level(values, name) from None
    lost = [value for value in values[np.isnan(codes)].tolist() if not is_missing(value)]
    if lost:
        _unseen(lost, len(values), levels, name)
    return codes


def _unseen(lost: list[Any], n: int, levels: Sequence[Label], name: str) -> None:
    """Complain about the values of a categorical column that are none of its levels."""
    examples = _shorten(sorted({str(value) for value in lost}), 4)
    was_text = any(isinstance(level, str) for level in levels)
    if len(lost) == n and was_text and not any(isinstance(value, str) for value in lost):
        raise ValueError(
            f"column {name!r} held text at fit ({_shorten([str(level) for level in levels], 4)}) and holds numbers now "
            f"({examples}): pass the same kind of values as at fit"
        )
    warnings.warn(
        f"column {name!r} holds {len(set(lost))} level(s) not seen at fit ({examples}; {len(lost)} row(s)): treated as missing",
        UserWarning,
        stacklevel=7,
    )


def _numbers(column: NDArray[Any], name: str) -> Floats:
    numbers = np.empty(len(column))
    for i, value in enumerate(column):
        try:
            numbers[i] = np.nan if is_missing(value) else as_number(value)
        except (TypeError, ValueError):
            if isinstance(value, str):
                raise ValueError(
                    f"column {name!r} held numbers at fit and holds text now, such as {value!r}: pass the same kind of values"
                ) from None
            raise TypeError(
                f"column {name!r} holds {value!r}: argument must be a string, a number or missing in every cell of a table"
            ) from None
        except OverflowError:
            raise ValueError(f"column {name!r} holds a number at row {i} that is too large for float64") from None
    return numbers


def _to_matrix(array: NDArray[Any], schema: Schema, float32: bool) -> Floats:
    narrow = float32 and fits_float32(array.dtype)
    matrix: Floats = np.ascontiguousarray(array, dtype=np.float32 if narrow else np.float64)
    _reject_infinite(matrix, schema)
    return matrix


def _reject_infinite(matrix: Floats, schema: Schema) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        total = matrix.sum(
            dtype=np.float64
        )  # one pass in the common case; a sum can also overflow, so look closer if it is not finite
    if np.isfinite(total):
        return
    infinite = np.isinf(matrix).any(axis=0)
    if infinite.any():
        columns = _shorten([schema.names[j] for j in np.flatnonzero(infinite)])
        raise ValueError(
            f"X contains infinity in column(s) {columns}: replace inf by a number, or by NaN if it is missing"
        )
