"""The door to the margin solvers: which one, on which form of the data.

Done here once for all of them: rows without weight leave, columns far from 0 are centred (exact: the intercepts
absorb it), hundreds of columns that mostly hold one value, such as those of levels, become sparse (by the same shift),
problems with more columns than rows are rotated into the space of the rows (exact: w lies in it), and
BLAS keeps to one thread, so that results do not depend on how many there are.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from upturn._arrays import Bools, Floats
from upturn._encode import Moments
from upturn._parallel import interruptible
from upturn._sparse import SparseMatrix
from upturn.svm import _band, _batch, _energy, _newton
from upturn.svm._problem import MarginData, MarginProblem, MarginSolution

DENSE = 1 << 24  # numbers of a sparse matrix that is solved as a dense one
THIN_COLUMNS, THIN_ROWS = 64, 2_000  # fewest of a dense matrix that may be solved as a sparse one
THIN = 200  # times fewer products of cells that it must have then
MOST_SIDE = 8_000  # of a square matrix of a sparse problem: half a gigabyte
Start = tuple[Floats, Floats]  # (w, b) of a neighbouring problem


@functools.cache
def _blas() -> list[Any]:
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which BLAS keeps to one thread."""
    before = [(library, library.get_num_threads()) for library in _blas()]
    changed = [(library, threads) for library, threads in before if threads != 1]
    for library, _ in changed:
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, threads in changed:
            library.set_num_threads(threads)


def solve(
    problem: MarginProblem, data: MarginData, energy: _energy.EnergyTerm | None = None, start: Start | None = None
) -> MarginSolution:
    """Solve a margin problem to ``problem.tol`` with the solver made for it.

    p = 1: interior point, inside a margin band when rows are many. p > 1: primal Newton. With an energy term, the
    quasi-Newton loop around them. ``start`` is (w, b) of a neighbouring problem.
    """
    live: Bools = np.asarray((data.cost > 0.0).any(axis=0))
    return Prepared(problem, data.X, data.z, live, energy).solve(data.cost, start)


class Prepared:
    """Rows in the form that the solvers work on, for any number of problems that differ in their costs alone.

    ``live`` are the rows that may have a cost above 0.
    """

    X: Any

    def __init__(
        self, problem: MarginProblem, X: Any, z: Floats, live: Bools, energy: _energy.EnergyTerm | None = None
    ) -> None:
        self._energy = energy if energy is not None and energy.balance > 0.0 else None
        if energy is not None:
            live = live | (energy.signed != 0.0)
        self._live = None if live.all() else np.flatnonzero(live)
        if self._live is not None:
            X, z = X[self._live], z[self._live]
            if self._energy is not None:
                self._energy = replace(self._energy, signed=self._energy.signed[self._live])
        self._mean: Floats | None = None
        self._rotation: Floats | None = None
        self._among_rows: tuple[SparseMatrix, Floats] | None = None
        if isinstance(X, SparseMatrix):
            X = X.toarray() if X.shape[0] * X.shape[1] <= DENSE else self._sparse(X, problem)
        self.problem, self.X, self.z = problem, X, z
        if isinstance(X, SparseMatrix):
            return
        if problem.intercept and self._among_rows is None and self._energy is None:
            thin = thinned(X)
            if thin is not None:
                self.X, self._mean = thin
                return
        if problem.intercept and len(X) and self._among_rows is None:
            moments = Moments.of(X)
            if far_from_0(moments):
                self._mean = moments.mean
                X = X - self._mean
        if X.shape[1] > X.shape[0] and problem.quadratic is None:
            self._rotation, triangle = interruptible(np.linalg.qr, X.T)
            X = triangle.T
            if problem.linear is not None:
                problem = replace(problem, linear=self._rotation.T @ problem.linear)
        self.problem, self.X, self.z = problem, np.ascontiguousarray(X), z

    def _sparse(self, X: SparseMatrix, problem: MarginProblem) -> Any:
        """A large sparse matrix as it is, or among its rows where they are fewer than its columns: w lies in their span.

        With X Xᵀ = U Λ Uᵀ, the rows of U √Λ have the products of those of X.
        """
        n, m = X.shape
        if min(n, m) > MOST_SIDE:
            raise ValueError(
                f"X is a sparse matrix of {n:,} rows and {m:,} columns, and the exact solver keeps a square matrix of the shorter side, of which it "
                f"takes up to {MOST_SIDE:,}: take fewer columns first, for example with sklearn.decomposition.TruncatedSVD or a "
                "vectorizer's max_features"
            )
        if m <= n or problem.quadratic is not None or problem.linear is not None:
            return X
        values, vectors = interruptible(np.linalg.eigh, (X @ X.T).toarray())
        kept = values > 1e-13 * max(float(values[-1]), 0.0)
        root = np.sqrt(values[kept])
        self._among_rows = X, vectors[:, kept] / root
        return vectors[:, kept] * root

    def solve(self, cost: Floats, start: Start | None = None) -> MarginSolution:
        """Solve the problem for these costs, of shape (K, number of all rows)."""
        data = MarginData(self.X, self.z, self._inside(cost))
        with one_thread():
            if self._energy is None:
                found = _margin(self.problem, data, self._start(start))
            else:
                found = _energy.solve(self.problem, data, self._energy, _margin, self._start(start))
        return self._outside(found, cost)

    def with_power(self, power: float, tol: float) -> Prepared:
        """The same rows with another exponent of the slacks, for the direction of w."""
        other = copy.copy(self)
        other.problem = replace(self.problem, power=power, tol=tol, for_direction=True)
        return other

    @property
    def small(self) -> bool:
        """Whether many problems are solved faster together, by ``solve_many``, than each from its neighbour's solution."""
        return self._energy is None and not isinstance(self.X, SparseMatrix) and _batch.suits(self.problem, self.X)

    def solve_many(self, costs: list[Floats]) -> Iterator[MarginSolution]:
        """Solve the problems of all these costs."""
        with one_thread():
            found = list(_batch.solve(self.problem, self.X, self.z, [self._inside(cost) for cost in costs]))
        return (self._outside(solution, cost) for solution, cost in zip(found, costs, strict=True))

    def _inside(self, cost: Floats) -> Floats:
        return cost if self._live is None else np.ascontiguousarray(cost[:, self._live])

    def _start(self, start: Start | None) -> Start | None:
        if start is None:
            return None
        w, b = start
        b = b if self._mean is None else b - float(self._mean @ w)
        if self._among_rows is not None:
            X, back = self._among_rows
            return back.T @ (X @ w), b
        return (w if self._rotation is None else self._rotation.T @ w), b

    def _outside(self, found: MarginSolution, cost: Floats) -> MarginSolution:
        """The solution in the coordinates and rows of the caller."""
        if self._live is not None:
            alpha = np.zeros_like(cost)
            alpha[:, self._live] = found.alpha
            found = replace(found, alpha=alpha)
        if self._rotation is not None:
            found = replace(found, coef=self._rotation @ found.coef)
        if self._among_rows is not None:
            X, back = self._among_rows
            found = replace(found, coef=np.asarray(X.T @ (back @ found.coef)))
        if self._mean is not None:
            shift = float(self._mean @ found.coef)
            found = replace(
                found,
                intercepts=found.intercepts + shift,
                intercept_low=found.intercept_low + shift,
                intercept_high=found.intercept_high + shift,
            )
        return found


def thinned(X: Floats) -> tuple[SparseMatrix, Floats] | None:
    """X less one value for each column, as a sparse matrix, and those values; None unless that spares most of the work.

    A column of a level holds its least value in nearly all rows: less that, a row has a few cells, and Xᵀ X so many squared. Other
    columns are centred.
    """
    n, m = X.shape
    if m < THIN_COLUMNS or n < max(THIN_ROWS, m):
        return None
    level = X.min(axis=0)
    common = 2 * np.count_nonzero(level == X, axis=0) > n
    if 4 * np.count_nonzero(common) < 3 * m:
        return None
    level[~common] = X[:, ~common].mean(axis=0)
    cells = level != X
    filled = np.count_nonzero(cells, axis=1)
    if THIN * np.square(filled).sum() > n * m * m or filled.sum() >= 2**31:
        return None
    rows, columns = np.nonzero(cells)
    ends = np.concatenate(([0], np.cumsum(filled)))
    values = X[rows, columns] - level[columns]
    return SparseMatrix((values, columns.astype(np.int32), ends.astype(np.int32)), shape=X.shape), level


def far_from_0(moments: Moments) -> bool:
    """Whether a column lies so far from 0 that it is centred first."""
    return bool((np.abs(moments.mean) * np.sqrt(moments.total) > moments.norm).any())


def _margin(problem: MarginProblem, data: MarginData, start: Start | None) -> MarginSolution:
    solver = _band.solve if problem.power == 1.0 else _newton.solve
    return solver(problem, data, start)
