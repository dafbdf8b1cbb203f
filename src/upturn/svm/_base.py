"""What the machines of this family share: encoding, kernels, fitting a margin problem, scores, the saved form."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from upturn._arrays import Floats, Indices
from upturn._encode import LinearEncoder
from upturn._experiment import Experiment
from upturn._seeds import make_seed
from upturn.base import UpliftEstimator
from upturn.svm import _solve
from upturn.svm._energy import EnergyTerm
from upturn.svm._kernels import NAMES, KernelMap
from upturn.svm._problem import MarginData, MarginProblem, MarginSolution

LEAST_POWER = 1.05


class Machine(UpliftEstimator):
    """A machine with parallel hyperplanes on encoded (and perhaps kernel) features."""

    _outcome = "binary"
    _multi_arm = False

    C: float
    p: float
    kernel: str
    gamma: float | str
    degree: float
    coef0: float
    n_components: int | None
    standardize: bool
    tol: float
    max_iter: int
    random_state: Any

    encoder_: LinearEncoder | None
    kernel_map_: KernelMap | None

    def _check_common(self, C: Any) -> None:
        positive("C", C)
        positive("tol", self.tol)
        if not isinstance(self.max_iter, int | np.integer) or self.max_iter < 1:
            raise ValueError(f"max_iter={self.max_iter!r}: expected an integer of 1 or more")
        p = number("p", self.p)
        if p < 1.0 or 1.0 < p < LEAST_POWER or p > 10.0:
            raise ValueError(
                f"p={self.p!r}: the slack's exponent is 1 (hinge) or from {LEAST_POWER} to 10; below 1 the problem is "
                f"not convex, and between 1 and {LEAST_POWER} use p=1, which it is nearly equal to"
            )
        if self.kernel not in NAMES:
            raise ValueError(f"kernel={self.kernel!r}: expected one of {', '.join(map(repr, NAMES))}")
        if self.gamma != "scale":
            positive("gamma", self.gamma)
        positive("degree", self.degree)
        if self.n_components is not None and self.n_components < 1:
            raise ValueError(f"n_components={self.n_components!r}: expected None or a positive number of landmarks")

    def _learn_features(self, data: Experiment) -> Floats:
        """Fit the encoder and the kernel, and return the matrix the solver works on."""
        if self.kernel == "precomputed":
            self.encoder_ = None
            if np.isnan(data.X).any():
                raise ValueError("the precomputed kernel holds missing values: every entry must be a number")
            encoded = data.X
        else:
            self.encoder_ = LinearEncoder.fit(data.X, data.schema, data.weight, standardize=self.standardize)
            encoded = self.encoder_.transform(data.X)
        self.kernel_map_ = None
        if self.kernel == "linear":
            return encoded
        rng = np.random.default_rng(int(make_seed(self.random_state)))
        self.kernel_map_ = KernelMap.fit(
            encoded, self.kernel, self.gamma, float(self.degree), float(self.coef0), self.n_components, rng
        )
        return np.ascontiguousarray(self.kernel_map_.against_landmarks(encoded) @ self.kernel_map_.projection)

    def _solve(
        self,
        features: Floats,
        z: Floats,
        cost: Floats,
        energy: EnergyTerm | None = None,
        start: tuple[Floats, Floats] | None = None,
    ) -> MarginSolution:
        problem = MarginProblem(power=float(self.p), tol=self.tol, max_iter=int(self.max_iter))
        return _solve.solve(problem, MarginData(features, z, cost), energy, start)

    def _adopt(self, solution: MarginSolution, rows: Indices, data: Experiment) -> None:
        """Set the fitted attributes; ``rows`` are the training rows the solution speaks of."""
        if not solution.gap <= self.tol:
            warnings.warn(
                f"{type(self).__name__} stopped at a relative gap of {solution.gap:.2g} after {solution.iterations} "
                f"iterations, tol is {self.tol:.2g}: raise max_iter, or check the scale of C and of the columns",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.objective_, self.dual_bound_ = float(solution.objective), float(solution.dual_bound)
        self.dual_gap_, self.n_iter_ = float(solution.gap), int(solution.iterations)
        self.solver_ = solution.solver
        total = solution.alpha.sum(axis=0)
        self.support_ = rows[total > 1e-9 * max(float(total.max(initial=0.0)), 1e-300)]
        self._set_planes(
            solution.coef, solution.intercepts, np.stack([solution.intercept_low, solution.intercept_high], axis=1)
        )
        self._name_coefficients(data.schema)

    def _set_planes(self, w: Floats, b: Floats, interval: Floats) -> None:
        """Keep the solver's w and b, and show them in the user's columns."""
        self._w, self._b, self._interval = w, b, interval
        shift = 0.0
        if self.kernel == "linear":
            assert self.encoder_ is not None
            self.coef_ = w / self.encoder_.scale
            shift = float(self.coef_ @ self.encoder_.mean)
        self.intercepts_ = b + shift
        self.intercept_intervals_ = interval + shift

    def _name_coefficients(self, schema: Any) -> None:
        if self.kernel == "linear" and self.encoder_ is not None:
            self.coef_names_ = self.encoder_.names(schema)

    def _decision(self, X: Floats) -> Floats:
        """x·w for every row, in the coordinates of ``_b``."""
        encoded = X if self.encoder_ is None else self.encoder_.transform(X)
        if self.kernel_map_ is None:
            return np.asarray(encoded @ self._w)
        return np.asarray(self.kernel_map_.against_landmarks(encoded) @ (self.kernel_map_.projection @ self._w))

    def _predict(self, X: Floats) -> Floats:
        return np.asarray(self._decision(X) - self._b.mean())[:, None]

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
        self.support_ = np.asarray(state["support"], dtype=np.intp)
        self.objective_, self.dual_bound_ = float(state["objective"]), float(state["dual_bound"])
        self.dual_gap_, self.n_iter_ = float(state["dual_gap"]), int(state["n_iter"])
        self.solver_ = str(state["solver"])
        self._set_planes(w, b, interval)
        self._name_coefficients(self._schema)


def number(name: str, value: Any) -> float:
    """A finite number, or an error that names the parameter."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not np.isfinite(value):
        raise ValueError(f"{name}={value!r}: expected a finite number")
    return float(value)


def positive(name: str, value: Any) -> float:
    """A finite number above 0, or an error that names the parameter."""
    if number(name, value) <= 0.0:
        raise ValueError(f"{name}={value!r}: expected a number above 0")
    return float(value)
