"""Covariate adjustment: the expectation stays, the error falls, and how much is said."""

import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from upturn.metrics import autoc, auu, auuc, compare, effect_scores, evaluate, qini, rate, uplift_at
from upturn.policy import gain_curve, target

NUMBERS = st.floats(-3, 3).map(lambda x: round(x, 2))


def trial(seed, n=2000, share=0.5, arms=1, noise=0.3):
    """Outcomes that x says much of; the true responses are known."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=n), rng.normal(size=n)
    t = (rng.random(n) < share).astype(int) if arms == 1 else rng.integers(0, arms + 1, n)
    mu = np.column_stack([2 * x, *(2 * x + (k + 1) * 0.3 * z for k in range(arms))])
    y = mu[np.arange(n), t] + noise * rng.normal(size=n)
    return y, z if arms == 1 else np.column_stack([z] * arms), t, mu


@given(
    arrays(float, (6, 2), elements=NUMBERS), arrays(float, (6, 2), elements=NUMBERS), arrays(float, 6, elements=NUMBERS)
)
@settings(max_examples=30, deadline=None)
def test_the_expectation_over_all_assignments_stays(outcomes, response, score):
    """Of six people every three are treated once: the mean number is the same whatever was expected of them.

    qini takes off the arms' means where no response is given, so it is compared with a response of 0.
    """
    for metric in (
        auuc,
        lambda *a, **k: uplift_at(*a, k=0.5, **k),
        lambda *a, **k: auuc(*a, ranking="joint", **k),
        qini,
    ):
        plain, adjusted = [], []
        for treated in combinations(range(6), 3):
            t = np.isin(np.arange(6), treated).astype(int)
            y = outcomes[np.arange(6), t]
            plain.append(metric(y, score, t, **({"response": np.zeros((6, 2))} if metric is qini else {})))
            adjusted.append(metric(y, score, t, response=response))
        assert np.mean(adjusted) == pytest.approx(np.mean(plain), abs=1e-9)


def test_unequal_arms_on_average():
    """The same by simulation where a fifth is treated, with a response that is wrong."""
    rng, differences = np.random.default_rng(0), []
    y, score, _, mu = trial(0, n=400)
    wrong = mu * [1.0, -0.5] + 1.0
    potential = mu + 0.3 * rng.normal(size=(400, 1))
    for _ in range(1500):
        t = (rng.permutation(400) < 80).astype(int)
        y = potential[np.arange(400), t]
        differences.append(auuc(y, score, t, response=wrong) - auuc(y, score, t))
    assert abs(np.mean(differences)) < 4 * np.std(differences) / np.sqrt(1500)


@pytest.mark.parametrize("metric", [auuc, uplift_at, qini, autoc])
def test_a_good_response_makes_errors_smaller_and_says_so(metric):
    y, score, t, mu = trial(1)
    plain, adjusted = metric(y, score, t, interval=0.95), metric(y, score, t, response=mu, interval=0.95)
    assert adjusted.se < 0.4 * plain.se
    assert adjusted.reduction == pytest.approx(1 - adjusted.se / plain.se)
    assert "smaller by response" in repr(adjusted)
    assert plain.reduction is None
    assert float(adjusted) == metric(y, score, t, response=mu)


def test_the_interval_is_that_of_the_adjusted_number():
    """Over many trials: adjusted numbers vary as much as their errors say."""
    found = []
    for seed in range(120):
        y, score, t, mu = trial(100 + seed, n=500)
        value = auuc(y, score, t, response=mu, interval=0.95, n_bootstrap=60)
        found.append((float(value), value.se))
    values, errors = np.array(found).T
    assert values.std() == pytest.approx(errors.mean(), rel=0.2)


def test_by_hand():
    """One arm: the outcome less p_0 mu_1 + p_1 mu_0."""
    y, score, t, mu = trial(2, share=0.3)
    p = t.mean()
    h = (1 - p) * mu[:, 1] + p * mu[:, 0]
    assert auuc(y, score, t, response=mu) == pytest.approx(auuc(y - h, score, t))
    assert uplift_at(y, score, t, k=0.2, response=mu) == pytest.approx(uplift_at(y - h, score, t, k=0.2))
    effects = effect_scores(y, t, response=mu)
    assert qini(y, score, t, response=mu) == pytest.approx(rate(effects, score, metric="qini"))
    assert effects == pytest.approx((t / p - (1 - t) / (1 - p)) * (y - h))  # the doubly robust score in other words


def test_several_arms_each_with_its_own():
    y, score, t, mu = trial(3, arms=2)
    parts, sizes = [], []
    for k in (1, 2):
        rows = np.isin(t, [0, k])
        parts.append(auuc(y[rows], score[rows, 0], t[rows], response=mu[rows][:, [0, k]]))
        sizes.append((t == k).sum())
    assert auuc(y, score, t, response=mu) == pytest.approx(np.average(parts, weights=sizes))
    adjusted = auuc(y, score, t, response=mu, interval=0.9)
    assert adjusted.se < auuc(y, score, t, interval=0.9).se


def test_propensities_by_row_are_doubly_robust():
    rng = np.random.default_rng(4)
    n = 3000
    x, z = rng.normal(size=n), rng.normal(size=n)
    p = 1 / (1 + np.exp(-x))
    t = (rng.random(n) < p).astype(int)
    y = 2 * x + t * 0.5 * (z > 0) + 0.3 * rng.normal(size=n)
    mu = np.column_stack([2 * x, 2 * x + 0.5 * (z > 0)])
    effects = effect_scores(y, t, propensity=p, response=mu)
    order = np.argsort(-z)
    heights = np.concatenate(([0.0], np.cumsum(effects[order]))) / n
    area = np.mean((heights[1:] + heights[:-1]) / 2) - heights[-1] / 2
    assert auuc(y, z, t, propensity=p, response=mu) == pytest.approx(area)
    assert uplift_at(y, z, t, k=0.25, propensity=p, response=mu) == pytest.approx(effects[order][: n // 4].mean())
    assert abs(uplift_at(y, z, t, k=0.5, propensity=p, response=mu) - 0.5) < 0.05
    assert abs(uplift_at(y, z, t, k=0.5) - 0.5) > 0.5  # by chance the treated are those with large x
    assert auuc(y, z, t, propensity=p, response=mu, interval=0.9).se > 0


def test_evaluate_and_compare():
    y, score, t, mu = trial(5)
    scores = {"good": score, "poor": score + np.random.default_rng(0).normal(size=len(y))}
    table = evaluate(y, scores, t, response=mu)
    for metric in (auuc, qini, autoc, uplift_at):
        one = metric(y, score, t, response=mu, interval=0.95)
        mine = next(value for name, value in table["good"].items() if name.startswith(metric.__name__))
        assert float(mine) == pytest.approx(float(one))
        assert mine.se == pytest.approx(one.se)
        assert mine.reduction == pytest.approx(one.reduction)
    assert re.search(
        r"adjusted by response, which makes the standard error of auuc \d+% smaller, of qini .* than without",
        repr(table),
    )
    assert "adjusted" not in repr(evaluate(y, scores, t))
    plain, adjusted = compare(y, scores, t), compare(y, scores, t, response=mu)
    assert adjusted["se"][0] < 0.5 * plain["se"][0]
    assert "smaller" in repr(adjusted)
    assert evaluate(y, scores, t, response=mu, interval=None)["good"]["auuc"] == auuc(y, score, t, response=mu)


def test_what_a_response_adds_to_known_chances():
    """With both, the error is compared with that of the chances alone; chances alone are no adjustment by a response."""
    y, score, t, mu = trial(5)
    chances = np.full(len(y), 0.5)
    alone = auuc(y, score, t, propensity=chances, interval=0.95)
    both = auuc(y, score, t, propensity=chances, response=mu, interval=0.95)
    assert alone.reduction is None
    assert both.reduction == pytest.approx(1 - both.se / alone.se)
    assert both.reduction > 0.3
    table = evaluate(y, {"good": score}, t, metrics=["auuc"], propensity=chances, response=mu)
    assert table["good"]["auuc"].reduction == pytest.approx(both.reduction)
    assert f"auuc {both.reduction:.0%} smaller than without" in repr(table)
    assert "adjusted" not in repr(evaluate(y, {"good": score}, t, metrics=["auuc"], propensity=chances))
    plan = {"fraction": 0.3, "y": y, "treatment": t, "propensity": chances}
    plain, adjusted = target(score, **plan), target(score, **plan, response=mu)
    assert plain.gain.reduction is None
    assert adjusted.gain.reduction == pytest.approx(1 - adjusted.gain.se / plain.gain.se)


def test_what_cannot_be_adjusted():
    y, score, t, mu = trial(6, n=300)
    with pytest.raises(ValueError, match="convention='criteo' has no effect scores"):
        auuc(y, score, t, response=mu, convention="criteo")
    with pytest.raises(ValueError, match="metric 'auu': it has no effect scores"):
        evaluate(y, {"a": score}, t, metrics=["auu"], response=mu)
    with pytest.raises(ValueError, match=r"response has shape \(300,\)"):
        auuc(y, score, t, response=mu[:, 0])
    with pytest.raises(TypeError, match="response"):
        auu(y, score, t, response=mu)


@pytest.mark.parametrize("arms", [1, 2])
def test_plans_are_measured_with_less_error(arms):
    y, score, t, mu = trial(7, arms=arms)
    plain = target(score, fraction=0.3, y=y, treatment=t)
    plan = target(score, fraction=0.3, y=y, treatment=t, response=mu)
    effects = effect_scores(y, t, response=mu).reshape(len(y), -1)
    chosen = np.flatnonzero(plan.arm)
    assert plan.per_1000 == pytest.approx(1000 * effects[chosen, plan.arm[chosen] - 1].sum() / len(y))
    assert plan.gain.se < 0.5 * plain.gain.se
    assert plan.gain.reduction == pytest.approx(1 - plan.gain.se / plain.gain.se)
    assert "smaller by response" in repr(plan)
    assert (
        plan.comparison["low"][0] > plain.comparison["low"][0]
        or plan.comparison["high"][0] < plain.comparison["high"][0]
    )
    priced = target(score, y=y, treatment=t, response=mu, cost=0.1, value=np.full(len(y), 2.0))
    assert priced.profit.reduction > 0.3
    curve = gain_curve(y, score, t, response=mu)
    assert (curve.high - curve.low)[50] < 0.6 * (lambda c: (c.high - c.low)[50])(gain_curve(y, score, t))
    with pytest.raises(ValueError, match="of an experiment"):
        target(score, response=mu)
