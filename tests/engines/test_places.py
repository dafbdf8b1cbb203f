"""Trees grown from parts of the rows: the model of the whole table, to the last bit, however the rows lie."""

import os
import pickle
import platform
import signal
import threading
import time
from itertools import pairwise
from types import SimpleNamespace
from uuid import uuid4

import numpy as np
import pytest
from sklearn.base import clone

from upturn._balance import balance_pvalue
from upturn._experiment import Experiment
from upturn._table import read_table
from upturn._target import read_target
from upturn.boosting import UpliftBagging, UpliftBoosting
from upturn.engines import _grow, _ids
from upturn.engines._balance import balance_of_parts
from upturn.engines._gather import Roles
from upturn.engines._learn import learn
from upturn.engines._numbers import Raw
from upturn.engines._places import Failure, Here, answer, first_that
from upturn.engines._select import keys_of, numbers_of, select
from upturn.meta import OneVsControl
from upturn.svm import UpliftSVM
from upturn.trees import CTSForest, UCTSForest, UpliftForest, UpliftTree

pl = pytest.importorskip("polars")
N = 1200
FEATURES = ["age", "city", "shop", "visits", "level", "member", "chance"]


def table(n=N, arms=("none", "mail"), outcome="binary", seed=0):
    """Numbers with many values and with few, gaps, a category with few levels and one with more than there are bins."""
    rng = np.random.default_rng(seed)
    age, city = rng.normal(40, 12, n), rng.choice(["Rome", "Oslo", "Kyiv", "Lima"], n)
    arm = rng.choice(list(arms), n)
    lift = 0.3 * (arm != arms[0]) * (age > 40) * (city != "Rome") - 0.2 * (arm == arms[-1]) * (city == "Oslo")
    y = (rng.random(n) < 0.4 + lift).astype(float)
    if outcome == "real":
        y = np.exp(rng.normal(size=n)) * (1.0 + lift)
    elif outcome == "far":
        y = 1e7 + 3.0 * y
    weight = rng.uniform(0.3, 2.0, n)
    weight[rng.random(n) < 0.05] = 0.0
    return pl.DataFrame(
        {
            "age": pl.Series(np.where(rng.random(n) < 0.1, np.nan, age)).fill_nan(None),
            "city": pl.Series(city.tolist()).set(pl.Series(rng.random(n) < 0.05), None),
            "shop": [f"s{k}" for k in np.minimum(rng.geometric(0.01, n), 400)],
            "visits": rng.integers(0, 9, n).astype(np.int16),
            "level": np.full(n, 3.0),
            "member": rng.random(n) < 0.5,
            "chance": rng.integers(2, 8, n) / 10,
            "segment": arm,
            "weight": weight,
            "count": rng.integers(0, 4, n),
            "bought": y,
        }
    )


def parts(frame, k, seed=0):
    """``k`` uneven parts of a frame; of several, one is empty and one a single row."""
    if k == 1:
        return Here([Raw(0, frame)])
    cuts = np.sort(np.random.default_rng(seed + k).choice(np.arange(2, len(frame)), k - 3, replace=False)).tolist()
    ends = [0, 1, *cuts, len(frame)]
    ends.insert(2, ends[1])
    return Here([Raw(i, frame[a:b]) for i, (a, b) in enumerate(pairwise(ends))])


def far(model, frame, k, weight=None, row_id=None, features=FEATURES):
    """A model of parts of a frame."""
    model = clone(model)
    learn(model, parts(frame, k), Roles("bought", "segment", weight, features), row_id, "polars")
    return model


def same(one, two, frame, tmp_path):
    """Whether two models are one, to the last bit of their files."""
    paths = [tmp_path / "one.upturn", tmp_path / "two.upturn"]
    for model, path in zip((one, two), paths, strict=True):
        model.save(path)
    assert len(one.nodes_.feature) > one.nodes_.n_trees
    np.testing.assert_array_equal(one.predict(frame.select(FEATURES)), two.predict(frame.select(FEATURES)))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    if getattr(one, "oob", False):
        assert len(one.oob_response_) == len(frame)
        np.testing.assert_array_equal(one.oob_response_, two.oob_response_)
        np.testing.assert_array_equal(one.oob_prediction_, two.oob_prediction_)


def local(model, frame, weight=None):
    columns = [*FEATURES, "segment", "bought", *([weight] if weight else [])]
    return clone(model).fit(frame.select(columns), "bought", "segment", weight)


SMALL = {"min_samples_arm": 5, "random_state": 3}
CASES = {
    "tree": (UpliftTree(max_depth=4, max_bins=40, **SMALL), {}, None),
    "tree of kl": (UpliftTree("kl", honest=True, **SMALL), {}, None),
    "tree of chi2, weighted": (UpliftTree("chi2", max_bins=40, **SMALL), {}, "weight"),
    "pruned": (UpliftTree(prune=True, **SMALL), {"outcome": "real"}, None),
    "pruned, honest, weighted": (
        UpliftTree("kl", prune=True, honest=True, **SMALL),
        {"arms": ("none", "mail", "call")},
        "weight",
    ),
    "forest": (UpliftForest(4, **SMALL), {}, None),
    "out of bag": (UpliftForest(4, oob=True, **SMALL), {"outcome": "far"}, None),
    "out of bag, weighted": (UpliftForest(4, oob=True, bootstrap=True, center=True, **SMALL), {}, "weight"),
    "forest, whole weights": (UpliftForest(4, bootstrap=True, **SMALL), {"outcome": "real"}, "count"),
    "bootstrap": (UpliftForest(4, bootstrap=True, max_depth=5, **SMALL), {"outcome": "real"}, None),
    "honest bootstrap": (UpliftForest(4, bootstrap=True, honest=True, **SMALL), {}, "weight"),
    "groups": (UpliftForest(4, ci_group_size=2, max_samples=0.7, honest=True, **SMALL), {"outcome": "far"}, None),
    "several arms": (
        UpliftForest(4, max_features=2, max_samples=0.6, **SMALL),
        {"arms": ("none", "mail", "call"), "outcome": "real"},
        "weight",
    ),
    "all features": (
        UpliftForest(3, "cts", normalize=False, max_features=None, **SMALL),
        {"arms": ("none", "mail", "call")},
        None,
    ),
    "centred": (UpliftForest(3, center=True, normalize=False, bootstrap=True, **SMALL), {"outcome": "real"}, None),
    "centred, weighted": (UpliftForest(3, center=True, normalize=False, honest=True, **SMALL), {}, "weight"),
    "chances known": (UpliftForest(3, propensity=0.4, normalize=False, **SMALL), {"outcome": "real"}, "weight"),
    "chances of trees": (
        UpliftForest(3, propensity="trees", center=True, normalize=False, **SMALL),
        {"arms": ("none", "mail", "call")},
        "weight",
    ),
    "chances in a column": (UpliftForest(3, propensity="chance", normalize=False, honest=True, **SMALL), {}, None),
    "cts": (CTSForest(4, random_state=3), {"outcome": "real"}, None),
    "ucts": (UCTSForest(4, random_state=3), {"arms": ("none", "mail", "call")}, "weight"),
}


INFERENCE = {
    "real outcomes": (UpliftForest(inference=True, oob=True, random_state=3), {"outcome": "real"}, None),
    "two classes, kl": (UpliftForest(inference=True, criterion="kl", random_state=3), {}, "count"),
    "several arms, far, weighted": (
        UpliftForest(inference=True, oob=True, max_depth=4, random_state=3),
        {"arms": ("none", "mail", "call"), "outcome": "far"},
        "weight",
    ),
    "chances of trees": (UpliftForest(inference=True, propensity="trees", random_state=3), {"outcome": "real"}, None),
    "chances in a column": (UpliftForest(inference=True, propensity="chance", random_state=3), {}, "weight"),
    "chances known": (UpliftForest(inference=True, propensity=0.4, random_state=3), {"outcome": "real"}, "count"),
}


ENSEMBLES = {
    "boosting": (UpliftBoosting(n_estimators=15, random_state=3), {}, None),
    "boosting, deep": (UpliftBoosting(UpliftTree(max_depth=3), n_estimators=9, random_state=3), {}, None),
    "boosting, balanced, weighted": (
        UpliftBoosting(UpliftTree(prune=True, honest=True), algorithm="balanced", n_estimators=9, random_state=3),
        {"outcome": "far"},
        "weight",
    ),
    "boosting with restarts": (
        UpliftBoosting(algorithm="forgetting", restart="strict", n_estimators=15, random_state=3),
        {},
        "huge",
    ),
    "boosting without ranks": (UpliftBoosting(n_estimators=5, ties="none", random_state=3), {}, "count"),
    "bagging": (UpliftBagging(n_estimators=4, random_state=3), {"outcome": "real"}, None),
    "bagging, several arms": (
        UpliftBagging(
            UpliftTree("cts", max_depth=4, min_samples_arm=5), n_estimators=3, average="vote", random_state=3
        ),
        {"arms": ("none", "mail", "call"), "outcome": "far"},
        "weight",
    ),
    "bagging, weights far from 1": (UpliftBagging(n_estimators=3, random_state=3), {}, "huge"),
}


@pytest.mark.filterwarnings("ignore:the ensemble of")
@pytest.mark.parametrize("gathered", [0, 200])
@pytest.mark.parametrize("case", list(ENSEMBLES))
def test_an_ensemble_of_parts_is_that_of_the_whole_table(case, gathered, monkeypatch, tmp_path):
    model, how, weight = ENSEMBLES[case]
    monkeypatch.setattr(_grow, "MOST_GATHERED", gathered)
    frame = table(**how).with_columns(huge=pl.col("weight") * 2.0**40)
    whole = local(model, frame, weight)
    assert whole.estimators_
    if case in ("boosting with restarts", "boosting, balanced, weighted"):
        assert whole.n_restarts_ > 0
    for k in (1, 7):
        found = far(model, frame, k, weight)
        paths = [tmp_path / "one.upturn", tmp_path / "two.upturn"]
        for one, path in zip((found, whole), paths, strict=True):
            one.save(path)
        assert paths[0].read_bytes() == paths[1].read_bytes()
        if isinstance(model, UpliftBagging):
            assert len(whole.oob_prediction_) == len(frame)
            np.testing.assert_array_equal(found.oob_prediction_, whole.oob_prediction_)
        np.testing.assert_array_equal(found.predict(frame.select(FEATURES)), whole.predict(frame.select(FEATURES)))


PAIRS = {
    "trees": (OneVsControl(UpliftTree(max_depth=3, **SMALL)), "weight"),
    "forests": (OneVsControl(UpliftForest(3, honest=True, **SMALL)), "huge"),
    "boosting": (OneVsControl(UpliftBoosting(n_estimators=5, random_state=3)), None),
}


@pytest.mark.filterwarnings("ignore:the ensemble of", "ignore:.*the arms differ in their features")
@pytest.mark.parametrize("case", list(PAIRS))
def test_a_model_of_every_arm_is_that_of_the_whole_table(case, tmp_path):
    model, weight = PAIRS[case]
    frame = table(arms=("none", "mail", "call")).with_columns(huge=pl.col("weight") * 2.0**40)
    rare = pl.when((pl.col("city") == "Oslo") & (pl.col("segment") != "call")).then(pl.lit("Rome")).otherwise("city")
    frame = frame.with_columns(city=rare)  # a level that only one of the arms knows
    whole = local(model, frame, weight)
    for k in (1, 7):
        found = far(model, frame, k, weight)
        paths = [tmp_path / "one.upturn", tmp_path / "two.upturn"]
        for one, path in zip((found, whole), paths, strict=True):
            one.save(path)
        assert paths[0].read_bytes() == paths[1].read_bytes()
        np.testing.assert_array_equal(found.recommend(frame.select(FEATURES)), whole.recommend(frame.select(FEATURES)))


def test_machines_of_every_arm_are_those_of_the_whole_table():
    frame, model = table(arms=("none", "mail", "call")), OneVsControl(UpliftSVM(p=1.5))
    columns = ["age", "visits", "member"]
    whole = clone(model).fit(frame.select(columns), frame["bought"], frame["segment"])
    for k in (1, 7):
        found = far(model, frame, k, features=columns)
        np.testing.assert_allclose(
            found.predict(frame.select(columns)), whole.predict(frame.select(columns)), atol=1e-6
        )
        np.testing.assert_allclose(found._ladder, whole._ladder, atol=1e-6)


class Slow:
    """A question that takes long, and leaves a file for every part that was asked."""

    def __init__(self, folder, question):
        self.folder, self.question = str(folder), question

    def __call__(self, part):
        open(os.path.join(self.folder, uuid4().hex), "w").close()
        time.sleep(2.0)
        return self.question(part)


def interrupted(fit, folder):
    """Press Ctrl-C once some part is busy; how many parts were asked in the end."""
    pressed = []

    def press():
        until = time.monotonic() + 120
        while not any(folder.iterdir()) and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.3)
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:  # a run that a shell put into the background hears no Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=press)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            fit()
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - pressed[0] < 60
    time.sleep(5.0)
    return len(list(folder.iterdir()))


class Forgetful(Here):
    """Places that keep nothing beside their states, which travel whenever they are asked."""

    def ask(self, question, merge=None):
        self._states = [pickle.loads(pickle.dumps(state)) for state in self._states]
        return super().ask(pickle.loads(pickle.dumps(question)), merge)

    def change(self, step):
        return Forgetful(super().change(step)._states)


@pytest.mark.parametrize("model", [UpliftBoosting(n_estimators=9, random_state=3), UpliftBagging(n_estimators=2)])
def test_what_parts_keep_may_be_lost_at_any_time(model):
    frame = table()
    found, model = clone(model), model.set_params(random_state=3)
    found.set_params(random_state=3)
    learn(found, Forgetful(parts(frame, 5)._states), Roles("bought", "segment", "weight", FEATURES), None, "polars")
    whole = local(model, frame, "weight")
    np.testing.assert_array_equal(found.predict(frame.select(FEATURES)), whole.predict(frame.select(FEATURES)))


def test_boosting_of_shuffled_rows_with_ids_is_that_of_the_rows_in_order():
    frame = table().with_row_index("person")
    mixed = frame.sample(fraction=1.0, shuffle=True, seed=3)
    model = UpliftBoosting(algorithm="forgetting", restart="strict", n_estimators=12, random_state=3)
    found, whole = far(model, mixed, 5, row_id="person"), local(model, frame)
    assert found.history_.tobytes() == whole.history_.tobytes()
    assert whole.n_restarts_ > 0
    with pytest.raises(ValueError, match="UpliftBagging draws rows by their place"):
        far(UpliftBagging(), frame, 5, row_id="person")


def test_an_ensemble_of_parts_warns_as_one_of_the_whole_table():
    frame = table().with_columns(age=1.0, city=pl.lit("Rome"), shop=pl.lit("s"), visits=1, chance=0.5)
    said = []
    for fit in (local, lambda model, frame: far(model, frame, 5)):
        with pytest.warns(UserWarning, match="ensemble") as caught:
            fit(UpliftBoosting(n_estimators=31, random_state=0), frame)
        said.append([str(one.message) for one in caught])
    assert said[0] == said[1] != []


def test_boosting_wants_two_classes():
    with pytest.raises(ValueError, match="more than two values"):
        far(UpliftBoosting(), table(outcome="real"), 4)


@pytest.mark.parametrize("gathered", [0, 200])
@pytest.mark.parametrize("case", list(CASES))
def test_a_model_of_parts_is_that_of_the_whole_table(case, gathered, monkeypatch, tmp_path):
    model, how, weight = CASES[case]
    monkeypatch.setattr(_grow, "MOST_GATHERED", gathered)
    frame = table(**how)
    whole = local(model, frame, weight)
    for k in (1, 7):
        same(far(model, frame, k, weight), whole, frame, tmp_path)


def fewer_trees(monkeypatch):
    """A forest for inference has 500 trees; 40 tell as much about where its rows lie."""
    monkeypatch.setattr("upturn.trees._forest._MANY", 40)


def same_intervals(one, two, frame):
    """Whether two forests have the same intervals, to the last bit."""
    for mine, other in zip(one._pooled, two._pooled, strict=True):
        np.testing.assert_array_equal(mine, other)
    mine, other = (model.predict_interval(frame.select(FEATURES)) for model in (one, two))
    np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("case", list(INFERENCE))
def test_intervals_of_parts_are_those_of_the_whole_table(case, monkeypatch, tmp_path):
    fewer_trees(monkeypatch)
    monkeypatch.setattr(_grow, "MOST_GATHERED", 200)
    model, how, weight = INFERENCE[case]
    model = clone(model).set_params(n_estimators=40)
    frame = table(**how)
    whole = local(model, frame, weight)
    assert (whole._pooled.reach != 1.0).all()
    for k in (1, 7):
        found = far(model, frame, k, weight)
        same(found, whole, frame, tmp_path)
        same_intervals(found, whole, frame)


def test_intervals_of_shuffled_rows_with_ids_are_those_of_the_rows_in_order(monkeypatch, tmp_path):
    """Also of more rows than variances are pooled over, which are chosen by the order of ids."""
    fewer_trees(monkeypatch)
    monkeypatch.setattr("upturn.trees._inference._MOST_ROWS", 300)
    frame = table(outcome="real").with_row_index("person")
    mixed = frame.sample(fraction=1.0, shuffle=True, seed=3)
    model = UpliftForest(40, inference=True, random_state=3)
    whole = local(model, frame)
    for found in (far(model, mixed, 5, row_id="person"), far(model, frame, 5)):
        same(found, whole, frame, tmp_path)
        same_intervals(found, whole, frame)


@pytest.mark.parametrize("given", ["segment", "by age", "by city"])
def test_chances_are_learnt_where_the_arms_differ_as_in_the_whole_table(given, monkeypatch, tmp_path):
    fewer_trees(monkeypatch)
    frame = table(outcome="real")
    rng = np.random.default_rng(5)
    older = frame["age"].fill_null(40).to_numpy() > 40
    roman = (frame["city"] == "Rome").fill_null(False).to_numpy()
    if given != "segment":
        odd = rng.random(N) < 0.35 + 0.3 * (older if given == "by age" else roman)
        frame = frame.with_columns(segment=pl.Series(np.where(odd, "mail", "none")))
    model = UpliftForest(40, inference=True, random_state=3)
    whole = local(model, frame)
    assert whole.propensity_kind_ == ("shares" if given == "segment" else "trees")
    found = far(model, frame, 7)
    same(found, whole, frame, tmp_path)
    same_intervals(found, whole, frame)


def test_the_test_of_balance_is_that_of_the_whole_table_to_the_last_bit():
    for arms in (("none", "mail"), ("none", "mail", "call")):
        frame = table(arms=arms)
        roles = Roles("bought", "segment", None, FEATURES)
        data = Experiment(*read_table(frame.select(FEATURES)), read_target(frame["bought"], frame["segment"]))
        expected = balance_pvalue(data)
        assert 0.0 < expected <= 1.0
        for k in (1, 7):
            labels = [data.target.control, *data.target.arms]
            assert balance_of_parts(parts(frame, k), roles, data.schema, labels) == expected


def test_order_statistics_are_exact_wherever_numbers_lie():
    rng = np.random.default_rng(0)
    numbers = np.concatenate([rng.exponential(size=500), np.zeros(20), [1e300, 5e-324]])
    for ends in ([0, 522], [0, 1, 1, 300, 522]):
        places = Here([numbers[a:b] for a, b in pairwise(ends)])
        ranks = np.array([0, 5, 25, 260, 521])
        np.testing.assert_array_equal(numbers_of(select(places, keys_of, ranks)), np.sort(numbers)[ranks])
    ids = np.array([2**64 - 1, 0, 2**63, 7], np.uint64)
    np.testing.assert_array_equal(select(Here([ids[:2], ids[2:]]), np.asarray, np.arange(4)), np.sort(ids))


def test_too_few_rows_for_a_rehearsal_leave_intervals_as_they_are(monkeypatch):
    fewer_trees(monkeypatch)
    frame = table(60, outcome="real").with_columns(shop=pl.lit("s"))
    model = UpliftForest(40, inference=True, random_state=3)
    whole, found = local(model, frame), far(model, frame, 5)
    assert whole._pooled.reach == 1.0
    same_intervals(found, whole, frame)


def test_a_model_of_shuffled_rows_with_ids_is_that_of_the_rows_in_order(tmp_path):
    frame = table().with_row_index("person")
    mixed = frame.sample(fraction=1.0, shuffle=True, seed=3)
    for model in (UpliftForest(3, bootstrap=True, **SMALL), UpliftForest(3, max_samples=0.5, honest=True, **SMALL)):
        same(far(model, mixed, 5, row_id="person"), local(model, frame), frame, tmp_path)


@pytest.mark.parametrize("apart", [1, 10**15])
@pytest.mark.parametrize("where", [(5, 6), (5, 900)])  # in one part, in two
def test_ids_that_repeat_are_refused(where, apart):
    """Marked in a map where they lie close together, compared otherwise; negative ones, too."""
    person = apart * (np.random.default_rng(0).permutation(N) - 100)
    frame = table().with_columns(person=person)
    far(UpliftForest(2, **SMALL), frame, 5, row_id="person")
    person[where[1]] = person[where[0]]
    frame = table().with_columns(person=person)
    with pytest.raises(ValueError, match="row_id='person' has the same number in several rows"):
        far(UpliftForest(2, **SMALL), frame, 5, row_id="person")


@pytest.mark.parametrize("seed", range(5))
def test_marks_of_ids_are_one_for_each(seed):
    rng = np.random.default_rng(seed)
    ids = [rng.choice(1000, n, replace=False).astype(np.uint64) + np.uint64(77) for n in (0, 1, 8, 300)]
    marks = [_ids._marks(77, 1000, SimpleNamespace(ids=some)) for some in ids]
    found = np.unpackbits(_ids._merge_marks(marks), bitorder="little")[:1000]
    np.testing.assert_array_equal(np.flatnonzero(found) + 77, np.unique(np.concatenate(ids)))


def _several(kind):
    """Raise an error whose class is not made of one word."""
    raise {
        "unicode": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        "group": ExceptionGroup("two at once", [ValueError("one")]),
        "value": ValueError("seven"),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [
        ("unicode", RuntimeError, "in partition 3: UnicodeDecodeError: 'utf-8' codec can't decode byte"),
        ("group", RuntimeError, "in partition 3: ExceptionGroup: two at once"),
        ("value", ValueError, "in partition 3: seven"),
    ],
)
def test_errors_of_any_kind_arrive(kind, error, said):
    failure = answer(_several, kind, 3)
    assert isinstance(failure, Failure)
    found = failure.raised()
    assert type(found) is error
    assert str(found).startswith(said)


def test_ids_of_many_rows_that_repeat_often_are_found(monkeypatch):
    monkeypatch.setattr("upturn.engines._ids.MOST_IDS", 200)
    person = 10**12 * np.arange(N).reshape(2, -1)
    frame = table().with_columns(person=person.ravel())
    far(UpliftForest(2, **SMALL), frame, 5, row_id="person")
    person[1] = person[0]
    with pytest.raises(ValueError, match="the same number in several rows"):
        far(UpliftForest(2, **SMALL), table().with_columns(person=person.ravel()), 5, row_id="person")


@pytest.mark.parametrize("weight", [None, "weight"])
def test_edges_of_many_rows_come_from_a_sample_by_ids(weight, monkeypatch, tmp_path):
    """One feature with many values, one mostly missing, and few rows that decide the edges."""
    monkeypatch.setattr("upturn.trees._bins.SAMPLE", 150)
    monkeypatch.setattr("upturn.engines._bins.SAMPLE", 150)
    monkeypatch.setattr("upturn.trees._bins.KNOWN", 40)
    monkeypatch.setattr("upturn.engines._bins.KNOWN", 40)
    frame = table()
    rare = pl.when(pl.int_range(N) % 5 == 0).then(pl.col("age") * 2).otherwise(None)
    frame = frame.with_columns(level=rare)
    model = UpliftForest(2, max_bins=30, **SMALL)
    whole = local(model, frame, weight)
    same(far(model, frame, 7, weight), whole, frame, tmp_path)
    edges = whole.bins_.edges[FEATURES.index("level")]
    known = frame.filter(pl.col("weight") > 0 if weight else True)["level"].drop_nulls().sort().to_numpy()
    assert len(known) > 150
    assert np.isfinite(edges).sum() == 29
    middle = np.searchsorted(known, edges[14]) / len(known)  # a sample of all rows would hold some 30 values only
    assert 0.35 < middle < 0.65


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (
            lambda part: part.with_columns(visits=pl.col("visits").cast(pl.String)),
            TypeError,
            "'visits' holds text in part",
        ),
        (lambda part: part.with_columns(bought=None), ValueError, "in partition 2: "),
        (lambda part: part.with_columns(weight=-1.0), ValueError, "in partition 2: "),
        (lambda part: part.with_columns(age=np.inf), ValueError, "in partition 2: X contains infinity"),
    ],
)
def test_a_part_that_is_not_like_the_others_is_named(change, error, said):
    frame = table()
    pieces = [frame[:300], frame[300:600], change(frame[600:900]), frame[900:]]
    with pytest.raises(error, match=said) as caught:
        learn(
            UpliftForest(2),
            Here([Raw(i, piece) for i, piece in enumerate(pieces)]),
            Roles("bought", "segment", "weight", FEATURES),
            None,
            "polars",
        )
    assert "\n" not in str(caught.value)


def test_parts_without_one_of_the_arms_and_levels_of_their_own(tmp_path):
    frame = table(arms=("none", "mail", "call")).sort("segment", "city", nulls_last=True)
    model = UpliftForest(3, **SMALL)
    same(far(model, frame, 9), local(model, frame), frame, tmp_path)


def test_a_forest_without_a_split_says_why():
    frame = table().with_columns(bought=5.0)
    with pytest.warns(UserWarning, match="outcome is the same in all rows"):
        far(UpliftForest(2, random_state=0), frame, 4)
    level = table().with_columns(age=1.0)
    with pytest.warns(UserWarning, match="every feature has the same value"):
        far(UpliftForest(2, random_state=0), level, 4, features=["age", "level"])


class _Hosts:
    """Places on so many machines, and an experiment of rows there."""

    def __init__(self, rows, machines):
        self.rows, self.layout, self.bins = np.zeros(2), SimpleNamespace(n_words=1), SimpleNamespace(n_features=6)
        self._rows, self._machines, self.places, self.asked = rows, machines, self, 0

    def __len__(self):
        return self._rows

    def ask(self, question):
        self.asked += 1
        assert question(None) == platform.node()
        return [f"host {k % self._machines}" for k in range(50)]


@pytest.mark.parametrize(
    ("rows", "machines", "batch"),
    [(10**6, 1, 32), (10**8, 1, 5), (10**8, 4, 22), (10**9, 16, 8), (10**11, 100, 1)],
)
def test_trees_of_a_pass_are_as_many_as_the_machines_have_room_for(rows, machines, batch):
    far, rules = _Hosts(rows, machines), SimpleNamespace(max_depth=8, max_features=6, subtraction=True)
    plan = SimpleNamespace(share=0.3)
    assert _grow._batch(far, rules, plan, 200) == batch
    assert far.asked == (batch < 32)
    assert _grow._batch(far, rules, plan, 1) == 1


@pytest.mark.parametrize("bad", [(0,), (6,), (2, 5), ()])
def test_the_first_place_that_fails_is_found(bad):
    found = first_that(lambda places: any(place in bad for place in places), 7)
    assert found == (bad[0] if bad else None)
