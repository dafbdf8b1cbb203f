"""upturn.subgroups: against formulas by hand and scipy, coverage and error rates by simulation, and at its gates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats.contingency import odds_ratio, relative_risk

import upturn as up
from upturn._results import number_text
from upturn._subgroups._multiple import sidak
from upturn.metrics import SmallSampleWarning, calibration_table
from upturn.metrics._multiple import holm
from upturn.trees import UpliftTree

quiet = pytest.mark.filterwarnings("ignore::upturn.metrics.SmallSampleWarning")


def counts(*cells):
    """Rows of groups given as (successes, rows) of treatment and of control."""
    group, y, treatment = [], [], []
    for g, arms in enumerate(cells):
        for arm, (ones, n) in zip((1, 0), arms, strict=True):
            group += [g] * n
            y += [1] * ones + [0] * (n - ones)
            treatment += [arm] * n
    return np.array(group), np.array(y), np.array(treatment)


# ----------------------------------------------------------------------------------- one group, by hand


@pytest.mark.parametrize(
    ("treated", "control", "low", "high"),
    [((56, 70), (48, 80), 0.0524, 0.3339), ((9, 10), (3, 10), 0.1705, 0.8090)],
)
def test_difference_of_rates_is_newcombe(treated, control, low, high):
    """Newcombe 1998, Table II, method 10, examples (a) and (b)."""
    group, y, t = counts((treated, control), ((5, 20), (6, 20)))
    found = up.subgroups(group, None, y, t)
    assert found["low"][0] == pytest.approx(low, abs=6e-5)
    assert found["high"][0] == pytest.approx(high, abs=6e-5)
    p1, p0 = treated[0] / treated[1], control[0] / control[1]
    assert found["effect"][0] == pytest.approx(p1 - p0)
    assert found["se"][0] == pytest.approx(np.sqrt(p1 * (1 - p1) / treated[1] + p0 * (1 - p0) / control[1]))


@quiet
@pytest.mark.parametrize("scale", ["difference", "ratio", "odds_ratio", "nnt"])
def test_p_value_is_the_level_at_which_the_interval_touches_no_effect(scale):
    group, y, t = counts(((30, 60), (20, 55)), ((3, 9), (5, 8)), ((0, 12), (4, 15)))
    found = up.subgroups(group, None, y, t, scale=scale)
    none = {"difference": 0.0, "nnt": 0.0}.get(scale, 1.0)
    for i, p in enumerate(found["p_value"]):
        at = up.subgroups(group, None, y, t, scale=scale, interval=float(1 - p))
        ends = np.array([at["low"][i], at["high"][i]])
        ends = 1 / ends if scale == "nnt" else ends
        assert np.abs(ends - none).min() < 1e-6


def test_difference_of_means_is_welch():
    rng = np.random.default_rng(0)
    group, t = np.repeat([0, 1], 40), np.tile([0, 1, 1, 1], 20)
    y = rng.normal(size=80) * (1 + t) + group
    found = up.subgroups(group, None, y, t, interval=0.9)
    for g in range(2):
        test = stats.ttest_ind(y[(group == g) & (t == 1)], y[(group == g) & (t == 0)], equal_var=False)
        ends = test.confidence_interval(0.9)
        assert (found["low"][g], found["high"][g]) == pytest.approx((ends.low, ends.high))
        assert found["p_value"][g] == pytest.approx(test.pvalue)


def test_ratios_are_scipys():
    group, y, t = counts(((30, 60), (20, 55)), ((13, 40), (25, 48)))
    risk, odds = (up.subgroups(group, None, y, t, scale=scale) for scale in ("ratio", "odds_ratio"))
    for g, (a, n, b, m) in enumerate([(30, 60, 20, 55), (13, 40, 25, 48)]):
        theirs = relative_risk(a, n, b, m)
        assert risk["effect"][g] == pytest.approx(theirs.relative_risk)
        assert (risk["low"][g], risk["high"][g]) == pytest.approx(tuple(theirs.confidence_interval()))
        other = odds_ratio([[a, n - a], [b, m - b]], kind="sample")
        assert odds["effect"][g] == pytest.approx(other.statistic)
        assert (odds["low"][g], odds["high"][g]) == pytest.approx(tuple(other.confidence_interval()))


@quiet
def test_an_outcome_that_never_happened():
    """Ratios add half a row to each cell (Haldane); a difference keeps its value and still has an interval."""
    group, y, t = counts(((0, 20), (4, 20)), ((0, 20), (0, 20)), ((8, 20), (9, 20)))
    odds = up.subgroups(group, None, y, t, scale="odds_ratio")
    assert odds["effect"][0] == pytest.approx((0.5 / 20.5) / (4.5 / 16.5))
    assert odds["se"][0] == pytest.approx(np.sqrt(1 / 0.5 + 1 / 20.5 + 1 / 4.5 + 1 / 16.5))
    assert odds["effect"][2] == pytest.approx((8 / 12) / (9 / 11))
    assert "Half a row was added to each outcome, because one never happened, in: 0, 1." in repr(odds)
    difference = up.subgroups(group, None, y, t)
    assert difference["effect"][:2].tolist() == [-0.2, 0.0]
    assert difference["low"][1] < 0 < difference["high"][1]
    assert difference["p_value"][1] == 1
    assert (difference["se"] > 0).all()


def test_number_needed_to_treat():
    group, y, t = counts(((60, 100), (40, 100)), ((40, 100), (60, 100)), ((51, 100), (50, 100)))
    difference, needed = (up.subgroups(group, None, y, t, scale=scale) for scale in ("difference", "nnt"))
    assert needed["effect"] == pytest.approx(1 / difference["effect"])
    low, high = 1 / difference["high"], 1 / difference["low"]
    assert (needed["low"][0], needed["high"][0]) == pytest.approx((low[0], high[0]))
    assert (needed["low"][1], needed["high"][1]) == pytest.approx((low[1], high[1]))
    assert (needed["low"][2], needed["high"][2]) == pytest.approx((high[2], low[2]))  # through infinity
    words = needed["in words"].tolist()
    assert words[0] == f"benefit {low[0]:.3g} to {high[0]:.3g}"
    assert words[1] == f"harm {-high[1]:.3g} to {-low[1]:.3g}"
    assert words[2] == f"benefit {low[2]:.3g} to infinity to harm {-high[2]:.3g}"
    assert (needed["p_value"] == difference["p_value"]).all()
    printed = repr(needed)
    assert words[2] in printed
    assert "se of the difference" in printed
    assert "95% interval" in printed.splitlines()[1]
    assert needed["all in words"].tolist()[2].startswith("benefit ")
    head = printed.splitlines()[1].split()
    assert not {"low", "high", "low_all", "high_all"} & set(head)  # ends that an interval through infinity has not
    ratio = repr(up.subgroups(group, None, y, t, scale="ratio"))
    assert "se of the logarithm" in ratio


def test_weights():
    """Variances of weighted means; weights that are all alike change nothing, and rows without weight are not there."""
    rng = np.random.default_rng(3)
    n = 300
    group, t, y = rng.integers(0, 2, n), rng.integers(0, 2, n), rng.normal(size=n)
    plain = up.subgroups(group, None, y, t)
    same = up.subgroups(group, None, y, t, np.full(n, 1e200))
    weight = rng.exponential(size=n) * (rng.random(n) < 0.8)
    kept = weight > 0
    found = up.subgroups(group, None, y, t, weight)
    without = up.subgroups(group[kept], None, y[kept], t[kept], weight[kept])
    for name in ("effect", "se", "low", "p_holm", "high_all"):
        assert same[name] == pytest.approx(plain[name], nan_ok=True)
        assert found[name] == pytest.approx(without[name], nan_ok=True)
    assert (found["n_control"] == without["n_control"]).all()
    square = 0.0
    for arm in (0, 1):
        w, v = (column[(group == 1) & (t == arm)] for column in (weight, y))
        worth = w.sum() ** 2 / (w @ w)
        square += (w**2) @ (v - np.average(v, weights=w)) ** 2 / w.sum() ** 2 * worth / (worth - 1)
    assert found["se"][1] == pytest.approx(np.sqrt(square))
    binary = (y > 0).astype(int)
    assert up.subgroups(group, None, binary, t, np.full(n, 7.0))["high"] == pytest.approx(
        up.subgroups(group, None, binary, t)["high"]
    )


# ----------------------------------------------------------------------------------- many groups


def test_holm_and_sidak():
    assert holm(np.array([0.01, 0.04, 0.03, np.nan])) == pytest.approx([0.03, 0.06, 0.06, np.nan], nan_ok=True)
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]
    assert sidak(0.95, 10) == pytest.approx(0.95**0.1)


def test_interaction_of_disjoint_groups_is_cochrans_q():
    group, y, t = counts(((30, 60), (20, 55)), ((13, 40), (25, 48)), ((22, 50), (18, 50)))
    found = up.subgroups(group, None, y, t)
    effect, weight = found["effect"][:3], 1 / found["se"][:3] ** 2
    q = float(weight @ (effect - np.average(effect, weights=weight)) ** 2)
    assert found.interaction[0].statistic == pytest.approx(q)
    assert found.interaction[0].freedom == 2
    assert found.interaction[0].p_value == pytest.approx(stats.chi2.sf(q, 2))


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_group_given_twice_adds_nothing_to_the_interaction(noise):
    group, y, t = counts(((30, 60), (20, 55)), ((13, 40), (25, 48)))
    y = y + noise * np.random.default_rng(0).normal(size=len(y))
    masks = {"first": group == 0, "second": group == 1}
    plain = up.subgroups(masks, None, y, t)
    twice = up.subgroups([*masks.items(), ("again", group == 0)], None, y, t)
    assert (twice.interaction[0].freedom, plain.interaction[0].freedom) == (1, 1)
    assert twice.interaction[0].statistic == pytest.approx(plain.interaction[0].statistic)
    assert "Groups overlap" in repr(twice)
    assert plain["effect"] == pytest.approx(up.subgroups(group, None, y, t)["effect"])


def within(share, expected, n, errors=4.0):
    """Whether a share of n trials is as expected, in standard errors."""
    return abs(share - expected) <= errors * np.sqrt(expected * (1 - expected) / n)


@pytest.mark.parametrize("kind", ["binary", "real"])
def test_intervals_cover(kind):
    """4,000 groups of 60 rows, 24 of them treated: 95% intervals hold the true effect in about 95% of them."""
    rng = np.random.default_rng(11)
    held = []
    for _ in range(20):
        group, t = np.repeat(np.arange(200), 60), np.tile(np.arange(60) < 24, 200).astype(int)
        if kind == "binary":
            y, truth = (rng.random(len(t)) < 0.3 + 0.2 * t).astype(int), 0.2
        else:
            y, truth = rng.normal(size=len(t)) * (1 + 2 * t) + 0.5 * t, 0.5
        found = up.subgroups(group, None, y, t)
        held.append(((found["low"] <= truth) & (truth <= found["high"]))[:200])
    share = float(np.mean(held))
    assert within(share, 0.95, 4000) if kind == "real" else 0.94 < share < 0.965  # counts make a rate's coverage jump


@quiet
def test_errors_in_families_of_groups():
    """250 trials without any effect, of five groups that overlap or not and two arms: all rates of error as promised."""
    rng = np.random.default_rng(5)
    n, repeats = 400, 250
    alone, family, held, differ, together, overlapping = [], [], [], [], [], []
    for _ in range(repeats):
        group, t, y = rng.integers(0, 5, n), rng.integers(0, 3, n), rng.normal(size=n)
        found = up.subgroups(group, None, y, t)
        alone += (found["p_value"][:10] < 0.05).tolist()
        family.append((found["p_holm"][:10] < 0.05).any())
        held.append(((found["low_all"][:10] <= 0) & (found["high_all"][:10] >= 0)).all())
        differ.append(found.interaction[0].p_value < 0.05)
        together.append(found.interaction[-1].p_value < 0.05)
        masks = {"low": group < 3, "middle": (group > 0) & (group < 4), "high": group > 1}
        overlapping.append(up.subgroups(masks, None, y, t).interaction[0].p_value < 0.05)
    assert within(np.mean(alone), 0.05, 10 * repeats / 2)  # arms share control: fewer trials than they look
    assert np.mean(family) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / repeats)
    assert np.mean(held) > 0.95 - 4 * np.sqrt(0.05 * 0.95 / repeats)
    for rejected in (
        differ,
        together,
        overlapping,
    ):  # chi-square instead of F: a little above 5% in groups of 27 rows an arm
        assert 0.01 < np.mean(rejected) < 0.06 + 4 * np.sqrt(0.05 * 0.95 / repeats)


def test_a_difference_between_groups_is_found():
    rng = np.random.default_rng(2)
    group, t = rng.integers(0, 3, 3000), rng.integers(0, 2, 3000)
    y = rng.normal(size=3000) + t * (group == 2)
    found = up.subgroups(group, None, y, t)
    assert found.interaction[0].p_value < 1e-6
    assert found["p_holm"][2] < 1e-6
    assert found["low_all"][2] > 0


# ----------------------------------------------------------------------------------- what makes groups


@pytest.fixture(scope="module")
def trial():
    rng = np.random.default_rng(0)
    n = 3000
    X = pd.DataFrame({"age": rng.integers(18, 90, n), "sex": rng.choice(["f", "m"], n), "dose": rng.normal(size=n)})
    X.loc[::9, "dose"] = np.nan
    X.loc[::50, "sex"] = None
    treatment = rng.choice(["control", "drug"], n)
    y = (rng.random(n) < 0.3 + 0.25 * (treatment == "drug") * (X["sex"] == "f") * (X["age"] > 50)).astype(int)
    return X, y, treatment


def test_columns(trial):
    X, y, t = trial
    by_sex = up.subgroups("sex", X, y, t)
    assert by_sex["group"].tolist() == ["sex = f", "sex = m", "sex = missing", "all rows"]
    mine = (X["sex"] == "f").to_numpy()
    effect = y[mine & (t == "drug")].mean() - y[mine & (t == "control")].mean()
    assert by_sex["effect"][0] == pytest.approx(effect)
    assert by_sex["n_treated"].sum() == 2 * (t == "drug").sum()
    ages = up.subgroups("age", X, y, t, n_bins=4)
    assert len(ages) == 5
    assert ages["group"][0].startswith("age 18 to ")
    assert abs((ages["n_control"] + ages["n_treated"])[:4] - 750).max() < 60
    assert up.subgroups("dose", X, y, t)["group"][-2] == "dose is missing"
    assert type(by_sex.to_frame()) is pd.DataFrame
    assert list(by_sex.to_frame().columns) == by_sex.columns


def test_leaves_are_told_in_words_and_hold_their_rows(trial):
    X, y, t = trial
    tree = UpliftTree(max_depth=4, min_samples_arm=20, random_state=0).fit(X, y, t)
    found = up.subgroups(tree, X, y, t)
    assert "If the model was trained on any of these rows" in repr(found)
    assert len(found) == len(np.unique(tree.apply(X))) + 1
    for code, words in enumerate(found["group"][:-1].tolist()):
        assert (selected(X, words) == (found.group == code)).all(), words
    assert found["effect"][:-1] == pytest.approx(
        [tree.predict(X)[found.group == code][0] for code in range(len(found) - 1)]
    )


def selected(X, words):
    """Rows that a leaf's words describe, read as a person would."""
    mask = np.ones(len(X), dtype=bool)
    for part in words.split(" and "):
        part = part.strip("()")
        missing = part.endswith(" or missing")
        part = part.removesuffix(" or missing").split()
        if part[1:] == ["is", "missing"]:
            mask &= X[part[0]].isna().to_numpy()
            continue
        if part[1:] == ["is", "not", "missing"]:
            mask &= X[part[0]].notna().to_numpy()
            continue
        name = part[2] if len(part) == 5 else part[0]
        column = X[name]
        if part[1] == "=":
            met = column == part[2]
        elif part[1] == "in":
            met = column.isin(" ".join(part[2:]).strip("{}").split(", "))
        elif len(part) == 5:
            met = (column > float(part[0])) & (column <= float(part[4]))
        else:
            met = column <= float(part[2]) if part[1] == "<=" else column > float(part[2])
        mask &= (met | column.isna() if missing else met & column.notna()).to_numpy()
    return mask


def test_a_model_that_is_not_fitted_is_measured_on_the_other_half(trial):
    X, y, t = trial
    tree = UpliftTree(max_depth=2, random_state=0)
    found = up.subgroups(tree, X, y, t, random_state=3)
    assert not hasattr(tree, "nodes_")
    assert len(found.rows) == 1500
    again = up.subgroups(found.estimator, X.iloc[found.rows], y[found.rows], t[found.rows])
    assert again["effect"].tolist() == found["effect"].tolist()
    assert found["n_control"][-1] + found["n_treated"][-1] == 1500
    assert "fitted to one half of the rows" in repr(found)
    other = up.subgroups(tree, X, y, t, random_state=4)
    assert not np.array_equal(other.rows, found.rows)


@quiet
def test_only_the_other_half_is_honest():
    """40 trials without an effect: the best leaf looks good on the tree's own rows, and not on the others."""
    rng = np.random.default_rng(1)
    own, other = [], []
    for _ in range(40):
        X, t, y = rng.normal(size=(600, 4)), rng.integers(0, 2, 600), rng.normal(size=600)
        tree = UpliftTree(max_depth=2, random_state=0)
        own.append(np.nanmax(up.subgroups(tree.fit(X, y, t), X, y, t)["effect"][:-1]))
        half = up.subgroups(UpliftTree(max_depth=2, random_state=0), X, y, t)
        predicted = half.estimator.predict(X[half.rows])
        best = half.group[int(predicted.argmax())]
        other.append(half["effect"][best])
    assert np.mean(own) > 5 * np.std(own) / np.sqrt(40)
    assert abs(np.mean(other)) < 4 * np.std(other) / np.sqrt(40)


def test_scores_and_signs(trial):
    from upturn.meta import TLearner
    from upturn.svm import UpliftSVM

    X, y, t = trial
    X = X[["age", "dose"]].fillna(0)
    model = TLearner(random_state=0).fit(X, y, t)
    found = up.subgroups(model, X, y, t, n_bins=3)
    assert len(found) == 4
    score = model.predict(X)
    assert score[found.group == 0].min() >= score[found.group == 1].max()
    machine = UpliftSVM(p=1.5, ratio=1.05).fit(X, y, t)
    signs = machine.predict_sign(X)
    groups = up.subgroups(machine, X, y, t)
    assert len(groups) == len(np.unique(signs)) + 1
    for i, name in enumerate(groups["group"][:-1].tolist()):
        sign = {"predicted to help (+1)": 1, "predicted neutral (0)": 0, "predicted to harm (-1)": -1}[name]
        assert (signs[groups.group == i] == sign).all()


def test_several_arms_and_a_control_by_name():
    rng = np.random.default_rng(0)
    n = 900
    group, t = rng.integers(0, 2, n), rng.choice(["old drug", "a", "b"], n)
    y = rng.normal(size=n) + (t == "b")
    found = up.subgroups(group, None, y, t, control="old drug")
    assert found["arm"].tolist() == ["a", "b"] * 3
    assert found["group"].tolist() == ["0", "0", "1", "1", "all rows", "all rows"]
    alone = up.subgroups(group[t != "a"], None, y[t != "a"], t[t != "a"], control="old drug")
    assert found["effect"][[1, 3, 5]].tolist() == alone["effect"].tolist()
    assert found["low"][[1, 3, 5]].tolist() == alone["low"].tolist()
    assert found.is_overall.tolist() == [False] * 4 + [True] * 2
    assert [test.arm for test in found.interaction] == ["a", "b", "all arms"]
    packed = up.subgroups(group, None, up.pack(y, t), control="old drug")
    assert packed["effect"].tolist() == found["effect"].tolist()


# ----------------------------------------------------------------------------------- gates

Y, T = np.tile([0, 1], 20), np.repeat([0, 1], 20)


@pytest.mark.parametrize(
    ("by", "X", "options", "message"),
    [
        (np.zeros(7), None, {}, "the groups have 7 row.s. and y has 40"),
        ("sex", None, {}, "X has no named columns"),
        ("sex", pd.DataFrame({"age": Y}), {}, "X has the columns age"),
        ("age", pd.DataFrame({"age": Y[:9]}), {}, "X has 9 rows and y has 40"),
        ({"a": np.arange(40)}, None, {}, "mask of group 'a' is of type int64"),
        ({"a": np.ones(3, bool)}, None, {}, r"shape \(3,\)"),
        ([("a", T == 1), ("a", T == 0)], None, {}, "two groups have the same name"),
        ({}, None, {}, "there are no groups"),
        ([*"ab"] * 19 + [1, 2], None, {"scale": "hazard"}, "scale='hazard'"),
        (Y, None, {"interval": 95}, "interval=95"),
        (Y, None, {"n_bins": 1}, "n_bins=1"),
        (UpliftTree(), None, {}, "X is None"),
    ],
)
def test_errors(by, X, options, message):
    with pytest.raises(ValueError, match=message):
        up.subgroups(by, X, Y, T, **options)


def test_labels_that_cannot_be():
    for by in ([(1, 2)] * 3, np.array([{}] * 40, dtype=object), np.zeros(40, dtype="M8[D]"), 7, np.zeros((40, 2))):
        with pytest.raises((TypeError, ValueError), match=r"the groups|should be a 1d array|expected"):
            up.subgroups(by, None, Y, T)


def test_errors_of_outcomes():
    with pytest.raises(ValueError, match="more than 200 distinct labels"):
        up.subgroups(np.arange(400), None, np.zeros(400), np.tile([0, 1], 200))
    for scale in ("odds_ratio", "nnt"):
        with pytest.raises(ValueError, match="for outcomes of 0 and 1, and y holds others"):
            up.subgroups(Y, None, Y * 2.0, T, scale=scale)
    with pytest.raises(ValueError, match="y holds negative values"):
        up.subgroups(Y, None, Y - 1.0, T, scale="ratio")


def test_small_and_empty_cells_say_so():
    group, y, t = counts(((3, 5), (0, 0)), ((10, 30), (12, 30)))
    with pytest.warns(SmallSampleWarning, match="fewer than 10 rows of an arm in '0'"):
        found = up.subgroups(group, None, y, t)
    assert np.isnan(found["effect"][0])
    assert np.isnan(found["p_holm"][0])
    assert found["p_holm"][1] == found["p_value"][1]  # one comparison is left
    assert found["low_all"][1] == pytest.approx(found["low"][1])
    assert found.interaction[0].freedom == 0


def test_rates_are_printed_per_thousand_and_others_per_person():
    rng = np.random.default_rng(0)
    group, t = rng.integers(0, 2, 600), rng.integers(0, 2, 600)
    y = (rng.random(600) < 0.4 + 0.2 * t).astype(float)
    rates, money = up.subgroups(group, None, y, t), up.subgroups(group, None, 40 * y, t)
    assert "95% intervals, per 1,000 people" in repr(rates)
    assert number_text(1000 * rates["effect"][0]) in repr(rates)
    assert "95% intervals, per person" in repr(money)
    assert number_text(money["effect"][0]) in repr(money)
    ratio = up.subgroups(group, None, y, t, scale="ratio")
    assert "; means per 1,000 people" in repr(ratio)
    assert number_text(ratio["effect"][0]) in repr(ratio)
    both = up.factorial(y, t, group)
    assert "per 1,000 people" in repr(both)
    assert number_text(1000 * both["effect"][0]) in repr(both)
    report = repr(up.check(rng.normal(size=(600, 2)), y, t))
    assert "outcome per 1,000 people" in report
    assert number_text(1000 * y[t == 0].mean()) in report
    assert "effect per person" in repr(up.check(rng.normal(size=(600, 2)), 40 * y, t))
    table = calibration_table(y, group + 0.1, t, n_bins=2)
    assert number_text(1000 * table["observed"][0]) in repr(table)
