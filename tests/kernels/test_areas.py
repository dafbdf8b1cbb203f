"""Folds over blocks of the table and replicates, against naive twins; these also run without the compiler."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

import naive
import naive_metrics
from strategies import experiments
from upturn.kernels import areas, ranking, resampling
from upturn.kernels.sorting import argsort_descending

NO_SLOT, NO_COUNT = np.empty(0, np.uint32), np.empty(0, np.uint8)


def arranged(y, score, arm, weight):
    order, last = argsort_descending(score)
    side, heavy = arm.astype(np.uint8), np.empty(0) if weight is None else weight
    columns = np.empty(len(y)), np.empty(len(y), np.uint8), np.empty(len(heavy))
    ranking.arrange(order, y, side, heavy, *columns)
    return order, (last, *columns)


def folded(code, experiment, slot=NO_SLOT, counts=NO_COUNT, totals=None):
    _, columns = arranged(*experiment)
    known, out, ends = np.empty(4), np.empty((1, 2)), np.empty(4)
    ranking.sum_columns(*columns[1:], known)
    areas.fold_ranking(np.array([code]), known if totals is None else totals, *columns, slot, counts, out, ends)
    return out[0], ends


@given(experiment=experiments(max_rows=12))
@settings(max_examples=30)
def test_areas(experiment):
    y, score, arm, weight = experiment
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
    n = 3 * ranking.BLOCK
    experiment = (
        rng.integers(0, 2, n).astype(float),
        rng.integers(0, 2 * ranking.BLOCK, n) + 0.0,
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


@pytest.mark.parametrize(("k", "m"), [(0, 1), (0, 5), (3, 9), (8.5, 2), (0.25, 40), (1e6, 3), (123.75, 1000)])
def test_reciprocals(k, m):
    expected = sum(1 / (k + j) for j in range(1, m + 1))
    assert areas.reciprocals(float(k), float(m)) == pytest.approx(expected, rel=1e-13)


def test_half_samples_take_half_of_every_stratum_evenly():
    with np.errstate(over="ignore"):
        starts, seen, pairs = np.array([0, 4, 9, 10]), np.zeros(10), 0
        counts, totals = np.empty(10, np.uint8), np.empty((3, 2))
        for replicate in range(600):
            resampling.draw_replicate(
                resampling.HALF, np.uint64(3), replicate, starts, np.arange(10.0), np.empty(0), counts, totals
            )
            sizes = [counts[a:b].sum() for a, b in pairwise(starts)]
            assert sizes[0] == 2
            assert sizes[1] in (2, 3)
            assert sizes[2] == 1
            np.testing.assert_array_equal(totals[:, 0], sizes)
            np.testing.assert_array_equal(
                totals[:, 1], [(counts * np.arange(10))[a:b].sum() for a, b in ((0, 4), (4, 9), (9, 10))]
            )
            seen += counts
            pairs += int(counts[0] & counts[1])
        assert (np.abs(seen[:9] - 300) < 5 * np.sqrt(150)).all()
        assert abs(pairs - 100) < 5 * np.sqrt(600 * 5 / 36)  # two given rows of four are both taken with chance 1/6


@given(experiment=experiments(max_rows=12))
@settings(max_examples=30)
def test_counts_stand_for_repeated_rows(experiment):
    y, score, arm, weight = experiment
    order, _ = arranged(*experiment)
    counts = np.arange(len(y), dtype=np.uint8) % 3
    counts[:2] = 1
    drawn = np.repeat(np.arange(len(y)), counts)
    repeated = y[drawn], score[drawn], arm[drawn], None if weight is None else weight[drawn]
    for code in (areas.LIFTS, areas.GAIN, areas.RADCLIFFE, areas.BALANCED, areas.DEVIATION, areas.HARMONIC):
        expected, ends = folded(code, repeated)
        sums, same_ends = folded(code, experiment, order, counts, ends)
        np.testing.assert_allclose(same_ends, ends, atol=1e-12)
        np.testing.assert_allclose(sums, expected, atol=1e-9, rtol=1e-9)
    shares = np.array([0.0, 0.3, 0.3, 1.0])
    for read in (areas.read_shares, areas.read_arm_shares):
        out, again = np.empty((4, 4)), np.empty((4, 4))
        read(shares, ends, *arranged(*repeated)[1], NO_SLOT, NO_COUNT, out)
        read(shares, ends, *arranged(*experiment)[1], order, counts, again)
        np.testing.assert_allclose(out, again, atol=1e-12)
