"""econml: causal forests and doubly robust forests, honest and centred."""

import numpy as np

REQUIRES = ("econml==0.17.0", "lightgbm==4.7.0")


def _binary(y):
    return set(np.unique(y)) <= {0.0, 1.0}


def causal_forest(X, y, t, asked, seed=0, **parameters):
    from econml.dml import CausalForestDML

    model = CausalForestDML(
        discrete_treatment=True, discrete_outcome=_binary(y), random_state=int(seed), n_jobs=1, **parameters
    )
    return model.fit(y, t, X=X).effect(asked)


def forest_dr(X, y, t, asked, seed=0, **parameters):
    from econml.dr import ForestDRLearner

    model = ForestDRLearner(discrete_outcome=_binary(y), random_state=int(seed), n_jobs=1, **parameters)
    return model.fit(y, t, X=X).effect(asked)


def honest_forest(X, y, t, asked):
    return causal_forest(X, y, t, asked, n_estimators=100)


def x_learner(X, y, t, asked):
    from econml.metalearners import XLearner
    from lightgbm import LGBMRegressor
    from sklearn.linear_model import LogisticRegression

    model = XLearner(models=LGBMRegressor(n_jobs=1, verbose=-1), propensity_model=LogisticRegression())
    return model.fit(y, t, X=X).effect(asked)


JOBS = {"honest centred forest": honest_forest, "X-learner": x_learner}
MODELS = {"econml-causal-forest": causal_forest, "econml-forest-dr": forest_dr}


def _draw(rng):
    return {
        "n_estimators": 4 * int(rng.integers(10, 100)),
        "max_depth": int(rng.integers(2, 20)),
        "min_samples_leaf": int(rng.integers(2, 100)),
        "max_features": float(rng.uniform(0.2, 1.0)),
    }


DRAWS = dict.fromkeys(MODELS, _draw)
