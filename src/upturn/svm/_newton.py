"""Primal Newton with an exact line search, for the Lp machines (p > 1).

The objective is convex with a continuous gradient, and its Hessian is H plus a Gram matrix, as in the interior point.
With alpha = p cost h^(p-1) the gap to the dual (3.4.13) is ½ ‖∇_w‖² (in the norm of H⁻¹) plus what the intercepts'
gradients contribute, so it vanishes quadratically. For p < 2 the curvature of a row grows without bound as its slack
goes to 0; slacks are floored there, which only shortens the step such a row asks for.

Range: p from 1.02 to 10 is tested. Below 1.2 the solution for a larger p is a starting point (continuation).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from upturn.kernels import power
from upturn.svm._interior import _Factor, _products
from upturn.svm._problem import Array, MarginData, MarginProblem, MarginSolution, certified, one_sided


def solve(problem: MarginProblem, data: MarginData, start: tuple[Array, Array] | None = None) -> MarginSolution:
    """Solve an Lp problem, p > 1, to ``problem.tol``, certified; ``start`` is a (w, b) to begin from."""
    answer = one_sided(problem, data)
    if answer is not None:
        return answer
    spent = 0
    if start is None:
        start = (np.zeros(data.X.shape[1]), np.zeros(data.cost.shape[0]))
        for p in _stages(problem.power):
            w, b, _, used = run(replace(problem, power=p), data, start, 1e-3)
            start, spent = (w, b), spent + used
    tol = problem.tol
    while True:
        w, b, alpha, used = run(problem, data, start, 0.3 * tol)
        spent += used
        solution = certified(problem, data, w, b, alpha, spent, "newton")
        if solution.gap <= problem.tol or tol < 1e-3 * problem.tol:
            return solution
        tol, start = 0.1 * tol, (w, b)


def _stages(p: float) -> list[float]:
    """Larger powers to pass through on the way to a p near 1: p - 1 is halved each time."""
    stages: list[float] = []
    while p < 1.2:
        p = 1.0 + 2.0 * (p - 1.0)
        stages.append(p)
    return stages[::-1]


def run(
    problem: MarginProblem, data: MarginData, start: tuple[Array, Array], tol: float
) -> tuple[Array, Array, Array, int]:
    """Newton steps from ``start`` until the gap is below ``tol``; returns w, b, alpha and the number of steps."""
    X, z, cost, p = data.X, data.z, data.cost, problem.power
    n_planes, n = cost.shape
    m = X.shape[1]
    size = m + n_planes if problem.intercept else m
    e = np.zeros(n_planes) if problem.plane_linear is None else problem.plane_linear
    w, b = start[0].copy(), start[1].copy()
    t = X @ w
    alpha, rows, root = np.empty_like(cost), np.empty((n, n_planes + 1)), np.empty(n)
    sums, along = np.empty(1 + 2 * n_planes), np.empty(3)
    system, rhs = np.empty((size, size)), np.empty(size)
    iteration = 0
    for iteration in range(problem.max_iter):  # noqa: B007
        power.power_system(p, FLOOR, t, b, z, cost, alpha, rows, root, sums)
        gram, borders = _products(X, root, rows)
        pull = problem.gradient(w)
        slope_w, slope_b = pull - borders[:, n_planes], sums[2::2] + e
        value = problem.regulariser(w) + float(e @ b) + sums[0]
        excess = problem.conjugate(pull - slope_w) - problem.conjugate(pull) - float(w @ (-slope_w))
        if excess + float(np.abs(b) @ np.abs(slope_b)) <= tol * abs(value):
            break
        system[:m, :m] = gram
        if problem.quadratic is None:
            system[np.arange(m), np.arange(m)] += 1.0
        else:
            system[:m, :m] += problem.quadratic
        rhs[:m] = -slope_w
        if problem.intercept:
            system[:m, m:] = -borders[:, :n_planes]
            system[m:, :m] = system[:m, m:].T
            system[m:, m:] = np.diag(sums[1::2])
            rhs[m:] = -slope_b
        move = _Factor(system).solve(rhs)
        dw, db = move[:m], (move[m:] if problem.intercept else np.zeros(n_planes))
        dt = X @ dw
        linear = float(pull @ dw) + float(e @ db)
        bend = float(dw @ (problem.gradient(dw) - (0.0 if problem.linear is None else problem.linear)))
        step = _line_search(p, t, dt, b, db, z, cost, linear, bend, along)
        if step == 0.0:
            break
        w, b, t = w + step * dw, b + step * db, t + step * dt
    return w, b, alpha, iteration


FLOOR = 1e-12


def _line_search(
    p: float,
    t: Array,
    dt: Array,
    b: Array,
    db: Array,
    z: Array,
    cost: Array,
    linear: float,
    bend: float,
    out: Array,
) -> float:
    """The minimiser along a direction: Newton on the slope, kept inside a bracket."""
    low, high, step, first = 0.0, math.inf, 1.0, math.nan
    for _ in range(60):
        power.power_along(step, p, t, dt, b, db, z, cost, out)
        slope, curve = linear + step * bend + out[1], bend + out[2]
        if math.isnan(first):
            first = abs(slope)
        if slope < 0.0:
            low = step
        else:
            high = step
        trial = step - slope / curve if curve > 0.0 else math.inf
        if not low < trial < high:
            trial = 2.0 * step if math.isinf(high) else 0.5 * (low + high)
        if abs(trial - step) <= 1e-3 * step or step < 1e-12:
            return step if step >= 1e-12 else 0.0
        step = trial
    return step
