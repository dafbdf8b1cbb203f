"""Edges and codes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upturn.kernels.binning import (
    distinct_values,
    edge_between,
    encode_feature_major,
    encode_row_major,
    quantile_edges,
)


@pytest.fixture(autouse=True)
def _wrapping_integers():
    with np.errstate(over="ignore"):
        yield


def padded(edges):
    return np.r_[edges, np.full(255 - len(edges), np.inf)][None, :]


def encode(column, edges, kernel=encode_feature_major):
    X = np.asarray(column, float)[:, None]
    shape = (1, len(X)) if kernel is encode_feature_major else (len(X), 1)
    out = np.full(shape, 77, np.uint8)
    kernel(X, padded(edges), np.array([[-1, -1]]), np.empty(0, np.int32), np.array([0]), out)
    return out.ravel()


values = st.floats(-1e300, 1e300) | st.integers(-3, 3).map(float) | st.sampled_from([-0.0, 1 + 2**-52, 5e-324])


@given(st.lists(values | st.just(np.nan), min_size=1, max_size=40))
def test_few_values_get_a_bin_each(column):
    X = np.array(column)[:, None]
    out = np.empty(255)
    found = distinct_values(X, 0, 255, out)
    expected = np.unique(X[~np.isnan(X)])
    np.testing.assert_array_equal(np.sort(out[:found]), expected)
    room = np.empty(255)
    edges = room[: quantile_edges(expected, np.ones(found), 255, room)]
    codes = encode(column, edges)
    for value, code in zip(column, codes, strict=True):
        assert code == (0 if np.isnan(value) else 1 + np.searchsorted(expected, value))


@given(st.lists(values, min_size=1, max_size=30), st.lists(values | st.just(np.nan), min_size=1, max_size=30))
def test_a_code_compares_as_its_value_does(edges, column):
    edges = np.unique(edges)
    for kernel in (encode_feature_major, encode_row_major):
        codes = encode(column, edges, kernel)
        for x, code in zip(column, codes, strict=True):
            if np.isnan(x):
                assert code == 0
            else:
                for c, edge in enumerate(edges, start=1):
                    assert (code <= c) == (x <= edge)


def test_too_many_values_stop_the_search():
    X = np.arange(300.0)[:, None]
    out = np.empty(255)
    assert distinct_values(X, 0, 255, out) == 256
    assert distinct_values(X[:255], 0, 255, out) == 255


@given(st.integers(2, 40), st.integers(0, 1000))
def test_bins_have_about_equal_mass(bins, seed):
    rng = np.random.default_rng(seed)
    mass = rng.uniform(0.5, 1.5, 400)
    out = np.empty(255)
    edges = out[: quantile_edges(np.arange(400.0), mass, bins, out)]
    assert len(edges) == bins - 1
    inside = np.bincount(np.searchsorted(edges, np.arange(400.0)), mass)
    assert inside.max() <= mass.sum() / bins + 2 * mass.max()
    assert inside.min() >= mass.sum() / bins - 2 * mass.max()


def test_one_heavy_value_does_not_starve_the_others():
    mass = np.ones(1000)
    mass[500] = 1e6
    out = np.empty(255)
    edges = out[: quantile_edges(np.arange(1000.0), mass, 255, out)]
    inside = np.bincount(np.searchsorted(edges, np.arange(1000.0)), minlength=len(edges) + 1)
    assert len(edges) >= 240
    assert inside.max() <= 8


def test_an_edge_lies_between():
    for low, high in [(0.0, 5e-324), (1.0, 1 + 2**-52), (-1e308, 1e308), (-np.inf, 0.0), (0.0, np.inf), (1.0, 2.0)]:
        assert low <= edge_between(low, high) < high


def test_levels_unknown_ones_and_codes_of_the_rare():
    X = np.array([[0.0], [1.0], [2.0], [3.0], [np.nan], [-1.0]])
    ranges, codes = np.array([[0, 3]]), np.array([1, 2, 2], np.int32)
    for kernel, shape in ((encode_feature_major, (1, 6)), (encode_row_major, (6, 1))):
        out = np.empty(shape, np.uint8)
        kernel(X, padded([]), ranges, codes, np.array([0]), out)
        assert out.ravel().tolist() == [1, 2, 2, 0, 0, 0]
