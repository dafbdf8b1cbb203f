"""upturn itself, at the jobs that others are compared at."""

import numpy as np

REQUIRES = ("upturn",)
TREES, DEPTH = 20, 8


def forest(X, y, t, asked):
    from upturn.trees import UpliftForest

    return UpliftForest(TREES, max_depth=DEPTH, random_state=0, n_jobs=1).fit(X, y, t).predict(asked)


def honest_forest(X, y, t, asked):
    from upturn.trees import UpliftForest

    model = UpliftForest(100, honest=True, center=True, random_state=0, n_jobs=1)
    return model.fit(X, y, t).predict(asked)


def t_learner(X, y, t, asked):
    from upturn.meta import TLearner

    return TLearner(random_state=0).fit(X, y, t).predict(asked)


def x_learner(X, y, t, asked):
    from upturn.meta import XLearner

    return XLearner(random_state=0).fit(X, y, t).predict(asked)


def auuc(y, score, t):
    from upturn.metrics import auuc

    return auuc(y, score, t)


def discretise(x, y, t):
    from upturn.features import UMODLDiscretizer

    return UMODLDiscretizer().fit(x[:, None], y, t).n_parts_[0]


def machine(X, z, cost, power=1.0, tol=1e-8):
    from upturn.svm._problem import MarginData, MarginProblem
    from upturn.svm._solve import solve

    found = solve(MarginProblem(power=float(power)), MarginData(X, z, cost))
    return np.append(found.coef, found.intercepts)


JOBS = {
    "forest": forest,
    "honest centred forest": honest_forest,
    "T-learner": t_learner,
    "X-learner": x_learner,
    "AUUC": auuc,
    "discretise a column": discretise,
    "machine": machine,
}
MODELS = {}
DRAWS = {}
