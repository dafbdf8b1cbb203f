"""Scores of every row by models that have not seen it: folds, clones, and what each thinks matters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from upturn._arrays import Bools, Floats, Indices, Ints
from upturn._experiment import Experiment as Encoded
from upturn._nuisance import choose_propensity
from upturn._splitters import UpliftGroupKFold, UpliftKFold, take_rows
from upturn._table import read_table
from upturn._target import Target, decode
from upturn.ensemble import UpliftAuto
from upturn.meta import OneVsControl, TLearner
from upturn.meta._base import take_shares
from upturn.policy import UpliftCalibrator
from upturn.trees import UpliftForest, UpliftTree

ONE_RULE = "one rule"  # the name of the baseline that every model must beat
_NAMES = {"UpliftForest": "forest", "UpliftAuto": "automatic model"}
_CHOOSING = 3  # folds inside a fold
_CALIBRATING = (
    5  # and those that scores are brought to the scale of effects by; 2 where each is a search, or has many rows
)
_MANY_ROWS = 20_000  # half of which make much the same ranking as all
_NO_EFFECTS = ("upturn.svm", "upturn.boosting")  # rooms whose scores rank people, but are no effects


@dataclass(frozen=True)
class Experiment:
    """An experiment behind the gates, with the user's own table."""

    X: Any
    target: Target
    groups: Any = None

    @property
    def labels(self) -> Any:
        """Everybody's arm, by its label."""
        return decode(self.target.labels, self.target.arm)

    def take(self, rows: Indices) -> Experiment:
        """Some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        return Experiment(take_rows(self.X, rows), self.target.take(rows), groups)

    def fit(self, model: Any) -> Any:
        """A model, fitted to all of it."""
        weight = {} if self.target.weight is None else {"sample_weight": self.target.weight}
        return model.fit(self.X, self.target.y, self.labels, **weight)


@dataclass(frozen=True)
class HeldOut:
    """Every row's scores, (n, K) by model, the mean importance of every feature where a model tells, and of every arm the number
    of folds in which a model predicted one effect for everybody.

    Where it did so in every fold, its scores of that arm are one number: the folds' averages differ by chance, and are no ranking.
    """

    scores: dict[str, Floats]
    importances: dict[str, Floats | None]
    models: dict[str, Any]
    folds: int
    constant: dict[str, Ints]

    def is_flat(self, name: str) -> bool:
        """Whether a model tells nobody from anybody."""
        return bool(self.flat_arms(name).all())

    def flat_arms(self, name: str) -> Bools:
        """The arms whose effect a model predicts to be the same for everybody."""
        return np.asarray(self.constant[name] == self.folds)


def default_models(estimator: Any, seed: int, n_jobs: int | None) -> tuple[str, dict[str, Any]]:
    """The model the page is about, one that chooses unless another is given, and one it is compared with, by name.

    The choice is made anew in the training part of every fold, so that what is reported was not chosen by the rows it is reported on.
    """
    chooses = UpliftAuto("low", metric=None, cv=_CHOOSING, random_state=seed, n_jobs=n_jobs)
    forest, two = UpliftForest(random_state=seed, n_jobs=n_jobs), TLearner(random_state=seed, n_jobs=n_jobs)
    main = chooses if estimator is None else estimator
    if isinstance(main, TLearner):
        return "two models", {"two models": main, "forest": forest}
    name = _NAMES.get(type(main).__name__, type(main).__name__)
    return name, {name: main, "two models": two}


def one_rule(seed: int, n_jobs: int | None) -> UpliftTree:
    """The best single split: what a model must beat to be worth its trouble."""
    return UpliftTree(max_depth=1, random_state=seed, n_jobs=n_jobs)


def prepare(model: Any, target: Target, seed: int, n_jobs: int | None) -> Any:
    """A clone that takes this experiment's arms and predicts effects; one per arm, or calibrated, where it does neither."""
    made = clone(model)
    if getattr(made, "control", 0) is None:
        made.set_params(control=target.control)
    if target.n_arms > 1 and not getattr(made, "_multi_arm", True):
        made = OneVsControl(made, control=target.control)
    if not gives_effects(made):
        folds = 2 if _searches(made) or len(target) >= _MANY_ROWS else _CALIBRATING
        made = UpliftCalibrator(made, cv=folds, n_jobs=n_jobs, random_state=seed, control=target.control)
    return made


def _searches(model: Any) -> bool:
    """Whether a model fits many others to choose one."""
    inner = getattr(model, "estimator", None) if isinstance(model, OneVsControl) else model
    return hasattr(inner, "cv")


def _settle(models: Mapping[str, Any], data: Experiment, *, sound: bool) -> dict[str, Any]:
    """Models that would look in every fold whether arms were given at random: one look is enough, as outcomes play no part in it.

    Where :func:`upturn.check` has looked already and found nothing, that will do.
    """
    shared = {name: take_shares(model) for name, model in models.items()}
    if sound or all(shared[name] is model for name, model in models.items()):
        return shared
    choice = choose_propensity("auto", Encoded(*read_table(data.X, quiet=True), data.target))
    return shared if choice.kind == "shares" else dict(models)


def gives_effects(model: Any) -> bool:
    """Whether 0 and the size of a score mean something, so that those of several folds are on one scale."""
    if isinstance(model, OneVsControl):
        return model.estimator is None or gives_effects(model.estimator)
    return bool(getattr(model, "_score_has_zero", True)) and not type(model).__module__.startswith(_NO_EFFECTS)


def split(data: Experiment, cv: int, seed: int) -> list[tuple[Indices, Indices]]:
    """Folds that keep every arm in its share, and rows together that belong together."""
    if data.groups is None:
        return list(UpliftKFold(cv, random_state=seed).split(data.X, data.target.y, data.labels))
    splitter = UpliftGroupKFold(cv, random_state=seed)
    return list(splitter.split(data.X, data.target.y, data.labels, groups=data.groups))


def halves(data: Experiment, seed: int) -> tuple[Indices, Indices]:
    """One half to find groups in, and the other to measure them on."""
    return split(data, 2, seed + 1)[0]


def score_held_out(
    models: Mapping[str, Any],
    data: Experiment,
    cv: int,
    seed: int,
    step: Callable[[str], Any],
    *,
    n_jobs: int | None,
    sound: bool,
) -> HeldOut:
    """Score every row by a model fitted to the folds it is not in; ``step`` hears what is being done.

    ``sound`` says that nothing speaks against arms given at random.
    """
    folds = split(data, cv, seed)
    made = {name: prepare(model, data.target, seed, n_jobs) for name, model in models.items()}
    made = _settle(made, data, sound=sound)
    scores = {name: np.empty((len(data.target), data.target.n_arms)) for name in made}
    importances: dict[str, list[Any]] = {name: [] for name in made}
    constant = {name: np.zeros(data.target.n_arms, dtype=np.int64) for name in made}
    for name, model in made.items():
        for number, (train, test) in enumerate(folds, 1):
            step(f"{name}, fold {number} of {len(folds)}")
            fitted = data.take(train).fit(clone(model))
            scores[name][test] = np.asarray(fitted.predict(take_rows(data.X, test))).reshape(len(test), -1)
            constant[name] += np.ptp(scores[name][test], axis=0) == 0
            importances[name].append(getattr(fitted, "feature_importances_", None))
        flat = constant[name] == len(folds)
        scores[name][:, flat] = scores[name][:, flat].mean(axis=0)
    means = {name: None if any(v is None for v in found) else _mean(found) for name, found in importances.items()}
    return HeldOut(scores, means, made, len(folds), constant)


def _mean(found: list[Floats]) -> Floats:
    return np.asarray(np.mean([value / max(float(value.sum()), 1e-300) for value in found], axis=0))
