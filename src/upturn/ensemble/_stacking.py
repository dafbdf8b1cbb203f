"""Stacking: the weights of several models that predict the effects of unseen rows best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from upturn._arrays import Floats, Indices
from upturn._columns import warn_user
from upturn._experiment import Experiment
from upturn._nuisance import (
    CLIP,
    Choice,
    PropensitySpec,
    Shelf,
    clip_propensity,
    crossfit_propensity,
    make_folds,
    rows_that_count,
    seed_of,
)
from upturn._parallel import run_parallel
from upturn._parameters import ELSEWHERE, JOBS, LABEL, SEED, VERBOSE, Rule, check_parameters, number, one_of
from upturn._results import Table
from upturn._seeds import make_seed
from upturn._target import Label
from upturn.base import UpliftEstimator
from upturn.boosting._base import seeded
from upturn.ensemble._candidates import default_candidates, read_candidates
from upturn.ensemble._combine import combine
from upturn.ensemble._inside import fit_inside
from upturn.ensemble._losses import Loss, Problem, make_problems
from upturn.ensemble._stack import AVERAGE, Stack, check_numbers
from upturn.ensemble._weights import LEAST, Weighting

_STACK = "stack"  # its row of ``losses_``
_FOLDS, _NUISANCE, _MEMBERS, _SHELF = 1, 2, 3, 4  # what seeds are for


class UpliftStacking(Stack):
    r"""Several uplift models combined by how well they predict the effects of rows they have not seen.

    Every candidate predicts the rows of each fold from the others. Of these predictions τ_j,

    .. math::

        \tau(x) = c + \sum_j a_j\,(\tau_j(x) - \bar\tau_j), \qquad a_j \ge 0, \quad \sum_j a_j \le 1,

    with c and the sum of a those that minimise a loss whose minimum is the true effect, and a shared by how sure each candidate's own gain is (``weighting``): the R-loss

    .. math:: \sum_i w_i \bigl(Y_i - m(X_i) - b - \tau(X_i)\,(T_i - e(X_i))\bigr)^2,

    or the squared distance to doubly robust effects, both with cross-fitted nuisance models and with a ridge that the folds
    choose. What the weights leave of 1 goes to the average effect c, so that a stack of models that have found nothing predicts
    nearly that: the strongest ridge leaves a hundredth of the weights, which keeps an order and next to no effect. Every arm has
    weights of its own. Candidates without any weight are not kept; the others are fitted once more, to all rows. Scores that are no effects (machines, boosting) are calibrated inside the folds.

    Parameters
    ----------
    estimators : mapping from name to uplift model, or list of (name, model), optional
        The candidates. By default a forest, a centred forest, S-, T-, X- and DR-learner over gradient boosting, a linear
        X-learner and, where outcomes are 0 and 1, the uplift machine.
    loss : {"r", "dr"}
        What is minimised: the R-loss, or the doubly robust one, which small propensities make noisy and which stands a wrong model of either
        outcome or propensity.
    estimator : classifier or regressor, optional
        The model of outcomes inside the loss; by default the mixture of gradient boosting and a line that is nearer to unseen outcomes.
    propensity : "auto", "shares", "logistic", "boosting", classifier, number(s) or column name(s)
        Probability of the arms inside the loss, as in :class:`upturn.meta.RLearner`, and in candidates. X-, DR- and R-learners at "auto" take what is chosen
        here, whatever it is, without another look. So do forests, also inside other models; where chances are estimated here, or a column holds
        chances of 0 or 1, they estimate them by trees of their own. What sees one arm of several, or a learner inside another model, looks for itself
        unless shares are chosen. Candidates with a propensity of their own keep it.
    clip : float
        Propensities are kept at least this far from 0 and 1, with a warning that says for how many rows.
    ridge : float or "auto"
        How strongly weights are shrunk towards 0, relative to the variance of a candidate's predictions; "auto" takes what does best on
        folds that the weights were not learnt from.
    weighting : {"exponential", "least-squares"}
        How the candidates share their weight. "exponential" makes the weight of a candidate's predictions, in units of their spread, proportional to :math:`e^t`, t being
        the t-statistic of its own gain (those with less than a twentieth of all have none, nor those whose small predictions would take up the weight), and minimises the loss over the sum of the weights alone: smoother, with an order
        even where nothing is gained. "least-squares" minimises the loss of the combination, and has most weights at 0.
    cv : int, splitter or list of splits
        Folds.
    n_jobs : int, optional
        Threads to fit models in; the result does not depend on it.
    random_state : int, RandomState, Generator or None
        Seed of the folds and of every model inside.
    verbose : int
        1 shows a progress bar.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    weights_ : Table
        Weight of every candidate, for each arm.
    losses_ : Table
        For each arm the cross-validated loss of the candidates, of the stack and of the average effect alone; ``gain`` is how much less it is
        than that of the average effect, ``se`` the standard error of that difference.
    average_effects_ : array of shape (K,)
        The intercepts c.
    ridge_ : array of shape (K,)
        How strongly the weights of every arm were shrunk.
    estimators_ : dict from name to model
        The candidates that have weight, fitted to all rows.
    oof_ : dict from name to array of shape (n,) or (n, K)
        Effects of every training row by models that have not seen it, NaN for rows of weight 0; not part of a saved model.
    feature_importances_ : array of shape (p,)
        Those of the members, each divided by its sum, averaged by their weights.
    propensity_kind_, propensity_auc_, propensity_pvalue_
        Which propensities were used and what "auto" saw, as in :class:`upturn.meta.RLearner`.
    control_, arms_ : label, list of labels

    References
    ----------
    Nie, Wager, "Quasi-oracle estimation of heterogeneous treatment effects", 2021 (stacking by the R-loss). Han, Wu, "Ensemble
    method for estimating individualized treatment effects", 2022 (by the doubly robust one). Leung, Barron, "Information theory and mixing
    least-squares regressions", 2006 (exponential weights).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from upturn.ensemble import UpliftStacking
    >>> from upturn.meta import TLearner
    >>> from upturn.trees import UpliftForest
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(2000, 3)), rng.integers(0, 2, 2000)
    >>> y = X[:, 1] + treatment * X[:, 0] + rng.normal(size=2000)
    >>> candidates = {"forest": UpliftForest(n_estimators=20), "linear": TLearner(Ridge())}
    >>> model = UpliftStacking(candidates, estimator=Ridge(), propensity="shares", random_state=0).fit(X, y, treatment)
    >>> weights = dict(zip(model.weights_["model"], model.weights_["weight"]))
    >>> bool(weights["linear"] > 0.7 > weights["forest"])
    True
    >>> model.recommend([[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]])
    array([1, 0])
    """

    _parameters: ClassVar[Mapping[str, Rule]] = {
        "estimators": ELSEWHERE,
        "loss": one_of("r", "dr"),
        "estimator": ELSEWHERE,
        "propensity": ELSEWHERE,
        "clip": CLIP,
        "ridge": number(least=0) | one_of("auto"),
        "weighting": one_of("exponential", "least-squares"),
        "cv": ELSEWHERE,
        "n_jobs": JOBS,
        "random_state": SEED,
        "verbose": VERBOSE,
        "control": LABEL,
    }

    oof_: dict[str, Floats]

    def __init__(
        self,
        estimators: Any = None,
        *,
        cv: Any = 5,
        loss: Loss = "r",
        estimator: Any = None,
        propensity: PropensitySpec = "auto",
        clip: float = 0.01,
        ridge: float | str = "auto",
        weighting: Weighting = "exponential",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        control: Label | None = None,
    ) -> None:
        self.estimators = estimators
        self.cv = cv
        self.loss = loss
        self.estimator = estimator
        self.propensity = propensity
        self.clip = clip
        self.ridge = ridge
        self.weighting = weighting
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.control = control

    # ------------------------------------------------------------------------------------------ learning

    def _fit_chosen(self, data: Experiment, choice: Choice) -> None:
        self._keep_choice(choice)
        seed, n_given, counted = make_seed(self.random_state), len(data), np.arange(len(data))
        if (kept := rows_that_count(data, self.cv)) is not data:
            data, counted = kept, np.flatnonzero(data.weights > 0)
        candidates = read_candidates(self.estimators, data, choice, default_candidates)
        for model in candidates.values():
            check_parameters(model)
        folds = make_folds(data, self.cv, np.uint64(seed_of(seed, _FOLDS)))
        if len(folds) < 2:
            raise ValueError(
                "cv holds one fold: weights are learnt on some folds and judged on another, so give it two or more"
            )
        shelves = [Shelf(seed_of(seed, _SHELF, 1 + fold), choice) for fold in range(len(folds))]
        effects = self._predict_unseen(candidates, data, folds, seed, shelves)
        chance = crossfit_propensity(choice, data, folds, self.n_jobs, shelves)
        chance = clip_propensity(chance, self.clip, type(self).__name__)
        own = np.uint64(seed_of(seed, _NUISANCE))
        problems = make_problems(self.loss, self.estimator, data, chance, folds, own, self.n_jobs, shelves)
        self._weigh(problems, effects, list(candidates), len(folds))
        used = self._used()
        shelf = Shelf(seed_of(seed, _SHELF, 0), choice)
        fitted = self._fit_all([list(candidates.values())[j] for j in used], data, seed, used, shelf)
        self.estimators_ = {self._names[j]: model for j, model in zip(used, fitted, strict=True)}
        self._keep_unseen(effects, counted, n_given)
        self._tell_flat(data)

    def _tell_flat(self, data: Experiment) -> None:
        """Warn of arms whose effects no candidate predicts better than their mean does."""
        flat = np.flatnonzero(self._weights.sum(axis=0) <= LEAST * (1 + 1e-9))
        if not len(flat):
            return
        some = len(flat) < data.n_arms
        of = f" of {', '.join(repr(data.target.labels[k + 1]) for k in flat)}" if some else ""
        so = (
            f"predictions{of} are the average effect and next to nothing more"
            if self._weights[:, flat].any()
            else f"everybody is predicted the average effect{of}"
        )
        warn_user(
            f"no model inside predicts the effects{of} of unseen rows better than one effect for everybody, so {so}: more rows, other "
            "features or other models (estimators=) may show more",
            UserWarning,
        )

    def _predict_unseen(
        self,
        candidates: dict[str, UpliftEstimator],
        data: Experiment,
        folds: list[tuple[Indices, Indices]],
        seed: np.uint64,
        shelves: list[Shelf],
    ) -> Floats:
        """Effects of every row by candidates fitted without its fold: an array of shape (candidates, n, K)."""
        models = list(candidates.values())
        effects = np.empty((len(models), len(data), data.n_arms))

        def one(job: tuple[int, int]) -> None:
            fold, j = job
            train, test = folds[fold]
            model = seeded(clone(models[j]), np.uint64(seed_of(seed, _MEMBERS, j)), 1 + fold)
            fit_inside(model, data.take(train), shelves[fold])
            effects[j, test] = model._predict(data.X[test])

        jobs = [(fold, j) for fold in range(len(folds)) for j in range(len(models))]
        run_parallel(one, jobs, n_jobs=self.n_jobs, verbose=self.verbose, description="folds")
        for j, name in enumerate(candidates):
            if not np.isfinite(effects[j]).all():
                raise ValueError(
                    f"{name!r} predicts effects that are not finite numbers: look at the model inside, or leave it out"
                )
        return effects

    def _fit_all(
        self, models: list[UpliftEstimator], data: Experiment, seed: np.uint64, which: list[int], shelf: Shelf
    ) -> list[UpliftEstimator]:
        """The models fitted to all rows."""

        def one(place: int) -> UpliftEstimator:
            model = seeded(clone(models[place]), np.uint64(seed_of(seed, _MEMBERS, which[place])), 0)
            fit_inside(model, data, shelf)
            return model

        return run_parallel(one, range(len(models)), n_jobs=self.n_jobs, verbose=self.verbose, description="models")

    def _weigh(self, problems: list[Problem], effects: Floats, names: list[str], n_folds: int) -> None:
        """Weights, intercepts and losses of every arm."""
        found = [
            combine(problem, effects[:, :, k].T, n_folds, self.ridge, self.weighting)
            for k, problem in enumerate(problems)
        ]
        self._keep(names, found)
        self._losses = np.array([one.losses for one in found])

    def _keep_unseen(self, effects: Floats, counted: Indices, n: int) -> None:
        self.oof_ = {}
        for j, name in enumerate(self._names):
            all_rows = np.full((n, effects.shape[2]), np.nan)
            all_rows[counted] = effects[j]
            self.oof_[name] = all_rows[:, 0] if effects.shape[2] == 1 else all_rows

    # ------------------------------------------------------------------------------------------ using

    @property
    def losses_(self) -> Table:
        """Cross-validated losses of the average effect, of the stack and of the candidates as they predict."""
        check_is_fitted(self)
        columns = {name: self._losses[:, :, i] for i, name in enumerate(("loss", "gain", "se"))}
        return self._table([AVERAGE, _STACK, *self._names], columns)

    def _get_state(self) -> dict[str, Any]:
        return {**super()._get_state(), "losses": self._losses}

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        check_numbers(state["losses"], (len(self.arms_), 2 + len(self._names), 3), "losses")
        self._losses = state["losses"]
