"""Meta-learners: uplift models made from ordinary classifiers and regressors."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn import get_config
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from upturn._encode import LinearEncoder
from upturn._table import Matrix
from upturn._target import Label
from upturn.base import Experiment, UpliftEstimator


class ClassTransformation(UpliftEstimator):
    r"""Uplift by one classifier, on a target that is 1 for treated successes and for control failures.

    With g = 1 in treatment and 0 in control,

    .. math:: z = y g + (1 - y)(1 - g), \qquad \tau(x) = 2\,P(z = 1 \mid x) - 1,

    which is the effect of the treatment on the probability of success when both groups have the same weight. With
    ``reweight=True`` they are given it, so the formula holds for groups of any sizes.

    Parameters
    ----------
    estimator : classifier, optional
        Any scikit-learn classifier. By default a logistic regression that takes raw tables: levels become 0-1 columns,
        missing numbers the mean, and columns are standardised.
    reweight : bool
        Whether to give both groups equal weight. Without it this is the flipped-label model of Kuusisto et al.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier; only when one was given.
    coef_, intercept_ : array, float
        The logistic regression in encoded columns ``coef_names_``; only when no estimator was given.
    control_, arms_ : label, list of labels

    References
    ----------
    Jaśkowski, Jaroszewicz, "Uplift modeling for clinical trial data", 2012.
    Kuusisto et al., "Support vector machines for differential prediction", 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.meta import ClassTransformation
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(1000, 2)), rng.integers(0, 2, 1000)
    >>> y = rng.random(1000) < 0.5 + 0.3 * treatment * np.sign(X[:, 0])
    >>> model = ClassTransformation().fit(X, y, treatment)
    >>> model.recommend([[2.0, 0.0], [-2.0, 0.0]])
    array([1, 0])
    """

    _outcome = "binary"
    _multi_arm = False

    def __init__(self, estimator: Any = None, *, reweight: bool = True, control: Label | None = None) -> None:
        self.estimator = estimator
        self.reweight = reweight
        self.control = control

    def _fit(self, data: Experiment) -> None:
        if self.estimator is not None:
            _check_classifier(self.estimator)
        treated = data.arm == 1
        z = (data.y == treated).astype(np.int64)
        if z.min() == z.max():
            raise ValueError(
                "every treated row has one outcome and every control row the other, so the transformed target is constant and "
                "there is nothing to learn: the effect is the same, and as large as can be, for everybody"
            )
        for name in (
            "estimator_",
            "coef_",
            "intercept_",
            "coef_names_",
        ):  # of an earlier fit, perhaps of the other kind
            self.__dict__.pop(name, None)
        weight = data.weight
        if self.reweight:
            totals = np.bincount(data.arm, weights=weight, minlength=2)
            weight = data.weights * (totals.sum() / (2 * totals))[data.arm]
        if self.estimator is None:
            self.encoder_: LinearEncoder | None = LinearEncoder.fit(data.X, data.schema, weight)
            self.coef_names_ = self.encoder_.names(data.schema)
            model = LogisticRegression().fit(self.encoder_.transform(data.X), z, sample_weight=weight)
            self.coef_, self.intercept_ = model.coef_[0], float(model.intercept_[0])
        else:
            model = clone(self.estimator)
            # Also where nothing is missing now: something may be at predict.
            needs_encoding = not get_tags(model).input_tags.allow_nan
            self.encoder_ = (
                LinearEncoder.fit(data.X, data.schema, weight, standardize=False) if needs_encoding else None
            )
            self.estimator_ = model.fit(self._features(data.X), z, **_weight_argument(model, weight))

    def _features(self, X: Matrix) -> Matrix:
        return X if self.encoder_ is None else self.encoder_.transform(X)

    def _predict(self, X: Matrix) -> NDArray[np.float64]:
        features = self._features(X)
        if not hasattr(self, "estimator_"):  # what was fitted counts, not the parameter, which may have changed since
            probability = expit(features @ self.coef_ + self.intercept_)
        elif hasattr(self.estimator_, "predict_proba"):
            probability = self.estimator_.predict_proba(features)[:, 1]
        else:
            return np.asarray(self.estimator_.decision_function(features), dtype=np.float64)[:, None]
        return np.asarray(2.0 * probability - 1.0)[:, None]

    def _get_state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"encoder": None if self.encoder_ is None else self.encoder_.get_state()}
        if not hasattr(self, "estimator_"):
            return {**state, "coef": self.coef_, "intercept": self.intercept_}
        return {**state, "estimator": self.estimator_}

    def _set_state(self, state: dict[str, Any]) -> None:
        encoder = state["encoder"]
        self.encoder_ = None if encoder is None else LinearEncoder.from_state(encoder, self._schema)
        if "estimator" in state:
            self.estimator_ = state["estimator"]
            _check_classifier(self.estimator_)
            return
        if self.encoder_ is None:
            raise ValueError("the logistic regression has lost its encoder")
        self.coef_names_ = self.encoder_.names(self._schema)
        self.coef_, self.intercept_ = state["coef"], state["intercept"]
        if self.coef_.shape != (len(self.coef_names_),) or self.coef_.dtype != np.float64:
            raise ValueError("the coefficients do not fit the columns")
        if not isinstance(self.intercept_, float) or not np.isfinite([*self.coef_, self.intercept_]).all():
            raise ValueError("the coefficients are not finite")


def _check_classifier(estimator: Any) -> None:
    if not hasattr(estimator, "fit") or not (
        hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")
    ):
        raise TypeError(
            f"estimator={reprlib.repr(estimator)} has neither predict_proba nor decision_function: expected a classifier such "
            "as LogisticRegression(), or None for the one built in"
        )


def _weight_argument(model: Any, weight: NDArray[np.float64] | None) -> dict[str, Any]:
    """The weights as a keyword for a foreign estimator's fit, left out when they say nothing."""
    if weight is None or np.ptp(weight) <= 1e-12 * weight.max():
        return {}
    steps = getattr(model, "steps", None)  # a pipeline hands the weights to its last step
    if steps and has_fit_parameter(steps[-1][1], "sample_weight") and not get_config()["enable_metadata_routing"]:
        return {f"{steps[-1][0]}__sample_weight": weight}
    if not has_fit_parameter(model, "sample_weight"):
        raise ValueError(
            f"{type(model).__name__} takes no sample_weight, and this fit needs weights (given ones, or those that balance groups "
            "of different sizes): use an estimator that takes them, or reweight=False without sample_weight"
        )
    return {"sample_weight": weight}
