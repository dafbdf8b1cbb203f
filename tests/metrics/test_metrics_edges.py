"""Where a metric has little or nothing to go by: rows of no weight, tiny samples, numbers that are not defined."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning

import upturn as up
from upturn import metrics
from upturn.metrics import Estimate, RankingWarning, SmallSampleWarning

INTERVAL = {"interval": 0.95, "n_bootstrap": 40, "random_state": 0}
SCORED = ["auuc", "qini", "autoc", "uplift_at", "auu"]
LABELLED = ["expected_response", "policy_value"]
CURVES = ["uplift_curve", "qini_curve", "toc_curve", "modified_uplift_curve"]


def experiment(n=400, seed=0):
    rng = np.random.default_rng(seed)
    score, arm = rng.normal(size=n), np.arange(n) % 2
    return (rng.random(n) < 0.3 + 0.3 * arm * (score > 0)).astype(int), score, arm


# ------------------------------------------------------------------------------------------- rows of no weight


def mostly_idle(n=400, counted=60):
    """An experiment in which few rows have weight, and the same without the others."""
    y, score, arm = experiment(n)
    weight = np.where(np.arange(n) % (n // counted * 2) < 2, 1.5, 0.0)
    rows = weight > 0
    return (y, score, arm, weight), (y[rows], score[rows], arm[rows], weight[rows])


@pytest.mark.parametrize("name", SCORED + LABELLED)
def test_intervals_are_drawn_from_rows_with_weight(name):
    call, (y, score, arm) = getattr(metrics, name), experiment()
    weight = (np.arange(400) < 2).astype(float)  # one row of each arm
    with pytest.warns(SmallSampleWarning, match=r"arm 0 has 1 row\(s\) \(weights worth 1\.0\), arm 1 has 1"):
        found = call(y, arm if name in LABELLED else score, arm, sample_weight=weight, **INTERVAL)
    assert np.isfinite(found.samples).all()
    found = []
    for y, judged, arm, weight in mostly_idle():
        judged = (judged > 0).astype(int) if name in LABELLED else judged
        found.append(call(y, judged, arm, sample_weight=weight, **INTERVAL))
    np.testing.assert_allclose(found[0].samples, found[1].samples, rtol=1e-12, atol=1e-14)
    assert found[0].se > 0


@pytest.mark.parametrize("name", CURVES)
def test_bands_are_drawn_from_rows_with_weight(name):
    one, two = (
        getattr(metrics, name)(y, score, arm, sample_weight=weight, **INTERVAL)
        for y, score, arm, weight in mostly_idle()
    )
    np.testing.assert_allclose(one.x, two.x)
    np.testing.assert_allclose(one.y, two.y, atol=1e-14)
    np.testing.assert_allclose(one.high - one.low, two.high - two.low, atol=1e-14)


def test_groups_tables_and_comparisons_leave_rows_of_no_weight_out():
    (y, score, arm, weight), counted = mostly_idle()
    lift = [metrics.lift_area(d[0], d[1], sample_weight=d[3], **INTERVAL) for d in ((y, score, arm, weight), counted)]
    np.testing.assert_allclose(lift[0].samples, lift[1].samples)
    table, fewer = (
        metrics.calibration_table(d[0], d[1], d[2], sample_weight=d[3], n_bins=2, n_bootstrap=40, random_state=0)
        for d in ((y, score, arm, weight), counted)
    )
    for column in table.columns:
        np.testing.assert_allclose(table[column], fewer[column], atol=1e-13)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)
        differences = [
            metrics.compare(d[0], {"a": d[1], "b": -d[1]}, d[2], sample_weight=d[3], n_bootstrap=40, random_state=0)[
                "se"
            ]
            for d in ((y, score, arm, weight), counted)
        ]
    np.testing.assert_allclose(*differences)


# ------------------------------------------------------------------------------------------- tiny samples


@pytest.mark.parametrize("name", SCORED + CURVES)
def test_an_interval_of_a_tiny_sample_warns(name):
    y, score, arm = [1, 0, 1, 0, 1], [5, 4, 3, 2, 1], ["mail", "control", "mail", "control", "mail"]
    with pytest.warns(SmallSampleWarning, match=r"'control' has 2 row\(s\), arm 'mail' has 3 .*say little") as seen:
        getattr(metrics, name)(y, score, arm, **INTERVAL)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(metrics, name)(y, score, arm)  # a number alone claims nothing


def test_other_intervals_of_tiny_samples_warn():
    y, score, arm = [1, 0, 1, 0], [4, 3, 2, 1], [1, 0, 1, 0]
    for call in (
        lambda: metrics.evaluate(y, {"a": score}, arm, random_state=0),
        lambda: metrics.calibration_table(y, score, arm, n_bins=2, random_state=0),
        lambda: metrics.expected_response(y, arm, arm, **INTERVAL),
        lambda: metrics.lift_area(y, score, **INTERVAL),
        lambda: metrics.lift_curve(y, score, **INTERVAL),
        lambda: metrics.rate(y, score, **INTERVAL),
        lambda: metrics.qini(y, score, arm, propensity={0: 0.5, 1: 0.5}, **INTERVAL),
    ):
        with pytest.warns(SmallSampleWarning, match="say little"):
            call()


# ------------------------------------------------------------------------------------------- not defined


def no_effect():
    """Equal rates of 1/3 in arms of 30 and 21 rows, whose Radcliffe gain is not exactly 0 in floating point."""
    y, arm = np.r_[np.tile([1, 0, 0], 10), np.tile([1, 0, 0], 7)], np.repeat([0, 1], [30, 21])
    return y, np.random.default_rng(0).normal(size=51), arm


@pytest.mark.parametrize("name", ["auuc", "qini"])
def test_causalml_without_an_average_effect(name):
    data = no_effect()
    for options in ({}, INTERVAL):
        with pytest.warns(
            UndefinedMetricWarning, match=r"NaN stands for it: causalml divides by the average effect"
        ) as seen:
            value = getattr(metrics, name)(*data, convention="causalml", **options)
        assert np.isnan(value)
        assert seen[0].filename == __file__
    assert repr(value) == "nan (not defined on these data)"
    assert np.isnan([value.se, value.low, value.high, value.p_value]).all()
    assert np.isfinite(getattr(metrics, name)(*data))


def test_scikit_uplift_without_a_perfect_curve():
    y, score, arm = experiment(100)
    for call in (metrics.auuc, metrics.qini):
        with pytest.warns(UndefinedMetricWarning, match="scikit-uplift divides by the area of a perfect curve"):
            assert np.isnan(call(0 * y, score, arm, convention="sklift"))
    with pytest.warns(UndefinedMetricWarning, match="needs an average effect above 0"):
        assert np.isnan(metrics.qini(y, score, 1 - arm, convention="sklift", negative_effect=False))


def test_the_top_of_everybody_may_have_one_arm_only():
    y, score, arm = [1, 0, 1, 0], [4, 3, 2, 1], [1, 1, 0, 0]
    with pytest.warns(UndefinedMetricWarning, match=r"the best-scored k=0\.25 of everybody are all of one arm"):
        assert np.isnan(metrics.uplift_at(y, score, arm, 0.25, ranking="joint"))
    assert metrics.uplift_at(y, score, arm, 1.0, ranking="joint") == 0.0


def test_tables_print_what_is_not_defined():
    y, score, arm = no_effect()
    scores = {"a": score, "b": -score}
    with pytest.warns(UndefinedMetricWarning):
        table = metrics.evaluate(y, scores, arm, metrics=[("auuc", {"convention": "causalml"}), "auuc"], random_state=0)
    line = repr(table).splitlines()[2]
    assert line.split()[:2] == ["a", "n/a"]
    assert "nan" not in repr(table)
    assert np.isnan(table.to_frame()["value"]).sum() == 2
    with pytest.warns(UndefinedMetricWarning):
        pairs = metrics.compare(y, scores, arm, metric=("qini", {"convention": "causalml"}), random_state=0)
    assert repr(pairs).splitlines()[2].split() == ["a", "b"] + ["n/a"] * 5


def test_the_best_defined_model_comes_first():
    estimates = {
        name: {"auuc": Estimate(value, np.array([value, value + 0.1]), 0.95)}
        for name, value in [("undefined", np.nan), ("low", 0.1), ("high", 0.2)]
    }
    from upturn._target import read_target
    from upturn.metrics._compare import Asked, Evaluation

    table = Evaluation(estimates, [Asked.read("auuc")], read_target([0, 1], [0, 1]), 0.95)
    assert [line.split()[0] for line in repr(table).splitlines()[2:5]] == ["high", "low", "undefined"]


def test_replicates_that_are_not_defined_are_left_out():
    samples = np.array([1.0, np.nan, 3.0, np.inf])
    assert Estimate(2.0, samples, 0.95).se == pytest.approx(np.sqrt(2))
    alone = Estimate(2.0, np.array([1.0, np.nan]), 0.95)
    assert repr(alone) == "2 (no interval)"
    # An average effect of 2/25 is 0 on some replicates; the others give the error.
    y, arm = np.r_[np.ones(5), np.zeros(20), np.ones(3), np.zeros(22)], np.repeat([1, 0], 25)
    found = metrics.auuc(
        y, np.random.default_rng(0).normal(size=50), arm, convention="causalml", interval=0.9, random_state=0
    )
    assert np.isnan(found.samples).any()
    assert np.isfinite(found.se)


def test_a_bin_without_one_arm_has_no_effect():
    score = np.arange(30)[::-1]
    arm = np.where(np.arange(30) < 3, 1, np.arange(30) % 2)  # the first tenth is all treated
    table = metrics.calibration_table(np.arange(30) % 3 == 0, score, arm, random_state=0)
    assert table["control"][0] == 0
    assert table["treated"][0] == 3
    assert np.isnan([table["rate_control"][0], table["observed"][0], table["low"][0]]).all()
    assert np.isfinite(table["observed"][1:]).all()
    assert "n/a" in repr(table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interval": "95%"}, r"interval='95%': expected a confidence level"),
        ({"interval": True}, r"interval=True: expected a confidence level"),
        ({"interval": 0.9, "n_bootstrap": 20.5}, r"n_bootstrap=20\.5: expected a whole number"),
        ({"interval": 0.9, "n_bootstrap": 1}, r"n_bootstrap=1: expected a whole number of replicates of at least 2"),
    ],
)
def test_options_of_intervals(options, message):
    with pytest.raises(ValueError, match=message):
        metrics.auuc(*experiment(40), **options)


@pytest.mark.parametrize("call", [metrics.lift_area, metrics.lift_curve, metrics.rate])
def test_one_group_is_not_a_packed_target(call):
    y, score, arm = experiment(20)
    with pytest.raises(ValueError, match="y is a packed target and this judges one group"):
        call(up.pack(y, arm), score)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (("auuc", {"kk": 3}), r"metric='auuc' has no option 'kk': its options are ranking, convention"),
        (("auu", {"k": 3}), r"metric='auu' has no option 'k': it has none"),
        (("uplift_at", {"ranking": "both"}), r"ranking='both': expected 'separate'"),
        (("auuc",), r"metric \('auuc',\): expected a name, or a name and its options"),
        (3, r"metric 3: expected a name"),
    ],
)
def test_options_of_compared_metrics(item, message):
    y, score, arm = experiment(40)
    with pytest.raises(ValueError, match=message):
        metrics.evaluate(y, {"a": score}, arm, metrics=[item])


def test_averaged_curves_keep_the_random_line():
    rng = np.random.default_rng(0)
    parts = []
    for _ in range(3):
        arm, scores = rng.integers(0, 3, 300), rng.normal(size=(300, 2))
        parts.append(metrics.modified_uplift_curve(rng.random(300) < 0.4, scores, arm))
    mean = metrics.average_curves(parts, interval=0.9)
    np.testing.assert_allclose(mean.random, np.mean([part.random for part in parts], axis=0))
    plain = metrics.average_curves([metrics.uplift_curve([1, 0, 0, 1], [4, 3, 2, 1], [1, 0, 1, 0])] * 2)
    assert plain.random is None


def test_the_band_of_a_weighted_lift_curve_is_about_its_height_not_about_the_weights():
    rng = np.random.default_rng(0)
    curve = metrics.lift_curve(np.ones(400), rng.random(400), sample_weight=rng.exponential(size=400), interval=0.95)
    assert (curve.high[-1] - curve.low[-1]) < 1e-9 * curve.y[-1]  # everybody succeeds, whatever is drawn


@pytest.mark.parametrize("ranking", ["joint", "separate"])
def test_several_arms_have_no_common_number_of_rows(ranking):
    rng = np.random.default_rng(0)
    arm, scores = rng.integers(0, 3, 300), rng.normal(size=(300, 2))
    with pytest.raises(ValueError, match="with several arms k must be a share"):
        metrics.uplift_at(rng.random(300) < 0.4, scores, arm, k=30, ranking=ranking)


def test_a_tiny_top_of_a_large_sample_is_announced():
    y, score, arm = experiment(400)
    with pytest.warns(SmallSampleWarning, match=r"top k=0\.01 holds about 2 rows of the smallest arm"):
        metrics.uplift_at(y, score, arm, k=0.01, **INTERVAL)
