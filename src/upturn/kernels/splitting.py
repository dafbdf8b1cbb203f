"""The best split of a node from histograms of its rows.

``best_split`` is for a driver that has the histograms in hand, wherever they were added up: of rows that lie in several
places, the sum of their histograms is that of all rows, to the last bit. The grower, which builds histograms as it goes,
takes the same steps one by one:

    describe        weight, outcome sum and estimate of each arm, from integer sums and the parent's estimates
    may_split       is the node looked at at all?
    start_search    how many features it looks at
    draw_feature    the next one of its own random order ...
    scan_feature    ... with all its cuts (see ``scanning``), while ``goes_on``

All draws follow from the node's key.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from upturn.kernels._jit import I4, I8, U1, I8_out, b1, i8, inner, kernel, u8, void
from upturn.kernels.criteria import ANY_WEIGHT, NODE, RULES, Node, estimate
from upturn.kernels.hashing import draw, fold, uniform
from upturn.kernels.histogram import CELLS, LAYOUT
from upturn.kernels.scanning import BEST, SCRATCH, Best, Scratch, make_best, make_scratch, scan_feature

# What a node's draws are for.
_FEATURES, _ONE_FEATURE, TIES = np.uint64(3), np.uint64(4), np.uint64(5)


class Search(NamedTuple):
    """A node and its best split on their way; one does for any number of nodes, one after the other."""

    node: Node
    best: Best
    order: object  # features in the order they are looked at
    scratch: Scratch


SEARCH = types.NamedTuple((NODE, BEST, I8_out, SCRATCH), Search)


def make_search(n_arms, n_features):
    """Room for searches; ``n_arms`` counts control."""
    node = Node(np.empty(n_arms), np.empty(n_arms), np.empty(n_arms))
    return Search(node, make_best(n_arms), np.empty(n_features, np.int64), make_scratch(n_arms))


@inner
def describe(sums, at, depth, rules, layout, node):
    """Read a node from its integer sums at ``sums[at:]``; ``node.mean`` holds its parent's estimates before, its own after.

    Those of the root are plain means; below it, equations (3) and (4).
    """
    n_arms = node.weight.size
    n_reg = rules.n_reg if depth > 0 else 0.0
    inherit_below = rules.inherit_below if depth > 0 else ANY_WEIGHT
    for a in range(n_arms):
        w = sums[at + a] * layout.weight_unit
        t = sums[at + n_arms + a] * layout.total_unit + layout.origin * w
        node.weight[a], node.total[a] = w, t
        node.mean[a] = estimate(w, t, node.mean[a], n_reg, inherit_below)


@inner
def may_split(node, depth, rules):
    """Whether a node is no leaf already: some arm weighs ``min_split``, and it does not lie too deep."""
    heavy = False
    for w in node.weight:
        heavy = heavy or w >= rules.min_split
    return heavy and depth < rules.max_depth


@inner
def start_search(key, rules, order, best):
    """Forget the last node; return how many features this one looks at: now and then one only."""
    best.gain[0], best.place[0], best.place[3] = -np.inf, -1, 0
    for f in range(order.size):
        order[f] = f
    if rules.random_share > 0.0 and uniform(draw(key, _ONE_FEATURE)) < rules.random_share:
        return 1
    return rules.max_features


@inner
def goes_on(done, wanted, n_features, seen):
    """Whether there is more to look at: the features wanted, and further ones while no admissible cut was ``seen``."""
    return done < n_features and (done < wanted or seen == 0)


@inner
def draw_feature(key, done, order):
    """Put the next feature of the node's random order at place ``done`` (one step of a Fisher-Yates shuffle)."""
    word = draw(fold(key, _FEATURES), np.uint64(done))
    pick = done + np.int64(uniform(word) * (order.size - done))
    order[done], order[pick] = order[pick], order[done]


@kernel(i8, u8, RULES, SEARCH)
def features_of(key, rules, search):
    """Put the features that a node looks at first into ``search.order``, in its random order; return how many they are."""
    order = search.order
    wanted = min(start_search(key, rules, order, search.best), order.size)
    for done in range(wanted):
        draw_feature(key, done, order)
    return wanted


@kernel(b1, u8, i8, I8, I8, I8, I4, U1, RULES, LAYOUT, SEARCH)
def best_split(key, depth, sums, cells, place, n_codes, categorical, rules, layout, search):
    """Describe a node and find its best split from histograms, that of feature f at ``cells[place[f] * size:]``, ``place[f]`` -1 if it is not there.

    ``sums`` are the integer sums of its rows (``histogram.sum_rows``), ``search.node.mean`` its parent's estimates. What is
    found is in ``search``: the node's statistics, and the best split, feature -1 for a leaf, with the sums of its left side.
    A node of the largest depth needs no cells. Returns whether all histograms were there that the node had to look at: those of
    ``features_of``, and if none of these can be cut, any further one.
    """
    node, best, order = search.node, search.best, search.order
    describe(sums, 0, depth, rules, layout, node)
    wanted, done = start_search(key, rules, order, best), 0
    size = node.weight.size * CELLS * layout.n_words
    while may_split(node, depth, rules) and goes_on(done, wanted, order.size, best.place[3]):
        draw_feature(key, done, order)
        f = order[done]
        if place[f] < 0:
            return False
        many, levels = n_codes[f], categorical[f] != 0
        scan_feature(
            fold(key, TIES), cells, place[f] * size, f, many, levels, node, rules, layout, search.scratch, best
        )
        done += 1
    return True


@kernel(void, I8, RULES, LAYOUT, NODE)
def read_means(sums, rules, layout, node):
    """Describe a node by plain means: its values, those of an honest tree from the rows held out; an empty arm keeps ``node.mean``."""
    describe(sums, 0, 0, rules, layout, node)
