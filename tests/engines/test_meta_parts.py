"""Meta-learners of parts of the rows, over a base that learns there: the formulas are those of the whole table."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression

from engines.test_places import parts, table
from upturn.engines import _bases
from upturn.engines._dask import grouped
from upturn.engines._gather import Roles
from upturn.engines._learn import check_spread, learn
from upturn.engines._meta import _Folds
from upturn.engines._numbers import Numbers
from upturn.engines._places import Here
from upturn.kernels.sampling import NO_IDS
from upturn.meta import ClassTransformation, DRLearner, RLearner, SLearner, TLearner, XLearner

pl = pytest.importorskip("polars")
COLUMNS = ["visits", "member", "chance"]


class Trained(Here):
    """Places that fit a base of scikit-learn to all rows together."""

    def train(self, estimator, read, *, weighted, classify, seed):
        rows = [read(state) for state in self._states]
        X, y = (np.concatenate([getattr(one, name) for one in rows]) for name in ("X", "y"))
        weight = np.concatenate([one.weight for one in rows]) if weighted else None
        assert classify == _bases.is_classifier(estimator)
        return clone(estimator).fit(X, y, sample_weight=weight)

    def change(self, step):
        return Trained(super().change(step)._states)


class LineClassifier(LogisticRegression):
    """A classifier by its name."""


def far(model, frame, k, weight=None, row_id=None):
    model = clone(model)
    learn(model, Trained(parts(frame, k)._states), Roles("bought", "segment", weight, COLUMNS), row_id, "polars")
    return model


def splits(frame, seed, n):
    """The folds of rows by the hash of their places."""
    nothing = np.zeros(len(frame))
    from upturn._seeds import make_seed

    rows = Numbers(nothing, nothing, nothing.astype(np.uint8), None, 0, NO_IDS)
    fold = _Folds(make_seed(seed), n).of(rows)
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n)]


LEARNERS = {
    "s": SLearner(LinearRegression()),
    "t": TLearner(LinearRegression()),
    "t, classes": TLearner(LineClassifier()),
    "x": XLearner(LinearRegression(), propensity="shares"),
    "x, columns": XLearner(LinearRegression(), propensity="chance"),
    "dr": DRLearner(LinearRegression(), propensity="shares", cv=3, random_state=1),
    "dr, known": DRLearner(LinearRegression(), propensity=0.4, cv=3, random_state=1),
    "r": RLearner(LinearRegression(), propensity="shares", cv=3, random_state=1),
}


@pytest.mark.parametrize("name", list(LEARNERS))
@pytest.mark.parametrize("weight", [None, "weight"])
def test_a_learner_of_parts_is_that_of_the_whole_table(name, weight):
    model = LEARNERS[name]
    several = not name.endswith(("known", "columns"))
    frame = table(
        arms=("none", "mail", "call") if several else ("none", "mail"),
        outcome="binary" if "classes" in name else "real",
    )
    if weight is not None and hasattr(model, "cv"):
        frame = frame.with_columns(pl.col("weight") + 0.1)  # rows of weight 0 would not be there to be dealt
    columns = [*COLUMNS, "segment", "bought", *([weight] if weight else [])]
    own = clone(model).set_params(cv=splits(frame, 1, 3)) if hasattr(model, "cv") else clone(model)
    whole = own.fit(frame.select(columns), "bought", "segment", weight)
    for k in (1, 7):
        found = far(model, frame, k, weight)
        tolerance = 1e-5 if "classes" in name else 1e-8
        mine, other = (one.predict(frame.select(COLUMNS)) for one in (found, whole))
        np.testing.assert_allclose(mine, other, atol=tolerance)
        assert np.ptp(other) > 0.01
        if name.startswith("dr"):
            np.testing.assert_allclose(found.average_effects_, whole.average_effects_, atol=1e-9)
            np.testing.assert_allclose(found.average_effects_se_, whole.average_effects_se_, atol=1e-9)
        assert found.arms_ == whole.arms_


def test_folds_follow_rows_by_their_ids():
    frame = table(outcome="real").with_row_index("person")
    mixed = frame.sample(fraction=1.0, shuffle=True, seed=3)
    model = LEARNERS["dr"]
    one, two = far(model, mixed, 5, row_id="person"), far(model, frame, 7)
    np.testing.assert_allclose(one.predict(frame.select(COLUMNS)), two.predict(frame.select(COLUMNS)), atol=1e-9)


def test_an_arm_with_one_outcome_needs_no_model():
    frame = table().with_columns(bought=pl.when(pl.col("segment") == "none").then(0.0).otherwise("bought"))
    found = far(TLearner(LineClassifier()), frame, 7)
    assert (found.predict_response(frame.select(COLUMNS))[:, 0] == 0.0).all()


def test_arms_that_differ_are_not_taken_for_given_at_random():
    frame = table(outcome="real")
    frame = frame.with_columns(segment=pl.when(pl.col("visits") > 5).then(pl.lit("mail")).otherwise("segment"))
    with pytest.raises(ValueError, match="arms that differ in their features"):
        far(XLearner(LinearRegression()), frame, 3)
    with pytest.warns(UserWarning, match=r"the propensity of 1,200 row\(s\) was below 0.45"):
        far(XLearner(LinearRegression(), propensity=0.4, clip=0.45), frame, 3)


@pytest.mark.parametrize(
    ("model", "error", "said"),
    [
        (XLearner(LinearRegression(), propensity="logistic"), ValueError, "needs all rows in one place"),
        (
            TLearner(LineClassifier()),
            ValueError,
            "LineClassifier is a classifier, and y has more than two distinct values",
        ),
    ],
)
def test_what_the_rows_do_not_allow_is_refused_in_words(model, error, said):
    with pytest.raises(error, match=said):
        far(model, table(outcome="real"), 3)


def stand_in(library, name):
    """An object of a class that another library would have, without the library."""
    return type(name, (LinearRegression,), {"__module__": library})()


DASK, SPARK = stand_in("lightgbm.dask", "DaskLGBMRegressor"), stand_in("xgboost.spark.estimator", "SparkXGBRegressor")


@pytest.mark.parametrize(
    ("model", "error", "said"),
    [
        (TLearner(), TypeError, "gradient boosting, which needs all rows in one place: pass lightgbm"),
        (TLearner(LinearRegression()), TypeError, "estimator=LinearRegression, which needs all rows"),
        (TLearner(SPARK), TypeError, "estimator=SparkXGBRegressor, which learns on another engine"),
        (XLearner(DASK, LinearRegression()), TypeError, "effect_estimator=LinearRegression"),
        (
            DRLearner(stand_in("xgboost.dask", "DaskXGBClassifier")),
            TypeError,
            "effect_estimator=gradient boosting",
        ),
        (RLearner(DASK, stand_in("lightgbm.dask", "DaskLGBMClassifier")), ValueError, "is not a regressor"),
        (SLearner(DASK, interactions=True), ValueError, r"interactions.*engines\.sample\(table, n\)"),
        (DRLearner(DASK, cv=[]), ValueError, r"expected a number of folds.*engines\.sample\(table, n\)"),
        (ClassTransformation(), TypeError, "ClassTransformation does not run on a cluster"),
    ],
)
def test_what_does_not_learn_on_an_engine_is_refused_in_words(model, error, said):
    with pytest.raises(error, match=said):
        check_spread(model, "dask")


def test_what_learns_on_an_engine_is_taken():
    check_spread(TLearner(SPARK), "spark")
    for model in (TLearner(DASK), SLearner(DASK), XLearner(DASK), DRLearner(DASK), RLearner(DASK)):
        check_spread(model, "dask")


def test_small_parts_are_put_together_for_other_libraries():
    none = frozenset()
    assert grouped([1, 0, 500, 700], [none] * 4) == [[0, 1, 2], [3]]
    assert grouped([600, 0, 1], [none] * 3) == [[0, 1, 2]]
    assert grouped([1, 1], [none] * 2) == [[0, 1]]
    assert [len(group) for group in grouped([10] * 640, [none] * 640)] == [10] * 64


def test_a_worker_sees_all_classes():
    """One that sees a single class takes it for the first of them, and the model learns nonsense without a word."""
    no, yes, both = frozenset([0.0]), frozenset([1.0]), frozenset([0.0, 1.0])
    assert grouped([500] * 4, [no, no, yes, yes]) == [[0, 1, 2, 3]]
    assert grouped([500] * 4, [no, yes, no, yes]) == [[0, 1], [2, 3]]
    assert grouped([500] * 4, [both, no, yes, no]) == [[0], [1, 2, 3]]
