"""Row sums of the power loss Σ cost · max(0, 1 - z (t - b))^p, p > 1, its gradient and curvature.

Layout as in ``kernels.hinge``: fixed are b (K,), z (n,) and cost (K, n); ``scores`` (2, n) holds t and its direction, and
``state`` (7, K, n) what the interior point moves.
"""

from __future__ import annotations

from upturn.kernels._jit import F8, F8_2, F8_2_out, F8_3_out, F8_out, f8, inner, kernel, void
from upturn.kernels.hinge import DT, T

ALPHA, S, Q, G, D_ALPHA, D_S, KEPT = range(7)  # of state
FIELDS = 7


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


@kernel(void, f8, f8, F8, F8, F8_2, F8_2_out, F8_2_out, F8_2_out, F8_out)
def power_system(p, floor, b, z, cost, scores, alpha, rows, sums):
    """Multipliers alpha = p cost h^(p-1), curvatures q = (p-1) alpha / max(h, floor), and their sums.

    ``rows`` (K + 2, n) gets q_1 .. q_K, z·Σ_k alpha and the square root of Σ_k q; ``sums`` the loss, then the K sums
    Σ_i q_ik and the K sums Σ_i z alpha_ik.
    """
    n_planes, n = cost.shape
    sums[:] = 0.0
    for i in range(n):
        rows[n_planes, i] = 0.0
        rows[n_planes + 1, i] = 0.0
    loss = 0.0
    for k in range(n_planes):
        for i in range(n):
            h = 1.0 - z[i] * (scores[T, i] - b[k])
            a = 0.0
            q = 0.0
            if h > 0.0:
                power = _powers(h, p)
                loss += cost[k, i] * h * power
                a = p * cost[k, i] * power
                q = (p - 1.0) * a / max(h, floor)
            alpha[k, i] = a
            rows[k, i] = q
            rows[n_planes, i] += z[i] * a
            rows[n_planes + 1, i] += q
            sums[1 + k] += q
            sums[1 + n_planes + k] += z[i] * a
    for i in range(n):
        rows[n_planes + 1, i] = rows[n_planes + 1, i] ** 0.5
    sums[0] = loss


@kernel(void, f8, f8, F8, F8, F8, F8_2, F8_2_out, F8_out)
def power_along(length, p, b, db, z, cost, scores, out):
    """Loss, slope and curvature of the loss at t + length dt, b + length db, along that line."""
    n_planes, n = cost.shape
    loss = 0.0
    slope = 0.0
    curve = 0.0
    for k in range(n_planes):
        for i in range(n):
            move = z[i] * (scores[DT, i] - db[k])
            h = 1.0 - z[i] * (scores[T, i] - b[k]) - length * move
            if h > 0.0:
                power = _powers(h, p)
                loss += cost[k, i] * h * power
                slope -= p * cost[k, i] * power * move
                curve += p * (p - 1.0) * cost[k, i] * power / h * move * move
    out[0] = loss
    out[1] = slope
    out[2] = curve


@kernel(void, f8, f8, F8, F8, F8_2, F8_2_out, F8_3_out, F8_2_out, F8_out)
def power_interior_system(p, target, b, z, cost, scores, state, rows, sums):
    """Row weights and right-hand side of the primal-dual step, centred on alpha s = target.

    The slack is a function of its multiplier, xi = (alpha / p cost)^(1/(p-1)): steep in xi is flat in alpha, so a row
    on its margin (any alpha, xi nearly 0) is as tame as any other. ``rows`` (K + 3, n) gets q_1 .. q_K,
    z·Σ(alpha + q g), z·Σ alpha and the square root of Σ q; ``sums`` [loss, Σ alpha, Σ alpha s, Σ alpha xi], then K sums
    each of q, of z (alpha + q g) and of z alpha.
    """
    n_planes, n = cost.shape
    sums[:] = 0.0
    for i in range(n):
        rows[n_planes, i] = 0.0
        rows[n_planes + 1, i] = 0.0
        rows[n_planes + 2, i] = 0.0
    for k in range(n_planes):
        for i in range(n):
            a = state[ALPHA, k, i]
            s = state[S, k, i]
            xi = (a / (p * cost[k, i])) ** (1.0 / (p - 1.0))
            slack = 1.0 - z[i] * (scores[T, i] - b[k])
            q = a / (s + xi / (p - 1.0))
            g = slack - xi + target / a
            rhs = z[i] * (a + q * g)
            state[Q, k, i] = q
            state[G, k, i] = g
            rows[k, i] = q
            rows[n_planes, i] += rhs
            rows[n_planes + 1, i] += z[i] * a
            rows[n_planes + 2, i] += q
            if slack > 0.0:
                sums[0] += cost[k, i] * slack * _powers(slack, p)
            sums[1] += a
            sums[2] += a * s
            sums[3] += a * xi
            sums[4 + k] += q
            sums[4 + n_planes + k] += rhs
            sums[4 + 2 * n_planes + k] += z[i] * a
    for i in range(n):
        rows[n_planes + 2, i] = rows[n_planes + 2, i] ** 0.5


@kernel(f8, f8, f8, F8, F8, F8_2_out, F8_3_out)
def power_interior_direction(p, target, db, z, scores, state):
    """The directions of alpha and s; returns the longest step.

    It keeps both positive and lets no slack grow by more than e^10 at once, where its law is too steep to follow.
    """
    n_planes, n = state.shape[1], state.shape[2]
    shrink = 0.0
    for k in range(n_planes):
        for i in range(n):
            a = state[ALPHA, k, i]
            s = state[S, k, i]
            da = state[Q, k, i] * (state[G, k, i] - z[i] * (scores[DT, i] - db[k]))
            ds = target / a - s - s / a * da
            state[D_ALPHA, k, i] = da
            state[D_S, k, i] = ds
            shrink = max(shrink, -da / a, -ds / s, da / a / (10.0 * (p - 1.0)))
    return 1.0 / max(shrink, 1e-300)


@kernel(f8, f8, F8_2_out, F8_3_out)
def power_interior_step(length, scores, state):
    """Move t, alpha and s; returns Σ alpha s."""
    n_planes, n = state.shape[1], state.shape[2]
    for i in range(n):
        scores[T, i] += length * scores[DT, i]
    comp = 0.0
    for k in range(n_planes):
        for i in range(n):
            state[ALPHA, k, i] += length * state[D_ALPHA, k, i]
            state[S, k, i] += length * state[D_S, k, i]
            comp += state[ALPHA, k, i] * state[S, k, i]
    return comp
