"""The door to the margin solvers: which one, on which form of the data.

Done here once for all of them: rows without weight leave, columns far from 0 are centred (exact: the intercepts
absorb it), problems with more columns than rows are rotated into the space of the rows (exact: w lies in it), and
BLAS keeps to one thread, so that results do not depend on how many there are.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from upturn._arrays import Floats
from upturn.svm import _band, _energy, _newton
from upturn.svm._problem import MarginData, MarginProblem, MarginSolution


@functools.cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def one_thread() -> Any:
    """A context in which BLAS keeps to one thread."""
    return _blas().limit(limits=1)


def solve(
    problem: MarginProblem,
    data: MarginData,
    energy: _energy.EnergyTerm | None = None,
    start: tuple[Floats, Floats] | None = None,
) -> MarginSolution:
    """Solve a margin problem to ``problem.tol`` with the solver made for it.

    p = 1: interior point, inside a margin band when rows are many. p > 1: primal Newton. With an energy term, the
    quasi-Newton loop around them. ``start`` is (w, b) of a neighbouring problem.
    """
    with one_thread():
        return _prepared(problem, data, energy, start)


def _margin(problem: MarginProblem, data: MarginData, start: tuple[Floats, Floats] | None) -> MarginSolution:
    solver = _band.solve if problem.power == 1.0 else _newton.solve
    return solver(problem, data, start)


def _prepared(
    problem: MarginProblem,
    data: MarginData,
    energy: _energy.EnergyTerm | None,
    start: tuple[Floats, Floats] | None,
) -> MarginSolution:
    n, m = data.X.shape
    live = (data.cost > 0.0).any(axis=0)
    if energy is not None:
        live |= energy.signed != 0.0
    if not live.all():
        kept = None if energy is None else replace(energy, signed=energy.signed[live])
        inner = _prepared(problem, data.take(np.flatnonzero(live)), kept, start)
        alpha = np.zeros_like(data.cost)
        alpha[:, live] = inner.alpha
        return replace(inner, alpha=alpha)

    X = data.X
    mean = X.mean(axis=0)
    off_centre = problem.intercept and bool(np.any(np.abs(mean) > X.std(axis=0)))
    if off_centre:
        X = X - mean
    rotation = None
    if m > n and problem.quadratic is None:
        rotation, triangle = np.linalg.qr(X.T)
        X = np.ascontiguousarray(triangle.T)
        problem = replace(problem, linear=None if problem.linear is None else rotation.T @ problem.linear)
    work = MarginData(np.ascontiguousarray(X), data.z, data.cost)
    if start is not None:
        w, b = start
        b = b - float(mean @ w) if off_centre else b
        start = (w if rotation is None else rotation.T @ w, b)

    if energy is None or energy.balance == 0.0:
        solution = _margin(problem, work, start)
    else:
        solution = _energy.solve(problem, work, energy, _margin, start)

    coef = solution.coef if rotation is None else rotation @ solution.coef
    shift = float(mean @ coef) if off_centre else 0.0
    return replace(
        solution,
        coef=coef,
        intercepts=solution.intercepts + shift,
        intercept_low=solution.intercept_low + shift,
        intercept_high=solution.intercept_high + shift,
    )
