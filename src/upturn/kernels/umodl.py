"""The UMODL criterion: what a partition of one feature costs, in nats.

A feature is reduced to *boundary points*: ``counts[k]`` holds, for every cell (arm, class), how many rows lie before
point ``k``. Rows between two points are then a subtraction away, and no kernel ever looks at a row again::

    value   1.0  1.2  1.2  1.5  2.0  2.4
    cell     a    a    b    b    b    c          cell = arm * n_classes + class
    points ^                   ^         ^  ^    only here can an optimal cut be (see ``umodl_points``)

The cost of an interval is the cheaper of two descriptions (one distribution of the outcome, or one for each arm), so
the flag W of the paper never has to be searched. The cost of a partition is the sum over its intervals plus a prior
that depends on their number alone (``interval_prior``, ``group_prior``).
"""

from __future__ import annotations

import math

import numpy as np

from upturn.kernels._jit import F8, I4_2, I8, F8_out, f8, i8, inner, kernel, void

BLOCK = 1024  # log-factorials are made in blocks of so many, each with its own anchor, so rounding errors do not add up
STIRLING = 1 << 16  # from here on by Stirling's series, whose next term is below 1e-27
TOLERANCE = 1e-13  # a gain must exceed this part of the cost: a log-factorial's last bit is 3e-8 at ten million rows


@kernel(void, F8_out)
def fill_log_factorials(table):
    """Write log k! for every k, by sums at first and by Stirling's series beyond."""
    for n in range(min(table.shape[0], STIRLING)):
        table[n] = math.lgamma(n + 1.0) if n % BLOCK == 0 else table[n - 1] + math.log(float(n))
    constant = 0.5 * math.log(2.0 * math.pi)
    for start in range(STIRLING, table.shape[0], BLOCK):
        centre = start + 0.5 * BLOCK
        log_centre = math.log(centre)
        for n in range(start, min(start + BLOCK, table.shape[0])):
            k = float(n)
            s = (k - centre) / (k + centre)  # log(k / centre) = 2 artanh(s), and |s| < 2^-8: a loop that vectorises
            q = s * s
            log_k = log_centre + 2.0 * s * (1.0 + q * (1.0 / 3.0 + q * (1.0 / 5.0 + q * (1.0 / 7.0))))
            table[n] = ((k + 0.5) * log_k - k) + (constant + (1.0 / 12.0 - 1.0 / (360.0 * k * k)) / k)


@inner
def pooled_cost(counts, lo, hi, n_arms, n_classes, table):
    """Describe the rows between two points with one outcome distribution: line 2 of equation (2), W = 0."""
    cost = -table[n_classes - 1]
    total = 0
    for j in range(n_classes):
        of_class = 0
        for a in range(n_arms):
            of_class += counts[hi, a * n_classes + j] - counts[lo, a * n_classes + j]
        cost -= table[of_class]
        total += of_class
    return cost + table[total + n_classes - 1]


@inner
def separate_cost(counts, lo, hi, n_arms, n_classes, table):
    """Describe the rows between two points with one distribution for each arm: line 3 of equation (2), W = 1."""
    cost = -n_arms * table[n_classes - 1]
    for a in range(n_arms):
        of_arm = 0
        for j in range(n_classes):
            of_cell = counts[hi, a * n_classes + j] - counts[lo, a * n_classes + j]
            cost -= table[of_cell]
            of_arm += of_cell
        cost += table[of_arm + n_classes - 1]
    return cost


@inner
def general_cost(counts, lo, hi, n_arms, n_classes, table):
    """Return the cost of the rows between two points under the better W, without any prior on the partition."""
    return min(
        pooled_cost(counts, lo, hi, n_arms, n_classes, table),
        separate_cost(counts, lo, hi, n_arms, n_classes, table),
    )


@inner
def two_by_two_cost(counts, lo, hi, table):
    """Return the same for two arms and two classes: log C(n+1, 1) n!/(n0! n1!) = log (n+1)!/(n0! n1!).

    Small enough to be inlined and vectorised: 3 ns, where a call of ``general_cost`` takes ten times that. So loops
    choose between the two once, outside (``costs_up_to``), and only rare single intervals go through
    ``interval_cost``. Unsigned numbers spare numba's test for negative indices.
    """
    one = np.uint32(1)
    c0 = np.uint32(counts[hi, 0] - counts[lo, 0])
    c1 = np.uint32(counts[hi, 1] - counts[lo, 1])
    t0 = np.uint32(counts[hi, 2] - counts[lo, 2])
    t1 = np.uint32(counts[hi, 3] - counts[lo, 3])
    pooled = table[c0 + c1 + t0 + t1 + one] - table[c0 + t0] - table[c1 + t1]
    separate = (table[c0 + c1 + one] - table[c0] - table[c1]) + (table[t0 + t1 + one] - table[t0] - table[t1])
    return pooled if pooled < separate else separate


@inner
def interval_cost(counts, lo, hi, n_arms, n_classes, table):
    """Return the cost of one interval."""
    if n_arms == 2 and n_classes == 2:
        return two_by_two_cost(counts, lo, hi, table)
    return general_cost(counts, lo, hi, n_arms, n_classes, table)


@inner
def costs_up_to(counts, earliest, hi, n_arms, n_classes, table, out):
    """Write the costs of the intervals that end at point ``hi`` and start at ``earliest`` or later."""
    if n_arms == 2 and n_classes == 2:
        for lo in range(earliest, hi):
            out[lo] = two_by_two_cost(counts, lo, hi, table)
    else:
        for lo in range(earliest, hi):
            out[lo] = general_cost(counts, lo, hi, n_arms, n_classes, table)


@inner
def costs_of_spans(counts, span, n_arms, n_classes, table, out):
    """Write the costs of the intervals from every point to the one ``span`` further on."""
    if n_arms == 2 and n_classes == 2:
        for lo in range(counts.shape[0] - span):
            out[lo] = two_by_two_cost(counts, lo, lo + span, table)
    else:
        for lo in range(counts.shape[0] - span):
            out[lo] = general_cost(counts, lo, lo + span, n_arms, n_classes, table)


@inner
def costs_of_cutting(counts, lo, hi, first, stride, n_arms, n_classes, table, out):
    """Write what both parts of a span cost when it is cut at ``first``, ``first + stride``, ..."""
    if n_arms == 2 and n_classes == 2:
        for k in range(out.shape[0]):
            at = first + k * stride
            out[k] = two_by_two_cost(counts, lo, at, table) + two_by_two_cost(counts, at, hi, table)
    else:
        for k in range(out.shape[0]):
            at = first + k * stride
            out[k] = general_cost(counts, lo, at, n_arms, n_classes, table)
            out[k] += general_cost(counts, at, hi, n_arms, n_classes, table)


@kernel(void, I4_2, i8, i8, F8, F8_out, F8_out)
def costs_of_parts(points, n_arms, n_classes, table, pooled, separate):
    """Write both costs of the interval between every point and the next: W = 0 and W = 1."""
    for i in range(points.shape[0] - 1):
        pooled[i] = pooled_cost(points, i, i + 1, n_arms, n_classes, table)
        separate[i] = separate_cost(points, i, i + 1, n_arms, n_classes, table)


@kernel(f8, I4_2, i8, i8, F8, I8)
def costs_of_cuts(points, n_arms, n_classes, table, cuts):
    """Return the sum of the costs of the intervals between cuts, without the prior."""
    total = 0.0
    for k in range(cuts.shape[0] - 1):
        total += interval_cost(points, cuts[k], cuts[k + 1], n_arms, n_classes, table)
    return total
