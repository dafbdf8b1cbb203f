"""One switch for intervals: leaves corrected for what they smooth, and the variance of the corrected forest."""

import numpy as np
import pytest

import upturn
from upturn._experiment import Experiment
from upturn._table import read_table
from upturn._target import read_target
from upturn.kernels.forest import twin_codes
from upturn.kernels.sampling import ESTIMATE
from upturn.trees import UpliftForest
from upturn.trees._bins import Bins
from upturn.trees._growth import Soil
from upturn.trees._inference import (
    Pooled,
    correct_smoothing,
    effect_grid,
    pool_variance,
    pooled_rows,
    pooled_variance,
    rows_in_leaf,
    smoothed_sums,
)
from upturn.trees._nodes import Nodes
from upturn.trees._samples import Sampling, unseen


def experiment(n, seed):
    rng = np.random.default_rng(seed)
    X, treatment = rng.normal(size=(n, 4)), rng.integers(0, 2, n)
    effect = np.tanh(X[:, 0])
    return X, X[:, 1] + effect * treatment + rng.normal(size=n), treatment, effect


def grown(n=150, n_arms=1, n_trees=4, group_size=2, weight=None, seed=0):
    """A soil, how its trees draw rows, and honest trees on it."""
    rng = np.random.default_rng(seed)
    X, arm = rng.normal(size=(n, 3)), rng.integers(0, n_arms + 1, n)
    y = X[:, 0] * (arm == 1) + 0.3 * rng.normal(size=n)
    bins = Bins.learn(X, [None] * 3, weight)
    soil = Soil.prepare(bins, bins.encode(X), arm.astype(np.uint8), n_arms, y, weight)
    forest = UpliftForest(honest=True, min_samples_arm=2)
    rules, plan = forest._rules(soil, False), Sampling(rho=0.5, group_size=group_size)
    trees = [soil.grow(rules, plan, np.uint64(7), tree) for tree in range(n_trees)]
    return soil, plan, trees, X


@pytest.mark.parametrize("n_arms", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_leaves_get_back_what_they_smooth(n_arms, weighted):
    """The naive twin: twice the leaf's effect, less the mean over its rows of what other trees of the bag predict."""
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 150) if weighted else None
    soil, plan, trees, _ = grown(n_arms=n_arms, group_size=4, weight=weight)
    w = np.ones(150) if weight is None else weight
    roles = [soil.roles(plan, np.uint64(7), tree)[0] for tree in range(4)]
    codes = twin_codes(soil.codes)
    before = [tree.value.copy() for tree in trees]
    leaf = [tree.leaves(codes)[0] for tree in trees]
    shares = soil.size / soil.size.sum()

    def predicted(i):
        able = [b for b in range(4) if roles[b][i] != ESTIMATE] or range(4)
        return np.mean([before[b][leaf[b][i], 1:] - before[b][leaf[b][i], 0] for b in able], axis=0)

    def correct():
        grid = effect_grid(trees, float(soil.size.sum()), weighted=weighted)
        correct_smoothing(trees, own, smoothed_sums(trees, roles, codes, weight, grid), grid, shares)

    own = [value[:, 1:] - value[:, :1] for value in before]
    correct()
    checked = 0
    for b, tree in enumerate(trees):
        for node in np.unique(leaf[b]):
            rows = np.flatnonzero((leaf[b] == node) & (roles[b] == ESTIMATE))
            if len(rows):
                mean = np.average([predicted(i) for i in rows], axis=0, weights=w[rows])
                effect = before[b][node, 1:] - before[b][node, 0]
                np.testing.assert_allclose(tree.value[node, 1:] - tree.value[node, 0], 2 * effect - mean, atol=1e-12)
                np.testing.assert_allclose(tree.value[node] @ shares, before[b][node] @ shares, atol=1e-12)
                checked += 1
    assert checked > 10
    # Once more: the uncorrected effect is put on, the mean of what is predicted now is taken off.
    once, before = before, [tree.value.copy() for tree in trees]
    correct()
    node, rows = leaf[0][0], np.flatnonzero((leaf[0] == leaf[0][0]) & (roles[0] == ESTIMATE))
    mean = np.average([predicted(i) for i in rows], axis=0, weights=w[rows])
    expected = before[0][node, 1:] - before[0][node, 0] + once[0][node, 1:] - once[0][node, 0] - mean
    np.testing.assert_allclose(trees[0].value[node, 1:] - trees[0].value[node, 0], expected, atol=1e-12)


def test_variances_are_pooled_over_rows_outside_the_groups():
    soil, plan, trees, _ = grown(n_trees=24, group_size=4)
    codes, nodes = twin_codes(soil.codes), Nodes.join(trees)
    roles = [soil.roles(plan, np.uint64(7), first)[0] for first in range(0, 24, 4)]
    pooled = pool_variance(nodes, roles, codes, 4, 2)
    between, noise = [], []
    for i in range(len(soil)):
        means, within = [], []
        for group in range(6):
            if not unseen(soil.roles(plan, np.uint64(7), 4 * group)[0])[i]:
                continue
            bags = []
            for first in (4 * group, 4 * group + 2):
                values = [tree.value[tree.leaves(codes[i : i + 1])[0][0]] for tree in trees[first : first + 2]]
                bags.append(np.mean([value[1] - value[0] for value in values]))
            means.append(np.mean(bags))
            within.append(np.var(bags, ddof=1) / 2)
        if len(means) >= 2:
            between.append(np.var(means, ddof=1))
            noise.append(np.mean(within))
    expected = max(np.mean(np.subtract(between, noise)), 0.0) / np.mean(noise)
    np.testing.assert_allclose(pooled.ratio, [expected], rtol=1e-9)
    assert pooled.varies[0] > 0.0


def test_rows_that_variances_are_pooled_over_are_spread_over_the_table():
    np.testing.assert_array_equal(pooled_rows(1500), np.arange(1500))
    assert len(np.unique(pooled_rows(10_000))) == 2000
    assert pooled_rows(10_000)[[0, -1]].tolist() == [0, 9999]


def test_sums_of_smoothed_effects_are_the_same_however_the_rows_are_divided():
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 150)
    soil, plan, trees, _ = grown(group_size=4, weight=weight)
    roles, codes = [soil.roles(plan, np.uint64(7), tree)[0] for tree in range(4)], twin_codes(soil.codes)
    grid = effect_grid(trees, float(soil.size.sum()), weighted=True)
    whole = smoothed_sums(trees, roles, codes, weight, grid)
    parts = [
        smoothed_sums(trees, [role[some] for role in roles], codes[some], weight[some], grid)
        for some in (slice(0, 1), slice(1, 1), slice(1, 90), slice(90, 150))
    ]
    for tree, sums in enumerate(whole):
        np.testing.assert_array_equal(np.sum([part[tree] for part in parts], axis=0), sums)


def test_a_points_variance_is_the_pooled_ratio_times_its_noise():
    between, total = np.array([[3.0], [0.5]]), np.array([[4.0], [2.5]])  # noise 1 and 2 with two bags
    found = pooled_variance(between, total, 2, 10, Pooled(np.array([0.8]), np.ones(1), np.ones(1)))
    np.testing.assert_allclose(found, [[0.9], [1.8]])  # and a tenth of the noise, in the mean of ten groups
    assert pooled_variance(np.ones((1, 1)), np.zeros((1, 1)), 2, 10, Pooled(np.ones(1), np.ones(1), np.ones(1))) == 0.0


def test_inference_keeps_its_parameters_and_comes_back_from_a_file(tmp_path):
    X, y, treatment, _ = experiment(400, 0)
    forest = UpliftForest(101, inference=True, min_samples_arm=80, random_state=3).fit(X, y, treatment)
    assert forest.centered_
    assert forest.propensity_kind_ == "shares"
    assert forest.n_estimators == 101
    assert forest.nodes_.n_trees == 500
    low, high = forest.predict_interval(X)
    np.testing.assert_allclose((low + high) / 2, forest.predict(X), atol=1e-9)
    again = UpliftForest(inference=True, random_state=3, n_jobs=2).fit(X, y, treatment)
    for one, two in zip(again.predict_interval(X), (low, high), strict=True):
        np.testing.assert_array_equal(one, two)
    forest.save(tmp_path / "forest.upturn")
    np.testing.assert_array_equal(upturn.load(tmp_path / "forest.upturn").predict_interval(X)[0], low)


@pytest.mark.parametrize(("options", "centred"), [({"criterion": "kl"}, False), ({"center": False}, False), ({}, True)])
def test_inference_centres_where_it_may(options, centred):
    X, y, treatment, _ = experiment(200, 1)
    forest = UpliftForest(inference=True, oob=True, random_state=0, **options).fit(X, (y > 0).astype(float), treatment)
    assert forest.centered_ is centred
    assert np.isfinite(forest.oob_prediction_).all()


def test_intervals_cover_and_the_effect_is_flattened_less():
    new_X, *_, effect = experiment(500, 99)
    covered, slope = [], {"inference": [], "honest": []}
    for seed in range(3):
        data = experiment(1000, seed)[:3]
        forest = UpliftForest(inference=True, random_state=seed).fit(*data)
        honest = UpliftForest(200, honest=True, max_samples=0.5, min_samples_arm=2, center=True, random_state=seed).fit(
            *data
        )
        low, high = forest.predict_interval(new_X)
        covered.append(((low <= effect) & (effect <= high)).mean())
        for name, model in (("inference", forest), ("honest", honest)):
            slope[name].append(np.polyfit(effect, model.predict(new_X), 1)[0])
    assert 0.82 < np.mean(covered) < 0.98
    assert np.mean(slope["inference"]) > np.mean(slope["honest"]) + 0.05


def test_leaves_grow_with_the_smallest_arm():
    sizes = [6000, 5000, 9000]
    arm = np.repeat([0, 1, 2], sizes)
    weight = np.ones(len(arm))
    weight[6000:8000] = 0.0  # 3,000 rows of the second arm are left
    X, y = np.zeros((len(arm), 1)), np.arange(len(arm)) % 2

    def leaf(weight):
        data = Experiment(*read_table(X), read_target(y, arm, weight))
        forest = UpliftForest(inference=True)
        return forest._chosen(forest._soil(data)[0].size).min_samples_arm

    assert leaf(None) == rows_in_leaf(5000) == 8
    assert leaf(weight) == rows_in_leaf(3000) == 3
    assert leaf(2 * weight) == rows_in_leaf(6000) == 9
    grown = [rows_in_leaf(n) for n in range(1000, 100_000, 50)]
    assert grown == sorted(grown)
    assert max(np.diff(grown)) == 1
