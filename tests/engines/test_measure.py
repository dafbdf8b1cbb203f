"""Metrics of tables in parts: those of the whole table in memory, however the rows lie."""

import numpy as np
import pytest

from engines.test_places import parts
from upturn import engines, metrics
from upturn.engines import _evaluate, _ranking
from upturn.engines._evaluate import _columns_of, _curve, _judge, _response
from upturn.engines._measured import Roles, read_measured_parts
from upturn.engines._ranking import Ranking, tables_of
from upturn.metrics._compare import Asked, read_metrics
from upturn.metrics._replicates import Replicates

pl = pytest.importorskip("polars")
N = 1500
ALL = [
    "auuc",
    "qini",
    "autoc",
    "uplift_at",
    "auu",
    ("auuc", {"ranking": "joint"}),
    ("auuc", {"convention": "libuplift", "ranking": "joint"}),
    ("qini", {"convention": "grf"}),
    ("uplift_at", {"k": 0.1, "ranking": "joint"}),
    ("uplift_at", {"k": 50}),
]
PLAIN = [
    ("auuc", {"convention": "causalml"}),
    ("auuc", {"convention": "sklift"}),
    ("qini", {"convention": "sklift"}),
    ("qini", {"convention": "causalml"}),
    ("autoc", {"convention": "causalml"}),
    ("uplift_at", {"convention": "sklift"}),
]


def table(n=N, arms=("none", "mail"), outcome="binary", seed=0):
    """Scores with few values and with many, a constant one, weights some of which are 0, a recommendation and its chances."""
    rng = np.random.default_rng(seed)
    effect = rng.normal(size=n)
    arm = rng.choice(list(arms), n)
    y = (rng.random(n) < 0.4 + 0.15 * np.tanh(effect) * (arm != arms[0])).astype(float)
    if outcome == "real":
        y = np.exp(rng.normal(size=n)) + 0.5 * effect * (arm != arms[0])
    weight = np.where(rng.random(n) < 0.1, 0.0, rng.uniform(0.3, 2.0, n))
    return pl.DataFrame(
        {
            "fine": effect + rng.normal(size=n),
            "coarse": np.round(effect) + 0.0,
            "level": np.zeros(n),
            "segment": arm,
            "weight": weight,
            "best": rng.choice(list(arms), n),
            "chance": rng.uniform(0.3, 0.7, n),
            "bought": y,
        }
    )


MODELS = {"fine": "fine", "coarse": "coarse", "level": "level"}


def far(frame, k, weight=None, columns=("fine", "coarse", "level"), labels=(), row_id=None):
    roles = Roles("bought", "segment", weight, tuple(columns), tuple(labels), row_id)
    return read_measured_parts(parts(frame, k), roles, None)


def near(frame, weight):
    return {"sample_weight": None if weight is None else frame[weight], "treatment": frame["segment"]}


def numbers(found):
    return np.array([[float(value) for value in row.values()] for row in found.values()])


@pytest.mark.parametrize("most", [1 << 22, 100, 3])
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("outcome", ["binary", "real"])
def test_numbers_of_parts_are_those_of_the_whole_table(outcome, weight, most, monkeypatch):
    monkeypatch.setattr(_ranking, "MOST", most)
    frame = table(outcome=outcome)
    asked = ALL if weight or outcome == "real" else [*ALL, *PLAIN]
    local = metrics.evaluate(
        frame["bought"],
        {name: frame[name] for name in MODELS},
        metrics=asked,
        interval=None,
        **near(frame, weight),
    )
    for k in (1, 7):
        found = _judge(far(frame, k, weight), MODELS, read_metrics(asked, 0.3), None)
        found = found.evaluation(list(MODELS), None)
        scale = max(1.0, float(np.abs(numbers(local)).max()))
        np.testing.assert_allclose(numbers(found), numbers(local), rtol=1e-12, atol=1e-13 * scale)
        assert repr(found) == repr(local)


def test_ranges_hold_no_more_than_they_may_and_go_on_where_the_last_one_ended(monkeypatch):
    frame = table()
    measured = far(frame, 7)
    ranking = Ranking.of(measured, "fine", 1)
    ((scores, whole),) = tables_of(measured.places, ranking)
    monkeypatch.setattr(_ranking, "MOST", 60)
    pieces = list(tables_of(measured.places, ranking))
    assert len(pieces) > N / 60
    assert max(len(score) for score, _ in pieces) <= 60
    np.testing.assert_array_equal(np.concatenate([score for score, _ in pieces]), scores)
    np.testing.assert_array_equal(np.concatenate([table[1:] for _, table in pieces]), whole[1:])
    assert (np.diff(scores) < 0).all()


def test_a_constant_score_is_one_row_of_what_travels():
    measured = far(table(), 5)
    ((scores, sums),) = tables_of(measured.places, Ranking.of(measured, "level", 1))
    assert scores.tolist() == [0.0]
    assert sums.shape == (2, 5)


@pytest.mark.parametrize("outcome", ["binary", "real"])
def test_several_arms_by_their_columns(outcome):
    frame = table(arms=("none", "mail", "call"), outcome=outcome).sort("segment")  # parts without some of the arms
    score = np.column_stack([frame["fine"], frame["coarse"]])
    local = metrics.evaluate(frame["bought"], {"both": score}, frame["segment"], interval=None)
    for columns in (["fine", "coarse"], {"mail": "coarse", "call": "fine"}):
        found = _judge(far(frame, 7), {"both": columns}, read_metrics(list(local["both"]), 0.3), None)
        np.testing.assert_allclose(found.values[0], list(local["both"].values()), rtol=1e-12)


def draws(frame, k, **how):
    replicates = Replicates.read(0.95, 40, 3)
    found = _judge(far(frame, k, **how), {"fine": "fine"}, read_metrics(["auuc", "autoc"], 0.3), replicates)
    return found.samples[0]


def test_replicates_are_the_same_however_rows_lie():
    frame = table().with_row_index("person")
    one = draws(frame, 1)
    for other in (draws(frame, 7), draws(frame.sample(fraction=1.0, shuffle=True, seed=1), 5, row_id="person")):
        for mine, theirs in zip(one, other, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    real = table(outcome="real")
    for mine, theirs in zip(draws(real, 1, weight="weight"), draws(real, 7, weight="weight"), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10)
    assert np.unique(one[0]).size == 40


@pytest.mark.parametrize("cells", [1 << 12, 64])
@pytest.mark.parametrize("weight", [None, "weight"])
def test_intervals_agree_with_local_ones(weight, cells, monkeypatch):
    """Standard errors of 600 replicates are known to 3%; two of them differ by 4% of either."""
    monkeypatch.setattr(_ranking, "CELLS", cells)
    frame = table(6000, seed=2)
    asked = ["auuc", "qini", "autoc", "uplift_at", ("auuc", {"ranking": "joint"})]
    local = metrics.evaluate(
        frame["bought"], {"fine": frame["fine"]}, metrics=asked, n_bootstrap=600, **near(frame, weight)
    )
    found = _judge(far(frame, 5, weight), {"fine": "fine"}, read_metrics(asked, 0.3), Replicates.read(0.95, 600, 7))
    ours = found.evaluation(["fine"], None)["fine"]
    for name, theirs in local["fine"].items():
        assert ours[name].se == pytest.approx(theirs.se, rel=0.16), name
        assert abs(ours[name].samples.mean() - float(theirs)) < 0.2 * theirs.se, name


@pytest.mark.filterwarnings("ignore::upturn.metrics.RankingWarning")
def test_a_paired_difference_is_that_of_the_whole_table():
    frame = table(4000)
    models = {name: frame[name] for name in ("fine", "coarse")}
    local = metrics.compare(frame["bought"], models, frame["segment"], n_bootstrap=400)
    replicates = Replicates.read(0.95, 400, 0)
    found = _judge(far(frame, 6), {name: name for name in models}, [Asked.read("auuc")], replicates)
    table_of = found.comparison(list(models), None, None)
    assert table_of["model"] == local["model"]
    np.testing.assert_allclose(table_of["difference"], local["difference"], rtol=1e-12)
    np.testing.assert_allclose(table_of["se"], local["se"], rtol=0.2)


CURVES = {
    "separate": metrics.uplift_curve,
    "joint": lambda *data, **how: metrics.uplift_curve(*data, ranking="joint", **how),
    "qini": metrics.qini_curve,
    "toc": metrics.toc_curve,
}


@pytest.mark.parametrize("kind", list(CURVES))
def test_curves(kind, monkeypatch):
    frame = table(3000)
    for score in ("fine", "coarse", "level"):
        local = CURVES[kind](frame["bought"], frame[score], frame["segment"], interval=0.9, n_bootstrap=300)
        found = _curve(far(frame, 5), score, kind, Replicates.read(0.9, 300, 5))
        np.testing.assert_allclose(found.x, local.x, rtol=1e-13)
        np.testing.assert_allclose(found.y, local.y, rtol=1e-12, atol=1e-14)
        wide = np.interp([0.2, 0.5, 0.8], local.x, local.high - local.low)
        np.testing.assert_allclose(
            np.interp([0.2, 0.5, 0.8], found.x, found.high - found.low), wide, rtol=0.3, atol=1e-9
        )
    monkeypatch.setattr(_ranking, "MOST", 200)
    monkeypatch.setattr(_ranking, "CELLS", 64)
    thinner = _curve(far(frame, 5), "fine", "joint", None)
    whole = metrics.uplift_curve(frame["bought"], frame["fine"], frame["segment"], ranking="joint")
    assert 60 < len(thinner.x) < 300
    np.testing.assert_allclose(thinner.y, whole(thinner.x), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("propensity", [None, 0.4, {"none": 0.3, "mail": 0.7}, "chance"])
def test_expected_response(propensity, weight):
    frame = table()
    roles = {"columns": ["chance"], "labels": ["best"], "weight": weight}
    columns = ["chance"] if propensity == "chance" else []
    given = frame["chance"] if columns else propensity
    local = metrics.expected_response(
        frame["bought"], frame["best"], propensity=given, interval=0.95, n_bootstrap=400, **near(frame, weight)
    )
    found = _response(far(frame, 7, **roles), "best", propensity, columns, Replicates.read(0.95, 400, 3))
    assert float(found) == pytest.approx(float(local), rel=1e-12)
    assert found.se == pytest.approx(local.se, rel=0.25)
    assert float(_response(far(frame, 1, **roles), "best", propensity, columns, None)) == pytest.approx(
        local, rel=1e-12
    )


def test_public_functions_read_files(tmp_path):
    frame = table()
    for name, piece in (("a", frame[:400]), ("b", frame[400:])):
        piece.write_parquet(tmp_path / f"{name}.parquet")
    data = frame["bought"], {name: frame[name] for name in ("fine", "coarse")}, frame["segment"]
    local = metrics.evaluate(*data, interval=None)
    for source in (tmp_path / "*.parquet", frame.lazy()):
        found = engines.evaluate(source, "bought", ["fine", "coarse"], "segment", interval=None)
        np.testing.assert_allclose(numbers(found), numbers(local), rtol=1e-12)
        assert isinstance(found.to_frame(), pl.DataFrame)
    with_interval = engines.evaluate(tmp_path, "bought", "fine", "segment", n_bootstrap=20)
    assert with_interval["fine"]["auuc"].low < with_interval["fine"]["auuc"].high
    assert engines.compare(tmp_path, "bought", ["fine", "level"], "segment", n_bootstrap=20)["model"] == ["fine"]
    assert len(engines.curve(tmp_path, "bought", "coarse", "segment").x) > 5
    found = engines.expected_response(tmp_path, "bought", "best", "segment", propensity=["chance"])
    assert found == pytest.approx(
        metrics.expected_response(frame["bought"], frame["best"], frame["segment"], propensity=frame["chance"])
    )


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"y": "sold"}, ValueError, "y='sold' is no column"),
        ({"scores": []}, ValueError, "scores="),
        ({"scores": ["fine", "fine"]}, ValueError, "each once"),
        ({"scores": ["best"]}, (TypeError, ValueError), "best"),
        ({"scores": {"two": ["fine", "coarse"]}}, ValueError, "2 column"),
        ({"row_id": "fine"}, TypeError, "whole numbers"),
        ({"row_id": 3}, TypeError, "name of a column"),
        ({"metrics": ["auc"]}, ValueError, "expected one of"),
        ({"k": None}, ValueError, "k=None"),
        ({"sample_weight": "level"}, ValueError, "zero for every row"),
        ({"control": "letter"}, ValueError, "control"),
        ({"table": table()[:0].lazy()}, ValueError, "no rows"),
    ],
)
def test_what_cannot_be_is_refused_in_words(change, error, said):
    asked = {"table": table().lazy(), "y": "bought", "scores": ["fine"], "treatment": "segment"}
    with pytest.raises(error, match=said):
        engines.evaluate(**{**asked, **change})
    with pytest.raises(ValueError, match="kind='roc'"):
        engines.curve(table().lazy(), "bought", "fine", "segment", kind="roc")
    with pytest.raises(ValueError, match="one arm with control"):
        engines.curve(table(arms=("none", "a", "b")).lazy(), "bought", "fine", "segment")
    with pytest.raises(ValueError, match="at least two"):
        engines.compare(table().lazy(), "bought", "fine", "segment")


MEASURES = {
    "evaluate": lambda t, **how: engines.evaluate(t, "bought", ["fine"], "segment", interval=None, **how),
    "compare": lambda t, **how: engines.compare(t, "bought", ["fine", "coarse"], "segment", n_bootstrap=8, **how),
    "curve": lambda t, **how: engines.curve(t, "bought", "fine", "segment", **how),
    "expected_response": lambda t, **how: engines.expected_response(t, "bought", "best", "segment", **how),
    "target": lambda t, **how: engines.target(t, "fine", fraction=0.2, **how),
}


@pytest.mark.filterwarnings("ignore:the sample is too small")
@pytest.mark.parametrize("name", list(MEASURES))
@pytest.mark.parametrize("row", [1, N - 1])  # in the part of the first row, in another
def test_ids_that_repeat_are_refused(name, row, monkeypatch):
    monkeypatch.setattr("upturn.engines._scan._VALUES", 1)
    fine = table().with_row_index("person")
    MEASURES[name](fine.lazy(), row_id="person")
    twice = fine.with_columns(person=pl.when(pl.col("person") == row).then(0).otherwise("person"))
    with pytest.raises(ValueError, match="row_id='person' has the same number in several rows"):
        MEASURES[name](twice.lazy(), row_id="person")


def test_ids_of_rows_without_weight_are_not_asked_after():
    heavy = pl.col("weight") > 0
    frame = table().with_row_index("person").with_columns(person=pl.when(heavy).then(pl.col("person") + 1).otherwise(0))
    MEASURES["evaluate"](frame.lazy(), row_id="person", sample_weight="weight")


def test_few_rows_are_warned_of():
    with pytest.warns(metrics.SmallSampleWarning, match="row"):
        engines.evaluate(table(14).lazy(), "bought", ["fine"], "segment", metrics=["auuc"], n_bootstrap=10)


def test_columns_of_models_are_found_however_they_are_named():
    assert _columns_of({"a": "x", "b": ["y", "z"], "c": {"mail": "u"}}) == ["x", "y", "z", "u"]
    assert _evaluate._read_models("x") == {"x": "x"}
