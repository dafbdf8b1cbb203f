"""Which rows a tree sees."""

import numpy as np
import pytest

from upturn.kernels import sampling
from upturn.kernels._jit import kernel, u8
from upturn.kernels.hashing import draw
from upturn.kernels.sampling import (
    GROW,
    IN,
    NO_IDS,
    OUT,
    choose,
    choose_up_to,
    count_roles,
    find_cut,
    gather_rows,
    look,
    make_window,
    merge,
    poisson_bootstrap,
    purpose_key,
)


@pytest.fixture(autouse=True)
def _wrapping_integers():
    with np.errstate(over="ignore"):
        yield


def chosen(key, arm, wanted):
    role = np.full(len(arm), IN)
    count = np.bincount(arm, minlength=len(wanted))
    choose(np.uint64(key), arm, IN, GROW, count, np.array(wanted), role)
    return role == GROW


def test_exact_numbers_by_arm():
    arm = np.random.default_rng(0).integers(0, 3, 500).astype(np.uint8)
    mask = chosen(1, arm, [10, 0, 1000])
    assert [mask[arm == a].sum() for a in range(3)] == [10, 0, (arm == 2).sum()]
    counts = np.zeros(3, np.int64)
    count_roles(np.where(mask, GROW, OUT), GROW, arm, counts)
    np.testing.assert_array_equal(counts, [10, 0, (arm == 2).sum()])


def test_a_larger_sample_holds_the_smaller_one():
    arm = np.zeros(400, np.uint8)
    small, large = chosen(3, arm, [50]), chosen(3, arm, [60])
    assert small.sum() == 50
    assert (large | ~small).all()


def test_draws_are_by_row_not_by_order():
    """Rows of another arm, or rows that are out, do not change which rows are drawn."""
    arm = np.zeros(300, np.uint8)
    alone = chosen(5, arm, [30])
    mixed = np.r_[arm, np.ones(200, np.uint8)]
    np.testing.assert_array_equal(chosen(5, mixed, [30, 20])[:300], alone)


def test_every_row_is_as_likely():
    arm = np.zeros(40, np.uint8)
    hits = sum(chosen(key, arm, [10]) for key in range(400))
    assert hits.sum() == 4000
    assert (np.abs(hits - 100) < 5 * np.sqrt(400 * 0.25 * 0.75)).all()


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_poisson_bootstrap(rate):
    role, copies = np.full(4000, IN), np.zeros(4000, np.uint8)
    role[:1000] = OUT
    poisson_bootstrap(np.uint64(9), np.uint64(0), NO_IDS, rate, IN, GROW, role, copies)
    assert not copies[:1000].any()
    drawn = copies[1000:]
    np.testing.assert_array_equal(role[1000:] == GROW, drawn > 0)
    assert abs(drawn.mean() - rate) < 5 * np.sqrt(rate / 3000)
    assert abs(drawn.var() - rate) < 0.2 * rate


def test_gathered_rows_carry_their_words():
    role = np.array([0, 2, 2, 0, 2], np.uint8)
    copies, arm = np.array([0, 1, 3, 0, 2], np.uint8), np.array([0, 1, 0, 1, 1], np.uint8)
    words = np.arange(10)
    index, word, row_arm = np.empty(3, np.uint32), np.empty(6, np.int64), np.empty(3, np.uint8)
    assert gather_rows(role, GROW, copies, words, 2, 0, arm, index, word, row_arm) == 3
    assert index.tolist() == [1, 2, 4]
    assert word.tolist() == [2, 3, 12, 15, 16, 18]
    assert row_arm.tolist() == [1, 0, 1]
    # the weight's word, 100, is the same for all rows: only copies make it differ
    gather_rows(role, GROW, copies, words[:5], 2, 100, arm, index, word, row_arm)
    assert word.tolist() == [100, 1, 300, 6, 200, 8]
    gather_rows(role, GROW, np.empty(0, np.uint8), words[:5], 2, 100, arm, index, word[:3], row_arm)
    assert word[:3].tolist() == [1, 2, 4]


def test_keys_differ_by_seed_purpose_and_number():
    keys = {int(purpose_key(*map(np.uint64, key))) for key in np.ndindex(4, 4, 4)}
    assert len(keys) == 64


@kernel(u8, u8, u8)
def hash_of(key, row):
    return draw(key, row)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.5, 0.999, 1.0])
def test_the_chosen_rows_are_those_with_the_smallest_hashes(share):
    """Windows found in three places, with ids of their own, against a sort of all hashes."""
    rng = np.random.default_rng(4)
    n, key = 3000, np.uint64(11)
    arm, ids = rng.integers(0, 2, n).astype(np.uint8), rng.permutation(10**6)[:n].astype(np.uint64)
    count = np.bincount(arm)
    wanted = np.floor(share * count).astype(np.int64)
    hashes = np.array([hash_of(key, i) for i in ids])
    expected = np.zeros(n, bool)
    for a in (0, 1):
        mine = np.flatnonzero(arm == a)
        expected[mine[np.argsort(hashes[mine])[: wanted[a]]]] = True
    spans = [slice(0, 1), slice(1, 1), slice(1, 2000), slice(2000, n)]
    window = make_window(count, wanted)
    role = np.full(n, IN)
    found = [look(key, arm[span], IN, role[span], window, 0, ids[span]) for span in spans]
    cut = find_cut(merge(found), count, wanted)
    for span in spans:
        choose_up_to(key, np.uint64(0), ids[span], arm[span], IN, GROW, *cut, role[span])
    np.testing.assert_array_equal(role == GROW, expected)
    np.testing.assert_array_equal(chosen_by(key, arm, ids, wanted), expected)


def chosen_by(key, arm, ids, wanted):
    role = np.full(len(arm), IN)
    choose(key, arm, IN, GROW, np.bincount(arm), wanted, role, ids=ids)
    return role == GROW


def test_a_cut_outside_its_window_is_looked_for_everywhere(monkeypatch):
    arm = np.zeros(5000, np.uint8)
    expected = chosen(3, arm, [700])
    monkeypatch.setattr(sampling, "_WIDE", 1e-9)
    count, wanted = np.array([5000]), np.array([700])
    assert find_cut(look(np.uint64(3), arm, IN, np.full(5000, IN), make_window(count, wanted)), count, wanted) is None
    np.testing.assert_array_equal(chosen(3, arm, [700]), expected)


def test_a_bootstrap_draws_by_ids():
    whole, parts = np.zeros(100, np.uint8), []
    poisson_bootstrap(np.uint64(9), np.uint64(0), NO_IDS, 1.0, IN, GROW, np.full(100, IN), whole)
    for first, n in ((0, 30), (30, 70)):
        copies = np.zeros(n, np.uint8)
        poisson_bootstrap(np.uint64(9), np.uint64(first), NO_IDS, 1.0, IN, GROW, np.full(n, IN), copies)
        parts.append(copies)
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    order = np.random.default_rng(0).permutation(100)
    listed = np.zeros(100, np.uint8)
    poisson_bootstrap(np.uint64(9), np.uint64(0), order.astype(np.uint64), 1.0, IN, GROW, np.full(100, IN), listed)
    np.testing.assert_array_equal(listed, whole[order])
