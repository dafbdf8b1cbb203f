"""The tests of `upturn.check` where clusters were assigned and not people: a cluster is then one row of its means."""

from __future__ import annotations

import numpy as np

from upturn._arrays import Bools, Floats, Indices
from upturn._balance import rank_pvalue


def by_cluster(values: Floats, treated: Bools, clusters: Indices) -> tuple[Floats, Bools]:
    """The mean of every cluster, and whether it was treated."""
    code = np.unique(clusters, return_inverse=True)[1]
    return np.bincount(code, values) / np.bincount(code), np.bincount(code, treated) > 0


def cluster_pvalue(values: Floats, treated: Bools, clusters: Indices) -> float:
    """P(clusters' means differ as much between the arms | clusters assigned at random), by their ranks."""
    return rank_pvalue(*by_cluster(values, treated, clusters)) if len(values) else 1.0


def cluster_pvalues(values: Floats, n_levels: int | None, treated: Bools, clusters: Indices) -> list[float]:
    """The same for what is compared of a column without missing values: its numbers, or the share of every level."""
    if n_levels is None:
        return [cluster_pvalue(values, treated, clusters)]
    found = [cluster_pvalue((values == level).astype(np.float64), treated, clusters) for level in range(n_levels)]
    return found if n_levels > 2 else found[1:] or [1.0]  # of two levels, one says it all
