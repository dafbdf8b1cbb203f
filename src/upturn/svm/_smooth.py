"""Newton's method on the smoothed pairwise hinge, in O(n m²) a step, with a bound for the hinge itself.

The hinge of a pair with v = 1 - (s_i - s_j) is rounded off on 0 < v < h,

    φ(v) = 0,  v²/2h  or  v - h/2,    φ'(v) = v/h between 0 and 1.

Rows being sorted by score, the pairs of a row that lie on the rounded part are a stretch of the other side's rows: sums over
stretches give the gradient, and sums of the stretches' rows the Hessian, without a visit to any pair, be they millions that
tie. The multipliers price · φ'(v) are feasible for the unsmoothed problem whatever h is, so

    minimum ≥ Σ α - ½ ‖u‖²,    u = Σ α (x_i - x_j),

and as h falls the two meet: the gap is at most a quarter of h times the price of the pairs on the rounded part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from upturn._arrays import Floats, Indices
from upturn.kernels.pairwise import stretch_sums
from upturn.svm._problem import relative_gap

_FIRST = 0.2  # h where there is a good point to start from; 1 if there is none
_FALL = 0.2  # of h from stage to stage
_SHARPEST = 1e-7  # below, rounding of the scores would show in the bound
_MOST_STEPS = 60  # of a stage
_MOST_VISITED = (
    2_000_000  # rows of all stretches that are summed one by one; longer ones are differences of running sums
)


@dataclass(frozen=True)
class Side:
    """The rows of a group that are to score high, or low, by ascending score."""

    rows: Indices
    scores: Floats
    weight: Floats

    @cached_property
    def before(self) -> Floats:
        """The weight before each row, and of all."""
        return np.concatenate(([0.0], np.cumsum(self.weight)))


@dataclass(frozen=True)
class SmoothSolution:
    """The best point that was seen, its objective, the best bound, and the number of Newton steps."""

    coef: Floats
    objective: float
    dual_bound: float
    steps: int


class SmoothHinge:
    """The smoothed loss of pairs of rows; ``groups`` holds the rows to score high, those to score low, and the price."""

    def __init__(self, X: Floats, weight: Floats, groups: list[tuple[Indices, Indices, float]]) -> None:
        self.X, self.weight, self.groups = X, weight, groups

    def slopes(self, w: Floats, h: float) -> tuple[Floats, float]:
        """The slope in every score, and the sum of the multipliers."""
        slope, total = np.zeros(len(self.X)), 0.0
        for high, low, price in self._sides(w):
            first, last = _rounded(high, low, h)
            tied, inside = _stretch_sums(low, first, last, high.scores - 1.0)
            up = price * high.weight * (np.clip(inside / h, 0.0, tied) + low.before[-1] - low.before[last])
            slope[high.rows] -= up
            total += float(up.sum())
            first, last = _rounded_for_low(high, low, h)
            tied, inside = _stretch_sums(high, first, last, low.scores + 1.0)
            slope[low.rows] += price * low.weight * (np.clip(-inside / h, 0.0, tied) + high.before[first])
        return slope, total

    def curvature(self, w: Floats, h: float) -> Floats:
        """The Hessian of the loss."""
        m = self.X.shape[1]
        hessian = np.zeros((m, m))
        for high, low, price in self._sides(w):
            first, last = _rounded(high, low, h)
            some = np.flatnonzero(last > first)
            rows = self.X[high.rows[some]]
            hessian += price / h * (rows.T * (high.weight * (low.before[last] - low.before[first]))[some]) @ rows
            cross = price / h * (rows.T * high.weight[some]) @ self._sums_of_rows(low, first[some], last[some])
            hessian -= cross + cross.T
            first, last = _rounded_for_low(high, low, h)
            some = np.flatnonzero(last > first)
            rows = self.X[low.rows[some]]
            hessian += price / h * (rows.T * (low.weight * (high.before[last] - high.before[first]))[some]) @ rows
        return hessian

    def _sums_of_rows(self, side: Side, first: Indices, last: Indices) -> Floats:
        """The weighted sum of the rows of every stretch, none of them empty."""
        rows = side.weight[:, None] * self.X[side.rows]
        begin, sizes, mine = _distinct(first, last, len(side.rows))
        if sizes.sum() * rows.shape[1] <= 10 * _MOST_VISITED:
            visited, starts = _visits(begin, sizes)
            return np.asarray(np.add.reduceat(rows[visited], starts)[mine])
        sums = np.vstack([np.zeros(rows.shape[1]), np.cumsum(rows, axis=0)])
        return np.asarray(sums[last] - sums[first])

    def _sides(self, w: Floats) -> list[tuple[Side, Side, float]]:
        scores = self.X @ w

        def side(rows: Indices) -> Side:
            rows = rows[np.argsort(scores[rows])]
            return Side(rows, scores[rows], self.weight[rows])

        return [(side(high), side(low), price) for high, low, price in self.groups]


def _rounded(high: Side, low: Side, h: float) -> tuple[Indices, Indices]:
    """Per high row, the stretch of low rows on the rounded part; those after it pay in full."""
    first = np.searchsorted(low.scores, high.scores - 1.0, side="right")
    return first, np.maximum(first, np.searchsorted(low.scores, high.scores - 1.0 + h, side="left"))


def _rounded_for_low(high: Side, low: Side, h: float) -> tuple[Indices, Indices]:
    """Per low row, the stretch of high rows on the rounded part; those before it make it pay in full."""
    first = np.searchsorted(high.scores, low.scores + 1.0 - h, side="right")
    return first, np.maximum(first, np.searchsorted(high.scores, low.scores + 1.0, side="left"))


def _distinct(first: Indices, last: Indices, n: int) -> tuple[Indices, Indices, Indices]:
    """Where the different stretches begin, their sizes, and which of them is whose."""
    _, where, mine = np.unique(first * (n + 1) + last, return_index=True, return_inverse=True)
    return first[where], (last - first)[where], mine


def _visits(begin: Indices, sizes: Indices) -> tuple[Indices, Indices]:
    """All places of some stretches one after the other, and where each stretch starts among them."""
    starts = np.cumsum(sizes) - sizes
    return np.arange(sizes.sum()) - np.repeat(starts - begin, sizes), starts


def _stretch_sums(side: Side, first: Indices, last: Indices, origin: Floats) -> tuple[Floats, Floats]:
    """The weight of every stretch, and its weighted sum of scores less ``origin``."""
    inside = np.empty(len(first))
    stretch_sums(side.scores, side.weight, first, last, origin, _MOST_VISITED, inside)
    return side.before[last] - side.before[first], inside


def minimise(hinge: SmoothHinge, objective: Callable[[Floats], float], start: Floats, tol: float) -> SmoothSolution:
    """Minimise ½ ‖w‖² + the hinge by Newton steps on ever sharper smoothings of it; ``objective`` is the sharp one.

    The minimisers of the smoothings lie on a path that is nearly straight in h where it ends, so each stage starts from where
    the last two point to, if that is nearer its minimum than where it is.
    """
    w, best, value, bound, steps = start, start, objective(start), -np.inf, 0
    nothing = objective(np.zeros_like(start))
    if value > nothing:
        w, best, value = np.zeros_like(start), np.zeros_like(start), nothing
    h = _FIRST if value < nothing else 1.0
    path: list[tuple[float, Floats]] = []
    while h > _SHARPEST * _FALL:
        w, taken = _newton(hinge, _guess(hinge, path, w, h), h, tol * value)
        path = [*path[-1:], (h, w)]
        slope, total = hinge.slopes(w, h)
        u = -(hinge.X.T @ slope)
        before = relative_gap(value, bound) if np.isfinite(bound) else np.inf
        bound, steps = max(bound, total - 0.5 * float(u @ u)), steps + taken
        for point in (w, u):
            reached = objective(point)
            if reached < value:
                value, best = reached, point
        gap = relative_gap(value, bound)
        if gap <= tol or (h < 1e-4 and gap > 0.9 * before):
            break
        h *= _FALL
    return SmoothSolution(best, value, bound, steps)


def _guess(hinge: SmoothHinge, path: list[tuple[float, Floats]], w: Floats, h: float) -> Floats:
    """Where to start the next stage: where the last two minimisers point to, or the last one, by their gradients."""
    if len(path) < 2:
        return w
    (h_0, w_0), (h_1, w_1) = path
    ahead = w_1 + (h - h_1) / (h_1 - h_0) * (w_1 - w_0)
    here, there = (point + hinge.X.T @ hinge.slopes(point, h)[0] for point in (w, ahead))
    return ahead if there @ there < here @ here else w


def _newton(hinge: SmoothHinge, w: Floats, h: float, enough: float) -> tuple[Floats, int]:
    """Newton steps until half the squared gradient, which is what the bound loses by it, is a small part of ``enough``."""
    least, best = np.inf, w
    for step in range(_MOST_STEPS):
        gradient = w + hinge.X.T @ hinge.slopes(w, h)[0]
        half = 0.5 * float(gradient @ gradient)
        if half < least:
            least, best = half, w
        if half <= 0.05 * enough:
            return best, step
        hessian = hinge.curvature(w, h)
        hessian[np.diag_indices(len(w))] += 1.0
        try:
            direction = np.asarray(-np.linalg.solve(hessian, gradient), dtype=np.float64)
        except np.linalg.LinAlgError:
            direction = -gradient
        if not direction @ gradient < 0.0:
            direction = -gradient
        w = w + _length(hinge, w, direction, h, float(direction @ gradient)) * direction
    return best, _MOST_STEPS


def _length(hinge: SmoothHinge, w: Floats, direction: Floats, h: float, slope: float) -> float:
    """How far to go: 1 if the slope there is small or still falls, else by halving until it is small."""
    short, long, length = 0.0, 1.0, 1.0
    for _ in range(30):
        point = w + length * direction
        found = float(direction @ (point + hinge.X.T @ hinge.slopes(point, h)[0]))
        if abs(found) <= 0.3 * abs(slope) or (found < 0.0 and length == 1.0):
            break
        short, long = (short, length) if found > 0.0 else (length, long)
        length = 0.5 * (short + long)
    return length
