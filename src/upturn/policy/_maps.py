"""Maps from score to effect: noisy effects of single rows, and their monotone regressions on the score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from upturn._arrays import Bools, Floats
from upturn._propensity import shares_of
from upturn.metrics._robust import robust_effects

_END_ROWS, _END_SHARE = 20, 0.01  # rows, and share of the rows, that the ends of an isotonic map rest on at least

Knots = tuple[Floats, Floats]  # scores, strictly rising, and their effects, rising; straight between them, level beyond


def row_effects(y: Floats, treated: Bools, weight: Floats, score: Floats) -> Floats:
    """Noisy effects ψ of single rows of a randomised (or weighted) experiment, with means that follow the score's rank."""
    order = np.argsort(score, kind="stable")
    rank = np.empty(len(score))
    _, first, counts = np.unique(score[order], return_index=True, return_counts=True)
    rank[order] = np.repeat(first + (counts - 1) / 2, counts) / len(score) - 0.5  # ties share their mean rank
    basis = np.column_stack([np.ones(len(score)), rank, rank**2])
    means = []
    for side in (~treated, treated):
        root = np.sqrt(weight[side])
        solution, *_ = np.linalg.lstsq(basis[side] * root[:, None], y[side] * root, rcond=None)
        means.append(basis @ solution)
    arm = treated.astype(np.uint8)
    return robust_effects(y, arm, np.column_stack(means), shares_of(arm, weight, 1)[None, :])[:, 0]


def isotonic_map(score: Floats, effect: Floats, weight: Floats, treated: Bools, largest: float) -> Knots:
    """The monotone regression of effects on the score, its ends pooled, kept as the ends of its flat pieces."""
    keep = weight > 0
    values, where = np.unique(score[keep], return_inverse=True)
    total = np.bincount(where, weights=weight[keep])
    fitted = isotonic_regression(np.bincount(where, weights=(weight * effect)[keep]) / total, sample_weight=total)
    sides = [np.bincount(where, weights=side[keep], minlength=len(values)) for side in (~treated, treated)]
    fitted = np.clip(_pool_ends(fitted, total, *sides), -largest, largest)
    # A block of equal effects is a flat piece: its two ends are all that needs to be kept.
    ends = np.ones(len(values), dtype=bool)
    ends[1:-1] = (fitted[1:-1] != fitted[:-2]) | (fitted[1:-1] != fitted[2:])
    return values[ends], np.asarray(fitted[ends], dtype=np.float64)


def _pool_ends(fitted: Floats, weight: NDArray[Any], control: NDArray[Any], treated: NDArray[Any]) -> Floats:
    """Join the steps at either end with their neighbours until they rest on enough rows, of both arms.

    ``control`` and ``treated`` are numbers of rows. Where the two ends meet, all is one step.
    """
    step = np.concatenate(([0], np.cumsum(np.diff(fitted) != 0)))
    counts = np.stack([np.bincount(step, weights=side) for side in (control, treated)])
    minimum = max(_END_ROWS, _END_SHARE * counts.sum())

    def reach(counts: NDArray[Any]) -> int:
        so_far = counts.cumsum(axis=1)
        enough = (so_far.sum(axis=0) >= minimum) & (so_far > 0).all(axis=0)
        return int(enough.argmax()) if enough.any() else len(enough) - 1

    low, high = reach(counts), counts.shape[1] - 1 - reach(counts[:, ::-1])
    ends = [step >= 0] if low >= high else [step <= low, step >= high]
    pooled = fitted.copy()
    for end in ends:
        pooled[end] = np.average(fitted[end], weights=weight[end])
    return np.maximum.accumulate(pooled)  # a mean may leave its range by a rounding error


def linear_map(score: Floats, effect: Floats, weight: Floats, largest: float) -> Knots:
    """The line through the mean as two points, where it meets ±``largest``; beyond them it is level."""
    mean, middle = np.average(score, weights=weight), np.average(effect, weights=weight)
    spread = weight @ (score - mean) ** 2
    slope = max(0.0, float(weight @ ((score - mean) * (effect - middle)) / spread)) if spread > 0 else 0.0
    effects = np.array([-largest, largest])
    ends = mean + (effects - middle) / slope if slope > 0 else np.array([mean, mean])
    if not (np.isfinite(ends).all() and ends[0] < ends[1]):  # no slope, or one too small to reach the bounds
        return np.array([mean]), np.clip([middle], -largest, largest)
    return ends, effects
