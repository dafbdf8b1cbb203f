"""The rehearsal: an experiment that is made, whose effects are known, and how far intervals must reach to hold them."""

import numpy as np
import pytest

from upturn._experiment import Experiment
from upturn._table import read_table
from upturn._target import read_target
from upturn.trees import UpliftForest
from upturn.trees._base import scale_of
from upturn.trees._rehearsal import reach, stage

SEED = np.uint64(5)


def experiment(n=400, n_arms=1, binary=False, seed=0):
    """An experiment, and responses that a forest could have predicted."""
    rng = np.random.default_rng(seed)
    X, arm = rng.normal(size=(n, 3)), rng.integers(0, n_arms + 1, n)
    y = (rng.random(n) < 0.4).astype(float) if binary else rng.normal(size=n) + arm * X[:, 0]
    response = rng.uniform(-0.2, 1.2, size=(n, n_arms + 1)) if binary else rng.normal(size=(n, n_arms + 1))
    matrix, schema = read_table(X)
    return Experiment(matrix, schema, read_target(y, arm)), response


@pytest.mark.parametrize("n_arms", [1, 2])
def test_real_outcomes_are_made_around_responses_with_the_rows_own_residuals(n_arms):
    data, response = experiment(n_arms=n_arms)
    varies = np.full(n_arms, 4.0)
    made = stage(data, response, varies, scale_of(data.y), SEED)
    arm, shares = data.arm, np.bincount(data.arm) / len(data)
    effect = response[:, 1:] - response[:, :1]
    wanted = effect.mean(axis=0) + np.sqrt(1 - 1 / 4) * (effect - effect.mean(axis=0))
    np.testing.assert_allclose(made.effects, wanted[made.others], atol=1e-12)
    signs = set()
    for i, y in zip(made.rows, made.y, strict=True):
        control = response[i] @ shares - wanted[i] @ shares[1:]
        centre = control + (wanted[i, arm[i] - 1] if arm[i] else 0.0)
        residual = data.y[i] - response[i, arm[i]]
        assert abs(y - centre) == pytest.approx(abs(residual))
        signs.add(np.sign(y - centre) * np.sign(residual))
    assert signs == {-1.0, 1.0}


def test_rows_are_shared_out_by_arm_and_no_row_is_on_both_sides():
    data, response = experiment(n_arms=2)
    made = stage(data, response, np.ones(2), scale_of(data.y), SEED)
    size = np.bincount(data.arm)
    np.testing.assert_array_equal(np.bincount(data.arm[made.rows]), np.floor(0.75 * size))
    np.testing.assert_array_equal(np.sort(np.concatenate([made.rows, made.others])), np.arange(len(data)))
    again = stage(data, response, np.ones(2), scale_of(data.y), SEED)
    np.testing.assert_array_equal(made.y, again.y)
    assert (stage(data, response, np.ones(2), scale_of(data.y), np.uint64(6)).rows[:50] != made.rows[:50]).any()


def test_two_values_are_drawn_with_chances_that_stay_between_0_and_1():
    data, response = experiment(n=20_000, binary=True)
    made = stage(data, response, np.array([1e9]), scale_of(data.y), SEED)
    clipped = np.clip(response, 0.0, 1.0)
    np.testing.assert_allclose(made.effects[:, 0], (clipped[:, 1] - clipped[:, 0])[made.others], atol=1e-6)
    assert set(np.unique(made.y)) == {0.0, 1.0}
    chance = clipped[made.rows, data.arm[made.rows]]
    for low in (0.0, 0.25, 0.5, 0.75):
        some = (chance >= low) & (chance < low + 0.25)
        assert abs(made.y[some].mean() - chance[some].mean()) < 4 * 0.5 / np.sqrt(some.sum())


@pytest.mark.parametrize("varies", [0.0, 0.4, 1.0])
def test_where_predictions_differ_by_chance_alone_the_effect_is_one_number(varies):
    data, response = experiment()
    made = stage(data, response, np.array([varies]), scale_of(data.y), SEED)
    np.testing.assert_allclose(made.effects, (response[:, 1] - response[:, 0]).mean())


def test_rows_without_a_prediction_are_left_out_and_few_rows_say_nothing():
    data, response = experiment()
    response[:100] = np.nan
    made = stage(data, response, np.ones(1), scale_of(data.y), SEED)
    assert min(made.rows.min(), made.others.min()) >= 100
    assert np.isfinite(made.y).all()
    few, response = experiment(n=60)
    assert stage(few, response, np.ones(1), scale_of(few.y), SEED) is None


def test_intervals_become_as_wide_as_the_errors_ask_for_and_little_narrower():
    rng = np.random.default_rng(0)
    error, variance = rng.normal(size=(100_000, 3)) * [2.0, 0.9, 0.5], np.ones((100_000, 3))
    np.testing.assert_allclose(reach(error, variance), [2.0, 0.9, 0.85], atol=0.03)
    assert reach(np.ones((30, 1)), np.zeros((30, 1))) == 1.0  # nothing is known of the variance


def test_a_forest_widens_its_intervals_by_what_it_rehearsed(monkeypatch):
    rng = np.random.default_rng(1)
    X, treatment = rng.normal(size=(500, 3)), rng.integers(0, 3, 500)
    y = X[:, 0] * (treatment == 1) + rng.normal(size=500)
    forest = UpliftForest(inference=True, random_state=0).fit(X, y, treatment)
    widths = [np.subtract(*forest.predict_interval(X, interval=level)[::-1]) for level in (0.5, 0.9)]
    forest._pooled = forest._pooled._replace(reach=np.array([2.0, 3.0]) * forest._pooled.reach)
    for before, level in zip(widths, (0.5, 0.9), strict=True):
        low, high = forest.predict_interval(X, interval=level)
        np.testing.assert_allclose(high - low, before * [2.0, 3.0])
