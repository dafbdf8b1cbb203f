"""General solvers on the same margin problems: clarabel, and cvxopt with the dissertation's KKT solver.

A problem is a ``MarginData`` and a power; every function returns (objective, w).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from upturn.svm._problem import MarginProblem, best_intercepts


def by_clarabel(data, power=1.0, tol=1e-9):
    """The primal as a conic program; for p > 1 every slack gets a three-dimensional power cone."""
    import clarabel

    n_planes, n = data.cost.shape
    m = data.X.shape[1]
    slacks = n_planes * n
    powers = slacks if power > 1.0 else 0
    size = m + n_planes + slacks + powers
    P = sparse.csc_matrix((np.ones(m), (np.arange(m), np.arange(m))), shape=(size, size))
    q = np.zeros(size)
    q[m + n_planes + (slacks if powers else 0) :] = data.cost.ravel()
    rows = []
    for k in range(n_planes):  # 1 - z (x·w - b_k) - ξ <= 0
        plane = np.zeros((n, n_planes))
        plane[:, k] = data.z
        slack = sparse.csr_matrix((-np.ones(n), (np.arange(n), np.arange(k * n, (k + 1) * n))), shape=(n, slacks))
        blocks = [sparse.csr_matrix(-data.z[:, None] * data.X), sparse.csr_matrix(plane), slack]
        rows.append(sparse.hstack([*blocks, sparse.csr_matrix((n, powers))]))
    offset = m + n_planes
    nonnegative = sparse.csr_matrix((-np.ones(slacks), (np.arange(slacks), offset + np.arange(slacks))), (slacks, size))
    A, b = [*rows, nonnegative], [-np.ones(slacks), np.zeros(slacks)]
    cones = [clarabel.NonnegativeConeT(2 * slacks)]
    if powers:  # (τ, 1, ξ): τ^(1/p) 1^(1-1/p) >= |ξ|
        index = np.arange(slacks)
        column = np.stack([offset + slacks + index, np.zeros(slacks), offset + index], axis=1).ravel()
        value = np.tile([-1.0, 0.0, -1.0], slacks)
        A.append(sparse.csr_matrix((value, (np.arange(3 * slacks), column.astype(int))), shape=(3 * slacks, size)))
        b.append(np.tile([0.0, 1.0, 0.0], slacks))
        cones += [clarabel.PowerConeT(1.0 / power)] * slacks
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = tol
    solver = clarabel.DefaultSolver(P, q, sparse.csc_matrix(sparse.vstack(A)), np.concatenate(b), cones, settings)
    found = solver.solve()
    x = np.array(found.x)
    return objective(data, x[:m], x[m : m + n_planes], power), x[:m]


def by_cvxopt(data, tol=1e-8):
    """The dual of the L1 machine with the structured KKT solver of sections 4.2.1 and 4.1 of the dissertation."""
    from cvxopt import matrix, solvers

    n_planes, n = data.cost.shape
    total = n_planes * n
    D = data.z[:, None] * data.X
    stack = np.vstack([D] * n_planes)  # P = stack stackᵀ

    def times_P(x, y, alpha=1.0, beta=0.0):
        product = stack @ (stack.T @ np.array(x).ravel())
        y[:] = matrix(beta * np.array(y).ravel() + alpha * product)

    def times_G(x, y, alpha=1.0, beta=0.0, trans="N"):
        v = np.array(x).ravel()
        product = np.concatenate([-v, v]) if trans == "N" else v[total:] - v[:total]
        y[:] = matrix(beta * np.array(y).ravel() + alpha * product)

    equal = np.zeros((n_planes, total))
    for k in range(n_planes):
        equal[k, k * n : (k + 1) * n] = data.z

    def kkt(W):
        scale = np.array(W["d"]).ravel()
        diagonal = 1.0 / scale[:total] ** 2 + 1.0 / scale[total:] ** 2
        # regularised weighted least squares by SVD, as section 4.2.1 does for stability
        left, singular, _ = np.linalg.svd(stack / np.sqrt(diagonal)[:, None], full_matrices=False)
        shrink = singular**2 / (1.0 + singular**2)

        def inverse(v):
            root = 1.0 / np.sqrt(diagonal)
            u = root[:, None] * v if v.ndim == 2 else root * v
            inner = left.T @ u
            u = u - left @ (shrink[:, None] * inner if v.ndim == 2 else shrink * inner)
            return root[:, None] * u if v.ndim == 2 else root * u

        applied = inverse(equal.T)
        schur = equal @ applied

        def solve(x, y, z):
            bx, by, bz = (np.array(v).ravel() for v in (x, y, z))
            rhs = bx + (-bz[:total] / scale[:total] ** 2 + bz[total:] / scale[total:] ** 2)
            ux = inverse(rhs)
            uy = np.linalg.solve(schur, equal @ ux - by)
            ux = ux - applied @ uy
            x[:], y[:] = matrix(ux), matrix(uy)
            z[:] = matrix((np.concatenate([-ux, ux]) - bz) / scale)

        return solve

    h = matrix(np.concatenate([np.zeros(total), data.cost.ravel()]))
    options = {"show_progress": False, "abstol": 0.0 if tol else 1e-7, "reltol": tol, "feastol": 1e-8, "maxiters": 100}
    found = solvers.coneqp(
        times_P, matrix(-1.0, (total, 1)), times_G, h, None, matrix(equal), matrix(0.0, (n_planes, 1)),
        kktsolver=kkt, options=options,
    )  # fmt: skip
    alpha = np.array(found["x"]).reshape(n_planes, n)
    w = data.X.T @ (data.z * alpha.sum(axis=0))
    return best_intercepts(MarginProblem(), data, w, np.zeros(n_planes))[2], w


def objective(data, w, b, power):
    slack = np.maximum(0.0, 1.0 - data.z * ((data.X @ w)[None] - np.asarray(b)[:, None]))
    return 0.5 * float(w @ w) + float((data.cost * slack**power).sum())
