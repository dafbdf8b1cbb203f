"""``upturn check``: roles of columns by flags, file and sight; leaks; exit codes; one line for every error."""

import io
import tomllib

import numpy as np
import polars as pl
import pytest

from upturn.cli._leaks import suspected_leaks
from upturn.cli._roles import Roles, add_roles, looks_like_id, read_roles, write_roles

FLAGS = ("--outcome", "visit", "--treatment", "segment")


def test_the_first_run_finds_roles_and_writes_them_down(upturn, mail, tmp_path):
    mail.write_csv("mail.csv")
    ran = upturn("check", "mail.csv", *FLAGS, "--json")
    assert ran.code == 1  # the leak
    found = ran.json
    assert found["features"] == ["age", "region", "spend_before", "member", "clicks"]
    assert found["columns"]["found_ids"] == ["customer"]
    assert found["columns"]["found_dates"] == ["joined"]
    assert [(leak["column"], leak["about"]) for leak in found["leaks"]] == [("clicks", "outcome")]
    assert "wherever it is not 0" in found["leaks"][0]["evidence"]
    assert any(line.startswith("customer: looks like an identifier (2,000 different values") for line in found["notes"])
    assert any(line.startswith("joined: dates; left out") for line in found["notes"])
    assert tomllib.loads((tmp_path / "upturn.toml").read_text()) == {
        "data": "mail.csv",
        "outcome": "visit",
        "treatment": "segment",
        "control": "control",
        "id": ["customer"],
        "drop": ["joined"],
    }

    second = upturn("check", "--drop", "clicks")
    assert second.code == 0
    assert second.out.startswith("Experiment of 2,000 rows, 4 features, 2 arms: looks sound")
    assert "roles of columns: upturn.toml, and flags" in second.err
    assert "upturn.toml: drop changed" in second.err

    third = upturn("check", "--json", "--quiet")
    assert third.err == ""
    assert third.json["ok"] is True
    assert third.json["features"] == ["age", "region", "spend_before", "member"]

    kept = upturn("check", "--keep", "joined,customer", "--json")  # a flag goes before the file
    assert kept.json["features"][:2] == ["customer", "joined"]


def test_the_report_is_that_of_the_library(upturn, mail):
    from upturn import check

    mail.write_parquet("mail.parquet")
    ran = upturn("check", "mail.parquet", *FLAGS, "--drop", "clicks", "--json")
    features = mail.select("age", "region", "spend_before", "member")
    report = check(features, mail["visit"], mail["segment"])
    assert [one["pvalue"] for one in ran.json["checks"]] == pytest.approx([one.pvalue for one in report.findings])
    assert ran.json["arms"][1]["effect"] == pytest.approx(report.arms[1].effect)
    plain = upturn("check", "mail.parquet", *FLAGS)
    assert plain.out.strip() == str(report)


def test_missing_outcomes_and_treatments(upturn, mail):
    holes = mail.with_columns(
        visit=pl.when(pl.int_range(pl.len()) % 10 == 0).then(None).otherwise("visit"),
        segment=pl.when(pl.int_range(pl.len()) < 5).then(None).otherwise("segment"),
    )
    holes.write_csv("mail.csv")
    ran = upturn("check", "mail.csv", *FLAGS, "--drop", "clicks", "--json")
    assert ran.json["rows"] == 1995
    assert "5 rows without a segment (the treatment): left out" in ran.json["notes"]
    assert sum(arm["outcomes"] for arm in ran.json["arms"]) == 1796


def test_an_outcome_that_never_changes_is_named(upturn, mail):
    mail.with_columns(visit=pl.lit(0)).write_csv("mail.csv")
    ran = upturn("check", "mail.csv", *FLAGS, "--drop", "clicks", "--json")
    assert "visit (the outcome) is 0 in every row: no effect can be seen in it" in ran.json["notes"]
    mail.with_columns(w=pl.when(pl.int_range(pl.len()) == 3).then(-1.0).otherwise(1.0)).write_csv("mail.csv")
    assert "upturn: --weight holds 1 negative value" in upturn("check", "mail.csv", *FLAGS, "--weight", "w", "-q").err


@pytest.mark.parametrize(
    ("name", "gap"), [("none.csv", None), ("none.parquet", None), ("nan.parquet", float("nan")), ("some.csv", None)]
)
def test_an_outcome_that_is_missing_everywhere(upturn, mail, name, gap):
    """As a CSV has it, which is text to polars, and as other formats do; some.csv: in every row of a known arm."""
    table = mail.with_columns(visit=pl.lit(gap, pl.Float64)).drop("clicks")
    if name == "some.csv":
        lost = pl.int_range(pl.len()) == 0
        table = table.with_columns(visit=pl.when(lost).then(1), segment=pl.when(~lost).then("segment"))
    table.write_csv(name) if name.endswith("csv") else table.write_parquet(name)
    said = f"upturn: --outcome visit: every value of the outcome is missing in {name}; fill it in, or name another column\n"
    for command in (("check",), ("fit", "--model", "tree")):
        ran = upturn(*command, name, *FLAGS, "--quiet")
        assert (ran.code, ran.err) == (2, said)


def test_outcomes_in_words(upturn, mail):
    words = mail.with_columns(visit=pl.when(pl.col("visit") == 1).then(pl.lit("yes")).otherwise(pl.lit("no")))
    words.write_csv("yes.csv")
    first = upturn("check", "yes.csv", *FLAGS, "--json")
    assert "visit: 'yes' counts as 1 and 'no' as 0" in first.json["notes"]
    german = mail.with_columns(visit=pl.when(pl.col("visit") == 1).then(pl.lit("Ja")).otherwise(pl.lit("Nein")))
    german.write_csv("ja.csv")
    assert upturn("check", "ja.csv", *FLAGS, "--json").json["arms"] == first.json["arms"]
    odd = mail.with_columns(visit=pl.when(pl.col("visit") == 1).then(pl.lit("came")).otherwise(pl.lit("stayed")))
    odd.write_csv("odd.csv")
    ran = upturn("check", "odd.csv", *FLAGS)
    assert ran.code == 2
    assert "as in --outcome visit=stayed" in ran.err
    second = upturn("check", "odd.csv", "--outcome", "visit=came", "--json")
    assert second.json["arms"] == first.json["arms"]
    wrong = upturn("check", "odd.csv", "--outcome", "visit=cam")
    assert "visit has no such value; did you mean 'came'?" in wrong.err


def test_expected_shares(upturn, mail):
    mail.write_csv("mail.csv")
    ran = upturn("check", "mail.csv", *FLAGS, "--drop", "clicks", "--expected", "control=0.7,mail=0.3", "--json")
    assert ran.code == 1
    assert ran.json["checks"][0]["status"] == "warning"
    mail.filter((pl.col("segment") == "mail") | (pl.int_range(pl.len()) % 2 == 0)).write_csv("uneven.csv")
    advice = upturn("check", "uneven.csv", *FLAGS, "--drop", "clicks").out
    assert "Tell check the shares that were intended, as in --expected control=0.5,mail=0.5, and it will" in advice


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mail.csv", "--outcome", "vist", "--treatment", "segment"], "has no column 'vist'; did you mean 'visit'?"),
        (["mail.csv", "--outcome", "visit", "--treatment", "arm"], "has no column 'arm'; there are customer, joined"),
        (["mail.csv", "--outcome", "visit"], "treatment not named: say which column it is, as in --treatment NAME"),
        (["mail.csv", *FLAGS, "--control", "contol"], "there is no such arm; did you mean 'control'?"),
        (
            ["mail.csv", *FLAGS, "--drop", "clocks"],
            "--drop clocks: mail.csv has no column 'clocks'; did you mean 'clicks'?",
        ),
        (["mail.csv", *FLAGS, "--drop", "visit"], "column 'visit' is both outcome and drop"),
        (
            ["mail.csv", *FLAGS, "--weight", "region"],
            "--weight region: the column holds String values; expected numbers",
        ),
        (["mail.csv", "--outcome", "visit", "--treatment", "joined"], "expected the labels of arms"),
        (["mail.csv", "--outcome", "visit", "--treatment", "customer"], "expected the labels of at most 255 arms"),
        (["mail.csv", "--outcome", "visit", "--treatment", "region"], "say which of them it is, with --control LABEL"),
        (
            ["words.csv", "--outcome", "c", "--treatment", "b"],
            "has a single column, 'a#b#c'; expected several: say what stands between them",
        ),
        (["mial.csv", *FLAGS], "there is no file 'mial.csv': did you mean 'mail.csv'?"),
        ([], "no table was named"),
        (["mail.csv", *FLAGS, "--expected", "half"], "expected a share for each arm, as in control=0.5,mail=0.5"),
        (["mail.csv", *FLAGS, "--alpha", "2"], "--alpha 2.0: expected a probability"),
        (["mail.csv", *FLAGS, "--jobs", "0"], "--jobs 0: expected a number of threads such as 4, or -1 for every core"),
        (["mail.csv", *FLAGS, "--alpha", "x"], "--alpha x: expected a number; see upturn check --help"),
        (["mail.csv", *FLAGS, "--seed=-1"], "--seed -1: expected a number of at least 0; see upturn check --help"),
        (["mail.csv", *FLAGS, "--seed", "1.5"], "--seed 1.5: expected a whole number; see upturn check --help"),
        (["mail.csv", "--outcom", "visit"], "there is no option --outcom; did you mean --outcome?"),
        (["mail.csv", "--folds", "3"], "there is no option --folds; see upturn check --help"),
        (["nowhere/mail.csv", *FLAGS], "there is no file 'nowhere/mail.csv': there is no folder 'nowhere'"),
        (["mail.csv", *FLAGS, "--delimiter", ";"], "expected several: leave --delimiter out, and it is found"),
        (["mail.csv", "--outcome", "visit", "--treatment", "age"], "27, 28, 29 and 50 more): say which of them it is"),
        (
            ["one.csv", *FLAGS],
            "upturn: the treatment holds one arm only, 'mail': an uplift model compares at least two",
        ),
        (["infinite.csv", *FLAGS], "the outcome holds 1 infinite value, the first in row 4 of those used"),
        (["mail.csv", *FLAGS, "--drop", "age,region,spend_before,member,clicks"], "has no feature left"),
    ],
)
def test_errors_are_one_line(upturn, mail, arguments, message):
    mail.write_csv("mail.csv")
    pl.DataFrame({"a#b#c": ["1#2#3"] * 30}).write_csv("words.csv")
    mail.filter(pl.col("segment") == "mail").write_csv("one.csv")
    endless = pl.when(pl.int_range(pl.len()) == 3).then(pl.lit(float("inf"))).otherwise(pl.col("visit"))
    mail.with_columns(visit=endless).write_csv("infinite.csv")
    ran = upturn("check", *arguments, "--quiet")
    assert ran.code == 2
    assert ran.out == ""
    assert message in ran.err
    assert ran.err.startswith("upturn: ")
    assert ran.err.count("\n") == 1


def test_a_run_that_fails_writes_down_no_roles(upturn, mail, tmp_path):
    mail.write_csv("mail.csv")
    assert upturn("check", "mail.csv", *FLAGS, "--alpha", "2").code == 2
    assert upturn("fit", "mail.csv", *FLAGS, "--model", "tree", "--set", "max_deph=3").code == 2
    assert upturn("fit", "mail.csv", *FLAGS, "--model", "tree", "-o", "nowhere/m.upturn").code == 2
    assert not (tmp_path / "upturn.toml").exists()


def test_errors_for_machines(upturn):
    ran = upturn("check", "nothing.csv", "--json")
    assert ran.code == 2
    assert ran.json["error"].startswith("there is no file 'nothing.csv'")


def test_an_unknown_command(upturn):
    ran = upturn("chek")
    assert ran.code == 2
    assert "did you mean 'check'" in ran.err.lower()


def test_a_file_of_roles_about_another_table(upturn, mail):
    mail.write_csv("mail.csv")
    upturn("check", "mail.csv", *FLAGS)
    mail.rename({"visit": "came", "segment": "arm"}).write_csv("other.csv")
    assert "upturn.toml is about another table than other.csv" in upturn("check", "other.csv").err
    ran = upturn("check", "other.csv", "--outcome", "came", "--treatment", "arm")
    assert ran.code == 1
    assert "upturn.toml is about another table: not used" in ran.err


def test_a_file_of_roles_that_names_no_table(upturn, mail, monkeypatch):
    """As the first run writes it that reads standard input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(mail.write_csv().encode())))
    assert upturn("check", "-", *FLAGS).code == 1
    ran = upturn("check")
    assert ran.code == 2
    said = "no table was named: give a file, as in `upturn check mail.csv …`; upturn.toml names no data either"
    assert ran.err == f"upturn: {said}\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("control = 'contrl'", "control = contrl: there is no such arm; did you mean 'control'?"),
        ("treatment = 'arm'", "treatment = arm: mail.csv has no column 'arm'; there are customer, joined, age"),
        ("weight = 'w'", "weight = w: mail.csv has no column 'w'; there are customer, joined, age"),
        ("outcome = 'visit=x'", "outcome = visit=x: visit has no such value; there are 0, 1;"),
    ],
)
def test_what_a_file_of_roles_gets_wrong_is_said_of_the_file(upturn, mail, tmp_path, line, message):
    mail.write_csv("mail.csv")
    role = line.partition(" ")[0]
    lines = {"outcome": "outcome = 'visit'", "treatment": "treatment = 'segment'", role: line}
    (tmp_path / "upturn.toml").write_text("\n".join(lines.values()))
    ran = upturn("check", "mail.csv", "--quiet")
    assert ran.code == 2
    assert f"upturn: upturn.toml has {message}" in ran.err
    assert ran.err.endswith(f" mend the file, or use --{role}\n")
    if role == "control":  # which is of the flag again, where there is one
        assert (
            "upturn: --control cntrol: there is no such arm"
            in upturn("check", "--control", "cntrol", "mail.csv", "-q").err
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("outcome = 3", "expected text in quotes"),
        ("drop = 'age'", "expected a list of names"),
        ("outcom = 'visit'", "has an entry 'outcom': did you mean 'outcome'"),
        ("outcome =", "is not TOML"),
    ],
)
def test_a_file_of_roles_that_cannot_be_read(upturn, mail, tmp_path, text, message):
    mail.write_csv("mail.csv")
    (tmp_path / "upturn.toml").write_text(text)
    ran = upturn("check", "mail.csv")
    assert ran.code == 2
    assert message in ran.err


def test_what_cannot_be_remembered_is_said(upturn, mail, tmp_path):
    mail.write_csv(tmp_path / "mail.csv")
    ran = upturn("check", "mail.csv", *FLAGS, "--roles", "nowhere/x.toml", "--json")
    assert "nowhere/x.toml could not be written: later runs have to be told the columns again" in ran.json["notes"]
    text = 'data = "mail.csv"\noutcome = "visit"\ntreatment = "segment"\ndrop = [\n  "clicks",\n]\n'
    (tmp_path / "upturn.toml").write_text(text)
    ran = upturn("check", "--drop", "joined", "--json")
    assert (tmp_path / "upturn.toml").read_text() == text
    said = [note for note in ran.json["notes"] if "over several lines, and was not changed: write there" in note]
    assert len(said) == 1
    assert 'drop = ["joined", "clicks"]' in said[0]


def test_an_empty_name_is_no_table(upturn, mail, tmp_path):
    mail.write_csv(tmp_path / "mail.csv")
    assert upturn("check", "mail.csv", *FLAGS).code in (0, 1)
    ran = upturn("check", "")
    assert (ran.code, ran.err) == (2, "upturn: DATA is empty: expected the name of a table, as in mail.csv\n")


@pytest.mark.parametrize(("shares", "said"), [("0.5,0.9", True), ("0.495,0.495", False), ("1,1", True)])
def test_shares_that_do_not_add_up_are_said(upturn, mail, tmp_path, shares, said):
    mail.write_csv(tmp_path / "mail.csv")
    control, treated = shares.split(",")
    ran = upturn("check", "mail.csv", *FLAGS, "--expected", f"control={control},mail={treated}", "--json")
    assert any("the shares add up to" in note for note in ran.json["notes"]) == said


def test_the_delimiter_is_remembered_of_its_table(upturn, mail, tmp_path):
    mail.write_csv(tmp_path / "odd.csv", separator="#")
    mail.write_csv(tmp_path / "new.csv")
    mail.write_parquet(tmp_path / "mail.parquet")
    flags = ("--outcome", "visit", "--treatment", "segment", "--drop", "clicks")
    ran = upturn("check", "odd.csv", *flags)
    assert (ran.code, "say what stands between them, as in --delimiter ';'" in ran.err) == (2, True)
    assert upturn("check", "odd.csv", *flags, "--delimiter", "#").code == 0
    assert 'delimiter = "#"' in (tmp_path / "upturn.toml").read_text()
    assert upturn("check").code == 0
    assert upturn("check", "new.csv").code == 0  # which has another
    ran = upturn("check", "mail.parquet", "--delimiter", "#")
    assert (ran.code, "mail.parquet is Parquet, which has none" in ran.err) == (2, True)
    mail.write_csv(tmp_path / "other.csv", separator="%")
    assert upturn("check", "other.csv", "--delimiter", "%").code == 0
    assert upturn("check").code == 0


def test_roles_survive_the_file(tmp_path):
    path = tmp_path / "upturn.toml"
    roles = Roles("a b.csv", 'the "outcome"', "back\\slash", "tab\there", None, None, ("id", "é"), ("x, y",))
    write_roles(path, roles)
    assert read_roles(path) == roles
    path.write_text(path.read_text() + "# mine\n")
    more = Roles("a b.csv", "other", "back\\slash", "tab\there", "w", None, ("id", "é"), ("x, y", "z"))
    assert add_roles(path, roles, more) == f"{path}: weight, drop changed"
    assert read_roles(path).outcome == 'the "outcome"'  # never changed
    assert read_roles(path).drop == ("x, y", "z")
    assert "# mine" in path.read_text()


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pl.Series("x", [f"a{i}" for i in range(100)]), True),
        (pl.Series("x", ["a", "b"] * 50), False),
        (pl.Series("x", range(100, 200)), True),
        (pl.Series("x", [i * i for i in range(100)]), False),
        (pl.Series("customer_id", [i * i for i in range(100)]), True),
        (pl.Series("x", np.random.default_rng(0).normal(size=100)), False),
        (pl.Series("x", [f"a{i}" for i in range(10)]), False),
        (pl.Series("x", [f"a{i % 40}" for i in range(100)]), False),
        (pl.Series("x", [f"a{i % 200}" for i in range(600)]), True),  # three rows each
        (pl.Series("x", [f"a{i % 200}" for i in range(2000)]), False),
        (pl.Series("customer", [7 * (i % 200) for i in range(600)]), True),
        (pl.Series("amount", [7 * (i % 200) for i in range(600)]), False),
        (pl.Series("paid", [7 * (i % 200) for i in range(600)]), False),
        (pl.Series("userId", [7 * (i % 200) for i in range(600)]), True),
    ],
)
def test_what_looks_like_an_identifier(column, expected):
    assert (looks_like_id(column) is not None) is expected


def test_an_identifier_of_several_rows_may_be_a_group(upturn, mail):
    pl.concat([mail, mail]).write_csv("twice.csv")
    said = "(2,000 different values in 4,000 rows); carried along, not a feature (--keep customer to use it"
    notes = upturn("check", "twice.csv", *FLAGS, "--roles", "twice.toml", "--json").json["notes"]
    assert (
        f"customer: looks like an identifier {said}; --group customer keeps the rows that share one together)" in notes
    )
    mail.write_csv("mail.csv")
    assert "--group" not in upturn("check", "mail.csv", *FLAGS).err


def test_names_with_blanks_are_quoted_in_advice(upturn, mail):
    mail.rename({"joined": "joined on"}).write_csv("mail.csv")
    ran = upturn("check", "mail.csv", *FLAGS, "--json")
    assert "joined on: dates; left out (--keep 'joined on' makes them numbers of days)" in ran.json["notes"]


def test_columns_that_are_nearly_numbers_are_named(upturn, mail):
    strange = mail.with_columns(
        age=pl.when(pl.int_range(pl.len()) % 40 == 0).then(pl.lit("n.a.")).otherwise(pl.col("age").cast(pl.String)),
        spend_before=pl.col("spend_before").cast(pl.String).fill_null("?"),
        income=pl.format("${},{}", pl.col("age"), pl.int_range(pl.len()) % 900 + 100),
    )
    strange.write_csv("mail.csv")
    ran = upturn("check", "mail.csv", *FLAGS, "--json")
    said = "age: taken as text, because 50 of 2,000 values are no plain numbers, such as 'n.a.'; mend or empty those for a column of numbers"
    assert said in ran.json["notes"]
    assert any(note.startswith("income: taken as text, because 2,000 of 2,000") for note in ran.json["notes"])
    assert {"age", "spend_before", "income"} <= set(ran.json["features"])
    assert not any(note.startswith("spend_before") for note in ran.json["notes"])  # a question mark is a gap


def test_leaks_are_seen_and_ordinary_columns_are_not():
    rng = np.random.default_rng(0)
    n = 4_000
    arm = rng.integers(0, 3, n).astype(np.uint8)
    good = rng.normal(size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(-good))).astype(float)
    spend = np.where(y == 1, rng.gamma(2, 10, n), rng.gamma(2, 1, n))
    frame = pl.DataFrame(
        {
            "good": good,
            "noise": rng.normal(size=n),
            "many": [f"l{i}" for i in rng.integers(0, 500, n)],
            "opened": np.where(arm == 2, rng.random(n) < 0.6, False),
            "stamp": [None if a == 0 else 1.0 for a in arm],
            "device": np.where((arm == 1) & (rng.random(n) < 0.9), "scanner", "web").tolist(),
            "spend": spend,
            "status": np.where(y == 1, "came", "stayed").tolist(),
        }
    )
    found = {(leak.column, leak.about): leak.evidence for leak in suspected_leaks(frame, y, arm, ["c", "a", "b"])}
    assert set(found) == {
        ("opened", "treatment"),
        ("stamp", "treatment"),
        ("device", "treatment"),
        ("spend", "outcome"),
        ("status", "outcome"),
    }
    assert "is missing for 0% of arm 'a' and 100% of control" in found["stamp", "treatment"]
    assert "in arm 'b' and 0 in control" in found["opened", "treatment"]
    assert "area under the ROC curve 0.9" in found["spend", "outcome"]
    real = suspected_leaks(frame.select("good", "noise", copy=3 * pl.col("spend") + 1), spend, arm, ["c", "a", "b"])
    assert [(leak.column, leak.about, leak.evidence[-23:]) for leak in real] == [
        ("copy", "outcome", "rank correlation 1.000)")
    ]
