"""The Lp machines, p > 1: primal Newton with an exact line search, or a primal-dual interior point for p near 1.

The objective is convex with a continuous gradient, and its Hessian is H plus a Gram matrix, as in the L1 interior
point. With alpha = p cost h^(p-1) the gap to the dual (3.4.13) is ½ ‖∇_w‖² (in the norm of H⁻¹) plus what the
intercepts' gradients contribute, so Newton's gap vanishes quadratically; mostly it needs 3 to 15 steps.

As p falls to 1, alpha becomes a step function of the slack and no slack can be computed accurately enough to tell
alpha. The interior point has alpha as its unknown and the slack as a function of it. It takes over below p = 1.2 and
wherever Newton stops short or has not arrived after a few steps more than it needs elsewhere (separable data with a large C; hundreds of columns
of levels, of which many rows lie on their margins). Range: p from 1.05 to 10 is tested.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from upturn._arrays import Floats
from upturn.svm._problem import MarginData, MarginProblem, MarginSolution, certified, one_sided
from upturn.svm._rows import BarrierRows, PowerRows
from upturn.svm._system import NewtonSystem

NEAR_ONE = 1.2  # below, Newton's line search gets stuck among rows on their margins
SETTLED = 4  # steps that no longer lower the objective
FLOOR = 1e-12  # slacks below it do not add curvature
PATIENCE = 16  # steps after which the interior point, which takes some twenty, takes over


def solve(problem: MarginProblem, data: MarginData, start: tuple[Floats, Floats] | None = None) -> MarginSolution:
    """Solve an Lp problem, p > 1, to ``problem.tol``, certified; ``start`` is a (w, b) to begin from."""
    answer = one_sided(problem, data)
    if answer is not None:
        return answer
    spent, tol = 0, problem.tol
    if problem.power < NEAR_ONE:
        return primal_dual(problem, data)
    if start is None:
        start = (np.zeros(data.n_columns), np.zeros(data.n_planes))
    patience = problem.max_iter if problem.for_direction else min(PATIENCE, problem.max_iter)
    for _ in range(2):
        w, b, alpha, used = run(problem, data, start, 0.3 * tol, patience)
        spent += used
        solution = certified(problem, data, w, b, alpha, spent, "newton")
        if solution.gap <= problem.tol:
            return solution
        if spent >= PATIENCE and not problem.for_direction:
            break
        tol, start = 0.1 * tol, (w, b)
    if problem.for_direction and solution.gap <= 1e-6:
        return solution
    last = primal_dual(problem, data, spent)
    return min(last, replace(solution, exhausted=last.exhausted), key=lambda found: found.gap)


def run(
    problem: MarginProblem, data: MarginData, start: tuple[Floats, Floats], tol: float, max_iter: int
) -> tuple[Floats, Floats, Any, int]:
    """Newton steps from ``start`` until the gap is below ``tol``; returns w, b, alpha and the number of steps."""
    w, b = start
    rows = data.rows(PowerRows, problem.power, FLOOR, w)
    K = rows.n_planes
    e = np.zeros(K) if problem.plane_linear is None else problem.plane_linear
    newton = NewtonSystem(problem, rows.n_columns, K)
    values: list[float] = []
    iteration = 0
    for iteration in range(max_iter + 1):
        found = rows.system(b)
        pull = problem.gradient(w)
        slope_w = pull - found.borders[K]
        slope_b = found.balance + e if problem.intercept else np.zeros(K)
        value = problem.regulariser(w) + float(e @ b) + found.loss
        excess = problem.conjugate(pull - slope_w) - problem.conjugate(pull) - float(w @ (-slope_w))
        if excess + float((1.0 + np.abs(b)) @ np.abs(slope_b)) <= tol * abs(value):
            break
        values.append(value)
        if iteration == max_iter:
            break
        if iteration >= SETTLED and value >= values[-1 - SETTLED] - 1e-14 * abs(value):
            break  # the slopes are rounding errors by now: the certificate will say how good the point is
        if not newton.factor(found):
            break
        dw, db = newton.solve(-slope_w, -slope_b)
        rows.direct(dw)
        linear = float(pull @ dw) + float(e @ db)
        bend = float(dw @ (problem.gradient(dw) - (0.0 if problem.linear is None else problem.linear)))
        step = _line_search(rows, b, db, linear, bend)
        if step == 0.0:
            break
        rows.step(step)
        w, b = w + step * dw, b + step * db
    return w, b, rows.alpha, iteration


def _line_search(rows: Any, b: Floats, db: Floats, linear: float, bend: float) -> float:
    """The minimiser along a direction: Newton on the slope, kept inside a bracket."""
    low, high, step = 0.0, math.inf, 1.0
    for _ in range(60):
        slope, curve = rows.along(step, b, db)
        slope, curve = linear + step * bend + slope, bend + curve
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
    p, rows = problem.power, data.rows(BarrierRows, problem.power)
    K = rows.n_planes
    w, b = np.zeros(rows.n_columns), np.zeros(K)
    newton = NewtonSystem(problem, rows.n_columns, K)
    target = rows.comp / rows.n_margins
    best, best_gap, exhausted = (w, b, 0), math.inf, False
    for iteration in range(3 * problem.max_iter):
        found = rows.system(b, target)
        pull = problem.gradient(w)
        primal = problem.regulariser(w) + found.loss
        dual = found.alpha - problem.conjugate(found.borders[K + 1]) - (p - 1.0) / p * found.slack
        gap = abs(primal - dual)
        if problem.intercept:
            gap += float((1.0 + np.abs(b)) @ np.abs(found.balance))
        gap /= max(abs(primal), 1e-300)
        if gap < best_gap or iteration == 0:
            best, best_gap = (w, b, iteration), gap
            rows.keep()
        if gap <= 0.1 * problem.tol or iteration > best[2] + 30:
            break
        if not newton.factor(found):
            break
        dw, db = newton.solve(found.borders[K] - pull, -found.rhs)
        step = min(1.0, 0.99 * rows.direct(dw, db))
        shrink = 0.05 if step > 0.9 else 0.3 if step > 0.3 else 0.8
        target = rows.step(step) / rows.n_margins * shrink
        w, b = w + step * dw, b + step * db
    else:
        exhausted = True
    return certified(problem, data, best[0], best[1], rows.kept, spent + best[2], "primal-dual", exhausted=exhausted)
