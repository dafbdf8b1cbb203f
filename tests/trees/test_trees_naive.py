"""Trees against their naive twins: every criterion, one to four arms, weights, ties, missing values, categories."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import trees as naive
from upturn.trees import UpliftTree
from upturn.trees._base import TreeModel
from upturn.trees._bins import Bins
from upturn.trees._growth import Soil
from upturn.trees._samples import Sampling

CRITERIA = ("euclidean", "kl", "chi2", "cts")


@st.composite
def experiments(draw):
    """A small experiment full of ties: X with missing values and categories, y, arm, weight."""
    n_arms = draw(st.integers(1, 4))
    n = draw(st.integers(2 * (n_arms + 1), 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    categorical = [draw(st.booleans()) for _ in range(draw(st.integers(1, 3)))]
    X = rng.integers(0, draw(st.integers(1, 6)) + 1, (n, len(categorical))).astype(float)
    if draw(st.booleans()):
        X[rng.random(X.shape) < 0.2] = np.nan
    arm = np.r_[np.arange(n_arms + 1), rng.integers(0, n_arms + 1, n - n_arms - 1)].astype(np.uint8)
    binary = draw(st.booleans())
    y = rng.integers(0, 2, n).astype(float) if binary else np.round(rng.normal(size=n), 2)
    if binary:
        y[:2] = [0.0, 1.0]
    weight = draw(st.sampled_from(["none", "integers", "floats"]))
    if weight == "none":
        w = None
    else:
        w = rng.integers(1, 4, n).astype(float) if weight == "integers" else rng.uniform(0.1, 3.0, n)
    return X, categorical, y, arm, w, n_arms, binary


def grow(X, categorical, y, arm, w, n_arms, binary, **parameters):
    model = UpliftTree(**parameters)
    levels = [int(np.nanmax(X[:, j], initial=0)) + 1 if c else None for j, c in enumerate(categorical)]
    bins = Bins.learn(X, levels, w)
    soil = Soil.prepare(bins, bins.encode(X), arm, n_arms, y, w)
    nodes = soil.grow(TreeModel._rules(model, soil, binary), Sampling(), np.uint64(7), 0)
    return nodes, lambda X: nodes.apply(bins, X)[:, 0]


@given(
    experiments(),
    st.sampled_from(CRITERIA),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([0.0, 0.1, 0.3]),
    st.sampled_from([0, 1]),
    st.sampled_from([0.0, 2.0]),
    st.sampled_from(["mean", "regularized"]),
)
def test_root_and_second_level_equal_brute_force(
    experiment, criterion, normalize, laplace, min_split, min_share, min_arm, n_reg, leaf
):
    X, categorical, y, arm, w, _, binary = experiment
    if criterion in ("kl", "chi2") and not binary:
        criterion = "euclidean"
    same = {
        "normalize": normalize,
        "laplace": laplace,
        "min_share": min_share,
        "n_reg": n_reg,
        "max_depth": 2,
        "leaf": leaf,
    }
    nodes, leaf_of = grow(
        *experiment,
        criterion=criterion,
        min_samples_split=min_split,
        min_samples_leaf=2,
        min_samples_arm=min_arm,
        **same,
    )
    rules = naive.Rules(criterion, binary=binary, min_split=min_split, min_leaf=2, min_arm=min_arm, **same)
    naive.check_tree(nodes, leaf_of, X, categorical, y, arm, np.ones(len(y)) if w is None else w, rules)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_arms", [1, 2, 3, 4])
def test_deeper_trees_equal_brute_force(criterion, n_arms):
    rng = np.random.default_rng(n_arms)
    n = 150
    X = np.c_[rng.normal(size=n), rng.integers(0, 5, n), rng.integers(0, 6, n)].astype(float)
    X[rng.random(n) < 0.1, 0] = np.nan
    arm = rng.integers(0, n_arms + 1, n).astype(np.uint8)
    y = (rng.random(n) < 0.3 + 0.4 * (X[:, 2] > 2) * (arm > 0)).astype(float)
    categorical = [False, False, True]
    nodes, leaf_of = grow(
        X, categorical, y, arm, None, n_arms, True,
        criterion=criterion, max_depth=4, min_samples_split=5, min_samples_leaf=5, min_samples_arm=0,
    )  # fmt: skip
    rules = naive.Rules(criterion, binary=True, max_depth=4, min_split=5, min_leaf=5)
    assert naive.check_tree(nodes, leaf_of, X, categorical, y, arm, np.ones(n), rules) >= 4


@given(experiments(), st.sampled_from(["euclidean", "cts"]))
def test_integer_weights_equal_repeated_rows(experiment, criterion):
    X, categorical, y, arm, _, n_arms, binary = experiment
    w = np.random.default_rng(len(y)).integers(1, 4, len(y))
    parameters = {
        "criterion": criterion,
        "max_depth": 3,
        "min_samples_split": 4,
        "min_samples_leaf": 3,
        "min_samples_arm": 1,
    }
    weighted, leaf_of = grow(X, categorical, y, arm, w.astype(float), n_arms, binary, **parameters)
    repeated, leaf_of_repeated = grow(
        np.repeat(X, w, axis=0), categorical, np.repeat(y, w), np.repeat(arm, w), None, n_arms, binary, **parameters
    )
    pairs = same_nodes(weighted, repeated)
    assert len(pairs) == len(weighted.feature) == len(repeated.feature)
    assert [pairs[leaf] for leaf in leaf_of(X)] == leaf_of_repeated(X).tolist()


def same_nodes(one, other):
    """Assert that two trees are the same but for the order of their nodes; return which node of one is which of the other."""
    pairs, waiting = {}, [(0, 0)]
    while waiting:
        a, b = waiting.pop()
        pairs[a] = b
        for name in ("feature", "cut", "missing_left"):
            assert getattr(one, name)[a] == getattr(other, name)[b]
        np.testing.assert_allclose(one.value[a], other.value[b], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(one.weight[a], other.weight[b], rtol=1e-12)
        sets = [tree.sets[tree.category_set[at]] for tree, at in ((one, a), (other, b)) if tree.category_set[at] >= 0]
        assert len(sets) != 1
        if sets:
            np.testing.assert_array_equal(*sets)
        assert (one.left[a] < 0) == (other.left[b] < 0)
        if one.left[a] >= 0:
            waiting += [(one.left[a] + side, other.left[b] + side) for side in (0, 1)]
    return pairs
