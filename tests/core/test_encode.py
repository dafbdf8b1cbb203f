"""The encoder of linear models, against scikit-learn's imputer, one-hot encoder and scaler."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from upturn._encode import LinearEncoder
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
    parts = []
    for column, levels in zip(matrix.T, schema.levels, strict=True):
        if levels is None:
            seen = ~np.isnan(column)
            fill = np.average(column[seen], weights=weight[seen]) if weight[seen].sum() > 0 else 0.0
            parts.append(np.where(seen, column, fill)[:, None])
        else:
            tool = OneHotEncoder(categories=[np.arange(len(levels))], handle_unknown="ignore", sparse_output=False)
            parts.append(tool.fit_transform(np.nan_to_num(column, nan=-1).astype(int)[:, None]))
    raw = np.hstack(parts)
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
    ]
    assert encoder.layout.source.tolist() == [0, 1, 1, 1, 2, 2, 3, 4]
    assert encoder.layout.level.tolist() == [-1, 0, 1, 2, 0, 1, -1, -1]


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


def test_state_comes_back():
    encoder = LinearEncoder.fit(X, SCHEMA, WEIGHT)
    again = LinearEncoder.from_state(encoder.get_state(), SCHEMA)
    assert np.array_equal(again.transform(X), encoder.transform(X))


def test_rows_are_encoded_one_by_one_as_together():
    encoder = LinearEncoder.fit(X, SCHEMA)
    together = encoder.transform(X)
    assert np.array_equal(together, np.vstack([encoder.transform(row[None]) for row in X]))
