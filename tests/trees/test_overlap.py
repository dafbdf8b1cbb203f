"""Data that are not randomised: overlap weights from known or estimated chances of the arms."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu, norm, rankdata
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

import upturn
from upturn._balance import weighted_pvalues
from upturn.boosting import UpliftBagging
from upturn.policy import UpliftCalibrator
from upturn.trees import CTSForest, UCTSForest, UpliftForest
from upturn.trees._look import Seen, _sees, _told_of, in_look, look_at
from upturn.trees._overlap import LEAST_LEFT, overlap_left, overlap_sums, overlap_weights


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
    said = "the arms differ in their features by more than chance .*, so what it predicts may be differences between people"
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


def look(X, arm, n_arms=1, weight=None, levels=None):
    rows = Seen(np.arange(len(X), dtype=np.uint64), X, np.asarray(arm, np.uint8), weight)
    named = [None if n is None else [str(k) for k in range(n)] for n in levels or (None,) * X.shape[1]]
    return look_at(rows, SimpleNamespace(levels=named), n_arms)


def test_the_look_is_at_the_same_rows_wherever_they_lie():
    X, y, treatment = confounded(60_000, 1)
    weight = np.where(np.arange(60_000) % 7 == 0, 0.0, 1.0)
    with pytest.warns(UserWarning, match="by more than chance"):
        found = CTSForest(1, max_depth=1, random_state=0).fit(X[:, :4], y, treatment, weight)._look
    used = np.flatnonzero(weight)
    ids, arm = np.arange(len(used), dtype=np.uint64), treatment[used].astype(np.uint8)
    rows = np.bincount(arm)
    seen = in_look(ids, arm, rows, 4)
    parts = [in_look(ids[one], arm[one], rows, 4).sum() for one in (slice(0, 3000), slice(3000, None))]
    assert found.rows == seen.sum() == sum(parts)
    assert abs(np.bincount(arm[seen]) - 20_000).max() < 500
    assert in_look(ids, arm, rows, 5000).sum() < 2500  # rows of very wide tables are fewer
    with pytest.warns(UserWarning, match="by more than chance"):
        alone = CTSForest(1, max_depth=1, random_state=0).fit(X[used, :4], y[used], treatment[used])._look
    assert alone == found


def product(n, share, seed, columns=6):
    """Arms that follow the sign of a product, which no column shows alone."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    sign = np.sign(X[:, 0] * X[:, 1])
    treatment = (rng.random(n) < 0.5 + (share - 0.5) * sign).astype(int)
    return X, sign + treatment + rng.normal(size=n), treatment


def test_columns_that_drive_the_arms_together_are_seen():
    X, y, treatment = product(4000, 0.8, 0)
    found = look(X, treatment)
    assert found.unlike
    assert found.pvalue > 0.01
    assert found.told.auc > 0.6
    assert look(X, 2 * treatment, n_arms=2).told.auc == found.told.auc  # an arm without rows says nothing
    three = np.where(np.random.default_rng(1).random(4000) < 0.3, 2, treatment)
    assert look(X, three, n_arms=2).unlike
    with pytest.warns(UserWarning, match="chances of the arms were estimated by trees"):
        forest = UpliftForest(20, random_state=0).fit(X, y, treatment)
    assert (forest.propensity_kind_, forest.propensity_auc_) == ("trees", found.told.auc)
    plain = UpliftForest(20, propensity="shares", random_state=0).fit(X, y, treatment)
    assert plain.propensity_auc_ is None
    assert abs(np.mean(forest.predict(X)) - 1) < 0.6 * abs(np.mean(plain.predict(X)) - 1)
    sure = UpliftForest(inference=True, random_state=0).fit(X[:1000], y[:1000], product(1000, 0.95, 0)[2])
    assert sure.propensity_kind_ == "trees"


@pytest.mark.parametrize("weighted", [False, True])
def test_trees_tell_no_more_of_random_arms_than_chance_does(weighted):
    low, rng = [], np.random.default_rng(0)
    for _ in range(150):
        X = np.round(rng.normal(size=(300, 3)), 1)
        weight = rng.exponential(size=300) if weighted else None
        low.append(look(X, rng.random(300) < 0.3, weight=weight).told.pvalue)
    assert np.mean(np.array(low) < 0.2) < 0.2  # two-sided, and only where trees are right


def test_the_area_of_what_trees_tell():
    rng = np.random.default_rng(0)
    chance, treated = np.round(rng.random(500), 2), rng.random(500) < 0.4
    chance += 0.2 * treated
    found = _told_of(chance, treated, None)
    assert found.auc == pytest.approx(roc_auc_score(treated, chance))
    assert found.pvalue == pytest.approx(mannwhitneyu(chance[treated], chance[~treated], use_continuity=False).pvalue)
    assert _told_of(-chance, treated, None).pvalue == 1.0
    assert _told_of(chance, treated, np.full(500, 3.0)).auc == pytest.approx(found.auc)
    weight = rng.exponential(size=500)
    assert _told_of(chance, treated, weight).auc == pytest.approx(roc_auc_score(treated, chance, sample_weight=weight))
    weight[[chance[treated].argmax(), 1]] = 1e9  # one row that says nearly all is still an area
    assert 0.0 <= _told_of(chance, treated, weight).auc <= 1.0
    assert _told_of(chance, treated, np.where(treated, 1.0, 0.0)).auc is None


def test_too_few_rows_for_trees_are_not_told():
    X, _, treatment = product(150, 0.95, 0)
    assert look(X, treatment).told == (None, 1.0, False)


def households(n, size, seed, columns=3):
    """Arms given to households, with columns of the household beside those of its people."""
    rng = np.random.default_rng(seed)
    own = np.repeat(np.arange(n // size), size)
    X = np.column_stack([rng.normal(size=(n // size, columns))[own], rng.normal(size=(n, columns))])
    return X, rng.integers(0, 2, n // size)[own], own


def test_arms_given_to_households_are_given_at_random():
    """Trees know the others of a house: houses count once, and are told if they were not drawn."""
    for seed in range(10):
        X, treatment, own = households(4000, 4, seed)
        found = look(X, treatment)
        assert not found.unlike
    assert not look(X, treatment, weight=np.random.default_rng(0).uniform(1, 2, 4000)).unlike
    some = X.copy()
    some[::3, 0] = np.nan  # a column that does not know all houses
    assert look(some, treatment).rows == 1000
    chosen = X[:, 0] * X[:, 1] > 0
    assert look(X, chosen).unlike
    assert look(X, chosen).rows == 1000
    assert look(X, X[:, 0] > 0.3).unlike
    with_names = np.column_stack([own, X[:, 3:]])
    assert not look(with_names, treatment, levels=(1000, None, None, None)).unlike


@pytest.mark.parametrize("case", ["levels", "ties", "few treated", "few control", "missing", "weights"])
def test_no_table_makes_random_arms_unlike(case):
    """P-values below .02 happen as often as chance has them, or less."""
    low = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n = 6000 if case.startswith("few") else 800
        X, levels = rng.normal(size=(n, 3)), (None, None, None)
        arm = rng.random(n) < {"few treated": 0.03, "few control": 0.97}.get(case, 0.5)
        if case == "levels":
            X[:, 0], levels = rng.integers(0, 500, n), (500, None, None)
        if case == "ties":
            X = np.where(rng.random((n, 3)) < 0.9, 0.0, X)
        if case == "missing":
            X[rng.random((n, 3)) < 0.4] = np.nan
        weight = np.exp(rng.normal(size=n)) if case == "weights" else None
        found = look(X, arm, weight=weight, levels=levels)
        assert found.told.auc is not None
        low.append(found.told.pvalue < 0.02)
    assert np.sum(low) <= 5  # 1 is expected; of 100 draws of 1 in 50, 6 or more are seen in one of 65


def test_what_was_seen_is_printed_and_kept(tmp_path):
    X, y, treatment = product(1000, 0.95, 0)
    with pytest.warns(UserWarning, match="to rows or to whole groups of them"):
        few = UpliftForest(4, random_state=0).fit(X, y, treatment)
    said = r"propensity: trees \(by 'auto': area under the ROC curve 0\.\d{3}, balance p = .*; too few rows to see an area of 0.6\)\]$"
    assert re.search(said, repr(few))
    assert "propensity: trees" in few._repr_html_()
    few.save(tmp_path / "few.upturn")
    assert repr(upturn.load(tmp_path / "few.upturn")) == repr(few)
    many = UpliftForest(4, random_state=0).fit(*product(3000, 0.5, 0))
    assert re.search(
        r"propensity: shares \(by 'auto': area under the ROC curve 0\.\d{3}, balance p = [\d.]+\)\]$", repr(many)
    )
    few = UpliftForest(4, random_state=0).fit(X[:100], y[:100], np.arange(100) % 2)
    assert re.search(r"shares \(by 'auto': balance p = [\d.]+; too few rows to see an area of 0.6\)\]$", repr(few))
    for model in (UpliftForest(4, propensity="shares", random_state=0), CTSForest(4, random_state=0)):
        assert "propensity: " not in repr(model.fit(*product(500, 0.5, 0)))


@pytest.mark.parametrize(
    "spoiled", [{"enough": 1}, {"auc": 1.5}, {"auc": "0.5"}, {"pvalue": -0.1}, {"propensity": "coin"}]
)
def test_what_was_seen_is_checked_in_a_file(spoiled):
    forest = UpliftForest(2, random_state=0).fit(*product(500, 0.5, 0))
    state = forest._get_state()
    forest._set_state({name: value for name, value in state.items() if name != "enough"})  # of an older file
    with pytest.raises(ValueError, match=r"none|enough|kind of propensity"):
        forest._set_state(state | spoiled)


def test_rows_enough_are_those_that_see_an_area_most_times():
    """At the fewest rows that are called enough, a score with an area of 0.6 is seen 4 times in 5."""
    n = next(n for n in range(50, 2000) if _sees(np.array([n, n])))
    assert 350 < n < 400
    rng, shift = np.random.default_rng(0), np.sqrt(2) * norm.ppf(0.6)
    seen = [
        _told_of(np.append(rng.normal(size=n), rng.normal(shift, size=n)), np.arange(2 * n) >= n, None).pvalue < 1e-4
        for _ in range(400)
    ]
    assert 0.72 < np.mean(seen) < 0.88
    assert not _sees(np.array([5000, 100]))


def test_small_arms_and_small_differences_are_seen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 6))
    assert look(X, rng.random(40_000) < 0.015 * np.exp(0.6 * X[:, 0])).unlike
    assert look(X, rng.random(40_000) < 1 / (1 + np.exp(-0.15 * X[:, 0]))).unlike


def test_a_value_that_is_missing_in_one_arm_is_seen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    gap = rng.random(2000) < 0.5
    X[gap, 1] = np.nan
    assert look(X, rng.random(2000) < np.where(gap, 0.7, 0.3)).unlike
    assert not look(X, rng.random(2000) < 0.5).unlike


def test_rows_of_one_draw_count_once():
    """Ten rows of each person, with one arm: it is the people that were drawn."""
    low = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        people, arm = rng.normal(size=(300, 4)), rng.integers(0, 2, 300)
        rows = np.repeat(np.arange(300), 10)
        low.append(look(people[rows], arm[rows]))
        assert low[-1].rows == 300
        mixed = rng.integers(0, 2, 3000)
        assert look(people[rows], mixed).rows == 3000
    assert np.mean([one.pvalue < 0.1 for one in low]) < 0.2
    X, _, treatment = confounded(300, 0)
    assert look(np.repeat(X[:, :4], 10, axis=0), np.repeat(treatment, 10)).unlike


def test_weights_that_make_arms_alike_are_heard():
    """The weighted test says by chance what it should, sees what weights leave, and not what they take away."""
    low = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        X, weight = rng.normal(size=(600, 1)), rng.exponential(size=600)
        low.append(look(X, rng.integers(0, 2, 600), weight=weight).pvalue)
    assert abs(np.mean(np.array(low) < 0.1) - 0.1) < 0.05
    X, y, treatment = confounded(4000, 0)
    weight = upturn.policy.iptw_weights(X[:, :4], treatment)
    assert look(X[:, :4], treatment).unlike
    assert look(X[:, :4], treatment, weight=np.random.default_rng(0).uniform(0.5, 1.5, 4000)).unlike
    assert not look(X[:, :4], treatment, weight=weight).unlike
    assert UpliftForest(2, random_state=0).fit(X[:, :4], y, treatment, weight).propensity_kind_ == "shares"


@pytest.mark.parametrize("weight", [1e155, 1e200, 1e-200, 2.0**-1000])
def test_weights_of_any_size_have_one_look(weight):
    X, _, treatment = confounded(1000, 0)
    given = np.random.default_rng(0).uniform(1.0, 2.0, 1000)
    assert look(X[:, :4], treatment, weight=given * weight).pvalue == pytest.approx(
        look(X[:, :4], treatment, weight=given).pvalue
    )
    random = np.random.default_rng(1).integers(0, 2, 1000)
    if weight > 1.0:  # small ones leave nothing to split
        UpliftForest(2, random_state=0).fit(X[:, :4], X[:, 0], random, given * weight)
    heavy = np.where(np.arange(1000) == 7, weight, 1.0)
    assert 0.0 < look(X[:, :4], random, weight=heavy).pvalue <= 1.0


def test_the_look_does_not_depend_on_threads_of_blas():
    rng = np.random.default_rng(0)
    X, arm, weight = rng.normal(size=(40_000, 2)), rng.integers(0, 2, 40_000), rng.exponential(size=40_000)
    found = look(X, arm, weight=weight)
    with threadpool_limits(1):
        assert look(X, arm, weight=weight) == found


def test_a_rule_on_a_few_kinds_of_people_is_seen():
    """Features that decide the arm of everybody: the same arm for the same features, but not because they are copies."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 4, 4000)
    treatment = (kind < 2).astype(int)
    y = (rng.random(4000) < 0.1 + 0.2 * treatment).astype(float)
    X = np.column_stack([kind, rng.integers(0, 2, 4000)]).astype(float)
    with pytest.warns(UserWarning, match="tell nearly everybody's arm"):
        UpliftForest(4, random_state=0).fit(X, y, treatment)


def test_all_missing_values_are_alike():
    people = np.random.default_rng(0).normal(size=(300, 2))
    rows, arm = np.repeat(np.arange(300), 4), np.repeat(np.random.default_rng(1).integers(0, 2, 300), 4)
    X = people[rows]
    X[rows < 100, 0] = np.nan
    X[(rows < 100) & (np.arange(1200) % 2 == 0), 0] = -np.nan
    assert look(X, arm).rows == 300


def test_the_weighted_test_by_hand():
    rng = np.random.default_rng(3)
    values, weight, treated = rng.integers(0, 40, 400).astype(float), rng.uniform(0.5, 2, 400), rng.random(400) < 0.4
    ranks, means, variance = rankdata(values), [], 0.0
    for mine in (treated, ~treated):
        w, r = weight[mine], ranks[mine]
        means.append(np.average(r, weights=w))
        variance += np.sum(w**2 * (r - means[-1]) ** 2) / w.sum() ** 2
    expected = 2 * norm.sf(abs(means[0] - means[1]) / np.sqrt(variance))
    assert weighted_pvalues(values, None, treated, weight) == pytest.approx([expected])
    flag = (values < 20).astype(float)
    first, second = (np.average(flag[mine], weights=weight[mine]) for mine in (treated, ~treated))
    error = sum(
        np.sum(weight[mine] ** 2 * (flag[mine] - m) ** 2) / weight[mine].sum() ** 2
        for mine, m in ((treated, first), (~treated, second))
    )
    expected = 2 * norm.sf(abs(first - second) / np.sqrt(error))
    assert weighted_pvalues(flag, 2, treated, weight) == pytest.approx([expected])
    kinds = rng.integers(0, 3, 400).astype(float)
    expected = [weighted_pvalues((kinds == k).astype(float), 2, treated, weight)[0] for k in range(3)]
    assert weighted_pvalues(kinds, 3, treated, weight) == pytest.approx(expected)
    rare = (np.arange(400) < 5).astype(float)  # a normal tail would be wrong about five rows
    assert weighted_pvalues(rare, 2, treated, weight) == [1.0]


def shops(n=3000, k=40):
    """Shops, half of them treated, with columns of the shop beside those of the person."""
    rng = np.random.default_rng(0)
    shop, of_shop = rng.integers(0, k, n), rng.normal(size=(k, 3))
    X = np.column_stack([of_shop[shop], rng.normal(size=(n, 2))])
    treatment = rng.permutation(np.arange(k) % 2)[shop]
    return X, X[:, 3] + X[:, 0] + 0.5 * treatment + rng.normal(size=n), treatment


def test_chances_that_leave_nobody_to_compare_are_not_used(tmp_path):
    X, y, treatment = shops()
    with pytest.warns(UserWarning, match='tell nearly everybody\'s arm.* propensity="shares" to say so'):
        forest = UpliftForest(10, random_state=0).fit(X, y, treatment)
    assert (forest.propensity_kind_, forest.propensity_pvalue_ < 1e-4) == ("shares", True)
    plain = UpliftForest(10, propensity="shares", random_state=0).fit(X, y, treatment)
    np.testing.assert_array_equal(forest.predict(X), plain.predict(X))
    assert forest.centered_ == plain.centered_
    forest.save(tmp_path / "forest.upturn")
    assert upturn.load(tmp_path / "forest.upturn").propensity_pvalue_ == forest.propensity_pvalue_
    with pytest.warns(UserWarning, match="tell nearly everybody's arm"):
        sure = UpliftForest(inference=True, random_state=0).fit(*shops(600, 10))
    assert sure.propensity_kind_ == "shares"
    asked = UpliftForest(10, propensity="trees", random_state=0).fit(X, y, treatment)  # whoever asks for them gets them
    assert asked.propensity_kind_ == "trees"
    X, y, treatment = confounded(1000, 0)
    with pytest.warns(UserWarning, match="estimated by trees"):  # and a refit forgets
        assert forest.fit(X[:, :4], y, treatment).propensity_kind_ == "trees"


@pytest.mark.parametrize("n_arms", [1, 2])
def test_what_chances_leave_to_compare(n_arms):
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.full(n_arms + 1, 0.5), 500).clip(0.01)
    chances /= chances.sum(axis=1, keepdims=True)
    common = [1 / sum(1 / e for e in row) for row in chances]
    left = np.mean(common) * sum(1 / e for e in chances.mean(axis=0))
    sums = overlap_sums(chances)
    assert overlap_left(sums) == pytest.approx(left, rel=1e-6)
    np.testing.assert_array_equal(sums, overlap_sums(chances[:200]) + overlap_sums(chances[200:]))
    assert overlap_left(overlap_sums(np.tile(chances[:1], (50, 1)))) == pytest.approx(
        1.0, rel=1e-5
    )  # the same for all, however small
    sure = np.full((n_arms + 1, n_arms + 1), 0.01) + np.eye(n_arms + 1)
    assert overlap_left(overlap_sums(sure / sure.sum(axis=1, keepdims=True))) < LEAST_LEFT


def told(model, *data):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(*data)
    return [str(one.message) for one in said if "differ in their features" in str(one.message)]


def test_models_with_a_forest_inside_tell_once():
    X, y, treatment = confounded(2000, 0)
    data = X[:, :4], (y > 0).astype(int), treatment
    for model in (UpliftCalibrator(CTSForest(4), cv=2), UpliftBagging(CTSForest(2), n_estimators=2)):
        assert len(told(model, *data)) == 1
    assert len(told(UpliftForest(2), *data)) == 1
    assert told(UpliftForest(2), *data) == told(
        UpliftForest(2), *(one[:1500] for one in data)
    )  # the same words for all folds


def test_small_arms_with_columns_that_are_mostly_0_are_not_told():
    """Spend of a hold-out of 1%: ranks of such a column are far from normal."""
    low = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        X = np.where(rng.random((2500, 20)) < 0.97, 0.0, rng.lognormal(size=(2500, 20)))
        low.append(look(X, rng.random(2500) < 0.01).pvalue)
    assert min(low) > 1e-4
    assert np.mean(np.array(low) < 0.05) < 0.1


def test_an_arm_that_the_look_does_not_see_hides_no_other():
    X, _, treatment = confounded(1500, 0)
    assert look(X[:, :4], treatment, 2).unlike
    assert look(X[:, :4], np.zeros(1500), 2).pvalue == 1.0
