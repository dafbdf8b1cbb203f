r"""Weights of a stack: least squares under a ≥ 0 and Σ a ≤ 1, from sums of products alone.

Everything is a function of the Gram matrix of the columns

    free columns (what is always fitted: intercepts), candidates, response

so that a fold is left out by leaving its Gram matrix out.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from upturn._arrays import Floats

# The strongest leaves a hundredth of the weight: next to nothing of an effect, and still its order. Infinity is the free columns alone.
RIDGES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)


def fit_weights(gram: Floats, n_free: int, ridge: float) -> Floats:
    r"""Coefficients of all columns but the last, which is the response:

    .. math::

        \min_{b,\,a} \; \lVert r - Z b - D a \rVert^2 + \rho \sum_j a_j^2 \lVert \tilde D_j \rVert^2
        \quad\text{under}\quad a \ge 0,\; \textstyle\sum_j a_j \le 1,

    with Z the free columns, D the candidates and D̃ what Z leaves of them. Scaled like that, the ridge does not depend on the
    units of a candidate.
    """
    n = len(gram) - 1 - n_free
    free, rest = slice(0, n_free), slice(n_free, None)
    inverse = np.linalg.pinv(gram[free, free], hermitian=True)
    left = gram[rest, rest] - gram[rest, free] @ inverse @ gram[free, rest]
    a = np.zeros(n) if np.isinf(ridge) else _inside_simplex(left, ridge)
    b = inverse @ (gram[free, -1] - gram[free, n_free:-1] @ a)
    return np.concatenate([b, a])


def _inside_simplex(gram: Floats, ridge: float) -> Floats:
    """The weights, exactly: with a slack that makes them add up to 1, the nearest point of a simplex.

    The point of least norm in the hull of columns N_j = D_j − r is, up to its scale, the non-negative x that minimises
    ‖N x‖² + (1'x − 1)²: their optimality conditions are the same.
    """
    n, length = len(gram) - 1, gram[-1, -1]
    if n == 0 or not length > 0:
        return np.zeros(n)
    gram = gram / length
    gram[np.arange(n), np.arange(n)] *= 1.0 + ridge
    size, direction = np.linalg.eigh(gram)
    root = np.sqrt(np.maximum(size, 0.0))[:, None] * direction.T  # root' root is the Gram matrix
    columns = np.column_stack([root[:, :n], np.zeros(n + 1)]) - root[:, n:]
    x, _ = nnls(np.vstack([columns, np.ones(n + 1)]), np.append(np.zeros(n + 1), 1.0))
    return np.asarray(x[:n] / x.sum())


def residual_sum(gram: Floats, coefficients: Floats) -> float:
    """‖r − columns · coefficients‖² from the Gram matrix."""
    v = np.append(-coefficients, 1.0)
    return float(v @ gram @ v)


def fit_without_each(grams: Floats, n_free: int, ridge: float) -> list[Floats]:
    """For every fold, coefficients learnt on all the others; ``grams`` holds the Gram matrix of each."""
    return [fit_weights(np.delete(grams, fold, axis=0).sum(axis=0), n_free, ridge) for fold in range(len(grams))]


def choose_ridge(grams: Floats, n_free: int) -> float:
    """The ridge whose weights, learnt on all folds but one, do best on that one; of equals the largest."""

    def cost(ridge: float) -> float:
        learnt = fit_without_each(grams, n_free, ridge)
        return sum(residual_sum(gram, coefficients) for gram, coefficients in zip(grams, learnt, strict=True))

    return min(reversed(RIDGES), key=cost)
