"""Dask on a real cluster of two processes: the model of the whole table, also when a worker is killed."""

import os
import re
import signal
import time
from unittest.mock import Mock

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import upturn
from engines.test_margins import FEW, agree, few
from engines.test_measure import numbers
from engines.test_measure import table as judged
from engines.test_measure_check import table as trial
from engines.test_measure_target import people
from engines.test_measure_umodl import table as counted
from engines.test_places import FEATURES, Slow, fewer_trees, interrupted, local, same_intervals, table
from upturn import engines, metrics
from upturn.boosting import UpliftBagging, UpliftBoosting
from upturn.engines import _dask, _grow, _parts, _places, _spark, _svm
from upturn.engines._copies import TreesQuestion, join
from upturn.engines._level import LevelQuestion
from upturn.features import FilterSelector, UMODLDiscretizer
from upturn.meta import DRLearner, OneVsControl, TLearner, XLearner
from upturn.svm import UpliftSVM
from upturn.trees import CTSForest, UpliftForest, UpliftTree

dask = pytest.importorskip("dask")
pl = pytest.importorskip("polars")
distributed = pytest.importorskip("distributed")
pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore")  # of workers that come and go


@pytest.fixture(scope="module")
def cluster():
    # A local cluster gives up a worker that is away when the time after its last loss is over, also if it had come back in between:
    # two kills fifteen seconds apart would leave no worker, and whoever waits for one waits for ever.
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        distributed.LocalCluster(
            n_workers=2, processes=True, threads_per_worker=1, dashboard_address=None
        ) as local_cluster,
        distributed.Client(local_cluster),
    ):
        yield local_cluster


def spread(frame, ends=(0, 1, 1, 500)):
    """A frame in uneven partitions: one of a single row, one empty."""
    import dask.dataframe as dd
    import pandas as pd

    whole = frame.to_pandas()
    pieces = [whole.iloc[a:b] for a, b in zip(ends, (*ends[1:], len(whole)), strict=True)]
    assert [len(piece) for piece in pieces][:2] == [1, 0]
    return dd.from_delayed([dask.delayed(pd.DataFrame)(piece) for piece in pieces], meta=whole.iloc[:0])


WAYS = {"levels": LevelQuestion, "copies": TreesQuestion}  # of growing a forest's trees


def by(way, monkeypatch, question=None):
    """Let trees grow a level at a time, or on copies of all rows, a tree of each process at a time; ``question`` takes the place of what is asked for."""
    monkeypatch.setattr(_grow, "MOST_GATHERED", 300)
    monkeypatch.setattr(_grow, "MOST_COPIED", 2**30 if way == "copies" else 0)
    monkeypatch.setattr(_dask.DaskPlaces, "ROUND", 1)
    monkeypatch.setattr(_spark.SparkCopies, "ROUND", 1)
    for one, real in WAYS.items():
        monkeypatch.setattr(_grow, real.__name__, (question or real) if one == way else unasked)


def unasked(*_):
    raise AssertionError("trees are grown in another way")


MODELS = {
    "forest": (UpliftForest(6, min_samples_arm=5, random_state=1), None),
    "honest, weighted": (UpliftForest(4, honest=True, bootstrap=True, min_samples_arm=5, random_state=1), "weight"),
    "cts": (CTSForest(4, random_state=1), None),
    "tree": (UpliftTree(max_depth=3, random_state=1), "count"),
    "pruned": (UpliftTree(prune=True, honest=True, min_samples_arm=5, random_state=1), "weight"),
    "out of bag": (UpliftForest(4, oob=True, min_samples_arm=5, random_state=1), "weight"),
}


FORESTS = [name for name, (model, _) in MODELS.items() if isinstance(model, UpliftForest)]


def same(one, two, frame):
    for name in ("first", "feature", "cut", "left", "category_set", "missing_left", "gain", "value", "weight", "sets"):
        np.testing.assert_array_equal(getattr(one.nodes_, name), getattr(two.nodes_, name))
    np.testing.assert_array_equal(one.bins_.edges, two.bins_.edges)
    if getattr(one, "oob", False):
        np.testing.assert_array_equal(one.oob_response_, two.oob_response_)
    np.testing.assert_array_equal(one.predict(frame.select(FEATURES)), two.predict(frame.select(FEATURES)))


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("name", "way"), [*((name, "levels") for name in MODELS), *((name, "copies") for name in FORESTS)]
)
def test_the_model_is_that_of_the_whole_table(name, way, monkeypatch):
    by(way, monkeypatch)
    model, weight = MODELS[name]
    frame = table(arms=("none", "mail", "call") if name == "cts" else ("none", "mail"))
    found = engines.fit(clone(model), spread(frame), "bought", "segment", weight, FEATURES)
    same(found, local(model, frame, weight), frame)
    assert found.control_ == "none"


INTERVALS = UpliftForest(40, inference=True, random_state=1)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("way", list(WAYS))
def test_intervals_are_those_of_the_whole_table(way, monkeypatch):
    by(way, monkeypatch)
    fewer_trees(monkeypatch)
    frame = table(arms=("none", "mail", "call"), outcome="real")
    found = engines.fit(clone(INTERVALS), spread(frame), "bought", "segment", "weight", FEATURES)
    whole = local(INTERVALS, frame, "weight")
    same(found, whole, frame)
    same_intervals(found, whole, frame)


ENSEMBLES = [
    UpliftBoosting(UpliftTree(max_depth=2), n_estimators=6, random_state=1),
    UpliftBagging(n_estimators=3, random_state=1),
]


def same_ensemble(one, two, frame):
    """Whether two ensembles are one, to the last bit."""
    assert len(one.estimators_) == len(two.estimators_) > 1
    np.testing.assert_array_equal(one.predict(frame.select(FEATURES)), two.predict(frame.select(FEATURES)))
    for mine, other in zip(one.estimators_, two.estimators_, strict=True):
        same(mine, other, frame)
    if isinstance(one, UpliftBagging):
        np.testing.assert_array_equal(one.oob_prediction_, two.oob_prediction_)
    if isinstance(one, UpliftBoosting):
        assert one.history_.tobytes() == two.history_.tobytes()


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("model", ENSEMBLES)
def test_an_ensemble_is_that_of_the_whole_table(model):
    frame = table()
    found = engines.fit(clone(model), spread(frame), "bought", "segment", "weight", FEATURES)
    same_ensemble(found, local(model, frame, "weight"), frame)


@pytest.mark.usefixtures("cluster")
def test_a_model_of_every_arm_is_that_of_the_whole_table():
    frame, model = table(arms=("none", "mail", "call")), OneVsControl(UpliftTree(max_depth=2))
    found = engines.fit(clone(model), spread(frame), "bought", "segment", "weight", FEATURES)
    whole = local(model, frame, "weight")
    np.testing.assert_array_equal(found.predict(frame.select(FEATURES)), whole.predict(frame.select(FEATURES)))
    np.testing.assert_array_equal(found._ladder, whole._ladder)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("model", [UpliftSVM(ratio=1.5), UpliftSVM(p=1.0, C=0.1)])
def test_a_machine_is_that_of_the_whole_table(model):
    frame = table()
    found = engines.fit(clone(model), spread(frame), "bought", "segment", None, FEW)
    agree(found, few(model, frame), 1e-6 if model.p > 1.0 else 1e-4)


@pytest.mark.usefixtures("cluster")
def test_passes_over_the_table_are_counted(capsys):
    frame = table()
    engines.fit(UpliftSVM(), spread(frame), "bought", "segment", None, FEATURES, verbose=1)
    counted = re.findall(r"passes over the table: (\d+)it", capsys.readouterr().err)
    assert int(counted[-1]) > 5


@pytest.mark.usefixtures("cluster")
def test_row_ids_make_the_order_of_rows_irrelevant():
    frame = table().with_row_index("person")
    model = UpliftForest(4, min_samples_arm=5, random_state=1)
    mixed = frame.sample(fraction=1.0, shuffle=True, seed=3)
    found = engines.fit(clone(model), spread(mixed), "bought", "segment", None, FEATURES, row_id="person")
    same(found, local(model, frame), frame)


def _held(dask_worker):
    """What a worker keeps: kinds of values, and bytes of parts besides what can be made again of them."""
    parts = [value for value in dask_worker.data.values() if isinstance(value, _parts.Part)]
    kinds = {type(value).__name__ for value in dask_worker.data.values() if hasattr(value, "lot") or len(value) > 100}
    return kinds, sum(_places.size_of(vars(part)) - _places.size_of(part.kept) for part in parts)


HELD = {  # bytes a row: codes, words, arms; outcomes and weights where boosting or chances ask for them
    "forest": (UpliftForest(3, random_state=2), None, len(FEATURES) + 8 + 1),
    "weighted": (UpliftForest(3, random_state=2), "weight", len(FEATURES) + 16 + 1),
    "tree": (UpliftTree(max_depth=3), None, len(FEATURES) + 8 + 1),
    "boosting": (ENSEMBLES[0], None, len(FEATURES) + 16 + 1),
}


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("name", list(HELD))
def test_while_trees_grow_workers_keep_what_the_docs_say(name, monkeypatch):
    model, weight, a_row = HELD[name]
    frame, held, client = table(20_000), [], distributed.get_client()

    def question(*parameters):
        time.sleep(0.2)  # until workers have heard what they may let go of
        held.append(client.run(_held))
        return LevelQuestion(*parameters)

    by("levels", monkeypatch, question)
    engines.fit(clone(model), spread(frame, (0, 1, 1, 9000)), "bought", "segment", weight, FEATURES)
    kinds, sizes = zip(*held[-1].values(), strict=True)
    assert set().union(*kinds) == {"Part"}
    assert sum(sizes) <= 1.01 * a_row * len(frame)


@pytest.mark.parametrize("way", list(WAYS))
def test_killed_workers_change_nothing(way, cluster, monkeypatch):
    """All that is known of the rows is lost in the middle of the trees, and computed again."""
    frame = table()
    model = UpliftForest(4, min_samples_arm=5, random_state=2)
    asked, killed, real = [], [], WAYS[way]

    def question(*parameters):
        asked.append(1)
        if len(asked) == 2:
            killed.extend(nanny.pid for nanny in cluster.workers.values())
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
        return real(*parameters)

    by(way, monkeypatch, question)
    monkeypatch.setattr(_grow, "MOST_GATHERED", 100)
    found = engines.fit(clone(model), spread(frame), "bought", "segment", None, FEATURES)
    assert len(asked) >= (4 if way == "levels" else 2)
    assert len(killed) == 2
    assert set(killed).isdisjoint(nanny.pid for nanny in cluster.workers.values())
    same(found, local(model, frame), frame)


class Failing:
    """A question that fails, for want of memory or otherwise."""

    def __init__(self, kind):
        self.kind = kind

    def __call__(self, state):
        raise self.kind("the last straw")


def fails_on_copies(monkeypatch, frame):
    by("copies", monkeypatch, lambda *_: Failing(ValueError))
    with pytest.raises(ValueError, match=r"^on a copy of all rows: the last straw"):
        engines.fit(UpliftForest(4, random_state=0), spread(frame), "bought", "segment", None, FEATURES)


def fails_out_of_bag(monkeypatch, frame):
    by("levels", monkeypatch, lambda *_: Failing(ValueError))
    with pytest.raises(ValueError, match=r"^in partition \d: the last straw"):
        engines.fit(UpliftForest(4, oob=True, random_state=0), spread(frame), "bought", "segment", "weight", FEATURES)


def fails_far_from_0(monkeypatch, frame):
    monkeypatch.setattr(_svm._FarPrepared, "solve", lambda self, *_: self.places.ask(Failing(ValueError)))
    away = frame.with_columns(age=pl.col("age") + 1e6)
    with pytest.raises(ValueError, match=r"^in partition \d: the last straw"):
        engines.fit(UpliftSVM(standardize=False), spread(away), "bought", "segment", None, FEW)


@pytest.mark.parametrize("fails", [fails_on_copies, fails_out_of_bag, fails_far_from_0])
def test_a_fit_that_fails_takes_nothing_else_with_it(fails, cluster):
    """What the client keeps for others stays, its connection does, and the next fit is as ever."""
    frame, model, client = table(), UpliftForest(4, min_samples_arm=5, random_state=1), distributed.get_client()
    own = client.submit(int, 42, pure=False)
    assert own.result() == 42
    for _ in range(3):
        with pytest.MonkeyPatch.context() as patch:
            fails(patch, frame)
        found = engines.fit(clone(model), spread(frame), "bought", "segment", None, FEATURES)
    assert (own.status, own.result()) == ("finished", 42)
    assert client.id in cluster.scheduler.clients
    same(found, local(model, frame), frame)


@pytest.mark.usefixtures("cluster")
def test_trees_that_do_not_fit_into_memory_beside_copies_grow_without_them(monkeypatch):
    frame, model = table(), UpliftForest(4, min_samples_arm=5, random_state=1)
    by("copies", monkeypatch, lambda *_: Failing(MemoryError))
    monkeypatch.setattr(_grow, "LevelQuestion", LevelQuestion)
    same(engines.fit(clone(model), spread(frame), "bought", "segment", None, FEATURES), local(model, frame), frame)


def out_of_memory(*_):
    raise MemoryError


def odd(*_):
    raise ValueError("the last straw")


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("scheduler", [None, "threads"])
def test_copies_that_cannot_be_joined(scheduler, monkeypatch):
    """For want of memory they are done without; what else goes wrong is said of them."""
    frame, model = table(), UpliftForest(8, min_samples_arm=5, random_state=1)
    with dask.config.set(scheduler=scheduler):
        by("copies", monkeypatch)
        monkeypatch.setattr(_grow, "join", odd)
        with pytest.raises(ValueError, match=r"^on a copy of all rows: the last straw"):
            engines.fit(clone(model), spread(frame), "bought", "segment", None, FEATURES)
        monkeypatch.setattr(_grow, "join", out_of_memory)
        monkeypatch.setattr(_grow, "LevelQuestion", LevelQuestion)
        same(engines.fit(clone(model), spread(frame), "bought", "segment", None, FEATURES), local(model, frame), frame)


def test_workers_grow_as_many_trees_at_a_time_as_fit_into_their_memory():
    with (
        distributed.LocalCluster(
            1, processes=False, threads_per_worker=4, memory_limit=10**9, dashboard_address=None
        ) as small,
        distributed.Client(small),
        _dask.places(spread(table()), ["age"]) as places,
    ):
        assert places.copies(10**8, 10**7) == [4]
        assert places.copies(10**8, 190_000_000) == [2]  # 0.6 GB, less two copies, is room for 2.1 of them
        assert places.copies(10**8, 500_000_000) == []
        assert places.copies(4 * 10**8, 1) == []


@pytest.mark.usefixtures("cluster")
def test_another_scheduler_than_that_of_the_client():
    frame, model = table(), UpliftForest(4, min_samples_arm=5, random_state=1)
    for scheduler in ("threads", "synchronous"):
        with dask.config.set(scheduler=scheduler):
            found = engines.fit(clone(model), spread(frame), "bought", "segment", None, FEATURES)
        same(found, local(model, frame), frame)


def test_columns_whose_names_are_numbers():
    frame, model = table().to_pandas(), UpliftForest(4, min_samples_arm=5, random_state=1)
    renamed = frame.rename(columns={name: k for k, name in enumerate(FEATURES)})
    import dask.dataframe as dd

    numbered = dd.from_pandas(renamed, npartitions=3)
    features = [str(k) for k in range(len(FEATURES))]
    found = engines.fit(clone(model), numbered, "bought", "segment", None, features)
    scores = engines.predict(found, numbered).compute()["uplift"]
    np.testing.assert_array_equal(scores, local(model, table()).predict(frame[FEATURES]))


class Dying:
    """Kills the process that joins a copy of all rows, the first time for each copy."""

    def __init__(self, folder, real):
        self.folder, self.real = folder, real

    def __call__(self, bare, threads, k, parts):
        once = self.folder / str(k)
        if not once.exists():
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.real(bare, threads, k, parts)


@pytest.mark.usefixtures("cluster")
def test_workers_killed_while_they_copy_change_nothing(monkeypatch, tmp_path):
    """Copies are bound to workers as long as they are made, and no longer; without these workers trees grow level by level."""
    frame, model = table(), UpliftForest(4, min_samples_arm=5, random_state=2)
    by("copies", monkeypatch)
    monkeypatch.setattr(_grow, "join", Dying(tmp_path, join))
    monkeypatch.setattr(_grow, "LevelQuestion", LevelQuestion)
    found = engines.fit(clone(model), spread(frame), "bought", "segment", None, FEATURES)
    assert any(tmp_path.iterdir())
    same(found, local(model, frame), frame)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("way", list(WAYS))
def test_ctrl_c_stops_the_cluster(way, monkeypatch, tmp_path):
    """Parts that wait are never asked, and nothing is kept; the cluster goes on working for others."""
    frame, model, real = table(), UpliftForest(6, random_state=2), WAYS[way]
    by(way, monkeypatch, lambda *how: Slow(tmp_path, real(*how)))
    many = spread(frame, (0, 1, 1, *range(100, 1200, 100)))
    asked = interrupted(lambda: engines.fit(model, many, "bought", "segment", None, FEATURES), tmp_path)
    assert 1 <= asked <= 4  # of 14 parts, or of 6 trees
    assert not hasattr(model, "nodes_")
    client = distributed.get_client()
    assert not any(client.processing().values())
    assert not client.who_has()
    monkeypatch.undo()
    same(engines.fit(model, many, "bought", "segment", None, FEATURES), local(model, frame), frame)


@pytest.mark.usefixtures("cluster")
def test_scores_and_samples_of_a_table_on_a_cluster(tmp_path):
    frame = table(arms=("none", "mail", "call"))
    model = local(UpliftForest(4, random_state=1), frame)
    scored = engines.predict(model, spread(frame))
    assert list(scored.columns) == [*frame.columns, "uplift_call", "uplift_mail"]
    expected = model.predict(frame.select(FEATURES))
    np.testing.assert_array_equal(scored[["uplift_call", "uplift_mail"]].compute().to_numpy(), expected)
    drawn = engines.sample(spread(frame), 50, random_state=3)
    assert (
        drawn["age"].fillna(-1).tolist()
        == engines.sample(frame.lazy(), 50, random_state=3)["age"].fill_null(-1).to_list()
    )


@pytest.mark.usefixtures("cluster")
def test_errors_are_one_sentence_with_the_partition():
    gone = pl.when(pl.int_range(1200) == 700).then(None).otherwise("bought")
    frame = table().with_columns(bought=gone)
    with pytest.raises(ValueError, match=r"^in partition 3: .*NaN|^in partition 3: .*missing") as caught:
        engines.fit(UpliftForest(2), spread(frame), "bought", "segment", None, FEATURES)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("cluster")
def test_partitions_without_an_arm_and_with_levels_of_their_own():
    frame = table(arms=("none", "mail", "call")).sort("segment", "city", nulls_last=True)
    model = UpliftForest(3, min_samples_arm=5, random_state=1)
    same(engines.fit(clone(model), spread(frame), "bought", "segment", None, FEATURES), local(model, frame), frame)


@pytest.mark.usefixtures("cluster")
def test_columns_that_differ_between_partitions_are_refused_in_words(tmp_path):
    import dask.dataframe as dd

    whole = table().to_pandas()
    pieces = [whole.iloc[:500], whole.iloc[500:].assign(visits="v" + whole["visits"].iloc[500:].astype(str))]
    parted = dd.from_delayed([dask.delayed(piece) for piece in pieces], meta=whole.iloc[:0], verify_meta=False)
    for k, piece in enumerate((whole.iloc[:500], whole.iloc[500:].drop(columns="visits"))):
        piece.to_parquet(tmp_path / f"{k}.parquet")
    stored = dd.read_parquet([str(tmp_path / f"{k}.parquet") for k in range(2)])
    for frame, error, said in (
        (parted, TypeError, "^column 'visits' holds text in partition 1 and numbers in partition 0"),
        (stored, RuntimeError, "^in partition 0: Dask could not compute the table.*visits"),
    ):
        with pytest.raises(error, match=said) as caught:
            engines.fit(UpliftForest(2), frame, "bought", "segment", None, FEATURES)
        assert "\n" not in str(caught.value)


def test_a_file_that_disappears_is_told_in_words(cluster, tmp_path, monkeypatch):
    import dask.dataframe as dd

    for k, piece in enumerate((table()[:600], table()[600:])):
        piece.write_parquet(tmp_path / f"{k}.parquet")
    frame = dd.read_parquet(str(tmp_path / "*.parquet"))
    real = _parts.learn_bins

    def after_the_first_pass(*whole, **how):
        (tmp_path / "1.parquet").unlink()
        for nanny in cluster.workers.values():  # what was read before is gone, too
            os.kill(nanny.pid, signal.SIGKILL)
        return real(*whole, **how)

    monkeypatch.setattr(_parts, "learn_bins", after_the_first_pass)
    with pytest.raises(RuntimeError, match=r"^in partition 0: Dask could not compute the table.*1\.parquet") as caught:
        engines.fit(UpliftForest(2, random_state=0), frame, "bought", "segment", None, FEATURES)
    assert "\n" not in str(caught.value)


def _piece(number, whole):
    """A partition, of which the fourth cannot be read."""
    if number == 3:
        raise OSError(f"the disk is gone\npiece {number}")
    return whole.iloc[200 * number : 200 * (number + 1)]


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("scheduler", ["threads", None])
def test_a_partition_that_cannot_be_read_is_named(scheduler):
    import dask.dataframe as dd

    whole = table().to_pandas()
    frame = dd.from_delayed([dask.delayed(_piece)(number, whole) for number in range(6)], meta=whole.iloc[:0])
    said = r"^in partition 3: Dask could not compute the table.*OSError: the disk is gone"
    for call in (
        lambda: engines.fit(UpliftForest(2, random_state=0), frame, "bought", "segment", None, FEATURES),
        lambda: engines.evaluate(frame, "bought", ["age"], "segment"),
        lambda: engines.check(frame, "bought", "segment", features=FEATURES),
    ):
        how = {} if scheduler is None else {"scheduler": scheduler}
        with dask.config.set(how), pytest.raises(RuntimeError, match=said) as caught:
            call()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (
            {"model": TLearner()},
            TypeError,
            "gradient boosting, which needs all rows in one place: pass lightgbm",
        ),
        ({"model": OneVsControl()}, TypeError, "ClassTransformation does not run on a cluster"),
        ({"row_id": "person"}, ValueError, "row_id='person' is no column"),
        ({"row_id": "age"}, ValueError, "is among features"),
        ({"scratch": "."}, ValueError, "Parquet files"),
        ({"y": "sold"}, ValueError, "y='sold' is no column"),
    ],
)
def test_what_cannot_be_is_refused_in_words(change, error, said):
    asked = {
        "model": UpliftForest(2),
        "table": spread(table()),
        "y": "bought",
        "treatment": "segment",
        "features": FEATURES,
    }
    with pytest.raises(error, match=said):
        engines.fit(**{**asked, **change})


def as_good(found, whole, frame, tmp_path):
    """Whether a learner whose bases learnt in parts ranks as the local one, and comes back from a file."""
    mine, other = (model.predict(frame.select(FEW)) for model in (found, whole))
    assert np.corrcoef(mine, other)[0, 1] > 0.9
    with pytest.warns(UserWarning, match="rebuilt only on your word") as told:
        found.save(tmp_path / "model.upturn")
    types = re.findall(r"'([\w.]+)'", str(told[0].message).partition("trusted=")[2])
    again = upturn.load(tmp_path / "model.upturn", trusted=types)
    np.testing.assert_array_equal(again.predict(frame.select(FEW)), mine)


@pytest.mark.parametrize("kind", ["lightgbm.DaskLGBMClassifier", "xgboost.dask.DaskXGBClassifier"])
def test_meta_learners_without_a_cluster_say_what_to_start(kind, monkeypatch):
    module, _, name = kind.rpartition(".")
    base = type(name, (BaseEstimator,), {"__module__": module})()
    monkeypatch.setattr("distributed.get_client", Mock(side_effect=ValueError("No global client found")))
    with pytest.raises(RuntimeError, match=rf"estimator={name} learns on the workers .*distributed.Client\(\)"):
        engines.fit(TLearner(base), spread(table()), "bought", "segment", None, FEW)


@pytest.mark.usefixtures("cluster")
def test_meta_learners_over_lightgbm(tmp_path):
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    frame, how = table(4000, seed=2), {"n_estimators": 10, "num_leaves": 5, "verbose": -1}
    t = TLearner(lightgbm.DaskLGBMClassifier(**how))
    dr = DRLearner(lightgbm.DaskLGBMRegressor(**how), propensity="shares", cv=2, random_state=0)
    near = {
        t: TLearner(lightgbm.LGBMClassifier(**how)),
        dr: DRLearner(lightgbm.LGBMRegressor(**how), propensity="shares", cv=2, random_state=0),
    }
    for model, beside in near.items():
        found = engines.fit(model, spread(frame), "bought", "segment", "weight", FEW)
        whole = beside.fit(frame.select(*FEW, "segment", "bought", "weight"), "bought", "segment", "weight")
        as_good(found, whole, frame, tmp_path)


@pytest.mark.usefixtures("cluster")
def test_meta_learners_over_xgboost(tmp_path):
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    pytest.importorskip("xgboost.dask")
    frame, how = table(4000, seed=2), {"n_estimators": 10, "max_depth": 2}
    model = XLearner(xgboost.dask.DaskXGBClassifier(**how), xgboost.dask.DaskXGBRegressor(**how), propensity="shares")
    found = engines.fit(model, spread(frame), "bought", "segment", None, FEW)
    whole = XLearner(xgboost.XGBClassifier(**how), xgboost.XGBRegressor(**how), propensity="shares").fit(
        frame.select(*FEW, "segment", "bought"), "bought", "segment"
    )
    as_good(found, whole, frame, tmp_path)


@pytest.mark.usefixtures("cluster")
def test_metrics_are_those_of_the_whole_table():
    frame = judged()
    data = frame["bought"], {name: frame[name] for name in ("fine", "coarse")}, frame["segment"]
    expected = metrics.evaluate(*data, interval=None)
    found = engines.evaluate(spread(frame), "bought", ["fine", "coarse"], "segment", interval=None)
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-12)
    here = engines.evaluate(frame.lazy(), "bought", ["fine"], "segment", metrics=["autoc"], n_bootstrap=20)
    there = engines.evaluate(spread(frame), "bought", ["fine"], "segment", metrics=["autoc"], n_bootstrap=20)
    np.testing.assert_allclose(there["fine"]["autoc"].samples, here["fine"]["autoc"].samples, rtol=1e-12)
    assert type(there.to_frame()).__module__.startswith("pandas")
    response = metrics.expected_response(frame["bought"], frame["best"], frame["segment"])
    assert engines.expected_response(spread(frame), "bought", "best", "segment") == pytest.approx(response, rel=1e-12)
    curve = engines.curve(spread(frame), "bought", "fine", "segment", kind="qini")
    np.testing.assert_allclose(
        curve.y, metrics.qini_curve(frame["bought"], frame["fine"], frame["segment"]).y, rtol=1e-12
    )


@pytest.mark.usefixtures("cluster")
def test_plans_treat_the_people_of_the_whole_table():
    frame = people(coarse=True).with_columns(person=pl.int_range(900))
    how = {"budget": 61.7, "cost": ["mail_cost", "call_cost"]}
    score = {"mail": "mail", "call": "call"}
    expected = engines.target(frame.lazy(), score, **how)
    found = engines.target(spread(frame), score, row_id="person", **how)
    labels = expected.table.collect()["recommended"].to_list()
    assert found.table["recommended"].compute().tolist() == labels
    assert found.n_treated == expected.n_treated > 10
    with pytest.raises(ValueError, match="pass row_id="):
        engines.target(spread(frame), "mail", fraction=0.2)
    drawn = engines.sample(spread(frame), 60, random_state=3, treatment="segment")
    expected = engines.sample(frame.lazy(), 60, random_state=3, treatment="segment")
    assert drawn["person"].tolist() == expected["person"].to_list()


@pytest.mark.usefixtures("cluster")
def test_checks_find_what_they_find_in_the_whole_table():
    frame = trial(biased=True)
    how = {"y": "bought", "treatment": "segment", "features": ["age", "city", "shop"]}
    found = engines.check(spread(frame), **how)
    assert str(found) == str(engines.check(frame.lazy(), **how))
    assert "balance" in found.warnings


@pytest.mark.usefixtures("cluster")
def test_umodl_and_filters_find_what_they_find_in_the_whole_table():
    frame = counted()
    how = {"y": "bought", "treatment": "segment", "features": ["age", "city"]}
    found = engines.fit(UMODLDiscretizer(), spread(frame), **how)
    expected = engines.fit(UMODLDiscretizer(), frame.lazy(), **how)
    np.testing.assert_array_equal(found.cost_, expected.cost_)
    np.testing.assert_array_equal(found.partitions_[0].edges, expected.partitions_[0].edges)
    assert found.n_parts_[0] > 1
    scores = [engines.fit(FilterSelector(), one, **how).scores_ for one in (spread(frame), frame.lazy())]
    np.testing.assert_array_equal(*scores)
