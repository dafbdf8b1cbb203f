"""The outcome of the treated alone: the baseline every uplift model should beat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from upturn._arrays import Floats
from upturn._experiment import Experiment
from upturn._nuisance import fit_response, seed_of
from upturn._parameters import ELSEWHERE, LABEL, SEED, Rule
from upturn._seeds import make_seed
from upturn._target import Label
from upturn.meta._base import MetaLearner


class TreatedOnly(MetaLearner):
    r"""A response model: who does well when treated, whatever they would have done without.

    .. math:: s_k(x) = E[Y \mid X = x, T = k]

    It never looks at control, so its score is no effect: it ranks people, and ``recommend`` refuses. This is how
    campaigns are targeted without uplift modelling, and with a support vector machine the treatment SVM of the papers.

    Parameters
    ----------
    estimator : classifier or regressor, optional
        By default gradient boosting, of the kind the outcome asks for.
    random_state : int, RandomState, Generator or None
        Seed of the default estimator.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    feature_importances_ : array of shape (p,)
        Mean over the arms' models.
    control_, arms_ : label, list of labels

    References
    ----------
    Zaniewicz, "Support Vector Machines for Uplift Modeling", 2018, section 6.4 (Treatment-SVM).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from upturn.meta import TreatedOnly
    >>> X, treatment = np.array([[0.0], [1.0], [0.0], [1.0]]), [0, 0, 1, 1]
    >>> TreatedOnly(LinearRegression()).fit(X, [0.0, 3.0, 1.0, 3.0], treatment).predict(X[:2]).round(6)
    array([1., 3.])
    """

    _score_has_zero = False
    _score_is_effect = False

    _parameters: ClassVar[Mapping[str, Rule]] = {
        "estimator": ELSEWHERE,
        "random_state": SEED,
        "control": LABEL,
    }

    def __init__(self, estimator: Any = None, *, random_state: Any = None, control: Label | None = None) -> None:
        self.estimator = estimator
        self.random_state = random_state
        self.control = control

    def _fit(self, data: Experiment) -> None:
        seed, self._members = make_seed(self.random_state), []
        for code in range(1, data.n_arms + 1):
            group, own = data.take(data.arm == code), seed_of(seed, code)
            self._members.append(fit_response(self.estimator, group.X, group.y, group.weight, data.schema, seed=own))

    def _predict(self, X: Floats) -> Floats:
        return self._columns(X)
