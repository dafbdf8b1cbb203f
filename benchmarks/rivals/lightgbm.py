"""LightGBM alone: a model of each arm, subtracted."""

import numpy as np

REQUIRES = ("lightgbm==4.7.0", "scikit-learn")


def two_models(X, y, t, asked, seed=0, **parameters):
    from lightgbm import LGBMClassifier, LGBMRegressor

    binary = set(np.unique(y)) <= {0.0, 1.0}
    kind = LGBMClassifier if binary else LGBMRegressor
    response = []
    for arm in (0, 1):
        model = kind(random_state=int(seed), n_jobs=1, verbose=-1, **parameters).fit(X[t == arm], y[t == arm])
        response.append(model.predict_proba(asked)[:, 1] if binary else model.predict(asked))
    return response[1] - response[0]


JOBS = {"T-learner": two_models}
MODELS = {"lightgbm-t": two_models}


def _draw(rng):
    return {
        "n_estimators": int(rng.integers(20, 300)),
        "learning_rate": float(np.exp(rng.uniform(np.log(0.01), np.log(0.3)))),
        "num_leaves": int(rng.integers(4, 64)),
        "min_child_samples": int(rng.integers(5, 100)),
    }


DRAWS = dict.fromkeys(MODELS, _draw)
