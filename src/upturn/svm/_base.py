"""What the machines of this family share: encoding, kernels, fitting a margin problem, scores, the saved form."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from upturn._arrays import Floats, Indices
from upturn._encode import LinearEncoder, row_blocks, tell_dwarfed
from upturn._experiment import Experiment
from upturn._parallel import interruptible
from upturn._parameters import FLAG, LABEL, NONE, SEED, Rule, number, one_of, whole
from upturn._sparse import SparseMatrix
from upturn._table import Schema
from upturn.base import UpliftEstimator, finite_importances
from upturn.svm._kernels import NAMES, KernelMap
from upturn.svm._problem import MarginProblem, MarginSolution
from upturn.svm._vanishing import AT_ZERO, Ranking, VanishingWarning, explain, varies

KERNEL_PARAMETERS = {
    "kernel": one_of(*NAMES),
    "gamma": number(above=0) | one_of("scale"),
    "degree": number(above=0),
    "coef0": number(),
    "n_components": whole(least=1) | NONE,
    "standardize": FLAG,
}
# Squares of what it is multiplied with, or divided by, are still numbers.
PENALTY = number(least=1e-100, most=1e100).named("a number above 0, from 1e-100 to 1e100")
SOLVER_PARAMETERS = {"tol": number(above=0), "max_iter": whole(least=1)}
POWER = (number(least=1, most=1) | number(least=1.05, most=10)).named(
    "1 (hinge) or a number from 1.05 to 10: below 1 the problem is not convex, and between 1 and 1.05 it is nearly that of p=1"
)


class Machine(UpliftEstimator):
    """A machine with parallel hyperplanes on encoded (and perhaps kernel) features."""

    _score_is_effect = False

    _outcome = "binary"
    _multi_arm = False
    _float32 = True
    _parameters: ClassVar[Mapping[str, Rule]] = {
        "C": PENALTY,
        "p": POWER,
        "at_zero": AT_ZERO,
        **KERNEL_PARAMETERS,
        **SOLVER_PARAMETERS,
        "random_state": SEED,
        "control": LABEL,
    }

    C: float
    p: float
    kernel: str
    gamma: float | str
    degree: float
    coef0: float
    n_components: int | None
    standardize: bool
    at_zero: str
    tol: float
    max_iter: int
    random_state: Any

    encoder_: LinearEncoder | None
    kernel_map_: KernelMap | None

    def _takes_sparse(self) -> bool:
        return self.kernel == "linear"

    def _learn_features(self, data: Experiment, seed: np.uint64) -> Floats:
        """Fit the encoder and the kernel, and return the matrix the solver works on."""
        if self.kernel == "precomputed":
            self.encoder_ = None
            if np.isnan(data.X).any():
                raise ValueError("the precomputed kernel holds missing values: every entry must be a number")
            encoded = np.ascontiguousarray(data.X, dtype=np.float64)
        else:
            self.encoder_ = LinearEncoder.fit(data.X, data.schema, data.weight, standardize=self.standardize)
            encoded = self.encoder_.transform(data.X)
        self.kernel_map_ = None
        if self.kernel != "linear":
            self.kernel_map_ = KernelMap.fit(
                encoded, self.kernel, self.gamma, float(self.degree), float(self.coef0), self.n_components, seed
            )
        return self._expand(encoded)

    def _tell(self, data: Experiment) -> None:
        tell_dwarfed(type(self).__name__, self.encoder_, data.X, data.schema)

    def _features(self, X: NDArray[Any]) -> Floats:
        """What ``_w`` multiplies, of other rows."""
        return self._expand(self._encoded(X))

    def _encoded(self, X: NDArray[Any]) -> Floats:
        return np.ascontiguousarray(X, dtype=np.float64) if self.encoder_ is None else self.encoder_.transform(X)

    def _expand(self, encoded: Floats) -> Floats:
        if self.kernel_map_ is None:
            return encoded
        product = interruptible(np.matmul, self.kernel_map_.against_landmarks(encoded), self.kernel_map_.projection)
        return np.ascontiguousarray(product)

    def _problem(self) -> MarginProblem:
        return MarginProblem(power=float(self.p), tol=self.tol, max_iter=int(self.max_iter))

    def _adopt(self, solution: MarginSolution, ranking: Ranking | None, rows: Indices, data: Experiment) -> None:
        """Set the fitted attributes; ``rows`` are the training rows the solution speaks of.

        ``ranking`` is what ranks where w = 0 is optimal.
        """
        total = solution.alpha.sum(axis=0)
        self.support_ = rows[total > 1e-9 * max(float(total.max(initial=0.0)), 1e-300)]
        self._keep(solution, ranking, data.schema, lambda: varies(data.X[rows]))

    def _keep(
        self, solution: MarginSolution, ranking: Ranking | None, schema: Schema, columns_vary: Callable[[], bool]
    ) -> None:
        """What ``_adopt`` does but for the support."""
        if not solution.gap <= self.tol:
            known = solution.exhausted is not None
            ended = solution.exhausted if known else solution.iterations >= self.max_iter
            advice = (
                "it ran out of iterations; raise max_iter"
                if ended
                else "its steps no longer bring it nearer, so more iterations would not help; bring C and the columns to ordinary sizes"
                + (", or take p=1.2, a smooth problem next to this one" if self.p == 1.0 else "")
            )
            warnings.warn(
                f"{type(self).__name__} stopped at a relative gap of {solution.gap:.2g} after {solution.iterations} "
                f"iterations, tol is {self.tol:.2g}: {advice}",
                ConvergenceWarning,
                stacklevel=5,
            )
        self.objective_, self.dual_bound_ = float(solution.objective), float(solution.dual_bound)
        self.dual_gap_, self.n_iter_ = float(solution.gap), int(solution.iterations)
        self.solver_ = solution.solver
        nothing = not np.any(solution.coef) and solution.gap <= self.tol  # w is also 0 where it has just begun
        self.vanishing_ = bool(solution.vanishing or ranking is not None or nothing)
        self._set_planes(
            solution.coef,
            solution.intercepts,
            np.stack([solution.intercept_low, solution.intercept_high], axis=1),
            ranking,
        )
        self._name_coefficients(schema)
        if self.vanishing_:
            name, p = type(self).__name__, float(self.p)
            warnings.warn(
                explain(name, self._point(), p, solution, ranking, columns_vary()), VanishingWarning, stacklevel=5
            )

    def _point(self) -> str:
        """The parameters that were solved for, as a warning names them."""
        return f"C={float(self.C):g}"

    def _set_planes(self, w: Floats, b: Floats, interval: Floats, ranking: Ranking | None) -> None:
        """Keep the solver's w and b, and show them in the user's columns."""
        self._w, self._b, self._interval, self._ranking = w, b, interval, ranking
        shift = 0.0
        if self.kernel == "linear":
            assert self.encoder_ is not None
            self.coef_ = w / self.encoder_.scale
            self.ranking_coef_ = self.coef_ if ranking is None else ranking.w / self.encoder_.scale
            shift = float(self.coef_ @ self.encoder_.mean)
        self.intercepts_ = b + shift
        self.intercept_intervals_ = interval + shift

    @property
    def feature_importances_(self) -> Floats:
        """Absolute coefficient in ``predict`` times its column's standard deviation at fit, added up over a column's levels."""
        check_is_fitted(self)
        if self.kernel != "linear" or self.encoder_ is None:
            raise AttributeError(
                f"{type(self).__name__}(kernel={self.kernel!r}) has no coefficients, hence no feature_importances_: use "
                "kernel='linear', or sklearn.inspection.permutation_importance"
            )
        return importances(self.encoder_, self.ranking_coef_)

    def _name_coefficients(self, schema: Any) -> None:
        if self.kernel == "linear" and self.encoder_ is not None:
            self.coef_names_ = self.encoder_.names(schema)

    def _decision(self, X: Floats, w: Floats | None = None) -> Floats:
        """x·w for every row, in the coordinates of ``_b``; in blocks of rows, so that little memory is needed."""
        kernel, decision = self.kernel_map_, np.empty(len(X))
        w = self._w if w is None else w
        w = w if kernel is None else kernel.projection @ w
        if isinstance(X, SparseMatrix) and self.encoder_ is not None:
            return self.encoder_.times(X, w)
        for rows in row_blocks(len(X), max(X.shape[1], len(w))):
            encoded = self._encoded(X[rows])
            decision[rows] = (encoded if kernel is None else kernel.against_landmarks(encoded)) @ w
        return decision

    def _predict(self, X: Floats) -> Floats:
        if self._ranking is not None:
            return np.asarray(self._decision(X, self._ranking.w) - self._ranking.middle)[:, None]
        return np.zeros((len(X), 1)) if self.vanishing_ else np.asarray(self._decision(X) - self._b.mean())[:, None]

    def _get_state(self) -> dict[str, Any]:
        return {
            "encoder": None if self.encoder_ is None else self.encoder_.get_state(),
            "kernel": None if self.kernel_map_ is None else self.kernel_map_.get_state(),
            "w": self._w,
            "b": self._b,
            "interval": self._interval,
            "support": np.asarray(self.support_, dtype=np.int64),
            "objective": self.objective_,
            "dual_bound": self.dual_bound_,
            "dual_gap": self.dual_gap_,
            "n_iter": self.n_iter_,
            "solver": self.solver_,
            "vanishing": self.vanishing_,
            "ranking": None if self._ranking is None else self._ranking.get_state(),
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        encoder, kernel = state["encoder"], state["kernel"]
        self.encoder_ = None if encoder is None else LinearEncoder.from_state(encoder, self._schema)
        columns = self._schema.n_features if self.encoder_ is None else self.encoder_.layout.width
        if (self.encoder_ is None) != (self.kernel == "precomputed") or (kernel is None) != (self.kernel == "linear"):
            raise ValueError("the encoder or the kernel does not match the parameters")
        self.kernel_map_ = None if kernel is None else KernelMap.from_state(kernel, columns)
        size = columns if self.kernel_map_ is None else self.kernel_map_.projection.shape[1]
        w, b, interval = (np.asarray(state[name]) for name in ("w", "b", "interval"))
        if w.shape != (size,) or b.ndim != 1 or not 1 <= b.shape[0] <= 2 or interval.shape != (b.shape[0], 2):
            raise ValueError("the hyperplanes do not fit the columns")
        if any(array.dtype != np.float64 for array in (w, b, interval)):
            raise ValueError("the hyperplanes are not numbers")
        if not np.isfinite(w).all() or not np.isfinite(b).all() or np.isnan(interval).any():
            raise ValueError("the hyperplanes are not finite")
        support = state["support"]
        if (
            support.ndim != 1
            or support.dtype != np.int64
            or (support < 0).any()
            or not isinstance(state["solver"], str)
        ):
            raise ValueError("the support vectors or the solver are not well formed")
        self.support_ = support.astype(np.intp)
        self.objective_, self.dual_bound_ = float(state["objective"]), float(state["dual_bound"])
        self.dual_gap_, self.n_iter_ = float(state["dual_gap"]), int(state["n_iter"])
        self.solver_ = state["solver"]
        self.vanishing_, ranking = state["vanishing"], state["ranking"]
        if not isinstance(self.vanishing_, bool) or (ranking is not None and not self.vanishing_):
            raise ValueError("the ranking does not fit the hyperplanes")
        self._set_planes(w, b, interval, None if ranking is None else Ranking.from_state(ranking, size))
        self._name_coefficients(self._schema)


def importances(encoder: LinearEncoder, coef: Floats) -> Floats:
    """What each column of the table contributes to the spread of the scores, in absolute value."""
    return finite_importances(encoder.by_column(np.abs(coef) * encoder.spread), len(encoder.layout.first))
