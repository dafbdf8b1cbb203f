"""Uplift trees and forests as users meet them."""

import json

import numpy as np
import pytest
from scipy.stats import norm

import upturn
from upturn._results import number_text
from upturn.persist import ModelFileError
from upturn.trees import CTSForest, UCTSForest, UpliftForest, UpliftTree
from upturn.trees._bins import Bins
from upturn.trees._forest import debiased_variance
from upturn.trees._nodes import Nodes
from upturn.trees._outcome import encode_outcome

MODELS = {
    "tree": lambda **more: UpliftTree(random_state=0, **more),
    "pruned tree": lambda **more: UpliftTree(random_state=0, prune=True, **more),
    "honest tree": lambda **more: UpliftTree(random_state=0, honest=True, **more),
    "forest": lambda **more: UpliftForest(8, random_state=0, oob=True, **more),
    "kl forest": lambda **more: UpliftForest(
        8, "kl", normalize=True, bootstrap=False, max_samples=0.6, random_state=0, **more
    ),
    "CTS": lambda **more: CTSForest(8, random_state=0, **more),
    "UCTS": lambda **more: UCTSForest(8, random_state=0, ci_group_size=2, **more),
}


@pytest.fixture(scope="module")
def experiment():
    """Numbers, missing numbers and a category; one arm; binary."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 3000
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "spend": rng.exponential(size=n),
            "city": rng.choice(["Ulm", "Rom", "Oslo", "Bern"], n),
        }
    )
    X.loc[rng.random(n) < 0.1, "spend"] = np.nan
    treatment = rng.choice(["control", "mail"], n)
    effect = np.where(X["city"].isin(["Ulm", "Oslo"]), 0.25, -0.15)
    y = (rng.random(n) < 0.4 + effect * (treatment == "mail")).astype(int)
    return X, y, treatment, effect


def importances_one_by_one(model):
    """Gains of the splits, each times its node's share of the tree's rows, mean over the trees."""
    total = np.zeros(model.n_features_in_)
    for number in range(model.nodes_.n_trees):
        tree = model.nodes_.tree(number)
        for node in np.flatnonzero(tree.feature >= 0):
            share = tree.weight[node].sum() / tree.weight[0].sum()
            total[tree.feature[node]] += share * max(tree.gain[node], 0.0) / model.nodes_.n_trees
    return total


@pytest.mark.parametrize("name", MODELS)
def test_finds_the_effect(experiment, name):
    X, y, treatment, effect = experiment
    model = MODELS[name]().fit(X, y, treatment)
    uplift = model.predict(X)
    assert uplift.shape == (3000,)
    assert np.corrcoef(uplift, effect)[0, 1] > 0.7
    response = model.predict_response(X)
    np.testing.assert_allclose(response[:, 1] - response[:, 0], uplift)
    assert ((response >= 0) & (response <= 1)).all()
    expected = np.where(response[:, 1] > response[:, 0], "mail", "control")
    np.testing.assert_array_equal(model.recommend(X), expected)
    importances = model.feature_importances_
    assert (importances >= 0).all()
    assert importances.argmax() == 2
    np.testing.assert_allclose(importances, importances_one_by_one(model), rtol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_threads_change_nothing(experiment, name):
    X, y, treatment, _ = experiment
    one, four = (MODELS[name](n_jobs=n_jobs).fit(X, y, treatment) for n_jobs in (None, 4))
    for column in Nodes.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(one.nodes_, column), getattr(four.nodes_, column))
    np.testing.assert_array_equal(one.predict(X), four.predict(X))
    if getattr(one, "oob", False):
        np.testing.assert_array_equal(one.oob_prediction_, four.oob_prediction_)


@pytest.mark.parametrize("name", MODELS)
def test_saved_and_loaded(experiment, name, tmp_path):
    X, y, treatment, _ = experiment
    model = MODELS[name]().fit(X, y, treatment)
    model.save(tmp_path / "model")
    loaded = upturn.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.recommend(X), model.recommend(X))
    assert loaded.export_json() == model.export_json()
    if name == "UCTS":
        np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))


def break_state(state, part, name, change):
    array = state[part][name].copy()
    state[part][name] = change(array)


BREAKS = {
    "a child before its parent": ("nodes", "left", lambda a: np.where(a > 0, 0, a).astype(a.dtype)),
    "a child out of the table": ("nodes", "left", lambda a: np.where(a > 0, 10**6, a).astype(a.dtype)),
    "a child past all numbers": ("nodes", "left", lambda a: np.where(a == a.max(), 2**31 - 1, a).astype(a.dtype)),
    "a child shared": ("nodes", "left", lambda a: np.where(a > 0, a.max(), a).astype(a.dtype)),
    "an unknown feature": ("nodes", "feature", lambda a: np.where(a >= 0, 99, a).astype(a.dtype)),
    "an unknown set": ("nodes", "category_set", lambda a: np.where(a >= 0, 999, a).astype(a.dtype)),
    "a value that is not finite": ("nodes", "value", lambda a: a * np.nan),
    "a column too short": ("nodes", "gain", lambda a: a[:-1]),
    "a column of another type": ("nodes", "cut", lambda a: a.astype(np.int64)),
    "trees that do not tile": ("nodes", "first", lambda a: a + 1),
    "a cut of 0 without missing": ("nodes", "cut", lambda a: a - a - 1),
    "edges out of order": ("bins", "edges", lambda a: a[:, ::-1]),
    "codes out of range": ("bins", "level_code", lambda a: a + 300),
    "levels out of range": ("bins", "level_range", lambda a: np.where(a >= 0, a + 50, a)),
    "edges of another shape": ("bins", "edges", lambda a: a[:, :7]),
}


@pytest.mark.parametrize("name", BREAKS)
def test_broken_state_is_refused(experiment, name):
    X, y, treatment, _ = experiment
    model = MODELS["forest"]().fit(X, y, treatment)
    state = model._get_state()
    break_state(state, *BREAKS[name])
    with pytest.raises(ValueError, match=r"node table|trees do not tile|bins"):
        model._set_state(state)


def test_weights_are_repeated_rows_and_zero_weights_absent_ones(experiment):
    X, y, treatment, _ = experiment
    X, y, treatment = X[:600], y[:600], treatment[:600]
    w = np.random.default_rng(1).integers(0, 3, 600)
    at = np.repeat(np.arange(600), w)
    tree = UpliftTree(random_state=0, min_samples_leaf=5, min_samples_arm=3, max_depth=4)
    weighted = tree.fit(X, y, treatment, sample_weight=w).predict(X)
    repeated = tree.fit(X.iloc[at], y[at], treatment[at]).predict(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-12)


def test_out_of_bag_predictions_leave_the_row_out():
    rng = np.random.default_rng(0)
    X, arm = rng.normal(size=(600, 3)), rng.integers(0, 3, 600)
    y = rng.normal(size=600)
    forest = UpliftForest(
        40, random_state=0, oob=True, max_samples=0.5, min_samples_leaf=1, min_samples_arm=1, min_samples_split=2
    )
    forest.fit(X, y, arm)
    assert forest.oob_response_.shape == (600, 3)
    assert forest.oob_prediction_.shape == (600, 2)
    assert np.isfinite(forest.oob_prediction_).all()
    own = np.abs(forest.predict_response(X)[np.arange(600), arm] - y)
    out = np.abs(forest.oob_response_[np.arange(600), arm] - y)
    assert own.mean() < 0.8 * out.mean()  # trees that saw the row follow its noise, the others do not
    assert abs(np.corrcoef(forest.oob_response_[np.arange(600), arm], y)[0, 1]) < 0.2
    with pytest.raises(ValueError, match="oob=True needs rows that a tree does not see"):
        UpliftForest(4, max_samples=1.0, oob=True).fit(X, y, arm)


def test_variance_of_a_forest():
    """Exact when groups tell everything; never negative; the truncated-normal mean where noise hides it."""
    between, total = np.array([4.0, 1.0, 0.0]), np.array([4.0, 3.0, 0.0])
    found = debiased_variance(between, total, 2, 50)
    spread = np.maximum(between, total - between) * np.sqrt(2 / 50)
    estimate = between - (total - between)
    for k in (0, 1):
        ratio = estimate[k] / spread[k]
        np.testing.assert_allclose(found[k], estimate[k] + spread[k] * norm.pdf(ratio) / norm.cdf(ratio))
    assert found[2] == 0.0
    assert (found >= 0).all()


def test_intervals_are_ordered_nested_and_centred(experiment):
    X, y, treatment, _ = experiment
    forest = UCTSForest(40, random_state=0, ci_group_size=2, min_samples_split=50).fit(X, y, treatment)
    low, high = forest.predict_interval(X)
    wider_low, wider_high = forest.predict_interval(X, interval=0.99)
    assert (wider_low < low).all()
    assert (high < wider_high).all()
    np.testing.assert_allclose((low + high) / 2, forest.predict(X), atol=1e-12)
    with pytest.raises(ValueError, match="fit with ci_group_size=2"):
        UCTSForest(4, random_state=0).fit(X, y, treatment).predict_interval(X)
    with pytest.raises(ValueError, match="interval=90: expected a confidence level between 0 and 1"):
        forest.predict_interval(X, interval=90)


def test_groups_share_their_half_sample():
    from upturn.trees._growth import Soil
    from upturn.trees._samples import Sampling, unseen

    X, arm = np.arange(400.0)[:, None], (np.arange(400) % 2).astype(np.uint8)
    bins = Bins.learn(X, [None])
    soil = Soil.prepare(bins, bins.encode(X), arm, 1, np.arange(400.0))
    seen = [~unseen(soil.roles(Sampling(group_size=2), np.uint64(0), tree)[0]) for tree in range(4)]
    assert seen[0].sum() == 200
    np.testing.assert_array_equal(seen[0], seen[1])
    np.testing.assert_array_equal(seen[2], seen[3])
    assert 0.3 < (seen[0] == seen[2]).mean() < 0.7


def test_export(experiment):
    X, y, treatment, _ = experiment
    tree = UpliftTree(max_depth=2, random_state=0).fit(X, y, treatment)
    exported = tree.export_json()
    assert json.loads(json.dumps(exported)) == exported
    root = exported["root"]
    assert exported["arms"] == ["control", "mail"]
    assert root["feature"] == "city"
    assert sorted(root["levels"]) in (["Oslo", "Ulm"], ["Bern", "Rom"])
    assert root["weight"] == [(treatment == "control").sum(), (treatment == "mail").sum()]
    np.testing.assert_allclose(root["response"], [y[treatment == "control"].mean(), y[treatment == "mail"].mean()])
    text = tree.export_text()
    assert text.startswith("effects and outcomes per 1,000 people\nall: effect")
    number = (y[treatment == "mail"].mean() - y[treatment == "control"].mean()) * 1000
    assert text.splitlines()[1].startswith(f"all: effect {number_text(number, '+')} [control: ")
    assert "city in {" in text
    assert text.count("\n") == len(tree.nodes_.feature)
    # every row satisfies the conditions on its way
    leaf = tree.apply(X)
    for row in range(0, 300, 7):
        node = root
        while "feature" in node:
            value = X.iloc[row][node["feature"]]
            if value != value:
                left = node["missing"] == "left"
            elif "levels" in node:
                left = value in node["levels"]
            else:
                left = node["threshold"] is not None and value <= node["threshold"]
            node = node["left" if left else "right"]
        assert node["node"] == leaf[row]
    with pytest.raises(ValueError, match="expected a number from 0 to 7"):
        MODELS["forest"]().fit(X, y, treatment).export_json(8)


def test_pruning_removes_what_does_not_help():
    rng = np.random.default_rng(0)
    X, treatment = rng.normal(size=(4000, 5)), rng.integers(0, 2, 4000)
    loose = {"max_depth": 7, "min_samples_split": 20, "min_samples_leaf": 10, "min_samples_arm": 5, "random_state": 0}
    y = (rng.random(4000) < 0.4 + 0.3 * treatment * np.sign(X[:, 0])).astype(float)
    full, pruned = UpliftTree(**loose).fit(X, y, treatment), UpliftTree(prune=True, **loose).fit(X, y, treatment)
    assert len(pruned.nodes_.feature) < 0.5 * len(full.nodes_.feature)
    assert pruned.nodes_.feature[0] == 0
    fresh = rng.normal(size=(20000, 5))
    truth = 0.3 * np.sign(fresh[:, 0])
    assert np.mean((pruned.predict(fresh) - truth) ** 2) < np.mean((full.predict(fresh) - truth) ** 2)


def test_missing_values_split_and_unseen_levels_follow_them():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 2000
    treatment = rng.integers(0, 2, n)
    missing = rng.random(n) < 0.4
    y = (rng.random(n) < 0.4 + 0.3 * treatment * np.where(missing, 1, -1)).astype(float)
    constant, varied = np.where(missing, np.nan, 1.0), np.where(missing, np.nan, rng.integers(0, 4, n))
    for numbers in (constant, varied):
        tree = UpliftTree(max_depth=1, random_state=0).fit(numbers[:, None], y, treatment)
        assert tree.export_json()["root"]["threshold"] is None
        assert tree.predict([[np.nan]])[0] > 0.2
        assert tree.predict([[1.0]])[0] < -0.2
    text = pd.DataFrame({"x": np.where(missing, None, rng.choice(["a", "b"], n))})
    tree = UpliftTree(max_depth=1, random_state=0).fit(text, y, treatment)
    with pytest.warns(UserWarning, match="not seen at fit"):
        unseen = tree.predict(pd.DataFrame({"x": ["new"]}))
    assert unseen[0] == tree.predict(pd.DataFrame({"x": [None]}))[0] > 0.2


def test_a_thousand_categories():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 20000
    level = np.minimum(rng.geometric(0.005, n), 1000)
    treatment = rng.integers(0, 2, n)
    y = (rng.random(n) < 0.4 + 0.3 * treatment * np.where(level % 2, 1, -1)).astype(float)
    X = pd.DataFrame({"code": [f"c{value:04d}" for value in level]})
    tree = UpliftTree(max_depth=3, random_state=0).fit(X, y, treatment)
    frequent = level <= 100
    right = np.sign(tree.predict(X)) == np.where(level % 2, 1, -1)
    assert right[frequent].mean() > 0.95
    assert tree.bins_.n_codes.tolist() == [256]
    assert tree.export_text().count("c0003") >= 1  # every level is in the text


@pytest.mark.filterwarnings(
    "ignore:.*a single leaf, so everybody is predicted the same", "ignore:.*arms differ in their"
)
@pytest.mark.parametrize("name", MODELS)
def test_odd_experiments(name):
    """Constant features, one value each, an arm that some leaf lacks, depth 0, two rows an arm: numbers, not NaN."""
    rng = np.random.default_rng(0)
    arm = np.r_[[0, 0, 1, 1, 2, 2], rng.integers(0, 3, 194)]
    y = rng.integers(0, 2, 200).astype(float)
    separated = np.c_[np.where(arm == 1, 1.0, 0.0) + rng.random(200) / 2, rng.random(200)]
    tables = [np.ones((200, 2)), np.full((200, 1), np.nan), separated, np.c_[np.arange(200.0)]]
    for X in tables:
        for depth in (0, None):
            model = MODELS[name](max_depth=depth)
            if name != "CTS" and name != "UCTS":
                model.set_params(min_samples_split=1, min_samples_leaf=1, min_samples_arm=0)
            else:
                model.set_params(min_samples_split=1)
            model.fit(X, y, arm)
            assert np.isfinite(model.predict(X)).all()
            assert np.isfinite(model.nodes_.value).all()
            if depth == 0 or (X.shape[1] == 1 and np.isnan(X).all()) or (X == 1).all():
                assert np.unique(model.predict(X), axis=0).shape[0] == 1
    few = np.arange(6.0)[:, None]
    assert np.isfinite(MODELS[name]().fit(few, [0, 1, 1, 0, 1, 0], [0, 0, 1, 1, 2, 2]).predict(few)).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"criterion": "gini"}, "criterion='gini': expected 'euclidean', 'kl', 'chi2' or 'cts'"),
        ({"max_depth": -1}, "max_depth=-1: expected a whole number of at least 0, or None"),
        ({"min_samples_leaf": "many"}, "min_samples_leaf='many': expected a number of at least 0"),
        ({"min_samples_arm": "cube"}, "min_samples_arm='cube': expected 'sqrt', or a number of at least 0"),
        ({"min_share": 0.5}, "min_share=0.5: expected a share of at least 0 and below 0.5"),
        ({"pi": 2}, "pi=2: expected a probability"),
        ({"rho": 1.0}, "rho=1.0: expected a share strictly between"),
        ({"max_bins": 256}, "max_bins=256: expected a whole number of at least 2 and at most 255"),
        ({"max_features": 0}, "max_features=0: expected None for all"),
        ({"n_estimators": 0}, "n_estimators=0: expected a whole number of at least 1"),
        ({"max_samples": 0.0}, "max_samples=0.0: expected a share above 0"),
        ({"n_estimators": 5, "ci_group_size": 2}, "n_estimators=5 is no multiple of ci_group_size=2"),
        ({"criterion": "kl"}, "criterion='kl' compares success rates, and y holds more than two values"),
    ],
)
def test_errors_say_what_to_do(parameters, message):
    X, arm = np.arange(30.0)[:, None], np.arange(30) % 2
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        UpliftForest(**parameters).fit(X, np.arange(30.0), arm)


def test_two_values_of_any_kind_are_a_binary_outcome():
    rng = np.random.default_rng(0)
    X, arm = rng.normal(size=(500, 2)), rng.integers(0, 2, 500)
    y = rng.integers(0, 2, 500)
    plain = UpliftForest(4, "kl", random_state=0).fit(X, y, arm).predict_response(X)
    scaled = UpliftForest(4, "kl", random_state=0).fit(X, 10.0 * y - 3.0, arm).predict_response(X)
    np.testing.assert_allclose(scaled, 10.0 * plain - 3.0)


def test_words_are_exact():
    rng = np.random.default_rng(0)
    y = rng.integers(-5, 6, 1000).astype(float)
    words, layout = encode_outcome(y, None)
    assert layout.n_words == 1
    assert (int(words.sum()) & ((1 << layout.shift) - 1)) + layout.origin * 1000 == y.sum()
    assert int(words.sum()) >> layout.shift == 1000
    for outcome, weight in ((rng.normal(size=1000) * 1e9, None), (y, rng.integers(1, 5, 1000).astype(float))):
        words, layout = encode_outcome(outcome, weight)
        assert layout.n_words == 2
        if weight is None:  # the outcome alone: every row has the same weight
            words = np.c_[np.full(1000, layout.weight_word), words].reshape(-1)
        else:
            assert layout.weight_word == 0
        w = np.ones(1000) if weight is None else weight
        pairs = words.reshape(-1, 2) * np.array([layout.weight_unit, layout.total_unit])
        np.testing.assert_array_equal(pairs[:, 0], w)
        np.testing.assert_allclose(pairs[:, 1], w * outcome, rtol=0, atol=2.0**-44 * np.abs(outcome).max())
        assert np.abs(words).reshape(-1, 2).sum(axis=0).max() < 2**57 * 1.01
    tiny = encode_outcome(np.array([1e-300, 2e-300]), np.array([1e-200, 1.0]))[1]
    assert np.isfinite(tiny.total_unit)
    assert tiny.total_unit > 0


def test_seeds_differ_and_repeat(experiment):
    X, y, treatment, _ = experiment
    first, again, other = (UpliftForest(5, random_state=seed).fit(X, y, treatment).predict(X) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_a_damaged_file_is_refused(experiment, tmp_path):
    X, y, treatment, _ = experiment
    model = UpliftTree(random_state=0).fit(X, y, treatment)
    model.nodes_.left[0] = 10**6
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="node table"):
        upturn.load(tmp_path / "model")


def test_words_of_a_tree_say_missing_only_where_something_was():
    rng = np.random.default_rng(0)
    X, t = rng.integers(0, 10, (4000, 2)).astype(float), rng.integers(0, 2, 4000)
    y = rng.random(4000) < 0.4 + 0.3 * t * np.where(X[:, 0] < 5, 1, -1)
    whole = UpliftTree(max_depth=1, random_state=0).fit(X, y, t)
    lines = whole.export_text(digits=2).splitlines()
    assert lines[2].startswith("|   x0 <= 4.5: ")
    assert lines[3].startswith("|   x0 > 4.5: ")
    assert not whole.export_json()["root"]["gaps"]
    holes = X.copy()
    holes[::7, 0] = np.nan
    text = UpliftTree(max_depth=1, random_state=0).fit(holes, y, t).export_text(digits=2)
    assert text.count("or missing") == 1
    pd = pytest.importorskip("pandas")
    levels = UpliftTree(max_depth=1, random_state=0).fit(
        pd.DataFrame({"c": np.where(X[:, 0] < 5, "low", "high")}), y, t
    )
    assert "c not in {" in levels.export_text()
