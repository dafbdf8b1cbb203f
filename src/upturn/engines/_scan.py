"""Tables that are read in parts: what a user may name, and its parts one after the other."""

from __future__ import annotations

import glob
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import polars as pl

_VALUES = 2**23  # of one part
# Steps of a plan, as polars prints it, that give the rows in one order whenever they are taken; a function of the user's is one of them.
_STEADY = re.compile(
    r"(Parquet|IPC|Csv|CSV|NDJSON) SCAN .*|DF \[.*|PROJECT .*|ESTIMATED ROWS: .*|ROW_INDEX: .*|SELECTION: .*|SLICE.*|SELECT \[.*|"
    r"SELECT|RENAME|FROM|FILTER .*|WITH_COLUMNS:|\[.*\]|simple π .*|(END )?UNION(\[maintain_order: true\])?|PLAN \d+:|"
    r"SORT BY \[maintain_order: true\].*|OPAQUE_PYTHON"
)
_DEALT = re.compile(
    r"\.(shuffle|sample|unique|mode|value_counts|sort_by)\("
)  # what an expression may do with the order of rows
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
        return _of_64_bits(table.lazy())
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
    kinds = {name: {schema[name] for schema in schemas} for name in columns}
    mixed = [  # older polars makes floats of them
        name
        for name, found in kinds.items()
        if library.UInt64 in found and any(kind.is_signed_integer() for kind in found)
    ]
    wide = [library.col(name).cast(library.Int128) for name in mixed]
    alike: pl.LazyFrame = library.concat(
        [library.scan_parquet(name).select(columns).with_columns(wide) for name in names], how="vertical_relaxed"
    )
    schema_of(alike)
    return _of_64_bits(alike)


def _of_64_bits(frame: pl.LazyFrame) -> pl.LazyFrame:
    """The table with whole numbers of 64 bits in place of 128, which signed and unsigned ones make together; floats where 64 bits do not hold them."""
    library = polars()
    try:
        wide = [name for name, kind in frame.collect_schema().items() if kind == library.Int128]
        if not wide:
            return frame
        ends = frame.select(
            *(getattr(library.col(name), end)().name.prefix(end) for name in wide for end in ("min", "max"))
        )
        found = ends.collect().row(0, named=True)
    except (library.exceptions.PolarsError, OSError):
        return frame  # whoever reads it says what is wrong
    kinds = {name: _narrow(found[f"min{name}"] or 0, found[f"max{name}"] or 0) for name in wide}
    return frame.with_columns(library.col(name).cast(kind) for name, kind in kinds.items())


def _narrow(low: int, high: int) -> Any:
    """The kind of column that holds whole numbers between two."""
    library = polars()
    if low >= -(2**63) and high < 2**63:
        return library.Int64
    return library.UInt64 if low >= 0 and high < 2**64 else library.Float64


def steady(frame: pl.LazyFrame) -> bool:
    """Whether a frame's rows come in one order, however often it is read: joins, groups and sorts with ties deal them anew each time."""
    lines = [line.strip() for line in frame.explain(optimized=False).splitlines()]
    return all(_STEADY.fullmatch(line) and not _DEALT.search(line) for line in lines if line)


@contextmanager
def settled(frame: pl.LazyFrame, folder: str | os.PathLike[str] | None = None) -> Iterator[pl.LazyFrame]:
    """A frame that may be read several times: one whose rows might change places is carried out once, into a file that goes at the end."""
    if steady(frame):
        yield frame
        return
    with tempfile.TemporaryDirectory(prefix="upturn-", dir=folder) as own:
        file = os.path.join(own, "table.parquet")
        try:
            frame.sink_parquet(file)
        except (polars().exceptions.PolarsError, OSError) as error:
            raise RuntimeError(
                f"the table could not be written to {own}, to be read more than once: {said(error)}"
            ) from None
        kept: pl.LazyFrame = polars().scan_parquet(file)
        yield kept


def said(error: Exception) -> str:
    """The first line of what another library says."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def schema_of(frame: pl.LazyFrame) -> pl.Schema:
    """Names and kinds of a frame's columns; what cannot be found out is told in one line."""
    try:
        return frame.collect_schema()
    except (polars().exceptions.PolarsError, OSError) as error:
        raise ValueError(f"the table's columns cannot be told: {said(error)}") from None


def _schema(name: str) -> dict[str, Any]:
    """Names and kinds of a file's columns."""
    library = polars()
    try:
        return dict(library.read_parquet_schema(name))
    except (library.exceptions.PolarsError, OSError) as error:
        raise ValueError(f"{name!r} could not be read as a Parquet file: {error}") from None


def _check_schemas(names: Sequence[str], schemas: Sequence[dict[str, Any]]) -> None:
    """Refuse files that lack columns of others, and columns of unlike kinds; numbers of different sizes are one kind."""
    first = schemas[0]
    for name, schema in zip(names, schemas, strict=True):
        more, less = set(schema) - set(first), set(first) - set(schema)
        if more or less:
            has, lacks = (name, names[0]) if more else (names[0], name)
            raise ValueError(
                f"{lacks!r} has no column {min(more or less)!r}, which {has!r} has: expected the same columns in all files; or say what is to be "
                "done with them, as in polars.scan_parquet(files, missing_columns='insert', extra_columns='ignore')"
            )
        for column, kind in schema.items():
            sorts = _sort(first[column]), _sort(kind)
            if "nothing" in sorts or sorts[0] == sorts[1]:
                continue
            if "text" in sorts:
                text, other = (names[0], name) if sorts[0] == "text" else (name, names[0])
                found = f"holds text in {text!r} and none in {other!r}"
            else:
                found = f"holds {sorts[0]} in {names[0]!r} and {sorts[1]} in {name!r}"
            raise TypeError(
                f"column {column!r} {found}: expected the same kind of values everywhere; convert it, as in polars.col(name).cast(polars.String)"
            )


def _sort(kind: Any) -> str:
    """What a column holds, in a word."""
    library = polars()
    if kind in (library.String, library.Categorical, library.Enum):
        return "text"
    if kind == library.Null:
        return "nothing"
    return "numbers" if kind.is_numeric() or kind == library.Boolean else str(kind).split("(")[0].lower() + " values"


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
        mend = "files must stay as they are until the end"
        if "data type mismatch" in str(error):
            mend = "files differ in what a column holds: given as paths, the first that differs is named"
        raise RuntimeError(f"it could not be read ({said(error)}): {mend}") from None
    if len(part) != span.stop - span.start:
        raise RuntimeError(
            f"it had {span.stop - span.start:,} rows and has {len(part):,} now: the table must not change while it is read; write it to "
            "files first"
        )
    return part
