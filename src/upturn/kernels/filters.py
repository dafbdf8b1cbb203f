"""Scoring binned features for uplift: how far the arms are from control, bin by bin.

The divergences are those of the tree criteria.
"""

from __future__ import annotations

from upturn.kernels._jit import F8_2, b1, f8, i8, kernel
from upturn.kernels.criteria import difference


@kernel(f8, i8, b1, F8_2, F8_2)
def bin_divergence(code, binary, weight, total):
    """Sum over bins of the bin's share of the weight times the divergence of each arm from control.

    ``weight[bin, arm]`` and ``total[bin, arm]`` are sums of weights and of weighted outcomes, control first. An arm
    without rows in a bin tells nothing there.
    """
    everything = 0.0
    for b in range(weight.shape[0]):
        for a in range(weight.shape[1]):
            everything += weight[b, a]
    score = 0.0
    for b in range(weight.shape[0]):
        if weight[b, 0] <= 0.0:
            continue
        of_bin = 0.0
        for a in range(weight.shape[1]):
            of_bin += weight[b, a]
        control = total[b, 0] / weight[b, 0]
        for a in range(1, weight.shape[1]):
            if weight[b, a] > 0.0:
                score += of_bin / everything * difference(code, binary, total[b, a] / weight[b, a], control)
    return score
