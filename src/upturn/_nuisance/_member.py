"""One fitted model of a number given the features, whatever estimator it comes from."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn import get_config
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from upturn._arrays import Floats
from upturn._encode import LinearEncoder
from upturn._nuisance._boosted import fit_boosted
from upturn._nuisance._flat_trees import FlatTrees
from upturn._table import Schema
from upturn.base import UpliftEstimator, finite_importances
from upturn.persist import is_harmless

Weights = Floats | None


@dataclass(frozen=True)
class Member:
    """A fitted model whose prediction is low + (high - low)·p for a classifier, and plain for a regressor.

    Attributes
    ----------
    model : FlatTrees, foreign estimator or None
        None predicts ``low`` for everybody.
    encoder : LinearEncoder or None
        What stands before an estimator that cannot take the table as it is.
    low, high : float
        The two values of the outcome of a classifier; 0 and 1 otherwise.
    link : (slope, intercept) or None
        Turns the scores of a classifier that knows no probabilities into them: expit(slope·score + intercept).
    """

    model: Any
    encoder: LinearEncoder | None = None
    low: float = 0.0
    high: float = 1.0
    link: tuple[float, float] | None = None

    def predict(self, X: Floats) -> Floats:
        """The expected number of every row of an encoded table."""
        if self.model is None:
            return np.full(len(X), self.low)
        if isinstance(self.model, FlatTrees):
            raw = self.model.predict(X)
        else:
            features = X if self.encoder is None else self.encoder.transform(X)
            raw = _foreign_prediction(self.model, features, self.link)
        return raw if (self.low, self.high) == (0.0, 1.0) else self.low + (self.high - self.low) * raw

    def importances(self, n_features: int) -> Floats:
        """Importance of every column of the table, as the model measures it: not normalised.

        That is its ``feature_importances_``, or the absolute coefficients times the standard deviations of what they
        multiply, added up over the levels of a column.
        """
        if self.model is None:
            return np.zeros(n_features)
        if isinstance(self.model, FlatTrees):
            return self.model.gain
        encoder = self.encoder
        if hasattr(self.model, "feature_importances_"):
            values = np.asarray(self.model.feature_importances_, dtype=np.float64)
        elif hasattr(self.model, "coef_") and encoder is not None:
            values = np.abs(np.atleast_2d(self.model.coef_)).sum(axis=0) * encoder.spread
        else:
            raise AttributeError(
                f"{type(getattr(self.model, 'model', self.model)).__name__} has neither feature_importances_ nor coefficients, so "
                "there are no feature_importances_: use sklearn.inspection.permutation_importance"
            )
        return finite_importances(values if encoder is None else encoder.by_column(values), n_features)

    def get_state(self) -> dict[str, Any]:
        """The member as JSON values, arrays and, for a foreign estimator, the estimator."""
        boosted = isinstance(self.model, FlatTrees)
        return {
            "boosted": self.model.get_state() if boosted else None,
            "foreign": None if boosted else self.model,
            "encoder": None if self.encoder is None else self.encoder.get_state(),
            "low": self.low,
            "high": self.high,
            "link": None if self.link is None else list(self.link),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], schema: Schema) -> Member:
        """Rebuild and check a member that was read from a file."""
        boosted, model, encoder, link = state["boosted"], state["foreign"], state["encoder"], state["link"]
        numbers = [state["low"], state["high"], *(link or (0.0, 0.0))]
        if len(numbers) != 4 or not all(isinstance(v, int | float) and np.isfinite(v) for v in numbers):
            raise ValueError("a model's scale is not well formed")
        if boosted is not None:
            model = FlatTrees.from_state(boosted, schema)
        elif model is not None:
            check_estimator(model)
            if link is not None:
                check_classifier(model)
        member = cls(
            model,
            None if encoder is None else LinearEncoder.from_state(encoder, schema),
            float(numbers[0]),
            float(numbers[1]),
            None if link is None else (float(numbers[2]), float(numbers[3])),
        )
        if model is not None and boosted is None:
            try_out(model, lambda rows: _foreign_prediction(model, rows, member.link), member.encoder, schema)
        return member


def try_out(
    model: Any, predict: Callable[[Floats], Floats], encoder: LinearEncoder | None, schema: Schema, *columns: int
) -> None:
    """Ask a harmless estimator that was read from a file about rows of zeros: it answers in finite numbers, or is refused.

    What needs trust is not asked: it may know better than to be asked about zeros.
    """
    if not is_harmless(model):
        return
    width = schema.n_features if encoder is None else encoder.layout.width
    rows = [np.zeros((1, width)), np.zeros((2, width))]  # a shape that fits both fits any number of rows
    if encoder is None:
        rows.append(np.full((1, width), np.nan))
    for X in rows:
        answer = predict(X)
        if answer.shape != (len(X), *columns) or not np.isfinite(answer).all():
            raise ValueError(f"the {type(model).__name__} inside does not predict a finite number for a row of zeros")


def check_estimator(estimator: Any) -> None:
    """Complain about a base that cannot be fitted or asked."""
    _no_uplift_model(estimator)
    asked = ("predict", "predict_proba", "decision_function")
    if (
        isinstance(estimator, type)
        or not hasattr(estimator, "fit")
        or not any(hasattr(estimator, how) for how in asked)
    ):
        raise TypeError(
            f"estimator={reprlib.repr(estimator)} cannot be fitted and asked for predictions: expected a classifier or regressor such as "
            "LogisticRegression() or Ridge(), or None for gradient boosting"
        )


def _no_uplift_model(estimator: Any) -> None:
    if isinstance(estimator, UpliftEstimator):
        raise TypeError(
            f"estimator={type(estimator).__name__}(…) is an uplift model itself, and learns from a treatment: expected a classifier or "
            "regressor of outcomes, such as LogisticRegression() or SVC(); the class-transformed SVM with another p is "
            "upturn.svm.StandardSVM(p=1.2, flip_control=True)"
        )


def classifies(estimator: Any) -> bool:
    """Whether an estimator is a classifier, by what it says or else by what it can do."""
    if is_classifier(estimator) or is_regressor(estimator):
        return bool(is_classifier(estimator))
    return hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")


def check_classifier(estimator: Any) -> None:
    """Complain about a base that gives neither probabilities nor scores."""
    _no_uplift_model(estimator)
    probabilities = hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")
    if isinstance(estimator, type) or not hasattr(estimator, "fit") or not probabilities:
        raise TypeError(
            f"estimator={reprlib.repr(estimator)} has neither predict_proba nor decision_function: expected a classifier such "
            "as LogisticRegression(), or None for the one built in"
        )


def fit_response(estimator: Any, X: Floats, y: Floats, weight: Weights, schema: Schema, *, seed: int) -> Member:
    """Model an outcome: a classifier's probability of the larger of two values, or a regressor's prediction.

    Without an estimator it is boosting, of the kind the outcome asks for.
    """
    if estimator is not None:
        check_estimator(estimator)
    X, y, weight = _with_weight(X, y, weight)
    low, high = float(y.min()), float(y.max())
    if low == high:
        return Member(None, low=low)
    classify = bool(((y == low) | (y == high)).all()) if estimator is None else classifies(estimator)
    if not classify:
        return _fit_number(estimator, X, y, weight, schema, seed, effect=False)
    if not ((y == low) | (y == high)).all():
        raise ValueError(many_values(estimator, f"{len(np.unique(y)):,}", low, high))
    z = (y == high).astype(np.int64)
    if estimator is None:
        return Member(fit_boosted(X, z, weight, schema, classify=True, seed=seed), low=low, high=high)
    model, encoder = _fit_foreign(estimator, X, z, weight, schema)
    link = None
    if not hasattr(model, "predict_proba"):
        features = X if encoder is None else encoder.transform(X)
        scores = np.asarray(model.decision_function(features), dtype=np.float64)[:, None]
        curve = LogisticRegression().fit(scores, z, sample_weight=weight)
        link = (float(curve.coef_[0, 0]), float(curve.intercept_[0]))
    return Member(model, encoder, low, high, link)


def many_values(estimator: Any, count: str, low: float, high: float) -> str:
    """What is said of a classifier and an outcome of more than two values."""
    return (
        f"{type(estimator).__name__} is a classifier, and y has {count} distinct values (from {low:g} to "
        f"{high:g}): pass a regressor, or choose a threshold yourself, as in y = (spend > 0)"
    )


def fit_effect(estimator: Any, X: Floats, effect: Floats, weight: Weights, schema: Schema, *, seed: int) -> Member:
    """Regress effects of single rows, which are noisy numbers, on the features."""
    if estimator is not None:
        check_estimator(estimator)
    if estimator is not None and not is_regressor(estimator):
        raise ValueError(
            f"effect_estimator={type(estimator).__name__} is not a regressor: effects of single rows are numbers of any size and "
            "sign, so pass a regressor such as Ridge() or RandomForestRegressor()"
        )
    X, effect, weight = _with_weight(X, effect, weight)
    if effect.min() == effect.max():
        return Member(None, low=float(effect.min()))
    return _fit_number(estimator, X, effect, weight, schema, seed, effect=True)


def _fit_number(
    estimator: Any, X: Floats, y: Floats, weight: Weights, schema: Schema, seed: int, effect: bool
) -> Member:
    if estimator is None:
        return Member(
            fit_boosted(X, y, weight, schema, classify=False, what="effect" if effect else "outcome", seed=seed)
        )
    return Member(*_fit_foreign(estimator, X, y, weight, schema))


def _with_weight(X: Floats, y: Floats, weight: Weights) -> tuple[Floats, Floats, Weights]:
    """The rows that count: a weight of 0 is the same as leaving the row out."""
    if weight is None or (weight > 0).all():
        return X, y, weight
    keep = weight > 0
    return X[keep], y[keep], weight[keep]


def _fit_foreign(
    estimator: Any, X: Floats, y: NDArray[Any], weight: Weights, schema: Schema
) -> tuple[Any, LinearEncoder | None]:
    """Fit a copy of a scikit-learn estimator, behind an encoder if it needs one.

    An estimator that takes missing values gets the matrix as it is, with level codes in categorical columns. Every other
    one gets levels as 0-1 columns, means in place of missing numbers, and a 0-1 column that says where those are.
    """
    model = clone(estimator)
    for (
        name,
        value,
    ) in model.get_params().items():  # one that spares a copy would write into rows that others learn from
        if name.split("__")[-1] in ("copy", "copy_X") and value is False:
            model.set_params(**{name: True})
    takes_missing = bool(get_tags(model).input_tags.allow_nan)
    # An encoder also where nothing is missing now: something may be at predict.
    encoder = None if takes_missing else LinearEncoder.fit(X, schema, weight, standardize=False)
    features = X if encoder is None else encoder.transform(X)
    weights = weight_argument(model, weight)
    try:
        with np.errstate(all="ignore"):  # predictions that are not finite are refused
            return model.fit(features, y, **weights), encoder
    except (ValueError, TypeError, FloatingPointError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{type(model).__name__}, the model inside, could not be fitted to these rows: {error}") from error


def weight_argument(model: Any, weight: Weights) -> dict[str, Any]:
    """The weights as a keyword for a foreign estimator's fit, left out when they say nothing."""
    if weight is None or np.ptp(weight) <= 1e-12 * weight.max():
        return {}
    steps = getattr(model, "steps", None)  # a pipeline hands the weights to its last step
    if steps and has_fit_parameter(steps[-1][1], "sample_weight") and not get_config()["enable_metadata_routing"]:
        return {f"{steps[-1][0]}__sample_weight": weight}
    if not has_fit_parameter(model, "sample_weight"):
        raise ValueError(
            f"{type(model).__name__} takes no sample_weight, and this fit needs weights (given ones, or those the method makes): "
            "use an estimator that takes them, or a method that needs none, such as TLearner or "
            "ClassTransformation(reweight=False), without sample_weight"
        )
    return {"sample_weight": weight}


def ask_foreign(ask: Callable[[Floats], Any], features: Floats) -> Floats:
    """What a method of another library's estimator answers; what it complains of is passed on with a word of where it was."""
    try:
        return np.asarray(ask(features), dtype=np.float64)
    except ValueError as error:
        who = type(getattr(ask, "__self__", ask)).__name__
        raise ValueError(f"the {who} inside the model cannot predict for these rows: {error}") from error


def _foreign_prediction(model: Any, features: Floats, link: tuple[float, float] | None) -> Floats:
    if link is not None:
        return np.asarray(expit(link[0] * ask_foreign(model.decision_function, features) + link[1]))
    if classifies(model):
        return np.ascontiguousarray(ask_foreign(model.predict_proba, features)[:, 1])
    return ask_foreign(model.predict, features).reshape(len(features))
