"""Row updates of the margin solvers against plain numpy."""

import numpy as np
import pytest

from upturn.kernels import hinge, power, stochastic

N, PROBLEMS, PLANES = 7, 3, 2


def margins(seed=0):
    """Rows of a problem in the middle of an interior-point run, by name."""
    rng = np.random.default_rng(seed)
    cost = rng.uniform(0.5, 2.0, size=(PLANES, N))
    alpha = cost * rng.uniform(0.1, 0.9, size=(PLANES, N))
    return {
        "t": rng.normal(size=N),
        "b": rng.normal(size=PLANES),
        "cost": cost,
        "alpha": alpha,
        "upper": cost - alpha,
        "s": rng.uniform(0.1, 2.0, size=(PLANES, N)),
        "xi": rng.uniform(0.1, 2.0, size=(PLANES, N)),
        "dt": rng.normal(size=N),
        "db": rng.normal(size=PLANES),
        "z": np.array([1.0, -1.0, -1.0, 1.0, 1.0, -1.0, 1.0]),
    }


@pytest.fixture
def state():
    return margins()


def slack(v):
    return 1.0 - v["z"] * (v["t"] - v["b"][:, None])


class Batch:
    """Several problems as the kernels see them; ``q``, ``da``, ... are what they wrote for one of them."""

    def __init__(self):
        self.problems = [margins(seed) for seed in range(PROBLEMS)]
        self.z, self.b = self.problems[0]["z"], np.stack([v["b"] for v in self.problems])
        self.db = np.stack([v["db"] for v in self.problems])
        self.scores = np.stack([[v["t"] for v in self.problems], [v["dt"] for v in self.problems]])
        self.state = np.full((hinge.FIELDS, PROBLEMS * PLANES, N), np.nan)
        for field, name in ((hinge.ALPHA, "alpha"), (hinge.UPPER, "upper"), (hinge.S, "s"), (hinge.XI, "xi")):
            self.state[field] = np.concatenate([v[name] for v in self.problems])
        self.rows, self.sums = np.empty((PROBLEMS, PLANES + 3, N)), np.empty((PROBLEMS, 3 + 3 * PLANES))
        hinge.interior_system(self.z, self.b, self.scores, self.state, self.rows, self.sums)

    def written(self, field):
        return self.state[field].reshape(PROBLEMS, PLANES, N)


def test_interior_system():
    batch = Batch()
    for v, q, rows, sums in zip(batch.problems, batch.written(hinge.Q), batch.rows, batch.sums, strict=True):
        expected = 1.0 / (v["s"] / v["alpha"] + v["xi"] / v["upper"])
        np.testing.assert_allclose(q, expected)
        np.testing.assert_allclose(rows[4] ** 2, expected.sum(axis=0))
        rhs = v["z"] * (v["alpha"] + expected * slack(v))
        np.testing.assert_allclose(rows[:2], expected)
        np.testing.assert_allclose(rows[2], rhs.sum(axis=0))
        np.testing.assert_allclose(rows[3], v["z"] * v["alpha"].sum(axis=0))
        assert sums[0] == pytest.approx(float((v["cost"] * np.maximum(slack(v), 0)).sum()))
        assert sums[0] == pytest.approx(hinge.hinge_loss(v["t"], v["b"], v["z"], v["cost"]))
        assert sums[1] == pytest.approx(v["alpha"].sum())
        assert sums[2] == pytest.approx((v["alpha"] * v["s"] + v["upper"] * v["xi"]).sum())
        np.testing.assert_allclose(sums[3:5], expected.sum(axis=1))
        np.testing.assert_allclose(sums[5:7], rhs.sum(axis=1))
        np.testing.assert_allclose(sums[7:], v["alpha"] @ v["z"])


def test_newton_directions_solve_the_linearised_conditions():
    """The eliminated directions satisfy all four linearised equations, predictor and corrector."""
    batch, reach = Batch(), np.empty((PROBLEMS, 2))
    hinge.predict(batch.z, batch.b, batch.db, batch.scores, batch.state, reach)
    first = batch.written(hinge.D_ALPHA).copy()
    target, lengths = np.array([0.37, 0.1, 1.2]), np.empty(PROBLEMS)
    row_rhs, plane_rhs = np.empty((PROBLEMS, N)), np.empty((PROBLEMS, PLANES))
    hinge.correct(target, batch.z, batch.b, batch.scores, batch.state, row_rhs, plane_rhs)
    hinge.direct(target, batch.z, batch.db, batch.scores, batch.state, lengths)
    for k, v in enumerate(batch.problems):
        a, u, s, xi, da = v["alpha"], v["upper"], v["s"], v["xi"], first[k]
        ds, dxi = -s - s / a * da, -xi + xi / u * da
        move = v["z"] * (v["dt"] - v["db"][:, None])
        residual = -slack(v) + xi - s
        np.testing.assert_allclose(move + dxi - ds, -residual, atol=1e-12)
        length, bend = reach[k]
        assert batch.sums[k, 2] * (1 - length) + length**2 * bend == pytest.approx(
            ((a + length * da) * (s + length * ds) + (u - length * da) * (xi + length * dxi)).sum()
        )
        limit = max(1.0, (-da / a).max(), (da / u).max(), (-ds / s).max(), (-dxi / xi).max())
        assert length == pytest.approx(1.0 / limit)

        q, g = batch.written(hinge.Q)[k], batch.written(hinge.G)[k]
        np.testing.assert_allclose(row_rhs[k], (v["z"] * (a + q * g)).sum(axis=0))
        np.testing.assert_allclose(plane_rhs[k], (v["z"] * (a + q * g)).sum(axis=1))
        ca, cs, cxi = (batch.written(field)[k] for field in (hinge.D_ALPHA, hinge.D_S, hinge.D_XI))
        np.testing.assert_allclose(move + cxi - cs, -residual, atol=1e-11)
        np.testing.assert_allclose(a * cs + s * ca, target[k] - da * ds - a * s, atol=1e-11)
        np.testing.assert_allclose(u * cxi - xi * ca, target[k] + da * dxi - u * xi, atol=1e-11)
        limit = max((-ca / a).max(), (ca / u).max(), (-cs / s).max(), (-cxi / xi).max())
        assert lengths[k] == pytest.approx(1.0 / limit)

    step = np.array([0.25, 0.5, 0.01])
    da, ds, dxi = (batch.written(field).copy() for field in (hinge.D_ALPHA, hinge.D_S, hinge.D_XI))
    hinge.take_step(step, batch.scores, batch.state)
    for k, v in enumerate(batch.problems):
        np.testing.assert_allclose(batch.scores[0, k], v["t"] + step[k] * v["dt"])
        moves = {"alpha": da[k], "upper": -da[k], "s": ds[k], "xi": dxi[k]}
        for field, name in ((hinge.ALPHA, "alpha"), (hinge.UPPER, "upper"), (hinge.S, "s"), (hinge.XI, "xi")):
            np.testing.assert_allclose(batch.written(field)[k], v[name] + step[k] * moves[name])


def test_scale_rows():
    X, f = np.arange(6.0).reshape(3, 2), np.array([2.0, 0.5, -1.0])
    out = np.empty_like(X)
    hinge.scale_rows(X, f, out)
    np.testing.assert_array_equal(out, X * f[:, None])


def test_bordered_matrix_has_a_unit_diagonal():
    rng = np.random.default_rng(3)
    X, q = rng.normal(size=(2, 9, 3)), rng.uniform(0.1, 2.0, size=(2, 2, 9))
    gram = np.stack([x.T @ (x * w.sum(axis=0)[:, None]) for x, w in zip(X, q, strict=True)])
    borders = np.concatenate([q @ X, np.full((2, 2, 3), np.nan)], axis=1)
    sums = np.concatenate([np.full((2, 1), np.nan), q.sum(axis=2)], axis=1)
    scale, out = np.empty((2, 5)), np.empty((2, 5, 5))
    assert hinge.bordered(gram, borders, sums, 1, 0.5, scale, out)
    for k in range(2):
        rows = (
            np.hstack([X[k], -np.ones((9, 1)), np.zeros((9, 1))]),
            np.hstack([X[k], np.zeros((9, 1)), -np.ones((9, 1))]),
        )
        whole = sum(r.T @ (r * w[:, None]) for r, w in zip(rows, q[k], strict=True))
        whole[range(3), range(3)] += 0.5
        np.testing.assert_allclose(scale[k], whole.diagonal() ** -0.5)
        np.testing.assert_allclose(out[k], whole * scale[k] * scale[k][:, None], atol=1e-15)
    alone, matrix = np.empty((2, 3)), np.empty((2, 3, 3))
    assert hinge.bordered(gram, borders, sums, 1, 0.5, alone, matrix)  # without intercepts
    np.testing.assert_allclose(matrix, out[:, :3, :3])
    gram[1, 2, 2] = np.inf
    with np.errstate(invalid="ignore"):  # without the compiler numpy would say so
        assert not hinge.bordered(gram, borders, sums, 1, 0.5, scale, out)


@pytest.mark.parametrize("p", [1.05, 1.2, 1.5, 2.0, 3.7])
def test_power_system(state, p):
    v = state
    alpha, rows, sums = np.empty((2, 7)), np.empty((4, 7)), np.empty(5)
    power.power_system(p, 1e-12, v["b"], v["z"], v["cost"], np.stack([v["t"], v["dt"]]), alpha, rows, sums)
    h = np.maximum(slack(v), 0.0)
    with np.errstate(divide="ignore"):
        q = np.where(h > 0, p * (p - 1) * v["cost"] * h ** (p - 2.0), 0.0)
    np.testing.assert_allclose(alpha, p * v["cost"] * h ** (p - 1.0))
    np.testing.assert_allclose(rows[:2], q)
    np.testing.assert_allclose(rows[2], v["z"] * alpha.sum(axis=0))
    np.testing.assert_allclose(rows[3] ** 2, q.sum(axis=0))
    np.testing.assert_allclose(sums[1:3], q.sum(axis=1))
    assert sums[0] == pytest.approx((v["cost"] * h**p).sum())
    assert sums[0] == pytest.approx(power.power_loss(p, v["t"], v["b"], v["z"], v["cost"]))
    np.testing.assert_allclose(sums[3:], alpha @ v["z"])


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_power_along_is_the_derivative(state, p):
    v = state
    args = (p, v["b"], v["db"], v["z"], v["cost"], np.stack([v["t"], v["dt"]]))
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
    moving, scores = np.full((power.FIELDS, 2, 7), np.nan), np.stack([v["t"], v["dt"]])
    moving[power.ALPHA], moving[power.S] = a, s
    rows, sums = np.empty((5, 7)), np.empty(10)
    power.power_interior_system(p, target, v["b"], v["z"], v["cost"], scores, moving, rows, sums)
    xi = (a / (p * v["cost"])) ** (1.0 / (p - 1.0))
    reach = power.power_interior_direction(p, target, v["db"], v["z"], scores, moving)
    q, g, da, ds = moving[power.Q], moving[power.G], moving[power.D_ALPHA].copy(), moving[power.D_S].copy()
    np.testing.assert_allclose(a * ds + s * da, target - a * s, atol=1e-12)
    move = v["z"] * (v["dt"] - v["db"][:, None])
    np.testing.assert_allclose(move + xi / ((p - 1) * a) * da - ds, slack(v) - xi + s, atol=1e-10)
    assert reach == pytest.approx(1 / max((-da / a).max(), (-ds / s).max(), (da / a).max() / (10 * (p - 1))))
    assert sums[3] == pytest.approx((a * xi).sum())
    np.testing.assert_allclose(rows[:2], q)
    np.testing.assert_allclose(rows[2], (v["z"] * (a + q * g)).sum(axis=0))
    np.testing.assert_allclose(rows[4] ** 2, q.sum(axis=0))
    np.testing.assert_allclose(sums[4:], np.concatenate([q.sum(axis=1), (a + q * g) @ v["z"], a @ v["z"]]))

    comp = power.power_interior_step(0.01, scores, moving)
    np.testing.assert_allclose(moving[power.ALPHA], a + 0.01 * da)
    np.testing.assert_allclose(scores[0], v["t"] + 0.01 * v["dt"])
    assert comp == pytest.approx(((a + 0.01 * da) * (s + 0.01 * ds)).sum())


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
    treated, control, term = [0, 1, 2], [3, 4], np.array([1.3, 0.8, 3.0, 2.0])
    w0, b0 = np.array([0.4, -0.3]), np.array([0.2, -0.1])
    total_w, total_b, count = np.zeros(2), np.zeros(2), 0
    for i in treated:
        for j in treated:
            for k in control:
                for m in control:
                    point = np.zeros((3, 4))
                    point[0] = [*w0, *b0]
                    stochastic.asgd_pass(0, np.array([[i, j, k, m]]), X, z, cost, term, point)
                    np.testing.assert_array_equal(point[1], point[0])  # the mean of one step
                    total_w, total_b, count = total_w + w0 - point[0, :2], total_b + b0 - point[0, 2:], count + 1
    t = X @ w0
    active = cost * (1.0 - z * (t - b0[:, None]) > 0)
    from naive.svm import energy_sum

    _, slope = energy_sum(t, np.arange(5) < 3, np.ones(5), term[0])
    np.testing.assert_allclose(total_w / count, w0 - X.T @ (z * active.sum(axis=0)) + term[1] * X.T @ slope, atol=1e-12)
    np.testing.assert_allclose(total_b / count, active @ z, atol=1e-12)
