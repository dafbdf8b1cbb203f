"""Many small L1 problems at once, on the same rows: the points of a grid, whose costs alone differ.

The steps are those of ``_interior``, and the kernels are the same, but every call serves a batch of problems, and all products
with X are single products of matrices: Xᵀ diag(q) X is q times the products of all pairs of columns, which are made once. For a
few hundred rows most of the time of a fit is calls, so a batch takes a fraction of it.

Nothing rests on it: every answer is certified, and a problem that is not solved here goes to ``_interior``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from upturn._arrays import Bools, Floats
from upturn.kernels import hinge
from upturn.svm import _interior
from upturn.svm._problem import MarginData, MarginProblem, MarginSolution, certified, one_sided
from upturn.svm._rows import start_state

MOST_ROWS = 1500  # above, a warm start in a band is faster
MOST_PRODUCTS = 1 << 21  # numbers in the products of pairs of columns
BATCH = 1 << 17  # numbers in the state of a batch: a megabyte, which stays in the cache
MOST_ITERATIONS = 40  # hardly any problem needs more, and those that do are solved alone


def suits(problem: MarginProblem, X: Floats) -> bool:
    """Whether problems of this kind on these rows are solved in batches."""
    n, m = X.shape
    plain = problem.quadratic is None and problem.linear is None and problem.intercept and problem.power == 1.0
    return plain and n <= MOST_ROWS and n * m * (m + 1) // 2 <= MOST_PRODUCTS


def solve(problem: MarginProblem, X: Floats, z: Floats, costs: list[Floats]) -> Iterator[MarginSolution]:
    """Solve the problems of some costs, each of shape (K, n), to ``problem.tol``, certified."""
    trivial = one_sided(problem, MarginData(X, z, costs[0]))
    if trivial is not None:
        yield from (trivial for _ in costs)
        return
    products = _Products(X)
    size = max(8, BATCH // (hinge.FIELDS * costs[0].size))
    for start in range(0, len(costs), size):
        part = costs[start : start + size]
        w, b, alpha = run(problem, products, z, np.stack(part), 0.3 * problem.tol)
        for k, cost in enumerate(part):
            data = MarginData(X, z, cost)
            found = certified(problem, data, w[k], b[k], alpha[k], 0, "interior")
            yield found if found.gap <= problem.tol and not found.undecided else _interior.solve(problem, data)


class _Products:
    """X, and the products of all pairs of its columns."""

    def __init__(self, X: Floats) -> None:
        m = X.shape[1]
        first, second = np.tril_indices(m)
        self.X, self._pairs = X, X[:, first] * X[:, second]
        self._place = np.empty((m, m), np.intp)
        self._place[first, second] = self._place[second, first] = np.arange(len(first))

    def grams(self, q: Floats) -> Floats:
        """Xᵀ diag(q) X for every row of q."""
        return np.take(q @ self._pairs, self._place, axis=1)


class _Rows:
    """The rows of a batch; see ``_rows.HingeRows``."""

    def __init__(self, z: Floats, costs: Floats) -> None:
        B, K, n = costs.shape
        self.z, self.state = z, start_state(costs.reshape(B * K, n))
        self.scores, self.rows = np.zeros((2, B, n)), np.empty((B, K + 3, n))
        self.sums, self.reach, self.length = np.empty((B, 3 + 3 * K)), np.empty((B, 2)), np.empty(B)
        self.row_rhs, self.plane_rhs = np.empty((B, n)), np.empty((B, K))

    def take(self, kept: Bools) -> None:
        """Go on with some of the problems."""
        planes = np.repeat(kept, self.state.shape[1] // len(kept))
        self.state = np.ascontiguousarray(self.state[:, planes])
        self.scores = np.ascontiguousarray(self.scores[:, kept])
        for name in ("rows", "sums", "reach", "length", "row_rhs", "plane_rhs"):
            setattr(self, name, getattr(self, name)[kept])

    def alpha(self, of: Bools) -> Floats:
        """The multipliers of some problems."""
        B = len(of)
        n = self.state.shape[2]
        return np.asarray(self.state[hinge.ALPHA].reshape(B, -1, n)[of])


@np.errstate(all="ignore")
def run(
    problem: MarginProblem, products: _Products, z: Floats, costs: Floats, tol: float
) -> tuple[Floats, Floats, Floats]:
    """The best iterates: w (B, m), b (B, K) and alpha (B, K, n). A gap is measured as in ``_interior.measure``."""
    B, K, n = costs.shape
    X, m = products.X, products.X.shape[1]
    rows, b, w = _Rows(z, costs), np.zeros((B, K)), np.zeros((B, m))
    best_w, best_b, best_alpha, best_gap = w.copy(), b.copy(), np.zeros_like(costs), np.full(B, np.inf)
    live = np.arange(B)
    for _ in range(min(problem.max_iter, MOST_ITERATIONS)):
        hinge.interior_system(z, b, rows.scores, rows.state, rows.rows, rows.sums)
        borders = (rows.rows[:, :-1].reshape(-1, n) @ X).reshape(len(live), K + 2, m)
        loss, total, mu = rows.sums[:, : hinge.PLANES].T
        rhs_b, balance = (rows.sums[:, hinge.PLANES + k * K : hinge.PLANES + (k + 1) * K] for k in (1, 2))
        u = borders[:, K + 1]
        primal = 0.5 * _squares(w) + loss
        gap = np.abs(primal - total + 0.5 * _squares(u)) + ((1.0 + np.abs(b)) * np.abs(balance)).sum(axis=1)
        gap /= primal
        better = gap < best_gap[live]
        found = live[better]
        best_w[found], best_b[found], best_gap[found] = w[better], b[better], gap[better]
        best_alpha[found] = rows.alpha(better)
        going = (gap > tol) & np.isfinite(gap)
        if not going.all():
            if not going.any():
                break
            live, w, b, borders, mu, rhs_b = (a[going] for a in (live, w, b, borders, mu, rhs_b))
            rows.take(going)
        grams = products.grams(np.square(rows.rows[:, -1]))
        scale, matrix = np.empty((len(live), m + K)), np.empty((len(live), m + K, m + K))
        if not hinge.bordered(grams, borders, rows.sums, hinge.PLANES, 1.0, scale, matrix):
            break
        try:
            dw, db = _step(matrix, scale, borders[:, K] - w, -rhs_b)
            np.matmul(dw, X.T, out=rows.scores[hinge.DT])
            hinge.predict(z, b, db, rows.scores, rows.state, rows.reach)
            reach, bend = rows.reach.T
            after = np.maximum(mu * (1.0 - reach) + reach * reach * bend, 0.0)
            target = mu / (2.0 * K * n) * (after / mu) ** 3
            hinge.correct(target, z, b, rows.scores, rows.state, rows.row_rhs, rows.plane_rhs)
            dw, db = _step(matrix, scale, rows.row_rhs @ X - w, -rows.plane_rhs)
        except np.linalg.LinAlgError:
            break
        np.matmul(dw, X.T, out=rows.scores[hinge.DT])
        hinge.direct(target, z, db, rows.scores, rows.state, rows.length)
        length = np.minimum(1.0, np.maximum(0.995, 1.0 - mu / (K * n)) * rows.length)
        hinge.take_step(length, rows.scores, rows.state)
        w, b = w + length[:, None] * dw, b + length[:, None] * db
    return best_w, best_b, best_alpha


def _squares(v: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", v, v))


def _step(matrix: Floats, scale: Floats, rhs_w: Floats, rhs_b: Floats) -> tuple[Floats, Floats]:
    """Solve every Newton system for its own right-hand side."""
    m = rhs_w.shape[1]
    x = np.linalg.solve(matrix, (np.hstack([rhs_w, rhs_b]) * scale)[:, :, None])[:, :, 0] * scale
    return np.ascontiguousarray(x[:, :m]), np.ascontiguousarray(x[:, m:])
