"""Tables of every format, as lazy frames of polars.

======================================  ==============================================================================
``mail.csv``, ``.tsv``, ``.csv.gz``     text; the delimiter and a decimal comma are found, dates are recognised
``.parquet``                            Parquet
``.arrow``, ``.feather``, ``.ipc``      Arrow
``.jsonl``, ``.ndjson``                 a JSON object a line; ``.json`` a list of such objects
``.xlsx``, ``.xls``, ``.xlsx::Sheet``   the first sheet, or the one named
``file.duckdb::table``                  needs the package duckdb
``file.sqlite::table``, ``.db::table``  SQLite
``'part-*.parquet'``                    several files of the same columns
``-``                                   standard input, in any of the formats that can be told by their first bytes
======================================  ==============================================================================
"""

from __future__ import annotations

import contextlib
import glob
import io
import re
import sys
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from upturn.cli._dates import as_date, find_dates
from upturn.cli._formats import GUESSED_FROM, SAMPLE, SCANS, WORDS, start_of_gzip
from upturn.cli._say import UserError, did_you_mean
from upturn.cli._unreadable import explain

if TYPE_CHECKING:
    import polars as pl

_ENDINGS = {
    "csv": (".csv", ".tsv", ".txt", ".tab", ".csv.gz", ".tsv.gz", ".txt.gz"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "jsonl": (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"),
    "excel": (".xlsx", ".xls", ".xlsm", ".xlsb"),
    "duckdb": (".duckdb", ".ddb"),
    "sqlite": (".sqlite", ".sqlite3", ".db"),
}
_ZIP, _OLD_EXCEL = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", _ZIP: "excel", _OLD_EXCEL: "excel", b"SQLite format 3\x00": "sqlite"}
_STREAM = b"\xff\xff\xff\xff"  # of Arrow, as programs hand it to one another
_PACKED = {b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_NAMELESS = "unnamed"  # what a column without a name is called
_WHOLE = ("excel", "duckdb", "sqlite", "json")  # formats that are read whole, and therefore once
_SMALL = 1 << 22  # bytes, up to which lines are counted: if a sample of the rows is all of them, types are guessed once


@dataclass(frozen=True)
class Source:
    """A table to read: files of one format, or one with a table or a sheet in it, or the bytes of standard input."""

    name: str
    kind: str
    files: tuple[str, ...] = ()
    table: str | None = None
    content: bytes | None = None
    delimiter: str | None = None  # of a CSV; None to find it

    @property
    def is_text(self) -> bool:
        """Whether the types of columns are guessed from text."""
        return self.kind == "csv"

    @property
    def format(self) -> str:
        """What the format is called."""
        return WORDS[self.kind]

    def scan(self, types: Mapping[str, Any] | None = None, *, sample: bool = False) -> pl.LazyFrame:
        """The table as a lazy frame; columns that hold nothing but dates are dates, in whatever form they are kept.

        ``types`` of columns are for text, in which they are guessed, from a ``sample`` of the rows if asked; a column of another
        format that is to be text is no date.
        """
        import polars as pl

        types = dict(types or {})
        try:
            asked = types
            if _NAMELESS in types and _NAMELESS not in self._plain({}, sample=True).collect_schema():
                asked = {"" if name == _NAMELESS else name: kind for name, kind in types.items()}
            frame = self._plain(asked, sample=sample)
            names = frame.collect_schema().names()
            dates = self.dates_at_first if sample else self.dates
        except (pl.exceptions.PolarsError, zlib.error, OSError, EOFError, ValueError, ImportError) as error:
            raise UserError(explain(error, self)) from error
        nameless = [name for name in names if not name.strip()]
        if nameless:  # as R and pandas write the names of rows
            if len(nameless) > 1 or _NAMELESS in names:
                raise UserError(f"{self.name} has columns without a name: give every column one in its first row")
            frame = frame.rename({nameless[0]: _NAMELESS})
        if self.is_text:
            _refuse_twins(self.name, names)
        return frame.with_columns(as_date(name, how) for name, how in dates.items() if name not in types)

    @contextlib.contextmanager
    def in_words(self) -> Iterator[None]:
        """What cannot be read while the block runs is said with the file, the column and the value."""
        import polars as pl

        try:
            yield
        except pl.exceptions.PolarsError as error:
            raise UserError(explain(error, self)) from error

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self.scan(sample=True).collect_schema().names()

    @cached_property
    def dates(self) -> dict[str, str]:
        """Columns of text in which every row is a date, and how it is written; those of a CSV polars knows."""
        return {} if self.is_text else find_dates(self._plain({}, sample=False))

    @cached_property
    def dates_at_first(self) -> dict[str, str]:
        """The same, by the first rows."""
        return {} if self.is_text else find_dates(self._plain({}, sample=True), GUESSED_FROM)

    @cached_property
    def _held(self) -> pl.DataFrame:
        return SCANS[self.kind](self, {}, False).collect()

    @cached_property
    def _is_small(self) -> bool:
        """Whether a sample of the rows is all of them."""
        if sum(Path(file).stat().st_size for file in self.files) + len(self.content or b"") > _SMALL:
            return False
        contents = [Path(file).read_bytes() for file in self.files] if self.content is None else [self.content]
        packed = any(content[:2] == b"\x1f\x8b" for content in contents)
        return (
            not packed and sum(content.count(b"\n") for content in contents) <= GUESSED_FROM + 1
        )  # the first has names

    @cached_property
    def _types(self) -> dict[str, Any] | None:
        """Types that all rows of a CSV show, so that they are guessed once, which takes longer than to read them; None where there are dates, which are written in many ways."""
        if not self.is_text or len(self.files) > 1:
            return None
        if False not in self._guessed:
            self._guessed[False] = SCANS[self.kind](self, {}, False)
        schema = self._guessed[False].collect_schema()
        return None if any(kind.is_temporal() for kind in schema.values()) else dict(schema)

    @cached_property
    def _guessed(self) -> dict[bool, pl.LazyFrame]:
        return {}  # a lazy frame keeps the types it has guessed

    def _plain(self, types: dict[str, Any], *, sample: bool) -> pl.LazyFrame:
        if self.kind in _WHOLE:
            return self._held.lazy()
        sample = sample and not self._is_small
        known = None if sample else self._types
        if known is not None:
            return SCANS[self.kind](self, {**known, **types}, None)
        if types:
            return SCANS[self.kind](self, types, sample)
        if sample not in self._guessed:
            self._guessed[sample] = SCANS[self.kind](self, {}, sample)
        return self._guessed[sample]


def _refuse_twins(source: str, names: list[str]) -> None:
    """Polars gives the second of two columns of one name a name of its own."""
    for name in names:
        first, mark, _ = name.rpartition("_duplicated_")
        if mark and first in names:
            raise UserError(
                f"{source} has two columns called {first!r}: give each a name of its own in the first row (or add such a row, if there is none)"
            )


_SPELLED = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "colon": ":", "bar": "|"}


def read_delimiter(text: str) -> str:
    """What stands between the columns of a CSV: one character, or its name."""
    mark = _SPELLED.get(text, text)
    if len(mark.encode()) != 1 or mark in '"\r\n':
        raise UserError(f"--delimiter {text}: expected one character such as ';', or tab or space")
    return mark


def find_source(data: str, delimiter: str | None = None) -> Source:
    """What the argument DATA means; an error if there is no such file."""
    source = _found(data)
    if delimiter is None:
        return source
    if source.kind != "csv":
        raise UserError(f"--delimiter {delimiter}: {source.name} is {source.format}, which has none; leave it out")
    return replace(source, delimiter=read_delimiter(delimiter))


def _found(data: str) -> Source:
    if data == "-":
        content = sys.stdin.buffer.read()
        if not content:
            raise UserError("standard input is empty: expected a table, as in `cat mail.csv | upturn check - …`")
        return Source("standard input", _kind_of_bytes(content), content=content)
    path, _, table = data.partition("::") if "::" in data and not Path(data).exists() else (data, "", "")
    files = [path] if Path(path).exists() else sorted(glob.glob(path, recursive=True))
    if not files:
        raise UserError(_not_there(path))
    if Path(files[0]).is_dir():
        raise UserError(f"{path} is a folder: name a file in it, or several, as in '{path.rstrip('/')}/*.parquet'")
    kinds = {_kind_of_file(file) for file in files}
    if len(kinds) > 1:
        raise UserError(f"{path} matches files of several formats ({', '.join(sorted(kinds))}): name files of one")
    (kind,) = kinds
    if len(files) > 1 and kind in ("excel", "duckdb", "sqlite"):
        raise UserError(f"{path} matches {len(files)} files: of {WORDS[kind]} one is read at a time")
    if table and kind not in ("excel", "duckdb", "sqlite"):
        raise UserError(
            f"{data}: only Excel, DuckDB and SQLite files hold tables with names, and {path} is {WORDS[kind]}"
        )
    return Source(data, kind, tuple(files), table or None)


def _not_there(path: str) -> str:
    if re.match(r"[a-z][a-z0-9+]+://", path):
        return f"{path} is an address: fetch the file first, and name it"
    if any(sign in path for sign in "*?["):
        return f"no file matches {path!r}"
    folder = Path(path).parent
    if not folder.is_dir():
        return f"there is no file {path!r}: there is no folder {str(folder)!r}"
    known = [file.name for file in folder.iterdir() if file.is_file()]
    hint = did_you_mean(Path(path).name, known)
    return f"there is no file {path!r}" + (f": {hint}" if hint.startswith("did") else f" in {folder.resolve()}")


def _kind_of_file(file: str) -> str:
    """By its ending, unless its first bytes say otherwise."""
    name = file.lower()
    named = next((kind for kind, endings in _ENDINGS.items() if name.endswith(endings)), None)
    with open(file, "rb") as opened:
        start = opened.read(SAMPLE)
    if named is None or (named == "excel" and not start.startswith((_ZIP, _OLD_EXCEL))):
        return _kind_of_bytes(start, file)
    if named in ("csv", "jsonl") and start.startswith((*_MAGIC, *_PACKED)):
        return _kind_of_bytes(start, file)
    if start.startswith(_ZIP):
        _refuse_archive(file, file)
    return named


def _kind_of_bytes(content: bytes, file: str | None = None) -> str:
    if content[:2] == b"\x1f\x8b":
        content = start_of_gzip(content)
    for magic, kind in _MAGIC.items():
        if content.startswith(magic):
            if magic == _ZIP:
                _refuse_archive(file or io.BytesIO(content), file or "standard input")
            return kind
    for magic, tool in _PACKED.items():
        if content.startswith(magic):
            raise UserError(f"{file or 'standard input'} is packed by {tool}: unpack it first (gzip is read as it is)")
    if content.startswith(_STREAM):
        return "arrow"
    if content[8:12] == b"DUCK":
        return "duckdb"
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):  # two bytes a letter, as Excel writes "Unicode text"
        return "csv"
    if content.lstrip()[:1] == b"{":
        return "jsonl"
    if re.match(rb"\s*\[\s*\{", content):
        return "json"
    if b"\x00" in content[:4096]:
        raise UserError(
            f"{file or 'standard input'} is of a format that is not known: expected CSV, Parquet, Arrow, JSON lines, Excel, DuckDB or SQLite"
        )
    return "csv"


def _refuse_archive(file: Any, name: str) -> None:
    """A workbook of Excel is a zip archive too; any other has to be unpacked."""
    import zipfile

    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        raise UserError(f"{name} is a damaged Excel file or zip archive: save or copy it again") from None
    if not any(one.startswith("xl/") for one in names):
        shown = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
        raise UserError(f"{name} is a zip archive (of {shown}): unpack it and name the table in it")
