"""AUUC and the uplift curve: against naive twins, and the properties that must always hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid

import upturn as up
from naive import auuc as naive
from strategies import experiments
from upturn.metrics import Estimate, auuc, uplift_curve

ONES = "separate", "joint"
TWINS = {"separate": naive.separate_auuc, "joint": naive.joint_auuc}


def weights_of(weight, y):
    return np.ones(len(y)) if weight is None else weight


@pytest.mark.parametrize("ranking", ONES)
@given(experiment=experiments())
def test_area_equals_naive_twin(ranking, experiment):
    y, score, arm, weight = experiment
    expected = TWINS[ranking](y, score, arm, weights_of(weight, y))
    assert auuc(y, score, arm, sample_weight=weight, ranking=ranking) == pytest.approx(expected, abs=1e-12, rel=1e-12)


@given(experiment=experiments(), shares=st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_separate_curve_equals_naive_twin(experiment, shares):
    y, score, arm, weight = experiment
    curve = uplift_curve(y, score, arm, sample_weight=weight)
    for x in [*shares, *curve.x]:
        expected = naive.separate_curve_at(x, y, score, arm, weights_of(weight, y))
        assert curve(x) == pytest.approx(expected, abs=1e-12, rel=1e-12)


@given(experiment=experiments())
def test_joint_curve_equals_naive_twin(experiment):
    y, score, arm, weight = experiment
    x, gain = uplift_curve(y, score, arm, sample_weight=weight, ranking="joint")
    np.testing.assert_allclose(
        np.column_stack([x, gain]), naive.joint_curve(y, score, arm, weights_of(weight, y)), atol=1e-12, rtol=1e-12
    )


@pytest.mark.parametrize("ranking", ONES)
@given(experiment=experiments())
def test_area_is_the_integral_of_the_curve(ranking, experiment):
    y, score, arm, weight = experiment
    x, height = uplift_curve(y, score, arm, sample_weight=weight, ranking=ranking)
    integral = trapezoid(height, x) - height[-1] / 2
    assert auuc(y, score, arm, sample_weight=weight, ranking=ranking) == pytest.approx(integral, abs=1e-12)
    assert (x[0], x[-1], height[0]) == (0, 1, 0)
    assert (np.diff(x) > 0).all()


@pytest.mark.parametrize("ranking", ONES)
@given(experiment=experiments(), constant=st.sampled_from([0.0, -1.5, 1e300]))
def test_constant_score_is_exactly_random(ranking, experiment, constant):
    y, _, arm, weight = experiment
    assert auuc(y, np.full(len(y), constant), arm, sample_weight=weight, ranking=ranking) == 0.0


@pytest.mark.parametrize("ranking", ONES)
@given(experiment=experiments(integer=True, weights=False), data=st.data())
def test_row_order_changes_no_bit_for_integer_outcomes(ranking, experiment, data):
    y, score, arm, _ = experiment
    order = np.array(data.draw(st.permutations(range(len(y)))))
    assert auuc(y, score, arm, ranking=ranking) == auuc(y[order], score[order], arm[order], ranking=ranking)


@pytest.mark.parametrize("ranking", ONES)
@given(experiment=experiments(), data=st.data())
def test_row_order_changes_nothing(ranking, experiment, data):
    y, score, arm, weight = experiment
    order = np.array(data.draw(st.permutations(range(len(y)))))
    shuffled = None if weight is None else weight[order]
    once = auuc(y, score, arm, sample_weight=weight, ranking=ranking)
    again = auuc(y[order], score[order], arm[order], sample_weight=shuffled, ranking=ranking)
    assert once == pytest.approx(again, abs=1e-12)


@pytest.mark.parametrize("ranking", ONES)
@given(experiment=experiments(integer=True))
def test_integer_weights_equal_repeated_rows(ranking, experiment):
    y, score, arm, weight = experiment
    times = weights_of(weight, y).astype(int)
    repeated = auuc(np.repeat(y, times), np.repeat(score, times), np.repeat(arm, times), ranking=ranking)
    assert auuc(y, score, arm, sample_weight=times, ranking=ranking) == repeated


@pytest.mark.parametrize("ranking", ONES)
@given(experiment=experiments())
def test_only_the_order_of_scores_matters(ranking, experiment):
    y, score, arm, weight = experiment
    ranks = np.unique(score, return_inverse=True)[1]
    plain = auuc(y, score, arm, sample_weight=weight, ranking=ranking)
    assert auuc(y, ranks, arm, sample_weight=weight, ranking=ranking) == plain


def test_separate_area_turns_its_sign_with_the_score():
    rng = np.random.default_rng(0)
    y, score, arm = rng.integers(0, 2, 500), rng.normal(size=500), rng.integers(0, 2, 500)
    assert auuc(y, -score, arm) == pytest.approx(-auuc(y, score, arm), abs=1e-15)


@pytest.mark.parametrize("ranking", ONES)
def test_random_scores_average_zero(ranking):
    rng = np.random.default_rng(1)
    y, arm = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    areas = [auuc(y, rng.normal(size=300), arm, ranking=ranking) for _ in range(2000)]
    assert abs(np.mean(areas)) < 4 * np.std(areas) / np.sqrt(2000)


def test_perfect_ranking_of_a_known_effect():
    # Half the people gain 1 by treatment, half nothing: targeting them first gains 1/2 at x = 1/2 and no more after.
    y, score, arm = np.tile([1, 0, 0, 0], 50), np.tile([1, 1, 0, 0], 50), np.tile([1, 0, 1, 0], 50)
    curve = uplift_curve(y, score, arm)
    np.testing.assert_allclose(curve([0.25, 0.5, 1.0]), [0.25, 0.5, 0.5])
    assert auuc(y, score, arm) == pytest.approx(0.125)


def test_several_arms_average_by_size():
    rng = np.random.default_rng(2)
    y, arm, score = (
        rng.normal(size=400),
        rng.choice(["control", "a", "b"], 400, p=[0.5, 0.2, 0.3]),
        rng.normal(size=(400, 2)),
    )
    single = []
    for column, name in enumerate(["a", "b"]):
        mine = np.isin(arm, ["control", name])
        single.append(auuc(y[mine], score[mine, column], arm[mine]))
    sizes = [np.sum(arm == "a"), np.sum(arm == "b")]
    assert auuc(y, score, arm) == pytest.approx(np.average(single, weights=sizes), abs=1e-15)
    with pytest.raises(ValueError, match=r"one column per arm"):
        auuc(y, score[:, 0], arm)
    with pytest.raises(ValueError, match=r"2 arms \['a', 'b'\]"):
        uplift_curve(y, score, arm)


@pytest.mark.parametrize("ranking", ONES)
def test_interval(ranking):
    rng = np.random.default_rng(3)
    n = 2000
    score, arm = rng.normal(size=n), rng.integers(0, 2, n)
    y = (rng.random(n) < 0.3 + 0.2 * arm * (score > 0)).astype(int)
    options = {"ranking": ranking, "interval": 0.9, "random_state": 5}
    estimate = auuc(y, score, arm, **options)
    assert isinstance(estimate, Estimate)
    assert estimate == auuc(y, score, arm, ranking=ranking)
    assert estimate.low < estimate < estimate.high
    assert estimate.high - estimate.low == pytest.approx(2 * 1.6448536 * estimate.se)
    assert len(estimate.samples) == 200
    # The same seed gives the same bits on any number of threads, another seed gives others.
    np.testing.assert_array_equal(auuc(y, score, arm, n_jobs=3, **options).samples, estimate.samples)
    assert not np.array_equal(auuc(y, score, arm, **options | {"random_state": 6}).samples, estimate.samples)


def test_bootstrap_error_matches_repeated_experiments():
    rng = np.random.default_rng(4)

    def experiment():
        score, arm = rng.normal(size=500), rng.integers(0, 2, 500)
        return (rng.random(500) < 0.3 + 0.2 * arm * (score > 0)).astype(int), score, arm

    spread = np.std([auuc(*experiment()) for _ in range(2000)])
    errors = [auuc(*experiment(), interval=0.95, random_state=0).se for _ in range(50)]
    assert np.mean(errors) == pytest.approx(spread, rel=0.07)


def test_bootstrap_replicates_are_areas_of_resampled_rows():
    from upturn.kernels.resampling import resample, rows_by_stratum

    rng = np.random.default_rng(5)
    y, score, arm = rng.normal(size=60), rng.integers(0, 9, 60).astype(float), rng.integers(0, 2, 60)
    weight = rng.uniform(0.5, 2, 60)
    samples = auuc(y, score, arm, sample_weight=weight, interval=0.9, n_bootstrap=30, random_state=8).samples
    counts = np.empty(60, np.int32)
    rows = rows_by_stratum(arm.astype(np.uint8), 2)
    for replicate in range(30):
        resample(np.uint64(8), replicate, *rows, counts)
        assert [counts[arm == a].sum() for a in (0, 1)] == [np.sum(arm == a) for a in (0, 1)]
        drawn = np.repeat(np.arange(60), counts)
        expected = auuc(y[drawn], score[drawn], arm[drawn], sample_weight=weight[drawn])
        assert samples[replicate] == pytest.approx(expected, abs=1e-14)


def test_estimate_reads_well_and_survives_copying():
    import copy

    estimate = auuc([1, 0, 0, 1] * 9, [4, 3, 2, 1] * 9, [1, 0, 1, 0] * 9, interval=0.95, random_state=0)
    assert repr(estimate).startswith("0.25 (95% interval 0.2")
    assert copy.copy(estimate).se == estimate.se
    assert isinstance(estimate + 1, float)
    assert not isinstance(estimate + 1, Estimate)


def test_packed_target():
    y, score, arm, weight = [1, 0, 0, 1], [4, 3, 2, 1], ["t", "control", "t", "control"], [1, 2, 3, 4]
    packed = up.pack(y, arm, weight)
    assert auuc(packed, score) == auuc(y, score, arm, sample_weight=weight)
    assert uplift_curve(packed, score).y[-1] == uplift_curve(y, score, arm, sample_weight=weight).y[-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": [1, np.nan, 2, 3]}, r"score holds 1 NaN \(missing\) value\(s\), the first at row 1"),
        ({"score": [1, np.inf, 2, 3]}, r"score holds 1 infinite value\(s\), the first at row 1"),
        ({"score": [1, 2, 3]}, r"score has 3 rows and y has 4"),
        ({"score": ["a", "b", "c", "d"]}, r"score holds .*'a'.*not a number"),
        ({"score": [[[1]], [[2]], [[3]], [[4]]]}, r"score has shape \(4, 1, 1\)"),
        ({"ranking": "both"}, r"ranking='both': expected 'separate'"),
        ({"interval": 95}, r"interval=95: expected a confidence level between 0 and 1"),
        ({"interval": 0.9, "n_bootstrap": 1}, r"n_bootstrap=1: expected a whole number of replicates of at least 2"),
        ({"interval": 0.9, "random_state": "x"}, r"random_state='x': expected None, an integer"),
    ],
)
def test_bad_input(change, message):
    arguments = {"y": [1, 0, 0, 1], "score": [4, 3, 2, 1], "treatment": [1, 0, 1, 0]} | change
    with pytest.raises(ValueError, match=message):
        auuc(**arguments)
