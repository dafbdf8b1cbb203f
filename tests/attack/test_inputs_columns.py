"""Columns that say nothing, or too much: empty ones, and text with more levels than can be told apart."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import upturn
from estimators import ESTIMATORS, TRANSFORMERS
from upturn._encode import MOST_LEVELS, LinearEncoder, pool_levels
from upturn._table import read_table
from upturn.meta import ClassTransformation, DRLearner, RLearner, SLearner, TLearner, TreatedOnly, XLearner
from upturn.policy import overlap
from upturn.svm import UpliftSVM

rng = np.random.default_rng(0)
N = 300
T = np.arange(N) % 2
NUMBERS = rng.normal(size=(N, 2))
Y = (rng.random(N) < 0.4 + 0.2 * T * (NUMBERS[:, 0] > 0)).astype(float)

LEARNERS = {
    "SLearner": lambda: SLearner(random_state=0),
    "TLearner": lambda: TLearner(random_state=0),
    "XLearner": lambda: XLearner(random_state=0),
    "DRLearner": lambda: DRLearner(random_state=0),
    "RLearner": lambda: RLearner(random_state=0),
    "TreatedOnly": lambda: TreatedOnly(random_state=0),
    "ClassTransformation": lambda: ClassTransformation(),
}
GAPS = {
    "empty": np.full(N, np.nan),
    "all but one": np.where(np.arange(N) == 7, 1.0, np.nan),
    "99% missing": np.where(np.arange(N) % 100 == 0, NUMBERS[:, 1], np.nan),
    "empty in one arm": np.where(T == 1, np.nan, NUMBERS[:, 1]),
    "empty in half of the rows": np.where(np.arange(N) < N // 2, np.nan, NUMBERS[:, 1]),
    "no level": pd.Categorical([None] * N, ["a", "b"]),
    "levels in one arm": pd.Categorical(np.where(T == 1, None, np.where(NUMBERS[:, 1] > 0, "a", "b")), ["a", "b"]),
}


@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("name", LEARNERS)
def test_default_learners_take_columns_without_values(name, gaps):
    X = pd.DataFrame({"a": NUMBERS[:, 0], "b": GAPS[gaps]})
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # a column that is there in one arm alone tells the arms apart, and propensities say so
        model = LEARNERS[name]().fit(X, Y, T)
    assert np.isfinite(model.predict(X)).all()
    later = X.assign(b="b" if "level" in gaps else 0.5)  # what was empty at fit need not be at predict
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "b" may be new
        assert np.isfinite(model.predict(later)).all()
    if gaps in ("empty", "no level"):
        alone = LEARNERS[name]().fit(X[["a"]], Y, T).predict(X[["a"]])
        np.testing.assert_allclose(model.predict(X), alone, rtol=1e-6, atol=1e-9)


def test_a_fold_without_a_value():
    X = np.column_stack((NUMBERS[:, 0], np.where(np.arange(N) == 3, 1.0, np.nan)))
    halves = [(np.arange(N // 2, N), np.arange(N // 2)), (np.arange(N // 2), np.arange(N // 2, N))]
    for learner in (DRLearner, RLearner):
        assert np.isfinite(learner(cv=halves, random_state=0).fit(X, Y, T).predict(X)).all()


def test_check_says_which_columns_are_empty():
    X = pd.DataFrame({"a": NUMBERS[:, 0], "none": np.nan, "few": GAPS["99% missing"]})
    found = upturn.check(X, Y, T)["columns"]
    assert found.status == "note"
    assert "empty: none" in found.seen
    assert "nearly empty: few" in found.seen
    assert "columns" not in [finding.check for finding in upturn.check(X[["a"]], Y, T).findings]


# ------------------------------------------------------------------------------------------------------ many levels


def table(n, levels, seed=0):
    draws = np.random.default_rng(seed)
    counts = np.minimum((levels * draws.random(n) ** 2).astype(int), levels - 1)
    return pd.DataFrame({"x": draws.normal(size=n), "city": [f"c{code:05d}" for code in counts]})


def test_the_rarest_levels_are_pooled_by_count_alone():
    X = table(6000, 900)
    matrix, schema = read_table(X)
    place = pool_levels(matrix[:, 1], len(schema.levels[1]))
    counts = X["city"].value_counts()
    kept = {schema.levels[1][code] for code in np.flatnonzero(place < MOST_LEVELS - 1)}
    assert len(kept) == MOST_LEVELS - 1
    assert min(counts[list(kept)]) >= max(counts[[level for level in counts.index if level not in kept]])
    encoder = LinearEncoder.fit(matrix, schema, standardize=False)
    encoded = encoder.transform(matrix)
    assert encoded.shape == (6000, 1 + MOST_LEVELS)
    assert (encoded[:, 1:].sum(axis=1) == 1).all()
    rare = ~X["city"].isin(kept).to_numpy()
    np.testing.assert_array_equal(encoded[:, -1], rare)
    names = encoder.names(schema)
    assert names[-1] == "city=any rarer level"
    for j in (1, 100, MOST_LEVELS - 1):  # a column is of the level it is named after
        np.testing.assert_array_equal(encoded[:, j], X["city"] == names[j].removeprefix("city="))


def test_up_to_256_levels_nothing_is_pooled():
    levels = [f"c{code:03d}" for code in range(MOST_LEVELS)]
    matrix, schema = read_table(pd.DataFrame({"city": levels * 2}))
    assert pool_levels(matrix[:, 0], MOST_LEVELS) is None
    np.testing.assert_array_equal(
        LinearEncoder.fit(matrix, schema, standardize=False).transform(matrix)[:MOST_LEVELS], np.eye(MOST_LEVELS)
    )


def test_weights_count_as_repeated_rows_in_pools():
    X, times = table(900, 400), np.random.default_rng(1).integers(1, 4, 900)
    matrix, schema = read_table(X)
    repeated = np.repeat(matrix, times, axis=0)
    place = pool_levels(matrix[:, 1], len(schema.levels[1]), times.astype(float))
    np.testing.assert_array_equal(place, pool_levels(repeated[:, 1], len(schema.levels[1])))


def test_a_pooled_encoder_is_saved(tmp_path):
    X = table(2000, 600)
    t = np.arange(2000) % 2
    y = (np.random.default_rng(2).random(2000) < 0.5).astype(float)
    for model in (DRLearner(Ridge(), propensity="shares", random_state=0), UpliftSVM(p=2.0)):
        model.fit(X, y, t).save(tmp_path / "model.upturn")
        np.testing.assert_array_equal(upturn.load(tmp_path / "model.upturn").predict(X), model.predict(X))


def test_all_levels_of_an_identifier_share_a_place(tmp_path):
    X = pd.DataFrame({"x": np.arange(600.0) % 7, "id": [f"id{i}" for i in range(598)] + [None, None]})
    matrix, schema = read_table(X, quiet=True)
    encoder = LinearEncoder.fit(matrix, schema, standardize=False)
    assert encoder.names(schema) == ["x", "id=any level"]
    np.testing.assert_array_equal(encoder.transform(matrix)[:, 1], X["id"].notna())
    t, y = np.arange(600) // 2 % 2, (np.arange(600) // 3 % 2).astype(float)
    with pytest.warns(UserWarning, match="looks like an identifier"):
        model = UpliftSVM(p=2.0).fit(X, y, t)
    model.save(tmp_path / "model.upturn")
    np.testing.assert_array_equal(upturn.load(tmp_path / "model.upturn").predict(X), model.predict(X))


@pytest.mark.parametrize("spoil", ["missing", "range", "double", "kind", "column"])
def test_pools_of_a_file_are_checked(spoil):
    matrix, schema = read_table(table(2000, 600))
    state = LinearEncoder.fit(matrix, schema).get_state()
    (column, place), spoiled = state["pools"][0], state["pools"][0][1].copy()
    if spoil == "range":
        spoiled[0] = MOST_LEVELS
    elif spoil == "double":
        spoiled[place == 0] = 1
    elif spoil == "kind":
        spoiled = spoiled.astype(float)
    pools = [] if spoil == "missing" else [[0 if spoil == "column" else column, spoiled]]
    with pytest.raises(ValueError, match="level"):
        LinearEncoder.from_state({**state, "pools": pools}, schema)


def test_an_identifier_is_named():
    X = pd.DataFrame({"x": NUMBERS[:, 0], "customer": [f"id{i}" for i in range(N)]})
    with pytest.warns(UserWarning, match="'customer' hold text, and more than half .* identifier"):
        ClassTransformation().fit(X, Y, T)
    with pytest.warns(UserWarning, match="'customer'"):
        overlap(X, T)
    found = upturn.check(X, Y, T)["columns"]  # which says so in its report, and does not warn
    assert "like an identifier: customer" in found.seen


@pytest.mark.parametrize("distinct", [149, 152])
def test_an_identifier_has_a_value_of_its_own_in_more_than_half_of_the_rows(distinct):
    text = [f"id{i}" if i < distinct else "none" for i in range(N)]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        read_table(pd.DataFrame({"a": text}))
    assert len(seen) == (distinct > N // 2)


def test_numbers_are_no_identifiers():
    read_table(pd.DataFrame({"a": np.arange(N), "b": rng.normal(size=N)}))


@pytest.mark.parametrize("name", [*ESTIMATORS, *TRANSFORMERS])
def test_every_model_takes_a_forgotten_identifier(name):
    X = pd.DataFrame({"x": np.tile(NUMBERS[:, 0], 2), "id": [f"id{i}" for i in range(2 * N)]})
    with warnings.catch_warnings(
        record=True
    ) as seen:  # others may speak of overlap, or of a tolerance that is out of reach
        warnings.simplefilter("always")
        model = (ESTIMATORS | TRANSFORMERS)[name]().fit(X, np.tile(Y, 2), np.tile(T, 2))
    assert sum("looks like an identifier" in str(warning.message) for warning in seen) == 1
    if hasattr(model, "predict"):
        assert np.isfinite(model.predict(X)).all()
