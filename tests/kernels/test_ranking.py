"""The walk down a sorted list, against naive twins; these also run without the compiler."""

import numpy as np
from hypothesis import given, settings

from strategies import experiments
from upturn.kernels import ranking, resampling
from upturn.kernels.sorting import argsort_descending


def arranged(y, score, arm, weight):
    order, last = argsort_descending(score)
    side, heavy = arm.astype(np.uint8), np.empty(0) if weight is None else weight
    columns = np.empty(len(y)), np.empty(len(y), np.uint8), np.empty(len(heavy))
    ranking.arrange(order, y, side, heavy, *columns)
    return order, last, *columns


@given(experiment=experiments(max_rows=12))
@settings(max_examples=50)
def test_running_sums(experiment):
    y, score, arm, weight = experiment
    _, last, *columns = arranged(*experiment)
    heavy = np.ones(len(y)) if weight is None else weight
    table = np.empty((last.sum() + 1, 4))
    ranking.running_sums(last, *columns, table)
    expected = [(0, 0, 0, 0)]
    for value in sorted(set(score), reverse=True):
        tops = [(score >= value) & (arm == a) for a in (0, 1)]
        expected.append([total for top in tops for total in (heavy[top].sum(), (heavy * y)[top].sum())])
    np.testing.assert_allclose(table, expected, atol=1e-12)


def test_resampling_draws_every_arm_by_itself_and_is_pure():
    with np.errstate(over="ignore"):
        rows, starts = np.array([4, 1, 0, 2, 3], np.uint32), np.array([0, 2, 5])
        seen = np.zeros(5, int)
        for replicate in range(400):
            counts, again = np.full(5, -1, np.int32), np.empty(5, np.int32)
            resampling.resample(np.uint64(7), replicate, rows, starts, counts)
            resampling.resample(np.uint64(7), replicate, rows, starts, again)
            np.testing.assert_array_equal(counts, again)
            assert (counts[[4, 1]].sum(), counts[[0, 2, 3]].sum()) == (2, 3)
            seen += counts
        assert (np.abs(seen - 400) < 5 * np.sqrt(400)).all()


def test_resampling_some_rows_gives_the_counts_of_all():
    with np.errstate(over="ignore"):
        rng = np.random.default_rng(0)
        for sizes in ([7, 12], [1, 1, 4], [30, 3]):
            starts = np.concatenate([[0], np.cumsum(sizes)])
            whole = np.empty(starts[-1], np.int32)
            resampling.resample(np.uint64(5), 3, np.arange(starts[-1], dtype=np.uint32), starts, whole)
            ends = [np.sort(np.concatenate([[0, n], rng.integers(0, n + 1, 3)])) for n in sizes]
            for part in range(4):  # some of them empty, in one stratum or in all
                low, high = (np.array([end[part + k] for end in ends]) for k in (0, 1))
                counts = np.full((high - low).sum(), 9, np.uint8)
                resampling.resample_part(np.uint64(5), 3, np.array(sizes), low, high, counts)
                spans = [whole[starts[a] + low[a] : starts[a] + high[a]] for a in range(len(sizes))]
                np.testing.assert_array_equal(counts, np.concatenate(spans))


@settings(max_examples=50)
@given(experiment=experiments())
def test_separate_curve_is_the_difference_of_two_lift_curves(experiment):
    y, score, arm, weight = experiment
    heavy = np.ones(len(y)) if weight is None else weight
    values = sorted(set(score.tolist()), reverse=True)
    table = np.zeros((len(values) + 1, 4))
    for row, value in enumerate(values, 1):
        for a in (0, 1):
            mine = (score >= value) & (arm == a)
            table[row, 2 * a], table[row, 2 * a + 1] = heavy[mine].sum(), (heavy * y)[mine].sum()
    x, height = np.empty(2 * len(table)), np.empty(2 * len(table))
    points = ranking.separate_curve(table, x, height)
    knots, lifts = zip(
        *((table[:, 2 * a] / table[-1, 2 * a], table[:, 2 * a + 1] / table[-1, 2 * a]) for a in (0, 1)), strict=True
    )
    expected = np.union1d(*knots)
    np.testing.assert_array_equal(x[:points], expected)
    lines = []
    for xs, ys in zip(knots, lifts, strict=True):
        moves = np.r_[True, xs[1:] > xs[:-1]]
        lines.append(np.interp(expected, xs[moves], ys[moves]))
    np.testing.assert_allclose(height[:points], lines[1] - lines[0], atol=1e-12)
