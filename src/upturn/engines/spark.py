"""Uplift models as stages of a ``pyspark.ml`` pipeline."""

from __future__ import annotations

import base64
import json
import tempfile
from pathlib import Path
from typing import Any

from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from sklearn.base import clone

from upturn.boosting import UpliftBagging, UpliftBoosting
from upturn.engines._fit import fit
from upturn.engines._learn import check_spread
from upturn.engines._predict import predict
from upturn.engines._spark import NAME
from upturn.meta import OneVsControl
from upturn.persist import load
from upturn.svm import StandardSVM, SubgroupSVM, TwoCostSVM, UpliftSVM
from upturn.trees import CTSForest, UCTSForest, UpliftForest, UpliftTree

_KINDS = {
    kind.__name__: kind
    for kind in (
        UpliftTree, UpliftForest, CTSForest, UCTSForest, UpliftBoosting, UpliftBagging, UpliftSVM, StandardSVM, TwoCostSVM, SubgroupSVM,
        OneVsControl,
    )
}  # fmt: skip


class SparkUplift(Estimator, DefaultParamsReadable, DefaultParamsWritable):  # type: ignore[misc]
    """A model that is fitted to a Spark DataFrame, as a stage of a pipeline.

    Parameters
    ----------
    model : UpliftTree, UpliftForest, CTSForest, UCTSForest, UpliftBoosting or UpliftBagging over trees, linear UpliftSVM, StandardSVM, TwoCostSVM or SubgroupSVM, or OneVsControl over one of them
        What is fitted, by :func:`upturn.engines.fit`.
    featuresCols : list of str, optional
        Columns to learn from; all others by default.
    outcomeCol, treatmentCol, weightCol : str
        Columns of the outcome, the arm and, if there is one, the weight.
    rowIdCol : str, optional
        Column of row ids (``row_id`` of :func:`upturn.engines.fit`).
    """

    featuresCols: Any = Param(Params._dummy(), "featuresCols", "columns to learn from", TypeConverters.toListString)
    outcomeCol: Any = Param(Params._dummy(), "outcomeCol", "column of the outcome", TypeConverters.toString)
    treatmentCol: Any = Param(Params._dummy(), "treatmentCol", "column of the arm", TypeConverters.toString)
    weightCol: Any = Param(Params._dummy(), "weightCol", "column of the weight", TypeConverters.toString)
    rowIdCol: Any = Param(Params._dummy(), "rowIdCol", "column of row ids", TypeConverters.toString)
    modelJson: Any = Param(Params._dummy(), "modelJson", "class and parameters of the model", TypeConverters.toString)

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(
        self,
        *,
        model: Any = None,
        featuresCols: list[str] | None = None,
        outcomeCol: str | None = None,
        treatmentCol: str | None = None,
        weightCol: str | None = None,
        rowIdCol: str | None = None,
    ) -> None:
        super().__init__()
        given = {name: value for name, value in self._input_kwargs.items() if value is not None and name != "model"}
        if model is not None:
            given["modelJson"] = _to_json(model)
        self._set(**given)

    @property
    def model(self) -> Any:
        """The model that is fitted, as it was given."""
        if not self.isDefined(self.modelJson):
            raise ValueError("SparkUplift has no model to fit: pass one, as in SparkUplift(model=UpliftForest())")
        return _from_json(self.getOrDefault(self.modelJson))

    def _fit(self, dataset: Any) -> SparkUpliftModel:
        def given(param: Any) -> Any:
            return self.getOrDefault(param) if self.isDefined(param) else None

        columns = (self.outcomeCol, self.treatmentCol, self.weightCol, self.featuresCols)
        fitted = fit(clone(self.model), dataset, *(given(param) for param in columns), row_id=given(self.rowIdCol))
        return SparkUpliftModel(fitted)


class SparkUpliftModel(Model, DefaultParamsReadable, DefaultParamsWritable):  # type: ignore[misc]
    """A fitted uplift model as a stage of a pipeline: ``transform`` adds its scores, as :func:`upturn.engines.predict` does.

    ``model`` is the ordinary model, which predicts, recommends and is saved without Spark.
    """

    saved: Any = Param(Params._dummy(), "saved", "the model's file, in base64", TypeConverters.toString)

    def __init__(self, model: Any = None) -> None:
        super().__init__()
        if model is not None:
            self._set(saved=_to_text(model))

    @property
    def model(self) -> Any:
        """The fitted model."""
        return _from_text(self.getOrDefault(self.saved))

    def _transform(self, dataset: Any) -> Any:
        return predict(self.model, dataset)


def _to_json(model: Any) -> str:
    """Classes and parameters of a model and of those inside it."""
    if type(model) not in _KINDS.values():
        raise TypeError(f"model is a {type(model).__name__}: expected one of {', '.join(_KINDS)}")
    check_spread(model, NAME)
    try:
        return json.dumps(_plain(model))
    except TypeError:
        raise TypeError(
            f"parameters of {type(model).__name__} that are no numbers, text, lists or models of upturn cannot be kept with a pipeline: pass random_state as a number"
        ) from None


def _plain(value: Any) -> Any:
    if type(value) not in _KINDS.values():
        return value
    params = {name: _plain(one) for name, one in value.get_params(deep=False).items()}
    return {"model": type(value).__name__, "params": params}


def _from_json(text: str) -> Any:
    return _made(json.loads(text))


def _made(found: Any) -> Any:
    if not isinstance(found, dict):
        return found
    if found.get("model") not in _KINDS:
        raise ValueError(f"the pipeline holds a model {found.get('model')!r}: expected one of {', '.join(_KINDS)}")
    return _KINDS[found["model"]](**{name: _made(one) for name, one in found["params"].items()})


def _to_text(model: Any) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.upturn"
        model.save(path)
        return base64.b64encode(path.read_bytes()).decode()


def _from_text(text: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.upturn"
        path.write_bytes(base64.b64decode(text))
        return load(path)
