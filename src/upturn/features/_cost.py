"""What a partition of one feature costs: the log-factorials, the priors, and the costs of parts (equation 2 of UMODL)."""

from __future__ import annotations

import functools
import math

import numpy as np

from upturn._arrays import Floats, Ints
from upturn.kernels.umodl import costs_of_parts, fill_log_factorials


@functools.lru_cache(maxsize=2)
def _table_of(size: int) -> Floats:
    table = np.empty(size)
    fill_log_factorials(table)
    table.flags.writeable = False
    return table


def log_factorials(n: int) -> Floats:
    """Return a table of log k! that reaches at least to k = n; the last two made are kept."""
    step = 1 << max(int(n).bit_length() - 3, 12)
    return _table_of((int(n) // step + 1) * step)


def part_costs(parts: Ints, n_arms: int, n_classes: int) -> tuple[Floats, Floats]:
    """Return both costs (W = 0 and W = 1) of every part, from its counts ``(parts, arms * classes)``."""
    points = np.zeros((len(parts) + 1, n_arms * n_classes), dtype=np.int32)
    np.cumsum(parts, axis=0, out=points[1:])
    pooled, separate = np.empty(len(parts)), np.empty(len(parts))
    table = log_factorials(int(points[-1].sum()) + n_classes)
    costs_of_parts(points, n_arms, n_classes, table, pooled, separate)
    return pooled, separate


@functools.lru_cache(maxsize=4)  # the columns of a table share it
def interval_prior(n: int, most: int) -> Floats:
    """Return log N + log C(N+I-1, I-1) + I log 2 for I = 1 ... most (entry 0 is infinite: no such model).

    The steps log((N+I)/I) + log 2 fall as I grows, so the prior is concave in I. The exact search rests on it.
    """
    i = np.arange(1, most, dtype=np.float64)
    prior = np.full(most + 1, np.inf)
    prior[1] = math.log(n) + math.log(2.0)
    prior[2:] = prior[1] + np.cumsum(np.log((n + i) / i) + math.log(2.0))
    prior.flags.writeable = False
    return prior


def group_prior(n_values: int, most: int) -> Floats:
    """Return log V + log B(V, I) + I log 2 for I = 1 ... most, B counting partitions into at most I groups.

    B(V, I) is a sum of Stirling numbers of the second kind, S(v, k) = k S(v-1, k) + S(v-1, k-1), kept as logarithms.
    They are log-concave in k and so are their running sums: this prior, too, is concave in I.
    """
    stirling = np.full(most + 1, -np.inf)
    stirling[0] = 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(np.arange(most + 1, dtype=np.float64))
    for _ in range(n_values):
        grown = logs + stirling
        grown[1:] = np.logaddexp(grown[1:], stirling[:-1])
        stirling = grown
    prior = np.full(most + 1, np.inf)
    i = np.arange(1, most + 1)
    prior[1:] = math.log(n_values) + np.logaddexp.accumulate(stirling[1:]) + i * math.log(2.0)
    return prior
