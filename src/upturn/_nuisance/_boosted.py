"""The default base of meta-learners: histogram gradient boosting, trained by scikit-learn.

What is kept of a model is a flat table of nodes (:class:`FlatTrees`), so that it can be saved without pickle, checked when
it is read, and used by any later version of scikit-learn. Reading the trees takes more than scikit-learn promises; with a
version whose trees are laid out otherwise, the model is kept whole (:class:`WholeModel`) and predicts the same.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import ThreadpoolController

from upturn._arrays import Floats
from upturn._levels import MOST_LEVELS, LevelCodes, code_levels, number_levels
from upturn._nuisance import _inside_sklearn
from upturn._nuisance._flat_trees import FlatTrees
from upturn._parallel import interruptible
from upturn._sparse import is_sparse
from upturn._table import Schema

What = Literal["outcome", "effect", "arm"]

_LONG = 1 << 22  # numbers in a table from which on scikit-learn takes a good part of a second to cut it into bins

# Outcomes: shallow trees, so that the difference of two models is not mostly noise. Effects of single rows are nearly all
# noise, however large the experiment: fewer and smaller trees on larger leaves.
_OUTCOMES = {
    "learning_rate": 0.1,
    "max_iter": 100,
    "max_leaf_nodes": 8,
    "min_samples_leaf": 50,
    "l2_regularization": 1.0,
}
_ARMS = {  # fewer rounds and smaller leaves: who is treated is told from many weak signs, and by few rows of a small arm
    "learning_rate": 0.1,
    "max_iter": 50,
    "max_leaf_nodes": 8,
    "min_samples_leaf": 20,
    "l2_regularization": 1.0,
}
_EFFECTS = {
    "learning_rate": 0.05,
    "max_iter": 50,
    "max_leaf_nodes": 4,
    "min_samples_leaf": 100,
    "l2_regularization": 10.0,
}
# Who is treated may depend on products of features, which single splits do not show: larger experiments afford more rounds.
_ROWS_A_ROUND, _MOST_ROUNDS = 80, 300
_PARTS, _LEAST = 8, 5  # a leaf asks for no more than this part of the rows, unless that is fewer than so many


@dataclass(frozen=True)
class WholeModel:
    """A model of scikit-learn as it is, with the numbers of its levels: nothing but public methods."""

    model: HistGradientBoostingClassifier | HistGradientBoostingRegressor
    codes: LevelCodes

    def predict(self, X: Floats) -> Floats:
        """The probability of 1, or the expected number."""
        features = code_levels(X, self.codes)
        if isinstance(self.model, HistGradientBoostingClassifier):
            return np.ascontiguousarray(self.model.predict_proba(features)[:, 1], dtype=np.float64)
        return np.asarray(self.model.predict(features), dtype=np.float64)

    def get_state(self) -> dict[str, Any]:
        """The model and its numbers of levels; to save it takes skops, and to load it the same version of scikit-learn."""
        return {"whole": self.model, "codes": self.codes}

    @classmethod
    def from_state(cls, state: dict[str, Any], schema: Schema) -> WholeModel:
        """Rebuild and check a model that was read from a file."""
        model, codes = state["whole"], state["codes"]
        if not isinstance(model, HistGradientBoostingClassifier | HistGradientBoostingRegressor):
            raise ValueError(f"expected a gradient boosting model, not {type(model).__name__}")
        if not isinstance(codes, list) or len(codes) != schema.n_features or model.n_features_in_ != len(codes):
            raise ValueError("a gradient boosting model does not fit the columns")
        for code, levels in zip(codes, schema.levels, strict=True):
            if (code is None) != (levels is None):
                raise ValueError("a gradient boosting model takes a column as if it were of another kind")
            if code is not None and (code.dtype != np.int64 or code.shape != (len(levels or ()),)):
                raise ValueError("a gradient boosting model does not know all levels")
            if code is not None and ((code < -1) | (code >= MOST_LEVELS)).any():
                raise ValueError("the numbers of a column's levels are out of range")
        return cls(model, codes)


Boosted = FlatTrees | WholeModel


def fit_boosted(
    X: Floats,
    y: NDArray[Any],
    weight: Floats | None,
    schema: Schema,
    *,
    classify: bool,
    what: What = "outcome",
    seed: int,
) -> Boosted:
    """Train on 0 and 1 (``classify``) or other numbers; ``what`` they are says how large the trees are.

    Where there are few rows, leaves are smaller: none could be split otherwise. Where there are many, arms are told by more trees.
    """
    if is_sparse(X):
        raise TypeError(
            "X is a sparse matrix, which gradient boosting does not take: pass an estimator that does, or X.toarray()"
        )
    settings = {"outcome": _OUTCOMES, "effect": _EFFECTS, "arm": _ARMS}[what]
    settings = settings | {"min_samples_leaf": min(settings["min_samples_leaf"], max(len(y) // _PARTS, _LEAST))}
    if what == "arm":
        settings["max_iter"] = int(np.clip(len(y) // _ROWS_A_ROUND, settings["max_iter"], _MOST_ROUNDS))
    whole = _train(X, y, weight, schema, classify, settings, seed)
    if not layout_is_known():
        return whole
    trees = _inside_sklearn.flatten(whole.model, whole.codes, classify)
    return replace(trees, gain=trees.gain / (len(y) if weight is None else weight.sum()))


def boosted_from_state(state: dict[str, Any], schema: Schema) -> Boosted:
    """Rebuild and check a model that was read from a file, in either form."""
    return WholeModel.from_state(state, schema) if "whole" in state else FlatTrees.from_state(state, schema)


def _train(
    X: Floats,
    y: NDArray[Any],
    weight: Floats | None,
    schema: Schema,
    classify: bool,
    settings: dict[str, Any],
    seed: int,
) -> WholeModel:
    codes = number_levels(X, schema)
    kind = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
    model = kind(categorical_features=schema.categorical, early_stopping=False, random_state=seed, **settings)

    def fit() -> None:
        # One thread: with several, the last bits of large fits depend on their number.
        with _threads().limit(limits=1, user_api="openmp"), _inside_sklearn.prepares_alone(model):
            model.fit(_without_gaps(code_levels(X, codes)), y, sample_weight=weight)

    if X.size > _LONG:
        interruptible(fit)
    else:
        fit()
    return WholeModel(model, codes)


def _without_gaps(features: Floats) -> Floats:
    """The features with a constant in columns that are empty in these rows: scikit-learn bins no column without values.

    No tree can split a constant, so it makes no difference what a later row has there.
    """
    empty = np.isnan(features).all(axis=0)
    return np.where(empty, 0.0, features) if empty.any() else features


@functools.cache
def layout_is_known() -> bool:
    """Whether this scikit-learn keeps its trees as we read them: judged once, by the predictions of two small models.

    They split a column of numbers with gaps and, behind it, one of levels with gaps, and are asked about missing values
    and a level they have not seen.
    """
    i = np.arange(1000)
    X = np.column_stack([np.sin(i), i % 40]).astype(
        np.float64
    )  # more levels than a word of scikit-learn's sets has bits
    effect = np.where(X[:, 1] % 3 == 0, 2.0, 0.0) + np.sign(X[:, 0])
    X[::7, 0], X[::11, 1] = np.nan, np.nan
    schema = Schema(("number", "level"), True, (None, tuple(range(41))))
    settings = {"max_iter": 4, "min_samples_leaf": 5, "max_leaf_nodes": 8}
    asked = np.concatenate((X, [[np.nan, np.nan], [0.0, 40.0], [np.nan, 40.0]]))
    for classify in (True, False):
        whole = _train(X, effect > 0 if classify else effect, None, schema, classify, settings, 0)
        try:
            found = _inside_sklearn.flatten(whole.model, whole.codes, classify).predict(asked)
        except Exception:  # whatever another layout makes of our reading
            return False
        with _threads().limit(limits=1, user_api="openmp"):
            expected = whole.predict(asked)
        if not np.allclose(found, expected, rtol=1e-9, atol=1e-12):
            return False
    return True


@functools.cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()
