"""The rows of a margin problem, and where a solver stands on each of them.

The solvers in ``_interior`` and ``_newton`` never see a row. They ask these objects for sums over rows and for the longest
step that all rows allow, and tell them where to go. Sums of parts add up and the shortest of the parts' longest steps is the
whole's, so the rows may as well be partitions that live elsewhere: whatever has these methods will do. (``_batch`` walks many
small problems side by side, which no partition holds, and has arrays of its own; ``_band`` and certificates read ``data.X``.)

The interior point asks, in this order, once an iteration:

===================  ===================================================================================================
``system(b)``        the sums of Newton's system and of the gap (:class:`RowSums`)                                  add
``predict(dw, db)``  the predictor's longest step, and the bend of the complementarity along it                min, add
``correct(target)``  the corrector's right-hand side                                                                add
``direct(dw, db)``   the corrector's longest step                                                                   min
``step(length)``     go there                                                                                         -
===================  ===================================================================================================

and ``keep()`` to remember the multipliers of the best iterate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from upturn._arrays import Floats
from upturn._parallel import interruptible
from upturn._sparse import SparseMatrix
from upturn._sparse import scale_rows as sparse_rows
from upturn.kernels import hinge, power
from upturn.svm._problem import MarginData

LONG = 1 << 32  # multiplications in a product that takes about a second
BLOCK = 1 << 16  # numbers of X in a block of rows: half a megabyte, so a scaled copy stays in the cache


@dataclass(slots=True)
class RowSums:
    """Sums over rows, with q the rows' weights in Newton's system and h = 1 - z (x·w - b_k) their slacks.

    Attributes
    ----------
    gram : (m, m) array
        Xᵀ diag(Σ_k q_k) X.
    borders : (K + 2, m) array
        Xᵀ times q_1 .. q_K, times the right-hand side's rows, and times z Σ_k alpha_k; for Newton's method, which knows
        its right-hand side, (K + 1, m).
    weights, rhs, balance : (K,) arrays
        Σ q_k, the right-hand side of the b_k (not for Newton's method), and Σ z alpha_k.
    loss : float
    alpha, comp, slack : float
        Σ alpha, Σ alpha s (for p = 1 with v xi), and for p > 1 Σ alpha xi.
    """

    gram: Floats
    borders: Floats
    weights: Floats
    rhs: Floats
    balance: Floats
    loss: float
    alpha: float = 0.0
    comp: float = 0.0
    slack: float = 0.0


class MarginRows(Protocol):
    """What the interior point of the L1 machines asks of its rows."""

    n_columns: int
    n_planes: int
    n_margins: int  # rows times hyperplanes

    def system(self, b: Floats) -> RowSums:
        """Sums at the present point."""

    def predict(self, dw: Floats, db: Floats) -> tuple[float, float]:
        """Longest step of the predictor, and the square term of the complementarity along it."""

    def correct(self, target: float) -> tuple[Floats, Floats]:
        """Right-hand side of w and of b, centred on ``target``."""

    def direct(self, dw: Floats, db: Floats) -> float:
        """Longest step of the corrector."""

    def step(self, length: float) -> None:
        """Go ``length`` along the corrector's direction."""

    def keep(self) -> None:
        """Remember the multipliers."""


class _Local:
    """Rows in this process's memory, their scores t = x·w and the direction of those."""

    def __init__(self, data: MarginData, width: int) -> None:
        self.X, self.z, self.cost = data.X, data.z, data.cost
        self.n_planes, n = data.cost.shape
        self.n_columns, self.n_margins = data.X.shape[1], data.cost.size
        self._scores = np.zeros((2, n))
        self._rows = np.empty((width, n))  # what the kernels write for each row; the last one is the root of its weight
        self._length = max(256, BLOCK // max(self.n_columns, 1))
        self._scaled = np.empty((0 if isinstance(data.X, SparseMatrix) else min(self._length, n), self.n_columns))
        self.summing = True  # False while steps are gone again of which the sums are known

    def _products(self) -> tuple[Floats, Floats]:
        """Xᵀ diag(Σ q) X and rows · X in one pass, in blocks of rows fixed by the shape alone."""
        if not self.summing:
            return np.empty((0, 0)), np.empty((0, 0))
        if isinstance(self.X, SparseMatrix):
            rooted = sparse_rows(self.X, self._rows[-1])
            long = 16 * self.X.nnz**2 > LONG * len(self.X) or self.n_columns > 2048
            product = interruptible(_gram, rooted) if long else _gram(rooted)
            return product, np.ascontiguousarray(self._rows[:-1] @ self.X)
        gram, borders = self._block_products(0)
        for start in range(self._length, self.X.shape[0], self._length):
            more_gram, more_borders = self._block_products(start)
            gram += more_gram
            borders += more_borders
        return gram, borders

    def _block_products(self, start: int) -> tuple[Floats, Floats]:
        X, rows = self.X[start : start + self._length], self._rows[:, start : start + self._length]
        scaled = self._scaled[: X.shape[0]]
        hinge.scale_rows(X, rows[-1], scaled)
        if scaled.shape[0] * scaled.shape[1] ** 2 > LONG:
            return interruptible(np.matmul, scaled.T, scaled), rows[:-1] @ X
        return scaled.T @ scaled, rows[:-1] @ X

    def _move(self, dw: Floats) -> None:
        if isinstance(self.X, SparseMatrix):
            self._scores[hinge.DT] = self.X @ dw
        else:
            self.X.dot(dw, out=self._scores[hinge.DT])


def _gram(X: SparseMatrix) -> Floats:
    gram: Floats = (X.T @ X).toarray(order="C")
    return gram


class HingeRows(_Local):
    """Rows of an L1 problem for the interior point (:class:`MarginRows`)."""

    def __init__(self, data: MarginData) -> None:
        super().__init__(data, data.cost.shape[0] + 3)
        n_planes, n = data.cost.shape
        self._state = start_state(data.cost)
        self._b, self._sums = np.zeros((1, n_planes)), np.empty((1, 3 + 3 * n_planes))
        self._target, self._length_out, self._reach = np.zeros(1), np.zeros(1), np.empty((1, 2))
        self._row_rhs, self._plane_rhs = np.empty((1, n)), np.empty((1, n_planes))
        self._one = self._scores[:, None, :], self._rows[None]  # as the kernels see them: a batch of one

    @property
    def kept(self) -> Floats:
        """The multipliers remembered."""
        kept: Floats = self._state[hinge.KEPT]
        return kept

    def keep(self) -> None:
        """Remember the multipliers."""
        self._state[hinge.KEPT] = self._state[hinge.ALPHA]

    def system(self, b: Floats) -> RowSums:
        """Sums at the present point."""
        K = self.n_planes
        self._b = b[None]
        hinge.interior_system(self.z, self._b, self._one[0], self._state, self._one[1], self._sums)
        gram, borders = self._products()
        sums = self._sums[0]
        loss, alpha, comp = sums[: hinge.PLANES].tolist()
        weights, rhs, balance = sums[3 : 3 + K], sums[3 + K : 3 + 2 * K], sums[3 + 2 * K :]
        return RowSums(gram, borders, weights, rhs, balance, loss, alpha, comp)

    def predict(self, dw: Floats, db: Floats) -> tuple[float, float]:
        """Longest step of the predictor, and the square term of the complementarity along it."""
        self._move(dw)
        hinge.predict(self.z, self._b, db[None], self._one[0], self._state, self._reach)
        reach, bend = self._reach[0].tolist()
        return reach, bend

    def correct(self, target: float) -> tuple[Floats, Floats]:
        """Right-hand side of w and of b, centred on ``target``."""
        self._target[0] = target
        hinge.correct(self._target, self.z, self._b, self._one[0], self._state, self._row_rhs, self._plane_rhs)
        return self._row_rhs[0] @ self.X, self._plane_rhs[0]

    def direct(self, dw: Floats, db: Floats) -> float:
        """Longest step of the corrector."""
        self._move(dw)
        hinge.direct(self._target, self.z, db[None], self._one[0], self._state, self._length_out)
        return float(self._length_out[0])

    def step(self, length: float) -> None:
        """Go ``length`` along the corrector's direction."""
        self._length_out[0] = length
        hinge.take_step(self._length_out, self._one[0], self._state)


def start_state(cost: Floats) -> Floats:
    """Where the interior point begins, for costs of shape (planes, n): alpha = v = cost / 2, s = 1, xi = 2."""
    state = np.empty((hinge.FIELDS, *cost.shape))
    np.multiply(cost, 0.5, out=state[hinge.ALPHA])
    state[hinge.UPPER] = state[hinge.ALPHA]
    state[hinge.S], state[hinge.XI] = 1.0, 2.0
    return state


class PowerRows(_Local):
    """Rows of an Lp problem for Newton's method: multipliers and slacks follow from the scores."""

    def __init__(self, data: MarginData, p: float, floor: float, w: Floats) -> None:
        super().__init__(data, data.cost.shape[0] + 2)
        self._p, self._floor = p, floor
        self._scores[hinge.T] = self.X @ w
        self.alpha = np.empty_like(data.cost)
        self._sums, self._line = np.empty(1 + 2 * self.n_planes), np.empty(3)

    def system(self, b: Floats) -> RowSums:
        """Sums at the present point."""
        sums, K = self._sums, self.n_planes
        power.power_system(
            self._p, self._floor, b, self.z, self.cost, self._scores, self.alpha, self._rows, sums
        )  # fmt: skip
        gram, borders = self._products()
        return RowSums(gram, borders, sums[1 : 1 + K], sums[1 + K :], sums[1 + K :], float(sums[0]))

    def direct(self, dw: Floats) -> None:
        """Turn to a direction."""
        self._move(dw)

    def along(self, length: float, b: Floats, db: Floats) -> tuple[float, float]:
        """Slope and curvature of the loss at ``length`` along the direction."""
        power.power_along(length, self._p, b, db, self.z, self.cost, self._scores, self._line)
        return float(self._line[1]), float(self._line[2])

    def step(self, length: float) -> None:
        """Go there."""
        self._scores[hinge.T] += length * self._scores[hinge.DT]


class BarrierRows(_Local):
    """Rows of an Lp problem for the interior point, whose unknowns are the multipliers and the distances from the margin."""

    def __init__(self, data: MarginData, p: float) -> None:
        super().__init__(data, data.cost.shape[0] + 3)
        self._p, self._target = p, 0.0
        self._state = np.empty((power.FIELDS, *data.cost.shape))
        self._state[power.ALPHA] = p * data.cost * 2.0 ** (p - 1.0)  # slack 2 at score 0
        self._state[power.S] = 1.0
        self._sums = np.empty(4 + 3 * self.n_planes)
        self.comp = float(self._state[power.ALPHA].sum())

    @property
    def kept(self) -> Floats:
        """The multipliers remembered."""
        kept: Floats = self._state[power.KEPT]
        return kept

    def keep(self) -> None:
        """Remember the multipliers."""
        self._state[power.KEPT] = self._state[power.ALPHA]

    def system(self, b: Floats, target: float) -> RowSums:
        """Sums at the present point, centred on alpha s = ``target``."""
        self._target, sums, K = target, self._sums, self.n_planes
        power.power_interior_system(
            self._p, target, b, self.z, self.cost, self._scores, self._state, self._rows, sums
        )  # fmt: skip
        gram, borders = self._products()
        loss, alpha, comp, slack = sums[:4].tolist()
        weights, rhs, balance = sums[4 : 4 + K], sums[4 + K : 4 + 2 * K], sums[4 + 2 * K :]
        return RowSums(gram, borders, weights, rhs, balance, loss, alpha, comp, slack)

    def direct(self, dw: Floats, db: Floats) -> float:
        """Longest step."""
        self._move(dw)
        return float(power.power_interior_direction(self._p, self._target, db, self.z, self._scores, self._state))

    def step(self, length: float) -> float:
        """Go ``length`` along the direction; returns Σ alpha s."""
        return float(power.power_interior_step(length, self._scores, self._state))
