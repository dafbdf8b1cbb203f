"""The grower: from binned rows to a table of nodes, depth first, one kernel call a tree.

Rows are never copied whole: a node is a range of three parallel arrays (row index, histogram words, arm), which a split
partitions in place. Two devices keep the histograms fast:

- Subtraction. When every feature is scanned at every node, a node's histograms are kept, those of its smaller child
  built, and the difference is the larger child's.
- Blocks. Once the codes of a node fit the cache, they are copied into a compact block, and the whole subtree below is
  grown from it. Depth-first order makes one block enough.

Both leave every sum, and so every tree, unchanged to the last bit.

The grower can start at any node: it is given the rows, the node's key (from which all draws below it follow), its depth
and its parent's estimates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from upturn.kernels._jit import (
    F8,
    F8_2_out,
    I4_2_out,
    I4_out,
    I8_2_out,
    I8_out,
    U1_out,
    U8_out,
    i8,
    inner,
    kernel,
    u8,
    void,
)
from upturn.kernels.criteria import ANY_WEIGHT, NODE, RULES, Node, estimate
from upturn.kernels.hashing import draw, fold, uniform
from upturn.kernels.histogram import CELLS, LAYOUT, ROWS, Rows, add_rows, features_a_pass, node_sums, subtract
from upturn.kernels.splitting import BEST, SCRATCH, Best, Scratch, partition, scan_feature

# What a node's draws are for; its children's keys are folded from its own.
_LEFT, _RIGHT, _FEATURES, _ONE_FEATURE, _TIES = (np.uint64(k) for k in (1, 2, 3, 4, 5))

BLOCK_BYTES = 800_000  # a good size of a block: what a core's own cache holds beside the histograms
_NODES = 128  # room for nodes at first
FEATURE_COLUMN, CUT, LEFT_CHILD, CATEGORY_SET, MISSING_LEFT = 0, 1, 2, 3, 4  # columns of ``links``
LINKS = 5
# Columns of ``stack``: a waiting node, its parent, its rows and those held out, its depth, the rows of its block (0 if in none), the
# slot of its kept histograms (-1 if none); then the integer sums, weight and outcome of each arm, of its rows and those held out.
_NODE, _PARENT, _START, _STOP, _HELD_START, _HELD_STOP, _DEPTH, _BLOCK, _SLOT, _SUMS = range(10)


class Binned(NamedTuple):
    """Binned features: codes feature-major and flat, how many codes each feature has, and which are categories."""

    codes: object
    stride: int
    n_codes: object
    categorical: object
    block_rows: int  # nodes of at most so many rows are grown from a compact block; 0 for never


class Room(NamedTuple):
    """What a tree is grown in, made in Python: an allocation inside a kernel is dear to compile."""

    spare: Rows  # as long as the longer of rows and held
    block: object  # codes of a node's rows
    cells: object  # histograms of one pass, at most four, then those that are kept
    free: object  # slots of kept histograms
    order: object  # features in the order they are looked at
    all_features: object
    scratch: Scratch
    node: Node
    best: Best


class Growth(NamedTuple):
    """A tree on its way: nodes so far, nodes that wait to be split; and how many there are of each."""

    links: object  # (nodes, 5) feature or -1, cut, left child or -1, category set or -1, missing goes left
    numbers: object  # (nodes, 1 + 3 arms) gain, then value, weight and the grower's estimate of each arm
    sets: object  # (sets, 4) 256 bits each
    stack: object  # (waiting, 9 + 4 arms) see above
    keys: object  # (waiting,) keys of the waiting nodes
    counts: object  # [nodes, sets, waiting nodes, free slots]


BINNED = types.NamedTuple((U1_out, i8, I4_out, U1_out, i8), Binned)
ROOM = types.NamedTuple((ROWS, U1_out, I8_out, I8_out, I8_out, I8_out, SCRATCH, NODE, BEST), Room)
GROWTH = types.NamedTuple((I4_2_out, F8_2_out, I8_2_out, I8_2_out, U8_out, I8_out), Growth)


# Plain loops instead of slice assignments all through, and never more than three assignments in a line, which would make
# a tuple: numba compiles that several times faster.


def _scratch(n_arms):
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


@inner
def _draw_feature(key, done, order):
    """Put the next feature of the node's random order at place ``done`` (one step of a Fisher-Yates shuffle)."""
    left = order.size - done
    pick = done + np.int64(uniform(draw(key, np.uint64(done))) * left)
    order[done], order[pick] = order[pick], order[done]


@inner
def _copy_block(codes, stride, n_features, index, start, stop, block):
    """Copy the codes of a node's rows into the block, feature after feature, and renumber the rows."""
    first, n = np.uint64(start), np.uint64(stop - start)
    at = np.uint64(0)
    for f in range(n_features):
        base = np.uint64(f * stride)
        for i in range(n):
            block[at + i] = codes[base + np.uint64(index[first + i])]
        at += n
    for i in range(n):
        index[first + i] = i
    return stop - start


@inner
def _build_all(codes, stride, features, rows, start, stop, layout, n_arms, cells, base):
    """Histograms of all features from ``cells[base]`` on."""
    n = features.size
    for i in range(np.uint64(base), np.uint64(base + n * n_arms * CELLS * layout.n_words)):
        cells[i] = 0
    add_rows(codes, stride, features, 0, n, rows, start, stop, layout, n_arms, cells, base)


@inner
def _find_split(key, codes, stride, binned, rows, start, stop, kept, cells, order, node, rules, layout, scratch, best):
    """Look at the drawn features in random order; further ones only while no admissible cut was seen.

    ``kept`` is where the node's histograms of all features start in ``cells``, or -1: then they are built here, those of
    one pass at a time, in the first cells.
    """
    best.gain[0], best.place[0], best.place[3] = -np.inf, -1, 0
    n_features = order.size
    n_arms = node.weight.size
    size = n_arms * CELLS * layout.n_words
    few, wanted = features_a_pass(n_arms, layout), rules.max_features
    if rules.random_share > 0.0 and uniform(draw(key, _ONE_FEATURE)) < rules.random_share:
        wanted = 1
    feature_key = fold(key, _FEATURES)
    tie_key = fold(key, _TIES)
    for f in range(n_features):
        order[f] = f
    done = 0
    while done < n_features and (done < wanted or best.place[3] == 0):
        batch = few
        if done + batch > wanted:
            batch = wanted - done if done < wanted else 1
        for j in range(batch):
            _draw_feature(feature_key, done + j, order)
        if kept < 0:
            for i in range(batch * size):
                cells[i] = 0
            add_rows(codes, stride, order, done, done + batch, rows, start, stop, layout, n_arms, cells, 0)
        for j in range(batch):
            f = order[done + j]
            base = j * size if kept < 0 else kept + f * size
            scan_feature(
                tie_key,
                cells,
                base,
                f,
                binned.n_codes[f],
                binned.categorical[f] != 0,
                node,
                rules,
                layout,
                scratch,
                best,
            )
        done += batch


@inner
def _pack_bits(flags, sets, at):
    for k in range(4):
        bits = np.int64(0)
        for b in range(64):
            bits |= np.int64(flags[64 * k + b]) << np.int64(b)
        sets[at, k] = bits


def _slots(n_rows, max_depth):
    """How many nodes can hold kept histograms at once: smaller children are grown first."""
    return min(max(int(n_rows).bit_length(), 1) + 1, max_depth + 2)


def make_room(n_arms, rows, held, binned, rules, layout):
    """Room for one tree, or for several one after the other that are no larger."""
    n, n_features, n_words = rows.index.size, binned.n_codes.size, layout.n_words
    longest, row_words = max(n, held.index.size), 1 if layout.weight_word > 0 else n_words
    n_slots = _slots(n, rules.max_depth) if rules.subtraction else 0
    return Room(
        Rows(np.empty(longest, np.uint32), np.empty(longest * row_words, np.int64), np.empty(longest, np.uint8)),
        np.empty(n_features * min(binned.block_rows, n), np.uint8),
        np.empty((4 + n_slots * n_features) * n_arms * CELLS * n_words, np.int64),
        np.arange(n_slots),
        np.empty(n_features, np.int64),
        np.arange(n_features),
        _scratch(n_arms),
        Node(np.empty(n_arms), np.empty(n_arms), np.empty(n_arms)),
        Best(
            np.empty(2),
            np.empty(4, np.int64),
            np.empty(CELLS, np.uint8),
            np.empty(n_arms, np.int64),
            np.empty(n_arms, np.int64),
        ),
    )


def grow(root_key, root_depth, root_mean, rows, held, binned, rules, layout):
    """Grow a (sub)tree on ``rows``; honest trees take their values from ``held``, the others from ``rows``.

    Returns the number of nodes, their ``links`` and ``numbers`` (see ``Growth``; a right child follows the left one), the
    number of category sets and the sets; arrays are longer than that.
    """
    n_arms = root_mean.size
    room = make_room(n_arms, rows, held, binned, rules, layout)
    growth = Growth(
        np.empty((_NODES, LINKS), np.int32),
        np.empty((_NODES, 1 + 3 * n_arms)),
        np.empty((_NODES, 4), np.int64),
        np.empty((_NODES, _SUMS + 4 * n_arms), np.int64),
        np.empty(_NODES, np.uint64),
        np.zeros(4, np.int64),
    )
    while True:
        _grow(root_key, root_depth, root_mean, rows, held, binned, rules, layout, room, growth)
        n_nodes, n_sets, waiting, _ = growth.counts.tolist()
        if waiting == 0:
            return n_nodes, growth.links, growth.numbers, n_sets, growth.sets
        growth = _longer(growth)


def _longer(growth):
    """The same growth with twice the room where it ran out."""
    n_nodes, n_sets, waiting, _ = growth.counts.tolist()
    links, numbers, sets, stack, keys, counts = growth
    if n_nodes + 2 > len(links):
        links, numbers = _twice(links), _twice(numbers)
    if n_sets == len(sets):
        sets = _twice(sets)
    if waiting == len(stack):
        stack, keys = _twice(stack), _twice(keys)
    return Growth(links, numbers, sets, stack, keys, counts)


def _twice(array):
    return np.concatenate([array, np.empty_like(array)])


@kernel(void, u8, i8, F8, ROWS, ROWS, BINNED, RULES, LAYOUT, ROOM, GROWTH)
def _grow(root_key, root_depth, root_mean, rows, held, binned, rules, layout, room, growth):
    """Grow until no node waits, or until ``growth`` is too short for one more split: then it can be called again."""
    n_arms = root_mean.size
    n_features = binned.n_codes.size
    row_words = 1 if layout.weight_word > 0 else layout.n_words
    size = n_arms * CELLS * layout.n_words
    spare, block, cells = room.spare, room.block, room.cells
    free, order, all_features = room.free, room.order, room.all_features
    scratch, node, best = room.scratch, room.node, room.best
    links, numbers, sets = growth.links, growth.numbers, growth.sets
    stack, keys = growth.stack, growth.keys
    n_nodes, n_sets = growth.counts[0], growth.counts[1]
    waiting, n_free = growth.counts[2], growth.counts[3]

    if n_nodes == 0:
        stack[0, _NODE], stack[0, _PARENT], stack[0, _DEPTH] = 0, -1, root_depth
        stack[0, _START], stack[0, _STOP] = 0, rows.index.size
        stack[0, _HELD_START], stack[0, _HELD_STOP] = 0, held.index.size
        stack[0, _BLOCK], stack[0, _SLOT] = 0, -1
        keys[0] = root_key
        node_sums(rows, 0, rows.index.size, n_arms, layout, stack, 0, _SUMS)
        node_sums(held, 0, held.index.size, n_arms, layout, stack, 0, _SUMS + 2 * n_arms)
        n_nodes, waiting, n_free = 1, 1, free.size
    while waiting > 0 and n_nodes + 2 <= links.shape[0] and n_sets < sets.shape[0] and waiting + 1 <= stack.shape[0]:
        waiting -= 1
        me, parent, depth = stack[waiting, _NODE], stack[waiting, _PARENT], stack[waiting, _DEPTH]
        start, stop = stack[waiting, _START], stack[waiting, _STOP]
        held_start, held_stop = stack[waiting, _HELD_START], stack[waiting, _HELD_STOP]
        local, slot = stack[waiting, _BLOCK], stack[waiting, _SLOT]
        key = keys[waiting]

        # Statistics. The root's estimate is the plain mean; below, equations (3) and (4).
        heavy = False
        for a in range(n_arms):
            w = stack[waiting, _SUMS + a] * layout.weight_unit
            t = stack[waiting, _SUMS + n_arms + a] * layout.total_unit + layout.origin * w
            node.weight[a], node.total[a] = w, t
            heavy = heavy or w >= rules.min_split
            before = root_mean[a] if parent < 0 else numbers[parent, 1 + 2 * n_arms + a]
            if depth == 0:
                mean = estimate(w, t, before, 0.0, ANY_WEIGHT)
            else:
                mean = estimate(w, t, before, rules.n_reg, rules.inherit_below)
            node.mean[a] = mean
            numbers[me, 1 + a] = mean
            numbers[me, 1 + n_arms + a] = w
            numbers[me, 1 + 2 * n_arms + a] = mean
        if rules.honest:
            for a in range(n_arms):
                w = stack[waiting, _SUMS + 2 * n_arms + a] * layout.weight_unit
                t = stack[waiting, _SUMS + 3 * n_arms + a] * layout.total_unit + layout.origin * w
                numbers[me, 1 + a] = estimate(
                    w, t, root_mean[a] if parent < 0 else numbers[parent, 1 + a], 0.0, ANY_WEIGHT
                )
                numbers[me, 1 + n_arms + a] = w
        numbers[me, 0] = 0.0
        links[me, FEATURE_COLUMN], links[me, LEFT_CHILD], links[me, CATEGORY_SET] = -1, -1, -1
        links[me, CUT], links[me, MISSING_LEFT] = 0, 0

        feature = -1
        if heavy and depth < rules.max_depth and stop - start > 1:
            if local == 0 and stop - start <= binned.block_rows and stop - start < binned.stride:
                local = _copy_block(binned.codes, binned.stride, n_features, rows.index, start, stop, block)
            codes = block if local > 0 else binned.codes
            stride = local if local > 0 else binned.stride
            kept = 4 * size + slot * n_features * size if slot >= 0 else -1
            if kept < 0 and n_free > 0 and parent < 0:
                n_free -= 1
                slot = free[n_free]
                kept = 4 * size + slot * n_features * size
                _build_all(codes, stride, all_features, rows, start, stop, layout, n_arms, cells, kept)
            _find_split(
                key, codes, stride, binned, rows, start, stop, kept, cells, order, node, rules, layout, scratch, best
            )
            feature = best.place[0]
        if feature < 0:
            if slot >= 0:
                free[n_free] = slot
                n_free += 1
            continue

        last = depth + 1 >= rules.max_depth  # the children are leaves: their sums are all that is needed of them
        border = (
            start if last else partition(codes, stride, feature, best.goes_left, rows, start, stop, row_words, spare)
        )
        held_border = partition(
            binned.codes, binned.stride, feature, best.goes_left, held, held_start, held_stop, row_words, spare
        )
        numbers[me, 0] = best.gain[0]
        links[me, FEATURE_COLUMN], links[me, CUT], links[me, LEFT_CHILD] = feature, best.place[1], n_nodes
        links[me, MISSING_LEFT] = best.goes_left[0]
        if best.place[2] == 1:
            _pack_bits(best.goes_left, sets, n_sets)
            links[me, CATEGORY_SET] = n_sets
            n_sets += 1

        # The larger child waits below the smaller one, so at most log2(n) nodes hold histograms.
        smaller_left = border - start <= stop - border
        small_start, small_stop = (start, border) if smaller_left else (border, stop)
        small_slot, large_slot = -1, -1
        if slot >= 0:
            large = (stop - start) - (small_stop - small_start)
            if not last and n_free > 0 and large > n_arms * CELLS // 4:
                n_free -= 1
                small_slot, large_slot = free[n_free], slot
                child = 4 * size + small_slot * n_features * size
                _build_all(codes, stride, all_features, rows, small_start, small_stop, layout, n_arms, cells, child)
                subtract(cells, kept, child, n_features * size)
            else:
                free[n_free] = slot
                n_free += 1
        for k in range(4 * n_arms):  # first into both children; the left one's are then replaced and taken away
            stack[waiting + 1, _SUMS + k] = stack[waiting, _SUMS + k]
        left_at = waiting + 1 if smaller_left else waiting
        right_at = waiting if smaller_left else waiting + 1
        for a in range(n_arms):
            stack[left_at, _SUMS + a] = best.weight[a]
            stack[left_at, _SUMS + n_arms + a] = best.total[a]
        node_sums(held, held_start, held_border, n_arms, layout, stack, left_at, _SUMS + 2 * n_arms)
        for k in range(4 * n_arms):
            stack[right_at, _SUMS + k] -= stack[left_at, _SUMS + k]
        for which in range(2):
            left = (which == 0) != smaller_left  # the larger child first
            at = waiting + which
            stack[at, _NODE] = n_nodes if left else n_nodes + 1
            stack[at, _PARENT], stack[at, _DEPTH] = me, depth + 1
            stack[at, _START], stack[at, _STOP] = (start, border) if left else (border, stop)
            stack[at, _HELD_START] = held_start if left else held_border
            stack[at, _HELD_STOP] = held_border if left else held_stop
            stack[at, _BLOCK], stack[at, _SLOT] = local, large_slot if which == 0 else small_slot
            keys[at] = fold(key, _LEFT if left else _RIGHT)
        waiting += 2
        n_nodes += 2
    growth.counts[0], growth.counts[1] = n_nodes, n_sets
    growth.counts[2], growth.counts[3] = waiting, n_free
