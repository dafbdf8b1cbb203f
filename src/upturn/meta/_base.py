"""What meta-learners share: lists of fitted members, the choice of a propensity, and how they are saved."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.utils.validation import check_is_fitted

from upturn._arrays import Floats
from upturn._columns import warn_user
from upturn._experiment import Experiment
from upturn._nuisance import KINDS, Choice, Kind, Member, PropensitySpec, choose_propensity
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

    def _takes_sparse(self) -> bool:
        return base_takes_sparse(self)

    def _sparse_advice(self) -> str:
        own, effects = getattr(self, "estimator", None), getattr(self, "effect_estimator", self)
        if effects is self or effect_base(effects, own) is not None or not _takes_sparse(own):
            return ""
        name = type(self).__name__
        return (
            f"X is a sparse matrix, and {name}({type(own).__name__}()) models effects by gradient boosting, which does not take it: pass a "
            f"regressor that does, as in {name}({type(own).__name__}(), effect_estimator=Ridge()), or a dense table, X.toarray()"
        )

    def _tell(self, data: Experiment) -> None:
        if np.ptp(data.y) == 0:
            warn_user(
                f"{type(self).__name__} predicts the same for everybody: the outcome is the same in all rows",
                UserWarning,
            )
        elif self._same_for_all(data):
            name, rows = type(self).__name__, int(data.target.sizes.min())
            warn_user(
                f"{name} predicts the same for everybody: {self._why_constant()}; there are {len(data):,} rows, {rows:,} in the smallest arm, "
                f"and {data.schema.n_features} features. Give it more rows or fewer features, or use UpliftForest, which looks for effects and "
                "not for outcomes",
                UserWarning,
            )

    def _why_constant(self) -> str:
        """What it means that a learner of this kind tells nobody apart."""
        return "the models inside found nothing in the features that tells larger from smaller effects"

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


def take_shares(model: Any) -> Any:
    """The model, or a copy of it in which whatever would choose its propensities itself takes the shares of the arms."""
    given = model.get_params()
    chosen = [
        name
        for name, value in given.items()
        if name.split("__")[-1] == "propensity" and isinstance(value, str) and value == "auto"
    ]
    return clone(model).set_params(**dict.fromkeys(chosen, "shares")) if chosen else model


class WithPropensity(UpliftEstimator):
    """What learners share that need the probabilities of the arms: the choice of their kind, made once per fit."""

    propensity: PropensitySpec
    n_jobs: int | None = None
    propensity_kind_: Kind
    propensity_auc_: float | None
    propensity_pvalue_: float | None

    def _fit(self, data: Experiment) -> None:
        self._fit_chosen(data, self._choose(data))

    def _fit_chosen(self, data: Experiment, choice: Choice) -> None:
        """Learn from an experiment, the kind of propensity being settled."""
        raise TypeError(f"{type(self).__name__} does not say how to fit")

    def _choose(self, data: Experiment) -> Choice:
        return choose_propensity(self.propensity, data, self.n_jobs)

    def _keep_choice(self, choice: Choice) -> None:
        self.propensity_kind_, self.propensity_auc_, self.propensity_pvalue_ = choice.kind, choice.auc, choice.pvalue
        self._enough = choice.enough

    # In an ensemble the choice is made once, for all members.

    def _prepare(self, data: Experiment) -> tuple[Experiment, Choice]:
        return data, self._choose(data)

    def _fit_prepared(self, prepared: tuple[Experiment, Choice], weight: Floats) -> None:
        data, choice = prepared
        self._fit_chosen(data.with_weight(weight), choice)

    def _rows_of(self, prepared: tuple[Experiment, Choice]) -> Floats:
        return prepared[0].X

    def _choice_state(self) -> dict[str, Any]:
        return {
            "kind": self.propensity_kind_,
            "auc": self.propensity_auc_,
            "pvalue": self.propensity_pvalue_,
            "enough": self._enough,
        }

    def _set_choice(self, state: dict[str, Any]) -> None:
        shares = [state["auc"], state["pvalue"]]
        good = all(value is None for value in shares) or all(isinstance(v, float) and 0 <= v <= 1 for v in shares)
        if state["kind"] not in KINDS or not good or not isinstance(state["enough"], bool):
            raise ValueError("what is said about the propensity is not well formed")
        self._keep_choice(Choice(state["kind"], auc=shares[0], pvalue=shares[1], enough=state["enough"]))

    def _fitted_words(self) -> str:
        words = super()._fitted_words()
        if getattr(self, "propensity_auc_", None) is None:
            return words
        choice = Choice(self.propensity_kind_, None, None, self.propensity_auc_, self.propensity_pvalue_, self._enough)
        return f"{words}, propensity: {choice}"


def base_takes_sparse(learner: Any) -> bool:
    """Whether every model inside a learner that was given takes sparse matrices; gradient boosting, the default, does not."""
    names = [name for name in ("estimator", "effect_estimator") if name in learner.get_params(deep=False)]
    bases = [getattr(learner, name) for name in names]
    if len(bases) == 2 and bases[1] is None:
        bases[1] = effect_base(None, bases[0])
    return all(map(_takes_sparse, bases))


def _takes_sparse(base: Any) -> bool:
    known = not isinstance(base, type) and hasattr(base, "__sklearn_tags__")
    return known and bool(base.__sklearn_tags__().input_tags.sparse)


def effect_base(effect_estimator: Any, estimator: Any) -> Any:
    """The regressor of effects: the one given, else the outcome's if it is a regressor, else the default."""
    if effect_estimator is None and hasattr(estimator, "fit") and is_regressor(estimator):
        return estimator
    return effect_estimator
