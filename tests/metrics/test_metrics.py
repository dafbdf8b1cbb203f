"""Every metric against its naive twin, and what must hold for all of them: ties, order of rows, constant scores."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from sklearn.metrics import roc_auc_score

import upturn as up
from naive import auuc as naive
from naive import metrics as naive_metrics
from strategies import experiments
from upturn import metrics
from upturn.metrics import Estimate

RANKED = {
    "auuc": metrics.auuc,
    "auuc joint": lambda *a, **k: metrics.auuc(*a, ranking="joint", **k),
    "auuc criteo": lambda *a, **k: metrics.auuc(*a, convention="criteo", **k),
    "auuc libuplift joint": lambda *a, **k: metrics.auuc(*a, convention="libuplift", ranking="joint", **k),
    "qini": metrics.qini,
    "qini grf": lambda *a, **k: metrics.qini(*a, convention="grf", **k),
    "qini libuplift": lambda *a, **k: metrics.qini(*a, convention="libuplift", **k),
    "autoc": metrics.autoc,
    "uplift_at": lambda *a, **k: metrics.uplift_at(*a, 0.4, **k),
    "uplift_at joint": lambda *a, **k: metrics.uplift_at(*a, 0.4, ranking="joint", **k),
    "auu": metrics.auu,
}
UNWEIGHTED = {
    "auuc sklift": lambda *a: metrics.auuc(*a, convention="sklift"),
    "auuc causalml": lambda *a: metrics.auuc(*a, convention="causalml"),
    "qini sklift": lambda *a: metrics.qini(*a, convention="sklift"),
    "qini causalml": lambda *a: metrics.qini(*a, convention="causalml"),
    "autoc causalml": lambda *a: metrics.autoc(*a, convention="causalml"),
    "uplift_at sklift": lambda *a: metrics.uplift_at(*a, 0.5, convention="sklift"),
}


UNDEFINED = pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")


def weights_of(weight, y):
    return np.ones(len(y)) if weight is None else weight


@settings(max_examples=50)
@given(experiment=experiments())
def test_rates_equal_naive_twins(experiment):
    y, score, arm, weight = experiment
    heavy = weights_of(weight, y)
    effect = naive_metrics.effect_scores(y, arm, heavy)
    options = {"sample_weight": weight}
    close = {"abs": 1e-11, "rel": 1e-11}
    np.testing.assert_allclose(metrics.effect_scores(y, arm, **options), effect, atol=1e-12)
    assert metrics.autoc(y, score, arm, **options) == pytest.approx(naive_metrics.autoc(effect, score, heavy), **close)
    assert metrics.qini(y, score, arm, **options) == pytest.approx(naive_metrics.qini(effect, score, heavy), **close)
    right = metrics.qini(y, score, arm, convention="grf", **options)
    assert right == pytest.approx(naive_metrics.qini_right(effect, score, heavy), **close)
    assert metrics.rate(effect, score, **options) == pytest.approx(naive_metrics.autoc(effect, score, heavy), **close)
    # Given as responses and propensities, the same scores take the other road.
    means = [np.average(y[arm == a], weights=heavy[arm == a]) for a in (0, 1)]
    chance = {a: heavy[arm == a].sum() / heavy.sum() for a in (0, 1)}
    by_hand = metrics.autoc(y, score, arm, propensity=chance, response=np.tile(means, (len(y), 1)), **options)
    assert by_hand == pytest.approx(metrics.autoc(y, score, arm, **options), **close)


@settings(max_examples=50)
@given(experiment=experiments())
def test_qini_is_the_area_of_its_curve(experiment):
    y, score, arm, weight = experiment
    x, height = metrics.qini_curve(y, score, arm, sample_weight=weight)
    area = trapezoid(height, x) - height[-1] / 2
    assert metrics.qini(y, score, arm, sample_weight=weight) == pytest.approx(area, abs=1e-11)
    toc = metrics.toc_curve(y, score, arm, sample_weight=weight)
    inside = (toc.x > 0) & (toc.x < 1)
    curve = metrics.qini_curve(y, score, arm, sample_weight=weight)
    np.testing.assert_allclose(toc.y[inside] * toc.x[inside], (curve(toc.x) - toc.x * height[-1])[inside], atol=1e-11)
    assert toc.y[-1] == 0


@UNDEFINED
@settings(max_examples=50)
@given(experiment=experiments(), k=st.floats(0.05, 1))
def test_uplift_at_equals_naive_twin(experiment, k):
    y, score, arm, weight = experiment
    heavy = weights_of(weight, y)
    separate = metrics.uplift_at(y, score, arm, k, sample_weight=weight)
    assert separate == pytest.approx(naive_metrics.uplift_at_separate(k, y, score, arm, heavy), abs=1e-9)
    joint = metrics.uplift_at(y, score, arm, k, sample_weight=weight, ranking="joint")
    expected = naive_metrics.uplift_at_joint(k, y, score, arm, heavy)
    assert joint == pytest.approx(expected, abs=1e-9, nan_ok=True)
    assert separate * k == pytest.approx(float(metrics.uplift_curve(y, score, arm, sample_weight=weight)(k)), abs=1e-11)


@settings(max_examples=50)
@given(experiment=experiments())
def test_lift_equals_naive_twin(experiment):
    y, score, arm, weight = experiment
    heavy = weights_of(weight, y)
    areas = []
    for a in (1, 0):
        mine = arm == a
        area = metrics.lift_area(y[mine], score[mine], sample_weight=None if weight is None else weight[mine])
        assert area == pytest.approx(naive.lift_area(y[mine], score[mine], heavy[mine]) * heavy[mine].sum(), abs=1e-10)
        x, height = metrics.lift_curve(y[mine], score[mine], sample_weight=None if weight is None else weight[mine])
        assert trapezoid(height, x) == pytest.approx(area, abs=1e-10)
        areas.append(area)
    # Equation (1) of Kuusisto et al.
    assert metrics.auu(y, score, arm, sample_weight=weight) == pytest.approx(areas[0] - areas[1], abs=1e-10)


def test_lift_area_and_auc_equation_12():
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, 2, 300), rng.integers(0, 40, 300)
    weight = rng.integers(1, 4, 300)
    positives, share = (y * weight).sum(), (y * weight).sum() / weight.sum()
    auc = roc_auc_score(y, score, sample_weight=weight)
    expected = positives * (share / 2 + (1 - share) * auc)
    assert metrics.lift_area(y, score, sample_weight=weight) == pytest.approx(expected, rel=1e-12)


def test_criteo_closed_form():
    rng = np.random.default_rng(1)
    y, score, arm = rng.integers(0, 2, 500), rng.integers(0, 60, 500), rng.integers(0, 2, 500)
    parts = []
    for a in (1, 0):
        mean = y[arm == a].mean()
        parts.append(mean * (1 - mean) * roc_auc_score(y[arm == a], score[arm == a]) + mean**2 / 2)
    assert metrics.auuc(y, score, arm, convention="criteo") == pytest.approx(parts[0] - parts[1], abs=1e-12)


def test_oracle_ranking_of_a_uniform_effect():
    # TOC(q) = (1 - q) / 2, so AUTOC = 1/4 and QINI = 1/12.
    n = 100_000
    effect = (np.arange(n) + 0.5) / n
    assert metrics.rate(effect, effect) == pytest.approx(0.25, abs=1e-4)
    assert metrics.rate(effect, effect, metric="qini") == pytest.approx(1 / 12, abs=1e-6)
    rng = np.random.default_rng(2)
    effect, arm = rng.random(200_000), rng.integers(0, 2, 200_000)
    y = rng.random(200_000) < effect * arm
    truths = {"auuc": 1 / 12, "qini": 1 / 12, "autoc": 0.25}
    for name, truth in truths.items():
        found = getattr(metrics, name)(y, effect, arm, interval=0.9999, n_bootstrap=50, random_state=0)
        assert found.low < truth < found.high
        assert found.high - found.low < 0.03


@UNDEFINED
@pytest.mark.parametrize("name", RANKED)
@settings(max_examples=25)
@given(experiment=experiments(), data=st.data())
def test_row_order_changes_nothing(name, experiment, data):
    y, score, arm, weight = experiment
    order = np.array(data.draw(st.permutations(range(len(y)))))
    shuffled = None if weight is None else weight[order]
    once = RANKED[name](y, score, arm, sample_weight=weight)
    again = RANKED[name](y[order], score[order], arm[order], sample_weight=shuffled)
    assert once == pytest.approx(again, abs=1e-9, nan_ok=True)


def binary(y):
    return (y > 0).astype(int)


@UNDEFINED
@pytest.mark.parametrize("name", UNWEIGHTED)
@settings(max_examples=25)
@given(experiment=experiments(weights=False), data=st.data())
def test_row_order_changes_nothing_in_other_conventions(name, experiment, data):
    y, score, arm, _ = experiment
    y = binary(y)
    order = np.array(data.draw(st.permutations(range(len(y)))))
    if name == "uplift_at sklift" and min(np.bincount(arm)) < 2:
        return
    once, again = UNWEIGHTED[name](y, score, arm), UNWEIGHTED[name](y[order], score[order], arm[order])
    assert once == pytest.approx(again, abs=1e-9, nan_ok=True)


@settings(max_examples=50)
@given(experiment=experiments(), constant=st.sampled_from([0.0, -1.5, 1e300]))
def test_constant_scores(experiment, constant):
    y, _, arm, weight = experiment
    heavy, score = weights_of(weight, y), np.full(len(y), constant)
    effect = np.average(y[arm == 1], weights=heavy[arm == 1]) - np.average(y[arm == 0], weights=heavy[arm == 0])
    options = {"sample_weight": weight}
    assert metrics.qini(y, score, arm, **options) == 0.0
    assert metrics.autoc(y, score, arm, **options) == 0.0
    assert metrics.qini(y, score, arm, convention="grf", **options) == pytest.approx(0, abs=1e-12)
    assert metrics.auuc(y, score, arm, convention="libuplift", ranking="joint", **options) == pytest.approx(
        0, abs=1e-12
    )
    assert metrics.auuc(y, score, arm, convention="criteo", **options) == pytest.approx(effect / 2, abs=1e-12)
    for ranking in ("separate", "joint"):
        assert metrics.uplift_at(y, score, arm, 0.3, ranking=ranking, **options) == pytest.approx(effect, abs=1e-11)
    means = [np.average(y[arm == a], weights=heavy[arm == a]) for a in (0, 1)]
    x, height = metrics.modified_uplift_curve(y, score, arm, **options)
    np.testing.assert_allclose(height, means[0] + x * effect, atol=1e-11)
    x, height = metrics.uplift_curve(y, score, arm, **options)
    np.testing.assert_allclose(height, x * effect, atol=1e-11)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", metrics.SmallSampleWarning)
        table = metrics.calibration_table(y, score, arm, n_bootstrap=2, random_state=0, **options)
    np.testing.assert_allclose(table["observed"], effect, atol=1e-10)
    for a in (0, 1):
        one = {"sample_weight": None if weight is None else weight[arm == a]}
        x, height = metrics.lift_curve(y[arm == a], score[arm == a], **one)
        np.testing.assert_allclose(height, x * (heavy * y)[arm == a].sum(), atol=1e-10)
        assert metrics.lift_area(y[arm == a], score[arm == a], **one) == pytest.approx(
            (heavy * y)[arm == a].sum() / 2, abs=1e-10
        )
        assert metrics.rate(y[arm == a], score[arm == a], **one) == pytest.approx(0, abs=1e-11)
    successes = [(heavy * y)[arm == a].sum() for a in (0, 1)]
    assert metrics.auu(y, score, arm, **options) == pytest.approx((successes[1] - successes[0]) / 2, abs=1e-10)
    np.testing.assert_allclose(metrics.toc_curve(y, score, arm, **options).y, 0, atol=1e-12)
    x, height = metrics.qini_curve(y, score, arm, **options)
    np.testing.assert_allclose(height, x * effect, atol=1e-12)


@UNDEFINED
@settings(max_examples=50)
@given(experiment=experiments(weights=False))
def test_constant_scores_in_other_conventions(experiment):
    y, _, arm, _ = experiment
    y, score = binary(y), np.zeros(len(y))
    if y[arm == 1].mean() == y[arm == 0].mean():
        return
    for name in ("auuc sklift", "qini sklift", "qini causalml"):
        value = UNWEIGHTED[name](y, score, arm)
        # scikit-uplift divides by a perfect curve's area over the diagonal: none where no ranking can matter
        nothing = name.endswith("sklift") and all(len(np.unique(y[arm == a])) == 1 for a in (0, 1))
        assert value == pytest.approx(0, abs=1e-12) or (nothing and np.isnan(value))
    assert abs(metrics.auuc(y, score, arm, convention="causalml")) == pytest.approx(0.5, abs=1e-12)  # random there
    _, height = metrics.uplift_curve(y, score, arm, convention="causalml")
    np.testing.assert_allclose(height, np.linspace(0, height[-1], len(height)), atol=1e-12)


@settings(max_examples=50)
@given(experiment=experiments(), data=st.data())
def test_a_row_of_no_weight_is_left_out(experiment, data):
    y, score, arm, weight = experiment
    extra = data.draw(st.integers(1, 4))
    idle = np.arange(len(y) + extra) >= len(y)
    more = [np.concatenate([column, np.resize(column, extra)]) for column in (y[::-1], score, arm)]
    more = [np.concatenate([column, tail[-extra:]]) for column, tail in zip((y, score, arm), more, strict=True)]
    heavy = np.where(idle, 0.0, np.resize(weights_of(weight, y), len(idle)))
    for metric in (metrics.auuc, metrics.qini, metrics.autoc):
        assert metric(*more, sample_weight=heavy) == pytest.approx(
            metric(y, score, arm, sample_weight=weights_of(weight, y)), abs=1e-12
        )
    grf = {"convention": "grf"}
    assert metrics.qini(*more, sample_weight=heavy, **grf) == pytest.approx(
        metrics.qini(y, score, arm, sample_weight=weights_of(weight, y), **grf), abs=1e-12
    )


def three_arms(seed=0, n=60, ties=True):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-2, 3, (n, 2)).astype(float) if ties else rng.normal(size=(n, 2))
    return rng.normal(size=n), scores, rng.integers(0, 3, n), rng.uniform(0.5, 2, n)


@pytest.mark.parametrize("name", ["qini", "autoc", "uplift_at"])
def test_several_arms_average_by_size(name):
    y, scores, arm, weight = three_arms()
    metric = getattr(metrics, name)
    single = []
    for column in range(2):
        mine = np.isin(arm, [0, column + 1])
        single.append(metric(y[mine], scores[mine, column], arm[mine], sample_weight=weight[mine]))
    sizes = [weight[arm == a].sum() for a in (1, 2)]
    assert metric(y, scores, arm, sample_weight=weight) == pytest.approx(np.average(single, weights=sizes), abs=1e-13)


def test_modified_uplift_curve_equals_naive_twin():
    y, scores, arm, weight = three_arms(3, 40)
    curve = metrics.modified_uplift_curve(y, scores, arm, sample_weight=weight)
    for share in [0, 0.1, 0.35, 0.8, 1]:
        expected = naive_metrics.modified_uplift_at(share, y, scores, arm, weight)
        assert float(curve(share)) == pytest.approx(expected, abs=1e-12)
    assert curve.y[0] == pytest.approx(np.average(y[arm == 0], weights=weight[arm == 0]))
    untied = scores + 1e-3 * np.arange(2)
    best, curve_end = (
        untied.argmax(axis=1) + 1,
        metrics.modified_uplift_curve(y, untied, arm, sample_weight=weight).y[-1],
    )
    assert curve_end == pytest.approx(metrics.expected_response(y, best, arm, sample_weight=weight), abs=1e-12)
    order = np.random.default_rng(0).permutation(len(y))
    again = metrics.modified_uplift_curve(y[order], scores[order], arm[order], sample_weight=weight[order])
    np.testing.assert_allclose(again.y, curve.y, atol=1e-12)


def test_expected_response_and_policy_value():
    y, _, arm, weight = three_arms(4, 90)
    labels = np.array(["control", "a", "b"])
    recommended = np.random.default_rng(5).integers(0, 3, 90)
    shares = [weight[arm == a].sum() / weight.sum() for a in range(3)]
    expected = naive_metrics.expected_response(y, recommended, arm, shares, weight)
    options = {"sample_weight": weight}
    found = metrics.expected_response(y, labels[recommended], labels[arm], **options)
    assert found == pytest.approx(expected, abs=1e-12)
    order = {"control": shares[0], "a": shares[1], "b": shares[2]}
    assert metrics.expected_response(y, labels[recommended], labels[arm], propensity=order, **options) == pytest.approx(
        found
    )
    nothing = metrics.policy_value(y, labels[recommended], labels[arm], response=np.zeros((90, 3)), **options)
    assert nothing == pytest.approx(found, abs=1e-12)
    # One arm for all: the doubly robust value with the arms' means is that arm's mean.
    for code, label in enumerate(labels):
        value = metrics.policy_value(y, np.full(90, label), labels[arm], **options)
        assert value == pytest.approx(np.average(y[arm == code], weights=weight[arm == code]), abs=1e-12)
    estimate = metrics.policy_value(y, labels[recommended], labels[arm], interval=0.9, random_state=0, **options)
    assert isinstance(estimate, Estimate)
    assert estimate.low < estimate < estimate.high


@pytest.mark.parametrize("metric", [metrics.expected_response, metrics.policy_value])
def test_values_of_labels_of_several_kinds(metric):
    y, scores, arm, weight = three_arms(15)
    recommended, labels = scores.argmax(axis=1), np.array([0, "mail", 2.5], dtype=object)
    order = [0, 2, 1]  # numbers come before text
    expected = metric(y, np.argsort(order)[recommended], np.argsort(order)[arm], sample_weight=weight)
    assert metric(y, labels[recommended], labels[arm], sample_weight=weight) == expected
    for strange, error, message in [
        (None, ValueError, "recommended holds None, which is not an arm"),
        ("post", ValueError, "recommended holds 'post', which is not an arm"),
        ([1], TypeError, "recommended holds values that cannot be labels"),
    ]:
        wrong = labels[recommended]
        wrong[3] = strange
        with pytest.raises(error, match=message):
            metric(y, wrong, labels[arm], sample_weight=weight)


@pytest.mark.parametrize("curve", ["uplift_curve", "qini_curve", "toc_curve", "modified_uplift_curve"])
@settings(max_examples=25)
@given(experiment=experiments(), data=st.data())
def test_row_order_changes_no_curve(curve, experiment, data):
    y, score, arm, weight = experiment
    order = np.array(data.draw(st.permutations(range(len(y)))))
    shuffled = None if weight is None else weight[order]
    once = getattr(metrics, curve)(y, score, arm, sample_weight=weight)
    again = getattr(metrics, curve)(y[order], score[order], arm[order], sample_weight=shuffled)
    at = np.linspace(0, 1, 21)
    np.testing.assert_allclose(once(at), again(at), atol=1e-9)


@settings(max_examples=25)
@given(experiment=experiments(), data=st.data())
def test_row_order_changes_no_group(experiment, data):
    y, score, _, weight = experiment
    order = np.array(data.draw(st.permutations(range(len(y)))))
    shuffled = None if weight is None else weight[order]
    for call in (metrics.lift_area, metrics.rate, lambda *a, **k: metrics.rate(*a, metric="qini", **k)):
        once = call(y, score, sample_weight=weight)
        assert once == pytest.approx(call(y[order], score[order], sample_weight=shuffled), abs=1e-9)
    at = np.linspace(0, 1, 21)
    once = metrics.lift_curve(y, score, sample_weight=weight)(at)
    np.testing.assert_allclose(once, metrics.lift_curve(y[order], score[order], sample_weight=shuffled)(at), atol=1e-9)


def test_row_order_changes_no_table():
    y, scores, arm, weight = three_arms(16, 400)
    pair, order = arm < 2, np.random.default_rng(17).permutation((arm < 2).sum())
    columns = [y[pair], scores[pair, 0], arm[pair], weight[pair]]
    tables = []
    for a, b, c, w in (columns, [column[order] for column in columns]):
        tables.append(metrics.calibration_table(a, b, c, sample_weight=w, n_bootstrap=2, random_state=0))
    for column in ("treated", "control", "rate_treated", "rate_control", "predicted", "observed"):
        np.testing.assert_allclose(tables[0][column], tables[1][column], atol=1e-11)


def test_constant_scores_of_several_arms_are_random():
    y, scores, arm, weight = three_arms(18)
    curve = metrics.modified_uplift_curve(y, np.zeros_like(scores), arm, sample_weight=weight)
    means = [np.average(y[arm == a], weights=weight[arm == a]) for a in range(3)]
    end = np.average(means[1:], weights=[weight[arm == a].sum() for a in (1, 2)])
    np.testing.assert_allclose(curve.random, [means[0], end], atol=1e-12)
    np.testing.assert_allclose(curve.y, np.interp(curve.x, [0, 1], curve.random), atol=1e-12)
    for metric in (metrics.auuc, metrics.qini, metrics.autoc):
        assert metric(y, np.zeros_like(scores), arm, sample_weight=weight) == pytest.approx(0, abs=1e-15)
    # The names of the arms, and so the order of their columns, do not matter either, ties between arms included.
    once = metrics.modified_uplift_curve(y, scores, arm, sample_weight=weight)
    again = metrics.modified_uplift_curve(y, scores[:, ::-1], np.array([0, 2, 1])[arm], sample_weight=weight)
    np.testing.assert_allclose(once.y, again.y, atol=1e-12)


def test_row_order_changes_no_value():
    y, scores, arm, weight = three_arms(13)
    recommended, order = scores.argmax(axis=1), np.random.default_rng(14).permutation(60)
    for metric in (metrics.expected_response, metrics.policy_value):
        once = metric(y, recommended, arm, sample_weight=weight)
        assert once == pytest.approx(
            metric(y[order], recommended[order], arm[order], sample_weight=weight[order]), abs=1e-12
        )


def test_doubly_robust_values_are_unbiased_and_less_noisy():
    rng = np.random.default_rng(6)
    plain, robust = [], []
    for _ in range(300):
        x = rng.normal(size=400)
        chance = 1 / (1 + np.exp(-x))
        arm = (rng.random(400) < chance).astype(int)
        response = np.column_stack([5 + 2 * x, 5 + 2 * x + x**2])
        y = response[np.arange(400), arm] + rng.normal(0, 0.3, 400)
        rule = (x > 0).astype(int)
        options = {"propensity": chance}
        plain.append(metrics.expected_response(y, rule, arm, **options))
        robust.append(metrics.policy_value(y, rule, arm, response=response, **options))
    assert abs(np.mean(robust) - 5.5) < 4 * np.std(robust) / np.sqrt(300)
    assert abs(np.mean(plain) - 5.5) < 4 * np.std(plain) / np.sqrt(300)
    assert np.std(robust) < 0.6 * np.std(plain)


def test_calibration_table_of_one_arm():
    rng = np.random.default_rng(7)
    score, arm = rng.normal(size=5000), rng.integers(0, 2, 5000)
    y = 0.5 * arm * score + rng.normal(size=5000)
    table = metrics.calibration_table(y, score, arm, random_state=0)
    order = np.argsort(-score)
    for b in range(10):
        rows = order[500 * b : 500 * (b + 1)]
        observed = y[rows][arm[rows] == 1].mean() - y[rows][arm[rows] == 0].mean()
        assert table["observed"][b] == pytest.approx(observed, abs=1e-12)
        assert table["predicted"][b] == pytest.approx(score[rows].mean(), abs=1e-12)
        assert table["treated"][b] == pytest.approx(arm[rows].sum(), abs=1e-9)
        error = np.sqrt(sum(y[rows][arm[rows] == a].var() / (arm[rows] == a).sum() for a in (0, 1)))
        assert table["se"][b] == pytest.approx(error, rel=0.3)
    assert list(table.to_frame().columns) == table.columns
    # Equal scores are shared out, so the order of the rows does not matter.
    tied, order = np.round(score), rng.permutation(5000)
    one = metrics.calibration_table(y, tied, arm, random_state=0)
    two = metrics.calibration_table(y[order], tied[order], arm[order], random_state=0)
    np.testing.assert_allclose(one["observed"], two["observed"], atol=1e-10)
    assert "bin" in repr(one)
    assert "<table>" in one._repr_html_()


def test_calibration_table_of_several_arms_is_that_of_each():
    y, scores, arm, weight = three_arms(19, 400)
    table = metrics.calibration_table(y, scores, arm, sample_weight=weight, n_bins=4)
    assert table["arm"].tolist() == [1] * 4 + [2] * 4
    for code in (1, 2):
        mine, pair = table["arm"] == code, (arm == 0) | (arm == code)
        alone = metrics.calibration_table(
            y[pair], scores[pair, code - 1], arm[pair], sample_weight=weight[pair], n_bins=4
        )
        for column in ("bin", "treated", "control", "rate_treated", "rate_control", "predicted", "observed"):
            np.testing.assert_array_equal(table[column][mine], alone[column])
        np.testing.assert_allclose(table["se"][mine], alone["se"], rtol=0.3)


def one_group(y, score, arm, **options):
    return metrics.lift_curve(y, score, **options)


@pytest.mark.parametrize("curve", ["uplift_curve", "qini_curve", "toc_curve", "modified_uplift_curve", "lift_curve"])
def test_bands_match_repeated_experiments(curve):
    rng = np.random.default_rng(8)

    def experiment(n=400):
        score, arm = rng.normal(size=n), rng.integers(0, 2, n)
        return (rng.random(n) < 0.4 + 0.2 * arm * (score > 0)).astype(int), score, arm

    make = one_group if curve == "lift_curve" else getattr(metrics, curve)
    at = np.array([0.2, 0.5, 0.8])
    spread = np.std([make(*experiment())(at) for _ in range(600)], axis=0)
    widths = []
    for seed in range(15):
        banded = make(*experiment(), interval=0.95, random_state=seed)
        assert banded.interval == 0.95
        widths.append((np.interp(at, banded.x, banded.high) - np.interp(at, banded.x, banded.low)) / (2 * 1.959964))
    np.testing.assert_allclose(np.mean(widths, axis=0), spread, rtol=0.15)
    assert set(banded.to_frame().columns) == {"x", "y", "low", "high"}


def test_average_curves():
    rng = np.random.default_rng(9)
    curves = [
        metrics.uplift_curve(rng.integers(0, 2, 50), rng.normal(size=50), rng.integers(0, 2, 50)) for _ in range(5)
    ]
    mean = metrics.average_curves(curves, interval=0.9)
    np.testing.assert_allclose(mean.y, np.mean([curve(np.linspace(0, 1, 101)) for curve in curves], axis=0))
    assert (mean.low <= mean.y).all()
    with pytest.raises(ValueError, match="no curve to average"):
        metrics.average_curves([])


def test_half_sample_error_matches_repeated_experiments():
    rng = np.random.default_rng(10)

    def experiment(n=500):
        score, arm = rng.normal(size=n), rng.integers(0, 2, n)
        return (rng.random(n) < 0.3 + 0.2 * arm * (score > 0)).astype(int), score, arm

    for metric in (metrics.qini, metrics.autoc):
        spread = np.std([metric(*experiment()) for _ in range(1500)])
        errors = [metric(*experiment(), interval=0.95, random_state=0).se for _ in range(40)]
        assert np.mean(errors) == pytest.approx(spread, rel=0.08)


def standard_errors():
    def recommended(metric):
        return lambda y, score, arm, **k: metric(y, (score > 0.3).astype(int), arm, **k)

    def response(score):
        return np.column_stack([np.full(len(score), 0.4), 0.4 + 0.2 * (score > 0)])

    return {
        "auuc": metrics.auuc,
        "auuc joint": lambda *a, **k: metrics.auuc(*a, ranking="joint", **k),
        "auuc sklift": lambda *a, **k: metrics.auuc(*a, convention="sklift", **k),
        "qini libuplift": lambda *a, **k: metrics.qini(*a, convention="libuplift", **k),
        "uplift_at": metrics.uplift_at,
        "uplift_at joint": lambda *a, **k: metrics.uplift_at(*a, ranking="joint", **k),
        "auu": metrics.auu,
        "lift_area": lambda y, score, arm, **k: metrics.lift_area(y[arm == 1], score[arm == 1], **k),
        "expected_response": recommended(metrics.expected_response),
        "policy_value": recommended(metrics.policy_value),
        "policy_value of a model": lambda y, score, arm, **k: metrics.policy_value(
            y, (score > 0.3).astype(int), arm, response=response(score), **k
        ),
        "qini of a model": lambda y, score, arm, **k: metrics.qini(y, score, arm, response=response(score), **k),
        "rate": lambda y, score, arm, **k: metrics.rate(y - 0.5, score, **k),
    }


@pytest.mark.parametrize("name", standard_errors())
def test_errors_match_repeated_experiments(name):
    rng, call = np.random.default_rng(20), standard_errors()[name]

    def experiment(n=500):
        score, arm = rng.normal(size=n), np.arange(n) % 2
        return (rng.random(n) < 0.4 + 0.2 * arm * (score > 0)).astype(int), score, arm

    spread = np.std([call(*experiment()) for _ in range(600)])
    errors = [call(*experiment(), interval=0.95, random_state=seed).se for seed in range(20)]
    assert np.mean(errors) == pytest.approx(spread, rel=0.12)


@pytest.mark.parametrize("name", ["auuc", "qini", "autoc", "uplift_at", "auu"])
def test_packed_targets_weights_and_threads(name):
    y, _, _, weight = three_arms(11, 80)
    rng = np.random.default_rng(12)
    arm, score = rng.integers(0, 2, 80), rng.normal(size=80)
    metric = getattr(metrics, name)
    packed = up.pack(y, arm, weight)
    assert metric(packed, score) == metric(y, score, arm, sample_weight=weight)
    options = {"interval": 0.9, "random_state": 3, "n_bootstrap": 60}
    one, two = metric(packed, score, **options), metric(packed, score, n_jobs=2, **options)
    np.testing.assert_array_equal(one.samples, two.samples)
    assert 0 <= one.p_value <= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y, s, t: metrics.auuc(y, s, t, convention="grf"), r"convention='grf': auuc is there as .* 'sklift'"),
        (
            lambda y, s, t: metrics.auuc(y, s, t, convention="sklift", ranking="separate"),
            r"ranking='separate' belongs to .* not to convention='sklift'",
        ),
        (lambda y, s, t: metrics.qini(y, s, t, convention="criteo"), r"convention='criteo': qini is there"),
        (lambda y, s, t: metrics.qini(y, s, t, negative_effect=False), r"belongs to convention='sklift'"),
        (
            lambda y, s, t: metrics.auuc(y, s, t, convention="causalml", sample_weight=[1, 2, 3, 4]),
            r"causalml has no weights",
        ),
        (lambda y, s, t: metrics.auuc([2, 0, 1, 0], s, t, convention="sklift"), r"outcomes 0 and 1 only"),
        (lambda y, s, t: metrics.uplift_at(y, s, t, 0.0), r"k=0.0: as a share it must be above 0"),
        (lambda y, s, t: metrics.uplift_at(y, s, t, 3), r"k=3: as a number of rows it must be from 1 to 2"),
        (lambda y, s, t: metrics.uplift_at(y, s, t, "x"), r"k='x': expected a share"),
        (lambda y, s, t: metrics.lift_area(y, s, sample_weight=[0, 0, 0, 0]), r"0 for every row"),
        (lambda y, s, t: metrics.expected_response(y, [5, 0, 0, 1], t), r"recommended holds 5, which is not an arm"),
        (lambda y, s, t: metrics.expected_response(y, t, t, propensity=[0, 1, 1, 1]), r"all must be above 0"),
        (
            lambda y, s, t: metrics.expected_response(y, t, t, propensity="shares"),
            r"without X nothing can be estimated",
        ),
        (lambda y, s, t: metrics.expected_response(y, t, t, propensity=np.full((1, 2), 0.5)), r"has shape \(1, 2\)"),
        (lambda y, s, t: metrics.expected_response(y, t, t, propensity={1: 0.5}), r"no entry for \[0\]"),
        (lambda y, s, t: metrics.expected_response(y, t, t, propensity={0: 0.5, 1: 0.6}), r"do not add up to 1"),
        (lambda y, s, t: metrics.policy_value(y, t, t, response=np.ones((4, 3))), r"expected \(4, 2\)"),
        (lambda y, s, t: metrics.evaluate(y, {"a": [1, 2]}, t), r"model 'a': score has 2 rows and y has 4"),
        (lambda y, s, t: metrics.evaluate(y, {}, t), r"at least one model"),
        (
            lambda y, s, t: metrics.evaluate(y, {"a": s}, t, metrics=["mse"]),
            r"metric='mse': expected one of auuc, qini, autoc, uplift_at, auu$",
        ),
        (lambda y, s, t: metrics.compare(y, {"a": s}, t), r"needs at least two"),
        (lambda y, s, t: metrics.compare(y, {"a": s, "b": s}, t, baseline="c"), r"baseline='c' is not among"),
        (lambda y, s, t: metrics.rate(y, s, metric="gini"), r"metric='gini': expected one of qini, autoc"),
        (lambda y, s, t: metrics.calibration_table(y, s, t, n_bins=0), r"n_bins=0"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call([1, 0, 0, 1], [4, 3, 2, 1], [1, 0, 1, 0])
