"""The tests behind check against their definitions: permutations written out, exact tails, known formulas."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from upturn import _balance
from upturn._check import _statistics as statistics


def assignments(n, n1):
    """Every assignment of n1 of n rows to treatment."""
    for chosen in itertools.combinations(range(n), n1):
        treated = np.zeros(n, dtype=bool)
        treated[list(chosen)] = True
        yield treated


@given(st.lists(st.booleans(), min_size=2, max_size=12), st.data())
def test_flag_pvalue_is_the_permutation_tail_doubled(flag, data):
    flag = np.array(flag)
    n1 = data.draw(st.integers(1, len(flag) - 1))
    treated = np.array(data.draw(st.permutations([True] * n1 + [False] * (len(flag) - n1))))
    seen = (flag & treated).sum()
    counts = np.array([(flag & other).sum() for other in assignments(len(flag), n1)])
    expected = min(1.0, 2 * min((counts <= seen).mean(), (counts >= seen).mean()))
    assert _balance.flag_pvalue(flag, treated) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("ones", "n1", "seen"), [(400, 500, 230), (300, 2000, 120), (2500, 1500, 800)])
def test_flag_pvalue_is_close_to_exact_where_it_uses_the_normal_tail(ones, n1, seen):
    n = 5000
    flag, treated = np.zeros(n, bool), np.zeros(n, bool)
    flag[:ones] = True
    treated[:seen] = True
    treated[ones : ones + n1 - seen] = True
    law = stats.hypergeom(n, ones, n1)
    exact = min(1.0, 2 * min(law.cdf(seen), law.sf(seen - 1)))
    assert _balance.flag_pvalue(flag, treated) == pytest.approx(exact, rel=0.25, abs=0.005)


def test_rank_pvalue_has_the_permutation_variance():
    """The rank sum's mean and variance over all assignments are those of the formula, ties included."""
    values = np.array([3.0, 1.0, 1.0, 2.0, 5.0, 2.0, 2.0, 9.0])
    ranks = stats.rankdata(values)
    sums = np.array([ranks[treated].sum() for treated in assignments(8, 3)])
    for treated in itertools.islice(assignments(8, 3), 10):
        z = (ranks[treated].sum() - sums.mean()) / sums.std()
        n, n1 = 8, 3
        centred = ranks - (n + 1) / 2
        variance = n1 * (n - n1) / (n * (n - 1)) * (centred @ centred)
        assert variance == pytest.approx(sums.var())
        assert _balance.two_sided(centred[treated].sum() / math.sqrt(variance)) == pytest.approx(
            2 * stats.norm.sf(abs(z))
        )


@given(st.integers(0, 2**32))
def test_rank_pvalue_agrees_with_mann_whitney(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 40, 200).astype(float)
    treated = rng.random(200) < 0.4
    expected = stats.mannwhitneyu(values[treated], values[~treated], use_continuity=False, method="asymptotic").pvalue
    assert _balance.rank_pvalue(values, treated) == pytest.approx(expected, rel=1e-9)


def test_rank_pvalue_of_special_columns():
    treated = np.arange(100) % 2 == 0
    assert _balance.rank_pvalue(np.ones(100), treated) == 1.0
    assert _balance.rank_pvalue(np.arange(100.0), np.zeros(100, bool)) == 1.0
    two = (np.arange(100) % 3 == 0).astype(float)
    assert _balance.rank_pvalue(two, treated) == _balance.flag_pvalue(two == 1, treated)
    rare = np.zeros(100)
    rare[:6] = np.arange(1, 7)  # few values besides zero: judged as zero or not
    assert _balance.rank_pvalue(rare, treated) == _balance.flag_pvalue(rare == 0, treated)


def test_rank_pvalue_does_not_depend_on_scale_or_outliers():
    rng = np.random.default_rng(0)
    values, treated = rng.standard_normal(300), rng.random(300) < 0.5
    p = _balance.rank_pvalue(values, treated)
    assert _balance.rank_pvalue(np.exp(5 * values), treated) == p
    assert _balance.rank_pvalue(-values, treated) == pytest.approx(p, rel=1e-12)
    assert _balance.rank_pvalue(values, ~treated) == pytest.approx(p, rel=1e-12)


@pytest.mark.parametrize(
    ("n", "ones", "n1"), [(60, 7, 21), (60, 53, 39), (1000, 3, 400), (100_000, 2000, 1500), (50, 25, 49)]
)
def test_count_pvalue_is_exact_where_a_cell_is_small(n, ones, n1):
    law, least, most = stats.hypergeom(n, ones, n1), max(0, ones + n1 - n), min(ones, n1)
    for seen in {least, least + 1, int(law.mean()), int(law.mean()) + 3, most}:
        exact = min(1.0, 2 * min(law.cdf(seen), law.sf(seen - 1)))
        assert _balance.count_pvalue(n, ones, n1, seen) == pytest.approx(exact, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("t", "freedom"), [(0.3, 4), (-2.0, 17.3), (12.0, 2.5), (2.2, np.inf)])
def test_student_tail(t, freedom):
    assert statistics.student_tail(t, freedom) == pytest.approx(stats.t.sf(t, freedom), rel=1e-12)


@pytest.mark.parametrize(
    ("seen", "total", "share"), [(3, 20, 0.5), (0, 15, 0.1), (15, 15, 0.1), (700, 9000, 0.08), (5, 9, 1 / 3)]
)
def test_share_pvalue_of_two_is_exact(seen, total, share):
    found = statistics.share_pvalue(np.array([total - seen, seen]), np.array([1 - share, share]))
    assert found == pytest.approx(stats.binomtest(seen, total, share).pvalue, rel=1e-9)


def test_share_pvalue():
    assert statistics.share_pvalue(np.array([48, 52]), np.array([0.5, 0.5])) == pytest.approx(
        stats.binomtest(52, 100, 0.5).pvalue
    )
    counts = np.array([33_000, 33_500, 33_500])
    assert statistics.share_pvalue(counts, np.full(3, 1 / 3)) == pytest.approx(stats.chisquare(counts).pvalue)
    assert statistics.share_pvalue(np.array([48_000, 52_000]), np.array([0.5, 0.5])) < 1e-30
    assert statistics.share_pvalue(np.array([8000, 2000]), np.array([0.8, 0.2])) == pytest.approx(1.0)


def test_standardised_difference():
    values = np.array([1.0, 2.0, 3.0, 5.0, 7.0, 9.0])
    treated = np.array([0, 0, 0, 1, 1, 1], bool)
    weight = np.ones(6)
    expected = (7 - 2) / math.sqrt((values[:3].var() + values[3:].var()) / 2)
    assert statistics.standardised_difference(values, treated, weight) == pytest.approx(expected)
    doubled = np.concatenate([values, values[:1]])
    assert statistics.standardised_difference(doubled, np.append(treated, False), np.ones(7)) == pytest.approx(
        statistics.standardised_difference(values, treated, np.array([2.0, 1, 1, 1, 1, 1]))
    )
    assert statistics.standardised_difference(np.ones(6), treated, weight) == 0.0
    assert statistics.standardised_difference(treated.astype(float), treated, weight) == np.inf
    assert statistics.standardised_difference(values, treated, np.where(treated, 0.0, 1.0)) == 0.0


def test_mean_difference_is_welch():
    rng = np.random.default_rng(1)
    y, treated = rng.standard_normal(60) ** 2, rng.random(60) < 0.3
    effect = statistics.mean_difference(y, treated, np.ones(60))
    interval = stats.ttest_ind(y[treated], y[~treated], equal_var=False).confidence_interval()
    assert effect.value == pytest.approx(y[treated].mean() - y[~treated].mean())
    assert (effect.low, effect.high) == pytest.approx((interval.low, interval.high))
    scaled = statistics.mean_difference(y, treated, np.full(60, 7.0))
    assert (scaled.value, scaled.se) == pytest.approx((effect.value, effect.se))
    assert np.isnan(statistics.mean_difference(y, np.arange(60) == 0, np.ones(60)).value)


def test_mean_difference_covers():
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(400):
        treated = rng.random(80) < 0.4
        effect = statistics.mean_difference(rng.standard_normal(80) + 0.5 * treated, treated, np.ones(80))
        inside += effect.low <= 0.5 <= effect.high
    assert 0.92 <= inside / 400 <= 0.98


def test_auc_test_written_out():
    score = np.array([0.1, 0.4, 0.4, 0.8, 0.9, 0.4])
    treated = np.array([0, 1, 0, 1, 1, 0], bool)
    wins = [float(a > b) + 0.5 * float(a == b) for a in score[treated] for b in score[~treated]]
    area, p = statistics.auc_test(score, treated)
    assert area == pytest.approx(np.mean(wins))
    ranks = stats.rankdata(score)
    sums = np.array([ranks[other].sum() for other in assignments(6, 3)])
    assert p == pytest.approx(stats.norm.sf((ranks[treated].sum() - sums.mean()) / sums.std()))
    assert statistics.auc_test(np.ones(6), treated) == (0.5, 1.0)
    assert statistics.auc_test(score, np.zeros(6, bool)) == (0.5, 1.0)


def test_calibration_test_finds_what_is_there_and_nothing_else():
    rng = np.random.default_rng(3)
    found = {True: 0, False: 0}
    for _ in range(200):
        score, treated = rng.standard_normal(400), rng.random(400) < 0.5
        noise = rng.standard_t(5, 400)
        for real in (True, False):
            y = 0.3 * treated + (0.5 * score * treated if real else 0) + noise
            found[real] += statistics.calibration_test(y, treated, np.zeros(400), score) < 0.05
    assert found[True] > 150
    assert found[False] < 22  # 10 expected, 3.7 standard errors
    assert statistics.calibration_test(noise, treated, score, np.ones(400)) == 1.0
    assert statistics.calibration_test(noise, np.arange(400) < 3, score, score) == 1.0
