"""Centring: outcomes predicted out of bag by the engine's own trees are taken off before effects are looked for."""

import numpy as np
import pytest

import upturn
from upturn.kernels.criteria import ANY_WEIGHT, OF_OUTCOMES, Rules
from upturn.kernels.sampling import ESTIMATE, GROW
from upturn.trees import UpliftForest
from upturn.trees._bins import Bins
from upturn.trees._center import outcome_out_of_bag
from upturn.trees._growth import Soil
from upturn.trees._samples import Sampling


def experiment(n=1500, seed=0, binary=False, n_arms=1):
    """A strong main effect of two features, a weaker effect of the treatment by a third."""
    rng = np.random.default_rng(seed)
    X, arm = rng.normal(size=(n, 6)), rng.integers(0, n_arms + 1, n)
    effect = 0.6 * X[:, 2]
    lean = 2.0 * X[:, 0] + 1.5 * np.sin(2 * X[:, 1]) + effect * (arm == 1) - effect * (arm == 2)
    y = (rng.random(n) < 1 / (1 + np.exp(-lean))).astype(float) if binary else lean + 0.5 * rng.normal(size=n)
    return X, y, arm, effect


def soil_of(X, y, arm, weight=None):
    bins = Bins.learn(X, [None] * X.shape[1], weight)
    return Soil.prepare(bins, bins.encode(X), arm.astype(np.uint8), int(arm.max()), y, weight)


@pytest.mark.parametrize("kind", ["binary", "real", "weighted"])
def test_outcome_trees_split_where_the_variance_falls_most(kind):
    """The naive twin: at the root, every cut of every feature by its definition."""
    rng = np.random.default_rng(1)
    X, arm = rng.integers(0, 6, (80, 3)).astype(float), np.zeros(80, int)
    y = X[:, 1] + rng.normal(size=80) if kind != "binary" else (rng.random(80) < 0.1 + 0.15 * X[:, 1]).astype(float)
    w = rng.uniform(0.5, 2.0, 80) if kind == "weighted" else np.ones(80)
    soil = soil_of(X, y, arm, w if kind == "weighted" else None)
    rules = Rules(
        criterion=OF_OUTCOMES.code, binary=False, normalize=False, laplace=0.0, min_split=2.0, n_reg=0.0, inherit_below=ANY_WEIGHT,
        min_share=0.0, min_leaf=5.0, min_arm=0.0, min_gain=0.0, max_depth=1, max_features=3, random_share=0.0, honest=False,
        plain_leaves=False, subtraction=False,
    )  # fmt: skip
    nodes = soil.grow(rules, Sampling(), np.uint64(0), 0)

    def variance(mask):
        mean = np.average(y[mask], weights=w[mask])
        return (w[mask] * (y[mask] - mean) ** 2).sum()

    everyone = np.ones(80, bool)
    gains = {}
    for f in range(3):
        for cut in range(5):
            left = X[:, f] <= cut
            if min(w[left].sum(), w[~left].sum()) >= 5:
                gains[f, cut] = (variance(everyone) - variance(left) - variance(~left)) / w.sum()
    best = max(gains, key=gains.get)
    assert nodes.feature[0] == best[0]
    np.testing.assert_allclose(nodes.gain[0], gains[best], rtol=1e-6)
    left = X[:, best[0]] <= best[1]
    np.testing.assert_allclose(
        nodes.value[1:, 0], [np.average(y[side], weights=w[side]) for side in (left, ~left)], rtol=1e-6
    )


@pytest.mark.parametrize("binary", [False, True])
def test_outcomes_are_predicted_by_trees_that_did_not_see_them(binary):
    X, y, arm, _ = experiment(binary=binary)
    level = outcome_out_of_bag(soil_of(X, y, arm), np.uint64(3), 1)
    residual = y - level
    assert np.var(residual) < (0.45 if not binary else 0.8) * np.var(y)
    assert abs(np.corrcoef(residual, level)[0, 1]) < 0.3
    # One row's outcome does not move its own prediction.
    changed = y.copy()
    changed[7] = 1 - y[7] if binary else y[7] + 3.0
    again = outcome_out_of_bag(soil_of(X, changed, arm), np.uint64(3), 2)
    assert again[7] == pytest.approx(level[7], abs=1e-9)
    assert (again != level).any()


@pytest.mark.parametrize("n_arms", [1, 2])
@pytest.mark.parametrize("options", [{}, {"honest": True}, {"bootstrap": True, "criterion": "cts"}])
@pytest.mark.parametrize("weighted", [False, True])
def test_responses_differ_by_the_effect_and_average_to_the_outcome(n_arms, options, weighted):
    X, y, arm, _ = experiment(600, n_arms=n_arms)
    w = np.random.default_rng(5).uniform(0.5, 2.0, 600) if weighted else None
    forest = UpliftForest(4, center=True, random_state=2, **options).fit(X, y, arm, sample_weight=w)
    assert forest.centered_
    response = forest.predict_response(X)
    effect = np.asarray(forest.predict(X)).reshape(600, -1)
    np.testing.assert_array_equal(effect, response[:, 1:] - response[:, :1])
    np.testing.assert_array_equal(forest.recommend(X), response.argmax(axis=1))
    # In every leaf, the responses weighted by the arms' rows are the mean outcome of those rows.
    soil = soil_of(X, y, arm, w)
    leaf, nodes = forest.apply(X), forest.nodes_
    checked = 0
    for tree in range(4):
        role, copies = soil.roles(forest._sampling(), np.uint64(2), tree)
        heavy = (np.ones(600) if w is None else w) * (copies if len(copies) else 1)
        for node in np.unique(leaf[:, tree]):
            rows = (leaf[:, tree] == node) & (role == (ESTIMATE if forest.honest else GROW))
            if all((rows & (arm == a)).any() for a in range(n_arms + 1)):
                one = nodes.first[tree] + node
                mean = nodes.value[one] @ nodes.weight[one] / nodes.weight[one].sum()
                np.testing.assert_allclose(mean, np.average(y[rows], weights=heavy[rows]), rtol=1e-6, atol=1e-6)
                checked += 1
    assert checked > 5


def test_strong_prognostic_features_no_longer_hide_the_effect():
    gained = []
    for seed in range(3):
        X, y, arm, _ = experiment(seed=seed)
        new_X, *_, effect = experiment(seed=seed + 50)
        score = [UpliftForest(60, center=c, random_state=0).fit(X, y, arm).predict(new_X) for c in (False, True)]
        gained.append([np.corrcoef(one, effect)[0, 1] for one in score])
    plain, centred = np.mean(gained, axis=0)
    assert centred > plain + 0.05


def test_threads_and_files_change_nothing(tmp_path):
    X, y, arm, _ = experiment(500)
    one, two = (UpliftForest(6, center=True, random_state=1, n_jobs=n).fit(X, y, arm) for n in (1, 2))
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    one.save(tmp_path / "forest.upturn")
    back = upturn.load(tmp_path / "forest.upturn")
    assert back.centered_ is True
    np.testing.assert_array_equal(back.predict(X), one.predict(X))


@pytest.mark.parametrize(
    ("binary", "options", "centred"), [(False, {}, True), (True, {}, False), (False, {"criterion": "cts"}, False)]
)
def test_auto_centres_outcomes_of_more_than_two_values(binary, options, centred):
    X, y, arm, _ = experiment(200, binary=binary)
    forest = UpliftForest(2, random_state=0, **options).fit(X, y, arm)
    assert forest.centered_ is centred
    given = UpliftForest(2, center=centred, random_state=0, **options).fit(X, y, arm)
    np.testing.assert_array_equal(forest.predict(X), given.predict(X))


@pytest.mark.parametrize("options", [{"criterion": "kl"}, {"criterion": "chi2"}, {"normalize": True}])
def test_criteria_of_rates_refuse_centring(options):
    X, y, arm, _ = experiment(200, binary=True)
    with pytest.raises(ValueError, match="center=True takes predicted outcomes off y, and"):
        UpliftForest(2, center=True, **options).fit(X, y, arm)
    assert UpliftForest(2, center="auto", **options).fit(X, y, arm).centered_ is False
