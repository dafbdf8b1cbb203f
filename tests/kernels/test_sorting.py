"""The sort that carries row numbers in its keys, against numpy's stable argsort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upturn.kernels.sorting import argsort_descending

CROWDED = st.sampled_from([0.0, -0.0, 1.0, 1 + 2**-52, 1 + 2**-51, 1 - 2**-53, -1.0, 5e-324, 1e308, -1e308])


def expected(score):
    order = np.argsort(-score, kind="stable")
    ranked = score[order]
    return order, np.append(ranked[1:] != ranked[:-1], True)


def check(score):
    order, last = argsort_descending(score)
    true_order, true_last = expected(score)
    np.testing.assert_array_equal(order, true_order)
    np.testing.assert_array_equal(last, true_last)


@given(st.lists(CROWDED | st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=60))
def test_equals_stable_argsort(values):
    check(np.array(values))


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: rng.normal(size=3000),
        lambda rng: rng.integers(0, 5, 3000).astype(float),
        lambda rng: 1 + 1e-13 * rng.normal(size=3000),  # all leading bits agree: numpy's argsort takes over
        lambda rng: np.sort(1 + 1e-13 * rng.normal(size=3000)),
        lambda rng: np.zeros(3000),
    ],
    ids=["smooth", "tied", "crowded", "crowded and sorted", "constant"],
)
def test_kinds_of_scores(make):
    check(make(np.random.default_rng(0)))
