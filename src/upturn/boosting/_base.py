"""What ensembles share: the base model, members with seeds of their own, and their saved form."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from upturn._arrays import Floats
from upturn._table import Schema
from upturn._target import Label
from upturn.base import UpliftEstimator
from upturn.metrics._areas import mean_area
from upturn.trees import UpliftTree


class Ensemble(UpliftEstimator):
    """An uplift model made of uplift models, ``estimators_``."""

    estimator: Any
    estimators_: list[UpliftEstimator]

    _height: int  # of the default base

    def _base(self) -> UpliftEstimator:
        base = self.estimator
        if base is None:  # unpruned: the only limit is its height
            base = UpliftTree(max_depth=self._height, min_samples_split=2, min_samples_leaf=1, min_samples_arm=1)
        if not isinstance(base, UpliftEstimator):
            raise TypeError(
                f"estimator={base!r} is not an uplift model: pass one of upturn's, such as UpliftTree(), or wrap a classifier, "
                "as in ClassTransformation(classifier)"
            )
        return base

    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """What ``predict`` gives after 1, 2, … members."""
        for scores in self._staged(self._encode(X)):
            yield scores[:, 0] if len(self.arms_) == 1 else scores

    def staged_score(self, X: Any, y: Any, treatment: Any = None, sample_weight: Any = None) -> list[float]:
        """What ``score``, the AUUC, gives after 1, 2, … members."""
        matrix, target = self._gate_experiment(X, y, treatment, sample_weight)
        return [mean_area(target, scores) for scores in self._staged(matrix)]

    def _staged(self, X: Floats) -> Iterator[Floats]:
        """Scores after 1, 2, … members, a column per arm."""
        raise TypeError(f"{type(self).__name__} does not say how its members add up")

    def _remember(self, control: Label, arms: list[Label], schema: Schema) -> None:
        super()._remember(control, arms, schema)
        for member in getattr(self, "estimators_", []):
            member._remember(control, arms, schema)

    def _restore_members(self, states: list[Any]) -> list[UpliftEstimator]:
        members = []
        for state in states:
            member: UpliftEstimator = clone(self._base())
            member._remember(self.control_, self.arms_, self._schema)
            member._set_state(state)
            members.append(member)
        return members


def seeded(base: UpliftEstimator, seed: np.uint64, m: int) -> UpliftEstimator:
    """A member to fit: the unfitted base with a seed of its own, and so for every model inside it that takes one."""
    own = int(np.random.SeedSequence([int(seed), m]).generate_state(1)[0])
    nested = [name for name in base.get_params() if name.endswith("__random_state")]
    member: UpliftEstimator = clone(base).set_params(**dict.fromkeys(nested, own)) if nested else copy.copy(base)
    if hasattr(member, "random_state"):
        member.random_state = own
    return member


def check_count(n_estimators: Any) -> None:
    """Refuse a number of members that is none."""
    if isinstance(n_estimators, bool) or not isinstance(n_estimators, int | np.integer) or n_estimators < 1:
        raise ValueError(f"n_estimators={n_estimators!r}: expected a whole number of at least 1")
