"""A number that carries its own uncertainty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast, overload

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri


class Estimate(float):
    """A float with a standard error and an interval.

    It is an ordinary float in every computation; arithmetic gives plain floats.

    Attributes
    ----------
    se : float
        Standard error, the spread of the replicates.
    low, high : float
        Ends of the interval, value ± z·se.
    level : float
        Its confidence level.
    samples : array of shape (n_bootstrap,)
        The value on every replicate of the data.
    """

    se: float
    low: float
    high: float
    level: float
    samples: NDArray[np.float64]

    def __new__(cls, value: float, samples: NDArray[np.float64], level: float) -> Estimate:
        """Make one from the value on the data itself and its replicates."""
        self = super().__new__(cls, value)
        self.se = float(np.std(samples, ddof=1))
        z = float(ndtri(0.5 + level / 2))
        self.low, self.high = value - z * self.se, value + z * self.se
        self.level, self.samples = level, samples
        return self

    @property
    def p_value(self) -> float:
        """Two-sided p-value of the hypothesis that the true value is 0, by the normal approximation."""
        if self.se == 0:
            return 1.0 if float(self) == 0 else 0.0
        return float(2 * ndtr(-abs(self) / self.se))

    def __repr__(self) -> str:
        return f"{float(self):.4g} ({self.level:.0%} interval {self.low:.4g} to {self.high:.4g})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Estimate, (float(self), self.samples, self.level)


class Metric(Protocol):
    """A metric: a float, or an :class:`Estimate` when an interval is asked for."""

    __name__: str

    @overload
    def __call__(self, *arguments: Any, interval: None = ..., **options: Any) -> float: ...

    @overload
    def __call__(self, *arguments: Any, interval: float, **options: Any) -> Estimate: ...


def metric(function: Callable[..., float]) -> Metric:
    """Tell type checkers that ``interval=`` turns the float into an Estimate; the function itself is left as it is."""
    return cast(Metric, function)


def rows_by_stratum(codes: NDArray[np.uint8], n: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Row numbers listed stratum by stratum, and where each starts: what a stratified bootstrap draws from."""
    starts = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=n))))
    return np.argsort(codes, kind="stable").astype(np.uint32), starts.astype(np.int64)


def check_replicates(n_bootstrap: int) -> None:
    """Refuse a number of replicates that has no spread."""
    if n_bootstrap < 2:
        raise ValueError(f"n_bootstrap={n_bootstrap}: a standard error needs at least 2 replicates, 200 is usual")


def check_level(interval: float) -> float:
    """The confidence level of an interval, checked."""
    if isinstance(interval, bool) or not 0 < interval < 1:
        raise ValueError(f"interval={interval!r}: expected a confidence level between 0 and 1, such as 0.95")
    return float(interval)
