"""Groups whose rows come in clusters: centres, households, shops."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import upturn as up
from upturn._clusters import read_clusters
from upturn._subgroups._cells import Cells, Members
from upturn._target import read_target
from upturn.metrics import SmallSampleWarning
from upturn.trees import UpliftTree


def clustered(seed, *, whole, binary, n_clusters=80, size=10):
    """Clusters with a level of their own, no effect, and three groups that have nothing to do with either."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n_clusters), size)
    level = rng.normal(size=n_clusters)[cluster]
    t = (rng.permutation(n_clusters) % 2)[cluster] if whole else rng.integers(0, 2, len(cluster))
    noise = rng.random(len(cluster))
    y = (noise < 1 / (1 + np.exp(-level))).astype(float) if binary else level + stats.norm.ppf(noise)
    return rng.integers(0, 3, len(cluster)), y, t, cluster


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("overlap", [False, True])
def test_covariances_are_those_of_sums_over_clusters(weighted, overlap):
    by, y, t, cluster = clustered(1, whole=False, binary=False, n_clusters=12, size=9)
    w = np.random.default_rng(2).uniform(0.5, 2, len(y)) if weighted else None
    target = read_target(y, t, w)
    masks = np.array([by == 0, by == 1, by != 2]) if overlap else np.array([by == g for g in range(3)])
    cells = Cells.of(Members.of_masks(["a", "b", "c"], masks), target, read_clusters(cluster))
    weight = np.ones(len(y)) if w is None else w
    for a in range(2):
        for b in range(2):
            for g in range(3):
                for h in range(3):
                    pulls = []
                    for arm, group in ((a, g), (b, h)):
                        mine = masks[group] & (t == arm)
                        mean = np.average(y[mine], weights=weight[mine])
                        pull = np.where(mine, weight * (y - mean), 0) / weight[mine].sum()
                        pulls.append(np.array([pull[cluster == c].sum() for c in range(12)]))
                    np.testing.assert_allclose(cells.across[a, b, g, h], pulls[0] @ pulls[1], atol=1e-15)
        expected = [len(set(cluster[masks[g] & (t == a)])) for g in range(3)]
        assert cells.clusters[:, a].tolist() == expected


def test_clusters_of_one_row_are_rows():
    by, y, t, _ = clustered(3, whole=False, binary=False)
    plain, single = up.subgroups(by, None, y, t), up.subgroups(by, None, y, t, groups=np.arange(len(y)))
    for name in plain.columns[5:]:
        np.testing.assert_allclose(single[name], plain[name], rtol=1e-10)
    assert single.interaction[0].p_value == pytest.approx(plain.interaction[0].p_value, rel=1e-10)
    y = (y > 0).astype(float)  # rates have t in place of the normal law, and n - 1 in place of n
    plain, single = up.subgroups(by, None, y, t), up.subgroups(by, None, y, t, groups=np.arange(len(y)))
    np.testing.assert_allclose(single["se"], plain["se"], rtol=0.01)
    np.testing.assert_allclose(single["high"], plain["high"], atol=0.002)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("binary", [True, False])
def test_intervals_cover_where_clusters_differ(whole, binary):
    missed, differ, naive = [], [], []
    for seed in range(150):
        by, y, t, cluster = clustered(seed, whole=whole, binary=binary)
        found = up.subgroups(by, None, y, t, groups=cluster)
        missed.append(found["p_value"] < 0.05)
        differ.append(found.interaction[0].p_value < 0.05)
        naive.append(up.subgroups(by, None, y, t)["p_value"][-1] < 0.05)
    assert np.mean(missed) < 0.075  # 600 intervals, not independent
    assert np.mean(differ) < 0.11
    assert np.mean(naive) > 0.13 if whole else np.mean(naive) < 0.12


def test_all_rows_are_a_regression_by_cluster():
    _, y, t, cluster = clustered(5, whole=True, binary=False)
    found = up.subgroups(np.zeros(len(y)), None, y, t, groups=cluster)
    means = np.array([y[cluster == c].mean() for c in range(80)])
    arm = np.array([t[cluster == c][0] for c in range(80)])
    welch = stats.ttest_ind(means[arm == 1], means[arm == 0], equal_var=False)  # clusters of equal size
    assert found["p_value"][0] == pytest.approx(welch.pvalue, rel=1e-9)


@pytest.mark.filterwarnings("ignore::upturn.metrics.SmallSampleWarning")
def test_a_group_twice_and_several_arms():
    by, y, _, cluster = clustered(6, whole=False, binary=True)
    t = np.random.default_rng(7).integers(0, 3, len(y))
    pairs = {"a": by == 0, "b": by == 1}
    one = up.subgroups(pairs, None, y, t, groups=cluster)
    twice = up.subgroups({**pairs, "a again": by == 0}, None, y, t, groups=cluster)
    assert [test.freedom for test in twice.interaction] == [1, 1, 2]
    for first, second in zip(one.interaction, twice.interaction, strict=True):
        assert second.statistic == pytest.approx(first.statistic, rel=1e-6)


def test_few_clusters_are_said_and_columns_may_be_named():
    by, y, t, cluster = clustered(8, whole=True, binary=True, n_clusters=20)
    table = pd.DataFrame({"sex": by, "cured": y, "arm": t, "centre": cluster, "weight": 1.0 + by})
    with pytest.warns(SmallSampleWarning, match="groups holds 20 clusters"):
        found = up.subgroups("sex", table, "cured", "arm", "weight", groups="centre")
    with pytest.warns(SmallSampleWarning):
        same = up.subgroups(by, None, y, t, 1.0 + by, groups=cluster)
    np.testing.assert_array_equal(found["p_value"], same["p_value"])
    assert "Errors are those of 20 clusters." in repr(found)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        up.subgroups(by, None, y, t, groups=cluster[:-1])
    with pytest.raises(ValueError, match="X is a NoneType without names"):
        up.subgroups(by, None, "cured", t)


def test_a_model_is_fitted_to_whole_clusters():
    by, y, t, cluster = clustered(9, whole=False, binary=True)
    X = np.column_stack([by, np.arange(len(y))]).astype(float)
    found = up.subgroups(UpliftTree(max_depth=1, random_state=0), X, y, t, groups=cluster, random_state=0)
    rest = np.setdiff1d(np.arange(len(y)), found.rows)
    assert not set(cluster[found.rows]) & set(cluster[rest])
    assert 0.4 < len(found.rows) / len(y) < 0.6
