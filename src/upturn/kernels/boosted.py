"""Gradient boosting on histograms: trees that add up to a number, or to the log-odds of one of two classes.

Trees are grown best first on codes of at most 255 bins and one for what is missing. The rules are those of scikit-learn's
histogram boosting, to which tests/kernels/test_boosted.py and tests/meta/test_meta_bases.py hold it: gradients and
curvatures are rounded to 24 bits, so that their sums are exact in nearly any order, and the histogram of the larger child
is that of its parent less that of the smaller one.

::

    codes[j, i]        bin of row i in column j, MISSING where there is no value
    order              numbers of rows, those of a node next to each other from place[node, 0] to place[node, 1]
    sums[slot, j, b]   gradient, curvature and rows of bin b of column j, for each leaf that may still be split

A tree is a stretch of the table of nodes::

    feature            column a node splits, -1 in a leaf
    goes_left[:, b]    whether bin b goes left
    cut                the last bin that goes left, of a column of numbers
    child              the left child, always further down; the right one comes next
    value              what a leaf adds
    gain               what a split takes off the loss
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import (
    B1,
    F8,
    F8_2,
    I4,
    I8,
    U1_2,
    F8_out,
    I4_out,
    I8_out,
    U1_2_out,
    b1,
    f8,
    i8,
    inner,
    kernel,
    void,
)
from upturn.kernels.binning import numeric_code

MISSING = 255  # the bin of what is missing
_CURVATURE, _SUPPORT = 1e-3, 10.0  # least curvature of a child, rows of a level that is looked at
_BLOCK = 128  # rows coded at a time: they stay in the cache, and so do the edges of the column at hand
_SURELY = 1.0 - 1e-9  # rounding does not make less than this the best


@kernel(void, F8_2, F8_2, B1, U1_2_out)
def code(X, edges, levels, codes):
    """The bin of every value: the number of edges below it, a level as it is, or MISSING.

    Edges are padded to 255 with infinity.
    """
    for start in range(0, len(X), _BLOCK):
        end = min(start + _BLOCK, len(X))
        for j in range(X.shape[1]):
            for i in range(start, end):
                if X[i, j] != X[i, j]:
                    codes[j, i] = MISSING
                elif levels[j]:
                    codes[j, i] = np.uint8(X[i, j])
                else:
                    codes[j, i] = np.uint8(numeric_code(X[i, j], edges, j) - np.uint64(1))


@inner
def _value(gradient, curvature, ridge):
    """The best constant of a leaf."""
    return -gradient / (curvature + ridge + 1e-15)


@inner
def _gain(loss, g_left, h_left, total, ridge):
    """What a split takes off the loss, to second order."""
    g_right, h_right = total[0] - g_left, total[1] - h_left
    return loss - g_left * _value(g_left, h_left, ridge) - g_right * _value(g_right, h_right, ridge)


@inner
def _fill(codes, order, begin, end, gradients, curvatures, same, sums):
    """Gradient, curvature and rows of every bin of some columns; ``gradients`` are in the order of the rows.

    The curvature of every row is 1 if it is the ``same``.
    """
    for j in range(len(codes)):
        column, bins = codes[j], sums[j]
        bins[:] = 0.0
        if same:
            for k in range(begin, end):
                code = column[order[k]]
                bins[code, 0] += gradients[k]
                bins[code, 2] += 1.0
            for b in range(256):
                bins[b, 1] = bins[b, 2]
        else:
            for k in range(begin, end):
                code = column[order[k]]
                bins[code, 0] += gradients[k]
                bins[code, 1] += curvatures[k]
                bins[code, 2] += 1.0


@inner
def _scan(sums, bins, first, step, count, goes_right, total, loss, least, ridge, best):
    """The best cut along some bins, taken one after the other from ``first``; (gain, place) or what was best before.

    The bins up to a cut are one child, the left one unless it ``goes_right``, which matters to the rounding of equal gains alone.
    ``total`` is gradient, curvature and rows of the node.
    """
    gain, place = best
    g, h, n = 0.0, 0.0, 0.0
    for k in range(count):
        b = bins[first + step * k]
        if sums[b, 2] == 0.0:  # the cut before it is the same
            continue
        g += sums[b, 0]
        h += sums[b, 1]
        n += sums[b, 2]
        if n < least or h < _CURVATURE:
            continue
        if total[2] - n < least or total[1] - h < _CURVATURE:
            break
        g_there, h_here, h_there = total[0] - g, h + ridge, total[1] - h + ridge
        # a look without divisions, which few cuts pass
        if g * g * h_there + g_there * g_there * h_here < _SURELY * (max(gain, 0.0) - loss) * h_here * h_there:
            continue
        if goes_right:
            found = _gain(loss, total[0] - g, total[1] - h, total, ridge)
        else:
            found = _gain(loss, g, h, total, ridge)
        if found > gain and found > 0.0:
            gain, place = found, k
    return gain, place


@inner
def _split_levels(sums, n_bins, gaps, total, loss, least, ridge, bins, left):
    """The best split of a column of levels, ordered by their gradient; as below."""
    used = 0
    value = np.empty(256)
    support = total[2] / total[1]
    for b in range(n_bins + 1):
        code = b if b < n_bins else MISSING
        if (b == n_bins and not gaps) or sums[code, 1] * support < _SUPPORT:
            continue
        ratio = sums[code, 0] / (sums[code, 1] + _SUPPORT)
        k = used  # sorted in as they come
        while k > 0 and value[k - 1] >= ratio:  # of equal ones the last first
            value[k], bins[k] = value[k - 1], bins[k - 1]
            k -= 1
        value[k], bins[k] = ratio, code
        used += 1
    if used <= 1:
        return -1.0, -1
    middle = (used + 1) // 2
    up = _scan(sums, bins, 0, 1, middle, False, total, loss, least, ridge, (-1.0, -1))
    down = _scan(sums, bins, used - 1, -1, middle - 1, False, total, loss, least, ridge, up)
    if down[1] < 0:
        return -1.0, -1
    left[:] = 0
    for k in range(down[1] + 1):
        left[bins[used - 1 - k if down[0] > up[0] else k]] = 1
    return down[0], -1


@inner
def _split_numbers(sums, n_bins, gaps, total, loss, least, ridge, bins, left):
    """The best split of a column of numbers; as below."""
    up = _scan(sums, bins, 0, 1, n_bins if gaps else n_bins - 1, False, total, loss, least, ridge, (-1.0, -1))
    best = up
    if gaps:
        best = _scan(sums, bins, n_bins - 1, -1, n_bins - 1, True, total, loss, least, ridge, up)
    if best[1] < 0:
        return -1.0, -1
    backwards = best[0] > up[0]
    last = n_bins - 2 - best[1] if backwards else best[1]
    for b in range(256):
        left[b] = b <= last
    left[MISSING] = backwards
    return best[0], last


@inner
def _search(sums, first, n_bins, gaps, levels, total, loss, least, ridge, best, ladder, left):
    """The best split over some columns, from ``first`` on, given the best before: its gain, column and cut.

    ``left`` then says which bins go left, the missing one included.
    """
    gain, column, cut = best
    mine, bins = np.empty(256, np.uint8), np.empty(256, np.int64)
    for k in range(len(sums)):
        j = first + k
        if levels[j]:
            found, last = _split_levels(sums[k], n_bins[j], gaps[j], total, loss, least, ridge, bins, mine)
        else:
            found, last = _split_numbers(sums[k], n_bins[j], gaps[j], total, loss, least, ridge, ladder, mine)
        if found > gain:
            gain, column, cut = found, j, last
            left[:] = mine
    return gain, column, cut


@inner
def _divide(codes, order, begin, end, left, aside):
    """Put the rows that go left first, all in their order, and return where the others begin."""
    here, there = begin, 0
    for k in range(begin, end):
        i = order[k]
        if left[codes[i]]:
            order[here] = i
            here += 1
        else:
            aside[there] = i
            there += 1
    order[here:end] = aside[:there]
    return here


@kernel(
    i8, U1_2, I8, B1, B1, F8, F8, b1, b1, i8, i8, f8, i8, f8, F8_out, I4_out, U1_2_out, I4_out, I4_out, F8_out, F8_out, I8_out
)  # fmt: skip
def add_rounds(
    codes, n_bins, gaps, levels, y, weight, logit, kept, first, leaves, rate, least, ridge, score, feature, goes_left, cut, child,
    value, gain, roots,
):  # fmt: skip
    """Grow a tree for every one of ``roots``, each on what those before leave of ``y``; return the node after the last.

    Parameters: ``n_bins`` are the columns' bins without the missing one, ``gaps`` says which columns have values that are
    missing, and ``levels`` which hold levels; ``weight`` is empty if all rows count the same; histograms are ``kept``
    where there is room for those of all leaves, and else counted a column at a time; ``first`` is the next free node; a
    leaf has at least ``least`` rows, and ``ridge`` shrinks its value. The trees' sum ``score`` goes on from where it is.
    """
    n, columns = len(y), len(codes)
    block = columns if kept else 1
    sums = np.empty((leaves if kept else 1, block, 256, 3))
    gradient, curvature = np.empty(n, np.float32), np.ones(n, np.float32)
    g_ordered, h_ordered = np.empty(n, np.float32), np.empty(n, np.float32)
    order, aside, ladder = np.empty(n, np.uint32), np.empty(n, np.uint32), np.arange(256)
    same = not logit and len(weight) == 0
    most = 2 * leaves - 1
    # of every node: where its rows begin and end, and where its histograms are; gradient, curvature and rows
    place, total = np.empty((most, 3), np.int64), np.empty((most, 3))
    waiting = np.empty(most)  # the gain of a leaf's best split; -2 once it is split
    column, last = np.empty(most, np.int64), np.empty(most, np.int64)
    for tree in range(len(roots)):
        for i in range(n):
            g, h = score[i] - y[i], 1.0
            if logit:
                p = 1.0 / (1.0 + np.exp(-score[i]))
                g, h = p - y[i], p * (1.0 - p)
            if len(weight):
                g, h = weight[i] * g, weight[i] * h
            gradient[i], curvature[i] = g, h
            order[i] = i
        total[0] = 0.0
        for i in range(n):
            total[0, 0] += gradient[i]
            total[0, 1] += curvature[i]
        total[0, 2] = n
        place[0, 0], place[0, 1], place[0, 2] = 0, n, 0
        waiting[0] = -1.0
        root, nodes = first, 1
        roots[tree] = root
        value[root] = 0.0
        begin_new, end_new = 0, 1  # nodes whose best split is to be found
        small, large = 0, 0
        if n < 2 * least or total[0, 1] < _CURVATURE:
            end_new = 0
        while True:
            # the best split of each new node; of two children the smaller one is counted, unless nothing is kept
            if end_new - begin_new == 2 and kept:
                small, large = begin_new, begin_new + 1
                if total[small, 2] > total[large, 2]:
                    small, large = large, small
                place[small, 2] = (nodes - 1) // 2  # a free place; the larger one takes its parent's
            for turn in range(begin_new, end_new):
                node = turn
                if end_new - begin_new == 2 and kept:
                    node = small if turn == begin_new else large
                begin, end = place[node, 0], place[node, 1]
                splits = end - begin >= 2 * least and nodes < most
                counted = node == 0 or not kept or node == small
                other_splits = kept and node > 0 and total[large, 2] >= 2 * least and nodes < most
                if counted and (splits or other_splits):
                    for k in range(begin, end):
                        g_ordered[k], h_ordered[k] = gradient[order[k]], curvature[order[k]]
                own = sums[place[node, 2] if kept else 0]
                loss = 0.0 if node == 0 else total[node, 0] * value[root + node]
                best = (-1.0, -1, -1)
                for at in range(0, columns, block):
                    if counted and (splits or other_splits):
                        _fill(codes[at : at + block], order, begin, end, g_ordered, h_ordered, same, own)
                    elif splits:
                        own -= sums[place[small, 2]]
                    if splits:
                        best = _search(
                            own, at, n_bins, gaps, levels, total[node], loss, least, ridge, best, ladder, goes_left[root + node]
                        )  # fmt: skip
                waiting[node], column[node], last[node] = best
            node = np.argmax(waiting[:nodes])
            if not waiting[node] > 0.0 or nodes + 1 >= most:
                break
            j, here = column[node], root + node
            feature[here], cut[here], gain[here], child[here] = j, last[node], waiting[node], root + nodes
            waiting[node] = -2.0
            middle = _divide(codes[j], order, place[node, 0], place[node, 1], goes_left[here], aside)
            if not gaps[j]:  # what was never seen goes where most rows do
                goes_left[here, MISSING] = middle - place[node, 0] > place[node, 1] - middle
            for side in range(2):
                new = nodes + side
                place[new, 0] = place[node, 0] if side == 0 else middle
                place[new, 1] = middle if side == 0 else place[node, 1]
                place[new, 2] = place[node, 2]
                total[new] = 0.0
                for k in range(place[new, 0], place[new, 1]):
                    total[new, 0] += gradient[order[k]]
                    total[new, 1] += curvature[order[k]]
                total[new, 2] = place[new, 1] - place[new, 0]
                value[root + new] = _value(total[new, 0], total[new, 1], ridge)
                waiting[new] = -1.0
            begin_new, end_new = nodes, nodes + 2
            nodes += 2
        for node in range(nodes):
            if waiting[node] > -2.0:
                here = root + node
                feature[here], cut[here], gain[here], child[here] = -1, -1, 0.0, -1
                value[here] *= rate
                for k in range(place[node, 0], place[node, 1]):
                    score[order[k]] += value[here]
        first += nodes
    return first


@kernel(void, U1_2, I8, I4, U1_2, I4, F8, F8_out)
def add_coded(codes, roots, feature, goes_left, child, value, score):
    """Add to ``score`` what the trees say of rows that are given by their codes."""
    for i in range(len(score)):
        for root in roots:
            node = root
            while feature[node] >= 0:
                left = goes_left[node, codes[feature[node], i]]
                node = np.int64(child[node]) + (0 if left else 1)
            score[i] += value[node]
