"""The dissertation's own solvers, kept for comparison: they run a fixed number of passes and report the gap reached.

``dcd`` is dual coordinate descent for the L1 machine (Figure 4.2.1) with the box of each hyperplane, and the two
intercepts emulated by two constant columns that separate the multipliers of the hyperplanes (the printed figure
confuses both). ``asgd`` is averaged stochastic gradient descent for the Székely machine (Figure 5.3.1), with steps for
b1 and b2 as well (the printed figure never moves them).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from upturn.kernels.hashing import COORDINATES, QUADRUPLES, words
from upturn.kernels.stochastic import asgd_pass, dcd_pass
from upturn.svm import _band, _energy
from upturn.svm._energy import EnergyTerm
from upturn.svm._problem import MarginData, MarginProblem, MarginSolution, certified, relative_gap

CONSTANT = 10.0  # the emulated intercepts' column, as in the dissertation


def solve(
    name: str, data: MarginData, energy: EnergyTerm | None, passes: int, tol: float, seed: np.uint64
) -> MarginSolution:
    """Run a stochastic solver for ``passes`` passes over the rows."""
    if name == "dcd":
        return descend(data, passes, tol, seed)
    return average(data, energy, passes, seed)


def descend(data: MarginData, passes: int, tol: float, seed: np.uint64) -> MarginSolution:
    """Dual coordinate descent, each pass in another order; stops early when the true gap is below ``tol``."""
    n_planes, n = data.cost.shape
    problem = MarginProblem(tol=tol)
    alpha, w, b = np.zeros_like(data.cost), np.zeros(data.X.shape[1]), np.zeros(n_planes)
    norms = (data.X * data.X).sum(axis=1) + CONSTANT**2
    hashes = np.empty(n_planes * n, np.uint64)
    solution = certified(problem, data, w, b, alpha, 0, "dcd")
    for step in range(1, passes + 1):
        words(seed, COORDINATES, np.uint64(step), hashes)
        dcd_pass(np.argsort(hashes), data.X, data.z, data.cost, norms, CONSTANT, alpha, w, b)
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
    m, n = data.X.shape[1], data.z.shape[0]
    term = np.array([energy.exponent, energy.balance, treated.shape[0], control.shape[0]])
    hashes, point = np.empty(4 * n, np.uint64), np.zeros((3, m + 2))
    for number in range(passes):
        words(seed, QUADRUPLES, np.uint64(number), hashes)
        pairs = hashes.reshape(2, n, 2)
        draws = np.hstack(
            [group[drawn % np.uint64(len(group))] for group, drawn in zip((treated, control), pairs, strict=True)]
        )
        asgd_pass(number * n, draws, data.X, data.z, data.cost, term, point)
    mean_w, mean_b = point[1, :m].copy(), point[1, m:].copy()
    scores = data.X @ mean_w
    value, slope = _energy.energy(scores, energy.signed, energy.exponent)
    margin = certified(
        MarginProblem(), data, mean_w, mean_b, np.zeros_like(data.cost), passes * n, "asgd"
    )  # fmt: skip
    # The gap to a stationary point: how much the linearised problem could still gain.
    pull = energy.balance * (data.X.T @ slope)
    linear = MarginProblem(linear=pull, constant=energy.balance * value - float(pull @ mean_w))
    bound = _band.solve(linear, data).dual_bound
    total = margin.objective + energy.balance * value
    return replace(margin, objective=total, dual_bound=bound, gap=relative_gap(total, bound))
