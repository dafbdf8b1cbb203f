"""Several arms for models of one: a model per arm, each against control."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from upturn._arrays import Floats, Indices
from upturn._experiment import Experiment
from upturn._parameters import ELSEWHERE, LABEL, Rule
from upturn._table import Schema
from upturn._target import Label, Outcome
from upturn.base import UpliftEstimator
from upturn.meta._transformation import ClassTransformation

LADDER = np.linspace(0, 1, 201)  # shares of rows, of the distribution of a member's scores


class OneVsControl(UpliftEstimator):
    r"""One model per treatment arm, fitted to that arm and control: support vector machines, boosting and the class
    transformation for experiments with several arms.

    .. math:: s_k(x) = \text{score of the model of arm } k \text{ against control}

    Each column of ``predict`` ranks people for its arm, and is what metrics judge arm by arm. Columns of models that predict
    effects (class transformation, calibrated models, trees) are in units of the outcome and may be compared with each other.
    **Scores of support vector machines and votes of boosting have no common unit**: 0.7 of one machine is not more than 0.5
    of another. To compare them, calibrate: ``OneVsControl(UpliftCalibrator(UpliftSVM()))``.

    ``recommend`` asks every member for its own decision. Where none says yes it is control, where one does it is that arm, and
    where several do, the one with the largest effect; of scores without a common unit, the one that stands highest among the
    scores of its own training rows.

    Parameters
    ----------
    estimator : uplift model, optional
        Of upturn's; by default ``ClassTransformation()``. Every arm gets a clone.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    estimators_ : list of models
        The member of every arm, in the order of ``arms_``.
    feature_importances_ : array of shape (p,)
        Mean over the members.
    control_, arms_ : label, list of labels

    References
    ----------
    Zaniewicz, "Support Vector Machines for Uplift Modeling", 2018 (machines for one treatment); one model per arm is the
    separate treatment of arms in Rzepakowski, Jaroszewicz, "Decision trees for uplift modeling with single and multiple
    treatments", 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.meta import OneVsControl
    >>> from upturn.svm import UpliftSVM
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(3000, 2)), rng.choice(["control", "mail", "phone"], 3000)
    >>> help = np.where(treatment == "mail", X[:, 0], np.where(treatment == "phone", X[:, 1], 0))
    >>> y = rng.random(3000) < 0.5 + 0.2 * np.sign(help) * (help != 0)
    >>> model = OneVsControl(UpliftSVM(p=1.2)).fit(X, y, treatment)
    >>> model.recommend([[2.0, -2.0], [-2.0, 2.0], [-2.0, -2.0]])
    array(['mail', 'phone', 'control'], dtype='<U7')
    """

    _parameters: ClassVar[Mapping[str, Rule]] = {"estimator": ELSEWHERE, "control": LABEL}

    estimators_: list[UpliftEstimator]
    _ladder: Floats

    def __init__(self, estimator: Any = None, *, control: Label | None = None) -> None:
        self.estimator = estimator
        self.control = control

    def _base(self) -> UpliftEstimator:
        base = ClassTransformation() if self.estimator is None else self.estimator
        if not isinstance(base, UpliftEstimator):
            raise TypeError(
                f"estimator={base!r} is not an uplift model: pass one of upturn's, such as UpliftSVM(), or wrap a classifier, as in "
                "ClassTransformation(classifier)"
            )
        return base

    @property
    def _outcome(self) -> Outcome:  # type: ignore[override]
        return self._base()._outcome

    @property
    def _score_has_zero(self) -> bool:  # type: ignore[override]
        return self._base()._score_has_zero

    @property
    def _score_is_effect(self) -> bool:  # type: ignore[override]
        return self._base()._score_is_effect

    @property
    def _float32(self) -> bool:  # type: ignore[override]
        return self._base()._float32

    def _takes_sparse(self) -> bool:
        return self._base()._takes_sparse()

    def _fit(self, data: Experiment) -> None:
        base, self.estimators_, ladders = self._base(), [], []
        for k, label in enumerate(data.target.arms, start=1):
            pair = self._pair(data, k)
            member: UpliftEstimator = clone(base)
            try:
                member._fit(pair)
            except ValueError as error:
                raise ValueError(f"arm {label!r} against control {data.target.control!r}: {error}") from error
            member._remember(data.target.control, [label], data.schema)
            self.estimators_.append(member)
            kept = pair.X if pair.weight is None else pair.X[pair.weight > 0.0]
            ladders.append(np.quantile(member._predict(kept)[:, 0], LADDER))
        self._ladder = np.array(ladders)

    @staticmethod
    def _pair(data: Experiment, k: int) -> Experiment:
        """The rows of an arm and of control."""
        pair = data.take(data.target.pair(k))
        arm = (pair.arm == k).astype(pair.arm.dtype)
        return replace(pair, target=replace(pair.target, arm=arm, arms=[data.target.arms[k - 1]]))

    def _tell(self, data: Experiment) -> None:
        for k, member in enumerate(self.estimators_, start=1):
            member._tell(self._pair(data, k))

    def _tell_arms(self) -> None:
        for member in self.estimators_:
            member._tell_arms()

    def _predict(self, X: Floats) -> Floats:
        return np.column_stack([member._predict(X)[:, 0] for member in self.estimators_])

    def _recommend(self, X: Floats) -> Indices:
        """The arm whose member says yes; of several the best by what can be compared."""
        says = np.column_stack([member._recommend(X) for member in self.estimators_]) > 0
        merit = self._predict(X)
        if not self._score_is_effect:
            merit = np.column_stack([_height(merit[:, k], self._ladder[k]) for k in range(merit.shape[1])])
        best = np.where(says, merit, -np.inf).argmax(axis=1)
        return np.asarray(np.where(says.any(axis=1), best + 1, 0), dtype=np.intp)

    @property
    def feature_importances_(self) -> Floats:
        """Mean of the members' importances; there is none if they have none."""
        check_is_fitted(self)
        members: list[Any] = self.estimators_
        return np.asarray(np.mean([member.feature_importances_ for member in members], axis=0))

    def _remember(self, control: Label, arms: list[Label], schema: Schema) -> None:
        super()._remember(control, arms, schema)
        for label, member in zip(arms, getattr(self, "estimators_", []), strict=False):
            member._remember(control, [label], schema)

    def _get_state(self) -> dict[str, Any]:
        return {"members": [member._get_state() for member in self.estimators_], "ladder": self._ladder}

    def _set_state(self, state: dict[str, Any]) -> None:
        states, ladder = state["members"], state["ladder"]
        if not isinstance(states, list) or len(states) != len(self.arms_):
            raise ValueError(f"expected {len(self.arms_)} models inside OneVsControl")
        if (
            not isinstance(ladder, np.ndarray)
            or ladder.dtype != np.float64
            or ladder.shape != (len(states), len(LADDER))
        ):
            raise ValueError("the distributions of the scores do not fit the arms")
        if not np.isfinite(ladder).all() or (np.diff(ladder, axis=1) < 0).any():
            raise ValueError("the distributions of the scores are not in order")
        members, base = [], self._base()
        for label, one in zip(self.arms_, states, strict=True):
            member: UpliftEstimator = clone(base)
            member._remember(self.control_, [label], self._schema)
            member._set_state(one)
            members.append(member)
        self.estimators_, self._ladder = members, ladder


def _height(score: Floats, ladder: Floats) -> Floats:
    """Where scores stand among those of training rows, from 0 to 1; beyond the highest, by how far."""
    inside = np.interp(score, ladder, np.linspace(0, 1, len(ladder)))
    return np.asarray(inside + np.maximum(score - ladder[-1], 0.0) / max(float(ladder[-1] - ladder[0]), 1e-300))
