"""Weights and outcomes of absurd size: right, or refused in words."""

import numpy as np
import pytest

import upturn
from upturn import metrics, policy
from upturn._target import read_measured, scale_weight

rng = np.random.default_rng(0)
N = 400
T = rng.integers(0, 2, N)
S = np.round(rng.normal(size=N), 1)
Y = (rng.random(N) < 0.3 + 0.2 * T * (S > 0)).astype(float)
W = rng.integers(1, 4, N).astype(float)
SIZES = [2.0**-996, 2.0**-531, 2.0**-31, 2.0**31, 2.0**531, 2.0**996]
QUICK = {"interval": 0.9, "n_bootstrap": 20}

PER_PERSON = {
    "auuc": lambda w: metrics.auuc(Y, S, T, sample_weight=w, **QUICK),
    "joint auuc": lambda w: metrics.auuc(Y, S, T, sample_weight=w, ranking="joint", **QUICK),
    "criteo auuc": lambda w: metrics.auuc(Y, S, T, sample_weight=w, convention="criteo", **QUICK),
    "qini": lambda w: metrics.qini(Y, S, T, sample_weight=w, **QUICK),
    "autoc": lambda w: metrics.autoc(Y, S, T, sample_weight=w, **QUICK),
    "autoc of propensities": lambda w: metrics.autoc(Y, S, T, sample_weight=w, propensity=0.5, **QUICK),
    "uplift_at": lambda w: metrics.uplift_at(Y, S, T, sample_weight=w, **QUICK),
    "policy_value": lambda w: metrics.policy_value(Y, S > 0, T > 0, sample_weight=w, **QUICK),
    "expected_response": lambda w: metrics.expected_response(Y, S > 0, T > 0, sample_weight=w, **QUICK),
    "rate": lambda w: metrics.rate(Y - 0.3, S, sample_weight=w, **QUICK),
    "gain": lambda w: policy.target(S, fraction=0.3, y=Y, treatment=T, sample_weight=w, n_bootstrap=20).gain,
}
IN_COUNTS = {
    "auu": lambda w: metrics.auu(Y, S, T, sample_weight=w, **QUICK),
    "lift_area": lambda w: metrics.lift_area(Y, S, sample_weight=w, **QUICK),
    "libuplift qini": lambda w: metrics.qini(Y, S, T, sample_weight=w, convention="libuplift", **QUICK),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PER_PERSON)
def test_the_unit_of_weights_is_nothing_to_what_is_per_person(name, size):
    usual, found = PER_PERSON[name](W), PER_PERSON[name](W * size)
    assert float(found) == float(usual) != 0  # a power of two is exact
    assert found.se == usual.se > 0


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", IN_COUNTS)
def test_counts_are_in_the_weights_that_were_given(name, size):
    usual, found = IN_COUNTS[name](W), IN_COUNTS[name](W * size)
    assert float(found) == float(usual) * size != 0


def test_tables_and_curves_in_counts():
    usual, found = (metrics.calibration_table(Y, S, T, sample_weight=w, interval=None) for w in (W, W * 2.0**531))
    np.testing.assert_array_equal(found["treated"], usual["treated"] * 2.0**531)
    np.testing.assert_array_equal(found["observed"], usual["observed"])
    usual, found = (metrics.lift_curve(Y, S, sample_weight=w) for w in (W, W * 2.0**531))
    np.testing.assert_array_equal(found.y, usual.y * 2.0**531)
    usual, found = (metrics.uplift_at(Y, S, T, k=90, sample_weight=w) for w in (W, W))
    assert metrics.uplift_at(Y, S, T, k=90 * 2**40, sample_weight=W * 2.0**40) == usual


@pytest.mark.parametrize("weight", [1e160, 1e-160, 1e-300, 1e300])
def test_uniform_weights_are_no_weights(weight):
    for name in ("auuc", "qini", "autoc", "uplift_at"):
        metric = getattr(metrics, name)
        assert metric(Y, S, T, sample_weight=np.full(N, weight)) == pytest.approx(metric(Y, S, T), rel=1e-12)
    X = rng.normal(size=(N, 2))
    plain, weighted = upturn.check(X, Y, T), upturn.check(X, Y, T, sample_weight=np.full(N, weight))
    assert weighted.arms[1].effect == pytest.approx(plain.arms[1].effect, rel=1e-12)
    assert weighted.arms[1].low == pytest.approx(plain.arms[1].low, rel=1e-9)
    assert policy.iptw_weights(X, T, sample_weight=np.full(N, weight)) / weight == pytest.approx(
        policy.iptw_weights(X, T),
        rel=0.01,  # the ridge of the logistic regression weighs a little less or more
    )


def test_whole_weights_of_any_size_count_as_repeated_rows():
    times = W.astype(int)
    repeated = [np.repeat(column, times) for column in (Y, S, T)]
    assert metrics.auuc(Y, S, T, sample_weight=W * 2.0**40) == metrics.auuc(*repeated)
    assert metrics.auu(Y, S, T, sample_weight=W) == metrics.auu(*repeated)
    assert metrics.auu(Y, S, T, sample_weight=W * 2.0**40) == metrics.auu(*repeated) * 2.0**40


@pytest.mark.parametrize("largest", [2.0**-30, 0.37, 1.0, 2.0**30])
def test_ordinary_weights_keep_their_bits(largest):
    weight = rng.random(50) * largest
    weight[7] = largest
    assert scale_weight(weight)[0] is weight
    target = read_measured(Y[:50], np.arange(50) % 2, weight)
    assert target.unit == 1
    assert target.weight.tobytes() == weight.tobytes()


@pytest.mark.parametrize("largest", [2.0**-31, 2.0**31, 1e-320, 1.7e308])
def test_other_weights_are_divided_by_a_power_of_two(largest):
    weight = np.array([largest, largest / 2, 0.0])
    scaled, unit = scale_weight(weight)
    assert np.log2(unit) == np.round(np.log2(unit))
    assert 1 <= scaled.max() < 2
    assert (scaled * unit).tolist() == weight.tolist()


def test_an_arm_that_weighs_nothing_beside_the_other():
    with pytest.raises(ValueError, match="the control arm 0 less than 1/1e"):
        metrics.auuc(Y, S, T, sample_weight=np.where(T == 0, 1e-200, 1.0))


@pytest.mark.parametrize("size", [1e-300, 1e160, 1.7e308])
def test_outcomes_whose_squares_are_no_numbers_are_refused_where_they_are_measured(size):
    y = np.where(Y > 0, size, 0.0)
    calls = [
        lambda: metrics.auuc(y, S, T),
        lambda: metrics.lift_curve(y, S),
        lambda: metrics.calibration_table(y, S, T),
        lambda: policy.gain_curve(y, S, T),
        lambda: upturn.check(S[:, None], y, T),
        lambda: metrics.autoc(Y, S, T, response=np.column_stack((y, y))),
        lambda: policy.target(y),
        lambda: policy.target(S, cost=np.full(N, size)),
        lambda: policy.four_groups(np.column_stack((y, y))),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="squares of such numbers do not fit a float"):
            call()


@pytest.mark.parametrize("size", [1e-139, 1e139])
def test_outcomes_just_within_are_measured_with_finite_intervals(size):
    usual, found = metrics.auuc(Y, S, T, **QUICK), metrics.auuc(Y * size, S, T, **QUICK)
    assert found / size == pytest.approx(float(usual), rel=1e-9)
    assert found.se / size == pytest.approx(usual.se, rel=1e-6)
    assert np.isfinite(upturn.check(S[:, None], Y * size, T).arms[1].low)
