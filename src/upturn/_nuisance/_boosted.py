"""The default base of meta-learners: histogram gradient boosting, kept as plain arrays.

Training is scikit-learn's. What is kept of it is a flat table of nodes (see :mod:`upturn.kernels.additive`), so a
model can be saved without pickle, checked when it is read, and used by any later version of scikit-learn.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import ThreadpoolController

from upturn._arrays import Bools, Floats, Ints
from upturn._table import Schema
from upturn.kernels.additive import add_trees

# Outcomes: shallow trees, so that the difference of two models is not mostly noise. Effects of single rows are nearly all
# noise, however large the experiment: fewer and smaller trees on larger leaves.
_OUTCOMES = {
    "learning_rate": 0.1,
    "max_iter": 100,
    "max_leaf_nodes": 8,
    "min_samples_leaf": 50,
    "l2_regularization": 1.0,
}
_EFFECTS = {
    "learning_rate": 0.05,
    "max_iter": 50,
    "max_leaf_nodes": 4,
    "min_samples_leaf": 100,
    "l2_regularization": 10.0,
}
_MOST_LEVELS = 255  # scikit-learn's limit; of more levels, the rare ones share a code
_RIGHT, _LEFT, _AS_MISSING = 0, 1, 2


@dataclass(frozen=True)
class BoostedTrees:
    """A sum of trees on the encoded matrix, categories and missing values included.

    ``baseline`` is what it starts from and ``logit`` whether the sum is a log-odds; the rest is the table of nodes.
    """

    baseline: float
    logit: bool
    roots: Ints
    feature: NDArray[np.int32]
    threshold: Floats
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing: Bools
    start: Ints
    sides: NDArray[np.uint8]

    @classmethod
    def fit(
        cls,
        X: Floats,
        y: NDArray[Any],
        weight: Floats | None,
        schema: Schema,
        *,
        classify: bool,
        effect: bool = False,
        seed: int,
    ) -> BoostedTrees:
        """Train on outcomes of 0 and 1 (``classify``), other numbers, or effects of single rows (``effect``)."""
        columns = [_Codes.of(X[:, j], levels) for j, levels in enumerate(schema.levels)]
        features = X.copy() if any(codes is not None for codes in columns) else X
        for j, codes in enumerate(columns):
            if codes is not None:
                features[:, j] = codes.apply(X[:, j])
        settings = _EFFECTS if effect else _OUTCOMES
        kind = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
        model = kind(categorical_features=schema.categorical, early_stopping=False, random_state=seed, **settings)
        # One thread: with several, the last bits of large fits depend on their number.
        with _threads().limit(limits=1, user_api="openmp"):
            model.fit(features, y, sample_weight=weight)
        return cls._flatten(model, columns)

    @classmethod
    def _flatten(cls, model: Any, columns: list[_Codes | None]) -> BoostedTrees:
        # scikit-learn moves categorical columns to the front and renumbers the levels it has seen.
        order = sorted(range(len(columns)), key=lambda j: (columns[j] is None, j))
        source = np.array(order, dtype=np.int32)
        parts: dict[str, list[NDArray[Any]]] = {
            name: [] for name in ("feature", "threshold", "left", "right", "missing", "start")
        }
        roots, sides, size, filled = [], [], 0, 0
        for (tree,) in model._predictors:
            nodes = tree.nodes
            leaf, categorical = nodes["is_leaf"].astype(bool), nodes["is_categorical"].astype(bool)
            start = np.full(len(nodes), -1, dtype=np.int64)
            for node in np.flatnonzero(categorical & ~leaf):
                codes = columns[source[nodes["feature_idx"][node]]]
                assert codes is not None
                entry = codes.sides(tree.raw_left_cat_bitsets[nodes["bitset_idx"][node]])
                start[node], filled = filled, filled + len(entry)
                sides.append(entry)
            roots.append(size)
            parts["feature"].append(np.where(leaf, -1, source[np.where(leaf, 0, nodes["feature_idx"])]))
            parts["threshold"].append(
                np.where(leaf, nodes["value"], np.where(categorical, 0.0, nodes["num_threshold"]))
            )
            parts["left"].append(np.where(leaf, -1, nodes["left"].astype(np.int64) + size))
            parts["right"].append(np.where(leaf, -1, nodes["right"].astype(np.int64) + size))
            parts["missing"].append(nodes["missing_go_to_left"].astype(bool))
            parts["start"].append(start)
            size += len(nodes)
        kinds = {"feature": np.int32, "threshold": np.float64, "left": np.int32, "right": np.int32, "missing": bool}
        arrays = {name: np.concatenate(part).astype(kinds.get(name, np.int64)) for name, part in parts.items()}
        return cls(
            baseline=float(np.ravel(model._baseline_prediction)[0]),
            logit=isinstance(model, HistGradientBoostingClassifier),
            roots=np.array(roots, dtype=np.int64),
            sides=np.concatenate(sides) if sides else np.empty(0, dtype=np.uint8),
            **arrays,
        )

    def predict(self, X: Floats) -> Floats:
        """The probability of 1, or the expected number."""
        total = np.full(len(X), self.baseline)
        add_trees(
            np.ascontiguousarray(X), self.roots, self.feature, self.threshold, self.left, self.right, self.missing,
            self.start, self.sides, total,
        )  # fmt: skip
        return np.asarray(expit(total)) if self.logit else total

    def get_state(self) -> dict[str, Any]:
        """The model as JSON values and arrays."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_state(cls, state: dict[str, Any], schema: Schema) -> BoostedTrees:
        """Rebuild and check a model that was read from a file."""
        model = cls(**{field.name: state[field.name] for field in fields(cls)})
        model._check(schema)
        return model

    def _check(self, schema: Schema) -> None:
        n = len(self.feature)
        expected: dict[str, Any] = {
            "feature": np.int32, "threshold": np.float64, "left": np.int32, "right": np.int32, "missing": np.bool_,
            "start": np.int64,
        }  # fmt: skip
        for name, dtype in expected.items():
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.shape != (n,) or array.dtype != dtype:
                raise ValueError(f"the trees' column {name} is not well formed")
        for name, dtype in (("roots", np.int64), ("sides", np.uint8)):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != dtype:
                raise ValueError(f"the trees' column {name} is not well formed")
        if not isinstance(self.logit, bool) or not isinstance(self.baseline, float) or not np.isfinite(self.baseline):
            raise ValueError("the trees' baseline is not a number")
        inside, here = self.feature >= 0, np.arange(n)
        if (self.feature < -1).any() or (self.feature >= schema.n_features).any():
            raise ValueError("a tree looks at a column that does not exist")
        for child in (self.left, self.right):
            if (child[inside] <= here[inside]).any() or (child[inside] >= n).any():
                raise ValueError("the children of a tree's node are not further down the table")
        if np.isnan(self.threshold).any() or not np.isfinite(self.threshold[~inside]).all():
            raise ValueError("a tree's numbers are not finite")
        if len(self.roots) and (self.roots.min() < 0 or self.roots.max() >= n):
            raise ValueError("a tree begins outside the table")
        if (self.sides > _AS_MISSING).any():
            raise ValueError("a level goes to neither side of a split")
        levels = np.array([-1 if found is None else len(found) for found in schema.levels])[self.feature]
        categorical = inside & (levels >= 0)
        if (inside & (categorical != (self.start >= 0))).any():
            raise ValueError("a tree splits a column as if it were of another kind")
        if (self.start[categorical] + levels[categorical] > len(self.sides)).any():
            raise ValueError("a categorical split does not know all levels")


@functools.cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


@dataclass(frozen=True)
class _Codes:
    """How the levels of a column are numbered for scikit-learn: ``code[level]``, -1 for a level without rows."""

    code: Ints

    @classmethod
    def of(cls, column: Floats, levels: tuple[Any, ...] | None) -> _Codes | None:
        if levels is None:
            return None
        counts = np.bincount(column[~np.isnan(column)].astype(np.int64), minlength=len(levels))
        seen = counts > 0
        code = np.full(len(levels), -1, dtype=np.int64)
        if seen.sum() <= _MOST_LEVELS:
            code[seen] = np.arange(seen.sum())
        else:
            frequent = np.argsort(-counts, kind="stable")[: _MOST_LEVELS - 1]
            code[seen] = _MOST_LEVELS - 1
            code[np.sort(frequent)] = np.arange(_MOST_LEVELS - 1)
        return cls(code)

    def apply(self, column: Floats) -> Floats:
        known = ~np.isnan(column)
        codes = np.full(len(column), np.nan)
        codes[known] = self.code[column[known].astype(np.int64)]
        return codes

    def sides(self, bitset: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """Where every level goes at a split whose left side is a set of codes."""
        word, bit = np.maximum(self.code, 0) // 32, np.maximum(self.code, 0) % 32
        goes_left = (bitset[word] >> bit.astype(np.uint32)) & np.uint32(1)
        return np.where(self.code < 0, _AS_MISSING, np.where(goes_left == 1, _LEFT, _RIGHT)).astype(np.uint8)
