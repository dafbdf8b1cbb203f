"""Nuisance models that several learners of the same rows ask for: the default model of every arm's outcome, and that of the arms, are fitted once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from upturn._experiment import Experiment
from upturn._nuisance._crossfit import seed_of
from upturn._nuisance._member import Member, fit_response
from upturn._nuisance._propensity import Choice, Propensity, fit_propensity
from upturn._parallel import run_parallel


class Shelf:
    """Models of one set of rows, by what they are of; whoever asks first fits, others wait and get the same.

    Which learner comes first must not matter, so seeds are the shelf's own; and it is for one set of rows, and one ``choice`` of propensities.
    """

    def __init__(self, seed: int, choice: Choice) -> None:
        self._seed, self.choice, self._lock = np.uint64(seed), choice, threading.Lock()
        self._kept: dict[Hashable, tuple[threading.Lock, list[Any]]] = {}

    def _once(self, key: Hashable, fit: Callable[[], Any]) -> Any:
        with self._lock:
            lock, found = self._kept.setdefault(key, (threading.Lock(), []))
        with lock:
            if not found:
                found.append(fit())
        return found[0]

    def response(self, estimator: Any, data: Experiment, code: int) -> Member:
        """The model of the outcome of an arm."""
        own = seed_of(self._seed, code)
        if estimator is not None:  # nobody can tell whether two estimators are the same
            return _response(estimator, data, code, own)
        found: Member = self._once(code, lambda: _response(None, data, code, own))
        return found

    def propensity(self, choice: Choice, data: Experiment) -> Propensity:
        """The model of the arms; whoever has another choice gets one of his own."""
        if choice is not self.choice:
            return fit_propensity(choice, data)
        found: Propensity = self._once("arms", lambda: fit_propensity(choice, data))
        return found


def fit_arms(
    estimator: Any, data: Experiment, seeds: Sequence[int], n_jobs: int | None, shelf: Shelf | None = None
) -> list[Member]:
    """A model of the outcome of every arm, with these seeds, or from a shelf."""

    def one(code: int) -> Member:
        return _response(estimator, data, code, seeds[code]) if shelf is None else shelf.response(estimator, data, code)

    return run_parallel(one, range(data.n_arms + 1), n_jobs=n_jobs)


def _response(estimator: Any, data: Experiment, code: int, seed: int) -> Member:
    group = data.take(data.arm == code)
    return fit_response(estimator, group.X, group.y, group.weight, data.schema, seed=seed)
