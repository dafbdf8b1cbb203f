"""Steps of scikit-learn in a pipeline that ends in a model of ours: which may be rebuilt without trust, and what is checked first.

skops rebuilds attributes as they are in the file. A step that is known here is looked at before anybody asks it: arrays have the
shape of the columns and hold numbers, levels are in order, and what an encoder derives from them is derived anew, because its
compiled code does not look where it writes.
"""

from __future__ import annotations

from collections import UserList
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
        _looking(part, _check_part)
        for parameter, ours in (("n_jobs", n_jobs), ("verbose", False), ("memory", None)):
            if _known(part) and parameter in part.get_params(deep=False):
                setattr(part, parameter, ours)
    check_inside(step)


def check_inside(estimator: Any) -> None:
    """Refuse an estimator that is not what its type says, whatever its state: it, and all that it holds.

    An attribute by the name of a method would be called in its place. Those of a pipeline that have a state are looked at, too.
    """
    for part in _within(estimator):
        _looking(part, _check_nature)
    for part in _parts(estimator) if isinstance(estimator, BaseEstimator) else ():
        if any(name.endswith("_") and not name.startswith("_") for name in vars(part)):
            _looking(part, _check_part)


def _known(part: Any) -> bool:
    """Whether it is of a type that needs no trust."""
    return f"{type(part).__module__}.{type(part).__name__}" in STEPS


def _looking(part: Any, check: Callable[[Any, str], None]) -> None:
    name = type(part).__name__
    if not _known(part):
        return  # of a type that was trusted
    try:
        check(part, name)
    except ModelFileError:
        raise
    except Exception as error:
        raise _bad(name, f"{type(error).__name__}: {str(error)[:200]}") from error


def _parts(step: Any) -> Iterator[Any]:
    """A step and, of a pipeline or a transformer of columns, the fitted ones inside."""
    if not isinstance(step, BaseEstimator):
        if step is None or (isinstance(step, str) and step in ("passthrough", "drop")):
            return
        raise ModelFileError(f"a step of the pipeline is a {type(step).__name__}: expected an estimator")
    yield step
    for inner in (*getattr(step, "steps", ()), *getattr(step, "transformers_", ())):
        yield from _parts(inner[1])


def _within(value: Any) -> Iterator[Any]:
    """Every estimator in a value."""
    if isinstance(value, BaseEstimator):
        yield value
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype.hasobject and value.ndim):
        for item in value:
            yield from _within(item)


def _check_nature(part: Any, name: str) -> None:
    """Attributes are values, not methods; parameters are such as scikit-learn takes."""
    parameters = type(part)._get_param_names()
    hidden = (set(vars(part)) & set(dir(type(part)))) - set(parameters)
    if hidden:
        raise _bad(name, f"{sorted(hidden)[0]!r} is not its own")
    output = getattr(part, "_sklearn_output_config", {})
    if not isinstance(output, dict) or not set(output.values()) <= {"default", "pandas", "polars"}:
        raise _bad(name, "what it puts out")
    if "_metadata_request" in vars(part):
        raise _bad(name, "it asks for more than rows")
    part._validate_params()
    pairs = {"Pipeline": ("steps", 2), "ColumnTransformer": ("transformers", 3)}
    if name in pairs:
        _check_pairs(getattr(part, pairs[name][0]), name, pairs[name][1])
    part.__sklearn_tags__()


def _check_pairs(pairs: Any, name: str, length: int) -> list[str]:
    """Names that differ, each with an estimator, and maybe with columns."""
    good = isinstance(pairs, list) and all(isinstance(pair, tuple | list) and len(pair) == length for pair in pairs)
    names = [pair[0] for pair in pairs] if good and pairs else []
    if not names or not all(isinstance(one, str) for one in names) or len(set(names)) < len(names):
        raise _bad(name, "its parts")
    for pair in pairs:
        if not isinstance(pair[1], BaseEstimator) and pair[1] is not None and pair[1] not in ("passthrough", "drop"):
            raise _bad(name, f"a part of type {type(pair[1]).__name__}")
    return names


def _check_part(part: Any, name: str) -> None:
    if name == "Pipeline":
        return  # of parts that are looked at, put together by Python
    if name == "FunctionTransformer" and (part.func is not None or part.inverse_func is not None):
        raise _bad(name, "it has a function")
    width = getattr(part, "n_features_in_", None)
    if name == "FunctionTransformer" and width is None:
        return
    if type(width) is not int or not 1 <= width <= 1 << 31:
        raise _bad(name, "its number of columns")
    names = getattr(part, "feature_names_in_", None)
    if names is not None:
        good = isinstance(names, np.ndarray) and names.shape == (width,) and names.dtype == object
        if not good or not all(isinstance(one, str) for one in names) or len(set(names)) < width:
            raise _bad(name, "feature_names_in_")
    checks: dict[str, Callable[[Any, int], None]] = {
        "ColumnTransformer": _check_columns,
        "DummyClassifier": _check_dummy,
        "DummyRegressor": _check_dummy,
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
    return ModelFileError(f"the {name} in it is not sound ({what})")


def _numbers(step: Any, attribute: str, shape: tuple[int, ...]) -> None:
    """An attribute is an array of finite numbers of this shape."""
    array = getattr(step, attribute)
    good = isinstance(array, np.ndarray) and array.dtype.kind in "iuf" and array.shape == shape
    if not good or not np.isfinite(array).all():
        raise _bad(type(step).__name__, attribute)


def _check_columns(step: Any, width: int) -> None:
    """Which columns go where: what is looked up by name is there, and within the table."""
    places, weights = step._transformer_to_input_indices, step.transformer_weights or {}
    for name in _check_pairs(step.transformers_, "ColumnTransformer", 3):
        found = places[name]
        if not isinstance(found, list) or not all(type(j) is int and 0 <= j < width for j in found):
            raise _bad("ColumnTransformer", f"the columns of {name[:40]!r}")
    for _, _, columns in step.transformers_:
        _check_chosen(columns, width)
    if not isinstance(step.sparse_output_, bool) or not isinstance(step.output_indices_, dict):
        raise _bad("ColumnTransformer", "sparse_output_ or output_indices_")
    if not all(isinstance(weight, int | float) and np.isfinite(weight) for weight in weights.values()):
        raise _bad("ColumnTransformer", "transformer_weights")


def _check_chosen(columns: Any, width: int) -> None:
    """Columns as a user chooses them: a name, a number, truth values, or several."""
    # Older versions keep the remaining columns in a list of their own kind.
    several = list(columns) if isinstance(columns, list | UserList | np.ndarray) else [columns]
    kinds = {
        bool if isinstance(one, bool | np.bool_) else int if isinstance(one, int | np.integer) else type(one)
        for one in several
    }
    if isinstance(columns, slice):
        ends = [end for end in (columns.start, columns.stop, columns.step) if end is not None]
        good = columns.step != 0 and all(isinstance(end, int | str) for end in ends)
    else:
        good = kinds <= {str} or (kinds == {int} and all(-width <= one < width for one in several))
        good = good or (kinds == {bool} and len(several) == width)
    if not good:
        raise _bad("ColumnTransformer", "the choice of its columns")


def _check_dummy(model: Any, width: int) -> None:
    """Numbers of outputs and of classes, for which it makes columns, are those of what it holds."""
    name = type(model).__name__
    if model.n_outputs_ != 1:
        raise _bad(name, "n_outputs_")
    if name == "DummyRegressor":
        _numbers(model, "constant_", (1, 1))
        return
    if not isinstance(model.classes_, np.ndarray) or model.classes_.shape != (model.n_classes_,):
        raise _bad(name, "n_classes_")
    _numbers(model, "class_prior_", (model.n_classes_,))


def _check_imputer(step: Any, width: int) -> None:
    filled = step.statistics_
    if not isinstance(filled, np.ndarray) or filled.shape != (width,) or filled.dtype.kind not in "biufOU":
        raise _bad("SimpleImputer", "statistics_")
    if getattr(step, "indicator_", None) is not None:
        raise _bad("SimpleImputer", "indicator_")
    for attribute in {"_fit_dtype", "_fill_dtype"} & set(vars(step)):  # older versions have one of them
        kind = getattr(step, attribute)
        if not isinstance(kind, np.dtype) or kind.kind not in "biufOU" or kind.itemsize > 1 << 12:
            raise _bad("SimpleImputer", attribute)
        if kind.kind in "biuf" and not all(isinstance(one, bool | int | float | np.number) for one in filled.tolist()):
            raise _bad("SimpleImputer", "statistics_ that are no numbers")


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
        if column.dtype == object and not all(isinstance(one, str | int | float | np.generic | None) for one in column):
            raise _bad(type(step).__name__, "categories_ that are no levels")
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
