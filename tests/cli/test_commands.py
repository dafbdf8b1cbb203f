"""Every command in this process: what it writes is what the library says, and what it refuses it refuses in one line."""

import json
import os
import shlex

import numpy as np
import polars as pl
import pytest

from upturn import load
from upturn.cli import main
from upturn.persist._writing import write_model
from upturn.policy import target

FLAGS = ("--outcome", "visit", "--treatment", "segment", "--drop", "clicks")
FEATURES = ["age", "region", "spend_before", "member"]
SMALL = ("--model", "forest", "--set", "n_estimators=10", "--set", "max_depth=3")


@pytest.fixture(scope="module")
def shop(mail, tmp_path_factory):
    """A folder with a table, another one of new people, and a model."""
    folder = tmp_path_factory.mktemp("shop")
    mail.write_csv(folder / "mail.csv")
    mail.reverse().write_csv(folder / "new.csv")
    flags = ["--roles", str(folder / "upturn.toml"), "--quiet"]
    code = main(["fit", str(folder / "mail.csv"), *FLAGS, *SMALL, "-o", str(folder / "model.upturn"), *flags])
    assert code == 0
    return folder


@pytest.fixture
def run(upturn, shop, monkeypatch):
    monkeypatch.chdir(shop)
    return upturn


def test_fit_is_the_library_fit(run, shop, mail):
    from upturn.trees import UpliftForest

    model = load(shop / "model.upturn")
    assert (model.n_estimators, model.max_depth, model.random_state) == (10, 3, 0)
    again = UpliftForest(10, max_depth=3, random_state=0).fit(mail.select(FEATURES), mail["visit"], mail["segment"])
    people = mail.select(FEATURES)
    assert np.array_equal(model.predict(people), again.predict(people))


def test_score_carries_ids_as_they_are_written(run, shop, mail):
    for name in ("scores.parquet", "scores.csv", "scores.jsonl", "scores.arrow"):
        ran = run("score", "model.upturn", "new.csv", "-o", name, "--json", "--recommend")
        assert ran.json["rows"] == 2000
        assert ran.json["ids"] == ["customer"]
    written = pl.read_parquet("scores.parquet")
    assert written.columns == ["customer", "uplift", "recommended"]
    assert written["customer"].to_list() == mail["customer"].to_list()[::-1]  # 00123, not 123
    model, people = load(shop / "model.upturn"), mail.select(FEATURES).reverse()
    assert np.array_equal(written["uplift"].to_numpy(), model.predict(people))
    assert written["recommended"].to_list() == model.recommend(people).tolist()
    assert pl.read_csv("scores.csv", schema_overrides={"customer": pl.String}).equals(written)
    assert pl.read_ndjson("scores.jsonl").equals(written)
    assert pl.read_ipc("scores.arrow").equals(written)


def test_score_without_ids_numbers_the_rows(run, mail):
    mail.select(FEATURES).write_parquet("nameless.parquet")
    assert run("score", "model.upturn", "nameless.parquet", "-o", "s.csv", "--json").json["ids"] == ["row"]
    assert pl.read_csv("s.csv")["row"].to_list() == list(range(1, 2001))
    mail.select("segment", "visit", row="age").write_parquet("rows.parquet")
    flags = (
        "--outcome",
        "visit",
        "--treatment",
        "segment",
        "--model",
        "tree",
        "--set",
        "max_depth=1",
        "--roles",
        "rows.toml",
    )
    assert run("fit", "rows.parquet", *flags, "-o", "rows.upturn").code == 0
    assert run("score", "rows.upturn", "rows.parquet", "-o", "s.csv", "--roles", "rows.toml", "--json").json["ids"] == [
        "row_"
    ]
    assert pl.read_csv("s.csv")["row_"].to_list() == list(range(1, 2001))


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("score model.upturn clash.csv --id uplift", "uplift"),
        ("target model.upturn clash.csv --id arm --fraction 0.5", "arm"),
    ],
)
def test_an_identifier_called_like_what_is_written_is_refused(run, mail, shop, line, name):
    mail.select(*FEATURES, pl.int_range(pl.len()).alias(name)).write_csv(shop / "clash.csv")
    ran = run(*line.split(), "-o", "clash.parquet")
    assert ran.code == 2
    assert (
        f"clash.csv: the column {name!r} has the name of one that is written: rename it, choose others by --id"
        in ran.err
    )
    assert not (shop / "clash.parquet").exists()


def test_score_of_a_csv_whose_first_rows_mislead(run, mail, shop):
    """Whole numbers first, fractions and gaps 20,000 rows later."""
    people = pl.concat([mail.select("customer", *FEATURES)] * 11)
    late = people.with_columns(
        age=pl.when(pl.int_range(pl.len()) > 20_500).then(pl.col("age") + 0.5).otherwise(pl.col("age"))
    )
    late.with_columns(age=pl.col("age").cast(pl.String).str.strip_suffix(".0")).write_csv("late.csv")
    assert run("score", "model.upturn", "late.csv", "-o", "late.parquet", "--jobs", 1).code == 0
    expected = load(shop / "model.upturn").predict(late.select(FEATURES))
    assert np.array_equal(pl.read_parquet("late.parquet")["uplift"].to_numpy(), expected)


@pytest.mark.parametrize("name", ["late.csv", "late.jsonl", "late.parquet"])
def test_a_value_that_is_no_number_is_named(run, mail, shop, name):
    """With its file, row, column and value, in our words, far behind the rows that types are guessed from."""
    people = pl.concat([mail.select("customer", *FEATURES)] * 6)
    late = people.with_columns(
        age=pl.when(pl.int_range(pl.len()) == 11_000).then(pl.lit("forty")).otherwise(pl.col("age").cast(pl.String))
    )
    if name.endswith("csv"):
        late.write_csv(name)
    elif name.endswith("parquet"):
        late.write_parquet(name)
    else:
        rows = [{**row, "age": row["age"] if row["age"] == "forty" else int(row["age"])} for row in late.to_dicts()]
        (shop / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    for line in (
        ("score", "model.upturn", name, "-o", "never.parquet"),
        ("target", "model.upturn", name, "--fraction", 0.1),
    ):
        ran = run(*line, "--quiet")
        assert ran.code == 2
        assert ran.err.count("\n") == 1
        assert "forty" in ran.err
        assert name in ran.err
        assert "a number" in ran.err
        assert "row 11,001 of column 'age'" in ran.err
        assert not any(word in ran.err for word in ("dtype", "infer_schema", "f64", "str`"))
    assert not (shop / "never.parquet").exists()


def test_whole_numbers_first_and_fractions_later_in_json(run, mail, shop):
    people = pl.concat([mail.select("customer", *FEATURES)] * 6).to_dicts()
    for place, row in enumerate(people):
        row["age"] += 0.5 * (place > 10_500)
    (shop / "late.jsonl").write_text("".join(json.dumps(row) + "\n" for row in people))
    assert run("score", "model.upturn", "late.jsonl", "-o", "late.parquet").code == 0
    expected = load(shop / "model.upturn").predict(pl.DataFrame(people).select(FEATURES))
    assert np.array_equal(pl.read_parquet("late.parquet")["uplift"].to_numpy(), expected)


def test_nothing_is_written_when_something_fails(run, mail, shop):
    bad = mail.with_columns(age=pl.when(pl.int_range(pl.len()) == 1999).then(float("inf")).otherwise("age"))
    bad.write_parquet("bad.parquet")
    (shop / "kept.parquet").write_text("precious")
    before = set(shop.iterdir())
    ran = run("score", "model.upturn", "bad.parquet", "-o", "kept.parquet")
    assert ran.code == 2
    assert "the table holds infinite numbers in columns 'age'" in ran.err
    assert (shop / "kept.parquet").read_text() == "precious"
    assert set(shop.iterdir()) == before


def test_what_was_left_behind_by_force_goes_after_an_hour(run, shop):
    left = [shop / f".s.csv.{pid}-0123abcd.tmp.csv" for pid in (1, 2)]
    others = [
        shop / name for name in (".s.csv.1-0123abcd.tmp.csv.gz", ".other.csv.1-0123abcd.tmp.csv", ".s.csv.tmp.csv")
    ]
    for file in (*left, *others):
        file.write_text("half")
    for file in (left[0], *others):
        os.utime(file, (0, 0))
    assert run("score", "model.upturn", "new.csv", "-o", "s.csv", "-q").code == 0
    assert [file.exists() for file in (*left, *others)] == [False, True, True, True, True]
    for file in (left[1], *others):
        file.unlink()


def test_evaluate(run, shop, mail):
    from upturn.metrics import auuc, uplift_curve

    ran = run("evaluate", "model.upturn", "new.csv", "--json", "--plots", "plots", "--curves", "curves.csv")
    people = mail.reverse()
    score = load(shop / "model.upturn").predict(people.select(FEATURES))
    expected = auuc(people["visit"], score, people["segment"], interval=0.95)
    assert ran.json["metrics"]["auuc"]["value"] == pytest.approx(float(expected))
    assert ran.json["metrics"]["auuc"]["low"] == pytest.approx(expected.low)
    assert len(ran.json["curves"]) == 101
    curve = uplift_curve(people["visit"], score, people["segment"], interval=0.95)
    assert ran.json["curves"][30]["gain"] == pytest.approx(float(curve(0.3)))
    assert ran.json["curves"][30]["low"] < ran.json["curves"][30]["gain"] < ran.json["curves"][30]["high"]
    assert len(ran.json["deciles"]) == 10
    assert sorted(path.name for path in (shop / "plots").iterdir()) == ["deciles.png", "qini.png", "uplift.png"]
    assert pl.read_csv("curves.csv").height == 101
    assert "Predicted and observed effect" in run("evaluate", "model.upturn", "new.csv").out
    warned = run("evaluate", "model.upturn", "mail.csv", "--json")
    assert any("what is measured here is too good" in note for note in warned.json["notes"])


def test_clusters_are_passed_on(run, shop, mail):
    """Intervals of evaluate and target are those of whole households."""
    from upturn.metrics import auuc
    from upturn.policy import target

    people = mail.reverse().with_columns(household=pl.arange(0, mail.height) // 3)
    people.write_csv("homes.csv")
    score = load(shop / "model.upturn").predict(people.select(FEATURES))
    ran = run("evaluate", "model.upturn", "homes.csv", "--group", "household", "--json", "--plots", "drawn")
    expected = auuc(people["visit"], score, people["segment"], interval=0.95, groups=people["household"])
    assert ran.json["metrics"]["auuc"]["low"] == pytest.approx(expected.low)
    ran = run("target", "model.upturn", "homes.csv", "--group", "household", "--fraction", 0.2, "--json")
    plan = target(score, fraction=0.2, y=people["visit"], treatment=people["segment"], groups=people["household"])
    assert ran.json["gain"]["low"] == pytest.approx(plan.gain.low)


def test_target(run, shop, mail):
    from upturn.policy import target

    line = (
        "target",
        "model.upturn",
        "new.csv",
        "--budget",
        300,
        "--cost",
        1.2,
        "--value",
        25,
        "-o",
        "list.csv",
        "--json",
    )
    ran = run(*line)
    people = mail.reverse()
    score = load(shop / "model.upturn").predict(people.select(FEATURES))
    plan = target(score, budget=300, cost=1.2, value=25, y=people["visit"], treatment=people["segment"])
    assert ran.json["treated"] == plan.n_treated == 250
    assert ran.json["measured"] is True
    assert ran.json["gain"]["value"] == pytest.approx(float(plan.gain))
    assert ran.json["profit"]["low"] == pytest.approx(plan.profit.low)
    listed = pl.read_csv("list.csv", schema_overrides={"customer": pl.String})
    assert listed.columns == ["customer", "arm", "uplift"]
    assert listed["customer"].to_list() == people["customer"].to_numpy()[plan.order].tolist()
    assert listed["uplift"].to_list() == sorted(listed["uplift"], reverse=True)
    assert set(listed["arm"]) == {"mail"}
    run("target", "model.upturn", "new.csv", "--fraction", 0.1, "-o", "all.parquet", "--everyone")
    everyone = pl.read_parquet("all.parquet")
    assert everyone["arm"].value_counts().sort("arm")["count"].to_list() == [1800, 200]
    people.drop("visit", "segment").write_parquet("people.parquet")
    predicted = run("target", "model.upturn", "people.parquet", "--budget", 100, "--cost", "mail=2", "--json").json
    assert predicted["measured"] is False
    assert predicted["treated"] == 50
    people.with_columns(price=pl.lit(2.0)).write_parquet("priced.parquet")
    priced = run("target", "model.upturn", "priced.parquet", "--budget", 100, "--cost", "price", "--json").json
    assert priced["treated"] == 50


def test_target_says_that_scores_of_machines_are_no_effects(run):
    assert run("fit", "mail.csv", *FLAGS, "--model", "svm", "-o", "svm.upturn").code == 0
    said = "scores of UpliftSVM put people in an order and are no effects"
    assert said in run("target", "svm.upturn", "new.csv", "--fraction", 0.1).err
    assert "are no effects" not in run("target", "model.upturn", "new.csv", "--fraction", 0.1).err


@pytest.mark.parametrize(
    "line",
    [
        "fit mail.csv --model tree -o leak.upturn",
        "compare mail.csv --models tree,t --repeats 2",
        "select mail.csv --method kl",
        "report mail.csv --model tree --models t --folds 2 -o page.html",
    ],
)
def test_what_learns_names_leaks(run, line, tmp_path):
    """Once, and with what to do; nothing where it was dropped."""
    roles = ("--outcome", "visit", "--treatment", "segment", "--roles", tmp_path / "leaks.toml")
    ran = run(*line.split(), *roles, "--json")
    said = [note for note in ran.json["notes"] if "suspected leak" in note]
    assert len(said) == 1
    assert said[0].startswith("clicks: suspected leak, wherever it is not 0 (")
    assert said[0].endswith("(--drop clicks if it was measured after the treatment)")
    ran = run(*line.split(), *roles, "--drop", "clicks", "--json")
    assert not [note for note in ran.json["notes"] if "suspected leak" in note]


def test_select(run):
    assert run("select", "--json").json["kept"] == ["age"]
    table = run("select", "--method", "f", "--best", 1, "-o", "columns.csv").out
    assert table.splitlines()[:3][-1].startswith("age")
    assert pl.read_csv("columns.csv")["column"][0] == "age"


def test_show_and_export(run, shop):
    shown = run("show", "model.upturn").out
    assert shown.startswith("UpliftForest: mail against control, written by upturn")
    assert "parameters: control='control', max_depth=3, n_estimators=10, random_state=0" in shown
    assert "region: 3 levels (north, south, west)" in shown
    table = pl.read_csv(shop / "mail.csv")
    sizes = table.group_by("segment").agg(rows=pl.len(), mean=pl.col("visit").mean()).sort("segment")
    assert f"fitted to: 2,000 rows of {shop / 'mail.csv'}" in shown
    for arm, rows, mean in sizes.iter_rows():
        assert f"\n  {arm}: {rows:,} rows, visit {mean:.4g} on average\n" in shown
    assert "\ntree 0\neffects and outcomes per 1,000 people\nall: effect" in shown
    about = run("show", "model.upturn", "--json").json
    assert about["arms"] == ["mail"]
    assert [arm["arm"] for arm in about["data"]["fitted to"]] == ["control", "mail"]
    assert about["columns"][0] == {"name": "age", "kind": "number"}
    run("export", "model.upturn", "--to", "json", "-o", "model.json")
    exported = json.loads((shop / "model.json").read_text())
    assert len(exported["trees"]) == 10
    assert exported["trees"][0] == json.loads(json.dumps(load("model.upturn").export_json(0)))
    assert run("export", "model.upturn", "--to", "text").out.count("\ntree ") == 10


def test_export_as_text_for_machines(run, shop):
    plain = run("export", "model.upturn", "--to", "text")
    ran = run("export", "model.upturn", "--to", "text", "--json")
    assert ran.json["content"] + "\n" == plain.out
    assert (ran.json["command"], ran.json["to"]) == ("export", "text")
    assert run("export", "model.upturn", "--json").json == run("export", "model.upturn").json


def test_show_of_a_model_that_says_nothing_of_its_data(run, shop):
    model = load("model.upturn")
    model.save("bare.upturn")
    bare = run("show", "bare.upturn")
    assert bare.code == 0
    assert "fitted to" not in bare.out
    for about in ([], {"data": "x"}, {"data": "x", "outcome": "y", "treatment": "t", "fitted to": [{"arm": 1}]}):
        write_model(model, "odd.upturn", about)  # anybody may write anything there
        assert run("show", "odd.upturn").out == bare.out


def test_a_table_with_other_arms_than_the_model(run, mail):
    """Measured is what both know; whom to treat is then predicted only."""
    rng = np.random.default_rng(0)
    offers = mail.with_columns(segment=pl.Series(rng.choice(["control", "mail", "call"], len(mail)).tolist()))
    offers.write_csv("offers.csv")
    roles = ("--outcome", "visit", "--treatment", "segment", "--roles", "offers.toml")
    assert run("fit", "offers.csv", *roles, *SMALL, "--drop", "clicks", "-o", "offers.upturn").code == 0
    whole = run("evaluate", "offers.upturn", "offers.csv", *roles, "--json").json
    part = offers.filter(pl.col("segment") != "call")
    part.write_csv("part.csv")
    ran = run("evaluate", "offers.upturn", "part.csv", *roles, "--json").json
    assert ran["arms"] == ["mail"]
    assert ran["rows"] == len(part)
    mine = [row for row in whole["deciles"] if row["arm"] == "mail"]
    assert [row["predicted"] for row in ran["deciles"]] == [row["predicted"] for row in mine]
    assert any("measured is mail against control" in note for note in ran["notes"])
    more = offers.with_columns(pl.col("segment").replace("call", "sms"))
    more.write_csv("more.csv")
    ran = run("evaluate", "offers.upturn", "more.csv", *roles, "--json").json
    assert (ran["arms"], ran["rows"]) == (["mail"], len(part))
    chosen = run("target", "offers.upturn", "more.csv", "--fraction", "0.1", *roles, "--json").json
    assert chosen["measured"] is False
    assert any("gains are predicted, not measured" in note for note in chosen["notes"])
    offers.filter(pl.col("segment") != "control").write_csv("none.csv")
    refused = run("evaluate", "offers.upturn", "none.csv", *roles)
    assert refused.code == 2
    assert "there is nothing to measure; it takes control" in refused.err


def test_costs_in_columns_of_a_model_of_several_arms(run, mail):
    rng = np.random.default_rng(0)
    offers = mail.with_columns(
        segment=pl.Series(rng.choice(["control", "mail", "call"], len(mail)).tolist()),
        price=pl.Series(rng.random(len(mail))),
    )
    offers.write_csv("priced.csv")
    roles = ("--outcome", "visit", "--treatment", "segment", "--roles", "priced.toml", "--json")
    flags = ("--drop", "clicks,price", *SMALL, "-o", "priced.upturn")
    assert run("fit", "priced.csv", *roles, *flags).code == 0
    money = ("--value", "5", "--budget", "50", *roles)
    model = load("priced.upturn")
    score = model.predict(offers.select(FEATURES))
    price = offers["price"].to_numpy()
    for cost, by_arm in (("price", [price, price]), ("call=2,mail=price", [np.full(len(offers), 2.0), price])):
        found = run("target", "priced.upturn", "priced.csv", "--cost", cost, *money).json
        plan = target(score, cost=np.column_stack(by_arm), value=5.0, budget=50.0, arms=model.arms_, control="control")
        assert found["treated"] == plan.n_treated
        assert found["cost"] == pytest.approx(plan.cost)
    refused = run("target", "priced.upturn", "priced.csv", "--cost", "call=2", *money)
    assert "there is no cost of 'mail'" in refused.err


def test_compare_goes_on_where_it_stopped(run, shop):
    line = (
        "compare",
        "--models",
        "forest,t",
        "--repeats",
        3,
        "--set",
        "forest.n_estimators=5",
        "--json",
        "--resume",
        "r.jsonl",
    )
    first = run(*line, "-o", "table.csv")
    assert [row["model"] for row in first.json["models"]] == ["forest", "t"]
    difference = first.json["models"][1]
    assert difference["low"] < difference["difference"] < difference["high"]
    assert len(first.json["scores"]["t"]) == 3
    lines = (shop / "r.jsonl").read_text().splitlines()
    assert len(lines) == 6
    assert run(*line).json["models"] == first.json["models"]
    assert (shop / "r.jsonl").read_text().splitlines() == lines
    assert pl.read_csv("table.csv")["model"].to_list() == ["forest", "t"]


def test_groups_stay_on_one_side(run, mail):
    from upturn.cli._compare import _splits
    from upturn.cli._load import load as load_table
    from upturn.cli._roles import Roles
    from upturn.cli._say import Voice

    mail.with_columns(household=pl.int_range(pl.len()) // 4).write_parquet("homes.parquet")
    roles = Roles("homes.parquet", "visit", "segment", group="household")
    data = load_table(Voice("compare", quiet=True), roles, "homes.toml")
    assert "household" not in data.X.columns
    for train, test in _splits(data, 3, 0):
        assert not set(data.group[train]) & set(data.group[test])


def test_datasets(run):
    names = [row["name"] for row in run("datasets", "list", "--json").json["datasets"]]
    assert {"hillstrom", "campaign", "colon"} <= set(names)
    ran = run("datasets", "get", "campaign", "--rows", 500, "-o", "campaign.csv", "--truth", "--json")
    assert ran.json["rows"] == 500
    table = pl.read_csv("campaign.csv")
    assert table.columns[-4:] == ["treatment", "outcome", "true_effect_1", "true_effect_2"]
    assert table["age"].null_count() > 0
    run("datasets", "get", "campaign", "--rows", 500, "--seed", 1, "-o", "other.csv")
    assert not pl.read_csv("other.csv")["age"].equals(table["age"])


@pytest.mark.parametrize("flags", [(), ("--quiet",), ("--json", "-q")])
def test_a_download_is_a_note(run, monkeypatch, flags):
    pooch = pytest.importorskip("pooch", reason="downloads need the extra [data]")
    from upturn import datasets
    from upturn.cli import _datasets

    def fetched():
        pooch.get_logger().info("Downloading data from 'somewhere'")
        return datasets.simulate_campaign(50, random_state=0)

    monkeypatch.setattr(_datasets, "_makers", lambda: {"fetched": fetched})
    ran = run("datasets", "get", "fetched", "-o", "fetched.csv", *flags)
    assert ran.code == 0
    assert ran.err == ("" if flags else "Downloading data from 'somewhere'\n")
    if "--json" in flags:
        assert ran.json["notes"] == ["Downloading data from 'somewhere'"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fit --model forrest", "there is no model 'forrest': did you mean 'forest'?"),
        ("fit --model forest --set max_deph=3", "UpliftForest has no parameter 'max_deph'; did you mean 'max_depth'?"),
        ("fit --set max_depth", "expected NAME=VALUE"),
        ("fit --model forest --set n_estimators=0", "n_estimators=0: expected a whole number of at least 1"),
        ("fit -o nowhere/model.upturn", "there is no folder"),
        ("fit --jobs 0", "--jobs 0: expected"),
        ("compare --models forest", "expected at least two models"),
        ("compare --models forest,tt", "there is no model 'tt'"),
        ("compare --baseline x", "it is not among the models forest, t"),
        ("compare --metric auc", "auc"),
        ("compare --set n_estimators=3", "say of which model, as in --set forest.n_estimators=3"),
        ("compare --set x.n=3", "'x' is not compared"),
        ("evaluate nomodel.upturn new.csv", "there is no model 'nomodel.upturn'"),
        ("evaluate new.csv new.csv", "new.csv is not a model file"),
        ("evaluate model.upturn bare.csv", "upturn.toml is about another table than bare.csv"),
        ("score model.upturn few.csv -o s.csv", "has no column 'region', which the model was fitted with"),
        ("score model.upturn new.csv -o s.xlsx", "the name should end in one of .parquet"),
        ("score model.upturn new.csv -o s.csv --id custmer", "has no column 'custmer'; did you mean 'customer'?"),
        ("score", "Missing argument"),
        (
            "score model.upturn mail.csv new.csv",
            "put a pattern of several files in quotes, as in upturn check 'part-*.csv'",
        ),
        ("evaluate model.upturn nowhere.csv --metrics auc", "--metrics auc: did you mean 'auuc'?"),
        ("evaluate model.upturn nowhere.csv --interval 95", "--interval 95.0: expected"),
        ("evaluate model.upturn nowhere.csv --plots mail.csv", "mail.csv is a file; expected a folder"),
        ("evaluate model.upturn nowhere.csv --plots mail.csv/a/b", "mail.csv is a file; expected a folder"),
        ("target model.upturn nowhere.csv --budget -5", "--budget -5.0: expected a number of people, 0 or more"),
        (
            "target model.upturn nowhere.csv --budget -5 --cost 1",
            "--budget -5.0: expected an amount of money, 0 or more",
        ),
        ("target model.upturn new.csv --cost -2", "cost holds 1 negative value (smallest -2)"),
        ("report mail.csv --group region --model tree", "--group makes 3 clusters, too few for 5 folds"),
        ("report nowhere.csv --budget -5", "--budget -5.0: expected"),
        ("report nowhere.csv --audience trial --cost 2", "--audience trial speaks of no money: leave out --cost"),
        ("fit infinite.csv --model tree", "the table holds infinite numbers in columns"),
        ("check https://shop.example/mail.csv", "is an address: fetch the file first"),
        ("check --roles new.csv mail.csv", "--roles names a file such as upturn.toml, and DATA the table"),
        ("check --roles . mail.csv", "expected a file such as upturn.toml"),
        ("target model.upturn new.csv --cost post=3", "there is no arm 'post'; there is only 'mail'"),
        (
            "target model.upturn new.csv --cost mail=x",
            "--cost x: it is no number, and no column of new.csv; there are customer",
        ),
        (
            "target model.upturn new.csv --cost region",
            "--cost region: the column holds String values; expected numbers",
        ),
        ("target model.upturn new.csv --value mail=3", "--value mail=3: expected a number or a column"),
        ("target model.upturn new.csv --value valu", "--value valu: it is no number, and no column of new.csv"),
        ("score modle.upturn new.csv", "there is no model 'modle.upturn': did you mean 'model.upturn'?"),
        ("show nothing.upturn", "there is no model 'nothing.upturn': make one with `upturn fit DATA"),
        ("report nowhere.csv -o page.pdf", "page.pdf: the page is HTML, so its name should end in .html"),
        ("target model.upturn new.csv --fraction 3", "--fraction 3.0: expected"),
        ("target model.upturn new.csv --fraction 0.2 --budget 300", "--fraction 0.2 and --budget 300.0 both limit"),
        ("datasets list --jobs 0", "--jobs 0: expected a number of threads"),
        ("select --method umodel", "did you mean 'umodl'?"),
        ("show model.upturn --tree 99", "the trees are numbered from 0 to 9"),
        ("export model.upturn --to onnx", "--to onnx: there are json, text"),
        ("datasets get hilstrom", "there is no data set 'hilstrom': did you mean 'hillstrom'?"),
        ("datasets get campaign --set outcom=revenue", "did you mean 'outcome'?"),
        ("datasets get hillstrom --rows 5", "this data set is a real one"),
    ],
)
def test_errors_are_one_line(run, mail, line, message):
    mail.select("age", "customer").write_csv("few.csv")
    mail.select(FEATURES).write_csv("bare.csv")
    mail.with_columns(age=pl.col("age") / (pl.col("age") - 18)).write_csv("infinite.csv")
    ran = run(*line.split(), "--quiet")
    assert ran.code == 2
    assert ran.out == ""
    assert message in ran.err
    assert ran.err.startswith("upturn: ")
    assert ran.err.count("\n") == 1
    assert not any(word in ran.err for word in ("(s)", "or None", "audience="))


def test_an_option_without_its_value(run):
    assert "requires an argument; see upturn fit --help" in run("fit", "--set").err


@pytest.mark.parametrize(
    "line",
    [
        "fit mail.csv -o mail.csv",
        "fit -o ./link.csv",
        "fit -o upturn.toml",
        "report table.html -o table.html",
        "compare -o mail.csv",
        "compare --resume mail.csv",
        "compare --resume kept.csv -o kept.csv",
        "select -o mail.csv",
        "score model.upturn mail.csv -o mail.csv",
        "score model.upturn part-*.csv -o part-2.csv",
        "score kept.csv mail.csv -o kept.csv",
        "target model.upturn mail.csv -o mail.csv",
        "target kept.csv mail.csv -o kept.csv",
        "evaluate model.upturn new.csv --curves new.csv",
        "evaluate kept.csv new.csv --curves kept.csv",
        "export model.upturn -o model.upturn",
    ],
)
def test_what_is_read_is_not_overwritten(run, shop, mail, line):
    for name in ("part-1.csv", "part-2.csv"):
        mail.head(50).write_csv(name)
    (shop / "kept.csv").write_bytes((shop / "model.upturn").read_bytes() if line[0] in "ste" else b"")
    (shop / "link.csv").unlink(missing_ok=True)
    (shop / "link.csv").symlink_to("mail.csv")
    mail.write_csv("table.html")
    before = {path.name: path.read_bytes() for path in shop.iterdir() if path.is_file()}
    ran = run(*line.split())
    assert ran.code == 2, ran.err
    said = ran.err.strip().splitlines()[-1]
    assert "is read by this command, and would be overwritten" in said or "holds something else than results" in said
    assert {path.name: path.read_bytes() for path in shop.iterdir() if path.is_file()} == before


def examples():
    from upturn.cli._app import _COMMANDS

    return {name: example for name, (_, example, _) in _COMMANDS.items() if name not in ("demo", "compile")}


@pytest.mark.parametrize("name", examples())
def test_the_example_of_the_help_works(run, name, mail):
    mail.write_csv("people.csv")
    example = examples()[name].replace("--repeats 20", "--repeats 2").replace("-o model.upturn", "-o example.upturn")
    assert " ".join(run(name, "--help").out.split()).endswith(f"Example: {examples()[name]}")
    roles = () if name in ("show", "export") else ("--roles", "examples.toml")
    assert run(*example.split()[1:], *roles).code in ((0, 1) if name == "check" else (0,))


def test_models_by_name_and_by_class():
    from upturn.cli._models import MODELS, class_name, make_model
    from upturn.persist import REGISTRY

    for short, name in MODELS.items():
        assert type(make_model(short, (), control="c", seed=3, jobs=1)).__name__ == name
        assert class_name(name.lower()) == name
    automatic = make_model("auto", ("effort=normal",), control="c", seed=3, jobs=1)
    assert (automatic.effort, automatic.metric, automatic.random_state) == ("normal", None, 3)
    others = {"FilterSelector", "UMODLDiscretizer", "UMODLSelector", "UpliftCalibrator"}
    assert set(MODELS.values()) == set(REGISTRY) - others  # a new model has a name here too


def test_a_model_of_one_arm_is_fitted_arm_by_arm(run):
    run("datasets", "get", "campaign", "--rows", 600, "-o", "campaign.csv", "--quiet")
    flags = ("--outcome", "outcome", "--treatment", "treatment", "--roles", "campaign.toml")
    ran = run("fit", "campaign.csv", *flags, "--model", "transformation", "-o", "arms.upturn", "--json")
    assert (ran.json["model"], ran.json["arms"]) == ("OneVsControl", ["call", "coupon"])


def test_a_defect_is_not_hidden(run, monkeypatch):
    from upturn.cli import _show

    def broken(model):
        raise AssertionError("a defect")

    monkeypatch.setitem(_show.EXPORTS, "json", broken)
    with pytest.raises(AssertionError) as caught:
        run("export", "model.upturn")
    assert caught.value.__notes__ == ["This is a defect of upturn: please report it, with the lines above."]


def test_an_error_that_no_line_of_ours_raised_is_a_defect(run, monkeypatch):
    """Not so one of another library, which may have looked at what it was given; whatever says `raise` is said in words."""
    from upturn.cli import _show

    monkeypatch.setitem(_show.EXPORTS, "json", lambda: None)  # takes no model
    with pytest.raises(TypeError, match="takes 0 positional arguments") as caught:
        run("export", "model.upturn")
    assert caught.value.__notes__ == ["This is a defect of upturn: please report it, with the lines above."]

    def broken(model):
        return [one for one, _ in model.arms_]

    monkeypatch.setitem(_show.EXPORTS, "json", broken)
    ran = run("export", "model.upturn")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "too many values to unpack" in ran.err
    monkeypatch.setattr("upturn.cli._app._HOUSE", __file__)
    with pytest.raises(ValueError, match="too many values to unpack"):
        run("export", "model.upturn")

    def refuses(model):
        raise ValueError(f"{model.control_}: in words")

    monkeypatch.setitem(_show.EXPORTS, "json", refuses)
    assert run("export", "model.upturn").err == "upturn: control: in words\n"


@pytest.mark.parametrize("line", [(), ("datasets",)])
def test_without_a_command_there_is_the_ordinary_help(run, line):
    ran = run(*line)
    assert ran.code in (0, 2)  # as the parser thinks
    assert ran.err == ""
    assert ran.out == run(*line, "--help").out
    assert ran.out.count("\n") > 5


def test_without_a_command_a_terminal_has_help_in_colour_and_no_error(run, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    ran = run("datasets")
    assert ran.err == ""
    assert "Commands" in ran.out
    assert ran.out.strip() == run("datasets", "--help").out.strip()


def test_evaluate_needs_an_outcome_somewhere(run, mail):
    for name, holes in {
        "outcomes.csv": {"visit": pl.lit(None, pl.Int64)},
        "arms.csv": {"segment": pl.lit(None, pl.String)},
    }.items():
        mail.with_columns(**holes).write_csv(name)
    ran = run("evaluate", "model.upturn", "outcomes.csv", "-q")
    assert (ran.code, "every value of the outcome is missing in outcomes.csv" in ran.err) == (2, True)
    ran = run("evaluate", "model.upturn", "arms.csv", "-q")
    assert (ran.code, "arms.csv has no row with both a treatment and an outcome" in ran.err) == (2, True)


def test_dates_that_are_kept_are_days(run, mail):
    assert run("fit", "mail.csv", "--keep", "joined", *SMALL, "-o", "dated.upturn").code == 0
    assert run("score", "dated.upturn", "new.csv", "-o", "dated.parquet").code == 0
    days = mail.select(
        pl.col("age"), (pl.col("joined") - pl.date(1970, 1, 1)).dt.total_days().cast(float).alias("joined")
    )
    people = mail.select("region", "spend_before", "member").hstack(days).reverse()
    model = load("dated.upturn")
    assert np.array_equal(pl.read_parquet("dated.parquet")["uplift"].to_numpy(), model.predict(people))


@pytest.mark.parametrize("name", ["texts.jsonl", "texts.parquet"])
def test_dates_that_are_text_are_left_out_kept_and_scored_as_those_of_a_csv(run, mail, name):
    texts = mail.with_columns(pl.col("joined").cast(pl.String))
    texts.write_ndjson(name) if name.endswith("jsonl") else texts.write_parquet(name)
    flags = (*FLAGS, "--roles", f"{name}.toml")
    ran = run("check", name, *flags, "--json")
    assert ran.json["columns"]["found_dates"] == ["joined"]
    assert run("fit", name, *flags, "--keep", "joined", *SMALL, "-o", "texts.upturn").code == 0
    assert run("fit", "mail.csv", *FLAGS, "--keep", "joined", *SMALL, "-o", "csv.upturn", "--roles", "c.toml").code == 0
    scored = []
    for model in ("texts.upturn", "csv.upturn"):
        for table in (name, "mail.csv"):
            assert run("score", model, table, "-o", "s.parquet").code == 0
            scored.append(pl.read_parquet("s.parquet")["uplift"].to_numpy())
    assert all(np.array_equal(scored[0], other) for other in scored[1:])


def test_american_dates_are_named_and_left_out(run, mail):
    texts = mail.with_columns(pl.col("joined").dt.strftime("%m/%d/%Y"))
    for name in ("us.csv", "us.parquet"):
        texts.write_csv(name) if name.endswith("csv") else texts.write_parquet(name)
        ran = run("check", name, *FLAGS, "--roles", f"{name}.toml", "--json")
        assert ran.json["columns"]["found_dates"] == ["joined"]
        assert any(note.startswith("joined: dates, as '01/01/2018'; left out") for note in ran.json["notes"])


def lines_in(page, label):
    """What a page says makes it again."""
    import html
    import re

    return html.unescape(re.search(rf'aria-label="{label}"><code>(.*?)</code>', page, re.DOTALL)[1])


def test_report_is_one_page_that_says_how_to_make_it_again(run, shop, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    roles = ("--outcome", "visit", "--treatment", "segment", "--drop", "clicks,joined", "--roles", "report.toml")
    flags = ("--models", "tree", "--cost", "2", "--value", "30", "--folds", "2", "-o", "page.html")
    ran = run("report", "mail.csv", *roles, *SMALL, *flags, "--json")
    assert ran.code == 0
    assert ran.json["kind"] in ("recommend", "rule", "random")
    assert ran.json["rows"] == 2000
    page = (shop / "page.html").read_text(encoding="utf-8")
    assert ran.json["answer"].split(":")[0] in page
    line = lines_in(page, "Command")
    assert line.startswith("upturn report mail.csv --outcome visit --treatment segment --control control")
    assert run(*shlex.split(line)[1:]).code == 0
    assert (shop / "page.html").read_text(encoding="utf-8") == page
    again = made_again(page)
    assert again["page"].answer.sentence == ran.json["answer"]
    assert list(again["page"].scores) == ["forest", "tree", "one rule"]


def test_columns_with_commas_in_the_lines_of_a_page(run, shop, mail, tmp_path):
    mail.rename({"member": "size, cm", "clicks": "a, b"}).write_csv(shop / "commas.csv")
    roles = ("--outcome", "visit", "--treatment", "segment", "--drop", "size, cm", "--drop", "a, b")
    made = ("--models", "", "--folds", "2", "-o", str(tmp_path / "page.html"), "--roles", str(tmp_path / "r.toml"))
    assert run("report", "commas.csv", *roles, *SMALL, *made).code == 0
    line = lines_in((tmp_path / "page.html").read_text(encoding="utf-8"), "Command")
    assert "--drop 'size, cm' --drop 'a, b'" in line
    assert run(*shlex.split(line)[1:]).code == 0


def test_the_next_list_is_learnt_for_from_the_same_table_with_the_same_roles(run, shop, mail, tmp_path, monkeypatch):
    """Whatever the upturn.toml says that lies where the lines are run."""
    works = (
        pl.col("age").lt(45) & pl.col("region").eq("north") & pl.col("segment").eq("mail")
    )  # as no single split tells
    more = {
        "visit": (works | (pl.int_range(pl.len()) % 5 == 0)).cast(int),
        "w": pl.lit(1.0),
        "house": pl.int_range(pl.len()) // 2,
    }
    mail.with_columns(**more).write_csv(shop / "other.csv")
    roles = (
        "--outcome",
        "visit",
        "--treatment",
        "segment",
        "--drop",
        "clicks,w",
        "--group",
        "house",
        "--id",
        "customer",
    )
    files = (str(shop / "other.csv"), "--roles", str(tmp_path / "mine.toml"))
    page = (
        "--models",
        "",
        "--folds",
        "2",
        "--cost",
        "8",
        "--value",
        "30",
        "--seed",
        "3",
        "-o",
        str(tmp_path / "page.html"),
    )
    assert run("report", *files, *roles, "--keep", "joined", *SMALL, *page).code == 0
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    text = 'data = "mail.csv"\noutcome = "visit"\ntreatment = "region"\nweight = "w"\ndrop = ["age"]\n'
    (folder / "upturn.toml").write_text(text)
    mail.drop("visit", "segment").write_csv("next.csv")
    learn, choose = lines_in((tmp_path / "page.html").read_text(encoding="utf-8"), "Next").splitlines()
    assert run(*shlex.split(learn)[1:]).code == 0
    model = load("model.upturn")
    assert list(model.feature_names_in_) == ["joined", "age", "region", "spend_before", "member"]
    assert (model.n_estimators, model.max_depth, model.random_state) == (10, 3, 3)
    ran = run("show", "model.upturn", "--json").json
    assert ran["data"]["data"] == str(shop / "other.csv")
    assert [arm["arm"] for arm in ran["data"]["fitted to"]] == ["control", "mail"]
    assert run(*shlex.split(choose)[1:]).code == 0
    assert pl.read_csv("list.csv").columns == ["customer", "arm", "uplift"]


def test_a_cost_in_a_column_that_is_no_feature(run, shop, mail, tmp_path):
    mail.with_columns(postage=pl.when(pl.col("age") < 30).then(1.0).otherwise(2.0)).write_csv("posted.csv")
    roles = (*FLAGS[:-1], "clicks,postage", "--roles", str(tmp_path / "mine.toml"))
    prices = ("--cost", "postage", "--value", "30", "--models", "", "--folds", "2", "-o", "page.html")
    ran = run("report", "posted.csv", *roles, *SMALL, *prices, "--json")
    assert ran.code == 0, ran.err
    page = (shop / "page.html").read_text(encoding="utf-8")
    assert "All costs, times" in page or ran.json["kind"] == "random"
    assert made_again(page)["page"].answer.sentence == ran.json["answer"]


def made_again(page):
    """What the lines of Python on a page leave behind."""
    left = {}
    exec(lines_in(page, "Python").replace("page.html", "again.html"), left)
    return left


def test_lines_of_python_read_the_table_as_the_command_did(run, shop, mail):
    """A date that is kept, words for the outcome, gaps in the treatment, another delimiter, a decimal comma."""
    strange = mail.with_columns(
        pl.when(pl.col("visit") == 1).then(pl.lit("Yes")).otherwise(pl.lit("No")).alias("visit"),
        pl.when(pl.int_range(pl.len()) % 50 > 0).then("segment").alias("segment"),
        pl.col("spend_before").round(1).cast(pl.String).str.replace(".", ",", literal=True),
    )
    strange.write_csv(shop / "strange.csv", separator=";")
    flags = (
        "--keep",
        "joined",
        "--drop",
        "clicks",
        "--model",
        "tree",
        "--models",
        "",
        "--folds",
        "2",
        "-o",
        "page.html",
    )
    roles = ("--outcome", "visit", "--treatment", "segment", "--roles", "strange.toml")
    ran = run("report", "strange.csv", *roles, *flags, "--json")
    assert ran.code == 0, ran.err
    again = made_again((shop / "page.html").read_text(encoding="utf-8"))
    assert again["X"]["spend_before"].dtype == again["X"]["joined"].dtype == pl.Float64
    assert again["page"].answer.sentence == ran.json["answer"]
    assert len(again["page"].rows) == ran.json["rows"] == 1960


def test_what_takes_long_says_how_far_it_is(run, monkeypatch):
    from upturn.cli import _say

    monkeypatch.setattr(_say, "_EVERY", -1.0)
    ran = run("report", "mail.csv", *FLAGS, "--model", "tree", "--models", "t", "--folds", "2", "-o", "page.html")
    lines = [line for line in ran.err.splitlines() if line.startswith("2,000 rows and ")]
    steps = ["checking the experiment"]
    steps += [f"{name}, fold {fold} of 2" for name in ("UpliftTree", "t", "one rule") for fold in (1, 2)]
    steps += ["measuring", "describing"]
    assert [line.partition(": ")[2] for line in lines[:-1]] == [f"step {n} of 9, {s}" for n, s in enumerate(steps, 1)]
    for line, stages in (
        ("check mail.csv --drop clicks,joined", ["checking 2,000 rows and 4 features"]),
        (
            "evaluate model.upturn new.csv --plots plots",
            ["scoring new.csv", "measuring 2,000 rows", "drawing into plots"],
        ),
        ("target model.upturn new.csv --fraction 0.1", ["scoring new.csv", "choosing from 2,000 people"]),
    ):
        said = [text.rpartition(":")[0] for text in run(*line.split()).err.splitlines() if text.endswith(" s")]
        assert said == stages


def test_report_recommends_nothing_by_a_leak(run, shop):
    roles = ("--outcome", "visit", "--treatment", "segment", "--drop", "joined", "--roles", "leak.toml")
    ran = run("report", "mail.csv", *roles, "--model", "tree", "--folds", "2", "--models", "", "--json")
    assert ran.code == 0
    assert ran.json["kind"] == "unsound"
    assert ran.json["answer"].startswith("No recommendation: clicks may have been measured after the treatment")
    assert "Columns that may know too much" in (shop / "report.html").read_text(encoding="utf-8")


def test_the_page_says_what_was_left_out(run, shop, mail):
    """And the same where the file of roles of the first run names it."""
    gaps = mail.with_columns(
        pl.when(pl.int_range(pl.len()) >= 12).then("segment").alias("segment"),
        pl.when(pl.int_range(pl.len()) != 40).then("visit").alias("visit"),
        american=pl.col("joined").dt.strftime("%m/%d/%Y"),
    )
    gaps.write_csv(shop / "gaps.csv")
    flags = ("--model", "tree", "--models", "", "--folds", "2", "--roles", "gaps.toml", "-o", "page.html")
    expected = ["customer identifier", "clicks dropped", "joined dates", "american dates"]
    expected += ["12 rows without an arm", "1 row without an outcome"]
    for more in (FLAGS, ("--audience", "trial")):
        assert run("report", "gaps.csv", *more, *flags).code == 0
        page = (shop / "page.html").read_text(encoding="utf-8")
        assert sorted(rows_of(page, "Left out")) == sorted(expected)
        assert "12 more rows say no arm, and are left out of everything." in page
    arms = rows_of(page, "Arms")
    assert arms[-1].split() == ["no", "arm", "given", "12", "0"]
    assert sum(int(row.split()[1].replace(",", "")) for row in arms[:-1]) == 1988


def rows_of(page, label):
    """The rows of a table of a page, cells with blanks between."""
    import re

    table = re.search(rf'aria-label="{label}">(.*?)</table>', page, re.DOTALL)[1]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in table.split("<tr>")[2:]]
    return [" ".join(cells).strip() for cells in rows]


def test_report_refuses_in_one_line(run, shop):
    for flags, said in (
        (("--audience", "boss"), "expected business or trial"),
        (("--audience", "trial", "--cost", "2"), "no money"),
        (("--cost", "prize"), "no column of mail.csv"),
        (("--models", "forrest"), "did you mean"),
        (("-o", "nowhere/page.html"), "there is no folder"),
    ):
        ran = run("report", "mail.csv", *FLAGS, "--model", "tree", *flags)
        assert ran.code == 2
        assert said in ran.err
        assert len(ran.err.strip().splitlines()[-1]) < 400
        assert not list(shop.glob(".*.tmp*"))
