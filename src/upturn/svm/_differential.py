"""DifferentialSVM: SVM-upl, the machine that optimises the area under the uplift curve itself."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from upturn._arrays import Floats
from upturn._encode import LinearEncoder, row_blocks, tell_dwarfed
from upturn._experiment import Experiment
from upturn._parameters import FLAG, LABEL, Rule, check, number, one_of
from upturn._sparse import SparseMatrix, dense
from upturn._target import Label
from upturn.base import UpliftEstimator
from upturn.svm import _pairwise
from upturn.svm._base import PENALTY, SOLVER_PARAMETERS, importances
from upturn.svm._solve import one_thread


class DifferentialSVM(UpliftEstimator):
    r"""SVM-upl: a linear ranking that puts successes first in the treatment group and last in the control group.

    .. math:: \min_w \; \tfrac12 \|w\|^2
        + C \left( \sum_{i \in A_+, j \in A_-} h(\langle w, x_i - x_j\rangle)
        + \lambda \sum_{k \in B_+, l \in B_-} h(\langle w, x_l - x_k\rangle) \right), \qquad h(d) = \max(0, 1 - d),

    with A the treatment group, B the control group, and + and - their successes and failures. The area under the
    uplift curve (in counts) is an affine function of the two numbers of badly ordered pairs, one divided by the size
    of A, the other by that of B; hence ``lam="auto"``, which is :math:`\lambda = |A|/|B|`.

    Parameters
    ----------
    C : float
        Penalty of a pair; it multiplies the plain sum over pairs, so it is small: a thousand rows make some hundred
        thousand pairs.
    lam : "auto", "paper" or float
        Weight of the control group's pairs. "paper" is (14), which belongs to areas normalised to 1 but is applied to
        raw pairs in (17) of the paper.
    standardize : bool
        Whether columns are centred and scaled to unit variance first.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Most iterations of L-BFGS.
    control : label, optional
        Which label is control, when its name does not tell.

    Attributes
    ----------
    coef_, coef_names_ : array of shape (q,), list of str
        w in the units of the user's columns; categorical columns have a coefficient per level.
    feature_importances_ : array of shape (p,)
        Absolute coefficient times the standard deviation of its column, added up over a column's levels.
    lam_ : float
        The weight used.
    objective_, dual_bound_, dual_gap_, n_iter_, solver_
        The value reached, the bound that proves it, their relative difference, the iterations, and what finished.
    control_, arms_ : label, list of labels

    Notes
    -----
    Each evaluation sorts the scores once and never visits a pair. Weights multiply: a pair counts with the product of
    its rows' weights. The score ranks; it has no zero, so ``recommend`` refuses. A group without successes or without
    failures has no pairs and does not contribute; if neither has any, w is 0.

    References
    ----------
    Kuusisto et al., "Support vector machines for differential prediction", 2014, section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from upturn.svm import DifferentialSVM
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(500, 2)), rng.integers(0, 2, 500)
    >>> y = rng.random(500) < 0.5 + 0.4 * treatment * np.tanh(2 * X[:, 0])
    >>> model = DifferentialSVM(C=1e-3).fit(X, y, treatment)
    >>> model.score(X, y, treatment) > 0.05, model.dual_gap_ <= 1e-8
    (True, True)
    """

    _outcome = "binary"
    _multi_arm = False
    _float32 = True
    _score_has_zero = False
    _score_is_effect = False
    _parameters: ClassVar[Mapping[str, Rule]] = {
        "C": PENALTY,
        "lam": one_of("auto", "paper") | number(least=0, most=1e100).named("a weight from 0 to 1e100"),
        "standardize": FLAG,
        **SOLVER_PARAMETERS,
        "control": LABEL,
    }

    def __init__(
        self,
        C: float = 1e-3,
        lam: float | Literal["auto", "paper"] = "auto",
        standardize: bool = True,
        *,
        tol: float = 1e-8,
        max_iter: int = 1000,
        control: Label | None = None,
    ) -> None:
        self.C = C
        self.lam = lam
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.control = control

    def _takes_sparse(self) -> bool:
        return True

    def _fit(self, data: Experiment) -> None:
        self.encoder_ = LinearEncoder.fit(data.X, data.schema, data.weight, standardize=self.standardize)
        self.coef_names_ = self.encoder_.names(data.schema)
        self.lam_ = self._choose_lam(data)
        encoded = self.encoder_.transform(data.X)
        encoded = dense(encoded, type(self).__name__) if isinstance(encoded, SparseMatrix) else encoded
        pairs = pair_data(encoded, data, float(self.C), self.lam_)
        with one_thread():
            solution = _pairwise.solve(pairs, self.tol, int(self.max_iter))
        if not solution.gap <= self.tol:
            warnings.warn(
                f"DifferentialSVM stopped at a relative gap of {solution.gap:.2g}, tol is {self.tol:.2g}: raise "
                "max_iter, or check the scale of C and of the columns",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.objective_, self.dual_bound_ = float(solution.objective), float(solution.dual_bound)
        self.dual_gap_, self.n_iter_, self.solver_ = float(solution.gap), int(solution.iterations), solution.solver
        self._set_w(solution.coef)

    def _tell(self, data: Experiment) -> None:
        tell_dwarfed(type(self).__name__, self.encoder_, data.X, data.schema)

    def _choose_lam(self, data: Experiment) -> float:
        weight, treated, success = data.weights, data.arm == 1, data.y > 0
        size_a, size_b = float(weight[treated].sum()), float(weight[~treated].sum())
        if self.lam == "auto":
            return size_a / size_b
        if self.lam == "paper":
            mixed_a = float(weight[treated & success].sum()) * float(weight[treated & ~success].sum()) / size_a
            mixed_b = float(weight[~treated & success].sum()) * float(weight[~treated & ~success].sum()) / size_b
            if mixed_a == 0.0:
                raise ValueError(
                    "lam='paper' divides by the treatment group's pairs, and it has only one outcome: use 'auto'"
                )
            return mixed_b / mixed_a
        return float(self.lam)

    @property
    def feature_importances_(self) -> Floats:
        """Absolute coefficient times the standard deviation of its column at fit, added up over a column's levels."""
        check_is_fitted(self)
        return importances(self.encoder_, self.coef_)

    def _set_w(self, w: Floats) -> None:
        self._w = w
        self.coef_ = w / self.encoder_.scale

    def _predict(self, X: Floats) -> Floats:
        scores = np.empty((len(X), 1))
        if isinstance(X, SparseMatrix):
            scores[:, 0] = self.encoder_.times(X, self._w)
            return scores
        for rows in row_blocks(len(X), max(X.shape[1], len(self._w))):
            scores[rows, 0] = self.encoder_.transform(X[rows]) @ self._w
        return scores

    def _get_state(self) -> dict[str, Any]:
        return {
            "encoder": self.encoder_.get_state(),
            "w": self._w,
            "lam": self.lam_,
            "objective": self.objective_,
            "dual_bound": self.dual_bound_,
            "dual_gap": self.dual_gap_,
            "n_iter": self.n_iter_,
            "solver": self.solver_,
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        self.encoder_ = LinearEncoder.from_state(state["encoder"], self._schema)
        self.coef_names_ = self.encoder_.names(self._schema)
        w = np.asarray(state["w"])
        if w.shape != (len(self.coef_names_),) or w.dtype != np.float64 or not np.isfinite(w).all():
            raise ValueError("the coefficients do not fit the columns")
        check("lam", state["lam"], number(least=0))
        self.lam_ = float(state["lam"])
        self.objective_, self.dual_bound_ = float(state["objective"]), float(state["dual_bound"])
        self.dual_gap_, self.n_iter_ = float(state["dual_gap"]), int(state["n_iter"])
        self.solver_ = str(state["solver"])
        self._set_w(w)


def pair_data(features: Floats, data: Experiment, C: float, lam: float) -> _pairwise.PairData:
    """The two groups' pairs: successes above failures in treatment, failures above successes in control.

    Pairs see differences only, so columns are centred, in place: a large offset would cancel at the cost of digits.
    """
    treated, success, counts = data.arm == 1, data.y > 0, data.weights > 0.0
    helped, unhelped = (np.flatnonzero(counts & treated & kind) for kind in (success, ~success))
    fine, unwell = (np.flatnonzero(counts & ~treated & kind) for kind in (success, ~success))
    groups = (_pairwise.PairGroup(helped, unhelped, C), _pairwise.PairGroup(unwell, fine, lam * C))
    pairs = tuple(group for group in groups if group.price > 0.0 and len(group.high) and len(group.low))
    features -= features.mean(axis=0)
    return _pairwise.PairData(features, data.weights, pairs)
