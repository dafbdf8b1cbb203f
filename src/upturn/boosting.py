"""Ensembles of uplift models: boosting in three variants, and bagging."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from upturn._run import make_seed, progress, run_parallel
from upturn._table import Matrix, Schema
from upturn._target import Label, Outcome, read_target
from upturn.base import Experiment, UpliftEstimator
from upturn.kernels.boosting import reweigh, tally
from upturn.kernels.hashing import RESTART, exponentials
from upturn.kernels.resampling import resample
from upturn.metrics._areas import mean_area
from upturn.metrics._estimate import rows_by_stratum
from upturn.trees import UpliftTree

Algorithm = Literal["adaboost", "balanced", "forgetting"]
Restart = Literal["combined", "strict"]

_ROUND = np.dtype(
    [
        ("error_treatment", float),
        ("error_control", float),
        ("weight_treatment", float),
        ("weight_control", float),
        ("beta_treatment", float),
        ("beta_control", float),
        ("beta", float),
        ("bound", float),
        ("restarted", bool),
    ]
)


def coefficients(
    algorithm: Algorithm, error_t: float, error_c: float, weight_t: float, weight_c: float
) -> tuple[float, float]:
    """β^T and β^C of Table 1 and Theorem 2, from the groups' errors and their shares of the weight."""
    if algorithm == "adaboost":  # equation (18)
        error = weight_t * error_t + weight_c * error_c
        beta = error / (1 - error)
        return beta, beta
    if algorithm == "forgetting":  # section 3.3
        return error_c / (1 - error_t), error_t / (1 - error_c)
    if (error_t < 0.5 and error_c < 0.5) or (error_t > 0.5 and error_c > 0.5):  # Theorem 2
        # The error nearer to one half gets AdaBoost's factor, the other group is kept in balance by equation (7).
        if abs(error_c - 0.5) <= abs(error_t - 0.5):
            beta_c = error_c / (1 - error_c)
        else:
            beta_c = (2 * error_t - error_c) / (1 - error_c)
        return (error_c - error_t + (1 - error_c) * beta_c) / (1 - error_t), beta_c
    return 1.0, 1.0


def bound_factor(
    error_t: float, error_c: float, weight_t: float, weight_c: float, beta_t: float, beta_c: float
) -> float:
    """What one round multiplies the bound (15) on the training error by: expression (16)."""
    correct = weight_t * (1 - error_t) * (1 - beta_t) + weight_c * (1 - error_c) * (1 - beta_c)
    return float((1 - correct) / np.sqrt(min(beta_t, beta_c)))


class _Ensemble(UpliftEstimator):
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


class UpliftBoosting(_Ensemble):
    r"""Boosting for uplift, in the three variants of Sołtys and Jaroszewicz.

    A treated row is classified correctly when the decision equals its outcome, a control row when it differs from it.
    Each round fits a base model to weighted rows, measures its errors :math:`\epsilon^T, \epsilon^C` in the two groups,
    and multiplies the weights of rows it got right by :math:`\beta^T` or :math:`\beta^C`:

    ============== ==================================================== ================================== =========
    algorithm      :math:`\beta^T, \beta^C`                              error bound never grows            balance
    ============== ==================================================== ================================== =========
    ``adaboost``   both :math:`\epsilon / (1 - \epsilon)`                yes, and it forgets the last model no
    ``balanced``   Theorem 2                                             yes                                yes
    ``forgetting`` :math:`\epsilon^C/(1-\epsilon^T),\                    no, but it forgets the last model  yes
                   \epsilon^T/(1-\epsilon^C)`
    ============== ==================================================== ================================== =========

    with :math:`\epsilon = p^T \epsilon^T + p^C \epsilon^C`. The ensemble's score is

    .. math:: s(x) = \sum_m \log\tfrac{1}{\beta_m} h_m(x) \Big/ \sum_m \log\tfrac{1}{\beta_m} \in [0, 1],
              \qquad \beta_m = \min(\beta^T_m, \beta^C_m),

    a weighted vote for treatment, and :meth:`recommend` treats from one half up (equation (2)).

    Parameters
    ----------
    estimator : uplift model, optional
        The base model, one that takes weights. By default an unpruned Euclidean tree of height 1. Its decision is what
        its ``recommend`` says.
    algorithm : {"adaboost", "balanced", "forgetting"}
        The variant.
    n_estimators : int
        Rounds. A round that ends in a restart adds no member.
    restart : {"combined", "strict"}
        When the weights are drawn anew from an exponential distribution. ``strict`` is step 2e as printed: as soon as
        one group's error is not between 0 and 1/2. That leaves no member at all on data with a clear overall effect, so
        ``combined`` does so when both coefficients are 1, the combined error is not between 0 and 1/2, or a group's
        error is 0 or 1.
    random_state : int, RandomState, Generator or None
        Seed of the restarts, and of the base models.
    verbose : int
        1 shows progress.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    estimators_ : list
        The members.
    betas_ : array
        Their :math:`\beta_m`.
    history_ : structured array, a row per round
        Errors, group weights p^T and p^C, coefficients, the bound (15) on the training error after the round (NaN from
        the first restart on, where it no longer holds), and whether the round ended in a restart.
    imbalance_ : float
        The largest of p^T / p^C and p^C / p^T over all rounds.
    n_restarts_ : int

    Notes
    -----
    On the diagonal ε^T = ε^C < 1/2 Theorem 2 is silent in print; its proof has ε / (1 - ε), which is used.

    References
    ----------
    Sołtys, Jaroszewicz, "Boosting algorithms for uplift modeling", 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.boosting import UpliftBoosting
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(2000, 2)), rng.integers(0, 2, 2000)
    >>> y = rng.random(2000) < 0.5 + 0.3 * treatment * np.sign(X[:, 0])
    >>> model = UpliftBoosting(n_estimators=11, random_state=0).fit(X, y, treatment)
    >>> model.recommend([[2.0, 0.0], [-2.0, 0.0]])
    array([1, 0])
    """

    _outcome: Outcome = "binary"
    _multi_arm = False
    _height = 1

    def __init__(
        self,
        estimator: Any = None,
        *,
        algorithm: Algorithm = "adaboost",
        n_estimators: int = 101,
        restart: Restart = "combined",
        random_state: Any = None,
        verbose: int = 0,
        control: Label | None = None,
    ) -> None:
        self.estimator = estimator
        self.algorithm = algorithm
        self.n_estimators = n_estimators
        self.restart = restart
        self.random_state = random_state
        self.verbose = verbose
        self.control = control

    # ----------------------------------------------------------------------------------------- fitting

    def _fit(self, data: Experiment) -> None:
        self._check_parameters()
        seed, base = make_seed(self.random_state), clone(self._base())
        prepared, groups = base._prepare(data), (data.y.astype(np.uint8), data.arm)
        weight, total = self._first_weights(data), data.weights.sum()
        members: list[UpliftEstimator] = []
        history, bound, cells = np.zeros(self.n_estimators, dtype=_ROUND), 1.0, np.empty(4)
        for m in progress(range(self.n_estimators), self.verbose, "boosting"):
            weight /= weight.sum()
            member = _seeded(base, seed, m)
            member._fit_prepared(
                prepared, weight * total
            )  # as many rows as there are, or a Laplace correction swamps them
            decision = (member._recommend_prepared(prepared) == 1).view(np.uint8)
            tally(weight, decision, *groups, cells)
            right_c, wrong_c, right_t, wrong_t = cells.tolist()
            shares = right_t + wrong_t, right_c + wrong_c
            errors = wrong_t / shares[0], wrong_c / shares[1]
            betas = (1.0, 1.0) if 1.0 in errors else coefficients(self.algorithm, *errors, *shares)
            restarts = self._must_restart(errors, shares, betas)
            if restarts:
                bound = np.nan
                weight = self._random_weights(data, seed, m)
            else:
                bound *= bound_factor(*errors, *shares, *betas)
                reweigh(decision, *groups, *betas, weight)
                members.append(member)
            history[m] = (*errors, *shares, *betas, min(betas), bound, restarts)
        self.estimators_, self.history_ = members, history
        self.betas_ = history["beta"][~history["restarted"]].copy()
        if not members:
            warnings.warn(
                f"none of the {self.n_estimators} rounds found a base model better than chance in both groups "
                f"(algorithm={self.algorithm!r}, restart={self.restart!r}), so the ensemble is empty and its score constant: try "
                "algorithm='adaboost' with restart='combined', or a deeper base model",
                UserWarning,
                stacklevel=3,
            )
        means = np.bincount(data.arm, data.weights * data.y) / np.bincount(data.arm, data.weights)
        self._constant = bool(means[1] > means[0])

    def _check_parameters(self) -> None:
        if self.algorithm not in ("adaboost", "balanced", "forgetting"):
            raise ValueError(f"algorithm={self.algorithm!r}: expected 'adaboost', 'balanced' or 'forgetting'")
        if self.restart not in ("combined", "strict"):
            raise ValueError(f"restart={self.restart!r}: expected 'combined' or 'strict'")
        _check_count(self.n_estimators)

    def _first_weights(self, data: Experiment) -> NDArray[np.float64]:
        return data.weights.copy() if self.algorithm == "adaboost" else _balance(data.weights, data.arm)

    def _random_weights(self, data: Experiment, seed: np.uint64, m: int) -> NDArray[np.float64]:
        drawn = np.empty(len(data))
        exponentials(seed, RESTART, np.uint64(m), drawn)
        drawn *= data.weights
        return drawn if self.algorithm == "adaboost" else _balance(drawn, data.arm)

    def _must_restart(
        self, errors: tuple[float, float], weights: tuple[float, float], betas: tuple[float, float]
    ) -> bool:
        """Step 2e of Algorithm 1."""
        if betas == (1.0, 1.0):
            return True
        if self.restart == "strict":
            return not all(0 < error < 0.5 for error in errors)
        combined = weights[0] * errors[0] + weights[1] * errors[1]
        return not 0 < combined < 0.5 or any(error in (0.0, 1.0) for error in errors)

    # ----------------------------------------------------------------------------------------- predicting

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """The score after 1, 2, … members, each an array of shape (n,)."""
        for scores in self._staged(self._encode(X)):
            yield scores[:, 0]

    def staged_score(self, X: Any, y: Any, treatment: Any = None, sample_weight: Any = None) -> list[float]:
        """AUUC after 1, 2, … members."""
        matrix = self._encode(X)
        target = read_target(y, treatment, sample_weight, known=(self.control_, self.arms_))
        return [mean_area(target, scores) for scores in self._staged(matrix)]

    def _staged(self, X: Matrix) -> Iterator[NDArray[np.float64]]:
        votes, total = np.zeros((len(X), 1)), 0.0
        for member, beta in zip(self.estimators_, self.betas_, strict=True):
            voice = -np.log(beta)
            votes[:, 0] += voice * (member._recommend(X) == 1)
            total += voice
            yield votes / total

    def _predict(self, X: Matrix) -> NDArray[np.float64]:
        scores = np.full((len(X), 1), float(self._constant))
        for stage in self._staged(X):
            scores = stage
        return scores

    def _recommend(self, X: Matrix) -> NDArray[np.intp]:
        # Equation (2), ties treat. Votes add up to one half only up to rounding, so half is met with a little slack.
        return (self._predict(X)[:, 0] >= 0.5 - 1e-12).astype(np.intp)

    # ----------------------------------------------------------------------------------------- state

    @property
    def n_restarts_(self) -> int:
        """Rounds that ended in a restart."""
        return int(self.history_["restarted"].sum())

    @property
    def imbalance_(self) -> float:
        """The largest ratio between the groups' weights over all rounds."""
        ratio = self.history_["weight_treatment"] / self.history_["weight_control"]
        return float(np.maximum(ratio, 1 / ratio).max())

    def _get_state(self) -> dict[str, Any]:
        return {
            "members": [member._get_state() for member in self.estimators_],
            "history": {name: self.history_[name] for name in _ROUND.names or ()},
            "constant": self._constant,
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        history = np.zeros(len(state["history"]["beta"]), dtype=_ROUND)
        for name in _ROUND.names or ():
            column = state["history"][name]
            if column.shape != history.shape or column.dtype != _ROUND[name]:
                raise ValueError("the history of the rounds is not well formed")
            history[name] = column
        self.history_, self._constant = history, bool(state["constant"])
        self.betas_ = history["beta"][~history["restarted"]].copy()
        if not ((self.betas_ > 0) & (self.betas_ < 1)).all() or len(state["members"]) != len(self.betas_):
            raise ValueError("the members and their coefficients do not fit together")
        self.estimators_ = self._restore_members(state["members"])


class UpliftBagging(_Ensemble):
    r"""Bagging: the average of a base model over bootstrap samples drawn within each arm.

    .. math:: s(x) = \frac{1}{M} \sum_m \hat\tau_m(x) \quad\text{or}\quad \frac{1}{M} \sum_m 1[\hat\tau_m(x) > 0]

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
    oob_prediction_ : array of shape (n,) or (n, K)
        For each row of the fit, the average over the members that did not see it; NaN where all of them did.

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
    def _multi_arm(self) -> bool:  # type: ignore[override]
        return self._base()._multi_arm

    def _fit(self, data: Experiment) -> None:
        _check_count(self.n_estimators)
        if self.average not in ("score", "vote"):
            raise ValueError(f"average={self.average!r}: expected 'score' or 'vote'")
        seed, base = make_seed(self.random_state), clone(self._base())
        prepared, draws = base._prepare(data), rows_by_stratum(data.arm, data.n_arms + 1)
        weights = data.weights

        def fit_member(m: int) -> tuple[UpliftEstimator, NDArray[np.bool_]]:
            counts = np.empty(len(data), np.int32)
            resample(seed, m, *draws, counts)
            member = _seeded(base, seed, m)
            member._fit_prepared(prepared, weights * counts)
            return member, counts == 0

        fitted = run_parallel(
            fit_member, range(self.n_estimators), n_jobs=self.n_jobs, verbose=self.verbose, description="bagging"
        )
        self.estimators_ = [member for member, _ in fitted]
        total, seen = np.zeros((len(data), data.n_arms)), np.zeros((len(data), 1))
        for member, out in fitted:
            total[out] += self._opinion(member, data.X[out])
            seen[out] += 1
        with np.errstate(invalid="ignore"):
            mean = np.asarray(total / seen)
        self.oob_prediction_ = mean[:, 0] if data.n_arms == 1 else mean

    def _opinion(self, member: UpliftEstimator, X: Matrix) -> NDArray[np.float64]:
        effects = member._predict(X)
        return effects if self.average == "score" else (effects > 0).astype(np.float64)

    def _predict(self, X: Matrix) -> NDArray[np.float64]:
        total = self._opinion(self.estimators_[0], X).astype(np.float64)
        for member in self.estimators_[1:]:
            total += self._opinion(member, X)
        return np.asarray(total / len(self.estimators_))

    def _recommend(self, X: Matrix) -> NDArray[np.intp]:
        threshold = 0.0 if self.average == "score" else 0.5  # a vote treats where the majority does
        scores = self._predict(X)
        best = scores.argmax(axis=1)
        return np.where(scores[np.arange(len(X)), best] > threshold, best + 1, 0)

    def _get_state(self) -> dict[str, Any]:
        return {"members": [member._get_state() for member in self.estimators_], "oob": self.oob_prediction_}

    def _set_state(self, state: dict[str, Any]) -> None:
        if not state["members"]:
            raise ValueError("bagging without members")
        self.estimators_, self.oob_prediction_ = self._restore_members(state["members"]), state["oob"]


def _seeded(base: UpliftEstimator, seed: np.uint64, m: int) -> UpliftEstimator:
    """A member to fit: the unfitted base with a seed of its own."""
    member = copy.copy(base)
    if hasattr(member, "random_state"):
        member.random_state = int(np.random.SeedSequence([int(seed), m]).generate_state(1)[0])
    return member


def _balance(weight: NDArray[np.float64], arm: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Weights scaled so that each of two groups has one half of them."""
    totals = np.bincount(arm, weights=weight, minlength=2)
    return np.asarray(weight / (2 * totals)[arm])


def _check_count(n_estimators: Any) -> None:
    if isinstance(n_estimators, bool) or not isinstance(n_estimators, int | np.integer) or n_estimators < 1:
        raise ValueError(f"n_estimators={n_estimators!r}: expected a whole number of at least 1")
