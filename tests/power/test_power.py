"""upturn.power: against textbook numbers, by simulation, and at its gates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import upturn as up
from upturn.metrics import SmallSampleWarning, auuc, compare

REPEATS = 20_000


def test_textbook_numbers():
    """A standardised difference of 0.5: 63 a group by the normal law (64 by Student's t, Cohen 1988, table 2.4.1)."""
    plan = up.power(effect=0.5, sd=1.0)
    assert plan.rows == 126
    assert plan.rows_per_arm == (63, 63)
    z = stats.norm.ppf(0.975) + stats.norm.ppf(0.9)
    assert up.power(effect=0.1, rate=0.2, power=0.9).rows == np.ceil(z**2 * (0.16 + 0.21) / 0.01 * 2)
    assert up.power(effect=-3.0, sd=(5.0, 10.0), share=0.2).rows == pytest.approx(
        (1.959964 + 0.841621) ** 2 * (25 / 0.8 + 100 / 0.2) / 9, abs=1
    )


@pytest.mark.parametrize("noise", [{"rate": 0.1}, {"sd": 2.0}, {"sd": (1.0, 3.0), "share": 0.25}])
def test_the_three_go_together(noise):
    plan = up.power(effect=0.05, power=0.85, **noise)
    assert up.power(effect=0.05, rows=plan.rows, **noise).power == pytest.approx(0.85, abs=0.002)
    assert up.power(rows=plan.rows, power=0.85, **noise).effect == pytest.approx(0.05, rel=0.002)
    table = plan.at([plan.rows, 4 * plan.rows])
    assert table["power"][0] == pytest.approx(0.85, abs=0.002)
    assert table["effect"][0] == pytest.approx(0.05, rel=0.002)
    assert table["se"][1] == pytest.approx(table["se"][0] / 2)
    assert plan.se == pytest.approx(table["se"][0])


def seen(p, expected, n):
    return abs(np.mean(p) - expected) < 4 * np.sqrt(expected * (1 - expected) / n)


def test_rates_by_simulation():
    """20,000 trials of the planned size: the share whose interval leaves out 0 is the power, to 4 standard errors and half a point."""
    rng = np.random.default_rng(0)
    plan = up.power(effect=0.05, rate=0.2, share=0.3)
    n0, n1 = plan.rows_per_arm
    p0, p1 = rng.binomial(n0, 0.2, REPEATS) / n0, rng.binomial(n1, 0.25, REPEATS) / n1
    z = (p1 - p0) / np.sqrt(p0 * (1 - p0) / n0 + p1 * (1 - p1) / n1)
    assert abs(np.mean(np.abs(z) > 1.959964) - 0.8) < 4 * np.sqrt(0.16 / REPEATS) + 0.005


def test_means_by_simulation():
    rng = np.random.default_rng(1)
    plan = up.power(effect=0.4, sd=(1.0, 2.0), power=0.9, share=0.5, interval=0.9)
    n0, n1 = plan.rows_per_arm
    a, b = rng.normal(size=(2000, n0)), 0.4 + 2 * rng.normal(size=(2000, n1))
    z = (b.mean(axis=1) - a.mean(axis=1)) / np.sqrt(a.var(axis=1, ddof=1) / n0 + b.var(axis=1, ddof=1) / n1)
    assert abs(np.mean(np.abs(z) > stats.norm.ppf(0.95)) - 0.9) < 4 * np.sqrt(0.09 / 2000) + 0.003


def campaign(rng, n):
    x, t = rng.uniform(-1, 1, n), rng.integers(0, 2, n)
    return x, (rng.random(n) < 0.3 + 0.2 * x * t).astype(float), t


def test_a_pilots_noise_is_carried_over():
    rng = np.random.default_rng(2)
    x, y, t = campaign(rng, 4000)
    plan = up.power(y, x, t, effect=0.02)
    pilot = auuc(y, x, t, interval=0.95)
    assert plan.noise.constant == pytest.approx(4000 * pilot.se**2)
    assert plan.se == pytest.approx(0.02 / (1.959964 + 0.841621), rel=0.01)
    mean = up.power(y, None, t, effect=0.02)
    treated, control = y[t == 1], y[t == 0]
    se = np.sqrt(treated.var(ddof=1) / len(treated) + control.var(ddof=1) / len(control))
    assert mean.noise.constant == pytest.approx(4000 * se**2)
    other = rng.normal(size=4000) + x
    pair = up.power(y, x, t, baseline=other, metric="auuc", effect=0.01)
    table = compare(y, {"a": x, "b": other}, t, baseline="b")
    assert pair.noise.constant == pytest.approx(4000 * float(table["se"][0]) ** 2)
    assert "a difference in auuc" in repr(pair)


def test_auuc_by_simulation():
    """A pilot of 3,000 rows plans for an AUUC of 0.05: of 150 experiments of that size, about four in five see it."""
    rng = np.random.default_rng(3)
    x, y, t = campaign(rng, 3000)
    truth = np.mean([auuc(y_, x_, t_) for x_, y_, t_ in (campaign(rng, 40_000) for _ in range(5))])
    plan = up.power(y, x, t, effect=float(truth))
    hits = []
    for number in range(150):
        x, y, t = campaign(rng, plan.rows)
        found = auuc(y, x, t, interval=0.95, n_bootstrap=100, random_state=number)
        hits.append(found.low > 0)
    assert seen(hits, 0.8, 150)


def test_the_pilots_own_effect():
    rng = np.random.default_rng(4)
    x, y, t = campaign(rng, 2000)
    plan = up.power(y, x, t)
    assert plan.effect == pytest.approx(float(auuc(y, x, t)))
    assert "often too large" in repr(plan)
    assert up.power(y, x, t, effect="pilot", rows=plan.rows).power == pytest.approx(0.8, abs=0.01)
    assert up.power(y, x, t, rows=plan.rows).effect == pytest.approx(plan.effect, rel=0.01)
    packed = up.power(up.pack(y, t), x)
    assert packed.rows == plan.rows
    assert plan.to_frame().shape[0] == 1


def test_several_arms_are_planned_by_the_smallest():
    several = up.power(effect=0.5, sd=1.0, share=(0.5, 0.1))
    exact = several.rows * np.array([0.4, 0.5, 0.1])
    assert (np.abs(np.array(several.rows_per_arm) - exact) < 1).all()
    assert sum(several.rows_per_arm) == several.rows
    z = (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) ** 2
    assert several.rows == np.ceil(z * (1 / 0.4 + 1 / 0.1) / 0.25)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "say how the outcome varies"),
        ({"rate": 0.1, "sd": 1.0}, "say how the outcome varies"),
        ({"rate": 0.1}, "nothing to plan with"),
        ({"rate": 1.2, "effect": 0.1}, "rate=1.2"),
        ({"rate": 0.95, "effect": 0.1}, "a rate of 1.05 under treatment"),
        ({"sd": -1.0, "effect": 0.1}, "sd=-1.0"),
        ({"sd": (1.0, 2.0, 3.0), "effect": 0.1}, "sd="),
        ({"sd": 1.0, "effect": 0}, "effect=0"),
        ({"sd": 1.0, "effect": np.nan}, "effect=nan"),
        ({"sd": 1.0, "effect": "large"}, "effect='large'"),
        ({"sd": 1.0, "effect": "pilot"}, "there is no pilot"),
        ({"sd": 1.0, "effect": 0.1, "share": 1.0}, "share=1.0"),
        ({"sd": 1.0, "effect": 0.1, "share": "half"}, "share='half'"),
        ({"sd": 1.0, "effect": 0.1, "share": (0.6, 0.6)}, "leave some for control"),
        ({"sd": 1.0, "effect": 0.1, "power": 1.0}, "power=1.0"),
        ({"sd": 1.0, "effect": 0.1, "power": 0.04}, "what chance alone gives"),
        ({"sd": 1.0, "effect": 0.1, "rows": 100, "power": 0.8}, "all given"),
        ({"sd": 1.0, "rows": 1}, "rows=1"),
        ({"sd": 1.0, "effect": 0.1, "interval": 95}, "interval=95"),
        ({"sd": 1.0, "effect": 1e-30}, "too small beside the noise"),
        ({"score": [1.0], "effect": 0.1, "sd": 1.0}, "belong to a pilot table"),
        ({"y": [1, 0, 1, 0], "treatment": [0, 0, 1, 1], "rate": 0.1}, "assumptions, and a pilot"),
        ({"y": [1, 1, 1, 1], "treatment": [0, 0, 1, 1], "effect": 0.1}, "does not vary"),
        ({"y": [1, 0, 1], "treatment": [0, 0, 1], "effect": 0.1}, "has one row in the pilot"),
        ({"y": [1, 0, 1, 0], "treatment": [0, 0, 1, 1], "baseline": [1, 2, 3, 4]}, "baseline is compared with a score"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        up.power(**options)


def test_scores_that_are_the_same_have_no_difference_to_see():
    rng = np.random.default_rng(5)
    x, y, t = campaign(rng, 500)
    with pytest.raises(ValueError, match="no standard error"):
        up.power(y, x, t, baseline=x, effect=0.01)


def test_small_plans_say_so():
    with pytest.warns(SmallSampleWarning, match="successes or failures in an arm"):
        up.power(effect=0.4, rate=0.01)
    with pytest.warns(SmallSampleWarning, match="too few to see any effect"):
        assert np.isnan(up.power(rows=4, rate=0.9).effect)


def test_rows_of_arms_add_up_and_levels_are_not_rounded_to_a_certainty():
    plan = up.power(effect=0.1, rate=0.3, interval=0.999)
    assert sum(plan.rows_per_arm) == plan.rows
    assert "the 99.9% interval" in repr(plan)
    assert sum(up.power(sd=1.0, rows=771).rows_per_arm) == 771


def test_a_plan_whose_chance_was_found_shows_effects_seen_with_the_usual_one():
    table = up.power(effect=1e-9, rate=0.3, rows=100).at([100, 1000])
    assert table["effect"] == pytest.approx([up.power(rate=0.3, rows=n).effect for n in (100, 1000)])


def test_what_a_pilot_has_itself_and_effects_that_cannot_be_are_refused():
    rng = np.random.default_rng(0)
    treatment, y = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    with pytest.raises(ValueError, match=r"a pilot .* has its own shares"):
        up.power(y, None, treatment, effect=0.1, share=0.2)
    with pytest.raises(ValueError, match="effect=5 of a rate"):
        up.power(y, None, treatment, effect=5)
    arms = rng.choice(["no", "a", "b"], 400)
    assert "an average effect of the treatment arm '" in repr(up.power(y, None, arms, effect=0.1))


def test_too_few_rows_are_said_in_words():
    with pytest.warns(SmallSampleWarning):
        plan = up.power(rate=0.5, rows=3)
    assert "show no effect there can be" in repr(plan)
