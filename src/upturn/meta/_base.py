"""What meta-learners share: lists of fitted members, and how they are saved."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from upturn._arrays import Floats
from upturn._nuisance import Member
from upturn._table import Schema
from upturn.base import UpliftEstimator, finite_importances


class MetaLearner(UpliftEstimator):
    """Base class of the learners that keep a list of members, ``_members``."""

    _members: list[Member]

    def _count_members(self) -> int:
        """How many members a fitted learner with these arms has."""
        return len(self.arms_)

    def _member_schema(self) -> Schema:
        """The columns members look at."""
        return self._schema

    def _columns(self, X: Floats) -> Floats:
        """Predictions of all members, a column each."""
        return np.column_stack([member.predict(X) for member in self._members])

    @property
    def feature_importances_(self) -> Floats:
        """Mean of the importances that the models inside give the columns; there is none if they give none."""
        check_is_fitted(self)
        width = self._member_schema().n_features
        mean = np.mean([member.importances(width) for member in self._members], axis=0)
        return finite_importances(self._by_feature(mean), self.n_features_in_)

    def _by_feature(self, importances: Floats) -> Floats:
        """Importances of the columns members look at, added up for every column of the table."""
        return importances

    def _get_state(self) -> dict[str, Any]:
        return {"members": [member.get_state() for member in self._members]}

    def _set_state(self, state: dict[str, Any]) -> None:
        states = state["members"]
        if not isinstance(states, list) or len(states) != self._count_members():
            raise ValueError(f"expected {self._count_members()} models inside {type(self).__name__}")
        schema = self._member_schema()
        self._members = [Member.from_state(one, schema) for one in states]


def effect_base(effect_estimator: Any, estimator: Any) -> Any:
    """The regressor of effects: the one given, else the outcome's if it is a regressor, else the default."""
    if effect_estimator is None and hasattr(estimator, "fit") and is_regressor(estimator):
        return estimator
    return effect_estimator
