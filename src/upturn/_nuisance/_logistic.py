"""Logistic regression on raw tables, kept as coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from upturn._arrays import Floats
from upturn._encode import LinearEncoder
from upturn._table import Schema


@dataclass(frozen=True)
class Logistic:
    """Class probabilities softmax(coef · x + intercept) of an encoded row x, the first class being the reference.

    ``coef`` has a row and ``intercept`` an entry per class.
    """

    encoder: LinearEncoder
    coef: Floats
    intercept: Floats

    @classmethod
    def fit(cls, X: Floats, codes: NDArray[Any], n_classes: int, weight: Floats | None, schema: Schema) -> Logistic:
        """Fit to class codes 0 … n_classes - 1, all of which have rows."""
        encoder = LinearEncoder.fit(X, schema, weight)
        model = LogisticRegression(max_iter=1000).fit(encoder.transform(X), codes, sample_weight=weight)
        coef, intercept = np.zeros((n_classes, model.coef_.shape[1])), np.zeros(n_classes)
        first = n_classes - len(model.coef_)  # two classes have one row of coefficients, that of the second
        coef[first:], intercept[first:] = model.coef_, model.intercept_
        return cls(encoder, coef, intercept)

    def predict_proba(self, X: Floats) -> Floats:
        """A column of probabilities per class."""
        return np.asarray(softmax(self.encoder.transform(X) @ self.coef.T + self.intercept, axis=1))

    def get_state(self) -> dict[str, Any]:
        """The model as arrays."""
        return {"encoder": self.encoder.get_state(), "coef": self.coef, "intercept": self.intercept}

    @classmethod
    def from_state(cls, state: dict[str, Any], schema: Schema, n_classes: int) -> Logistic:
        """Rebuild and check a model that was read from a file."""
        encoder = LinearEncoder.from_state(state["encoder"], schema)
        coef, intercept = state["coef"], state["intercept"]
        if coef.shape != (n_classes, encoder.layout.width) or intercept.shape != (n_classes,):
            raise ValueError("the coefficients do not fit the columns")
        if not all(a.dtype == np.float64 and np.isfinite(a).all() for a in (coef, intercept)):
            raise ValueError("the coefficients are not finite")
        return cls(encoder, coef, intercept)
