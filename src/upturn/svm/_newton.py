"""The Lp machines, p > 1: primal Newton with an exact line search, or a primal-dual interior point for p near 1.

The objective is convex with a continuous gradient, and its Hessian is H plus a Gram matrix, as in the L1 interior
point. With alpha = p cost h^(p-1) the gap to the dual (3.4.13) is ½ ‖∇_w‖² (in the norm of H⁻¹) plus what the
intercepts' gradients contribute, so Newton's gap vanishes quadratically; it needs 3 to 15 steps.

As p falls to 1, alpha becomes a step function of the slack and no slack can be computed accurately enough to tell
alpha. The interior point has alpha as its unknown and the slack as a function of it. It takes over below p = 1.2 and
wherever Newton stops short (separable data with a large C). Range: p from 1.05 to 10 is tested.
"""

from __future__ import annotations

import math

import numpy as np

from upturn._arrays import Floats
from upturn.kernels import power
from upturn.svm._interior import NewtonSystem, weighted_products
from upturn.svm._problem import MarginData, MarginProblem, MarginSolution, certified, one_sided

NEAR_ONE = 1.2  # below, Newton's line search gets stuck among rows on their margins
FLOOR = 1e-12  # slacks below it do not add curvature


def solve(problem: MarginProblem, data: MarginData, start: tuple[Floats, Floats] | None = None) -> MarginSolution:
    """Solve an Lp problem, p > 1, to ``problem.tol``, certified; ``start`` is a (w, b) to begin from."""
    answer = one_sided(problem, data)
    if answer is not None:
        return answer
    spent, tol = 0, problem.tol
    if problem.power < NEAR_ONE:
        return primal_dual(problem, data)
    if start is None:
        start = (np.zeros(data.X.shape[1]), np.zeros(data.cost.shape[0]))
    for _ in range(2):
        w, b, alpha, used = run(problem, data, start, 0.3 * tol)
        spent += used
        solution = certified(problem, data, w, b, alpha, spent, "newton")
        if solution.gap <= problem.tol:
            return solution
        tol, start = 0.1 * tol, (w, b)
    return primal_dual(problem, data, spent)


def run(
    problem: MarginProblem, data: MarginData, start: tuple[Floats, Floats], tol: float
) -> tuple[Floats, Floats, Floats, int]:
    """Newton steps from ``start`` until the gap is below ``tol``; returns w, b, alpha and the number of steps."""
    X, z, cost, p = data.X, data.z, data.cost, problem.power
    n_planes, n = cost.shape
    e = np.zeros(n_planes) if problem.plane_linear is None else problem.plane_linear
    w, b = start[0].copy(), start[1].copy()
    t = X @ w
    alpha, rows, root = np.empty_like(cost), np.empty((n, n_planes + 1)), np.empty(n)
    sums, along = np.empty(1 + 2 * n_planes), np.empty(3)
    iteration = 0
    for iteration in range(problem.max_iter):  # noqa: B007
        power.power_system(p, FLOOR, t, b, z, cost, alpha, rows, root, sums)
        gram, borders = weighted_products(X, root, rows)
        pull = problem.gradient(w)
        slope_w = pull - borders[:, n_planes]
        slope_b = sums[2::2] + e if problem.intercept else np.zeros(n_planes)
        value = problem.regulariser(w) + float(e @ b) + sums[0]
        excess = problem.conjugate(pull - slope_w) - problem.conjugate(pull) - float(w @ (-slope_w))
        if excess + float((1.0 + np.abs(b)) @ np.abs(slope_b)) <= tol * abs(value):
            break
        dw, db = NewtonSystem(problem, gram, borders, sums[1::2]).solve(-slope_w, -slope_b)
        dt = X @ dw
        linear = float(pull @ dw) + float(e @ db)
        bend = float(dw @ (problem.gradient(dw) - (0.0 if problem.linear is None else problem.linear)))
        step = _line_search(p, t, dt, b, db, z, cost, linear, bend, along)
        if step == 0.0:
            break
        w, b, t = w + step * dw, b + step * db, t + step * dt
    return w, b, alpha, iteration


def _line_search(
    p: float,
    t: Floats,
    dt: Floats,
    b: Floats,
    db: Floats,
    z: Floats,
    cost: Floats,
    linear: float,
    bend: float,
    out: Floats,
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


def primal_dual(problem: MarginProblem, data: MarginData, spent: int = 0) -> MarginSolution:
    """Interior point with the multipliers alpha and the distances s from the margin as unknowns, alpha s -> 0."""
    X, z, cost, p = data.X, data.z, data.cost, problem.power
    n_planes, n = cost.shape
    w, b, t = np.zeros(X.shape[1]), np.zeros(n_planes), np.zeros(n)
    alpha, s = p * cost * 2.0 ** (p - 1.0), np.ones_like(cost)  # slack 2 at score 0
    q, g, d_alpha, d_s = (np.empty_like(cost) for _ in range(4))
    rows, root, sums = np.empty((n, n_planes + 2)), np.empty(n), np.empty(4 + 3 * n_planes)
    target = float((alpha * s).mean())
    best, best_gap = (w, b, alpha, 0), math.inf
    for iteration in range(3 * problem.max_iter):
        power.power_interior_system(p, target, t, b, z, cost, alpha, s, q, g, rows, root, sums)
        gram, borders = weighted_products(X, root, rows)
        pull = problem.gradient(w)
        primal = problem.regulariser(w) + sums[0]
        dual = sums[1] - problem.conjugate(borders[:, n_planes + 1]) - (p - 1.0) / p * sums[3]
        gap = abs(primal - dual)
        if problem.intercept:
            gap += float((1.0 + np.abs(b)) @ np.abs(sums[6::3]))
        gap /= max(abs(primal), 1e-300)
        if gap < best_gap:
            best, best_gap = (w, b, alpha.copy(), iteration), gap
        if gap <= 0.1 * problem.tol or iteration > best[3] + 30:
            break
        system = NewtonSystem(problem, gram, borders, sums[4::3])
        dw, db = system.solve(borders[:, n_planes] - pull, -sums[5::3])
        dt = X @ dw
        reach = power.power_interior_direction(p, target, dt, db, z, alpha, s, q, g, d_alpha, d_s)
        step = min(1.0, 0.99 * reach)
        alpha += step * d_alpha
        s += step * d_s
        w, b, t = w + step * dw, b + step * db, t + step * dt
        target = float((alpha * s).mean()) * (0.05 if step > 0.9 else 0.3 if step > 0.3 else 0.8)
    return certified(problem, data, *best[:3], spent + best[3], "primal-dual")
