"""The R-learner: what is left of outcome and treatment when both are predicted from the features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from upturn._arrays import Bools, Floats
from upturn._experiment import Experiment
from upturn._nuisance import (
    CLIP,
    Choice,
    Member,
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


def residuals(y: Floats, treated: Bools, mean: Floats, chance: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Effects of single rows of control and an arm, and their weights: residual of the outcome over that of the treatment.

    ``chance`` has the chances of control and the arm.
    """
    treatment = treated - chance[:, 1] / (chance[:, 1] + chance[:, 0])
    return (y - mean) / treatment, weight * treatment**2


class RLearner(WithPropensity, MetaLearner):
    r"""Uplift by relating what is unexpected in the outcome to what is unexpected in the treatment.

    With m(x) = E[Y | X = x] and e(x) = P(T = 1 | X = x) fitted on other folds,

    .. math:: \tau = \arg\min_\tau \sum_i w_i \bigl((Y_i - m(X_i)) - \tau(X_i)\,(T_i - e(X_i))\bigr)^2,

    which is a regression of (Y - m)/(T - e) with weights w (T - e)². Several arms are taken one by one, each with the
    rows of control.

    Parameters
    ----------
    estimator : classifier or regressor, optional
        The model of m; by default gradient boosting, of the kind the outcome asks for.
    effect_estimator : regressor that takes weights, optional
        The model of τ; by default ``estimator`` if that is a regressor, else gradient boosting.
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
    Nie, Wager, "Quasi-oracle estimation of heterogeneous treatment effects", 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from upturn.meta import RLearner
    >>> X, treatment = np.arange(40.0)[:, None] % 10, np.arange(40) // 10 % 2
    >>> y = X[:, 0] + treatment * 2.0
    >>> RLearner(LinearRegression(), propensity=0.5, random_state=0).fit(X, y, treatment).predict([[5.0]]).round(1)
    array([2.])
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
        pairs = [(0, code) for code in range(1, data.n_arms + 1)]
        means = crossfit_responses(self.estimator, data, pairs, folds, seed, self.n_jobs)

        def one(k: int) -> Member:
            rows = data.target.pair(k + 1)
            treated, pair, own = data.arm[rows] == k + 1, chance[rows][:, [0, k + 1]], seed_of(seed, 2, k)
            effect, weight = residuals(data.y[rows], treated, means[rows, k], pair, data.weights[rows])
            return fit_effect(effect_estimator, data.X[rows], effect, weight, data.schema, seed=own)

        self._members = run_parallel(one, range(data.n_arms), n_jobs=self.n_jobs)

    def _predict(self, X: Floats) -> Floats:
        return self._columns(X)

    def _get_state(self) -> dict[str, Any]:
        return {**super()._get_state(), "choice": self._choice_state()}

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        self._set_choice(state["choice"])
