"""Where w = 0 is optimal: what ranks instead, and what is said about it.

For p = 1 and weak effects no hyperplane beats one decision for everybody: w = 0 is the exact optimum (Lemma 3.4.2), and the
direction from which a solver comes to it is residue. Whether that is so is decided by one fixed test, whatever ``tol``
(``_problem.certified``). The scores then rank by the solution at p = 1.2 with the same rows and costs, the dissertation's own
remedy: it is unique, so it depends neither on ``tol`` nor on the solver nor on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from upturn._arrays import Floats
from upturn._parameters import one_of
from upturn._sparse import SparseMatrix
from upturn.svm._problem import MarginSolution
from upturn.svm._solve import Prepared, Start

AT_ZERO = one_of("rank", "zero")
POWER = 1.2
FAINT = 1e-7  # range of scores below which they are shown on another scale
TOL = 1e-11  # its direction is then the same to some 6 digits from any start


class Scored(Protocol):
    """What is asked about the scores x·w of the training rows."""

    def moments(self, w: Floats) -> tuple[float, float]:
        """Their weighted mean and standard deviation."""

    def range(self, w: Floats) -> float:
        """The largest less the smallest."""


@dataclass(frozen=True)
class Local:
    """Rows in memory (see ``Scored``)."""

    features: Floats
    weight: Floats

    def moments(self, w: Floats) -> tuple[float, float]:
        """See ``Scored``."""
        scores = self.features @ w
        middle = float(np.average(scores, weights=self.weight))
        scores -= middle
        return middle, float(np.sqrt(np.average(scores**2, weights=self.weight)))

    def range(self, w: Floats) -> float:
        """See ``Scored``."""
        return float(np.ptp(self.features @ w))


class VanishingWarning(UserWarning):
    """The machine's exact optimum is w = 0: it has one answer for everybody."""


@dataclass(frozen=True)
class Ranking:
    """Scores x·w - middle, of mean 0 and standard deviation 1 on the training rows."""

    w: Floats
    middle: float

    @classmethod
    def of(cls, solution: MarginSolution, scored: Scored) -> Ranking | None:
        """The scores of a solution brought to their scale; None if it, too, gives everybody the same."""
        middle, spread = scored.moments(solution.coef)
        if not spread > 0.0:
            return None
        return cls(solution.coef / spread, middle / spread)

    def get_state(self) -> dict[str, Any]:
        """For a saved model."""
        return {"w": self.w, "middle": self.middle}

    @classmethod
    def from_state(cls, state: dict[str, Any], size: int) -> Ranking:
        """Rebuild and check what was read from a file."""
        w, middle = np.asarray(state["w"]), float(state["middle"])
        if w.shape != (size,) or w.dtype != np.float64 or not np.isfinite(w).all() or not np.isfinite(middle):
            raise ValueError("the ranking does not fit the columns")
        return cls(w, middle)


def rank(
    at_zero: str, solution: MarginSolution, scored: Scored, neighbour: Callable[[], MarginSolution]
) -> tuple[Ranking | None, MarginSolution | None]:
    """What ranks where w = 0 is optimal or too short to see, None elsewhere; and the ``neighbour``, if it was asked for."""
    if solution.solver == "one-sided" or at_zero == "zero":
        return None, None
    if not solution.vanishing:
        return (Ranking.of(solution, scored) if _faint(solution, scored) else None), None
    found = neighbour()
    return Ranking.of(found, scored), found


def _faint(solution: MarginSolution, scored: Scored) -> bool:
    """Whether w is not 0 but so short that its scores would drown in the rounding of the intercepts.

    For p > 1 and labels of n₁ and n₂ rows, w is of the order (n₂/n₁)^(1/(p - 1)), n₂ the fewer: 200 to 1 is 3e-12 at p = 1.2.
    """
    return bool(np.any(solution.coef)) and scored.range(solution.coef) < FAINT


def smooth_neighbour(prepared: Prepared, cost: Floats, start: Start | None = None) -> MarginSolution:
    """The solution at p = 1.2 with the same rows and costs."""
    return prepared.with_power(POWER, TOL).solve(cost, start)


def explain(name: str, point: str, p: float, solution: MarginSolution, ranking: Ranking | None, varies: bool) -> str:
    """The sentence of the warning: what was found, what predict does now, and what to do."""
    if p > 1.0 and ranking is not None:
        return (
            f"{name}: one label is so rare that w is too short to see (p={p:g}, {point}). predict gives its scores scaled to a "
            "standard deviation of 1; signs and recommendations are the same for everybody. Take p=2, or group_average=True "
            "where one arm is small"
        )
    if p > 1.0 or solution.solver == "one-sided" or not varies:
        if solution.solver == "one-sided":
            why = "all rows have the same label (success with the treatment is that of failure without it)"
        else:
            why = "no column varies" if not varies else "the columns have nothing to do with the labels"
        return f"{name} gives everybody the same score, as {why}: other rows or other columns are needed"
    now = (
        "predict gives 0"
        if ranking is None
        else f"predict ranks by the solution at p={POWER:g} instead, scaled to a standard deviation of 1"
    )
    return (
        f"{name}: with p=1 and {point} the best w is 0, as no hyperplane beats one answer for everybody (the effect is weak "
        f"beside the noise, or one label is rare). {now}; signs and recommendations are the same for everybody. Take p={POWER:g} "
        "or more for a machine whose coefficients are not 0"
    )


def varies(X: Floats) -> bool:
    """Whether any column has two values."""
    if isinstance(X, SparseMatrix):
        return bool((X.max(axis=0) - X.min(axis=0)).count_nonzero())
    return any(np.nanmin(column, initial=np.inf) < np.nanmax(column, initial=-np.inf) for column in X.T)
