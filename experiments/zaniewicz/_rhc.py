"""Right heart catheterisation as section 6.5 prepares it."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from upturn._encode import LinearEncoder
from upturn._table import read_table
from upturn.datasets import load_rhc


@cache
def rhc():
    """The data, and weights by inverse propensity: logistic regression on all rows, all columns, unclipped."""
    data = load_rhc()
    return data, inverse(propensity(data.X, data.treatment), data.treatment)


def inverse(chance, treatment):
    """Weights by inverse propensity."""
    return np.where(treatment == 1, 1.0 / chance, 1.0 / (1.0 - chance))


def stopped(X, treatment, steps: int):
    """The chance of treatment by a regression on columns as they are, in days and millimetres of mercury, that ends after so many steps of L-BFGS."""
    matrix, schema = read_table(X)
    encoded = LinearEncoder.fit(matrix, schema, standardize=False).transform(matrix)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(max_iter=steps).fit(encoded, treatment).predict_proba(encoded)[:, 1]


def propensity(X, treatment, *, standardize: bool = True, C: float = 1e6):
    """The chance of treatment by a logistic regression on its own rows, missing values at the mean."""
    matrix, schema = read_table(X)
    encoded = LinearEncoder.fit(matrix, schema, standardize=standardize).transform(matrix)
    return LogisticRegression(C=C, max_iter=5000).fit(encoded, treatment).predict_proba(encoded)[:, 1]
