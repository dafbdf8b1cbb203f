"""Trees under outcomes and weights of any size, and what they refuse."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import upturn
from upturn.trees import CTSForest, UCTSForest, UpliftForest, UpliftTree
from upturn.trees._base import scale_of
from upturn.trees._bins import Bins, _sample_rows

TREES = {
    "euclidean": lambda **more: UpliftTree(max_depth=3, min_samples_arm=10, random_state=0, **more),
    "cts": lambda **more: UpliftTree("cts", max_depth=3, min_samples_arm=10, random_state=0, **more),
    "UCTS": lambda **more: UCTSForest(4, min_samples_split=30, random_state=0, **more),
}


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture(scope="module")
def experiment():
    rng = np.random.default_rng(0)
    X, arm = rng.uniform(size=(400, 3)), rng.integers(0, 2, 400)
    return X, 0.3 * rng.normal(size=400) + arm * np.where(X[:, 0] > 0.5, 1.0, -1.0), arm


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("unit", [1e-305, 1e-200, 1e-90, 1e90, 1e200, 1e300, 4e307])
def test_an_outcome_of_any_size(experiment, name, unit, tmp_path):
    X, y, arm = experiment
    plain, scaled = TREES[name]().fit(X, y, arm), TREES[name]().fit(X, unit * y, arm)
    assert len(plain.nodes_.feature) > 5
    np.testing.assert_array_equal(scaled.nodes_.feature, plain.nodes_.feature)
    np.testing.assert_allclose(scaled.predict_response(X) / unit, plain.predict_response(X), rtol=1e-12, atol=1e-12)
    shares = [model.feature_importances_ / model.feature_importances_.sum() for model in (scaled, plain)]
    np.testing.assert_allclose(*shares, rtol=1e-9)
    scaled.save(tmp_path / "model")
    np.testing.assert_array_equal(upturn.load(tmp_path / "model").predict(X), scaled.predict(X))


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("far", [1e9, -1e12, 1e15])
def test_an_outcome_far_from_zero(experiment, name, far):
    """What is lost is what a float so large cannot hold, not what a sum of them cannot."""
    X, y, arm = experiment
    y = (y + far) - far  # now adding is exact
    plain, moved = TREES[name]().fit(X, y, arm), TREES[name]().fit(X, y + far, arm)
    np.testing.assert_array_equal(moved.nodes_.feature, plain.nodes_.feature)
    np.testing.assert_allclose(moved.nodes_.gain, plain.nodes_.gain, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(moved.nodes_.value - far, plain.nodes_.value, atol=np.spacing(abs(far)))


@pytest.mark.parametrize("weight", [1e-300, 1e-20, 1e-8, 3e6, 1e12, 1e15, 1e20, 1e300])
@pytest.mark.parametrize("name", ["euclidean", "cts"])
def test_a_common_weight_of_any_size_changes_nothing(experiment, name, weight):
    X, y, arm = experiment
    free = {"min_samples_arm": 0, "min_samples_leaf": 0, "min_samples_split": 0, "min_share": 0.2}
    plain = TREES[name]().set_params(**free).fit(X, y, arm)
    weighted = TREES[name]().set_params(**free).fit(X, y, arm, sample_weight=np.full(400, weight))
    assert len(plain.nodes_.feature) > 5
    # integer weights count as repeated rows, and so many of those leave 2^-26 to an outcome
    np.testing.assert_allclose(weighted.predict_response(X), plain.predict_response(X), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(weighted.nodes_.weight / weight, plain.nodes_.weight)


def test_a_row_far_heavier_than_the_others(experiment):
    X, y, arm = experiment
    weight = np.ones(400)
    weight[[3, np.flatnonzero(arm != arm[3])[0]]] = 1e20
    response = UpliftTree(max_depth=0).fit(X, y, arm, sample_weight=weight).predict_response(X[:1])
    assert response[0, arm[3]] == pytest.approx(y[3], rel=1e-9)


@pytest.mark.parametrize("criterion", ["euclidean", "kl", "chi2", "cts"])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 5.0, -3e15])
def test_one_outcome_only(experiment, criterion, value):
    X, _, arm = experiment
    warnings.filterwarnings("ignore", ".*a single leaf.*the outcome is the same in all rows")
    forest = UpliftForest(3, criterion, random_state=0).fit(X, np.full(400, value), arm)
    assert (forest.predict(X) == 0).all()
    np.testing.assert_allclose(forest.predict_response(X), value)
    assert (forest.recommend(X) == 0).all()


def test_the_scale_of_an_outcome():
    assert scale_of(np.array([0.0, 1.0])) == (0, 1, True)
    assert scale_of(np.array([3.0, 7.0])) == (3, 4, True)
    assert scale_of(np.array([3.0, 7.0, 4.0])) == (0, 1, False)
    assert scale_of(np.array([1e6, 1e6 + 1, 1e6 + 2])) == (1e6 + 1, 1, False)
    assert scale_of(np.array([2.0**400, 0.0, -(2.0**399)])) == (0, 2.0**400, False)
    with pytest.raises(ValueError, match=r"y runs from -1e\+308 to 1e\+308, and the difference is too large"):
        scale_of(np.array([-1e308, 0.0, 1e308]))


def test_cts_gains_are_in_units_of_the_outcome(experiment):
    """Equation (5) is a difference of expected responses, whatever the two values of the outcome are."""
    X, y, arm = experiment
    success = (y > 0).astype(float)
    plain, scaled = (TREES["cts"]().fit(X, low, arm).nodes_ for low in (success, 100.0 * success - 7.0))
    np.testing.assert_allclose(scaled.gain, 100.0 * plain.gain, rtol=1e-12)
    with pytest.warns(UserWarning, match="no admissible split gains more than min_gain"):
        asked = TREES["cts"](min_gain=100.0 * plain.gain[0] * 1.001).fit(X, 100.0 * success, arm)
    assert len(asked.nodes_.feature) == 1


@pytest.mark.parametrize("model", [UpliftTree(), UpliftForest(2), CTSForest(2), UCTSForest(2)])
def test_an_unfitted_model_says_so(model):
    for use in (lambda: model.apply([[1.0]]), lambda: model.feature_importances_, lambda: model.export_text()):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            use()


@pytest.mark.parametrize("name", ["normalize", "laplace", "honest", "bootstrap", "oob"])
def test_flags_are_true_or_false(experiment, name):
    with pytest.raises(ValueError, match=f"{name}='no': expected True or False"):
        UpliftForest(2, **{name: "no"}).fit(*experiment)


def test_more_that_is_refused(experiment):
    X, y, arm = experiment
    with pytest.raises(ValueError, match="expected 'euclidean', 'kl'"):
        UpliftTree(["kl"]).fit(X, y, arm)
    with pytest.raises(ValueError, match="prune='no': expected True or False"):
        UpliftTree(prune="no").fit(X, y, arm)
    forest = UpliftForest(4, ci_group_size=4, random_state=0).fit(X, y, arm)
    for tree in (1.5, "first", True):
        with pytest.raises(ValueError, match="expected a number from 0 to 3"):
            forest.export_text(tree)
    with pytest.raises(ValueError, match="all 4 trees are one group"):
        forest.predict_interval(X)


def test_a_saved_node_has_one_parent(experiment):
    """Children that overlap would make a small file a tree of exponential size."""
    tree = UpliftTree(max_depth=2, min_samples_arm=5, random_state=0).fit(*experiment)
    state = tree._get_state()
    left = state["nodes"]["left"].copy()
    assert len(left) == 7
    state["nodes"]["left"] = np.array([1, 2, 3, -1, -1, -1, -1], np.int32)
    state["nodes"]["feature"] = np.where(state["nodes"]["left"] < 0, -1, 0).astype(np.int32)
    with pytest.raises(ValueError, match="link or a number out of range"):
        tree._set_state(state)


@pytest.mark.parametrize("seed", range(6))
def test_an_arm_of_two_rows_does_not_undo_honest_pruning(seed):
    rng = np.random.default_rng(0)
    X, arm = rng.uniform(size=(2000, 2)), np.r_[2, 2, rng.integers(0, 2, 1998)]
    y = 0.3 * rng.normal(size=2000) + (arm == 1) * np.where(X[:, 0] > 0.5, 1.0, -1.0)
    free = {"min_samples_arm": 0, "min_samples_leaf": 50}
    tree = UpliftTree(prune=True, honest=True, random_state=seed, **free).fit(X, y, arm)
    assert np.corrcoef(tree.predict(X)[:, 0], X[:, 0] > 0.5)[0, 1] > 0.9
    assert (tree.nodes_.weight[0, :2] > 300).all()


@pytest.mark.parametrize("weight", [None, np.full(60_000, 1.5)])
@pytest.mark.parametrize("sampled", [0, 1])
def test_a_feature_that_is_missing_in_nearly_all_rows(weight, sampled):
    """Its few hundred values may all lie outside the sample that decides the edges of the others."""
    n = 60_000
    sample = _sample_rows(n)
    outside = np.setdiff1d(np.arange(n), sample)[:400]
    X = np.full((n, 1), np.nan)
    X[outside, 0] = np.random.default_rng(0).normal(size=400)
    X[sample[:sampled], 0] = 0.0
    bins = Bins.learn(X, [None], weight)
    assert bins.n_codes[0] == 256
    per_bin = np.bincount(bins.encode(X)[0])[1:]
    assert per_bin.max() <= 3
    assert per_bin.sum() == 400 + sampled


def test_minima_of_an_arm_forgive_the_rounding_of_weights():
    X, treatment, y = np.array([[0.0], [0.0], [1.0], [1.0]]), [0, 1, 0, 1], [0.0, 1.0, 2.0, 0.0]
    rng = np.random.default_rng(0)
    for heavy in rng.uniform(1.0, 2.0, 200):  # (heavy + 1) - heavy may be less than 1
        tree = UpliftTree(min_samples_split=0, min_samples_leaf=0, min_samples_arm=1)
        tree.fit(X, y, treatment, sample_weight=[heavy, heavy, 1.0, 1.0])
        assert tree.nodes_.is_leaf.sum() == 2


def test_rows_of_weight_zero_are_out_of_every_bag():
    rng = np.random.default_rng(0)
    X, treatment, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300), rng.normal(size=300)
    weight = rng.integers(0, 3, 300).astype(float)
    forest = UpliftForest(20, oob=True, random_state=0).fit(X, y, treatment, sample_weight=weight)
    nothing = weight == 0.0
    np.testing.assert_array_equal(forest.oob_prediction_[nothing], forest.predict(X[nothing]))
    kept = UpliftForest(20, oob=True, random_state=0)
    kept.fit(X[~nothing], y[~nothing], treatment[~nothing], sample_weight=weight[~nothing])
    np.testing.assert_array_equal(forest.oob_prediction_[~nothing], kept.oob_prediction_)


@pytest.mark.parametrize("heavy", [1e12, 1e30])
def test_heavy_weights_leave_no_arm_empty(experiment, heavy):
    X, y, arm = experiment
    tree = UpliftTree(min_samples_arm=1, random_state=0).fit(X, y, arm, sample_weight=np.full(400, heavy))
    assert (tree.nodes_.weight[tree.nodes_.is_leaf] > 0.99 * heavy).all()
    weight = np.ones(400)
    weight[:5] = 1e13  # a few heavy rows do not excuse the light ones
    tree = UpliftTree(min_samples_arm=5, random_state=0).fit(X, y, arm, sample_weight=weight)
    assert (tree.nodes_.weight[tree.nodes_.is_leaf] >= 4.9).all()


@pytest.mark.parametrize(
    ("size", "unit", "found"), [(1e-305, 1.0, "small"), (1e300, 1e8, "large"), (1e230, 1e80, "large")]
)
def test_weights_of_an_extreme_size_are_refused(experiment, size, unit, found):
    X, y, arm = experiment
    with pytest.raises(ValueError, match=f"too {found} to be added up: multiply all weights by one number"):
        UpliftTree().fit(X, unit * y, arm, sample_weight=np.full(400, size))


@pytest.mark.parametrize("unit", [1e-290, 1e306])
def test_pruning_sees_the_scaled_outcome(experiment, unit):
    X, y, arm = experiment
    plain = UpliftTree(prune=True, min_samples_arm=10, random_state=0).fit(X, y, arm)
    scaled = UpliftTree(prune=True, min_samples_arm=10, random_state=0).fit(X, unit * y, arm)
    assert len(plain.nodes_.feature) > 1
    np.testing.assert_array_equal(plain.nodes_.feature, scaled.nodes_.feature)
