"""Any table as places of raw frames: partitions of a cluster, or parts of files that are read one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from upturn._parallel import progress
from upturn.engines._kinds import engine_of
from upturn.engines._numbers import Raw
from upturn.engines._places import Here, Merge, answer, merged, told, watched
from upturn.engines._scan import polars, read, scan, schema_of, settled, spans_of

if TYPE_CHECKING:
    import polars as pl


class Files:
    """Parts of a lazy frame, read whenever they are asked (see ``Places``); what a step makes of them stays in memory."""

    def __init__(self, frame: pl.LazyFrame, n_columns: int, verbose: int = 0) -> None:
        self._frame, self._n_columns, self._verbose = frame, n_columns, verbose
        self._n = int(frame.select(polars().len()).collect().item())

    def _answers(self, question: Callable[[Any], Any]) -> Iterator[Any]:
        if not self._n:
            yield answer(question, Raw(0, self._frame.collect()), 0)
        for span in progress(spans_of(self._n, self._n_columns), self._verbose, "reading"):
            yield answer(question, Raw(span.number, read(self._frame, span)), span.number)

    def ask(self, question: Callable[[Any], Any], merge: Merge | None = None) -> Any:
        """See ``Places``."""
        if merge is None:
            return told(list(self._answers(question)))
        result, some = None, False
        for one in self._answers(question):
            result, some = merged(merge, [result, one] if some else [one]), True
        return told(result)

    def change(self, step: Callable[[Any], Any]) -> Here:
        """See ``Places``."""
        return Here(list(self._answers(step)))


@contextmanager
def opened(table: Any, columns: Sequence[str], verbose: int = 0) -> Iterator[Any]:
    """Some columns of a table as places of ``Raw``; if ``verbose``, progress bars show parts that are read and passes over them."""
    spread = engine_of(table)
    if spread is None:
        with settled(scan(table).select(columns)) as frame:
            files = Files(frame, len(columns), verbose)
            with watched(files, verbose) as seen:
                yield seen
        return
    with spread.places(table, columns) as places, watched(places, verbose) as seen:
        yield seen


def names_in(table: Any) -> list[str]:
    """The names of a table's columns."""
    if engine_of(table) is None:
        return schema_of(scan(table)).names()
    return [str(name) for name in table.columns]


def library_of(table: Any) -> str:
    """The library that results of a table come in."""
    return "polars" if engine_of(table) is None else "pandas"


def check_column(name: Any, columns: Sequence[str], role: str) -> str:
    """A name that must be one of the table's columns."""
    if not isinstance(name, str):
        raise TypeError(f"{role} is a {type(name).__name__}: expected the name of a column of the table")
    if name not in columns:
        raise ValueError(f"{role}={name!r} is no column of the table: it has {list(columns[:20])!r}")
    return name
