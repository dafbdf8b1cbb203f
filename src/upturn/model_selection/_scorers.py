"""Scorers: every metric in the form that GridSearchCV and its kin call."""

from __future__ import annotations

import reprlib
from typing import Any, ClassVar

from sklearn.utils._metadata_requests import _MetadataRequester

from upturn._rows import take_named
from upturn._target import read_target
from upturn.metrics._registry import check_options, find_metric


class UpliftScorer(_MetadataRequester):  # type: ignore[misc]
    """A metric that scikit-learn's searches call as ``scorer(model, X, y)``; larger is better.

    Made by :func:`uplift_scorer`. ``y`` is a packed target, or plain with ``treatment`` when metadata routing is on.
    Called by hand, all but X may be names of columns of X, as in ``scorer(model, table, "visit", "segment")``.
    """

    __metadata_request__score: ClassVar = {"treatment": True, "sample_weight": True}

    def __init__(self, metric: str, options: dict[str, Any]) -> None:
        self.metric, self.options = metric, options

    def __call__(self, estimator: Any, X: Any, y: Any, treatment: Any = None, sample_weight: Any = None) -> float:
        """Measure a fitted model on X and y, whose arms must be those of the fit; columns may be named in X."""
        X, columns, _ = take_named(X, y=y, treatment=treatment, sample_weight=sample_weight)
        y, treatment, sample_weight = columns.values()
        check_arms(estimator, y, treatment, sample_weight)
        control = self.options.get("control", control_of(estimator))
        options = {name: value for name, value in self.options.items() if name != "control"}
        metric = find_metric(self.metric)
        if metric.measures == "predict" and not hasattr(estimator, "predict"):
            raise TypeError(
                f"estimator={reprlib.repr(estimator)} has no predict: expected a fitted model, such as UpliftForest()"
            )
        said = estimator.predict(X) if metric.measures == "predict" else recommended_by(estimator, X)
        return float(metric.number(y, said, treatment, sample_weight, control, options))

    def score(self, estimator: Any, X: Any, y: Any, treatment: Any = None, sample_weight: Any = None) -> float:
        """The same as calling it."""
        return self(estimator, X, y, treatment, sample_weight)

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"uplift_scorer({self.metric!r}{options})"


def fitted_model(estimator: Any) -> Any:
    """The model that predicts: the last step of a pipeline, the best estimator of a search, however they are nested."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif getattr(estimator, "steps", None):
            estimator = estimator.steps[-1][1]
        else:
            return estimator


def recommended_by(estimator: Any, X: Any) -> Any:
    """What a fitted model recommends, behind searches and pipelines that have no ``recommend`` of their own."""
    if hasattr(estimator, "recommend"):
        return estimator.recommend(X)
    if hasattr(estimator, "best_estimator_"):
        return recommended_by(estimator.best_estimator_, X)
    if getattr(estimator, "steps", None):
        return recommended_by(estimator.steps[-1][1], estimator[:-1].transform(X) if len(estimator.steps) > 1 else X)
    raise TypeError(f"{type(estimator).__name__} has no recommend: this metric measures recommended arms")


def control_of(estimator: Any) -> Any:
    """The control label of a fitted model, or None for a model that does not know it."""
    return getattr(fitted_model(estimator), "control_", None)


def check_arms(estimator: Any, y: Any, treatment: Any = None, sample_weight: Any = None) -> None:
    """Raise where the arms of a sample are not those that a fitted model knows, all of them."""
    model = fitted_model(estimator)
    if hasattr(model, "control_") and hasattr(model, "arms_"):
        read_target(y, treatment, sample_weight, known=(model.control_, model.arms_))


def uplift_scorer(metric: str = "auuc", **options: Any) -> UpliftScorer:
    """A scorer for ``scoring=`` of GridSearchCV, cross_val_score, permutation_importance and their kin.

    Parameters
    ----------
    metric : str
        Name of a metric, such as "auuc" or "uplift_at", which measure ``predict``, or "policy_value", which measures
        ``recommend``; an unknown one is answered with all there are.
    **options
        Keywords of the metric, such as ``k=0.1`` for "uplift_at" or ``convention="sklift"``; any other is refused at once.

    Returns
    -------
    UpliftScorer

    Examples
    --------
    >>> import numpy as np, upturn as up
    >>> from sklearn.model_selection import cross_val_score
    >>> from upturn.meta import ClassTransformation
    >>> from upturn.model_selection import UpliftKFold, uplift_scorer
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(900, 2)), rng.integers(0, 2, 900)
    >>> y = rng.random(900) < 0.5 + 0.3 * treatment * np.sign(X[:, 0])
    >>> scoring = uplift_scorer("uplift_at", k=0.25)
    >>> folds = UpliftKFold(3, random_state=0)
    >>> bool(cross_val_score(ClassTransformation(), X, up.pack(y, treatment), cv=folds, scoring=scoring).mean() > 0.2)
    True
    """
    found = find_metric(metric)
    if "interval" in options:
        raise ValueError("a scorer gives a plain number: leave interval out")
    check_options(metric, options, [*found.all_options, "control"])
    found.choose(options)
    return UpliftScorer(metric, options)
