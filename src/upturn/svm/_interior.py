"""Primal-dual interior point (Mehrotra) for the L1 machines.

Newton's system is diagonal plus low rank: each row's four unknowns are eliminated by hand (``kernels.hinge``), which
leaves a positive definite system in w and b alone,

    [ H + Xᵀ diag(Σ_k q_k) X    -Xᵀ q_1  ...  -Xᵀ q_K ]
    [ ...                         diag(Σ_i q_ik)       ]

It is scaled to a unit diagonal (so the units of the columns do not matter), factored by Cholesky and refined once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from upturn._arrays import Floats
from upturn.kernels import hinge
from upturn.kernels.interior import interior_loop
from upturn.svm._problem import MarginData, MarginProblem, MarginSolution, certified, one_sided

BLOCK = 1 << 16  # numbers of X in a block of rows: half a megabyte, so a scaled copy stays in the cache
TINY = 1_000_000  # arithmetic of an iteration below which one compiled call beats BLAS


@dataclass
class InteriorState:
    """Where an interior-point run stands; ``alpha`` lives inside (0, cost)."""

    w: Floats
    b: Floats
    alpha: Floats
    iterations: int
    history: list[float]


def solve(problem: MarginProblem, data: MarginData) -> MarginSolution:
    """Solve an L1 problem on all rows at once, to ``problem.tol``, certified."""
    answer = one_sided(problem, data)
    if answer is not None:
        return answer
    tol = problem.tol
    while True:
        state = run(problem, data, 0.3 * tol)
        solution = certified(
            problem, data, state.w, state.b, state.alpha, state.iterations, "interior", tuple(state.history)
        )
        if solution.gap <= problem.tol or tol < 1e-3 * problem.tol:
            return solution
        tol *= 0.1  # rare: the cheap measure was satisfied before the certificate


@np.errstate(over="ignore", invalid="ignore")
def run(problem: MarginProblem, data: MarginData, tol: float) -> InteriorState:
    """Iterate until the internal gap is below ``tol`` or no longer falls; returns the best iterate.

    The internal measure is (|P - D| + Σ (1 + |b_k|) |Σ z alpha_k + e_k|) / |P|: P - D alone goes negative before the
    equality constraints hold.
    """
    X, z, cost = data.X, data.z, data.cost
    n_planes, n = cost.shape
    m = X.shape[1]
    plain = problem.quadratic is None and problem.linear is None and problem.plane_linear is None
    if plain and problem.intercept and problem.constant == 0.0 and n * (m + 8) ** 2 <= TINY:
        return _run_small(data, tol, problem.max_iter)
    e = np.zeros(n_planes) if problem.plane_linear is None else problem.plane_linear
    w, b, t = np.zeros(m), np.zeros(n_planes), np.zeros(n)
    alpha = 0.5 * cost
    upper = alpha.copy()
    s, xi = np.ones_like(cost), np.full_like(cost, 2.0)
    q, g, d_alpha, d_s, d_xi = (np.empty_like(cost) for _ in range(5))
    rows, root, row_rhs = np.empty((n, n_planes + 2)), np.empty(n), np.empty(n)
    plane_rhs, sums, step_sums = np.empty(n_planes), np.empty(3 + 3 * n_planes), np.empty(3)
    best = InteriorState(w, b, alpha, 0, [])
    best_gap, stalled = np.inf, 0
    history: list[float] = []

    for iteration in range(problem.max_iter):
        hinge.interior_system(t, b, z, alpha, upper, s, xi, q, rows, root, sums)
        gram, borders = weighted_products(X, root, rows)
        pull = problem.gradient(w)
        residual = pull - borders[:, n_planes + 1]
        imbalance = sums[5::3] + e if problem.intercept else np.zeros(n_planes)
        primal = problem.regulariser(w) + float(e @ b) + sums[0]
        gap = abs(_duality(problem, w, residual, sums, primal)) + float((1.0 + np.abs(b)) @ np.abs(imbalance))
        gap = gap / (abs(primal) if primal != 0.0 else 1.0) if np.isfinite(gap) and np.isfinite(primal) else np.inf
        history.append(gap)
        if gap < 0.9 * best_gap:
            best, best_gap, stalled = InteriorState(w, b, alpha.copy(), iteration, history), gap, 0
        else:
            stalled += 1
        if gap <= tol or stalled >= 6 or not np.isfinite(gap):
            break

        if not np.isfinite(gram).all():  # a reduced problem without a solution runs off to infinity
            break
        system = NewtonSystem(problem, gram, borders, sums[3::3])
        dw, db = system.solve(borders[:, n_planes] - pull, -sums[4::3] - e)
        reach = hinge.affine_direction(t, X @ dw, b, db, z, alpha, upper, s, xi, q, d_alpha, step_sums)
        mu = step_sums[0]
        after = step_sums[0] + reach * (step_sums[1] + reach * step_sums[2])
        target = mu / (2.0 * cost.size) * (max(after, 0.0) / mu) ** 3
        hinge.corrector_rows(target, t, b, z, alpha, upper, s, xi, q, d_alpha, g, row_rhs, plane_rhs)
        dw, db = system.solve(X.T @ row_rhs - pull, -plane_rhs - e)
        dt = X @ dw
        reach = hinge.corrected_direction(target, dt, db, z, alpha, upper, s, xi, q, g, d_alpha, d_s, d_xi)
        step = min(1.0, max(0.995, 1.0 - mu / cost.size) * reach)
        hinge.take_step(step, d_alpha, d_s, d_xi, alpha, upper, s, xi)
        w, b, t = w + step * dw, b + step * db, t + step * dt
    best.iterations, best.history = len(history), history
    return best


def _run_small(data: MarginData, tol: float, max_iter: int) -> InteriorState:
    """The same in one compiled call."""
    w, b, alpha = np.zeros(data.X.shape[1]), np.zeros(data.cost.shape[0]), np.empty_like(data.cost)
    history = np.empty(max_iter)
    count = interior_loop(data.X, data.z, data.cost, tol, max_iter, w, b, alpha, history)
    return InteriorState(w, b, alpha, count, history[:count].tolist())


def _duality(problem: MarginProblem, w: Floats, residual: Floats, sums: Floats, primal: float) -> float:
    """Primal minus dual, the dual taken at u = Xᵀzα = Hw + f - residual."""
    return primal - (float(sums[1]) - problem.conjugate(problem.gradient(w) - residual))


def weighted_products(X: Floats, root: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Xᵀ diag(root²) X and Xᵀ rows in one pass, in blocks of rows fixed by the shape alone."""
    n, m = X.shape
    length = max(256, BLOCK // max(m, 1))
    gram, borders = np.zeros((m, m)), np.zeros((m, rows.shape[1]))
    scaled = np.empty((min(length, n), m))
    for start in range(0, n, length):
        block = X[start : start + length]
        part = scaled[: block.shape[0]]
        hinge.scale_rows(block, root[start : start + length], part)
        gram += part.T @ part
        borders += block.T @ rows[start : start + length]
    return gram, borders


class NewtonSystem:
    """The positive definite system in w and b: scaled to a unit diagonal, factored, solved with one refinement.

    ``borders`` holds Xᵀ q_k in its first K columns and ``weights`` the sums of the q_k.
    """

    def __init__(self, problem: MarginProblem, gram: Floats, borders: Floats, weights: Floats) -> None:
        m, self._planes = gram.shape[0], weights.shape[0] if problem.intercept else 0
        self._all_planes = weights.shape[0]
        matrix = np.zeros((m + self._planes, m + self._planes))
        matrix[:m, :m] = gram
        if problem.quadratic is None:
            matrix.flat[: m * (m + self._planes) : m + self._planes + 1] += 1.0
        else:
            matrix[:m, :m] += problem.quadratic
        if self._planes:
            matrix[:m, m:] = -borders[:, : self._planes]
            matrix[m:, :m] = matrix[:m, m:].T
            matrix[range(m, m + self._planes), range(m, m + self._planes)] = weights
        self._scale = 1.0 / np.sqrt(np.maximum(matrix.diagonal(), 1e-300))
        self._scaled = matrix * self._scale[:, None] * self._scale
        nudge = 0.0
        while True:
            lifted = self._scaled + nudge * np.eye(matrix.shape[0]) if nudge else self._scaled
            self._lower, info = dpotrf(lifted, lower=1)
            if info == 0:
                break
            nudge = max(10.0 * nudge, 1e-14)
            if not nudge < 1e3:
                raise FloatingPointError("the Newton system of the margin problem is not finite")

    def solve(self, rhs_w: Floats, rhs_b: Floats) -> tuple[Floats, Floats]:
        """The step (Δw, Δb); Δb is 0 for a problem without intercepts."""
        m = rhs_w.shape[0]
        scaled = np.concatenate([rhs_w, rhs_b[: self._planes]]) * self._scale
        x = dpotrs(self._lower, scaled, lower=1)[0]
        x += dpotrs(self._lower, scaled - self._scaled @ x, lower=1)[0]
        x *= self._scale
        return x[:m], (x[m:] if self._planes else np.zeros(self._all_planes))
