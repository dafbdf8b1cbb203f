"""Scores of a table, part after part, when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from upturn.base import UpliftEstimator
from upturn.engines._kinds import engine_of
from upturn.engines._scan import polars, scan

if TYPE_CHECKING:
    import polars as pl


def score_names(model: Any) -> list[str]:
    """Columns of a model's scores: ``uplift``, or one for each arm."""
    return ["uplift"] if len(model.arms_) == 1 else [f"uplift_{arm}" for arm in model.arms_]


def predict(model: Any, table: Any) -> Any:
    """The table with the model's scores, lazily: nothing is read until it is collected, computed or written.

    Files written with ``sink_parquet``, a table of any size streams through in little memory.

    Parameters
    ----------
    model : fitted uplift model
        Fitted to a table with named columns, by any ``fit``.
    table : path(s), pattern, polars LazyFrame, Dask DataFrame or Spark DataFrame
        Parquet files, or what reads them; it may have further columns.

    Returns
    -------
    polars.LazyFrame, or a DataFrame of Dask or Spark if the table is one
        All columns of the table, and ``uplift`` (or ``uplift_ARM`` for each of several arms).

    Examples
    --------
    >>> import numpy as np, polars as pl
    >>> from upturn import engines
    >>> from upturn.trees import UpliftForest
    >>> table = pl.DataFrame({"age": np.arange(400.0) % 80, "given": [0, 1] * 200, "bought": [0, 0, 1, 1] * 100})
    >>> model = engines.fit(UpliftForest(10, random_state=0), table.lazy(), y="bought", treatment="given")
    >>> engines.predict(model, table.lazy()).collect_schema().names()
    ['age', 'given', 'bought', 'uplift']
    """
    if not isinstance(model, UpliftEstimator):
        raise TypeError(f"model is a {type(model).__name__}: expected a fitted uplift model")
    check_is_fitted(model)
    spread, names = engine_of(table), score_names(model)
    frame = None if spread is not None else scan(table)
    schema: Any = [str(name) for name in table.columns] if frame is None else frame.collect_schema()
    if not hasattr(model, "feature_names_in_"):
        raise ValueError(
            "the model was fitted to columns without names, so a table cannot be matched to it: fit one to a table"
        )
    features = [str(name) for name in model.feature_names_in_]
    missing = [name for name in features if name not in schema]
    if missing:
        raise ValueError(f"the table has no column(s) {missing!r}, which the model was fitted with: add or rename them")
    taken = [name for name in names if name in schema]
    if taken:
        raise ValueError(f"the table has column(s) {taken!r} already, where scores would go: rename them")

    if frame is None:
        return spread.predict(model, table, features, names)
    library = polars()

    def scored(part: pl.DataFrame) -> pl.DataFrame:
        if not len(part):
            return part.with_columns(**{name: library.lit(None, library.Float64) for name in names})
        scores = np.asarray(model.predict(part.select(features))).reshape(len(part), -1)
        return part.with_columns(**{name: library.Series(name, scores[:, k]) for k, name in enumerate(names)})

    return frame.map_batches(
        scored, projection_pushdown=False, streamable=True, schema={**schema, **dict.fromkeys(names, library.Float64)}
    )
