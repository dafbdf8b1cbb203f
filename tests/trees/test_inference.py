"""One switch for intervals."""

import numpy as np
import pytest

import upturn
from upturn.trees import UpliftForest


def experiment(n, seed):
    rng = np.random.default_rng(seed)
    X, treatment = rng.normal(size=(n, 4)), rng.integers(0, 2, n)
    effect = np.tanh(X[:, 0])
    return X, X[:, 1] + effect * treatment + rng.normal(size=n), treatment, effect


def test_inference_chooses_what_intervals_need(tmp_path):
    X, y, treatment, _ = experiment(400, 0)
    forest = UpliftForest(101, inference=True, min_samples_arm=80, random_state=3).fit(X, y, treatment)
    by_hand = UpliftForest(
        500, honest=True, max_samples=1.0, ci_group_size=2, min_samples_arm=2, center=True, random_state=3
    ).fit(X, y, treatment)
    assert forest.centered_
    assert forest.n_estimators == 101  # parameters stay as they were given
    for one, two in zip(forest.predict_interval(X), by_hand.predict_interval(X), strict=True):
        np.testing.assert_array_equal(one, two)
    forest.save(tmp_path / "forest.upturn")
    np.testing.assert_array_equal(
        upturn.load(tmp_path / "forest.upturn").predict_interval(X)[0], forest.predict_interval(X)[0]
    )


@pytest.mark.parametrize(("options", "centred"), [({"criterion": "kl"}, False), ({"center": False}, False), ({}, True)])
def test_inference_centres_where_it_may(options, centred):
    X, y, treatment, _ = experiment(200, 1)
    forest = UpliftForest(inference=True, oob=True, random_state=0, **options).fit(X, (y > 0).astype(float), treatment)
    assert forest.centered_ is centred
    assert np.isfinite(forest.oob_prediction_).all()


def test_intervals_cover():
    new_X, *_, effect = experiment(500, 99)
    covered = []
    for seed in range(3):
        low, high = (
            UpliftForest(inference=True, random_state=seed).fit(*experiment(1000, seed)[:3]).predict_interval(new_X)
        )
        covered.append(((low <= effect) & (effect <= high)).mean())
    assert 0.82 < np.mean(covered) < 0.98
