"""The formats of tables, each as a function that scans or reads one: see :mod:`upturn.cli._read` for their names."""

from __future__ import annotations

import gzip
import importlib.util
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from upturn.cli._say import UserError, did_you_mean, one_line

if TYPE_CHECKING:
    import polars as pl

    from upturn.cli._read import Source

_MISSING = [
    "",
    "NA",
    "N/A",
    "#N/A",
    "<NA>",
    "NaN",
    "nan",
    "null",
    "NULL",
    "?",
    ".",
]  # texts that stand for nothing in a CSV
_USUAL, _RARE = ",;\t|", " :~^"  # delimiters
SAMPLE = 1 << 16  # bytes that a format is told by
GUESSED_FROM = 10_000  # rows that the types of a streamed table of text are guessed from

WORDS = {
    "csv": "CSV",
    "parquet": "Parquet",
    "arrow": "Arrow",
    "jsonl": "JSON lines",
    "json": "JSON",
    "excel": "Excel",
    "duckdb": "DuckDB",
    "sqlite": "SQLite",
}


def _scan_csv(source: Source, types: dict[str, Any], sample: bool | None) -> pl.LazyFrame:
    """``sample`` is None where the types of all columns are known."""
    import polars as pl

    head = _head(source)
    places: Any = list(source.files)
    if source.content is not None:
        places = _decoded(gzip.decompress(source.content) if source.content[:2] == b"\x1f\x8b" else source.content)
    elif not _is_utf8(head):  # Excel on Windows writes such files; polars streams UTF-8 only
        places = [_decoded(_bytes_of(file)) for file in source.files]
    text = _decoded(head).decode(errors="replace")
    names = text.lstrip("\ufeff").splitlines()[:1]
    if not names:
        raise UserError(f"{source.name} is empty: expected a first row with the names of the columns")
    length = GUESSED_FROM if sample else 0 if sample is None else None
    return pl.scan_csv(
        places, **_csv_options(text, source.delimiter), schema_overrides=types, infer_schema_length=length, glob=False
    )


def csv_options(source: Source) -> dict[str, Any]:
    """How polars is asked to read a CSV, so that others can ask the same."""
    text = _decoded(_head(source)).decode(errors="replace")
    return {**_csv_options(text, source.delimiter), "infer_schema_length": None}


def _csv_options(text: str, delimiter: str | None) -> dict[str, Any]:
    delimiter = delimiter or find_delimiter(text)
    comma = delimiter == ";" and re.search(r";-?\d+,\d+\s*(;|$)", text, re.MULTILINE) is not None
    return {"separator": delimiter, "decimal_comma": comma, "null_values": _MISSING, "try_parse_dates": True}


def _head(source: Source) -> bytes:
    if source.content is not None:
        content = source.content[: 1 << 22]
        return start_of_gzip(content) if content[:2] == b"\x1f\x8b" else content[:SAMPLE]
    with open(source.files[0], "rb") as file:
        start = file.read(SAMPLE)
    return start_of_gzip(start) if start[:2] == b"\x1f\x8b" else start


def _bytes_of(file: str) -> bytes:
    content = Path(file).read_bytes()
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def _is_utf8(head: bytes) -> bool:
    try:
        head[: len(head) - 4].decode()  # the sample may end within a character
    except UnicodeDecodeError:
        return False
    return not head.startswith((b"\xff\xfe", b"\xfe\xff"))


def _decoded(content: bytes) -> bytes:
    """The bytes as UTF-8, whatever Excel wrote."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace").encode()
    return content if _is_utf8(content) else content.decode("cp1252", errors="replace").encode()


def find_delimiter(text: str) -> str:
    """The delimiter of a CSV by its first lines: what is found equally often, and most often, in all of them.

    A blank, which is found in names and values too, and other rare ones count only where the first line has no usual one.

    >>> find_delimiter("name;weight" + chr(10) + "Ann;60,5")
    ';'
    """
    lines = [re.sub(r'"[^"]*"', "", line) for line in text.splitlines()[:20] if line.strip()]
    if len(lines) > 2 and not text.endswith("\n"):
        lines.pop()  # cut off in the middle
    if not lines:
        return ","
    counts = {mark: [line.count(mark) for line in lines] for mark in _USUAL + _RARE}
    steady = {mark: found[0] for mark, found in counts.items() if min(found) == max(found) > 0}
    usual = {mark: n for mark, n in steady.items() if mark in _USUAL}
    chosen = usual or {mark: counts[mark][0] for mark in _USUAL if counts[mark][0]} or steady
    return max(chosen, key=lambda mark: chosen[mark]) if chosen else ","


def start_of_gzip(content: bytes) -> bytes:
    """The first bytes of what was compressed."""
    import zlib

    return zlib.decompressobj(wbits=31).decompress(content, SAMPLE)


def open_text(source: Source, file: str | None) -> IO[str]:
    """A CSV as lines of text, one of its files or standard input."""
    if file is not None and _is_utf8(_head(source)):
        stream: Any = (gzip.open if file.lower().endswith(".gz") else open)(file, "rb")
        return io.TextIOWrapper(stream, encoding="utf-8", newline="")
    content = _bytes_of(file) if file is not None else source.content or b""
    return io.StringIO(_decoded(content).decode(errors="replace"), newline="")


def _scan_parquet(source: Source, types: dict[str, Any], sample: bool | None) -> pl.LazyFrame:
    import polars as pl

    return pl.scan_parquet(_places(source), glob=False)


def _scan_arrow(source: Source, types: dict[str, Any], sample: bool | None) -> pl.LazyFrame:
    import polars as pl

    try:
        frame = pl.scan_ipc(_places(source))
        frame.collect_schema()
    except pl.exceptions.ComputeError:  # a stream, which has no footer
        content = [source.content] if source.content is not None else list(source.files)
        return pl.concat([pl.read_ipc_stream(one) for one in content]).lazy()
    return frame


def _scan_jsonl(source: Source, types: dict[str, Any], sample: bool | None) -> pl.LazyFrame:
    import polars as pl

    places = _places(source)
    if any(str(file).endswith(".gz") for file in source.files):
        places = [gzip.decompress(Path(file).read_bytes()) for file in source.files]
    elif source.content is not None and source.content[:2] == b"\x1f\x8b":
        places = gzip.decompress(source.content)
    length = GUESSED_FROM if sample else None
    return pl.scan_ndjson(places, infer_schema_length=length, schema_overrides=types or None)


def _scan_json(source: Source, types: dict[str, Any], sample: bool | None) -> pl.LazyFrame:
    import polars as pl

    contents = [source.content or b""] if source.content is not None else [_bytes_of(file) for file in source.files]
    return pl.concat([pl.read_json(content, infer_schema_length=None) for content in contents]).lazy()


def _scan_excel(source: Source, types: dict[str, Any], sample: bool | None) -> pl.LazyFrame:
    import io

    import polars as pl

    if importlib.util.find_spec("fastexcel") is None:
        raise UserError("reading Excel files needs the package fastexcel: pip install 'upturn[cli]'")
    import fastexcel

    where: Any = source.files[0] if source.content is None else io.BytesIO(source.content)
    try:
        if source.table is not None:
            sheets = list(fastexcel.read_excel(where if isinstance(where, str) else where.getvalue()).sheet_names)
            if source.table not in sheets:
                raise UserError(
                    f"there is no sheet {source.table!r} in {source.files[0]}: {did_you_mean(source.table, sheets)}"
                )
        return pl.read_excel(where, sheet_name=source.table, infer_schema_length=None).lazy()
    except fastexcel.FastExcelError as error:
        raise UserError(f"{source.name} could not be read as Excel: {str(error).splitlines()[0][:300]}") from error


def _scan_duckdb(source: Source, types: dict[str, Any], sample: bool | None) -> pl.LazyFrame:
    import polars as pl

    _refuse_bytes(source)
    if importlib.util.find_spec("duckdb") is None:
        raise UserError("reading DuckDB files needs the package duckdb: pip install duckdb")
    import duckdb

    try:
        with duckdb.connect(source.files[0], read_only=True) as base:
            listed = base.execute("select table_schema, table_name from information_schema.tables").fetchall()
            tables = {name if schema == "main" else f"{schema}.{name}": (schema, name) for schema, name in listed}
            schema, name = tables[_choose_table(source, list(tables))]
            found = base.sql(f"select * from {_quoted(schema)}.{_quoted(name)}")
            spans = [name for name, kind in zip(found.columns, found.types, strict=True) if str(kind) == "INTERVAL"]
            if spans:  # of months and days, which are no fixed time: as text
                texts = ", ".join(f"cast({_quoted(name)} as varchar) as {_quoted(name)}" for name in spans)
                found = base.sql(f"select * replace ({texts}) from {_quoted(schema)}.{_quoted(name)}")
            if importlib.util.find_spec("pyarrow") is not None:
                return found.pl().lazy()  # type: ignore[no-any-return]
            if hasattr(found, "__arrow_c_stream__"):  # some versions complain about it when the process ends
                return pl.DataFrame(found).lazy()
            columns, rows = found.columns, found.fetchall()
    except duckdb.Error as error:
        end = "; copy it again, if it was cut off, or close what writes to it"
        raise UserError(f"{source.files[0]} could not be read as DuckDB: {one_line(error)[:300]}{end}") from error
    return pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None).lazy()


def _scan_sqlite(source: Source, types: dict[str, Any], sample: bool | None) -> pl.LazyFrame:
    import contextlib
    import sqlite3

    import polars as pl

    _refuse_bytes(source)
    try:
        with contextlib.closing(
            sqlite3.connect(f"{Path(source.files[0]).resolve().as_uri()}?mode=ro", uri=True)
        ) as base:
            tables = [
                name for (name,) in base.execute("select name from sqlite_master where type in ('table', 'view')")
            ]
            found = base.execute(f"select * from {_quoted(_choose_table(source, tables))}")
            columns = [column[0] for column in found.description]
            rows = found.fetchall()
    except sqlite3.Error as error:
        end = "; copy it again, if it was cut off, or close what writes to it"
        raise UserError(f"{source.files[0]} could not be read as SQLite: {one_line(error)[:300]}{end}") from error
    return pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None, strict=False).lazy()


def _refuse_bytes(source: Source) -> None:
    if source.content is not None:
        raise UserError("a database cannot be read from standard input: name its file and table, as in shop.db::mail")


def _choose_table(source: Source, tables: Sequence[str]) -> str:
    path = source.files[0]
    if source.table in tables:
        return str(source.table)
    same = [name for name in tables if source.table in (name.rpartition(".")[2], f"main.{name}")]
    if len(same) == 1:
        return same[0]
    if source.table is not None:
        raise UserError(f"there is no table {source.table!r} in {path}: {did_you_mean(source.table, tables)}")
    if len(tables) == 1:
        return tables[0]
    example = tables[0] if tables else "table"
    raise UserError(f"{path} holds {len(tables)} tables ({', '.join(tables[:12])}): say which, as in {path}::{example}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _places(source: Source) -> Any:
    return list(source.files) if source.content is None else source.content


SCANS = {
    "csv": _scan_csv,
    "parquet": _scan_parquet,
    "arrow": _scan_arrow,
    "jsonl": _scan_jsonl,
    "json": _scan_json,
    "excel": _scan_excel,
    "duckdb": _scan_duckdb,
    "sqlite": _scan_sqlite,
}
