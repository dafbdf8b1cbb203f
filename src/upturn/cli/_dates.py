"""Dates that are written as text, in tables that know no better: found by reading them, all rows or none.

CSV has its dates recognised by polars. A database, JSON or a spreadsheet may hold them as text too; and no program can
tell what 3/4/2024 is, so months that come first are named and never counted in days.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_ISO_TIME = "ISO 8601"
# What a column may be written in; the first that reads every value is it.
_WRITTEN = ("%Y-%m-%d", _ISO_TIME, "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y")
# A time brought into its longest form: with a T, seconds and a zone.
_FULL = (
    (r"^(\d{4}-\d\d-\d\d)$", "${1}T00:00"),
    (r"^(.{10}) ", "${1}T"),
    (r"T(\d\d:\d\d)(Z|[+-]|$)", "T${1}:00${2}"),
    (r"Z$", "+00:00"),
    (r"(T[\d:.]+)$", "${1}+00:00"),
)
_FULL_FORM = "%Y-%m-%dT%H:%M:%S%.f%#z"
_HEAD = 200  # rows that rule out most columns at once
_MONTH_FIRST = r"^\s*(0?[1-9]|1[0-2])[/.-](0?[1-9]|[12]\d|3[01])[/.-](19|20)\d\d(\s.*)?$"
_IN_WORDS = r"(?i)^\s*(\d{1,2}\.?[ -])?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?[ -]((\d{1,2}(st|nd|rd|th)?,? )?(19|20)\d\d)(\s.*)?$"


def find_dates(frame: pl.LazyFrame, rows: int | None = None) -> dict[str, str]:
    """Columns of text that hold nothing but dates, in all rows or the first so many, and how they are written."""
    import polars as pl

    texts = [name for name, kind in frame.collect_schema().items() if kind in (pl.String, pl.Categorical, pl.Enum)]
    if not texts:
        return {}
    likely = _read_by(frame.select(texts).head(_HEAD))
    if not likely:
        return {}
    return _read_by(frame.select(list(likely)).head(rows) if rows else frame.select(list(likely)))


def _read_by(frame: pl.LazyFrame) -> dict[str, str]:
    import polars as pl

    names = frame.collect_schema().names()
    read = {(name, written): as_date(name, written, strict=False).count() for name in names for written in _WRITTEN}
    there = {(name, ""): pl.col(name).count() for name in names}
    asked = {**there, **read}
    counts = frame.select(count.alias(str(place)) for place, count in enumerate(asked.values())).collect(
        engine="streaming"
    )
    count = dict(zip(asked, counts.row(0), strict=True))
    found = {}
    for name in names:
        by = [written for written in _WRITTEN if count[name, written] == count[name, ""] > 0]
        if by:
            found[name] = by[0]
    return found


def as_date(name: str, written: str, *, strict: bool = True) -> pl.Expr:
    """A column of text as dates, or as times without a zone."""
    import polars as pl

    text = pl.col(name).cast(pl.String).str.strip_chars()
    if written != _ISO_TIME:
        return text.str.to_date(written, strict=strict)
    for pattern, instead in _FULL:
        text = text.str.replace(pattern, instead)
    return text.str.to_datetime(_FULL_FORM, time_unit="us", strict=strict).dt.replace_time_zone(None)


def python_of(name: str, written: str) -> str:
    """The same as a line of Python."""
    text = f"pl.col({name!r}).cast(pl.String).str.strip_chars()"
    if written != _ISO_TIME:
        return f"{text}.str.to_date({written!r})"
    steps = "".join(f".str.replace({pattern!r}, {instead!r})" for pattern, instead in _FULL)
    return f'{text}{steps}.str.to_datetime({_FULL_FORM!r}, time_unit="us").dt.replace_time_zone(None)'


def undecided_dates(column: pl.Series) -> bool:
    """Whether a column of text holds dates to a reader, in a form that leaves open which number is the month."""
    import polars as pl

    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return False
    text = column.drop_nulls().cast(pl.String)
    return len(text) > 0 and _look_like_dates(text.head(_HEAD)) and _look_like_dates(text)


def _look_like_dates(text: pl.Series) -> bool:
    return bool((text.str.contains(_MONTH_FIRST) | text.str.contains(_IN_WORDS)).all())
