"""The six methods of Table 6.4.1, tuned as section 6.4 says, and its random splits.

C of the classical machines is one of 10^-2, …, 10^5, chosen by the mean AUUC of 5 folds; the uplift machine has its own grid
(``UpliftSVMCV``'s default). Columns are standardised and levels are 0-1 columns: the text says nothing of either. Every fold learns its own encoding.
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from experiments._data import load
from upturn._encode import LinearEncoder
from upturn._table import conform_table, read_table
from upturn.metrics import auuc
from upturn.model_selection import RepeatedUpliftSplit, UpliftKFold
from upturn.svm import DifferentialSVM, SubgroupSVM, UpliftSVMCV
from upturn.trees import UpliftTree

METHODS = ("Uplift SVM", "Double SVM", "Class-transf SVM", "Diff-pred SVM", "Treatment SVM", "Uplift Tree")
COSTS = 10.0 ** np.arange(-2, 6)
LARGE = ("Hillstrom-visit", "Hillstrom-visit-w")
MANY_ROWS = {"Cs": [0.01, 1.0], "ratios": [1.0, 1.5, 2.0]}  # for the 64,000 rows of the mailings


def split(data, k: int, stratify: str = "arm-outcome"):
    """Rows to learn from and rows to judge by, of the k-th random 80/20 split."""
    splits = RepeatedUpliftSplit(k + 1, test_size=0.2, stratify=stratify, random_state=0)
    return next(islice(splits.split(data.X, data.y, data.treatment), k, None))


def area(name: str, method: str, k: int, p: float = 1.0, few: bool = False, pruned: bool = True) -> float:
    """AUUC of a tuned method on the k-th split of a set of Table 6.4.1. ``few``: a small grid."""
    data = load(name)
    train, test = split(data, k)
    score = tuned(method, data, train, test, k, p, few, pruned)
    return auuc(data.y[test], score, data.treatment[test])


def tuned(method: str, data, train, test, seed: int, p: float = 1.0, few: bool = False, pruned: bool = True):
    """Scores of the test rows."""
    part = data.X.iloc[train], data.y[train], data.treatment[train]
    if method in ("Uplift SVM", "Class-transf SVM"):
        grid = dict(MANY_ROWS) if few else {}
        if method == "Class-transf SVM":  # the uplift machine with one hyperplane and half the cost
            grid = {"Cs": 0.5 * (COSTS[[0, 2, 4]] if few else COSTS), "ratios": [1.0]}
        return UpliftSVMCV(**grid, p=p, random_state=seed).fit(*part).predict(data.X.iloc[test])
    if method == "Uplift Tree":
        grown = {"prune": True} if pruned else {"min_samples_split": 2, "min_samples_leaf": 1, "min_samples_arm": 1}
        return UpliftTree(**grown, random_state=seed).fit(*part).predict(data.X.iloc[test])
    scores, (y, t) = _CLASSICAL[method], part[1:]
    costs = COSTS[[0, 2, 4]] if few else COSTS
    areas = np.zeros(len(costs))
    for learn, judge in UpliftKFold(5, random_state=seed).split(*part):
        rows = encoded(data.X, train[learn], train[judge])
        for i, cost in enumerate(costs):
            areas[i] += auuc(y[judge], scores(cost, *rows, y[learn], t[learn]), t[judge])
    return scores(costs[areas.argmax()], *encoded(data.X, train, test), y, t)


def encoded(X, train, test):
    """Matrices of the two parts, coded and scaled by what is seen in the first."""
    matrix, schema = read_table(X.iloc[train])
    encoder = LinearEncoder.fit(matrix, schema)
    return encoder.transform(matrix), encoder.transform(conform_table(X.iloc[test], schema, "SVM"))


def subgroup(cost, X, new, y, t):
    """A machine that sees the treatment group only."""
    if len(np.unique(y[t == 1])) < 2:
        return np.zeros(len(new)), np.zeros(len(X))
    model = SubgroupSVM(C=cost, standardize=False, tol=1e-5).fit(X, y, t)
    return model.predict(new), model.predict(X)


def treatment_svm(cost, X, new, y, t):
    return subgroup(cost, X, new, y, t)[0]


def double_svm(cost, X, new, y, t):
    """Two machines, calibrated by a logistic regression on their scores; the difference of the two probabilities."""
    chances = []
    for mine in (t, 1 - t):
        there, here = subgroup(cost, X, new, y, mine)
        rows = mine == 1
        if len(np.unique(y[rows])) < 2:
            chances.append(np.full(len(new), y[rows].mean()))
            continue
        slope, level = calibrated(here[rows], y[rows])
        chances.append(1.0 / (1.0 + np.exp(-np.clip(slope * there + level, -500, 500))))
    return chances[0] - chances[1]


def calibrated(score, y):
    """Slope and level of a logistic regression of y on a score, with hardly any penalty, by Newton's method."""
    centre, scale = score.mean(), score.std() or 1.0
    X, b = np.column_stack([(score - centre) / scale, np.ones(len(y))]), np.zeros(2)

    def loss(b):
        at = X @ b
        return np.logaddexp(0.0, at).sum() - at @ y + 5e-7 * b @ b

    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-np.clip(X @ b, -500, 500)))
        gradient = X.T @ (p - y) + 1e-6 * b
        step = np.linalg.solve(X.T @ (X * (p * (1.0 - p))[:, None]) + 1e-6 * np.eye(2), gradient)
        length = 1.0
        while loss(b - length * step) > loss(b) and length > 1e-6:
            length /= 2
        b = b - length * step
        if np.abs(gradient).max() < 1e-8:
            break
    return b[0] / scale, b[1] - b[0] * centre / scale


def differential_svm(cost, X, new, y, t):
    """SVM-upl; C is shared by all pairs, as in its authors' program."""
    pairs = sum(y[t == arm].sum() * (1 - y[t == arm]).sum() for arm in (0, 1))
    return DifferentialSVM(C=cost / max(pairs, 1), standardize=False, tol=1e-3).fit(X, y, t).predict(new)


_CLASSICAL = {"Double SVM": double_svm, "Diff-pred SVM": differential_svm, "Treatment SVM": treatment_svm}
