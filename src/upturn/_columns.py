"""Raw columns: one array-like of any library read into a plain numpy column, or refused in words.

The readers behind the gates. :mod:`upturn._target` puts the columns of an experiment together with them.
"""

from __future__ import annotations

import os
import reprlib
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats

_LARGE = 1e140  # squares of larger numbers, times weights and summed over rows, may be infinite


def to_numpy(values: Any, name: str) -> NDArray[Any]:
    """A column or table of any library as a numpy array; ``name`` is what an error calls it.

    A number gives an array without dimensions, for callers who take one.
    """
    if type(values) is np.ndarray:  # asking narwhals takes longer than a small fit
        return values
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be lost: fill it, or drop the masked rows, first")
    if hasattr(values, "toarray"):
        raise TypeError(f"{name} is a sparse matrix: expected a dense one-dimensional array")
    try:
        series = nw.from_native(values, allow_series=True, pass_through=True)
    except Exception as error:  # such as names that are there twice
        raise ValueError(f"{name} could not be read as a table: {error}") from error
    if isinstance(series, nw.Series) and series.dtype in (nw.Categorical, nw.Enum):
        return _as_objects(series.to_list())  # pyarrow would lose the nulls of a dictionary
    if isinstance(series, nw.LazyFrame):
        raise TypeError(f"{name} is a lazy frame: collect it first, as in frame.collect(), and pass its column")
    try:
        array = np.asarray(series.to_numpy() if isinstance(series, nw.Series | nw.DataFrame) else values)
    except Exception as error:  # rows of different lengths, or whatever an object raises when it is read
        raise ValueError(
            f"{name} could not be read as an array: expected a list, an array or a column of one value per row, all of the same kind "
            f"({type(values).__name__}: {error})"
        ) from error
    if array.ndim == 0 and array.dtype.kind not in "biufc":
        hint = (
            "; there is no table here to take a column of that name from: pass table[name]"
            if isinstance(values, str)
            else ""
        )
        raise ValueError(
            f"{name} is {reprlib.repr(values)}, of type {type(values).__name__}: expected numbers or labels, a list, an array or a column of "
            f"them{hint}"
        )
    if isinstance(values, np.ndarray) or array.dtype.kind != "U" or array.ndim != 1:
        return array
    if not all(isinstance(value, str) for value in values):
        return _as_objects(values)  # numpy made text of a 0 or a NaN that stood beside text in a list
    return array


def _as_objects(values: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def as_floats(values: NDArray[Any], name: str) -> Floats:
    """The values as C-contiguous float64, NaN where one is missing."""
    if values.dtype.names:
        raise ValueError(f"{name} is a structured array with fields {values.dtype.names}: make it with upturn.pack")
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} holds complex numbers")
    if values.dtype.kind in "mM":
        raise TypeError(f"{name} holds dates or durations: convert them to numbers first")
    if values.dtype.kind in "biuf":
        with np.errstate(over="ignore"):  # of a wider type; what becomes infinite is refused as such
            return np.ascontiguousarray(values, dtype=np.float64)
    numbers = np.empty(values.size)
    for i, value in enumerate(values.ravel().tolist()):
        try:
            numbers[i] = np.nan if is_missing(value) else as_number(value)
        except OverflowError:
            raise ValueError(f"{name} holds a number too large for float64") from None
        except (TypeError, ValueError):
            raise ValueError(
                f"{name} holds {reprlib.repr(value)} at row {i // (values.size // len(values))}, which is not a number: expected numbers; for "
                "text such as 'yes' and 'no', map it first, as in (column == 'yes').astype(int)"
            ) from None
    return numbers.reshape(values.shape)


def as_number(value: Any) -> float:
    """One cell as a float; text is never read as a number."""
    if isinstance(value, str | bytes):
        raise TypeError("text")
    return float(value)


def as_column(values: NDArray[Any], name: str) -> NDArray[Any]:
    """The values as one dimension that is not empty."""
    if values.ndim == 2 and values.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warn_user(
            f"A column-vector {name} was passed when a 1d array was expected: its one column is used",
            DataConversionWarning,
        )
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} should be a 1d array, got an array of shape {values.shape} instead")
    if len(values) == 0:
        raise ValueError(f"{name} is empty: expected one value per row")
    return values


def power_of_two(largest: float) -> float:
    """The power of two from 1 to 2 times below a number above 0: numbers up to it, divided by this, reach 1 and not 2, and keep their bits."""
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]) - 1))


def check_magnitude(values: Floats, name: str) -> None:
    """Refuse finite numbers whose squares, or sums of squares, are not: what is squared would end as infinite, or as 0."""
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest > _LARGE or 0.0 < largest < 1 / _LARGE:
        found, advice = ("up", "divide it by") if largest > 1 else ("only up", "multiply it with")
        raise ValueError(
            f"{name} goes {found} to {largest:g} in size, and squares of such numbers do not fit a float: {advice} some number"
        )


def check_sums(values: Floats, name: str, weight: float) -> None:
    """Refuse finite numbers whose sum, over rows of so much weight, may not be."""
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest > np.finfo(np.float64).max / max(4.0 * weight, 1.0):
        raise ValueError(
            f"{name} goes up to {largest:g} in size, and sums of such numbers do not fit a float: divide it by some number"
        )


def check_finite(values: Floats, name: str, advice: str) -> None:
    """Refuse NaN and infinite values, saying where the first one is."""
    finite = np.isfinite(values)
    if finite.all():
        return
    missing, rows = np.isnan(values[~finite]), np.flatnonzero(~finite.reshape(len(values), -1).all(axis=1))
    kind = "NaN (missing)" if missing.all() else "NaN or infinite" if missing.any() else "infinite"
    raise ValueError(f"{name} holds {np.sum(~finite)} {kind} value(s), the first at row {rows[0]}: {advice}")


def read_outcome(y: Any, *, missing: bool = False) -> Floats:
    """Outcomes as floats; with ``missing``, NaN stands where there is none, which is refused otherwise."""
    raw = as_column(to_numpy(y, "y"), "y")
    values = as_floats(raw, "y")
    if raw.dtype.kind in "biu":  # finite, all of them
        return values
    known = np.where(np.isnan(values), 0.0, values) if missing else values
    check_finite(known, "y", "remove those rows, or decide what their outcome is, before fitting or scoring")
    return values


def read_weight(sample_weight: Any) -> Floats:
    """Weights as floats, none of them negative."""
    values = as_floats(as_column(to_numpy(sample_weight, "sample_weight"), "sample_weight"), "sample_weight")
    check_finite(values, "sample_weight", "every weight must be a finite number; 0 leaves a row out")
    if (values < 0).any():
        row = int(np.argmax(values < 0))
        raise ValueError(
            f"sample_weight holds {np.sum(values < 0)} negative value(s), the first {values[row]:g} at row {row}: "
            "weights must be 0 or larger"
        )
    if values.size and values.max() > np.finfo(np.float64).max / values.size:
        raise ValueError(
            f"sample_weight goes up to {values.max():g}, and a sum of such weights is too large for a float: divide the weights "
            "by some number"
        )
    return values


def check_same_length(columns: dict[str, NDArray[Any]]) -> None:
    """Refuse columns, given by the names a user knows them by, that do not describe the same rows."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {found}; each row needs one of each"
        )


def read_path(path: Any, name: str) -> Path:
    """A path as people give it, as text or as an object; ``name`` is what an error calls it."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise TypeError(f"{name}={reprlib.repr(path)}: expected the path of a file, as text or as a pathlib.Path")
    if "\0" in os.fsdecode(os.fspath(path)):
        raise ValueError(f"{name}={reprlib.repr(path)} holds a null character, which no path may")
    found = Path(os.fsdecode(os.fspath(path)))
    try:
        os.fsencode(found)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name}={reprlib.repr(path)} holds half a character ({error.reason}): no file is called so"
        ) from error
    return found


def followed(path: Path) -> Path:
    """The file that a path leads to, through links."""
    try:
        found, reason = path.resolve(), None
    except RuntimeError as error:  # what Python before 3.13 says of links in a circle; later ones give such a link
        found, reason = path, error
    if reason is not None or found.is_symlink():
        raise OSError(f"{path} is a link that leads back to itself: remove it, or name another file") from reason
    return found


def file_to_write(path: Any) -> Path:
    """The file that a path leads to, which may be made or replaced; folders, devices and pipes are refused."""
    found = followed(read_path(path, "path"))  # through a link, the file it points to is replaced
    if not found.parent.is_dir():
        raise FileNotFoundError(f"cannot save to {path}: there is no folder {found.parent}; make it first")
    if found.is_dir():
        raise IsADirectoryError(f"cannot save to {path}, which is a directory: give the name of a file in it")
    if found.exists() and not found.is_file():
        raise OSError(
            f"cannot save to {path}, which is a device or a pipe: a file would take its place; give another name"
        )
    return found


def is_missing(value: Any) -> bool:
    """Whether one value is None, NaN or another library's missing value."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth value, nor has an array, which is no missing value
        return type(value).__name__ == "NAType"


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn, pointing at the line outside the library that called it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("upturn."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
