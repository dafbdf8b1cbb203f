"""Doubly robust values and effects of single rows, from plain arrays: the one place that has the formula's shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from upturn._arrays import Arms, Floats
from upturn._propensity import read_propensity
from upturn._target import Target
from upturn.kernels import robust
from upturn.metrics._gate import read_recommended, read_response


def robust_values(y: Floats, arm: Arms, code: Any, response: Floats, chance: Floats) -> Floats:
    """Doubly robust reading of every row's outcome under arm ``code``, one for all or one for each row.

    ``response`` and ``chance`` have a column per arm, control first, and a row per row or one for all.
    """
    values = np.empty(len(y))
    codes = np.ascontiguousarray(np.atleast_1d(code), dtype=np.uint8)
    robust.robust_values(y, arm, codes, np.ascontiguousarray(response), np.ascontiguousarray(chance), values)
    return values


def robust_effects(y: Floats, arm: Arms, response: Floats, chance: Floats) -> Floats:
    """Doubly robust effect of every arm on every row, a contiguous column per arm."""
    control = robust_values(y, arm, 0, response, chance)
    effects = np.empty((len(y), chance.shape[1] - 1), order="F")
    for k in range(effects.shape[1]):
        np.subtract(robust_values(y, arm, k + 1, response, chance), control, out=effects[:, k])
    return effects


def dr_effects(target: Target, propensity: Any, response: Any) -> Floats:
    """Effect scores of gated data, a column per arm."""
    return robust_effects(target.y, target.arm, _responses(target, response), read_propensity(propensity, target))


def policy_values(target: Target, recommended: Any, propensity: Any = None, response: Any = None) -> Floats:
    """The value of every row under the arm recommended for it, doubly robust."""
    return _values(target, recommended, propensity, _responses(target, response))


def inverse_propensity_values(target: Target, recommended: Any, propensity: Any = None) -> Floats:
    """The same without a model of the outcome."""
    return _values(target, recommended, propensity, no_responses(target))


def _values(target: Target, recommended: Any, propensity: Any, response: Floats) -> Floats:
    codes = read_recommended(recommended, target)
    return robust_values(target.y, target.arm, codes, response, read_propensity(propensity, target))


def _responses(target: Target, response: Any) -> Floats:
    """Expected outcomes, of every row if they were given, else one row with the arms' means."""
    if response is not None:
        return read_response(response, target)
    sums = np.bincount(target.arm, weights=target.weights * target.y, minlength=target.n_arms + 1)
    return np.asarray(sums / target.totals)[None, :]


def no_responses(target: Target) -> Floats:
    """An outcome model that says 0, which makes a doubly robust value one of plain inverse propensity."""
    return np.zeros((1, target.n_arms + 1))
