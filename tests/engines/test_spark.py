"""Spark on a real session of two threads that tries a task four times: the model of the whole table, also when tasks fail."""

import os
import shutil
import sys
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from engines.test_dask import ENSEMBLES, INTERVALS, MODELS, WAYS, by, same, same_ensemble
from engines.test_margins import FEW, agree, few
from engines.test_measure import numbers
from engines.test_measure import table as judged
from engines.test_measure_check import table as trial
from engines.test_measure_target import people
from engines.test_measure_umodl import table as counted
from engines.test_places import FEATURES, Slow, fewer_trees, interrupted, local, same_intervals, table
from upturn import engines, metrics
from upturn.engines import _grow, _spark
from upturn.engines._copies import TreesQuestion
from upturn.engines._level import LevelQuestion
from upturn.features import FilterSelector, UMODLDiscretizer
from upturn.meta import DRLearner, OneVsControl, RLearner, TLearner, XLearner
from upturn.svm import UpliftSVM
from upturn.trees import UpliftForest, UpliftTree

pl = pytest.importorskip("polars")
if os.environ.get("UPTURN_JAVA") != "1":  # where it is set, what is missing is a failure
    pytest.importorskip("pyspark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore")  # of Spark itself


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    here = os.path.dirname(__file__)
    roots = [here, os.path.join(here, ".."), os.path.join(here, "..", "..", "src"), os.environ.get("PYTHONPATH", "")]
    patch = pytest.MonkeyPatch()
    patch.setenv("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.local.dir", str(folder))
        .config("spark.executorEnv.PYTHONPATH", os.pathsep.join(roots))
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    patch.undo()


@pytest.fixture(scope="module")
def spread(spark):
    def make(frame, n=4):
        """A frame as one of Spark: uneven partitions, one of a single row, one empty."""
        rows, ends = frame.rows(), [0, 1, 1, 500, len(frame)]
        pieces = [rows[a:b] for a, b in pairwise(ends)][:n]
        schema = spark.createDataFrame(frame.to_pandas().head(50)).schema
        rdd = spark.sparkContext.parallelize(range(len(pieces)), len(pieces)).flatMap(lambda i: pieces[i])
        return spark.createDataFrame(rdd, schema, verifySchema=False)

    return make


def _again(state):
    return {"times": (state["times"] + 1) if isinstance(state, dict) else 1, "rows": np.arange(1000)}


def _times(state):
    return state["times"]


def test_states_that_nobody_uses_any_longer_are_removed(spread):
    """Three steps: the first is let go of and made anew for a branch that needs it; of the others, only what is used lies there."""
    with _spark.places(spread(table()), ["age"]) as places:
        first = places.change(_again)
        assert first.ask(_times) == [1, 1, 1, 1]
        late, second = first.change(_again), first.change(_again).change(_again)
        del first
        assert second.ask(_times) == [3, 3, 3, 3]
        folder = _spark._folder(second._steps[0].name.partition("/")[0])
        heads = {path.name.split("-")[0] for path in folder.iterdir()}
        assert heads == {"frame", second._steps[-1].name.partition("/")[2]}
        assert late.ask(_times) == [2, 2, 2, 2]
    assert not folder.exists()


def _rows(frame):
    return frame.frame.num_rows, [frame.number]


def _add(answers):
    return sum(n for n, _ in answers), sorted(place for _, places in answers for place in places)


@pytest.mark.parametrize("tasks", [1, 4, 30])
def test_answers_of_many_tasks_are_merged_by_ever_fewer(tasks, spark, monkeypatch):
    from pyspark import SparkContext

    monkeypatch.setattr(_spark, "_WIDE", 2)
    monkeypatch.setattr(SparkContext, "defaultParallelism", tasks)
    with _spark.places(spark.range(100).repartition(13), ["id"]) as places:
        assert places.ask(_rows, _add) == (100, list(range(13)))
        places._numbers.unpersist()
        assert places.ask(_rows, _add) == (100, list(range(13)))
        assert [place for _, (place,) in places.ask(_rows)] == list(range(13))


def test_two_openings_of_a_table_are_kept_apart_and_nothing_stays(spread, spark):
    def kept():
        return spark.sparkContext._jsc.sc().getPersistentRDDs().size()

    frame, before = spread(table()), kept()
    with _spark.places(frame, ["age"]) as outer:
        outer.ask(_rows)
        one = kept()
        with _spark.places(frame, ["age"]) as inner:
            inner.ask(_rows)
        assert kept() == one > before
    assert kept() == before


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *((name, "levels") for name in ("forest", "honest, weighted", "cts", "pruned")),
        *((name, "copies") for name in ("honest, weighted", "cts")),
    ],
)
def test_the_model_is_that_of_the_whole_table(name, way, spread, monkeypatch):
    by(way, monkeypatch)
    model, weight = MODELS[name]
    frame = table(arms=("none", "mail", "call") if name == "cts" else ("none", "mail"))
    found = engines.fit(clone(model), spread(frame), "bought", "segment", weight, FEATURES)
    same(found, local(model, frame, weight), frame)


def test_intervals_are_those_of_the_whole_table(spread, monkeypatch):
    by("copies", monkeypatch)
    fewer_trees(monkeypatch)
    frame = table()
    found = engines.fit(clone(INTERVALS), spread(frame), "bought", "segment", "weight", FEATURES)
    whole = local(INTERVALS, frame, "weight")
    same(found, whole, frame)
    same_intervals(found, whole, frame)


@pytest.mark.parametrize("model", ENSEMBLES)
def test_an_ensemble_is_that_of_the_whole_table(model, spread):
    frame = table()
    found = engines.fit(clone(model), spread(frame), "bought", "segment", "weight", FEATURES)
    same_ensemble(found, local(model, frame, "weight"), frame)


def test_a_model_of_every_arm_is_that_of_the_whole_table(spread):
    frame, model = table(arms=("none", "mail", "call")), OneVsControl(UpliftTree(max_depth=2))
    found = engines.fit(clone(model), spread(frame), "bought", "segment", "weight", FEATURES)
    whole = local(model, frame, "weight")
    np.testing.assert_array_equal(found.predict(frame.select(FEATURES)), whole.predict(frame.select(FEATURES)))
    np.testing.assert_array_equal(found._ladder, whole._ladder)


def test_a_machine_is_that_of_the_whole_table(spread):
    frame, model = table(), UpliftSVM(p=1.5, ratio=1.5)
    found = engines.fit(clone(model), spread(frame), "bought", "segment", None, FEW)
    agree(found, few(model, frame))


def test_a_machine_with_p_1_is_that_of_the_whole_table(spread):
    frame, model = table(), UpliftSVM(p=1.0, C=0.1)
    found = engines.fit(clone(model), spread(frame), "bought", "segment", None, FEW)
    agree(found, few(model, frame), 1e-4)  # w need not be unique to many digits, objectives are to 1e-8


@pytest.mark.parametrize("learner", [XLearner, DRLearner, RLearner])
def test_learners_of_effects_over_xgboost(learner, spread):
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    from xgboost.spark import SparkXGBClassifier, SparkXGBRegressor

    frame, how = table(4000, seed=2), {"n_estimators": 10, "max_depth": 2}
    own = {"propensity": "shares", "random_state": 0, **({} if learner is XLearner else {"cv": 2})}
    model = learner(SparkXGBClassifier(**how), SparkXGBRegressor(**how), **own)
    found = engines.fit(model, spread(frame), "bought", "segment", None, FEW)
    whole = learner(xgboost.XGBClassifier(**how), xgboost.XGBRegressor(**how), **own).fit(
        frame.select(*FEW, "segment", "bought"), "bought", "segment"
    )
    mine, other = (model.predict(frame.select(FEW)) for model in (found, whole))
    assert np.corrcoef(mine, other)[0, 1] > 0.8


def test_a_meta_learner_over_xgboost(spread, tmp_path):
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    from xgboost.spark import SparkXGBClassifier

    frame, how = table(4000, seed=2), {"n_estimators": 10, "max_depth": 2}
    found = engines.fit(TLearner(SparkXGBClassifier(**how)), spread(frame), "bought", "segment", "weight", FEW)
    whole = TLearner(xgboost.XGBClassifier(**how)).fit(
        frame.select(*FEW, "segment", "bought", "weight"), "bought", "segment", "weight"
    )
    mine, other = (model.predict(frame.select(FEW)) for model in (found, whole))
    assert np.corrcoef(mine, other)[0, 1] > 0.9


def test_row_ids_make_the_order_of_rows_irrelevant(spread):
    frame = table().with_columns(person=pl.int_range(1200))
    model = UpliftForest(4, min_samples_arm=5, random_state=1)
    shuffled = spread(frame).repartition(3, "visits")
    found = engines.fit(clone(model), shuffled, "bought", "segment", None, FEATURES, row_id="person")
    same(found, local(model, frame), frame)


@pytest.mark.parametrize("way", list(WAYS))
def test_tasks_that_fail_three_times_change_nothing(way, spread, monkeypatch, tmp_path):
    frame, model = table(), UpliftForest(3, min_samples_arm=5, random_state=2)
    by(way, monkeypatch, lambda *parameters: Failing(str(tmp_path), WAYS[way](*parameters)))
    found = engines.fit(clone(model), spread(frame), "bought", "segment", None, FEATURES)
    assert len(list(tmp_path.iterdir())) == 3
    same(found, local(model, frame), frame)


def test_files_that_are_gone_are_made_again(spread, monkeypatch):
    """As on a machine that is given tasks for the first time."""
    from pyspark import SparkFiles

    frame, model = table(), UpliftForest(3, min_samples_arm=5, random_state=2)
    removed = []

    def forgetful(*parameters):
        if len(removed) % 2:
            _remove_files()
        removed.append(1)
        return LevelQuestion(*parameters)

    by("levels", monkeypatch, forgetful)
    monkeypatch.setattr(_grow, "MOST_GATHERED", 100)
    found = engines.fit(clone(model), spread(frame), "bought", "segment", None, FEATURES)
    assert len(removed) > 3
    same(found, local(model, frame), frame)
    assert not [name for name in os.listdir(SparkFiles.getRootDirectory()) if name.startswith("upturn-")]


def _remove_files():
    from pyspark import SparkFiles

    for folder in os.listdir(SparkFiles.getRootDirectory()):
        if folder.startswith("upturn-"):
            shutil.rmtree(os.path.join(SparkFiles.getRootDirectory(), folder))


def test_where_a_task_does_not_find_its_frame_trees_grow_level_by_level(spread, monkeypatch):
    """As on a machine that is given tasks for the first time; those that have been told of all rows do without files."""
    frame, model = table(), UpliftForest(3, min_samples_arm=5, random_state=2)
    for at in (0, 1):
        asked = []

        def question(*parameters, at=at, asked=asked):
            if len(asked) == at:
                _remove_files()
            asked.append(1)
            return TreesQuestion(*parameters)

        by("copies", monkeypatch, question)
        monkeypatch.setattr(_grow, "LevelQuestion", LevelQuestion)
        same(engines.fit(clone(model), spread(frame), "bought", "segment", None, FEATURES), local(model, frame), frame)
        assert len(asked) == (1 if at == 0 else 2)


def test_what_python_may_hold_is_what_spark_and_its_masters_grant(spark):
    def room(master, **given):
        conf = {f"spark.executor.{key.replace('_', '.')}": value for key, value in given.items()}
        context = SimpleNamespace(
            master=master, getConf=lambda: conf, _jvm=spark.sparkContext._jvm, defaultParallelism=2
        )
        return _spark._room(context) / 2**20

    assert room("local[2]") == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20 / 2 / 2
    assert room("spark://host:7077", memory="1g") == 384
    assert room("local[2]", pyspark_memory="2g", cores="4") == 512
    assert room("yarn") == 384
    assert room("yarn", memory="8g", cores="2") == pytest.approx(0.1 * 8192 / 2)
    assert room("k8s://host", memory="8g", memoryOverheadFactor="0.4") == pytest.approx(0.4 * 8192)
    assert room("yarn", memoryOverhead="3000") == 3000


class Failing:
    """A question whose first three tries in one place end the task: its process is gone."""

    def __init__(self, folder, question):
        self.folder, self.question = folder, question

    def __call__(self, part):
        tries = len(os.listdir(self.folder))
        if len(getattr(part, "lot", getattr(part, "soil", None)).arm) > 500 and tries < 3:
            with open(os.path.join(self.folder, str(tries)), "w"):
                os._exit(1)
        return self.question(part)


@pytest.mark.parametrize("way", list(WAYS))
def test_ctrl_c_stops_the_jobs(way, spread, spark, monkeypatch, tmp_path):
    """Parts that wait are never asked, and the session goes on working for others."""
    frame, model = table(), UpliftForest(6, random_state=2)
    by(way, monkeypatch, lambda *how: Slow(tmp_path, WAYS[way](*how)))
    many = spread(frame).repartition(12)
    asked = interrupted(lambda: engines.fit(model, many, "bought", "segment", None, FEATURES), tmp_path)
    assert 1 <= asked <= 4  # of 12 parts, or of 6 trees
    assert not hasattr(model, "nodes_")
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()
    monkeypatch.undo()
    same(engines.fit(model, spread(frame), "bought", "segment", None, FEATURES), local(model, frame), frame)


def test_columns_may_have_dots_and_backticks_in_their_names(spread):
    frame, model = table(), UpliftForest(3, min_samples_arm=5, random_state=1)
    names = {"age": "page.views", "city": "a`b", "bought": "y.1", "segment": "arm`", "weight": "w.w"}
    named = spread(frame).toDF(*(names.get(name, name) for name in frame.columns))
    features = [names.get(name, name) for name in FEATURES]
    found = engines.fit(clone(model), named, "y.1", "arm`", "w.w", features)
    whole = local(model, frame, "weight")
    np.testing.assert_array_equal(found.nodes_.value, whole.nodes_.value)
    scored = engines.predict(found, named)
    scores = np.array([row.uplift for row in scored.select("uplift").collect()])
    np.testing.assert_array_equal(scores, whole.predict(frame.select(FEATURES)))
    engines.evaluate(scored, "y.1", ["uplift"], "arm`", interval=None)
    assert list(engines.sample(scored, 5).columns) == scored.columns
    treated = engines.target(named, "w.w", fraction=0.3).table
    assert treated.columns[-1] == "recommended"
    assert {row.recommended for row in treated.select("recommended").collect()} == {0, 1}


def test_scores_and_errors(spread):
    frame = table()
    model = local(UpliftForest(4, random_state=1), frame)
    scored = engines.predict(model, spread(frame))
    assert scored.columns == [*frame.columns, "uplift"]
    scores = np.array([row.uplift for row in scored.select("uplift").collect()])
    np.testing.assert_array_equal(scores, model.predict(frame.select(FEATURES)))
    gone = pl.when(pl.int_range(1200) == 700).then(None).otherwise("bought")
    with pytest.raises(ValueError, match=r"^in partition 3: ") as caught:
        engines.fit(UpliftForest(2), spread(frame.with_columns(bought=gone)), "bought", "segment", None, FEATURES)
    assert "\n" not in str(caught.value)


def test_a_sample_of_no_rows_keeps_the_columns(spread):
    nobody = spread(table()).where("age < -1000")
    drawn = engines.sample(nobody, 10, random_state=0)
    assert (len(drawn), list(drawn.columns)) == (0, nobody.columns)


def test_partitions_without_an_arm_and_with_levels_of_their_own(spread):
    frame = table(arms=("none", "mail", "call")).sort("segment", "city", nulls_last=True)
    model = UpliftForest(3, min_samples_arm=5, random_state=1)
    same(engines.fit(clone(model), spread(frame), "bought", "segment", None, FEATURES), local(model, frame), frame)


def test_columns_that_are_text_here_and_numbers_there_are_refused_in_words(spark, tmp_path):
    frame = table()
    frame[:500].write_parquet(tmp_path / "0.parquet")
    frame[500:].with_columns(visits="v" + pl.col("visits").cast(pl.String)).write_parquet(tmp_path / "1.parquet")
    stored = spark.read.parquet(str(tmp_path))
    said = r"^in partition \d: Spark could not compute the table.*1\.parquet.*\[visits\]"
    with pytest.raises(RuntimeError, match=said) as caught:
        engines.fit(UpliftForest(2), stored, "bought", "segment", None, FEATURES)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_gone_is_told_with_the_partition(spark, tmp_path):
    for k in range(4):
        table()[300 * k : 300 * (k + 1)].write_parquet(tmp_path / f"{k}.parquet")
    size = str(max(file.stat().st_size for file in tmp_path.iterdir()))
    spark.conf.set("spark.sql.files.maxPartitionBytes", size)  # a partition for each file
    spark.conf.set("spark.sql.files.openCostInBytes", size)
    try:
        stored = spark.read.parquet(str(tmp_path))
        names = [row[0] for row in stored.select("_metadata.file_name").rdd.glom().map(lambda rows: rows[0]).collect()]
        (tmp_path / "2.parquet").unlink()
        for kept, where in ((stored, f"in partition {names.index('2.parquet')}: "), (stored.repartition(3, "age"), "")):
            said = rf"^{where}Spark could not compute the table.*2\.parquet"
            with pytest.raises(RuntimeError, match=said) as caught:
                engines.fit(UpliftForest(2), kept, "bought", "segment", None, FEATURES)
            assert "\n" not in str(caught.value)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
        spark.conf.unset("spark.sql.files.openCostInBytes")


def test_a_pipeline_is_fitted_saved_and_loaded(spread, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel

    from upturn.engines.spark import SparkUplift

    frame = table()
    model = UpliftForest(3, min_samples_arm=5, random_state=1)
    stage = SparkUplift(
        model=model, featuresCols=FEATURES, outcomeCol="bought", treatmentCol="segment", weightCol="weight"
    )
    pipeline = Pipeline(stages=[stage])
    pipeline.save(str(tmp_path / "pipeline"))
    fitted = Pipeline.load(str(tmp_path / "pipeline")).fit(spread(frame))
    fitted.save(str(tmp_path / "fitted"))
    again = PipelineModel.load(str(tmp_path / "fitted"))
    same(again.stages[0].model, local(model, frame, "weight"), frame)
    scores = np.array([row.uplift for row in again.transform(spread(frame)).select("uplift").collect()])
    np.testing.assert_array_equal(scores, local(model, frame, "weight").predict(frame.select(FEATURES)))
    with pytest.raises(TypeError, match="expected one of UpliftTree"):
        SparkUplift(model=TLearner())
    with pytest.raises(ValueError, match="has no model to fit"):
        SparkUplift(outcomeCol="bought", treatmentCol="segment").fit(spread(frame))
    with pytest.raises(ValueError, match="compares rows with each other"):
        SparkUplift(model=UpliftSVM(kernel="rbf"))


@pytest.mark.parametrize("model", [UpliftSVM(ratio=1.5), OneVsControl(ENSEMBLES[0])])
def test_a_stage_keeps_the_model_it_was_given(model, tmp_path, spark):
    from upturn.engines.spark import SparkUplift

    SparkUplift(model=model, outcomeCol="y", treatmentCol="t").save(str(tmp_path / "stage"))
    found = SparkUplift.load(str(tmp_path / "stage")).model
    assert repr(found) == repr(model)
    assert repr(found.get_params()) == repr(model.get_params())


def test_metrics_are_those_of_the_whole_table(spread):
    frame = judged()
    data = frame["bought"], {name: frame[name] for name in ("fine", "level")}, frame["segment"]
    expected = metrics.evaluate(*data, interval=None, sample_weight=frame["weight"])
    found = engines.evaluate(
        spread(frame), "bought", ["fine", "level"], "segment", sample_weight="weight", interval=None
    )
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-12, atol=1e-13)
    here = engines.compare(frame.lazy(), "bought", ["fine", "level"], "segment", n_bootstrap=16)
    there = engines.compare(spread(frame), "bought", ["fine", "level"], "segment", n_bootstrap=16)
    np.testing.assert_allclose(there["se"], here["se"], rtol=1e-12)


def test_plans_treat_the_people_of_the_whole_table(spread):
    frame = people(coarse=True).with_columns(person=pl.int_range(900))
    how = {"budget": 61.7, "cost": ["mail_cost", "call_cost"]}
    score = {"mail": "mail", "call": "call"}
    expected = engines.target(frame.lazy(), score, **how)
    found = engines.target(spread(frame), score, row_id="person", **how)
    labels = expected.table.collect()["recommended"].to_list()
    assert [row.recommended for row in found.table.select("recommended").collect()] == labels
    assert found.n_treated == expected.n_treated > 10


def test_checks_find_what_they_find_in_the_whole_table(spread):
    frame = trial(biased=True)
    how = {"y": "bought", "treatment": "segment", "features": ["age"]}
    found = engines.check(spread(frame), **how)
    assert str(found) == str(engines.check(frame.lazy(), **how))
    assert "balance" in found.warnings


def test_umodl_and_filters_find_what_they_find_in_the_whole_table(spread):
    frame = counted()
    how = {"y": "bought", "treatment": "segment", "features": ["age", "city"]}
    found = engines.fit(UMODLDiscretizer(), spread(frame), **how)
    expected = engines.fit(UMODLDiscretizer(), frame.lazy(), **how)
    np.testing.assert_array_equal(found.cost_, expected.cost_)
    np.testing.assert_array_equal(found.partitions_[0].edges, expected.partitions_[0].edges)
    assert found.n_parts_[0] > 1
    scores = [engines.fit(FilterSelector(), one, **how).scores_ for one in (spread(frame), frame.lazy())]
    np.testing.assert_array_equal(*scores)
