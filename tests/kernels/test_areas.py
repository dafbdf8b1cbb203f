"""Folds over blocks of the table and replicates, against naive twins; these also run without the compiler."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from naive import auuc as naive
from naive import metrics as naive_metrics
from strategies import experiments
from upturn.kernels import areas, ranking, resampling, walking
from upturn.kernels._jit import f8, kernel
from upturn.kernels.sorting import argsort_descending

NONE, NO_UNITS, ONCE = np.empty(0), np.empty(0, np.uint32), np.ones((1, 1), np.uint8)


def with_weight(y, score, arm, weight):
    """The rows that have some."""
    if weight is None:
        return y, score, arm, None
    return y[weight > 0], score[weight > 0], arm[weight > 0], weight[weight > 0]


def arranged(y, score, arm, weight):
    order, last = argsort_descending(score)
    side, heavy = arm.astype(np.uint8), np.empty(0) if weight is None else weight
    columns = np.empty(len(y)), np.empty(len(y), np.uint8), np.empty(len(heavy))
    ranking.arrange(order, y, side, heavy, *columns)
    return order, (last, *columns)


def walked(columns, codes, totals, unit=NO_UNITS, counts=ONCE, shares=NONE, arm_shares=NONE):
    """Folds, the table at shares of all and of each arm, and its last row, for every replicate."""
    n = len(totals)
    out = np.empty((n, len(codes), 2)), np.empty((n, len(shares), 4)), np.empty((n, len(arm_shares), 4))
    tops = np.empty((n, 4))
    walking.walk(np.array(codes, dtype=np.int64), shares, arm_shares, totals, *columns, unit, counts, *out, tops)
    return *out, tops


def totals_of(columns):
    totals = np.empty((1, 4))
    ranking.sum_columns(*columns[1:], totals[0])
    return totals


def folded(code, experiment):
    _, columns = arranged(*experiment)
    folds, _, _, tops = walked(columns, [code], totals_of(columns))
    return folds[0, 0], tops[0]


@given(experiment=experiments(max_rows=12))
@settings(max_examples=30)
def test_areas(experiment):
    experiment = y, score, arm, weight = with_weight(*experiment)
    heavy = np.ones(len(y)) if weight is None else weight
    (twice0, twice1), (w0, s0, w1, s1) = folded(areas.LIFTS, experiment)
    separate = (twice1 - w1 * s1) / (2 * w1**2) - (twice0 - w0 * s0) / (2 * w0**2)
    assert separate == pytest.approx(naive.separate_auuc(y, score, arm, heavy), abs=1e-12)
    (twice, _), _ = folded(areas.GAIN, experiment)
    n = w0 + w1
    joint = (twice - n * n * (s1 / w1 - s0 / w0)) / (2 * n * n)
    assert joint == pytest.approx(naive.joint_auuc(y, score, arm, heavy), abs=1e-12)
    effect = naive_metrics.effect_scores(y, arm, heavy)
    (twice, right), _ = folded(areas.DEVIATION, experiment)
    assert twice / (2 * n * n) == pytest.approx(naive_metrics.qini(effect, score, heavy), abs=1e-12)
    assert right / n**2 == pytest.approx(naive_metrics.qini_right(effect, score, heavy), abs=1e-12)
    (harmonic, _), _ = folded(areas.HARMONIC, experiment)
    assert harmonic / n == pytest.approx(naive_metrics.autoc(effect, score, heavy), abs=1e-12)


def test_blocks_join_seamlessly():
    rng = np.random.default_rng(0)
    n = 3 * walking.BLOCK
    experiment = (
        rng.integers(0, 2, n).astype(float),
        rng.integers(0, 2 * walking.BLOCK, n) + 0.0,
        rng.integers(0, 2, n),
        None,
    )
    y, score, arm, _ = experiment
    (twice0, twice1), (w0, _, w1, _) = folded(areas.LIFTS, experiment)
    mine = [np.flatnonzero(arm == a) for a in (0, 1)]
    for rows, twice, w in zip(mine, (twice0, twice1), (w0, w1), strict=True):
        above = (score[rows][:, None] > score[rows]).sum(axis=1) + (score[rows][:, None] == score[rows]).sum(axis=1) / 2
        assert twice / 2 == pytest.approx((y[rows] * above).sum(), rel=1e-13)
        assert w == len(rows)


@kernel(f8, f8, f8)
def sum_of_reciprocals(k, m):
    return areas.reciprocals(k, m)


@pytest.mark.parametrize(("k", "m"), [(0, 1), (0, 5), (3, 9), (8.5, 2), (0.25, 40), (1e6, 3), (123.75, 1000)])
def test_reciprocals(k, m):
    expected = sum(1 / (k + j) for j in range(1, m + 1))
    assert sum_of_reciprocals(float(k), float(m)) == pytest.approx(expected, rel=1e-13)


def test_half_samples_take_half_of_every_stratum_evenly():
    with np.errstate(over="ignore"):
        starts, n = np.array([0, 4, 9, 10]), 600
        counts, totals = np.empty((10, n), np.uint8), np.empty((n, 3, 2))
        value, weight = np.arange(10.0), np.ones(10)
        resampling.draw_replicates(resampling.HALF, np.uint64(3), 0, starts, value, weight, counts, totals)
        for replicate in range(n):
            mine = counts[:, replicate]
            sizes = [mine[a:b].sum() for a, b in pairwise(starts)]
            assert sizes[0] == 2
            assert sizes[1] in (2, 3)
            assert sizes[2] == 1
            np.testing.assert_array_equal(totals[replicate, :, 0], sizes)
            np.testing.assert_array_equal(
                totals[replicate, :, 1], [(mine * np.arange(10))[a:b].sum() for a, b in pairwise(starts)]
            )
        assert (np.abs(counts[:9].sum(axis=1) - 300.0) < 5 * np.sqrt(150)).all()
        pairs = int((counts[0] & counts[1]).sum())
        assert abs(pairs - 100) < 5 * np.sqrt(600 * 5 / 36)  # two given rows of four are both taken with chance 1/6
        later, their = np.empty((10, 3), np.uint8), np.empty((3, 3, 2))
        resampling.draw_replicates(resampling.HALF, np.uint64(3), 7, starts, value, weight, later, their)
        np.testing.assert_array_equal(later, counts[:, 7:10])  # whichever block a replicate is drawn in
        np.testing.assert_array_equal(their, totals[7:10])


@given(experiment=experiments(max_rows=12))
@settings(max_examples=30)
def test_counts_stand_for_repeated_rows(experiment):
    experiment = y, score, arm, weight = with_weight(*experiment)
    order, columns = arranged(*experiment)
    counts = np.stack([(np.arange(len(y)) + shift) % 3 for shift in range(3)], axis=1).astype(np.uint8)
    for a in (0, 1):
        counts[np.argmax(arm == a)] = 1  # somebody of each arm
    codes = [areas.LIFTS, areas.GAIN, areas.RADCLIFFE, areas.BALANCED, areas.DEVIATION, areas.HARMONIC]
    shares = np.array([0.0, 0.3, 0.3, 1.0])
    totals, expected = np.empty((3, 4)), []
    for r in range(3):
        drawn = np.repeat(np.arange(len(y)), counts[:, r])
        repeated = y[drawn], score[drawn], arm[drawn], None if weight is None else weight[drawn]
        mine = arranged(*repeated)[1]
        totals[r] = totals_of(mine)[0]
        expected.append(walked(mine, codes, totals[r : r + 1], shares=shares, arm_shares=shares))
    found = walked(columns, codes, totals, order, counts, shares, shares)
    for mine, theirs in zip(found, map(np.concatenate, zip(*expected, strict=True)), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-9, rtol=1e-9)


def test_replicates_join_blocks_seamlessly():
    rng = np.random.default_rng(1)
    n = 3 * walking.BLOCK
    experiment = rng.normal(size=n), rng.integers(0, 2 * walking.BLOCK, n) + 0.0, rng.integers(0, 2, n), None
    order, columns = arranged(*experiment)
    counts = rng.integers(0, 3, (n, 5)).astype(np.uint8)
    counts[order[-40:], 2] = 0  # a replicate whose table ends before the list does
    arm, y = experiment[2], experiment[0]
    totals = np.array([[(counts[arm == a, r] * v).sum() for a in (0, 1) for v in (1.0, y[arm == a])] for r in range(5)])
    grid = np.linspace(0, 1, 7)
    found = walked(columns, [areas.GAIN, areas.HARMONIC], totals, order, counts, grid, grid)
    for r in range(5):
        drawn = np.repeat(np.arange(n), counts[:, r])
        alone = arranged(*(column[drawn] for column in experiment[:3]), None)[1]
        expected = walked(alone, [areas.GAIN, areas.HARMONIC], totals[r : r + 1], shares=grid, arm_shares=grid)
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine[r], theirs[0], rtol=1e-9, atol=1e-9)


def test_long_rankings_are_thinned_to_some_ties_of_their_own():
    rng = np.random.default_rng(2)
    last = rng.random(300_000) < 0.8
    last[-1] = True
    kept = np.empty(len(last), bool)
    walking.thin(last, kept)
    assert kept[-1]
    assert last[kept].all()  # a tie is never cut
    np.testing.assert_array_equal(kept[:1024], last[:1024])
    assert 1 << 14 < kept.sum() < 1 << 15
    steps = np.diff(np.flatnonzero(kept))
    assert steps.max() <= (len(last) >> 14) + 40  # and the rest of a tie


@pytest.mark.parametrize("weighted", [False, True])
def test_units_are_rows_or_groups_of_them(weighted):
    rng = np.random.default_rng(3)
    n = 4000
    stratum, y = rng.integers(0, 2, n).astype(np.uint8), rng.normal(size=n)
    weight = np.where(rng.random(n) < 0.1, 0.0, rng.uniform(1, 2, n)) if weighted else NONE
    heavy = weight if weighted else np.ones(n)
    rows = np.bincount(stratum[heavy > 0])
    starts = np.array([0, rows[0], rows[0] + 64])  # rows of the first are units, those of the second go into 64 groups
    unit, unit_y, unit_weight = np.empty(n, np.uint32), np.empty(starts[-1]), np.empty(starts[-1])
    with np.errstate(over="ignore"):  # hashes wrap around; without the compiler numpy would say so
        resampling.assign_units(stratum, starts, rows, y, weight, unit, unit_y, unit_weight)
    first, second = (np.flatnonzero((stratum == a) & (heavy > 0)) for a in (0, 1))
    np.testing.assert_array_equal(unit[first], np.arange(rows[0]))
    np.testing.assert_array_equal(unit_y[: rows[0]], y[first])
    np.testing.assert_array_equal(unit_weight[: rows[0]], heavy[first])
    groups = unit[second].astype(int)
    assert groups.min() >= starts[1]
    assert groups.max() < starts[2]
    sums = [np.bincount(groups, v, starts[2])[starts[1] :] for v in (heavy[second], (heavy * y)[second])]
    np.testing.assert_allclose(unit_weight[starts[1] :], sums[0])
    np.testing.assert_allclose(unit_y[starts[1] :], sums[1] / sums[0])
    size = rows[1] / 64
    assert (np.abs(np.bincount(groups - starts[1], minlength=64) - size) < 5 * np.sqrt(size)).all()


def sums_by_score(y, score, arm, weight):
    """Sums per distinct score, the highest first: what parts of a table add up before it travels."""
    heavy = np.ones(len(y)) if weight is None else weight
    found = []
    for value in sorted(set(score.tolist()), reverse=True):
        rows = score == value
        sums = [(heavy * (arm == side) * rows * factor).sum() for side in (0, 1) for factor in (1.0, y)]
        found.append([*sums, rows.sum()])
    return np.array(found)


@given(experiment=experiments(max_rows=14))
@settings(max_examples=30)
def test_a_table_walked_down_in_ranges_is_the_ranking(experiment):
    experiment = with_weight(*experiment)
    _, columns = arranged(*experiment)
    totals, codes = totals_of(columns), list(range(9))
    shares, arm_shares = np.array([0.3, 0.5, 1.0]), np.array([0.2, 1.0])
    expected = walked(columns, codes, totals, shares=shares, arm_shares=arm_shares)
    table = np.vstack([np.zeros((1, 5)), np.cumsum(sums_by_score(*experiment), axis=0)])
    found = np.zeros((1, 9, 2)), np.empty((1, 3, 4)), np.empty((1, 2, 4))
    places = np.zeros((1, 3), np.int64)
    for start in range(0, len(table) - 1, 2):
        piece, final = table[start : start + 3][None], start + 3 >= len(table)
        ends = np.array([piece.shape[1]])
        walking.walk_tables(np.array(codes), shares, arm_shares, totals, piece, ends, final, places, *found)
    for mine, theirs in zip(found, expected[:3], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)


def test_cells_of_a_table_are_finer_towards_the_top():
    people = np.cumsum(np.random.default_rng(0).integers(1, 4, 20000)).astype(np.float64)
    kept, out = np.empty(len(people), np.bool_), np.empty(len(people), np.bool_)
    last, widest = 0.0, people[-1] / 128
    for i, here in enumerate(people):  # the rule in words
        kept[i] = here - last >= min(1 + here // 8, widest) or i == len(people) - 1
        last = here if kept[i] else last
    assert walking.thin_table(people, people[-1], 0.0, 128, out) == kept.sum()
    np.testing.assert_array_equal(out, kept)
    sizes = np.diff(people[out], prepend=0.0)
    assert sizes[:2].max() <= 3
    assert sizes.max() <= widest + 3
    assert 128 < out.sum() < 240


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # of hashes, without the compiler
def test_replicates_of_cells_are_draws_by_row_id():
    rng = np.random.default_rng(1)
    n, cells, replicates = 60, 4, 5
    ids, cell, side = rng.integers(0, 2**60, n).astype(np.uint64), rng.integers(0, cells, n), rng.integers(0, 2, n)
    y, weight, side = rng.normal(size=n), rng.uniform(0.5, 2.0, n), side.astype(np.uint8)
    for scheme in (resampling.BOOTSTRAP, resampling.HALF):
        for heavy in (weight, NONE):
            sums = np.zeros((cells, 5, replicates))
            resampling.replicate_cells(scheme, np.uint64(3), 2, ids, cell, side, y, heavy, sums)
            counts = np.zeros((n, replicates))
            for i in range(n):  # row by row: its count is what it adds where it is alone
                alone = np.zeros((1, 5, replicates))
                one, none = slice(i, i + 1), np.zeros(1, np.int64)
                resampling.replicate_cells(scheme, np.uint64(3), 2, ids[one], none, side[one], y[one], NONE, alone)
                counts[i] = alone[0, ranking.ROWS]
            w = np.ones(n) if not len(heavy) else heavy
            for c in range(cells):
                for arm in (0, 1):
                    rows = (cell == c) & (side == arm)
                    np.testing.assert_allclose(sums[c, 2 * arm], (counts[rows] * w[rows, None]).sum(axis=0), atol=1e-12)
                    drawn = (counts[rows] * (w * y)[rows, None]).sum(axis=0)
                    np.testing.assert_allclose(sums[c, 2 * arm + 1], drawn, atol=1e-12)
            tables, ends = np.empty((replicates, cells + 1, 5)), np.empty(replicates, np.int64)
            walking.run_down(sums, tables, ends)
            for r in range(replicates):
                some = sums[sums[:, ranking.ROWS, r] > 0][:, :, r]
                np.testing.assert_allclose(tables[r, 1 : ends[r]], np.cumsum(some, axis=0))
    many = np.zeros((1, 5, 40))
    n = 500
    ids, side = np.arange(n, dtype=np.uint64), np.zeros(n, np.uint8)
    data = ids, np.zeros(n, np.int64), side, np.ones(n), NONE
    for scheme, mean, variance in ((resampling.BOOTSTRAP, 1.0, 1.0), (resampling.HALF, 0.5, 0.25)):
        many[:] = 0.0
        resampling.replicate_cells(scheme, np.uint64(1), 0, *data, many)
        drawn = many[0, ranking.ROWS]
        assert abs(drawn.mean() / n - mean) < 0.03
        assert 0.4 < drawn.var() / (n * variance) < 2.2
