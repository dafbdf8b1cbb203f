"""Clusters: whole ones are drawn, and intervals are as wide as clusters differ."""

import numpy as np
import pytest

from naive.clusters import replicate_rows
from upturn._target import read_measured
from upturn.metrics import (
    SmallSampleWarning,
    autoc,
    auu,
    auuc,
    calibration_table,
    compare,
    evaluate,
    lift_area,
    lift_curve,
    modified_uplift_curve,
    policy_value,
    qini,
    qini_curve,
    uplift_at,
    uplift_curve,
)
from upturn.metrics._replicates import Replicates
from upturn.metrics._strata import Strata

METRICS = [auuc, auu, qini, autoc, uplift_at]


def clustered(seed, clusters=60, size=10, whole=True, spread=0.25, arms=1):
    """People in clusters that share part of their outcome, clusters (or people) assigned at random."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(clusters), size)
    n = len(groups)
    t = rng.permutation(np.arange(clusters) % (1 + arms))[groups] if whole else rng.integers(0, 1 + arms, n)
    score = rng.normal(size=(n, arms)) if arms > 1 else rng.normal(size=n)
    first = score if arms == 1 else score[:, 0]
    y = 0.3 + 0.2 * t * (first > 0) + spread * rng.normal(size=clusters)[groups] + 0.3 * rng.normal(size=n)
    return y, score, t, groups


@pytest.mark.parametrize("metric", METRICS)
def test_clusters_of_one_row_are_rows(metric):
    y, score, t, _ = clustered(0)
    plain = metric(y, score, t, interval=0.9)
    alone = metric(y, score, t, interval=0.9, groups=np.arange(len(y)))
    assert np.array_equal(plain.samples, alone.samples)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("metric", METRICS)
def test_replicates_are_data_with_whole_clusters_repeated(metric, whole, weighted):
    """The naive twin: repeat the rows of every cluster as often as it was drawn, and measure that table."""
    y, score, t, groups = clustered(1, clusters=40, size=5, whole=whole)
    weight = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 2.0], len(y)) if weighted else None
    found = metric(y, score, t, sample_weight=weight, groups=groups, interval=0.9, n_bootstrap=20, random_state=3)
    strata = Strata.of_arms(read_measured(y, t, weight), groups)
    scheme = 1 if metric in (qini, autoc) else 0
    counts, _ = strata.draw(scheme, Replicates.read(0.9, 20, 3).seed, range(20))
    for r in range(20):
        rows = replicate_rows(groups, weight, strata.unit, counts[:, r])
        w = None if weight is None else weight[rows]
        table = y[rows], score[rows], t[rows]
        if metric is auu:  # in counts, each arm's brought to its weight in the data
            here = 0.0
            for a, sign in ((1, 1), (0, -1)):
                size, drawn = (np.ones(len(y)) if weight is None else weight)[t == a].sum(), t[rows] == a
                held = drawn.sum() if w is None else w[drawn].sum()
                mine = None if w is None else w[drawn]
                here += sign * lift_area(table[0][drawn], table[1][drawn], sample_weight=mine) * size / held
        else:
            here = metric(*table, sample_weight=w)
        assert found.samples[r] == pytest.approx(here, rel=1e-9, abs=1e-12)


def test_counts_are_of_clusters_within_their_arm():
    y, _, t, groups = clustered(2, clusters=50)
    strata = Strata.of_arms(read_measured(y, t), groups)
    assert strata.sums is None
    counts, totals = strata.draw(0, np.uint64(1), range(8))
    home = t[::10]
    for a in (0, 1):
        assert (counts[strata.starts[a] : strata.starts[a + 1]].sum(axis=0) == (home == a).sum()).all()
    for g in range(50):  # rows of a cluster share their unit, and no others do
        assert len(np.unique(strata.unit[groups == g])) == 1
    assert len(np.unique(strata.unit)) == 50
    np.testing.assert_allclose(totals[:, 0, 0], (t == 0).sum())


def test_totals_of_clusters_in_several_arms():
    y, _, t, groups = clustered(3, clusters=50, whole=False)
    strata = Strata.of_arms(read_measured(y, t), groups)
    counts, totals = strata.draw(0, np.uint64(1), range(8))
    drawn = counts[strata.unit]
    for a in (0, 1):
        np.testing.assert_allclose(totals[:, a, 0], drawn[t == a].sum(axis=0))
        np.testing.assert_allclose(totals[:, a, 1], (drawn * y[:, None])[t == a].sum(axis=0))


def test_very_many_clusters_are_drawn_in_groups():
    rng = np.random.default_rng(4)
    n = 160_000
    groups, t = np.repeat(np.arange(n // 2), 2), np.repeat(rng.integers(0, 2, n // 2), 2)
    strata = Strata.of_arms(read_measured(rng.normal(size=n), t), groups)
    assert strata.starts[-1] == n // 2  # about 40,000 an arm: each by itself
    groups, t = np.arange(n), (np.arange(n) % 100 > 0).astype(int)
    strata = Strata.of_arms(read_measured(rng.normal(size=n), t), groups)
    assert np.diff(strata.starts).tolist() == [1600, 16384]
    assert (strata.unit[t == 1] >= 1600).all()


@pytest.mark.parametrize("whole", [True, False])
def test_intervals_are_wider_where_clusters_differ(whole):
    y, score, t, groups = clustered(5, clusters=80, size=20, whole=whole, spread=1.0 if whole else 0.0)
    y = y + t * np.random.default_rng(1).normal(size=80)[groups]  # whole clusters gain, others lose
    score = score + 2 * np.random.default_rng(0).normal(size=80)[groups]  # the ranking goes by cluster, too
    wide, narrow = auuc(y, score, t, groups=groups, interval=0.9), auuc(y, score, t, interval=0.9)
    assert float(wide) == float(narrow)
    assert wide.se > 1.5 * narrow.se


def test_standard_error_of_a_difference_in_means():
    """uplift_at of everybody is the difference in means, whose clustered error has a formula."""
    y, score, t, groups = clustered(6, clusters=200, size=8, spread=0.5)
    se = uplift_at(y, score, t, k=1.0, groups=groups, interval=0.95, n_bootstrap=1000).se
    square = 0.0
    for a in (0, 1):
        sums = np.array([(y[(groups == g) & (t == a)] - y[t == a].mean()).sum() for g in np.unique(groups[t == a])])
        square += (sums**2).sum() / (t == a).sum() ** 2
    assert se == pytest.approx(np.sqrt(square), rel=0.08)


def test_several_arms_and_every_function_takes_groups():
    y, score, t, groups = clustered(7, clusters=90, arms=2)
    plain = auuc(y, score, t, interval=0.9)
    assert auuc(y, score, t, groups=groups, interval=0.9).se != plain.se
    recommended = np.where(score[:, 0] > 0, 1, 0)
    assert policy_value(y, recommended, t, groups=groups, interval=0.9).se > 0
    assert qini(y, score, t, groups=groups, interval=0.9, response=np.zeros((len(y), 3))).se > 0
    assert modified_uplift_curve(y, score, t, groups=groups, interval=0.9).low.shape
    one = t < 2
    y, score, t, groups = y[one], score[one, 0], t[one], groups[one]
    for curve in (uplift_curve, qini_curve):
        band = curve(y, score, t, groups=groups, interval=0.9)
        assert np.isfinite(band.low).all()
    assert lift_area(np.abs(y), score, groups=groups, interval=0.9).se > 0
    assert np.isfinite(lift_curve(np.abs(y), score, groups=groups, interval=0.9).high).all()
    assert np.isfinite(calibration_table(y, score, t, groups=groups, n_bins=3)["se"]).all()
    pair = {"a": score, "b": -score}
    table = evaluate(y, pair, t, metrics=["auuc"], groups=groups)
    assert table["a"]["auuc"].se == auuc(y, score, t, groups=groups, interval=0.95).se
    difference = table["a"]["auuc"].samples - table["b"]["auuc"].samples
    assert compare(y, pair, t, groups=groups)["se"][0] == pytest.approx(difference.std(ddof=1))


def test_labels_of_any_kind_and_order():
    y, score, t, groups = clustered(8)
    expected = auuc(y, score, t, groups=groups, interval=0.9).samples
    text = np.array([f"shop {g:03d}" for g in groups])
    assert np.array_equal(auuc(y, score, t, groups=text, interval=0.9).samples, expected)
    assert np.array_equal(auuc(y, score, t, groups=text.tolist(), interval=0.9).samples, expected)
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = auuc(y[order], score[order], t[order], groups=groups[order], interval=0.9)
    np.testing.assert_allclose(shuffled.samples, expected)


def test_replicates_without_an_arm_are_left_out():
    y, score = np.arange(8.0), np.arange(8.0)
    t, groups = np.array([0, 0, 0, 0, 1, 0, 1, 0]), np.array([0, 0, 1, 1, 2, 2, 3, 3])
    with pytest.warns(SmallSampleWarning, match="4 clusters"):
        found = auuc(y, score, t, groups=groups, interval=0.9)
    assert np.isnan(found.samples).any()
    assert np.isfinite([found.se, found.low]).all()
    with pytest.warns(SmallSampleWarning, match="4 clusters"):
        assert np.isfinite(uplift_curve(y, score, t, groups=groups, interval=0.9).low).all()


def test_what_cannot_be_clusters():
    y, score, t, groups = clustered(9)
    with pytest.warns(SmallSampleWarning, match="groups holds 20 clusters"):
        auuc(y[:200], score[:200], t[:200], groups=groups[:200], interval=0.9)
    few = np.where(t == 1, groups // 10, groups)
    with pytest.warns(SmallSampleWarning, match=r"arm 1 has \d clusters"):
        auuc(y, score, t, groups=few + 1000 * t, interval=0.9)
    with pytest.raises(ValueError, match="groups has 599"):
        auuc(y, score, t, groups=groups[1:], interval=0.9)
    missing = groups.astype(float)
    missing[7] = np.nan
    with pytest.raises(ValueError, match=r"missing in 1 row\(s\), the first at row 7"):
        auuc(y, score, t, groups=missing, interval=0.9)
    labels = groups.astype(object)
    labels[3] = None
    with pytest.raises(ValueError, match="missing in 1 row"):
        auuc(y, score, t, groups=labels)
    with pytest.raises(TypeError, match="cannot be labels"):
        auuc(y, score, t, groups=np.array([{}] * len(y), dtype=object))
    with pytest.raises(ValueError, match="arm 1 is one cluster"):
        auuc(y, score, t, groups=np.where(t == 1, -1, groups), interval=0.9)
