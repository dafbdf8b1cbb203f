"""The encoder of linear models, against scikit-learn's imputer, one-hot encoder and scaler."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from upturn import _encode
from upturn._encode import ColumnLayout, LinearEncoder, Moments
from upturn._table import Schema, conform_table, read_table

rng = np.random.default_rng(0)
N = 300
FRAME = pd.DataFrame(
    {
        "age": np.where(rng.random(N) < 0.2, np.nan, rng.normal(50, 10, N)),
        "channel": rng.choice(np.array(["web", "phone", "shop", None], dtype=object), N),
        "rare": np.where(rng.random(N) < 0.02, "yes", "no"),
        "visits": rng.integers(0, 9, N),
        "flag": rng.random(N) < 0.4,
    }
)
X, SCHEMA = read_table(FRAME)
WEIGHT = rng.gamma(1.0, size=N)
NUMERIC, TEXT = ["age", "visits", "flag"], ["channel", "rare"]


def naive(matrix, schema, weight):
    """Scikit-learn's tools, column by column; its imputer takes no weights, so means are taken here."""
    parts, gaps = [], []
    for column, levels in zip(matrix.T, schema.levels, strict=True):
        if levels is None:
            seen = ~np.isnan(column)
            fill = np.average(column[seen], weights=weight[seen]) if weight[seen].sum() > 0 else 0.0
            parts.append(np.where(seen, column, fill)[:, None])
            if 0.01 <= weight[seen].sum() / weight.sum() <= 0.99:
                gaps.append(~seen[:, None])
        else:
            tool = OneHotEncoder(categories=[np.arange(len(levels))], handle_unknown="ignore", sparse_output=False)
            parts.append(tool.fit_transform(np.nan_to_num(column, nan=-1).astype(int)[:, None]))
    raw = np.hstack(parts + gaps).astype(float)
    return raw, StandardScaler().fit(raw, sample_weight=weight).transform(raw)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
def test_against_scikit_learn(weight):
    raw, scaled = naive(X, SCHEMA, np.ones(N) if weight is None else weight)
    plain = LinearEncoder.fit(X, SCHEMA, weight, standardize=False)
    assert np.allclose(plain.transform(X), raw, rtol=1e-13, atol=0)
    assert not plain.mean.any()
    assert (plain.scale == 1).all()
    encoded = LinearEncoder.fit(X, SCHEMA, weight).transform(X)
    assert np.allclose(encoded, scaled, rtol=0, atol=1e-12)
    assert encoded.flags.c_contiguous


def test_the_imputer_is_scikit_learns():
    filled = SimpleImputer().fit_transform(FRAME[["age"]].to_numpy())
    assert np.allclose(LinearEncoder.fit(X, SCHEMA, standardize=False).transform(X)[:, :1], filled, rtol=1e-13)


def test_the_levels_are_scikit_learns():
    tool = OneHotEncoder(sparse_output=False, handle_unknown="ignore").fit(
        FRAME.loc[FRAME["channel"].notna(), ["channel", "rare"]]
    )
    wanted = tool.transform(FRAME[["channel", "rare"]])
    assert np.array_equal(LinearEncoder.fit(X, SCHEMA, standardize=False).transform(X)[:, 1:6], wanted)


def test_names():
    encoder = LinearEncoder.fit(X, SCHEMA)
    assert encoder.names(SCHEMA) == [
        "age",
        "channel=phone",
        "channel=shop",
        "channel=web",
        "rare=no",
        "rare=yes",
        "visits",
        "flag",
        "age is missing",
    ]
    assert encoder.layout.source.tolist() == [0, 1, 1, 1, 2, 2, 3, 4, 0]
    assert encoder.layout.level.tolist() == [-1, 0, 1, 2, 0, 1, -1, -1, -2]


def test_whole_weights_are_repeated_rows():
    times = rng.integers(0, 4, N)
    weighted = LinearEncoder.fit(X, SCHEMA, times.astype(float))
    repeated = LinearEncoder.fit(np.repeat(X, times, axis=0), SCHEMA)
    for name in ("fill", "mean", "scale"):
        assert np.allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-12, atol=1e-15), name


def test_rows_of_weight_zero_do_not_count():
    spoiled = X.copy()
    spoiled[:50, 0] = 1e9
    weight = np.where(np.arange(N) < 50, 0.0, WEIGHT)
    left, right = LinearEncoder.fit(spoiled, SCHEMA, weight), LinearEncoder.fit(X[50:], SCHEMA, WEIGHT[50:])
    for name in ("fill", "mean", "scale"):
        assert np.allclose(getattr(left, name), getattr(right, name), rtol=1e-12, atol=1e-15), name


@given(
    column=hnp.arrays(np.float64, st.integers(1, 20), elements=st.floats(-1e6, 1e6, width=32) | st.just(np.nan)),
    weighted=st.booleans(),
)
def test_encoded_columns_have_mean_zero_and_spread_one(column, weighted):
    matrix, schema = column[:, None], Schema(("a",), True, (None,))
    weight = 1.0 + np.arange(len(column)) if weighted else np.ones(len(column))
    encoder = LinearEncoder.fit(matrix, schema, weight)
    z = encoder.transform(matrix)[:, 0]
    assert np.isfinite(z).all()
    assert abs(np.average(z, weights=weight)) < 1e-6
    spread = np.sqrt(np.average(z**2, weights=weight))
    seen = column[~np.isnan(column)]
    if len(seen) < 2 or np.ptp(seen) == 0:
        assert spread < 1e-6
    else:
        assert spread == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("constant", [0.0, 1.0, 0.1, 1e6 + 0.1, 1e-300, -7e200])
def test_a_constant_column_becomes_zero(constant):
    matrix = np.full((997, 1), constant)
    encoder = LinearEncoder.fit(matrix, Schema(("a",), True, (None,)), rng.random(997))
    assert np.abs(encoder.transform(matrix)).max() <= 1e-9 * max(1, abs(constant))
    assert encoder.scale[0] == 1.0


@pytest.mark.parametrize("unit", [1e-200, 1e-9, 1.0, 1e9, 1e200])
def test_units_do_not_matter(unit):
    matrix, schema = rng.normal(size=(50, 1)), Schema(("a",), True, (None,))
    small = LinearEncoder.fit(matrix * unit, schema).transform(matrix * unit)
    assert np.allclose(small, StandardScaler().fit_transform(matrix), rtol=1e-9, atol=1e-12)


def test_missing_everywhere():
    matrix = np.column_stack([np.full(5, np.nan), np.full(5, np.nan), np.arange(5.0)])
    schema = Schema(("number", "text", "x"), True, (None, (), None))
    encoder = LinearEncoder.fit(matrix, schema)
    assert encoder.names(schema) == ["number", "x"]
    assert np.array_equal(encoder.transform(matrix)[:, 0], np.zeros(5))


def test_missing_and_unseen_values_at_predict():
    encoder = LinearEncoder.fit(X, SCHEMA)
    new = pd.DataFrame({"age": [np.nan], "channel": ["fax"], "rare": [None], "visits": [np.nan], "flag": [None]})
    with pytest.warns(UserWarning, match="not seen at fit"):
        matrix = conform_table(new, SCHEMA, "M")
    z = encoder.transform(matrix)[0] * encoder.scale + encoder.mean
    assert np.allclose(z[[0, 6, 7]], encoder.fill[[0, 6, 7]], rtol=1e-12)
    assert np.allclose(z[1:6], 0, atol=1e-15)
    assert z[8] == pytest.approx(1)  # the age is missing, as it was in some rows at fit; visits never were


@pytest.mark.parametrize(
    ("gaps", "wanted"), [(0, False), (2, False), (3, True), (297, True), (298, False), (300, False)]
)
def test_what_is_missing_has_a_column_unless_that_is_rare(gaps, wanted):
    matrix, schema = rng.normal(size=(N, 2)), Schema(("a", "b"), True, (None, None))
    matrix[rng.permutation(N)[:gaps], 1] = np.nan
    encoder = LinearEncoder.fit(matrix, schema, standardize=False)
    assert encoder.names(schema) == ["a", "b"] + ["b is missing"] * wanted
    if wanted:
        assert np.array_equal(encoder.transform(matrix)[:, 2], np.isnan(matrix[:, 1]))
        assert np.array_equal(encoder.by_column(np.array([1.0, 2.0, 4.0])), [1, 6])


@pytest.mark.parametrize("missing", [[0.5], [-1], [5], [3, 0], [0, 0], [1]])
def test_a_file_that_says_wrongly_what_is_missing_is_refused(missing):
    state = LinearEncoder.fit(X, SCHEMA).get_state()
    assert state["missing"].tolist() == [0]
    with pytest.raises(ValueError, match="missing"):
        LinearEncoder.from_state({**state, "missing": np.array(missing)}, SCHEMA)


def test_state_comes_back():
    encoder = LinearEncoder.fit(X, SCHEMA, WEIGHT)
    again = LinearEncoder.from_state(encoder.get_state(), SCHEMA)
    assert np.array_equal(again.transform(X), encoder.transform(X))


def test_rows_are_encoded_one_by_one_as_together():
    encoder = LinearEncoder.fit(X, SCHEMA)
    together = encoder.transform(X)
    assert np.array_equal(together, np.vstack([encoder.transform(row[None]) for row in X]))


def naive_moments(columns, weight):
    """Weight seen, mean and root of the squared deviations of every column."""
    seen = ~np.isnan(columns)
    n = weight @ seen
    filled = np.where(seen, columns, 0.0)
    mean = np.divide(weight @ filled, n, out=np.zeros_like(n), where=n > 0)
    return n, mean, np.sqrt(weight @ np.where(seen, (columns - mean) ** 2, 0.0))


@pytest.mark.parametrize("block", [1, 64, 10**9])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
def test_moments_in_blocks_are_those_of_all_rows(monkeypatch, block, weight):
    monkeypatch.setattr(_encode, "BLOCK", block)
    found = Moments.of(X, weight, ColumnLayout.of(SCHEMA))
    given = np.ones(N) if weight is None else weight
    coded = naive(X, SCHEMA, given)[0][:, :-1]  # without what says that ages are missing
    coded[np.isnan(X[:, 0]), 0] = np.nan  # the only numbers that are missing
    for mine, theirs in zip((found.n, found.mean, found.norm), naive_moments(coded, given), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    assert found.total == pytest.approx(given.sum())
    scaled = naive(X, SCHEMA, given)[1]
    np.testing.assert_allclose(LinearEncoder.fit(X, SCHEMA, weight).transform(X), scaled, atol=1e-12)


@given(
    column=hnp.arrays(np.float64, st.integers(2, 40), elements=st.floats(-1e9, 1e9, width=32) | st.just(np.nan)),
    cut=st.integers(0, 40),
)
def test_moments_of_parts_merge(column, cut):
    matrix, cut = np.column_stack([column, column + 1e6]), min(cut, len(column))
    weight = 1.0 + np.arange(len(column)) % 3
    whole = Moments.of(matrix, weight)
    both = Moments.of(matrix[:cut], weight[:cut]).merge(Moments.of(matrix[cut:], weight[cut:]))
    size = np.nanmax(np.abs(matrix), initial=1.0)
    np.testing.assert_allclose(both.n, whole.n)
    np.testing.assert_allclose(both.mean, whole.mean, atol=1e-12 * size)
    np.testing.assert_allclose(both.norm, whole.norm, atol=1e-11 * size, rtol=1e-9)
    assert both.total == whole.total


def test_an_encoder_of_parts_is_the_encoder():
    """What an engine does: every part sends its moments, and all parts get the same encoder."""
    layout = ColumnLayout.of(SCHEMA)
    parts = [Moments.of(X[rows], WEIGHT[rows], layout) for rows in (slice(0, 90), slice(90, 91), slice(91, N))]
    merged = LinearEncoder.from_moments(parts[0].merge(parts[1]).merge(parts[2]), layout)
    np.testing.assert_allclose(merged.transform(X), LinearEncoder.fit(X, SCHEMA, WEIGHT).transform(X), atol=1e-13)


def test_float32_is_read_as_it_is():
    narrow = X.astype(np.float32)
    encoder, wide = LinearEncoder.fit(narrow, SCHEMA, WEIGHT), LinearEncoder.fit(narrow.astype(float), SCHEMA, WEIGHT)
    assert np.array_equal(encoder.transform(narrow), wide.transform(narrow.astype(float)))


def test_nothing_but_the_encoded_matrix_is_made():
    n, levels = 40_000, tuple(f"{k:02d}" for k in range(40))
    matrix = np.column_stack([rng.integers(0, 40, n), rng.normal(size=(n, 9))]).astype(np.float32)
    schema = Schema(tuple("abcdefghij"), True, (levels, *[None] * 9))
    LinearEncoder.fit(matrix[:10], schema).transform(matrix[:10])  # compiled
    tracemalloc.start()
    encoded = LinearEncoder.fit(matrix, schema).transform(matrix)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert encoded.shape == (n, 49)
    assert peak < encoded.nbytes + 4 * 8 * _encode.BLOCK


def test_spread_is_that_of_the_columns():
    raw = naive(X, SCHEMA, WEIGHT)[0]
    wanted = StandardScaler().fit(raw, sample_weight=WEIGHT).scale_
    for standardize in (True, False):
        encoder = LinearEncoder.fit(X, SCHEMA, WEIGHT, standardize=standardize)
        np.testing.assert_allclose(encoder.spread, wanted, rtol=1e-12)
    np.testing.assert_allclose(encoder.by_column(encoder.spread)[1], wanted[1:4].sum())
