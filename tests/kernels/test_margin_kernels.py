"""Row updates of the margin solvers against plain numpy."""

import numpy as np
import pytest

from upturn.kernels import hinge, interior, power, stochastic


@pytest.fixture
def state():
    rng = np.random.default_rng(0)
    n, planes = 7, 2
    cost = rng.uniform(0.5, 2.0, size=(planes, n))
    alpha = cost * rng.uniform(0.1, 0.9, size=(planes, n))
    return {
        "t": rng.normal(size=n),
        "b": np.array([0.3, -0.2]),
        "z": rng.choice([-1.0, 1.0], n),
        "cost": cost,
        "alpha": alpha,
        "upper": cost - alpha,
        "s": rng.uniform(0.1, 2.0, size=(planes, n)),
        "xi": rng.uniform(0.1, 2.0, size=(planes, n)),
        "dt": rng.normal(size=n),
        "db": np.array([0.1, -0.4]),
    }


def slack(v):
    return 1.0 - v["z"] * (v["t"] - v["b"][:, None])


def test_interior_system(state):
    v = state
    q, rows, root, sums = np.empty((2, 7)), np.empty((7, 4)), np.empty(7), np.empty(9)
    hinge.interior_system(v["t"], v["b"], v["z"], v["alpha"], v["upper"], v["s"], v["xi"], q, rows, root, sums)
    expected = 1.0 / (v["s"] / v["alpha"] + v["xi"] / v["upper"])
    np.testing.assert_allclose(q, expected)
    np.testing.assert_allclose(root**2, expected.sum(axis=0))
    rhs = v["z"] * (v["alpha"] + expected * slack(v))
    np.testing.assert_allclose(rows[:, :2].T, expected)
    np.testing.assert_allclose(rows[:, 2], rhs.sum(axis=0))
    np.testing.assert_allclose(rows[:, 3], v["z"] * v["alpha"].sum(axis=0))
    assert sums[0] == pytest.approx(float((v["cost"] * np.maximum(slack(v), 0)).sum()))
    assert sums[0] == pytest.approx(hinge.hinge_loss(v["t"], v["b"], v["z"], v["cost"]))
    assert sums[1] == pytest.approx(v["alpha"].sum())
    assert sums[2] == pytest.approx((v["alpha"] * v["s"] + v["upper"] * v["xi"]).sum())
    np.testing.assert_allclose(sums[3::3], expected.sum(axis=1))
    np.testing.assert_allclose(sums[4::3], rhs.sum(axis=1))
    np.testing.assert_allclose(sums[5::3], v["alpha"] @ v["z"])


def test_newton_directions_solve_the_linearised_conditions(state):
    """The eliminated directions satisfy all four linearised equations, predictor and corrector."""
    v = state
    q, rows, root, sums = np.empty((2, 7)), np.empty((7, 4)), np.empty(7), np.empty(9)
    hinge.interior_system(v["t"], v["b"], v["z"], v["alpha"], v["upper"], v["s"], v["xi"], q, rows, root, sums)
    da, out = np.empty((2, 7)), np.empty(3)
    args = (v["alpha"], v["upper"], v["s"], v["xi"], q)
    reach = hinge.affine_direction(v["t"], v["dt"], v["b"], v["db"], v["z"], *args, da, out)
    a, u, s, xi = args[:4]
    ds, dxi = -s - s / a * da, -xi + xi / u * da
    move = v["z"] * (v["dt"] - v["db"][:, None])
    residual = -slack(v) + xi - s
    np.testing.assert_allclose(move + dxi - ds, -residual, atol=1e-12)
    assert out[0] + reach * out[1] + reach**2 * out[2] == pytest.approx(
        ((a + reach * da) * (s + reach * ds) + (u - reach * da) * (xi + reach * dxi)).sum()
    )
    limit = max(1.0, (-da / a).max(), (da / u).max(), (-ds / s).max(), (-dxi / xi).max())
    assert reach == pytest.approx(1.0 / limit)

    target, first = 0.37, da.copy()
    g, row_rhs, plane_rhs = np.empty((2, 7)), np.empty(7), np.empty(2)
    hinge.corrector_rows(target, v["t"], v["b"], v["z"], *args, da, g, row_rhs, plane_rhs)
    np.testing.assert_allclose(row_rhs, (v["z"] * (a + q * g)).sum(axis=0))
    np.testing.assert_allclose(plane_rhs, (v["z"] * (a + q * g)).sum(axis=1))
    cs, cxi = np.empty((2, 7)), np.empty((2, 7))
    hinge.corrected_direction(target, v["dt"], v["db"], v["z"], *args, g, da, cs, cxi)
    np.testing.assert_allclose(move + cxi - cs, -residual, atol=1e-11)
    np.testing.assert_allclose(a * cs + s * da, target - first * ds - a * s, atol=1e-11)
    np.testing.assert_allclose(u * cxi - xi * da, target + first * dxi - u * xi, atol=1e-11)

    before = [array.copy() for array in (a, u, s, xi)]
    hinge.take_step(0.25, da, cs, cxi, a, u, s, xi)
    for now, then, move in zip((a, u, s, xi), before, (da, -da, cs, cxi), strict=True):
        np.testing.assert_allclose(now, then + 0.25 * move)


def test_scale_rows():
    X, f = np.arange(6.0).reshape(3, 2), np.array([2.0, 0.5, -1.0])
    out = np.empty_like(X)
    hinge.scale_rows(X, f, out)
    np.testing.assert_array_equal(out, X * f[:, None])


@pytest.mark.parametrize("p", [1.05, 1.2, 1.5, 2.0, 3.7])
def test_power_system(state, p):
    v = state
    alpha, rows, root, sums = np.empty((2, 7)), np.empty((7, 3)), np.empty(7), np.empty(5)
    power.power_system(p, 1e-12, v["t"], v["b"], v["z"], v["cost"], alpha, rows, root, sums)
    h = np.maximum(slack(v), 0.0)
    with np.errstate(divide="ignore"):
        q = np.where(h > 0, p * (p - 1) * v["cost"] * h ** (p - 2.0), 0.0)
    np.testing.assert_allclose(alpha, p * v["cost"] * h ** (p - 1.0))
    np.testing.assert_allclose(rows[:, :2].T, q)
    np.testing.assert_allclose(rows[:, 2], v["z"] * alpha.sum(axis=0))
    assert sums[0] == pytest.approx((v["cost"] * h**p).sum())
    assert sums[0] == pytest.approx(power.power_loss(p, v["t"], v["b"], v["z"], v["cost"]))
    np.testing.assert_allclose(sums[2::2], alpha @ v["z"])


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_power_along_is_the_derivative(state, p):
    v = state
    args = (p, v["t"], v["dt"], v["b"], v["db"], v["z"], v["cost"])
    here, up, down = np.empty(3), np.empty(3), np.empty(3)
    power.power_along(0.3, *args, here)
    power.power_along(0.3 + 1e-6, *args, up)
    power.power_along(0.3 - 1e-6, *args, down)
    assert here[1] == pytest.approx((up[0] - down[0]) / 2e-6, rel=1e-6)
    assert here[2] == pytest.approx((up[1] - down[1]) / 2e-6, rel=1e-5)


@pytest.mark.parametrize("p", [1.1, 1.5])
def test_power_interior_directions(state, p):
    """alpha s = target and r - 1 + xi(alpha) = s hold to first order."""
    v, target = state, 0.21
    a, s = v["alpha"], v["s"]
    q, g, rows, root, sums = np.empty((2, 7)), np.empty((2, 7)), np.empty((7, 4)), np.empty(7), np.empty(10)
    args = (p, target, v["t"], v["b"], v["z"], v["cost"], a, s)
    power.power_interior_system(*args, q, g, rows, root, sums)
    xi = (a / (p * v["cost"])) ** (1.0 / (p - 1.0))
    da, ds = np.empty((2, 7)), np.empty((2, 7))
    power.power_interior_direction(p, target, v["dt"], v["db"], v["z"], a, s, q, g, da, ds)
    np.testing.assert_allclose(a * ds + s * da, target - a * s, atol=1e-12)
    move = v["z"] * (v["dt"] - v["db"][:, None])
    np.testing.assert_allclose(move + xi / ((p - 1) * a) * da - ds, slack(v) - xi + s, atol=1e-10)
    assert sums[3] == pytest.approx((a * xi).sum())


def test_coordinate_descent_step_minimises_the_dual_in_one_multiplier():
    rng = np.random.default_rng(1)
    X, z = rng.normal(size=(5, 2)), np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    cost, alpha, w, b = np.full((2, 5), 0.7), np.zeros((2, 5)), np.zeros(2), np.zeros(2)
    norms = (X * X).sum(axis=1) + 9.0
    for _ in range(400):
        stochastic.dcd_pass(np.arange(10), X, z, cost, norms, 3.0, alpha, w, b)
    np.testing.assert_allclose(w, X.T @ (z * alpha.sum(axis=0)), atol=1e-10)
    np.testing.assert_allclose(b, -9.0 * (alpha @ z), atol=1e-10)
    slope = z * (X @ w - b[:, None]) - 1.0
    assert (slope[alpha == 0] >= -1e-6).all()
    assert (slope[alpha == 0.7] <= 1e-6).all()
    assert np.abs(slope[(alpha > 0) & (alpha < 0.7)]).max(initial=0.0) < 1e-6


def test_stochastic_gradient_is_unbiased():
    """(5.3.5) averaged over all quadruples is the subgradient (5.3.3)-(5.3.4), the intercepts' included."""
    rng = np.random.default_rng(2)
    X, z = rng.normal(size=(5, 2)), np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    cost = rng.uniform(0.1, 1.0, size=(2, 5))
    treated, control, alpha, balance = [0, 1, 2], [3, 4], 1.3, 0.8
    w0, b0 = np.array([0.4, -0.3]), np.array([0.2, -0.1])
    total_w, total_b, count = np.zeros(2), np.zeros(2), 0
    for i in treated:
        for j in treated:
            for k in control:
                for m in control:
                    w, b, mean_w, mean_b = w0.copy(), b0.copy(), np.zeros(2), np.zeros(2)
                    draws = np.array([[i, j, k, m]])
                    stochastic.asgd_pass(0, draws, X, z, cost, 3, 2, alpha, balance, w, b, mean_w, mean_b)
                    total_w, total_b, count = total_w + w0 - w, total_b + b0 - b, count + 1
    t = X @ w0
    active = cost * (1.0 - z * (t - b0[:, None]) > 0)
    from naive_svm import energy_sum

    _, slope = energy_sum(t, np.arange(5) < 3, np.ones(5), alpha)
    np.testing.assert_allclose(total_w / count, w0 - X.T @ (z * active.sum(axis=0)) + balance * X.T @ slope, atol=1e-12)
    np.testing.assert_allclose(total_b / count, active @ z, atol=1e-12)


def test_interior_loop_solves_a_problem_with_a_known_answer():
    """Two points at distance 2 on a line and a large cost: w = 1, b = 0, objective ½, the margins through both."""
    X, z, cost = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0]), np.full((1, 2), 100.0)
    w, b, alpha, history = np.zeros(1), np.zeros(1), np.empty((1, 2)), np.empty(60)
    count = interior.interior_loop(X, z, cost, 1e-10, 60, w, b, alpha, history)
    assert history[count - 1] <= 1e-10
    assert w[0] == pytest.approx(1.0, abs=1e-5)
    assert b[0] == pytest.approx(0.0, abs=1e-5)
    np.testing.assert_allclose(alpha, [[0.5, 0.5]], atol=1e-5)
