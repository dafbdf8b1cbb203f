"""Reading what people group by: labels, a column, masks, or what a fitted model says about the rows."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats, Ints
from upturn._columns import is_missing, to_numpy
from upturn._subgroups._cells import Members
from upturn._subgroups._leaves import leaf_words
from upturn._table import read_frame
from upturn._target import read_labels
from upturn.trees import UpliftTree
from upturn.trees._export import written

MOST_GROUPS = 200
_FEW_VALUES = 10  # a column of numbers with more distinct values is cut into bins
_SIGNS = {1: "predicted to help (+1)", 0: "predicted neutral (0)", -1: "predicted to harm (-1)"}


def is_model(by: Any) -> bool:
    """Whether something predicts: a model, fitted or not."""
    return hasattr(by, "predict") and hasattr(by, "fit")


def read_groups(by: Any, X: Any, n: int, n_bins: int) -> Members:
    """Who is in which group."""
    if is_model(by):
        return _of_model(by, X, n, n_bins)
    if isinstance(by, str):
        return _of_column(by, X, n, n_bins)
    if isinstance(by, Mapping):
        return _of_masks(list(by.items()), n)
    if isinstance(by, Sequence) and len(by) and all(isinstance(e, tuple) and len(e) == 2 for e in by) and len(by) != n:
        return _of_masks(list(by), n)
    labels = read_labels(by, "the groups")
    if len(labels) != n:
        raise ValueError(
            f"the groups have {len(labels)} row(s) and y has {n}: expected one label per row, the name of a column of X, a mapping from "
            "names to masks, or a model"
        )
    return of_labels(labels)


def of_labels(labels: NDArray[Any], prefix: str = "") -> Members:
    """A group per label, in their order; missing labels are a group of their own."""
    positions: dict[Any, int] = {}
    codes = np.empty(len(labels), dtype=np.int64)
    for i, label in enumerate(labels.tolist()):
        if not isinstance(label, str | bool | int | float) and not is_missing(label):
            raise TypeError(
                f"the groups hold {reprlib.repr(label)} at row {i}: expected numbers, booleans or text as labels"
            )
        codes[i] = -1 if is_missing(label) else positions.setdefault(label, len(positions))
        if len(positions) > MOST_GROUPS:
            raise ValueError(
                f"the groups hold more than {MOST_GROUPS} distinct labels, such as {reprlib.repr(label)}: expected groups of people; cut a "
                "number into ranges first, or pass the name of its column, which is cut into n_bins"
            )
    found = sorted(positions, key=lambda label: (isinstance(label, str), label))
    order = np.empty(len(found) + 1, dtype=np.int64)
    order[[positions[label] for label in found]] = np.arange(len(found))
    order[-1] = -1
    codes, names = order[codes], [f"{prefix}{label}" for label in found]
    if (codes < 0).any():
        codes, names = np.where(codes < 0, len(names), codes), [*names, f"{prefix}missing"]
    return Members(names, codes)


def _of_column(name: str, X: Any, n: int, n_bins: int) -> Members:
    frame = None if X is None else read_frame(X)
    if frame is None:
        raise ValueError(f"group by {name!r}: X has no named columns; pass a table, or the labels themselves")
    if name not in frame.columns:
        raise ValueError(f"group by {name!r}: X has the columns {', '.join(map(str, frame.columns))}")
    column = to_numpy(nw.to_native(frame[name]), name)
    _same_rows(len(column), n)
    if column.dtype.kind == "f" or (column.dtype.kind in "iu" and len(np.unique(column)) > _FEW_VALUES):
        values = column.astype(np.float64)
        if len(np.unique(values[~np.isnan(values)])) > _FEW_VALUES:
            return _of_values(values, n_bins, f"{name} ", reverse=False)
        if (values[~np.isnan(values)] == np.round(values[~np.isnan(values)])).all():
            column = np.array([None if np.isnan(v) else int(v) for v in values], dtype=object)
    return of_labels(column, f"{name} = ")


def _of_masks(pairs: list[tuple[Any, Any]], n: int) -> Members:
    if not pairs:
        raise ValueError("there are no groups: expected at least one name with a mask")
    names, masks = [], []
    for name, mask in pairs:
        column = to_numpy(mask, f"the mask of {name!r}")
        if column.shape != (n,) or column.dtype.kind != "b":
            raise ValueError(
                f"the mask of group {name!r} is of type {column.dtype} and shape {column.shape}: expected True or False for each of the "
                f"{n} rows"
            )
        names.append(str(name))
        masks.append(column)
    if len(set(names)) != len(names):
        raise ValueError(f"two groups have the same name, among {names!r}: give each its own")
    if len(names) > MOST_GROUPS:
        raise ValueError(f"there are {len(names)} groups: expected at most {MOST_GROUPS}")
    return Members.of_masks(names, np.array(masks))


def _same_rows(rows: int, n: int) -> None:
    if rows != n:
        raise ValueError(f"X has {rows} rows and y has {n}: they must describe the same rows")


# --------------------------------------------------------------------------------------------- models


def _of_model(model: Any, X: Any, n: int, n_bins: int) -> Members:
    if X is None:
        raise ValueError("X is None: a model needs the features to say who is in which group")
    if isinstance(model, UpliftTree):
        leaf, matrix = model.apply(X), model._encode(X)
        _same_rows(len(leaf), n)
        words = leaf_words(model, np.asarray(np.isnan(matrix).any(axis=0)))
        place = {number: i for i, number in enumerate(words)}
        return _occupied(list(words.values()), np.array([place[number] for number in leaf.tolist()], dtype=np.int64))
    if hasattr(model, "predict_sign"):
        signs = model.predict_sign(X)
        _same_rows(len(signs), n)
        return _occupied(list(_SIGNS.values()), np.array([list(_SIGNS).index(sign) for sign in signs.tolist()]))
    score = np.asarray(model.predict(X), dtype=np.float64)
    _same_rows(len(score), n)
    return _of_values(score if score.ndim == 1 else score.max(axis=1), n_bins, "score ", reverse=True)


def _occupied(names: list[str], codes: Ints) -> Members:
    """The groups that a model puts somebody into."""
    there = np.unique(codes)
    return Members([names[code] for code in there.tolist()], np.searchsorted(there, codes).astype(np.int64))


def _of_values(values: Floats, n_bins: int, prefix: str, *, reverse: bool) -> Members:
    """Bins of about equally many rows; equal values stay together, so there may be fewer. Missing values are a bin of their own."""
    known = values[~np.isnan(values)]
    edges = np.unique(np.quantile(known, np.linspace(0, 1, n_bins + 1)[1:-1], method="inverted_cdf"))
    edges = edges[edges < known.max()]
    codes = np.searchsorted(edges, values, side="left").astype(np.int64)  # up to an edge: below it
    names = []
    for code in range(len(edges) + 1):
        mine = known[np.searchsorted(edges, known, side="left") == code]
        low, high = written(float(mine.min()), 4), written(float(mine.max()), 4)
        names.append(f"{prefix}{low} to {high}" if low != high else f"{prefix}{low}")
    names = [f"{name} (bin {i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]
    if reverse:
        codes, names = len(names) - 1 - codes, names[::-1]
    if np.isnan(values).any():
        codes = np.where(np.isnan(values), len(names), codes)
        names = [*names, f"{prefix.strip()} is missing"]
    return Members(names, codes)
