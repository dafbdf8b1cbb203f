"""Boosted trees as plain arrays: a flat table of nodes that can be saved without pickle and checked when it is read."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from upturn._arrays import Bools, Floats, Ints
from upturn._table import Schema
from upturn.kernels.additive import add_trees

_ROWS = 1 << 17  # walked in one call, after which Ctrl-C is heard
RIGHT, LEFT, AS_MISSING = 0, 1, 2  # where a level goes at a categorical split


@dataclass(frozen=True)
class FlatTrees:
    """A sum of trees on the encoded matrix, categories and missing values included.

    ``baseline`` is what it starts from, ``logit`` whether the sum is a log-odds and ``gain`` the loss that the splits of
    each feature saved, per row; the rest is the table of nodes.
    """

    baseline: float
    logit: bool
    gain: Floats
    roots: Ints
    feature: NDArray[np.int32]
    threshold: Floats
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing: Bools
    start: Ints
    sides: NDArray[np.uint8]

    def predict(self, X: Floats) -> Floats:
        """The probability of 1, or the expected number."""
        total, X = np.full(len(X), self.baseline), np.ascontiguousarray(X)
        for first in range(0, len(X), _ROWS):
            part = slice(first, first + _ROWS)
            add_trees(
                X[part], self.roots, self.feature, self.threshold, self.left, self.right, self.missing, self.start, self.sides,
                total[part],
            )  # fmt: skip
        return np.asarray(expit(total)) if self.logit else total

    def get_state(self) -> dict[str, Any]:
        """The model as JSON values and arrays."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_state(cls, state: dict[str, Any], schema: Schema) -> FlatTrees:
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
        if not isinstance(self.gain, np.ndarray) or self.gain.shape != (schema.n_features,):
            raise ValueError("the trees' gains do not fit the columns")
        if self.gain.dtype != np.float64 or not np.isfinite(self.gain).all() or (self.gain < 0).any():
            raise ValueError("the trees' gains are not numbers of 0 or more")
        inside, here = self.feature >= 0, np.arange(n)
        if (self.feature < -1).any() or (self.feature >= schema.n_features).any():
            raise ValueError("a tree looks at a column that does not exist")
        for child in (self.left, self.right):
            if (child[inside] <= here[inside]).any() or (child[inside] >= n).any():
                raise ValueError("the children of a tree's node are not further down the table")
        if np.isnan(self.threshold).any() or not np.isfinite(self.threshold[~inside]).all():
            raise ValueError("a tree's numbers are not finite")
        # Every node hangs from one other, or is the root of one tree: a walk is never longer than the table.
        held = np.concatenate([self.roots, self.left[inside], self.right[inside]])
        if len(self.roots) and (self.roots.min() < 0 or self.roots.max() >= n):
            raise ValueError("a tree begins outside the table")
        if len(np.unique(held)) < len(held):
            raise ValueError("two branches of the trees lead to one node")
        if (self.sides > AS_MISSING).any():
            raise ValueError("a level goes to neither side of a split")
        levels = np.array([-1 if found is None else len(found) for found in schema.levels])[self.feature]
        categorical = inside & (levels >= 0)
        if (inside & (categorical != (self.start >= 0))).any():
            raise ValueError("a tree splits a column as if it were of another kind")
        if (self.start[categorical] > len(self.sides) - levels[categorical]).any():  # a sum can wrap around
            raise ValueError("a categorical split does not know all levels")
