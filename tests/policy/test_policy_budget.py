"""The budget path against linear programs, the gains it measures against their definition, and its edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from naive.policy import budget_program, plan_gain
from upturn._results import number_text
from upturn.metrics import Estimate, uplift_curve
from upturn.policy import four_groups, gain_curve, overlap, target
from upturn.policy._path import make_path


@st.composite
def instances(draw):
    """(uplift, cost, value, budget) with ties, free arms and harmful arms, no number too small for HiGHS to see."""
    n, k = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    few = st.integers(-4, 6).map(lambda v: v / 4)
    uplift = draw(arrays(float, (n, k), elements=few | st.integers(-999, 999).map(lambda v: v / 1000)))
    cost = draw(arrays(float, (n, k), elements=st.integers(0, 5).map(lambda v: v / 2) | st.floats(0.0625, 3, width=32)))
    value = draw(st.none() | st.sampled_from([0.5, 2.0, 10.0]))
    return uplift, cost, value, draw(st.floats(0, 1)) * cost.sum()


@given(instances())
def test_budget_path_solves_the_linear_program(instance):
    uplift, cost, value, budget = instance
    plan = target(uplift, budget=budget, cost=cost, value=value)
    benefit = uplift if value is None else value * uplift - cost
    best, _ = budget_program(cost, benefit, budget)
    found = plan.predicted_gain if value is None else plan.predicted_profit
    assert plan.cost <= budget + 1e-9 * max(1, budget)
    assert plan.left == pytest.approx(budget - plan.cost, abs=1e-9)
    assert found <= best + 1e-9
    # Down to the cut, what is missing is the one upgrade that does not fit, exactly its affordable part; filling what is
    # left can only gain.
    price = 0.0 if value is None else 1.0
    path = make_path(cost, uplift if value is None else value * uplift, price, np.uint64(0))
    stop = path.affordable(budget)
    greedy = path.benefit[:stop].sum() - price * path.cost[:stop].sum()
    rest = (budget - path.cost[:stop].sum()) * (plan.marginal_gain - price) if stop < len(path) else 0.0
    np.testing.assert_allclose(greedy + rest, best, atol=1e-7)
    assert greedy - 1e-9 <= found
    assert (found > greedy + 1e-9) <= (plan.filled > 0)


@given(instances())
def test_nothing_that_pays_still_fits(instance):
    uplift, cost, _, budget = instance
    plan = target(uplift[:, 0], budget=budget, cost=cost[:, :1])
    assert ((plan.arm == 1) | (uplift[:, 0] <= 0) | (cost[:, 0] > plan.left - 1e-9)).all()


def test_a_budget_is_not_left_idle_because_the_best_is_too_dear():
    plan = target([9.0, 2.0, 1.0, 1.5], budget=3, cost=[4.0, 1.0, 1.0, 1.5])
    assert plan.arm.tolist() == [0, 1, 1, 0]  # by slope 2.25, 2, 1, 1: the tie is broken by the seed
    assert (plan.order[0], plan.filled, plan.left) == (1, 2, 1.0)
    assert plan.marginal_gain == 2.25
    assert plan.apply([9.0, 2.0], cost=[4.0, 1.0]).tolist() == [0, 0]  # nobody was above the cut
    uplift, y, arm, _ = experiment(500, 2)
    cost = np.random.default_rng(0).uniform(1, 30, (500, 2))
    plan = target(uplift, budget=100, cost=cost, y=y, treatment=arm)
    assert plan.filled > 0
    assert plan.gain == pytest.approx(500 * plan_gain(plan.arm, y, arm, np.ones(500)))
    changed = plan.apply(uplift, cost=cost) != plan.recommended
    assert 0 < changed.sum() <= plan.filled


@pytest.mark.parametrize("k", [1, 3])
def test_budget_path_and_price_on_a_larger_instance(k):
    rng = np.random.default_rng(k)
    uplift, cost = rng.normal(0.3, 1, (500, k)), rng.uniform(0.1, 2, (500, k))
    budget = 0.3 * np.minimum(cost.min(axis=1), 1).sum()
    plan = target(uplift, budget=budget, cost=cost)
    best, price = budget_program(cost, uplift, budget)
    assert price == pytest.approx(plan.marginal_gain, rel=1e-9)
    assert 0 <= best - plan.predicted_gain < 3 * price  # a part of one person's upgrade, mostly filled


@given(instances())
def test_a_path_is_the_best_at_every_budget_and_only_rises(instance):
    uplift, cost, _, _ = instance
    plans = [target(uplift, budget=b, cost=cost) for b in np.linspace(0, cost.sum(), 6)]
    gains = [plan.predicted_gain for plan in plans]
    assert (np.diff(gains) >= -1e-12).all()
    prices = [plan.marginal_gain for plan in plans]
    assert prices == sorted(prices, reverse=True)


def test_everybody_it_pays_to_treat():
    uplift = np.array([[0.10, 0.30], [0.02, 0.01], [-0.2, 0.0], [0.2, 0.21]])
    plan = target(uplift, cost=[1, 5], value=20, arms=["mail", "call"])
    # profits: mail 1, -0.6, …, 3; call 1, -4.8, -5, -0.8; both arms of the first person bring 1, the cheaper wins
    assert plan.recommended.tolist() == ["mail", "control", "control", "mail"]
    assert plan.predicted_profit == pytest.approx(1 + 3)
    assert np.isneginf(plan.marginal_gain)
    assert "Nobody is left" in repr(plan)


def test_fraction_takes_the_top_whatever_the_sign():
    score = np.array([-3.0, -1.0, -2.0, -4.0])
    assert target(score, fraction=0.5).order.tolist() == [1, 2]
    assert target(score, fraction=0.74).n_treated == 2
    assert target(score, budget=3).n_treated == 0  # a budget is never spent on harm
    assert target(score, fraction=0).n_treated == 0
    assert target(score, fraction=1).n_treated == 4


def test_ties_are_broken_at_random_but_always_the_same():
    flat = np.zeros(1000)
    chosen = target(flat, fraction=0.3).arm
    assert chosen.sum() == 300
    assert 0.2 < chosen[:500].sum() / 300 < 0.8
    np.testing.assert_array_equal(chosen, target(flat, fraction=0.3).arm)
    assert (chosen != target(flat, fraction=0.3, random_state=1).arm).any()


def test_a_tie_goes_by_the_number_of_the_row_and_nothing_else():
    plain, lifted = np.zeros(1000), np.zeros(1000)
    lifted[::3] = 1.0  # leave the tie at the top
    chosen, others = target(plain, fraction=0.4).order, target(lifted, fraction=0.6).order
    still = chosen[chosen % 3 > 0]
    tied = others[others % 3 > 0]
    np.testing.assert_array_equal(still, tied[: len(still)])  # the others come in the order they had before


def test_budget_above_the_total_is_left_over():
    plan = target([0.2, 0.1, -0.1], budget=100, cost=2)
    assert (plan.n_treated, plan.cost, plan.left) == (2, 4.0, 96.0)
    assert "96 of the budget left" in repr(plan)
    assert target([0.2, 0.1, -0.1], budget=100).left == 98


def test_costs_of_every_shape_are_the_same_costs():
    uplift = np.random.default_rng(0).normal(size=(30, 2))
    plans = [
        target(uplift, budget=20, cost=cost, arms=["a", "b"])
        for cost in ([1, 3], {"b": 3, "a": 1}, np.tile([1.0, 3.0], (30, 1)), {"control": 0, "a": 1, "b": 3})
    ]
    for plan in plans[1:]:
        np.testing.assert_array_equal(plan.arm, plans[0].arm)
    one = target(uplift[:, 0], budget=20, cost=2)
    np.testing.assert_array_equal(one.arm, target(uplift[:, 0], budget=20, cost=np.full(30, 2)).arm)


def experiment(n=3000, k=2, seed=0, weights=False):
    rng = np.random.default_rng(seed)
    arm, x = rng.integers(0, k + 1, n), rng.normal(size=(n, k))
    y = rng.normal(size=n) + np.where(arm > 0, x[np.arange(n), np.maximum(arm, 1) - 1], 0.0)
    return x, y, arm, rng.uniform(0.5, 2, n) if weights else None


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("k", [1, 3])
def test_measured_gain_is_its_definition(k, weights):
    uplift, y, arm, weight = experiment(200, k, weights=weights)
    cost = np.arange(1, k + 1)
    plan = target(uplift, budget=60, cost=list(cost), y=y, treatment=arm, sample_weight=weight, n_bootstrap=50)
    expected = plan_gain(plan.arm, y, arm, np.ones(200) if weight is None else weight)
    assert plan.gain == pytest.approx(200 * expected, rel=1e-9)
    assert plan.per_1000 == pytest.approx(1000 * expected, rel=1e-9)
    assert isinstance(plan.gain, Estimate)
    assert plan.gain.low < plan.gain < plan.gain.high


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_gain_curve_is_the_gain_of_every_budget(seed, k):
    uplift, y, arm, _ = experiment(40, k, seed=seed)
    if len(np.unique(arm)) <= k:
        return
    cost = np.linspace(0.5, 1.5, k)
    curve = gain_curve(y, uplift, arm, cost=list(cost), value=3.0, points=7, n_bootstrap=2)
    for j, budget in enumerate(curve.budget):
        plan = target(uplift, budget=budget, cost=list(cost), y=y, treatment=arm, n_bootstrap=2)
        if plan.left < 1e-9:  # the curve goes on where a plan stops: into upgrades that do not pay
            assert curve.gain[j] == pytest.approx(plan.gain / plan.n, abs=1e-12)
            assert curve.predicted[j] == pytest.approx(plan.predicted_gain / plan.n, abs=1e-12)
            assert curve.treated[j] == pytest.approx(plan.n_treated / plan.n)
            assert curve.n_treated[j] == plan.n_treated
            assert curve.spent[j] == pytest.approx(plan.cost / plan.n)
            assert curve.marginal[j] / 3 == pytest.approx(plan.rule.slope)
            assert curve.profit[j] == pytest.approx(3 * curve.gain[j] - budget / plan.n, abs=1e-12)
            assert curve.random_profit[j] == pytest.approx(3 * curve.random[j] - budget / plan.n, abs=1e-12)


def test_without_an_interval_the_same_numbers_are_measured():
    uplift, y, arm, weight = experiment(300, 2, weights=True)
    value = np.linspace(1, 3, 300)
    options = {"cost": [0.1, 0.2], "value": value, "sample_weight": weight}
    plan, plain = (target(uplift, y=y, treatment=arm, interval=interval, **options) for interval in (0.95, None))
    for name in ("gain", "per_1000", "profit", "profit_per_1000", "marginal_measured"):
        assert isinstance(getattr(plan, name), Estimate)
        assert type(getattr(plain, name)) is float
        assert getattr(plain, name) == float(getattr(plan, name))
    assert plain.measured
    assert "Measured gain per person" in repr(plain)
    assert "interval" not in repr(plain) + repr(plain.comparison)
    assert not {"low", "profit low", "better low"} & set(plain.comparison.columns)
    for name in plain.comparison.columns:
        np.testing.assert_array_equal(plain.comparison[name], plan.comparison[name])
    curve, bare = (gain_curve(y, uplift, arm, interval=interval, **options) for interval in (0.95, None))
    assert (curve.interval, bare.interval, bare.low, bare.profit_high) == (0.95, None, None, None)
    np.testing.assert_array_equal(curve.profit, bare.profit)
    assert "interval" not in repr(bare)
    assert "low" not in bare.to_frame().columns
    assert "profit_low" in curve.to_frame().columns


def test_one_generator_seeds_all_replicates_of_a_plan():
    uplift, y, arm, _ = experiment(300, 1)
    plans = [
        target(uplift, fraction=0.3, y=y, treatment=arm, value=value, random_state=np.random.default_rng(5))
        for value in (2.0, np.full(300, 2.0))
    ]
    np.testing.assert_allclose(plans[0].profit.samples, plans[1].profit.samples)  # money is paired with units


def test_frames_are_of_the_library_of_the_data():
    polars = pytest.importorskip("polars")
    uplift, y, arm, _ = experiment(300, 1)
    score = polars.Series(uplift[:, 0])
    plan = target(score, fraction=0.3, y=y, treatment=arm, n_bootstrap=2)
    frames = [
        plan.comparison.to_frame(),
        gain_curve(polars.Series(y), uplift, arm, n_bootstrap=2).to_frame(),
        four_groups(polars.DataFrame({"a": [0.1, 0.2], "b": [0.3, 0.1]})).to_frame(),
        overlap(polars.DataFrame({"x": uplift[:, 0]}), arm).to_frame(),
    ]
    assert all(isinstance(frame, polars.DataFrame) for frame in frames)
    np.testing.assert_array_equal(plan.arm, target(uplift, fraction=0.3).arm)


def test_gain_curve_ends_at_the_average_effect_and_agrees_with_the_uplift_curve():
    uplift, y, arm, _ = experiment(20_000, 1)
    curve = gain_curve(y, uplift[:, 0], arm, points=11)
    effect = y[arm == 1].mean() - y[arm == 0].mean()
    assert curve.gain[-1] == pytest.approx(effect)
    joint = uplift_curve(y, uplift[:, 0], arm, ranking="joint")(curve.treated)
    assert (np.abs(joint - curve.gain) < 0.5 * (curve.high - curve.gain) + 1e-9).all()  # two estimates of one thing
    np.testing.assert_allclose(curve.random, effect * curve.treated)
    assert curve.best == 5  # effects are x, and half of the people have x > 0


def test_intervals_cover_the_truth():
    hits, errors = 0, []
    for seed in range(100):
        x, y, arm, _ = experiment(600, 1, seed=seed)
        plan = target(x[:, 0], fraction=0.3, y=y, treatment=arm, random_state=seed, n_bootstrap=100)
        truth = x[plan.arm == 1, 0].sum()
        hits += plan.gain.low <= truth <= plan.gain.high
        errors.append((plan.gain - truth) / plan.gain.se)
    assert 88 <= hits <= 100
    assert abs(np.mean(errors)) < 0.35


def test_comparison_is_paired_and_per_person():
    uplift, y, arm, _ = experiment(4000, 2)
    plan = target(uplift, fraction=0.2, cost=[1, 2], value=5, y=y, treatment=arm)
    table = plan.comparison
    assert table["whom"].tolist() == ["this plan", "nobody", "as many at random", "everybody: 1", "everybody: 2"]
    np.testing.assert_allclose(1000 * table["gain"][0], plan.per_1000)
    assert table["gain"][1] == 0
    everybody = y[arm == 2].mean() - y[arm == 0].mean()
    np.testing.assert_allclose(table["gain"][4], everybody)
    np.testing.assert_allclose(table["cost"], [plan.cost / 4000, 0, plan.cost / 4000, 1, 2])
    profit = 5 * table["gain"] - table["cost"]
    np.testing.assert_allclose(table["profit"], profit)
    np.testing.assert_allclose(table["profit high"] - table["profit low"], 5 * (table["high"] - table["low"]))
    np.testing.assert_allclose(table["this plan better by"], profit[0] - profit, atol=1e-9)
    assert table["better low"][2] > 0  # far better than random, and known to be
    np.testing.assert_allclose(plan.profit, 4 * 5 * plan.per_1000 - plan.cost)
    np.testing.assert_allclose(1000 * table["profit"][0], plan.profit_per_1000)
    assert plan.profit_per_1000.low == pytest.approx(plan.profit.low / 4)
    assert "gain per person" in repr(table)
    assert "net profit per person" in repr(table)
    assert "cost per person" in repr(table)
    assert table.to_frame().shape == (5, 12)
    bare = target(uplift, fraction=0.2, y=y, treatment=arm).comparison
    np.testing.assert_allclose(bare["this plan better by"], bare["gain"][0] - bare["gain"])
    assert "profit" not in bare.columns


def test_weights_count_like_rows_in_everything_measured():
    uplift, y, arm, _ = experiment(600, 2)
    weight = np.where(uplift[:, 0] > 0, 1, 3)
    costs = np.random.default_rng(1).uniform(0.2, 1, (600, 2))
    every = np.repeat(np.arange(600), weight)
    score = uplift + 1e-9 * np.arange(600)[:, None]  # no ties, and copies stay together
    limits = {"value": 2.0, "n_bootstrap": 20}
    plan = target(score, cost=costs, y=y, treatment=arm, sample_weight=weight, **limits)
    rows = target(score[every], cost=costs[every], y=y[every], treatment=arm[every], **limits)
    np.testing.assert_array_equal(plan.arm[every], rows.arm)
    for name in ("treated", "gain", "cost", "profit", "this plan better by"):
        np.testing.assert_allclose(plan.comparison[name], rows.comparison[name], atol=1e-9)
    assert plan.profit_per_1000 == pytest.approx(rows.profit_per_1000)
    every_row = target(score, y=y, treatment=arm, sample_weight=np.full(600, 3.0), cost=costs, **limits)
    assert every_row.marginal_measured == pytest.approx(
        target(score, y=y, treatment=arm, cost=costs, **limits).marginal_measured
    )
    curves = [
        gain_curve(y, score, arm, cost=costs, sample_weight=weight, points=2, **limits),
        gain_curve(y[every], score[every], arm[every], cost=costs[every], points=2, **limits),
    ]
    for name in ("gain", "treated", "predicted", "random", "profit", "random_profit"):
        np.testing.assert_allclose(getattr(curves[0], name)[-1], getattr(curves[1], name)[-1], rtol=1e-9)


def test_weighted_random_is_no_better_than_a_plan_that_is_random():
    rng = np.random.default_rng(0)
    n = 20_000
    weight, arm = np.where(np.arange(n) < n / 2, 1.0, 3.0), rng.integers(0, 2, n)
    y = arm + 0.1 * rng.normal(size=n)  # everybody gains 1, so any plan is as good as random
    uplift = 2.0 - weight / 10 + 1e-6 * rng.random(n)
    plan = target(uplift, fraction=0.5, y=y, treatment=arm, sample_weight=weight)
    assert plan.comparison["treated"][0] == pytest.approx(0.25)
    assert abs(plan.comparison["this plan better by"][2]) < 5
    curve = gain_curve(y, uplift, arm, sample_weight=weight, n_bootstrap=2)
    np.testing.assert_allclose(curve.gain, curve.random, atol=5)
    np.testing.assert_array_equal(curve.n_treated, curve.budget)
    assert curve.spent is None
    paid = gain_curve(y, uplift, arm, cost=2.0, sample_weight=weight, n_bootstrap=2)
    np.testing.assert_allclose(paid.spent, 2.0 * paid.treated)
    assert (paid.marginal[0], np.diff(paid.marginal[1:]).max() <= 0) == (np.inf, True)


def test_random_spending_buys_fewer_people_where_the_chosen_are_cheap():
    rng = np.random.default_rng(0)
    n = 4000
    cost, arm = np.where(np.arange(n) % 2 == 0, 1.0, 9.0), rng.integers(0, 2, n)
    y = arm + 0.1 * rng.normal(size=n)
    curve = gain_curve(y, np.ones(n), arm, cost=cost, value=3.0, points=5, n_bootstrap=2)
    effect = y[arm == 1].mean() - y[arm == 0].mean()
    bought = np.minimum(curve.budget / 5.0, n)  # a person costs 5 on average
    np.testing.assert_allclose(curve.random, effect * bought / n, rtol=1e-9)
    np.testing.assert_allclose(curve.random_profit, 3 * curve.random - 5 * bought / n, atol=1e-6)
    half = np.searchsorted(curve.budget, n / 2)  # all cheap ones
    assert curve.gain[half] > 4 * curve.random[half]


def test_ties_at_the_cut_are_announced_when_a_plan_is_applied():
    plan = target(np.zeros(100), fraction=0.2)
    with pytest.warns(UserWarning, match="people tie at the cut"):
        assert (plan.apply(np.zeros(10)) == 1).all()


def test_predicted_comparison_is_the_models_word_per_person():
    uplift, cost = np.array([[0.2], [0.1], [-0.3], [0.4]]), 0.05
    table = target(uplift, fraction=0.5, cost=cost, value=2.0).comparison
    assert table["whom"].tolist() == ["this plan", "nobody", "as many at random", "everybody: 1"]
    np.testing.assert_allclose(table["predicted gain"], [0.15, 0, 0.05, 0.1])
    np.testing.assert_allclose(table["cost"], [0.025, 0, 0.025, 0.05])
    np.testing.assert_allclose(table["predicted profit"], [0.275, 0, 0.075, 0.15])


def test_value_per_person_decides_and_is_measured():
    uplift, y, arm, _ = experiment(2000, 1)
    value = np.where(np.arange(2000) < 1000, 10.0, 1.0)
    plan = target(uplift[:, 0], cost=3.0, value=value, y=y, treatment=arm)
    np.testing.assert_array_equal(plan.arm == 1, value * uplift[:, 0] > 3)
    assert plan.profit == pytest.approx(2000 * plan_gain(plan.arm, y * value, arm, np.ones(2000)) - plan.cost)


def test_apply_uses_the_same_cut_on_other_people():
    uplift, y, arm, _ = experiment(2000, 2)
    plan = target(uplift, budget=300, cost=[1, 2], y=y, treatment=arm)
    assert plan.filled == np.sum(plan.apply(uplift, cost=[1, 2]) != plan.recommended) == 1  # one fitted into the rest
    other = experiment(5000, 2, seed=1)[0]
    share = np.mean(plan.apply(other, cost=[1, 2]) != 0)
    assert share == pytest.approx(plan.n_treated / plan.n, abs=0.03)
    top = target(uplift[:, 0], fraction=0.2)
    assert np.mean(top.apply(other[:, 0]) == 1) == pytest.approx(0.2, abs=0.03)
    np.testing.assert_array_equal(top.apply(uplift[:, 0]), top.recommended)
    with pytest.raises(ValueError, match=r"1 column\(s\) and the plan 2 arm"):
        plan.apply(other[:, 0], cost=[1, 2])


@pytest.mark.parametrize(
    ("limit", "money"),
    [({"fraction": 0.0}, {}), ({"budget": 0}, {}), ({"budget": 0}, {"cost": 1.0}), ({}, {"cost": 9.0, "value": 1.0})],
)
def test_a_plan_that_treats_nobody_treats_nobody_else(limit, money):
    uplift = np.random.default_rng(0).normal(0.1, 0.3, 1000)
    plan = target(uplift, **limit, **money)
    assert plan.n_treated == 0
    np.testing.assert_array_equal(plan.apply(uplift, **money), plan.recommended)
    np.testing.assert_array_equal(plan.apply(uplift + 100, **money), plan.recommended)


@pytest.mark.parametrize("limit", [{}, {"fraction": 0.3}, {"budget": 150.0}])
@pytest.mark.parametrize("per_person", [False, True])
@pytest.mark.parametrize("costs", [False, True])
def test_apply_to_the_same_people_is_the_plan(limit, per_person, costs):
    rng = np.random.default_rng(0)
    uplift, cost = rng.normal(0.1, 0.3, 1000), rng.uniform(0.5, 2, 1000) if costs else None
    value = rng.uniform(1, 20, 1000) if per_person else 10.0
    plan = target(uplift, cost=cost, value=value, **limit)
    assert 0 < plan.n_treated < 1000
    others = plan.apply(uplift, cost=cost, value=value)
    assert np.sum(others != plan.recommended) == plan.filled  # the fill of a budget's rest is no part of the cut
    assert plan.filled == 0 or (costs and "budget" in limit)
    if per_person:
        with pytest.raises(ValueError, match=r"value per person: pass .*value=values"):
            plan.apply(uplift, cost=cost)
    else:
        np.testing.assert_array_equal(plan.apply(uplift, cost=cost), others)
    if costs:
        with pytest.raises(ValueError, match=r"made with costs: pass .*cost=2\.0"):
            plan.apply(uplift, value=value)
    else:
        with pytest.raises(ValueError, match="made without costs"):
            plan.apply(uplift, cost=1.0, value=value)


def test_apply_asks_for_costs_only_where_they_matter():
    uplift = np.random.default_rng(0).normal(0.1, 0.3, 1000)
    ranked = target(uplift, fraction=0.2, cost=1.0)  # without a value, the best fifth does not depend on what it costs
    np.testing.assert_array_equal(ranked.apply(uplift), ranked.recommended)
    with pytest.raises(ValueError, match="made without one"):
        ranked.apply(uplift, value=3.0)
    with pytest.raises(ValueError, match="made with costs"):
        target(uplift, budget=50, cost=1.0).apply(uplift)


def test_same_bits_on_any_number_of_threads():
    uplift, y, arm, _ = experiment(3000, 2)
    one, two = (target(uplift, fraction=0.2, y=y, treatment=arm, n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one.gain.samples, two.gain.samples)


def test_marginal_gain_is_measured_just_above_the_cut():
    uplift, y, arm, _ = experiment(40_000, 1)
    plan = target(uplift[:, 0], fraction=0.3, y=y, treatment=arm)
    assert plan.marginal_gain == pytest.approx(np.quantile(uplift, 0.7), abs=0.01)
    assert plan.marginal_measured.low < plan.marginal_gain < plan.marginal_measured.high
    assert "measured just above it" in repr(plan)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cost": -1}, r"cost holds 1 negative value\(s\) \(smallest -1\).*belongs into value"),
        ({"cost": [1.0, np.nan, 1.0]}, r"cost holds 1 NaN \(missing\) value\(s\), the first at row 1"),
        ({"cost": [1.0, None, 1.0]}, r"cost holds 1 NaN \(missing\) value\(s\), the first at row 1"),
        ({"cost": {"b": 1}}, r"\[1\] missing; \['b'\] not an arm"),
        ({"cost": {0: 2, 1: 1}}, r"control 0 the cost 2"),
        ({"cost": [1.0, 2.0]}, r"cost has shape \(2,\), with 3 people and 1 treatment arm"),
        ({"cost": "cheap"}, r"cost is 'cheap', of type str: expected numbers or labels"),
        ({"value": -2}, r"value holds 1 negative"),
        ({"value": [1.0, 2.0]}, r"value has shape \(2,\)"),
        ({"budget": -1}, r"budget=-1: expected a number of people, 0 or more"),
        ({"budget": np.nan, "cost": 1}, r"budget=nan: expected an amount of money"),
        ({"budget": "100"}, r"budget='100': expected a number of people"),
        ({"fraction": "20%"}, r"fraction='20%': expected a share"),
        ({"budget": 1, "fraction": 0.5}, r"both limit the plan"),
        ({"fraction": 20}, r"fraction=20: expected a share"),
        ({"treatment": [0, 1, 0]}, r"treatment was given without y"),
        ({"y": [0, 1], "treatment": [0, 1]}, r"score has 3 rows and y has 2.*plan.apply"),
        ({"y": [0, 1, 0], "treatment": [0, 1, 2]}, r"1 column\(s\) and treatment 2 arm\(s\)"),
        ({"arms": ["a", "b"]}, r"2 label\(s\) and score 1 column"),
        ({"arms": ["control"]}, r"arms=\['control'\] holds 'control', the label of control"),
        ({"arms": ["a"], "control": "a"}, r"arms=\['a'\] holds 'a', the label of control"),
        ({"control": 1}, r"arms=\[1\] holds 1, the label of control"),
        ({"y": [0, 1, 0], "treatment": [0, 1, 0], "arms": ["b"]}, r"arms=\['b'\] and treatment holds \[1\] besides"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        target([0.1, 0.2, 0.3], **arguments)


def test_arms_are_those_of_the_experiment_in_its_order():
    uplift, y, arm, _ = experiment(300, 2)
    names = np.array(["control", "a", "b"])[arm]
    with pytest.raises(
        ValueError, match=r"arms=\['b', 'a'\] and treatment holds \['a', 'b'\] besides control.*sort them"
    ):
        target(uplift, y=y, treatment=names, arms=["b", "a"])
    plans = [target(uplift, y=y, treatment=names, arms=arms, n_bootstrap=2) for arms in (None, ["a", "b"])]
    np.testing.assert_array_equal(plans[0].recommended, plans[1].recommended)
    with pytest.raises(ValueError, match=r"arms=\['a', 'a'\] names 'a' more than once"):
        target(uplift, arms=["a", "a"])


def test_bad_scores():
    with pytest.raises(ValueError, match=r"score holds 1 NaN \(missing\) value\(s\), the first at row 1"):
        target([0.1, np.nan], fraction=0.5)
    with pytest.raises(ValueError, match=r"score holds 'a' at row 0, which is not a number"):
        target(["a", "b"], fraction=0.5)
    with pytest.raises(ValueError, match=r"score has shape \(1, 1, 1\)"):
        target(np.zeros((1, 1, 1)), fraction=0.5)
    with pytest.raises(ValueError, match="needs y and treatment"):
        gain_curve(None, [0.1, 0.2])
    for points in (1, "a", 3.5):
        with pytest.raises(ValueError, match="at least 2 points"):
            gain_curve([0, 1], [0.1, 0.2], [0, 1], points=points)


def test_replicates_are_drawn_from_rows_with_weight():
    rng = np.random.default_rng(0)
    uplift, arm = rng.normal(size=400), np.arange(400) % 2
    y, weight = rng.random(400) < 0.3 + 0.3 * arm * (uplift > 0), (np.arange(400) < 6).astype(float)
    curve = gain_curve(
        y, uplift, arm, sample_weight=weight, random_state=0
    )  # most replicates of all rows have no weight
    assert np.isfinite(curve.low).all()
    assert np.isfinite(curve.high).all()


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_clusters_are_drawn_whole(whole, weighted):
    """The gain on a replicate is the gain in the table in which every cluster stands as often as it was drawn."""
    from naive.clusters import replicate_rows
    from upturn._target import read_measured
    from upturn.metrics._replicates import Replicates
    from upturn.metrics._strata import Strata

    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 6)
    t = np.repeat(rng.permutation(np.arange(60) % 3), 6) if whole else rng.integers(0, 3, 360)
    score = rng.normal(size=(360, 2))
    y = rng.normal(size=60)[groups] + rng.normal(size=360) + t * (score[:, 0] > 0)
    weight = rng.choice([0.0, 1.0, 2.0], 360) if weighted else None
    plan = target(score, fraction=0.4, y=y, treatment=t, sample_weight=weight, groups=groups, n_bootstrap=8)
    seed = Replicates.read(0.95, 8, 0).seed
    strata = Strata.of_arms(read_measured(y, t, weight), groups)
    counts, _ = strata.draw(0, seed, range(8))
    for r in range(8):
        rows = replicate_rows(groups, weight, strata.unit, counts[:, r])
        w = np.ones(len(rows)) if weight is None else weight[rows]
        here = plan_gain(plan.arm[rows], y[rows], t[rows], w)
        assert plan.per_1000.samples[r] / 1000 == pytest.approx(here, abs=1e-12)
    curve = gain_curve(y, score, t, sample_weight=weight, groups=groups, n_bootstrap=8)
    assert (curve.high >= curve.low).all()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_list_to_hand_on(library):
    frames = pytest.importorskip(library)
    score = np.array([[0.1, 0.3], [0.5, 0.2], [-0.1, -0.2], [0.05, 0.1]])
    plan = target(score, budget=3, arms=["mail", "call"])
    ids = frames.Series(["ann", "bob", "cas", "dan"])
    frame = plan.to_frame(ids=ids)
    assert type(frame).__module__.split(".")[0] == library
    assert list(frame["id"]) == ["bob", "ann", "dan"]
    assert list(frame["arm"]) == ["mail", "call", "call"]
    assert list(frame["rank"]) == [1, 2, 3]
    assert list(frame["score"]) == [0.5, 0.3, 0.1]
    assert list(plan.to_frame()["id"]) == [1, 0, 3]
    with pytest.raises(ValueError, match="ids has 3 values and the plan is for 4 people"):
        plan.to_frame(ids=["a", "b", "c"])


def test_rates_per_thousand_and_money_per_person():
    rng = np.random.default_rng(0)
    score, t = rng.normal(size=500), rng.integers(0, 2, 500)
    y = (rng.random(500) < 0.4).astype(float)
    assert "gain per 1,000 people: " in repr(target(score, fraction=0.2, y=y, treatment=t))
    real = target(score, fraction=0.2, y=37.5 * y, treatment=t)
    assert "Measured gain per person: " in repr(real)
    assert f"Measured gain per person: {real.gain / 500:.4g} (" in repr(real)
    assert "Predicted gain per 1,000 people" in repr(target([0.1, 0.2]))
    assert "Predicted gain per person" in repr(target([10.0, 20.0]))
    priced = target(1e6 * score, y=y, treatment=t, cost=1.0, value=1e9)
    assert "e+" not in repr(priced)
    assert "per person" in repr(priced)


def test_replicates_do_not_depend_on_how_many_are_made_at_once(monkeypatch):
    from upturn.policy import _measure, gain_curve

    rng = np.random.default_rng(0)
    score, treatment = rng.normal(size=300), rng.integers(0, 2, 300)
    y = (rng.random(300) < 0.3 + 0.2 * treatment * (score > 0)).astype(float)
    usual = gain_curve(y, score, treatment, n_bootstrap=20)
    monkeypatch.setattr(_measure, "_ROWS", 900)
    few = gain_curve(y, score, treatment, n_bootstrap=20)
    np.testing.assert_array_equal(few.low, usual.low)
    np.testing.assert_array_equal(few.high, usual.high)


def test_comparisons_and_curves_follow_the_rule_of_units():
    rng = np.random.default_rng(0)
    score, t = rng.uniform(-1, 1, 500), rng.integers(0, 2, 500)
    y = (rng.random(500) < 0.4 + 0.2 * t * (score > 0)).astype(float)
    rates = target(score, fraction=0.2, y=y, treatment=t).comparison
    assert "gain per 1,000 people" in repr(rates)
    assert "paired difference in gain per 1,000 people" in repr(rates)
    assert number_text(1000 * rates["gain"][0]) in repr(rates)
    assert "gain per person" in repr(target(score, fraction=0.2, y=40 * y, treatment=t).comparison)
    money = target(score, fraction=0.2, y=y, treatment=t, cost=0.1, value=9).comparison
    assert all(words in repr(money) for words in ("gain per 1,000 people", "cost per person", "net profit per person"))
    assert "predicted gain per 1,000 people" in repr(target(score, fraction=0.2).comparison)
    curve = gain_curve(y, score, t, points=5, n_bootstrap=20)
    assert f": {number_text(1000 * curve.gain[curve.best])} per 1,000 people" in repr(curve)
    priced = gain_curve(y, score, t, points=5, n_bootstrap=20, cost=0.1, value=9)
    assert f"a net profit of {number_text(priced.profit[priced.best])} per person" in repr(priced)
    np.testing.assert_allclose(curve.to_frame()["gain"], curve.gain)
