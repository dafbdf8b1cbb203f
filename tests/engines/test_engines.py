"""Tables in parts: the same model as that of the whole table, scores part after part."""

import numpy as np
import pytest
from sklearn.base import clone

import upturn
from upturn import engines
from upturn.boosting import UpliftBagging, UpliftBoosting
from upturn.engines import _parts, _scan
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
