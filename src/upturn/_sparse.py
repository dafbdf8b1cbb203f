"""Sparse matrices behind the gate: rows of float64 in CSR form, which know their length as arrays do.

Linear models take them as they are. Columns are scaled and never centred: intercepts absorb that, and zeros stay zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from upturn._arrays import Floats


class SparseMatrix(sparse.csr_array):  # type: ignore[misc]
    """A CSR matrix with a length; rows that are taken of it have one, too."""

    def __len__(self) -> int:
        return int(self.shape[0])


def is_sparse(X: Any) -> bool:
    """Whether something is a sparse matrix or array of scipy's kind."""
    return hasattr(X, "toarray") and hasattr(X, "tocsr")


def read_sparse(X: Any) -> SparseMatrix:
    """A sparse matrix of finite numbers: what is not stored is 0, and nothing is missing."""
    if getattr(X, "ndim", 2) != 2:
        raise ValueError(f"X is a sparse array of {X.ndim} dimension(s): expected 2, rows and columns")
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X is a sparse matrix of type {X.dtype}: expected numbers")
    matrix = SparseMatrix(X, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    if max(matrix.nnz, *matrix.shape) < 2**31 and matrix.indices.dtype != np.int32:  # others take no longer ones
        matrix = SparseMatrix(
            (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)), shape=matrix.shape
        )
    if not np.isfinite(matrix.data).all():
        row = int(np.searchsorted(matrix.indptr, np.flatnonzero(~np.isfinite(matrix.data))[0], side="right")) - 1
        raise ValueError(
            f"X is a sparse matrix that holds {int((~np.isfinite(matrix.data)).sum()):,} NaN or infinite value(s), the first in row {row}: in a sparse "
            "matrix nothing is missing; fill them, or pass a dense table, X.toarray()"
        )
    return matrix


def column_moments(X: SparseMatrix, weight: Floats | None) -> tuple[float, Floats, Floats]:
    """Weight of the rows, means of the columns, and the roots of their weighted sums of squared deviations."""
    n, width = X.shape
    row_weight = np.ones(n) if weight is None else weight
    heavy, total = np.repeat(row_weight, np.diff(X.indptr)), float(row_weight.sum())
    stored = np.bincount(X.indices, weights=heavy, minlength=width)
    mean = np.bincount(X.indices, weights=heavy * X.data, minlength=width) / total
    apart = X.data - mean[X.indices]
    squares = np.bincount(X.indices, weights=heavy * apart * apart, minlength=width)
    return total, mean, np.sqrt(squares + np.maximum(total - stored, 0.0) * mean * mean)


def column_variance(X: Any) -> Floats:
    """Variance of every column of a matrix, sparse or not."""
    if isinstance(X, SparseMatrix):
        total, _, norm = column_moments(X, None)
        return norm * norm / total
    return np.asarray(X.var(axis=0))


def scale_columns(X: SparseMatrix, factor: Floats) -> SparseMatrix:
    """Every column times a number."""
    return SparseMatrix((X.data * factor[X.indices], X.indices, X.indptr), shape=X.shape)


def scale_rows(X: SparseMatrix, factor: Floats) -> SparseMatrix:
    """Every row times a number."""
    return SparseMatrix((X.data * np.repeat(factor, np.diff(X.indptr)), X.indices, X.indptr), shape=X.shape)


def beside(*parts: Any) -> SparseMatrix:
    """Matrices side by side."""
    return SparseMatrix(sparse.hstack([sparse.csr_array(part) for part in parts], format="csr"))


def dense(X: SparseMatrix, who: str, most: int = 1 << 28) -> Floats:
    """All of it, where it is not too large; ``who`` needs it."""
    if X.shape[0] * X.shape[1] > most:
        raise ValueError(
            f"X is a sparse matrix of {X.shape[0]:,} rows and {X.shape[1]:,} columns, and {who} needs all its numbers, {X.shape[0] * X.shape[1] * 8 / 2**30:.3g} GB: "
            f"take fewer columns first, for example with sklearn.decomposition.TruncatedSVD"
        )
    return np.ascontiguousarray(X.toarray())
