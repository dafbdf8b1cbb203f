"""UpliftSVMCV: C and the ratio chosen by cross-validated AUUC."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from upturn._arrays import Floats
from upturn._experiment import Experiment
from upturn._parallel import run_parallel
from upturn._parameters import ELSEWHERE, JOBS, VERBOSE, Rule, check
from upturn._seeds import make_seed
from upturn._splitters import Split, folds_of
from upturn._target import Label
from upturn.metrics._areas import mean_area
from upturn.svm._base import PENALTY
from upturn.svm._uplift import RATIO, UpliftSVM, UpliftTask


class UpliftSVMCV(UpliftSVM):
    r"""An :class:`UpliftSVM` with C and C2/C1 chosen on a grid, by the AUUC in cross-validation.

    Each fold learns its own encoding and walks the grid from the smallest C and ratio on, starting every fit from its
    neighbour's solution; for p = 1 on up to 1,500 rows, the fits of a fold are made together instead, which is faster. The point with the largest mean AUUC wins (of equals, the smallest C, then the smallest
    ratio), and the machine is fitted with it on all rows.

    Parameters
    ----------
    Cs : sequence of float, optional
        Values of C; by default 0.01, 0.1, …, 1000, the grid of the dissertation.
    ratios : sequence of float, optional
        Values of C2/C1; by default ten points from 1 to 2.5, or to 5 for p > 1, as in the dissertation.
    p, kernel, balance, exponent, group_average, standardize, gamma, degree, coef0, n_components, at_zero, tol, max_iter, control
        As for :class:`UpliftSVM`.
    cv : int, splitter or iterable of (train, test)
        Number of folds of :class:`upturn.model_selection.UpliftKFold`, or the splits.
    n_jobs : int, optional
        Threads; folds run in parallel. The result does not depend on it.
    verbose : int
        Whether to show a progress bar.
    random_state : int, RandomState, Generator or None
        Deals rows to folds, and draws the landmarks of a kernel.

    Attributes
    ----------
    C_, ratio_ : float
        The chosen point.
    scores_ : array of shape (number of Cs, number of ratios)
        Mean AUUC over the folds.
    fold_scores_ : array of shape (folds, number of Cs, number of ratios)
    best_score_ : float
    coef_, feature_importances_, intercepts_, …
        As for :class:`UpliftSVM`.

    References
    ----------
    Zaniewicz, "Support Vector Machines for Uplift Modeling", 2018, section 6.4.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.svm import UpliftSVMCV
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(500, 2)), rng.integers(0, 2, 500)
    >>> y = rng.random(500) < 0.5 + 0.4 * treatment * np.tanh(2 * X[:, 0])
    >>> model = UpliftSVMCV(Cs=[0.01, 1.0], ratios=[1.0, 2.0], random_state=0).fit(X, y, treatment)
    >>> model.scores_.shape, model.best_score_ > 0.05
    ((2, 2), True)
    """

    _parameters: ClassVar[Mapping[str, Rule]] = {
        **UpliftSVM._parameters,
        "Cs": ELSEWHERE,
        "ratios": ELSEWHERE,
        "cv": ELSEWHERE,
        "n_jobs": JOBS,
        "verbose": VERBOSE,
    }

    def __init__(
        self,
        Cs: Iterable[float] | None = None,
        ratios: Iterable[float] | None = None,
        p: float = 1.2,
        kernel: str = "linear",
        balance: float = 0.0,
        exponent: float = 1.1,
        group_average: bool = False,
        standardize: bool = True,
        *,
        cv: Any = 5,
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        n_components: int | None = None,
        at_zero: Literal["rank", "zero"] = "rank",
        tol: float = 1e-8,
        max_iter: int = 100,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
        control: Label | None = None,
    ) -> None:
        self.Cs = Cs
        self.ratios = ratios
        self.p = p
        self.kernel = kernel
        self.balance = balance
        self.exponent = exponent
        self.group_average = group_average
        self.standardize = standardize
        self.cv = cv
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.at_zero = at_zero
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.control = control

    solver = "auto"
    neutral = None
    warm_start_folds = True  # benchmarks switch it off to measure what warm starts are worth

    def _fit(self, data: Experiment) -> None:
        Cs = _grid("Cs", self.Cs, 10.0 ** np.arange(-2, 4), PENALTY)
        ratios = _grid("ratios", self.ratios, np.linspace(1.0, 2.5 if self.p == 1.0 else 5.0, 10), RATIO)
        seed = make_seed(self.random_state)
        scores = run_parallel(
            lambda split: self._score_fold(data, split, Cs, ratios, seed),
            folds_of(data.X, data.target, self.cv, seed),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            description="folds",
        )
        self.fold_scores_ = np.stack(scores)
        self.scores_ = self.fold_scores_.mean(axis=0)
        best_C, best_ratio = np.unravel_index(int(self.scores_.argmax()), self.scores_.shape)
        self.best_score_ = float(self.scores_[best_C, best_ratio])
        self.C_, self.ratio_ = float(Cs[best_C]), float(ratios[best_ratio])
        task = UpliftTask(self, self._learn_features(data, seed), data, seed)
        solution = task.solve(self.C_, self.ratio_)
        ranking, _ = task.ranking(solution, self.C_, self.ratio_)
        self._adopt(solution, ranking, np.arange(len(data)), data)

    def _point(self) -> str:
        return f"C={self.C_:g}, ratio={self.ratio_:g}, the point that cross-validation chose,"

    def _score_fold(self, data: Experiment, split: Split, Cs: Floats, ratios: Floats, seed: np.uint64) -> Floats:
        """AUUC on the test rows for every point of the grid."""
        train, test = (data.take(rows) for rows in split)
        machine = UpliftSVM(**{name: getattr(self, name) for name in _SHARED})
        task = UpliftTask(machine, machine._learn_features(train, seed), train, seed)
        features = machine._features(test.X)
        scores, start = [], None
        points = [(float(C), float(ratio)) for C in Cs for ratio in ratios]
        for point, solution in zip(points, task.solve_grid(Cs, ratios, warm=self.warm_start_folds), strict=True):
            ranking, start = task.ranking(solution, *point, start)
            w = solution.coef if ranking is None else ranking.w  # both rank as predict does
            scores.append(mean_area(test.target, (features @ w)[:, None]))
        return np.reshape(scores, (len(Cs), len(ratios)))

    def _get_state(self) -> dict[str, Any]:
        return {
            **super()._get_state(),
            "C": self.C_,
            "fold_scores": self.fold_scores_,
            "scores": self.scores_,
            "best_score": self.best_score_,
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        check("C", state["C"], PENALTY)
        self.C_, self.best_score_ = float(state["C"]), float(state["best_score"])
        self.fold_scores_, self.scores_ = np.asarray(state["fold_scores"]), np.asarray(state["scores"])
        if {self.scores_.dtype, self.fold_scores_.dtype} != {np.dtype(np.float64)}:
            raise ValueError("the cross-validated scores are not numbers")
        if self.scores_.ndim != 2 or self.fold_scores_.shape[1:] != self.scores_.shape:
            raise ValueError("the cross-validated scores do not fit together")


_SHARED = (
    "p",
    "kernel",
    "balance",
    "exponent",
    "group_average",
    "standardize",
    "gamma",
    "degree",
    "coef0",
    "n_components",
    "at_zero",
    "tol",
    "max_iter",
    "random_state",
)


def _grid(name: str, values: Any, default: Any, rule: Rule) -> Floats:
    if values is None:
        return np.asarray(default, dtype=np.float64)
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping) or getattr(values, "ndim", 1) == 0:
        raise ValueError(
            f"{name}={reprlib.repr(values)}: expected a list of values to try, or None for the default grid"
        )
    grid = list(values)
    if not grid:
        raise ValueError(f"{name} is empty: give at least one value, or None for the default grid")
    for value in grid:
        check(name, value, rule)
    return np.unique(np.asarray(grid, dtype=np.float64))
