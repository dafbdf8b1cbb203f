"""The machines of Kuusisto et al., and how their costs are chosen."""

from __future__ import annotations

import numpy as np

from upturn.metrics import auuc
from upturn.model_selection import UpliftKFold
from upturn.svm import DifferentialSVM, StandardSVM, SubgroupSVM, TwoCostSVM

COSTS = 10.0 ** np.arange(1, -6, -1)  # the paper's seven
MACHINES = {
    "SVM-upl": lambda cost, n: DifferentialSVM(C=1000 * cost / n**2, tol=1e-5),
    "target-only": lambda cost, n: SubgroupSVM(C=cost, tol=1e-6),
    "standard": lambda cost, n: StandardSVM(C=cost, tol=1e-6),
    "flipped": lambda cost, n: StandardSVM(C=cost, flip_control=True, tol=1e-6),
}


def candidates(name, n, costs=COSTS):
    """The machines among which the inner folds choose; the two costs have the treatment group's above the other's."""
    if name == "two-cost":
        return [TwoCostSVM(C=a, C_control=b, tol=1e-6) for a in costs for b in costs if a > b]
    return [MACHINES[name](cost, n) for cost in costs]


def best(name, X, y, t, folds, seed, costs=COSTS):
    """The fitted machine whose costs rank best, by AUUC, in folds inside these rows."""
    splits = list(UpliftKFold(folds, random_state=seed).split(X, y, t))
    models = candidates(name, len(y), costs)
    areas = [
        np.mean([auuc(y[b], model.fit(X[a], y[a], t[a]).predict(X[b]), t[b]) for a, b in splits]) for model in models
    ]
    return models[int(np.argmax(areas))].fit(X, y, t)
