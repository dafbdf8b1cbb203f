"""The margin band: L1 problems with many rows, solved on the few that matter.

A row far on the right side of its margins has alpha = 0 and one far on the wrong side alpha = cost, whatever the
exact solution is. So:

    solve a sample  ->  on 8 times the rows keep those near a margin, freeze the others  ->  ...  ->  all rows,

and at the top add the rows that were frozen on the wrong side until none is left. Frozen rows enter the reduced
problem as a linear term. The gap that is reported is always the full problem's, with every row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools, Floats
from upturn.kernels.hashing import BAND, words
from upturn.kernels.hinge import hinge_loss
from upturn.svm import _interior
from upturn.svm._problem import MarginData, MarginProblem, MarginSolution, certified, one_sided

SMALL = 6000  # rows below which the interior point alone is faster
SMALL_WARM = 1500  # the same, when there is a point to start from
GROWTH = 8
COARSEST = 1500  # rows of the first sample, at most
STRAY = 0.01  # share of rows frozen on the wrong side above which a band is not narrowed
LOOSE = 5e-4  # the gap that is asked for before the last band


def solve(problem: MarginProblem, data: MarginData, start: tuple[Floats, Floats] | None = None) -> MarginSolution:
    """Solve an L1 problem to ``problem.tol``, certified on all rows.

    ``start`` is (w, b) of a neighbouring problem; it replaces the samples.
    """
    n, m = data.X.shape
    if n <= (SMALL if start is None else SMALL_WARM) or n <= 20 * m:
        return _interior.solve(problem, data)
    answer = one_sided(problem, data)
    if answer is not None:
        return answer
    if start is not None and np.ptp(data.X @ start[0]) > 1e-3:  # where w = 0 every row is on a margin: no band helps
        warm = _on_all_rows(problem, data, _Walk(*start, width=0.2, spent=0))
        if warm is not None:
            return warm
    chosen = _nested_samples(n)
    depth = 1
    while n // GROWTH**depth > COARSEST:
        depth += 1
    loose = replace(problem, tol=max(problem.tol, LOOSE))
    walk: _Walk | None = None
    for level in range(depth, 0, -1):
        rows = np.flatnonzero(chosen >= level)
        sample = data.take(rows, float(n) / max(rows.shape[0], 1))
        if np.all(sample.z == sample.z[:1]):
            continue
        if walk is None:
            state, _ = _interior.run_local(loose, sample, loose.tol)
            walk = _Walk(state.w, state.b, 4.0 * float(np.sqrt(m / rows.shape[0])), state.iterations)
        else:
            walk = _climb(loose, sample, walk)
    found = None if walk is None else _on_all_rows(problem, data, walk)
    return _interior.solve(problem, data) if found is None else found


@dataclass(frozen=True)
class _Walk:
    """A point on the way up: how far scores may still move (``width``), and the iterations spent."""

    w: Floats
    b: Floats
    width: float
    spent: int


def _nested_samples(n: int) -> NDArray[np.uint8]:
    """For each row the deepest level whose sample holds it: a hash of the row number, so order does not matter."""
    hashes = np.empty(n, np.uint64)
    words(np.uint64(0), BAND, np.uint64(0), hashes)
    level = np.zeros(n, dtype=np.uint8)
    for depth in range(1, 12):
        level[hashes % np.uint64(GROWTH**depth) == 0] = depth
    return level


def _at(data: MarginData, scores: Floats, b: Floats, width: float) -> tuple[Bools, Floats]:
    """Rows within ``width`` of a margin, and for every row and hyperplane the multiplier it has when frozen."""
    keep = np.zeros(scores.shape[0], dtype=bool)
    frozen = np.empty_like(data.cost)
    for k in range(b.shape[0]):
        slack = 1.0 - data.z * (scores - b[k])
        keep |= np.abs(slack) < width
        np.multiply(data.cost[k], slack > 0.0, out=frozen[k])
    return keep, frozen


def _reduced(
    problem: MarginProblem, data: MarginData, keep: Bools, frozen: Floats
) -> tuple[_interior.InteriorState, Floats]:
    """Solve for the kept rows with the others frozen; returns the state and the multipliers of all rows."""
    alpha = np.where(keep, 0.0, frozen)
    linear = -(data.X.T @ (data.z * alpha.sum(axis=0)))
    smaller = replace(
        problem,
        linear=linear if problem.linear is None else linear + problem.linear,
        plane_linear=alpha @ data.z,
        constant=problem.constant + float(alpha.sum()),
    )
    rows = np.flatnonzero(keep)
    state, alpha[:, rows] = _interior.run_local(smaller, data.take(rows), 0.3 * problem.tol)
    return state, alpha


def _wrong_side(data: MarginData, scores: Floats, b: Floats, alpha: Floats, keep: Bools) -> Bools:
    """The frozen rows that are now on the other side of a margin."""
    wrong = np.zeros(keep.shape[0], dtype=bool)
    for k in range(b.shape[0]):
        wrong |= (data.z * (scores - b[k]) < 1.0) != (alpha[k] > 0.0)
    return wrong & ~keep


def _climb(problem: MarginProblem, sample: MarginData, walk: _Walk) -> _Walk:
    """Move a point from one sample to the next larger one, loosely."""
    n = sample.z.shape[0]
    before = sample.X @ walk.w
    width, spent = walk.width, walk.spent
    for _ in range(4):
        keep, frozen = _at(sample, before, walk.b, width)
        if 2 * int(keep.sum()) > n:
            keep[:] = True
        state, alpha = _reduced(problem, sample, keep, frozen)
        spent += state.iterations
        scores = sample.X @ state.w
        if keep.all() or (
            state.history[-1] <= 1e-3 and _wrong_side(sample, scores, state.b, alpha, keep).mean() <= STRAY
        ):
            break
        width *= 3.0
    moved = scores - before
    step = max(float(np.sqrt(np.mean((moved - (state.b[k] - walk.b[k])) ** 2))) for k in range(walk.b.shape[0]))
    return _Walk(state.w, state.b, 2.0 * step / float(np.sqrt(GROWTH)), spent)


def _on_all_rows(problem: MarginProblem, data: MarginData, walk: _Walk) -> MarginSolution | None:
    """Solve in the band around a point, then in narrower ones, until the certificate of all rows holds.

    None if that does not come about soon: then no band is worth its while.
    """
    n = data.z.shape[0]
    w, b, width, spent = walk.w, walk.b, walk.width, walk.spent
    scores = data.X @ w
    value = problem.regulariser(w) + hinge_loss(scores, b, data.z, data.cost)
    best: MarginSolution | None = None
    strays = np.zeros(n, dtype=bool)
    tol, failures, overshoots = max(problem.tol, LOOSE), 0, 0
    for _ in range(12):
        keep, frozen = _at(data, scores, b, width)
        keep |= strays
        if 2 * int(keep.sum()) > n:
            break
        state, alpha = _reduced(replace(problem, tol=tol), data, keep, frozen)
        spent += state.iterations
        if not state.history[-1] <= 1e-3:  # the frozen rows left no solution: free more of them
            width, failures = 3.0 * width, failures + 1
            if failures > 1:
                break
            continue
        after = data.X @ state.w
        reached = problem.regulariser(state.w) + hinge_loss(after, state.b, data.z, data.cost)
        if reached > value * (1.0 + 1e-7):  # the frozen rows bend less than they should: the point overshot
            width, overshoots = 2.0 * width, overshoots + 1
            if overshoots > 4:
                break
            continue
        w, b, scores, value = state.w, state.b, after, reached
        wrong = _wrong_side(data, scores, b, alpha, keep)
        share = float(wrong.mean())
        if tol <= problem.tol:
            solution = certified(problem, data, w, b, alpha, spent, "band")
            if best is None or solution.gap < best.gap:
                best = solution
            if best.undecided:  # whether w = 0 is optimal: then every row is on a margin, and no band helps
                return None
            if best.gap <= problem.tol:
                return best
        if share > STRAY:  # the point moved further than the band reached: go on from where it is now
            strays = np.zeros(n, dtype=bool)
        else:
            strays = wrong
            width *= 0.25 if share < 0.1 * STRAY else 0.5
            tol = problem.tol if tol > problem.tol or share > 0.0 else 0.1 * tol
    return None
