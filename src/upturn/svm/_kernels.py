"""Kernels as explicit features: the solvers only ever see a matrix.

With landmarks L and K_LL = V diag(λ) Vᵀ, the features φ(x) = k(x, L) V diag(λ)^(-1/2) have φ(x)·φ(x') = k(x, x') for
all rows in the span of the landmarks. When every training row is a landmark the machine is the exact kernel machine
(its w lies in that span); with fewer landmarks it is Nyström's approximation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from upturn._arrays import Floats, Indices
from upturn._parallel import interruptible
from upturn.kernels.hashing import LANDMARKS, words

_LONG = 1 << 22  # kernel values that take a good part of a second
NAMES = ("linear", "rbf", "poly", "precomputed")
EXACT_ROWS = 3000  # up to here every training row is a landmark
DEFAULT_LANDMARKS = 500


@dataclass(frozen=True)
class KernelMap:
    """A kernel, its landmarks and the projection onto features."""

    name: str
    gamma: float
    degree: float
    coef0: float
    landmarks: Floats
    projection: Floats

    @classmethod
    def fit(
        cls,
        X: Floats,
        name: str,
        gamma: float | str,
        degree: float,
        coef0: float,
        n_components: int | None,
        seed: np.uint64,
    ) -> KernelMap:
        """Choose the landmarks and factor their kernel matrix."""
        n = X.shape[0]
        if name == "precomputed":
            if X.shape[1] != n:
                raise ValueError(
                    f"kernel='precomputed' takes the square matrix of kernel values of the training rows, and X has "
                    f"shape {X.shape}"
                )
            rows = np.arange(n)
            scale, matrix, landmarks = 1.0, X, np.empty((0, 0))
        else:
            count = (n if n <= EXACT_ROWS else DEFAULT_LANDMARKS) if n_components is None else min(n_components, n)
            rows = np.arange(n) if count == n else _draw_rows(n, count, seed)
            spread = float(X.var())
            scale = 1.0 / (X.shape[1] * spread) if gamma == "scale" and spread > 0.0 else 1.0
            scale = scale if isinstance(gamma, str) else float(gamma)
            landmarks = np.unique(X[rows], axis=0)
            matrix = evaluate(name, landmarks, landmarks, scale, degree, coef0)
        if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-10 * float(np.abs(matrix).max())):
            raise ValueError("the kernel matrix is not symmetric: entry (i, j) must be the kernel of rows i and j")
        values, vectors = interruptible(np.linalg.eigh, 0.5 * (matrix + matrix.T))
        if values[0] < -1e-8 * max(values[-1], 1e-300):
            raise ValueError(
                f"the kernel matrix has a negative eigenvalue ({values[0]:.3g}, the largest is {values[-1]:.3g}): "
                "it is not a kernel; add a multiple of the identity, or use another gamma, degree or coef0"
            )
        kept = values > 1e-10 * max(values[-1], 1e-300)
        projection = np.ascontiguousarray(vectors[:, kept] / np.sqrt(values[kept]))
        return cls(name, scale, degree, coef0, np.ascontiguousarray(landmarks), projection)

    def against_landmarks(self, X: Floats) -> Floats:
        """k(x, L) for every row."""
        if self.name == "precomputed":
            return X
        return evaluate(self.name, X, self.landmarks, self.gamma, self.degree, self.coef0)

    def get_state(self) -> dict[str, Any]:
        """For a saved model."""
        names = ("name", "gamma", "degree", "coef0", "landmarks", "projection")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_state(cls, state: dict[str, Any], n_columns: int) -> KernelMap:
        """Rebuild and check a kernel map that was read from a file."""
        landmarks, projection = _matrix(state["landmarks"]), _matrix(state["projection"])
        name = state["name"]
        if name not in NAMES[1:]:
            raise ValueError(f"{name!r} is not a kernel")
        rows = n_columns if name == "precomputed" else landmarks.shape[0]
        misfit = name != "precomputed" and landmarks.shape[1] != n_columns
        if misfit or projection.shape[0] != rows:
            raise ValueError("the kernel's landmarks do not fit the columns")
        gamma, degree, coef0 = (float(state[key]) for key in ("gamma", "degree", "coef0"))
        if not np.isfinite([gamma, degree, coef0]).all():
            raise ValueError("the kernel's parameters are not finite")
        return cls(name, gamma, degree, coef0, landmarks, projection)


def _draw_rows(n: int, count: int, seed: np.uint64) -> Indices:
    """The ``count`` rows with the smallest hashes, in ascending order."""
    hashes = np.empty(n, np.uint64)
    words(seed, LANDMARKS, np.uint64(0), hashes)
    return np.sort(np.argpartition(hashes, count)[:count])


def _matrix(value: Any) -> Floats:
    array: Floats = np.asarray(value)
    if array.ndim != 2 or array.dtype != np.float64 or not np.isfinite(array).all():
        raise ValueError("a matrix of the kernel is damaged")
    return array


def evaluate(name: str, X: Floats, Y: Floats, gamma: float, degree: float, coef0: float) -> Floats:
    """The matrix of kernel values: exp(-γ‖x - y‖²), or (γ x·y + c)^d."""
    if len(X) * len(Y) > _LONG:
        return interruptible(_evaluate, name, X, Y, gamma, degree, coef0)
    return _evaluate(name, X, Y, gamma, degree, coef0)


def _evaluate(name: str, X: Floats, Y: Floats, gamma: float, degree: float, coef0: float) -> Floats:
    products = X @ Y.T
    if name == "poly":
        return np.asarray((gamma * products + coef0) ** degree)
    square = (X * X).sum(axis=1)[:, None] + (Y * Y).sum(axis=1) - 2.0 * products
    return np.asarray(np.exp(-gamma * np.maximum(square, 0.0)))
