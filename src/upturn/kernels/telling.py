"""Boosted trees that tell two groups apart: the histogram boosting of scikit-learn, as far as `upturn.check` needs it.

Trees of eight leaves on the logistic loss, grown best first on codes of at most 255 bins and one for what is missing. The
trees are not kept: the rows that are scored walk along while a tree grows. It is here because importing scikit-learn takes
longer than everything else that `upturn check` does; tests/kernels/test_telling.py holds it to the original.

::

    codes[j, i]   bin of row i in column j, MISSING where there is no value
    order         numbers of rows, those of a node next to each other from begin[node] to end[node]
"""

from __future__ import annotations

import numpy as np

from upturn.kernels._jit import B1, I8, U1_2, F8_out, inner, kernel, void

MISSING = 255  # the bin of what is missing
_LEAVES, _RATE = 8, 0.2
_NODES = 2 * _LEAVES - 1
_LEAST, _HESSIAN, _SUPPORT = 20, 1e-3, 10.0  # rows and curvature of a child, rows of a level that is looked at


@inner
def _value(gradient, hessian):
    """The best constant of a leaf."""
    return -gradient / (hessian + 1e-15)


@inner
def _gain(loss, g_left, h_left, gradient, hessian):
    """What a split takes off the loss, to second order."""
    g_right, h_right = gradient - g_left, hessian - h_left
    return loss - g_left * _value(g_left, h_left) - g_right * _value(g_right, h_right)


@inner
def _fill(codes, order, begin, end, gradients, hessians, sums):
    """Gradient, curvature and rows of every bin of a column."""
    sums[:] = 0.0
    for k in range(begin, end):
        i = order[k]
        code = codes[i]
        sums[code, 0] += gradients[i]
        sums[code, 1] += hessians[i]
        sums[code, 2] += 1.0


@inner
def _scan(sums, bins, first, step, count, goes_right, total, loss, best):
    """The best cut along some bins, taken one after the other from ``first``; (gain, place) or what was best before.

    The bins up to a cut are one child, the left one unless it ``goes_right``, which matters to the rounding of equal gains alone.
    ``total`` is gradient, curvature and rows of the node.
    """
    gain, place = best
    g, h, n = 0.0, 0.0, 0.0
    for k in range(count):
        b = bins[first + step * k]
        g += sums[b, 0]
        h += sums[b, 1]
        n += sums[b, 2]
        if n < _LEAST or h < _HESSIAN:
            continue
        if total[2] - n < _LEAST or total[1] - h < _HESSIAN:
            break
        if goes_right:
            found = _gain(loss, total[0] - g, total[1] - h, total[0], total[1])
        else:
            found = _gain(loss, g, h, total[0], total[1])
        if found > gain and found > 0.0:
            gain, place = found, k
    return gain, place


@inner
def _split_column(sums, n_bins, gaps, levels, total, loss, bins, left):
    """The best split of a column: its gain, -1 without one, and in ``left`` which bins go left, the missing one included."""
    nothing = (-1.0, -1)
    if levels:
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
            return -1.0
        middle = (used + 1) // 2
        up = _scan(sums, bins, 0, 1, middle, False, total, loss, nothing)
        down = _scan(sums, bins, used - 1, -1, middle - 1, False, total, loss, up)
        if down[1] < 0:
            return -1.0
        left[:] = False
        for k in range(down[1] + 1):
            left[bins[used - 1 - k if down[0] > up[0] else k]] = True
        return down[0]
    for b in range(n_bins):
        bins[b] = b
    up = _scan(sums, bins, 0, 1, n_bins if gaps else n_bins - 1, False, total, loss, nothing)
    best = up
    if gaps:
        best = _scan(sums, bins, n_bins - 1, -1, n_bins - 1, True, total, loss, up)
    if best[1] < 0:
        return -1.0
    backwards = best[0] > up[0]
    last = n_bins - 2 - best[1] if backwards else best[1]
    for b in range(256):
        left[b] = b <= last
    left[MISSING] = backwards
    return best[0]


@inner
def _divide(codes, order, begin, end, left):
    """Put the rows that go left first, all in their order, and return where the others begin."""
    aside = np.empty(end - begin, np.int64)
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


@inner
def _search(codes, n_bins, gaps, levels, order, begin, end, gradients, hessians, total, loss, left):
    """The best split of a node over all columns: gain and column, and in ``left`` which bins go left."""
    sums, bins, mine = np.empty((256, 3)), np.empty(256, np.int64), np.empty(256, np.bool_)
    gain, column = -1.0, -1
    for j in range(len(codes)):
        _fill(codes[j], order, begin, end, gradients, hessians, sums)
        found = _split_column(sums, n_bins[j], gaps[j], levels[j], total, loss, bins, mine)
        if found > gain:
            gain, column = found, j
            left[:] = mine
    return gain, column


@kernel(void, U1_2, I8, B1, B1, B1, I8, I8, F8_out)
def add_tree(codes, n_bins, gaps, levels, ones, fit, held, score):
    """Learn from the rows ``fit`` who is one of ``ones``, given the log-odds ``score``, and add to it, also for the rows ``held``.

    ``n_bins`` are the columns' bins without the missing one, ``gaps`` says which have some in the rows of the fit, and ``levels`` which
    hold levels.
    """
    n = len(score)
    gradients, hessians = np.zeros(n), np.zeros(n)
    learnt, scored = fit.copy(), held.copy()
    # of every node: where its rows begin and end in either list, gradient, curvature and rows, value, gain and column
    place, sums = np.empty((_NODES, 4), np.int64), np.empty((_NODES, 3))
    value, gain, column = np.empty(_NODES), np.empty(_NODES), np.empty(_NODES, np.int64)
    left = np.empty((_NODES, 256), np.bool_)
    sums[0] = 0.0
    for k in range(len(fit)):
        i = fit[k]
        p = 1.0 / (1.0 + np.exp(-score[i]))
        # of 24 bits, so that sums are exact in any order and equal splits have equal gains
        gradients[i], hessians[i] = np.float32(p - (1.0 if ones[i] else 0.0)), np.float32(p * (1.0 - p))
    for k in range(len(fit)):
        sums[0, 0] += gradients[fit[k]]
        sums[0, 1] += hessians[fit[k]]
    sums[0, 2] = len(fit)
    place[0, 0], place[0, 1], place[0, 2], place[0, 3] = 0, len(fit), 0, len(held)
    value[0], gain[0] = 0.0, -1.0
    if len(fit) >= 2 * _LEAST and sums[0, 1] >= _HESSIAN:
        gain[0], column[0] = _search(
            codes, n_bins, gaps, levels, learnt, 0, len(fit), gradients, hessians, sums[0], 0.0, left[0]
        )
    nodes = 1
    while nodes < _NODES:
        node = np.argmax(gain[:nodes])
        if gain[node] <= 0.0:
            break
        gain[node] = -2.0  # split: no leaf any more
        j = column[node]
        cut = _divide(codes[j], learnt, place[node, 0], place[node, 1], left[node])
        if not gaps[j]:  # what was never seen goes where most rows do
            left[node, MISSING] = cut - place[node, 0] > place[node, 1] - cut
        away = _divide(codes[j], scored, place[node, 2], place[node, 3], left[node])
        for side in range(2):
            child = nodes + side
            place[child, 0], place[child, 1] = (place[node, 0], cut) if side == 0 else (cut, place[node, 1])
            place[child, 2], place[child, 3] = (place[node, 2], away) if side == 0 else (away, place[node, 3])
            sums[child] = 0.0
            for k in range(place[child, 0], place[child, 1]):
                sums[child, 0] += gradients[learnt[k]]
                sums[child, 1] += hessians[learnt[k]]
            sums[child, 2] = place[child, 1] - place[child, 0]
            value[child], gain[child] = _value(sums[child, 0], sums[child, 1]), -1.0
            if sums[child, 2] >= 2 * _LEAST and nodes + 2 < _NODES:
                loss = sums[child, 0] * value[child]
                gain[child], column[child] = _search(
                    codes, n_bins, gaps, levels, learnt, place[child, 0], place[child, 1], gradients, hessians, sums[child],
                    loss, left[child],
                )  # fmt: skip
        nodes += 2
    for node in range(nodes):
        if gain[node] > -2.0:
            for k in range(place[node, 0], place[node, 1]):
                score[learnt[k]] += _RATE * value[node]
            for k in range(place[node, 2], place[node, 3]):
                score[scored[k]] += _RATE * value[node]
