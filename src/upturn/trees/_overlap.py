r"""Overlap weights: forests on data in which the arms were not given at random.

Where the chance e_k(x) of arm k depends on the features, the rows of a leaf are other people in every arm. A row of arm k
weighs

.. math:: \omega = \frac{h(x)}{e_k(x)}, \qquad h(x) = \Big(\sum_j 1 / e_j(x)\Big)^{-1},

(1 - e for the treated and e for control, of one arm), after which every arm stands for the same people, those of density h, whoever might
have got any arm. With the outcome centred, y - m(x), the difference of two arms' weighted means in a leaf is

.. math:: \sum h\,(\mu_k - m) / \sum h - \sum h\,(\mu_0 - m) / \sum h = \sum h\,\tau_k / \sum h,

the quantity that regressing the outcome's residual on the treatment's estimates; what m(x) leaves of the outcome no longer differs between the arms, and
what e(x) misses only matters as far as m(x) has left something. Weights are scaled to a mean of 1 in each arm, so that they still
count as rows, and equal chances give weights of 1.

Whether chances are estimated where nobody has said what they are is decided by a look at the arms (``_look``), and once they are
estimated by what they leave: :math:`E[h] / h(E[e])` is 1 where everybody has the same chances, and near 0 where features tell who is in which arm.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from upturn._arrays import Arms, Floats, Ints
from upturn._experiment import Experiment
from upturn._propensity import read_chances, with_control
from upturn._table import Schema
from upturn._target import Label
from upturn.trees._center import out_of_bag_twice
from upturn.trees._growth import Soil, weight_of_arms
from upturn.trees._look import Look

_FLOOR = 0.01  # estimated chances below it are set to it
_UNBALANCED = 0.05  # p-value of the joint test of all rows below which inference does
LEAST_LEFT = 0.07  # of overlap, below which estimated chances would leave hardly anybody to compare (it is .04 where all are at the floor)
_UNIT = 2.0**24  # chances are added up as whole numbers of its inverse, so that their order is of no consequence


def kind_of(propensity: Any, balance: Callable[[], float] | None, look: Look | None) -> str:
    """What is meant by ``propensity=``: "shares", "trees", "columns" or "known"; with a test of ``balance``, "auto" goes by its p-value and by the look."""
    if isinstance(propensity, str) and propensity == "auto":
        unlike = balance is not None and (balance() < _UNBALANCED or (look is not None and look.unlike))
        return "trees" if unlike else "shares"
    if isinstance(propensity, str) and propensity in ("shares", "trees"):
        return propensity
    names = [propensity] if isinstance(propensity, str) else propensity
    several = isinstance(names, list | tuple) or (isinstance(names, np.ndarray) and names.ndim == 1)
    return "columns" if several and len(names) and all(isinstance(one, str) for one in names) else "known"


def overlap_sums(chances: Floats) -> Ints:
    """What tells how much estimated chances leave to compare, of rows that add up: their h and chances in whole numbers."""
    common = 1.0 / (1.0 / chances).sum(axis=1)
    counted = np.rint(_UNIT * np.column_stack([common, chances])).astype(np.int64)
    return np.asarray(counted.sum(axis=0))


def overlap_left(sums: Ints) -> float:
    """How much estimated chances leave to compare, E[h] / h(E[e]) (see the module)."""
    common, *chances = sums.tolist()
    return float(common * sum(1.0 / max(chance, 1) for chance in chances))  # whatever the number of rows


def chances_of(propensity: Any, kind: str, data: Experiment, soil: Soil, seed: np.uint64, n_jobs: int | None) -> Floats:
    """The chance of every arm in every row of the soil (rows of weight above 0), control first: (n, 1 + K)."""
    k, rows = data.n_arms, np.flatnonzero(data.weights > 0.0)
    if kind == "trees":
        weight = None if data.weight is None else data.weight[rows]
        found = [
            out_of_bag_twice(soil, (soil.arm == a).astype(np.float64), weight, seed, a, n_jobs) for a in range(1, k + 1)
        ]
        return chances_from(np.column_stack(found))
    if kind == "columns":
        columns = chance_columns(propensity, data.schema, k)
        return column_chances(np.asarray(data.X[rows][:, columns], np.float64))
    return np.tile(known_chances(propensity, data.target.labels, len(data)), (len(soil), 1))


def chance_columns(propensity: Any, schema: Schema, k: int) -> list[int]:
    """Which columns of X hold the chances of the ``k`` treatment arms."""
    names = [propensity] if isinstance(propensity, str) else list(propensity)
    unknown = [name for name in names if name not in schema.names]
    if unknown or len(names) != k:
        raise ValueError(
            f"propensity={reprlib.repr(propensity)}: expected 'auto', 'shares', 'trees', the chance of each of the {k} treatment arm(s), or "
            f"the name of a column of X with the chance, for each; X has {list(schema.names[:12])!r}"
        )
    return [list(schema.names).index(name) for name in names]


def column_chances(columns: Floats) -> Floats:
    """Chances of control and every arm from columns of X."""
    chances = with_control(columns, "the propensity column(s)")
    if not (chances > 0.0).all():
        raise ValueError(
            "the propensity column(s) hold chances of 0 or 1: there would be an arm nobody could be compared with; drop or clip such rows"
        )
    return chances


def known_chances(propensity: Any, labels: Sequence[Label], n: int) -> Floats:
    """Chances of control and every arm that are the same for all ``n`` rows."""
    shape = getattr(propensity, "shape", (len(propensity),) if isinstance(propensity, list | tuple) else ())
    if shape and shape[0] == n != len(labels) - 1:
        raise ValueError(
            f"propensity has shape {shape}, a chance for each of the {n:,} rows: a model is copied and fitted on some of the "
            "rows, and such an array would not go with them; make it a column of X and pass that column's name"
        )
    return np.asarray(read_chances(propensity, labels))


def chances_from(found: Floats) -> Floats:
    """Chances of control and every arm from what trees predict of the arms, kept away from 0 and 1."""
    arms = np.clip(found, _FLOOR, 1.0 - _FLOOR)
    chances = np.column_stack([np.maximum(1.0 - arms.sum(axis=1), _FLOOR), arms])
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def overlap_of(chances: Floats, arm: Arms) -> Floats:
    """What every row counts for overlap, before arms are scaled (see the module)."""
    own = chances[np.arange(len(arm)), arm]
    overlap: Floats = 1.0 / (own * (1.0 / chances).sum(axis=1))
    return overlap


def overlap_weights(chances: Floats, arm: Arms, weight: Floats | None) -> Floats:
    """Weights that let every arm stand for the same people, times those given (see the module)."""
    given = np.ones(len(arm)) if weight is None else weight
    raw, n_arms = overlap_of(chances, arm) * given, chances.shape[1]
    sums, totals = weight_of_arms(raw, arm, n_arms), weight_of_arms(given, arm, n_arms)
    weights: Floats = raw * (totals / np.where(sums > 0.0, sums, 1.0))[arm]
    return weights
