"""Tests of a treatment-feature interaction: linear (F) and logistic (likelihood ratio) regressions in closed loops.

Both compare ``outcome ~ treatment + feature`` with ``outcome ~ treatment + feature + treatment × feature``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

from upturn._arrays import Floats

STEPS = 60  # Newton steps at most; three to eight are usual
SEPARATED = 30.0  # a logit beyond this is a probability of 0 or 1 to thirteen digits


def _designs(columns: Floats, arm: NDArray[np.uint8], n_arms: int) -> tuple[Floats, int]:
    """Return the larger design and how many of its first columns make the smaller one."""
    arms = (arm[:, None] == np.arange(n_arms + 1)).astype(np.float64)  # an intercept for each arm, control included
    crossed = [arms[:, [a]] * columns for a in range(1, n_arms + 1)]
    return np.hstack([arms, columns, *crossed]), n_arms + 1 + columns.shape[1]


def _independent(design: Floats, scale: Floats, tolerance: float = 1e-12) -> Floats:
    """Return an orthonormal basis of the column space, weighted by ``scale``: columns that add nothing are dropped.

    It comes from the eigenvectors of the small matrix of inner products; columns are brought to length 1 first.
    """
    weighted = design * scale[:, None]
    norms = np.linalg.norm(weighted, axis=0)
    weighted = weighted[:, norms > 0] / norms[norms > 0]
    values, vectors = np.linalg.eigh(weighted.T @ weighted)
    kept = values > tolerance * values[-1]
    basis: Floats = weighted @ (vectors[:, kept] / np.sqrt(values[kept]))
    return basis


def f_statistic(
    columns: Floats,
    arm: NDArray[np.uint8],
    n_arms: int,
    y: Floats,
    weights: Floats,
    rows: int | None = None,
    within: float = 0.0,
) -> tuple[float, int, int]:
    """Return the F statistic of the interaction terms and both its degrees of freedom.

    Where each row given stands for several that differ in their outcome only, which is then their mean, ``rows`` is how many there are
    and ``within`` the sum of squares of what they differ by.
    """
    root = np.sqrt(weights)
    design, n_small = _designs(columns, arm, n_arms)
    target = y * root
    residuals, ranks = [], []
    for part in (design[:, :n_small], design):
        basis = _independent(part, root)
        rest = target - basis @ (basis.T @ target)
        residuals.append(float(rest @ rest) + within)
        ranks.append(basis.shape[1])
    extra, free = ranks[1] - ranks[0], (int((root > 0).sum()) if rows is None else rows) - ranks[1]
    if extra <= 0 or free <= 0:
        return 0.0, 0, max(free, 0)
    explained = max(residuals[0] - residuals[1], 0.0)
    noise = max(residuals[1], np.finfo(float).eps * (float(target @ target) + within))
    return float((explained / extra) / (noise / free)), extra, free


def likelihood_ratio(
    columns: Floats, arm: NDArray[np.uint8], n_arms: int, y: Floats, weights: Floats
) -> tuple[float, int]:
    """Return twice the gain in log-likelihood by the interaction terms, and their number."""
    design, n_small = _designs(columns, arm, n_arms)
    present = (weights > 0).astype(np.float64)
    small, large = _independent(design[:, :n_small], present), _independent(design, present)
    extra = large.shape[1] - small.shape[1]
    if extra <= 0:
        return 0.0, 0
    gain = _log_likelihood(large, y, weights) - _log_likelihood(small, y, weights)
    return max(2.0 * gain, 0.0), extra


def _log_likelihood(basis: Floats, y: Floats, weights: Floats) -> float:
    """Return the largest log-likelihood of a logistic regression on this basis, by Newton's method.

    Under separation it has no maximum but a supremum: logits are then stopped where the likelihood no longer moves.
    """
    basis = basis * np.sqrt(len(y))
    beta = np.zeros(basis.shape[1])
    value = _value(basis @ beta, y, weights)
    for _ in range(STEPS):
        p = expit(np.clip(basis @ beta, -SEPARATED, SEPARATED))
        gradient = basis.T @ (weights * (y - p))
        hessian = (basis * (weights * np.maximum(p * (1 - p), 1e-10))[:, None]).T @ basis
        step = np.linalg.solve(hessian + 1e-12 * np.trace(hessian) * np.eye(len(beta)), gradient)
        size = 1.0
        while size > 1e-6:
            new = _value(basis @ (beta + size * step), y, weights)
            if new >= value:
                break
            size *= 0.5
        else:
            break
        beta = beta + size * step
        done = new - value <= 1e-12 * (1.0 + abs(value))
        value = new
        if done:
            break
    return value


def _value(logit: Floats, y: Floats, weights: Floats) -> float:
    p = expit(np.clip(logit, -SEPARATED, SEPARATED))
    return float(np.sum(weights * (xlogy(y, p) + xlogy(1.0 - y, 1.0 - p))))
