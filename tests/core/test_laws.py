"""The laws of ``check`` against scipy's."""

import math

import pytest
from scipy import special

from upturn._laws import chi_square_tail, normal_quantile, normal_tail, student_quantile, student_tail

FREEDOMS = (1.0, 1.5, 2.0, 5.0, 9.7, 39.9, 40.1, 100.0, 1234.5, 1e4, 1e6, 3e7)
SHARES = (0.5001, 0.8, 0.95, 0.975, 0.995, 0.9999)


@pytest.mark.parametrize("z", [-9.0, -1.96, 0.0, 0.3, 1.96, 5.0, 30.0])
def test_normal_tail(z):
    assert normal_tail(z) == pytest.approx(special.ndtr(-z), rel=1e-13)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_student_tail(freedom):
    for t in (0.01, 0.5, 1.0, 1.96, 4.0, 8.0, 15.0):
        assert student_tail(t, freedom) == pytest.approx(special.stdtr(freedom, -t), rel=1e-8)
        assert student_tail(-t, freedom) == pytest.approx(1 - student_tail(t, freedom), rel=1e-15)


@pytest.mark.parametrize("freedom", [*FREEDOMS, math.inf])
def test_quantiles_are_those_of_the_tail(freedom):
    for share in SHARES:
        t = student_quantile(share, freedom)
        assert student_tail(t, freedom) == pytest.approx(1 - share, rel=1e-9)
        expected = special.ndtri(share) if math.isinf(freedom) else special.stdtrit(freedom, share)
        assert t == pytest.approx(expected, rel=1e-8)
        assert student_quantile(1 - share, freedom) == pytest.approx(-t, rel=1e-9)


def test_student_tail_of_one_and_two_degrees_of_freedom():
    """Cauchy's law, and one with a root."""
    for t in (0.1, 1.0, 30.0, 1e4):
        assert student_tail(t, 1.0) == pytest.approx(math.atan2(1, t) / math.pi, rel=1e-12)
        assert student_tail(t, 2.0) == pytest.approx(1 / ((2 + t * t) * (1 + t / math.sqrt(2 + t * t))), rel=1e-12)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 20])
def test_chi_square_tail(freedom):
    for value in (0.0, 1e-8, 0.1, 1.0, 3.84, 50.0, 400.0):
        assert chi_square_tail(value, freedom) == pytest.approx(special.chdtrc(freedom, value), rel=1e-12)


def test_the_ends():
    assert student_tail(math.inf, 10.0) == student_tail(1e200, 10.0) == 0.0
    assert student_tail(0.0, 10.0) == student_tail(1e-200, 10.0) == 0.5
    assert math.isnan(student_tail(math.nan, 10.0))
    assert normal_quantile(1.0) == student_quantile(1.0, 5.0) == math.inf
    assert student_quantile(0.0, 5.0) == -math.inf
    assert student_quantile(0.5, 5.0) == 0.0
