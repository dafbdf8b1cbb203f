"""Small samples: minima that adapt, and models that say when nothing could be split."""

import numpy as np
import pytest

from upturn.trees import CTSForest, UCTSForest, UpliftForest, UpliftTree
from upturn.trees._base import _rows_by_size


def experiment(n, seed=0):
    rng = np.random.default_rng(seed)
    X, treatment = rng.normal(size=(n, 5)), rng.integers(0, 2, n)
    effect = 3.0 * (X[:, 0] > 0)
    return X, rng.normal(size=n) + effect * treatment, treatment, effect


@pytest.mark.parametrize("model", [UpliftTree(), UpliftForest(50), CTSForest(50), UCTSForest(50)])
@pytest.mark.parametrize("n", [60, 100])
def test_an_effect_of_three_is_found_in_a_hundred_rows(model, n):
    new_X, *_, effect = experiment(2000, seed=99)
    agreement = []
    for seed in range(3):
        model.set_params(random_state=seed)
        agreement.append(np.corrcoef(model.fit(*experiment(n, seed)[:3]).predict(new_X), effect)[0, 1])
    assert np.mean(agreement) > 0.6


def test_minima_adapt_to_small_samples_only():
    assert _rows_by_size(2500.0) == 100.0
    assert _rows_by_size(36.0) == 12.0
    assert _rows_by_size(25.0) == 25.0 / 3
    for n in range(36, 5000, 7):
        assert _rows_by_size(float(n)) == max(10.0, 2 * np.sqrt(n))


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (UpliftTree(min_samples_arm=60), "a leaf needs 60 rows of every arm, and the smallest arm has"),
        (UpliftForest(5, min_samples_arm=20), "all 5 trees are a single leaf.* a leaf needs 20 rows of every arm"),
        (
            UpliftForest(5, min_samples_leaf=25, min_samples_arm=0),
            "min_samples_leaf=25 rows, and a tree is shaped by 30",
        ),
        (CTSForest(5, min_samples_split=100), "min_samples_split=100 rows, and the largest has"),
        (UCTSForest(5, min_samples_split=100), "min_samples_split=100 rows, and the largest has"),
        (UpliftTree(min_gain=1e6), "the tree is a single leaf.* no admissible split gains more than min_gain"),
    ],
)
def test_a_model_that_could_not_split_says_why(model, why):
    X, y, treatment, _ = experiment(100)
    with pytest.warns(UserWarning, match=why) as caught:
        model.fit(X, y, treatment)
    assert len(caught) == 1
    assert len(np.unique(model.predict(X))) == 1


def test_what_does_not_vary_is_named():
    X, y, treatment, _ = experiment(100)
    with pytest.warns(UserWarning, match="every feature has the same value in all rows"):
        UpliftForest(3).fit(np.ones((100, 2)), y, treatment)
    with pytest.warns(UserWarning, match="the outcome is the same in all rows"):
        UpliftTree().fit(X, np.full(100, 2.5), treatment)


def test_a_tree_that_is_asked_to_be_a_leaf_is_silent():
    X, y, treatment, _ = experiment(100)
    assert len(UpliftTree(max_depth=0).fit(X, y, treatment).nodes_.feature) == 1
