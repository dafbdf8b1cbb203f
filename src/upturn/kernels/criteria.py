"""The gain of a split from per-arm statistics; one formula each.

Every criterion has one signature, ``criterion(cuts, node, rules, out)``, and fills ``out`` for many cuts of one feature
at once (loops over cuts vectorise). A new criterion is one such function and one line in ``CRITERIA``, which says what it
asks of outcomes and parameters; a new divergence is a branch of ``divergence`` and a line.

The divergence criteria compare each arm with control before and after the split (Rzepakowski and Jaroszewicz 2012):

    gain = sum_k [ sum_side P(side) D(P_k(y | side) : P_0(y | side)) - D(P_k(y) : P_0(y)) ]

and, normalised, divide by

    J = I(shares of the arms) * sum_k D(P_k(side) : P_0(side)) + sum_g share_g * I(P_g(side)) + 1/2

with I the Gini impurity (the entropy for KL). With one arm this is the published factor. ``divergence`` is shared with
the feature filters.

The contextual-treatment-selection criterion is equation (5) of Zhao, Fang and Simchi-Levi (2017), every arm, control
included, competing for the maximum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import types

from upturn.kernels._jit import F8_out, b1, f8, i8, inlined, inner

EUCLIDEAN, KL, CHI2, CTS, VARIANCE = 0, 1, 2, 3, 4
ANY_WEIGHT = 1e-300  # the smallest ``inherit_below``: only an empty arm inherits
LANES = np.uint64(16)  # cuts are looked at in whole blocks of so many: vector code takes a remainder one by one
_ONE = np.uint64(1)
TINY = 2.0**-20  # rates are kept this far from 0 and 1 where a divergence would be infinite


class Rules(NamedTuple):
    """What a tree is grown by; fixed for a whole forest."""

    criterion: int
    binary: bool  # outcomes are 0 and 1
    normalize: bool
    laplace: float  # added to both classes of a rate; 0 for real-valued outcomes
    min_split: float  # a node is terminal when every arm weighs less
    n_reg: float
    inherit_below: float  # an arm lighter than this takes its parent's estimate
    min_share: float  # of a node's weight, on either side of a split
    min_leaf: float
    min_arm: float
    min_gain: float
    max_depth: int
    max_features: int
    random_share: float
    honest: bool
    plain_leaves: bool  # values are means of a node's rows, and not the estimates its split is scored by; those of honest trees always are
    subtraction: bool


class Node(NamedTuple):
    """Per-arm weight, outcome sum and estimate of the node being split."""

    weight: object
    total: object
    mean: object


class Cuts(NamedTuple):
    """Per-arm weight and outcome sum left of each cut, for cuts ``first`` to ``last``; and room to work in.

    Both ends (uint64) are multiples of ``LANES``; a "cut" past the last code has the whole node on its left.
    """

    weight: object
    total: object
    left: object  # weight of all arms
    first: int
    last: int
    node_weight: float
    work: object


RULES = types.NamedTuple(
    (i8, b1, b1, f8, f8, f8, f8, f8, f8, f8, f8, i8, i8, f8, b1, b1, b1),
    Rules,
)
NODE = types.NamedUniTuple(F8_out, 3, Node)


@inner
def divergence(code, p, q):
    """Divergence of two success rates: squared Euclidean distance, Kullback-Leibler (nats) or chi-square."""
    if code == EUCLIDEAN:
        return 2.0 * (p - q) * (p - q)
    q = min(max(q, TINY), 1.0 - TINY)
    if code == CHI2:
        return (p - q) * (p - q) / (q * (1.0 - q))
    p = min(max(p, TINY), 1.0 - TINY)
    return p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q))


@inner
def impurity(code, p):
    """Gini impurity of (p, 1 - p), its entropy for KL."""
    if code == KL:
        return part_entropy(p) + part_entropy(1.0 - p)
    return 2.0 * p * (1.0 - p)


@inner
def part_entropy(p):
    """Entropy's term of one probability, 0 at 0."""
    return -p * math.log(p) if p > 0.0 else 0.0


@inner
def rate(weight, total, laplace, otherwise):
    """Success rate or mean; ``otherwise`` where there is nothing to average."""
    n = weight + 2.0 * laplace
    return (total + laplace) / n if n > 0.0 else otherwise


@inner
def difference(code, binary, mean, control):
    """Divergence of outcome distributions: of rates if binary, else the squared difference of means."""
    if binary:
        return divergence(code, mean, control)
    return (mean - control) * (mean - control)


# Arms outside, cuts inside, unsigned indices: the inner loops are straight runs that the compiler turns into vector code.


@inner
def divergence_gain(cuts, node, rules, out):
    """Sum over arms of the divergence from control after the split, less that before it; normalised if asked."""
    code, binary, laplace = rules.criterion, rules.binary, rules.laplace
    left0, right0, per_weight = cuts.work[0], cuts.work[1], 1.0 / cuts.node_weight
    squared = code == EUCLIDEAN or not binary
    factor = 2.0 if binary else 1.0
    n, s = node.weight[0], node.total[0]
    before0 = rate(n, s, laplace, node.mean[0])
    weight, total = cuts.weight[0], cuts.total[0]
    for c in range(cuts.first, cuts.last):
        out[c] = 0.0
        left0[c] = rate(weight[c], total[c], laplace, before0)
        right0[c] = rate(n - weight[c], s - total[c], laplace, before0)
    for a in range(1, node.weight.size):
        n, s = node.weight[a], node.total[a]
        before1 = rate(n, s, laplace, node.mean[a])
        before = difference(code, binary, before1, before0)
        weight, total = cuts.weight[a], cuts.total[a]
        if squared:  # what ``difference`` says for these, without its branches
            for c in range(cuts.first, cuts.last):
                w, t = weight[c], total[c]
                left = rate(w, t, laplace, before1) - left0[c]
                right = rate(n - w, s - t, laplace, before1) - right0[c]
                left, right = factor * left * left - before, factor * right * right - before
                share = cuts.left[c] * per_weight
                out[c] += share * left + (1.0 - share) * right
        else:
            for c in range(cuts.first, cuts.last):
                w, t = weight[c], total[c]
                left = divergence(code, rate(w, t, laplace, before1), left0[c]) - before
                right = divergence(code, rate(n - w, s - t, laplace, before1), right0[c]) - before
                share = cuts.left[c] * per_weight
                out[c] += share * left + (1.0 - share) * right
    if rules.normalize:
        divide_by_normalization(cuts, node, rules, out)


@inner
def divide_by_normalization(cuts, node, rules, out):
    """Divide gains by J, which is large for cuts that split the arms unequally or into very unequal parts."""
    code, laplace = rules.criterion, rules.laplace
    factor, control = cuts.work[0], cuts.work[1]
    node_weight = cuts.node_weight
    mixed = 0.0 if code == KL else 1.0
    for w in node.weight:
        share = w / node_weight
        mixed += part_entropy(share) if code == KL else -share * share
    for a in range(node.weight.size):
        whole = node.weight[a]
        share = whole / node_weight
        weight = cuts.weight[a]
        if a == 0:
            for c in range(cuts.first, cuts.last):
                left = _side(weight[c], whole, laplace)
                control[c] = left
                factor[c] = 0.5 + share * impurity(code, left)
        else:
            for c in range(cuts.first, cuts.last):
                left = _side(weight[c], whole, laplace)
                factor[c] += share * impurity(code, left) + mixed * divergence(code, left, control[c])
    for c in range(cuts.first, cuts.last):
        out[c] /= factor[c]


@inner
def _side(weight, whole, laplace):
    """Share of an arm that goes left, by the same correction as the rates; one half of an empty arm."""
    n = whole + 2.0 * laplace
    return (weight + laplace) / n if n > 0.0 else 0.5


@inner
def estimate(weight, total, parent, n_reg, inherit_below):
    """Response of one arm in a node, equations (3) and (4): the parent's where the arm is scarce.

    ``inherit_below`` is positive, so an empty arm always inherits.
    """
    mean = (total + parent * n_reg) / (weight + n_reg)
    return mean if weight >= inherit_below else parent


@inner
def best_response_gain(cuts, node, rules, out):
    """Equation (5): the increase of the best arm's expected response."""
    n_reg, inherit_below = rules.n_reg, rules.inherit_below
    left, right, per_weight = cuts.work[0], cuts.work[1], 1.0 / cuts.node_weight
    before, scarce = -math.inf, -math.inf  # the best estimate of all arms, and of those that are scarce everywhere
    for a in range(node.weight.size):
        mean = node.mean[a]
        before = mean if mean > before else before
        if node.weight[a] < inherit_below:
            scarce = mean if mean > scarce else scarce
    for c in range(cuts.first, cuts.last):
        left[c] = scarce
        right[c] = scarce
    for a in range(node.weight.size):
        n, s, parent = node.weight[a], node.total[a], node.mean[a]
        if n < inherit_below:
            continue
        weight, total = cuts.weight[a], cuts.total[a]
        # Weights ascend: an arm is scarce on the left of the first cuts and on the right of the last ones, and there
        # the parent's estimate spares the division, which is what this function's time goes to.
        begin, end = cuts.first, cuts.last
        while begin < cuts.last and weight[begin + LANES - _ONE] < inherit_below:
            begin += LANES
        while end > cuts.first and n - weight[end - LANES] < inherit_below:
            end -= LANES
        for c in range(cuts.first, begin):
            left[c] = parent if parent > left[c] else left[c]
        for c in range(begin, cuts.last):
            low = estimate(weight[c], total[c], parent, n_reg, inherit_below)
            left[c] = low if low > left[c] else left[c]
        for c in range(cuts.first, end):
            high = estimate(n - weight[c], s - total[c], parent, n_reg, inherit_below)
            right[c] = high if high > right[c] else right[c]
        for c in range(end, cuts.last):
            right[c] = parent if parent > right[c] else right[c]
    for c in range(cuts.first, cuts.last):
        # exactly 0 where both sides inherit, so that such cuts tie and a draw decides between them, not rounding
        share = cuts.left[c] * per_weight
        out[c] = share * (left[c] - before) + (1.0 - share) * (right[c] - before)


@inner
def variance_gain(cuts, node, rules, out):
    """What a split takes off the variance of the outcome, whatever the arms: the criterion of regression trees."""
    total, per_weight = cuts.work[0], 1.0 / cuts.node_weight
    whole = 0.0
    for c in range(cuts.first, cuts.last):
        total[c] = 0.0
    for a in range(node.weight.size):
        whole += node.total[a]
        part = cuts.total[a]
        for c in range(cuts.first, cuts.last):
            total[c] += part[c]
    for c in range(cuts.first, cuts.last):
        w, t = cuts.left[c], total[c]
        rest = cuts.node_weight - w
        apart = t / w - (whole - t) / (rest if rest > 0.0 else 1.0)
        share = w * per_weight
        out[c] = share * (1.0 - share) * apart * apart


class Criterion(NamedTuple):
    """A criterion, and what it asks of outcomes and parameters."""

    code: int
    gain: Callable[..., None]
    needs_rates: bool = False  # defined for success rates only, not for means of real-valued outcomes
    laplace: bool = True  # rates may take a Laplace correction
    inherits: bool = False  # an arm of fewer than ``min_split`` rows takes its parent's estimate
    min_gain: float = 0.0  # what a split must gain more than, unless the user says
    in_outcome_units: bool = False  # gains are differences of responses, so they scale with the outcome


CRITERIA = {
    "euclidean": Criterion(EUCLIDEAN, divergence_gain),
    "kl": Criterion(KL, divergence_gain, needs_rates=True),
    "chi2": Criterion(CHI2, divergence_gain, needs_rates=True),
    "cts": Criterion(CTS, best_response_gain, laplace=False, inherits=True, min_gain=-math.inf, in_outcome_units=True),
}
# Not for effects: the trees that predict the outcome itself, to centre it.
OF_OUTCOMES = Criterion(VARIANCE, variance_gain)


def choose_gain(criteria):
    """Make the function that fills ``out[first:last]`` with the gains under whichever criterion ``rules`` name.

    It is a chain of ifs, one for each function of the table: kernels cannot look a function up. The last function needs none.
    The chain is inlined: with calls, trees grow a tenth slower.
    """
    codes = {}
    for criterion in criteria:
        codes[criterion.gain] = (*codes.get(criterion.gain, ()), criterion.code)
    chain = None
    for function in codes:
        chain = function if chain is None else _either(codes[function], function, chain)
    return chain


def _either(codes, function, other):
    @inlined
    def either(cuts, node, rules, out):
        if rules.criterion in codes:
            function(cuts, node, rules, out)
        else:
            other(cuts, node, rules, out)

    return either


gain = choose_gain([*CRITERIA.values(), OF_OUTCOMES])
