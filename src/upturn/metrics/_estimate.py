"""A number that carries its own uncertainty, and the bootstrap that finds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from upturn._run import run_parallel
from upturn._target import Target

_BLOCK = 25  # replicates a kernel call makes: long enough to be worth a call, short enough for Ctrl-C


class Estimate(float):
    """A float with a standard error and an interval.

    It is an ordinary float in every computation; arithmetic gives plain floats.

    Attributes
    ----------
    se : float
        Bootstrap standard error.
    low, high : float
        Ends of the interval, value ± z·se.
    level : float
        Its confidence level.
    samples : array of shape (n_bootstrap,)
        The bootstrap replicates.
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

    def __repr__(self) -> str:
        return f"{float(self):.4g} ({self.level:.0%} interval {self.low:.4g} to {self.high:.4g})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Estimate, (float(self), self.samples, self.level)


def rows_by_arm(target: Target) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Row numbers listed arm by arm, and where each arm starts: what a stratified bootstrap draws from."""
    starts = np.concatenate(([0], np.cumsum(np.bincount(target.arm, minlength=target.n_arms + 1))))
    return np.argsort(target.arm, kind="stable").astype(np.uint32), starts.astype(np.int64)


def bootstrap(
    block: Callable[[int, NDArray[np.float64]], None], n_bootstrap: int, n_jobs: int | None
) -> NDArray[np.float64]:
    """Replicates 0 … n_bootstrap - 1, in blocks of a fixed size that do not depend on the number of threads.

    ``block(first, out)`` writes replicates first, first + 1, … into ``out``.
    """
    if n_bootstrap < 2:
        raise ValueError(f"n_bootstrap={n_bootstrap}: a standard error needs at least 2 replicates, 200 is usual")
    samples = np.empty(n_bootstrap)
    firsts = range(0, n_bootstrap, _BLOCK)
    run_parallel(lambda first: block(first, samples[first : first + _BLOCK]), firsts, n_jobs=n_jobs)
    return samples


def check_level(interval: float) -> float:
    """The confidence level of an interval, checked."""
    if isinstance(interval, bool) or not 0 < interval < 1:
        raise ValueError(f"interval={interval!r}: expected a confidence level between 0 and 1, such as 0.95")
    return float(interval)
