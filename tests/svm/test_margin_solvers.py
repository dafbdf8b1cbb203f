"""Margin solvers: every answer carries a proof, and the proof is checked with formulas written from the papers."""

import dataclasses
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from naive.svm import KINDS, dual, energy_sum, margin_problem, pair_sum, primal
from upturn.datasets import simulate_customers
from upturn.svm import (
    DifferentialSVM,
    UpliftSVM,
    VanishingWarning,
    _band,
    _batch,
    _bundle,
    _energy,
    _interior,
    _newton,
    _pairwise,
    _rows,
    _smooth,
    _solve,
    _system,
)
from upturn.svm._energy import EnergyTerm, signed_weights
from upturn.svm._problem import MarginData, MarginProblem, certified, intercept_interval, value_at_zero
from upturn.svm._rows import HingeRows, RowSums
from upturn.svm._solve import solve

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "svm.json").read_text())


@pytest.mark.parametrize("power", [1.0, 1.05, 1.2, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("kind", KINDS)
def test_objective_and_dual_bound_prove_each_other(kind, power):
    """Weak duality: the multipliers are exactly feasible, so objective - dual >= 0, and it is within 1e-8."""
    for seed in range(4):
        for planes in (1, 2):
            data = margin_problem(seed, kind, planes=planes)
            found = solve(MarginProblem(power=power), data)
            above, below = primal(data, found.coef, found.intercepts, power), dual(data, found.alpha, power)
            assert above - below <= 1.001e-8 * abs(above)
            assert above - below >= -1e-9 * abs(above)
            assert found.objective == pytest.approx(above, rel=1e-9, abs=1e-12)
            assert found.gap <= 1e-8


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{row['kind']}-{row['seed']}-{row['power']}")
def test_agrees_with_clarabel(row):
    """Answers of a general conic solver; benchmarks/make_svm_golden.py made them."""
    data = margin_problem(row["seed"], row["kind"])
    found = solve(MarginProblem(power=row["power"]), data)
    assert found.objective == pytest.approx(row["objective"], rel=1e-7)
    w = np.array(row["w"])
    # strong convexity: ½ ‖w - w*‖² is at most the sum of both solvers' gaps
    assert np.linalg.norm(found.coef - w) <= np.sqrt(2 * 4e-7 * row["objective"]) + 1e-6


@pytest.mark.parametrize(
    ("n", "m", "ratio", "lean"), [(13000, 4, 1.1, 1.0), (20000, 12, 1.3, 0.5), (9000, 3, 1.0, 2.0)]
)
def test_band_finds_what_the_interior_point_finds(n, m, ratio, lean):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, m))
    z = np.where(rng.random(n) < 1 / (1 + np.exp(-lean * X[:, 0] - 0.2)), 1.0, -1.0)
    order = np.argsort(z, kind="stable")  # sorted by label: samples must not depend on the order of the rows
    X, z = np.ascontiguousarray(X[order]), z[order]
    data = MarginData(X, z, np.stack([np.where(z > 0, 1.0, ratio), np.where(z > 0, ratio, 1.0)]))
    by_band, by_all = _band.solve(MarginProblem(), data), _interior.solve(MarginProblem(), data)
    assert by_band.solver == "band"
    assert by_band.gap <= 1e-8
    assert by_band.objective == pytest.approx(by_all.objective, rel=2e-8)
    near = (by_all.coef * 1.01, by_all.intercepts + 0.01)
    warm = _band.solve(MarginProblem(), data, near)
    assert warm.objective == pytest.approx(by_all.objective, rel=2e-8)
    assert warm.iterations < by_band.iterations


def test_band_falls_back_when_everything_is_on_a_margin():
    """w = 0: half of all rows sit exactly on a margin, so no band is narrow."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(4500, 3)), 2, axis=0)
    z = np.tile([1.0, -1.0], 4500)
    data = MarginData(X, z, np.ones((2, 9000)))
    found = _band.solve(MarginProblem(), data)
    assert found.gap <= 1e-8
    assert found.vanishing
    assert not found.coef.any()


def weak_labels(lean, n=1500):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    z = np.where(rng.random(n) < 1 / (1 + np.exp(-0.3 - lean * X[:, 0] + 0.1 * X[:, 1])), 1.0, -1.0)
    return MarginData(X, z, np.ones((1, n)))


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8, 1e-10])
@pytest.mark.parametrize("lean", [0.15, 0.3, 0.35, 0.4, 0.45, 0.5, 0.8])
def test_whether_w_is_0_does_not_depend_on_the_tolerance(lean, tol):
    """Labels that differ too little for w to leave 0 (Lemma 3.4.2): decided by the gap of (0, best b) at 1e-8."""
    data = weak_labels(lean)
    problem = MarginProblem(tol=tol)
    exact = _interior.solve(MarginProblem(tol=1e-11), data)
    zero = primal(data, np.zeros(4), np.array([-np.sign(data.z.sum())]), 1.0)
    assert value_at_zero(problem, data) == pytest.approx(zero, rel=1e-14)
    expected = (zero - exact.objective) / zero <= 1e-8
    for found in (
        solve(problem, data),
        _interior.solve(problem, data),
        *_batch.solve(problem, data.X, data.z, [data.cost]),
    ):
        assert found.gap <= tol
        assert found.vanishing == expected
        assert expected == (not found.coef.any())
    assert expected == (lean < 0.42)


def test_general_quadratic_and_linear_terms():
    """½ wᵀHw + fᵀw is the plain problem in other coordinates: w = L⁻ᵀ v with H = L Lᵀ, and a shifted optimum."""
    data = margin_problem(3, "plain", n=60, m=4)
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    H = A @ A.T + np.eye(4)
    L = np.linalg.cholesky(H)
    moved = MarginData(np.ascontiguousarray(np.linalg.solve(L, data.X.T).T), data.z, data.cost)
    plain = solve(MarginProblem(), moved)
    for power, other in ((1.0, plain), (2.0, solve(MarginProblem(power=2.0), moved))):
        found = solve(MarginProblem(power=power, quadratic=H), data)
        assert found.objective == pytest.approx(other.objective, rel=1e-7)
        np.testing.assert_allclose(L.T @ found.coef, other.coef, atol=1e-3 * np.abs(other.coef).max())
    f = rng.normal(size=4)
    for power in (1.0, 1.1, 2.0):
        problem = MarginProblem(power=power, linear=f)
        found = solve(problem, data)
        assert found.gap <= 1e-8
        for _ in range(20):
            w = found.coef + 0.05 * rng.normal(size=4)
            assert primal(data, w, found.intercepts, power) + f @ w >= found.dual_bound


@given(st.integers(0, 10_000))
def test_intercept_interval_holds_all_minimisers(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    scores, z = rng.integers(-4, 5, n) / 2.0, rng.choice([-1.0, 1.0], n)
    cost = rng.integers(1, 4, n).astype(float)
    low, high = intercept_interval(scores - z, cost, float(cost[z < 0].sum()))

    def loss(b):
        return float((cost * np.maximum(0.0, 1.0 - z * (scores - b))).sum())

    grid = np.linspace(-8, 8, 129)
    values = np.array([loss(b) for b in grid])
    best = grid[values <= values.min() + 1e-9]
    inside = (grid >= low - 1e-9) & (grid <= high + 1e-9)
    assert set(best) == set(grid[inside])


@given(st.integers(0, 300))
def test_lemma_3_3_1_first_intercept_is_the_larger(seed):
    data = margin_problem(seed, KINDS[seed % len(KINDS)])
    for power in (1.0, 1.5):
        found = solve(MarginProblem(power=power), data)
        assert found.intercepts[0] >= found.intercepts[1] - 1e-6 * max(1.0, np.abs(found.intercepts).max())


def uplift_data(X, z, C, ratio):
    return MarginData(X, z, C * np.stack([np.where(z > 0, 1.0, ratio), np.where(z > 0, ratio, 1.0)]))


@pytest.mark.parametrize("seed", range(5))
def test_lemma_3_3_2_a_large_ratio_leaves_no_second_penalty(seed):
    base = margin_problem(seed, "plain")
    n_up, n_down = (base.z > 0).sum(), (base.z < 0).sum()
    data = uplift_data(base.X, base.z, 1.0, 1.1 * max(n_up, n_down))
    found = solve(MarginProblem(), data)
    scores = data.X @ found.coef
    slack = np.maximum(0.0, 1.0 - data.z * (scores - found.intercepts[:, None]))
    expensive = np.concatenate([slack[0, data.z < 0], slack[1, data.z > 0]])
    assert expensive.max() <= 1e-5
    # for p > 1 the law of the slacks is smooth, so they only tend to 0 as the ratio grows
    sizes = []
    for ratio in (1.0, 1e2, 1e4, 1e6):
        wide = uplift_data(base.X, base.z, 1.0, ratio)
        found = solve(MarginProblem(power=2.0), wide)
        slack = np.maximum(0.0, 1.0 - wide.z * (wide.X @ found.coef - found.intercepts[:, None]))
        sizes.append(np.concatenate([slack[0, wide.z < 0], slack[1, wide.z > 0]]).max())
    assert sizes[0] > sizes[1] > sizes[2] > sizes[3]
    assert sizes[3] < 1e-3


@pytest.mark.parametrize("power", [1.0, 1.2, 2.0])
def test_lemma_3_3_3_equal_penalties_give_one_hyperplane(power):
    for seed in range(5):
        base = margin_problem(seed, "plain")
        found = solve(MarginProblem(power=power), uplift_data(base.X, base.z, 1.0, 1.0))
        assert found.intercepts[0] == pytest.approx(found.intercepts[1], abs=1e-7)


@given(st.integers(0, 10_000), st.floats(0.0, 1.0), st.floats(1.0, 3.0))
def test_theorem_3_1_1_the_loss_bounds_the_true_uplift_loss(seed, rho, ratio):
    """(3.1.10), the objective's slacks divided by C1, row by row, for any w and b1 >= b2 and u in {-1, 0, 1}."""
    rng = np.random.default_rng(seed)
    score, b = rng.normal(), np.sort(rng.normal(size=2))[::-1]
    treated, y = rng.random() < 0.5, int(rng.random() < 0.5)
    z = 1.0 if (y == 1) == treated else -1.0
    first, second = (max(0.0, 1.0 - z * (score - b[k])) for k in range(2))
    bound = first + ratio * second if z > 0 else ratio * first + second
    a = int(score > b[0]) + int(score > b[1]) - 1
    for other in (0, 1):
        u = y - other if treated else other - y
        loss = -u if a == 1 else u if a == -1 else (0.0 if u == 0 else rho)
        assert loss <= bound + 1e-12


def overlapping(n_each=30):
    """Every x three times with z = +1 and twice with z = -1: nothing to learn, so w = 0 (Lemma 3.4.2, corrected)."""
    x = np.random.default_rng(0).normal(size=(n_each, 2))
    X = np.repeat(x, 5, axis=0)
    return X, np.tile([1.0, 1.0, 1.0, -1.0, -1.0], n_each)


def test_lemma_3_4_1_the_neutral_share_jumps_for_p_1():
    X, z = overlapping()
    at = solve(MarginProblem(), uplift_data(X, z, 1.0, 1.5))  # C2/C1 = |z = +1| / |z = -1|
    assert not at.coef.any()
    np.testing.assert_allclose([at.intercept_low[0], at.intercept_high[0]], [-1.0, 1.0])
    below, above = (solve(MarginProblem(), uplift_data(X, z, 1.0, 1.5 + d)) for d in (-1e-3, 1e-3))

    def neutral(found):
        return float(np.mean((X @ found.coef <= found.intercepts[0]) & (X @ found.coef > found.intercepts[1])))

    assert neutral(below) == 0.0
    assert neutral(above) == 1.0


def test_lp_is_smooth_where_l1_jumps():
    """Around the jump, b1 - b2 of p = 2 moves continuously with the ratio; that of p = 1 leaps from 0 to 2."""
    X, z = overlapping()
    ratios = np.linspace(1.4, 1.6, 41)
    widths = {}
    for power in (1.0, 2.0):
        found = [solve(MarginProblem(power=power), uplift_data(X, z, 1.0, r)) for r in ratios]
        widths[power] = np.diff([f.intercepts[0] - f.intercepts[1] for f in found])
    assert np.abs(widths[1.0]).max() > 0.9
    assert np.abs(widths[2.0]).max() < 0.01


def energy_problem(seed, n=80, m=3, C=1.0, ratio=1.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    treated = rng.random(n) < 1 / (1 + np.exp(-1.5 * X[:, 0]))
    y = rng.random(n) < 1 / (1 + np.exp(-(X[:, 1] + treated * X[:, 2])))
    z = np.where(y == treated, 1.0, -1.0)
    size = np.where(treated, treated.sum(), (~treated).sum())
    data = uplift_data(X, z, C, ratio)
    return MarginData(X, z, data.cost / size), treated


@pytest.mark.parametrize("exponent", [1.0, 1.1, 1.5])
@pytest.mark.parametrize("power", [1.0, 2.0])
def test_energy_solver_reaches_a_minimum(exponent, power):
    """The objective is (5.2.2) computed naively; nothing near the answer is lower."""
    data, treated = energy_problem(1)
    term = EnergyTerm(signed_weights(treated), exponent, 2.0)
    found = solve(MarginProblem(power=power), data, term)
    assert found.gap <= 1e-8

    def objective(w, b):
        return primal(data, w, b, power) + 2.0 * energy_sum(data.X @ w, treated, np.ones(len(treated)), exponent)[0]

    reached = objective(found.coef, found.intercepts)
    assert found.objective == pytest.approx(reached, rel=1e-9)
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(15):
            w, b = found.coef + size * rng.normal(size=3), found.intercepts + size * rng.normal(size=2)
            assert objective(w, b) >= reached * (1 - 1e-8)


def test_energy_slope_equals_the_pair_sum():
    data, treated = energy_problem(2)
    weight = np.random.default_rng(0).exponential(size=len(treated))
    for exponent in (1.0, 1.1, 1.5):
        scores = data.X @ np.array([1.0, -0.5, 0.3])
        value, slope = _energy.energy(scores, signed_weights(treated, weight), exponent)
        naive_value, naive_slope = energy_sum(scores, treated, weight, exponent)
        assert value == pytest.approx(naive_value, rel=1e-10)
        np.testing.assert_allclose(slope, naive_slope, atol=1e-12)


def test_energy_solver_without_weight_is_the_plain_solver():
    data, treated = energy_problem(3)
    plain = solve(MarginProblem(), data)
    assert solve(MarginProblem(), data, EnergyTerm(signed_weights(treated), 1.1, 0.0)).objective == plain.objective
    tiny = solve(MarginProblem(), data, EnergyTerm(signed_weights(treated), 1.1, 1e-9))
    assert tiny.objective == pytest.approx(plain.objective, rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_lemmas_5_2_1_to_5_2_3(seed):
    """With the energy term: b1 >= b2; a large ratio leaves no second penalty; equal penalties, one hyperplane."""
    data, treated = energy_problem(seed, ratio=1.4)
    term = EnergyTerm(signed_weights(treated), 1.1, 1.0)
    found = solve(MarginProblem(), data, term)
    assert found.intercepts[0] >= found.intercepts[1]

    data, treated = energy_problem(seed, ratio=1.0)
    found = solve(MarginProblem(), data, term)
    assert found.intercepts[0] == pytest.approx(found.intercepts[1], abs=1e-7)

    data, treated = energy_problem(seed, ratio=200.0)
    found = solve(MarginProblem(), data, term)
    slack = np.maximum(0.0, 1.0 - data.z * (data.X @ found.coef - found.intercepts[:, None]))
    assert np.concatenate([slack[0, data.z < 0], slack[1, data.z > 0]]).max() <= 1e-5


def pair_problem(seed, n=40, m=3, C=0.05):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    kind = rng.integers(0, 4, n)
    groups = (
        _pairwise.PairGroup(np.flatnonzero(kind == 0), np.flatnonzero(kind == 1), C),
        _pairwise.PairGroup(np.flatnonzero(kind == 2), np.flatnonzero(kind == 3), 1.7 * C),
    )
    return _pairwise.PairData(X, rng.uniform(0.5, 2.0, n), groups)


def naive_pairs(data, w):
    scores = data.X @ w
    total, slope = 0.0, np.zeros(len(scores))
    for group in data.groups:
        loss, part = pair_sum(scores, group.high, group.low, data.weight)
        total, slope = total + group.price * loss, slope + group.price * part
    return 0.5 * float(w @ w) + total, w + data.X.T @ slope


@pytest.mark.parametrize("seed", range(4))
def test_pairwise_objective_and_gradient_equal_the_pair_sum(seed):
    data = pair_problem(seed)
    w = np.random.default_rng(seed).normal(size=3)
    value, slope = _pairwise.objective(data, w)
    naive_value, naive_slope = naive_pairs(data, w)
    assert value == pytest.approx(naive_value, rel=1e-12)
    np.testing.assert_allclose(slope, naive_slope, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("n", "C"), [(40, 0.05), (40, 50.0), (300, 1e-4), (300, 1.0)])
def test_pairwise_solver_is_optimal(n, C):
    """As a margin problem with one row a pair and no intercept it has the same optimum; and the gap is proved."""
    data = pair_problem(5, n=n, C=C)
    found = _pairwise.solve(data)
    assert found.gap <= 1e-8
    assert found.objective >= found.dual_bound * (1 - 1e-12)
    assert found.objective == pytest.approx(_pairwise.objective(data, found.coef)[0], rel=1e-12)
    rows, cost = [], []
    for group in data.groups:
        for i in group.high:
            rows.append(data.X[i] - data.X[group.low])
            cost.append(group.price * data.weight[i] * data.weight[group.low])
    X, cost = np.concatenate(rows), np.concatenate(cost)[None]
    pairs = _interior.solve(MarginProblem(intercept=False), MarginData(X, np.ones(len(X)), cost))
    assert pairs.gap <= 1e-8
    assert found.objective == pytest.approx(pairs.objective, rel=2e-8)


def test_pairwise_solver_freezes_far_pairs():
    """With room for only some pairs in the interior point, the answer and its proof are the same."""
    data = pair_problem(6, n=200, C=0.5)
    everything = _pairwise.solve(data)
    some = _pairwise._by_pairs(data, everything.coef * 1.05, 1e-8, 1500, 0)
    assert some.gap <= 1e-8
    assert some.objective == pytest.approx(everything.objective, rel=2e-8)


def test_pairwise_without_pairs():
    data = _pairwise.PairData(np.ones((3, 2)), np.ones(3), (_pairwise.PairGroup(np.arange(3), np.arange(0), 1.0),))
    assert not _pairwise.solve(data).coef.any()


def test_newton_and_interior_point_agree_for_p_above_1():
    for seed in range(4):
        data = margin_problem(seed, "plain")
        for power in (1.2, 1.5, 2.0):
            problem = MarginProblem(power=power)
            by_newton, by_interior = _newton.solve(problem, data), _newton.primal_dual(problem, data)
            assert by_newton.solver == "newton"
            assert by_newton.objective == pytest.approx(by_interior.objective, rel=2e-8)


def test_newton_hands_over_where_it_takes_long_and_is_certified_there():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 120, 1500)
    X = np.column_stack([level[:, None] == np.arange(120), rng.normal(size=1500)]).astype(float)
    z = np.where(rng.random(1500) < 0.4 + 0.2 * (level < 60), 1.0, -1.0)
    data = MarginData(X, z, 10.0 * np.ones((2, 1500)))
    problem = MarginProblem(power=1.2)
    found = _newton.solve(problem, data)
    assert found.solver == "primal-dual"
    assert found.gap <= problem.tol
    patient = _newton.solve(dataclasses.replace(problem, for_direction=True), data)
    assert patient.solver == "newton"
    assert found.objective == pytest.approx(patient.objective, rel=2e-6)


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_the_better_of_newton_and_the_interior_point_is_kept(max_iter):
    data = margin_problem(0, "plain")
    for power in (1.2, 1.5):
        problem = MarginProblem(power=power, max_iter=max_iter)
        found, alone = _newton.solve(problem, data), _newton.primal_dual(problem, data)
        assert found.gap <= alone.gap
        w, b, alpha, _ = _newton.run(problem, data, (np.zeros(data.n_columns), np.zeros(data.n_planes)), 1e-9, max_iter)
        assert found.gap <= certified(problem, data, w, b, alpha, 0, "newton").gap


@pytest.mark.parametrize("power", [1.0, 1.2, 2.0])
def test_columns_of_levels_are_solved_as_a_sparse_matrix(power, monkeypatch):
    """The same optimum, certified in the caller's coordinates, also with rows that cost nothing and from a start nearby."""
    rng = np.random.default_rng(1)
    level = rng.integers(0, 80, 2500)
    levels = (level[:, None] == np.arange(80)).astype(float)
    X = np.column_stack([(levels - levels.mean(axis=0)) / levels.std(axis=0), rng.normal(size=(2500, 2))])
    z = np.where(rng.random(2500) < 0.4 + 0.2 * (level < 40), 1.0, -1.0)
    cost = np.array([[0.02], [0.03]]) * (rng.random(2500) < 0.9)
    problem, data = MarginProblem(power=power, tol=1e-9), MarginData(X, z, cost)
    thin, shift = _solve.thinned(X)
    np.testing.assert_allclose(thin.toarray() + shift, X, atol=1e-14)
    np.testing.assert_allclose(shift[80:], X[:, 80:].mean(axis=0))
    assert thin.nnz == 3 * 2500
    near, live = solve(problem, MarginData(X, z, 1.1 * cost)), np.flatnonzero(cost[0])
    found = [solve(problem, data), solve(problem, data, start=(near.coef, near.intercepts))]
    monkeypatch.setattr(_solve, "thinned", lambda X: None)
    plain = solve(problem, data)
    for one in found:
        proved = certified(problem, data.take(live), one.coef, one.intercepts, one.alpha[:, live], 0, "")
        assert proved.gap <= 2e-9
        assert one.objective == pytest.approx(plain.objective, rel=1e-8)
        if power > 1.0:
            np.testing.assert_allclose(one.coef, plain.coef, atol=1e-4)
            np.testing.assert_allclose(one.intercepts, plain.intercepts, atol=1e-4)


@pytest.mark.parametrize("power", [1.0, 1.2, 2.0])
@pytest.mark.parametrize("far", [1e7, 1.7e9])
def test_columns_far_from_zero_beside_columns_of_levels_do_no_harm(far, power):
    rng = np.random.default_rng(0)
    level = rng.integers(0, 100, 3000)
    X = np.column_stack([level[:, None] == np.arange(100), far + rng.normal(size=(3000, 2))]).astype(float)
    z = np.where(rng.random(3000) < 0.4 + 0.2 * (level < 40), 1.0, -1.0)
    assert _solve.thinned(X) is not None
    found = solve(MarginProblem(power=power), MarginData(X, z, np.ones((2, 3000))))
    assert found.gap <= 1e-8


def test_what_is_not_thin_stays_dense():
    rng = np.random.default_rng(0)
    assert _solve.thinned(rng.normal(size=(3000, 80))) is None
    levels = (rng.integers(0, 80, 3000)[:, None] == np.arange(80)).astype(float)
    assert _solve.thinned(levels[:1500]) is None
    assert _solve.thinned(levels[:, :50]) is None
    assert _solve.thinned(levels) is not None


def test_rows_without_cost_do_not_matter():
    data = margin_problem(1, "plain", n=50, m=3)
    cost = data.cost.copy()
    cost[:, 40:] = 0.0
    found = solve(MarginProblem(), MarginData(data.X, data.z, cost))
    fewer = solve(MarginProblem(), data.take(np.arange(40)))
    np.testing.assert_allclose(found.coef, fewer.coef)
    assert found.alpha.shape == (2, 50)
    assert not found.alpha[:, 40:].any()


@pytest.mark.parametrize("kind", KINDS)
def test_batches_take_the_same_steps(kind):
    """The points of a grid are solved together: the same answers as one by one, within what both prove."""
    data = margin_problem(2, kind)
    if kind == "one-sided":
        pytest.skip("solved without iterating")
    costs = [data.cost * factor for factor in (1e-3, 0.1, 1.0, 3.0)] + [np.ascontiguousarray(data.cost[::-1])]
    problem = MarginProblem()
    together = list(_batch.solve(problem, data.X, data.z, costs))
    w, b, alpha = _batch.run(problem, _batch._Products(data.X), data.z, np.stack(costs), 0.3e-8)
    for k, (cost, found) in enumerate(zip(costs, together, strict=True)):
        one = MarginData(data.X, data.z, cost)
        alone = _interior.solve(problem, one)
        assert found.gap <= 1e-8
        assert found.objective == pytest.approx(alone.objective, rel=2e-8)
        assert primal(one, w[k], b[k]) == pytest.approx(alone.objective, rel=1e-6)
        assert (alpha[k] >= 0).all()
        assert (alpha[k] <= cost * (1 + 1e-12)).all()


def test_a_batch_that_does_not_end_is_solved_one_by_one(monkeypatch):
    data = margin_problem(1, "plain", n=80, m=4)
    monkeypatch.setattr(_batch, "MOST_ITERATIONS", 3)
    for found, factor in zip(
        _batch.solve(MarginProblem(), data.X, data.z, [data.cost, 9 * data.cost]), (1, 9), strict=True
    ):
        assert found.gap <= 1e-8
        assert found.iterations > 3
        assert found.objective == pytest.approx(
            primal(MarginData(data.X, data.z, factor * data.cost), found.coef, found.intercepts)
        )


def test_an_interior_point_on_rows_in_two_places():
    """Sums of parts add up and the shortest of the longest steps counts: rows may live elsewhere."""
    data = margin_problem(4, "plain", n=90, m=5)
    parts = [HingeRows(data.take(rows)) for rows in (np.arange(30), np.arange(30, 90))]

    class Elsewhere:
        n_columns, n_planes, n_margins = 5, 2, data.cost.size

        def system(self, b):
            first, second = (part.system(b) for part in parts)
            return RowSums(*(getattr(first, f.name) + getattr(second, f.name) for f in dataclasses.fields(RowSums)))

        def predict(self, dw, db):
            (reach, bend), (other, more) = (part.predict(dw, db) for part in parts)
            return min(reach, other), bend + more

        def correct(self, target):
            first, second = (part.correct(target) for part in parts)
            return first[0] + second[0], first[1] + second[1]

        def direct(self, dw, db):
            return min(part.direct(dw, db) for part in parts)

        def step(self, length):
            for part in parts:
                part.step(length)

        def keep(self):
            for part in parts:
                part.keep()

    state = _interior.run(MarginProblem(), Elsewhere(), 1e-9)
    alpha = np.concatenate([part.kept for part in parts], axis=1)
    found = certified(MarginProblem(), data, state.w, state.b, alpha, state.iterations, "interior")
    assert found.gap <= 1e-8
    assert found.objective == pytest.approx(_interior.solve(MarginProblem(), data).objective, rel=2e-8)


def test_stagnation_is_whole_steps_or_many_iterations_without_a_tenth():
    falling, whole = [0.95**k for k in range(20)], [1.0] * 20
    assert not _interior.stagnated(falling, whole[:19])
    assert not _interior.stagnated([1.0] * 4, whole[:3])
    assert _interior.stagnated([1.0] * 5, whole[:4])
    assert not _interior.stagnated([1.0] * 60, [0.01] * 59)
    assert _interior.stagnated([1.0] * 61, [0.01] * 60)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rare_outcomes_of_many_rows_are_certified(seed):
    """Steps are short for a while here: a solver that judges by the gap alone gives up at 1e-2."""
    rng, n = np.random.default_rng(seed), 84_534
    X = np.c_[
        rng.integers(0, 4, n), rng.normal(30, 5, n), rng.normal(0, 1, n), rng.integers(1, 3, n), rng.integers(1, 5, n),
        rng.integers(1, 5, n), rng.integers(1, 3, n),
    ].astype(float)  # fmt: skip
    t = rng.integers(0, 2, n)
    y = (rng.random(n) < 0.008 + 0.012 * t * (X[:, 3] == 2) * (X[:, 4] < 3)).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        warnings.simplefilter("ignore", VanishingWarning)
        model = UpliftSVM(p=1.0).fit(X, y, t)
    assert model.dual_gap_ <= 1e-8


@pytest.mark.parametrize("network", range(4))
def test_pairs_of_categorical_rows_are_certified(network):
    """0-1 columns make thousands of pairs share one margin, where steps on the nearest pairs alone get stuck."""
    data = simulate_customers(1500, network_seed=network, random_state=network)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cost in (1e-2, 1.0, 100.0):
            assert DifferentialSVM(C=1000 * cost / 1500**2).fit(data.X, data.y, data.treatment).dual_gap_ <= 1e-8


def customers(network, n=1500, cost=100.0):
    """The problem SVM-upl solves on 0-1 columns."""
    data = simulate_customers(n, network_seed=network, random_state=network)
    X = np.column_stack([data.X[c].cat.codes == k for c in data.X for k in range(len(data.X[c].cat.categories))])
    X, treated, y = X.astype(float), data.treatment == 1, data.y == 1
    kinds = [np.flatnonzero(rows) for rows in (treated & y, treated & ~y, ~treated & ~y, ~treated & y)]
    price = 1000 * cost / n**2
    groups = (_pairwise.PairGroup(*kinds[:2], price), _pairwise.PairGroup(*kinds[2:], price))
    return _pairwise.PairData(X, np.ones(n), groups)


@pytest.mark.parametrize("network", range(3))
@pytest.mark.parametrize("room", [10_000, 10**6])
def test_pairs_and_planes_prove_each_other(network, room):
    """Two methods, each with a bound: neither bound lies above the other's objective, where many pairs tie or none."""
    data = customers(network, n=700, cost=1.0 if room > 10_000 else 100.0)
    pairs = _pairwise._by_pairs(data, np.zeros(data.X.shape[1]), 1e-8, room, 0)
    planes = _bundle.minimise(lambda w: _pairwise.objective(data, w), np.zeros(data.X.shape[1]), 1e-8)
    assert planes.objective - planes.dual_bound <= 1e-8 * planes.objective
    assert pairs.dual_bound <= planes.objective * (1 + 1e-12)
    assert planes.dual_bound <= pairs.objective * (1 + 1e-12)
    if pairs.gap <= 1e-8:
        apart = pairs.coef - planes.coef  # ½‖w - w*‖² is at most the gap, for both
        assert apart @ apart <= 8e-8 * planes.objective


def test_ties_by_the_hundred_thousand_are_certified():
    """A few columns decide, so whole groups of pairs tie: interior points have no room for them."""
    data = customers(0, n=2000, cost=10.0)
    found = _pairwise.solve(data)
    assert found.solver in ("smooth", "planes")
    assert found.gap <= 1e-8
    for seed in range(5):  # nothing around it is better than the bound allows
        near = found.coef + 10.0 ** -(seed + 1) * np.random.default_rng(seed).normal(size=data.X.shape[1])
        assert _pairwise.objective(data, near)[0] >= found.dual_bound


@pytest.mark.parametrize("network", range(3))
@pytest.mark.parametrize("h", [0.3, 1e-3, 1e-6])
def test_smoothed_hinge_is_the_sum_over_its_pairs(network, h):
    """Slopes, multipliers and Hessian against a visit to every pair, where many tie."""
    data = customers(network, n=300, cost=1.0)
    rng = np.random.default_rng(network)
    w = np.round(rng.normal(size=data.X.shape[1])) / 4
    w += 1e-7 * rng.normal(size=len(w)) if h < 1e-3 else 0.0
    weight = rng.uniform(0.5, 2, len(data.X))
    hinge = _smooth.SmoothHinge(data.X, weight, [(g.high, g.low, g.price) for g in data.groups])
    scores, slope, total, hessian = data.X @ w, np.zeros(len(data.X)), 0.0, np.zeros((len(w), len(w)))
    for group in data.groups:
        v = 1 - scores[group.high][:, None] + scores[group.low][None, :]
        price = group.price * weight[group.high][:, None] * weight[group.low][None, :]
        alpha = price * np.clip(v / h, 0, 1)
        slope[group.high] -= alpha.sum(axis=1)
        slope[group.low] += alpha.sum(axis=0)
        total += alpha.sum()
        for i, j in zip(*np.nonzero((v > 0) & (v < h)), strict=True):
            apart = data.X[group.high[i]] - data.X[group.low[j]]
            hessian += price[i, j] / h * np.outer(apart, apart)
    found, multipliers = hinge.slopes(w, h)
    np.testing.assert_allclose(found, slope, atol=1e-7 * np.abs(slope).max())
    assert multipliers == pytest.approx(total, rel=1e-8)
    if h > 1e-4:  # below, whether a pair is on the edge is a matter of rounding
        np.testing.assert_allclose(hinge.curvature(w, h), hessian, atol=1e-6 * max(np.abs(hessian).max(), 1))


@pytest.mark.parametrize("seed", range(4))
def test_smooth_newton_and_planes_prove_each_other(seed):
    """Rows of 0 and 1 at costs where L-BFGS ends far from the optimum."""
    rng = np.random.default_rng(seed)
    n, m = 800, 20
    X, treated = (rng.random((n, m)) < 0.05).astype(float), rng.random(n) < 0.5
    y = rng.random(n) < 1 / (1 + np.exp(-3 * (X[:, 0] - 0.05) * (2 * treated - 1)))
    kinds = [np.flatnonzero(rows) for rows in (treated & y, treated & ~y, ~treated & ~y, ~treated & y)]
    groups = (_pairwise.PairGroup(*kinds[:2], 0.01), _pairwise.PairGroup(*kinds[2:], 0.01))
    data = _pairwise.PairData(X, np.ones(n), groups)
    hinge = _smooth.SmoothHinge(X, data.weight, [(g.high, g.low, g.price) for g in groups])
    newton = _smooth.minimise(hinge, lambda w: _pairwise.objective(data, w)[0], np.zeros(m), 1e-8)
    found = _pairwise.solve(data)
    assert found.gap <= 1e-8
    assert newton.dual_bound <= found.objective * (1 + 1e-10)
    assert found.dual_bound <= newton.objective * (1 + 1e-10)
    assert newton.objective - newton.dual_bound <= 1e-6 * newton.objective


def test_a_group_of_one_outcome_and_columns_far_from_zero_do_no_harm():
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(600, 3)), np.arange(600) % 2
    y = (rng.random(600) < 0.5 + 0.3 * np.sign(X[:, 0]) * t).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DifferentialSVM().fit(X, np.where(t == 1, 1, y), t)
        near = DifferentialSVM(standardize=False).fit(X, y, t)
        far = DifferentialSVM(standardize=False).fit(X + 2.0**20, y, t)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-4)


def test_a_factor_made_in_panels_is_the_factor(monkeypatch):
    monkeypatch.setattr(_system, "PANEL", 7)
    rng = np.random.default_rng(0)
    for size in (14, 15, 21, 40):
        A = rng.normal(size=(size, size))
        matrix = A @ A.T + np.eye(size)
        lower, positive = _system._cholesky(matrix)
        assert positive
        np.testing.assert_allclose(np.tril(lower), np.linalg.cholesky(matrix), atol=1e-12)
        matrix[-1, -1] = -1.0
        assert not _system._cholesky(matrix)[1]


def test_a_rotated_kernel_machine_is_the_same_in_panels(monkeypatch):
    data = margin_problem(3, "plain", n=60, m=30)
    whole = solve(MarginProblem(), data)
    monkeypatch.setattr(_system, "PANEL", 5)
    monkeypatch.setattr(_rows, "LONG", 1)
    panels = solve(MarginProblem(), data)
    assert panels.gap <= 1e-8
    np.testing.assert_allclose(panels.coef, whole.coef, atol=1e-4)


def wide_pairs(n, m, price):
    rng = np.random.default_rng(0)
    X, kind = rng.normal(size=(n, m)), rng.integers(0, 4, n)
    X[:, 0] += kind % 2
    groups = [_pairwise.PairGroup(*(np.flatnonzero(kind == k) for k in pair), price) for pair in ((0, 1), (2, 3))]
    return _pairwise.PairData(X, np.ones(n), tuple(groups))


@pytest.mark.parametrize("n", [60, 200])
def test_pairs_with_more_columns_than_rows_are_solved_among_the_rows(n):
    data = wide_pairs(n, 300, 1e-2)
    found = _pairwise.solve(data)
    assert found.gap <= 1e-8
    value, _ = _pairwise.objective(data, found.coef)
    assert value == pytest.approx(found.objective, rel=1e-12)
    squeezed = np.linalg.lstsq(data.X.T, found.coef, rcond=None)[0]
    np.testing.assert_allclose(data.X.T @ squeezed, found.coef, atol=1e-10)  # w lies in the space of the rows
    tall = _pairwise.solve(
        dataclasses.replace(data, X=np.vstack([data.X, np.zeros((300, 300))]), weight=np.ones(n + 300))
    )
    assert found.objective == pytest.approx(tall.objective, rel=2e-8)


def test_pairs_of_very_many_columns_need_no_square_matrix(monkeypatch):
    data = wide_pairs(400, 30, 1e-4)
    usual = _pairwise.solve(data)
    monkeypatch.setattr(_pairwise, "MOST_COLUMNS", 10)
    monkeypatch.setattr(_smooth, "minimise", None)
    monkeypatch.setattr(_pairwise, "_by_pairs", None)
    planes = _pairwise.solve(data)
    assert planes.gap <= 1e-8
    assert planes.objective == pytest.approx(usual.objective, rel=2e-8)


def test_a_reduced_problem_that_runs_to_infinity_has_no_finite_bound():
    """The band then takes more rows; an error of scipy's would end the fit instead."""
    problem = MarginProblem(quadratic=2.0 * np.eye(2))
    with np.errstate(all="ignore"):
        assert not np.isfinite(problem.conjugate(np.array([np.inf, 0.0])))
        assert not np.isfinite(problem.conjugate(np.array([np.nan, 1.0])))
    assert problem.conjugate(np.array([2.0, 4.0])) == pytest.approx(5.0)
