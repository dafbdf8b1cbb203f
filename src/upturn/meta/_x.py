"""The X-learner: effects imputed in each group from the other group's model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from upturn._arrays import Floats
from upturn._experiment import Experiment
from upturn._nuisance import (
    CLIP,
    Choice,
    Member,
    Propensity,
    PropensitySpec,
    Shelf,
    clip_propensity,
    fit_arms,
    fit_effect,
    fit_propensity,
    seed_of,
)
from upturn._parallel import run_parallel
from upturn._parameters import ELSEWHERE, JOBS, LABEL, SEED, Rule
from upturn._seeds import make_seed
from upturn._target import Label
from upturn.meta._base import MetaLearner, WithPropensity, effect_base


def impute(y: Floats, guess: Floats, *, treated: bool) -> Floats:
    """Effects of the rows of one group, from outcomes and what the other group's model expects of them."""
    return y - guess if treated else guess - y


class XLearner(WithPropensity, MetaLearner):
    r"""Uplift from effects imputed in each group by the other group's model; good when one group is much larger.

    With outcome models μ_0 and μ_k of control and arm k,

    .. math::

        D_i &= Y_i - \mu_0(X_i) \text{ in arm } k, \qquad D_i = \mu_k(X_i) - Y_i \text{ in control}, \\
        \tau_k(x) &= g(x)\, \tau_{k,\mathrm{control}}(x) + (1 - g(x))\, \tau_{k,\mathrm{arm}}(x),

    the two τ being regressions of D in either group and g the probability of arm k among the rows of arm k and
    control. A model μ is only asked about rows of the other group, which it has not seen, so nothing is cross-fitted.

    Parameters
    ----------
    estimator : classifier or regressor, optional
        The outcome model; by default gradient boosting, of the kind the outcome asks for.
    effect_estimator : regressor, optional
        The model of D; by default ``estimator`` if that is a regressor, else gradient boosting.
    propensity : "auto", "shares", "logistic", "boosting", classifier, number(s) or column name(s)
        Probability of the arms: the arms' shares; estimated by logistic regression, gradient boosting or a classifier; known
        and the same for everybody (one number per treatment arm, in the order of ``arms_``); or columns of X. "auto" keeps
        the shares unless a model tells the arms apart on rows it has not seen, or a test of balance does.
    clip : float
        Propensities are kept at least this far from 0 and 1, with a warning that says for how many rows.
    n_jobs : int, optional
        Threads to fit models in; the result does not depend on it.
    random_state : int, RandomState, Generator or None
        Seed of the default estimators.
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
    Künzel, Sekhon, Bickel, Yu, "Metalearners for estimating heterogeneous treatment effects using machine learning", 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from upturn.meta import XLearner
    >>> X, treatment = np.array([[0.0], [1.0], [2.0], [3.0]] * 2), np.repeat([0, 1], 4)
    >>> y = X[:, 0] + treatment * (1 + X[:, 0])
    >>> XLearner(LinearRegression(), propensity="shares").fit(X, y, treatment).predict([[5.0]]).round(6)
    array([6.])
    """

    _parameters: ClassVar[Mapping[str, Rule]] = {
        "estimator": ELSEWHERE,
        "effect_estimator": ELSEWHERE,
        "propensity": ELSEWHERE,
        "clip": CLIP,
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
        n_jobs: int | None = None,
        random_state: Any = None,
        control: Label | None = None,
    ) -> None:
        self.estimator = estimator
        self.effect_estimator = effect_estimator
        self.propensity = propensity
        self.clip = clip
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.control = control

    def _fit_chosen(self, data: Experiment, choice: Choice) -> None:
        self._fit_beside(data, choice, None)

    def _fit_beside(self, data: Experiment, choice: Choice, shelf: Shelf | None) -> None:
        """Learn from an experiment, beside other learners of its rows if there is a shelf."""
        self._keep_choice(choice)
        seed, effect_estimator = make_seed(self.random_state), effect_base(self.effect_estimator, self.estimator)
        groups = [data.take(data.arm == code) for code in range(data.n_arms + 1)]
        seeds = [seed_of(seed, 1, code) for code in range(data.n_arms + 1)]
        responses = fit_arms(self.estimator, data, seeds, self.n_jobs, shelf)

        def effect(item: tuple[int, bool]) -> Member:
            code, treated = item
            group, own = groups[code if treated else 0], seed_of(seed, 2 + treated, code)
            guess = responses[0 if treated else code].predict(group.X)
            imputed = impute(group.y, guess, treated=treated)
            return fit_effect(effect_estimator, group.X, imputed, group.weight, data.schema, seed=own)

        items = [(code, treated) for code in range(1, data.n_arms + 1) for treated in (False, True)]
        self._members = run_parallel(effect, items, n_jobs=self.n_jobs)
        self._propensity = fit_propensity(choice, data) if shelf is None else shelf.propensity(choice, data)
        self._clip = float(self.clip)
        clip_propensity(self._propensity.predict(data.X), self.clip, type(self).__name__)  # says what it will do

    def _predict(self, X: Floats) -> Floats:
        effects = self._columns(X)
        chance = self._propensity.predict(X)
        chance = np.clip(chance, self._clip, 1 - self._clip)
        both = chance[:, 1:] + chance[:, :1]
        g = np.divide(
            chance[:, 1:], both, out=np.full_like(both, 0.5), where=both > 0
        )  # neither is likely: half and half
        return np.asarray(g * effects[:, 0::2] + (1 - g) * effects[:, 1::2])

    def _count_members(self) -> int:
        return 2 * len(self.arms_)

    def _get_state(self) -> dict[str, Any]:
        return {
            **super()._get_state(),
            "propensity": self._propensity.get_state(),
            "clip": self._clip,
            "choice": self._choice_state(),
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        self._set_choice(state["choice"])
        self._propensity = Propensity.from_state(state["propensity"], self._schema, len(self.arms_))
        self._clip = state["clip"]
        if not isinstance(self._clip, float) or not 0 <= self._clip < 0.5:
            raise ValueError("the bound of the propensities is not well formed")
