"""Row updates of the L1 margin solvers: hinge slacks of one or two parallel hyperplanes, for B problems on the same rows.

Fixed are the labels ``z`` (n,), -1 or +1. ``b`` (B, K) are the intercepts. What moves with the rows is in two arrays:

``scores`` (2, B, n)
    t = x·w, and its direction dt.
``state`` (10, B K, n)
    for each row and hyperplane the quantities named below; the hyperplanes of a problem follow one another.

r = z (t - b) is the signed distance of a row from a hyperplane and h = 1 - r its slack. The interior point works on s
(distance kept from the margin), xi (slack), alpha (multiplier of the margin) and v = cost - alpha (multiplier of xi >= 0):

    r - 1 + xi - s = 0,    alpha s = mu,    v xi = mu.

Newton's step eliminates all four of them row by row, by q = 1 / (s / alpha + xi / v); what is left to the caller is one
system of size m + K built from the q's. In units of the multipliers a step da is up = da / alpha and down = da / v, and the
predictor's other directions are ds = -s (1 + up), dxi = -xi (1 - down): that saves most divisions.
"""

from __future__ import annotations

import math

from upturn.kernels._jit import F8, F8_2, F8_3, F8_2_out, F8_3_out, F8_out, b1, f8, i8, kernel, void

T, DT = 0, 1  # of scores
ALPHA, UPPER, S, XI, Q, G, D_ALPHA, D_S, D_XI, KEPT = range(10)  # of state; UPPER is v
FIELDS = 10
LOSS, TOTAL, COMP, PLANES = range(4)  # of sums; from PLANES on, K sums each of q, of the right-hand side and of z alpha


@kernel(void, F8, F8_2, F8_3_out, F8_3_out, F8_3_out, F8_2_out)
def interior_system(z, b, scores, state, rows, sums):
    """Row weights of the Newton system, and the sums that measure the gap.

    Fills q; ``rows`` (B, K + 3, n) with q_1 .. q_K, the predictor's right-hand side z·Σ_k(alpha + q h), z·Σ_k alpha, and
    the square root of Σ_k q. ``sums`` (B, 3 + 3 K) gets Σ cost·max(h, 0), Σ alpha, Σ (alpha s + v xi), then the K sums
    Σ q_k, the K right-hand sides of the b_k, and the K sums Σ z alpha_k.
    """
    n_problems, n_planes = b.shape
    n = state.shape[2]
    for p in range(n_problems):
        for i in range(n):
            rows[p, n_planes, i] = 0.0
            rows[p, n_planes + 1, i] = 0.0
            rows[p, n_planes + 2, i] = 0.0
        loss = 0.0
        total = 0.0
        comp = 0.0
        for k in range(n_planes):
            at = p * n_planes + k
            sum_q = 0.0
            sum_rhs = 0.0
            sum_alpha = 0.0
            for i in range(n):
                a = state[ALPHA, at, i]
                v = state[UPPER, at, i]
                s = state[S, at, i]
                xi = state[XI, at, i]
                slack = 1.0 - z[i] * (scores[T, p, i] - b[p, k])
                q = a * v / (s * v + xi * a)
                state[Q, at, i] = q
                rhs = z[i] * (a + q * slack)
                rows[p, k, i] = q
                rows[p, n_planes, i] += rhs
                rows[p, n_planes + 1, i] += z[i] * a
                rows[p, n_planes + 2, i] += q
                sum_q += q
                sum_rhs += rhs
                sum_alpha += z[i] * a
                loss += (a + v) * max(slack, 0.0)
                total += a
                comp += a * s + v * xi
            sums[p, PLANES + k] = sum_q
            sums[p, PLANES + n_planes + k] = sum_rhs
            sums[p, PLANES + 2 * n_planes + k] = sum_alpha
        for i in range(n):
            rows[p, n_planes + 2, i] = rows[p, n_planes + 2, i] ** 0.5
        sums[p, LOSS] = loss
        sums[p, TOTAL] = total
        sums[p, COMP] = comp


@kernel(void, F8, F8_2, F8_2, F8_3_out, F8_3_out, F8_2_out)
def predict(z, b, db, scores, state, out):
    """Predictor: the direction of alpha; ``out[:, 0]`` gets the longest step.

    With c = Σ (alpha s + v xi), a step a leaves c (1 - a) + a² out[:, 1]: the slope is -c whatever the direction is.
    """
    n_problems, n_planes = b.shape
    n = state.shape[2]
    for p in range(n_problems):
        shrink = 1.0
        curve = 0.0
        for k in range(n_planes):
            at = p * n_planes + k
            for i in range(n):
                slack = 1.0 - z[i] * (scores[T, p, i] - b[p, k])
                da = state[Q, at, i] * (slack - z[i] * (scores[DT, p, i] - db[p, k]))
                up = da / state[ALPHA, at, i]
                down = da / state[UPPER, at, i]
                state[D_ALPHA, at, i] = da
                shrink = max(shrink, -up, down, 1.0 + up, 1.0 - down)
                curve += da * (state[XI, at, i] * (1.0 - down) - state[S, at, i] * (1.0 + up))
        out[p, 0] = 1.0 / shrink
        out[p, 1] = curve


@kernel(void, F8, F8, F8_2, F8_3_out, F8_3_out, F8_2_out, F8_2_out)
def correct(target, z, b, scores, state, row_rhs, plane_rhs):
    """Right-hand side with centring (target) and Mehrotra's second-order term, from the predictor's direction."""
    n_problems, n_planes = b.shape
    n = state.shape[2]
    for p in range(n_problems):
        for i in range(n):
            row_rhs[p, i] = 0.0
        for k in range(n_planes):
            at = p * n_planes + k
            total = 0.0
            for i in range(n):
                a = state[ALPHA, at, i]
                per_a = 1.0 / a
                per_v = 1.0 / state[UPPER, at, i]
                up = state[D_ALPHA, at, i] * per_a
                down = state[D_ALPHA, at, i] * per_v
                slack = 1.0 - z[i] * (scores[T, p, i] - b[p, k])
                second = state[S, at, i] * up * (1.0 + up) + state[XI, at, i] * down * (1.0 - down)
                g = slack + target[p] * (per_a - per_v) + second
                state[G, at, i] = g
                rhs = z[i] * (a + state[Q, at, i] * g)
                row_rhs[p, i] += rhs
                total += rhs
            plane_rhs[p, k] = total


@kernel(void, F8, F8, F8_2, F8_3_out, F8_3_out, F8_out)
def direct(target, z, db, scores, state, out):
    """Corrector: directions of alpha (replacing the predictor's), s and xi; ``out`` gets the longest step."""
    n_problems, n_planes = db.shape
    n = state.shape[2]
    for p in range(n_problems):
        shrink = 1e-300
        for k in range(n_planes):
            at = p * n_planes + k
            for i in range(n):
                s = state[S, at, i]
                xi = state[XI, at, i]
                per_as = 1.0 / (state[ALPHA, at, i] * s)
                per_vx = 1.0 / (state[UPPER, at, i] * xi)
                up = state[D_ALPHA, at, i] * s * per_as
                down = state[D_ALPHA, at, i] * xi * per_vx
                da = state[Q, at, i] * (state[G, at, i] - z[i] * (scores[DT, p, i] - db[p, k]))
                new_up = da * s * per_as
                new_down = da * xi * per_vx
                ds = target[p] * per_as + up * (1.0 + up) - 1.0 - new_up  # in units of s
                dxi = target[p] * per_vx - down * (1.0 - down) - 1.0 + new_down  # in units of xi
                state[D_ALPHA, at, i] = da
                state[D_S, at, i] = ds * s
                state[D_XI, at, i] = dxi * xi
                shrink = max(shrink, -new_up, new_down, -ds, -dxi)
        out[p] = 1.0 / shrink


@kernel(void, F8, F8_3_out, F8_3_out)
def take_step(length, scores, state):
    """Move t, alpha, v, s and xi. alpha and v are kept apart: each is precise where it is the small one."""
    n_problems, n = scores.shape[1], scores.shape[2]
    n_planes = state.shape[1] // n_problems
    for p in range(n_problems):
        for i in range(n):
            scores[T, p, i] += length[p] * scores[DT, p, i]
        for at in range(p * n_planes, (p + 1) * n_planes):
            for i in range(n):
                move = length[p] * state[D_ALPHA, at, i]
                state[ALPHA, at, i] += move
                state[UPPER, at, i] -= move
                state[S, at, i] += length[p] * state[D_S, at, i]
                state[XI, at, i] += length[p] * state[D_XI, at, i]


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


@kernel(void, F8_2, F8, F8_2_out)
def scale_rows(X, factor, out):
    """Write diag(factor) X to out, several times faster than broadcasting for narrow matrices."""
    n, m = X.shape
    for i in range(n):
        for j in range(m):
            out[i, j] = X[i, j] * factor[i]


@kernel(b1, F8_3, F8_3, F8_2, i8, f8, F8_2_out, F8_3_out)
def bordered(gram, borders, sums, first, ridge, scale, out):
    """Newton matrices [[gram + ridge, -borders], [., diag(q)]] scaled to a unit diagonal, and the scales.

    The rows of ``borders`` are the Xᵀ q_k; as many count as ``out`` has room for. The Σ q_k are in ``sums`` from column
    ``first`` on. Returns whether the diagonals are finite.
    """
    n_problems, m, size = gram.shape[0], gram.shape[1], out.shape[1]
    finite = True
    for p in range(n_problems):
        for j in range(size):
            diagonal = gram[p, j, j] + ridge if j < m else sums[p, first + j - m]
            finite = finite and abs(diagonal) < math.inf
            scale[p, j] = 1.0 / max(diagonal, 1e-300) ** 0.5
            for i in range(j):
                if j < m:
                    entry = gram[p, j, i]
                elif i < m:
                    entry = -borders[p, j - m, i]
                else:
                    entry = 0.0
                entry *= scale[p, i] * scale[p, j]
                out[p, i, j] = entry
                out[p, j, i] = entry
            out[p, j, j] = diagonal * scale[p, j] * scale[p, j]
    return finite
