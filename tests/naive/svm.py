"""Naive twins of the SVM family, and a generator of easy and nasty problems.

Nothing here is clever: objectives and duals are written from the papers' formulas, pair sums visit every pair.
"""

from __future__ import annotations

import numpy as np

from upturn.svm._problem import MarginData

KINDS = (
    "plain",
    "unscaled",
    "duplicated",
    "separable",
    "zero",
    "one-sided",
    "wide",
    "weighted",
    "far",
    "constant",
    "tiny-C",
    "huge-C",
)


def margin_problem(seed: int, kind: str = "plain", n: int | None = None, m: int | None = None, planes: int = 2):
    """A random problem of a kind; costs as (3.1.3), times weights where the kind asks for them."""
    rng = np.random.default_rng((seed, KINDS.index(kind)))
    n = int(rng.integers(12, 120)) if n is None else n
    m = int(rng.integers(1, 9)) if m is None else m
    C = float(10.0 ** rng.uniform(-2, 2))
    ratio = float(rng.uniform(1.0, 2.5))
    if kind == "wide":
        n, m = 15, 40
    X = rng.normal(size=(n, m))
    lean = X @ rng.normal(size=m) + 0.3
    z = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-lean)), 1.0, -1.0)
    z[:2] = 1.0, -1.0
    weight = np.ones(n)
    if kind == "unscaled":
        X *= 10.0 ** rng.uniform(-5, 5, size=m)
    elif kind == "duplicated":
        half = n // 2
        X[half : 2 * half], z[half : 2 * half] = X[:half], z[:half]
        X = np.column_stack([X, X[:, :1]])
    elif kind == "separable":
        z = np.where(X[:, 0] > np.median(X[:, 0]), 1.0, -1.0)
        X[:, 0] += z
    elif kind == "zero":
        X[1::2], z = X[: 2 * (n // 2) : 2][: X[1::2].shape[0]], np.where(np.arange(n) % 2, 1.0, -1.0)
        if n % 2:
            X, z, weight, n = X[:-1], z[:-1], weight[:-1], n - 1
    elif kind == "one-sided":
        z[:] = 1.0 if seed % 2 else -1.0
    elif kind == "weighted":
        weight = rng.exponential(size=n)
    elif kind == "far":
        X += 1e4
    elif kind == "constant":
        X[:, 0] = 3.0
    elif kind == "tiny-C":
        C = 1e-6
    elif kind == "huge-C":
        C = 1e5
    cost = np.stack([np.where(z > 0, C, ratio * C), np.where(z > 0, ratio * C, C)])[:planes] * weight
    return MarginData(np.ascontiguousarray(X), z, np.ascontiguousarray(cost))


def primal(data, w, b, power=1.0):
    """The objective of (3.1.3) or (3.4.2), row by row."""
    total = 0.5 * float(np.dot(w, w))
    for k in range(data.cost.shape[0]):
        for i in range(data.z.shape[0]):
            slack = max(0.0, 1.0 - data.z[i] * (float(data.X[i] @ w) - b[k]))
            total += data.cost[k, i] * slack**power
    return total


def dual(data, alpha, power=1.0):
    """(3.2.6), and (3.4.13) with each denominator p·cost, the box and the equalities checked."""
    assert (alpha >= 0.0).all()
    for k in range(alpha.shape[0]):
        scale = float(alpha[k].sum())
        assert abs(float(data.z @ alpha[k])) <= 1e-9 * scale + 1e-300
    w = data.X.T @ (data.z * alpha.sum(axis=0))
    value = float(alpha.sum()) - 0.5 * float(w @ w)
    if power == 1.0:
        assert (alpha <= data.cost * (1 + 1e-12)).all()
        return value
    conjugate = alpha ** (power / (power - 1.0)) / (power * data.cost) ** (1.0 / (power - 1.0))
    return value - (power - 1.0) / power * float(conjugate.sum())


def pair_sum(scores, high, low, weight):
    """Σ_ij w_i w_j max(0, 1 - (s_i - s_j)) and its subgradient, every pair visited."""
    loss, slope = 0.0, np.zeros(len(scores))
    for i in high:
        for j in low:
            slack = 1.0 - (scores[i] - scores[j])
            if slack > 0.0:
                loss += weight[i] * weight[j] * slack
                slope[i] -= weight[i] * weight[j]
                slope[j] += weight[i] * weight[j]
    return loss, slope


def energy_sum(scores, treated, weight, exponent):
    """(5.2.3) with weights, every pair visited, and its gradient in the scores."""
    p = np.where(treated, weight, 0.0) / weight[treated].sum()
    q = np.where(treated, 0.0, weight) / weight[~treated].sum()
    gap = scores[:, None] - scores[None, :]
    distance = np.abs(gap) ** exponent
    value = 2 * p @ distance @ q - p @ distance @ p - q @ distance @ q
    signed = p - q
    pull = np.sign(gap) * np.abs(gap) ** (exponent - 1.0)
    return float(value), -2.0 * exponent * signed * (pull @ signed)
