"""SVM-upl: ½ ‖w‖² plus a pairwise hinge in each group, exactly and in O(n log n) per evaluation.

In the treated group every success should score above every failure by 1, in the control group the other way round;
with z = ±1 the label that is to score high is z = +1 in both (paper 003, (16)-(19)).

The objective is convex and piecewise linear plus quadratic, but with n²/4 pieces it looks smooth: L-BFGS comes close.
Each gradient is a cutting plane; the plane at w alone bounds the gap by ½ ‖∇‖². Where kinks stop L-BFGS short of the
tolerance, the pairs near their margin become the rows of an interior-point problem and all others are frozen; the
multipliers prove the gap for the full problem. Where too many pairs tie for that, Newton's method on a smoothed hinge goes
on, and a bundle of cutting planes ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from upturn._arrays import Floats, Indices, Ints
from upturn._parallel import interruptible
from upturn.kernels.pairwise import pair_hinge, pair_windows
from upturn.svm import _bundle, _interior, _smooth
from upturn.svm._problem import MarginData, MarginProblem, relative_gap

MOST_COLUMNS = 8_000  # above, no matrix of columns × columns is made (half a gigabyte)
MOST_NUMBERS = 5_000_000  # of the matrix of pairs in the interior point


@dataclass(frozen=True)
class PairGroup:
    """One group's rows to rank: ``high`` above ``low``, each pair at ``price`` times both weights."""

    high: Indices
    low: Indices
    price: float


@dataclass(frozen=True)
class PairData:
    """The rows of SVM-upl."""

    X: Floats
    weight: Floats
    groups: tuple[PairGroup, ...]

    @property
    def n_pairs(self) -> int:
        """How many pairs the objective sums over."""
        return sum(group.high.shape[0] * group.low.shape[0] for group in self.groups)


@dataclass(frozen=True)
class PairSolution:
    """The minimiser, its objective and the bound that proves it."""

    coef: Floats
    objective: float
    dual_bound: float
    gap: float
    iterations: int
    solver: str

    def improved(self, coef: Floats, objective: float, bound: float, iterations: int, solver: str) -> PairSolution:
        """The better of two points with the better of two bounds."""
        if objective > self.objective:
            coef, objective = self.coef, self.objective
        bound = max(bound, self.dual_bound)
        gap = relative_gap(objective, bound)
        return PairSolution(coef, objective, bound, gap, self.iterations + iterations, solver)


def pair_loss(data: PairData, scores: Floats) -> tuple[float, Floats]:
    """The pairwise hinge and its slope in every score."""
    loss, slope = 0.0, np.zeros(scores.shape[0])
    for group in data.groups:
        high, low = _ascending(scores, group.high), _ascending(scores, group.low)
        up, down = np.empty(high.shape[0]), np.empty(low.shape[0])
        part = pair_hinge(scores[high], data.weight[high], scores[low], data.weight[low], up, down)
        loss += group.price * part
        slope[high] += group.price * up
        slope[low] += group.price * down
    return loss, slope


def _ascending(scores: Floats, rows: Indices) -> Indices:
    return rows[np.argsort(scores[rows])]


def objective(data: PairData, w: Floats) -> tuple[float, Floats]:
    """½ ‖w‖² + loss, and the gradient."""
    loss, slope = pair_loss(data, data.X @ w)
    return 0.5 * float(w @ w) + loss, w + data.X.T @ slope


def solve(data: PairData, tol: float = 1e-8, max_iter: int = 1000, start: Floats | None = None) -> PairSolution:
    """Minimise to a relative gap of ``tol``, certified.

    With more columns than rows the problem is rotated into the space of the rows, where w lies: nothing of size columns × columns
    is ever made.
    """
    n, m = data.X.shape
    if m > n:
        rotation, triangle = interruptible(np.linalg.qr, data.X.T)
        inside = None if start is None else rotation.T @ start
        found = solve(replace(data, X=np.ascontiguousarray(triangle.T)), tol, max_iter, inside)
        return replace(found, coef=rotation @ found.coef)
    w = np.zeros(m) if start is None else start.copy()
    if data.n_pairs == 0:
        return PairSolution(np.zeros(m), 0.0, 0.0, 0.0, 0, "empty")
    room = int(np.clip(1_000_000 // max(m, 1), 10_000, 100_000))
    if data.n_pairs <= 5_000:
        return _by_pairs(data, w, tol, data.n_pairs, 0)
    scale = 1.0 / np.sqrt(1.0 + _curvature(data))

    def scaled(v: Floats) -> tuple[float, Floats]:
        value, slope = objective(data, v * scale)
        return value, slope * scale

    steps = 0
    for _ in range(3):
        first = objective(data, w)[0]
        small = float(np.sqrt(tol * first / m)) * float(scale.min())
        options = {"maxcor": 20, "ftol": 0.0, "gtol": small, "maxiter": max_iter, "maxls": 30}
        result = minimize(scaled, w / scale, jac=True, method="L-BFGS-B", options=options)
        w, steps = result.x * scale, steps + int(result.nit)
        value, slope = objective(data, w)
        bound = value - 0.5 * float(slope @ slope)
        gap = relative_gap(value, bound)
        if gap <= tol:
            return PairSolution(w, value, bound, gap, steps, "lbfgs")
        if value > first * (1.0 - 1e-6):
            break
    if m > MOST_COLUMNS:
        ended = _bundle.minimise(lambda v: objective(data, v), w, tol)
        found = PairSolution(w, value, bound, gap, steps, "lbfgs")
        return found.improved(ended.coef, ended.objective, ended.dual_bound, ended.evaluations, "planes")
    by_pairs = _by_pairs(data, w, tol, room, 0)
    found = PairSolution(
        w, value, bound, gap, steps, "lbfgs"
    )  # may be far better than what pairs near the margin come to
    found = found.improved(by_pairs.coef, by_pairs.objective, by_pairs.dual_bound, by_pairs.iterations, by_pairs.solver)
    if found.gap <= tol:
        return found
    hinge = _smooth.SmoothHinge(data.X, data.weight, [(g.high, g.low, g.price) for g in data.groups])
    smooth = _smooth.minimise(hinge, lambda v: objective(data, v)[0], found.coef, tol)
    found = found.improved(smooth.coef, smooth.objective, smooth.dual_bound, smooth.steps, "smooth")
    if found.gap <= tol:
        return found
    ended = _bundle.minimise(lambda v: objective(data, v), found.coef, tol)
    return found.improved(ended.coef, ended.objective, ended.dual_bound, ended.evaluations, "planes")


def _curvature(data: PairData) -> Floats:
    """A guess of the loss's second derivative per coefficient: a quarter of the pairs' variance, times their price."""
    total = np.zeros(data.X.shape[1])
    for group in data.groups:
        high, low = data.weight[group.high].sum(), data.weight[group.low].sum()
        total += 0.25 * group.price * high * low * (data.X[group.high].var(axis=0) + data.X[group.low].var(axis=0))
    return total


def _by_pairs(data: PairData, w: Floats, tol: float, room: int, steps: int) -> PairSolution:
    """Interior point on the ``room`` pairs nearest their margin, the rest frozen; again from where that ends.

    It gives up where more pairs tie than there is room for.
    """
    best: PairSolution | None = None
    inner = tol
    for _ in range(30):
        scores = data.X @ w
        pairs = _nearest_pairs(data, scores, room)
        if pairs is None:
            break
        i, j, cost = pairs
        rows = data.X[i] - data.X[j]
        loss, slope = pair_loss(data, scores)
        pull = data.X.T @ slope
        active = cost * ~(scores[j] <= scores[i] - 1.0)  # by the rule of the loss, to the last bit
        linear = pull + rows.T @ active  # minus the sum of cost·(x_i - x_j) over frozen pairs on the wrong side
        constant = max(loss - float(w @ pull) - float(active.sum()), 0.0)
        if cost.shape[0] == data.n_pairs:
            linear, constant = np.zeros_like(w), 0.0
        problem = MarginProblem(linear=linear, constant=constant, intercept=False, tol=inner)
        pairs_data = MarginData(rows, np.ones(cost.shape[0]), cost[None])
        state, multipliers = _interior.run_local(problem, pairs_data, 0.3 * inner)
        steps += state.iterations
        alpha = np.clip(multipliers[0], 0.0, cost)
        u = rows.T @ alpha - linear
        bound = constant + float(alpha.sum()) - 0.5 * float(u @ u)
        before = np.inf if best is None else best.objective
        # Far pairs that were frozen bend the objective too, so the whole step may be too long.
        for trial in (u, *(w + share * (state.w - w) for share in (1.0, 0.5, 0.25, 0.1, 0.03))):
            value = objective(data, trial)[0]
            if best is None or value < best.objective:
                best = PairSolution(trial, value, bound, relative_gap(value, bound), steps, "pairs")
        assert best is not None
        bound = max(bound, best.dual_bound)
        best = PairSolution(best.coef, best.objective, bound, relative_gap(best.objective, bound), steps, "pairs")
        if best.gap <= tol:
            return best
        if cost.shape[0] == data.n_pairs:
            inner *= 0.1
            if inner < 1e-4 * tol:
                return best
        elif best.objective > before * (1.0 - 0.1 * best.gap):  # too few pairs are free to move on
            if room >= MOST_NUMBERS // max(data.X.shape[1], 1):
                return best
            room *= 2
        w = best.coef
    if best is None:
        value, slope = objective(data, w)
        bound = value - 0.5 * float(slope @ slope)
        best = PairSolution(w, value, bound, relative_gap(value, bound), steps, "lbfgs")
    return best


def _nearest_pairs(data: PairData, scores: Floats, room: int) -> tuple[Indices, Indices, Floats] | None:
    """About ``room`` pairs, those whose score difference is closest to 1: rows i, j and the cost of each pair.

    None where many more tie.
    """
    sorted_rows = [(_ascending(scores, g.high), _ascending(scores, g.low)) for g in data.groups]

    def windows(width: float) -> list[tuple[Ints, Ints]]:
        found = []
        for high, low in sorted_rows:
            first, last = np.empty(high.shape[0], dtype=np.int64), np.empty(high.shape[0], dtype=np.int64)
            pair_windows(scores[high], scores[low], width, first, last)
            found.append((first, last))
        return found

    def count(width: float) -> int:
        return sum(int((last - first).sum()) for first, last in windows(width))

    width = 4.0 + 4.0 * float(np.ptp(scores))
    if data.n_pairs > room:
        low_width, high_width = 0.0, width
        for _ in range(40):
            width = 0.5 * (low_width + high_width)
            found = count(width)
            if 0.8 * room <= found <= room:
                break
            if found > room:
                high_width = width
            else:
                low_width = width
        else:
            width = low_width if low_width > 0.0 else width
            if count(width) > 2 * room:
                return None
    rows_i, rows_j, costs = [], [], []
    for group, (high, low), (first, last) in zip(data.groups, sorted_rows, windows(width), strict=True):
        sizes = last - first
        i = np.repeat(np.arange(high.shape[0]), sizes)
        j = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(first, sizes)
        rows_i.append(high[i])
        rows_j.append(low[j])
        costs.append(group.price * data.weight[high[i]] * data.weight[low[j]])
    return np.concatenate(rows_i), np.concatenate(rows_j), np.concatenate(costs)
