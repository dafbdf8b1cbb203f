"""The stages of the grower under a driver of levels, with histograms merged from partitions."""

from itertools import pairwise

import numpy as np
import pytest

from kernels.test_growing import rules
from naive.levels import Partition, grow_by_levels
from upturn.kernels import growing
from upturn.kernels.criteria import CRITERIA
from upturn.kernels.histogram import Rows
from upturn.trees._outcome import encode_outcome


@pytest.fixture(autouse=True)
def _wrapping_integers():
    with np.errstate(all="ignore"):
        yield


N, P = 400, 5
SMALL = {"max_depth": 4, "max_features": P}
DIVERGENCE = {**SMALL, "normalize": True, "laplace": 1.0, "min_gain": 0.0, "inherit_below": 1e-300, "min_arm": 5.0}
CASES = {
    "binary": {"rules": {**DIVERGENCE, "criterion": CRITERIA["euclidean"].code}},
    "real": {
        "rules": {**DIVERGENCE, "criterion": CRITERIA["euclidean"].code, "binary": False, "laplace": 0.0},
        "real": True,
    },
    "weighted cts": {
        "rules": {**SMALL, "binary": False, "min_split": 30.0, "inherit_below": 30.0, "n_reg": 7.0, "max_features": 2},
        "real": True,
        "weighted": True,
        "n_arms": 3,
    },
    "means of cts": {
        "rules": {**SMALL, "min_split": 30.0, "inherit_below": 30.0, "n_reg": 7.0, "plain_leaves": True},
        "n_arms": 3,
    },
    "kl": {"rules": {**DIVERGENCE, "criterion": CRITERIA["kl"].code, "max_features": 3}, "n_arms": 3},
    "missing": {"rules": {**DIVERGENCE, "criterion": CRITERIA["chi2"].code}, "missing": True},
    "categories": {
        "rules": {**SMALL, "min_split": 20.0, "inherit_below": 20.0, "random_share": 0.3},
        "categorical": [0, 1, 0, 1, 1],
        "missing": True,
        "n_arms": 3,
    },
    "features that cannot be cut": {  # drawn one by one until one can
        "rules": {**SMALL, "min_split": 20.0, "inherit_below": 20.0, "max_features": 1},
        "level": 3,
    },
    "honest": {
        "rules": {**SMALL, "honest": True, "min_share": 0.1, "min_split": 20.0, "inherit_below": 20.0},
        "real": True,
    },
}


def experiment(real=False, weighted=False, n_arms=2, missing=False, categorical=None, level=0, **_):
    rng = np.random.default_rng(11)
    codes = rng.integers(0 if missing else 1, 12, (P, N)).astype(np.uint8)
    codes[P - level :] = 7
    arm = rng.integers(0, n_arms, N).astype(np.uint8)
    lean = 0.3 + 0.04 * codes[1] * (arm == 1) * (codes[0] > 5) - 0.03 * codes[3] * (arm == n_arms - 1)
    y = lean + rng.normal(size=N) if real else (rng.random(N) < lean).astype(float)
    weight = rng.uniform(0.3, 3.0, N) if weighted else None
    return codes, arm, y, weight, np.array(categorical if categorical is not None else [0] * P, np.uint8)


def bounds(parts):
    """Uneven ranges of the rows, one of them empty if there are several."""
    if parts == 1:
        return [(0, N)]
    cuts = np.sort(np.random.default_rng(parts).choice(np.arange(1, N), parts - 2, replace=False))
    cuts = [0, *cuts.tolist(), N]
    cuts.insert(2, cuts[1])
    return list(pairwise(cuts))


def compare(leaf, me, links, numbers, sets):
    """Check a node and all below it against the grower's table; return how many there are."""
    expected = np.r_[leaf.gain, leaf.value, leaf.weight, leaf.own]
    np.testing.assert_array_equal(numbers[me], expected)
    feature, cut, left, category_set, missing_left = links[me].tolist()
    assert (feature, cut, missing_left) == leaf.split
    if category_set >= 0:
        bits = sets[category_set].view(np.uint64)
        assert [c for c in range(256) if int(bits[c // 64]) >> (c % 64) & 1] == leaf.levels
    else:
        assert leaf.levels == []
    assert (left >= 0) == bool(leaf.children)
    return 1 + sum(compare(child[0], left + side, links, numbers, sets) for side, child in enumerate(leaf.children))


@pytest.mark.parametrize("parts", [1, 3, 7])
@pytest.mark.parametrize("case", list(CASES))
def test_a_tree_grown_by_levels_from_merged_histograms_is_the_same(case, parts):
    setting = CASES[case]
    codes, arm, y, weight, categorical = experiment(**setting)
    rule = rules(**setting["rules"])
    words, layout = encode_outcome(y, weight)
    words = words.reshape(N, -1)
    n_arms = int(arm.max()) + 1
    mean = np.array(
        [np.average(y[arm == a], weights=None if weight is None else weight[arm == a]) for a in range(n_arms)]
    )
    key, n_codes = np.uint64(2**63 + 5), np.full(P, 12, np.int32)
    held_out = np.arange(N) % 3 == 0 if rule.honest else np.zeros(N, bool)

    def rows(mask, first=0, last=N):
        at = first + np.flatnonzero(mask[first:last])
        return Rows((at - first).astype(np.uint32), words[at].reshape(-1).copy(), arm[at].copy())

    for fast in (rule, rule._replace(subtraction=rule.max_features == P and rule.random_share == 0.0)):
        table = growing.Binned(codes.reshape(-1), N, n_codes, categorical, 100, 100)
        n, links, numbers, n_sets, sets = growing.grow(
            key, 0, np.r_[mean, mean], rows(~held_out), rows(held_out), table, fast, layout
        )
        spans = bounds(parts)
        assert len(spans) == parts
        partitions = [Partition(codes[:, a:b], rows(~held_out, a, b), rows(held_out, a, b), layout) for a, b in spans]
        root = grow_by_levels(key, mean, partitions, n_codes, categorical, rule, layout)
        assert compare(root, 0, links[:n], numbers[:n], sets[:n_sets]) == n > 9
        assert (n_sets > 2) == bool(categorical.any())
