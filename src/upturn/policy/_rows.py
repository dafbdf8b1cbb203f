"""A small table that prints itself and turns into a data frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Table(Mapping[str, NDArray[Any]]):
    """Named columns of equal length: ``table["gain"]``, ``table.to_frame()``, ``print(table)``."""

    def __init__(self, columns: Mapping[str, Any], note: str = "") -> None:
        self._columns = {name: np.asarray(column) for name, column in columns.items()}
        self.note = note

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def to_frame(self) -> Any:
        """The table as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame(dict(self._columns))

    def __repr__(self) -> str:
        cells = [[name, *(_format(value) for value in column.tolist())] for name, column in self._columns.items()]
        widths = [max(map(len, column)) for column in cells]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in zip(*cells, strict=True)
        ]
        return "\n".join([*lines, *([self.note] if self.note else [])])


def _format(value: Any) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
