"""Every format gives the same table; what cannot be read is said in one line."""

import datetime
import gzip
import io
import sqlite3
import sys
import zipfile

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from upturn.cli._dates import undecided_dates
from upturn.cli._formats import find_delimiter
from upturn.cli._read import find_source
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
    source = find_source(str(data))
    with source.in_words():
        return source.scan().collect()


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
    "a.json": lambda table, path: (table.write_json(path), path)[1],
    "no-ending": lambda table, path: (table.write_parquet(path), path)[1],
    "a.sqlite": to_sqlite,
    "a.duckdb": to_duckdb,
    "a.xlsx": to_excel,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_table(table, tmp_path, name):
    assert_frame_equal(read(WRITERS[name](table, tmp_path / name)), table)  # JSON and SQLite have no dates, but text


def test_a_stream_of_arrow_from_a_pipe(table, monkeypatch):
    held = io.BytesIO()
    table.write_ipc_stream(held)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(held.getvalue())))
    assert_frame_equal(read("-"), table)


@pytest.mark.parametrize(
    "name", [name for name in WRITERS if "csv" not in name and not name.endswith((".tsv", ".txt"))]
)
def test_dates_written_as_text_are_dates_in_every_format(tmp_path, name):
    """Found by all rows, and by the first of a table that is streamed; text that is no date somewhere stays text."""
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in range(300)]
    table = pl.DataFrame({"name": ["Ann"] * 300, "weight": [1.0] * 300, "visits": [1] * 300, "day": days})
    texts = table.with_columns(pl.col("day").cast(pl.String))
    to_text = {"a.duckdb": to_duckdb_text}.get(name, WRITERS[name])
    source = find_source(str(to_text(texts, tmp_path / name)))
    for sample in (False, True):
        assert source.scan(sample=sample).collect().equals(table)
    assert source.scan({"day": pl.String}).collect()["day"].to_list() == texts["day"].to_list()
    late = texts.with_columns(day=pl.when(pl.int_range(pl.len()) == 299).then(pl.lit("soon")).otherwise("day"))
    path = tmp_path / f"late_{name}"
    assert find_source(str(to_text(late, path))).scan().collect()["day"][-1] == "soon"


def to_duckdb_text(table, path):
    import duckdb

    with duckdb.connect(path) as base:
        base.execute("create table people (name text, weight double, visits bigint, day text)")
        base.executemany("insert into people values (?, ?, ?, ?)", table.rows())
    return f"{path}::people"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2024-01-31", " 2024-02-29"], [datetime.date(2024, 1, 31), datetime.date(2024, 2, 29)]),
        (["31/01/2024", "01/02/2024"], [datetime.date(2024, 1, 31), datetime.date(2024, 2, 1)]),
        (["31.01.2024", None], [datetime.date(2024, 1, 31), None]),
        (["2024-01-31 10:20", "2024-02-01"], [datetime.datetime(2024, 1, 31, 10, 20), datetime.datetime(2024, 2, 1)]),
        (
            ["2024-01-31T10:20:30.5Z", "2024-01-31T10:20:30+02:00", "2024-01-31T10:20:30-0130"],
            [
                datetime.datetime(2024, 1, 31, 10, 20, 30, 500_000),
                datetime.datetime(2024, 1, 31, 8, 20, 30),
                datetime.datetime(2024, 1, 31, 11, 50, 30),
            ],
        ),
        (["2024-02-30", "2024-01-31"], None),
        (["01/31/2024", "02/28/2024"], None),
        (["2024", "2025"], None),
        (["a", None], None),
        ([None, None], None),
    ],
)
def test_how_dates_are_written(tmp_path, texts, expected):
    from upturn.cli._dates import find_dates, python_of

    path = tmp_path / "a.parquet"
    table = pl.DataFrame({"day": texts}, schema={"day": pl.String})
    table.write_parquet(path)
    found = read(path)["day"].to_list()
    assert found == (texts if expected is None else expected)
    for name, written in find_dates(table.lazy()).items():
        assert table.select(eval(python_of(name, written)))["day"].to_list() == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["01/31/2024", None, "2/28/2024"], True),
        (["12/31/2024 10:00 PM"], True),
        (["Jan 5, 2024", "5 March 2024", "May 2024"], True),
        (["01/31/2024", "soon"], False),
        (["maybe", "march"], False),
        (["13/31/2024"], False),
        ([None], False),
    ],
)
def test_dates_that_leave_open_which_is_the_month(texts, expected):
    assert undecided_dates(pl.Series("day", texts, dtype=pl.String)) is expected
    assert not undecided_dates(pl.Series("day", [1, 2]))


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
        ("a b c\n1 2 3\n", " "),
        ("a:b\n1:2\n", ":"),
        ("a~b\n1 000~2\n", "~"),
        ("a^b\n1:0^2\n", "^"),
        ("first name,day\nAnn,1\nBob B,2\n", ","),
        ("first name,last name\nAnn A,Bee B\n", ","),
        ("full name,a\nAnn A,1,2\nBob B,2\n", ","),
        ("day\n2024-01-01 10:00:00\n", ","),
        ("", ","),
    ],
)
def test_delimiters(text, delimiter):
    assert find_delimiter(text) == delimiter


@pytest.mark.parametrize("said", ["tab", "\\t", "\t"])
def test_a_delimiter_that_is_said(tmp_path, said):
    path = tmp_path / "a.csv"
    path.write_text("a\tb, c, d\n1\t2,5,6\n")
    assert find_source(str(path), said).columns == ["a", "b, c, d"]


@pytest.mark.parametrize("said", ["", ";;", '"', "§", "\n"])
def test_what_is_no_delimiter(tmp_path, said):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="expected one character"):
        find_source(str(path), said)


def test_several_files(table, tmp_path):
    for i in range(3):
        table.with_columns(visits=pl.lit(i)).write_parquet(tmp_path / f"part-{i}.parquet")
    found = read(tmp_path / "part-*.parquet")
    assert found["visits"].to_list() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "json"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop("day"), "1.END has the column 'day' and 2.END does not"),
        (lambda table: table.with_columns(more=1), "2.END has the column 'more' and 1.END does not"),
        (
            lambda table: table.rename({"day": "on", "name": "who"}),
            "1.END has the columns 'name', 'day' and 2.END does not, 2.END has the columns 'who', 'on' and 1.END does not",
        ),
        (
            lambda table: table.with_columns(visits=pl.lit("x")),
            "column 'visits' holds Int64 values in 1.END and String",
        ),
        (lambda table: table.select(reversed(table.columns)), "column 1 is 'name' in 1.END and 'day' in 2.END"),
    ],
)
def test_files_that_are_unlike_are_named(table, tmp_path, monkeypatch, ending, change, message):
    monkeypatch.chdir(tmp_path)
    for number, part in (("1", table), ("2", change(table)), ("3", table)):
        WRITERS[f"a.{ending}"](part, tmp_path / f"{number}.{ending}")
    if (ending == "csv" and "Int64" in message) or (ending in ("parquet", "arrow") and "column 1" in message):
        assert read(f"*.{ending}").height == 9  # of no hindrance
        return
    with pytest.raises(UserError) as caught:
        read(f"*.{ending}")
    assert f"*.{ending} matches unlike files: {message.replace('END', ending)}" in str(caught.value)
    assert str(caught.value).endswith("; expected the same columns in all of them")


def test_files_of_other_delimiters_and_files_that_are_broken(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table.write_csv("1.csv")
    table.write_csv("2.csv", separator=";")
    with pytest.raises(UserError, match=r"1\.csv has ',' between columns and 2\.csv ';'"):
        read("*.csv")
    table.write_parquet("1.parquet")
    (tmp_path / "2.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(UserError, match=r"^2\.parquet could not be read as Parquet"):
        read("*.parquet")


def test_a_file_with_the_wrong_ending_is_read_as_what_it_is(table, tmp_path):
    table.write_parquet(tmp_path / "parquet.csv")
    table.write_csv(tmp_path / "text.xlsx")
    to_excel(table, tmp_path / "book.xlsx")
    (tmp_path / "book.xlsx").rename(tmp_path / "book.csv")
    for name in ("parquet.csv", "text.xlsx", "book.csv::people"):
        assert_frame_equal(read(tmp_path / name), table)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "jsonl", "arrow", "utf-16"])
def test_standard_input(table, kind, monkeypatch):
    buffer = io.BytesIO()
    if kind == "parquet":
        table.write_parquet(buffer)
    elif kind == "arrow":
        table.write_ipc(buffer)
    elif kind == "jsonl":
        table.write_ndjson(buffer)
    else:
        buffer.write(table.write_csv().encode(kind if kind == "utf-16" else "utf-8"))
    content = gzip.compress(buffer.getvalue()) if kind == "csv.gz" else buffer.getvalue()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert read("-")["weight"].to_list() == table["weight"].to_list()


def test_the_names_of_rows_that_r_and_pandas_write(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(",age\n007,41\n008,52\n")
    source = find_source(str(path))
    assert source.scan().collect().rows() == [(7, 41), (8, 52)]
    found = source.scan({"unnamed": pl.String}, sample=True).collect()
    assert found.columns == ["unnamed", "age"]
    assert found["unnamed"].to_list() == ["007", "008"]
    path.write_text(",age,\n1,41,2\n")
    with pytest.raises(UserError, match="name"):
        read(path)


def test_whole_numbers_that_turn_out_not_to_be(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("x,y\n" + "1,2\n" * 20_000 + "1.5,NA\n")
    assert read(path)["x"].to_list()[-1] == 1.5


@pytest.mark.parametrize("late", ["+7", " 7", " ", "Infinity", "1.500", "x", "7.5", ""])
@pytest.mark.parametrize("first", ["1", "1,5", "1.5"])
def test_types_are_those_that_all_rows_show_wherever_they_lie(tmp_path, first, late):
    """The reader of numbers takes spellings that make text of a column where they are seen before: a blank, or thousands as if they were decimals."""
    rows = [f"{i};{first}" for i in range(10_500)]
    tables = []
    for name, lines in (("late", [*rows, f"7;{late}"]), ("early", [f"7;{late}", *rows])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["n;value", *lines]) + "\n")
        source = find_source(str(tmp_path / f"{name}.csv"))
        assert not source._is_small
        tables.append(source.scan().collect().sort("n", "value"))
    assert_frame_equal(*tables)


@pytest.mark.parametrize("value", ["1", "true", "1.5", "x", "", "2024-01-31", "31.01.2024", "2024-01-31 10:20:30"])
def test_a_small_table_is_guessed_once(tmp_path, value):
    (tmp_path / "few.csv").write_text("\n".join(["n,value", *(f"{i},{value}" for i in range(50)), "50,"]) + "\n")
    source = find_source(str(tmp_path / "few.csv"))
    assert source._is_small
    expected = pl.read_csv(tmp_path / "few.csv", try_parse_dates=True, infer_schema_length=None)
    assert_frame_equal(source.scan().collect(), expected)


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
        (lambda folder: folder / "twins.csv", "two columns called 'a': give each a name of its own"),
        (
            lambda folder: folder / "wide.csv",
            "row 3 has 3 fields and the first row 2 names; put quotation marks around",
        ),
        (lambda folder: folder / "open.csv", "a quotation mark is opened and never closed"),
        (lambda folder: folder / "cut.jsonl", "a line is no JSON object"),
        (lambda folder: folder / "cut.csv.gz", "cut.csv.gz could not be read as CSV"),
        (lambda folder: folder / "archive.zip", r"archive.zip is a zip archive \(of mail.csv\): unpack it"),
        (lambda folder: folder / "zipped.csv", r"zipped.csv is a zip archive \(of mail.csv\): unpack it"),
        (lambda folder: folder / "cut.xlsx", "cut.xlsx is a damaged Excel file or zip archive"),
        (lambda folder: folder / "hollow.xlsx", "hollow.xlsx could not be read as Excel"),
    ],
)
def test_what_cannot_be_read(table, tmp_path, make, message):
    table.write_csv(tmp_path / "mail.csv")
    table.write_parquet(tmp_path / "more.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing")
    (tmp_path / "picture").write_bytes(b"\x89PNG\x00\x00" * 9)
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "twins.csv").write_text("a,a\n1,2\n")
    (tmp_path / "wide.csv").write_text('a,b\n1,"2,3"\n1,2\n1,2,3\n')
    (tmp_path / "open.csv").write_text('a,b\n1,2\n1,"x\n3,4\n')
    (tmp_path / "cut.jsonl").write_text('{"a": 1}\n{"a": 2\n')
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 99_999)[:-20])
    to_sqlite(table, tmp_path / "two.sqlite")
    for name in ("archive.zip", "zipped.csv"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.write(tmp_path / "mail.csv", "mail.csv")
    (tmp_path / "cut.xlsx").write_bytes((tmp_path / "archive.zip").read_bytes()[:60])
    with zipfile.ZipFile(tmp_path / "hollow.xlsx", "w") as archive:
        archive.writestr("xl/nothing.xml", "")
    with pytest.raises(UserError, match=message) as caught:
        read(make(tmp_path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["mail", "main.mail", "crm.mail2", "mail2", "crm.odd.one", "odd.one"])
def test_schemas_of_duckdb(tmp_path, name):
    import duckdb

    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as base:
        base.execute("create schema crm; create schema web; create table mail as select 'mail' as name")
        base.execute("create table crm.mail2 as select 'mail2' as name")
        base.execute("""create table crm."odd.one" as select 'odd.one' as name""")
        base.execute("create table crm.twice as select 1 as a; create table web.twice as select 2 as a")
    expected = name.removeprefix("main.").removeprefix("crm.")
    if name == "odd.one":  # is the table one of the schema odd
        with pytest.raises(UserError, match=r"did you mean 'crm\.odd\.one'"):
            read(f"{path}::{name}")
    else:
        assert read(f"{path}::{name}").rows() == [(expected,)]
    assert read(f"{path}::web.twice").rows() == [(2,)]
    with pytest.raises(UserError, match=r"there is no table 'twice' .*did you mean '(crm|web).twice'"):
        read(f"{path}::twice")
    with pytest.raises(UserError, match=r"holds 5 tables \(.*crm\.mail2.*\): say which"):
        read(path)


def test_spans_of_time_of_duckdb_are_text(tmp_path):
    import duckdb

    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as base:
        base.execute("create table mail as select 1 as a, interval '3 days' as wait")
    assert read(path).rows() == [(1, "3 days")]


CUT = "; it seems to be cut off or damaged: make or copy it again"
COPY = "; copy it again, if it was cut off, or close what writes to it"
ENDS = {
    "a.csv.gz": CUT,
    "a.parquet": CUT,
    "a.arrow": CUT,
    "stream.arrow": CUT,
    "a.xlsx": "is a damaged Excel file or zip archive: save or copy it again",
    "a.sqlite": COPY,
    "a.duckdb": COPY,
}


@pytest.mark.parametrize("name", ENDS)
def test_what_was_cut_off_is_copied_again(table, tmp_path, name):
    WRITERS[name](pl.concat([table] * 2000), tmp_path / name)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError) as found:
        read(f"{tmp_path / name}::people" if name in ("a.sqlite", "a.duckdb") else tmp_path / name)
    assert str(found.value).endswith(ENDS[name])
    assert "\n" not in str(found.value)


def test_nothing_but_blank_lines(tmp_path):
    (tmp_path / "blank.csv").write_text("\n\n\n")
    with pytest.raises(UserError, match=r"blank\.csv is empty: expected a first row with the names of the columns"):
        read(tmp_path / "blank.csv")


@pytest.mark.parametrize(
    ("content", "tool"),
    [(b"BZh91AY", "bzip2"), (b"\xfd7zXZ\x00\x00", "xz"), (b"\x28\xb5\x2f\xfd\x00", "zstd")],
)
@pytest.mark.parametrize("name", ["mail.csv", "mail.csv.bz2", "-"])
def test_what_is_packed_otherwise_has_to_be_unpacked(tmp_path, monkeypatch, name, content, tool):
    (tmp_path / "mail.csv").write_bytes(content)
    (tmp_path / "mail.csv.bz2").write_bytes(content)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    where = name if name == "-" else str(tmp_path / name)
    with pytest.raises(
        UserError, match=f"{'standard input' if name == '-' else name} is packed by {tool}: unpack it first"
    ):
        find_source(where)


def test_a_database_on_standard_input(tmp_path, monkeypatch):
    import duckdb

    duckdb.connect(str(tmp_path / "a.duckdb")).close()
    content = (tmp_path / "a.duckdb").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(UserError, match="a database cannot be read from standard input"):
        _ = find_source("-").columns


def test_an_address_is_no_file():
    with pytest.raises(UserError, match=r"^https://shop.example/mail.csv is an address: fetch the file first"):
        find_source("https://shop.example/mail.csv")
