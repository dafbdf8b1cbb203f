"""What theory promises: robustness to confounding, and no heterogeneity where there is none."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from upturn.meta import DRLearner, RLearner, SLearner, TLearner, XLearner
from upturn.metrics import auuc, calibration_table
from upturn.policy import UpliftCalibrator


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


def deviations(seed):
    """Deviations of the average effect from the truth, in standard errors: outcome model wrong, propensity wrong, both."""
    rng, n = np.random.default_rng(seed), 20_000
    X = rng.normal(size=(n, 2))
    t = (rng.random(n) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    straight = X[:, 0] + 0.7 * t + rng.normal(size=n)
    curved = straight + 2 * np.maximum(X[:, 0], 0) ** 2
    found = []
    for y, propensity in ((curved, "logistic"), (straight, "shares"), (curved, "shares")):
        model = DRLearner(LinearRegression(), propensity=propensity, clip=0.001, cv=2, random_state=0).fit(X, y, t)
        found.append((model.average_effects_[0] - 0.7) / model.average_effects_se_[0])
    return found


def test_dr_needs_only_one_of_its_two_models_to_be_right():
    outcome, propensity, both = np.sqrt(8) * np.mean([deviations(seed) for seed in range(8)], axis=0)
    assert abs(outcome) < 3
    assert abs(propensity) < 3
    assert both < -5


def predictions_are_measured(model):
    """Whether the mean predictions of all fifths lie inside the intervals measured there, the effect being constant."""
    X, y, t, _ = simulate(3000, 1, 0.0, constant=True)
    new, y_new, t_new, _ = simulate(6000, 2, 0.0, constant=True)
    table = calibration_table(y_new, model.fit(X, y, t).predict(new), t_new, n_bins=5, interval=0.999)
    return bool(((table["low"] < table["predicted"]) & (table["predicted"] < table["high"])).all())


@pytest.mark.filterwarnings("ignore:UpliftCalibrator predicts the same for everybody")  # as it should here
@pytest.mark.parametrize(
    "model",
    [
        SLearner(random_state=0),
        XLearner(random_state=0),
        DRLearner(random_state=0),
        RLearner(random_state=0),
        UpliftCalibrator(TLearner(random_state=0), method="linear", random_state=0),
    ],
    ids=["S", "X", "DR", "R", "calibrated T"],
)
def test_nothing_invents_heterogeneity_where_the_effect_is_constant(model):
    """The raw T-learner is not among them: it does invent heterogeneity, as the next test shows; calibrated, it does not."""
    assert predictions_are_measured(model)


def test_the_raw_t_learner_does_invent_heterogeneity():
    """Its two models err independently, so their difference varies where the effect does not: as its docstring says."""
    assert not predictions_are_measured(TLearner(random_state=0))


def test_where_the_effect_varies_the_same_test_sees_it():
    X, y, t, _ = simulate(3000, 1, 0.0)
    new, y_new, t_new, _ = simulate(6000, 2, 0.0)
    for learner in (XLearner, DRLearner, RLearner):
        area = auuc(y_new, learner(random_state=0).fit(X, y, t).predict(new), t_new, interval=0.99, random_state=0)
        assert area.low > 0


def test_linear_learners_recover_a_linear_effect():
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(500, 3)), np.arange(500) % 3
    y = X @ [1.0, 2.0, 3.0] + (t == 1) * (1 + X[:, 0]) + (t == 2) * (2 - X[:, 1])
    expected = np.column_stack([1 + X[:, 0], 2 - X[:, 1]])
    base = LinearRegression()
    for model in (
        SLearner(base, interactions=True),
        TLearner(base),
        XLearner(base, propensity="shares"),
        DRLearner(base, cv=2, random_state=0, propensity=[1 / 3, 1 / 3]),
    ):
        np.testing.assert_allclose(model.fit(X, y, t).predict(X), expected, atol=1e-8)
    r = RLearner(Ridge(), propensity=LogisticRegression(), random_state=0).fit(X, y, t)
    assert np.corrcoef(r.predict(X)[:, 0], expected[:, 0])[0, 1] > 0.8
