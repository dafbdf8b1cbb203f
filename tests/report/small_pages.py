"""Small experiments to make pages of."""

from __future__ import annotations

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator

from upturn.trees import UpliftForest

HOSTILE = "<script>alert('x')</script>"
OPTIONS = {"cv": 2, "n_bootstrap": 60, "n_jobs": 1}


def small_forest():
    return UpliftForest(25, max_depth=4, random_state=0, n_jobs=1)


class Average(BaseEstimator):
    """One effect for everybody: the difference of two means."""

    def fit(self, X, y, treatment, sample_weight=None):
        self.arms_, self.control_ = ["mail"], "control"
        self.effect_ = y[treatment == "mail"].mean() - y[treatment == "control"].mean()
        return self

    def predict(self, X):
        return np.full(len(X), self.effect_)


def make_experiment(n, arms=1, slope=0.5, seed=0):
    """The effect rises with age, falls with spending, and is nothing on average but for a little."""
    rng = np.random.default_rng(seed)
    age, spend = rng.uniform(18, 80, n), rng.gamma(2, 30, n)
    arm = rng.integers(0, arms + 1, n)
    lift = slope * ((age - 45) / 45 - (spend - 60) / 110)
    y = rng.random(n) < np.clip(0.35 + lift * (arm > 0) * (1 + 0.3 * (arm == 2)), 0, 1)
    X = pl.DataFrame(
        {
            "age": age,
            "spend_before": [None if r < 0.1 else s for r, s in zip(rng.random(n), spend, strict=True)],
            HOSTILE: rng.choice(["<b>north</b>", "south & west", 'east "end"'], n).tolist(),
        }
    )
    return X, y.astype(float), np.array(["control", "mail", "call"])[arm]
