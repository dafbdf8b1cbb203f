"""Row sums of the power loss Σ cost · max(0, 1 - z (t - b))^p, p > 1, its gradient and curvature.

Layout as in ``kernels.hinge``: t (n,), b (K,), z (n,), cost (K, n).
"""

from __future__ import annotations

from upturn.kernels._jit import F8, F8_2, F8_2_out, F8_out, f8, inner, kernel, void


@inner
def _powers(h, p):
    """h^(p-1) for h > 0; the usual exponents without a call of pow."""
    if p == 2.0:
        return h
    if p == 1.5:
        return h**0.5
    return h ** (p - 1.0)


@kernel(f8, f8, F8, F8, F8, F8_2)
def power_loss(p, t, b, z, cost):
    """The loss alone."""
    n_planes, n = cost.shape
    loss = 0.0
    for k in range(n_planes):
        for i in range(n):
            h = 1.0 - z[i] * (t[i] - b[k])
            if h > 0.0:
                loss += cost[k, i] * h * _powers(h, p)
    return loss


@kernel(void, f8, f8, F8, F8, F8, F8_2, F8_2_out, F8_2_out, F8_out, F8_out)
def power_system(p, floor, t, b, z, cost, alpha, rows, root, sums):
    """Multipliers alpha = p cost h^(p-1), curvatures q = (p-1) alpha / max(h, floor), and their sums.

    ``rows`` (n, K + 1) gets q_1 .. q_K and z·Σ_k alpha; ``root`` the square root of Σ_k q; ``sums`` the loss, then
    Σ_i q_ik and Σ_i z alpha_ik for each k.
    """
    n_planes, n = cost.shape
    sums[:] = 0.0
    for i in range(n):
        root[i] = 0.0
        rows[i, n_planes] = 0.0
    loss = 0.0
    for k in range(n_planes):
        for i in range(n):
            h = 1.0 - z[i] * (t[i] - b[k])
            a = 0.0
            q = 0.0
            if h > 0.0:
                power = _powers(h, p)
                loss += cost[k, i] * h * power
                a = p * cost[k, i] * power
                q = (p - 1.0) * a / max(h, floor)
            alpha[k, i] = a
            rows[i, k] = q
            root[i] += q
            rows[i, n_planes] += z[i] * a
            sums[1 + 2 * k] += q
            sums[2 + 2 * k] += z[i] * a
    for i in range(n):
        root[i] = root[i] ** 0.5
    sums[0] = loss


@kernel(void, f8, f8, F8, F8, F8, F8, F8, F8_2, F8_out)
def power_along(step, p, t, dt, b, db, z, cost, out):
    """Loss, slope and curvature of the loss at t + step dt, b + step db, along that line."""
    n_planes, n = cost.shape
    loss = 0.0
    slope = 0.0
    curve = 0.0
    for k in range(n_planes):
        for i in range(n):
            move = z[i] * (dt[i] - db[k])
            h = 1.0 - z[i] * (t[i] - b[k]) - step * move
            if h > 0.0:
                power = _powers(h, p)
                loss += cost[k, i] * h * power
                slope -= p * cost[k, i] * power * move
                curve += p * (p - 1.0) * cost[k, i] * power / h * move * move
    out[0] = loss
    out[1] = slope
    out[2] = curve
