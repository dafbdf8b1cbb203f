"""A number that carries its own uncertainty."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any, Protocol, cast, overload

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from upturn._arrays import Floats, Ints


class SmallSampleWarning(UserWarning):
    """An arm has so few rows that an interval says little."""


class Estimate(float):
    """A float with a standard error and an interval.

    It is an ordinary float in every computation; arithmetic gives plain floats. Where the number is not defined on the
    data it is NaN, and so are its error and interval.

    Attributes
    ----------
    se : float
        Standard error, the spread of the replicates; those on which the number is not defined are left out.
    low, high : float
        Ends of the interval, value ± z·se.
    interval : float
        Its confidence level.
    samples : array of shape (n_bootstrap,)
        The value on every replicate of the data.
    """

    se: float
    low: float
    high: float
    interval: float
    samples: Floats

    def __new__(cls, value: float, samples: Floats, interval: float) -> Estimate:
        """Make one from the value on the data itself and its replicates."""
        self = super().__new__(cls, value)
        defined = samples[np.isfinite(samples)]
        self.se = float(np.std(defined, ddof=1)) if np.isfinite(value) and len(defined) > 1 else float("nan")
        z = float(ndtri(0.5 + interval / 2))
        self.low, self.high = value - z * self.se, value + z * self.se
        self.interval, self.samples = interval, samples
        return self

    @property
    def p_value(self) -> float:
        """Two-sided p-value of the hypothesis that the true value is 0, by the normal approximation; NaN without an error."""
        if self.se == 0:
            return 1.0 if float(self) == 0 else 0.0
        return float(2 * ndtr(-abs(self) / self.se))

    def __repr__(self) -> str:
        if np.isnan(self):
            return "nan (not defined on these data)"
        interval = (
            "no interval" if np.isnan(self.se) else f"{self.interval:.0%} interval {self.low:.4g} to {self.high:.4g}"
        )
        return f"{float(self):.4g} ({interval})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Estimate, (float(self), self.samples, self.interval)


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


def rows_by_stratum(codes: NDArray[np.uint8], n: int, weight: Floats | None = None) -> tuple[NDArray[np.uint32], Ints]:
    """Row numbers listed stratum by stratum, and where each starts: what a stratified bootstrap draws from.

    Rows of no weight are not listed: a replicate that drew nothing else of an arm would have nothing to say.
    """
    if weight is not None and not weight.all():
        rows = np.flatnonzero(weight)
        order, starts = rows_by_stratum(codes[rows], n)
        return rows[order].astype(np.uint32), starts
    starts = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=n))))
    return np.argsort(codes, kind="stable").astype(np.uint32), starts.astype(np.int64)


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn, pointing at the line outside the library that called it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("upturn."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def check_replicates(n_bootstrap: int) -> None:
    """Refuse a number of replicates that has no spread."""
    if isinstance(n_bootstrap, bool) or not isinstance(n_bootstrap, int | np.integer):
        raise ValueError(f"n_bootstrap={n_bootstrap!r}: expected a whole number of replicates, such as 200")
    if n_bootstrap < 2:
        raise ValueError(f"n_bootstrap={n_bootstrap}: a standard error needs at least 2 replicates, 200 is usual")


def check_level(interval: float) -> float:
    """The confidence level of an interval, checked."""
    number = isinstance(interval, int | float | np.number) and not isinstance(interval, bool)
    if not number or not 0 < interval < 1:
        raise ValueError(f"interval={interval!r}: expected a confidence level between 0 and 1, such as 0.95")
    return float(interval)
