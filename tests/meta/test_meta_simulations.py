"""What theory promises: robustness to confounding, and no heterogeneity where there is none."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from upturn._table import read_table
from upturn.base import Experiment
from upturn.meta import DRLearner, RLearner, SLearner, TLearner, XLearner
from upturn.meta._dr import robust_effects
from upturn.metrics import auuc, effect_scores
from upturn.policy import calibration_table


def simulate(n, seed, confounding, constant=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    chance = 1 / (1 + np.exp(-confounding * (X[:, 0] + 0.5 * X[:, 1])))
    t = (rng.random(n) < chance).astype(int)
    effect = np.full(n, 0.5) if constant else 0.2 + 0.6 * (X[:, 2] > 0)
    y = 2 * X[:, 0] + X[:, 1] ** 2 + np.sin(2 * X[:, 3]) + effect * t + rng.normal(size=n)
    return X, y, t, effect


def error(model, seed):
    X, y, t, _ = simulate(3000, seed, 1.0)
    new, _, _, effect = simulate(3000, seed + 100, 1.0)
    return np.sqrt(np.mean((model.fit(X, y, t).predict(new) - effect) ** 2))


def test_dr_and_r_beat_t_on_confounded_data():
    errors = {
        learner.__name__: np.mean([error(learner(random_state=0), seed) for seed in range(2)])
        for learner in (TLearner, DRLearner, RLearner)
    }
    assert errors["DRLearner"] < 0.6 * errors["TLearner"]
    assert errors["RLearner"] < 0.6 * errors["TLearner"]


def test_dr_needs_only_one_of_its_two_models_to_be_right():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    t = (rng.random(20_000) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    curved = X[:, 0] + 0.7 * t + 2 * np.maximum(X[:, 0], 0) ** 2 + rng.normal(size=20_000)
    straight = X[:, 0] + 0.7 * t + rng.normal(size=20_000)
    wrong_outcome = DRLearner(LinearRegression(), clip=0.001, cv=2, random_state=0).fit(X, curved, t)
    wrong_propensity = DRLearner(LinearRegression(), propensity="share", cv=2, random_state=0).fit(X, straight, t)
    both_wrong = DRLearner(LinearRegression(), propensity="share", cv=2, random_state=0).fit(X, curved, t)
    for model in (wrong_outcome, wrong_propensity):
        z = (model.average_effects_[0] - 0.7) / model.average_effects_se_[0]
        assert abs(z) < 3
    assert abs(both_wrong.average_effects_[0] - 0.7) > 5 * both_wrong.average_effects_se_[0]


@pytest.mark.parametrize("learner", [SLearner, TLearner, XLearner, DRLearner, RLearner])
def test_nothing_invents_heterogeneity_where_the_effect_is_constant(learner):
    X, y, t, _ = simulate(3000, 1, 0.0, constant=True)
    new, y_new, t_new, _ = simulate(6000, 2, 0.0, constant=True)
    score = learner(random_state=0).fit(X, y, t).predict(new)
    area = auuc(y_new, score, t_new, interval=0.99, random_state=0)
    assert area.low < 0 < area.high
    table = calibration_table(y_new, score, t_new, n_bins=5, interval=0.999)
    assert (table["low"] < 0.5).all()
    assert (table["high"] > 0.5).all()


def test_where_the_effect_varies_the_same_test_sees_it():
    X, y, t, _ = simulate(3000, 1, 0.0)
    new, y_new, t_new, _ = simulate(6000, 2, 0.0)
    for learner in (XLearner, DRLearner, RLearner):
        area = auuc(y_new, learner(random_state=0).fit(X, y, t).predict(new), t_new, interval=0.99, random_state=0)
        assert area.low > 0


def test_robust_effects_are_the_effect_scores_of_the_metrics():
    rng = np.random.default_rng(0)
    n, arm = 30, np.arange(30) % 3
    y, mu, chance = rng.normal(size=n), rng.normal(size=(n, 3)), rng.dirichlet([5, 5, 5], n)
    schema = read_table(np.zeros((n, 1)))[1]
    data = Experiment(np.zeros((n, 1)), y, arm.astype(np.uint8), None, schema, 2)
    expected = effect_scores(y, arm, propensity=chance, response=mu)
    np.testing.assert_allclose(robust_effects(data, mu, chance), expected)


def test_linear_learners_recover_a_linear_effect():
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(500, 3)), np.arange(500) % 3
    y = X @ [1.0, 2.0, 3.0] + (t == 1) * (1 + X[:, 0]) + (t == 2) * (2 - X[:, 1])
    expected = np.column_stack([1 + X[:, 0], 2 - X[:, 1]])
    base = LinearRegression()
    for model in (
        SLearner(base, interactions=True),
        TLearner(base),
        XLearner(base, propensity="share"),
        DRLearner(base, cv=2, random_state=0, propensity=[1 / 3, 1 / 3]),
    ):
        np.testing.assert_allclose(model.fit(X, y, t).predict(X), expected, atol=1e-8)
    r = RLearner(Ridge(), propensity=LogisticRegression(), random_state=0).fit(X, y, t)
    assert np.corrcoef(r.predict(X)[:, 0], expected[:, 0])[0, 1] > 0.8
