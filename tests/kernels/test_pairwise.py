"""Pair sums in O(n log n) against sums that visit every pair."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.svm import energy_sum, pair_sum
from upturn.kernels.pairwise import energy_field, pair_hinge, pair_windows, stretch_sums

# Quarters, so that differences of exactly 1 (a pair on its margin) and ties are frequent and exact.
quarters = st.integers(-12, 12).map(lambda k: k / 4)


def fast_pairs(scores, high, low, weight):
    high, low = np.asarray(high)[np.argsort(scores[high])], np.asarray(low)[np.argsort(scores[low])]
    up, down, slope = np.empty(len(high)), np.empty(len(low)), np.zeros(len(scores))
    loss = pair_hinge(scores[high], weight[high], scores[low], weight[low], up, down)
    slope[high], slope[low] = up, down
    return loss, slope


@given(st.lists(st.tuples(quarters, st.booleans(), st.integers(1, 4)), min_size=2, max_size=30))
def test_pair_hinge_equals_the_pair_sum(rows):
    scores = np.array([row[0] for row in rows])
    is_high = np.array([row[1] for row in rows])
    weight = np.array([float(row[2]) for row in rows])
    high, low = np.flatnonzero(is_high), np.flatnonzero(~is_high)
    loss, slope = fast_pairs(scores, high, low, weight)
    naive_loss, naive_slope = pair_sum(scores, high, low, weight)
    assert loss == pytest.approx(naive_loss, abs=1e-12)
    np.testing.assert_allclose(slope, naive_slope, atol=1e-12)


def test_pair_hinge_of_separated_groups_is_exactly_zero():
    scores, weight = np.array([0.1, 0.2, 0.3, 5.1, 5.7]), np.full(5, 0.1)
    loss, slope = fast_pairs(scores, np.array([3, 4]), np.array([0, 1, 2]), weight)
    assert loss == 0.0
    assert not slope.any()


@given(st.lists(quarters, min_size=1, max_size=15), st.lists(quarters, min_size=1, max_size=15), st.integers(1, 8))
def test_windows_hold_the_pairs_near_their_margin(high, low, width):
    high, low, width = np.sort(np.array(high)), np.sort(np.array(low)), width / 4
    first, last = np.empty(len(high), np.int64), np.empty(len(high), np.int64)
    pair_windows(high, low, width, first, last)
    for i in range(len(high)):
        near = np.flatnonzero(np.abs(1.0 - (high[i] - low)) < width)
        assert list(range(first[i], last[i])) == near.tolist()


@pytest.mark.parametrize("most", [0, 1000])
@given(
    st.lists(st.tuples(quarters, st.integers(1, 4)), min_size=1, max_size=20),
    st.lists(quarters, max_size=15),
    st.integers(1, 8),
)
def test_stretches_are_the_sums_of_their_rows(most, side, others, h):
    """Both ways, rows one by one and differences of running sums, against a visit to every row of every stretch."""
    scores, weight = np.array(sorted(side), dtype=float).T
    origin = np.sort(np.array(others, dtype=float))
    first = np.searchsorted(scores, origin, side="right")
    last = np.maximum(first, np.searchsorted(scores, origin + h / 4, side="left"))
    inside = np.empty(len(origin))
    stretch_sums(np.ascontiguousarray(scores), np.ascontiguousarray(weight), first, last, origin, most, inside)
    naive = [sum(weight[j] * (scores[j] - o) for j in range(a, b)) for a, b, o in zip(first, last, origin, strict=True)]
    assert inside.tolist() == naive  # quarters are summed exactly


def field(scores, signed, beta):
    order = np.argsort(scores, kind="stable")
    out, back = np.empty(len(scores)), np.empty(len(scores))
    energy_field(scores[order], signed[order], beta, out)
    back[order] = out
    return back


@pytest.mark.parametrize("alpha", [1.0, 1.1, 1.5, 1.01, 1.9, 1.99])
@pytest.mark.parametrize("digits", [12, 1])
@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-7])
def test_energy_equals_the_pair_sum(alpha, digits, scale):
    rng = np.random.default_rng(3)
    n = 60
    scores = np.round(rng.normal(size=n), digits) * scale
    treated, weight = rng.random(n) < 0.4, rng.exponential(size=n)
    value, slope = energy_sum(scores, treated, weight, alpha)
    signed = np.where(treated, weight / weight[treated].sum(), -weight / weight[~treated].sum())
    fast = -2.0 * alpha * signed * field(scores, signed, alpha - 1.0)
    tolerance = 1e-12 if alpha < 1.9 else 2e-9  # the rule's tails are worst near α = 2
    np.testing.assert_allclose(fast, slope, rtol=0, atol=tolerance * np.abs(slope).max())
    assert float(scores @ fast) / alpha == pytest.approx(value, rel=1e-9)


def test_energy_field_of_gaps_over_many_scales():
    scores = np.array([0.0, 1e-14, 1e-9, 1e-3, 1.0])
    signed = np.array([0.5, -0.3, 0.1, 0.2, -0.5])
    gap = scores[:, None] - scores
    for beta in (0.1, 0.5):
        expected = (np.sign(gap) * np.abs(gap) ** beta) @ signed
        np.testing.assert_allclose(field(scores, signed, beta), expected, rtol=1e-10)


def test_energy_field_of_equal_scores_is_zero():
    for beta in (0.0, 0.1):
        assert not field(np.full(4, 2.5), np.array([0.5, 0.5, -0.5, -0.5]), beta).any()


@given(st.lists(quarters, min_size=2, max_size=20), st.sampled_from([1.0, 1.1, 1.5]))
def test_energy_slope_is_the_numerical_gradient(values, alpha):
    """Scores are moved apart from ties by amounts of their own, then differentiated."""
    n = len(values)
    scores = np.array(values) + 0.01 * np.arange(n) / n + 0.001
    treated = np.arange(n) % 2 == 0
    weight = np.ones(n)
    _, slope = energy_sum(scores, treated, weight, alpha)
    step = 1e-7
    for i in range(min(n, 3)):
        up, down = scores.copy(), scores.copy()
        up[i] += step
        down[i] -= step
        numeric = (energy_sum(up, treated, weight, alpha)[0] - energy_sum(down, treated, weight, alpha)[0]) / (2 * step)
        assert slope[i] == pytest.approx(numeric, abs=1e-4 * max(1.0, math.fabs(numeric)))
