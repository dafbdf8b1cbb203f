"""What polars cannot read, in our words: the file, the row, the column, the value, and what to do about it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Container, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from upturn.cli._formats import csv_options, open_text
from upturn.cli._say import UserError, one_line

if TYPE_CHECKING:
    from upturn.cli._read import Source

_VALUE = re.compile(
    r"could not parse `(?P<value>.*?)` as dtype `(?P<kind>\w+).*?` at column '(?P<column>.*?)'", re.DOTALL
)
_CAST = re.compile(
    r"conversion from `\w+` to `(?P<kind>\w+).*?` failed in column '(?P<column>.*?)' for .*?: \[(?P<value>.*?)\]",
    re.DOTALL,
)
_JSON = re.compile(r"cannot parse (?P<value>.*?)(?: \(\w+\))? as (?P<kind>\w+)", re.DOTALL)
_MEND = "mend the value, or leave it empty if it is not known"
_CUT_OFF = (
    "out-of-spec",
    "out of specification",
    "end of file",
    "ended before",
    "fill whole buffer",
)  # in errors of a reader
_SHOWN = 60  # characters of a value


def explain(error: Exception, source: Source) -> str:
    """One line about a table that could not be read to its end."""
    text = str(error)
    if "is not properly escaped" in text:
        return f'{source.name}: a quotation mark is opened and never closed; double those inside values, as in "a 24"" screen"'
    if "found more fields than defined" in text:
        return _too_many_fields(source)
    for pattern in (_VALUE, _CAST, _JSON):
        found = pattern.search(text)
        if found is not None:
            return _value(source, found.groupdict())
    if source.kind == "jsonl" and ("Syntax at" in text or "TapeError" in text):
        return f'{source.name}: a line is no JSON object ({one_line(text)[:100]}); expected one on every line, as in {{"age": 41}}'
    if source.is_text and "empty CSV" in text:
        return f"{source.name} is empty: expected a first row with the names of the columns"
    cut = any(word in text for word in _CUT_OFF)
    end = "; it seems to be cut off or damaged: make or copy it again" if cut else ""
    return _unlike_files(source) or f"{source.name} could not be read as {source.format}: {one_line(text)[:300]}{end}"


def _unlike_files(source: Source) -> str | None:
    """How one of several files differs from the first, or why it cannot be read by itself; None for files that are alike."""
    if len(source.files) < 2 or source.kind == "jsonl":  # where a line may have columns of its own
        return None
    files = [replace(source, name=file, files=(file,)) for file in source.files]
    try:
        schemas = [dict(file.scan(sample=True).collect_schema()) for file in files]
    except UserError as error:
        return str(error)
    for file, schema in zip(files, schemas, strict=True):
        how = _difference(files[0], schemas[0], file, schema)
        if how is not None:
            return f"{source.name} matches unlike files: {how}; expected the same columns in all of them"
    return None


def _difference(one: Source, left: dict[str, Any], other: Source, right: dict[str, Any]) -> str | None:
    """What keeps two files from being read as one table: the names, types or order of columns, or what stands between them."""
    pairs = ((one, left, other, right), (other, right, one, left))
    more = [
        f"{file.name} has {_listed(own, rest)} and {their.name} does not"
        for file, own, their, rest in pairs
        if own.keys() - rest.keys()
    ]
    if more:
        return ", ".join(more)
    if one.is_text:  # the types of which are guessed
        marks = [csv_options(file)["separator"] for file in (one, other)]
        if marks[0] != marks[1]:
            return f"{one.name} has {marks[0]!r} between columns and {other.name} {marks[1]!r}"
    else:
        for name, held in left.items():
            if held != right[name]:
                return f"column {name!r} holds {held} values in {one.name} and {right[name]} values in {other.name}"
    if one.kind != "parquet":
        for place, (name, its) in enumerate(zip(left, right, strict=True), 1):
            if name != its:
                return f"column {place} is {name!r} in {one.name} and {its!r} in {other.name}"
    return None


def _listed(own: Iterable[str], rest: Container[str]) -> str:
    names = [name for name in own if name not in rest]
    shown = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"the column{'s' if len(names) > 1 else ''} {shown}"


def _value(source: Source, found: dict[str, str]) -> str:
    value, kind = found["value"].strip("\"'"), found["kind"].lower()
    wanted = "a date" if kind.startswith("date") else "true or false" if kind.startswith("bool") else "a number"
    shown = repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
    column = found.get("column")
    row, column = _line_of(source, value) if column is None else (_row_of(source, column, value), column)
    if column is None:
        return f"{source.name}: the value {shown} stands where {wanted} is expected; {_MEND}"
    where = f"row {row:,} of column {column!r}" if row is not None else f"column {column!r}"
    return f"{source.name}: {where} holds {shown}, and {wanted} is expected; {_MEND}"


def _row_of(source: Source, column: str, value: str) -> int | None:
    """The first row with this text in a column, counted from 1 without the row of names."""
    import polars as pl

    try:
        text = (
            source.scan({column: pl.String}, sample=True).select(pl.col(column).cast(pl.String)).with_row_index("row")
        )
        place = text.filter(pl.col(column) == value).select("row").head(1).collect()
    except Exception:  # then without it
        return None
    return None if place.is_empty() else int(place.item()) + 1


def _line_of(source: Source, value: str) -> tuple[int | None, str | None]:
    """The first line of a file of JSON lines with this text in it, and where."""
    row = 0
    for file in source.files or (None,):
        with open_text(source, file) as lines:
            for line in filter(str.strip, lines):
                row += 1
                if value in line:
                    names = [name for name, held in json.loads(line).items() if held == value]
                    if names:
                        return row, names[0]
    return None, None


def _too_many_fields(source: Source) -> str:
    mark = csv_options(source)["separator"]
    where = "a row"
    for file in source.files or (None,):
        with open_text(source, file) as text:
            rows: Any = csv.reader(text, delimiter=mark)
            names: list[str] = next(rows, [])
            for number, row in enumerate(rows, 1):
                if len(row) > len(names):
                    where = f"row {number:,}" + (f" of {file}" if len(source.files) > 1 else "")
                    return f"{source.name}: {where} has {len(row)} fields and the first row {len(names)} names; {_quotes(mark)}"
    return f"{source.name}: {where} has more fields than the first row has names; {_quotes(mark)}"


def _quotes(mark: str) -> str:
    return f"put quotation marks around values with {mark!r} in them, or name every column"
