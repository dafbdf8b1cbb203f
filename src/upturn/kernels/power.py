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


@kernel(void, f8, f8, F8, F8, F8, F8_2, F8_2, F8_2, F8_2_out, F8_2_out, F8_2_out, F8_out, F8_out)
def power_interior_system(p, target, t, b, z, cost, alpha, s, q, g, rows, root, sums):
    """Row weights and right-hand side of the primal-dual step, centred on alpha s = target.

    The slack is a function of its multiplier, xi = (alpha / p cost)^(1/(p-1)): steep in xi is flat in alpha, so a row
    on its margin (any alpha, xi nearly 0) is as tame as any other. ``rows`` (n, K + 2) gets q_1 .. q_K,
    z·Σ(alpha + q g) and z·Σ alpha; ``sums`` [loss, Σ alpha, Σ alpha s, Σ alpha xi], then for each k Σ q,
    Σ z (alpha + q g) and Σ z alpha.
    """
    n_planes, n = cost.shape
    sums[:] = 0.0
    for i in range(n):
        root[i] = 0.0
        rows[i, n_planes] = 0.0
        rows[i, n_planes + 1] = 0.0
    for k in range(n_planes):
        for i in range(n):
            a = alpha[k, i]
            xi = (a / (p * cost[k, i])) ** (1.0 / (p - 1.0))
            slack = 1.0 - z[i] * (t[i] - b[k])
            weight = a / (s[k, i] + xi / (p - 1.0))
            pull = slack - xi + target / a
            rhs = z[i] * (a + weight * pull)
            q[k, i] = weight
            g[k, i] = pull
            rows[i, k] = weight
            rows[i, n_planes] += rhs
            rows[i, n_planes + 1] += z[i] * a
            root[i] += weight
            if slack > 0.0:
                sums[0] += cost[k, i] * slack * _powers(slack, p)
            sums[1] += a
            sums[2] += a * s[k, i]
            sums[3] += a * xi
            sums[4 + 3 * k] += weight
            sums[5 + 3 * k] += rhs
            sums[6 + 3 * k] += z[i] * a
    for i in range(n):
        root[i] = root[i] ** 0.5


@kernel(f8, f8, f8, F8, F8, F8, F8_2, F8_2, F8_2, F8_2, F8_2_out, F8_2_out)
def power_interior_direction(p, target, dt, db, z, alpha, s, q, g, d_alpha, d_s):
    """The directions of alpha and s; returns the longest step.

    It keeps both positive and lets no slack grow by more than e^10 at once, where its law is too steep to follow.
    """
    n_planes, n = alpha.shape
    shrink = 0.0
    for k in range(n_planes):
        for i in range(n):
            a = alpha[k, i]
            da = q[k, i] * (g[k, i] - z[i] * (dt[i] - db[k]))
            ds = target / a - s[k, i] - s[k, i] / a * da
            d_alpha[k, i] = da
            d_s[k, i] = ds
            shrink = max(shrink, -da / a, -ds / s[k, i], da / a / (10.0 * (p - 1.0)))
    return 1.0 / max(shrink, 1e-300)
