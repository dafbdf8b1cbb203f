"""Row updates of the margin solvers: hinge slacks of one or two parallel hyperplanes.

Layout: ``t`` holds the scores x·w of the n rows, ``b`` the K intercepts, ``z`` the labels (-1 or +1). Everything that
belongs to a row and a hyperplane is a ``(K, n)`` matrix. r[k, i] = z[i] (t[i] - b[k]) is the signed distance and
h = max(0, 1 - r) its slack.

The interior point works on s (distance kept from the margin), xi (slack), alpha (multiplier of the margin) and
v = cost - alpha (multiplier of xi >= 0, in the array ``upper``). Newton's step eliminates all four of them row by
row; what is left to the caller is one system of size m + K built from the row weights q.
"""

from __future__ import annotations

from upturn.kernels._jit import F8, F8_2, F8_2_out, F8_out, f8, inner, kernel, void


@inner
def _interior_system(t, b, z, alpha, upper, s, xi, q, rows, root, sums):
    """Row weights of the Newton system, and the sums that measure the gap.

    Fills q; ``rows`` (n, K + 2) with q_1 .. q_K, the predictor's right-hand side z·Σ_k(alpha + q (1 - r)) and
    z·Σ_k alpha; ``root``, the square root of Σ_k q. ``sums`` gets [Σ cost·h, Σ alpha, Σ (alpha s + v xi)], then for
    each k Σ q_k, the right-hand side of b_k and Σ z alpha_k.
    """
    n_planes, n = alpha.shape
    sums[:] = 0.0
    for i in range(n):
        root[i] = 0.0
        rows[i, n_planes] = 0.0
        rows[i, n_planes + 1] = 0.0
    loss = 0.0
    total = 0.0
    comp = 0.0
    for k in range(n_planes):
        sum_q = 0.0
        sum_rhs = 0.0
        sum_alpha = 0.0
        for i in range(n):
            a = alpha[k, i]
            v = upper[k, i]
            slack = 1.0 - z[i] * (t[i] - b[k])
            weight = 1.0 / (s[k, i] / a + xi[k, i] / v)
            q[k, i] = weight
            rows[i, k] = weight
            root[i] += weight
            rhs = z[i] * (a + weight * slack)
            rows[i, n_planes] += rhs
            rows[i, n_planes + 1] += z[i] * a
            sum_q += weight
            sum_rhs += rhs
            sum_alpha += z[i] * a
            if slack > 0.0:
                loss += (a + v) * slack
            total += a
            comp += a * s[k, i] + v * xi[k, i]
        sums[3 + 3 * k] = sum_q
        sums[4 + 3 * k] = sum_rhs
        sums[5 + 3 * k] = sum_alpha
    for i in range(n):
        root[i] = root[i] ** 0.5
    sums[0] = loss
    sums[1] = total
    sums[2] = comp


@inner
def _affine_direction(t, dt, b, db, z, alpha, upper, s, xi, q, d_alpha, sums):
    """Predictor: the direction of alpha, the longest step, and the complementarity after any step.

    Complementarity after a step a is sums[0] + a sums[1] + a² sums[2].
    """
    n_planes, n = alpha.shape
    shrink = 1.0
    constant = 0.0
    slope = 0.0
    curve = 0.0
    for k in range(n_planes):
        for i in range(n):
            a = alpha[k, i]
            v = upper[k, i]
            slack = 1.0 - z[i] * (t[i] - b[k])
            da = q[k, i] * (slack - z[i] * (dt[i] - db[k]))
            ds = -s[k, i] - s[k, i] / a * da
            dxi = -xi[k, i] + xi[k, i] / v * da
            d_alpha[k, i] = da
            shrink = max(shrink, -da / a, da / v, -ds / s[k, i], -dxi / xi[k, i])
            constant += a * s[k, i] + v * xi[k, i]
            slope += a * ds + s[k, i] * da + v * dxi - xi[k, i] * da
            curve += da * ds - da * dxi
    sums[0] = constant
    sums[1] = slope
    sums[2] = curve
    return 1.0 / shrink


@inner
def _corrector_rows(target, t, b, z, alpha, upper, s, xi, q, d_alpha, g, row_rhs, plane_rhs):
    """Right-hand side with centring (target) and Mehrotra's second-order term, from the predictor's direction."""
    n_planes, n = alpha.shape
    row_rhs[:] = 0.0
    for k in range(n_planes):
        total = 0.0
        for i in range(n):
            a = alpha[k, i]
            v = upper[k, i]
            da = d_alpha[k, i]
            ds = -s[k, i] - s[k, i] / a * da
            dxi = -xi[k, i] + xi[k, i] / v * da
            slack = 1.0 - z[i] * (t[i] - b[k])
            g[k, i] = slack + (target - da * ds) / a - (target + da * dxi) / v
            rhs = z[i] * (a + q[k, i] * g[k, i])
            row_rhs[i] += rhs
            total += rhs
        plane_rhs[k] = total


@inner
def _corrected_direction(target, dt, db, z, alpha, upper, s, xi, q, g, d_alpha, d_s, d_xi):
    """Corrector: directions of alpha (replacing the predictor's), s and xi; returns the longest step."""
    n_planes, n = alpha.shape
    shrink = 0.0
    for k in range(n_planes):
        for i in range(n):
            a = alpha[k, i]
            v = upper[k, i]
            da = d_alpha[k, i]
            s_target = target - da * (-s[k, i] - s[k, i] / a * da)
            xi_target = target + da * (-xi[k, i] + xi[k, i] / v * da)
            da = q[k, i] * (g[k, i] - z[i] * (dt[i] - db[k]))
            ds = s_target / a - s[k, i] - s[k, i] / a * da
            dxi = xi_target / v - xi[k, i] + xi[k, i] / v * da
            d_alpha[k, i] = da
            d_s[k, i] = ds
            d_xi[k, i] = dxi
            shrink = max(shrink, -da / a, da / v, -ds / s[k, i], -dxi / xi[k, i])
    return 1.0 / max(shrink, 1e-300)


@inner
def _take_step(step, d_alpha, d_s, d_xi, alpha, upper, s, xi):
    """Move alpha, v, s and xi. alpha and v are kept apart: each is precise where it is the small one."""
    n_planes, n = alpha.shape
    for k in range(n_planes):
        for i in range(n):
            alpha[k, i] += step * d_alpha[k, i]
            upper[k, i] -= step * d_alpha[k, i]
            s[k, i] += step * d_s[k, i]
            xi[k, i] += step * d_xi[k, i]


@kernel(void, F8_2, F8, F8_2_out)
def scale_rows(X, factor, out):
    """Write diag(factor) X to out, several times faster than broadcasting for narrow matrices."""
    n, m = X.shape
    for i in range(n):
        for j in range(m):
            out[i, j] = X[i, j] * factor[i]


@kernel(f8, F8, F8, F8, F8_2)
def hinge_loss(t, b, z, cost):
    """Σ_k Σ_i cost · max(0, 1 - z (t - b_k)), computed row by row, hyperplane by hyperplane."""
    n_planes, n = cost.shape
    loss = 0.0
    for k in range(n_planes):
        for i in range(n):
            slack = 1.0 - z[i] * (t[i] - b[k])
            if slack > 0.0:
                loss += cost[k, i] * slack
    return loss


@kernel(void, F8, F8, F8, F8_2, F8_2, F8_2, F8_2, F8_2_out, F8_2_out, F8_out, F8_out)
def interior_system(t, b, z, alpha, upper, s, xi, q, rows, root, sums):
    """Entry point; see the body."""
    _interior_system(t, b, z, alpha, upper, s, xi, q, rows, root, sums)


@kernel(f8, F8, F8, F8, F8, F8, F8_2, F8_2, F8_2, F8_2, F8_2, F8_2_out, F8_out)
def affine_direction(t, dt, b, db, z, alpha, upper, s, xi, q, d_alpha, sums):
    """Entry point; see the body."""
    return _affine_direction(t, dt, b, db, z, alpha, upper, s, xi, q, d_alpha, sums)


@kernel(void, f8, F8, F8, F8, F8_2, F8_2, F8_2, F8_2, F8_2, F8_2, F8_2_out, F8_out, F8_out)
def corrector_rows(target, t, b, z, alpha, upper, s, xi, q, d_alpha, g, row_rhs, plane_rhs):
    """Entry point; see the body."""
    _corrector_rows(target, t, b, z, alpha, upper, s, xi, q, d_alpha, g, row_rhs, plane_rhs)


@kernel(f8, f8, F8, F8, F8, F8_2, F8_2, F8_2, F8_2, F8_2, F8_2, F8_2_out, F8_2_out, F8_2_out)
def corrected_direction(target, dt, db, z, alpha, upper, s, xi, q, g, d_alpha, d_s, d_xi):
    """Entry point; see the body."""
    return _corrected_direction(target, dt, db, z, alpha, upper, s, xi, q, g, d_alpha, d_s, d_xi)


@kernel(void, f8, F8_2, F8_2, F8_2, F8_2_out, F8_2_out, F8_2_out, F8_2_out)
def take_step(step, d_alpha, d_s, d_xi, alpha, upper, s, xi):
    """Entry point; see the body."""
    _take_step(step, d_alpha, d_s, d_xi, alpha, upper, s, xi)
