"""Sums over all pairs of rows, in O(n log n): the pairwise hinge of SVM-upl and the energy distance.

Both take one score per row and the order that sorts the scores; neither ever visits a pair.
"""

from __future__ import annotations

import math

import numpy as np

from upturn.kernels._jit import F8, I8, F8_out, I8_out, f8, i8, kernel, void


@kernel(f8, F8, F8, F8, F8, F8_out, F8_out)
def pair_hinge(high, high_weight, low, low_weight, high_slope, low_slope):
    """Σ_ij w_i w_j max(0, 1 - (high_i - low_j)) for ascending scores, and its slope in every score.

    The low rows that row i of ``high`` pays for are those with low_j > high_i - 1. As high_i grows they only drop
    out, so a running weight and a running sum of scores suffice; the slopes in the low scores follow the same way.
    """
    active = 0.0  # weight and weighted score of the low rows still paid for
    moment = 0.0
    for j in range(low.shape[0]):
        active += low_weight[j]
        moment += low_weight[j] * low[j]
    loss = 0.0
    behind = 0
    for i in range(high.shape[0]):
        while behind < low.shape[0] and low[behind] <= high[i] - 1.0:
            active -= low_weight[behind]
            moment -= low_weight[behind] * low[behind]
            behind += 1
        if behind == low.shape[0]:  # exactly nothing: no rounding is left over
            active = 0.0
            moment = 0.0
        loss += high_weight[i] * ((1.0 - high[i]) * active + moment)
        high_slope[i] = -high_weight[i] * active
    reached = 0.0  # weight of the high rows that pay for row j
    ahead = 0
    for j in range(low.shape[0]):
        while ahead < high.shape[0] and not low[j] <= high[ahead] - 1.0:
            reached += high_weight[ahead]
            ahead += 1
        low_slope[j] = low_weight[j] * reached
    return loss


@kernel(void, F8, F8, f8, I8_out, I8_out)
def pair_windows(high, low, width, first, last):
    """For ascending scores, the low rows of each high row with |1 - (high_i - low_j)| < width: first <= j < last."""
    left = 0
    right = 0
    for i in range(high.shape[0]):
        while left < low.shape[0] and low[left] <= high[i] - 1.0 - width:
            left += 1
        right = max(right, left)
        while right < low.shape[0] and low[right] < high[i] - 1.0 + width:
            right += 1
        first[i] = left
        last[i] = right


@kernel(void, F8, F8, I8, I8, F8, i8, F8_out)
def stretch_sums(scores, weight, first, last, origin, most, inside):
    """inside_i = Σ weight_j (scores_j - origin_i) over first_i <= j < last_i, for ascending scores and bounds.

    Scores of a stretch are close to each other, so they are summed as differences from its first. Neighbours often share
    their stretch, which is then summed once. Where all stretches together hold more than ``most`` rows, they are
    differences of running sums.
    """
    n = scores.shape[0]
    rows = 0
    for i in range(first.shape[0]):
        if i == 0 or first[i] != first[i - 1] or last[i] != last[i - 1]:
            rows += last[i] - first[i]
    before = np.empty(n + 1 if rows > most else 0)
    moment = np.empty(n + 1 if rows > most else 0)
    if rows > most:
        before[0] = 0.0
        moment[0] = 0.0
        for j in range(n):
            before[j + 1] = before[j] + weight[j]
            moment[j + 1] = moment[j] + weight[j] * scores[j]
    total = 0.0
    apart = 0.0
    for i in range(first.shape[0]):
        begin = first[i]
        end = last[i]
        if end <= begin:
            inside[i] = 0.0
            continue
        lowest = scores[begin]
        if i == 0 or begin != first[i - 1] or end != last[i - 1]:
            if rows > most:
                total = before[end] - before[begin]
                apart = moment[end] - moment[begin] - lowest * total
            else:
                total = 0.0
                apart = 0.0
                for j in range(begin, end):
                    total += weight[j]
                    apart += weight[j] * (scores[j] - lowest)
        inside[i] = apart + total * (lowest - origin[i])


@kernel(void, F8, F8, f8, F8_out)
def energy_field(s, c, beta, field):
    """field_i = Σ_j c_j sign(s_i - s_j) |s_i - s_j|^beta for ascending s, 0 <= beta < 1, in O(n K), K about 100.

    For beta = 0 running sums do. Otherwise t^beta is β/Γ(1-β) ∫ (1 - e^{-ut}) u^{-β-1} du, taken by the trapezoidal
    rule in log u (spectrally accurate, about 1e-13) at nodes u, √2u, 2u, ... For one node the sums over j < i follow a
    recursion along the sorted scores, A_{i+1} = A_i + g (P_{i+1} - A_i) with g = 1 - e^{-u gap} and P the sum of the
    c's so far, which never cancels; and g doubles its node by g (2 - g), so no exponential is ever evaluated. Both
    infinite tails of the rule are geometric series. Ties have gap 0, hence g = 0: they are exact.
    """
    n = s.shape[0]
    spread = s[n - 1] - s[0] if n else 0.0
    for i in range(n):
        field[i] = 0.0
    if not spread > 0.0:
        return

    # The part that is the same for every pair of different scores: sums below minus sums above.
    scale = 1.0
    octaves = 0
    first = 2.0**-14
    total = 0.0
    for i in range(n):
        total += c[i]
    if beta > 0.0:
        smallest = 1.0
        for i in range(1, n):
            gap = (s[i] - s[i - 1]) / spread
            if gap > 0.0:
                smallest = min(smallest, gap)
        octaves = min(14 + math.ceil(math.log2(40.0 / smallest)), 100)
        base = beta / math.gamma(1.0 - beta) * 0.5 * math.log(2.0)
        fall = 2.0 ** (-0.5 * beta)
        scale = base * (first * 2.0**octaves) ** (-beta) / (1.0 - fall)
    below = 0.0
    start = 0
    while start < n:
        stop = start
        tied = 0.0
        while stop < n and s[stop] == s[start]:
            tied += c[stop]
            stop += 1
        for i in range(start, stop):
            field[i] = scale * (below - (total - below - tied))
        below += tied
        start = stop
    if beta == 0.0:
        return

    # The lower tail: 1 - e^{-ut} = ut - (ut)²/2 for the nodes below the first.
    rise1 = 2.0 ** (0.5 * (1.0 - beta))
    rise2 = 2.0 ** (0.5 * (2.0 - beta))
    tail1 = base * first ** (1.0 - beta) / (rise1 - 1.0)
    tail2 = 0.5 * base * first ** (2.0 - beta) / (rise2 - 1.0)
    all1 = 0.0
    all2 = 0.0
    for i in range(n):
        x = (s[i] - s[0]) / spread
        all1 += c[i] * x
        all2 += c[i] * x * x
    left0 = 0.0
    left1 = 0.0
    left2 = 0.0
    for i in range(n):
        x = (s[i] - s[0]) / spread
        field[i] += tail1 * (x * total - all1)
        odd0 = 2.0 * left0 - total  # left minus right; the row itself has distance 0
        odd1 = 2.0 * left1 - all1
        odd2 = 2.0 * left2 - all2
        field[i] -= tail2 * (x * x * odd0 - 2.0 * x * odd1 + odd2)
        left0 += c[i]
        left1 += c[i] * x
        left2 += c[i] * x * x

    even = np.empty(octaves)
    odd = np.empty(octaves)
    for k in range(octaves):
        even[k] = base * (first * 2.0**k) ** (-beta)
        odd[k] = even[k] * fall
    a = np.zeros(octaves)
    b = np.zeros(octaves)
    for direction in range(2):
        for k in range(octaves):
            a[k] = 0.0
            b[k] = 0.0
        seen = 0.0
        sign = 1.0 if direction == 0 else -1.0
        for step in range(1, n):
            here = step if direction == 0 else n - 1 - step
            last = here - 1 if direction == 0 else here + 1
            seen += c[last]
            y = first * abs(s[here] - s[last]) / spread
            ga = y * (1.0 - y * (0.5 - y * (1.0 / 6.0 - y / 24.0)))
            y *= math.sqrt(2.0)
            gb = y * (1.0 - y * (0.5 - y * (1.0 / 6.0 - y / 24.0)))
            sum_a = 0.0
            sum_b = 0.0
            for k in range(octaves):
                a[k] += ga * (seen - a[k])
                sum_a += even[k] * a[k]
                ga = ga * (2.0 - ga)
                b[k] += gb * (seen - b[k])
                sum_b += odd[k] * b[k]
                gb = gb * (2.0 - gb)
            field[here] += sign * (sum_a + sum_b)
    scale = spread**beta
    for i in range(n):
        field[i] *= scale
