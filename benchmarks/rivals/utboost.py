"""UTBoost: bagged and boosted uplift trees in C++, for one arm."""

import numpy as np

REQUIRES = ("utboost==0.1.7", "scikit-learn", "pandas")
TREES, DEPTH = 20, 8


def _fit(X, y, t, asked, seed=0, **parameters):
    from utboost import UTBClassifier, UTBRegressor

    binary = set(np.unique(y)) <= {0.0, 1.0}
    model = (UTBClassifier if binary else UTBRegressor)(seed=int(seed), n_threads=1, **parameters)
    model.fit(X=X, ti=t.astype(np.int32), y=y.astype(np.int32) if binary else y)
    response = np.asarray(model.predict(asked))
    return response[:, -1] - response[:, 0] if response.ndim == 2 and response.shape[1] > 1 else np.ravel(response)


def forest(X, y, t, asked):
    drawn = {"subsample": 0.6, "subsample_freq": 1}  # rows of a tree, without which it refuses to bag
    shape = {"iterations": TREES, "max_depth": DEPTH, "num_leaves": 2**DEPTH}
    return _fit(X, y, t, asked, ensemble_type="bagging", criterion="kl", **shape, **drawn)


JOBS = {"forest": forest}
MODELS = {"utboost": _fit}


def _draw(rng):
    return {
        "iterations": int(rng.integers(10, 200)),
        "max_depth": int(rng.integers(2, 8)),
        "learning_rate": float(np.exp(rng.uniform(np.log(0.01), np.log(0.3)))),
        "min_data_leaf": int(rng.integers(10, 200)),
    }


DRAWS = dict.fromkeys(MODELS, _draw)
