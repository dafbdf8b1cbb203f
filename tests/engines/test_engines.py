"""Tables in parts: the same model as that of the whole table, scores part after part."""

import re
import threading
import time
import weakref
from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import clone

import upturn
from upturn import engines
from upturn.boosting import UpliftBagging, UpliftBoosting
from upturn.engines import _files, _fit, _parts, _sample, _scan
from upturn.engines._gather import Roles
from upturn.engines._learn import learn
from upturn.engines._numbers import Raw
from upturn.engines._places import Here
from upturn.meta import OneVsControl, TLearner
from upturn.svm import UpliftSVM, UpliftSVMCV
from upturn.trees import CTSForest, UCTSForest, UpliftForest, UpliftTree

pl = pytest.importorskip("polars")
N = 3000


def table(seed=0, n=N, arms=("none", "mail"), real=False):
    """A table with numbers, gaps, text, booleans, an outcome and arms by name."""
    rng = np.random.default_rng(seed)
    age, city = rng.normal(40, 12, n).round(1), rng.choice(["Rome", "Oslo", "Kyiv", "Lima"], n)
    arm = rng.choice(list(arms), n)
    lift = 0.3 * (arm != "none") * (age > 40) * (city != "Rome")
    y = lift + rng.normal(size=n) if real else (rng.random(n) < 0.3 + lift).astype(np.int64)
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "age": pl.Series(np.where(rng.random(n) < 0.1, np.nan, age)).fill_nan(None),
            "city": pl.Series(city.tolist()).set(pl.Series(rng.random(n) < 0.05), None),
            "visits": rng.integers(0, 30, n).astype(np.int16),
            "member": rng.random(n) < 0.5,
            "segment": arm,
            "chance": rng.integers(2, 8, n) / 10,
            "weight": np.where(rng.random(n) < 0.05, 0.0, rng.uniform(0.5, 2.0, n)),
            "bought": y,
        }
    )


FEATURES = ["age", "city", "visits", "member", "chance"]
MODELS = {
    "forest": UpliftForest(20, random_state=1),
    "centred": UpliftForest(4, center=True, random_state=1),
    "centred, out of bag": UpliftForest(4, center=True, oob=True, random_state=1),
    "chances of trees": UpliftForest(4, center=True, propensity="trees", random_state=1),
    "chances in a column": UpliftForest(4, propensity="chance", bootstrap=True, random_state=1),
    "honest with groups": UpliftForest(20, honest=True, ci_group_size=2, random_state=1),
    "tree": UpliftTree(max_depth=4),
    "pruned": UpliftTree(prune=True, random_state=1),
    "cts": CTSForest(10, random_state=1),
    "ucts": UCTSForest(10, random_state=1),
    "bagging": UpliftBagging(n_estimators=5, random_state=1),
    "boosting": UpliftBoosting(n_estimators=5, random_state=1),
    "a model of every arm": OneVsControl(UpliftTree(max_depth=3)),
}


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(_scan, "_VALUES", 1)  # 1024 rows a part


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", list(MODELS))
def test_the_model_of_parts_is_that_of_the_whole_table(name, weighted, tmp_path):
    frame = table()
    for i in range(3):  # uneven files, in the order of their names
        frame[[0, 700, 2900][i] : [700, 2900, N][i]].write_parquet(tmp_path / f"part{i}.parquet")
    weight = "weight" if weighted else None
    found = engines.fit(clone(MODELS[name]), tmp_path / "*.parquet", "bought", "segment", weight, FEATURES)
    whole = clone(MODELS[name]).fit(
        frame.select(*FEATURES, "segment", "bought", *([weight] if weight else [])), "bought", "segment", weight
    )
    np.testing.assert_array_equal(found.predict(frame.select(FEATURES)), whole.predict(frame.select(FEATURES)))
    assert found.control_ == "none"
    found.save(tmp_path / "found.upturn")
    whole.save(tmp_path / "whole.upturn")
    assert (tmp_path / "found.upturn").read_bytes() == (tmp_path / "whole.upturn").read_bytes()
    if getattr(found, "oob", False):
        np.testing.assert_array_equal(found.oob_response_, whole.oob_response_)


@pytest.mark.usefixtures("small_parts")
def test_several_arms_real_outcomes_and_numbers_as_labels(tmp_path):
    frame = table(arms=("none", "mail", "call"), real=True)
    found = engines.fit(UpliftForest(10, random_state=0), frame.lazy(), "bought", "segment", features=FEATURES)
    whole = UpliftForest(10, random_state=0).fit(frame.select(FEATURES), frame["bought"], frame["segment"])
    np.testing.assert_array_equal(found.predict(frame.select(FEATURES)), whole.predict(frame.select(FEATURES)))
    numbered = frame.with_columns(segment=(pl.col("segment") != "none").cast(pl.Int8)).drop("id", "weight")
    numbered.write_parquet(tmp_path / "a.parquet")
    found = engines.fit(UpliftForest(10, random_state=0), [tmp_path / "a.parquet"], "bought", "segment")
    assert (found.control_, found.arms_) == (0, [1])
    assert list(found.feature_names_in_) == FEATURES


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize(
    "base",
    [
        UpliftForest(4, center=True, random_state=1),
        UpliftBoosting(n_estimators=3, random_state=1),
        UpliftBagging(n_estimators=3, random_state=1),
        UpliftSVM(),
    ],
)
def test_models_of_several_arms_against_control_are_those_of_the_whole_table(base, weight, tmp_path):
    frame, model = table(arms=("none", "mail", "call")), OneVsControl(base)
    for k, (start, stop) in enumerate(CUTS):
        frame[start:stop].write_parquet(tmp_path / f"{k}.parquet")
    found = engines.fit(clone(model), tmp_path, "bought", "segment", weight, FEATURES)
    columns = [*FEATURES, "segment", "bought", *([weight] if weight else [])]
    whole = clone(model).fit(frame.select(columns), "bought", "segment", weight)
    assert found.arms_ == ["call", "mail"]
    assert same_file(found, whole, tmp_path)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    ("options", "weight"), [({"oob": True}, None), ({"propensity": "trees"}, "weight"), ({"propensity": 0.4}, None)]
)
def test_intervals_are_the_same(options, weight, monkeypatch, tmp_path):
    monkeypatch.setattr("upturn.trees._forest._MANY", 40)
    frame = table(n=2600, real=True)
    frame.write_parquet(tmp_path / "a.parquet")
    model = UpliftForest(40, inference=True, random_state=0, **options)
    found = engines.fit(clone(model), tmp_path, "bought", "segment", weight, FEATURES)
    columns = [*FEATURES, "segment", "bought", *([weight] if weight else [])]
    whole = clone(model).fit(frame.select(columns), "bought", "segment", weight)
    for one, two in zip(
        found.predict_interval(frame.select(FEATURES)), whole.predict_interval(frame.select(FEATURES)), strict=True
    ):
        np.testing.assert_array_equal(one, two)
    if model.oob:
        np.testing.assert_array_equal(found.oob_response_, whole.oob_response_)


# ------------------------------------------------------------------------------------------- ids of rows


WITH_IDS = {
    **{name: model for name, model in MODELS.items() if name != "bagging"},
    "bootstrap": UpliftForest(4, bootstrap=True, random_state=1),
    "boosting that restarts": UpliftBoosting(algorithm="forgetting", restart="strict", n_estimators=8, random_state=3),
    "boosting of every arm": OneVsControl(UpliftBoosting(n_estimators=3, random_state=1)),
    "forest of every arm": OneVsControl(UpliftForest(4, center=True, random_state=1)),
}


def same_file(one, two, tmp_path):
    """Whether two models have the same bytes."""
    one.save(tmp_path / "one.upturn")
    two.save(tmp_path / "two.upturn")
    return (tmp_path / "one.upturn").read_bytes() == (tmp_path / "two.upturn").read_bytes()


def on_a_cluster(model, frame, weight):
    """The model that partitions give, of rows in another order."""
    parts = Here([Raw(i, frame[::-1][a:b]) for i, (a, b) in enumerate(CUTS)])
    spread = clone(model)
    learn(spread, parts, Roles("bought", "segment", weight, FEATURES), "id", "polars")
    return spread


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("name", list(WITH_IDS))
def test_row_ids_make_the_order_of_rows_and_files_irrelevant(name, weight, tmp_path):
    frame = table(arms=("none", "mail", "call") if "every arm" in name else ("none", "mail"))
    mixed, model = frame.sample(fraction=1.0, shuffle=True, seed=5), WITH_IDS[name]
    for k, (start, stop) in enumerate(((1400, 2999), (0, 1400), (2999, N))):
        mixed[start:stop].write_parquet(tmp_path / f"{k}.parquet")
    found = engines.fit(clone(model), tmp_path, "bought", "segment", weight, FEATURES, row_id="id")
    assert same_file(found, on_a_cluster(model, frame, weight), tmp_path)
    if (
        weight is None and "every arm" not in name
    ):  # in memory, rows are numbered as they lie, without those that are left out
        whole = clone(model).fit(frame.select(*FEATURES, "segment", "bought"), "bought", "segment")
        assert same_file(found, whole, tmp_path)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("name", ["forest", "boosting", "a model of every arm"])
def test_row_ids_of_64_bits_draw_as_on_a_cluster(name, tmp_path):
    ids = np.random.default_rng(2).integers(-(2**62), 2**62, N)
    frame, model = table().with_columns(id=ids), WITH_IDS[name]
    found = engines.fit(clone(model), frame.lazy(), "bought", "segment", None, FEATURES, row_id="id")
    assert same_file(found, on_a_cluster(model, frame, None), tmp_path)
    if name == "forest":
        whole = clone(model).fit(frame.select(*FEATURES, "segment", "bought"), "bought", "segment")
        assert not same_file(found, whole, tmp_path)


@pytest.mark.usefixtures("small_parts")
def test_intervals_of_shuffled_rows_with_ids_are_those_of_the_rows_in_order(monkeypatch, tmp_path):
    monkeypatch.setattr("upturn.trees._forest._MANY", 40)
    frame, model = table(n=2600, real=True), UpliftForest(40, inference=True, random_state=0)
    mixed = frame.sample(fraction=1.0, shuffle=True, seed=5)
    found = engines.fit(clone(model), mixed.lazy(), "bought", "segment", None, FEATURES, row_id="id")
    whole = clone(model).fit(frame.select(*FEATURES, "segment", "bought"), "bought", "segment")
    assert same_file(found, whole, tmp_path)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"id": pl.col("id") // 2}, ValueError, "row_id='id' has the same number in several rows"),
        ({"id": pl.when(pl.col("id") > 4).then("id")}, ValueError, "row_id='id' is missing in 5 rows"),
        ({"id": pl.col("id") + 0.5}, TypeError, "whole numbers"),
        ({"id": pl.col("id").cast(pl.String)}, TypeError, "whole numbers"),
    ],
)
@pytest.mark.parametrize("model", [UpliftForest(2), UpliftSVM(), UpliftBoosting(), OneVsControl(UpliftTree())])
def test_ids_that_are_none_are_refused_in_words(change, error, said, model):
    frame = table().with_columns(**change)
    with pytest.raises(error, match=said):
        engines.fit(model, frame.lazy(), "bought", "segment", features=FEATURES, row_id="id")


def test_the_column_of_ids_is_no_feature():
    frame = table().drop("weight")
    model = engines.fit(UpliftForest(2, random_state=0), frame.lazy(), "bought", "segment", row_id="id")
    assert list(model.feature_names_in_) == FEATURES


def test_scores_come_part_after_part_and_stream_to_a_file(tmp_path):
    frame = table(arms=("none", "mail", "call"))
    frame.write_parquet(tmp_path / "a.parquet")
    model = UpliftForest(10, random_state=0).fit(frame.select(FEATURES), frame["bought"], frame["segment"])
    lazy = engines.predict(model, tmp_path / "a.parquet")
    assert isinstance(lazy, pl.LazyFrame)
    lazy.select("id", "uplift_call", "uplift_mail").sink_parquet(tmp_path / "scores.parquet")
    scores = pl.read_parquet(tmp_path / "scores.parquet")
    expected = model.predict(frame.select(FEATURES))
    np.testing.assert_array_equal(scores.select(f"uplift_{arm}" for arm in model.arms_).to_numpy(), expected)
    assert scores["id"].to_list() == frame["id"].to_list()


def test_a_sample_depends_on_the_seed_and_the_rows_numbers_alone(tmp_path):
    frame = table()
    frame.write_parquet(tmp_path / "a.parquet")
    one = engines.sample(tmp_path / "a.parquet", 100, random_state=3)
    assert one.equals(engines.sample(frame.lazy(), 100, random_state=3))
    assert len(one) == len(set(one["id"])) == 100
    assert one["id"].is_sorted()
    assert not one.equals(engines.sample(frame.lazy(), 100, random_state=4))
    assert len(engines.sample(frame.lazy(), 10**6, random_state=3)) == N


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"model": UpliftSVMCV()}, TypeError, "whole table in memory"),
        ({"model": TLearner()}, TypeError, "whole table in memory"),
        ({"model": OneVsControl()}, TypeError, "ClassTransformation needs its whole table in memory"),
        ({"model": UpliftBagging(UpliftSVM())}, TypeError, "whole table in memory"),
        ({"model": "forest"}, TypeError, "expected an uplift model"),
        ({"table": "nowhere/*.parquet"}, FileNotFoundError, "no file is called"),
        ({"table": 3}, TypeError, "expected a path"),
        ({"table": []}, TypeError, "expected a path"),
        ({"table": np.zeros((3, 2))}, TypeError, "model.fit takes it"),
        ({"y": "sold"}, ValueError, "y='sold' is no column"),
        ({"treatment": None}, TypeError, "treatment is a NoneType"),
        ({"features": ["age", "age"]}, ValueError, "each once"),
        ({"features": ["age", "bought"]}, ValueError, "neither outcome"),
        ({"features": "age"}, TypeError, "list of columns"),
        ({"features": []}, ValueError, "expected names"),
        ({"model": UpliftForest(0)}, ValueError, "n_estimators"),
        ({"row_id": "person"}, ValueError, "row_id='person' is no column"),
        ({"row_id": "id", "features": ["id", "age"]}, ValueError, "is among features"),
        ({"row_id": "id", "model": UpliftBagging()}, ValueError, "no use for row_id="),
    ],
)
def test_what_cannot_be_is_refused_in_words(change, error, said):
    asked = {"model": UpliftForest(2), "table": table().lazy(), "y": "bought", "treatment": "segment", **change}
    with pytest.raises(error, match=said):
        engines.fit(**asked)


def test_missing_labels_and_outcomes_are_refused_and_nothing_is_left_behind(tmp_path):
    for name in ("segment", "bought"):
        gone = table().with_columns(pl.when(pl.col("id") == 7).then(None).otherwise(pl.col(name)).alias(name))
        model = UpliftForest(2)
        with pytest.raises(ValueError, match=r"missing|NaN"):
            engines.fit(model, gone.lazy(), "bought", "segment", features=FEATURES, scratch=tmp_path)
        assert not hasattr(model, "nodes_")
    assert not any(tmp_path.iterdir())


@pytest.mark.usefixtures("small_parts")
def test_a_file_that_disappears_is_told_in_words(tmp_path, monkeypatch):
    for k in range(3):
        table()[1000 * k : 1000 * (k + 1)].write_parquet(tmp_path / f"{k}.parquet")
    real = _parts.learn_bins

    def after_the_first_pass(*whole, **how):
        (tmp_path / "1.parquet").unlink()
        return real(*whole, **how)

    monkeypatch.setattr(_parts, "learn_bins", after_the_first_pass)
    model = UpliftForest(2, random_state=0)
    with pytest.raises(RuntimeError, match=r"^in the part of the table from row 0 to 1,023: .*1\.parquet") as caught:
        engines.fit(model, tmp_path, "bought", "segment", features=FEATURES)
    assert "\n" not in str(caught.value)
    assert not hasattr(model, "nodes_")


CUTS = ((0, 700), (700, 700), (700, 701), (701, N))  # uneven files, one of them empty, one of a single row


@pytest.mark.usefixtures("small_parts")
def test_files_may_be_empty_lack_an_arm_and_have_numbers_of_other_sizes(tmp_path):
    frame = table(arms=("none", "mail", "call")).sort("segment", maintain_order=True)
    others = (frame, frame, frame.with_columns(pl.col("visits").cast(pl.Float64)), frame.select(sorted(frame.columns)))
    for k, ((start, stop), one) in enumerate(zip(CUTS, others, strict=True)):
        one[start:stop].write_parquet(tmp_path / f"{k}.parquet")
    found = engines.fit(UpliftForest(5, random_state=0), tmp_path, "bought", "segment", features=FEATURES)
    whole = UpliftForest(5, random_state=0).fit(frame.select(FEATURES), frame["bought"], frame["segment"])
    np.testing.assert_array_equal(found.predict(frame.select(FEATURES)), whole.predict(frame.select(FEATURES)))
    assert found.arms_ == ["call", "mail"]


@pytest.mark.parametrize("far", [0, 2**63])
def test_signed_and_unsigned_numbers_of_64_bits_are_one_column(far, tmp_path):
    """polars makes 128 bits of them; as ids, outcomes, arms, weights, features and scores they are numbers like others."""
    frame = table().with_columns(segment=(pl.col("segment") == "mail").cast(pl.Int64), weight=pl.lit(2))
    names = ["visits", "bought", "segment", "weight"]
    (tmp_path / "far").mkdir()
    for k, (kind, rows) in enumerate(((pl.Int64, slice(0, 1500)), (pl.UInt64, slice(1500, N)))):
        own = pl.col("id").cast(kind) + (far if k else 0)
        frame[rows].with_columns(own, pl.col(names).cast(kind)).write_parquet(tmp_path / "far" / f"{k}.parquet")
    how = {"y": "bought", "treatment": "segment", "sample_weight": "weight", "row_id": "id"}
    found = engines.fit(UpliftForest(3, random_state=0), tmp_path / "far", features=FEATURES, **how)
    ids = np.arange(N, dtype=np.uint64) + np.where(np.arange(N) < 1500, 0, far).astype(np.uint64)
    whole = engines.fit(UpliftForest(3, random_state=0), frame.with_columns(id=ids).lazy(), features=FEATURES, **how)
    np.testing.assert_array_equal(found.predict(frame.select(FEATURES)), whole.predict(frame.select(FEATURES)))
    engines.fit(UpliftBoosting(n_estimators=2), tmp_path / "far", "bought", "segment", features=FEATURES)
    engines.evaluate(tmp_path / "far", "bought", ["visits"], "segment", interval=None, row_id="id")
    assert len(engines.sample(tmp_path / "far", 10, treatment="segment")) == 10


def test_ids_beyond_64_bits_are_refused_in_words(tmp_path):
    table()[:1500].with_columns(id=pl.col("id") - 5).write_parquet(tmp_path / "0.parquet")
    far = table()[1500:].with_columns(id=pl.col("id").cast(pl.UInt64) + 2**63)
    far.write_parquet(tmp_path / "1.parquet")
    with pytest.raises(TypeError, match="row_id='id' holds values of type float64: expected whole numbers of 64 bits"):
        engines.fit(UpliftForest(2), tmp_path, "bought", "segment", features=FEATURES, row_id="id")


def test_a_learner_of_a_cluster_is_told_where_it_learns():
    named = type("DaskLGBMClassifier", (), {"__module__": "lightgbm.dask"})()
    with pytest.raises(TypeError, match=r"learns from a table of Dask.*read_parquet.*engines\.sample\(table, n\)"):
        engines.fit(TLearner(named), table().lazy(), "bought", "segment", features=FEATURES)
    with pytest.raises(TypeError, match="needs its whole table in memory"):
        engines.fit(TLearner(), table().lazy(), "bought", "segment", features=FEATURES)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (
            lambda part: part.with_columns(visits=pl.col("visits").cast(pl.String)),
            TypeError,
            r"'visits' holds text in '.*1\.parquet' and none in '.*0\.parquet'",
        ),
        (lambda part: part.drop("visits"), ValueError, r"1\.parquet' has no column 'visits', which '.*0\.parquet' has"),
        (
            lambda part: part.with_columns(more=1),
            ValueError,
            r"0\.parquet' has no column 'more', which '.*1\.parquet' has",
        ),
    ],
)
def test_files_with_other_columns_are_refused_in_words(change, error, said, tmp_path):
    table()[:700].write_parquet(tmp_path / "0.parquet")
    change(table()[700:]).write_parquet(tmp_path / "1.parquet")
    for call in (
        lambda: engines.fit(UpliftForest(2), tmp_path, "bought", "segment", features=FEATURES),
        lambda: engines.sample(tmp_path, 10),
    ):
        with pytest.raises(error, match=said) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_a_file_of_another_kind_is_refused_in_words(tmp_path):
    (tmp_path / "table.csv").write_text("age,bought,segment\n")
    with pytest.raises(ValueError, match="could not be read as a Parquet file"):
        engines.sample(tmp_path / "table.csv", 3)


def test_scratch_space_that_is_not_there_is_told_before(monkeypatch, tmp_path):
    class Full:
        free = 1000

    monkeypatch.setattr("shutil.disk_usage", lambda _: Full)
    with pytest.raises(OSError, match="scratch space"):
        engines.fit(UpliftForest(2), table().lazy(), "bought", "segment", features=FEATURES, scratch=tmp_path)
    assert not any(tmp_path.iterdir())


def test_scores_need_a_fitted_model_and_its_columns():
    frame = table()
    model = UpliftForest(2, random_state=0).fit(frame.select(FEATURES), frame["bought"], frame["segment"])
    with pytest.raises(ValueError, match="no column"):
        engines.predict(model, frame.drop("age").lazy())
    with pytest.raises(ValueError, match="already"):
        engines.predict(model, frame.with_columns(uplift=1.0).lazy())
    with pytest.raises(TypeError, match="expected a fitted uplift model"):
        engines.predict(upturn, frame.lazy())
    unnamed = UpliftTree(max_depth=0).fit(np.zeros((8, 1)), [0, 1] * 4, [0, 0, 1, 1] * 2)
    with pytest.raises(ValueError, match="without names"):
        engines.predict(unnamed, frame.lazy())


# ------------------------------------------------------------------------------------------- progress


def bars(text):
    """The last state of each progress bar on stderr: how far it came, by what it counts."""
    lines = [
        line for line in text.replace("\r", "\n").splitlines() if "it/s" in line or "s/it" in line or "?it" in line
    ]
    return [re.match(r"([a-z ]+): +(?:100%.* (\d+)/\d+|(\d+)it)", line) for line in lines]


SHOWN = {
    "forest": (lambda t, v: engines.fit(UpliftForest(2), t, "bought", "segment", features=FEATURES, verbose=v), "reading"),
    "boosting": (lambda t, v: engines.fit(UpliftBoosting(), t, "bought", "segment", features=FEATURES, verbose=v), "reading"),
    "machine": (lambda t, v: engines.fit(UpliftSVM(), t, "bought", "segment", features=FEATURES, verbose=v), "passes over the table"),
    "own": (lambda t, v: engines.fit(UpliftForest(2, verbose=v), t, "bought", "segment", features=FEATURES), "trees"),
    "evaluate": (lambda t, v: engines.evaluate(t, "bought", ["chance"], "segment", verbose=v), "passes over the table"),
    "check": (lambda t, v: engines.check(t, "bought", "segment", features=FEATURES, verbose=v), "features"),
    "target": (lambda t, v: engines.target(t, "chance", budget=500, cost="weight", row_id="id", verbose=v), "passes over the table"),
}  # fmt: skip


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("name", list(SHOWN))
def test_long_passes_show_how_far_they_are(name, capsys):
    call, counted = SHOWN[name]
    call(table().lazy(), 0)
    assert not bars(capsys.readouterr().err)
    call(table().lazy(), 1)
    ended = [bar.groups() for bar in bars(capsys.readouterr().err) if bar is not None]
    assert counted in {bar[0] for bar in ended}
    if name != "check":
        assert ("reading", "3", None) in ended  # three parts
    if counted == "passes over the table":
        assert max(int(passes) for what, _, passes in ended if what == counted) > 3


def test_bars_are_not_asked_for_by_anything(capsys):
    for call in (SHOWN["forest"][0], SHOWN["evaluate"][0], SHOWN["check"][0], SHOWN["target"][0]):
        with pytest.raises((TypeError, ValueError), match="verbose"):
            call(table().lazy(), "loud")


# ------------------------------------------------------------------------------------------- frames whose rows change places


def dealt(frame, how):
    """The same rows by a plan that may give them in another order each time, and what it does with them in words."""
    lazy = frame.lazy()
    halves = lazy.select("id", *FEATURES), lazy.select("id", "segment", "bought", "weight")
    if how == "join":
        return halves[0].join(halves[1], on="id")
    return lazy.group_by("id").agg(pl.all().first()) if how == "group" else lazy.unique()


@pytest.mark.parametrize("how", ["join", "group", "unique"])
def test_rows_that_change_places_between_two_readings_are_settled_first(how, small_parts, tmp_path):
    """Each person has the outcome of her own group and age, whatever order the plan gives rows in."""
    rng = np.random.default_rng(0)
    n = 20_000
    x, arm = rng.choice([-1.0, 1.0], n), rng.choice(["none", "mail"], n)
    frame = table(n=n).with_columns(
        age=x, segment=pl.Series(arm), bought=((arm == "mail") & (x > 0)).astype(np.int64), weight=pl.lit(1.0)
    )
    lazy = dealt(frame, how)
    assert not _scan.steady(lazy)
    model = engines.fit(UpliftTree(max_depth=1), lazy, "bought", "segment", features=["age"], scratch=tmp_path)
    np.testing.assert_allclose(model.predict(pl.DataFrame({"age": [-1.0, 1.0]})), [0.0, 1.0], atol=1e-9)
    assert not list(tmp_path.iterdir())
    scored = lazy.with_columns(score=pl.col("age"))
    expected = engines.evaluate(
        frame.with_columns(score=pl.col("age")).lazy(), "bought", ["score"], "segment", interval=None
    )
    found = engines.evaluate(scored, "bought", ["score"], "segment", interval=None)
    assert found["score"]["auuc"] == pytest.approx(expected["score"]["auuc"], rel=1e-12)
    drawn = engines.sample(lazy, 400, random_state=0, treatment="segment")
    treated = drawn.filter(pl.col("segment") == "mail")
    assert abs(len(treated) - 400 * (arm == "mail").mean()) <= 1
    assert (treated["bought"] == (treated["age"] > 0)).all()


def test_who_ties_in_a_frame_whose_rows_change_places_needs_a_name(small_parts):
    frame = table().with_columns(score=pl.col("visits").cast(pl.Float64))
    lazy = frame.lazy().join(frame.lazy().select("id"), on="id")
    with pytest.raises(ValueError, match="pass row_id="):
        engines.target(lazy, "score", fraction=0.21)
    plan = engines.target(lazy, "score", fraction=0.21, row_id="id")
    expected = engines.target(frame.lazy(), "score", fraction=0.21, row_id="id")
    kept = [one.table.collect().sort("id")["recommended"] for one in (plan, expected)]
    assert (kept[0] == kept[1]).all()


def test_which_plans_keep_the_order_of_rows(tmp_path):
    (tmp_path / "unique sample").mkdir()  # names are no steps
    path = tmp_path / "unique sample" / "a.parquet"
    wide = table().with_columns(pl.col("age").alias(f"sample {j}") for j in range(300))
    wide.write_parquet(path)
    scan = _scan.scan(path)
    other = pl.when(pl.col("age") > 3).then(1).otherwise(0).alias("x")
    kept = [scan, scan.filter(pl.col("age") > 3), scan.with_columns(other), scan.select("age", other), scan.head(9)]
    kept += [
        scan.drop("age"),
        scan.rename({"age": "years"}),
        scan.with_row_index(),
        pl.concat([scan, scan]),
        table().lazy(),
    ]
    kept += [_scan.scan([path] * 50), scan.select(wide.columns[5:250])]
    assert all(map(_scan.steady, kept))
    dealt_anew = [scan.sort("visits"), scan.select(pl.all().shuffle()), scan.join(scan, on="id"), scan.unique()]
    assert not any(map(_scan.steady, dealt_anew))


@pytest.mark.parametrize(
    ("sizes", "n", "expected"),
    [((1, 5, 5), 10, (1, 5, 4)), ((10, 50, 50), 10, (1, 5, 4)), ((100, 100), 7, (4, 3)), ((1, 1, 98), 3, (1, 1, 1)), ((3, 3, 3), 2, (1, 1, 1))],
)  # fmt: skip
def test_every_arm_has_its_share_of_a_sample_to_a_row(sizes, n, expected):
    assert _sample._shares(n, np.array(sizes)).tolist() == list(expected)


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize(
    ("model", "arms", "real"),
    [
        (UpliftForest(4, random_state=0), 2, False),
        (UpliftForest(4, random_state=0), 4, True),
        (UpliftForest(4, center=True, propensity="trees", random_state=0), 2, True),
        (UpliftForest(4, center=True, propensity="trees", random_state=0), 4, False),
        (UpliftForest(20, inference=True, propensity="trees", random_state=0), 4, True),
        (UpliftSVM(), 2, False),
    ],
)
def test_as_much_scratch_space_is_asked_for_as_is_taken(model, arms, real, weight, monkeypatch, tmp_path):
    if getattr(model, "inference", False):
        monkeypatch.setattr("upturn.trees._forest._MANY", 40)
    names = ("none", "mail", "call", "text")[:arms]
    frame = table(n=4000, arms=names, real=real).with_columns(city=pl.Series(np.arange(4000) % 60).cast(pl.String))
    with scratch_space(monkeypatch) as (taken, asked):
        engines.fit(clone(model), frame.lazy(), "bought", "segment", weight, FEATURES, scratch=tmp_path)
    assert 0 < taken[0] <= 1.1 * asked[0]


def test_as_much_scratch_space_is_asked_for_as_pairs_of_unlike_arms_take(monkeypatch, tmp_path):
    frame, model = table(n=8000, arms=("none", "mail", "call")), OneVsControl(UpliftForest(4, random_state=0))
    older = pl.when(pl.col("segment") == "mail").then(pl.col("age") + 9).otherwise("age")
    how = {"features": ["age", "visits"], "row_id": "id", "scratch": tmp_path}
    with scratch_space(monkeypatch) as (taken, asked), pytest.warns(UserWarning, match="the arms differ"):
        engines.fit(model, frame.with_columns(age=older).lazy(), "bought", "segment", **how)
    assert 0 < taken[0] <= 1.1 * asked[0]


@contextmanager
def scratch_space(monkeypatch):
    """How many bytes are taken at most, and how many are asked for."""
    taken, most, asked = [0], [0], [0]
    made = _files.Scratch.empty

    def empty(self, shape, kind):
        array = made(self, shape, kind)
        taken[0] += array.nbytes
        most[0] = max(most[0], taken[0])
        if isinstance(array.base, np.memmap):
            weakref.finalize(array.base, lambda size=array.nbytes: taken.__setitem__(0, taken[0] - size))
        return array

    def room(n, a_row, *more):
        asked[0] = max(asked[0], a_row * n)

    monkeypatch.setattr(_files.Scratch, "empty", empty)
    monkeypatch.setattr(_fit, "_check_room", room)
    yield most, asked


PASSES = {
    "forest": (UpliftForest(2, random_state=0), 4),
    "inference": (UpliftForest(20, inference=True, propensity="shares", random_state=0), 4),
    "tree": (UpliftTree(max_depth=2), 4),
}


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("name", list(PASSES))
def test_files_are_read_as_often_as_the_docs_say(name, weight, monkeypatch):
    """What columns hold; values that decide bins, twice, the first time with the look at the arms; codes."""
    monkeypatch.setattr("upturn.trees._forest._MANY", 20)
    spans, real = [], _files.read
    monkeypatch.setattr(_files, "read", lambda frame, span: spans.append(span) or real(frame, span))
    model, times = PASSES[name]
    frame = table().with_columns(age=pl.int_range(N) / 2)  # more values than bins
    engines.fit(clone(model), frame.lazy(), "bought", "segment", weight, FEATURES)
    assert Counter(spans) == dict.fromkeys(_scan.spans_of(N, len(FEATURES)), times)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_answers_of_files_are_merged_as_they_come_and_in_order(n_jobs, tmp_path):
    """The first place is slow: others wait before they are far ahead, and few answers are there at a time."""
    there, most, lock = [0], [0], threading.RLock()

    def count(by):
        with lock:
            there[0] += by
            most[0] = max(most[0], there[0])

    class Answer:
        def __init__(self, places):
            self.places = places
            count(1)
            weakref.finalize(self, count, -1)

    def question(place):
        time.sleep(0.3 if place == 0 else 0.0)
        return Answer([place])

    def merge(answers):
        return Answer([place for one in answers for place in one.places])

    spans = _scan.spans_of(60 * 1024, _scan._VALUES)
    places = _files.Files(range(60), spans, _files.Scratch(tmp_path), n_jobs)
    assert places.ask(question, merge).places == list(range(60))
    assert most[0] <= _files._AHEAD + n_jobs + 3

    def fails(place):
        if place == 7:
            raise ValueError("seven")
        return Answer([place])

    with pytest.raises(ValueError, match=r"from row 7,168 to 8,191: seven"):
        places.ask(fails, merge)


def test_files_of_unlike_kinds_are_refused_in_one_line(tmp_path):
    table().write_parquet(tmp_path / "0.parquet")
    for other, said in (
        (pl.lit("2026-01-01").str.to_date(), "holds numbers in .*0.parquet' and date values in"),
        (pl.concat_list("visits"), "holds numbers in .*0.parquet' and list values in"),
    ):
        table().with_columns(visits=other).write_parquet(tmp_path / "1.parquet")
        with pytest.raises(TypeError, match=f"^column 'visits' {said}") as caught:
            engines.fit(UpliftTree(), tmp_path, "bought", "segment", features=FEATURES)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=r"^the table's columns cannot be told: .*nothing") as caught:
        engines.fit(UpliftTree(), table().lazy().select("nothing"), "bought", "segment")
    assert "\n" not in str(caught.value)
    broken = table().lazy().with_columns(visits=pl.col("city").cast(pl.Int64))
    with pytest.raises(RuntimeError, match=r"^the table could not be read: ") as caught:
        engines.sample(broken, 5, random_state=0)
    assert "\n" not in str(caught.value)


def test_a_dask_table_on_threads_fails_in_one_line():
    dd = pytest.importorskip("dask.dataframe")
    import dask

    whole = table().to_pandas()
    pieces = [whole.iloc[:500], whole.iloc[500:].drop(columns="visits")]
    parted = dd.from_delayed([dask.delayed(piece) for piece in pieces], meta=whole.iloc[:0], verify_meta=False)
    with pytest.raises(RuntimeError, match=r"^in partition 1: Dask could not compute the table.*visits") as caught:
        engines.fit(UpliftForest(2), parted, "bought", "segment", None, FEATURES)
    assert "\n" not in str(caught.value)
    numbered = whole.rename(columns={"age": 0})
    found = engines.fit(
        UpliftTree(max_depth=2), dd.from_pandas(numbered, npartitions=2), "bought", "segment", None, ["0", "visits"]
    )
    assert found.feature_names_in_.tolist() == ["0", "visits"]


def test_a_lazy_frame_over_files_that_differ_says_how_to_find_the_file(tmp_path):
    frame = table(n=400)
    frame[:200].write_parquet(tmp_path / "0.parquet")
    frame[200:].with_columns(city=pl.lit(7)).write_parquet(tmp_path / "1.parquet")
    with pytest.raises(RuntimeError, match="given as paths, the first that differs is named"):
        engines.fit(UpliftForest(2), pl.scan_parquet(tmp_path / "*.parquet"), "bought", "segment", None, FEATURES)
    with pytest.raises(TypeError, match=r"1\.parquet"):
        engines.fit(UpliftForest(2), tmp_path / "*.parquet", "bought", "segment", None, FEATURES)
