"""UpliftSVM: two parallel hyperplanes that split people into helped, unmoved and harmed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from upturn._arrays import Bools, Floats, Indices, Ints
from upturn._experiment import Experiment
from upturn._parameters import FLAG, NONE, Rule, check, number, one_of
from upturn._seeds import make_seed
from upturn._sparse import SparseMatrix, dense
from upturn._target import Label
from upturn.svm._base import Machine
from upturn.svm._energy import EXPONENT, EnergyTerm, signed_weights
from upturn.svm._problem import MarginData, MarginSolution
from upturn.svm._solve import Prepared, Start
from upturn.svm._vanishing import Local, Ranking, Scored, rank, smooth_neighbour

RATIO = number(least=1, most=1e100).named(
    "a number of at least 1, and at most 1e100 (1 gives no neutral predictions, larger ones more; below 1 the hyperplanes change sides, Lemma 3.3.1)"
)


MISSED = 0.01  # how far from the neutral share asked for is worth a warning


class UpliftSVM(Machine):
    r"""Uplift support vector machine: L1, Lp, and Székely-regularised.

    With :math:`z_i = y_i` in the treatment group and :math:`-y_i` in control (:math:`y_i = \pm 1`), two parallel
    hyperplanes :math:`H_k: \langle w, x\rangle = b_k` minimise

    .. math::
        \tfrac12 \|w\|^2 + \sum_{i=1}^n \left( U_{i1}\,\xi_{i1}^p + U_{i2}\,\xi_{i2}^p \right) + C_3\,S(w), \qquad
        \xi_{ik} = \max(0,\; 1 - z_i(\langle w, x_i\rangle - b_k)),

    where :math:`U_{i1} = C_1` if :math:`z_i = +1` and :math:`C_2` otherwise, :math:`U_{i2}` the other way round,
    :math:`C_1` = ``C``, :math:`C_2` = ``ratio`` · ``C`` and :math:`C_3` = ``balance``. A row above both hyperplanes is
    predicted to be helped, one below both to be harmed, one between them to be unmoved. A larger ``ratio`` moves the
    hyperplanes apart: the model becomes more careful. S is the energy distance between the scores of the two groups;
    it makes the model treat a biased assignment of treatments with suspicion.

    Every fit carries its proof: ``dual_gap_`` is a relative duality gap, at most ``tol``. With ``balance > 0`` the
    problem is not convex, and the gap proves a stationary point instead.

    Parameters
    ----------
    C : float
        Penalty of a row on the wrong side of one hyperplane.
    ratio : float or "auto"
        :math:`C_2/C_1`, at least 1. With 1 the hyperplanes coincide. "auto" looks for the ratio that leaves the share
        ``neutral`` of the training rows between the hyperplanes.
    p : float
        Exponent of the slacks: 1 (the dissertation's first machine), or from 1.05 to 10. For p = 1 the share of neutral
        predictions can jump between none and all as ``ratio`` grows, and w can be 0; for p > 1 both change smoothly.
    kernel : {"linear", "rbf", "poly", "precomputed"}
        With "precomputed", X is the matrix of kernel values against the training rows.
    balance : float
        Weight of the energy distance, 0 or more.
    exponent : float
        Exponent of the energy distance, in [1, 2).
    group_average : bool
        Whether slacks are averaged within each group, so that both groups count the same; the penalties are then
        divided by the groups' sizes.
    standardize : bool
        Whether columns are centred and scaled to unit variance first.
    neutral : float, optional
        Share of rows to leave neutral, for ``ratio="auto"``; 0.3 if not given.
    gamma : float or "scale"
        Of the kernels rbf, exp(-γ‖x - x'‖²), and poly, (γ x·x' + coef0)^degree.
    degree, coef0 : float
        Of the kernel poly.
    n_components : int, optional
        Number of landmarks for a kernel. By default every row up to 3,000 of them (the exact machine), 500 above
        (Nyström's approximation).
    at_zero : {"rank", "zero"}
        What ``predict`` gives where w = 0 is optimal (p = 1, weak effects or rare labels): a ranking by the solution at
        p = 1.2 with the same data, C and ratio, scaled to a standard deviation of 1 on the training rows; or zeros.
    solver : {"auto", "asgd", "dcd"}
        "auto" takes the exact solver for the problem. "asgd" (averaged stochastic gradient descent, for ``balance``)
        and "dcd" (dual coordinate descent, for p = 1 without ``balance``) are the dissertation's own, kept for
        comparison: they stop after ``max_iter`` passes and report the gap they reached.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Most iterations of an inner solver.
    random_state : int, RandomState, Generator or None
        Draws the landmarks and the order of the stochastic solvers.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    coef_, coef_names_ : array of shape (q,), list of str
        w in the units of the user's columns; categorical columns have a coefficient per level. Linear kernel only.
    vanishing_ : bool
        Whether w = 0 is optimal: its relative gap is at most 1e-8, whatever ``tol``; or, for p > 1, whether w is so short (one
        label is very rare) that ``predict`` brings its scores to another scale.
    ranking_coef_ : array of shape (q,)
        The coefficients of ``predict``: ``coef_``, except where w = 0 is optimal. Linear kernel only.
    feature_importances_ : array of shape (p,)
        Absolute coefficient in ``predict`` times the standard deviation of its column, added up over a column's levels: what
        each column contributes to the spread of the scores. Linear kernel only.
    intercepts_ : array of shape (2,)
        :math:`b_1 \ge b_2`, in the same units.
    intercept_intervals_ : array of shape (2, 2)
        The intercepts that are equally good for this w. ``intercepts_`` are the midpoints, or the finite end of an
        interval that reaches to infinity.
    ratio_ : float
        The ratio used.
    support_ : array of int
        Rows that w is made of; empty for a machine that :func:`upturn.engines.fit` has fitted.
    objective_, dual_bound_, dual_gap_, n_iter_, solver_
        The value reached, the bound that proves it, their relative difference, the iterations and the solver.
    control_, arms_ : label, list of labels

    Notes
    -----
    ``predict`` returns :math:`\langle w, x\rangle - (b_1 + b_2)/2`, a ranking score rather than an effect.
    ``recommend`` treats the rows above :math:`b_1`. With ``ratio=1`` the machine is a standard SVM with penalty 2C on
    the class-transformed labels z.

    Where w = 0 is optimal (p = 1 and weak effects or rare labels), a :class:`VanishingWarning` says so. ``coef_``,
    ``objective_`` and the certificate, ``predict_sign`` and ``recommend`` are those of that optimum: one answer for
    everybody. ``predict`` and ``feature_importances_`` are those of the unique solution at p = 1.2, which depends neither on
    ``tol`` nor on the solver nor on the order of the rows; its zero means nothing. If all labels z are equal, w is 0 and every
    row is on that side; then nothing ranks, and ``predict`` is 0.

    References
    ----------
    Zaniewicz, "Support Vector Machines for Uplift Modeling", 2018, chapters 3 to 5.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.svm import UpliftSVM
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(2000, 2)), rng.integers(0, 2, 2000)
    >>> y = rng.random(2000) < 0.5 + 0.4 * treatment * np.tanh(2 * X[:, 0])
    >>> model = UpliftSVM(p=2.0, ratio=1.5).fit(X, y, treatment)
    >>> model.predict_sign([[2.0, 0.0], [0.0, 0.0], [-2.0, 0.0]])
    array([ 1,  0, -1])
    >>> model.dual_gap_ <= 1e-8
    True
    """

    _parameters: ClassVar[Mapping[str, Rule]] = {
        **Machine._parameters,
        "ratio": RATIO | one_of("auto"),
        "balance": number(least=0, most=1e100).named("0 (no energy term) or a weight above 0, at most 1e100"),
        "exponent": EXPONENT,
        "group_average": FLAG,
        "neutral": number(above=0, below=1).named("a share strictly between 0 and 1") | NONE,
        "solver": one_of("auto", "asgd", "dcd"),
    }

    def __init__(
        self,
        C: float = 1.0,
        ratio: float | Literal["auto"] = 1.0,
        p: float = 1.2,
        kernel: str = "linear",
        balance: float = 0.0,
        exponent: float = 1.1,
        group_average: bool = False,
        standardize: bool = True,
        *,
        neutral: float | None = None,
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        n_components: int | None = None,
        at_zero: Literal["rank", "zero"] = "rank",
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int = 100,
        random_state: Any = None,
        control: Label | None = None,
    ) -> None:
        self.C = C
        self.ratio = ratio
        self.p = p
        self.kernel = kernel
        self.balance = balance
        self.exponent = exponent
        self.group_average = group_average
        self.standardize = standardize
        self.neutral = neutral
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.at_zero = at_zero
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.control = control

    def predict_sign(self, X: Any) -> Ints:
        """The effect's sign, (3.1.2): +1 above both hyperplanes, -1 on or below both, 0 between them."""
        return self._signs(self._decision(self._encode(X)))

    def _signs(self, decision: Floats) -> Ints:
        return np.asarray((decision[:, None] > self._b).sum(axis=1) - 1, dtype=np.int64)

    def _recommend(self, X: Floats) -> Indices:
        return (self._signs(self._decision(X)) > 0).astype(np.intp)

    def _check_together(self) -> None:
        """Refuse parameters that do not go together."""
        if self.solver == "dcd" and (self.p != 1.0 or self.balance > 0.0):
            raise ValueError("solver='dcd' solves p=1 without balance only: give p=1, or use solver='auto'")
        if self.solver == "asgd" and self.p != 1.0:
            raise ValueError("solver='asgd' solves p=1 only: give p=1, or use solver='auto'")
        if self.neutral is not None and self.ratio != "auto":
            raise ValueError(f"neutral={self.neutral!r} asks for a share of neutral predictions: it needs ratio='auto'")

    def _point(self) -> str:
        return f"{super()._point()}, ratio={self.ratio_:g}"

    def _fit(self, data: Experiment) -> None:
        self._check_together()
        seed = make_seed(self.random_state)
        task = UpliftTask(self, self._learn_features(data, seed), data, seed)
        self._adopt(*self._solve(task), np.arange(len(data)), data)

    def _solve(self, task: UpliftTask) -> tuple[MarginSolution, Ranking | None]:
        """The solution, and what ranks where w = 0 is optimal."""
        if self.ratio == "auto":
            solution, self.ratio_ = self._search_ratio(task)
        else:
            self.ratio_ = float(self.ratio)
            solution = task.solve(float(self.C), self.ratio_)
        return solution, task.ranking(solution, float(self.C), self.ratio_)[0]

    def _search_ratio(self, task: UpliftTask) -> tuple[MarginSolution, float]:
        """Bracket and bisect log(ratio): the neutral share grows with the ratio. The nearest share seen wins."""
        wanted = 0.3 if self.neutral is None else float(self.neutral)
        start: Start | None = None
        best: tuple[float, MarginSolution, float] | None = None
        shares: dict[float, float] = {}

        def neutral_share(log_ratio: float) -> float:
            nonlocal start, best
            ratio = float(np.exp(log_ratio))
            solution = task.solve(float(self.C), ratio, start)
            start = (solution.coef, solution.intercepts)
            share = shares[ratio] = task.neutral_share(solution)
            if best is None or abs(share - wanted) < best[0]:
                best = (abs(share - wanted), solution, ratio)
            return share

        low, high, top = 0.0, float(np.log(1.5)), float(np.log(1e4))
        if neutral_share(low) < wanted:
            while neutral_share(high) < wanted and high < top:
                low, high = high, min(2.0 * high, top)
            while high - low > 1e-5 and best is not None and best[0] > 0.5 / task.n:
                middle = 0.5 * (low + high)
                if neutral_share(middle) < wanted:
                    low = middle
                else:
                    high = middle
        assert best is not None
        if best[0] > max(MISSED, 1.0 / task.n):
            self._warn_of_a_jump(wanted, shares)
        return best[1], best[2]

    def _warn_of_a_jump(self, wanted: float, shares: dict[float, float]) -> None:
        """Say that no ratio leaves the share asked for, with the shares on either side of it."""
        below = [ratio for ratio, share in shares.items() if share < wanted]
        above = [ratio for ratio, share in shares.items() if share >= wanted]
        around = [r for side, pick in ((below, max), (above, min)) if side for r in (pick(side),)]
        found = " and ".join(f"{shares[ratio]:.1%} at ratio={ratio:.6g}" for ratio in around)
        advice = (
            "With p=1 the share can jump: take p=1.2 or more, where it changes smoothly"
            if self.p == 1.0
            else ("Ask for another share, or give the ratio")
        )
        warnings.warn(
            f"{type(self).__name__}(ratio='auto') found no ratio that leaves {wanted:.1%} of the training rows neutral: there are "
            f"{found}. {advice}",
            UserWarning,
            stacklevel=5,
        )

    def _get_state(self) -> dict[str, Any]:
        return {**super()._get_state(), "ratio": self.ratio_}

    def _set_state(self, state: dict[str, Any]) -> None:
        super()._set_state(state)
        if self._b.shape != (2,):
            raise ValueError("an uplift machine has two hyperplanes")
        check("ratio", state["ratio"], RATIO)
        self.ratio_ = float(state["ratio"])


def labels_of(data: Experiment) -> Floats:
    """The labels z, (3.2.1)."""
    return np.where((data.y > 0) == (data.arm == 1), 1.0, -1.0)


def between(scores: Floats, b: Floats) -> Bools:
    """Whether rows lie between the hyperplanes."""
    return np.asarray((scores[:, None] > b).sum(axis=1) == 1)


class UpliftTask:
    """The margin problems of an experiment, for any C and ratio: what they share is prepared once."""

    def __init__(self, machine: UpliftSVM, features: Floats, data: Experiment, seed: np.uint64) -> None:
        treated = data.arm == 1
        self.features, self.weight, self.n = features, data.weights, len(data)
        self.z = labels_of(data)
        self._own = np.stack([self.z > 0, self.z < 0])
        self._scored: Scored = Local(features, self.weight)
        self._price = self.weight
        if machine.group_average:
            self._price = self.weight.copy()
            for group in (treated, ~treated):
                self._price[group] /= self._price[group].sum()
        self._energy: EnergyTerm | None = None
        if machine.balance > 0.0:
            signed = signed_weights(treated, data.weight)
            self._energy = EnergyTerm(signed, float(machine.exponent), float(machine.balance))
        self._problem, self._solver, self._seed = machine._problem(), machine.solver, seed
        self._at_zero = machine.at_zero
        self._prepared: Prepared | None = None

    def cost(self, C: float, ratio: float) -> Floats:
        """U of (3.2.7)-(3.2.8): C at the row's own hyperplane, ratio·C at the other."""
        return np.where(self._own, C, ratio * C) * self._price

    @property
    def prepared(self) -> Prepared:
        """The rows as the exact solvers like them."""
        if self._prepared is None:
            self._prepared = Prepared(self._problem, self.features, self.z, self._price > 0.0, self._energy)
        return self._prepared

    def solve(self, C: float, ratio: float, start: Start | None = None) -> MarginSolution:
        """Solve for one C and ratio; ``start`` is (w, b) of a neighbouring problem."""
        cost = self.cost(C, ratio)
        if self._solver == "auto":
            return self.prepared.solve(cost, start)
        from upturn.svm import _stochastic

        if isinstance(self.features, SparseMatrix):
            self.features = dense(self.features, f"solver={self._solver!r}")
        data, problem = MarginData(self.features, self.z, cost), self._problem
        return _stochastic.solve(self._solver, data, self._energy, problem.max_iter, problem.tol, self._seed)

    def ranking(
        self, solution: MarginSolution, C: float, ratio: float, start: Start | None = None
    ) -> tuple[Ranking | None, Start | None]:
        """What ranks where w = 0 is optimal, and (w, b) for the next such point to start from."""
        ranking, found = rank(
            self._at_zero, solution, self._scored, lambda: smooth_neighbour(self.prepared, self.cost(C, ratio), start)
        )
        return ranking, start if found is None else (found.coef, found.intercepts)

    def neutral_share(self, solution: MarginSolution) -> float:
        """The share of the rows between the hyperplanes."""
        return float(np.average(between(self.features @ solution.coef, solution.intercepts), weights=self.weight))

    def solve_grid(self, Cs: Floats, ratios: Floats, warm: bool = True) -> Iterator[MarginSolution]:
        """Solve for every C and, within it, every ratio, each from its neighbour's solution."""
        if self._solver == "auto" and self.prepared.small:
            yield from self.prepared.solve_many([self.cost(C, ratio) for C in Cs for ratio in ratios])
            return
        column: Start | None = None  # the solution at the previous C and the first ratio
        for C in Cs:
            start = column
            for j, ratio in enumerate(ratios):
                solution = self.solve(float(C), float(ratio), start if warm else None)
                start = (solution.coef, solution.intercepts)
                column = start if j == 0 else column
                yield solution
