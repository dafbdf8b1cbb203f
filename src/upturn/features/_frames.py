"""Tables out: columns of the user's own frame, and new frames of the library the input came in."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools
from upturn._table import Schema, conform_table


def select_columns(X: Any, schema: Schema, mask: Bools, model: str) -> Any:
    """Return the columns of ``X`` that the mask keeps, untouched: a frame stays a frame with its types."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        conform_table(X, schema, model)  # for its complaints: what comes back is the user's own values
        return np.asarray(X)[:, mask]
    names = list(frame.columns)
    if schema.named and all(isinstance(name, str) for name in names):
        absent = [name for name in schema.names if name not in names]
        if absent:
            raise ValueError(
                "The feature names should match those that were passed during fit.\nFeature names seen at fit time, yet now "
                f"missing: {', '.join(map(repr, absent[:8]))}: add them, or rename the columns back."
            )
        kept = [name for name, keep in zip(schema.names, mask, strict=True) if keep]
        return nw.to_native(frame.select(kept))
    if len(names) != schema.n_features:
        raise ValueError(f"X has {len(names)} features, but {model} is expecting {schema.n_features} features as input")
    return nw.to_native(frame[:, np.flatnonzero(mask).tolist()])


def like_input(X: Any, array: NDArray[Any], names: Sequence[str]) -> Any:
    """Return the array, as a frame of the library of ``X`` (and with its index) if that is one."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return array
    columns = {name: np.ascontiguousarray(array[:, j]) for j, name in enumerate(names)}
    made = nw.to_native(nw.from_dict(columns, native_namespace=nw.get_native_namespace(frame)))
    index = nw.maybe_get_index(frame)
    if index is not None:  # pandas and its kin
        made.index = index
    return made


def new_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Return a table as a frame of whichever library is installed: pandas, polars or pyarrow."""
    for name in ("pandas", "polars", "pyarrow"):
        if importlib.util.find_spec(name) is not None:
            return nw.to_native(nw.from_dict(dict(columns), native_namespace=importlib.import_module(name)))
    raise ImportError("a table needs one of pandas, polars and pyarrow: pip install 'upturn[data]'")
