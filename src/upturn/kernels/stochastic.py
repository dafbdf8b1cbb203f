"""Passes of the stochastic solvers of the SVM family, row by row."""

from __future__ import annotations

from upturn.kernels._jit import F8, F8_2, I8, I8_2, F8_2_out, F8_out, f8, i8, inner, kernel, void


@kernel(void, I8, F8_2, F8, F8_2, F8, f8, F8_2_out, F8_out, F8_out)
def dcd_pass(order, X, z, cost, norms, constant, alpha, w, b):
    """One pass of dual coordinate descent over (hyperplane, row) pairs in the given order.

    Each hyperplane's intercept is the weight of a column that is -constant at its own multipliers and 0 at the
    other's, so b_k = -constant² Σ z alpha_k and it is regularised a little.
    """
    n = X.shape[0]
    m = X.shape[1]
    for place in range(order.shape[0]):
        k = order[place] // n
        i = order[place] % n
        score = -b[k]
        for j in range(m):
            score += X[i, j] * w[j]
        slope = z[i] * score - 1.0
        before = alpha[k, i]
        after = min(max(before - slope / norms[i], 0.0), cost[k, i])
        if after != before:
            alpha[k, i] = after
            move = (after - before) * z[i]
            for j in range(m):
                w[j] += move * X[i, j]
            b[k] -= move * constant * constant


@inner
def _dot(X, i, w):
    total = 0.0
    for j in range(w.shape[0]):
        total += X[i, j] * w[j]
    return total


@inner
def _bend(distance, alpha):
    """The derivative of |d|^alpha over alpha."""
    if distance == 0.0:
        return 0.0
    size = abs(distance) ** (alpha - 1.0)
    return size if distance > 0.0 else -size


@kernel(i8, i8, I8_2, F8_2, F8, F8_2, i8, i8, f8, f8, F8_out, F8_out, F8_out, F8_out)
def asgd_pass(done, draws, X, z, cost, n_treated, n_control, alpha, balance, w, b, mean_w, mean_b):
    """Steps of averaged stochastic gradient descent, one per row of ``draws``: two treated and two control rows.

    A drawn row's slack gradient stands for its whole group, hence half the group's size as its factor. Step t has
    length 1/√t (Figure 5.3.1).
    """
    m = w.shape[0]
    for step in range(draws.shape[0]):
        done += 1
        rate = 1.0 / done**0.5
        g_b0 = 0.0
        g_b1 = 0.0
        pull0 = pull1 = pull2 = pull3 = 0.0
        s0 = _dot(X, draws[step, 0], w)
        s1 = _dot(X, draws[step, 1], w)
        s2 = _dot(X, draws[step, 2], w)
        s3 = _dot(X, draws[step, 3], w)
        for r in range(4):
            i = draws[step, r]
            s = s0 if r == 0 else s1 if r == 1 else s2 if r == 2 else s3
            share = 0.5 * (n_treated if r < 2 else n_control)
            pull = 0.0
            for k in range(2):
                if 1.0 - z[i] * (s - b[k]) > 0.0:
                    part = share * cost[k, i] * z[i]
                    pull -= part
                    if k == 0:
                        g_b0 += part
                    else:
                        g_b1 += part
            if r == 0:
                pull0 = pull
            elif r == 1:
                pull1 = pull
            elif r == 2:
                pull2 = pull
            else:
                pull3 = pull
        half = 0.5 * alpha * balance
        d02 = half * _bend(s0 - s2, alpha)
        d03 = half * _bend(s0 - s3, alpha)
        d12 = half * _bend(s1 - s2, alpha)
        d13 = half * _bend(s1 - s3, alpha)
        d01 = 2.0 * half * _bend(s0 - s1, alpha)
        d23 = 2.0 * half * _bend(s2 - s3, alpha)
        pull0 += d02 + d03 - d01
        pull1 += d12 + d13 + d01
        pull2 += -d02 - d12 - d23
        pull3 += -d03 - d13 + d23
        for j in range(m):
            g = (
                w[j]
                + pull0 * X[draws[step, 0], j]
                + pull1 * X[draws[step, 1], j]
                + pull2 * X[draws[step, 2], j]
                + pull3 * X[draws[step, 3], j]
            )
            w[j] -= rate * g
            mean_w[j] += (w[j] - mean_w[j]) / done
        b[0] -= rate * g_b0
        b[1] -= rate * g_b1
        mean_b[0] += (b[0] - mean_b[0]) / done
        mean_b[1] += (b[1] - mean_b[1]) / done
    return done
