"""The test of whether effects differ, against its formulas by hand and against chance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import cauchy, chi2, norm, rankdata

from upturn._experiment import Experiment
from upturn._table import read_table
from upturn._target import read_target
from upturn.ensemble._evidence import LEVEL, cauchy_combination, feature_scores, weigh_evidence
from upturn.ensemble._losses import Problem


def problem_of(rng, n=300, effect=None):
    X, t = rng.normal(size=(n, 4)), rng.integers(0, 2, n)
    r = rng.normal(size=n) + (t - 0.5) * (0.0 if effect is None else effect(X))
    weight = rng.uniform(0.5, 2, n)
    return X, Problem(np.arange(n), r, t - 0.5, weight, rng.integers(0, 5, n), True)


def test_the_statistics_by_hand():
    rng = np.random.default_rng(0)
    X, problem = problem_of(rng, effect=lambda X: 0.4 * X[:, 0])
    effects = np.column_stack([X[:, 0] + rng.normal(size=300), 3 * X[:, 1], np.full(300, 7.0)])
    found = weigh_evidence(problem, effects, X, 5, 1)
    w, s, r = problem.weight, problem.slope, problem.response

    def left(v):
        Z = np.column_stack([np.ones(300), s])
        return v - Z @ np.linalg.solve(Z.T @ (w[:, None] * Z), Z.T @ (w * v))

    score = np.zeros(300)
    for column in effects[:, :2].T:
        centred = column.copy()
        for f in range(5):
            mine = problem.fold == f
            centred[mine] -= np.average(column[mine], weights=w[mine])
        score += centred / np.sqrt(np.average(centred**2, weights=w))

    def errors(v):
        g = w * left(r) * left(s * v)
        return g.sum() / np.sqrt((g**2).sum())

    assert found.z == pytest.approx(errors(score) / np.sqrt(2))
    single = [abs(errors(column)) for column in X.T]
    assert found.z_feature == pytest.approx(max(single))
    chance = 1 - (1 - 2 * norm.sf(max(single))) ** 4
    G = np.column_stack([w * left(r) * left(s * column) for column in X.T])
    together = chi2.sf(G.sum(axis=0) @ np.linalg.solve(G.T @ G, G.sum(axis=0)), 4)
    both = cauchy.sf(np.mean([cauchy.isf(p) for p in (norm.sf(found.z), chance, together)]))
    assert found.pvalue == pytest.approx(both)
    assert found.enough == (both < LEVEL)
    noise = np.average(left(r) ** 2, weights=w)
    assert found.spread == pytest.approx(4 * np.sqrt(noise / (300 * 0.25)))


def test_by_chance_it_is_seldom_enough_and_with_a_clear_effect_always():
    rng = np.random.default_rng(1)
    false = []
    for _ in range(300):
        X, problem = problem_of(rng, 200)
        effects = np.zeros((200, 1))  # of a linear model, cross-fitted
        for f in range(5):
            train = problem.fold != f
            beta = X[train].T @ (problem.slope * problem.response)[train]
            effects[~train, 0] = X[~train] @ beta
        false.append(weigh_evidence(problem, effects, X, 5, 1).enough)
    assert 0.03 < np.mean(false) < 0.13
    X, problem = problem_of(rng, 200, lambda X: 2 * X[:, 0])
    assert weigh_evidence(problem, X[:, :1], X, 5, 1).enough
    nothing = weigh_evidence(problem, np.ones((200, 2)), np.empty((200, 0)), 5, 1)
    assert (nothing.z, nothing.z_feature, nothing.enough) == (0.0, 0.0, False)
    assert np.isnan(nothing.rows)


def test_features_that_are_copies_count_once_and_many_are_not_looked_at_together():
    rng = np.random.default_rng(3)
    X, problem = problem_of(rng)
    twice = weigh_evidence(problem, X, np.column_stack([X, X[:, :1]]), 5, 1)
    once = weigh_evidence(problem, X, X, 5, 1)
    assert twice.z_feature == pytest.approx(once.z_feature)
    assert abs(twice.pvalue - once.pvalue) < 0.1
    wide = weigh_evidence(problem, X, rng.normal(size=(300, 200)), 5, 1)
    assert 0 < wide.pvalue < 1


def test_several_arms_share_the_level():
    rng = np.random.default_rng(2)
    X, problem = problem_of(rng)
    pvalue = weigh_evidence(problem, X, X, 5, 1).pvalue
    for arms in (1, 2, 5):
        assert weigh_evidence(problem, X, X, 5, arms).enough == (pvalue < 1 - (1 - LEVEL) ** (1 / arms))


def test_p_values_are_combined():
    assert cauchy_combination([0.3, 0.3]) == pytest.approx(0.3)
    assert cauchy_combination([1e-6, 0.9]) < 3e-6
    assert cauchy_combination([0.0, 1.0]) < 1e-6
    uniform = np.random.default_rng(0).random((4000, 2))
    assert np.mean([cauchy_combination(list(pair)) < 0.1 for pair in uniform]) == pytest.approx(0.1, abs=0.015)


def test_features_as_the_second_look_sees_them():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.lognormal(size=100),
            "gap": np.where(rng.random(100) < 0.3, np.nan, rng.normal(size=100)),
            "level": rng.choice(["a", "b", "c"], 100),
            "same": np.ones(100),
        }
    )
    scores = feature_scores(Experiment(*read_table(frame), read_target(np.arange(100.0), np.arange(100) % 2)))
    assert scores.shape == (100, 1 + 2 + 2)
    assert scores[:, 0] == pytest.approx(norm.ppf((rankdata(frame["x"]) - 0.5) / 100))
    assert set(scores[:, 1]) == {0.0, 1.0}
    assert (scores[frame["gap"].isna(), 2] == 0).all()
    assert set(scores[:, 3]) == set(scores[:, 4]) == {0.0, 1.0}
