"""Uplift AdaBoost, balanced uplift boosting and balanced forgetting boosting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone

from upturn._arrays import Floats, Indices
from upturn._columns import warn_user
from upturn._experiment import Experiment
from upturn._parallel import progress
from upturn._parameters import ELSEWHERE, LABEL, SEED, VERBOSE, Rule, one_of, whole
from upturn._seeds import make_seed
from upturn._target import Label, Outcome
from upturn.base import UpliftEstimator
from upturn.boosting._base import Ensemble, seeded
from upturn.boosting._coefficients import Algorithm, bound_factor, coefficients
from upturn.boosting._rounds import Near, Rounds
from upturn.boosting._ties import TIE, collapse, leaf_effects, ranked_votes

Restart = Literal["combined", "strict"]
Ties = Literal["effect", "none"]
_PERFECT = 1e-10  # the coefficient of a base model without an error, where it is the only member

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


class UpliftBoosting(Ensemble):
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

    Few members give few different votes. So that tied rows are ranked too, ``predict`` adds a millionth of the effects of
    the members' leaves, their mean weighted by the voices,

    .. math:: s(x) + 10^{-6} \sum_m \log\tfrac{1}{\beta_m} \hat\tau_m(x) \Big/ \sum_m \log\tfrac{1}{\beta_m},

    with :math:`\hat\tau_m(x)` the difference of the groups' mean outcomes, under the original weights and over the range
    of the outcome, among the training rows in the leaf of x. A base without leaves gives the effects it predicts, their
    mean kept from -1 to 1. ``recommend`` looks at the votes alone.

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
    ties : {"effect", "none"}
        Whether ``predict`` ranks rows with equal votes by the effects of the leaves they are in, or gives the votes alone,
        which is the paper's score.
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
    feature_importances_ : array of shape (p,)
        The mean, weighted by their voices :math:`-\log \beta_m`, of the members' importances; only if these have some.
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
    _score_is_effect = False
    _parameters: ClassVar[Mapping[str, Rule]] = {
        "estimator": ELSEWHERE,
        "algorithm": one_of("adaboost", "balanced", "forgetting"),
        "n_estimators": whole(least=1),
        "restart": one_of("combined", "strict"),
        "ties": one_of("effect", "none"),
        "random_state": SEED,
        "verbose": VERBOSE,
        "control": LABEL,
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        algorithm: Algorithm = "adaboost",
        n_estimators: int = 101,
        restart: Restart = "combined",
        ties: Ties = "effect",
        random_state: Any = None,
        verbose: int = 0,
        control: Label | None = None,
    ) -> None:
        self.estimator = estimator
        self.algorithm = algorithm
        self.n_estimators = n_estimators
        self.restart = restart
        self.ties = ties
        self.random_state = random_state
        self.verbose = verbose
        self.control = control

    # ----------------------------------------------------------------------------------------- fitting

    def _fit(self, data: Experiment) -> None:
        if data.weight is not None and (data.weight == 0.0).any():
            data = data.take(data.weight > 0.0)
        seed, base = make_seed(self.random_state), self._fresh_base()
        self._boost(Near(base, data, seed, balanced=self._balanced), base, seed)

    def _fresh_base(self) -> UpliftEstimator:
        """The base model, unfitted, if it can decide."""
        base: UpliftEstimator = clone(self._base())
        base._refuse_without_zero()
        return base

    @property
    def _balanced(self) -> bool:
        """Whether both groups have one half of the weights at first."""
        return self.algorithm != "adaboost"

    def _boost(self, rows: Rounds, base: UpliftEstimator, seed: np.uint64) -> None:
        """All rounds, on rows that lie anywhere."""
        members: list[UpliftEstimator] = []
        doubts: list[str] = []
        heard = 0.0
        perfect: tuple[int, UpliftEstimator] | None = None
        history, bound = np.zeros(self.n_estimators, dtype=_ROUND), 1.0
        for m in progress(range(self.n_estimators), self.verbose, "boosting"):
            member = seeded(base, seed, m)
            rows.fit(member)
            cells = rows.tally(member)
            right_c, wrong_c, right_t, wrong_t = (cells / cells.sum()).tolist()
            shares = right_t + wrong_t, right_c + wrong_c
            errors = wrong_t / shares[0], wrong_c / shares[1]
            betas = (1.0, 1.0) if 1.0 in errors else coefficients(self.algorithm, *errors, *shares)
            restarts = self._must_restart(errors, shares, betas)
            if errors == (0.0, 0.0) and perfect is None:
                perfect = m, member
            if restarts:
                bound = np.nan
                rows.restart(m)
            else:
                bound *= bound_factor(*errors, *shares, *betas)
                factors = np.array([betas[1], 1.0, betas[0], 1.0])
                total = sum((cells * factors).tolist())  # one after the other: BLAS adds up as the processor likes it
                rows.go_on(member, factors / total, _voice(min(betas)))
                members.append(member)
                heard += _voice(min(betas))
            history[m] = (*errors, *shares, *betas, min(betas), bound, restarts)
        if not members and perfect is not None:
            m, member = perfect
            members, history["restarted"][m], history["beta"][m] = [member], False, _PERFECT
            doubts.append(
                f"the base model of round {m + 1} makes no error on the training rows, which leaves boosting nothing to do: it is the "
                "only member; judge it on other rows"
            )
        self.estimators_, self.history_, self._n_arms = members, history, 1
        self.betas_ = history["beta"][~history["restarted"]].copy()
        self._keep_effects(
            [leaf_effects(sums, rows.layout) for sums in rows.leaves([one for one in members if one._n_nodes])]
            if self.ties == "effect"
            else None
        )
        if heard:
            doubts += self._collapse(rows, heard)
        if not members:
            usual = self.algorithm == "adaboost" and self.restart == "combined"
            doubts.append(
                f"none of the {self.n_estimators} rounds found a base model better than chance in both groups "
                f"(algorithm={self.algorithm!r}, restart={self.restart!r}), so the ensemble is empty and its score constant: try "
                + ("" if usual else "algorithm='adaboost' with restart='combined', or ")
                + "a deeper base model"
            )
        self._doubts = doubts
        self._constant = bool(rows.mean[1] > rows.mean[0])

    def _keep_effects(self, effects: list[Floats] | None) -> None:
        """The effects of the members' leaves, which rank tied votes: empty for members without leaves, None for no ranking."""
        self._effects = effects
        self._said = [ranked_votes(*one) for one in zip(self.estimators_, effects or (), strict=False)]

    def _tell(self, data: Experiment) -> None:
        self._tell_arms()
        self._tell_doubts()

    def _tell_arms(self) -> None:
        for member in self.estimators_[:1]:  # all have looked at the same
            member._tell_arms()

    def _tell_doubts(self) -> None:
        """Warn of what the last fit left to be said."""
        for doubt in self._doubts:
            warn_user(doubt, UserWarning)

    def _collapse(self, rows: Rounds, heard: float) -> list[str]:
        """That the votes do not tell the training rows apart, if so, and what helps."""
        votes = rows.votes(heard)
        low, high = _at_least_half(np.array([votes.low, votes.high])).tolist()
        wrong = collapse(rows, votes, (low, high), self.n_estimators, self.ties == "effect")
        return [] if wrong is None else [f"the ensemble of {len(self.estimators_)} members has collapsed: {wrong}"]

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

    def _voices(self) -> list[float]:
        return [_voice(beta) for beta in self.betas_]

    def _staged(self, X: Floats) -> Iterator[Floats]:
        if self._said or self._effects is None:
            yield from (votes / heard for votes, heard in self._ask_in_turn(X, self._said or "vote"))
            return
        both = zip(self._ask_in_turn(X, "vote"), self._ask_in_turn(X, "score"), strict=True)
        yield from (_ranked(votes / heard, effects / heard) for (votes, heard), (effects, _) in both)

    def _predict(self, X: Floats) -> Floats:
        if not self.estimators_:
            return np.full((len(X), 1), float(self._constant))
        votes, heard = self._ask(X, self._said or "vote")
        if self._said or self._effects is None:
            return votes / heard
        effects, _ = self._ask(X, "score")
        return _ranked(votes / heard, effects / heard)

    def _recommend(self, X: Floats) -> Indices:
        if not self.estimators_:
            return np.full(len(X), int(self._constant))
        votes, heard = self._ask(X, "vote")
        return _at_least_half(votes[:, 0] / heard)

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
            "members": self._get_members(),
            "history": {name: self.history_[name] for name in _ROUND.names or ()},
            "constant": self._constant,
            "effects": None if self._effects is None else np.concatenate([np.empty(0), *self._effects]),
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        if state["history"]["beta"].ndim != 1:
            raise ValueError("the history of the rounds is not well formed")
        history = np.zeros(len(state["history"]["beta"]), dtype=_ROUND)
        for name in _ROUND.names or ():
            column = state["history"][name]
            if column.shape != history.shape or column.dtype != _ROUND[name]:
                raise ValueError("the history of the rounds is not well formed")
            history[name] = column
        self.history_, self._constant = history, bool(state["constant"])
        self.betas_ = history["beta"][~history["restarted"]].copy()
        self._set_members(state["members"])
        if not ((self.betas_ > 0) & (self.betas_ < 1)).all() or len(self.estimators_) != len(self.betas_):
            raise ValueError("the members and their coefficients do not fit together")
        self._keep_effects(None if state["effects"] is None else self._by_member(state["effects"]))

    def _by_member(self, effects: Floats) -> list[Floats]:
        sizes = [member._n_nodes for member in self.estimators_]
        if effects.shape != (sum(sizes),) or effects.dtype != np.float64 or not (np.abs(effects) <= 1).all():
            raise ValueError("the effects of the members' leaves are not well formed")
        return np.split(effects, np.cumsum(sizes)[:-1]) if effects.size else []


def _voice(beta: float) -> float:
    """How much a member counts in the vote."""
    return float(-np.log(beta))


def _at_least_half(votes: Floats) -> Indices:
    """Equation (2), ties treat. Votes add up to one half only up to rounding, so half is met with a little slack."""
    return (votes >= 0.5 - 1e-12).astype(np.intp)


def _ranked(votes: Floats, effects: Floats) -> Floats:
    """Votes with a little of the members' mean effects, for members without leaves."""
    return np.asarray(votes + TIE * np.clip(effects, -1.0, 1.0))
