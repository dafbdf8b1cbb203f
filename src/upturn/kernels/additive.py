"""Sums of trees: what the trained trees of a boosting model predict, from one flat table of nodes.

::

    feature      column a node looks at, -1 in a leaf
    threshold    at most this goes left; in a leaf, the value it adds
    left, right  the children, always further down the table than their parent
    missing      whether a missing value goes left
    start        where a categorical node's entries begin in ``sides``, -1 in a numeric node
    sides        for every level, 0 right, 1 left, 2 wherever a missing value goes
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import B1, F8, F8_2, I4, I8, U1, F8_out, kernel, void


@kernel(void, F8_2, I8, I4, F8, I4, I4, B1, I8, U1, F8_out)
def add_trees(X, roots, feature, threshold, left, right, missing, start, sides, out):
    """Add to ``out`` what every tree says of every row; codes in categorical columns are levels or NaN."""
    for i in range(len(X)):
        total = out[i]
        for root in roots:
            node = root
            while feature[node] >= 0:
                value = X[i, feature[node]]
                if np.isnan(value):
                    goes_left = missing[node]
                elif start[node] < 0:
                    goes_left = value <= threshold[node]
                else:
                    side = sides[start[node] + np.int64(value)]
                    goes_left = missing[node] if side == 2 else side == 1
                node = np.int64(left[node]) if goes_left else np.int64(right[node])
            total += threshold[node]
        out[i] = total
