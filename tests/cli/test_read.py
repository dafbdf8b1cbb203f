"""Every format gives the same table; what cannot be read is said in one line."""

import datetime
import gzip
import io
import sqlite3
import sys

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from upturn.cli._read import find_delimiter, find_source
from upturn.cli._say import UserError


@pytest.fixture
def table():
    return pl.DataFrame(
        {
            "name": ["Ann", "Bob, Jr", None],
            "weight": [60.5, 71.25, None],
            "visits": [1, 2, 3],
            "day": [datetime.date(2024, 1, 1), datetime.date(2024, 2, 29), None],
        }
    )


def read(data):
    return find_source(str(data)).scan().collect()


def write_csv(table, path, **options):
    table.write_csv(path, **options)
    return path


def to_sqlite(table, path):
    with sqlite3.connect(path) as base:
        base.execute("create table other (x)")
        base.execute("create table people (name text, weight real, visits int, day text)")
        base.executemany("insert into people values (?, ?, ?, ?)", table.with_columns(pl.col("day").cast(str)).rows())
    base.close()
    return f"{path}::people"


def to_duckdb(table, path):
    import duckdb

    with duckdb.connect(path) as base:
        base.execute("create table other (x int)")
        base.execute("create table people (name text, weight double, visits bigint, day date)")
        base.executemany("insert into people values (?, ?, ?, ?)", table.rows())
    return f"{path}::people"


def to_excel(table, path):
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "cover"
    sheet = book.create_sheet("people")
    for row in [table.columns, *table.rows()]:
        sheet.append(row)
    book.save(path)
    return f"{path}::people"


WRITERS = {
    "a.csv": write_csv,
    "a.tsv": lambda table, path: write_csv(table, path, separator="\t"),
    "semicolon.csv": lambda table, path: write_csv(table, path, separator=";"),
    "bar.txt": lambda table, path: write_csv(table, path, separator="|"),
    "a.csv.gz": lambda table, path: (path.write_bytes(gzip.compress(table.write_csv().encode())), path)[1],
    "a.parquet": lambda table, path: (table.write_parquet(path), path)[1],
    "a.arrow": lambda table, path: (table.write_ipc(path), path)[1],
    "stream.arrow": lambda table, path: (table.write_ipc_stream(path), path)[1],
    "a.feather": lambda table, path: (table.write_ipc(path, compression="zstd"), path)[1],
    "a.jsonl": lambda table, path: (table.write_ndjson(path), path)[1],
    "no-ending": lambda table, path: (table.write_parquet(path), path)[1],
    "a.sqlite": to_sqlite,
    "a.duckdb": to_duckdb,
    "a.xlsx": to_excel,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_table(table, tmp_path, name):
    found = read(WRITERS[name](table, tmp_path / name))
    if found["day"].dtype == pl.String:  # JSON and SQLite have no dates
        found = found.with_columns(pl.col("day").str.to_date())
    assert_frame_equal(found, table)


def test_a_decimal_comma_and_windows_letters(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("name;weight;visits\nÄnn;60,5;1\nBob;71,25;2\n".encode("cp1252"))
    assert read(path).rows() == [("Änn", 60.5, 1), ("Bob", 71.25, 2)]


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2\n3,5;4\n", ";"),
        ("a\tb\n1 000\t2\n", "\t"),
        ('a,b\n"x;y;z",2\n', ","),
        ("a\n1\n", ","),
        ("a|b|c\n1|2|3\n", "|"),
    ],
)
def test_delimiters(text, delimiter):
    assert find_delimiter(text) == delimiter


def test_several_files(table, tmp_path):
    for i in range(3):
        table.with_columns(visits=pl.lit(i)).write_parquet(tmp_path / f"part-{i}.parquet")
    found = read(tmp_path / "part-*.parquet")
    assert found["visits"].to_list() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "jsonl", "arrow"])
def test_standard_input(table, kind, monkeypatch):
    buffer = io.BytesIO()
    if kind == "parquet":
        table.write_parquet(buffer)
    elif kind == "arrow":
        table.write_ipc(buffer)
    elif kind == "jsonl":
        table.write_ndjson(buffer)
    else:
        buffer.write(table.write_csv().encode())
    content = gzip.compress(buffer.getvalue()) if kind == "csv.gz" else buffer.getvalue()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert read("-")["weight"].to_list() == table["weight"].to_list()


def test_whole_numbers_that_turn_out_not_to_be(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("x,y\n" + "1,2\n" * 20_000 + "1.5,NA\n")
    assert read(path)["x"].to_list()[-1] == 1.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "mial.csv", "there is no file .*mial.csv': did you mean 'mail.csv'"),
        (lambda folder: folder / "*.feather", "no file matches"),
        (lambda folder: folder, "is a folder: name a file in it"),
        (lambda folder: folder / "m*", "files of several formats"),
        (lambda folder: f"{folder / 'mail.csv'}::sheet", "only Excel, DuckDB and SQLite files hold tables"),
        (lambda folder: folder / "broken.parquet", "broken.parquet could not be read as Parquet"),
        (lambda folder: folder / "two.sqlite", "holds 2 tables .*say which, as in .*two.sqlite::"),
        (lambda folder: f"{folder / 'two.sqlite'}::peeple", "no table 'peeple' in .*: did you mean 'people'"),
        (lambda folder: folder / "picture", "of a format that is not known"),
        (lambda folder: folder / "empty.csv", "empty"),
    ],
)
def test_what_cannot_be_read(table, tmp_path, make, message):
    table.write_csv(tmp_path / "mail.csv")
    table.write_parquet(tmp_path / "more.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing")
    (tmp_path / "picture").write_bytes(b"\x89PNG\x00\x00" * 9)
    (tmp_path / "empty.csv").write_bytes(b"")
    to_sqlite(table, tmp_path / "two.sqlite")
    with pytest.raises(UserError, match=message) as caught:
        read(make(tmp_path))
    assert "\n" not in str(caught.value)
