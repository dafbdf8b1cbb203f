"""Run by an interpreter that has another library: fit one of its models and write the effects it predicts.

    python _rival.py NAME SEED ROWS.npz ANSWER.json

Nothing of upturn is imported here.
"""

import json
import sys
import time
import warnings

import numpy as np


def econml_causal_forest(X, y, t, asked, seed):
    from econml.dml import CausalForestDML

    model = CausalForestDML(discrete_treatment=True, discrete_outcome=_binary(y), random_state=seed, n_jobs=1)
    return model.fit(y, t, X=X).effect(asked)


def econml_forest_dr(X, y, t, asked, seed):
    from econml.dr import ForestDRLearner

    model = ForestDRLearner(discrete_outcome=_binary(y), random_state=seed, n_jobs=1)
    return model.fit(y, t, X=X).effect(asked)


def causalml_uplift_forest(X, y, t, asked, seed):
    from causalml.inference.tree import UpliftRandomForestClassifier

    if not _binary(y):
        raise ValueError("takes outcomes of 0 and 1 only")
    model = UpliftRandomForestClassifier(control_name="control", random_state=seed, n_jobs=1)
    model.fit(X, np.where(t == 1, "treated", "control"), y.astype(int))
    return model.predict(asked)


def causalml_t(X, y, t, asked, seed):
    import causalml.inference.meta as meta
    from lightgbm import LGBMRegressor

    model = meta.BaseTRegressor(LGBMRegressor(random_state=seed, n_jobs=1, verbose=-1))
    model.fit(X, t, y)
    return model.predict(asked)


def causalml_x(X, y, t, asked, seed):
    import causalml.inference.meta as meta
    from lightgbm import LGBMRegressor

    model = meta.BaseXRegressor(LGBMRegressor(random_state=seed, n_jobs=1, verbose=-1))
    model.fit(X, t, y)
    return model.predict(asked, p=np.full(len(asked), t.mean()))


def causalml_r(X, y, t, asked, seed):
    import causalml.inference.meta as meta
    from lightgbm import LGBMRegressor

    model = meta.BaseRRegressor(LGBMRegressor(random_state=seed, n_jobs=1, verbose=-1), random_state=seed)
    model.fit(X, t, y)
    return model.predict(asked)


def _binary(y):
    return set(np.unique(y)) <= {0.0, 1.0}


if __name__ == "__main__":
    name, seed, given, answer = sys.argv[1:]
    warnings.simplefilter("ignore")
    rows = np.load(given)
    start = time.process_time()
    score = globals()[name.replace("-", "_")](rows["X"], rows["y"], rows["t"], rows["asked"], int(seed))
    seconds = time.process_time() - start
    with open(answer, "w") as file:
        json.dump(
            {"score": np.asarray(score, float).reshape(len(rows["asked"]), -1)[:, 0].tolist(), "seconds": seconds}, file
        )
