"""A small table of results that prints well and becomes a pandas frame on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

NOT_AVAILABLE = "n/a"  # how a number that is not defined is printed


def as_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas frame; pandas is only needed here."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("to_frame makes a pandas table, and pandas is not installed: pip install pandas") from None
    return pd.DataFrame(dict(columns))


class Table:
    """Columns of results, of equal length.

    ``table["name"]`` is a column, ``len(table)`` the number of rows, ``table.to_frame()`` a pandas frame.

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
    """

    def __init__(
        self,
        columns: Mapping[str, Sequence[Any]],
        *,
        title: str = "",
        notes: Sequence[str] = (),
        formats: Mapping[str, Any] | None = None,
    ) -> None:
        self._columns = {name: np.asarray(values) for name, values in columns.items()}
        self._title, self._notes, self._formats = title, tuple(notes), dict(formats or {})

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    def __getitem__(self, name: str) -> Any:
        if name not in self._columns:
            raise KeyError(f"{name!r}: the columns are {', '.join(self._columns)}")
        return self._columns[name]

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def to_frame(self) -> Any:
        """The table as a pandas frame, one row per row."""
        return as_frame(self._columns)

    def _cells(self) -> tuple[list[str], list[list[str]], list[bool]]:
        """Header, rows of text, and which columns are numbers, which are put to the right."""
        columns = {name: values for name, values in self._columns.items() if self._formats.get(name, True)}
        texts = [[self._text(name, value) for value in values] for name, values in columns.items()]
        right = [values.dtype.kind in "fiu" for values in columns.values()]
        return list(columns), [list(row) for row in zip(*texts, strict=True)], right

    def _text(self, name: str, value: Any) -> str:
        if name in self._formats:
            return str(self._formats[name](value))
        if isinstance(value, float | np.floating):
            return NOT_AVAILABLE if np.isnan(value) else f"{value:.4g}"
        return str(value)

    def __repr__(self) -> str:
        header, rows, right = self._cells()
        widths = [max(len(text) for text in column) for column in zip(header, *rows, strict=True)]
        lines = [
            "  ".join(
                text.rjust(width) if flush else text.ljust(width)
                for text, width, flush in zip(row, widths, right, strict=True)
            ).rstrip()
            for row in [header, *rows]
        ]
        return "\n".join([*([self._title] if self._title else []), *lines, *self._notes])

    def _repr_html_(self) -> str:
        header, rows, _ = self._cells()
        head = "".join(f"<th>{escape(name)}</th>" for name in header)
        body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows)
        notes = "".join(f"<p>{escape(line)}</p>" for line in self._notes)
        return f"<p>{escape(self._title)}</p><table><tr>{head}</tr>{body}</table>{notes}"
