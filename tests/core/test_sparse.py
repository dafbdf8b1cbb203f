"""Sparse matrices: linear machines and meta-learners give what they give for the same numbers in a dense table."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import OneHotEncoder

import upturn as up
from upturn._sparse import SparseMatrix, column_moments, read_sparse
from upturn.meta import (
    ClassTransformation,
    DRLearner,
    OneVsControl,
    RLearner,
    SLearner,
    TLearner,
    TreatedOnly,
    XLearner,
)
from upturn.model_selection import UpliftKFold, compare_models, uplift_train_test_split
from upturn.svm import DifferentialSVM, StandardSVM, SubgroupSVM, TwoCostSVM, UpliftSVM, UpliftSVMCV, _solve
from upturn.trees import UpliftTree

RNG = np.random.default_rng(0)
N, P = 500, 12
DENSE = np.where(RNG.random((N, P)) < 0.2, RNG.normal(2, 1, (N, P)), 0.0)
ARM = RNG.integers(0, 2, N)
Y = (RNG.random(N) < 0.3 + 0.4 * ARM * (DENSE[:, 0] > 0)).astype(int)
WEIGHT = RNG.uniform(0.5, 2, N)

MACHINES = {
    "UpliftSVM": lambda: UpliftSVM(C=0.3, ratio=1.5),
    "p=1": lambda: UpliftSVM(C=0.3, p=1.0),
    "p=2 as it is": lambda: UpliftSVM(C=0.3, p=2.0, standardize=False),
    "balance": lambda: UpliftSVM(C=0.3, p=2.0, balance=1.0),
    "averaged": lambda: UpliftSVM(C=5.0, p=1.5, group_average=True),
    "ratio": lambda: UpliftSVM(C=0.3, p=1.5, ratio="auto", neutral=0.2),
    "CV": lambda: UpliftSVMCV(Cs=[0.01, 1.0], ratios=[1.0, 2.0], cv=3, random_state=0),
    "StandardSVM": lambda: StandardSVM(C=0.3, p=1.5, flip_control=True),
    "TwoCostSVM": lambda: TwoCostSVM(C=0.3),
    "SubgroupSVM": lambda: SubgroupSVM(C=0.3, p=2.0),
    "DifferentialSVM": lambda: DifferentialSVM(C=0.01),
}
LEARNERS = {
    "T": lambda: TLearner(LogisticRegression()),
    "T of trees": lambda: TLearner(RandomForestRegressor(20, random_state=0)),
    "S": lambda: SLearner(Ridge()),
    "S with interactions": lambda: SLearner(Ridge(), interactions=True),
    "X": lambda: XLearner(LogisticRegression(), Ridge(), propensity="shares"),
    "DR": lambda: DRLearner(Ridge(), propensity="logistic", cv=3, random_state=0),
    "R": lambda: RLearner(LinearRegression(), propensity=LogisticRegression(), cv=3, random_state=0),
    "class transformation": lambda: ClassTransformation(propensity="shares"),
    "class transformation of a base": lambda: ClassTransformation(LogisticRegression(), propensity=0.5),
    "treated only": lambda: TreatedOnly(LogisticRegression()),
}


def both(make, weight=None, kind=sparse.csr_array):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make().fit(kind(DENSE), Y, ARM, weight), make().fit(DENSE, Y, ARM, weight)


@pytest.mark.parametrize("limit", [_solve.DENSE, 0], ids=["small", "large"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MACHINES)
def test_machines(name, weighted, limit, monkeypatch, tmp_path):
    monkeypatch.setattr(_solve, "DENSE", limit)  # how many numbers are solved as dense ones
    found, expected = both(MACHINES[name], WEIGHT if weighted else None)
    rtol, scale = 1e-3 if name == "balance" else 1e-5, np.abs(expected.coef_).max()
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(found.feature_importances_, expected.feature_importances_, rtol=10 * rtol, atol=rtol)
    scores = expected.predict(DENSE) - expected.predict(DENSE).mean()
    for X in (sparse.csr_array(DENSE), sparse.csc_matrix(DENSE), sparse.coo_array(DENSE), DENSE):
        mine = found.predict(X)
        np.testing.assert_allclose(mine - mine.mean(), scores, atol=20 * rtol * np.abs(scores).max())
    np.testing.assert_allclose(expected.predict(sparse.csr_array(DENSE)), expected.predict(DENSE), atol=1e-9)
    assert found.dual_gap_ <= found.tol
    found.save(tmp_path / "model")
    again = up.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(sparse.csr_array(DENSE)), found.predict(sparse.csr_array(DENSE)))


@pytest.mark.parametrize("p", [1.0, 1.2, 2.0])
def test_more_columns_than_rows_are_solved_among_the_rows(p, monkeypatch):
    rng = np.random.default_rng(1)
    X = np.where(rng.random((80, 300)) < 0.05, 1.0, 0.0)
    expected = UpliftSVM(C=0.1, p=p).fit(X, Y[:80], ARM[:80])
    monkeypatch.setattr(_solve, "DENSE", 0)
    found = UpliftSVM(C=0.1, p=p).fit(sparse.csr_matrix(X), Y[:80], ARM[:80])
    np.testing.assert_allclose(found.predict(X), expected.predict(X), atol=1e-5 * np.ptp(expected.predict(X)))


def test_what_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(_solve, "DENSE", 0)
    monkeypatch.setattr(_solve, "MOST_SIDE", 10)
    with pytest.raises(ValueError, match=r"500 rows and 12 columns.*up to 10: take fewer columns first"):
        UpliftSVM().fit(sparse.csr_array(DENSE), Y, ARM)


def test_a_wide_table_of_text_takes_little_memory():
    """20,000 rows of 5,000 columns: 800 MB of numbers, of which 60,000 are not 0."""
    import tracemalloc

    rng = np.random.default_rng(2)
    n, columns = 20_000, rng.integers(0, 1000, (20_000, 3)) + np.array([0, 1000, 2000])
    X = sparse.csr_array((np.ones(3 * n), (np.repeat(np.arange(n), 3), columns.ravel())), shape=(n, 3000))
    arm = rng.integers(0, 2, n)
    y = rng.random(n) < 0.4 + 0.3 * arm * (columns[:, 0] < 500)
    tracemalloc.start()
    model = UpliftSVM(C=1e-3, p=2.0, tol=1e-4, standardize=False).fit(X, y, arm)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 400e6  # dense: 480 MB for the encoded matrix alone, and as much again for its scaled copy
    assert model.score(X, y, arm) > 0.03


@pytest.mark.parametrize("base", [lambda: UpliftSVM(C=0.3, p=1.5), lambda: ClassTransformation(LogisticRegression())])
def test_several_arms_against_control(base, tmp_path):
    arms = np.array(["no", "mail", "call"])[np.random.default_rng(4).integers(0, 3, N)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = (OneVsControl(base()).fit(X, Y, arms) for X in (sparse.csr_array(DENSE), DENSE))
    apart = np.ptp(expected.predict(DENSE), axis=0).max()
    for X in (sparse.csr_array(DENSE), DENSE):
        mine, theirs = found.predict(X), expected.predict(DENSE)
        np.testing.assert_allclose(mine - mine.mean(axis=0), theirs - theirs.mean(axis=0), atol=0.02 * apart)
    found.save(tmp_path / "model")
    again = up.load(tmp_path / "model")
    np.testing.assert_array_equal(again.recommend(sparse.csr_array(DENSE)), found.recommend(sparse.csr_array(DENSE)))
    with pytest.raises(TypeError, match="X is a sparse matrix"):
        OneVsControl(UpliftTree()).fit(sparse.csr_array(DENSE), Y, arms)


@pytest.mark.parametrize("learner", [XLearner, DRLearner])
def test_the_model_of_effects_is_named_where_it_takes_no_sparse_matrix(learner):
    name = learner.__name__
    with pytest.raises(TypeError, match=rf"as in {name}\(LogisticRegression\(\), effect_estimator=Ridge\(\)\)"):
        learner(LogisticRegression()).fit(sparse.csr_array(DENSE), Y, ARM)
    with pytest.raises(TypeError, match="which only linear machines and meta-learners"):
        learner().fit(sparse.csr_array(DENSE), Y, ARM)


@pytest.mark.parametrize("name", LEARNERS)
def test_learners(name, tmp_path):
    found, expected = both(LEARNERS[name])
    # Where columns are standardised, and not centred, a penalty on coefficients means a little else.
    rough = 0.02 if "class" in name or name == "DR" else 0.005 if "interactions" in name else 1e-3
    if name != "T of trees":
        np.testing.assert_allclose(found.predict(DENSE), expected.predict(DENSE), atol=rough)
    np.testing.assert_allclose(found.predict(sparse.csr_array(DENSE)), found.predict(DENSE), atol=1e-9)
    assert found.feature_importances_.shape == (P,)
    if name != "T of trees":
        found.save(tmp_path / "model")
        again = up.load(tmp_path / "model")
        np.testing.assert_allclose(again.predict(sparse.csr_array(DENSE)), found.predict(DENSE), atol=1e-9)
    assert np.isfinite(found.score(sparse.csc_array(DENSE), Y, ARM))


def test_tools_take_them():
    X = sparse.coo_array(DENSE)
    parts = uplift_train_test_split(X, Y, ARM, random_state=0)
    assert parts[0].shape[0] + parts[1].shape[0] == N
    models = {"svm": UpliftSVM(C=0.1), "T": TLearner(LogisticRegression())}
    found = compare_models(models, X, Y, ARM, cv=UpliftKFold(3, random_state=0))
    same = compare_models(models, DENSE, Y, ARM, cv=UpliftKFold(3, random_state=0))
    np.testing.assert_allclose(found["T"], same["T"], atol=0.01)
    encoder = OneHotEncoder().fit(DENSE[:, :2].round().astype(str))
    UpliftSVM(C=0.1).fit(encoder.transform(DENSE[:, :2].round().astype(str)), Y, ARM)


@pytest.mark.parametrize(
    "model",
    [UpliftTree(), TLearner(), TLearner(GaussianNB()), UpliftSVM(kernel="rbf")],
    ids=repr,
)
def test_others_say_who_takes_them(model):
    with pytest.raises(TypeError, match=r"X is a sparse matrix.*X\.toarray\(\).*UpliftSVM"):
        model.fit(sparse.csr_array(DENSE), Y, ARM)
    assert not model.__sklearn_tags__().input_tags.sparse


def test_what_cannot_be():
    holes = DENSE.copy()
    holes[3, 0] = np.nan
    with pytest.raises(
        ValueError, match=r"1 NaN or infinite value\(s\), the first in row 3: in a sparse matrix nothing"
    ):
        UpliftSVM().fit(sparse.csr_array(holes), Y, ARM)
    with pytest.raises(TypeError, match="sparse matrix of type complex"):
        UpliftSVM().fit(sparse.csr_array(DENSE.astype(complex)), Y, ARM)
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        UpliftSVM().fit(sparse.csr_array((N, 0)), Y, ARM)
    model = UpliftSVM(C=0.1).fit(sparse.csr_array(DENSE), Y, ARM)
    with pytest.raises(ValueError, match="X has 11 features, but UpliftSVM is expecting 12"):
        model.predict(sparse.csr_array(DENSE[:, :11]))
    with pytest.warns(UserWarning, match="propensity='auto' looks for arms that differ among dense columns"):
        DRLearner(Ridge(), random_state=0).fit(sparse.csr_array(DENSE), Y, ARM)
    with pytest.raises(TypeError, match="gradient boosting does not take"):
        DRLearner(Ridge(), propensity="boosting").fit(sparse.csr_array(DENSE), Y, ARM)


def test_reading_leaves_the_users_matrix_alone():
    data, rows, columns = [1.0, 2.0, 3.0, 4.0], [0, 0, 1, 0], [1, 1, 0, 0]
    X = sparse.csr_array((data, columns, [0, 3, 4]), shape=(2, 2))  # a place that is stored twice, columns out of order
    before = (X.data.copy(), X.indices.copy(), X.indptr.copy())
    matrix = read_sparse(X)
    matrix.data[:] = 0
    for mine, was in zip((X.data, X.indices, X.indptr), before, strict=True):
        np.testing.assert_array_equal(mine, was)
    assert len(matrix) == 2
    assert type(matrix[np.array([1])]) is SparseMatrix
    assert rows


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_moments_are_those_of_the_dense_columns(weight):
    total, mean, norm = column_moments(SparseMatrix(DENSE), weight)
    w = np.ones(N) if weight is None else weight
    assert total == pytest.approx(w.sum())
    np.testing.assert_allclose(mean, np.average(DENSE, axis=0, weights=w))
    np.testing.assert_allclose(norm**2, (w[:, None] * (DENSE - mean) ** 2).sum(axis=0))
