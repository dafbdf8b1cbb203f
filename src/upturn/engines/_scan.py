"""Tables that are read in parts: what a user may name, and its parts one after the other."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import polars as pl

_VALUES = 2**23  # of one part
_INSTALL = "engines read tables with polars: pip install 'upturn[engines]'"


class Span(NamedTuple):
    """Rows that are read at a time: the number of the part, its first row, and the one after its last."""

    number: int
    start: int
    stop: int


def polars() -> Any:
    """The library that reads."""
    try:
        import polars
    except ImportError:
        raise ImportError(_INSTALL) from None
    return polars


def scan(table: Any) -> pl.LazyFrame:
    """A table as a lazy frame: rows of files come in the order of their names."""
    library = polars()
    if isinstance(table, library.LazyFrame | library.DataFrame):
        frame: pl.LazyFrame = table.lazy()
        return frame
    if isinstance(table, str | os.PathLike):
        table = [table]
    if not isinstance(table, Sequence) or not table or not all(isinstance(one, str | os.PathLike) for one in table):
        raise TypeError(
            f"table is a {type(table).__module__}.{type(table).__qualname__}: expected a path, a pattern or a list of paths of Parquet files, or a "
            "polars LazyFrame; of a table in memory, model.fit takes it as it is"
        )
    names = [file for one in table for file in _files(os.fspath(one))]
    schemas = [_schema(name) for name in names]
    if all(schema == schemas[0] for schema in schemas):
        files: pl.LazyFrame = library.scan_parquet(names)
        return files
    _check_schemas(names, schemas)
    columns = list(schemas[0])
    alike: pl.LazyFrame = library.concat(
        [library.scan_parquet(name).select(columns) for name in names], how="vertical_relaxed"
    )
    return alike


def _schema(name: str) -> dict[str, Any]:
    """Names and kinds of a file's columns."""
    library = polars()
    try:
        return dict(library.read_parquet_schema(name))
    except (library.exceptions.PolarsError, OSError) as error:
        raise ValueError(f"{name!r} could not be read as a Parquet file: {error}") from None


def _check_schemas(names: Sequence[str], schemas: Sequence[dict[str, Any]]) -> None:
    """Refuse files that lack columns of others, and columns that are text here and something else there; numbers of different sizes are one kind."""
    library, first = polars(), schemas[0]
    for name, schema in zip(names, schemas, strict=True):
        more, less = set(schema) - set(first), set(first) - set(schema)
        if more or less:
            has, lacks = (name, names[0]) if more else (names[0], name)
            raise ValueError(
                f"{lacks!r} has no column {min(more or less)!r}, which {has!r} has: expected the same columns in all files; or say what is to be "
                "done with them, as in polars.scan_parquet(files, missing_columns='insert', extra_columns='ignore')"
            )
        for column, kind in schema.items():
            texts = [one in (library.String, library.Categorical, library.Enum) for one in (first[column], kind)]
            if texts[0] != texts[1] and library.Null not in (first[column], kind):
                text, other = (names[0], name) if texts[0] else (name, names[0])
                raise TypeError(
                    f"column {column!r} holds text in {text!r} and none in {other!r}: expected the same kind of values everywhere; convert it, "
                    "as in polars.col(name).cast(polars.String)"
                )


def _files(name: str) -> list[str]:
    """The files a path or pattern names; a folder stands for the Parquet files in it."""
    pattern = os.path.join(glob.escape(name), "*.parquet") if os.path.isdir(name) else name
    found = [name] if os.path.isfile(name) else sorted(glob.glob(pattern))
    if not found:
        raise FileNotFoundError(f"no file is called {pattern!r}: expected Parquet files")
    return found


def spans_of(n: int, n_columns: int) -> list[Span]:
    """The parts in which ``n`` rows are read."""
    rows = max(_VALUES // max(n_columns, 1), 1024)
    return [Span(k, start, min(start + rows, n)) for k, start in enumerate(range(0, n, rows))]


def read(frame: pl.LazyFrame, span: Span) -> pl.DataFrame:
    """Some rows of a table, which must be as it was."""
    try:
        part = frame.slice(span.start, span.stop - span.start).collect()
    except (polars().exceptions.PolarsError, OSError) as error:
        said = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise RuntimeError(f"it could not be read ({said}): files must stay as they are until the end") from None
    if len(part) != span.stop - span.start:
        raise RuntimeError(
            f"it had {span.stop - span.start:,} rows and has {len(part):,} now: the table must not change while it is read; write it to "
            "files first"
        )
    return part


def parts(frame: pl.LazyFrame, n: int, n_columns: int) -> Iterator[tuple[int, pl.DataFrame]]:
    """The rows, some at a time, each part with the number of its first row."""
    for span in spans_of(n, n_columns):
        yield span.start, read(frame, span)
