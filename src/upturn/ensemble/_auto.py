"""The model that chooses: candidates of all families, halved, stacked, and measured on rows that no candidate has seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from upturn._arrays import Floats, Indices, Ints
from upturn._columns import warn_user
from upturn._experiment import Experiment
from upturn._nuisance import (
    CLIP,
    Choice,
    PropensitySpec,
    clip_chances,
    clip_propensity,
    crossfit_propensity,
    fit_propensity,
    make_folds,
    rows_that_count,
    seed_of,
)
from upturn._parallel import run_parallel
from upturn._parameters import (
    ELSEWHERE,
    JOBS,
    LABEL,
    NONE,
    SEED,
    TEXT,
    VERBOSE,
    Rule,
    check_parameters,
    number,
    one_of,
    whole,
)
from upturn._results import Table, number_text, plural
from upturn._seeds import make_seed
from upturn._target import Label, decode
from upturn.ensemble._candidates import many_candidates, read_candidates
from upturn.ensemble._effort import EFFORTS, Clock, EffortName, Step, make_steps, trees_of
from upturn.ensemble._evidence import feature_scores, words_of
from upturn.ensemble._losses import Problem, make_problems
from upturn.ensemble._measured import Scored, around_mean, honest_gain, predict_held_out
from upturn.ensemble._search import Found, Search
from upturn.ensemble._stack import AVERAGE, Stack, check_numbers
from upturn.ensemble._unseen import Unseen
from upturn.kernels.hashing import SPLIT, words
from upturn.metrics import Estimate
from upturn.metrics._registry import find_metric
from upturn.metrics._replicates import Replicates
from upturn.model_selection._journal import Lines

_LARGE = 20_000  # rows from which on one fold is held out, instead of each in turn
_FOLDS, _NUISANCE, _MEMBERS, _ROWS = 1, 2, 3, 4  # what seeds are for
_RANKINGS = ("auuc", "qini", "autoc", "uplift_at", "auu")
_SELF = "UpliftAuto"
_INTERVAL = 0.95  # of what is measured
_COLUMNS = ("rows", "gain", "se", "weight")  # of the leaderboard, as they are kept
_EVIDENCE = ("z", "z_feature", "pvalue", "rows", "spread")


class UpliftAuto(Stack):
    r"""The model for those who ask which model to choose: it tries many, combines the best and measures itself honestly.

    1. Candidates of all families predict the effects of rows they have not seen, first on few rows and with few trees. The half with the
       larger gain in the R-loss over one effect for everybody goes on to four times as many rows, and so on.
    2. Those that are left are stacked, as in :class:`UpliftStacking`: :math:`\tau = c + \sum_j a_j (\tau_j - \bar\tau_j)` with
       :math:`a \ge 0, \sum_j a_j \le 1`.
    3. Unless the rows show that effects differ, everybody is predicted the average effect, and a warning says so, with the
       number of rows that might show more. The test looks three times, at 9% together: do effects predicted for unseen rows go
       with effects, does any single feature, do all features together?
    4. All of this is done again without each fold, and what it predicts for the rows of that fold is measured: for ``held_out_`` no candidate was
       fitted to those rows or chosen by them. (The loss is not made again: its models of outcomes and arms, which are cross-fitted over all folds, have
       seen them.) From 20,000 rows on one fold is held out, and the models chosen without it are fitted to all rows at the end. Where step 3 has found one effect
       for everybody, the search ends there, and what is measured is that constant.

    Parameters
    ----------
    effort : {"low", "normal", "high"}
        How much is tried, counted in rows and trees, so that a seed gives the same model on any machine and any number of threads. It says
        how many rows candidates are compared on (at most 8,000, 40,000 or 160,000), how many trees a forest has (50, 100 or 400), how many
        rows × trees a last fit may have (30 million, 60 million or 2 billion), and "low" leaves out the slowest candidates.
    time_budget : float, optional
        Seconds after which no more is tried. It only cuts what the effort allows, and a warning says what: the result then depends on
        the machine.
    metric : {"auuc", "qini", "autoc", "uplift_at", "auu"} or None
        What ``held_out_`` is; None measures nothing, which takes less than half the time.
    estimators : mapping from name to uplift model, or list of (name, model), optional
        Candidates instead of those of upturn.
    estimator : classifier or regressor, optional
        The model of outcomes inside the loss; by default the mixture of gradient boosting and a line that is nearer to unseen outcomes.
    propensity : "auto", "shares", "logistic", "boosting", classifier, number(s) or column name(s)
        Probability of the arms inside the loss, as in :class:`upturn.meta.RLearner`, and in candidates, upturn's and those given. Those at "auto" take what is chosen here,
        as in :class:`UpliftStacking`; candidates with a propensity of their own keep it.
    clip : float
        Propensities are kept at least this far from 0 and 1, with a warning that says for how many rows.
    cv : int
        Number of folds, 3 or more; fewer where an arm has fewer rows, and with two nothing is measured.
    resume : str, optional
        A file to which what every fit predicts is added at once. Run again after an interruption, what the file holds is not
        computed again. Give ``random_state``, or there is nothing to find.
    n_jobs : int, optional
        Threads to fit models in; the result does not depend on it.
    random_state : int, RandomState, Generator or None
        Seed of the folds and of every model inside.
    verbose : int
        1 shows progress, and the leaderboard at the end.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    leaderboard_ : Table
        The model itself, the average effect and every candidate: rows it was last compared on, gain over the average effect with its
        standard error, and weight (mean of the arms). The model's own gain is that of the rows of ``held_out_``.
    held_out_ : Estimate or None
        The metric with its 95% interval, on rows that no candidate was fitted to or chosen by (step 4); that of a constant where ``constant_``.
    constant_ : bool
        Whether everybody is predicted the average effect.
    evidence_ : Table
        For each arm the test of whether effects differ: ``z`` of the candidates' predictions, ``z_feature``, the largest of a single
        feature, and the ``pvalue`` of all looks; ``rows`` at which effects that differ as much as predicted would be seen, NaN where nothing
        suggests any; and the ``spread`` (standard deviation) of effects that would have been seen.
    weights_ : Table
        Weight of every candidate, for each arm.
    notes_ : list of str
        What was cut by ``time_budget``, and candidates that could not be fitted.
    average_effects_ : array of shape (K,)
        The intercepts c.
    estimators_ : dict from name to model
        The candidates that have weight, fitted to all rows (or as many as the effort allows).
    feature_importances_ : array of shape (p,)
        Those of the members, each divided by its sum, averaged by their weights.
    control_, arms_ : label, list of labels

    References
    ----------
    Nie, Wager, "Quasi-oracle estimation of heterogeneous treatment effects", 2021 (the loss, and stacking by it). Han, Wu, "Ensemble
    method for estimating individualized treatment effects", 2022 (stacking). Mahajan, Mitliagkas, Neal, Syrgkanis, "Empirical analysis of model
    selection for heterogeneous causal effect estimation", 2024 (which losses choose well). Chernozhukov, Demirer, Duflo, Fernández-Val,
    "Generic machine learning inference on heterogeneous treatment effects", 2018 (the test). Jamieson, Talwalkar, "Non-stochastic best arm
    identification and hyperparameter optimization", 2016 (halving).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from upturn.ensemble import UpliftAuto
    >>> from upturn.meta import TLearner
    >>> from upturn.trees import UpliftForest
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(1000, 3)), rng.integers(0, 2, 1000)
    >>> y = X[:, 1] + treatment * X[:, 0] + rng.normal(size=1000)
    >>> candidates = {"forest": UpliftForest(n_estimators=20), "linear": TLearner(Ridge())}
    >>> model = UpliftAuto(estimators=candidates, estimator=Ridge(), propensity="shares", random_state=0).fit(X, y, treatment)
    >>> model.constant_, bool(model.held_out_.low > 0)
    (False, True)
    >>> model.recommend([[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]])
    array([1, 0])
    """

    _parameters: ClassVar[Mapping[str, Rule]] = {
        "effort": one_of(*EFFORTS),
        "time_budget": NONE | number(above=0),
        "metric": one_of(*_RANKINGS) | NONE,
        "estimators": ELSEWHERE,
        "estimator": ELSEWHERE,
        "propensity": ELSEWHERE,
        "clip": CLIP,
        "cv": whole(least=3),
        "resume": NONE | TEXT,
        "n_jobs": JOBS,
        "random_state": SEED,
        "verbose": VERBOSE,
        "control": LABEL,
    }

    held_out_: Any
    constant_: bool
    notes_: list[str]

    def __init__(
        self,
        effort: EffortName = "normal",
        *,
        time_budget: float | None = None,
        metric: str | None = "auuc",
        estimators: Any = None,
        estimator: Any = None,
        propensity: PropensitySpec = "auto",
        clip: float = 0.01,
        cv: int = 5,
        resume: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        control: Label | None = None,
    ) -> None:
        self.effort = effort
        self.time_budget = time_budget
        self.metric = metric
        self.estimators = estimators
        self.estimator = estimator
        self.propensity = propensity
        self.clip = clip
        self.cv = cv
        self.resume = resume
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.control = control

    # ------------------------------------------------------------------------------------------ learning

    def _fit_chosen(self, data: Experiment, choice: Choice) -> None:
        clock, effort, seed = Clock(self.time_budget), EFFORTS[self.effort], make_seed(self.random_state)
        lines = Lines(self.resume, lambda found: isinstance(found["effects"], str))
        self._keep_choice(choice)
        data = rows_that_count(data, self.cv)
        candidates = read_candidates(self.estimators, data, choice, lambda: many_candidates(effort))
        for model in candidates.values():
            check_parameters(model)
        n, steps = len(data), make_steps(len(data), effort)
        # An arm of fewer rows than folds still has one in each of fewer folds.
        n_folds = int(min(self.cv, max(data.target.sizes.min(), 2)))
        fold = _fold_numbers(make_folds(data, n_folds, np.uint64(seed_of(seed, _FOLDS))), n)
        place, models = _order(data, np.uint64(seed_of(seed, _ROWS))), list(candidates.values())
        most = [int(min(n, max(effort.fitted / trees_of(model, data.n_arms), steps[-1].learnt))) for model in models]
        unseen = Unseen(
            data, models, [*steps, Step(n, n, 1.0)], most, place, fold, np.uint64(seed_of(seed, _MEMBERS)), choice, clock, lines,
            self.n_jobs, self.verbose, self.estimators is None,
        )  # fmt: skip
        rows = np.flatnonzero(place < steps[-1].asked)
        compared = data.take(rows)
        problems, chance = self._make_problems(compared, fold[rows], n_folds, choice, seed)
        search = Search(unseen, rows, problems, feature_scores(compared), n_folds, len(steps))
        # A search without a fold needs two others.
        outers = [] if self.metric is None or n_folds < 3 else [0] if n >= _LARGE else list(range(n_folds))
        only = outers[0] if n >= _LARGE and outers else None  # the search that is measured is the one that is used
        found = search.run(only, "")
        scored = predict_held_out(search, found, outers, only)
        self._measure(search, data, choice, scored, chance)
        self._keep_found(search, found, list(candidates), data)
        self._fit_members(search, found, list(candidates), clock)
        self._write_notes(unseen, list(candidates))
        if self.verbose:
            print(self._make_board())

    def _make_problems(
        self, data: Experiment, fold: Ints, n_folds: int, choice: Choice, seed: np.uint64
    ) -> tuple[list[Problem], Floats]:
        """The loss of every arm on the rows that candidates are compared on, and the chances of the arms there by models that have not seen the row's fold."""
        folds = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(n_folds)]
        chance = clip_propensity(crossfit_propensity(choice, data, folds, self.n_jobs), self.clip, type(self).__name__)
        own = np.uint64(seed_of(seed, _NUISANCE))
        return make_problems("r", self.estimator, data, chance, folds, own, self.n_jobs), chance

    def _measure(self, search: Search, data: Experiment, choice: Choice, scored: Scored, chance: Floats) -> None:
        """The metric of the held-out rows, and their gain over the average effect."""
        self.held_out_, self._honest = None, np.array([np.nan, np.nan])
        if not scored:
            return
        rows = np.concatenate([at for at, _, _ in scored.values()])
        # Folds differ in their average effect by chance, against what was seen outside them: ranks are of what is left.
        scores = np.concatenate([around_mean(total) for _, total, _ in scored.values()])
        part, options = data.take(rows), {}
        if choice.kind not in ("shares", "known"):
            options["propensity"] = self._chance_of(rows, search, data, choice, scored, chance)
        replicates = Replicates.read(_INTERVAL, 200, 0, self.n_jobs)
        self.held_out_ = find_metric(self.metric).number(
            part.y,
            scores[:, 0] if data.n_arms == 1 else scores,
            decode(part.target.labels, part.arm),
            part.weight,
            part.target.control,
            options if self.metric in ("auuc", "qini", "autoc", "uplift_at") else {},
            replicates,
        )
        self._honest = honest_gain(search, scored)

    def _chance_of(
        self, rows: Indices, search: Search, data: Experiment, choice: Choice, scored: Scored, chance: Floats
    ) -> Floats:
        """Chances of the arms in rows that are measured, by models that have not seen their folds."""
        if np.isin(rows, search.rows).all():
            return chance[np.searchsorted(search.rows, rows)]
        learnt = search.rows[~np.isin(search.unseen.fold[search.rows], list(scored))]
        return clip_chances(fit_propensity(choice, data.take(learnt)).predict(data.X[rows]), self.clip)[0]

    def _keep_found(self, search: Search, found: Found, names: list[str], data: Experiment) -> None:
        """Weights and intercepts, the evidence, and the leaderboard."""
        left = [j for j in range(len(names)) if j in found.shown]
        self._keep([names[j] for j in found.alive], found.combined)
        self.constant_ = found.constant
        self._evidence = np.array([[one.z, one.z_feature, one.pvalue, one.rows, one.spread] for one in found.evidence])
        self._board_names = [names[j] for j in left]
        weight = {j: float(np.mean([one.weights[a] for one in found.combined])) for a, j in enumerate(found.alive)}
        self._board = np.array(
            [(search.unseen.steps[found.shown[j][0]].learnt, *found.shown[j][1:], weight.get(j, 0.0)) for j in left]
        )

    def _fit_members(self, search: Search, found: Found, names: list[str], clock: Clock) -> None:
        """Fit the candidates with weight to all rows, or as many as the effort and the time allow."""
        unseen, used = search.unseen, [found.alive[a] for a in self._used()]
        trees = [trees_of(unseen.models[j], unseen.data.n_arms) for j in used]
        most = int(
            min(len(unseen.data), max(clock.affordable(0.9) / max(sum(trees), 1), unseen.steps[found.step].learnt))
        )
        if used and most < max(unseen.most[j] for j in used):
            clock.cuts.append(f"the last fit is to {plural(most, 'row')} of {len(unseen.data):,}")

        def one(j: int) -> Any:
            return unseen.fit((search.n_steps, j, ()), most)

        fitted = run_parallel(one, used, n_jobs=self.n_jobs, verbose=self.verbose, description="last fits")
        self.estimators_ = {names[j]: model for j, model in zip(used, fitted, strict=True)}

    def _write_notes(self, unseen: Unseen, names: list[str]) -> None:
        self._cuts = list(dict.fromkeys(unseen.clock.cuts))
        self.notes_ = [f"time_budget={self.time_budget:g}: {cut}" for cut in self._cuts]
        self.notes_ += [f"{names[j]} could not be fitted: {error}" for j, error in sorted(unseen.failed.items())]

    def _tell(self, data: Experiment) -> None:
        if self.constant_:
            warn_user(words_of(self._evidence, len(data)), UserWarning)
        if self._cuts:
            warn_user(
                f"time_budget={self.time_budget:g} seconds were not enough for effort={self.effort!r}: "
                + "; ".join(self._cuts),
                UserWarning,
            )

    # ------------------------------------------------------------------------------------------ tables

    @property
    def leaderboard_(self) -> Table:
        """The model, the average effect and every candidate: how far each came and what it gained."""
        check_is_fitted(self)
        return self._make_board()

    def _make_board(self) -> Table:
        order = np.lexsort((-self._board[:, 1], -self._board[:, 0]))
        weight = self._board[:, 3]
        rows = [(np.nan, *self._honest, np.nan), (np.nan, 0.0, 0.0, 1.0 - weight.sum())]
        values: Any = np.vstack([rows, self._board[order]]).T
        names = [_SELF, AVERAGE, *(self._board_names[j] for j in order)]
        return Table(
            {"model": names, **dict(zip(_COLUMNS, values, strict=True))},
            title="gain in the R-loss over one effect for everybody, its standard error, and the weight in the stack",
            notes=self._board_notes(),
            library=self._library,
        )

    def _board_notes(self) -> list[str]:
        held = self.held_out_
        notes = []
        if held is not None:
            words = f"{number_text(held.low)} to {number_text(held.high)}"
            notes.append(
                f"{self.metric} of rows that no candidate was fitted to or chosen by: {number_text(float(held))} ({_INTERVAL:.0%}: {words})"
            )
        if self.constant_:
            notes.append("everybody is predicted the average effect: the rows do not show that effects differ")
        return [*notes, *self.notes_]

    @property
    def evidence_(self) -> Table:
        """For each arm, the test of whether effects differ."""
        check_is_fitted(self)
        columns: dict[str, Any] = {name: self._evidence[:, i] for i, name in enumerate(_EVIDENCE)}
        return Table({"arm": self.arms_, **columns}, library=self._library)

    def _fitted_words(self) -> str:
        words = super()._fitted_words()
        return f"{words}, {'the average effect' if self.constant_ else plural(len(self.estimators_), 'model')}"

    def _fitted_html(self) -> str:
        return super()._fitted_html() + (self.leaderboard_._repr_html_() if self.__sklearn_is_fitted__() else "")

    # ------------------------------------------------------------------------------------------ the saved form

    def _get_state(self) -> dict[str, Any]:
        held = self.held_out_
        return {
            **super()._get_state(),
            "board_names": self._board_names,
            "board": self._board,
            "honest": self._honest,
            "evidence": self._evidence,
            "held_out": None if held is None else [float(held), held.samples],
            "cuts": self._cuts,
            "notes": self.notes_,
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        names, held = state["board_names"], state["held_out"]
        for texts in (names, state["notes"], state["cuts"]):
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                raise ValueError("the leaderboard is not well formed")
        if len(set(names)) != len(names) or not set(self._names) <= set(names):
            raise ValueError("the leaderboard does not name the candidates")
        check_numbers(state["board"], (len(names), len(_COLUMNS)), "board")
        for what, shape in {"honest": (2,), "evidence": (len(self.arms_), len(_EVIDENCE))}.items():
            array = state[what]
            if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != shape:
                raise ValueError(f"{what}: expected numbers of shape {shape}")
        if held is not None and not (
            isinstance(held, list)
            and len(held) == 2
            and isinstance(held[0], float)
            and isinstance(held[1], np.ndarray)
            and held[1].dtype == np.float64
            and held[1].ndim == 1
            and len(held[1]) > 1
        ):
            raise ValueError("what was measured is not well formed")
        self._board_names, self._board, self._honest = names, state["board"], state["honest"]
        self._evidence, self._cuts, self.notes_ = state["evidence"], state["cuts"], state["notes"]
        self.constant_ = not self._weights.any()
        self.held_out_ = None if held is None else Estimate(held[0], held[1], _INTERVAL)


def _fold_numbers(folds: list[tuple[Indices, Indices]], n: int) -> Ints:
    fold = np.empty(n, np.int64)
    for f, (_, test) in enumerate(folds):
        fold[test] = f
    return fold


def _order(data: Experiment, seed: np.uint64) -> Ints:
    """The place of every row in an order whose beginnings hold every arm, and the outcomes 0 and 1, in their shares."""
    n = len(data)
    word = np.empty(n, np.uint64)
    words(seed, SPLIT, np.uint64(0), word)
    stratum = data.arm.astype(np.int64)
    if np.isin(data.y, (0.0, 1.0)).all():
        stratum = 2 * stratum + (data.y > 0)
    by_stratum = np.lexsort((word, stratum))
    sizes = np.bincount(stratum)
    starts = np.cumsum(sizes) - sizes
    mine = stratum[by_stratum]
    share = (np.arange(n) - starts[mine] + 0.5) / sizes[mine]  # how far down its stratum a row is
    place = np.empty(n, np.int64)
    place[by_stratum[np.argsort(share, kind="stable")]] = np.arange(n)
    return place
