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
def _dot(X, i, point):
    total = 0.0
    for j in range(X.shape[1]):
        total += X[i, j] * point[0, j]
    return total


@inner
def _bend(distance, exponent):
    """The derivative of |d|^exponent over the exponent."""
    if distance == 0.0:
        return 0.0
    size = abs(distance) ** (exponent - 1.0)
    return size if distance > 0.0 else -size


@inner
def _pull(X, z, cost, i, share, score, point):
    """Slope of the slacks of row i in its score, ``share`` rows strong; adds their slopes in the two intercepts to point[2]."""
    m = X.shape[1]
    pull = 0.0
    for k in range(2):
        if 1.0 - z[i] * (score - point[0, m + k]) > 0.0:
            part = share * cost[k, i] * z[i]
            pull -= part
            point[2, m + k] += part
    return pull


@kernel(void, i8, I8_2, F8_2, F8, F8_2, F8, F8_2_out)
def asgd_pass(done, draws, X, z, cost, term, point):
    """Steps of averaged stochastic gradient descent, one per row of ``draws``: two treated and two control rows.

    ``term`` is the exponent and the weight of the energy distance, and the sizes of both groups. ``point`` (3, m + 2) holds
    w, b1, b2, then their mean over all steps, then room for a gradient; ``done`` steps have been taken before. A drawn row's
    slack gradient stands for its whole group, hence half the group's size as its factor. Step t has length 1/√t (Figure
    5.3.1).
    """
    m = X.shape[1]
    exponent = term[0]
    half = 0.5 * exponent * term[1]
    for place in range(draws.shape[0]):
        step = done + place + 1.0
        rate = 1.0 / step**0.5
        i0, i1, i2, i3 = draws[place, 0], draws[place, 1], draws[place, 2], draws[place, 3]
        s0 = _dot(X, i0, point)
        s1 = _dot(X, i1, point)
        s2 = _dot(X, i2, point)
        s3 = _dot(X, i3, point)
        point[2, m] = 0.0
        point[2, m + 1] = 0.0
        d02 = half * _bend(s0 - s2, exponent)
        d03 = half * _bend(s0 - s3, exponent)
        d12 = half * _bend(s1 - s2, exponent)
        d13 = half * _bend(s1 - s3, exponent)
        d01 = 2.0 * half * _bend(s0 - s1, exponent)
        d23 = 2.0 * half * _bend(s2 - s3, exponent)
        pull0 = _pull(X, z, cost, i0, 0.5 * term[2], s0, point) + d02 + d03 - d01
        pull1 = _pull(X, z, cost, i1, 0.5 * term[2], s1, point) + d12 + d13 + d01
        pull2 = _pull(X, z, cost, i2, 0.5 * term[3], s2, point) - d02 - d12 - d23
        pull3 = _pull(X, z, cost, i3, 0.5 * term[3], s3, point) - d03 - d13 + d23
        for j in range(m):
            point[2, j] = point[0, j] + pull0 * X[i0, j] + pull1 * X[i1, j] + pull2 * X[i2, j] + pull3 * X[i3, j]
        for j in range(m + 2):
            point[0, j] -= rate * point[2, j]
            point[1, j] += (point[0, j] - point[1, j]) / step
