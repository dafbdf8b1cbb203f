"""Checks of tables in parts: the findings of the whole table."""

import numpy as np
import pytest

import upturn
from engines.test_places import parts
from upturn import engines
from upturn._balance import RankTest, rank_pvalue
from upturn.engines import _check

pl = pytest.importorskip("polars")
N = 1300


def table(n=N, arms=("none", "mail"), biased=False, seed=0, real=False):
    """Numbers with ties and gaps, a rare value, text with few levels and with many, an identifier, an empty column, missing outcomes."""
    rng = np.random.default_rng(seed)
    arm = rng.choice(list(arms), n)
    shift = (arm != arms[0]) * (0.5 if biased else 0.0)
    age, city = rng.normal(40, 12, n) + 10 * shift, rng.choice(["Rome", "Oslo", "Kyiv"], n)
    y = rng.normal(size=n) + 0.2 * (arm != arms[0]) if real else (rng.random(n) < 0.4).astype(float)
    hidden = rng.random(n) < 0.05 + 0.2 * shift
    return pl.DataFrame(
        {
            "age": pl.Series(np.where(rng.random(n) < 0.1 + 0.2 * shift, np.nan, age)).fill_nan(None),
            "visits": rng.poisson(3.0, n),
            "rare": (rng.random(n) < 0.01).astype(float),
            "city": pl.Series(city.tolist()).set(pl.Series(rng.random(n) < 0.05), None),
            "shop": [f"s{k}" for k in np.minimum(rng.geometric(0.008, n), 700)],
            "name": [f"p{k}" for k in range(n)],
            "member": rng.random(n) < 0.5,
            "same": np.ones(n),
            "empty": pl.Series([None] * n, dtype=pl.Float64),
            "segment": arm,
            "weight": np.where(rng.random(n) < 0.05, 0.0, rng.uniform(0.3, 2.0, n)),
            "bought": pl.Series(np.where(hidden, np.nan, y)).fill_nan(None),
        }
    )


FEATURES = ["age", "visits", "rare", "city", "shop", "name", "member", "same", "empty"]


def alike(found, expected):
    """Whether two reports say the same, numbers to rounding."""
    assert [f.check for f in found.findings] == [f.check for f in expected.findings]
    for mine, theirs in zip(found.findings, expected.findings, strict=True):
        assert (mine.status, mine.seen, mine.advice) == (theirs.status, theirs.seen, theirs.advice)
        assert (mine.pvalue is None) == (theirs.pvalue is None)
        if theirs.pvalue is not None:
            assert mine.pvalue == pytest.approx(theirs.pvalue, rel=1e-9)
    for mine, theirs in zip(found.arms, expected.arms, strict=True):
        assert mine.arm == theirs.arm
        values = [[getattr(row, name) or 0.0 for name in vars(row) if name != "arm"] for row in (mine, theirs)]
        np.testing.assert_allclose(*values, rtol=1e-9)
    theirs = {row.feature: row for row in expected.features}
    assert {row.feature for row in found.features} == set(theirs)
    for row in found.features:
        known = theirs[row.feature]
        assert row.difference == pytest.approx(
            known.difference, rel=1e-9, abs=1e-7
        )  # a share that rounds to 1 has a root
        for name in ("pvalue", "missing", "missing_pvalue"):
            assert getattr(row, name) == pytest.approx(getattr(known, name), rel=1e-9), name
    assert (found.n, found.n_features, found.rate) == (expected.n, expected.n_features, expected.rate)
    assert str(found) == str(expected)


@pytest.mark.parametrize(
    ("arms", "biased", "weight"),
    [
        (("none", "mail"), False, None),
        (("none", "mail"), True, "weight"),
        (("none", "mail", "call"), True, None),
        (("none", "mail", "call"), False, "weight"),
    ],
)
def test_findings_are_those_of_the_whole_table(arms, biased, weight, monkeypatch):
    monkeypatch.setattr("upturn.engines._scan._VALUES", 1)  # 1,024 rows a part
    frame = table(arms=arms, biased=biased, real=weight is not None)
    columns = [*FEATURES, "segment", "bought", *([weight] if weight else [])]
    expected = upturn.check(frame.select(columns), "bought", "segment", sample_weight=weight)
    found = engines.check(frame.lazy(), "bought", "segment", features=FEATURES, sample_weight=weight)
    alike(found, expected)
    assert bool(found.warnings) == biased


def test_features_of_uneven_parts_are_those_of_one():
    frame = table(arms=("none", "mail", "call"), biased=True).sort("segment")  # parts without some of the arms
    roles = _check._read_roles(frame.lazy(), "bought", "segment", "weight", FEATURES)
    rows = []
    for k in (1, 8):
        places = parts(frame, k)
        people = _check._read_people(places, roles, None)
        rows.append([_check._feature(places, people, roles, name) for name in FEATURES])
    for (one, names), (other, also) in zip(*rows, strict=True):
        assert names == also
        values = [[row.difference, row.pvalue, row.missing, row.missing_pvalue] for row in (one, other)]
        np.testing.assert_allclose(*values, rtol=1e-9, atol=1e-7)


def test_models_see_a_sample_of_many_rows_and_say_so(monkeypatch):
    monkeypatch.setattr(_check, "SAMPLE", 600)
    frame = table()
    found = engines.check(frame.lazy(), "bought", "segment", features=FEATURES)
    for name in ("classifier", "heterogeneity"):
        assert found[name].seen.endswith("(a sample of 600 rows)")
    expected = upturn.check(frame.drop("weight"), "bought", "segment")
    for name in ("arm sizes", "balance", "missing features", "missing outcomes", "columns"):
        assert found[name].seen == expected[name].seen


@pytest.mark.parametrize("kind", ["many", "ties", "two", "nearly constant", "constant"])
def test_ranks_of_counts_that_come_in_pieces(kind):
    rng = np.random.default_rng(3)
    values = {
        "many": rng.normal(size=500),
        "ties": rng.poisson(2.0, 500).astype(float),
        "two": rng.integers(0, 2, 500).astype(float),
        "nearly constant": np.where(rng.random(500) < 0.02, rng.normal(size=500), 0.0),
        "constant": np.zeros(500),
    }[kind]
    treated = rng.random(500) < 0.4
    distinct, codes = np.unique(values, return_inverse=True)
    counts, ones = np.bincount(codes), np.bincount(codes[treated], minlength=len(distinct))
    test = RankTest(500, int(treated.sum()))
    for start in range(0, len(distinct), 7):
        test.add(counts[::-1][start : start + 7], ones[::-1][start : start + 7])
    assert test.pvalue() == pytest.approx(rank_pvalue(values, treated), rel=1e-10)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"y": "sold"}, ValueError, "y='sold' is no column"),
        ({"features": ["age", "age"]}, ValueError, "each once"),
        ({"features": "age"}, TypeError, "list"),
        ({"features": ["bought"]}, ValueError, "neither outcome"),
        ({"alpha": 2.0}, ValueError, "alpha"),
        ({"sample_weight": "same", "control": "letter"}, ValueError, "control"),
        ({"table": table()[:0].lazy()}, ValueError, "no rows"),
        ({"y": "empty", "features": ["age"]}, ValueError, "missing in every row"),
        ({"sample_weight": "zero"}, ValueError, "zero for every row"),
    ],
)
def test_what_cannot_be_is_refused_in_words(change, error, said):
    frame = table().with_columns(zero=0.0)
    with pytest.raises(error, match=said):
        engines.check(**{"table": frame.lazy(), "y": "bought", "treatment": "segment", **change})
