"""Histograms, criteria, the grower and the node table against naive twins."""

from itertools import pairwise

import numpy as np
import pytest

from naive import trees as naive
from upturn.kernels import growing
from upturn.kernels._jit import F8_out, f8, i8, inner, kernel, u8, void
from upturn.kernels.criteria import CRITERIA, CTS, EUCLIDEAN, RULES, Criterion, Rules, choose_gain, divergence
from upturn.kernels.forest import add_up, find_leaves, group_moments, pack_nodes, twin_codes
from upturn.kernels.hashing import fold
from upturn.kernels.histogram import CELLS, LAYOUT, Layout, Rows, build, features_a_pass, seen


@pytest.fixture(autouse=True)
def _wrapping_integers():
    with np.errstate(all="ignore"):
        yield


@kernel(u8, u8, u8)
def folded(key, value):
    return fold(key, value)


def make_rows(index, arm, y, weight=None):
    """Rows and layout: packed for integers without weights, else paired with scales of 2^-20.

    A weight that is one number for all is left out of the rows.
    """
    if np.isscalar(weight):
        grid = 2.0**20
        words, layout = (weight * y * grid).astype(np.int64), Layout(2, 0, 1 / grid, 1 / grid, 0.0, int(weight * grid))
    elif weight is None:
        words, layout = y.astype(np.int64) + (np.int64(1) << 32), Layout(1, 32, 1.0, 1.0, 0.0, 0)
    else:
        grid = 2.0**20
        words = np.rint(np.c_[weight, weight * y] * grid).astype(np.int64).reshape(-1)
        layout = Layout(2, 0, 1 / grid, 1 / grid, 0.0, 0)
    return Rows(index.astype(np.uint32), words.copy(), arm.astype(np.uint8)), layout


def experiment(n, p, n_arms, seed=0, n_codes=6):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_codes, (p, n)).astype(np.uint8)
    arm = rng.integers(0, n_arms + 1, n).astype(np.uint8)
    y = (rng.random(n) < 0.3 + 0.4 * (codes[0] > 2) * (arm == 1)).astype(float)
    return codes, arm, y


def rules(**changes):
    basic = Rules(
        criterion=CTS, binary=True, normalize=False, laplace=0.0, min_split=4.0, n_reg=0.0, inherit_below=4.0, min_share=0.0,
        min_leaf=1.0, min_arm=0.0, min_gain=-np.inf, max_depth=4, max_features=3, random_share=0.0, honest=False,
        plain_leaves=False, subtraction=False,
    )  # fmt: skip
    return basic._replace(**changes)


def grow(
    codes, rows, layout, rule, n_arms, held=None, key=1, depth=0, mean=None, categorical=None, n_codes=6, block=0, far=0
):
    p = len(codes)
    none = Rows(np.empty(0, np.uint32), np.empty(0, np.int64), np.empty(0, np.uint8))
    flags = np.zeros(p, np.uint8) if categorical is None else np.array(categorical, np.uint8)
    table = growing.Binned(codes.reshape(-1).copy(), codes.shape[1], np.full(p, n_codes, np.int32), flags, block, far)
    copy = Rows(*(array.copy() for array in rows))
    held = none if held is None else Rows(*(array.copy() for array in held))
    mean = np.zeros(n_arms + 1) if mean is None else mean
    n, links, numbers, n_sets, sets = growing.grow(
        np.uint64(key), depth, np.r_[mean, mean], copy, held, table, rule, layout
    )
    return links[:n], numbers[:n], sets[:n_sets]


@pytest.mark.parametrize("weighted", ["no", "alike", "yes"])
@pytest.mark.parametrize("n_arms", [0, 1, 2])
@pytest.mark.parametrize("p", [1, 4, 7])
def test_histograms_are_sums(weighted, n_arms, p):
    codes, arm, y = experiment(60, p, n_arms)
    weight = np.random.default_rng(1).integers(1, 9, 60) / 4.0 if weighted == "yes" else np.full(60, 1.5)
    index = np.flatnonzero(np.arange(60) % 3 > 0)
    given = {"no": None, "alike": 1.5, "yes": weight[index]}[weighted]
    rows, layout = make_rows(index, arm[index], y[index], given)
    cells = np.empty(p * (n_arms + 1) * CELLS * layout.n_words, np.int64)
    build(codes.reshape(-1).copy(), 60, np.arange(p), seen(rows), 0, len(index), layout, n_arms + 1, cells)
    cells = cells.reshape(p, n_arms + 1, layout.n_words, CELLS)
    weighted = weighted != "no"
    for f in range(p):
        for a in range(n_arms + 1):
            for code in range(CELLS):
                here = [i for i in index if codes[f, i] == code and arm[i] == a]
                w = sum(weight[i] if weighted else 1.0 for i in here)
                s = sum((weight[i] if weighted else 1.0) * y[i] for i in here)
                if weighted:
                    assert cells[f, a, :, code].tolist() == [w * 2**20, s * 2**20]
                else:
                    assert divmod(int(cells[f, a, 0, code]), 2**32) == (w, s)


@kernel(i8, i8, LAYOUT)
def width_of_a_pass(n_arms, layout):
    return features_a_pass(n_arms, layout)


@pytest.mark.parametrize(
    ("n_arms", "n_words", "width"),
    [(1, 1, 4), (2, 1, 4), (3, 1, 2), (4, 1, 2), (5, 1, 1), (1, 2, 2), (2, 2, 2), (3, 2, 1), (9, 2, 1)],
)
def test_the_histograms_of_a_pass_take_16_kib(n_arms, n_words, width):
    """The tests above have passes of four, two and one feature in both forms."""
    assert width_of_a_pass(n_arms, Layout(n_words, 0, 1.0, 1.0, 0.0, 0)) == width


@kernel(f8, i8, f8, f8)
def divergence_of_rates(code, p, q):
    return divergence(code, p, q)


@pytest.mark.parametrize("name", ["euclidean", "kl", "chi2"])
def test_divergences(name):
    for p in (0.0, 0.2, 0.5, 1.0):
        for q in (0.0, 0.1, 0.5, 0.9, 1.0):
            found = divergence_of_rates(CRITERIA[name].code, p, q)
            np.testing.assert_allclose(found, naive.divergence(name, p, q), rtol=1e-12, atol=1e-15)
            assert np.isfinite(found)
        if 0 < p < 1:
            assert divergence_of_rates(CRITERIA[name].code, p, p) == 0.0


@inner
def gain_of_seven(cuts, node, rules, out):
    out[0] = 7.0


@inner
def gain_of_eight(cuts, node, rules, out):
    out[0] = 8.0


@inner
def gain_of_nine(cuts, node, rules, out):
    out[0] = 9.0


table = [Criterion(k, f) for k, f in enumerate((gain_of_seven, gain_of_eight, gain_of_seven, gain_of_nine))]
gain_by_table = choose_gain(table)


@kernel(void, RULES, F8_out)
def one_gain(rules, out):
    gain_by_table(out, out, rules, out)


def test_a_line_of_the_table_is_all_a_criterion_needs():
    """The function that a criterion's line names is the one that is called, also where lines share one."""
    found = np.empty(4)
    for code in range(4):
        one_gain(rules(criterion=code), found[code:])
    assert found.tolist() == [7.0, 8.0, 7.0, 9.0]
    assert [criterion.code for criterion in CRITERIA.values()] == list(range(len(CRITERIA)))


def leaf_finder(links, sets):
    """Drop rows down a tree by the words of its links, in plain Python."""

    def leaves(codes):
        out = []
        for row in codes:
            node = 0
            while links[node, growing.LEFT_CHILD] >= 0:
                code = int(row[links[node, growing.FEATURE_COLUMN]])
                if links[node, growing.CATEGORY_SET] >= 0:
                    word = int(sets[links[node, growing.CATEGORY_SET], code // 64])
                    left = (word >> (code % 64)) & 1
                elif code == 0:
                    left = links[node, growing.MISSING_LEFT]
                else:
                    left = code <= links[node, growing.CUT]
                node = links[node, growing.LEFT_CHILD] + (0 if left else 1)
            out.append(node)
        return np.array(out)

    return leaves


class Table:
    """The columns of a node table that ``naive.check_tree`` reads."""

    def __init__(self, links, numbers, n_responses):
        self.feature, self.left = links[:, growing.FEATURE_COLUMN], links[:, growing.LEFT_CHILD]
        self.gain = numbers[:, 0]
        self.value, self.weight = numbers[:, 1 : 1 + n_responses], numbers[:, 1 + n_responses : 1 + 2 * n_responses]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", list(CRITERIA))
def test_trees_are_naive_trees(criterion, weighted):
    codes, arm, y = experiment(48, 3, 2, seed=3, n_codes=5)
    weight = np.random.default_rng(2).integers(1, 9, 48) / 4.0 if weighted else np.ones(48)
    rows, layout = make_rows(np.arange(48), arm, y, weight if weighted else None)
    rule = rules(criterion=CRITERIA[criterion].code, max_depth=2)
    if criterion != "cts":
        rule = rule._replace(normalize=True, laplace=1.0, min_gain=0.0, inherit_below=1e-300)
    categorical = [False, True, False]
    links, numbers, sets = grow(codes, rows, layout, rule, 2, categorical=categorical, n_codes=5)
    X = np.where(codes.T == 0, np.nan, codes.T.astype(float))
    naive_rules = naive.Rules(criterion, binary=True, min_split=4, max_depth=2, leaf="regularized")
    finder = leaf_finder(links, sets.view(np.uint64))
    checked = naive.check_tree(
        Table(links, numbers, 3),
        lambda X: finder(np.nan_to_num(X).astype(int)),
        X,
        categorical,
        y,
        arm,
        weight,
        naive_rules,
    )
    assert checked >= 1


def test_subtraction_and_blocks_change_nothing():
    codes, arm, y = experiment(300, 5, 2, seed=4)
    for weight in (None, np.ones(300)):
        rows, layout = make_rows(np.arange(300), arm, y, weight)
        rule = rules(max_features=5, max_depth=6)
        plain = grow(codes, rows, layout, rule, 2)
        assert len(plain[0]) > 9
        others = [
            grow(codes, rows, layout, rule._replace(subtraction=True), 2),
            grow(codes, rows, layout, rule, 2, block=80),
            grow(codes, rows, layout, rule._replace(subtraction=True), 2, block=1000),
        ]
        for other in others:
            for one, two in zip(plain, other, strict=True):
                np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("far", [0, 100, 3000])
@pytest.mark.parametrize(("seen", "block"), [(3000, 40), (400, 5), (64, 64), (64, 63), (3000, 374), (3000, 375)])
def test_blocks_behind_blocks_change_nothing(seen, block, far):
    codes, arm, y = experiment(3000, 5, 2, seed=4)
    drawn = np.random.default_rng(0).permutation(3000)
    index, others = np.sort(drawn[:seen]), np.sort(drawn[seen:])
    (rows, layout), (held, _) = (make_rows(mine, arm[mine], y[mine]) for mine in (index, others))
    for rule in (rules(max_features=5, max_depth=9), rules(max_features=2, max_depth=9, subtraction=True, honest=True)):
        plain = grow(codes, rows, layout, rule, 2, held=held)
        blocks = grow(codes, rows, layout, rule, 2, held=held, block=block, far=far)
        assert len(plain[0]) > 9
        for one, two in zip(plain, blocks, strict=True):
            np.testing.assert_array_equal(one, two)


def test_rows_in_any_order_give_the_same_tree():
    codes, arm, y = experiment(200, 4, 1, seed=5)
    shuffled = np.random.default_rng(0).permutation(200)
    for weight in (None, np.random.default_rng(1).random(200)):
        rows, layout = make_rows(np.arange(200), arm, y, weight)
        other, _ = make_rows(shuffled, arm[shuffled], y[shuffled], None if weight is None else weight[shuffled])
        for one, two in zip(grow(codes, rows, layout, rules(), 1), grow(codes, other, layout, rules(), 1), strict=True):
            np.testing.assert_array_equal(one, two)


def test_a_subtree_can_be_grown_on_its_own():
    """From a node's rows, key, depth and parent's estimates follows the same subtree."""
    codes, arm, y = experiment(250, 4, 1, seed=6)
    rows, layout = make_rows(np.arange(250), arm, y)
    rule = rules(max_features=2, n_reg=3.0)
    links, numbers, sets = grow(codes, rows, layout, rule, 1)
    leaf = leaf_finder(links, sets)(codes.T)
    below = naive._leaves_below(links[:, growing.LEFT_CHILD])
    first = links[0, growing.LEFT_CHILD]
    for child, side in ((first, 1), (first + 1, 2)):
        inside = np.flatnonzero(np.isin(leaf, list(below[child])))
        part, _ = make_rows(inside, arm[inside], y[inside])
        key = folded(np.uint64(1), np.uint64(side))
        again, again_numbers, _ = grow(codes, part, layout, rule, 1, key=key, depth=1, mean=numbers[0, 1:3].copy())
        pairs, compared = [(child, 0)], 0
        while pairs:
            i, j = pairs.pop()
            np.testing.assert_array_equal(numbers[i], again_numbers[j])
            np.testing.assert_array_equal(links[i, [0, 1, 4]], again[j, [0, 1, 4]])
            compared += 1
            if links[i, growing.LEFT_CHILD] >= 0:
                pairs += [(links[i, growing.LEFT_CHILD] + s, again[j, growing.LEFT_CHILD] + s) for s in (0, 1)]
        assert compared == len(again) > 3


def test_honest_values_come_from_the_rows_held_out():
    codes, arm, y = experiment(120, 3, 1, seed=7)
    growers, held = np.arange(0, 120, 2), np.arange(1, 120, 2)
    rows, layout = make_rows(growers, arm[growers], y[growers])
    others, _ = make_rows(held, arm[held], y[held])
    links, numbers, sets = grow(codes, rows, layout, rules(honest=True), 1, held=others)
    leaf = leaf_finder(links, sets)(codes.T[held])
    below = naive._leaves_below(links[:, growing.LEFT_CHILD])
    parent = {links[i, growing.LEFT_CHILD] + side: i for i in range(len(links)) for side in (0, 1)}
    for node in range(len(links)):
        for a in (0, 1):
            here = [i for i, at in zip(held, leaf, strict=True) if at in below[node] and arm[i] == a]
            expected = np.mean(y[here]) if here else numbers[parent[node], 1 + a]
            np.testing.assert_allclose(numbers[node, 1 + a], expected)
            assert numbers[node, 3 + a] == len(here)


@pytest.mark.parametrize("room", [1, 3])
def test_a_tree_that_outgrows_its_room_is_the_same(monkeypatch, room):
    codes, arm, y = experiment(150, 4, 2, seed=9)
    grown = []
    for nodes in (1000, room):
        monkeypatch.setattr(growing, "_NODES", nodes)
        rows, layout = make_rows(np.arange(150), arm, y)  # growing reorders them
        grown.append(grow(codes, rows, layout, rules(max_features=2), 2, categorical=[0, 1, 0, 1]))
    (links, numbers, sets), again = grown
    assert len(links) > 8
    assert len(sets) > 2
    for one, other in zip((links, numbers, sets), again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_prediction_walks_the_tree():
    codes, arm, y = experiment(150, 4, 2, seed=8)
    rows, layout = make_rows(np.arange(150), arm, y)
    trees = []
    for key in range(4):
        categorical = [0, 1, 0, 1] if key % 2 else [0, 0, 0, 0]
        trees.append(grow(codes, rows, layout, rules(max_features=2), 2, key=key, categorical=categorical))
    starts = np.cumsum([0] + [len(links) for links, _, _ in trees])
    set_starts = np.cumsum([0] + [len(sets) for _, _, sets in trees])
    links = np.concatenate([t[0] for t in trees]).astype(np.int64)
    for t, (first, first_set) in enumerate(zip(starts[:-1], set_starts[:-1], strict=True)):
        part = links[starts[t] : starts[t + 1]]
        part[:, growing.LEFT_CHILD] += np.where(part[:, growing.LEFT_CHILD] >= 0, first, 0)
        part[:, growing.CATEGORY_SET] += np.where(part[:, growing.CATEGORY_SET] >= 0, first_set, 0)
    sets = np.concatenate([t[2] for t in trees]).view(np.uint64)
    values = np.concatenate([t[1][:, 1:4] for t in trees])
    is_set = links[:, 3] >= 0
    nodes = pack_nodes(links[:, 0], links[:, 1], links[:, 2], is_set, links[:, 4] == 1)
    plain = np.array([not is_set[a:b].any() for a, b in pairwise(starts)])
    assert plain.tolist() == [True, False, True, False]
    some = codes[:, :51]
    expected = np.array([leaf_finder(t[0], t[2].view(np.uint64))(some.T) for t in trees]).T

    roots = starts[:-1].astype(np.uint32)
    arguments = (roots, plain.astype(np.uint32), nodes, links[:, 3].astype(np.int32), sets)
    leaves = find_leaves(twin_codes(some), *arguments)
    np.testing.assert_array_equal(leaves.T - starts[:-1], expected)
    one_by_one = find_leaves(twin_codes(some), roots, np.zeros(len(trees), np.uint32), *arguments[2:])
    np.testing.assert_array_equal(leaves, one_by_one)  # the way of trees with sets is right for the others too

    by_tree = values[expected + starts[:-1]]  # rows, trees, arms
    expected = np.full((51, 3), 0.25)
    for tree in range(len(trees)):
        expected += by_tree[:, tree]
    # Numbers 1.0, 2.0, … whose code they are, and levels 0.0, 1.0, … whose code is one more; 0 is missing.
    as_numbers = np.where(some == 0, np.nan, some - np.array([[0], [1], [0], [1]])).T
    middles = np.append(np.arange(1.5, 255.5), np.inf)
    ranges, level_code = np.array([[-1, -1], [0, 255], [-1, -1], [0, 255]]), np.arange(1, 256, dtype=np.int32)
    bins = (np.tile(middles, (4, 1)), ranges, level_code, np.arange(4))
    for size in (8, 24, 64):  # blocks end in the middle of eight rows, and of the table
        out = np.full((51, 3), 0.25)
        add_up(np.ascontiguousarray(as_numbers), *bins, *arguments, values, size, out)
        np.testing.assert_array_equal(out, expected)

    effects = (by_tree[:, :, 1:] - by_tree[:, :, :1]).reshape(51, 2, 2, 2)  # rows, groups, trees, effects
    group, mean, between, total = (np.zeros((51, 2)) for _ in range(4))
    for part in (slice(0, 3), slice(3, 4)):  # a group may be cut in two
        group_moments(leaves[part], values, part.start, 2, group, mean, between, total)
    np.testing.assert_allclose(mean, effects.mean(axis=2).sum(axis=1))
    np.testing.assert_allclose(between, (effects.mean(axis=2) ** 2).sum(axis=1))
    np.testing.assert_allclose(total, (effects**2).sum(axis=(1, 2)))


def test_euclidean_of_a_real_outcome_is_the_squared_difference_of_means():
    codes = np.array([[1, 1, 1, 1, 2, 2, 2, 2]], np.uint8)
    arm = np.array([0, 1] * 4, np.uint8)
    y = np.array([0.0, 2.0, 0.0, 2.0, 1.0, 0.0, 1.0, 0.0])
    rows, layout = make_rows(np.arange(8), arm, y, np.ones(8))
    rule = rules(criterion=EUCLIDEAN, binary=False, min_gain=0.0, max_features=1, max_depth=1, min_split=1.0)
    _, numbers, _ = grow(codes, rows, layout, rule, 1)
    np.testing.assert_allclose(numbers[0, 0], 0.5 * 4.0 + 0.5 * 1.0 - 0.25)
