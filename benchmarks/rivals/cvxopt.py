"""cvxopt with the dissertation's own solver of its linear systems, at the margin problem of the L1 uplift machine."""

import numpy as np

REQUIRES = ("cvxopt==1.3.3", "numpy")


def machine(X, z, cost, power=1.0, tol=1e-8):
    """w and the intercepts, from the dual of the L1 machine with the structured KKT solver of sections 4.2.1 and 4.1."""
    from cvxopt import matrix, solvers

    if power != 1.0:
        raise ValueError("is compared at p = 1 only")
    n_planes, n = cost.shape
    total = n_planes * n
    D = z[:, None] * X
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
        equal[k, k * n : (k + 1) * n] = z

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

    h = matrix(np.concatenate([np.zeros(total), cost.ravel()]))
    options = {"show_progress": False, "abstol": 0.0 if tol else 1e-7, "reltol": tol, "feastol": 1e-8, "maxiters": 100}
    found = solvers.coneqp(
        times_P, matrix(-1.0, (total, 1)), times_G, h, None, matrix(equal), matrix(0.0, (n_planes, 1)),
        kktsolver=kkt, options=options,
    )  # fmt: skip
    alpha = np.array(found["x"]).reshape(n_planes, n)
    w = X.T @ (z * alpha.sum(axis=0))
    return np.append(w, np.array(found["y"]).ravel())


JOBS = {"machine": machine}
MODELS = {}
DRAWS = {}
