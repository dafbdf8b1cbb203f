"""Yggdrasil decision forests: a forest of uplift trees for outcomes of 0 and 1."""

import numpy as np

REQUIRES = ("ydf==0.16.1", "pandas")
TREES, DEPTH = 20, 8


def uplift_forest(X, y, t, asked, seed=0, **parameters):
    import pandas as pd
    import ydf

    if not set(np.unique(y)) <= {0.0, 1.0}:
        raise ValueError("is compared at outcomes of 0 and 1 only")
    names = [f"x{j}" for j in range(X.shape[1])]
    table = pd.DataFrame(X, columns=names).assign(y=y.astype(int).astype(str), t=t.astype(int).astype(str))
    learner = ydf.RandomForestLearner(
        label="y",
        task=ydf.Task.CATEGORICAL_UPLIFT,
        uplift_treatment="t",
        random_seed=int(seed) + 1,
        num_threads=1,
        **parameters,
    )
    effect = learner.train(table, verbose=0).predict(pd.DataFrame(asked, columns=names))
    return (
        -effect if 2 * np.count_nonzero(t) > len(t) else effect
    )  # the arm with more rows is its control, whatever its name


def forest(X, y, t, asked):
    return uplift_forest(X, y, t, asked, num_trees=TREES, max_depth=DEPTH + 1)


JOBS = {"forest": forest}
MODELS = {"ydf-uplift-forest": uplift_forest}


def _draw(rng):
    return {
        "num_trees": int(rng.integers(20, 300)),
        "max_depth": int(rng.integers(3, 16)),
        "min_examples": int(rng.integers(5, 200)),
        "num_candidate_attributes_ratio": float(rng.uniform(0.2, 1.0)),
    }


DRAWS = dict.fromkeys(MODELS, _draw)
