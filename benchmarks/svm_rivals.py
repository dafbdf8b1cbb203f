"""General solvers on the same margin problems, where they are installed beside upturn: each takes a ``MarginData`` and gives (objective, w)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rivals._drive import load

from upturn.svm._problem import MarginProblem, best_intercepts

_RIVALS = Path(__file__).resolve().parent / "rivals"


def by_clarabel(data, power=1.0, tol=1e-9):
    """The primal as a conic program."""
    return _solved(load(_RIVALS / "clarabel.py").machine, data, power, tol)


def by_cvxopt(data, tol=1e-8):
    """The dual of the L1 machine."""
    return _solved(load(_RIVALS / "cvxopt.py").machine, data, 1.0, tol)


def _solved(machine, data, power, tol):
    w = machine(data.X, data.z, data.cost, power, tol)[: data.X.shape[1]]
    return best_intercepts(MarginProblem(power=power), data, w, np.zeros(len(data.cost)))[2], w
