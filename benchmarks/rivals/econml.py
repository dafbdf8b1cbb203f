"""econml: causal forests and doubly robust forests, honest and centred."""

import numpy as np

REQUIRES = ("econml==0.17.0", "lightgbm==4.7.0")


def _binary(y):
    return set(np.unique(y)) <= {0.0, 1.0}


_last = {}  # forests that were fitted last, by what they were fitted to


def _forest(kind, y, seed, parameters):
    from econml.dml import CausalForestDML
    from econml.dr import ForestDRLearner

    shared = {"discrete_outcome": _binary(y), "random_state": seed, "n_jobs": 1, **parameters}
    return CausalForestDML(discrete_treatment=True, **shared) if kind == "causal" else ForestDRLearner(**shared)


def _effect(kind, X, y, t, asked, seed, parameters):
    """Effects of a forest. Draws of its parameters share the models of outcome and treatment of the same rows, as in econml's own ``tune``."""
    key = (kind, seed, X.tobytes(), y.tobytes(), t.tobytes())
    if parameters and key in _last:
        model = _last[key]
        for name, value in parameters.items():
            setattr(model, name, value)
        return model.refit_final().effect(asked)
    model = _forest(kind, y, seed, parameters).fit(y, t, X=X, cache_values=True)
    if parameters:
        while len(_last) > 2:  # two folds and all rows
            _last.pop(next(iter(_last)))
        _last[key] = model
    return model.effect(asked)


def causal_forest(X, y, t, asked, seed=0, **parameters):
    return _effect("causal", X, y, t, asked, int(seed), parameters)


def forest_dr(X, y, t, asked, seed=0, **parameters):
    return _effect("doubly robust", X, y, t, asked, int(seed), parameters)


def honest_forest(X, y, t, asked):
    return _forest("causal", y, 0, {"n_estimators": 100}).fit(y, t, X=X).effect(asked)  # all of it, in every repeat


def interval(X, y, t, asked, seed, level):
    """Low and high ends of intervals of effects, by a forest of as many trees as upturn's, with forests inside."""
    from econml.dml import CausalForestDML
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    inside = {"n_estimators": 100, "min_samples_leaf": 10, "random_state": int(seed)}
    model = CausalForestDML(
        model_y=RandomForestRegressor(**inside), model_t=RandomForestClassifier(**inside), discrete_treatment=True, n_estimators=500,
        random_state=int(seed), n_jobs=1,
    )  # fmt: skip
    model.fit(y, t, X=X)
    return [end.ravel() for end in model.effect_interval(asked, alpha=1.0 - float(level))]


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
INTERVALS = {"causal forest": interval}
