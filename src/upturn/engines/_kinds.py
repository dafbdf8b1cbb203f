"""Which engine a table belongs to: its kind decides."""

from __future__ import annotations

from typing import Any


def engine_of(table: Any) -> Any:
    """The module of the engine that a table of a cluster belongs to; None for files and tables of this process.

    It has ``places(table, columns)``, which opens it as places of raw frames, and ``predict(model, table, features, names)``.
    """
    home = type(table).__module__.partition(".")[0]
    if home in ("dask", "dask_expr") and hasattr(table, "to_delayed"):
        from upturn.engines import _dask

        return _dask
    if home == "pyspark" and hasattr(table, "mapInArrow"):
        from upturn.engines import _spark

        return _spark
    return None
