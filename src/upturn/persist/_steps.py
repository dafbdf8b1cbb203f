"""Steps of scikit-learn in a pipeline that ends in a model of ours: which may be rebuilt without trust, and what is checked first.

skops rebuilds attributes as they are in the file. A step that is known here is looked at before anybody asks it: arrays have the
shape of the columns and hold numbers, levels are in order, and what an encoder derives from them is derived anew, because its
compiled code does not look where it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from upturn.persist._foreign import HARMLESS, IN_STEPS
from upturn.persist._format import ModelFileError

_SCALERS = {
    "StandardScaler": {"mean_": "with_mean", "scale_": "with_std"},
    "MinMaxScaler": {"min_": "", "scale_": ""},
    "MaxAbsScaler": {"scale_": ""},
    "RobustScaler": {"center_": "with_centering", "scale_": "with_scaling"},
}  # arrays with a number for each column, and the parameter without which there is none
_ENCODERS = ("OneHotEncoder", "OrdinalEncoder")
# Types a step may be, or hold, without being trusted.
STEPS = HARMLESS | IN_STEPS


def check_step(step: Any, n_jobs: int | None) -> None:
    """Refuse a step, or a part of one, whose state is not that of a fitted transformer of its kind."""
    for part in _parts(step):
        name = type(part).__name__
        if f"{type(part).__module__}.{name}" not in STEPS:
            continue  # of a type that was trusted
        try:
            _check_part(part, name)
        except ModelFileError:
            raise
        except Exception as error:
            raise _bad(name, f"{type(error).__name__}: {str(error)[:200]}") from error
        for parameter, ours in (("n_jobs", n_jobs), ("verbose", False), ("memory", None)):
            if parameter in part.get_params(deep=False):
                setattr(part, parameter, ours)


def _parts(step: Any) -> Iterator[Any]:
    """A step and, of a pipeline or a transformer of columns, the fitted ones inside."""
    if not isinstance(step, BaseEstimator):
        if step is None or (isinstance(step, str) and step in ("passthrough", "drop")):
            return
        raise ModelFileError(f"a step of the pipeline is a {type(step).__name__}: expected an estimator")
    yield step
    for inner in (*getattr(step, "steps", ()), *getattr(step, "transformers_", ())):
        yield from _parts(inner[1])


def _check_part(part: Any, name: str) -> None:
    if name in ("Pipeline", "ColumnTransformer"):
        return  # of parts that are looked at, put together by Python
    if name == "FunctionTransformer":
        if part.func is not None or part.inverse_func is not None:
            raise _bad(name, "it has a function")
        return
    width = part.n_features_in_
    if not isinstance(width, int) or not 1 <= width <= 1 << 31:
        raise _bad(name, "its number of columns")
    checks: dict[str, Callable[[Any, int], None]] = {
        "SimpleImputer": _check_imputer,
        "OneHotEncoder": _check_one_hot,
        "OrdinalEncoder": _check_levels,
        "PCA": _check_components,
        "VarianceThreshold": lambda step, p: _numbers(step, "variances_", (p,)),
    }
    for attribute, parameter in _SCALERS.get(name, {}).items():
        if not parameter or getattr(part, parameter):
            _numbers(part, attribute, (width,))
            if attribute == "scale_" and not part.scale_.all():
                raise _bad(name, "a scale of 0")
    if name in checks:
        checks[name](part, width)


def _bad(name: str, what: str) -> ModelFileError:
    return ModelFileError(f"the {name} in its pipeline is not sound ({what})")


def _numbers(step: Any, attribute: str, shape: tuple[int, ...]) -> None:
    """An attribute is an array of finite numbers of this shape."""
    array = getattr(step, attribute)
    good = isinstance(array, np.ndarray) and array.dtype.kind in "iuf" and array.shape == shape
    if not good or not np.isfinite(array).all():
        raise _bad(type(step).__name__, attribute)


def _check_imputer(step: Any, width: int) -> None:
    filled = step.statistics_
    if not isinstance(filled, np.ndarray) or filled.shape != (width,) or filled.dtype.kind not in "biufOU":
        raise _bad("SimpleImputer", "statistics_")
    if getattr(step, "indicator_", None) is not None:
        raise _bad("SimpleImputer", "indicator_")


def _check_components(step: Any, width: int) -> None:
    found = len(step.components_)
    _numbers(step, "components_", (found, width))
    _numbers(step, "mean_", (width,))
    _numbers(step, "explained_variance_", (found,))
    if step.n_components_ != found or (step.explained_variance_ < 0).any():
        raise _bad("PCA", "n_components_ or explained_variance_")


def _check_levels(step: Any, width: int) -> None:
    """Levels of every column; numbers in order, because they are looked up by halving."""
    levels = step.categories_
    if not isinstance(levels, list) or len(levels) != width:
        raise _bad(type(step).__name__, "categories_")
    for column in levels:
        if not isinstance(column, np.ndarray) or column.ndim != 1 or not len(column):
            raise _bad(type(step).__name__, "categories_")
        if column.dtype.kind not in "biufUO":
            raise _bad(type(step).__name__, f"categories_ of type {column.dtype}")
        if column.dtype.kind in "biuf":
            known = column[:-1] if np.isnan(column[-1]) else column
            if np.isnan(known).any() or not (known[1:] > known[:-1]).all():
                raise _bad(type(step).__name__, "categories_ out of order")
    if np.dtype(step.dtype).kind not in "biuf":
        raise _bad(type(step).__name__, "dtype")
    if step.min_frequency is not None or step.max_categories is not None:
        raise _bad(type(step).__name__, "it groups rare levels, which needs trust in what a file says of them")
    step._infrequent_enabled = False


def _check_one_hot(step: Any, width: int) -> None:
    _check_levels(step, width)
    step._set_drop_idx()  # both are what the encoder writes by
    step._n_features_outs = step._compute_n_features_outs()
