"""Replicates of an experiment: the one object that says how many, under which seed, and what interval they make.

Every public function that resamples makes one at its gate, from ``interval``, ``n_bootstrap``, ``random_state``,
``n_jobs`` and ``groups``, and hands it down. A replicate is known by its number and the seed alone, so all models, metrics and threads
see the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from upturn._arrays import Floats, Indices
from upturn._clusters import read_clusters
from upturn._parallel import run_parallel
from upturn._parameters import INTERVAL, JOBS, NONE, SEED, check, whole
from upturn._seeds import make_seed
from upturn.metrics._estimate import Estimate, reach_of

Result = TypeVar("Result")

_ENOUGH = whole(least=2).named("a whole number of replicates of at least 2; 200 is usual")
BLOCK = 16  # replicates a thread makes in one go; fixed, so that the result does not depend on the number of threads


@dataclass(frozen=True)
class Replicates:
    """How often the data are drawn again, and the interval that is made of it.

    Attributes
    ----------
    interval : float
        Confidence level.
    n : int
        Number of replicates.
    seed : uint64
        What their draws depend on.
    n_jobs : int or None
        Threads; the draws do not depend on it.
    clusters : array or None
        The cluster of every row, where clusters are drawn and not rows.
    """

    interval: float
    n: int
    seed: np.uint64
    n_jobs: int | None = None
    clusters: Indices | None = None

    @classmethod
    def read(
        cls, interval: float | None, n_bootstrap: int, random_state: Any, n_jobs: int | None = None, groups: Any = None
    ) -> Replicates | None:
        """What people passed, checked; None where no interval is asked for."""
        check("n_bootstrap", n_bootstrap, _ENOUGH)
        check("interval", interval, INTERVAL | NONE)
        check("random_state", random_state, SEED)
        check("n_jobs", n_jobs, JOBS)
        clusters = None if groups is None else read_clusters(groups)
        if interval is None:
            return None
        return cls(float(interval), int(n_bootstrap), make_seed(random_state), n_jobs, clusters)

    @property
    def z(self) -> float:
        """Standard errors from the middle of the interval to its end."""
        return reach_of(self.interval)

    def estimate(self, value: float, samples: Floats, before: float | None = None) -> Estimate:
        """A number with its interval, from its value on every replicate; ``before`` is the same one before adjustment."""
        reduction = 1 - Estimate(value, samples, self.interval).se / before.se if isinstance(before, Estimate) else None
        return Estimate(value, samples, self.interval, reduction)

    def spread(self, samples: Floats) -> Floats:
        """Standard deviation of every column over the replicates (rows) on which it is defined."""
        defined = np.isfinite(samples)
        if defined.all():
            return np.asarray(samples.std(axis=0, ddof=1))
        count = defined.sum(axis=0)
        mean = np.where(defined, samples, 0.0).sum(axis=0) / np.maximum(count, 1)
        square = np.where(defined, (samples - mean) ** 2, 0.0).sum(axis=0)
        return np.where(count > 1, np.sqrt(square / np.maximum(count - 1, 1)), np.nan)

    def map(self, function: Callable[[range], Result]) -> list[Result]:
        """``function`` of the numbers of the replicates, a block at a time, on threads; results in their order."""
        blocks = [range(first, min(first + BLOCK, self.n)) for first in range(0, self.n, BLOCK)]
        return run_parallel(function, blocks, n_jobs=self.n_jobs)
