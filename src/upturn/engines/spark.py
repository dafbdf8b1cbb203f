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

from upturn import trees
from upturn.engines._fit import fit
from upturn.engines._predict import predict
from upturn.persist import load


class SparkUplift(Estimator, DefaultParamsReadable, DefaultParamsWritable):  # type: ignore[misc]
    """A model of trees that is fitted to a Spark DataFrame, as a stage of a pipeline.

    Parameters
    ----------
    model : UpliftTree, UpliftForest, CTSForest or UCTSForest
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
    kind = type(model).__name__
    if getattr(trees, kind, None) is not type(model):
        raise TypeError(f"model is a {kind}: expected UpliftTree, UpliftForest, CTSForest or UCTSForest")
    try:
        return json.dumps([kind, model.get_params()])
    except TypeError:
        raise TypeError(
            f"parameters of {kind} that are no numbers, text or lists cannot be kept with a pipeline: pass random_state as a number"
        ) from None


def _from_json(text: str) -> Any:
    kind, params = json.loads(text)
    return getattr(trees, kind)(**params)


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
