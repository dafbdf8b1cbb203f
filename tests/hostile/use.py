"""Load a file and ask the model everything; say how it went.

========  ==============================================================================================================
clear     refused in words: ModelFileError at load, or a ValueError or TypeError raised by the library itself when asked (a
          ValueError by scikit-learn's own checks, where a step of a pipeline does not take the rows)
right     it loads, and whatever it says is finite, of the right shape, among its labels
raw       any other exception, or memory out of proportion
silent    a number that is not finite, a wrong shape or a label that is none
crash     the process died (said by the pool)
hang      it took too long (said by the pool)
========  ==============================================================================================================
"""

from __future__ import annotations

import contextlib
import traceback
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
import sklearn

import upturn as up
from hostile.corpus import experiment
from upturn import ModelFileError, persist

ROWS = 9
_HOME, _SKLEARN = str(Path(up.__file__).parent), str(Path(sklearn.__file__).parent)


class Silent(Exception):
    """An answer that is wrong and looks like one."""


def rows_for(model):
    """Rows as the model's columns want them: numbers, holes, every kind of level and one nobody has seen."""
    schema, rng = model._schema, np.random.default_rng(0)
    columns = {}
    for name, levels in zip(schema.names, schema.levels, strict=True):
        if levels is None:
            column = rng.uniform(0.0, 1.0, ROWS) * [1.0, 1.0, 10.0, 100.0, 1e6, 1.0, -1.0, 1.0, 0.0]
            column[5] = 0.5
            columns[name] = np.where(np.arange(ROWS) == 7, np.nan, column) if name != "chance" else np.full(ROWS, 0.4)
        else:
            column = np.empty(ROWS, dtype=object)
            column[:] = [levels[i % len(levels)] if levels else None for i in range(ROWS)]
            column[ROWS - 2 :] = [None, "never seen"]
            columns[name] = column
    with contextlib.suppress(UnicodeEncodeError):  # pandas takes no lone surrogates for names
        if schema.named:
            return pd.DataFrame(columns)
    return np.column_stack(list(columns.values()))


def _finite(name, answer, *shape):
    answer = np.asarray(answer)
    if shape and answer.shape != shape:
        raise Silent(f"{name} has shape {answer.shape}, not {shape}")
    if not np.isfinite(answer.astype(np.float64)).all():
        raise Silent(f"{name} is not finite")


def ask_pipeline(pipeline):
    """Predict for rows of the table the pipelines were fitted to, with holes, and with a level nobody has seen."""
    X = experiment()[0][:ROWS].assign(channel=["web", "phone", "shop", "mail", "web", "shop", "web", "mail", "post"])
    last = pipeline
    while hasattr(last, "steps"):
        last = last.steps[-1][1]
    arms = len(last.arms_)
    repr(pipeline)
    for rows in (X, X[:1].assign(age=np.nan), X.assign(visits=3.0)):
        _finite("predict", pipeline.predict(rows), *((len(rows),) if arms == 1 else (len(rows), arms)))


def ask(model):
    """Everything a user would ask."""
    X = rows_for(model)
    repr(model)
    if model._takes_sparse() and not any(map(bool, model._schema.levels)):
        try:
            matrix = sp.csr_matrix(np.nan_to_num(np.asarray(X, dtype=np.float64)))
            _finite("predict of a sparse matrix", model.predict(matrix))
        except ValueError as error:
            if not _ours(error):
                raise
    if hasattr(model, "transform"):
        out = np.asarray(model.transform(X))
        if len(out) != ROWS or len(model.get_feature_names_out()) != out.shape[1]:
            raise Silent("transform has lost its shape")
        if hasattr(model, "summary"):
            str(model.summary())
            for how in ("code", "effect", "onehot"):
                _finite(how, model.encode_as(X, how))
        _finite("importances", model.feature_importances_, model.n_features_in_)
        return
    arms = len(model.arms_)
    shape = (ROWS,) if arms == 1 else (ROWS, arms)
    known = {model.control_, *model.arms_}
    for name in (
        "predict",
        "recommend",
        "predict_response",
        "predict_interval",
        "staged_predict",
        "predict_sign",
        "apply",
    ):
        if not hasattr(model, name):
            continue
        try:
            if name == "recommend":
                if not set(model.recommend(X).tolist()) <= known:
                    raise Silent("recommend gives a label that is none")
            elif name == "predict_response":
                _finite(name, model.predict_response(X), ROWS, 1 + arms)
            elif name == "predict_interval":
                low, high = model.predict_interval(X)
                _finite(name, low, *shape)
                _finite(name, high, *shape)
            elif name == "staged_predict":
                for scores in model.staged_predict(X):
                    _finite(name, scores, *shape)
            elif name == "predict":
                _finite(name, model.predict(X), *shape)
            else:
                _finite(name, getattr(model, name)(X))
        except ValueError as error:
            if not _ours(error):
                raise
    for name in ("feature_importances_", "table_", "export_text", "coef_", "n_restarts_", "imbalance_"):
        try:
            found = getattr(model, name, None)  # an AttributeError says that there is none
            if name == "feature_importances_" and found is not None:
                _finite(name, found, model.n_features_in_)
            elif name == "table_":
                str(found)
            elif name == "export_text" and found is not None:
                found()
        except ValueError as error:
            if not _ours(error):
                raise


def _ours(error, home=_HOME):
    """Whether the library raised it itself, and not numpy somewhere below."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return last.filename.startswith(home) and (last.line or "").startswith("raise")


def in_words(error, pipeline):
    """Whether rows were refused by the library itself or, for a pipeline, by scikit-learn's own checks of them."""
    if isinstance(error, ValueError | TypeError) and _ours(error):
        return True
    return pipeline and isinstance(error, ValueError) and _ours(error, _SKLEARN)


def _chain(error):
    while error is not None:
        yield error
        error = error.__cause__


def judge(content, path):
    """(verdict, what happened) of a file."""
    path.write_bytes(content)
    step = "load"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = up.load(path)
            step = "use"
            if hasattr(model, "steps"):
                ask_pipeline(model)
            elif model.__sklearn_is_fitted__():
                ask(model)
            step = "save"
            persist.Writer().pipeline(model) if hasattr(model, "steps") else persist.Writer().encode(model)
        except ModelFileError as error:
            if any(isinstance(one, MemoryError) for one in _chain(error)):
                return "raw", f"memory at load: {_where(error)}"
            return "clear", ""
        except Silent as error:
            return "silent", f"{type(model).__name__}: {error}"
        except Exception as error:
            if step == "use" and in_words(error, hasattr(model, "steps")):
                return "clear", ""
            return "raw", f"{step}: {_where(error)}"
    return "right", ""


def _where(error):
    *_, deepest = _chain(error)
    frames = [f for f in traceback.extract_tb(deepest.__traceback__) if f.filename.startswith(_HOME)]
    place = f"{Path(frames[-1].filename).relative_to(_HOME)}:{frames[-1].lineno}" if frames else "?"
    return f"{type(deepest).__name__} at {place}: {str(deepest)[:160]}"
