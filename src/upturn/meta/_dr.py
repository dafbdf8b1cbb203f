"""The DR-learner: doubly robust effects of single rows, regressed on the features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from upturn._arrays import Floats
from upturn._experiment import Experiment
from upturn._nuisance import (
    CLIP,
    Choice,
    PropensitySpec,
    clip_propensity,
    crossfit_propensity,
    crossfit_responses,
    fit_effect,
    make_folds,
    rows_that_count,
    seed_of,
)
from upturn._parallel import run_parallel
from upturn._parameters import ELSEWHERE, JOBS, LABEL, SEED, Rule
from upturn._seeds import make_seed
from upturn._target import Label
from upturn.meta._base import MetaLearner, WithPropensity, effect_base
from upturn.metrics._robust import robust_effects


class DRLearner(WithPropensity, MetaLearner):
    r"""Uplift by regressing doubly robust effects of single rows on the features.

    With outcome models μ_k and propensities e_k fitted on other folds,

    .. math::

        \psi_{ik} = \mu_k(X_i) - \mu_0(X_i) + \frac{1[T_i = k]}{e_k(X_i)}\,(Y_i - \mu_k(X_i))
                    - \frac{1[T_i = 0]}{e_0(X_i)}\,(Y_i - \mu_0(X_i)), \qquad \tau_k(x) = E[\psi_{ik} \mid X_i = x].

    The expectation of ψ is the effect if either the outcome models or the propensities are right, and errors of the two
    enter only as a product: the learner for data where treatment was not given at random.

    Parameters
    ----------
    estimator : classifier or regressor, optional
        The outcome model; by default gradient boosting, of the kind the outcome asks for.
    effect_estimator : regressor, optional
        The regression of ψ; by default ``estimator`` if that is a regressor, else gradient boosting.
    propensity : "auto", "shares", "logistic", "boosting", classifier, number(s) or column name(s)
        Probability of the arms: the arms' shares; estimated by logistic regression, gradient boosting or a classifier; known
        and the same for everybody (one number per treatment arm, in the order of ``arms_``); or columns of X. "auto" keeps
        the shares unless a model tells the arms apart on rows it has not seen, or a test of balance does.
    clip : float
        Propensities are kept at least this far from 0 and 1, with a warning that says for how many rows.
    cv : int, splitter or list of splits
        Folds of the cross-fitting.
    n_jobs : int, optional
        Threads to fit models in; the result does not depend on it.
    random_state : int, RandomState, Generator or None
        Seed of the folds and of the default estimators.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    average_effects_, average_effects_se_ : arrays of shape (K,)
        Mean of ψ, the doubly robust estimate of the average effect of every arm, and its standard error.
    feature_importances_ : array of shape (p,)
        Mean over the models of effects.
    propensity_kind_ : str
        Which propensities were used: "shares", "logistic", "boosting", "classifier", "known" or "columns".
    propensity_auc_, propensity_pvalue_ : float or None
        What "auto" saw: the area under the ROC curve of the better model on rows it has not seen, and the p-value of the
        joint test of balance. None if the kind was given.
    control_, arms_ : label, list of labels

    References
    ----------
    Kennedy, "Towards optimal doubly robust estimation of heterogeneous causal effects", 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from upturn.meta import DRLearner
    >>> X, treatment = np.arange(40.0)[:, None] % 10, np.arange(40) // 10 % 2
    >>> y = X[:, 0] + treatment * (1 + X[:, 0])
    >>> DRLearner(LinearRegression(), propensity=0.5, random_state=0).fit(X, y, treatment).predict([[5.0]]).round(6)
    array([6.])
    """

    _parameters: ClassVar[Mapping[str, Rule]] = {
        "estimator": ELSEWHERE,
        "effect_estimator": ELSEWHERE,
        "propensity": ELSEWHERE,
        "clip": CLIP,
        "cv": ELSEWHERE,
        "n_jobs": JOBS,
        "random_state": SEED,
        "control": LABEL,
    }

    def __init__(
        self,
        estimator: Any = None,
        effect_estimator: Any = None,
        *,
        propensity: PropensitySpec = "auto",
        clip: float = 0.01,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
        control: Label | None = None,
    ) -> None:
        self.estimator = estimator
        self.effect_estimator = effect_estimator
        self.propensity = propensity
        self.clip = clip
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.control = control

    def _fit_chosen(self, data: Experiment, choice: Choice) -> None:
        self._keep_choice(choice)
        seed, effect_estimator = make_seed(self.random_state), effect_base(self.effect_estimator, self.estimator)
        data = rows_that_count(data, self.cv)
        folds = make_folds(data, self.cv, seed)
        chance = crossfit_propensity(choice, data, folds, self.n_jobs)
        chance = clip_propensity(chance, self.clip, type(self).__name__)
        arms = [(code,) for code in range(data.n_arms + 1)]
        mu = crossfit_responses(self.estimator, data, arms, folds, seed, self.n_jobs)
        psi = robust_effects(data.y, data.arm, mu, chance)
        total = data.weights.sum()
        self.average_effects_ = data.weights @ psi / total
        self.average_effects_se_ = np.sqrt(data.weights**2 @ (psi - self.average_effects_) ** 2) / total
        self._members = run_parallel(
            lambda k: fit_effect(
                effect_estimator,
                data.X,
                np.ascontiguousarray(psi[:, k]),
                data.weight,
                data.schema,
                seed=seed_of(seed, 2, k),
            ),
            range(data.n_arms),
            n_jobs=self.n_jobs,
        )

    def _predict(self, X: Floats) -> Floats:
        return self._columns(X)

    def _get_state(self) -> dict[str, Any]:
        averages = {"average_effects": self.average_effects_, "average_effects_se": self.average_effects_se_}
        return {**super()._get_state(), **averages, "choice": self._choice_state()}

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        self._set_choice(state["choice"])
        self.average_effects_, self.average_effects_se_ = state["average_effects"], state["average_effects_se"]
        if {self.average_effects_.shape, self.average_effects_se_.shape} != {(len(self.arms_),)}:
            raise ValueError("the average effects do not fit the arms")
        if not all(np.isfinite(effects).all() for effects in (self.average_effects_, self.average_effects_se_)):
            raise ValueError("the average effects are not finite")
