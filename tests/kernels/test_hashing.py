"""Draws that are pure functions of their key."""

import numpy as np

from upturn.kernels import hashing, sampling
from upturn.kernels._jit import I8_out, f8, kernel, u8, void
from upturn.kernels.hashing import below, draw, uniform
from upturn.kernels.hashing import fold as inner_fold


@kernel(void, u8, u8, I8_out)
def many_below(key, n, out):
    for i in range(len(out)):
        out[i] = np.int64(below(draw(key, np.uint64(i)), n))


@kernel(u8, u8, u8)
def fold(key, value):
    return inner_fold(key, value)


@kernel(f8, u8)
def fraction(word):
    return uniform(word)


def test_draws_are_uniform_and_keyed():
    with np.errstate(over="ignore"):
        first, second, again = (np.empty(3000, np.int64) for _ in range(3))
        many_below(np.uint64(1), np.uint64(10), first)
        many_below(np.uint64(2), np.uint64(10), second)
        many_below(np.uint64(1), np.uint64(10), again)
        np.testing.assert_array_equal(first, again)
        for values in (first, second):
            counts = np.bincount(values, minlength=10)
            assert counts.sum() == 3000
            assert (np.abs(counts - 300) < 5 * np.sqrt(300 * 0.9)).all()
        assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(3000)


def test_fold_depends_on_order_and_uniform_stays_below_one():
    with np.errstate(over="ignore"):
        a, b = np.uint64(3), np.uint64(4)
        assert fold(fold(a, b), a) != fold(fold(a, a), b)
        assert fold(a, b) != fold(b, a)
        assert 0 <= fraction(np.uint64(0)) < fraction(np.uint64(2**64 - 1)) < 1


def test_two_purposes_never_share_a_key():
    purposes = [
        value
        for home in (hashing, sampling)
        for name, value in vars(home).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, np.uint64)
    ]
    assert len(purposes) > 12
    assert len(set(purposes)) == len(purposes)
