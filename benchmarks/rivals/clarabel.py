"""clarabel: a general conic solver, at the margin problems of uplift machines."""

import numpy as np

REQUIRES = ("clarabel==0.11.1", "scipy")


def machine(X, z, cost, power=1.0, tol=1e-8):
    """w and the intercepts of the primal as a conic program; for p > 1 every slack gets a three-dimensional power cone."""
    import clarabel
    from scipy import sparse

    n_planes, n = cost.shape
    m = X.shape[1]
    slacks = n_planes * n
    powers = slacks if power > 1.0 else 0
    size = m + n_planes + slacks + powers
    P = sparse.csc_matrix((np.ones(m), (np.arange(m), np.arange(m))), shape=(size, size))
    q = np.zeros(size)
    q[m + n_planes + (slacks if powers else 0) :] = cost.ravel()
    rows = []
    for k in range(n_planes):  # 1 - z (x·w - b_k) - ξ <= 0
        plane = np.zeros((n, n_planes))
        plane[:, k] = z
        slack = sparse.csr_matrix((-np.ones(n), (np.arange(n), np.arange(k * n, (k + 1) * n))), shape=(n, slacks))
        blocks = [sparse.csr_matrix(-z[:, None] * X), sparse.csr_matrix(plane), slack]
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
        cones += [clarabel.PowerConeT(1.0 / float(power))] * slacks
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = tol
    solver = clarabel.DefaultSolver(P, q, sparse.csc_matrix(sparse.vstack(A)), np.concatenate(b), cones, settings)
    found = solver.solve()
    x = np.array(found.x)
    return x[: m + n_planes]


JOBS = {"machine": machine}
MODELS = {}
DRAWS = {}
