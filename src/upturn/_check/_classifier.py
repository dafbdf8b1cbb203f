"""The classifier of `upturn.check`: who is treated, by boosted trees, learnt on some rows and said of the others."""

from __future__ import annotations

import numpy as np

from upturn._arrays import Bools, Floats
from upturn._boosted_trees import Bins, Size, grow

_SIZE = Size(trees=20, leaves=8, rate=0.2)


def held_out_scores(X: Floats, categorical: Bools, treated: Bools, fit: Bools) -> Floats:
    """Log-odds of being treated of the rows not in ``fit``, by a model of those in it; codes of levels are 0, 1, …, 254.

    Of equal splits the first is taken, and columns of levels come first, as in scikit-learn.
    """
    order = np.argsort(~categorical, kind="stable")
    X, categorical = X[:, order], categorical[order]
    learnt = X[fit]
    bins = Bins.of(learnt, categorical)
    model = grow(bins.code(learnt), bins, treated[fit].astype(np.float64), None, _SIZE, logit=True)
    return model.predict_coded(bins.code(X[~fit]))
