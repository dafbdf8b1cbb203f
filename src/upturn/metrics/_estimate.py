"""A number that carries its own uncertainty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast, overload

import numpy as np
from scipy.special import ndtr, ndtri

from upturn._arrays import Floats
from upturn._results import level_text, number_text
from upturn._rows import same_rows


class SmallSampleWarning(UserWarning):
    """An arm has so few rows, or there are so few clusters, that an interval says little."""


def reach_of(interval: float) -> float:
    """Standard errors from the middle of an interval of some confidence level to its end."""
    return float(ndtri(0.5 + interval / 2))


def _deviation(samples: Floats) -> float:
    """Their standard deviation; of numbers whose squares do not fit a float, taken in other units."""
    unit = float(np.abs(samples).max())
    if unit == 0 or 1e-140 < unit < 1e140:
        return float(np.std(samples, ddof=1))
    return float(np.std(samples / unit, ddof=1)) * unit


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
    reduction : float or None
        By what share the standard error is smaller than it would be without ``response``; None where nothing was adjusted.
    """

    se: float
    low: float
    high: float
    interval: float
    samples: Floats
    reduction: float | None

    def __new__(cls, value: float, samples: Floats, interval: float, reduction: float | None = None) -> Estimate:
        """Make one from the value on the data itself and its replicates."""
        self = super().__new__(cls, value)
        defined = samples[np.isfinite(samples)]
        self.se = _deviation(defined) if np.isfinite(value) and len(defined) > 1 else float("nan")
        z = reach_of(interval)
        self.low, self.high = value - z * self.se, value + z * self.se
        self.interval, self.samples, self.reduction = interval, samples, reduction
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
        low, high = number_text(self.low), number_text(self.high)
        interval = "no interval" if np.isnan(self.se) else f"{level_text(self.interval)} interval {low} to {high}"
        return f"{number_text(float(self))} ({interval}{'' if self.reduction is None else ', ' + reduction_text(self.reduction)})"

    def times(self, scale: float) -> Estimate:
        """The same in other units."""
        return Estimate(scale * float(self), scale * self.samples, self.interval, self.reduction)

    def __reduce__(self) -> tuple[Any, ...]:
        return Estimate, (float(self), self.samples, self.interval, self.reduction)


def reduction_text(reduction: float) -> str:
    """What adjustment did to a standard error."""
    if not np.isfinite(reduction):
        return "adjusted"
    return f"error {abs(reduction):.0%} {'larger' if reduction < -0.005 else 'smaller'} by response"


class MetricFunction(Protocol):
    """A metric: a float, or an :class:`Estimate` when an interval is asked for."""

    __name__: str

    @overload
    def __call__(self, *arguments: Any, interval: None = ..., **options: Any) -> float: ...

    @overload
    def __call__(self, *arguments: Any, interval: float, **options: Any) -> Estimate: ...


def metric(function: Callable[..., float]) -> MetricFunction:
    """A function of rows in the same order; ``interval=`` turns its float into an Estimate, which type checkers are told."""
    return cast(MetricFunction, same_rows(function))
