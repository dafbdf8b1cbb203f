"""What a margin solver is given and what it returns, and the certificate that judges it.

Every machine of this family except SVM-upl is one problem: K parallel hyperplanes (K = 1 for a standard machine,
2 for an uplift machine) that share w and have an intercept each,

    minimise over w, b:  ½ wᵀHw + fᵀw + Σ_k (e_k b_k + Σ_i cost_ki max(0, 1 - z_i (x_i·w - b_k))^p).

H is the identity, f, e and the constant are 0, unless a solver builds a reduced or a regularised problem of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from upturn._arrays import Floats, Indices
from upturn._sparse import SparseMatrix
from upturn.kernels.hinge import hinge_loss
from upturn.kernels.power import power_loss

ZERO_GAP = 1e-8  # w = 0 is optimal if its relative gap is at most this, whatever ``tol``
SORTED = 4096  # rows up to which all edges are sorted, once for every hyperplane


@dataclass(frozen=True)
class MarginData:
    """The rows: fixed while a solver works.

    Attributes
    ----------
    X : (n, m) C-contiguous, or sparse
    z : (n,) labels, -1.0 or +1.0
    cost : (K, n) positive; the price of one unit of slack of row i at hyperplane k
    """

    X: Floats
    z: Floats
    cost: Floats

    # What solvers and certificates ask of rows: sums, and objects that hold them. Rows in several places answer the same (``engines._margins``),
    # where scores and multipliers stay with the rows and what stands for them here is only passed on.

    @property
    def n_columns(self) -> int:
        """Columns."""
        return int(self.X.shape[1])

    @property
    def n_planes(self) -> int:
        """Hyperplanes."""
        return int(self.cost.shape[0])

    def rows(self, kind: Callable[..., Any], *how: Any) -> Any:
        """These rows as a solver moves them: an object of one of the kinds of ``_rows``."""
        return kind(self, *how)

    def label(self) -> float | None:
        """The label that all rows have, 1 if there is no row; None if they differ."""
        if self.z.shape[0] and np.any(self.z != self.z[0]):
            return None
        return float(self.z[0]) if self.z.shape[0] else 1.0

    def zeros(self) -> Any:
        """Multipliers that are 0."""
        return np.zeros_like(self.cost)

    def costs(self) -> tuple[Floats, Floats]:
        """The cost of all rows with the label +1, and of those with -1, at each hyperplane."""
        return by_label(self.cost, self.z)

    def scores(self, w: Floats) -> Any:
        """x·w."""
        return self.X @ w if np.any(w) else np.zeros(self.z.shape[0])

    def loss(self, power: float, scores: Any, b: Floats) -> float:
        """What slacks cost."""
        if power == 1.0:
            return float(hinge_loss(scores, b, self.z, self.cost))
        return float(power_loss(power, scores, b, self.z, self.cost))

    def intervals(self, scores: Any, b: Floats) -> tuple[Floats, Floats]:
        """The ends of the intervals of best intercepts for these scores, for p = 1; they may be near b."""
        low, high = b.copy(), b.copy()
        edges = scores - self.z
        order = np.argsort(edges, kind="stable") if edges.shape[0] <= SORTED else None
        for k, target in enumerate(self.costs()[1].tolist()):
            low[k], high[k] = intercept_interval(edges, self.cost[k], target, b[k], order)
        return low, high

    def feasible(self, alpha: Any, power: float, intercept: bool) -> Any:
        """The multipliers moved into the box and onto Σ z alpha_k = 0, by shrinking the heavier side."""
        alpha = into_box(alpha, self.cost, power)
        return shrunk(alpha, self.z, *by_label(alpha, self.z)) if intercept else alpha

    def dual_sums(self, alpha: Any, power: float) -> tuple[Floats, float, float]:
        """Σ z alpha x, Σ alpha, and for p > 1 Σ alpha (alpha / p cost)^(1 / (p - 1))."""
        u, bent = self.X.T @ (self.z * alpha.sum(axis=0)), 0.0
        if power > 1.0:
            ratio = alpha / (power * self.cost)
            bent = float((alpha * ratio ** (1.0 / (power - 1.0))).sum())
        return u, float(alpha.sum()), bent

    def take(self, rows: NDArray[Any], times: float = 1.0) -> MarginData:
        """The given rows alone, their costs multiplied by ``times``."""
        cost = np.ascontiguousarray(self.cost[:, rows])
        if times != 1.0:
            cost *= times
        X = self.X[rows]
        X = X if isinstance(X, SparseMatrix) else np.ascontiguousarray(X)
        return MarginData(X, np.ascontiguousarray(self.z[rows]), cost)


@dataclass(frozen=True)
class MarginProblem:
    """What to minimise, and how far.

    ``tol`` is the relative gap (objective - dual bound) / |objective| at which a solver may stop.
    """

    power: float = 1.0
    quadratic: Floats | None = None  # H, symmetric positive definite
    linear: Floats | None = None  # f
    plane_linear: Floats | None = None  # e
    constant: float = 0.0
    intercept: bool = True  # False: every b is 0
    tol: float = 1e-8
    max_iter: int = 100
    for_direction: bool = (
        False  # a short w is wanted for its direction: Newton's last point knows it better than a smaller gap
    )

    def regulariser(self, w: Floats) -> float:
        """½ wᵀHw + fᵀw + constant."""
        Hw = w if self.quadratic is None else self.quadratic @ w
        value = 0.5 * float(w @ Hw) + self.constant
        return value if self.linear is None else value + float(self.linear @ w)

    def gradient(self, w: Floats) -> Floats:
        """Hw + f."""
        Hw = w if self.quadratic is None else self.quadratic @ w
        return np.asarray(Hw if self.linear is None else Hw + self.linear)

    def conjugate(self, u: Floats) -> float:
        """The maximum over w of uᵀw - ½ wᵀHw - fᵀw - constant, the part of w in the dual."""
        u = u if self.linear is None else u - self.linear
        inverse = (
            u if self.quadratic is None else cho_solve(self._factor, u, check_finite=False)
        )  # a run to infinity ends as one
        return 0.5 * float(u @ inverse) - self.constant

    @cached_property
    def _factor(self) -> Any:
        return cho_factor(self.quadratic)


@dataclass(frozen=True)
class MarginSolution:
    """A minimiser with its proof: ``dual_bound`` is the dual objective at ``alpha``, which is exactly feasible.

    ``vanishing`` says that w = 0 is optimal. ``intercept_low`` and ``intercept_high`` bound the intercepts that are equally good for this w; ``intercepts``
    are their midpoints (the finite end where the other is infinite).
    """

    coef: Floats
    intercepts: Floats
    intercept_low: Floats
    intercept_high: Floats
    alpha: Floats = field(repr=False)
    objective: float
    dual_bound: float
    gap: float
    iterations: int
    solver: str
    history: tuple[float, ...] = ()
    vanishing: bool = False  # w = 0 is optimal, by the test of ``certified``
    undecided: bool = False  # the test needs a tighter bound
    exhausted: bool | None = (
        None  # its last stage ran out of iterations, and did not come to a stop; None if the solver does not know
    )


def relative_gap(objective: float, bound: float) -> float:
    """(objective - bound) / |objective|, and 0 where both are 0. Never divided by max(1, ·): C may be tiny."""
    difference = max(objective - bound, 0.0)
    return 0.0 if difference == 0.0 else difference / max(abs(objective), abs(bound))


def intercept_interval(
    edges: Floats, cost: Floats, target: float, near: float = math.nan, order: Indices | None = None
) -> tuple[float, float]:
    """All b that minimise Σ cost·max(0, 1 - z (score - b)) for one hyperplane.

    The slope in b jumps by cost_i at the edge score_i - z_i, from -target = -Σ_{z=-1} cost to Σ_{z=+1} cost, so the
    minimisers are a weighted quantile of the edges: a point, or the stretch between two edges where the slope is 0.
    Without the ``order`` of the edges, only those around ``near`` are sorted when the quantile is found among them.
    """
    total = float(cost.sum())
    slack = 1e-11 * total
    if target <= slack:
        return -math.inf, float(edges.min())
    if target >= total - slack:
        return float(edges.max()), math.inf
    below = 0.0
    if order is None:
        close = np.abs(edges - near) < 1e-3
        if close.any():
            below = float(cost[edges <= near - 1e-3].sum())
            if below < target - slack and target + slack < below + float(cost[close].sum()):
                edges, cost = edges[close], cost[close]
            else:
                below = 0.0
        order = np.argsort(edges, kind="stable")
    slope = cost[order].cumsum()
    low = int(slope.searchsorted(target - slack - below))
    high = int(slope.searchsorted(target + slack - below, side="right"))
    return float(edges[order[low]]), float(edges[order[min(high, order.shape[0] - 1)]])


def settle(low: float, high: float) -> float:
    """One fixed choice from an interval of intercepts: the middle, or the finite end."""
    if math.isinf(low):
        return high if math.isfinite(high) else 0.0
    return low if math.isinf(high) else 0.5 * (low + high)


def by_label(values: Floats, z: Floats) -> tuple[Floats, Floats]:
    """Sums over the rows with the label +1, and over those with -1, of each line of ``values``."""
    positive = (z > 0.0).astype(np.float64)
    return values @ positive, values @ (1.0 - positive)


def into_box(alpha: Floats, cost: Floats, power: float) -> Floats:
    """Multipliers between 0 and, for p = 1, the cost; a copy."""
    alpha = np.maximum(alpha, 0.0)
    if power == 1.0:
        np.minimum(alpha, cost, out=alpha)
    return alpha


def shrunk(alpha: Floats, z: Floats, ups: Floats, downs: Floats) -> Floats:
    """The multipliers, in place, with the heavier of both labels made as light as the other; ``ups`` and ``downs`` are their sums over all rows."""
    positive = (z > 0.0).astype(np.float64)
    negative = 1.0 - positive
    for row, up, down in zip(alpha, ups.tolist(), downs.tolist(), strict=True):
        if up > down:
            row *= positive * (down / up) + negative
        elif down > up:
            row *= negative * (up / down) + positive
    return alpha


def dual_value(problem: MarginProblem, data: MarginData, alpha: Any) -> float:
    """The dual objective, (3.2.6) for p = 1 and (3.4.13) with its first denominator corrected for p > 1."""
    p = problem.power
    u, total, bent = data.dual_sums(alpha, p)
    value = total - problem.conjugate(u)
    return value - (p - 1.0) / p * bent if p > 1.0 else value


def certified(
    problem: MarginProblem,
    data: MarginData,
    w: Floats,
    b: Floats,
    alpha: Any,
    iterations: int,
    solver: str,
    history: tuple[float, ...] = (),
    exhausted: bool | None = None,
) -> MarginSolution:
    """The solution with the best intercepts for w, its objective, and the bound that alpha proves.

    Only for problems without frozen rows (``plane_linear`` None), where shrinking alpha keeps it in its box.
    """
    n_planes = data.n_planes
    alpha = data.feasible(alpha, problem.power, problem.intercept)
    bound = dual_value(problem, data, alpha)
    low, high, objective = best_intercepts(problem, data, w, b)
    vanishing = undecided = False
    if problem.power == 1.0 and problem.linear is None:
        zero = value_at_zero(problem, data)
        vanishing = relative_gap(zero, bound) <= ZERO_GAP
        if not vanishing and relative_gap(zero, objective) <= ZERO_GAP:  # the optimum lies on either side of the line
            undecided = True
            vanishing = relative_gap(zero, 0.5 * (objective + bound)) <= ZERO_GAP
        if vanishing and (zero <= objective or relative_gap(zero, bound) <= problem.tol):
            w = np.zeros_like(w)
            low, high, objective = best_intercepts(problem, data, w, b)
    middle = np.array([settle(low[k], high[k]) for k in range(n_planes)])
    gap = relative_gap(objective, bound)
    return MarginSolution(
        w, middle, low, high, alpha, objective, bound, gap, iterations, solver, history, vanishing, undecided, exhausted
    )


def value_at_zero(problem: MarginProblem, data: MarginData) -> float:
    """The objective at w = 0 and the best b: with b = ±1 one label has the slack 0 and the other 2."""
    if not problem.intercept:
        return problem.constant + float(data.cost.sum())
    up, down = data.costs()
    return problem.constant + 2.0 * float(np.minimum(up, down).sum())


def best_intercepts(problem: MarginProblem, data: MarginData, w: Floats, b: Floats) -> tuple[Floats, Floats, float]:
    """The interval of best intercepts for w, and the objective there."""
    scores = data.scores(w)
    exact = problem.power == 1.0 and problem.intercept
    low, high = data.intervals(scores, b) if exact else (b.copy(), b.copy())
    middle = np.array([settle(low[k], high[k]) for k in range(b.shape[0])])
    return low, high, problem.regulariser(w) + data.loss(problem.power, scores, middle)


def one_sided(problem: MarginProblem, data: MarginData) -> MarginSolution | None:
    """The answer when every label is the same (or there is no row): w = 0, and every row on the right side."""
    if not problem.intercept or problem.linear is not None:
        return None
    label = data.label()
    if label is None:
        return None
    n_planes, positive = data.n_planes, label > 0.0
    low = np.full(n_planes, -math.inf if positive else 1.0)
    high = np.full(n_planes, -1.0 if positive else math.inf)
    edge = np.full(n_planes, -1.0 if positive else 1.0)
    w, alpha = np.zeros(data.n_columns), data.zeros()
    return MarginSolution(
        w, edge, low, high, alpha, problem.constant, problem.constant, 0.0, 0, "one-sided", vanishing=True
    )
