"""Naive twins of what is done by cluster."""

from __future__ import annotations

import numpy as np


def replicate_rows(groups, weight, unit, counts):
    """Rows of the table in which every cluster stands as often as its unit was drawn."""
    rows = []
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        counted = members if weight is None else members[weight[members] > 0]
        if len(counted):
            rows += counted.tolist() * int(counts[unit[counted[0]]])
    return np.array(rows)
