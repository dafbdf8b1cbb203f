"""The dissertation's own solvers, kept for comparison: they run a fixed number of passes and report the gap reached.

``dcd`` is dual coordinate descent for the L1 machine (Figure 4.2.1) with the box of each hyperplane, and the two
intercepts emulated by two constant columns that separate the multipliers of the hyperplanes (the printed figure
confuses both). ``asgd`` is averaged stochastic gradient descent for the Székely machine (Figure 5.3.1), with steps for
b1 and b2 as well (the printed figure never moves them).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from upturn._arrays import Floats
from upturn._seeds import make_seed
from upturn.kernels.stochastic import asgd_pass, dcd_pass
from upturn.svm import _band, _energy
from upturn.svm._energy import EnergyTerm
from upturn.svm._problem import MarginData, MarginProblem, MarginSolution, certified, relative_gap

CONSTANT = 10.0  # the emulated intercepts' column, as in the dissertation


def solve(
    name: str,
    X: Floats,
    z: Floats,
    cost: Floats,
    energy: EnergyTerm | None,
    passes: int,
    tol: float,
    random_state: Any,
) -> MarginSolution:
    """Run a stochastic solver for ``passes`` passes over the rows."""
    data, seed = MarginData(X, z, cost), make_seed(random_state)
    if name == "dcd":
        return descend(data, passes, tol, seed)
    return average(data, energy, passes, seed)


def descend(data: MarginData, passes: int, tol: float, seed: np.uint64) -> MarginSolution:
    """Dual coordinate descent; stops early when the true gap is below ``tol``."""
    n_planes, n = data.cost.shape
    problem = MarginProblem(tol=tol)
    alpha, w, b = np.zeros_like(data.cost), np.zeros(data.X.shape[1]), np.zeros(n_planes)
    norms = (data.X * data.X).sum(axis=1) + CONSTANT**2
    rng = np.random.default_rng(int(seed))
    solution = certified(problem, data, w, b, alpha, 0, "dcd")
    for step in range(1, passes + 1):
        order = rng.permutation(n_planes * n)
        dcd_pass(order, data.X, data.z, data.cost, norms, CONSTANT, alpha, w, b)
        if step % 10 == 0 or step == passes:
            solution = certified(problem, data, w.copy(), b.copy(), alpha.copy(), step, "dcd")
            if solution.gap <= tol:
                break
    return solution


def average(data: MarginData, energy: EnergyTerm | None, passes: int, seed: np.uint64) -> MarginSolution:
    """Averaged stochastic gradient descent; one pass draws as many quadruples as there are rows."""
    if energy is None:
        energy = EnergyTerm(_energy.signed_weights(np.arange(data.z.shape[0]) % 2 == 0), 1.1, 0.0)
    treated, control = np.flatnonzero(energy.signed > 0.0), np.flatnonzero(energy.signed < 0.0)
    if treated.shape[0] == 0 or control.shape[0] == 0:
        raise ValueError("asgd draws rows from both groups, and one of them is empty")
    rng = np.random.default_rng(int(seed))
    m, n = data.X.shape[1], data.z.shape[0]
    w, b, mean_w, mean_b = np.zeros(m), np.zeros(2), np.zeros(m), np.zeros(2)
    done = 0
    for _ in range(passes):
        draws = np.stack([rng.choice(group, n) for group in (treated, treated, control, control)], axis=1)
        done = asgd_pass(
            done, draws, data.X, data.z, data.cost, treated.shape[0], control.shape[0], energy.alpha, energy.balance,
            w, b, mean_w, mean_b,
        )  # fmt: skip
    problem = MarginProblem()
    scores = data.X @ mean_w
    value, slope = _energy.energy(scores, energy.signed, energy.alpha)
    margin = certified(problem, data, mean_w, mean_b, np.zeros_like(data.cost), done, "asgd")
    # The gap to a stationary point: how much the linearised problem could still gain.
    pull = energy.balance * (data.X.T @ slope)
    linear = MarginProblem(linear=pull, constant=energy.balance * value - float(pull @ mean_w))
    bound = _band.solve(linear, data).dual_bound
    total = margin.objective + energy.balance * value
    return replace(margin, objective=total, dual_bound=bound, gap=relative_gap(total, bound))
