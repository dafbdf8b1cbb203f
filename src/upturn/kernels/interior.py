"""The interior point of ``upturn.svm`` in one compiled loop, for problems so small that calls would dominate."""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import F8, F8_2, F8_2_out, F8_out, f8, i8, inner, kernel
from upturn.kernels.hinge import (
    _affine_direction,
    _corrected_direction,
    _corrector_rows,
    _interior_system,
    _take_step,
)


@inner
def _factor(matrix, scale):
    """Scale to a unit diagonal and factor in place by Cholesky; pivots that rounding made tiny are kept from 0."""
    size = matrix.shape[0]
    for i in range(size):
        scale[i] = 1.0 / max(matrix[i, i], 1e-300) ** 0.5
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j] * scale[i] * scale[j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            if i == j:
                matrix[i, i] = max(total, 1e-15) ** 0.5
            else:
                matrix[i, j] = total / matrix[j, j]


@inner
def _solve(factor, scale, rhs, out):
    """Solve with the factor of ``_factor``."""
    size = factor.shape[0]
    for i in range(size):
        total = rhs[i] * scale[i]
        for k in range(i):
            total -= factor[i, k] * out[k]
        out[i] = total / factor[i, i]
    for i in range(size - 1, -1, -1):
        total = out[i]
        for k in range(i + 1, size):
            total -= factor[k, i] * out[k]
        out[i] = total / factor[i, i]
    for i in range(size):
        out[i] *= scale[i]


@kernel(i8, F8_2, F8, F8_2, f8, i8, F8_out, F8_out, F8_2_out, F8_out)
def interior_loop(X, z, cost, tol, most, best_w, best_b, best_alpha, history):
    """The whole interior point for a small problem with H = I and f = e = 0: no call costs more than its arithmetic.

    The same steps as ``upturn.svm._interior.run``. Fills the best iterate and the history of gaps; returns how many.
    """
    n_planes, n = cost.shape
    m = X.shape[1]
    size = m + n_planes
    w, b, t = np.zeros(m), np.zeros(n_planes), np.zeros(n)
    dt, db = np.empty(n), np.empty(n_planes)
    alpha, upper = 0.5 * cost, 0.5 * cost
    s, xi = np.ones((n_planes, n)), np.full((n_planes, n), 2.0)
    q, g = np.empty((n_planes, n)), np.empty((n_planes, n))
    d_alpha, d_s, d_xi = np.empty((n_planes, n)), np.empty((n_planes, n)), np.empty((n_planes, n))
    rows, root, row_rhs = np.empty((n, n_planes + 2)), np.empty(n), np.empty(n)
    plane_rhs, sums, step_sums = np.empty(n_planes), np.empty(3 + 3 * n_planes), np.empty(3)
    system, scale, rhs, move = np.empty((size, size)), np.empty(size), np.empty(size), np.empty(size)
    best = np.inf
    stalled = 0
    for iteration in range(most):
        _interior_system(t, b, z, alpha, upper, s, xi, q, rows, root, sums)
        system[:, :] = 0.0
        rhs[:] = 0.0
        dual_norm = 0.0
        primal_norm = 0.0
        for i in range(n):
            weight = root[i] * root[i]
            for j in range(m):
                x = X[i, j]
                rhs[j] += x * rows[i, n_planes]
                for k in range(n_planes):
                    system[m + k, j] -= x * rows[i, k]
                x *= weight
                for other in range(j + 1):
                    system[j, other] += x * X[i, other]
        for j in range(m):
            u = 0.0
            for i in range(n):
                u += X[i, j] * rows[i, n_planes + 1]
            dual_norm += u * u
            primal_norm += w[j] * w[j]
            system[j, j] += 1.0
            rhs[j] -= w[j]
        primal = 0.5 * primal_norm + sums[0]
        gap = abs(primal - sums[1] + 0.5 * dual_norm)
        for k in range(n_planes):
            gap += (1.0 + abs(b[k])) * abs(sums[5 + 3 * k])
            system[m + k, m + k] = sums[3 + 3 * k]
            rhs[m + k] = -sums[4 + 3 * k]
        gap /= primal if primal != 0.0 else 1.0
        history[iteration] = gap
        if gap < 0.9 * best:
            best = gap
            stalled = 0
            best_w[:] = w
            best_b[:] = b
            best_alpha[:, :] = alpha
        else:
            stalled += 1
        if gap <= tol or stalled >= 6 or not np.isfinite(gap):
            return iteration + 1
        _factor(system, scale)
        _solve(system, scale, rhs, move)
        _project(X, move, dt)
        db[:] = move[m:]
        reach = _affine_direction(t, dt, b, db, z, alpha, upper, s, xi, q, d_alpha, step_sums)
        after = max(step_sums[0] + reach * (step_sums[1] + reach * step_sums[2]), 0.0)
        target = step_sums[0] / (2.0 * n_planes * n) * (after / step_sums[0]) ** 3
        _corrector_rows(target, t, b, z, alpha, upper, s, xi, q, d_alpha, g, row_rhs, plane_rhs)
        for j in range(m):
            rhs[j] = -w[j]
        for i in range(n):
            for j in range(m):
                rhs[j] += X[i, j] * row_rhs[i]
        for k in range(n_planes):
            rhs[m + k] = -plane_rhs[k]
        _solve(system, scale, rhs, move)
        _project(X, move, dt)
        db[:] = move[m:]
        reach = _corrected_direction(target, dt, db, z, alpha, upper, s, xi, q, g, d_alpha, d_s, d_xi)
        step = min(1.0, max(0.995, 1.0 - step_sums[0] / (n_planes * n)) * reach)
        _take_step(step, d_alpha, d_s, d_xi, alpha, upper, s, xi)
        for j in range(m):
            w[j] += step * move[j]
        for k in range(n_planes):
            b[k] += step * db[k]
        for i in range(n):
            t[i] += step * dt[i]
    return most


@inner
def _project(X, move, out):
    """X times the first entries of ``move``."""
    n, m = X.shape
    for i in range(n):
        total = 0.0
        for j in range(m):
            total += X[i, j] * move[j]
        out[i] = total
