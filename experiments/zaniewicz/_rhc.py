"""Right heart catheterisation as section 6.5 prepares it."""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn.linear_model import LogisticRegression

from upturn._encode import LinearEncoder
from upturn._table import read_table
from upturn.datasets import load_rhc


@cache
def rhc():
    """The data, and weights by inverse propensity: logistic regression on all rows, all columns, unclipped."""
    data = load_rhc()
    chance = propensity(data.X, data.treatment)
    return data, np.where(data.treatment == 1, 1.0 / chance, 1.0 / (1.0 - chance))


def propensity(X, treatment, *, standardize: bool = True, C: float = 1e6):
    """The chance of treatment by a logistic regression on its own rows, missing values at the mean."""
    matrix, schema = read_table(X)
    encoded = LinearEncoder.fit(matrix, schema, standardize=standardize).transform(matrix)
    return LogisticRegression(C=C, max_iter=5000).fit(encoded, treatment).predict_proba(encoded)[:, 1]
