"""Data that are not randomised: overlap weights from known or estimated chances of the arms."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import upturn
from upturn.trees import CTSForest, UCTSForest, UpliftForest
from upturn.trees._overlap import in_look, look_at, overlap_weights

SCHEMA = SimpleNamespace(levels=(None,) * 20)  # columns of numbers


def confounded(n, seed, effect=1.0):
    """What drives the outcome also drives who is treated; the effect is the same for everybody."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    chance = 1 / (1 + np.exp(-1.2 * X[:, 0]))
    treatment = (rng.random(n) < chance).astype(int)
    y = 2.0 * X[:, 0] + X[:, 1] + effect * treatment + rng.normal(size=n)
    return np.column_stack([X, chance]), y, treatment


@pytest.mark.parametrize("n_arms", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_by_their_definition(n_arms, weighted):
    rng = np.random.default_rng(0)
    chances, arm = rng.dirichlet(np.full(n_arms + 1, 3.0), 60), rng.integers(0, n_arms + 1, 60).astype(np.uint8)
    given = rng.uniform(0.5, 2.0, 60) if weighted else None
    w = np.ones(60) if given is None else given
    found = overlap_weights(chances, arm, given)
    raw = [w[i] / (chances[i, arm[i]] * sum(1 / e for e in chances[i])) for i in range(60)]
    for a in range(n_arms + 1):
        mine = arm == a
        np.testing.assert_allclose(found[mine] / found[mine].sum(), np.array(raw)[mine] / np.array(raw)[mine].sum())
        np.testing.assert_allclose(found[mine].sum(), w[mine].sum())
    if n_arms == 1:  # 1 - e for the treated, e for control
        textbook = np.where(arm == 1, chances[:, 0], chances[:, 1]) * w
        for a in (0, 1):
            np.testing.assert_allclose(found[arm == a] / textbook[arm == a], (found / textbook)[arm == a][0])


def test_arms_stand_for_the_same_people():
    """Weighted by overlap, every arm has the same features: those of density h."""
    X, _, treatment = confounded(40_000, 1)
    e = X[:, 4]
    w = overlap_weights(np.column_stack([1 - e, e]), treatment.astype(np.uint8), None)
    means = [np.average(X[treatment == a, 0], weights=w[treatment == a]) for a in (0, 1)]
    assert abs(X[treatment == 1, 0].mean() - X[treatment == 0, 0].mean()) > 0.8
    assert abs(means[1] - means[0]) < 0.03


def test_the_shares_as_known_chances_change_nothing():
    X, y, treatment = confounded(300, 2)
    one = UpliftForest(4, center=False, random_state=0, propensity="shares").fit(X, y, treatment)
    two = UpliftForest(4, center=False, random_state=0, propensity=float(treatment.mean())).fit(X, y, treatment)
    np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=1e-6, atol=1e-9)
    assert (one.propensity_kind_, two.propensity_kind_) == ("shares", "known")


def test_confounding_is_taken_off():
    """With centring, effects of confounded data are those of the truth, with known and with estimated chances."""
    found = {}
    for seed in range(2):
        X, y, treatment = confounded(1500, seed)
        names = ["a", "b", "c", "d", "chance"]
        table = pd.DataFrame(X, columns=names)
        for what in ("trees", "chance"):
            forest = UpliftForest(60, center=True, propensity=what, random_state=seed).fit(table, y, treatment)
            found.setdefault(what, []).append(np.mean(forest.predict(table)))
            assert forest.propensity_kind_ == {"chance": "columns"}.get(what, what)
    error = {what: abs(np.mean(means) - 1.0) for what, means in found.items()}
    plain = UpliftForest(60, center=False, propensity="shares", random_state=0).fit(X, y, treatment)
    assert np.mean(plain.predict(X)) > 1.4
    assert error["trees"] < 0.2
    assert error["chance"] < 0.2


def test_inference_looks_at_the_balance(tmp_path):
    X, y, treatment = confounded(400, 3)
    forest = UpliftForest(inference=True, random_state=0).fit(X[:, :4], y, treatment)
    assert forest.propensity_kind_ == "trees"
    forest.save(tmp_path / "forest.upturn")
    back = upturn.load(tmp_path / "forest.upturn")
    assert back.propensity_kind_ == "trees"
    np.testing.assert_array_equal(back.predict(X[:, :4]), forest.predict(X[:, :4]))
    random = np.random.default_rng(0).integers(0, 2, 400)
    assert UpliftForest(inference=True, random_state=0).fit(X[:, :4], y, random).propensity_kind_ == "shares"


@pytest.mark.parametrize(
    ("propensity", "message"),
    [
        ("logistic", "expected 'auto', 'shares', 'trees'"),
        (["x0", "x1"], "expected 'auto', 'shares', 'trees'"),
        (np.full(200, 0.5), "make it a column of X"),
        (1.5, "above 0 and below 1|not probabilities"),
    ],
)
def test_what_is_no_propensity_is_refused(propensity, message):
    X, y, treatment = confounded(200, 4)
    with pytest.raises(ValueError, match=message):
        UpliftForest(2, propensity=propensity, random_state=0).fit(X, y, treatment)


def test_arms_that_differ_by_more_than_chance_are_weighed():
    """At the defaults effects of confounded data are near the truth, and it is said what was done."""
    X, y, treatment = confounded(3000, 0)
    said = r"differ in their features by more than chance .* estimated by trees.* and outcomes centred.*; upturn.check shows"
    with pytest.warns(UserWarning, match=said):
        forest = UpliftForest(60, random_state=0).fit(X[:, :4], y, treatment)
    assert (forest.propensity_kind_, forest.centered_) == ("trees", True)
    assert abs(forest.predict(X[:, :4]).mean() - 1.0) < 0.2
    same = UpliftForest(60, propensity="trees", center=True, random_state=0).fit(X[:, :4], y, treatment)
    np.testing.assert_array_equal(forest.predict(X[:, :4]), same.predict(X[:, :4]))
    assert forest.get_params()["propensity"] == "auto"
    with pytest.warns(UserWarning, match="rows weighted by them, which takes longer"):
        kept = UpliftForest(2, center=False, random_state=0).fit(X[:, :4], y, treatment)
    assert not kept.centered_
    with pytest.warns(UserWarning, match="rows weighted by them, which takes longer"):  # which is no criterion on means
        assert not UpliftForest(2, "kl", random_state=0).fit(X[:, :4], y > 0, treatment).centered_


@pytest.mark.parametrize("kind", [CTSForest, UCTSForest])
def test_forests_without_propensities_tell_arms_that_differ(kind):
    X, y, treatment = confounded(5000, 0)
    said = "the arms differ in their features by more than chance .* rows: .* may be differences between people"
    with pytest.warns(UserWarning, match=said):
        kind(2, random_state=0).fit(X[:, :4], y, treatment)


def test_whoever_says_what_the_arms_are_is_not_told():
    X, y, treatment = confounded(5000, 0)
    for said in ("shares", "trees", 0.5):
        assert UpliftForest(2, propensity=said, random_state=0).fit(X[:, :4], y, treatment)._look is None
    three = treatment * (1 + (X[:, 1] > 0))
    UpliftForest(2, propensity=np.array([0.2, 0.3]), random_state=0).fit(X[:, :4], y, three)


@pytest.mark.parametrize("kind", [UpliftForest, CTSForest, UCTSForest])
def test_arms_given_at_random_are_not_told(kind):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y, treatment = rng.normal(size=(300, 4)), rng.normal(size=300), rng.integers(0, 3, 300)
        forest = kind(2, random_state=0).fit(X, y, treatment)
        assert forest.propensity_kind_ == "shares"


def test_the_look_is_at_the_same_rows_wherever_they_lie():
    X, y, treatment = confounded(9000, 1)
    weight = np.where(np.arange(9000) % 7 == 0, 0.0, 1.0)
    with pytest.warns(UserWarning, match="by more than chance"):
        look = UpliftForest(2, center=False, random_state=0).fit(X[:, :4], y, treatment, weight)._look
    used = np.flatnonzero(weight)
    ids = np.arange(len(used), dtype=np.uint64)
    seen = in_look(ids, len(used))
    assert look.rows == seen.sum() == in_look(ids[3000:], len(used)).sum() + in_look(ids[:3000], len(used)).sum()
    assert 1800 < look.rows < 2200
    with pytest.warns(UserWarning, match="by more than chance"):
        alone = UpliftForest(2, center=False, random_state=0).fit(X[used, :4], y[used], treatment[used])._look
    assert alone == look


def test_small_arms_with_columns_that_are_mostly_0_are_not_told():
    """Spend of a hold-out of 1%: ranks of such a column are far from normal."""
    low = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        X = np.where(rng.random((2500, 20)) < 0.97, 0.0, rng.lognormal(size=(2500, 20)))
        low.append(look_at(X, SCHEMA, (rng.random(2500) < 0.01).astype(np.uint8), 1).pvalue)
    assert min(low) > 1e-4
    assert np.mean(np.array(low) < 0.05) < 0.1


def test_an_arm_that_the_look_does_not_see_hides_no_other():
    X, _, treatment = confounded(1500, 0)
    arm = treatment.astype(np.uint8)
    few = SimpleNamespace(levels=(None,) * 4)
    assert look_at(X[:, :4], few, arm, 2).unlike
    assert look_at(X[:, :4], few, np.zeros(1500, np.uint8), 2).pvalue == 1.0
