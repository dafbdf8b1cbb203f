"""What ensembles share: the base model, members with seeds of their own, and their saved form."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from upturn._arrays import Floats
from upturn._table import Schema
from upturn._target import Label
from upturn.base import Opinion, UpliftEstimator, finite, finite_importances
from upturn.metrics._areas import mean_area
from upturn.trees import UpliftTree


class Ensemble(UpliftEstimator):
    """An uplift model made of uplift models, ``estimators_``."""

    estimator: Any
    estimators_: list[UpliftEstimator]

    _height: int  # of the default base
    _n_arms: int

    @property
    def _float32(self) -> bool:  # type: ignore[override]
        return self._base()._float32

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
        for scores in map(finite, self._staged(self._encode(X))):
            yield scores[:, 0] if len(self.arms_) == 1 else scores

    def staged_score(self, X: Any, y: Any, treatment: Any = None, sample_weight: Any = None) -> list[float]:
        """What ``score``, the AUUC, gives after 1, 2, … members."""
        matrix, target = self._gate_experiment(X, y, treatment, sample_weight)
        return [mean_area(target, finite(scores)) for scores in self._staged(matrix)]

    @property
    def feature_importances_(self) -> Floats:
        """Mean of the members' importances, weighted as their opinions are; there is none if they have none."""
        check_is_fitted(self)
        if not self.estimators_:
            return np.zeros(self.n_features_in_)
        members: list[Any] = self.estimators_
        mean = np.average([member.feature_importances_ for member in members], axis=0, weights=self._voices())
        return finite_importances(mean, self.n_features_in_)

    # ----------------------------------------------------------------------------------------- members together

    def _voices(self) -> list[float]:
        """How much every member counts."""
        return [1.0] * len(self.estimators_)

    def _ask(self, X: Floats, how: Opinion | Sequence[Floats]) -> tuple[Floats, float]:
        """Sum of the members' opinions times their voices, a column per arm, and sum of the voices.

        ``how`` is the kind of opinion or, of members with leaves, what every one of them says in its nodes.
        """
        total, heard, first, voices = np.zeros((len(X), self._n_arms)), 0.0, 0, self._voices()
        for group in self._groups():
            mine = slice(first, first + len(group))
            said = how if isinstance(how, str) else how[mine]
            group[0]._add_opinions(group, voices[mine], X, said, total, getattr(self, "n_jobs", None))
            for voice in voices[mine]:  # one after the other, as stages do: Python's sum would round otherwise
                heard += voice
            first += len(group)
        return total, heard

    def _ask_in_turn(self, X: Floats, how: Opinion | Sequence[Floats]) -> Iterator[tuple[Floats, float]]:
        """What ``_ask`` gives after 1, 2, … members; a new array each time."""
        total, heard, m, voices = np.zeros((len(X), self._n_arms)), 0.0, 0, self._voices()
        for group in self._groups():
            rows = group[0]._prepare_rows(X)
            for member in group:
                if isinstance(how, str):
                    opinion = member._opinion(rows, how, self._n_arms)
                else:
                    opinion = how[m][member._nodes_of(rows)]
                total, heard, m = total + voices[m] * opinion, heard + voices[m], m + 1
                yield total, heard

    def _groups(self) -> list[list[UpliftEstimator]]:
        """The members, in their order, by the form of rows they take: all of one fit take the same."""
        return [list(group) for _, group in groupby(self.estimators_, key=lambda member: id(member._form))]

    def _staged(self, X: Floats) -> Iterator[Floats]:
        """Scores after 1, 2, … members, a column per arm."""
        raise TypeError(f"{type(self).__name__} does not say how its members add up")

    def _remember(self, control: Label, arms: list[Label], schema: Schema) -> None:
        super()._remember(control, arms, schema)
        for member in getattr(self, "estimators_", []):
            member._remember(control, arms, schema)

    def _get_members(self) -> list[Any]:
        """What a saved file must hold of the members."""
        return [group[0]._get_states(group) for group in self._groups()]

    def _set_members(self, states: list[Any]) -> None:
        """The members that a file holds."""
        base = self._base()

        def make() -> UpliftEstimator:
            member: UpliftEstimator = clone(base)
            member._remember(self.control_, self.arms_, self._schema)
            return member

        self.estimators_ = [member for one in states for member in base._set_states(one, make)]
        self._n_arms = len(self.arms_)


def seeded(base: UpliftEstimator, seed: np.uint64, m: int) -> UpliftEstimator:
    """A member to fit: the unfitted base with a seed of its own, and so for every model inside it that takes one."""
    own = int(np.random.SeedSequence([int(seed), m]).generate_state(1)[0])
    inside = any(
        hasattr(value, "get_params") for value in vars(base).values()
    )  # quicker than to ask for all parameters
    nested = [name for name in base.get_params() if name.endswith("__random_state")] if inside else []
    member: UpliftEstimator = clone(base).set_params(**dict.fromkeys(nested, own)) if nested else copy.copy(base)
    if hasattr(member, "random_state"):
        member.random_state = own
    return member
