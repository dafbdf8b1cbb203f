"""Kernels of budgets and of sums of trees against plain Python."""

import itertools

import numpy as np

from naive.policy import plan_gain
from upturn.kernels.additive import add_trees
from upturn.kernels.budget import path_gains, upgrades


def listed(cost, benefit, floor=-np.inf):
    size = cost.size
    columns = (
        np.empty(size, np.uint32),
        np.empty(size, np.uint8),
        np.empty(size, np.uint8),
        *(np.empty(size) for _ in range(3)),
    )
    count = upgrades(cost, benefit, floor, *columns)
    return [column[:count] for column in columns]


def envelope(cost, benefit, at):
    """Height of the concave hull of a row's points and (0, 0) at a cost: the best mixture of two of them."""
    points = [(0.0, 0.0), *zip(cost, benefit, strict=True)]
    best = max(b for c, b in points if c == at) if any(c == at for c, _ in points) else -np.inf
    for (c1, b1), (c2, b2) in itertools.permutations(points, 2):
        if c1 < at < c2:
            best = max(best, b1 + (at - c1) / (c2 - c1) * (b2 - b1))
    return best


def test_upgrades_walk_the_concave_hull():
    rng = np.random.default_rng(0)
    for _ in range(20):
        cost = np.round(rng.uniform(0, 2, (6, 4)) * 4) / 4
        benefit = np.round(rng.normal(size=(6, 4)) * 8) / 8
        row, before, after, slope, extra_cost, extra_benefit = listed(cost, benefit)
        for i in range(6):
            mine = np.flatnonzero(row == i)
            chain = [0, *after[mine]]
            np.testing.assert_array_equal(before[mine], chain[:-1])
            assert (np.diff(slope[mine]) < 0).all()
            x, y = np.cumsum(extra_cost[mine]), np.cumsum(extra_benefit[mine])
            for c, b, arm in zip(x, y, after[mine], strict=True):
                assert (c, b) == (cost[i, arm - 1], benefit[i, arm - 1])
                assert b >= envelope(cost[i], benefit[i], c) - 1e-12
            reached = x[-1] if len(mine) else 0.0
            assert reached == max(0.0, cost[i].max())  # the chain ends at the dearest arm


def test_upgrades_below_the_floor_are_left_out():
    cost, benefit = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])
    assert listed(cost, benefit, 0.0)[3].tolist() == [3.0, 1.0]
    assert listed(cost, benefit, 1.0)[3].tolist() == [3.0]
    assert listed(cost, benefit, 3.0)[3].tolist() == []


def test_a_free_improvement_comes_first():
    cost, benefit = np.array([[0.0, 0.0, 1.0]]), np.array([[1.0, 2.0, 2.5]])
    _, before, after, slope, *_ = listed(cost, benefit, 0.0)
    assert after.tolist() == [2, 3]
    assert before.tolist() == [0, 2]
    assert slope[0] > 1e300
    assert slope[1] == 0.5


def test_path_gains_are_the_gains_of_the_plans_on_the_way():
    rng = np.random.default_rng(1)
    n, k = 60, 3
    arm, y, weight = rng.integers(0, k + 1, n).astype(np.uint8), rng.normal(size=n), rng.uniform(0.5, 2, n)
    row, before, after, slope, *_ = listed(rng.uniform(0.5, 2, (n, k)), rng.normal(size=(n, k)))
    order = np.argsort(-slope, kind="stable")
    row, before, after = (np.ascontiguousarray(column[order]) for column in (row, before, after))
    stops = np.array([0, 1, 7, len(row) // 2, len(row)])
    for weights in (weight, np.empty(0)):
        gains, effects = np.empty(len(stops)), np.empty(k)
        path_gains(row, before, after, stops, arm, y, weights, gains, effects)
        plain = weights if len(weights) else np.ones(n)
        for stop, gain in zip(stops, gains, strict=True):
            plan = np.zeros(n, int)
            for i, code in zip(row[:stop], after[:stop], strict=True):
                plan[i] = code
            np.testing.assert_allclose(gain, plan_gain(plan, y, arm, plain), atol=1e-12)
        means = [np.average(y[arm == a], weights=plain[arm == a]) for a in range(k + 1)]
        np.testing.assert_allclose(effects, np.array(means[1:]) - means[0])


def test_trees_send_levels_numbers_and_missing_values_where_they_belong():
    # 0: x0 <= 1.5 ? leaf 10 : node 2;  2: level of x1 in {1} ? leaf 20 : leaf 30, level 2 and missing as missing (left)
    feature = np.array([0, -1, 1, -1, -1], np.int32)
    threshold = np.array([1.5, 10.0, 0.0, 20.0, 30.0])
    left, right = np.array([1, -1, 3, -1, -1], np.int32), np.array([2, -1, 4, -1, -1], np.int32)
    missing = np.array([False, False, True, False, False])
    start, sides = np.array([-1, -1, 0, -1, -1]), np.array([0, 1, 2], np.uint8)
    X = np.array([[1.5, 0], [2, 0], [2, 1], [2, 2], [2, np.nan], [np.nan, 0]])
    out = np.full(6, 0.5)
    add_trees(X, np.array([0, 1]), feature, threshold, left, right, missing, start, sides, out)
    np.testing.assert_array_equal(out, 10.5 + np.array([10, 30, 20, 20, 20, 30]))
