"""Székely-regularised machines: a margin problem plus balance · S(w), S the energy distance of the two groups' scores.

    S(w) = 2 E|s_T - s_C|^α - E|s_T - s_T'|^α - E|s_C - s_C'|^α,   s = x·w,   α in [1, 2)      (5.2.3)

With signed row weights c (the treated rows' sum to 1, the control rows' to -1), S = -Σ_ij c_i c_j |s_i - s_j|^α and
∂S/∂s_i = -2 α c_i Σ_j c_j sign(s_i - s_j) |s_i - s_j|^(α-1): one sorted sweep (``kernels.pairwise.energy_field``).

S is smooth but not convex. The outer loop replaces it by a convex quadratic model at the current point (its exact
gradient, a damped BFGS Hessian), which makes a margin problem with H and f for the solvers of this family, and
searches along the direction it gives. It ends when the margin solver *proves* that the model cannot improve the
objective by more than tol, relatively: then the point is stationary. That proof is the gap that is reported; as S is
not convex, it is not a proof of global optimality.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from upturn._arrays import Bools, Floats, Indices
from upturn._parallel import interruptible
from upturn._parameters import number
from upturn._sparse import column_variance
from upturn.kernels.pairwise import energy_field
from upturn.svm._problem import (
    ZERO_GAP,
    MarginData,
    MarginProblem,
    MarginSolution,
    best_intercepts,
    relative_gap,
    settle,
    value_at_zero,
)

Inner = Callable[[MarginProblem, MarginData, tuple[Floats, Floats] | None], MarginSolution]

_LONG = 1 << 20  # rows from which sorting takes a good part of a second
EXPONENT = number(least=1, below=2).named(
    "an exponent in [1, 2): at 2 the energy distance would see only the means, below 1 it cannot be minimised reliably"
)


@dataclass(frozen=True)
class EnergyTerm:
    """``balance`` · S(w), with signed row weights ``signed``."""

    signed: Floats
    exponent: float
    balance: float


def signed_weights(treated: Bools, weight: Floats | None = None) -> Floats:
    """+w_i / Σ_T w for treated rows, -w_i / Σ_C w for the others."""
    c = np.ones(treated.shape[0]) if weight is None else np.array(weight, dtype=np.float64)
    c[treated] /= c[treated].sum()
    c[~treated] /= -c[~treated].sum()
    return c


def ascending(scores: Floats) -> Indices:
    """The order of the scores, ties in that of the rows."""
    order: Indices = interruptible(_ascending, scores) if scores.shape[0] > _LONG else _ascending(scores)
    return order


def _ascending(scores: Floats) -> Indices:
    return np.argsort(scores, kind="stable")


def energy(scores: Floats, signed: Floats, exponent: float) -> tuple[float, Floats]:
    """S and its slope in every score."""
    return (
        interruptible(_energy, scores, signed, exponent)
        if scores.shape[0] > _LONG
        else _energy(scores, signed, exponent)
    )


def _energy(scores: Floats, signed: Floats, exponent: float) -> tuple[float, Floats]:
    order = _ascending(scores)
    field = np.empty(scores.shape[0])
    energy_field(scores[order], signed[order], exponent - 1.0, field)
    slope = np.empty_like(field)
    slope[order] = -2.0 * exponent * signed[order] * field
    return float(scores @ slope) / exponent, slope  # Euler: S is homogeneous of that degree


def solve(
    problem: MarginProblem,
    data: MarginData,
    term: EnergyTerm,
    inner: Inner,
    start: tuple[Floats, Floats] | None = None,
    max_outer: int = 200,
) -> MarginSolution:
    """Minimise the margin problem plus the energy term to a stationary point, by the margin solver ``inner``."""
    m = data.X.shape[1]
    first = inner(replace(problem, tol=max(problem.tol, 1e-6)), data, start)
    if first.vanishing and not np.any(first.coef):
        return replace(
            first, solver="energy"
        )  # S is 0 at w = 0 and nowhere below: what is best without it is best with it
    w, b, spent = first.coef, first.intercepts, first.iterations
    state = _Point.at(problem, data, term, w, b)
    hessian = _first_hessian(data, term, w)
    best: MarginSolution | None = None
    stalled, gap = 0, np.inf
    for outer in range(max_outer):
        H = np.eye(m) if problem.quadratic is None else problem.quadratic
        model = replace(
            problem,
            quadratic=H + hessian,
            linear=state.slope - hessian @ state.w + (0.0 if problem.linear is None else problem.linear),
            constant=problem.constant
            + state.energy
            - float(state.slope @ state.w)
            + 0.5 * float(state.w @ hessian @ state.w),
            tol=max(problem.tol, min(1e-5, 0.03 * gap)),
        )
        proposal = inner(model, data, (state.w, state.b))
        spent += proposal.iterations
        promise = state.value - proposal.dual_bound  # no point of the model is lower than dual_bound
        gap = max(promise, 0.0) / max(abs(state.value), abs(proposal.dual_bound), 1e-300)
        if best is None or state.value <= best.objective:
            best = _as_solution(problem, state, proposal, gap, spent)
        if gap <= problem.tol or stalled >= 10:
            break
        move, db = proposal.coef - state.w, proposal.intercepts - state.b
        predicted = state.value - proposal.objective
        step, following = 1.0, None
        for _ in range(25):
            following = _Point.at(problem, data, term, state.w + step * move, state.b + step * db)
            if following.value <= state.value - 1e-4 * step * max(predicted, 0.0):
                break
            step *= 0.5
        assert following is not None
        hessian = _damped_bfgs(hessian, following.w - state.w, following.slope - state.slope)
        improved = state.value - following.value
        stalled = 0 if improved > 0.1 * problem.tol * abs(state.value) else stalled + 1
        if improved > 0.0:
            state = following
        elif outer > 0:
            hessian *= 2.0
    assert best is not None
    if problem.power == 1.0 and problem.linear is None:
        zero = value_at_zero(problem, data)
        if zero <= best.objective or relative_gap(zero, best.objective) <= ZERO_GAP:  # w = 0 is as good
            at_zero = _Point.at(problem, data, term, np.zeros(m), best.intercepts)
            return replace(_as_solution(problem, at_zero, proposal, best.gap, spent), vanishing=True)
    return best


@dataclass(frozen=True)
class _Point:
    """The objective and the energy term's gradient (balance included) at w, with the best intercepts for w."""

    w: Floats
    b: Floats
    low: Floats
    high: Floats
    value: float
    energy: float
    slope: Floats

    @staticmethod
    def at(problem: MarginProblem, data: MarginData, term: EnergyTerm, w: Floats, b: Floats) -> _Point:
        scores = data.X @ w
        value, slope = energy(scores, term.signed, term.exponent)
        low, high, margin = best_intercepts(problem, data, w, b)
        middle = np.array([settle(low[k], high[k]) for k in range(b.shape[0])])
        extra = term.balance * value
        return _Point(w, middle, low, high, margin + extra, extra, term.balance * (data.X.T @ slope))


def _as_solution(
    problem: MarginProblem, state: _Point, proposal: MarginSolution, gap: float, spent: int
) -> MarginSolution:
    bound = state.value - gap * max(abs(state.value), abs(proposal.dual_bound))
    return MarginSolution(
        state.w, state.b, state.low, state.high, proposal.alpha, state.value, bound, gap, spent, "energy"
    )


def _first_hessian(data: MarginData, term: EnergyTerm, w: Floats) -> Floats:
    """A convex guess of the Hessian: what it would be for normal scores that differ a little in mean and spread.

    For normal scores with standard deviation σ, S at α = 1 is (Δmean)²/(σ√π) + (Δσ)²/(2σ√π) to second order, and at
    α = 2 it is 2 (Δmean)²; the factor between them is interpolated. A little ridge stands for all the rest.
    """
    scores = data.X @ w
    shares = np.maximum(term.signed, 0.0), np.maximum(-term.signed, 0.0)
    centred = [scores - share @ scores for share in shares]
    sigma = max(float(np.sqrt(0.5 * sum(share @ v**2 for share, v in zip(shares, centred, strict=True)))), 1e-6)
    mean_pull = data.X.T @ term.signed
    spread_pull = data.X.T @ (shares[0] * centred[0] - shares[1] * centred[1]) / sigma
    factor = 4.0 * term.balance * 0.28 ** (2.0 - term.exponent) * sigma ** (term.exponent - 2.0)
    ridge = 1e-2 * (column_variance(data.X) + 1e-12)
    rank_two = np.outer(mean_pull, mean_pull) + 0.5 * np.outer(spread_pull, spread_pull)
    return np.asarray(factor * (rank_two + np.diag(ridge)))


def _damped_bfgs(B: Floats, s: Floats, y: Floats) -> Floats:
    """Powell's damping keeps the model convex where S is not."""
    Bs = B @ s
    sBs, sy = float(s @ Bs), float(s @ y)
    if sBs <= 0.0 or not np.any(s):
        return B
    if sy < 0.1 * sBs:
        theta = 0.9 * sBs / (sBs - sy)
        y = theta * y + (1.0 - theta) * Bs
        sy = float(s @ y)
    updated = B - np.outer(Bs, Bs) / sBs + np.outer(y, y) / sy
    return np.asarray(0.5 * (updated + updated.T))
