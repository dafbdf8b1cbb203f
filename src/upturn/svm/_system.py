"""Newton's system in w and b, which every margin solver of this family ends in.

    [ H + Xᵀ diag(Σ_k q_k) X    -Xᵀ q_1  ...  -Xᵀ q_K ]
    [ ...                         diag(Σ_i q_ik)       ]

It is scaled to a unit diagonal (so the units of the columns do not matter), factored by Cholesky and, unless a rough answer
will do, refined once.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from upturn._arrays import Floats
from upturn.kernels.hinge import bordered
from upturn.svm._problem import MarginProblem
from upturn.svm._rows import RowSums

PANEL = 1024  # columns that LAPACK is given at once: Ctrl-C is heard between panels


def _cholesky(matrix: Floats) -> tuple[Floats, bool]:
    """The lower factor of a symmetric matrix, in the lower triangle alone, and whether the matrix is positive definite."""
    size = matrix.shape[0]
    if size <= 2 * PANEL:
        lower, info = dpotrf(matrix.T, lower=1, clean=0)  # symmetric: the transpose is what LAPACK stores
        return lower, info == 0
    lower = np.array(matrix.T, order="F")
    for start in range(0, size, PANEL):
        stop = min(start + PANEL, size)
        corner, info = dpotrf(lower[start:stop, start:stop], lower=1, clean=1)
        if info != 0:
            return lower, False
        lower[start:stop, start:stop] = corner
        for low in range(stop, size, PANEL):
            part = slice(low, min(low + PANEL, size))
            lower[part, start:stop] = dtrtrs(corner, lower[part, start:stop].T, lower=1)[0].T
        for low in range(stop, size, PANEL):
            part = slice(low, min(low + PANEL, size))
            lower[low:, part] -= lower[low:, start:stop] @ lower[part, start:stop].T
    return lower, True


class NewtonSystem:
    """The system of one problem; ``factor`` it anew in every iteration, then ``solve`` for as many right-hand sides as wanted."""

    def __init__(self, problem: MarginProblem, n_columns: int, n_planes: int) -> None:
        self._quadratic, self._columns, self._all_planes = problem.quadratic, n_columns, n_planes
        self._planes = n_planes if problem.intercept else 0
        size = n_columns + self._planes
        self._scale, self._scaled, self._lower = np.empty((1, size)), np.empty((1, size, size)), np.empty((0, 0))

    def factor(self, found: RowSums) -> bool:
        """Factor the system of these sums; returns whether it is finite.

        A matrix that rounding made indefinite gets a little more diagonal.
        """
        gram, ridge = found.gram, 1.0
        if self._quadratic is not None:
            gram, ridge = gram + self._quadratic, 0.0
        weights = found.weights[None]
        if not bordered(gram[None], found.borders[None], weights, 0, ridge, self._scale, self._scaled):
            return False
        nudge, matrix = 0.0, self._scaled[0]
        while True:
            self._lower, positive = _cholesky(matrix)
            if positive:
                return True
            nudge = max(10.0 * nudge, 1e-14)
            if not nudge < 1e3:
                return False
            matrix = self._scaled[0] + nudge * np.eye(matrix.shape[0])

    def solve(self, rhs_w: Floats, rhs_b: Floats, *, refine: bool = True) -> tuple[Floats, Floats]:
        """The step (Δw, Δb); Δb is 0 for a problem without intercepts."""
        m, scale = self._columns, self._scale[0]
        scaled = (np.concatenate((rhs_w, rhs_b)) if self._planes else rhs_w) * scale
        x = dpotrs(self._lower, scaled, lower=1)[0]
        if refine:
            x += dpotrs(self._lower, scaled - self._scaled[0].dot(x), lower=1)[0]
        x *= scale
        return x[:m], (x[m:] if self._planes else np.zeros(self._all_planes))
