"""The models that take part in a stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import Ridge

from upturn._experiment import Experiment
from upturn._nuisance import Choice, fit_propensity
from upturn.base import UpliftEstimator
from upturn.boosting import UpliftBoosting
from upturn.ensemble._effort import Effort
from upturn.meta import DRLearner, OneVsControl, RLearner, SLearner, TLearner, XLearner
from upturn.meta._base import take_shares
from upturn.policy import UpliftCalibrator
from upturn.svm import UpliftSVM
from upturn.trees import UpliftForest

_INSIDE_FOLDS = 3  # folds inside a candidate, which is itself fitted once a fold


def default_candidates() -> dict[str, UpliftEstimator]:
    """One or two of every family, as different from each other as can be; at "auto" they take the propensities of their stack."""
    return {
        "forest": UpliftForest(center=False),
        "centred forest": UpliftForest(center=True),
        "S-learner": SLearner(),
        "T-learner": TLearner(),
        "X-learner": XLearner(),
        "DR-learner": DRLearner(cv=_INSIDE_FOLDS),
        "linear X-learner": XLearner(Ridge()),
        "uplift machine": UpliftSVM(),
    }


def many_candidates(effort: Effort) -> dict[str, UpliftEstimator]:
    """Those that UpliftAuto tries: of every family, over boosted trees and over linear models."""
    trees = effort.trees
    found: dict[str, UpliftEstimator] = {
        "forest": UpliftForest(trees, center=False),
        "centred forest": UpliftForest(trees, center=True),
        "S-learner": SLearner(),
        "T-learner": TLearner(),
        "X-learner": XLearner(),
        "linear T-learner": TLearner(Ridge()),
        "linear X-learner": XLearner(Ridge()),
        "uplift machine": UpliftSVM(),
    }
    if effort.all_candidates:
        found |= {
            "DR-learner": DRLearner(cv=_INSIDE_FOLDS),
            "R-learner": RLearner(cv=_INSIDE_FOLDS),
            "linear R-learner": RLearner(Ridge()),
            "boosting": UpliftBoosting(),
        }
    return found


def read_candidates(
    estimators: Any, data: Experiment, choice: Choice, default: Callable[[], dict[str, UpliftEstimator]]
) -> dict[str, UpliftEstimator]:
    """The candidates by name, each able to learn from this experiment and to predict effects in units of its outcome.

    Without any given, those of the default that the outcome allows. ``choice`` is the stack's own of propensities.
    """
    binary = bool(np.isin(data.y, (0.0, 1.0)).all())
    if estimators is None:
        chosen = default()
        return {
            name: _ready(model, data, choice) for name, model in chosen.items() if binary or model._outcome == "any"
        }
    named = dict(_pairs(estimators))
    for name, model in named.items():
        if model._outcome == "binary" and not binary:
            raise ValueError(
                f"{name!r} needs an outcome of 0 and 1, and y holds other numbers: code the two classes as 0 and 1, or leave it out of estimators"
            )
    return {name: _ready(model, data, choice) for name, model in named.items()}


def _pairs(estimators: Any) -> list[tuple[str, UpliftEstimator]]:
    """Name and model of each: from a mapping, or from a list of pairs as scikit-learn has it."""
    pairs = list(estimators.items()) if isinstance(estimators, Mapping) else estimators
    if not isinstance(pairs, list | tuple) or not pairs or not all(_is_pair(pair) for pair in pairs):
        raise ValueError(
            "estimators: expected names and uplift models, as in {'forest': UpliftForest(), 'x': XLearner()}, or a list of such pairs"
        )
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError(f"estimators: two of the names {names} are the same; give every model a name of its own")
    return [(name, model) for name, model in pairs]


def _is_pair(pair: Any) -> bool:
    return (
        isinstance(pair, list | tuple)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and isinstance(pair[1], UpliftEstimator)
    )


def _weighing(model: UpliftEstimator, data: Experiment, choice: Choice) -> UpliftEstimator:
    """The model, or a copy of it whose forests left at "auto" have the stack's chances, by trees of their own if forests cannot take those.

    Known chances are those of all arms: of several, a forest that is fitted to one of them at a time looks for itself.
    """
    params = model.get_params()
    inside = {"": model} | {name: one for name, one in params.items() if isinstance(one, UpliftEstimator)}
    forests = [name for name, one in inside.items() if isinstance(one, UpliftForest)]
    estimated = choice.estimated or _certain(choice, data)
    if data.n_arms > 1 and not estimated:
        pairwise = [name for name, one in inside.items() if isinstance(one, OneVsControl) or not one._multi_arm]
        forests = [name for name in forests if not any(_is_below(name, other) for other in pairwise)]
    names = [f"{name}__propensity" if name else "propensity" for name in forests]
    open_ = [name for name in names if isinstance(params.get(name), str) and params[name] == "auto"]
    given = "trees" if estimated else choice.spec
    return clone(model).set_params(**dict.fromkeys(open_, given)) if open_ else model


def _certain(choice: Choice, data: Experiment) -> bool:
    """Whether chances in columns are 0 for some arm and row: a stack clips them, a forest does not take them."""
    return choice.kind == "columns" and bool((fit_propensity(choice, data).predict(data.X) <= 0.0).any())


def _is_below(name: str, other: str) -> bool:
    """Whether a parameter is inside another, "" being the model itself."""
    return not other or name.startswith(f"{other}__")


def _ready(model: UpliftEstimator, data: Experiment, choice: Choice) -> UpliftEstimator:
    """The model, its scores calibrated to effects if they are none, and one per arm if it knows one only.

    Propensities are chosen once a fit: where the stack takes shares, candidates that would look themselves take them too, and where it does not, forests
    estimate the chances, or take those that are known. Meta-learners at "auto" take the stack's choice when they are fitted (``fit_inside``).
    """
    model = take_shares(model) if choice.kind == "shares" else _weighing(model, data, choice)
    if not model._score_is_effect:
        model = UpliftCalibrator(model, cv=_INSIDE_FOLDS)
    return model if model._multi_arm or data.n_arms == 1 else OneVsControl(model)
