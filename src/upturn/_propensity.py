"""Chances of the arms that are known: what people pass as ``propensity=``, as rows of 1 + K probabilities, control first.

Models and metrics read numbers here, and so mean the same by them. What needs the features (a classifier, the name of a
column) is a model's and lives in ``_nuisance``; what is given row by row is a metric's, and is read here too.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from upturn._arrays import Arms, Floats
from upturn._columns import as_floats, to_numpy
from upturn._rows import by_label
from upturn._target import Label, Target


def shares_of(arm: Arms, weight: Floats | None, n_arms: int) -> Floats:
    """The share of control and of every arm in the weight of the rows: the chances in a randomised experiment."""
    totals = np.bincount(arm, weights=weight, minlength=n_arms + 1)
    return np.asarray(totals / totals.sum())


def read_chances(propensity: Any, labels: Sequence[Label]) -> Floats:
    """The chances of control and every arm, the same for everybody.

    ``propensity`` is a number per treatment arm in the order of ``labels``, control having what is left (of one arm, a
    plain number will do), or a mapping from every label to its chance. All chances are above 0, below 1, and add up to 1.
    """
    if isinstance(propensity, Mapping):
        absent = [label for label in labels if label not in propensity]
        if absent:
            raise ValueError(
                f"propensity has no entry for {absent!r}: give the chance of every label, control included"
            )
        chances = _numbers([propensity[label] for label in labels])[None, :]
    else:
        values = np.atleast_1d(_numbers(propensity))
        if values.shape != (len(labels) - 1,):
            raise ValueError(
                f"propensity={reprlib.repr(propensity)}: expected one number for each of the {len(labels) - 1} treatment arm(s) "
                f"{list(labels[1:])!r}, in this order; control {labels[0]!r} has what is left of 1"
            )
        chances = with_control(values[None, :], "propensity")
    return np.asarray(_check_open(chances)[0])


def read_propensity(propensity: Any, target: Target) -> Floats:
    """The chance of every arm in every row, where there are no features: (n, 1 + K), or (1, 1 + K) if all rows are alike.

    None takes the arms' shares. Numbers and mappings are those of :func:`read_chances`; an array of shape (n,) is the
    chance of the one treatment arm, one of shape (n, 1 + K) has all of them, control first.
    """
    n, k = len(target.y), target.n_arms
    if propensity is None:
        return shares_of(target.arm, target.weight, k)[None, :]
    if isinstance(propensity, Mapping):
        return read_chances(propensity, target.labels)[None, :]
    values = _numbers(by_label(propensity, target.labels, "propensity"))
    if values.ndim == 0 or values.shape == (k,):
        return read_chances(values, target.labels)[None, :]
    if values.shape == (n,) and k == 1:
        return _check_open(with_control(values[:, None], "propensity"))
    if values.shape != (n, k + 1):
        one = f"({n},) with the chance of {target.arms[0]!r}, or " if k == 1 else ""
        raise ValueError(
            f"propensity has shape {values.shape}: expected a number per treatment arm, a mapping from label to chance, or an array of "
            f"shape {one}({n}, {k + 1}) with the chance of every arm, control first"
        )
    return _check_open(values)


def with_control(arms: Floats, what: str) -> Floats:
    """Chances of the treatment arms, a column each, with control's in front; ``what`` is what an error calls them."""
    if np.isnan(arms).any():
        row = int(np.isnan(arms).any(axis=1).argmax())
        raise ValueError(f"{what}: missing (NaN) at row {row}: every row needs a probability of every arm")
    control = 1.0 - arms.sum(axis=1)
    if (arms < 0).any() or (control < -1e-12).any():
        row = int(((arms < 0).any(axis=1) | (control < -1e-12)).argmax())
        raise ValueError(
            f"{what}: {arms[row].tolist()} at row {row} are not probabilities: expected numbers from 0 to 1 whose sum leaves "
            "something for control"
        )
    return np.column_stack([np.maximum(control, 0.0), arms])


def _numbers(values: Any) -> Floats:
    try:
        raw = to_numpy(values, "propensity")
        return as_floats(np.atleast_1d(raw), "propensity").reshape(raw.shape)
    except (TypeError, ValueError):
        raise ValueError(
            f"propensity={reprlib.repr(values)} is not made of numbers: expected chances; without X nothing can be estimated, so "
            "leave it out for the arms' shares"
        ) from None


def _check_open(chances: Floats) -> Floats:
    """Refuse chances of 0 and 1, with which there is an arm that nobody can be compared with, and rows that do not add up."""
    if not (np.isfinite(chances).all() and (chances > 0).all() and (chances < 1).all()):
        row = int((~((chances > 0) & (chances < 1)).all(axis=1)).argmax())
        where, advice = (f" at row {row}", "; drop or clip such rows") if len(chances) > 1 else ("", "")
        raise ValueError(
            f"propensity gives the arms{where} the probabilities {chances[row].tolist()}, control first: all must be above 0 and below 1, or "
            f"there would be an arm nobody could be compared with{advice}"
        )
    if not np.allclose(chances.sum(axis=1), 1, atol=1e-6):
        raise ValueError("the chances of a row do not add up to 1: give the chance of every arm, control first")
    return chances
