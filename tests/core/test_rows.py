"""Columns by name, indexes in another order, and a treatment in the outcome's place."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import upturn as up
from upturn.meta import ClassTransformation
from upturn.metrics import auuc, calibration_table, effect_scores, evaluate, expected_response, lift_area, policy_value
from upturn.model_selection import (
    RepeatedUpliftSplit,
    UpliftGroupKFold,
    UpliftKFold,
    compare_models,
    uplift_scorer,
    uplift_train_test_split,
)
from upturn.plot import uplift_curves
from upturn.policy import gain_curve, iptw_weights, target
from upturn.trees import UpliftTree

RNG = np.random.default_rng(0)
N = 600
TABLE = pd.DataFrame(
    {
        "age": RNG.normal(size=N),
        "visit": RNG.integers(0, 2, N),
        "income": RNG.normal(size=N),
        "segment": RNG.choice(["no mail", "mail"], N),
        "weight": RNG.uniform(0.5, 2, N),
        "house": np.arange(N) // 2,
    }
)
FEATURES = TABLE[["age", "income", "house"]]
KINDS = {"pandas": lambda t: t, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_may_be_named(kind):
    table = KINDS[kind](TABLE)
    named = UpliftTree(max_depth=2, random_state=0).fit(table, "visit", "segment", "weight")
    apart = UpliftTree(max_depth=2, random_state=0).fit(FEATURES, TABLE.visit, TABLE.segment, TABLE.weight)
    assert list(named.feature_names_in_) == ["age", "income", "house"]
    assert named.control_ == "no mail"
    expected = apart.predict(FEATURES)
    np.testing.assert_array_equal(named.predict(table), expected)  # passed over at predict
    np.testing.assert_array_equal(named.predict(KINDS[kind](FEATURES)), expected)
    assert named.score(table, "visit", "segment") == apart.score(FEATURES, TABLE.visit, TABLE.segment)


def test_taken_columns_are_saved(tmp_path):
    model = UpliftTree(max_depth=2, random_state=0).fit(TABLE, "visit", "segment", "weight")
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(up.load(tmp_path / "m").predict(TABLE), model.predict(FEATURES))
    with pytest.raises(ValueError, match="unseen at fit time: 'other'"):
        model.predict(TABLE.assign(other=1))


def test_check_splits_and_comparisons_take_names():
    report = up.check(TABLE, "visit", "segment", sample_weight="weight", groups="house")
    plain = up.check(
        TABLE[["age", "income"]], TABLE.visit, TABLE.segment, sample_weight=TABLE.weight, groups=TABLE.house
    )
    assert str(report) == str(plain)
    parts = uplift_train_test_split(TABLE, "visit", "segment", groups="house", random_state=0)
    assert list(parts[0].columns) == ["age", "income", "weight"]
    assert parts[2].index.equals(parts[0].index)
    models = {"one": ClassTransformation()}
    found = compare_models(models, TABLE, "visit", "segment", "weight", groups="house", cv=3, random_state=0)
    X = TABLE[["age", "income"]]
    same = compare_models(models, X, TABLE.visit, TABLE.segment, TABLE.weight, groups=TABLE.house, cv=3, random_state=0)
    np.testing.assert_array_equal(found["one"], same["one"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TABLE, "vist", "segment"), "y='vist': X has no such column; did you mean 'visit'"),
        ((TABLE, "visit", "visit"), "the same column is named twice"),
        ((TABLE.to_numpy(), "visit", "segment"), "X is a ndarray without names"),
        ((TABLE[["visit", "segment"]], "visit", "segment"), "no feature is left"),
    ],
)
def test_names_that_cannot_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        UpliftTree().fit(*arguments)


def test_the_same_labels_in_another_order_are_refused():
    order = np.random.default_rng(1).permutation(N)
    shuffled = FEATURES.iloc[order]
    with pytest.raises(
        ValueError, match=r"X and y hold the same index labels in another order.*y.loc\[X.index\].*y.to_numpy\(\)"
    ):
        UpliftTree().fit(shuffled, TABLE.visit, TABLE.segment)
    with pytest.raises(ValueError, match=r"y and treatment hold the same index"):
        UpliftTree().fit(FEATURES.to_numpy(), TABLE.visit, TABLE.segment.iloc[order])
    score = pd.Series(np.arange(N), index=order)
    with pytest.raises(ValueError, match=r"y and score hold the same index"):
        auuc(TABLE.visit, score, TABLE.segment)
    with pytest.raises(ValueError, match=r"y and scores\['a'\] hold the same index.*scores\['a'\].loc\[y.index\]"):
        evaluate(TABLE.visit, {"a": score}, TABLE.segment)
    with pytest.raises(ValueError, match=r"X and y hold the same index"):
        up.check(shuffled, TABLE.visit, TABLE.segment)
    with pytest.raises(ValueError, match=r"y and treatment hold the same index"):
        up.pack(TABLE.visit, TABLE.segment.iloc[order])
    with pytest.raises(ValueError, match=r"y and sample_weight hold the same index"):
        up.pack(TABLE.visit, TABLE.segment, score.abs() + 1.0)
    with pytest.raises(ValueError, match=r"time and event hold the same index"):
        up.datasets.survival_outcome(score.abs().sort_index() + 1.0, TABLE.visit.iloc[order], horizon=3)
    fitted = UpliftTree(random_state=0).fit(
        shuffled, TABLE.visit.loc[shuffled.index], TABLE.segment.loc[shuffled.index]
    )
    by_place = UpliftTree(random_state=0).fit(shuffled, TABLE.visit.to_numpy()[order], TABLE.segment.to_numpy()[order])
    np.testing.assert_array_equal(fitted.predict(FEATURES), by_place.predict(FEATURES))


ORDER = np.random.default_rng(1).permutation(N)
SCORE = TABLE.age.rename("score")
RESPONSE = pd.DataFrame({"no mail": TABLE.income / 10, "mail": TABLE.income / 5})
BY_ROW = {  # options with a value for every row, in the order of the rows
    "groups": TABLE.house,
    "response": RESPONSE,
    "propensity": pd.Series(np.full(N, 0.5)),
    "sample_weight": TABLE.weight,
}
MEASURES = {
    "auuc": (lambda **o: auuc(TABLE.visit, SCORE, TABLE.segment, interval=0.9, n_bootstrap=4, **o), BY_ROW),
    "uplift_at": (lambda **o: up.metrics.uplift_at(TABLE.visit, SCORE, TABLE.segment, **o), BY_ROW),
    "qini": (lambda **o: up.metrics.qini(TABLE.visit, SCORE, TABLE.segment, **o), BY_ROW),
    "uplift_curve": (lambda **o: up.metrics.uplift_curve(TABLE.visit, SCORE, TABLE.segment, **o), ["groups"]),
    "toc_curve": (lambda **o: up.metrics.toc_curve(TABLE.visit, SCORE, TABLE.segment, **o), BY_ROW),
    "calibration_table": (lambda **o: calibration_table(TABLE.visit, SCORE, TABLE.segment, **o), ["groups"]),
    "effect_scores": (lambda **o: effect_scores(TABLE.visit, TABLE.segment, **o), ["response", "propensity"]),
    "policy_value": (lambda **o: policy_value(TABLE.visit, TABLE.segment, TABLE.segment, **o), BY_ROW),
    "evaluate": (lambda **o: evaluate(TABLE.visit, {"a": SCORE}, TABLE.segment, n_bootstrap=4, **o), BY_ROW),
    "target": (lambda **o: target(SCORE, y=TABLE.visit, treatment=TABLE.segment, n_bootstrap=4, **o), BY_ROW),
    "gain_curve": (lambda **o: gain_curve(TABLE.visit, SCORE, TABLE.segment, n_bootstrap=4, **o), BY_ROW),
    "check": (lambda **o: up.check(FEATURES, TABLE.visit, TABLE.segment, **o), ["groups", "sample_weight"]),
    "subgroups": (lambda **o: up.subgroups(TABLE.age > 0, None, TABLE.visit, TABLE.segment, **o), ["groups"]),
    "power": (lambda **o: up.power(TABLE.visit, SCORE, TABLE.segment, effect=0.1, **o), ["sample_weight"]),
    "split": (lambda **o: list(UpliftGroupKFold(2).split(FEATURES, TABLE.visit, TABLE.segment, **o)), ["groups"]),
    "plot": (lambda **o: uplift_curves(TABLE.visit, {"a": SCORE}, TABLE.segment, interval=None, **o), ["groups"]),
}


@pytest.mark.parametrize(
    ("name", "option"), [(name, option) for name, (_, some) in MEASURES.items() for option in some]
)
def test_whatever_has_a_value_for_every_row_is_in_one_order(name, option):
    measure, _ = MEASURES[name]
    measure(**{option: BY_ROW[option]})
    with pytest.raises(
        ValueError, match=rf"and {option} hold the same index.*{option}.loc\[\w+.index\].*{option}.to_numpy"
    ):
        measure(**{option: BY_ROW[option].iloc[ORDER]})


def test_groups_of_people_in_another_order_are_refused():
    rest = None, TABLE.visit, TABLE.segment
    with pytest.raises(ValueError, match=r"by and y hold the same index"):
        up.subgroups((TABLE.age > 0).iloc[ORDER], *rest)
    with pytest.raises(ValueError, match=r"by\['old'\] and y hold the same index"):
        up.subgroups({"old": (TABLE.age > 0).iloc[ORDER]}, *rest)
    plan = target(SCORE, fraction=0.1)
    with pytest.raises(ValueError, match=r"score and ids hold the same index.*ids.loc\[score.index\]"):
        plan.to_frame(ids=TABLE.house.iloc[ORDER])


def test_columns_of_scores_go_to_the_arms_they_are_named_for():
    rng = np.random.default_rng(3)
    index = pd.Index([f"c{i}" for i in range(N)], name="customer")
    arms = pd.Series(rng.choice(["no", "mail", "call"], N), index=index)
    y = pd.Series(rng.integers(0, 2, N), index=index)
    frame = pd.DataFrame(rng.normal(size=(N, 2)), columns=["call", "mail"], index=index)
    swapped, array = frame[["mail", "call"]], frame.to_numpy()
    assert not np.isclose(auuc(y, array, arms), auuc(y, array[:, ::-1], arms))
    for one in (frame, swapped, pl.from_pandas(swapped), pa.Table.from_pandas(swapped, preserve_index=False)):
        assert auuc(y, one, arms) == auuc(y, array, arms)
        found = evaluate(y, {"a": one}, arms, metrics=["qini"], interval=None)
        assert found["a"]["qini"] == up.metrics.qini(y, array, arms)
    for unnamed in (pd.DataFrame(array, index=index), pl.DataFrame(array), frame.set_axis(["a", "b"], axis=1)):
        assert auuc(y, unnamed, arms) == auuc(y, array, arms)  # by their place
    for names in (["call", "post"], ["no", "mail"]):
        with pytest.raises(ValueError, match=r"score has the columns .* and \['call', 'mail'\] are expected"):
            auuc(y, frame.set_axis(names, axis=1), arms)
        with pytest.raises(ValueError, match=r"score has the columns"):
            target(frame.set_axis(names, axis=1), y=y, treatment=arms)
    response = pd.DataFrame(rng.normal(size=(N, 3)), columns=["no", "call", "mail"], index=index)
    adjusted = auuc(y, frame, arms, response=response)
    assert auuc(y, frame, arms, response=response[["mail", "no", "call"]]) == adjusted
    assert auuc(y, frame, arms, response=response.to_numpy()) == adjusted
    chances = pd.DataFrame(rng.dirichlet([5, 5, 5], N), columns=["no", "call", "mail"], index=index)
    assert auuc(y, frame, arms, propensity=chances[["call", "mail", "no"]]) == auuc(
        y, frame, arms, propensity=chances.to_numpy()
    )


def test_a_plan_takes_names_and_index_from_the_frame_of_scores():
    rng = np.random.default_rng(3)
    index = pd.Index([f"c{i}" for i in range(50)], name="customer")
    frame = pd.DataFrame(rng.normal(size=(50, 2)), columns=["mail", "call"], index=index)
    plan = target(frame, fraction=0.2)
    assert set(plan.recommended.tolist()) == {"control", "mail", "call"}
    listed = plan.to_frame()
    assert listed["id"].tolist() == index[plan.order].tolist()
    assert listed["score"].tolist() == [frame.loc[row.id, row.arm] for row in listed.itertuples()]
    np.testing.assert_array_equal(plan.apply(frame[["call", "mail"]]), plan.apply(frame))
    costs = pd.DataFrame({"call": np.full(50, 2.0), "mail": np.full(50, 1.0)}, index=index)
    dear = target(frame, budget=10, cost=costs)
    for same in ({"mail": 1, "call": 2}, pd.Series({"call": 2.0, "mail": 1.0}), [1, 2]):
        np.testing.assert_array_equal(target(frame, budget=10, cost=same).recommended, dear.recommended)
    ordered = target(frame, fraction=0.2, arms=["call", "mail"])
    np.testing.assert_array_equal(ordered.recommended, plan.recommended)
    named = target(frame[["mail"]], fraction=0.2)
    assert set(named.recommended.tolist()) == {"control", "mail"}
    for plain in (
        frame["mail"],
        frame[["mail"]].set_axis(["uplift"], axis=1),
        pl.DataFrame({"1": frame["mail"].to_numpy()}),
    ):
        assert set(target(plain, fraction=0.2).recommended.tolist()) == {0, 1}
    assert target(pl.from_pandas(frame), fraction=0.2).to_frame()["id"].to_list() == plan.order.tolist()
    again = target(frame.set_axis(["same"] * 50), fraction=0.2)
    assert again.to_frame()["id"].tolist() == plan.order.tolist()  # what names several people names nobody
    of_outcomes = target(
        frame["mail"].to_numpy(),
        fraction=0.2,
        y=pd.Series(np.arange(50) % 2, index=index),
        treatment=np.arange(50) // 2 % 2,
    )
    assert set(of_outcomes.to_frame()["id"]) <= set(index)


def test_other_labels_are_paired_by_place():
    other = TABLE.visit.set_axis(np.arange(N) + 1000)
    double = TABLE.segment.set_axis(np.arange(N) // 2)
    UpliftTree(random_state=0).fit(FEATURES, other, double)


def test_a_treatment_in_the_outcomes_place_is_told():
    y, treatment = TABLE.visit.rename("outcome"), pd.Series(RNG.integers(0, 2, N), name="Treatment")
    with pytest.warns(UserWarning, match=r"y is a column called 'Treatment': the order here is fit\(X, y, treatment\)"):
        UpliftTree(random_state=0).fit(FEATURES, treatment, y)


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_as_a_frame(kind):
    table = KINDS[kind](FEATURES.iloc[::2])
    model = UpliftTree(max_depth=2, random_state=0).fit(FEATURES, TABLE.visit, TABLE.segment)
    frame, advised = model.predict(table, output="frame"), model.recommend(table, output="frame")
    assert type(frame).__module__.split(".")[0] == kind
    np.testing.assert_array_equal(np.asarray(frame["mail"]), model.predict(table))
    assert np.asarray(advised["recommended"]).tolist() == model.recommend(table).tolist()
    if kind == "pandas":
        assert frame.index.equals(table.index)
        assert advised.index.equals(table.index)
    several = UpliftTree(max_depth=2, random_state=0).fit(FEATURES, TABLE.visit, np.arange(N) % 3)
    assert list(several.predict(FEATURES, output="frame").columns) == ["1", "2"]
    with pytest.raises(ValueError, match="output='table'"):
        model.predict(table, output="table")


@pytest.mark.parametrize("kind", KINDS)
def test_everything_that_takes_a_table_takes_names(kind):
    table, features = KINDS[kind](TABLE), KINDS[kind](TABLE[["age", "income"]])
    for splitter in (UpliftKFold(3, random_state=0), RepeatedUpliftSplit(2, random_state=0)):
        named = splitter.split(table, "visit", "segment")
        for (_, found), (_, expected) in zip(named, splitter.split(None, TABLE.visit, TABLE.segment), strict=True):
            np.testing.assert_array_equal(found, expected)
    folds = UpliftGroupKFold(3, random_state=0)
    named = folds.split(table, "visit", "segment", "house")
    for (_, found), (_, expected) in zip(
        named, folds.split(None, TABLE.visit, TABLE.segment, TABLE.house), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    by_name = up.subgroups("age", table, "visit", "segment", "weight", groups="house")
    apart = up.subgroups("age", features, TABLE.visit, TABLE.segment, TABLE.weight, groups=TABLE.house)
    np.testing.assert_array_equal(by_name["low"], apart["low"])
    weights = iptw_weights(
        KINDS[kind](TABLE[["age", "income", "segment", "weight"]]), "segment", sample_weight="weight"
    )
    np.testing.assert_array_equal(weights, iptw_weights(features, TABLE.segment, sample_weight=TABLE.weight))


@pytest.mark.filterwarnings("ignore")
def test_a_report_takes_names():
    models = {"estimator": UpliftTree(max_depth=2, random_state=0), "models": {}, "cv": 2, "n_bootstrap": 20}
    page = up.report(TABLE, "visit", "segment", sample_weight="weight", groups="house", **models)
    features = TABLE[["age", "income"]]
    named = {"sample_weight": TABLE.weight, "groups": TABLE.house}
    same = up.report(features, TABLE.visit, TABLE.segment, **named, **models)
    assert page.page == same.page


def test_a_name_without_a_table_is_told_from_a_column():
    with pytest.raises(ValueError, match=r"y is 'visit', of type str.*there is no table here.*pass table\[name\]"):
        auuc("visit", np.arange(N), TABLE.segment)


def test_plans_and_single_groups_refuse_another_order():
    order = np.random.default_rng(1).permutation(N)
    score = pd.Series(RNG.normal(size=N), index=order)
    with pytest.raises(ValueError, match=r"score and y hold the same index labels in another order"):
        target(score, fraction=0.1, y=TABLE.visit, treatment=TABLE.segment)
    with pytest.raises(ValueError, match=r"score and value hold the same index"):
        target(score, fraction=0.1, value=TABLE.weight)
    with pytest.raises(ValueError, match=r"score and cost hold the same index"):
        target(score.to_numpy(), fraction=0.1, cost=TABLE.weight).apply(score, TABLE.weight)
    with pytest.raises(ValueError, match=r"y and score hold the same index"):
        gain_curve(TABLE.visit, score, TABLE.segment)
    with pytest.raises(ValueError, match=r"y and score hold the same index"):
        lift_area(TABLE.visit, score)
    with pytest.raises(ValueError, match=r"y and recommended hold the same index"):
        expected_response(TABLE.visit, TABLE.segment.iloc[order], TABLE.segment)
    with pytest.raises(ValueError, match=r"X and treatment hold the same index"):
        UpliftTree().fit(FEATURES, TABLE.visit.to_numpy(), TABLE.segment.iloc[order])
    with pytest.raises(ValueError, match=r"X and groups hold the same index"):
        up.check(FEATURES, TABLE.visit, TABLE.segment, groups=TABLE.house.iloc[order])
    with pytest.raises(ValueError, match=r"X and array 1 hold the same index"):
        uplift_train_test_split(FEATURES, TABLE.visit, TABLE.segment, TABLE.weight.iloc[order])
    target(score.loc[TABLE.index], fraction=0.1, y=TABLE.visit, treatment=TABLE.segment)


def test_a_scorer_takes_names():
    model = UpliftTree(max_depth=2, random_state=0).fit(TABLE, "visit", "segment", "weight")
    for metric in ("auuc", "policy_value"):
        scorer = uplift_scorer(metric)
        expected = scorer(model, FEATURES, TABLE.visit, TABLE.segment, TABLE.weight)
        assert scorer(model, TABLE, "visit", "segment", "weight") == expected
    with pytest.raises(ValueError, match="did you mean 'visit'"):
        uplift_scorer("auuc")(model, TABLE, "visti", "segment")


@pytest.mark.parametrize("name", ["treatment", "T", "group", "exposure", "w", "trt"])
def test_a_column_called_a_treatment_as_the_outcome_gets_a_warning(name):
    with pytest.warns(UserWarning, match=rf"y is a column called '{name}': the order here is fit\(X, y, treatment\)"):
        UpliftTree(max_depth=1).fit(FEATURES, (TABLE.segment == "mail").astype(int).rename(name), TABLE.visit)
