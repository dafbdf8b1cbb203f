"""Trees written as the papers say them, with loops over rows and no histogram: the twins of the tree kernels."""

from __future__ import annotations

import itertools
import math

import numpy as np

TINY = 2.0**-20


def divergence(name, p, q):
    """Of the distributions (p, 1 - p) and (q, 1 - q)."""
    P, Q = (p, 1 - p), (q, 1 - q)
    if name == "euclidean":
        return sum((a - b) ** 2 for a, b in zip(P, Q, strict=True))
    Q = tuple(min(max(b, TINY), 1 - TINY) for b in Q)
    if name == "chi2":
        return sum((a - b) ** 2 / b for a, b in zip(P, Q, strict=True))
    P = tuple(min(max(a, TINY), 1 - TINY) for a in P)
    return sum(a * math.log(a / b) for a, b in zip(P, Q, strict=True))


def impurity(name, shares):
    """Gini, or entropy for KL."""
    if name == "kl":
        return -sum(s * math.log(s) for s in shares if s > 0)
    return 1 - sum(s * s for s in shares)


class Rules:
    """Parameters of the naive tree."""

    def __init__(self, criterion, *, binary, normalize=True, laplace=True, min_split=2, n_reg=0, min_share=0, min_leaf=1,
                 min_arm=0, min_gain=None, max_depth=2, leaf="mean"):  # fmt: skip
        self.criterion, self.binary, self.normalize = criterion, binary, normalize
        self.laplace = 1 if laplace and binary and criterion != "cts" else 0
        self.min_split, self.n_reg, self.min_share, self.min_leaf, self.min_arm = (
            min_split,
            n_reg,
            min_share,
            min_leaf,
            min_arm,
        )
        self.min_gain = min_gain if min_gain is not None else (-math.inf if criterion == "cts" else 0)
        self.max_depth, self.leaf = max_depth, leaf


def sums(rows, y, arm, w, n_responses):
    """Weight and outcome sum of each arm."""
    weight, total = [0.0] * n_responses, [0.0] * n_responses
    for i in rows:
        weight[arm[i]] += w[i]
        total[arm[i]] += w[i] * y[i]
    return weight, total


def estimates(weight, total, parent, rules):
    """Equations (3) and (4) of the UCTS paper; for the divergences, plain means where an arm has any row."""
    least = rules.min_split if rules.criterion == "cts" else 0
    out = []
    for n, s, before in zip(weight, total, parent, strict=True):
        out.append((s + before * rules.n_reg) / (n + rules.n_reg) if n > 0 and n >= least else before)
    return out


def gain_of(left, right, mean, rules):
    """Gain of a split from (weight, total) by arm on both sides and the node's estimates."""
    node = [[a + b for a, b in zip(*pair, strict=True)] for pair in zip(left, right, strict=True)]
    sizes = [sum(side[0]) for side in (left, right)]
    shares = [size / sum(sizes) for size in sizes]
    if rules.criterion == "cts":
        best = [max(estimates(*side, mean, rules)) for side in (left, right)]
        return shares[0] * best[0] + shares[1] * best[1] - max(mean)

    def rate(n, s, otherwise):
        n, s = n + 2 * rules.laplace, s + rules.laplace
        return s / n if n > 0 else otherwise

    def distance(p, q):
        return divergence(rules.criterion, p, q) if rules.binary else (p - q) ** 2

    before = [rate(n, s, m) for n, s, m in zip(*node, mean, strict=True)]
    after = [[rate(n, s, b) for n, s, b in zip(*side, before, strict=True)] for side in (left, right)]
    gain = 0.0
    for k in range(1, len(mean)):
        gain += sum(share * distance(a[k], a[0]) for share, a in zip(shares, after, strict=True))
        gain -= distance(before[k], before[0])
    if not rules.normalize:
        return gain
    total = sum(node[0])
    arm_shares = [n / total for n in node[0]]
    sides = []
    for k in range(len(mean)):
        n = node[0][k] + 2 * rules.laplace
        sides.append((left[0][k] + rules.laplace) / n if n > 0 else 0.5)
    J = 0.5 + sum(s * impurity(rules.criterion, (p, 1 - p)) for s, p in zip(arm_shares, sides, strict=True))
    J += impurity(rules.criterion, arm_shares) * sum(divergence(rules.criterion, p, sides[0]) for p in sides[1:])
    return gain / J


def orders(column, categorical, rows, y, arm, w, mean):
    """Every order in which the values of a feature are cut; None stands for missing."""
    value = {i: None if math.isnan(column[i]) else column[i] for i in rows}
    present = sorted({v for v in value.values() if v is not None})
    missing = [None] if None in value.values() else []
    if not categorical:
        return [present] if not missing else [missing + present, present + missing]
    out = []
    for k in range(1, len(mean)):

        def effect(level, k=k):
            weight, total = sums([i for i in rows if value[i] == level], y, arm, w, len(mean))
            return (total[k] + mean[k]) / (weight[k] + 1) - (total[0] + mean[0]) / (weight[0] + 1)

        out.append(sorted(missing + present, key=effect))
    return out


def all_splits(X, categorical, rows, y, arm, w, mean, rules):
    """(gain, feature, rows that go left) of every admissible split of a node."""
    size = sum(w[i] for i in rows)
    least = max(rules.min_leaf, rules.min_share * size) - 1e-9 * size
    for f in range(X.shape[1]):
        value = {i: None if math.isnan(X[i, f]) else X[i, f] for i in rows}
        for order in orders(X[:, f], categorical[f], rows, y, arm, w, mean):
            for cut in range(1, len(order)):
                first = order[:cut]
                go = [i for i in rows if value[i] in first]
                stay = [i for i in rows if value[i] not in first]
                left, right = sums(go, y, arm, w, len(mean)), sums(stay, y, arm, w, len(mean))
                if min(sum(left[0]), sum(right[0])) < least:
                    continue
                if min(itertools.chain(left[0], right[0])) < rules.min_arm - 1e-9 * size:
                    continue
                yield gain_of(left, right, mean, rules), f, frozenset(go)


def check_tree(nodes, leaf_of, X, categorical, y, arm, w, rules, tolerance=1e-9):
    """Assert that a grown tree is one the naive rules allow: every split a best one, every leaf rightly a leaf.

    ``leaf_of(X)`` gives the leaf of each row. Returns the number of inner nodes that were checked.
    """
    n_responses = nodes.value.shape[1]
    leaf = leaf_of(X)
    checked = 0
    rows_of = {0: list(range(len(y)))}
    parent, parent_value = {}, {}
    depth = {0: 0}
    below = _leaves_below(nodes.left)
    for node in range(len(nodes.feature)):
        rows = rows_of[node]
        assert {int(leaf[i]) for i in rows} <= below[node]
        weight, total = sums(rows, y, arm, w, n_responses)
        if node == 0:
            mean = [s / n for s, n in zip(total, weight, strict=True)]
        else:
            mean = estimates(weight, total, parent[node], rules)
        value = mean
        if rules.criterion == "cts" and rules.leaf == "mean" and node > 0:
            value = [s / n if n > 0 else before for s, n, before in zip(total, weight, parent_value[node], strict=True)]
        np.testing.assert_allclose(nodes.value[node], value, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(nodes.weight[node], weight, rtol=1e-9, atol=1e-9)
        allowed = depth[node] < rules.max_depth and any(n >= rules.min_split for n in weight)
        splits = list(all_splits(X, categorical, rows, y, arm, w, mean, rules)) if allowed else []
        best = max((gain for gain, _, _ in splits), default=-math.inf)
        left = int(nodes.left[node])
        if left < 0:
            assert best == -math.inf or best <= rules.min_gain + tolerance
            continue
        go = [i for i in rows if int(leaf[i]) in below[left]]
        assert best > rules.min_gain - tolerance
        np.testing.assert_allclose(nodes.gain[node], best, rtol=1e-8, atol=tolerance)
        same = [gain for gain, f, part in splits if f == nodes.feature[node] and part == frozenset(go)]
        assert same, "the split is not one of the admissible ones"
        np.testing.assert_allclose(max(same), best, rtol=1e-8, atol=tolerance)
        checked += 1
        for child, part in ((left, go), (left + 1, [i for i in rows if i not in set(go)])):
            rows_of[child], parent[child], depth[child] = part, mean, depth[node] + 1
            parent_value[child] = value
    return checked


def _leaves_below(left):
    below = [set() for _ in left]
    for node in reversed(range(len(left))):
        below[node] = {node} if left[node] < 0 else below[left[node]] | below[left[node] + 1]
    return below
