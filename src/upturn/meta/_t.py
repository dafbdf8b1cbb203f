"""The T-learner: a model per arm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from upturn._arrays import Floats
from upturn._experiment import Experiment
from upturn._nuisance import Shelf, fit_arms, seed_of
from upturn._parameters import ELSEWHERE, JOBS, LABEL, SEED, Rule
from upturn._seeds import make_seed
from upturn._target import Label
from upturn.meta._base import MetaLearner


class TLearner(MetaLearner):
    r"""Uplift as the difference of two models, one per arm: the double model, or separate model approach.

    .. math:: \mu_k(x) = E[Y \mid X = x, T = k], \qquad \tau_k(x) = \mu_k(x) - \mu_0(x)

    A classifier without probabilities, such as a support vector machine, is calibrated by a logistic regression on its
    scores.

    The errors of the two models do not cancel: their difference varies also where the effect is the same for everybody, so
    the raw T-learner invents heterogeneity, and its largest and smallest effects are too extreme. Before its effects are
    taken at their size, calibrate them: ``UpliftCalibrator(TLearner(), method="linear")`` of :mod:`upturn.policy`.

    Parameters
    ----------
    estimator : classifier or regressor, optional
        By default gradient boosting, of the kind the outcome asks for.
    n_jobs : int, optional
        Threads to fit the arms in; the result does not depend on it.
    random_state : int, RandomState, Generator or None
        Seed of the default estimator.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    feature_importances_ : array of shape (p,)
        Mean over the arms' models: what the outcome depends on, whether the effect does or not.
    control_, arms_ : label, list of labels

    References
    ----------
    Künzel, Sekhon, Bickel, Yu, "Metalearners for estimating heterogeneous treatment effects using machine learning", 2019.
    Zaniewicz, "Support Vector Machines for Uplift Modeling", 2018, section 6.4 (the double SVM).
    Zhao, Fang, Simchi-Levi, "A practically competitive and provably consistent algorithm for uplift modeling", 2017
    (separate models with forests, nearest neighbours, support vector regression and AdaBoost).

    Examples
    --------
    The baselines of the papers are one line each:

    >>> from sklearn.ensemble import AdaBoostRegressor, RandomForestRegressor
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> from sklearn.svm import SVC, SVR
    >>> from upturn.meta import TLearner
    >>> double_svm = TLearner(SVC(kernel="linear"))
    >>> forests, neighbours = TLearner(RandomForestRegressor()), TLearner(KNeighborsRegressor())
    >>> support_vectors, adaboost = TLearner(SVR()), TLearner(AdaBoostRegressor())

    >>> import numpy as np
    >>> X, treatment = np.array([[0.0], [1.0], [2.0], [3.0]] * 2), np.repeat(["control", "mail"], 4)
    >>> y = X[:, 0] + (treatment == "mail") * (1 + X[:, 0])
    >>> from sklearn.linear_model import LinearRegression
    >>> model = TLearner(LinearRegression()).fit(X, y, treatment)
    >>> model.predict([[5.0]]).round(6), model.predict_response([[5.0]]).round(6)
    (array([6.]), array([[ 5., 11.]]))
    """

    _parameters: ClassVar[Mapping[str, Rule]] = {
        "estimator": ELSEWHERE,
        "n_jobs": JOBS,
        "random_state": SEED,
        "control": LABEL,
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_jobs: int | None = None,
        random_state: Any = None,
        control: Label | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.control = control

    def _fit(self, data: Experiment) -> None:
        self._fit_beside(data, None)

    def _fit_beside(self, data: Experiment, shelf: Shelf | None) -> None:
        """Learn from an experiment, beside other learners of its rows if there is a shelf."""
        seed = make_seed(self.random_state)
        seeds = [seed_of(seed, code) for code in range(data.n_arms + 1)]
        self._members = fit_arms(self.estimator, data, seeds, self.n_jobs, shelf)

    def _predict_response(self, X: Floats) -> Floats:
        return self._columns(X)

    def _predict(self, X: Floats) -> Floats:
        response = self._columns(X)
        return response[:, 1:] - response[:, :1]

    def _count_members(self) -> int:
        return len(self.arms_) + 1
