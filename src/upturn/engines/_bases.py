"""Models of outcomes that learn where rows lie: those of LightGBM and XGBoost for Dask, and of XGBoost for Spark.

A base is told from others by the class it is of, nothing of these libraries is imported before it is needed. What comes of a fit is the library's ordinary model
in this process.
"""

from __future__ import annotations

import copy
import reprlib
from typing import Any

from sklearn.base import clone

_FAMILIES = {
    ("lightgbm", "DaskLGBM"): "dask",
    ("xgboost", "DaskXGB"): "dask",
    ("xgboost", "SparkXGB"): "spark",
}
_KINDS = ("Classifier", "Regressor")
_ADVICE = {
    "dask": "lightgbm.DaskLGBMClassifier(), xgboost.dask.DaskXGBClassifier() or their regressors",
    "spark": "xgboost.spark.SparkXGBClassifier() or SparkXGBRegressor()",
}


def engine_of_base(estimator: Any) -> str | None:
    """Which engine a base learns on; None if it is none of those that do."""
    kind = type(estimator)
    for (library, name), engine in _FAMILIES.items():
        if kind.__module__.partition(".")[0] == library and kind.__name__ in [name + one for one in _KINDS]:
            return engine
    return None


def is_classifier(estimator: Any) -> bool:
    """Whether a base that learns on an engine predicts classes."""
    return type(estimator).__name__.endswith(_KINDS[0])


def check_base(learner: Any, name: str, estimator: Any, engine: str) -> None:
    """Refuse a base that needs all rows in one place, or that learns on another engine; ``name`` is that of the parameter."""
    if engine_of_base(estimator) == engine:
        return
    inside = "gradient boosting" if estimator is None else reprlib.repr(type(estimator).__name__)[1:-1]
    why = "needs all rows in one place" if engine_of_base(estimator) is None else "learns on another engine"
    raise TypeError(
        f"{type(learner).__name__} does not run on a cluster with {name}={inside}, which {why}: pass {_ADVICE[engine]}; or use UpliftForest, or fit it "
        "to engines.sample(table, n)"
    )


def check_cluster(model: Any) -> None:
    """Refuse bases that learn on a cluster of Dask where there is none: its tables are also computed by threads of this process, bases are not."""
    for name in ("estimator", "effect_estimator"):
        base = getattr(model, name, None)
        if engine_of_base(base) == "dask" and not _has_client(base):
            raise RuntimeError(
                f"{name}={type(base).__name__} learns on the workers of a Dask cluster, and this process has no client of one: start one before the fit, "
                "as in client = distributed.Client()"
            )


def _has_client(estimator: Any) -> bool:
    """Whether a base of Dask knows a cluster: one of its own (``client`` of LightGBM, ``_client`` of XGBoost), or that of this process."""
    if estimator.get_params().get("client") is not None or getattr(estimator, "_client", None) is not None:
        return True
    try:
        from distributed import get_client

        get_client()
    except (ImportError, ValueError):
        return False
    return True


def copied(estimator: Any) -> Any:
    """A copy to fit."""
    return clone(estimator) if engine_of_base(estimator) == "dask" else copy.deepcopy(estimator)


def to_local(fitted: Any, *, classify: bool) -> Any:
    """A model that was fitted on an engine as one of this process."""
    if hasattr(fitted, "to_local"):
        return fitted.to_local()
    import xgboost

    model = xgboost.XGBClassifier() if classify else xgboost.XGBRegressor()
    model.load_model(fitted.get_booster().save_raw())
    return model
