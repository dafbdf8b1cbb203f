"""UMODL from counts of parts: the partitions of the whole table."""

import numpy as np
import pytest
from sklearn.base import clone

from engines.test_places import parts
from upturn import engines
from upturn.engines import _umodl
from upturn.engines._filters import learn_selector
from upturn.engines._gather import Roles
from upturn.features import UMODLDiscretizer, UMODLSelector

pl = pytest.importorskip("polars")
FEATURES = ["age", "visits", "city", "noise", "member", "same", "empty"]


def table(n=1500, arms=("none", "mail"), classes=2, seed=0):
    rng = np.random.default_rng(seed)
    arm = rng.choice(list(arms), n)
    age, city = rng.normal(40, 12, n), rng.choice(["Rome", "Oslo", "Kyiv", "Lima"], n)
    lift = 0.5 * (arm != arms[0]) * ((age > 45) | (city == "Oslo"))
    y = (rng.random(n) < 0.2 + lift).astype(float) + (rng.integers(0, 2, n) if classes > 2 else 0)
    return pl.DataFrame(
        {
            "age": pl.Series(np.where(rng.random(n) < 0.1, np.nan, age)).fill_nan(None),
            "visits": rng.poisson(3.0, n),
            "city": pl.Series(city.tolist()).set(pl.Series(rng.random(n) < 0.05), None),
            "noise": rng.normal(size=n),
            "member": rng.random(n) < 0.5,
            "same": np.ones(n),
            "empty": pl.Series([None] * n, dtype=pl.Float64),
            "segment": arm,
            "count": rng.integers(0, 4, n),
            "bought": y,
        }
    )


def far(model, frame, k, weight=None):
    model = clone(model)
    _umodl.learn_umodl(model, parts(frame, k), Roles("bought", "segment", weight, FEATURES), "polars")
    return model


def local(model, frame, weight=None):
    return clone(model).fit(frame.select([*FEATURES, "segment", "bought", *([weight] if weight else [])]), "bought",
                            "segment", weight)  # fmt: skip


@pytest.mark.parametrize(
    ("model", "how", "weight"),
    [
        (UMODLDiscretizer(), {}, None),
        (UMODLDiscretizer(search="exact", encode="effect"), {"n": 400}, "count"),
        (UMODLDiscretizer(search="greedy"), {"arms": ("none", "mail", "call")}, None),
        (UMODLDiscretizer(), {"classes": 3}, "count"),
        (UMODLSelector(), {}, None),
        (UMODLSelector(effect_only=True), {"arms": ("none", "mail", "call")}, "count"),
    ],
)
def test_partitions_are_those_of_the_whole_table(model, how, weight, tmp_path):
    """To the last bit of the saved model; parts are uneven, empty, and without some of the arms."""
    frame = table(**how)
    whole = local(model, frame, weight)
    whole.save(tmp_path / "whole.upturn")
    ordered = frame.sort("segment")
    for rows, k in ((frame, 1), (frame, 7), (ordered, 6)):
        found = far(model, rows, k, weight)
        found.save(tmp_path / "parts.upturn")
        assert (tmp_path / "parts.upturn").read_bytes() == (tmp_path / "whole.upturn").read_bytes()
    assert getattr(whole, "discretizer_", whole).n_parts_[0] > 1


@pytest.mark.parametrize("weight", [None, "count"])
@pytest.mark.parametrize("how", [{"n": 150}, {"n": 150, "arms": ("none", "mail", "call")}, {"n": 400, "classes": 3}])
@pytest.mark.parametrize("least", [1, 5, 100])
def test_features_that_join_for_want_of_better_ones_are_those_of_the_whole_table(least, how, weight, tmp_path):
    frame, model = table(**how), UMODLSelector(min_features=least)
    whole = local(model, frame, weight)
    if least > 1:
        assert len(whole.fillers_) > 0
    found = clone(model)
    learn_selector(found, parts(frame, 6), Roles("bought", "segment", weight, FEATURES), "polars")
    for one, name in ((found, "parts.upturn"), (whole, "whole.upturn")):
        one.save(tmp_path / name)
    assert (tmp_path / "parts.upturn").read_bytes() == (tmp_path / "whole.upturn").read_bytes()


def test_a_selector_of_files_keeps_as_many_features_as_it_is_told():
    columns = [*FEATURES, "segment", "bought"]
    model = engines.fit(UMODLSelector(min_features=3), table(n=150).lazy().select(columns), "bought", "segment")
    assert model.get_support().sum() == 3


@pytest.mark.parametrize("most", [64, 256])
def test_between_quantiles_the_cost_is_nearly_that_of_all_values(most, monkeypatch):
    """Each cut may lie n / points rows from where it should: the cost is larger by less than a part in a thousand here, and never smaller."""
    monkeypatch.setattr(_umodl, "MOST", most)
    frame = table(6000, seed=3)
    model = UMODLDiscretizer(search="exact")
    whole, found = local(model, frame), far(model, frame, 7)
    for j, (ours, theirs) in enumerate(zip(found.partitions_, whole.partitions_, strict=True)):
        assert theirs.cost * (1 - 1e-12) <= ours.cost <= theirs.cost * (1 + 1e-3)
        assert ours.n_parts == theirs.n_parts
        values = found._encode(frame.select(FEATURES))[:, j]
        counted = np.bincount(ours.codes(np.ascontiguousarray(values)), minlength=ours.n_parts)
        np.testing.assert_array_equal(counted, ours.counts.sum(axis=(1, 2)))  # edges cut where rows were counted
    assert found.partitions_[0].edges[0] == pytest.approx(whole.partitions_[0].edges[0], abs=0.5)


def test_files(tmp_path):
    frame = table()
    for name, piece in (("a", frame[:400]), ("b", frame[400:])):
        piece.write_parquet(tmp_path / f"{name}.parquet")
    found = engines.fit(UMODLSelector(), tmp_path, "bought", "segment", features=FEATURES)
    whole = local(UMODLSelector(), frame)
    np.testing.assert_array_equal(found.scores_, whole.scores_)
    assert found.transform(frame.select(FEATURES)).equals(whole.transform(frame.select(FEATURES)))


@pytest.mark.parametrize(
    ("model", "change", "said"),
    [
        (UMODLSelector(pairs=True), {}, "engines.sample"),
        (UMODLDiscretizer(), {"row_id": "count"}, "no use for row_id="),
        (UMODLDiscretizer(), {"sample_weight": "noise"}, "negative"),
        (UMODLDiscretizer(), {"sample_weight": "half"}, "whole number"),
        (UMODLDiscretizer(), {"y": "noise"}, "distinct values"),
        (UMODLDiscretizer(), {"y": "same"}, "one value only"),
        (UMODLDiscretizer(), {"table": table()[:0].lazy()}, "no rows"),
    ],
)
def test_what_cannot_be_is_refused_in_words(model, change, said):
    frame = table().with_columns(half=0.5)
    asked = {"table": frame.lazy(), "y": "bought", "treatment": "segment", "features": ["age"]}
    with pytest.raises(ValueError, match=said):
        engines.fit(clone(model), **{**asked, **change})
