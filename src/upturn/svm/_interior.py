"""Primal-dual interior point (Mehrotra) for the L1 machines.

Newton's system is diagonal plus low rank: each row's four unknowns are eliminated by hand (``kernels.hinge``), which leaves a
positive definite system in w and b alone (``_system``). Everything that is done to rows is done by the object that holds them
(``_rows``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from upturn._arrays import Floats
from upturn.svm._problem import ZERO_GAP, MarginData, MarginProblem, MarginSolution, certified, one_sided
from upturn.svm._rows import HingeRows, MarginRows, RowSums
from upturn.svm._system import NewtonSystem

EFFORT = 4.0  # whole steps that bring nothing
PATIENCE = 60  # iterations that bring nothing, however short their steps


@dataclass(frozen=True)
class InteriorState:
    """Where an interior-point run ended: its best iterate, and the gap at every iteration."""

    w: Floats
    b: Floats
    history: list[float]

    @property
    def iterations(self) -> int:
        """How many there were."""
        return len(self.history)


def solve(problem: MarginProblem, data: MarginData) -> MarginSolution:
    """Solve an L1 problem on all rows at once, to ``problem.tol``, certified."""
    answer = one_sided(problem, data)
    if answer is not None:
        return answer
    tol = problem.tol
    while True:
        state, alpha = run_local(problem, data, 0.3 * tol)
        solution = certified(
            problem, data, state.w, state.b, alpha, state.iterations, "interior", tuple(state.history),
            exhausted=state.iterations >= problem.max_iter,
        )  # fmt: skip
        wanted = ZERO_GAP if solution.undecided else problem.tol
        if (solution.gap <= problem.tol and not solution.undecided) or tol <= 1e-3 * min(wanted, problem.tol):
            return solution
        tol = 0.1 * min(tol, wanted)  # rare: the cheap measure was satisfied before the certificate, or near w = 0


def run_local(problem: MarginProblem, data: MarginData, tol: float) -> tuple[InteriorState, Any]:
    """``run`` on all rows; also returns the best iterate's multipliers, which live inside (0, cost)."""
    rows = data.rows(HingeRows)
    return run(problem, rows, tol), rows.kept


@np.errstate(over="ignore", invalid="ignore")
def run(problem: MarginProblem, rows: MarginRows, tol: float) -> InteriorState:
    """Iterate until the gap is below ``tol`` or no longer falls; ``rows`` keep the multipliers of the best iterate."""
    w, b = np.zeros(rows.n_columns), np.zeros(rows.n_planes)
    e = np.zeros(rows.n_planes) if problem.plane_linear is None else problem.plane_linear
    newton = NewtonSystem(problem, rows.n_columns, rows.n_planes)
    best, best_gap = (w, b), math.inf
    history: list[float] = []
    steps: list[float] = []
    for _ in range(problem.max_iter):
        found = rows.system(b)
        gap = measure(problem, w, b, found)
        history.append(gap)
        if gap < best_gap or len(history) == 1:
            best, best_gap = (w, b), gap
            rows.keep()
        mu = found.comp
        if gap <= tol or stagnated(history, steps) or not math.isfinite(gap) or mu == 0.0:
            break
        if not newton.factor(found):
            break  # a reduced problem without a solution runs off to infinity
        pull = problem.gradient(w)
        rough = newton.solve(found.borders[rows.n_planes] - pull, -found.rhs - e, refine=False)
        reach, bend = rows.predict(*rough)
        after = max(mu * (1.0 - reach) + reach * reach * bend, 0.0)
        rhs_w, rhs_b = rows.correct(mu / (2.0 * rows.n_margins) * (after / mu) ** 3)
        dw, db = newton.solve(rhs_w - pull, -rhs_b - e)
        step = min(1.0, max(0.995, 1.0 - mu / rows.n_margins) * rows.direct(dw, db))
        rows.step(step)
        steps.append(step)
        w, b = w + step * dw, b + step * db
    return InteriorState(*best, history)


def measure(problem: MarginProblem, w: Floats, b: Floats, found: RowSums) -> float:
    """(|P - D| + Σ (1 + |b_k|) |Σ z alpha_k + e_k|) / |P|: P - D alone goes negative before the equality constraints hold."""
    primal = problem.regulariser(w) + found.loss
    dual = found.alpha - problem.conjugate(found.borders[-1])
    balance = found.balance
    if problem.plane_linear is not None:
        primal += float(problem.plane_linear @ b)
        balance = balance + problem.plane_linear
    gap = abs(primal - dual)
    if problem.intercept:
        gap += sum((1.0 + abs(at)) * abs(off) for at, off in zip(b.tolist(), balance.tolist(), strict=True))
    if not math.isfinite(gap):
        return math.inf
    return gap / abs(primal) if primal != 0.0 else gap


def stagnated(history: list[float], steps: list[float]) -> bool:
    """Whether the steps since the gap last fell by a tenth ought to have brought more.

    With rare outcomes steps are short for a while, because some margins are blocked, and the gap hardly moves; they grow again.
    So steps count by their length.
    """
    last, best = 0, math.inf
    for i, gap in enumerate(history):
        if gap < 0.9 * best:
            last, best = i, gap
    return sum(steps[last:]) >= EFFORT or len(history) - last > PATIENCE
