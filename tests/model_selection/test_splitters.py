"""Splitters: every arm and outcome in its share on both sides, the same seed the same split, tables back in kind."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate

import upturn as up
from upturn._splitters import folds_of
from upturn._target import read_target
from upturn.meta import ClassTransformation
from upturn.model_selection import RepeatedUpliftSplit, UpliftGroupKFold, UpliftKFold, uplift_train_test_split

rng = np.random.default_rng(0)
N = 400
X = rng.normal(size=(N, 3))
Y = rng.integers(0, 2, N)
T = rng.choice(["control", "mail", "sms"], N, p=[0.5, 0.3, 0.2])
TWO = np.where(T == "control", 0, 1)

SPLITTERS = {
    "folds": UpliftKFold(5, random_state=0),
    "folds in order": UpliftKFold(5, shuffle=False),
    "folds by arm": UpliftKFold(4, stratify="arm", random_state=0),
    "repeats": RepeatedUpliftSplit(6, test_size=0.3, random_state=0),
    "repeats by arm": RepeatedUpliftSplit(6, test_size=0.25, stratify="arm", random_state=0),
}
every_splitter = pytest.mark.parametrize("splitter", SPLITTERS.values(), ids=SPLITTERS)


def splits(splitter, y, treatment):
    return list(splitter.split(None, up.pack(y, treatment)))


def share_of_test(splitter, n):
    return 1 / splitter.n_splits if isinstance(splitter, UpliftKFold) else math.ceil(splitter.test_size * n) / n


def assert_shares(strata, parts, share):
    """Every stratum has, on the test side, its share of rows to within one row."""
    for train, test in parts:
        assert sorted([*train, *test]) == list(range(len(strata)))
        for stratum in np.unique(strata, axis=0):
            mine = (strata == stratum).all(axis=1)
            assert abs(mine[test].sum() - share * mine.sum()) <= 1 + 1e-9
            assert mine[train].any()
            assert mine[test].any()


# --------------------------------------------------------------------------------------------- shares


@every_splitter
def test_strata_keep_their_shares(splitter):
    codes = np.unique(T, return_inverse=True)[1]
    strata = codes[:, None] if splitter.stratify == "arm" else np.column_stack([codes, Y])
    assert_shares(strata, splits(splitter, Y, T), share_of_test(splitter, N))


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(40, 120),
    values=st.integers(1, 4),
    folds=st.integers(2, 5),
    test_size=st.sampled_from([0.1, 0.25, 0.5, 0.8]),
)
@settings(max_examples=60)
def test_every_arm_is_in_every_part(seed, n, values, folds, test_size):
    draw = np.random.default_rng(seed)
    y, arm = draw.integers(0, values, n), draw.integers(0, 3, n)
    arm[: 3 * 11] = np.repeat([0, 1, 2], 11)
    for splitter in (UpliftKFold(folds, random_state=0), RepeatedUpliftSplit(3, test_size=test_size, random_state=0)):
        if isinstance(splitter, UpliftKFold) or n / min(math.ceil(test_size * n), n - math.ceil(test_size * n)) <= 11:
            for train, test in splits(splitter, y, arm):
                assert set(arm[train]) == set(arm[test]) == {0, 1, 2}
                assert sorted([*train, *test]) == list(range(n))


def test_folds_are_a_partition():
    tests = np.concatenate([test for _, test in splits(UpliftKFold(5, random_state=1), Y, T)])
    assert sorted(tests) == list(range(N))


@pytest.mark.parametrize("shuffle", [True, False])
def test_folds_hold_every_arm_in_its_share_whatever_the_outcome(shuffle):
    """Not only the strata, of which there may be many to an arm: the arms themselves are dealt to within one row."""
    y, arm = rng.normal(size=503), rng.integers(0, 3, 503)
    for folds in (2, 5, 7):
        parts = splits(UpliftKFold(folds, shuffle=shuffle, random_state=0 if shuffle else None), y, arm)
        assert_shares(arm[:, None], parts, 1 / folds)
        assert all((np.diff(rows) > 0).all() for part in parts for rows in part)


def test_rows_sorted_by_arm_are_no_problem():
    y, treatment = np.tile([0, 1], 50), np.repeat([0, 1], 50)
    for _, test in splits(UpliftKFold(5, shuffle=False), y, treatment):
        assert np.bincount(treatment[test]).tolist() == [10, 10]


def test_real_valued_outcomes_are_balanced_by_deciles():
    y = rng.normal(size=1000)
    arm = np.tile([0, 1], 500)
    deciles = np.searchsorted(np.quantile(y, np.linspace(0.1, 0.9, 9)), y)
    for splitter in (UpliftKFold(5, random_state=0), RepeatedUpliftSplit(5, test_size=0.2, random_state=0)):
        for _, test in splits(splitter, y, arm):
            for decile in range(10):
                for code in (0, 1):
                    mine = (deciles == decile) & (arm == code)
                    assert abs(mine[test].sum() - 0.2 * mine.sum()) <= 2  # the smallest row may sit in another stratum
    spread = [y[test].mean() for _, test in splits(UpliftKFold(5, random_state=0), y, arm)]
    loose = [y[test].mean() for _, test in splits(UpliftKFold(5, stratify="arm", random_state=0), y, arm)]
    assert np.std(spread) < np.std(loose) / 2


@pytest.mark.parametrize("share", [0.3, 0.05, 0.01])
def test_spending_is_balanced_although_most_spend_nothing(share):
    n = 4000
    y, arm = np.where(rng.random(n) < share, rng.gamma(2.0, size=n), 0.0), rng.integers(0, 2, n)
    for _, test in splits(UpliftKFold(5, random_state=0), y, arm):
        for code in (0, 1):
            buyers = (y > 0) & (arm == code)
            assert abs(buyers[test].sum() - buyers.sum() / 5) <= 3  # as many strata as deciles above nothing


def test_rare_outcomes_are_spread_and_not_refused():
    y, arm = np.zeros(100), np.tile([0, 1], 50)
    y[[1, 3, 5]] = 1  # three successes, all in one arm, and five folds
    found = [int(y[test].sum()) for _, test in splits(UpliftKFold(5, random_state=0), y, arm)]
    assert sum(found) == 3
    for _, test in splits(UpliftKFold(5, random_state=0), y, arm):
        assert np.bincount(arm[test]).tolist() == [10, 10]
    y[[7, 9, 11]] = [2, 3, 4]  # six rare rows of four values: together they are enough for a stratum
    assert sorted(int((y[test] > 0).sum()) for _, test in splits(UpliftKFold(5, random_state=0), y, arm)) == [
        1,
        1,
        1,
        1,
        2,
    ]


def test_every_row_its_own_outcome_in_a_small_experiment():
    y, arm = rng.normal(size=60), np.tile([0, 1], 30)
    _, test = splits(RepeatedUpliftSplit(1, test_size=0.25, random_state=0), y, arm)[0]
    assert len(test) == 15
    assert np.bincount(arm[test]).min() >= 7
    assert len(uplift_train_test_split(y, y, arm, random_state=0)[1]) == 15


def test_an_arm_that_is_too_small_is_named():
    arm = np.array(["control"] * 20 + ["mail"] * 3)
    with pytest.raises(ValueError, match=r"arm 'mail' has 3 row\(s\), too few for 5 folds: .* at least 5 rows of each"):
        splits(UpliftKFold(5), np.arange(23) % 2, arm)
    with pytest.raises(
        ValueError, match=r"arm 'mail' has 3 row\(s\), too few for 18 rows to train and 5 to test: every part"
    ):
        splits(RepeatedUpliftSplit(test_size=0.2), np.arange(23) % 2, arm)
    with pytest.raises(ValueError, match=r"arm 'mail' has 3 row\(s\), too few"):
        uplift_train_test_split(np.zeros((23, 1)), np.arange(23) % 2, arm, test_size=0.1)
    assert len(splits(UpliftKFold(3), np.arange(23) % 2, arm)) == 3


def test_control_need_not_have_a_name():
    """A splitter only tells arms apart."""
    named = np.where(TWO == 1, "b", "a")
    left, right = splits(UpliftKFold(random_state=0), Y, named), splits(UpliftKFold(random_state=0), Y, TWO)
    for one, other in zip(left, right, strict=True):
        assert np.array_equal(one[1], other[1])


# --------------------------------------------------------------------------------------------- seeds


@every_splitter
def test_the_same_seed_gives_the_same_splits(splitter):
    first, second = (
        splits(splitter, Y, T),
        splits(clone(splitter) if hasattr(splitter, "get_params") else splitter, Y, T),
    )
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one[0], other[0])
        assert np.array_equal(one[1], other[1])


@pytest.mark.parametrize("make", [UpliftKFold, RepeatedUpliftSplit])
def test_other_seeds_give_other_splits(make):
    def first_test(seed):
        return splits(make(random_state=seed), Y, T)[0][1].tolist()

    assert first_test(0) != first_test(1)
    assert first_test(None) != first_test(None)
    assert first_test(np.random.RandomState(0)) == first_test(np.random.RandomState(0))
    assert first_test(np.random.default_rng(0)) == first_test(np.random.default_rng(0))
    generator = np.random.default_rng(0)
    assert first_test(generator) != first_test(generator)


def test_repeats_differ():
    parts = [tuple(test) for _, test in splits(RepeatedUpliftSplit(5, random_state=0), Y, T)]
    assert len(set(parts)) == 5


def test_folds_in_order_ignore_the_seed():
    one, other = (splits(UpliftKFold(3, shuffle=False, random_state=seed), Y, T) for seed in (0, 1))
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(one, other, strict=True))


# --------------------------------------------------------------------------------------------- arguments


@every_splitter
def test_packed_and_plain_are_the_same(splitter):
    for one, other in zip(splitter.split(X, up.pack(Y, T)), splitter.split(X, Y, T), strict=True):
        assert np.array_equal(one[0], other[0])
        assert np.array_equal(one[1], other[1])
    assert splitter.get_n_splits() == splitter.get_n_splits(X, Y) == len(splits(splitter, Y, T))


@every_splitter
def test_bad_arguments(splitter):
    with pytest.raises(ValueError, match=r"groups is not used here: .*GroupKFold"):
        next(splitter.split(X, up.pack(Y, T), groups=Y))
    with pytest.raises(ValueError, match="treatment is missing: pass"):
        next(splitter.split(X, Y))
    with pytest.raises(ValueError, match="treatment was given twice"):
        next(splitter.split(X, up.pack(Y, T), T))
    with pytest.raises(ValueError, match="X has 3 rows and y has 400: they must describe the same rows"):
        next(splitter.split(X[:3], Y, T))
    with pytest.raises(ValueError, match="one arm only"):
        next(splitter.split(X, Y, np.zeros(N)))
    with pytest.raises(ValueError, match="y holds 1 NaN"):
        next(splitter.split(X, np.where(np.arange(N) == 7, np.nan, Y), T))


@pytest.mark.parametrize("make", [UpliftKFold, RepeatedUpliftSplit])
def test_stratify_has_two_values(make):
    with pytest.raises(ValueError, match="stratify='outcome': expected 'arm-outcome' or 'arm'"):
        splits(make(stratify="outcome"), Y, T)


def test_one_fold_is_refused():
    with pytest.raises(ValueError, match="n_splits=1: expected a whole number of at least 2"):
        splits(UpliftKFold(1), Y, T)


@pytest.mark.parametrize("test_size", [0, 1.0, 1.5, -0.2, "a", None, N, N + 1, float("nan")])
def test_test_sizes_that_make_no_sense(test_size):
    message = rf"test_size={test_size!r}: expected a share between 0 and 1, or a number of rows below {N}"
    with pytest.raises(ValueError, match=message):
        uplift_train_test_split(X, Y, T, test_size=test_size)
    with pytest.raises(ValueError, match=message):
        splits(RepeatedUpliftSplit(test_size=test_size), Y, T)


@pytest.mark.parametrize(
    ("test_size", "rows"), [(0.5, 200), (0.251, 101), (np.float32(0.25), 100), (37, 37), (np.int64(40), 40)]
)
def test_test_sizes(test_size, rows):
    assert [len(part) for part in uplift_train_test_split(X, Y, T, test_size=test_size)] == [N - rows, rows] * 3


def test_the_splitters_can_be_read():
    assert (
        repr(UpliftKFold(3, stratify="arm"))
        == "UpliftKFold(n_splits=3, random_state=None, shuffle=True, stratify='arm')"
    )
    assert "n_repeats=10" in repr(RepeatedUpliftSplit())


# --------------------------------------------------------------------------------------------- tables come back in kind

TABLES = {
    "array": X,
    "fortran": np.asfortranarray(X),
    "pandas": pd.DataFrame(X, columns=list("abc"), index=range(1000, 1000 + N)),
    "polars": pl.DataFrame(X, schema=list("abc")),
    "pyarrow": pa.table(dict(zip("abc", X.T, strict=True))),
    "list": X.tolist(),
    "sparse": scipy.sparse.csr_matrix(X),
}
COLUMNS = {
    "array": T,
    "list": T.tolist(),
    "pandas": pd.Series(T, index=range(50, 50 + N)),
    "category": pd.Series(T, dtype="category"),
    "polars": pl.Series("t", T),
    "pyarrow": pa.chunked_array([T.tolist()]),
    "arrow": pa.array(T.tolist()),
}


def cells(table):
    if hasattr(table, "toarray"):
        return table.toarray()
    return np.asarray(table.to_pandas() if isinstance(table, pa.Table) else table, dtype=float)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_tables_come_back_in_kind(table):
    wanted = uplift_train_test_split(X, Y, T, random_state=0)
    train, test, *rest = uplift_train_test_split(table, Y, T, random_state=0)
    assert type(train) is type(test) is type(table)
    assert np.array_equal(cells(train), wanted[0])
    assert np.array_equal(cells(test), wanted[1])
    assert len(rest) == 4


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_columns_come_back_in_kind(column):
    wanted = uplift_train_test_split(X, Y, T, random_state=0)
    *_, train, test = uplift_train_test_split(X, Y, column, random_state=0)
    assert type(train) is type(test) is type(column)
    assert [str(label) for label in np.asarray(train)] == wanted[4].tolist()
    assert [str(label) for label in np.asarray(test)] == wanted[5].tolist()
    if isinstance(column, pd.Series):
        assert train.dtype == column.dtype
        assert column[train.index].equals(train)


def test_packed_targets_come_back_packed():
    weight = rng.random(N)
    X1, X2, y1, y2 = uplift_train_test_split(X, up.pack(Y, T, weight), random_state=0)
    plain = uplift_train_test_split(X, Y, T, weight, random_state=0)
    assert np.array_equal(X1, plain[0])
    assert np.array_equal(X2, plain[1])
    for packed, at in ((y1, 0), (y2, 1)):
        y, treatment, w = up.unpack(packed)
        assert np.array_equal(y, plain[2 + at])
        assert np.array_equal(treatment, plain[4 + at])
        assert np.array_equal(w, plain[6 + at])


def test_what_is_split_along_has_the_same_length():
    for length in (N - 5, N + 5):
        with pytest.raises(
            ValueError, match=f"one of the arrays has {length} rows and y has {N}: all must have as many"
        ):
            uplift_train_test_split(X, Y, T, np.ones(length))
    extra = uplift_train_test_split(X, Y, T, np.arange(N), pl.Series(range(N)), random_state=0)[6:]
    assert np.array_equal(extra[0], extra[2])
    assert np.array_equal(extra[1], extra[3])


# --------------------------------------------------------------------------------------------- inside scikit-learn


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@every_splitter
def test_packed_targets_need_no_routing(splitter):
    scores = cross_val_score(ClassTransformation(), X, up.pack(Y, TWO), cv=splitter)
    assert len(scores) == splitter.get_n_splits()
    assert np.isfinite(scores).all()


@every_splitter
@pytest.mark.usefixtures("routing")
def test_treatment_is_routed_to_the_splitter(splitter):
    packed = cross_validate(ClassTransformation(), X, up.pack(Y, TWO), cv=splitter)["test_score"]
    routed = cross_validate(ClassTransformation(), X, Y, params={"treatment": TWO}, cv=splitter)["test_score"]
    assert np.array_equal(routed, packed)


@pytest.mark.usefixtures("routing")
def test_the_splitter_in_a_search():
    search = GridSearchCV(ClassTransformation(), {"reweight": [True, False]}, cv=UpliftKFold(3, random_state=0))
    search.fit(X, Y, treatment=TWO)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


# --------------------------------------------------------------------------------------------- clusters


def households(seed, clusters=200, whole=True):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(clusters), rng.integers(1, 12, clusters))
    t = rng.integers(0, 2, clusters)[groups] if whole else rng.integers(0, 2, len(groups))
    return (rng.random(len(groups)) < 0.3).astype(int), t, groups


@pytest.mark.parametrize("whole", [True, False])
def test_group_folds_cut_no_cluster_and_hold_every_arm_in_its_share(whole):
    y, t, groups = households(0, whole=whole)
    seen = []
    for train, test in UpliftGroupKFold(5, random_state=1).split(None, y, t, groups=groups):
        assert not set(groups[train]) & set(groups[test])
        assert len(train) + len(test) == len(y)
        assert abs(len(test) - len(y) / 5) < 0.03 * len(y)
        for arm in (0, 1):
            assert abs((t[test] == arm).mean() - (t == arm).mean()) < 0.04
        assert abs(y[test].mean() - y.mean()) < 0.06
        seen += test.tolist()
    assert sorted(seen) == list(range(len(y)))


def test_group_folds_follow_their_seed_and_the_labels_do_not_matter():
    y, t, groups = households(1)

    def folds(seed, labels):
        return [test.tolist() for _, test in UpliftGroupKFold(4, random_state=seed).split(None, y, t, groups=labels)]

    assert folds(0, groups) == folds(0, [f"house {g:04d}" for g in groups])
    assert folds(0, groups) != folds(1, groups)
    assert folds(0, groups) == [
        test.tolist() for _, test in UpliftGroupKFold(4, random_state=0).split(None, up.pack(y, t), groups=groups)
    ]


def test_group_folds_say_what_is_missing():
    y, t, groups = households(2)
    with pytest.raises(ValueError, match="groups is None"):
        next(UpliftGroupKFold(5).split(None, y, t))
    with pytest.raises(ValueError, match=r"groups holds 3 cluster\(s\), too few for 5 folds"):
        next(UpliftGroupKFold(5).split(None, y, t, groups=groups % 3))
    with pytest.raises(ValueError, match=r"arm 1 lies in 2 cluster\(s\), too few for 5 folds"):
        next(UpliftGroupKFold(5).split(None, y, t, groups=np.where(t == 1, -1 - groups % 2, groups)))
    with pytest.raises(ValueError, match="groups has"):
        next(UpliftGroupKFold(5).split(None, y, t, groups=groups[1:]))
    with pytest.raises(ValueError, match="UpliftGroupKFold"):
        next(UpliftKFold(5).split(None, y, t, groups=groups))


def test_train_test_split_of_clusters():
    y, t, groups = households(3)
    sides = uplift_train_test_split(np.arange(len(y)), y, t, groups, test_size=0.3, groups=groups, random_state=0)
    assert not set(sides[-2]) & set(sides[-1])
    assert abs(len(sides[1]) / len(y) - 0.3) < 0.03
    others = uplift_train_test_split(np.arange(len(y)), y, t, groups, test_size=0.3, groups=groups, random_state=1)
    assert set(sides[-1]) != set(others[-1])


def test_folds_with_groups_are_of_whole_clusters():
    y, t, groups = households(4)
    data, X = read_target(y, t), np.zeros((len(y), 1))
    for cv in (4, RepeatedUpliftSplit(3), UpliftGroupKFold(4), GroupKFold(4)):
        folds = folds_of(X, data, cv, np.uint64(0), groups)
        assert all(not set(groups[train]) & set(groups[test]) for train, test in folds)
    repeats = folds_of(X, data, RepeatedUpliftSplit(3), np.uint64(0), groups)
    assert len({tuple(test) for _, test in repeats}) == 3
    with pytest.raises(ValueError, match="on both sides of a split"):
        folds_of(X, data, [(np.arange(10, len(y)), np.arange(11))], np.uint64(0), groups)


def test_group_folds_in_scikit_learn_and_compare_models():
    from upturn.model_selection import compare_models, uplift_scorer

    y, t, groups = households(5)
    features = np.random.default_rng(0).normal(size=(len(y), 2))
    folds = UpliftGroupKFold(3, random_state=0)
    scores = cross_val_score(
        ClassTransformation(), features, up.pack(y, t), groups=groups, cv=folds, scoring=uplift_scorer("auuc")
    )
    models = {"one": ClassTransformation(), "same": ClassTransformation()}
    found = compare_models(models, features, y, t, cv=folds, groups=groups)
    np.testing.assert_allclose(found["one"], scores)
    assert len(compare_models(models, features, y, t, groups=groups, random_state=0)["one"]) == 10
