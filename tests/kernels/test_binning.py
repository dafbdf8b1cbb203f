"""Edges and codes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upturn.kernels._jit import f8, kernel
from upturn.kernels.binning import distinct_values, edge_between, quantile_edges
from upturn.kernels.binning import encode as encode_kernel


@pytest.fixture(autouse=True)
def _wrapping_integers():
    with np.errstate(over="ignore"):
        yield


def padded(edges):
    return np.r_[edges, np.full(255 - len(edges), np.inf)][None, :]


@kernel(f8, f8, f8)
def between(low, high):
    return edge_between(low, high)


def encode(X, edges, ranges=((-1, -1),), codes=(), by_row=False):
    """Codes of the only column; by row there are two of them, and the second is the first less one."""
    X = np.asarray(X, float).reshape(-1, 1)
    out = np.full(len(X) * (2 if by_row else 1) + 1, 77, np.uint8)
    steps = (2, 2) if by_row else (1, len(X))
    ranges, codes = np.array(ranges), np.array(codes, np.int32)
    encode_kernel(X, padded(edges), ranges, codes, np.array([0]), 1, *steps, out)
    assert out[0] == 77  # what lies before the start stays as it is
    if by_row:
        np.testing.assert_array_equal(out[2::2], out[1::2] - np.uint8(1))
    return out[1::2] if by_row else out[1:]


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
    for by_row in (False, True):
        codes = encode(column, edges, by_row=by_row)
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


def test_values_that_come_late_are_found():
    X = np.zeros((200_000, 2))
    X[150_000, 1], X[199_999, 1], X[1, 1] = 1.0, 2.0, np.nan
    out = np.empty(255)
    for kind in (np.float64, np.float32):
        assert np.sort(out[: distinct_values(X.astype(kind), 1, 255, out)]).tolist() == [0.0, 1.0, 2.0]
        assert distinct_values(X.astype(kind), 1, 2, out) == 3


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
        assert low <= between(low, high) < high


def test_levels_unknown_ones_and_codes_of_the_rare():
    column = [0.0, 1.0, 2.0, 3.0, np.nan, -1.0]
    for by_row in (False, True):
        assert encode(column, [], [(0, 3)], [1, 2, 2], by_row).tolist() == [1, 2, 2, 0, 0, 0]


def test_listed_features_of_several_blocks_of_rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (300, 3)).astype(float)
    edges = np.concatenate([padded(np.arange(8.0))] * 3)
    out = np.zeros((300, 3, 2), np.uint8)
    encode_kernel(X, edges, np.full((3, 2), -1), np.empty(0, np.int32), np.array([0, 2]), 0, 6, 2, out.reshape(-1))
    np.testing.assert_array_equal(out[:, [0, 2], 0], X[:, [0, 2]] + 1)
    assert (out[:, 1] == 0).all()
