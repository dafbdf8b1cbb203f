"""Results on their way out: tables that print, and frames of the library the user works with.

One printer and one maker of frames for everything upturn hands back. A result made from a frame remembers the *name* of the
frame's library (:func:`library_of`), so that it can be pickled; :func:`new_frame` makes a frame of that library, or, for
results of plain arrays, of whichever is installed.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools
from upturn._html import paragraphs, table
from upturn._table import Schema, conform_table

NOT_AVAILABLE = "n/a"  # how a number that is not defined is printed
_LIBRARIES = ("pandas", "polars", "pyarrow")


# --------------------------------------------------------------------------------------------- frames


def library_of(*values: Any) -> str | None:
    """The name of the library of the first frame or column among the values; None when they are all arrays or lists."""
    for value in values:
        if isinstance(value, np.ndarray):
            continue
        try:
            native = nw.from_native(value, eager_only=True, allow_series=True, pass_through=True)
        except Exception:  # such as names that are there twice, which whoever reads the frame complains of
            continue
        if isinstance(native, nw.DataFrame | nw.Series):
            return str(nw.get_native_namespace(native).__name__)
    return None


def new_frame(columns: Mapping[str, Any], library: str | None = None) -> Any:
    """A frame of the library named, else of whichever of pandas, polars and pyarrow is installed."""
    if library is None:
        library = next((name for name in _LIBRARIES if importlib.util.find_spec(name) is not None), None)
    if library is None:
        raise ImportError("a table needs one of pandas, polars and pyarrow: pip install 'upturn[data]'")
    return nw.to_native(nw.from_dict(dict(columns), native_namespace=importlib.import_module(library)))


def like_input(X: Any, array: NDArray[Any], names: Sequence[str]) -> Any:
    """Return the array, as a frame of the library of ``X`` (and with its index) if that is one."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return array
    return frame_like(X, {name: np.ascontiguousarray(array[:, j]) for j, name in enumerate(names)})


def frame_like(X: Any, columns: Mapping[str, Any]) -> Any:
    """A frame of the library of ``X``, with its index; of whichever is installed where X is an array."""
    made = new_frame(columns, library_of(X))
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    index = nw.maybe_get_index(frame) if isinstance(frame, nw.DataFrame) else None
    if index is not None:  # pandas and its kin
        made.index = index
    return made


def select_columns(X: Any, schema: Schema, mask: Bools, model: str) -> Any:
    """Return the columns of ``X`` that the mask keeps, untouched: a frame stays a frame with its types."""
    conform_table(X, schema, model)  # for its complaints: what comes back is the user's own values
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return np.asarray(X)[:, mask]
    names = list(frame.columns)
    if schema.named and all(isinstance(name, str) for name in names):
        kept = [name for name, keep in zip(schema.names, mask, strict=True) if keep]
        return nw.to_native(frame.select(kept))
    return nw.to_native(frame[:, np.flatnonzero(mask).tolist()])


# --------------------------------------------------------------------------------------------- printing


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Rows of text under a header, in columns; those marked ``right`` are flush right, as numbers are."""
    widths = [max(len(text) for text in column) for column in zip(header, *rows, strict=True)]
    return "\n".join(
        "  ".join(
            text.rjust(width) if flush else text.ljust(width)
            for text, width, flush in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in [header, *rows]
    )


def number_text(value: float, sign: str = "", digits: int = 4) -> str:
    """A number with four significant digits and its whole part in full: 7,247,000 and 0.0001234, never 7.247e+06."""
    if np.isnan(value):
        return NOT_AVAILABLE
    size = abs(float(value))
    if size == 0 or not np.isfinite(size) or not 1e-12 <= size < 1e18:
        return f"{value:{sign}.{digits}g}"
    rounded = float(f"{value:.{digits - 1}e}")
    places = max(0, digits - 1 - int(np.floor(np.log10(abs(rounded)))))
    text = f"{rounded:{sign},.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def level_text(interval: float) -> str:
    """A confidence level: 95%, 97.5%, 99.9%, never rounded to a certainty."""
    return f"{100 * interval:.6g}%"


def plural(n: int, word: str) -> str:
    """A count with its noun: 1 model, 2 models."""
    return f"{n:,} {word}{'' if n == 1 else 's'}"


class Table:
    """Columns of results, of equal length.

    ``table["name"]`` is a column, ``len(table)`` the number of rows, ``table.to_frame()`` a frame of the library the data
    came in.

    Parameters
    ----------
    columns : mapping from name to sequence
        The values.
    title : str
        A line above, when printed.
    notes : sequence of str
        Lines below.
    formats : mapping from name to callable
        How to print a column's values; numbers are otherwise printed with four significant digits, NaN as "n/a".
    heads : mapping from name to str
        What to print above a column, in place of its name.
    scales : mapping from name to number
        What printed (and drawn) values are multiplied with: the values themselves stay in plain units.
    library : str, optional
        Name of the library ``to_frame`` makes a frame of; by default pandas, polars or pyarrow, whichever is installed.
    """

    def __init__(
        self,
        columns: Mapping[str, Sequence[Any]],
        *,
        title: str = "",
        notes: Sequence[str] = (),
        formats: Mapping[str, Any] | None = None,
        heads: Mapping[str, str] | None = None,
        scales: Mapping[str, float] | None = None,
        library: str | None = None,
    ) -> None:
        self._columns = {name: np.asarray(values) for name, values in columns.items()}
        self._heads, self._scales = dict(heads or {}), dict(scales or {})
        self._title, self._notes, self._formats, self._library = title, tuple(notes), dict(formats or {}), library

    @property
    def library(self) -> str | None:
        """Name of the library ``to_frame`` makes a frame of."""
        return self._library

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    def scale_of(self, name: str) -> float:
        """What values of a column are multiplied with when they are printed or drawn."""
        return float(self._scales.get(name, 1))

    def __getitem__(self, name: str) -> Any:
        if name not in self._columns:
            raise KeyError(f"{name!r}: the columns are {', '.join(self._columns)}")
        return self._columns[name]

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def to_frame(self) -> Any:
        """The table as a frame of the library the data came in, else of whichever is installed; one row per row."""
        return new_frame(self._columns, self._library)

    def _cells(self) -> tuple[list[str], list[list[str]], list[bool]]:
        """Header, rows of text, and which columns are numbers, which are put to the right."""
        columns = {name: values for name, values in self._columns.items() if self._formats.get(name, True)}
        texts = [[self._text(name, value) for value in values] for name, values in columns.items()]
        right = [values.dtype.kind in "fiu" for values in columns.values()]
        heads = [self._heads.get(name, name) for name in columns]
        return heads, [list(row) for row in zip(*texts, strict=True)], right

    def _text(self, name: str, value: Any) -> str:
        value = value * self._scales[name] if name in self._scales else value
        if name in self._formats:
            return str(self._formats[name](value))
        if isinstance(value, float | np.floating):
            return number_text(float(value))
        return str(value)

    def __repr__(self) -> str:
        return "\n".join([*([self._title] if self._title else []), aligned(*self._cells()), *self._notes])

    def _repr_html_(self) -> str:
        return paragraphs([self._title]) + table(*self._cells()) + paragraphs(self._notes)
