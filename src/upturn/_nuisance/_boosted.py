"""The default base of meta-learners: gradient boosting of trees on histograms, kept as a flat table of nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats
from upturn._boosted_trees import Bins, Grown, Size, grow
from upturn._levels import LevelCodes, code_levels, number_levels
from upturn._nuisance._flat_trees import AS_MISSING, LEFT, RIGHT, FlatTrees
from upturn._sparse import is_sparse
from upturn._table import Schema
from upturn.kernels.boosted import MISSING

What = Literal["outcome", "effect", "arm"]

# Outcomes: shallow trees, so that the difference of two models is not mostly noise. Arms: fewer rounds and smaller leaves, as who is
# treated is told from many weak signs, and by few rows of a small arm. Effects of single rows are nearly all noise, however large the
# experiment: fewer and smaller trees on larger leaves.
SIZES: dict[What, Size] = {
    "outcome": Size(trees=100, leaves=8, rate=0.1, rows_in_leaf=50, ridge=1.0),
    "arm": Size(trees=50, leaves=8, rate=0.1, rows_in_leaf=20, ridge=1.0),
    "effect": Size(trees=50, leaves=4, rate=0.05, rows_in_leaf=100, ridge=10.0),
}
# Who is treated may depend on products of features, which single splits do not show: larger experiments afford more rounds.
_ROWS_A_ROUND, _MOST_ROUNDS = 80, 300
_PARTS, _LEAST = 8, 5  # a leaf asks for no more than this part of the rows, unless that is fewer than so many


def fit_boosted(
    X: Floats,
    y: NDArray[Any],
    weight: Floats | None,
    schema: Schema,
    *,
    classify: bool,
    what: What = "outcome",
    seed: int,
) -> FlatTrees:
    """Train on 0 and 1 (``classify``) or other numbers; ``what`` they are says how large the trees are.

    Where there are few rows, leaves are smaller: none could be split otherwise. Where there are many, arms are told by more trees.
    """
    if is_sparse(X):
        raise TypeError(
            "X is a sparse matrix, which gradient boosting does not take: pass an estimator that does, or X.toarray()"
        )
    size = SIZES[what]
    size = replace(size, rows_in_leaf=min(size.rows_in_leaf, max(len(y) // _PARTS, _LEAST)))
    if what == "arm":
        size = replace(size, trees=int(np.clip(len(y) // _ROWS_A_ROUND, size.trees, _MOST_ROUNDS)))
    codes = number_levels(X, schema)
    categorical = schema.categorical
    order = np.argsort(
        ~categorical, kind="stable"
    )  # columns of levels come first, and of equal splits the first is taken
    features = code_levels(X, codes)[:, order] if categorical.any() else X
    bins = Bins.of(features, categorical[order], weight, seed)
    grown = grow(bins.code(features), bins, y, weight, size, logit=classify)
    total = len(y) if weight is None else weight.sum()
    return _flatten(grown, bins, order, codes, classify, total)


def _flatten(
    grown: Grown, bins: Bins, order: NDArray[np.intp], codes: LevelCodes, logit: bool, total: float
) -> FlatTrees:
    """The trees in the columns, values and levels of the table; gains are divided by ``total``."""
    inside = grown.feature >= 0
    feature = np.where(inside, order[grown.feature], -1).astype(np.int32)
    threshold, start = np.where(inside, 0.0, grown.value), np.full(len(feature), -1, np.int64)
    sides: list[NDArray[np.uint8]] = []
    filled = 0
    for j in np.unique(feature[inside]):
        here, code, edges = np.flatnonzero(feature == j), codes[j], bins.edges[int(np.flatnonzero(order == j)[0])]
        if code is None:
            assert edges is not None
            threshold[here] = np.append(edges, np.inf)[
                grown.cut[here]
            ]  # the last bin: what is missing against all values
        else:
            left = grown.goes_left[here][:, np.maximum(code, 0)]
            goes = np.where(code < 0, AS_MISSING, np.where(left > 0, LEFT, RIGHT)).astype(np.uint8)
            start[here] = filled + len(code) * np.arange(len(here))
            filled += goes.size
            sides.append(goes.ravel())
    child = np.where(inside, grown.child, -1)
    return FlatTrees(
        baseline=grown.baseline,
        logit=logit,
        gain=np.bincount(feature[inside], grown.gain[inside], len(codes)) / total,
        roots=grown.roots,
        feature=feature,
        threshold=threshold,
        left=child.astype(np.int32),
        right=np.where(inside, child + 1, -1).astype(np.int32),
        missing=inside & (grown.goes_left[:, MISSING] > 0),
        start=start,
        sides=np.concatenate(sides) if sides else np.empty(0, dtype=np.uint8),
    )
