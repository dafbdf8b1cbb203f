"""Gradient boosting of trees: columns cut into bins, trees grown on them, and the table of nodes that comes out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools, Floats, Indices, Ints
from upturn.kernels.boosted import MISSING, add_coded, add_rounds, code
from upturn.kernels.hashing import EDGES, words

_SAMPLE = 200_000  # rows that edges of bins are taken from, where there are more
_SURE = 10 * float(np.finfo(np.float64).eps)  # chances that trees begin at are as far from 0 and 1
_EXPONENT = 60  # of two, beyond which outcomes are counted in units
_KEPT = 10_000  # columns × leaves whose histograms are kept (60 megabytes)
_WORK = 20_000_000  # rows × columns × trees of one call, after which Ctrl-C is heard


@dataclass(frozen=True)
class Size:
    """How many trees, how large, and how much each of them says."""

    trees: int
    leaves: int
    rate: float
    rows_in_leaf: int = 20
    ridge: float = 0.0


@dataclass(frozen=True)
class Bins:
    """What the codes of every column stand for: ``edges`` between the bins of a column of numbers, None for one of levels.

    ``count`` is the number of bins, that for what is missing not among them.
    """

    edges: list[Floats | None]
    count: Ints

    @classmethod
    def of(cls, X: Floats, categorical: Bools, weight: Floats | None = None, seed: int = 0) -> Bins:
        """Half-way between values or, where a column has more than 255, at quantiles; levels are 0, 1, …, 254 as they are."""
        rows = _sample(len(X), seed)
        edges: list[Floats | None] = []
        count = np.empty(X.shape[1], np.int64)
        for j, levels in enumerate(categorical):
            column = X[:, j] if levels else X[rows, j]
            known = ~np.isnan(column)
            if levels:
                edges.append(None)
                count[j] = int(column[known].max(initial=0.0)) + 1
            else:
                found = find_edges(column[known], None if weight is None else weight[rows][known])
                edges.append(found)
                count[j] = len(found) + 1
        return cls(edges, count)

    @property
    def levels(self) -> Bools:
        """Which columns hold levels."""
        return np.array([edges is None for edges in self.edges], dtype=bool)

    def code(self, X: Floats) -> NDArray[np.uint8]:
        """The codes of some rows, a column each line."""
        padded = np.full((X.shape[1], MISSING), np.inf)
        for j, edges in enumerate(self.edges):
            if edges is not None:
                padded[j, : len(edges)] = edges
        codes = np.empty(X.shape[::-1], np.uint8)
        code(np.ascontiguousarray(X), padded, self.levels, codes)
        return codes


@dataclass(frozen=True)
class Grown:
    """Trees as they are grown, on codes; the columns of the table of nodes are those of :mod:`upturn.kernels.boosted`."""

    baseline: float
    roots: Ints
    feature: NDArray[np.int32]
    goes_left: NDArray[np.uint8]
    cut: NDArray[np.int32]
    child: NDArray[np.int32]
    value: Floats
    gain: Floats

    def predict_coded(self, codes: NDArray[np.uint8]) -> Floats:
        """The sum of the trees, for rows given by their codes."""
        score = np.full(codes.shape[1], self.baseline)
        add_coded(codes, self.roots, self.feature, self.goes_left, self.child, self.value, score)
        return score


def grow(
    codes: NDArray[np.uint8],
    bins: Bins,
    y: Floats,
    weight: Floats | None,
    size: Size,
    *,
    logit: bool,
) -> Grown:
    """Trees on the squared error, or on the logistic loss of 0 and 1."""
    unit = 1.0 if logit else _unit(y)
    target = y / unit
    mean = float(np.average(target, weights=weight))
    if logit:
        mean = float(np.clip(mean, _SURE, 1 - _SURE))
    baseline = float(np.log(mean / (1 - mean))) if logit else mean
    score, most = np.full(len(y), baseline), size.trees * (2 * size.leaves - 1)
    gaps, levels = (codes == MISSING).any(axis=1), bins.levels
    roots = np.empty(size.trees, np.int64)
    feature, cut, child = (np.empty(most, np.int32) for _ in range(3))
    goes_left, value, gain = np.zeros((most, MISSING + 1), np.uint8), np.empty(most), np.empty(most)
    rounds = int(np.clip(_WORK // max(codes.size, 1), 1, size.trees))
    weights, nodes = np.empty(0) if weight is None else weight, 0
    kept = codes.shape[0] * size.leaves <= _KEPT
    for first in range(0, size.trees, rounds):
        nodes = add_rounds(
            codes, bins.count, gaps, levels, target, weights, logit, kept, nodes, size.leaves, size.rate, size.rows_in_leaf, size.ridge,
            score, feature, goes_left, cut, child, value, gain, roots[first : first + rounds],
        )  # fmt: skip
    used = slice(0, nodes)
    with np.errstate(over="ignore"):
        gains = np.minimum(gain[used] * unit * unit, np.finfo(np.float64).max)
    return Grown(
        baseline * unit, roots, feature[used], goes_left[used], cut[used], child[used], value[used] * unit, gains
    )


def _unit(y: Floats) -> float:
    """A power of two about the size of outcomes, which are counted in it where gradients of 24 bits would not hold them."""
    exponent = np.frexp(np.abs(y).max(initial=0.0))[1]
    return float(np.ldexp(1.0, exponent)) if abs(exponent) > _EXPONENT else 1.0


def find_edges(values: Floats, weight: Floats | None = None) -> Floats:
    """Where bins end: half-way between values, or at quantiles where there are more of them than bins.

    A quantile is the first value up to which there are that many rows or, where there are exactly as many, the middle
    between it and the next; what is exact is decided as in scikit-learn.
    """
    order = np.argsort(values) if weight is not None else None
    values = np.sort(values) if order is None else values[order]
    first = np.flatnonzero(values[1:] != values[:-1])  # of every two neighbours that differ
    if len(first) < MISSING:
        return np.asarray(values[first] / 2 + values[first + 1] / 2)
    share = np.linspace(0, 100, MISSING + 1)[1:-1] / 100
    if weight is None:
        rank = len(values) * share - 1
        at = np.ceil(rank).astype(np.int64)
        after = np.where(rank == at, at + 1, at)
    else:
        below = np.cumsum(weight[order])
        rank = share * below[-1]
        at = np.minimum(np.searchsorted(below, rank), len(values) - 1)
        after = np.where(below[at] - rank > np.finfo(np.float64).eps, at, np.minimum(at + 1, len(values) - 1))
    return np.unique(values[at] / 2 + values[after] / 2)


def _sample(n: int, seed: int) -> slice | Indices:
    """The rows that edges are taken from: all, or some."""
    if n <= _SAMPLE:
        return slice(None)
    drawn = np.empty(n, np.uint64)
    words(np.uint64(seed), EDGES, np.uint64(0), drawn)
    return np.sort(np.argpartition(drawn, _SAMPLE)[:_SAMPLE])
