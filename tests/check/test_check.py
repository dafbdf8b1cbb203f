"""upturn.check: calm on sound experiments, alarmed by planted faults, kind in its errors."""

from __future__ import annotations

import os

import numpy as np
import pytest

from upturn import pack
from upturn._check import CheckReport, check
from upturn._check._trial import Pair, Trial

pd = pytest.importorskip("pandas", reason="mixed tables need the extra [data]")

from upturn import datasets

needs_files = pytest.mark.skipif(
    not os.environ.get("UPTURN_DATA"), reason="real data: set UPTURN_DATA to the folder that holds it"
)
CHECKS = ["arm sizes", "balance", "classifier", "missing features", "missing outcomes", "heterogeneity"]


def experiment(n=2000, seed=0, share=0.5):
    """A sound experiment with numeric, categorical and missing features."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.standard_normal(n),
            "b": rng.lognormal(0, 2, n),
            "c": pd.Categorical(rng.choice(list("uvw"), n, p=[0.7, 0.28, 0.02])),
            "d": np.where(rng.random(n) < 0.1, np.nan, rng.standard_normal(n)),
        }
    )
    treatment = (rng.random(n) < share).astype(int)
    y = (rng.random(n) < 0.2 + 0.05 * treatment).astype(float)
    return X, y, treatment


def test_false_alarms_on_two_hundred_sound_experiments():
    """At most 5%; experiments/check_false_alarms.py does the same on larger and odder ones."""
    alarms, classified = 0, 0
    for seed in range(200):
        share = (0.5, 0.4)[seed % 2]
        report = check(*experiment(140 + 10 * (seed % 10), seed, share), expected=(1 - share, share))
        alarms += not report.ok
        classified += report["classifier"].status != "skipped"
    assert classified > 180
    assert alarms <= 10


def test_a_48_52_split_where_equal_arms_were_meant():
    X, y, treatment = experiment(100_000, seed=1, share=0.48)
    assert check(X[["a", "c"]], y, treatment).warnings == ("arm sizes",)
    report = check(X[["a", "c"]], y, treatment, expected={0: 0.52, 1: 0.48})
    assert report.ok
    assert "was meant" in report["arm sizes"].seen


@pytest.mark.parametrize("column", ["a", "b", "d"])
def test_a_feature_shifted_by_a_tenth_of_a_standard_deviation(column):
    X, y, treatment = experiment(20_000)
    X[column] += 0.1 * X[column].std() * treatment
    report = check(X, y, treatment)
    assert "balance" in report.warnings
    assert report.features[0].feature == column or column == "b"  # a heavy tail hides the shift of the mean
    assert column in " ".join(report.advice)


def test_an_outcome_missing_more_often_in_one_arm():
    X, y, treatment = experiment(10_000)
    rng = np.random.default_rng(5)
    even = np.where(rng.random(10_000) < 0.06, np.nan, y)
    assert check(X, even, treatment).ok
    uneven = np.where(rng.random(10_000) < np.where(treatment == 1, 0.08, 0.05), np.nan, y)
    report = check(X, uneven, treatment)
    assert report.warnings == ("missing outcomes",)
    assert report.arms[1].outcomes < report.arms[1].rows
    assert "attrition" in " ".join(report.advice)


def test_a_feature_missing_more_often_in_one_arm():
    X, y, treatment = experiment(10_000)
    rng = np.random.default_rng(6)
    X["a"] = X["a"].where(rng.random(10_000) > np.where(treatment == 1, 0.05, 0.02))
    report = check(X, y, treatment)
    assert "missing features" in report.warnings
    assert "balance" not in report.warnings


def test_a_level_that_leaks_the_arm():
    X, y, treatment = experiment(3000)
    X["c"] = X["c"].astype(str)
    X.loc[(treatment == 1) & (X["a"] > 2), "c"] = "special"
    report = check(X, y, treatment)
    assert "balance" in report.warnings
    assert "c (" in report["balance"].advice


def test_only_the_classifier_sees_an_interaction():
    X, y, treatment = experiment(5000)
    rng = np.random.default_rng(7)
    agree = np.where(rng.random(5000) < 0.8, treatment, 1 - treatment) == 1
    X["b"] = np.abs(X["b"]) * np.where(agree == (X["a"] > 0), 1, -1)
    X["b"] = np.sign(X["b"])
    report = check(X, y, treatment)
    assert report.warnings == ("classifier",)


def test_one_arm_of_three_is_wrong():
    X, y, _ = experiment(6000)
    arm = np.random.default_rng(8).integers(0, 3, 6000)
    labels = np.array(["control", "call", "mail"])[arm]
    assert check(X, y, labels).ok
    X["a"] += 0.2 * (labels == "mail")
    report = check(X, y, labels)
    assert "balance" in report.warnings
    assert [row.arm for row in report.arms] == ["control", "call", "mail"]
    assert report.arms[0].effect is None
    assert report.arms[2].effect is not None


def test_effects_and_shares_are_those_of_the_data():
    X, y, treatment = experiment(3000)
    report = check(X, y, treatment)
    assert (report.arms[0].rows, report.arms[1].rows) == tuple(np.bincount(treatment))
    assert report.arms[1].effect == pytest.approx(y[treatment == 1].mean() - y[treatment == 0].mean())
    assert report.arms[1].low < report.arms[1].effect < report.arms[1].high
    weight = np.random.default_rng(9).uniform(1, 2, 3000)
    weighted = check(X, y, treatment, sample_weight=weight).arms[1]
    on, off = treatment == 1, treatment == 0
    assert weighted.effect == pytest.approx(
        np.average(y[on], weights=weight[on]) - np.average(y[off], weights=weight[off])
    )


def test_weights_that_repair_the_balance_show_in_the_differences():
    data = datasets.simulate_biased(5000, random_state=0)
    e, t = data.details["propensity"], data.treatment
    raw = max(abs(row.difference) for row in check(data.X, data.y, t).features)
    repaired = max(
        abs(row.difference) for row in check(data.X, data.y, t, sample_weight=t / e + (1 - t) / (1 - e)).features
    )
    assert raw > 0.5
    assert repaired < 0.15


def test_heterogeneity_is_seen_where_it_is_and_only_informs():
    data = datasets.simulate_feature_selection(4000, 2, 2, 2, random_state=0)
    report = check(data.X, data.y, data.treatment)
    assert report["heterogeneity"].status == "note"
    assert report["heterogeneity"].seen.startswith("seen")
    assert report.ok
    assert "worth fitting" in report["heterogeneity"].advice
    unsound = check(data.X.assign(leak=data.treatment), data.y, data.treatment)
    assert "settle the warnings first" in unsound["heterogeneity"].advice
    X, y, treatment = experiment(500, seed=1)
    finding = check(X, y, treatment)["heterogeneity"]
    assert finding.seen.startswith("not seen")
    assert "rows" in finding.advice


def test_the_smallest_difference_named_is_found_four_times_in_five():
    """Two halves with effects 0 and δ, δ = 2·2.8·se: a test of their difference at 5% has 80% power."""
    rng = np.random.default_rng(10)
    n, found, named = 1000, 0, []
    for _ in range(300):
        half, treated = rng.random(n) < 0.5, rng.random(n) < 0.5
        y = rng.standard_normal(n)
        se = np.sqrt(y[treated].var(ddof=1) / treated.sum() + y[~treated].var(ddof=1) / (~treated).sum())
        delta = 2 * 2.8016 * se
        named.append(delta)
        y = y + delta * (half & treated)
        gaps, errors = [], []
        for part in (half, ~half):
            a, b = y[part & treated], y[part & ~treated]
            gaps.append(a.mean() - b.mean())
            errors.append(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
        found += abs(gaps[0] - gaps[1]) > 1.96 * np.sqrt(sum(errors))
    assert 0.72 < found / 300 < 0.88


def test_the_report_prints_indexes_and_turns_into_tables():
    X, y, treatment = experiment()
    report = check(X, y, treatment)
    assert isinstance(report, CheckReport)
    text = str(report)
    assert text == repr(report)
    assert "looks sound" in text
    assert all(name in text for name in CHECKS)
    assert "95% interval" in text
    frame = report.to_frame()
    assert frame["check"].tolist() == CHECKS
    assert set(frame["status"]) <= {"ok", "warning", "note", "skipped"}
    assert report.to_frame("arms")["rows"].sum() == 2000
    assert sorted(report.to_frame("features")["feature"]) == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="to_frame got 'x'"):
        report.to_frame("x")
    with pytest.raises(KeyError, match="there is no check 'size'"):
        report["size"]
    X["a"] += treatment
    warned = check(X, y, treatment)
    assert "WARNING: balance, classifier" in str(warned)
    assert "What to do:" in str(warned)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_other_tables_give_the_same_report_in_their_own_kind(library):
    module = pytest.importorskip(library)
    X, y, treatment = experiment(400)
    X["c"] = X["c"].astype(str)
    native = module.from_pandas(X, nan_to_null=True) if library == "polars" else module.Table.from_pandas(X)
    report, reference = check(native, y, treatment), check(X, y, treatment)
    assert report == reference
    assert type(report.to_frame()).__module__.split(".")[0] == library
    assert isinstance(check(X[["a"]].to_numpy(), y, treatment).to_frame(), pd.DataFrame)


def test_a_packed_target_and_labels_of_any_kind():
    X, y, treatment = experiment(600)
    reference = check(X, y, treatment)
    assert check(X, pack(y, treatment)) == reference
    named = check(X, y, np.where(treatment == 1, "mail", "control"))
    assert named.findings == reference.findings
    other = check(X, y, np.where(treatment == 1, "b", "a"), control="a")
    assert other.findings == reference.findings


def test_the_same_seed_gives_the_same_report():
    X, y, treatment = experiment(600)
    assert check(X, y, treatment, random_state=3) == check(X, y, treatment, random_state=3)
    seen = {check(X, y, treatment, random_state=seed)["classifier"].seen for seed in range(3)}
    assert len(seen) > 1


def test_halves_and_samples_are_drawn_for_rows_by_their_number():
    X, y, treatment = experiment(3000)
    trial = Trial.read(X, y, treatment, None, None, None, 0)
    pair = trial.pairs[0]
    half = trial.half(pair, 0)
    for group in (pair.treated, ~pair.treated):
        assert half[group].sum() == group.sum() // 2
    assert 0.4 < np.mean(half == trial.half(pair, 1)) < 0.6  # another purpose, another half
    few = trial.thinned(pair, 1000, 0)
    assert len(few.rows) == 1000
    assert (np.diff(few.rows) > 0).all()
    np.testing.assert_array_equal(few.treated, treatment[few.rows] == 1)
    assert abs(np.mean(half[few.rows]) - 0.5) < 0.05  # who is kept says nothing about the half
    longer = Trial.read(*experiment(5000), None, None, None, 0)
    fewer = longer.thinned(Pair(1, pair.rows, pair.treated), 1000, 0)
    np.testing.assert_array_equal(fewer.rows, few.rows)  # nothing depends on how many rows there are


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [2, 3, 4, 6, 19])
def test_too_few_rows_are_not_called_sound(n):
    X, y, treatment, _ = experiment(n)[0], np.arange(n) % 3 == 0, np.arange(n) % 2, None
    report = check(X, y, treatment)
    assert not report.ok
    assert report.warnings[0] == "rows"
    assert "too few rows to tell" in str(report).splitlines()[0]
    assert f"1 has {n // 2}" in report["rows"].seen
    assert "nan" not in str(report)


def test_twenty_rows_are_enough_to_look_at():
    X, n = experiment(20)[0], 20
    assert "rows" not in [finding.check for finding in check(X, np.arange(n) % 3 == 0, np.arange(n) % 2).findings]


def test_an_arm_without_outcomes():
    X, n = experiment(300)[0], 300
    arm = np.arange(n) % 3
    y = np.where(arm == 2, np.nan, np.arange(n) % 5 == 0)
    report = check(X, y, arm)
    assert {"rows", "missing outcomes"} <= set(report.warnings)
    assert "nan" not in str(report)
    assert str(report).splitlines()[5].split()[-3:] == ["n/a"] * 3


def test_small_and_odd_experiments_do_not_fail():
    X, y, treatment = experiment(12)
    report = check(X, y, treatment)
    assert report["classifier"].status == "skipped"
    check(X.assign(a=1.0, d=np.nan), np.ones(12), treatment)
    X, y, treatment = experiment(400)
    odd = X.assign(
        constant=1.0, empty=np.nan, nothing=pd.Categorical([None] * 400), many=[f"id{i}" for i in range(400)]
    )
    assert check(odd, y, treatment)["classifier"].status == "ok"
    assert check(odd[["empty"]], y, treatment)["classifier"].pvalue == 1.0
    X, y, treatment = experiment(12)
    check(X[["a"]], y, np.arange(12) < 1)  # a single treated row has no interval
    assert np.isnan(check(X[["a"]], y, np.arange(12) < 1).arms[1].effect)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y, t: check(X, y, t, alpha=0), "alpha=0: expected a probability"),
        (lambda X, y, t: check(X, np.full(len(y), np.nan), t), "missing in every row"),
        (lambda X, y, t: check(X[:-1], y, t), "X has 1999, y has 2000"),
        (lambda X, y, t: check(X, y, t, expected=[0.5, 0.3, 0.2]), "one positive share for each of the arms"),
        (lambda X, y, t: check(X, y, t, expected={0: 0.5, "mail": 0.5}), "names the arms"),
        (lambda X, y, t: check(X, pack(y, t), t), "was given twice"),
        (lambda X, y, t: check(X, y), "treatment is missing"),
    ],
)
def test_errors(change, message):
    with pytest.raises(ValueError, match=message):
        change(*experiment())


@needs_files
@pytest.mark.parametrize(
    "load",
    [
        lambda: datasets.load_hillstrom(arms="all"),
        lambda: datasets.load_colon("death", "all"),
        lambda: datasets.load_colon("recurrence", "lev5fu"),
        datasets.load_veteran,
        datasets.load_bladder,
        datasets.load_pbc,
        datasets.load_bmt,
        datasets.load_tamoxifen,
    ],
)
def test_calm_on_the_randomised_trials(load):
    data = load()
    report = check(data.X, data.y, data.treatment)
    assert report.ok, str(report)


@needs_files
@pytest.mark.parametrize("load", [datasets.load_rhc, datasets.load_rotterdam])
def test_warns_on_studies_that_were_not_randomised(load):
    data = load()
    report = check(data.X, data.y, data.treatment)
    assert not report.ok
    assert {"balance", "classifier"} <= set(report.warnings)


@pytest.mark.parametrize("n_arms", [1, 2])
def test_the_joint_test_of_balance_is_the_one_that_propensities_use(n_arms):
    import pandas as pd

    from upturn._balance import balance_pvalue

    rng = np.random.default_rng(n_arms)
    treatment = rng.integers(0, n_arms + 1, 600)
    X = pd.DataFrame({"a": rng.normal(size=600) + 0.25 * treatment, "b": rng.choice(["x", "y", "z"], 600)})
    X.loc[::5, "a"] = np.nan
    found = check(X, rng.normal(size=600), treatment)["balance"].pvalue
    assert 0 < found < 1
    assert balance_pvalue(Trial.read(X, rng.normal(size=600), treatment, None, None, None, 0).data) == found


# ------------------------------------------------------------------------------------------------ clusters


def shops(seed, clusters=80, whole=True, shift=0.0):
    """Rows in shops that differ in their features and outcomes; shops, or people, assigned at random."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(clusters), rng.integers(5, 30, clusters))
    n, kind = len(groups), rng.normal(size=(clusters, 3))
    arm = rng.permutation(np.arange(clusters) % 2)
    t = arm[groups] if whole else rng.integers(0, 2, n)
    X = kind[groups] + 0.3 * rng.normal(size=(n, 3)) + shift * t[:, None]
    y = kind[groups, 0] + rng.normal(size=n) + 0.1 * t
    return X, y, t, groups


def test_shops_that_were_assigned_at_random_are_sound():
    """Compared by rows, shops look unbalanced in nearly every trial; by shops, hardly ever."""
    trials = [shops(seed) for seed in range(12)]
    by_rows = [check(X, y, t).ok for X, y, t, _ in trials]
    by_shops = [check(X, y, t, groups=groups) for X, y, t, groups in trials]
    assert sum(by_rows) == 0
    assert sum(report.ok for report in by_shops) >= 11
    assert by_shops[0]["clusters"].seen.startswith("80 of 5 to ")
    assert "each in one arm" in by_shops[0]["clusters"].seen
    assert "of clusters" in by_shops[0]["arm sizes"].seen


def test_shops_that_were_chosen_are_found():
    X, y, t, groups = shops(3, shift=1.5)
    assert {"balance", "classifier"} <= set(check(X, y, t, groups=groups).warnings)


def test_effects_have_errors_by_cluster():
    """The formula written out for clusters in one arm; and simulated, for either design."""
    X, y, t, groups = shops(4)
    arm = check(X, y, t, groups=groups).arms[1]
    square = 0.0
    for a in (0, 1):
        mine = np.unique(groups[t == a])
        sums = np.array([(y[groups == g] - y[t == a].mean()).sum() for g in mine])
        square += len(mine) / (len(mine) - 1) * (sums**2).sum() / (t == a).sum() ** 2
    half = (arm.high - arm.low) / 2
    assert half == pytest.approx(1.99 * np.sqrt(square), rel=0.01)
    assert check(X, y, t).arms[1].high - check(X, y, t).arms[1].low < half


@pytest.mark.parametrize("whole", [True, False])
def test_intervals_by_cluster_hold_the_truth(whole):
    from upturn._check._statistics import mean_difference

    held = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(40), 12)
        t = rng.permutation(np.arange(40) % 2)[groups] if whole else rng.integers(0, 2, 480)
        y = rng.normal(size=40)[groups] + t * (0.5 + rng.normal(size=40)[groups]) + rng.normal(size=480)
        found = mean_difference(y, t == 1, np.ones(480), groups)
        held.append(found.low <= 0.5 <= found.high)
    assert 0.92 <= np.mean(held) <= 0.98


def test_clusters_of_one_row_change_no_effect():
    X, y, t, _ = shops(5)
    plain, alone = check(X, y, t).arms[1], check(X, y, t, groups=np.arange(len(y))).arms[1]
    assert alone.effect == pytest.approx(plain.effect)
    assert (alone.high - alone.low) == pytest.approx(plain.high - plain.low, rel=1e-3)
    assert alone.pvalue == pytest.approx(plain.pvalue, rel=1e-2)


def test_few_clusters_get_a_warning():
    X, y, t, groups = shops(6, clusters=20)
    report = check(X, y, t, groups=groups)
    assert "clusters" in report.warnings
    assert "more clusters, not larger ones" in " ".join(report.advice)
    assert report["classifier"].status == "skipped"


def test_an_arm_of_a_few_clusters_gets_a_warning_however_many_there_are_in_all():
    rng = np.random.default_rng(0)
    groups = np.arange(1200) % 60
    X, y, t = rng.normal(size=(1200, 2)), rng.integers(0, 2, 1200), np.where(groups < 3, "drug", "placebo")
    report = check(X, y, t, groups=groups)
    assert not report.ok
    assert "clusters" in report.warnings
    assert "'drug' has 3" in report["clusters"].seen
    fine = check(X, y, np.where(groups < 30, "drug", "placebo"), groups=groups)
    assert fine["clusters"].status == "ok"


def test_clusters_in_several_arms_are_compared_by_rows():
    X, y, t, groups = shops(7, whole=False)
    report = check(X, y, t, groups=groups)
    assert "in several arms: rows are compared" in report["clusters"].seen
    assert report["balance"] == check(X, y, t)["balance"]


# ------------------------------------------------------------------------------------------------ which arm


def test_effects_have_p_values():
    X, y, t, _ = shops(8, whole=False)
    control, arm = check(X, y, t).arms
    assert control.pvalue is None
    from scipy import stats

    assert arm.pvalue == pytest.approx(stats.ttest_ind(y[t == 1], y[t == 0], equal_var=False).pvalue)
    assert "p" in str(check(X, y, t)).splitlines()[2].split()
    assert check(X, y, t).to_frame("arms")["pvalue"].iloc[1] == arm.pvalue


def test_the_classifier_says_which_arm_it_can_tell():
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(3000, 3)), rng.choice(["control", "call", "mail"], 3000)
    X[t == "mail", 0] += 1.0
    finding = check(X, rng.random(3000), t)["classifier"]
    assert "for 'mail' against 'control'" in finding.seen
    assert "who was treated with 'mail'," in finding.advice
    assert "'call'" not in finding.advice


def test_the_average_effect_in_advice_is_the_weighted_one():
    """That of the table of effects."""
    rng = np.random.default_rng(1)
    x, arm, weight = rng.normal(size=(4000, 2)), rng.integers(0, 2, 4000), rng.integers(1, 9, 4000).astype(float)
    y = (rng.random(4000) < 0.2 + 0.02 * arm * (weight > 4)).astype(float)
    report = check(x, y, arm, sample_weight=weight)
    assert f"({1000 * report.arms[1].effect:+.4g} per 1,000 people)" in report["heterogeneity"].advice


def test_outcomes_that_do_not_vary_leave_nothing_to_tell_people_by():
    arm = np.arange(400) % 2
    for y in (np.zeros(400), np.full(400, 0.1), arm, np.where(arm, 0.7, 0.1)):
        found = check(np.random.default_rng(0).normal(size=(400, 2)), y, arm)["heterogeneity"]
        assert (found.status, found.seen) == (
            "skipped",
            "outcomes are all alike in each arm: nothing to tell people by",
        )
