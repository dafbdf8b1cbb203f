"""Bagging of uplift models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone

from upturn._arrays import Bools, Floats, Indices
from upturn._columns import warn_user
from upturn._experiment import Experiment
from upturn._parallel import run_parallel
from upturn._parameters import ELSEWHERE, JOBS, LABEL, SEED, VERBOSE, Rule, one_of, whole
from upturn._seeds import make_seed
from upturn._target import Label, Outcome
from upturn.base import UpliftEstimator
from upturn.boosting._base import Ensemble, seeded
from upturn.kernels.resampling import resample, rows_by_stratum


class UpliftBagging(Ensemble):
    r"""Bagging: the average of a base model over bootstrap samples drawn within each arm.

    .. math:: s(x) = \frac{1}{M} \sum_m \hat\tau_m(x) \quad\text{or}\quad \frac{1}{M} \sum_m 1[h_m(x) = 1]

    with h the members' own recommendations. ``recommend`` treats where the average score is above 0 if that is the base
    model's rule; else, and with votes, it takes the majority of the members' recommendations, control where it ties.

    Parameters
    ----------
    estimator : uplift model, optional
        The base model, one that takes weights: a row drawn twice has weight 2. By default an unpruned Euclidean tree of
        height 3.
    n_estimators : int
        Members.
    average : {"score", "vote"}
        Whether the members' effects are averaged, or their 0-1 decisions.
    random_state : int, RandomState, Generator or None
        Seed of the samples, and of the base models.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    verbose : int
        1 shows progress.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    estimators_ : list
        The members.
    feature_importances_ : array of shape (p,)
        The mean of the members' importances; only if these have some.
    oob_prediction_ : array of shape (n,) or (n, K)
        For each row of the fit, the average over the members that did not see it; NaN where all of them did. A saved
        file does not hold it.

    References
    ----------
    Sołtys, Jaroszewicz, Rzepakowski, "Ensemble methods for uplift modeling", 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.boosting import UpliftBagging
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(2000, 2)), rng.integers(0, 2, 2000)
    >>> y = rng.random(2000) < 0.5 + 0.3 * treatment * np.sign(X[:, 0])
    >>> model = UpliftBagging(n_estimators=11, random_state=0).fit(X, y, treatment)
    >>> model.recommend([[2.0, 0.0], [-2.0, 0.0]])
    array([1, 0])
    """

    _height = 3
    _parameters: ClassVar[Mapping[str, Rule]] = {
        "estimator": ELSEWHERE,
        "n_estimators": whole(least=1),
        "average": one_of("score", "vote"),
        "random_state": SEED,
        "n_jobs": JOBS,
        "verbose": VERBOSE,
        "control": LABEL,
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 101,
        average: Literal["score", "vote"] = "score",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        control: Label | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.average = average
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.control = control

    @property
    def _outcome(self) -> Outcome:  # type: ignore[override]
        return self._base()._outcome

    @property
    def _score_has_zero(self) -> bool:  # type: ignore[override]
        return self._base()._score_has_zero

    @property
    def _score_is_effect(self) -> bool:  # type: ignore[override]
        return self.average == "score" and self._base()._score_is_effect

    @property
    def _multi_arm(self) -> bool:  # type: ignore[override]
        return self._base()._multi_arm

    def _tell(self, data: Experiment) -> None:
        """What most members doubt about their fit, once."""
        self._tell_arms()
        doubts = [member._doubts[0] for member in self.estimators_ if getattr(member, "_doubts", None)]
        if 2 * len(doubts) > len(self.estimators_):
            warn_user(f"{len(doubts)} of {len(self.estimators_)} members: {doubts[0]}", UserWarning)

    def _tell_arms(self) -> None:
        self.estimators_[0]._tell_arms()  # all have looked at the same

    def _fit(self, data: Experiment) -> None:
        seed, base = make_seed(self.random_state), self._fresh_base()
        weighed = data.weights > 0.0
        whole, data = data, data if weighed.all() else data.take(weighed)
        prepared, draws = base._prepare(data), rows_by_stratum(data.arm, data.n_arms + 1)
        weights = data.weights

        def fit_member(m: int) -> tuple[UpliftEstimator, Bools]:
            counts = np.empty(len(data), np.int32)
            resample(seed, m, *draws, counts)
            member = seeded(base, seed, m)
            member._fit_prepared(prepared, weights * counts)
            return member, counts == 0

        fitted = run_parallel(
            fit_member, range(self.n_estimators), n_jobs=self.n_jobs, verbose=self.verbose, description="bagging"
        )
        self.estimators_, self._n_arms = [member for member, _ in fitted], data.n_arms
        total, seen = np.zeros((len(data), data.n_arms)), np.zeros((len(data), 1))
        rows = base._rows_of(prepared)
        for member, out in fitted:
            total[out] += member._opinion(rows[out], self.average, data.n_arms)
            seen[out] += 1
        mean = np.empty((len(whole), data.n_arms))
        with np.errstate(invalid="ignore"):
            mean[weighed] = total / seen
        if len(data) < len(whole):
            mean[~weighed] = self._predict(whole.X[~weighed])
        self.oob_prediction_ = mean[:, 0] if data.n_arms == 1 else mean

    def _fresh_base(self) -> UpliftEstimator:
        """The base model, unfitted, if it can give what is averaged."""
        base: UpliftEstimator = clone(self._base())
        if self.average == "vote":
            base._refuse_without_zero()
        return base

    def _staged(self, X: Floats) -> Iterator[Floats]:
        return (total / heard for total, heard in self._ask_in_turn(X, self.average))

    def _predict(self, X: Floats) -> Floats:
        total, heard = self._ask(X, self.average)
        return total / heard

    def _recommend(self, X: Floats) -> Indices:
        base = type(self.estimators_[0])
        if self.average == "score" and base._recommend is UpliftEstimator._recommend:
            return super()._recommend(X)
        votes, heard = self._ask(X, "vote")
        control = heard - votes.sum(axis=1, keepdims=True)
        return np.asarray(np.hstack([control, votes]).argmax(axis=1))

    def _get_state(self) -> dict[str, Any]:
        return {"members": self._get_members()}

    def _set_state(self, state: dict[str, Any]) -> None:
        self._set_members(state["members"])
        if not self.estimators_:
            raise ValueError("bagging without members")
