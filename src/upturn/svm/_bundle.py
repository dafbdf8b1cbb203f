"""Bundles of cutting planes: the last word on ½ ‖w‖² + loss(w) where the loss has a corner at the minimum.

Rows of 0 and 1 tie by the million: where w weighs only a few columns, whole groups of rows have one score, and the pairs
between two groups reach their margin together. There the loss is sharp in nearly all directions, gradients say nothing, and
the multipliers of so many pairs are too many to solve for. Planes are not: every slope g of the loss at some point p
gives a plane c + g·w below it, and a convex combination of planes with weights λ proves

    minimum ≥ f(w) - Σ λ_k e_k - ½ ‖v‖²,    v = w + Σ λ_k g_k,    e_k = loss(w) - c_k - g_k·w ≥ 0.

v is the shortest of the slopes of f that are nearly valid at w (e_k within a slack), so it is either short, and proves w, or
minus v is a direction of descent; a step that fails adds the plane that forbids it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from upturn._arrays import Floats
from upturn.svm._problem import relative_gap

_MOST_PLANES = 300
Objective = Callable[[Floats], tuple[float, Floats]]


@dataclass(frozen=True)
class BundleSolution:
    """Where the bundle ended, its objective, the bound that proves it, and how often the objective was asked."""

    coef: Floats
    objective: float
    dual_bound: float
    evaluations: int


class _Planes:
    """Planes below the loss, ``offsets`` + ``slopes`` · w, from the points where the objective was asked."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.slopes: list[Floats] = []
        self.offsets: list[float] = []
        self.count = 0

    def add(self, point: Floats) -> float:
        """Ask at a point, keep the plane there; returns the objective."""
        value, slope = self.objective(point)
        plane = slope - point
        self.slopes.append(plane)
        self.offsets.append(value - 0.5 * float(point @ point) - float(plane @ point))
        self.count += 1
        return value

    def errors(self, w: Floats, value: float) -> Floats:
        """How far each plane lies below the loss at w."""
        loss = value - 0.5 * float(w @ w)
        return np.asarray(np.maximum(loss - (np.array(self.offsets) + np.array(self.slopes) @ w), 0.0))

    def forget(self, errors: Floats) -> None:
        """Keep the planes that are nearest to the loss."""
        if len(errors) > _MOST_PLANES:
            keep = np.argsort(errors)[: _MOST_PLANES * 2 // 3]
            self.slopes, self.offsets = [self.slopes[k] for k in keep], [self.offsets[k] for k in keep]


def minimise(objective: Objective, start: Floats, tol: float, most: int = 12_000) -> BundleSolution:
    """Minimise ½ ‖w‖² + loss to a relative gap of ``tol``; ``objective`` returns the value and a (sub)gradient."""
    planes = _Planes(objective)
    w = start.copy()
    value, bound, slack = planes.add(w), -np.inf, 1e-4
    while planes.count < most:
        errors = planes.errors(w, value)
        near = np.flatnonzero(errors <= slack * abs(value))
        directions = w + np.array([planes.slopes[k] for k in near])
        share = _shortest(directions)
        v, error = directions.T @ share, float(errors[near] @ share)
        half = 0.5 * float(v @ v)
        bound = max(bound, value - error - half)
        if relative_gap(value, bound) <= tol or half == 0.0:
            break
        if error > half:  # the planes are too far off to say more about this point
            slack = 0.3 * error / abs(value)
        step = 1.0
        for _ in range(40):
            trial = w - step * v
            reached = planes.add(trial)
            if reached < value - 0.1 * step * half:
                w, value = trial, reached
                break
            if planes.errors(w, value)[-1] <= 0.5 * slack * abs(value):
                break
            step *= 0.2
        planes.forget(planes.errors(w, value))
    return BundleSolution(w, value, bound, planes.count)


def _shortest(rows: Floats) -> Floats:
    """Weights of the shortest convex combination of some rows, by non-negative least squares."""
    if len(rows) == 1:
        return np.ones(1)
    large = 10.0 * max(float(np.abs(rows).max()), 1e-300)
    system = np.vstack([rows.T, np.full(len(rows), large)])
    wanted = np.zeros(len(system))
    wanted[-1] = large
    share, _ = nnls(system, wanted, maxiter=50 * len(rows))
    total = float(share.sum())
    return np.asarray(share / total) if total > 0.0 else np.full(len(rows), 1.0 / len(rows))
