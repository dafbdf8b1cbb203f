"""scikit-learn's own checks of estimators, on every estimator of the library.

They call ``fit(X, y)``, so a thin adapter stands between: it derives a treatment from each row's values (the same row
always gets the same arm, whatever its position) and an outcome of two classes where the model needs one.
"""

import hashlib
import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from estimators import DRAWS_ROWS, ESTIMATORS, TRANSFORMERS
from upturn._table import read_table
from upturn.persist import REGISTRY

# Checks that cannot hold for any of them, and why.
EXCEPTIONS = {
    "check_dataframe_column_names_consistency": "columns may come in any order when they are named; it wants an error",
    "check_regressors_train": "it judges the fit of predictions to y, and predictions are effects",
}
OF_ONE = {
    "FilterSelector": {
        "check_sample_weight_equivalence_on_dense_data": "bins are cut at percentiles of the rows, whatever they weigh"
    },
    "TLearner": {
        "check_sample_weight_equivalence_on_dense_data": "scikit-learn's trees count the rows of a leaf, whatever they weigh"
    },
    "UMODLDiscretizer": {"check_transformer_preserve_dtypes": "it turns numbers into codes, which are integers"},
}
# Nor for models that draw rows at random or deal them to folds.
DRAWN = {
    "check_sample_weight_equivalence_on_dense_data": "repeated rows are dealt one by one, a weighted row as a whole"
}

# Older versions let models pass that refuse sparse matrices.
FORGIVING = "except TypeError" in inspect.getsource(estimator_checks.check_sample_weight_equivalence_on_sparse_data)

MAKERS = ESTIMATORS | TRANSFORMERS


def coin(*values):
    """0 or 1, a fixed function of the values."""
    return hashlib.sha256(b"".join(value.tobytes() for value in values)).digest()[0] & 1


def is_strange(y):
    """Whether y is something the model itself should complain about."""
    try:
        return y is None or not np.isfinite(np.asarray(y, dtype=float)).all()
    except (TypeError, ValueError):
        return True


class Adapter(BaseEstimator):
    """An uplift model that makes its own treatment out of the rows' values."""

    def __init__(self, name=None):
        self.name = name

    def __sklearn_tags__(self):
        tags = MAKERS[self.name]().__sklearn_tags__()
        tags.input_tags.categorical = False  # or rows are rounded to so few values that the coin falls on one side only
        return tags

    def fit(self, X, y=None, sample_weight=None):
        model = MAKERS[self.name]()
        matrix, _ = read_table(X, sparse=model._takes_sparse())
        matrix = matrix.toarray() if hasattr(matrix, "toarray") else matrix
        treatment = np.array([coin(row) for row in matrix])
        if (model._outcome == "binary" or self.name in TRANSFORMERS) and not is_strange(y):
            y = np.asarray(y, dtype=float)
            y = np.array([coin(row, value) for row, value in zip(matrix, y.ravel(), strict=True)]).reshape(y.shape)
        self.model_ = model.fit(X, y, treatment, sample_weight)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        return self


class ModelAdapter(Adapter):
    def predict(self, X):
        check_is_fitted(self)
        return self.model_.predict(X)


class TransformerAdapter(Adapter):
    def transform(self, X):
        check_is_fitted(self)
        return self.model_.transform(X)

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X)


def exceptions(adapter):
    found = EXCEPTIONS | (DRAWN if adapter.name in DRAWS_ROWS else {}) | OF_ONE.get(adapter.name, {})
    if adapter.name in ("ClassTransformation", "ClassTransformation over a classifier", "OneVsControl", "XLearner"):
        return found  # with a sparse X they take the arms' shares, and so look at no folds
    if FORGIVING:
        return found
    return found | {name.replace("_on_dense_data", "_on_sparse_data"): why for name, why in found.items()}


ADAPTERS = [*(ModelAdapter(name) for name in ESTIMATORS), *(TransformerAdapter(name) for name in TRANSFORMERS)]


def test_every_class_that_can_be_saved_is_checked():
    checked = {type(make()).__name__ for make in MAKERS.values()}
    assert checked == set(REGISTRY)


@parametrize_with_checks(ADAPTERS, expected_failed_checks=exceptions)
def test_scikit_learn_check(estimator, check):
    if FORGIVING and check.func.__name__ == "check_sample_weight_equivalence_on_sparse_data":
        pytest.skip("this version of scikit-learn does not say whether a model takes sparse matrices")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)
