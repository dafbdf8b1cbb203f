"""Weights of a stack: the exact solution of its small problem, and the choice of the ridge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from upturn.ensemble._weights import LEAST, RIDGES, choose_ridge, fit_weights, fit_without_each, residual_sum


def make(seed, n=200, n_candidates=4, n_free=2, alike=0.0):
    """Free columns, candidates and a response; ``alike`` makes the candidates nearly the same."""
    rng = np.random.default_rng(seed)
    free = np.column_stack([np.ones(n), *rng.normal(size=(n_free - 1, n))])
    common = rng.normal(size=(n, 1))
    candidates = alike * common + (1 - alike) * rng.normal(size=(n, n_candidates)) * rng.gamma(1.0, size=n_candidates)
    response = free @ rng.normal(size=n_free) + candidates @ rng.normal(size=n_candidates) + rng.normal(size=n)
    return np.column_stack([free, candidates, response])


def objective(table, n_free, ridge, b, a):
    free, candidates, response = table[:, :n_free], table[:, n_free:-1], table[:, -1]
    left = candidates - free @ np.linalg.lstsq(free, candidates, rcond=None)[0]
    return ((response - free @ b - candidates @ a) ** 2).sum() + ridge * (a**2) @ (left**2).sum(axis=0)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_candidates=st.integers(1, 6),
    n_free=st.integers(1, 2),
    alike=st.sampled_from([0.0, 0.9, 0.999]),
    ridge=st.sampled_from(RIDGES),
)
def test_no_other_admissible_weights_do_better(seed, n_candidates, n_free, alike, ridge):
    table = make(seed, n_candidates=n_candidates, n_free=n_free, alike=alike)
    found = fit_weights(table.T @ table, n_free, ridge)
    b, a = found[:n_free], found[n_free:]
    assert (a >= 0).all()
    assert a.sum() <= 1 + 1e-12
    best = objective(table, n_free, ridge, b, a)
    rival = minimize(
        lambda v: objective(table, n_free, ridge, v[:n_free], v[n_free:]),
        np.concatenate([b, np.full(n_candidates, 0.5 / n_candidates)]),
        method="SLSQP",
        bounds=[(None, None)] * n_free + [(0, 1)] * n_candidates,
        constraints={"type": "ineq", "fun": lambda v: 1 - v[n_free:].sum()},
        options={"maxiter": 500, "ftol": 1e-14},
    )
    inside = np.maximum(rival.x[n_free:], 0.0)
    inside /= max(1.0, inside.sum())  # it oversteps the constraints by a rounding error or two
    assert best <= objective(table, n_free, ridge, rival.x[:n_free], inside) * (1 + 1e-9) + 1e-9
    rng = np.random.default_rng(seed)
    for _ in range(20):  # and no step towards any other point of the set lowers it
        other = rng.dirichlet(np.ones(n_candidates + 1))[:-1]
        step = a + 1e-4 * (other - a)
        free_b = np.linalg.lstsq(table[:, :n_free], table[:, -1] - table[:, n_free:-1] @ step, rcond=None)[0]
        assert objective(table, n_free, ridge, free_b, step) >= best - 1e-9 * abs(best)


def test_an_infinite_ridge_leaves_the_free_columns():
    table = make(1)
    found = fit_weights(table.T @ table, 2, np.inf)
    assert (found[2:] == 0).all()
    assert found[:2] == pytest.approx(np.linalg.lstsq(table[:, :2], table[:, -1], rcond=None)[0])


def test_units_of_a_candidate_do_not_change_how_it_is_shrunk():
    table = make(3, n_candidates=1)
    table[:, 2] *= 5.0  # so that its weight is well inside
    table[:, -1] = 1.5 * table[:, 2] / 5.0 + 0.1 * table[:, -1]
    scaled = table.copy()
    scaled[:, 2] *= 2.0
    one, other = (fit_weights(t.T @ t, 2, 0.5)[2] for t in (table, scaled))
    assert 0 < one < 1
    assert other == pytest.approx(one / 2)


def test_candidates_of_nothing_and_a_response_of_nothing():
    table = make(4)
    table[:, 3] = 0.0
    found = fit_weights(table.T @ table, 2, 0.1)
    assert np.isfinite(found).all()
    table[:, -1] = 0.0
    assert (fit_weights(table.T @ table, 2, 0.1) == 0).all()


def test_residual_sum_is_that_of_the_rows():
    table, v = make(5), np.arange(6.0)
    assert residual_sum(table.T @ table, v) == pytest.approx(((table[:, -1] - table[:, :-1] @ v) ** 2).sum())


def test_the_ridge_is_the_one_that_does_best_on_folds_left_out():
    table, fold = make(6, n=300), np.arange(300) % 5
    grams = np.array([table[fold == f].T @ table[fold == f] for f in range(5)])

    def cost(ridge):
        learnt = [fit_weights(table[fold != f].T @ table[fold != f], 2, ridge) for f in range(5)]
        return sum(((table[fold == f] @ np.append(-v, 1.0)) ** 2).sum() for f, v in enumerate(learnt))

    costs = [cost(ridge) for ridge in RIDGES]
    assert choose_ridge(grams, 2) == RIDGES[int(np.argmin(costs))]
    assert len(fit_without_each(grams, 2, 0.1)) == 5


def test_noise_gets_the_strongest_ridge_or_no_weight_often():
    """A candidate that says nothing about the response is left out, or nearly."""
    totals = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        table = np.column_stack([np.ones(400), rng.normal(size=(400, 4))])
        fold = np.arange(400) % 5
        grams = np.array([table[fold == f].T @ table[fold == f] for f in range(5)])
        totals.append(fit_weights(grams.sum(axis=0), 1, choose_ridge(grams, 1))[1:].sum())
    assert np.mean(totals) < 0.06
    assert np.mean(np.array(totals) < 0.01) > 0.3


def exponential_by_rows(table, n_free, ridge):
    """The formula of the docstring, row by row."""
    free, candidates, response = table[:, :n_free], table[:, n_free:-1], table[:, -1]
    left = candidates - free @ np.linalg.lstsq(free, candidates, rcond=None)[0]
    rest = response - free @ np.linalg.lstsq(free, response, rcond=None)[0]
    length = np.linalg.norm(left, axis=0)
    t = np.sqrt(len(table)) * (left.T @ rest) / (length * np.linalg.norm(rest))
    shares = np.exp(t - t.max())
    shares[shares < 0.05 * shares.sum()] = 0
    tried, some = [], [j for j in np.argsort(length) if shares[j] > 0]
    while some:
        u = np.array([shares[j] / length[j] if j in some else 0.0 for j in range(len(length))])
        u /= u.sum()
        along = left @ u
        scale = (along @ rest) / ((1 + ridge) * (along @ along))
        tried.append(min(max(scale, LEAST), 1.0) * u)
        if scale <= 1 or length[some[0]] >= 0.5 * max(length[some]):
            break
        some = some[1:]  # without the one that varies least
    a = min(tried, key=lambda a: np.sum((rest - left @ a) ** 2))
    return np.concatenate([np.linalg.lstsq(free, response - candidates @ a, rcond=None)[0], a])


@pytest.mark.parametrize("n_free", [1, 2])
@pytest.mark.parametrize("ridge", RIDGES)
def test_exponential_weights_are_those_of_the_formula(n_free, ridge):
    for seed in range(5):
        table = make(seed, n_candidates=4, n_free=n_free)
        table[:, 0] = 1.0
        table[:, -1] = 0.2 * table[:, n_free] + np.random.default_rng(seed).normal(size=len(table))
        found = fit_weights(table.T @ table, n_free, ridge, "exponential")
        assert found == pytest.approx(exponential_by_rows(table, n_free, ridge), rel=1e-9, abs=1e-12)
        assert (found[n_free:] >= 0).all()
        assert LEAST - 1e-12 <= found[n_free:].sum() <= 1 + 1e-12


def test_exponential_weights_of_candidates_that_tell_nobody_apart():
    table = make(4)
    table[:, 0], table[:, 3] = 1.0, 2.0
    found = fit_weights(table.T @ table, 2, 0.1, "exponential")
    assert found[3] == 0.0
    assert found[2:].sum() > 0
    table[:, 2:-1] = 1.0
    assert (fit_weights(table.T @ table, 2, 0.1, "exponential")[2:] == 0).all()
    assert (fit_weights(make(1).T @ make(1), 2, np.inf, "exponential")[2:] == 0).all()


def test_a_candidate_that_hardly_varies_takes_no_weight_from_one_that_is_right():
    """Its predictions go with effects as well as the other's, and are a hundredth of them: with weights up to 1 it gains next to nothing."""
    rng = np.random.default_rng(0)
    effect = rng.normal(size=2000)
    table = np.column_stack([np.ones(2000), effect, 0.01 * effect, effect + rng.normal(size=2000)])
    right, faint = fit_weights(table.T @ table, 1, 0.0, "exponential")[1:]
    assert right == pytest.approx(1.0, abs=0.05)
    assert faint == 0.0


def test_of_candidates_that_all_vary_too_little_as_many_stay_as_lose_least():
    rng = np.random.default_rng(1)
    effect, noise = rng.normal(size=(2, 2000))
    table = np.column_stack([np.ones(2000), 0.5 * effect, 0.1 * (effect + noise), effect + rng.normal(size=2000)])
    gram = table.T @ table
    found = fit_weights(gram, 1, 0.0, "exponential")
    assert found[1:].sum() == pytest.approx(1.0)
    alone = [fit_weights(gram[np.ix_(some, some)], 1, 0.0, "exponential") for some in ([0, 1, 3], [0, 2, 3])]
    best = min(
        residual_sum(gram, coefficients)
        for coefficients in (np.array([*alone[0], 0.0]), np.array([alone[1][0], 0.0, alone[1][1]]))
    )
    assert residual_sum(gram, found) <= best * (1 + 1e-12)


def test_exponential_weights_keep_an_order_where_nothing_is_gained():
    rng = np.random.default_rng(0)
    table = np.column_stack([np.ones(200), rng.normal(size=(200, 2)), np.zeros(200)])
    table[:, -1] = -table[:, 1] - table[:, 2] + rng.normal(size=200)
    assert (fit_weights(table.T @ table, 1, 0.0)[1:] == 0).all()
    assert fit_weights(table.T @ table, 1, 0.0, "exponential")[1:].sum() == pytest.approx(LEAST)
