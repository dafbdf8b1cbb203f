"""The UMODL searches and kernels against equation (2) written down plainly, and against searches that try everything."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import umodl as naive
from upturn.features import _search
from upturn.features._cells import Cells, two_classes
from upturn.features._cost import group_prior, interval_prior, log_factorials, part_costs
from upturn.features._groups import best_groups
from upturn.features._moves import merged, polish, shifted, thinned
from upturn.features._points import Points, scan_column, sort_column
from upturn.features._search import exact_cuts, fast_cuts, greedy_cuts, refined_cuts
from upturn.kernels.umodl import STIRLING

# Without the compiler, numpy remarks on integers that wrap around, as the keys of sorting are meant to.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar")


def draw_rows(seed, n, n_arms=2, n_classes=2, levels=None, effect=0.8):
    """Rows whose outcome depends on arm and value in a few steps."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(0, 4, n) if levels is None else rng.integers(0, levels, n).astype(float)
    arm = rng.integers(0, n_arms, n)
    push = (np.floor(values).astype(int) + arm) % 2 == 0
    cls = np.where(rng.random(n) < effect, push * (n_classes - 1), rng.integers(0, n_classes, n))
    return values, arm, cls.astype(int)


def sort_rows(values, arm, cls, n_arms=2, n_classes=2, weights=None):
    return sort_column(values, Cells((arm * n_classes + cls).astype(np.uint8), weights, n_arms, n_classes))


def prepare(values, arm, cls, n_arms=2, n_classes=2, merge_runs=True):
    column = sort_rows(values, arm, cls, n_arms, n_classes)
    points, rows = column.boundary_points(merge_runs=merge_runs)
    return points, rows, column.values(np.arange(len(column)))


def test_log_factorials_are_exact_to_the_last_bits():
    table = log_factorials(5000)
    assert table[0] == table[1] == 0.0
    expected = np.array([math.lgamma(k + 1) for k in range(5001)])
    np.testing.assert_allclose(table[:5001], expected, rtol=1e-14)


def test_log_factorials_go_over_into_stirlings_series():
    table = log_factorials(STIRLING + 3000)
    assert len(table) > STIRLING + 3000
    where = np.arange(STIRLING - 1500, STIRLING + 3000)
    np.testing.assert_allclose(table[where], [math.lgamma(k + 1) for k in where], rtol=4e-15)
    np.testing.assert_allclose(table[STIRLING:], [math.lgamma(k + 1) for k in range(STIRLING, len(table))], rtol=1e-15)
    np.testing.assert_allclose(np.diff(table[where]), np.log(where[1:]), rtol=0, atol=4e-9)  # the seam included


@given(st.lists(st.lists(st.integers(0, 30), min_size=6, max_size=6), min_size=1, max_size=4), st.sampled_from([2, 3]))
def test_part_costs_are_the_terms_of_equation_2(cells, n_arms):
    n_classes = 6 // n_arms
    pooled, separate = part_costs(np.array(cells), n_arms, n_classes)
    for k, row in enumerate(cells):
        part = np.array(row).reshape(n_arms, n_classes).tolist()
        assert pooled[k] == pytest.approx(naive.part_cost(part, 0), rel=1e-12, abs=1e-12)
        assert separate[k] == pytest.approx(naive.part_cost(part, 1), rel=1e-12, abs=1e-12)


@given(st.lists(st.lists(st.integers(0, 12), min_size=4, max_size=4), min_size=1, max_size=5))
def test_the_better_w_of_each_interval_is_the_best_choice_of_all(cells):
    parts = [np.array(row).reshape(2, 2).tolist() for row in cells]
    pooled, separate = part_costs(np.array(cells), 2, 2)
    assert np.minimum(pooled, separate).sum() == pytest.approx(naive.cost_with_all_w(parts, 0.0), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 17, 1000])
def test_interval_prior(n):
    prior = interval_prior(n, 12)
    expected = [naive.interval_prior(n, i) for i in range(1, 13)]
    np.testing.assert_allclose(prior[1:], expected, rtol=1e-12)
    assert np.all(np.diff(prior[1:], 2) < 0)  # concave: what the exact search rests on


@pytest.mark.parametrize("n_values", [1, 2, 5, 12, 40])
def test_group_prior(n_values):
    prior = group_prior(n_values, n_values)
    expected = [naive.group_prior(n_values, i) for i in range(1, n_values + 1)]
    np.testing.assert_allclose(prior[1:], expected, rtol=1e-12)
    assert np.all(np.diff(prior[1:], 2) < 1e-9)


SCALES = {"plain": 1.0, "tiny": 1e-300, "huge": 1e300, "both": None}


@given(st.integers(0, 10_000), st.integers(1, 60), st.sampled_from([None, 1, 3, 10]), st.sampled_from(list(SCALES)))
def test_sorting_carries_cells_along(seed, n, levels, scale):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=n) if levels is None else rng.integers(-levels, levels, n) * 0.1
    factor = rng.choice([5e-324, 1.0, 1e300], n) if SCALES[scale] is None else SCALES[scale]
    values = values * factor  # "both": magnitudes too far apart to be packed, so ranks take their place
    cells = rng.integers(0, 4, n).astype(np.uint8)
    column = sort_column(values, Cells(cells, None, 2, 2))
    ordered = column.values(np.arange(n))
    assert sorted(zip(values + 0.0, cells, strict=True)) == list(zip(ordered, column.packed & 3, strict=True))


@given(st.lists(st.floats(allow_infinity=False, width=64), min_size=1, max_size=20))
def test_a_scan_counts_missing_values_and_finds_the_magnitudes(values):
    missing, (base, largest) = scan_column(np.array(values))
    there = np.abs([v for v in values if v == v])
    assert missing == len(values) - len(there)
    if len(there) and there.max() > 0:
        assert np.array([base + 1, largest]).view(np.float64).tolist() == [there[there > 0].min(), there.max()]


def test_values_that_differ_in_the_last_bit_stay_apart():
    values = np.array([1.0, np.nextafter(1.0, 2.0), 1.0, np.nextafter(1.0, 2.0), -0.0, 0.0])
    column = sort_column(values, Cells(np.array([0, 1, 0, 1, 2, 3], dtype=np.uint8), None, 2, 2))
    assert column.distinct is None  # packed, not ranked
    assert (column.packed & 3)[2:].tolist() == [0, 0, 1, 1]
    points, rows = column.boundary_points()
    assert rows.tolist() == [0, 2, 4, 6]  # both zeros are one value
    assert points.counts[1].tolist() == [0, 0, 1, 1]


def test_cells_of_two_classes():
    y, arm = np.array([3.0, -1.0, 3.0]), np.array([0, 1, 2], dtype=np.uint8)
    classes, cells = two_classes(y, arm)
    assert classes.tolist() == [-1.0, 3.0]
    assert cells.tolist() == [1, 2, 5]
    assert two_classes(np.ones(3), arm) is None
    assert two_classes(np.array([0.0, 1.0, 2.0]), arm) is None


@given(st.integers(0, 10_000), st.integers(1, 80), st.sampled_from([None, 2, 6]))
def test_boundary_counts(seed, n, levels):
    values, arm, cls = draw_rows(seed, n, levels=levels)
    points, rows, ordered = prepare(values, arm, cls)
    every, every_row, _ = prepare(values, arm, cls, merge_runs=False)
    assert every_row.tolist() == [0, *(np.flatnonzero(np.diff(ordered)) + 1).tolist(), n]
    assert set(rows.tolist()) <= set(every_row.tolist())
    order = np.argsort(values, kind="stable")
    cells = (arm * 2 + cls)[order]
    for counts, row in [*zip(points.counts, rows, strict=True), *zip(every.counts, every_row, strict=True)]:
        assert counts.tolist() == np.bincount(cells[:row], minlength=4).tolist()


def test_weights_count_rows_several_times():
    values, arm, cls = draw_rows(3, 40, levels=5)
    weights = np.random.default_rng(0).integers(1, 4, 40)
    cells = (arm * 2 + cls).astype(np.uint8)
    repeated = prepare(*(np.repeat(a, weights) for a in (values, arm, cls)))[0]
    column = sort_column(values, Cells(cells, weights, 2, 2))
    np.testing.assert_array_equal(column.boundary_points()[0].counts, repeated.counts)
    points, rows = column.micro_points(3)
    for counts, row in zip(points.counts, rows, strict=True):
        before = column.packed[:row] & 3
        assert counts.tolist() == np.bincount(before, weights=column.weight[:row], minlength=4).tolist()


def test_boundary_points_have_a_limit():
    column = sort_rows(*draw_rows(0, 80))
    points, _ = column.boundary_points()
    assert column.boundary_points(len(points) - 1) is None
    np.testing.assert_array_equal(column.boundary_points(len(points))[0].counts, points.counts)


@given(st.integers(0, 10_000), st.integers(1, 90), st.sampled_from([None, 1, 4, 30]), st.sampled_from([2, 3]))
def test_micro_points_share_the_rows_and_open_into_boundary_points(seed, n, levels, n_classes):
    values, arm, cls = draw_rows(seed, n, 2, n_classes, levels)
    column = sort_rows(values, arm, cls, 2, n_classes)
    cells = column.packed & ((1 << column.bits) - 1)
    ordered = column.values(np.arange(n))
    points, rows = column.micro_points(8)
    assert rows[0] == 0
    assert rows[-1] == n
    assert np.all(np.diff(rows) > 0)
    assert np.all(ordered[rows[1:-1]] > ordered[rows[1:-1] - 1])
    longest = np.unique(values, return_counts=True)[1].max()
    assert np.max(np.diff(rows)) <= n // 8 + 1 + longest
    every = set(column.boundary_points()[1].tolist())
    around = np.array([len(rows) // 2])
    fine, fine_rows = column.refine(points, rows, around, 2)
    assert set(rows.tolist()) <= set(fine_rows.tolist())
    first, last = rows[max(around[0] - 2, 0)], rows[min(around[0] + 2, len(rows) - 1)]
    assert {row for row in every if first <= row <= last} <= set(fine_rows.tolist())
    for counts, row in [*zip(points.counts, rows, strict=True), *zip(fine.counts, fine_rows, strict=True)]:
        assert counts.tolist() == np.bincount(cells[:row], minlength=2 * n_classes).tolist()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("n_arms", "n_classes"), [(2, 2), (3, 2), (2, 3)])
def test_exact_search_finds_the_optimum(seed, n_arms, n_classes):
    levels = [None, 6, None, 12][seed % 4]
    values, arm, cls = draw_rows(seed, 20 + 8 * seed, n_arms, n_classes, levels, effect=[0.0, 0.9, 0.6][seed % 3])
    points, _, _ = prepare(values, arm, cls, n_arms, n_classes)
    prior = interval_prior(len(values), len(points))
    cuts = exact_cuts(points, prior)
    found = points.total(cuts, prior)
    assert found == pytest.approx(naive.best_cost(values, arm, cls, n_arms, n_classes), rel=1e-11)


@pytest.mark.parametrize("seed", range(6))
def test_greedy_search_is_the_papers(seed):
    values, arm, cls = draw_rows(seed, 60, levels=[None, 9][seed % 2], effect=0.9)
    points, _, ordered = prepare(values, arm, cls, merge_runs=False)
    prior = interval_prior(len(values), len(points))
    cuts = merged(points, prior, 1)
    distinct = np.unique(ordered)
    start = naive.tables(values, arm, cls, 2, 2, distinct[:-1])
    expected = naive.greedy_parts(start, len(values), naive.interval_prior)
    assert np.diff(points.counts[cuts], axis=0).reshape(-1, 2, 2).tolist() == expected


@pytest.mark.parametrize("seed", range(6))
def test_post_optimisation_ends_where_no_move_helps(seed):
    values, arm, cls = draw_rows(seed, 90, effect=0.8)
    points, _, _ = prepare(values, arm, cls)
    m = len(points) - 1
    prior = interval_prior(len(values), m + 1)
    rng = np.random.default_rng(seed)
    start = np.unique(np.concatenate([[0, m], rng.integers(1, m, 6)]))
    cuts = polish(points, start, prior)
    best = points.total(cuts, prior)
    assert best <= points.total(start, prior) + 1e-9
    inner = cuts[1:-1].tolist()
    gains = [best - points.total(np.array([0, *move, m]), prior) for move in local_moves(inner, m)]
    assert max(gains, default=0.0) <= 1e-9


def local_moves(inner, m):
    """Every split, merge, merge-split and merge-merge-split of a partition with these inner cuts."""
    cuts = [0, *inner, m]
    for span in (1, 2, 3):
        for k in range(len(cuts) - span):
            for at in range(cuts[k] + 1, cuts[k + span]):
                yield [*cuts[1 : k + 1], at, *cuts[k + span : -1]]
    for k in range(len(inner)):
        yield inner[:k] + inner[k + 1 :]


@pytest.mark.parametrize("seed", range(4))
def test_fast_search_is_as_good_as_the_exact_one_here(seed):
    values, arm, cls = draw_rows(seed, 150, effect=0.7)
    points, _, _ = prepare(values, arm, cls)
    prior = interval_prior(len(values), len(points))
    fast, exact = (points.total(search(points, prior), prior) for search in (fast_cuts, exact_cuts))
    assert fast == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("kind", ["plain", "ties", "heavy tails", "few values"])
def test_micro_points_and_all_points_lead_to_the_same_cuts(kind, monkeypatch):
    values, arm, cls = draw_rows(1, 1200, effect=0.8)
    change = {"ties": lambda v: np.round(v, 1), "heavy tails": lambda v: np.exp(20 * (v - 2)), "few values": np.floor}
    values = change.get(kind, lambda v: v)(values)
    column = sort_rows(values, arm, cls)
    points, rows = column.boundary_points()
    prior = interval_prior(len(values), len(points))
    cuts = fast_cuts(points, prior)
    monkeypatch.setattr(_search, "MICRO_BINS", 64)
    found, places = refined_cuts(column, prior)
    assert len(cuts) == 5 if kind == "plain" else len(cuts) >= 4
    np.testing.assert_array_equal(places, rows[cuts])
    np.testing.assert_array_equal(found.counts, points.counts[cuts])


def test_thinning_merges_in_rounds_and_then_one_by_one():
    points, _, _ = prepare(*draw_rows(0, 200))
    kept = thinned(points, 12)
    assert len(kept) == 13
    assert kept[0] == 0
    assert kept[-1] == len(points) - 1
    assert np.all(np.diff(kept) > 0)
    few = merged(points, None, 12)
    prior = np.zeros(20)
    found, strict, even = (
        points.total(cuts, prior) for cuts in (kept, few, np.linspace(0, len(points) - 1, 13).astype(int))
    )
    assert found - strict < 0.2 * (
        even - strict
    )  # nearly as good as strictly greedy merging, far from no choice at all


def test_shifting_ends_where_no_cut_can_be_moved_for_the_better():
    points, _, _ = prepare(*draw_rows(4, 120))
    m = len(points) - 1
    start = np.array([0, m // 4, m // 2, 3 * m // 4, m])
    first, last = start[1:-1] - 8, start[1:-1] + 8
    cuts = shifted(points, start, first, last)
    prior = np.zeros(9)
    best = points.total(cuts, prior)
    assert best < points.total(start, prior)
    for k in (1, 2, 3):
        for at in range(max(first[k - 1], cuts[k - 1] + 1), min(last[k - 1], cuts[k + 1] - 1) + 1):
            other = cuts.copy()
            other[k] = at
            assert points.total(other, prior) >= best - 1e-9


def test_searches_on_a_single_point():
    points = Points.of(np.array([[0, 0, 0, 0], [3, 1, 2, 2]], dtype=np.int32), 2, 2)
    for search in (exact_cuts, fast_cuts, greedy_cuts):
        assert search(points, interval_prior(8, 2)).tolist() == [0, 1]


def draw_groups(seed, n_values, n_arms=2, n_classes=2):
    rng = np.random.default_rng(seed)
    kinds = rng.dirichlet(np.ones(n_classes) * 0.5, size=(3, n_arms))
    sizes = rng.integers(1, 30, size=(n_values, n_arms))
    which = rng.integers(0, 3, n_values)
    counts = [[rng.multinomial(sizes[v, a], kinds[which[v], a]) for a in range(n_arms)] for v in range(n_values)]
    return np.array(counts)


def group_cost(values, labels):
    parts = [values[labels == g].sum(axis=0).tolist() for g in range(labels.max() + 1)]
    return naive.cost(parts, naive.group_prior(len(values), len(parts)))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("n_arms", "n_classes"), [(2, 2), (3, 2), (2, 3)])
def test_few_values_are_grouped_optimally(seed, n_arms, n_classes):
    values = draw_groups(seed, 1 + seed, n_arms, n_classes)
    flat = values.reshape(len(values), -1)
    labels = best_groups(flat, n_arms, n_classes, group_prior(len(values), len(values)))
    assert group_cost(values, labels) == pytest.approx(naive.best_group_cost(values.tolist()), rel=1e-11)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("greedy", [False, True])
def test_many_values_end_where_no_move_helps(seed, greedy):
    values = draw_groups(seed, 14)
    labels = best_groups(values.reshape(14, 4), 2, 2, group_prior(14, 14), greedy=greedy)
    best = group_cost(values, labels)
    assert best <= group_cost(values, np.zeros(14, dtype=int)) + 1e-9
    assert labels[0] == 0
    assert np.all(np.diff(np.maximum.accumulate(labels)) <= 1)
    for v in range(14):
        for g in range(labels.max() + 2):
            other = labels.copy()
            other[v] = g
            other = np.unique(other, return_inverse=True)[1]
            assert group_cost(values, other) >= best - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_nine_values_are_grouped_optimally_by_descent(seed):
    values = draw_groups(seed, 9)  # beyond EXACT_VALUES: several starts, then moves and merges
    labels = best_groups(values.reshape(9, 4), 2, 2, group_prior(9, 9))
    array = values.tolist()
    table = {}

    def one(group):
        key = tuple(group)
        if key not in table:
            part = values[list(group)].sum(axis=0).tolist()
            table[key] = min(naive.part_cost(part, 0), naive.part_cost(part, 1))
        return table[key]

    prior = [naive.group_prior(9, i) if i else 0.0 for i in range(10)]
    best = min(prior[len(p)] + sum(one(g) for g in p) for p in naive.set_partitions(list(range(len(array)))))
    assert group_cost(values, labels) == pytest.approx(best, rel=1e-11)
