"""The cuts of one feature: every one tried, the best kept.

A feature is looked at in one or more *orders* of its non-empty codes; the cuts of an order are its prefixes:

- numeric, nothing missing in the node: codes ascending;
- numeric with missing values: missing first, then missing last, so every cut is tried with them on either side;
- categorical: for each arm, codes ascending by that arm's effect in the node (missing is one more category).

Everything after that, sums, constraints, gain, maximum, is one piece of code that does not know the kind of feature.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import types

from upturn.kernels._jit import F8_2_out, F8_out, I8_out, U1_out, U8_out, inner
from upturn.kernels.criteria import LANES, Cuts, gain
from upturn.kernels.hashing import draw, uniform
from upturn.kernels.histogram import CELLS

_ONE, _TWO, _THREE = np.uint64(1), np.uint64(2), np.uint64(3)


class Scratch(NamedTuple):
    """Room for one feature's scan."""

    weight: object  # (arms, 256) running sums
    total: object
    left: object  # (256,) running sums of all arms' weights
    work: object  # (2, 256)
    gain: object  # (256,)
    word: object  # (256,) integers on their way to the sums above
    key: object  # (256,) the effect categories are ordered by
    order: object  # (256,) codes
    present: object  # (256,) non-empty codes, ascending


class Best(NamedTuple):
    """The best split found so far in a node."""

    gain: object  # [gain, weight that goes left]
    place: object  # [feature or -1, cut, categorical, an admissible cut was seen]
    goes_left: object  # (256,) which codes go left
    weight: object  # (arms,) integer sums of the rows that go left
    total: object


SCRATCH = types.NamedTuple((F8_2_out, F8_2_out, F8_out, F8_2_out, F8_out, I8_out, F8_out, U8_out, U8_out), Scratch)
BEST = types.NamedTuple((F8_out, I8_out, U1_out, I8_out, I8_out), Best)


def make_scratch(n_arms):
    """Room for scans."""
    return Scratch(
        np.empty((n_arms, CELLS)),
        np.empty((n_arms, CELLS)),
        np.empty(CELLS),
        np.empty((2, CELLS)),
        np.empty(CELLS),
        np.empty(CELLS, np.int64),
        np.empty(CELLS),
        np.empty(CELLS, np.uint64),
        np.empty(CELLS, np.uint64),
    )


def make_best(n_arms):
    """Room for a split."""
    return Best(
        np.empty(2),
        np.empty(4, np.int64),
        np.empty(CELLS, np.uint8),
        np.empty(n_arms, np.int64),
        np.empty(n_arms, np.int64),
    )


@inner
def scan_feature(key, cells, base, feature, n_codes, categorical, node, rules, layout, scratch, best):
    """Try every cut of one feature and keep the best; its histogram starts at ``cells[base]``, ``key`` decides ties."""
    n_arms = node.weight.size
    present = scratch.present
    m = _present_codes(cells, base, n_codes, n_arms, layout.n_words, scratch.word, present)
    if m < 2:
        return
    node_weight = 0.0
    for w in node.weight:
        node_weight += w
    rounding = 1e-15 * node_weight  # of differences of weights that are no integers
    least = rules.min_share * node_weight
    least = (least if least > rules.min_leaf else rules.min_leaf) - rounding
    fewest = rules.min_arm - rounding
    fewest = fewest if fewest > 0.5 * rules.min_arm else 0.5 * rules.min_arm
    gains, left = scratch.gain, scratch.left
    # Orders of the codes: categorical, by the effect of each arm; numeric, ascending with missing (code 0) first, and
    # if there is any, once more with missing last.
    ways = n_arms - 1 if categorical else (1 if present[0] != 0 else 2)
    for way in range(ways):
        order = scratch.order
        if categorical:
            _order_by_effect(cells, base, way + 1, m, node.mean, layout, present, order, scratch.key)
        elif ways == 1:
            order = present
        else:
            for i in range(m - way):
                order[i] = present[i + way]
            if way == 1:
                order[m - 1] = 0
        _running_sums(cells, base, m, order, layout, scratch)
        first, last = _admissible(left, m, node_weight, least)
        if first >= last:
            continue
        begin, end = first // LANES * LANES, _whole_lanes(last)
        gain(Cuts(scratch.weight, scratch.total, left, begin, end, node_weight, scratch.work), node, rules, gains)
        if rules.min_arm > 0.0:
            for a in range(n_arms):
                weight, whole = scratch.weight[a], node.weight[a]
                for c in range(first, last):
                    gains[c] = gains[c] if weight[c] >= fewest and whole - weight[c] >= fewest else -math.inf
        highest = _highest(gains, first, last)
        if highest > -math.inf:
            best.place[3] = 1
        if highest > best.gain[0] and highest > rules.min_gain:
            cut = _draw_among_equals(key, feature, gains, first, last, highest)
            best.gain[0] = highest
            best.gain[1] = left[cut]
            _keep(cells, base, feature, cut, m, categorical, node_weight, layout, order, best)


# Below, arms are outside and codes inside, and what depends on the step before (a running sum, a place in a list) is
# kept apart from what does not, which the compiler turns into vector code.


@inner
def _present_codes(cells, base, n_codes, n_arms, n_words, word, present):
    """List the codes that hold anything; a cell's first word, its weight, is zero only if it is empty."""
    size = np.uint64(n_codes)
    for code in range(size):
        word[code] = 0
    for a in range(n_arms):
        start = np.uint64(base + a * n_words * CELLS)
        for code in range(size):
            word[code] |= cells[start + code]
    m = np.uint64(0)
    for code in range(size):
        present[m] = code
        m += np.uint64(word[code] != 0)
    return np.int64(m)


@inner
def _whole_lanes(n):
    return (np.uint64(n) + LANES - _ONE) // LANES * LANES


@inner
def _admissible(left, m, node_weight, least):
    """Cuts with enough weight on both sides. Weights ascend, so they are a range."""
    first, last = np.uint64(0), np.uint64(m - 1)
    if left[0] < least or node_weight - left[last - _ONE] < least:
        for c in range(np.uint64(m - 1)):  # counting what lies outside vectorises, a search would not
            first += np.uint64(left[c] < least)
            last -= np.uint64(node_weight - left[c] < least)
    return first, last


@inner
def _highest(values, first, last):
    """Largest of the values, in four strands: one would wait for itself at every step."""
    a = b = c = d = -math.inf
    i = first
    four = np.uint64(4)
    while i + four <= last:
        a = values[i] if values[i] > a else a
        b = values[i + _ONE] if values[i + _ONE] > b else b
        c = values[i + _TWO] if values[i + _TWO] > c else c
        d = values[i + _THREE] if values[i + _THREE] > d else d
        i += four
    while i < last:
        a = values[i] if values[i] > a else a
        i += _ONE
    a = b if b > a else a
    c = d if d > c else c
    return c if c > a else a


@inner
def read_cell(cells, at, layout):
    """Weight and outcome sum of one cell as floats."""
    if layout.n_words == 1:
        word = cells[at]
        weight = np.float64(word >> layout.shift)
        return weight, np.float64(word & ((np.int64(1) << layout.shift) - 1)) + layout.origin * weight
    weight = cells[at] * layout.weight_unit
    return weight, cells[at + CELLS] * layout.total_unit + layout.origin * weight


@inner
def _order_by_effect(cells, base, arm, m, mean, layout, present, order, key):
    """Order the present codes by the effect of ``arm``, each mean shrunk by one row of the node's mean."""
    treated = base + arm * layout.n_words * CELLS
    for i in range(m):
        code = np.int64(present[i])
        w0, t0 = read_cell(cells, base + code, layout)
        w1, t1 = read_cell(cells, treated + code, layout)
        effect = (t1 + mean[arm]) / (w1 + 1.0) - (t0 + mean[0]) / (w0 + 1.0)
        k = i  # insertion: stable, so equal effects stay in code order
        while k > 0 and key[k - 1] > effect:
            key[k] = key[k - 1]
            order[k] = order[k - 1]
            k -= 1
        key[k] = effect
        order[k] = present[i]


@inner
def _running_sums(cells, base, m, order, layout, scratch):
    """Weights and outcome sums of the first codes of the order, arm by arm, and the weights of all arms together.

    They go on, unchanged, to a whole number of lanes.
    """
    weight_unit, total_unit = layout.weight_unit, layout.total_unit
    shift, origin = layout.shift, layout.origin
    mask = (np.int64(1) << shift) - 1
    word, left = scratch.word, scratch.left
    size, whole = np.uint64(m), _whole_lanes(m)
    for i in range(whole):
        left[i] = 0.0
    for a in range(scratch.weight.shape[0]):
        weight, total = scratch.weight[a], scratch.total[a]
        start = np.uint64(base + a * layout.n_words * CELLS)
        if layout.n_words == 1:
            running = np.int64(0)
            for i in range(size):
                running += cells[start + order[i]]
                word[i] = running
            for i in range(size, whole):
                word[i] = running
            for i in range(whole):
                w = np.float64(word[i] >> shift)
                weight[i] = w
                total[i] = np.float64(word[i] & mask) + origin * w
                left[i] += w
        else:
            heavy, running = np.int64(0), np.int64(0)
            other = start + np.uint64(CELLS)
            for i in range(size):
                heavy += cells[start + order[i]]
                running += cells[other + order[i]]
                weight[i] = heavy * weight_unit
                total[i] = running * total_unit
            for i in range(size, whole):
                weight[i] = heavy * weight_unit
                total[i] = running * total_unit
            for i in range(whole):
                left[i] += weight[i]


@inner
def _draw_among_equals(key, feature, gains, first, last, highest):
    """One of the cuts with the highest gain, by a draw that belongs to the node and the feature."""
    equals = 0
    for c in range(first, last):
        equals += 1 if gains[c] == highest else 0
    wanted = np.int64(uniform(draw(key, np.uint64(feature))) * equals)
    cut = np.int64(first)
    while wanted > 0 or gains[cut] != highest:
        wanted -= 1 if gains[cut] == highest else 0
        cut += 1
    return cut


@inner
def _keep(cells, base, feature, cut, m, categorical, node_weight, layout, order, best):
    """Write down a split: which codes go left, those the node does not hold included, and the exact sums left of it.

    The sums are the children's statistics without a pass over their rows.
    """
    n_words = layout.n_words
    mask = (np.int64(1) << layout.shift) - 1
    for a in range(best.weight.size):
        start = np.uint64(base + a * CELLS * n_words)
        w, t = np.int64(0), np.int64(0)
        for i in range(cut + 1):
            w += cells[start + order[i]]
        if n_words == 2:
            start += np.uint64(CELLS)
            for i in range(cut + 1):
                t += cells[start + order[i]]
        best.weight[a] = w if n_words == 2 else w >> layout.shift
        best.total[a] = t if n_words == 2 else w & mask
    best.place[0] = feature
    best.place[2] = 1 if categorical else 0
    goes_left = best.goes_left
    missing = 1 if 2.0 * best.gain[1] >= node_weight else 0  # to the heavier side, if the node holds none
    for i in range(m):
        if order[i] == 0:
            missing = 1 if i <= cut else 0
    if categorical:
        for code in range(CELLS):
            goes_left[code] = missing  # levels the node does not hold go the way of missing
        for i in range(m):
            goes_left[order[i]] = 1 if i <= cut else 0
        best.place[1] = 0
        return
    # The largest code that goes left. In a gap of empty codes the cut lies in the middle.
    if order[cut] == 0 and cut == 0:
        at = 0  # only missing goes left
    elif cut + 1 < m and order[cut + 1] != 0:
        at = (np.int64(order[cut]) + np.int64(order[cut + 1]) - 1) // 2
    else:
        at = CELLS - 1  # only missing goes right
    for code in range(1, CELLS):
        goes_left[code] = 1 if code <= at else 0
    goes_left[0] = missing
    best.place[1] = at
