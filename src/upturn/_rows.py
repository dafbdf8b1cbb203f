"""Columns that belong to the same rows: those that are named in X, what pandas' indexes and names tell of those that came apart, and
frames with a column for every arm."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import narwhals.stable.v1 as nw

from upturn._columns import warn_user

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_LIKE_TREATMENT = {
    "treatment", "treated", "treat", "is_treated", "treatment_group", "arm", "group", "exposure", "t", "trt", "w",
}  # fmt: skip


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
    indexed = {name: value for name, value in columns.items() if _has_index(value)}
    first = next(iter(indexed), "")
    for name, value in indexed.items():
        check_index(indexed[first].index, first, value, name)


def check_index(expected: Any, first: str, value: Any, name: str) -> None:
    """Refuse a column of pandas whose index holds the labels of another, that of ``first``, in another order."""
    index = index_of(value)
    if expected is None or index is None or index is expected or len(index) != len(expected) or index.equals(expected):
        return
    if index.is_unique and expected.is_unique and len(expected.difference(index, sort=False)) == 0:
        raise ValueError(
            f"{first} and {name} hold the same index labels in another order, and rows are paired by their place: if labels say what belongs "
            f"together, pass {name}.loc[{first}.index]; if the order does, {name}.to_numpy()"
        )


def same_rows(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Refuse arguments whose indexes hold the same labels in another order, before anything is read of them.

    The first argument that has an index is the one that the others are held to; of a mapping, such as the scores of several models,
    every value is looked at.
    """
    names = list(signature(function).parameters)

    @wraps(function)
    def checked(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        if "pandas" in sys.modules:
            given = {**dict(zip(names, arguments, strict=False)), **options}
            ordered = {name: given[name] for name in (*names, *given) if name in given}
            columns: dict[str, Any] = {}
            for name, value in ordered.items():
                if isinstance(value, Mapping):
                    columns |= {f"{name}[{key!r}]": one for key, one in value.items()}
                else:
                    columns[name] = value
            check_order(**columns)
        return function(*arguments, **options)

    return checked


def _has_index(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "pandas" and hasattr(value, "index") and hasattr(value, "loc")


def index_of(*values: Any) -> Any:
    """The index of the first of the values that has one, as pandas' do; None where none has."""
    return next((value.index for value in values if _has_index(value)), None)


def names_of(values: Any) -> list[str] | None:
    """The names of the columns of a frame; None for arrays, single columns, and frames whose columns were never named.

    Columns numbered from 0 are pandas' for an array, column_0 and so on those of polars.
    """
    try:
        frame = nw.from_native(values, eager_only=True, pass_through=True)
    except Exception:  # such as names that are there twice, which whoever reads the frame complains of
        return None
    if not isinstance(frame, nw.DataFrame):
        return None
    names: list[Any] = list(frame.columns)
    unnamed = names == list(range(len(names))) or names == [f"column_{j}" for j in range(len(names))]
    return None if unnamed else [str(name) for name in names]


def by_label(values: Any, labels: Sequence[Any], name: str, control: Any = None) -> Any:
    """A frame with a column for each of the labels, put into their order by its names; whatever has no names stays as it is.

    Columns that bear the name of no label at all, such as those of a frame of several scores, are taken by their place. Where some
    do and others do not, nothing is guessed. ``name`` is what an error calls the frame.
    """
    names = names_of(values)
    wanted = [str(label) for label in labels]
    if names is None or names == wanted or not set(names) & {*wanted, str(control)}:
        return values
    if sorted(names) != sorted(wanted):
        raise ValueError(
            f"{name} has the columns {names!r}, and {wanted!r} are expected: one for each, under its name and in any order; choose and rename "
            f"columns, or pass {name}.to_numpy() to have them taken by their place"
        )
    frame = nw.from_native(values, eager_only=True)
    return nw.to_native(frame[:, [names.index(label) for label in wanted]])


def warn_if_swapped(y: Any) -> None:
    """Say so when a column that is called a treatment is passed as the outcome; other libraries have it in that place."""
    name = getattr(y, "name", None)
    if isinstance(name, str) and name.strip().casefold() in _LIKE_TREATMENT:
        warn_user(
            f"y is a column called {name!r}: the order here is fit(X, y, treatment), and (y, score, treatment) in metrics; if {name!r} really is the "
            "outcome, rename it",
            UserWarning,
        )
