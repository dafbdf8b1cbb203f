"""Columns that belong to the same rows: those that are named in X, and what pandas' indexes and names tell of those that came apart."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from typing import Any

import narwhals.stable.v1 as nw

from upturn._columns import warn_user

_LIKE_TREATMENT = {"treatment", "treated", "treat", "is_treated", "treatment_group", "arm", "w"}


def take_named(X: Any, *, features: bool = True, **columns: Any) -> tuple[Any, dict[str, Any], tuple[str, ...]]:
    """Columns of X that were given by name, taken out of it: ``fit(table, "visit", "segment")``.

    Returns X without them, all columns by role, and the names that were taken. The others must be in the order of X, where pandas'
    indexes tell. Where ``features`` are needed, some columns must be left.
    """
    named = {role: value for role, value in columns.items() if isinstance(value, str)}
    check_order(X=X, **{role: value for role, value in columns.items() if role not in named})
    if not named:
        return X, columns, ()
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        role, name = next(iter(named.items()))
        raise ValueError(
            f"{role}={name!r} is the name of a column, and X is a {type(X).__name__} without names: pass the column itself, or a table of pandas, "
            "polars or pyarrow"
        )
    _check_named(named, [str(name) for name in frame.columns], features)
    taken = tuple(named.values())
    found = {role: nw.to_native(frame[name]) for role, name in named.items()}
    return nw.to_native(frame.drop(*taken)), {**columns, **found}, taken


def _check_named(named: Mapping[str, str], names: list[str], features: bool) -> None:
    for role, name in named.items():
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"its columns are {', '.join(map(repr, names[:12]))}"
            raise ValueError(f"{role}={name!r}: X has no such column; {hint}")
    if len(set(named.values())) < len(named):
        raise ValueError(
            f"the same column is named twice, in {dict(named)!r}: outcome, treatment and weight are different columns"
        )
    if features and len(named) == len(names):
        raise ValueError(f"X holds {names!r}, and all of them are taken: no feature is left")


def check_order(**columns: Any) -> None:
    """Refuse pandas objects whose indexes hold the same labels in another order: pairing them by place would mix up people.

    Other labels, or labels that are there twice, say nothing of the kind, and rows are paired by their place.
    """
    if "pandas" not in sys.modules:  # then nothing here came from it
        return
    indexed = [(name, value, value.index) for name, value in columns.items() if _has_index(value)]
    for name, _, index in indexed[1:]:
        first, _, expected = indexed[0]
        if index is expected or len(index) != len(expected) or index.equals(expected):
            continue
        if index.is_unique and expected.is_unique and len(expected.difference(index, sort=False)) == 0:
            raise ValueError(
                f"{first} and {name} hold the same index labels in another order, and rows are paired by their place: if labels say what belongs "
                f"together, pass {name}.loc[{first}.index]; if the order does, {name}.to_numpy()"
            )


def _has_index(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "pandas" and hasattr(value, "index") and hasattr(value, "loc")


def warn_if_swapped(y: Any) -> None:
    """Say so when a column that is called a treatment is passed as the outcome; other libraries have it in that place."""
    name = getattr(y, "name", None)
    if isinstance(name, str) and name.strip().casefold() in _LIKE_TREATMENT:
        warn_user(
            f"y is a column called {name!r}: the order here is fit(X, y, treatment), and (y, score, treatment) in metrics; if {name!r} really is the "
            "outcome, rename it",
            UserWarning,
        )
