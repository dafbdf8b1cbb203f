"""Costs, values and labels: what people pass, checked and laid out as arrays."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from upturn._arrays import Floats
from upturn._columns import is_missing
from upturn._target import Label


def read_uplift(uplift: Any) -> Floats:
    """Predicted uplift as a matrix with a column per treatment arm."""
    try:
        matrix = np.asarray(uplift, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"uplift={reprlib.repr(uplift)} is not made of numbers: expected what predict gives") from None
    matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"uplift has shape {np.shape(uplift)}: expected (n,), or (n, K) with a column per treatment arm"
        )
    bad = ~np.isfinite(matrix)
    if bad.any():
        row = int(bad.any(axis=1).argmax())
        raise ValueError(
            f"uplift holds {bad.sum()} missing or infinite value(s), the first at row {row}: every person needs a prediction"
        )
    return np.ascontiguousarray(matrix)


def read_costs(cost: Any, n: int, labels: Sequence[Label]) -> Floats | None:
    """Costs as a matrix with a row per person and a column per treatment arm; None when there are none.

    A number, a number per arm (a list in the order of the arms, or a dict by label), a column per person when there is
    one arm, or a matrix.
    """
    arms = list(labels[1:])
    if cost is None:
        return None
    if isinstance(cost, Mapping):
        given = {key: value for key, value in cost.items() if key != labels[0]}
        absent = [label for label in arms if label not in given]
        strange = [key for key in given if key not in arms]
        if absent or strange:
            raise ValueError(
                f"cost names {list(cost)!r}: expected one cost for each of the arms {arms!r}"
                + (f"; {absent!r} missing" if absent else "")
                + (f"; {strange!r} not an arm" if strange else "")
            )
        if cost.get(labels[0], 0) != 0:
            raise ValueError(
                f"cost gives control {labels[0]!r} the cost {cost[labels[0]]!r}: costs are on top of control's, which is 0"
            )
        cost = [given[label] for label in arms]
    values = _numbers(cost, "cost")
    _no_negatives(values, "cost", "a cost is 0 or more; what treatment brings in belongs into value")
    if values.ndim == 0 or values.shape == (1,) == (len(arms),):
        matrix = np.full((n, len(arms)), float(values.reshape(())))
    elif values.shape == (n, len(arms)):
        matrix = values
    elif values.shape == (len(arms),) and len(arms) != n:
        matrix = np.tile(values, (n, 1))
    elif values.shape == (n,) and len(arms) == 1:
        matrix = values[:, None]
    else:
        raise ValueError(
            f"cost has shape {values.shape}, with {n:,} people and {len(arms)} treatment arm(s) {arms!r}: expected a number, one "
            "number per arm, or one per person and arm"
        )
    return np.ascontiguousarray(matrix)


def read_value(value: Any, n: int) -> float | Floats | None:
    """What a unit of the outcome is worth: a number, or a number per person; None when nothing was said."""
    if value is None:
        return None
    values = _numbers(value, "value")
    _no_negatives(
        values, "value", "a unit of outcome is worth 0 or more; turn the outcome round if less of it is better"
    )
    if values.ndim == 0:
        return float(values)
    if values.shape != (n,):
        raise ValueError(
            f"value has shape {values.shape} and there are {n:,} people: expected a number, or one per person"
        )
    return np.ascontiguousarray(values)


def read_labels(control: Label | None, arms: Sequence[Label] | None, n_arms: int) -> list[Label]:
    """The labels of control and the arms when there is no experiment to take them from."""
    given = range(1, n_arms + 1) if arms is None else arms
    if len(given) != n_arms:
        raise ValueError(
            f"arms={list(given)!r} has {len(given)} label(s) and uplift {n_arms} column(s): expected one per column"
        )
    if control is None:
        control = 0 if arms is None else "control"
    repeated = [label for label in given if list(given).count(label) > 1]
    if repeated:
        raise ValueError(
            f"arms={list(given)!r} names {repeated[0]!r} more than once: expected a label of its own per column"
        )
    if control in given:
        raise ValueError(
            f"arms={list(given)!r} holds {control!r}, the label of control: uplift has no column for control; name the arms "
            "of its columns in arms, and control in control"
        )
    return [control, *given]


def check_arms(arms: Sequence[Label] | None, found: Sequence[Label]) -> None:
    """Refuse names of the columns of uplift other than those of the experiment, or in another order."""
    if arms is not None and list(arms) != list(found):
        raise ValueError(
            f"arms={list(arms)!r} and treatment holds {list(found)!r} besides control: with an experiment, the columns of "
            "uplift (and of cost) are its arms in this order; sort them so, and leave arms out"
        )


def _numbers(values: Any, name: str) -> Floats:
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            array = np.array([np.nan if is_missing(v) else v for v in array.ravel()]).reshape(array.shape)
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={values!r}: expected a number, or an array of numbers") from None
    bad = ~np.isfinite(array)
    if bad.any():
        where = f", the first at row {int(bad.reshape(len(bad), -1).any(axis=1).argmax())}" if array.ndim else ""
        raise ValueError(
            f"{name} is missing or infinite {int(bad.sum())} time(s){where}: every {name} must be a finite number"
        )
    return array


def _no_negatives(array: Floats, name: str, advice: str) -> None:
    if (array < 0).any():
        where = (
            ""
            if array.ndim == 0
            else f", the first at row {int((array.reshape(len(array), -1) < 0).any(axis=1).argmax())}"
        )
        raise ValueError(
            f"{name} holds {int((array < 0).sum())} negative value(s) (smallest {array.min():g}){where}: {advice}"
        )
