"""Plans for tables in parts treat the people whom a plan for the whole table treats; samples by arm."""

from functools import partial

import numpy as np
import pytest

from engines.test_places import parts
from upturn import engines, policy
from upturn.engines import _sample, _target
from upturn.engines._numbers import Raw
from upturn.engines._places import Here
from upturn.kernels.hashing import TIES, words, words_of

pl = pytest.importorskip("polars")
N = 900


def people(seed=0, n=N, coarse=False):
    rng = np.random.default_rng(seed)
    mail, call = rng.normal(0.02, 0.1, n), rng.normal(0.04, 0.15, n)
    if coarse:
        mail, call = mail.round(1), call.round(1)
    return pl.DataFrame(
        {
            "mail": mail,
            "call": call,
            "mail_cost": rng.uniform(0.1, 1.0, n).round(2),
            "call_cost": rng.uniform(0.5, 4.0, n).round(2),
            "value": rng.uniform(5.0, 50.0, n),
            "segment": rng.choice(["a", "b", "c"], n, p=[0.9, 0.08, 0.02]),
        }
    )


BOTH = {"mail": "mail", "call": "call"}
COSTS = ["mail_cost", "call_cost"]
CASES = {
    "a share": ("mail", {"fraction": 0.2}),
    "nobody": ("mail", {"fraction": 0.0}),
    "all who gain": ("mail", {}),
    "a number of people": ("mail", {"budget": 37}),
    "both arms, a share": (BOTH, {"fraction": 0.31}),
    "a cost each": (BOTH, {"budget": 100, "cost": {"mail": 0.5, "call": 2}}),
    "costs and a value": (BOTH, {"budget": 100, "cost": [0.5, 2.0], "value": 30}),
    "costs by person": (BOTH, {"budget": 61.7, "cost": COSTS}),
    "costs and values by person": (BOTH, {"budget": 150.3, "cost": COSTS, "value": "value"}),
    "a share with costs": (BOTH, {"fraction": 0.4, "cost": COSTS, "value": "value"}),
    "more than enough": (BOTH, {"budget": 1e9, "cost": COSTS, "value": "value"}),
    "too little": (BOTH, {"budget": 0.01, "cost": COSTS}),
}


def local(frame, score, how):
    columns = list(score.values()) if isinstance(score, dict) else [score]
    given = dict(how)
    if how.get("cost") == COSTS:
        given["cost"] = np.column_stack([frame[name] for name in COSTS])
    if how.get("value") == "value":
        given["value"] = frame["value"].to_numpy()
    arms = list(score) if isinstance(score, dict) else None
    return policy.target(np.column_stack([frame[name] for name in columns]), arms=arms, random_state=4, **given)


@pytest.mark.parametrize("gathered", [1 << 16, 5])
@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("name", list(CASES))
def test_the_people_are_those_of_the_whole_table(name, coarse, gathered, monkeypatch):
    monkeypatch.setattr(_target, "GATHERED", gathered)
    monkeypatch.setattr(_target, "_FITTING", 3 if gathered == 5 else 4096)
    monkeypatch.setattr("upturn.engines._scan._VALUES", 1)
    score, how = CASES[name]
    frame = people(coarse=coarse, n=2100)  # three parts
    whole = local(frame, score, how)
    found = engines.target(frame.lazy(), score, random_state=4, **how)
    assert found.table.collect()["recommended"].to_list() == whole.recommended.tolist()
    assert found.table.collect().drop("recommended").equals(frame)
    assert (found.n, found.n_treated, found.filled) == (whole.n, whole.n_treated, whole.filled)
    np.testing.assert_allclose(found.cost, whole.cost, rtol=1e-12)
    np.testing.assert_allclose(found.left, whole.left, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.predicted_gain, whole.predicted_gain, rtol=1e-12, atol=1e-12)
    assert (found.predicted_profit is None) == (whole.predicted_profit is None)
    if whole.predicted_profit is not None:
        np.testing.assert_allclose(found.predicted_profit, whole.predicted_profit, rtol=1e-12, atol=1e-11)
    assert found.marginal_gain == whole.marginal_gain
    assert found.rule == whole.rule
    assert repr(found).startswith(f"Treat {whole.n_treated:,} of 2,100 people")


def end_of(frame, k, spec, limit):
    places = parts(frame, k)
    sizes = places.ask(_target._count)
    offers = places.change(partial(_target._offers, spec, np.cumsum([0, *sizes]).tolist()))
    return _target._find_end(offers, limit)


@pytest.mark.parametrize("gathered", [1 << 16, 4])
def test_parts_of_any_kind_end_a_budget_at_the_same_person(gathered, monkeypatch):
    """One part is empty, one a single row; ids make the order of rows irrelevant."""
    monkeypatch.setattr(_target, "GATHERED", gathered)
    frame = people(coarse=True).with_row_index("person")
    mixed = frame.sample(fraction=1.0, shuffle=True, seed=1)
    how = {"cost": COSTS, "value": None, "control": None, "arms": None, "fraction": None, "seed": np.uint64(4)}
    for score, limit in ((list(BOTH), 61.7), (["mail"], 40.0)):
        given = {**how, "cost": COSTS if len(score) > 1 else None}
        spec = _target._read_spec(frame.lazy(), score, row_id="person", **given)
        expected = end_of(frame, 1, spec, limit)
        for table, k in ((frame, 7), (mixed, 5)):
            found = end_of(table, k, spec, limit)
            assert found.key == expected.key
            assert found.filled == expected.filled
            assert found.tied == expected.tied
            np.testing.assert_allclose(found.sums, expected.sums, rtol=1e-12)


def test_words_by_id_are_those_by_number():
    expected, found = np.empty(50, np.uint64), np.empty(50, np.uint64)
    words(np.uint64(3), TIES, np.uint64(0), expected)
    words_of(np.uint64(3), TIES, np.uint64(0), np.arange(50, dtype=np.uint64)[::-1].copy(), found)
    np.testing.assert_array_equal(found, expected[::-1])


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"score": "post"}, ValueError, "score='post' is no column"),
        ({"score": 3}, TypeError, "name of a column"),
        ({"fraction": 2.0}, ValueError, "fraction"),
        ({"fraction": 0.1, "budget": 3}, ValueError, "both limit"),
        ({"cost": ["mail_cost", "call_cost"]}, ValueError, "one for each arm"),
        ({"cost": -1.0}, ValueError, "negative"),
        ({"value": [1.0, 2.0]}, ValueError, "value"),
        ({"row_id": "mail"}, TypeError, "whole numbers"),
        ({"row_id": 1}, TypeError, "name of a column"),
        ({"score": {"mail": "mail"}, "arms": ["call"]}, ValueError, "leave arms="),
        ({"table": people(n=4).with_columns(recommended=1).lazy()}, ValueError, "already"),
        ({"table": people(n=4)[:0].lazy()}, ValueError, "no rows"),
        ({"score": "segment"}, (TypeError, ValueError), "segment"),
    ],
)
def test_what_cannot_be_is_refused_in_words(change, error, said):
    with pytest.raises(error, match=said):
        engines.target(**{"table": people().lazy(), "score": "mail", **change})


def test_a_sample_by_arm_holds_every_arm_in_proportion():
    frame = people()
    drawn = engines.sample(frame.lazy(), 100, random_state=0, treatment="segment")
    counts, sizes = (dict(table["segment"].value_counts().iter_rows()) for table in (drawn, frame))
    assert sum(counts.values()) == 100
    for arm, size in sizes.items():
        assert abs(counts[arm] - 100 * size / N) <= 1
    few = engines.sample(frame.lazy(), 3, random_state=0, treatment="segment")
    assert sorted(few["segment"]) == ["a", "b", "c"]
    assert engines.sample(frame.lazy(), N + 1, treatment="segment").equals(frame)
    with pytest.raises(ValueError, match="treatment='arm' is no column"):
        engines.sample(frame.lazy(), 3, treatment="arm")


def test_a_sample_by_arm_of_parts_is_that_of_the_whole_table():
    class Engine:
        """Parts of this process in place of a cluster."""

        @staticmethod
        def places(table, names):
            from contextlib import nullcontext

            pieces = [table[:1], table[1:1], table[1:700], table[700:]]
            return nullcontext(Here([Raw(i, piece) for i, piece in enumerate(pieces)]))

    frame = people().sort("segment")  # parts without some of the arms
    for arm in (None, "segment"):
        expected = engines.sample(frame.lazy(), 80, random_state=5, treatment=arm)
        found = _sample._sample_spread(Engine, frame, 80, np.uint64(5), arm)
        assert (
            found["value"].tolist() == engines.sample(frame.lazy(), 80, np.uint64(5), treatment=arm)["value"].to_list()
        )
        assert len(found) == len(expected) == 80
