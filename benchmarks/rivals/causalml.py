"""causalml: uplift forests of 0-1 outcomes, meta-learners over LightGBM, areas under curves."""

import numpy as np

REQUIRES = ("causalml==0.18.0", "lightgbm==4.7.0")
TREES, DEPTH = 20, 8


def _gradient_boosting(seed, **parameters):
    from lightgbm import LGBMRegressor

    return LGBMRegressor(random_state=seed, n_jobs=1, verbose=-1, **parameters)


def uplift_forest(X, y, t, asked, seed, **parameters):
    from causalml.inference.tree import UpliftRandomForestClassifier

    if not set(np.unique(y)) <= {0.0, 1.0}:
        raise ValueError("takes outcomes of 0 and 1 only")
    model = UpliftRandomForestClassifier(control_name="control", random_state=int(seed), n_jobs=1, **parameters)
    model.fit(X, np.where(t == 1, "treated", "control"), y.astype(int))
    return model.predict(asked)


def t_learner(X, y, t, asked, seed=0, **parameters):
    from causalml.inference.meta import BaseTRegressor

    model = BaseTRegressor(_gradient_boosting(int(seed), **parameters))
    model.fit(X, t, y)
    return model.predict(asked)


def x_learner(X, y, t, asked, seed=0, **parameters):
    from causalml.inference.meta import BaseXRegressor

    model = BaseXRegressor(_gradient_boosting(int(seed), **parameters))
    model.fit(X, t, y)
    return model.predict(asked, p=np.full(len(asked), t.mean()))


def r_learner(X, y, t, asked, seed=0, **parameters):
    from causalml.inference.meta import BaseRRegressor

    model = BaseRRegressor(_gradient_boosting(int(seed), **parameters), random_state=int(seed))
    model.fit(X, t, y)
    return model.predict(asked)


def forest(X, y, t, asked):
    return uplift_forest(X, y, t, asked, 0, n_estimators=TREES, max_depth=DEPTH, evaluationFunction="ED")


def auuc(y, score, t):
    import pandas as pd
    from causalml.metrics import auuc_score

    return auuc_score(pd.DataFrame({"y": y, "w": t, "model": score}), outcome_col="y", treatment_col="w")["model"]


JOBS = {"forest": forest, "T-learner": t_learner, "X-learner": x_learner, "AUUC": auuc}
MODELS = {
    "causalml-uplift-forest": uplift_forest,
    "causalml-t": t_learner,
    "causalml-x": x_learner,
    "causalml-r": r_learner,
}


def _draw_boosting(rng):
    return {
        "n_estimators": int(rng.integers(20, 300)),
        "learning_rate": float(np.exp(rng.uniform(np.log(0.01), np.log(0.3)))),
        "num_leaves": int(rng.integers(4, 64)),
        "min_child_samples": int(rng.integers(5, 100)),
    }


def _draw_forest(rng):
    return {
        "n_estimators": int(rng.integers(10, 60)),
        "max_depth": int(rng.integers(2, 12)),
        "min_samples_leaf": int(rng.integers(20, 400)),
        "evaluationFunction": str(rng.choice(["KL", "ED", "Chi", "CTS"])),
    }


DRAWS = {name: _draw_forest if "forest" in name else _draw_boosting for name in MODELS}
