"""Linear machines learnt from parts of the rows: the machine of the whole table, with the same certificate, however the rows lie."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import upturn
from engines.test_places import FEATURES, far, local, parts, table
from upturn import engines
from upturn.engines import _margins, _scan
from upturn.engines._gather import Roles
from upturn.engines._learn import learn
from upturn.engines._margins import FarData, Margins
from upturn.engines._numbers import Raw
from upturn.engines._places import Here
from upturn.svm import DifferentialSVM, StandardSVM, SubgroupSVM, TwoCostSVM, UpliftSVM, UpliftSVMCV, VanishingWarning
from upturn.svm._problem import MarginData

pl = pytest.importorskip("polars")

FEW = ["age", "city", "visits", "member"]
CASES = {
    "uplift": (UpliftSVM(ratio=1.5), None),
    "uplift, p = 2, weighted": (UpliftSVM(ratio=2.0, p=2.0, C=0.1), "weight"),
    "uplift, whole weights": (UpliftSVM(p=1.5), "count"),
    "group average": (UpliftSVM(C=10.0, ratio=1.5, group_average=True), "weight"),
    "ratio auto": (UpliftSVM(p=2.0, ratio="auto", neutral=0.4, C=0.1), None),
    "as columns are": (UpliftSVM(p=2.0, standardize=False, C=0.01), None),
    "near 1": (UpliftSVM(ratio=1.5, p=1.1, C=0.1), None),
    "standard": (StandardSVM(p=1.2), "weight"),
    "flipped": (StandardSVM(p=2.0, flip_control=True), None),
    "two costs": (TwoCostSVM(p=1.5), "weight"),
    "no cost of control": (TwoCostSVM(p=2.0, C_control=0.0), None),
    "subgroup": (SubgroupSVM(p=1.2), None),
}


def few(model, frame):
    """A machine of a few columns of the whole table."""
    return clone(model).fit(frame.select(*FEW, "segment", "bought"), "bought", "segment")


def agree(found, whole, tol=1e-6):
    """Objectives to 1e-8, coefficients to 1e-6 of the largest."""
    assert found.dual_gap_ <= found.tol
    assert found.objective_ == pytest.approx(whole.objective_, rel=1e-8)
    assert found.solver_ == whole.solver_ if whole.solver_ != "band" else found.solver_ == "interior"
    assert found.vanishing_ == whole.vanishing_
    assert found.coef_names_ == whole.coef_names_
    assert found._rate == whole._rate
    for name in ("coef_", "ranking_coef_", "intercepts_", "feature_importances_"):
        one, two = getattr(found, name), getattr(whole, name)
        np.testing.assert_allclose(one, two, atol=tol * np.abs(two).max() + 1e-300, rtol=0, err_msg=name)


@pytest.mark.parametrize("case", list(CASES))
def test_a_machine_of_parts_is_that_of_the_whole_table(case):
    model, weight = CASES[case]
    frame = table()
    whole = local(model, frame, weight)
    assert np.abs(whole.coef_).max() > 0.0
    for k in (1, 7):
        found = far(model, frame, k, weight)
        agree(found, whole)
        assert len(found.support_) == 0
        scores = whole.predict(frame.select(FEATURES))
        np.testing.assert_allclose(found.predict(frame.select(FEATURES)), scores, atol=1e-5 * np.ptp(scores))


@pytest.mark.parametrize("weight", [None, "weight"])
def test_machines_with_p_1(weight):
    """Their w need not be unique to many digits; objectives and certificates are."""
    rng = np.random.default_rng(1)
    frame = table(n=900)
    moved = (pl.col("age").fill_null(40) > 40) == (pl.col("segment") == "mail")
    frame = frame.with_columns(bought=moved ^ pl.Series(rng.random(900) < 0.15))
    for model in (
        UpliftSVM(p=1.0, C=0.1, ratio=1.3),
        StandardSVM(C=0.1, flip_control=True),
        TwoCostSVM(),
        SubgroupSVM(),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole, found = local(model, frame, weight), far(model, frame, 6, weight)
        assert found.objective_ == pytest.approx(whole.objective_, rel=1e-8)
        assert found.dual_gap_ <= 1e-8
        assert found.vanishing_ == whole.vanishing_
    model = UpliftSVM(p=1.0, C=0.1, ratio=1.3)
    agree(far(model, frame, 6, weight), local(model, frame, weight), 1e-4)


def test_where_w_is_0_the_ranking_is_that_of_the_whole_table():
    frame = table(seed=3).filter((pl.col("segment") == "none") | (pl.int_range(1200) % 8 == 0))
    frame = frame.with_columns(bought=np.random.default_rng(0).random(len(frame)) < 0.1, shop=pl.lit("a"))
    model = UpliftSVM(p=1.0, C=0.001)
    with pytest.warns(VanishingWarning):
        whole = local(model, frame)
    with pytest.warns(VanishingWarning, match=r"p=1\.2"):
        found = far(model, frame, 5)
    assert not found.coef_.any()
    agree(found, whole, 1e-5)
    np.testing.assert_array_equal(found.intercept_intervals_, whole.intercept_intervals_)


def test_labels_that_are_all_the_same():
    frame = table().with_columns(bought=(pl.col("segment") == "mail").cast(pl.Float64))
    model = UpliftSVM()
    with pytest.warns(VanishingWarning, match="the same label"):
        whole = local(model, frame)
    with pytest.warns(VanishingWarning, match="the same label"):
        found = far(model, frame, 5)
    assert found.solver_ == whole.solver_ == "one-sided"
    np.testing.assert_array_equal(found.intercepts_, whole.intercepts_)


def test_parts_without_one_of_the_arms_and_levels_of_their_own():
    frame = table().sort("segment", "city", "bought", nulls_last=True)
    for model in (UpliftSVM(ratio=1.5), SubgroupSVM(p=2.0)):
        agree(far(model, frame, 9), local(model, frame))


def test_a_machine_of_parts_is_saved_and_loaded(tmp_path):
    frame = table()
    found = far(UpliftSVM(), frame, 5)
    found.save(tmp_path / "found.upturn")
    again = upturn.load(tmp_path / "found.upturn")
    np.testing.assert_array_equal(again.predict(frame.select(FEATURES)), found.predict(frame.select(FEATURES)))


@pytest.mark.parametrize("p", [1.0, 1.1, 1.2])
def test_what_parts_keep_may_be_lost_at_any_time(p, monkeypatch):
    """Every question reaches parts that have forgotten where they were, as Spark's always have, or some of them; the machine is the same."""
    frame, model = table(n=400), UpliftSVM(p=p, C=0.1, ratio=1.3)
    kept = far(model, frame, 5)
    asked = Here.ask

    def ask(self, question, merge=None):
        if isinstance(self._states[0], Margins):
            self._states = [
                pickle.loads(pickle.dumps(s)) if i % 2 else copy.copy(s) for i, s in enumerate(self._states)
            ]
        return asked(self, question, merge)

    monkeypatch.setattr(Here, "ask", ask)
    lost = far(model, frame, 5)
    np.testing.assert_array_equal(lost.coef_, kept.coef_)
    assert lost.objective_ == kept.objective_


@pytest.mark.parametrize("ties", [False, True])
def test_intercepts_of_many_edges_are_closed_in_on(ties, monkeypatch):
    """Only a few edges may come to the driver: the interval is that of all rows together."""
    monkeypatch.setattr(_margins, "MOST_EDGES", 12)
    monkeypatch.setattr(_margins, "_CELLS", 5)
    rng = np.random.default_rng(0)
    for n in (40, 301):
        X, z, price = rng.normal(size=(n, 3)), rng.choice([-1.0, 1.0], n), rng.integers(1, 4, n).astype(float)
        if ties:
            X = X.round(0)
        prices = np.array([[1.5, 1.0], [1.0, 1.5]])
        pieces = [Margins(X[a:b], z[a:b], price[a:b], price[a:b]) for a, b in ((0, 0), (0, 1), (1, 30), (30, n))]
        data = MarginData(X, z, np.where(z > 0, prices[:, 1:], prices[:, :1]) * price)
        spread = FarData(Here(pieces), n, 3, prices)
        for w in (np.zeros(3), rng.normal(size=3), np.array([1e-9, 0.0, 0.0])):
            b = np.zeros(2)
            for one, two in zip(spread.intervals(w, b), data.intervals(data.scores(w), b), strict=True):
                np.testing.assert_allclose(one, two, atol=1e-14)


@pytest.mark.parametrize("name", ["uplift", "uplift, p = 2, weighted", "subgroup"])
def test_machines_of_files(name, tmp_path, monkeypatch):
    monkeypatch.setattr(_scan, "_VALUES", 1)  # 1024 rows a part
    frame = table(n=2500)
    for i, (a, b) in enumerate(((0, 700), (700, 2400), (2400, 2500))):
        frame[a:b].write_parquet(tmp_path / f"{i}.parquet")
    model, weight = CASES[name]
    found = engines.fit(clone(model), tmp_path / "*.parquet", "bought", "segment", weight, FEATURES, scratch=tmp_path)
    agree(found, local(model, frame, weight))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.parquet", "1.parquet", "2.parquet"]


@pytest.mark.parametrize(
    ("model", "how", "error", "said"),
    [
        (UpliftSVM(kernel="rbf"), {}, ValueError, r"kernel='rbf'\) compares rows.*engines\.sample"),
        (UpliftSVM(balance=1.0), {}, ValueError, r"balance=1.0\) compares the scores.*engines\.sample"),
        (UpliftSVM(p=1.0, solver="dcd"), {}, ValueError, r"solver='dcd'\) goes from row to row.*engines\.sample"),
        (UpliftSVM(neutral=0.2), {}, ValueError, "needs ratio='auto'"),
        (UpliftSVMCV(), {}, TypeError, r"UpliftSVMCV needs its whole table.*engines\.sample"),
        (DifferentialSVM(), {}, TypeError, r"DifferentialSVM needs its whole table.*engines\.sample"),
        (UpliftSVM(), {"arms": ("none", "mail", "call")}, ValueError, "compares one treatment with control"),
        (UpliftSVM(), {"outcome": "real"}, ValueError, "more than two values"),
    ],
)
def test_what_machines_cannot_do_in_parts_is_refused_in_words(model, how, error, said):
    with pytest.raises(error, match=said):
        engines.fit(model, table(**how).lazy(), "bought", "segment", features=FEATURES)
    assert not hasattr(model, "coef_")


def test_a_constant_outcome_and_columns_of_absurd_size_are_refused():
    with pytest.raises(ValueError, match="one value only"):
        far(UpliftSVM(), table().with_columns(bought=1.0), 4)
    with pytest.raises(ValueError, match="'age' holds numbers so large"):
        far(UpliftSVM(), table().with_columns(age=1.7e308 * (-1.0) ** np.arange(1200)), 4)


def test_columns_that_a_few_values_make_useless_are_told():
    rng = np.random.default_rng(0)
    values = rng.normal(size=1200)
    values[5] = 1e7
    frame = table().with_columns(age=values)
    with pytest.warns(UserWarning, match=r"1 column\(s\) \('age'\)"):
        learn(UpliftSVM(), parts(frame, 5), Roles("bought", "segment", None, FEATURES), None, "polars")


def test_more_levels_than_are_told_apart():
    rng = np.random.default_rng(0)
    frame = table(n=3000).with_columns(shop=pl.Series([f"s{k}" for k in np.minimum(rng.geometric(0.004, 3000), 700)]))
    model = UpliftSVM(p=2.0, C=0.1)
    pieces = Here([Raw(0, frame[:1000]), Raw(1, frame[1000:1001]), Raw(2, frame[1001:])])
    found = clone(model)
    learn(found, pieces, Roles("bought", "segment", None, FEATURES), None, "polars")
    agree(found, local(model, frame))
