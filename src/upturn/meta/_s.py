"""The S-learner: one model, the arm being a feature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from upturn._arrays import Floats
from upturn._encode import LinearEncoder
from upturn._experiment import Experiment
from upturn._nuisance import fit_response, seed_of
from upturn._parameters import ELSEWHERE, FLAG, LABEL, SEED, Rule
from upturn._seeds import make_seed
from upturn._sparse import SparseMatrix, beside, scale_rows
from upturn._table import Schema
from upturn._target import Label
from upturn.meta._base import MetaLearner

_MOST_COLUMNS = 1 << 20  # of a saved model with interactions: a small file could ask for any number


class SLearner(MetaLearner):
    r"""Uplift by one model of the outcome that has the arm among its features.

    .. math:: \mu(x, k) = E[Y \mid X = x, T = k], \qquad \tau_k(x) = \mu(x, k) - \mu(x, 0)

    The arm enters as one 0-1 column per treatment arm. A linear model sees the effect of the arm on everybody alike
    unless ``interactions`` adds the products of these columns with the features.

    Parameters
    ----------
    estimator : classifier or regressor, optional
        By default gradient boosting, of the kind the outcome asks for.
    interactions : bool
        Whether to add the products of arm and feature columns; levels then become 0-1 columns, missing numbers the
        mean, and columns are standardised first.
    random_state : int, RandomState, Generator or None
        Seed of the default estimator.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    feature_importances_ : array of shape (p,)
        Those of the model: what the outcome depends on, whether the effect does or not; levels and interactions summed.
    control_, arms_ : label, list of labels

    References
    ----------
    Künzel, Sekhon, Bickel, Yu, "Metalearners for estimating heterogeneous treatment effects using machine learning", 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from upturn.meta import SLearner
    >>> X, treatment = np.array([[0.0], [1.0], [2.0], [3.0]] * 2), np.repeat([0, 1], 4)
    >>> y = X[:, 0] + treatment * (1 + X[:, 0])
    >>> SLearner(LinearRegression(), interactions=True).fit(X, y, treatment).predict([[5.0]]).round(6)
    array([6.])
    """

    _parameters: ClassVar[Mapping[str, Rule]] = {
        "estimator": ELSEWHERE,
        "interactions": FLAG,
        "random_state": SEED,
        "control": LABEL,
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        interactions: bool = False,
        random_state: Any = None,
        control: Label | None = None,
    ) -> None:
        self.estimator = estimator
        self.interactions = interactions
        self.random_state = random_state
        self.control = control

    def _fit(self, data: Experiment) -> None:
        self._n_arms = data.n_arms
        self._encoder = LinearEncoder.fit(data.X, data.schema, data.weight) if self.interactions else None
        features = self._features(data.X, np.eye(data.n_arms + 1)[data.arm, 1:])
        schema = self._wide_schema(data.schema, data.n_arms)
        seed = seed_of(make_seed(self.random_state))
        self._members = [fit_response(self.estimator, features, data.y, data.weight, schema, seed=seed)]

    def _features(self, X: Floats, indicators: Floats) -> Floats:
        if self._encoder is None:
            return beside(X, indicators) if isinstance(X, SparseMatrix) else np.column_stack([X, indicators])
        encoded = self._encoder.transform(X)
        if isinstance(encoded, SparseMatrix):
            arms = range(indicators.shape[1])
            return beside(encoded, indicators, *(scale_rows(encoded, indicators[:, k]) for k in arms))
        products = [encoded * indicators[:, [k]] for k in range(indicators.shape[1])]
        return np.column_stack([encoded, indicators, *products])

    def _wide_schema(self, schema: Schema, n_arms: int) -> Schema:
        if self._encoder is None:
            names, levels = schema.names, schema.levels
            extra = [f"arm {k + 1}" for k in range(n_arms)]
        else:
            names = tuple(self._encoder.names(schema))
            levels = (None,) * len(names)
            extra = [f"arm {k + 1}" for k in range(n_arms)]
            extra += [f"arm {k + 1} × {name}" for k in range(n_arms) for name in names]
        return Schema((*names, *extra), False, (*levels, *(None,) * len(extra)))

    def _predict_response(self, X: Floats) -> Floats:
        response = np.empty((len(X), self._n_arms + 1))
        for k, indicators in enumerate(np.eye(self._n_arms + 1)[:, 1:]):
            features = self._features(X, np.tile(indicators, (len(X), 1)))
            response[:, k] = self._members[0].predict(features)
        return response

    def _predict(self, X: Floats) -> Floats:
        response = self._predict_response(X)
        return response[:, 1:] - response[:, :1]

    def _by_feature(self, importances: Floats) -> Floats:
        if self._encoder is None:
            return importances[: self.n_features_in_]
        first, n_arms = self._encoder.layout.width, len(self.arms_)  # the arms' own columns belong to no feature
        products = importances[first + n_arms :].reshape(n_arms, first)
        return self._encoder.by_column(importances[:first] + products.sum(axis=0))

    def _why_constant(self) -> str:
        return "the one model inside does not use the arm, or uses it alike for all, because the features explain more of the outcome"

    def _count_members(self) -> int:
        return 1

    def _member_schema(self) -> Schema:
        return self._wide_schema(self._schema, len(self.arms_))

    def _get_state(self) -> dict[str, Any]:
        return {**super()._get_state(), "encoder": None if self._encoder is None else self._encoder.get_state()}

    def _set_state(self, state: dict[str, Any]) -> None:
        encoder, self._n_arms = state["encoder"], len(self.arms_)
        self._encoder = None if encoder is None else LinearEncoder.from_state(encoder, self._schema)
        if self._encoder is not None and self._encoder.layout.width * (self._n_arms + 1) > _MOST_COLUMNS:
            raise ValueError("the products of features and arms are more than a table can have")
        super()._set_state(state)
