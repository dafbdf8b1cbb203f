r"""Weights of a stack, a ≥ 0 and Σ a ≤ 1, from sums of products alone: by least squares, or by how sure each candidate's gain is.

Everything is a function of the Gram matrix of the columns

    free columns (what is always fitted: intercepts), candidates, response

so that a fold is left out by leaving its Gram matrix out. The first free column is 1 for every row, so the first entry of a matrix is the number of
its rows.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.optimize import nnls

from upturn._arrays import Bools, Floats

# The strongest leaves a hundredth of the weight: next to nothing of an effect, and still its order. Infinity is the free columns alone.
RIDGES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)


Weighting = Literal["least-squares", "exponential"]
LEAST = 0.01  # of the weight that exponential weights have together: an order is left even where no gain is
_FAINT = 0.5  # of the spread of another candidate, below which one may be left out
_SMALL_SHARE = 0.05  # of those weights, below which a candidate has none


def fit_weights(gram: Floats, n_free: int, ridge: float, weighting: Weighting = "least-squares") -> Floats:
    r"""Coefficients of all columns but the last, which is the response. By least squares,

    .. math::

        \min_{b,\,a} \; \lVert r - Z b - D a \rVert^2 + \rho \sum_j a_j^2 \lVert \tilde D_j \rVert^2
        \quad\text{under}\quad a \ge 0,\; \textstyle\sum_j a_j \le 1,

    with Z the free columns, D the candidates and D̃ what Z leaves of them. Scaled like that, the ridge does not depend on the
    units of a candidate. Exponential weights are a = s u of one scale s between a hundredth and 1, found in the same way, and

    .. math:: u_j \propto e^{t_j} / \lVert \tilde D_j \rVert, \qquad t_j = \sqrt n \, \tilde D_j \cdot r / (\lVert \tilde D_j \rVert \lVert \tilde r \rVert),

    the t-statistic of a candidate by itself; those with less than a twentieth of the shares have none. Where s would have to be above 1, candidates that vary less than half as much as another are left out, the
    faintest first and as many as makes the loss least: it is their small predictions that take up the weight.
    """
    n = len(gram) - 1 - n_free
    free, rest = slice(0, n_free), slice(n_free, None)
    inverse = np.linalg.pinv(gram[free, free], hermitian=True)
    left = gram[rest, rest] - gram[rest, free] @ inverse @ gram[free, rest]
    if np.isinf(ridge):
        a = np.zeros(n)
    elif weighting == "least-squares":
        a = _inside_simplex(left, ridge)
    else:
        a = _exponential(left, np.diag(gram)[rest], gram[0, 0], ridge)
    b = inverse @ (gram[free, -1] - gram[free, n_free:-1] @ a)
    return np.concatenate([b, a])


def _exponential(left: Floats, whole: Floats, rows: float, ridge: float) -> Floats:
    """Exponential weights; a candidate that tells nobody apart has none, and none has any if all are like that.

    ``whole`` are the squared lengths of the columns before the free ones were taken off.
    """
    size = np.diag(left)
    told = size[:-1] > 1e-12 * whole[:-1]
    if not told.any() or not size[-1] > 1e-12 * whole[-1]:
        return np.zeros(len(told))
    length, along, inside = np.sqrt(np.where(told, size[:-1], 1.0)), left[:-1, -1], left[:-1, :-1]
    t = np.sqrt(rows) * along / (length * np.sqrt(size[-1]))
    shares = np.where(told, np.exp(t - t[told].max()), 0.0)
    shares[shares < _SMALL_SHARE * shares.sum()] = 0.0

    def weigh(kept: Bools) -> tuple[Floats, float]:
        u = np.where(kept, shares / length, 0.0)
        u /= u.sum()
        scale = (u @ along) / ((1.0 + ridge) * (u @ inside @ u))
        return np.asarray(np.clip(scale, LEAST, 1.0) * u), float(scale)

    kept = shares > 0.0
    best, scale = weigh(kept)
    for j in np.argsort(length):
        if not kept[j]:
            continue
        if scale <= 1.0 or length[j] >= _FAINT * length[kept].max():
            break
        kept[j] = False
        a, scale = weigh(kept)
        if a @ inside @ a - 2.0 * a @ along < best @ inside @ best - 2.0 * best @ along:
            best = a
    return best


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


def fit_without_each(grams: Floats, n_free: int, ridge: float, weighting: Weighting = "least-squares") -> list[Floats]:
    """For every fold, coefficients learnt on all the others; ``grams`` holds the Gram matrix of each."""
    return [
        fit_weights(np.delete(grams, fold, axis=0).sum(axis=0), n_free, ridge, weighting) for fold in range(len(grams))
    ]


def choose_ridge(grams: Floats, n_free: int, weighting: Weighting = "least-squares") -> float:
    """The ridge whose weights, learnt on all folds but one, do best on that one; of equals the largest."""

    def cost(ridge: float) -> float:
        learnt = fit_without_each(grams, n_free, ridge, weighting)
        return sum(residual_sum(gram, coefficients) for gram, coefficients in zip(grams, learnt, strict=True))

    return min(reversed(RIDGES), key=cost)
