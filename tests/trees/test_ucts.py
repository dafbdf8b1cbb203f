"""CTS and UCTS against the text of Zhao, Fang and Simchi-Levi (2017): the tests name the equation or section."""

import numpy as np
import pytest

from upturn.kernels.sampling import ESTIMATE, GROW
from upturn.trees import CTSForest, UCTSForest, UpliftForest, UpliftTree
from upturn.trees._bins import Bins
from upturn.trees._growth import Soil
from upturn.trees._samples import Sampling


def experiment(n=1200, n_arms=2, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, p))
    arm = rng.choice(n_arms + 1, n, p=[0.5] + [0.5 / n_arms] * n_arms).astype(np.uint8)
    y = rng.normal(size=n) + X[:, 1] + (arm == 1) * (2 * X[:, 0] - 1) + (arm == 2) * (1 - 2 * X[:, 0])
    return X, y, arm


def soil_of(X, y, arm, n_arms=2):
    bins = Bins.learn(X, [None] * X.shape[1])
    return Soil.prepare(bins, bins.encode(X), arm, n_arms, y)


def test_equations_1_2_and_5_by_hand():
    """One split, two arms: p_l max_t y_t(l) + p_r max_t y_t(r) - max_t y_t."""
    X = np.array([0.0] * 4 + [1.0] * 6)[:, None]
    arm = np.array([0, 0, 1, 1, 0, 0, 0, 1, 1, 1])
    y = np.array([1.0, 2.0, 5.0, 7.0, 9.0, 8.0, 7.0, 1.0, 2.0, 3.0])
    tree = UpliftTree("cts", max_depth=1, min_samples_split=2, min_samples_leaf=1, min_samples_arm=0)
    nodes = tree.fit(X, y, arm).nodes_
    best = max(y[arm == 0].mean(), y[arm == 1].mean())
    np.testing.assert_allclose(nodes.gain[0], 0.4 * 6.0 + 0.6 * 8.0 - best)
    np.testing.assert_allclose(nodes.value[1:], [[1.5, 6.0], [8.0, 2.0]])
    assert tree.recommend([[0.0], [1.0]]).tolist() == [1, 0]


def test_equations_3_and_4_in_every_node():
    X, y, arm = experiment(400)
    settings = {"max_depth": None, "min_samples_split": 25, "min_samples_leaf": 1, "min_samples_arm": 0, "n_reg": 7.0}
    tree = UpliftTree("cts", leaf="regularized", **settings, random_state=0)
    nodes = tree.fit(X, y, arm).nodes_
    inherited = 0
    leaf = tree.apply(X)
    below = {}
    for node in reversed(range(len(nodes.left))):
        left = nodes.left[node]
        below[node] = {node} if left < 0 else below[left] | below[left + 1]
    for parent in np.flatnonzero(nodes.left >= 0):
        for child in (nodes.left[parent], nodes.left[parent] + 1):
            rows = np.isin(leaf, list(below[child]))
            for t in range(3):
                mine = y[rows & (arm == t)]
                if len(mine) >= 25:
                    expected = (mine.sum() + nodes.value[parent, t] * 7.0) / (len(mine) + 7.0)
                else:
                    expected, inherited = nodes.value[parent, t], inherited + 1
                np.testing.assert_allclose(nodes.value[child, t], expected)
    np.testing.assert_allclose(nodes.value[0], [y[arm == t].mean() for t in range(3)])  # the root: the sample average
    assert inherited > 5
    assert len(nodes.left) > 15
    # Equations (3) and (4) score the splits whatever leaves predict: the same tree, with plain means in its nodes.
    plain = UpliftTree("cts", **settings, random_state=0).fit(X, y, arm).nodes_
    np.testing.assert_array_equal(plain.left, nodes.left)
    np.testing.assert_array_equal(plain.cut, nodes.cut)
    np.testing.assert_array_equal(plain.gain, nodes.gain)
    empty = 0
    for parent in np.flatnonzero(nodes.left >= 0):
        for child in (nodes.left[parent], nodes.left[parent] + 1):
            rows = np.isin(leaf, list(below[child]))
            for t in range(3):
                mine, empty = y[rows & (arm == t)], empty + (not (rows & (arm == t)).any())
                np.testing.assert_allclose(plain.value[child, t], mine.mean() if len(mine) else plain.value[parent, t])
    assert empty > 0


def grown(X, y, arm, seed=3, **parameters):
    """A UCTS tree with the rows that shaped and judged it, each with its path of nodes."""
    model = UCTSForest(1, random_state=seed, **parameters)
    soil = soil_of(X, y, arm)
    plan = Sampling(rho=model.rho)
    role, copies = soil.roles(plan, np.uint64(seed), 0)
    nodes = soil.grow_on(role, copies, model._rules(soil, False), np.uint64(seed), 0)
    leaf = nodes.apply(soil.bins, X)[:, 0]
    inside = np.zeros((len(nodes.left), len(X)), bool)
    inside[leaf, np.arange(len(X))] = True
    for node in np.flatnonzero(nodes.left >= 0)[::-1]:
        inside[node] = inside[nodes.left[node]] | inside[nodes.left[node] + 1]
    return nodes, role, inside


def test_regular_splits():
    """Section II-A: each split leaves at least a fraction alpha (min_share) of the shaping rows on either side."""
    X, y, arm = experiment()
    for share in (0.1, 0.3):
        nodes, role, inside = grown(X, y, arm, min_share=share, min_samples_split=10)
        count = (inside & (role == GROW)).sum(axis=1)
        split = np.flatnonzero(nodes.left >= 0)
        assert len(split) > 10
        for child in (nodes.left[split], nodes.left[split] + 1):
            assert (count[child] >= share * count[split] - 1e-9).all()


def test_termination_rule():
    """Section II-B: terminal if and only if every treatment has fewer than min_split shaping rows."""
    X, y, arm = experiment()
    nodes, role, inside = grown(X, y, arm, min_samples_split=40)
    counts = np.array([[(inside[i] & (role == GROW) & (arm == t)).sum() for t in range(3)] for i in range(len(inside))])
    np.testing.assert_array_equal(nodes.left < 0, (counts < 40).all(axis=1))
    scarce = (counts < 40).any(axis=1) & (nodes.left >= 0)
    assert scarce.any()  # one treatment below min_split is no reason to stop


def test_splits_even_without_a_gain():
    """Algorithm 1, step 2: the best split is performed whatever it gains."""
    X, _, arm = experiment(300)
    tree = UpliftTree("cts", min_samples_split=20, min_samples_leaf=1, min_samples_arm=0, max_depth=None)
    nodes = tree.fit(X, np.where(arm == 1, 3.0, 1.5), arm).nodes_
    assert len(nodes.left) > 5
    np.testing.assert_allclose(nodes.gain, 0.0, atol=1e-12)


def test_leaf_responses_come_from_the_estimation_set():
    """Section II-C: sample averages of S^E, inherited from the parent where an arm is empty."""
    X, y, arm = experiment(300)
    nodes, role, inside = grown(X, y, arm, min_samples_split=5)
    parent = {nodes.left[i] + side: i for i in np.flatnonzero(nodes.left >= 0) for side in (0, 1)}
    empty = 0
    for node in range(len(nodes.left)):
        for t in range(3):
            mine = y[inside[node] & (role == ESTIMATE) & (arm == t)]
            empty += len(mine) == 0
            expected = mine.mean() if len(mine) else nodes.value[parent[node], t]
            np.testing.assert_allclose(nodes.value[node, t], expected)
    assert empty > 0


@pytest.mark.parametrize("rho", [0.3, 0.5, 0.8])
def test_approximation_and_estimation_sets(rho):
    """Algorithm 1, step 1: round(rho n) rows, proportionally from each treatment; the rest estimates."""
    X, y, arm = experiment(997)
    soil = soil_of(X, y, arm)
    first, _ = soil.roles(Sampling(rho=rho), np.uint64(1), 0)
    second, _ = soil.roles(Sampling(rho=rho), np.uint64(1), 1)
    for role in (first, second):
        assert ((role == GROW) | (role == ESTIMATE)).all()
        for t in range(3):
            n = (arm == t).sum()
            assert (role[arm == t] == GROW).sum() == np.floor(rho * n + 0.5)
    assert 0.2 < (first == second).mean() < 0.8


@pytest.mark.parametrize(("pi", "max_features"), [(1.0, None), (0.0, 1)])
def test_random_split_trees(pi, max_features):
    """Definition 2: every feature is split on with probability at least pi / d, at any node."""
    X, y, arm = experiment(400, p=5)
    forest = UCTSForest(100, pi=pi, max_features=max_features, min_samples_split=40, random_state=0).fit(X, y, arm)
    used = forest.nodes_.feature[forest.nodes_.feature >= 0]
    share = np.bincount(used, minlength=5) / len(used)
    assert len(used) > 200
    assert (np.abs(share - 0.2) < 5 * np.sqrt(0.2 * 0.8 / len(used))).all()


@pytest.mark.parametrize(("pi", "mtry"), [(0.0, 4), (0.0, 2), (0.5, 8), (0.2, 4)])
def test_one_or_mtry_coordinates_are_drawn(pi, mtry):
    """Algorithm 1, step 2: one coordinate with probability pi, else mtry; of those drawn the best one is split on."""
    rng = np.random.default_rng(0)
    X, arm = rng.uniform(size=(500, 8)), rng.integers(0, 2, 500)
    # the first coordinate is the best wherever it is drawn
    y = 0.1 * rng.normal(size=500) + arm * np.sign(X[:, 0] - 0.5)
    forest = UCTSForest(800, pi=pi, max_features=mtry, max_depth=1, random_state=0).fit(X, y, arm)
    share = (forest.nodes_.feature[forest.nodes_.first[:-1]] == 0).mean()
    expected = pi / 8 + (1 - pi) * mtry / 8
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / 800)


def test_coordinates_are_drawn_until_one_can_be_split():
    """Algorithm 1, step 2: a split is made wherever there is an alpha-regular one, on whatever coordinate."""
    rng = np.random.default_rng(0)
    X, arm = np.ones((300, 8)), rng.integers(0, 2, 300)
    X[:, 5] = rng.uniform(size=300)
    X[:3, 2] = 0.0  # a cut, but too far out to be regular
    forest = UCTSForest(30, max_features=1, max_depth=1, min_samples_split=20, random_state=0)
    forest.fit(X, rng.normal(size=300), arm)
    assert (forest.nodes_.feature[forest.nodes_.first[:-1]] == 5).all()


def test_equal_gains_are_decided_by_a_draw():
    X, arm = np.arange(100.0)[:, None], np.arange(100) % 2
    trees = [UpliftTree("cts", max_depth=1, min_samples_arm=0, random_state=seed) for seed in range(60)]
    cuts = np.array([tree.fit(X, 2.0 + arm, arm).nodes_.cut[0] for tree in trees])  # every cut gains 0
    assert len(np.unique(cuts)) > 25
    assert abs(cuts.mean() - 50) < 5 * 29 / np.sqrt(60)


def test_mtry_features_compete():
    """With pi = 0 and all features drawn, the feature that matters is always at the root; with pi = 1 seldom."""
    X, y, arm = experiment(3000, p=5)
    roots = {}
    for pi in (0.0, 1.0):
        nodes = UCTSForest(20, pi=pi, max_features=None, random_state=0).fit(X, y, arm).nodes_
        roots[pi] = (nodes.feature[nodes.first[:-1]] == 0).mean()
    assert roots[0.0] == 1.0
    assert roots[1.0] < 0.6


def test_prediction_is_the_average_of_the_trees_and_the_rule_its_best_arm():
    """Algorithm 1, prediction."""
    X, y, arm = experiment()
    forest = UCTSForest(7, min_samples_split=30, random_state=0).fit(X, y, arm)
    nodes, leaf = forest.nodes_, forest.apply(X)
    expected = np.mean([nodes.value[nodes.first[b] + leaf[:, b]] for b in range(7)], axis=0)
    response = forest.predict_response(X)
    np.testing.assert_allclose(response, expected)
    np.testing.assert_allclose(forest.predict(X), expected[:, 1:] - expected[:, :1])
    np.testing.assert_array_equal(forest.recommend(X), expected.argmax(axis=1))


def test_ties_go_to_control_then_to_the_first_arm():
    X, arm = np.zeros((30, 1)), np.arange(30) % 3
    with pytest.warns(UserWarning, match="every feature has the same value"):
        same = CTSForest(3, random_state=0).fit(X, np.ones(30), arm)
    with pytest.warns(UserWarning, match="every feature has the same value"):
        harmful_control = CTSForest(3, random_state=0).fit(X, (arm > 0).astype(float), arm)
    assert same.recommend(X[:1]).tolist() == [0]
    assert harmful_control.recommend(X[:1]).tolist() == [1]


def test_presets_follow_the_papers():
    ucts, cts = UCTSForest(), CTSForest()
    assert (ucts.n_estimators, ucts.max_features, ucts.pi, ucts.n_reg, ucts.min_share, ucts.rho) == (
        400,
        0.5,
        0.05,
        0,
        0.1,
        0.5,
    )
    assert (cts.n_estimators, cts.max_features, cts.n_reg, cts.honest, cts.bootstrap) == (400, 0.5, 0, False, True)
    X, y, arm = experiment(500)
    settings = {"criterion": "cts", "normalize": False, "laplace": False, "min_samples_leaf": 1, "min_samples_arm": 0}
    plain = UpliftForest(
        5, honest=True, max_samples=1.0, pi=0.05, min_share=0.1, min_samples_split="auto", random_state=1, **settings
    )
    expected = plain.fit(X, y, arm).predict(X)
    np.testing.assert_array_equal(UCTSForest(5, random_state=1).fit(X, y, arm).predict(X), expected)


def test_real_valued_outcomes_are_not_binarised():
    """Any strictly positive outcome would be one class after binarising; effects must come out in its own units."""
    rng = np.random.default_rng(0)
    X, arm = rng.uniform(size=(4000, 2)), rng.integers(0, 2, 4000)
    effect = 10.0 * (X[:, 0] - 0.3)
    y = 100.0 + rng.normal(size=4000) + arm * effect
    forest = UCTSForest(50, random_state=0, min_samples_split=50).fit(X, y, arm)
    predicted = forest.predict(X)
    assert np.corrcoef(predicted, effect)[0, 1] > 0.98
    assert abs(np.polyfit(effect, predicted, 1)[0] - 1.0) < 0.1
    shifted = UCTSForest(50, random_state=0, min_samples_split=50).fit(X, 3.0 * y - 5.0, arm)
    np.testing.assert_allclose(shifted.predict(X), 3.0 * predicted, rtol=1e-6, atol=1e-6)
