"""The grower: from binned rows to a table of nodes, depth first, one kernel call a tree.

It drives the stages, each in a file of its own:

    histogram    sums of weight and outcome by feature, code and arm
    splitting    the best split from them (``scanning`` tries the cuts of a feature, ``criteria`` says what they gain)
    partition    the rows of a node divided between its children

Rows are never copied whole: a node is a range of three parallel arrays (row index, histogram words, arm), which a split
partitions in place. Two devices keep the histograms fast:

- Subtraction. When every feature is scanned at every node, a node's histograms are kept, those of its smaller child
  built, and the difference is the larger child's.
- Blocks. Once the codes of a node fit the cache, they are copied into a compact block, and the whole subtree below is
  grown from it. Of a much larger table, a node's rows lie ever further apart on the way there, and each costs a line of the cache:
  where they are an eighth of the rows among which they lie, their codes are copied already, into a block behind those of the nodes above. Depth-first order makes
  one block of each size enough.

Both leave every sum, and so every tree, unchanged to the last bit. So would any other driver: the stages can be called
from Python too, a level of nodes at a time, with histograms that were added up in several places.

The grower can start at any node: it is given the rows, the node's key (from which all draws below it follow), its depth
and its parent's values and estimates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from upturn.kernels._jit import (
    F8,
    I4,
    U1,
    F8_2_out,
    I4_2_out,
    I8_2_out,
    I8_out,
    U1_out,
    U8_out,
    b1,
    i8,
    inner,
    kernel,
    u8,
    void,
)
from upturn.kernels.criteria import RULES
from upturn.kernels.hashing import fold
from upturn.kernels.histogram import (
    CELLS,
    LAYOUT,
    ROWS,
    Rows,
    add_rows,
    empty_rows,
    features_a_pass,
    frozen,
    node_sums,
    subtract,
    words_a_row,
)
from upturn.kernels.partition import move_rows
from upturn.kernels.scanning import scan_feature
from upturn.kernels.splitting import (
    SEARCH,
    TIES,
    Search,
    describe,
    draw_feature,
    goes_on,
    make_search,
    may_split,
    start_search,
)

_LEFT, _RIGHT = np.uint64(1), np.uint64(2)  # what a node's key is folded with for its children's
BLOCK_BYTES = 800_000  # a good size of a block: what a core's own cache holds beside the histograms
FAR_BLOCK_BYTES = 2**28  # of a block of rows that lie far apart, at most
_NODES = 128  # room for nodes at first
FEATURE_COLUMN, CUT, LEFT_CHILD, CATEGORY_SET, MISSING_LEFT = 0, 1, 2, 3, 4  # columns of ``links``
LINKS = 5
_SPARSE = 8  # among how many rows one of a node lies, for its codes to be copied before they fit the cache
_LEVELS = 2  # that grow at most below a node whose codes are not worth that
# Places in ``stack`` of a waiting node: its number, its parent, its rows and those held out, its depth, the rows of its block (0 if in
# none) and where it begins, the slot of its kept histograms (-1 if none); then the integer sums, weight and outcome of each arm, of its rows and those held out.
_NODE, _PARENT, _START, _STOP, _HELD_START, _HELD_STOP, _DEPTH, _BLOCK, _BEGIN, _SLOT, _SUMS = range(11)


class Binned(NamedTuple):
    """Binned features: codes feature-major and flat, how many codes each feature has, and which are categories."""

    codes: object
    stride: int
    n_codes: object
    categorical: object
    block_rows: int  # nodes of at most so many rows are grown from a compact block; 0 for never
    far_rows: int  # nodes of at most so many rows are, too, where these lie far apart


class Room(NamedTuple):
    """What a tree is grown in, made in Python: an allocation inside a kernel is dear to compile."""

    spare: Rows  # as long as the longer of rows and held
    block: object  # codes of a node's rows, those of smaller ones behind those of larger ones
    cells: object  # histograms of one pass, at most four, then those that are kept
    free: object  # slots of kept histograms
    all_features: object
    search: Search


class Growth(NamedTuple):
    """A tree on its way: nodes so far, nodes that wait to be split; and how many there are of each."""

    links: object  # (nodes, 5) feature or -1, cut, left child or -1, category set or -1, missing goes left
    numbers: object  # (nodes, 1 + 3 arms) gain, then value, weight and the grower's estimate of each arm
    sets: object  # (sets, 4) 256 bits each
    stack: object  # waiting nodes one after the other, 10 + 4 arms numbers each, see above
    keys: object  # (waiting,) keys of the waiting nodes
    counts: object  # [nodes, sets, waiting nodes, free slots]


BINNED = types.NamedTuple((U1, i8, I4, U1, i8, i8), Binned)
ROOM = types.NamedTuple((ROWS, U1_out, I8_out, I8_out, I8_out, SEARCH), Room)
GROWTH = types.NamedTuple((I4_2_out, F8_2_out, I8_2_out, I8_out, U8_out, I8_out), Growth)


def make_room(n_arms, rows, held, binned, rules, layout):
    """Room for one tree, or for several one after the other that are no larger."""
    n, n_features = rows.index.size, binned.n_codes.size
    # How many nodes can hold kept histograms at once: smaller children are grown first.
    n_slots = min(max(int(n).bit_length(), 1) + 1, rules.max_depth + 2) if rules.subtraction else 0
    return Room(
        empty_rows(max(n, held.index.size), layout),
        np.empty(n_features * _rows_in_blocks(n, binned), np.uint8),
        np.empty((4 + n_slots * n_features) * n_arms * CELLS * layout.n_words, np.int64),
        np.arange(n_slots),
        np.arange(n_features),
        make_search(n_arms, n_features),
    )


def _rows_in_blocks(n, binned):
    """Rows of a tree of ``n`` that may be in blocks at once."""
    total, most = min(binned.block_rows, n), min(binned.stride // _SPARSE, binned.far_rows)
    while most > binned.block_rows:
        total += min(most, n)
        most //= _SPARSE
    return total


def grow(root_key, root_depth, above, rows, held, binned, rules, layout):
    """Grow a (sub)tree on ``rows``; honest trees take their values from ``held``, the others from ``rows``.

    ``above`` are the values of the node that it hangs from, then its estimates as a grower (both are the arms' means above a root). Rows are brought into the order of the nodes; ``binned`` is only read. Returns the number of nodes, their ``links`` and
    ``numbers`` (see ``Growth``; a right child follows the left one), the number of category sets and the sets; arrays are
    longer than that.
    """
    n_arms = above.size // 2
    binned = Binned(*(frozen(item) if isinstance(item, np.ndarray) else item for item in binned))
    room = make_room(n_arms, rows, held, binned, rules, layout)
    growth = Growth(
        np.empty((_NODES, LINKS), np.int32),
        np.empty((_NODES, 1 + 3 * n_arms)),
        np.empty((_NODES, 4), np.int64),
        np.empty(_NODES * (_SUMS + 4 * n_arms), np.int64),
        np.empty(_NODES, np.uint64),
        np.zeros(4, np.int64),
    )
    while True:
        _grow(root_key, root_depth, above, rows, held, binned, rules, layout, room, growth)
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
    if waiting == len(keys):
        stack, keys = _twice(stack), _twice(keys)
    return Growth(links, numbers, sets, stack, keys, counts)


def _twice(array):
    return np.concatenate([array, np.empty_like(array)])


# Plain loops instead of slice assignments all through, and never more than three assignments in a line, which would make
# a tuple: numba compiles that several times faster.


@inner
def _child(key, left):
    return fold(key, _LEFT if left else _RIGHT)


@kernel(u8, u8, b1)
def child_key(key, left):
    """The key of a node's left or right child."""
    return _child(key, left)


@inner
def _wants_block(n, local, depth, binned, rules):
    """Whether the codes of a node's ``n`` rows are copied, which lie among the ``local`` ones of a block, or among all if it is 0."""
    among = local if local > 0 else binned.stride
    if n <= binned.block_rows:
        return n < among and (local == 0 or among > binned.block_rows)
    return n <= binned.far_rows and n * _SPARSE <= among and rules.max_depth - depth > _LEVELS


@inner
def _copy_block(codes, stride, n_features, index, start, stop, block, begin):
    """Copy the codes of a node's rows into the block from ``begin`` on, feature after feature, and renumber the rows."""
    first, n = np.uint64(start), np.uint64(stop - start)
    at = np.uint64(begin)
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
def _describe_node(stack, at, numbers, me, parent, depth, above, rules, layout, node):
    """Statistics of a waiting node into ``node`` and ``numbers``: its values and weights, and the estimates of the grower."""
    n_arms = above.size // 2
    value, weight, own = 1, 1 + n_arms, 1 + 2 * n_arms
    apart = rules.honest or rules.plain_leaves
    if apart:
        for a in range(n_arms):
            node.mean[a] = above[a] if parent < 0 else numbers[parent, value + a]
        describe(stack, at + _SUMS + (2 * n_arms if rules.honest else 0), 0, rules, layout, node)
        for a in range(n_arms):
            numbers[me, value + a], numbers[me, weight + a] = node.mean[a], node.weight[a]
    for a in range(n_arms):
        node.mean[a] = above[n_arms + a] if parent < 0 else numbers[parent, own + a]
    describe(stack, at + _SUMS, depth, rules, layout, node)
    for a in range(n_arms):
        if not apart:
            numbers[me, value + a], numbers[me, weight + a] = node.mean[a], node.weight[a]
        numbers[me, own + a] = node.mean[a]


@inner
def _find_split(key, codes, stride, binned, rows, start, stop, kept, cells, order, node, rules, layout, scratch, best):
    """What ``splitting.best_split`` does, from rows.

    ``kept`` is where the node's histograms of all features start in ``cells``, or -1: then they are built here, those of
    one pass at a time, in the first cells. The parts of a search come one by one: a tuple of tuples would be laid out in
    memory for each call.
    """
    n_arms = node.weight.size
    size = n_arms * CELLS * layout.n_words
    few, tie_key = features_a_pass(n_arms, layout), fold(key, TIES)
    wanted, done = start_search(key, rules, order, best), 0
    while goes_on(done, wanted, order.size, best.place[3]):
        batch = few
        if done + batch > wanted:
            batch = wanted - done if done < wanted else 1
        for j in range(done, done + batch):
            draw_feature(key, j, order)
        if kept < 0:
            for i in range(batch * size):
                cells[i] = 0
            add_rows(codes, stride, order, done, done + batch, rows, start, stop, layout, n_arms, cells, 0)
        for j in range(batch):
            f = order[done + j]
            base = j * size if kept < 0 else kept + f * size
            many, levels = binned.n_codes[f], binned.categorical[f] != 0
            scan_feature(tie_key, cells, base, f, many, levels, node, rules, layout, scratch, best)
        done += batch


@inner
def _divide(codes, stride, rows, start, stop, binned, held, held_start, held_stop, best, layout, spare):
    """Divide a node's rows and those held out; return where the right child's begin.

    In a function of its own the loops have the processor's registers to themselves.
    """
    feature, goes_left, n_words = best.place[0], best.goes_left, words_a_row(layout)
    border = move_rows(codes, stride, feature, goes_left, rows, start, stop, n_words, spare)
    held_border = move_rows(
        binned.codes, binned.stride, feature, goes_left, held, held_start, held_stop, n_words, spare
    )
    return border, held_border


@inner
def _write_split(best, me, left_child, links, numbers, sets, n_sets):
    """Write a node's split down; return how many category sets there are now."""
    numbers[me, 0] = best.gain[0]
    links[me, FEATURE_COLUMN], links[me, CUT], links[me, LEFT_CHILD] = best.place[0], best.place[1], left_child
    links[me, MISSING_LEFT] = best.goes_left[0]
    if best.place[2] == 0:
        return n_sets
    for k in range(4):
        bits = np.int64(0)
        for b in range(64):
            bits |= np.int64(best.goes_left[64 * k + b]) << np.int64(b)
        sets[n_sets, k] = bits
    links[me, CATEGORY_SET] = n_sets
    return n_sets + 1


@kernel(void, u8, i8, F8, ROWS, ROWS, BINNED, RULES, LAYOUT, ROOM, GROWTH)
def _grow(root_key, root_depth, above, rows, held, binned, rules, layout, room, growth):
    """Grow until no node waits, or until ``growth`` is too short for one more split: then it can be called again."""
    n_arms = above.size // 2
    n_features = binned.n_codes.size
    size = n_arms * CELLS * layout.n_words
    spare, block, cells = room.spare, room.block, room.cells
    free, all_features, search = room.free, room.all_features, room.search
    links, numbers, sets = growth.links, growth.numbers, growth.sets
    stack, keys, best = growth.stack, growth.keys, search.best
    n_nodes, n_sets = growth.counts[0], growth.counts[1]
    waiting, n_free = growth.counts[2], growth.counts[3]
    width = _SUMS + 4 * n_arms

    if n_nodes == 0:
        stack[_NODE], stack[_PARENT], stack[_DEPTH] = 0, -1, root_depth
        stack[_START], stack[_STOP] = 0, rows.index.size
        stack[_HELD_START], stack[_HELD_STOP] = 0, held.index.size
        stack[_BLOCK], stack[_BEGIN], stack[_SLOT] = 0, 0, -1
        keys[0] = root_key
        node_sums(rows, 0, rows.index.size, n_arms, layout, stack, _SUMS)
        node_sums(held, 0, held.index.size, n_arms, layout, stack, _SUMS + 2 * n_arms)
        n_nodes, waiting, n_free = 1, 1, free.size
    while waiting > 0 and n_nodes + 2 <= links.shape[0] and n_sets < sets.shape[0] and waiting + 1 <= keys.size:
        waiting -= 1
        at = waiting * width
        me, parent, depth = stack[at + _NODE], stack[at + _PARENT], stack[at + _DEPTH]
        start, stop = stack[at + _START], stack[at + _STOP]
        held_start, held_stop = stack[at + _HELD_START], stack[at + _HELD_STOP]
        local, begin, slot = stack[at + _BLOCK], stack[at + _BEGIN], stack[at + _SLOT]
        key = keys[waiting]
        _describe_node(stack, at, numbers, me, parent, depth, above, rules, layout, search.node)
        numbers[me, 0] = 0.0
        links[me, FEATURE_COLUMN], links[me, LEFT_CHILD], links[me, CATEGORY_SET] = -1, -1, -1
        links[me, CUT], links[me, MISSING_LEFT] = 0, 0

        feature = -1
        if may_split(search.node, depth, rules) and stop - start > 1:
            codes = block[begin:] if local > 0 else binned.codes
            stride = local if local > 0 else binned.stride
            if _wants_block(stop - start, local, depth, binned, rules):
                begin += local * n_features
                local = _copy_block(codes, stride, n_features, rows.index, start, stop, block, begin)
                codes, stride = block[begin:], local
            kept = 4 * size + slot * n_features * size if slot >= 0 else -1
            if kept < 0 and n_free > 0 and parent < 0:
                n_free -= 1
                slot = free[n_free]
                kept = 4 * size + slot * n_features * size
                _build_all(codes, stride, all_features, rows, start, stop, layout, n_arms, cells, kept)
            _find_split(
                key,
                codes,
                stride,
                binned,
                rows,
                start,
                stop,
                kept,
                cells,
                search.order,
                search.node,
                rules,
                layout,
                search.scratch,
                best,
            )
            feature = best.place[0]
        if feature < 0:
            if slot >= 0:
                free[n_free] = slot
                n_free += 1
            continue

        n_sets = _write_split(best, me, n_nodes, links, numbers, sets, n_sets)
        last = depth + 1 >= rules.max_depth  # the children are leaves: their sums are all that is needed of them
        border, held_border = _divide(
            codes,
            stride,
            rows,
            start,
            start if last else stop,
            binned,
            held,
            held_start,
            held_stop,
            best,
            layout,
            spare,
        )

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
        # Both children take their parent's place and the one above; the left one's sums are known, the rest is the right one's.
        upper = at + width
        for k in range(_SUMS, width):
            stack[upper + k] = stack[at + k]
        left_at = upper if smaller_left else at
        right_at = at if smaller_left else upper
        for a in range(n_arms):
            stack[left_at + _SUMS + a] = best.weight[a]
            stack[left_at + _SUMS + n_arms + a] = best.total[a]
        node_sums(held, held_start, held_border, n_arms, layout, stack, left_at + _SUMS + 2 * n_arms)
        for k in range(_SUMS, width):
            stack[right_at + k] -= stack[left_at + k]
        for which in range(2):
            left = (which == 0) != smaller_left  # the larger child first
            child_at = at + which * width
            stack[child_at + _NODE] = n_nodes if left else n_nodes + 1
            stack[child_at + _PARENT], stack[child_at + _DEPTH] = me, depth + 1
            stack[child_at + _START], stack[child_at + _STOP] = (start, border) if left else (border, stop)
            stack[child_at + _HELD_START] = held_start if left else held_border
            stack[child_at + _HELD_STOP] = held_border if left else held_stop
            stack[child_at + _BLOCK], stack[child_at + _BEGIN] = local, begin
            stack[child_at + _SLOT] = large_slot if which == 0 else small_slot
            keys[waiting + which] = _child(key, left)
        waiting += 2
        n_nodes += 2
    growth.counts[0], growth.counts[1] = n_nodes, n_sets
    growth.counts[2], growth.counts[3] = waiting, n_free
