"""Models by name, and their parameters as ``--set key=value``."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Sequence
from typing import Any

from upturn.cli._say import UserError, did_you_mean

# What a model is given before anything is set: "auto" does as much as one waits for, and is measured by other commands.
_FIRST: dict[str, dict[str, Any]] = {"UpliftAuto": {"effort": "low", "metric": None}}

# Short names first, as they are listed; the names of the classes are understood as well.
MODELS = {
    "auto": "UpliftAuto",
    "forest": "UpliftForest",
    "cts": "CTSForest",
    "ucts": "UCTSForest",
    "tree": "UpliftTree",
    "boosting": "UpliftBoosting",
    "bagging": "UpliftBagging",
    "s": "SLearner",
    "t": "TLearner",
    "x": "XLearner",
    "dr": "DRLearner",
    "r": "RLearner",
    "transformation": "ClassTransformation",
    "treated": "TreatedOnly",
    "one-vs-control": "OneVsControl",
    "stacking": "UpliftStacking",
    "svm": "UpliftSVM",
    "svm-cv": "UpliftSVMCV",
    "differential-svm": "DifferentialSVM",
    "standard-svm": "StandardSVM",
    "subgroup-svm": "SubgroupSVM",
    "two-cost-svm": "TwoCostSVM",
}


def class_name(name: str) -> str:
    """The class that a name means."""
    if name in MODELS:
        return MODELS[name]
    for known in MODELS.values():
        if known.casefold() == name.casefold():
            return known
    raise UserError(f"there is no model {name!r}: {did_you_mean(name, [*MODELS, *MODELS.values()])}")


def make_model(
    name: str, settings: Sequence[str], *, control: Any, n_arms: int = 1, seed: int = 0, jobs: int | None = None
) -> Any:
    """An unfitted model with its parameters set and checked by its own rules; one per arm, if it knows one arm only."""
    from upturn._parameters import check_parameters
    from upturn.persist import REGISTRY

    known = class_name(name)
    kind = getattr(importlib.import_module(REGISTRY[known]), known)
    model = kind(**_FIRST.get(known, {}))
    names = list(model.get_params(deep=False))
    ours = {"control": control, "random_state": seed, "n_jobs": jobs}
    model.set_params(**{key: value for key, value in ours.items() if key in names})
    settable = [key for key in names if key not in ("control", "verbose")]
    for setting in settings:
        key, mark, value = setting.partition("=")
        if not mark:
            raise UserError(f"--set {setting}: expected NAME=VALUE, as in --set max_depth=5")
        if key not in settable:
            raise UserError(f"--set {setting}: {known} has no parameter {key!r}; {did_you_mean(key, settable)}")
        model.set_params(**{key: read_value(value)})
    check_parameters(model)
    if n_arms > 1 and not model._multi_arm:
        from upturn.meta import OneVsControl

        return OneVsControl(model, control=control)
    return model


def settings_of(name: str, settings: Sequence[str], names: Sequence[str]) -> list[str]:
    """Settings for one of several models: those that begin with its name and a point."""
    own = []
    for setting in settings:
        model, point, rest = setting.partition(".")
        if not point or "=" in model:
            raise UserError(f"--set {setting}: say of which model, as in --set {names[0]}.{setting}")
        if model not in names:
            raise UserError(f"--set {setting}: {model!r} is not compared; {did_you_mean(model, names)}")
        if model == name:
            own.append(rest)
    return own


def read_value(text: str) -> Any:
    """A number, true, false, none, a list of them, or else the text itself.

    >>> read_value("5"), read_value("0.5"), read_value("true"), read_value("none"), read_value("sqrt"), read_value("[1, 2]")
    (5, 0.5, True, None, 'sqrt', [1, 2])
    """
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.strip().lower() in words:
        return words[text.strip().lower()]
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, int | float | str | list | tuple) else text
