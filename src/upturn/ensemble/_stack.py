"""A fitted stack: how it predicts, what it tells and how it is saved, whoever found its weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from upturn._arrays import Floats
from upturn._experiment import Experiment
from upturn._nuisance import clips_told_once
from upturn._results import Table
from upturn._table import Schema
from upturn._target import Label
from upturn.base import UpliftEstimator, finite_importances
from upturn.ensemble._combine import Combined
from upturn.meta._base import WithPropensity

AVERAGE = "average effect"  # its row in tables beside the candidates


class Stack(WithPropensity):
    """Base of models that predict c + Σ a_j (τ_j − mean τ_j), arm by arm."""

    estimators_: dict[str, UpliftEstimator]
    average_effects_: Floats
    ridge_: Floats

    def _fit(self, data: Experiment) -> None:
        with clips_told_once(type(self).__name__):
            super()._fit(data)

    def _keep(self, names: list[str], found: Sequence[Combined]) -> None:
        """Take over what was found for every arm."""
        self._names = names
        self._weights = np.array([one.weights for one in found]).reshape(len(found), len(names)).T.copy()
        self._means = np.array([one.means for one in found]).reshape(len(found), len(names)).T.copy()
        self.average_effects_ = np.array([one.average for one in found])
        self.ridge_ = np.array([one.ridge for one in found])

    def _used(self) -> list[int]:
        """The candidates that have weight in some arm."""
        return [j for j in range(len(self._names)) if self._weights[j].any()]

    # ------------------------------------------------------------------------------------------ using

    def _predict(self, X: Floats) -> Floats:
        total = np.tile(self.average_effects_, (len(X), 1))
        for name, model in self.estimators_.items():
            j = self._names.index(name)
            total += self._weights[j] * (model._predict(X) - self._means[j])
        return total

    @property
    def _predict_response(self) -> Any:
        """Responses, if every member has them: control's by the members' weights, and the effects on top."""
        members = getattr(self, "estimators_", {})
        if not members or not all(hasattr(model, "_predict_response") for model in members.values()):
            raise AttributeError("a member estimates effects, not responses")
        return self._respond

    def _respond(self, X: Floats) -> Floats:
        control, whole = np.zeros(len(X)), self._weights.sum()
        for name, model in self.estimators_.items():
            share = self._weights[self._names.index(name)].sum() / whole
            control += share * model._predict_response(X)[:, 0]
        return np.column_stack([control, control[:, None] + self._predict(X)])

    @property
    def weights_(self) -> Table:
        """Weights of the candidates, and of the average effect: what they leave of 1."""
        check_is_fitted(self)
        names = [AVERAGE, *self._names]
        return self._table(names, {"weight": np.vstack([1.0 - self._weights.sum(axis=0), self._weights]).T})

    def _table(self, names: list[str], columns: dict[str, Floats]) -> Table:
        """A table of values of shape (arms, names); a column names the arms if there are several."""
        table: dict[str, Any] = {"arm": np.repeat(self.arms_, len(names))} if len(self.arms_) > 1 else {}
        table |= {
            "model": np.tile(names, len(self.arms_)),
            **{name: values.ravel() for name, values in columns.items()},
        }
        return Table(table, library=self._library)

    @property
    def feature_importances_(self) -> Floats:
        """Importances of the members, each divided by its sum, averaged by their weights."""
        check_is_fitted(self)
        total, whole = np.zeros(self.n_features_in_), self._weights.sum()
        members: dict[str, Any] = self.estimators_
        for name, model in members.items():
            own = model.feature_importances_
            share = self._weights[self._names.index(name)].sum() / whole
            total += share * own / (own.sum() or 1.0)
        return finite_importances(total, self.n_features_in_)

    def _remember(self, control: Label, arms: list[Label], schema: Schema) -> None:
        super()._remember(control, arms, schema)
        for model in getattr(self, "estimators_", {}).values():
            model._remember(control, arms, schema)

    # ------------------------------------------------------------------------------------------ the saved form

    def _get_state(self) -> dict[str, Any]:
        return {
            "names": self._names,
            "weights": self._weights,
            "means": self._means,
            "average_effects": self.average_effects_,
            "ridge": self.ridge_,
            "members": list(self.estimators_.values()),
            "choice": self._choice_state(),
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        names, weights, members, n_arms = state["names"], state["weights"], state["members"], len(self.arms_)
        named = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if not named or not 0 < len(set(names)) == len(names):
            raise ValueError("the names of the candidates are not well formed")
        of_each = (len(names), n_arms)
        shapes = {"weights": of_each, "means": of_each, "average_effects": (n_arms,), "ridge": (n_arms,)}
        for what, shape in shapes.items():
            check_numbers(state[what], shape, what)
        if (weights < 0).any() or (weights.sum(axis=0) > 1 + 1e-9).any():
            raise ValueError("the weights of the candidates are not between 0 and 1")
        used = [name for name, row in zip(names, weights, strict=True) if row.any()]
        if not isinstance(members, list) or len(members) != len(used):
            raise ValueError(f"expected {len(used)} models inside {type(self).__name__}")
        for model in members:
            if (
                not isinstance(model, UpliftEstimator)
                or not model.__sklearn_is_fitted__()
                or not model._score_is_effect
            ):
                raise ValueError("a member is not a fitted model of effects")
            if (model.control_, model.arms_, model._schema) != (self.control_, self.arms_, self._schema):
                raise ValueError("a member does not fit the stack")
        self._set_choice(state["choice"])
        self._names, self._weights, self._means = names, weights, state["means"]
        self.average_effects_, self.ridge_ = state["average_effects"], state["ridge"]
        self.estimators_ = dict(zip(used, members, strict=True))


def check_numbers(array: Any, shape: tuple[int, ...], what: str) -> None:
    """Refuse what is not an array of finite numbers of a shape."""
    if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != shape:
        raise ValueError(f"{what}: expected numbers of shape {shape}")
    good = array >= 0 if what == "ridge" else np.isfinite(array)  # an infinite ridge leaves the average effect
    if not good.all():
        raise ValueError(f"{what} holds numbers that cannot be")
