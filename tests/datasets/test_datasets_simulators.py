"""Every simulator's stated truth against a Monte Carlo estimate, and against its formulas written out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="simulators of mixed columns need the extra [data]")

from upturn import datasets
from upturn.datasets import _customers, _patterns, _responses

N = 40_000
SIMULATORS = {
    **{
        f"{name}-{theta}": lambda n, seed, name=name, theta=theta: datasets.simulate_pattern(name, n, theta, seed)
        for name in ("crenel1", "crenel2")
        for theta in (0.6, 0.9, 1.0)
    },
    **{
        name: lambda n, seed, name=name: datasets.simulate_pattern(name, n, random_state=seed)
        for name in ("trigonometric", "scissors", "continuous")
    },
    "feature selection": lambda n, seed: datasets.simulate_feature_selection(n, random_state=seed),
    "zhao 2d": lambda n, seed: datasets.simulate_zhao_2d(n, seed),
    "zhao 50d": lambda n, seed: datasets.simulate_zhao_50d(n, random_state=seed),
    "zhao 12d, 7 arms": lambda n, seed: datasets.simulate_zhao_50d(n, arms=7, n_features=12, random_state=seed),
    "customers": lambda n, seed: datasets.simulate_customers(n, random_state=seed),
    "crescents": lambda n, seed: datasets.simulate_crescents(n, seed),
    "biased binary": lambda n, seed: datasets.simulate_biased(n, random_state=seed),
    "biased real": lambda n, seed: datasets.simulate_biased(n, outcome="real", random_state=seed),
    "campaign purchase": lambda n, seed: datasets.simulate_campaign(n, random_state=seed),
    "campaign revenue": lambda n, seed: datasets.simulate_campaign(n, "revenue", random_state=seed),
}
every_simulator = pytest.mark.parametrize("simulate", SIMULATORS.values(), ids=SIMULATORS.keys())


def codes(treatment):
    """Arms as numbers in the order of the response's columns: control first, the others sorted."""
    labels = sorted(set(treatment.tolist()), key=lambda label: (label not in (0, "control"), label))
    return np.array([labels.index(label) for label in treatment.tolist()])


def numbers(X):
    """X as numbers: categories by their codes, missing values by the mean."""
    if not hasattr(X, "columns"):
        return X
    columns = [X[c].cat.codes if isinstance(X[c].dtype, pd.CategoricalDtype) else X[c] for c in X.columns]
    return np.column_stack([np.nan_to_num(c.to_numpy(float), nan=np.nanmean(c.to_numpy(float))) for c in columns])


def assert_mean_zero(values, what):
    """A mean of independent values with expectation zero: four and a half standard errors at most, in every column."""
    values = values.reshape(len(values), -1)
    mean, error = values.mean(axis=0), values.std(axis=0) / math.sqrt(len(values))
    assert (np.abs(mean) <= 4.5 * error + 1e-9).all(), (what, float(np.max(np.abs(mean) / np.maximum(error, 1e-12))))


@every_simulator
def test_the_truth_equals_a_monte_carlo_estimate(simulate):
    """E[Y | x, arm] = response: in every arm the residual has mean zero, in total, within slices of the effect, and
    against every feature and its square."""
    data = simulate(N, 1)
    response, arm = data.details["response"], codes(data.treatment)
    assert response.shape == (N, arm.max() + 1)
    effect = np.asarray(data.effect).reshape(N, -1)
    np.testing.assert_allclose(effect, response[:, 1:] - response[:, :1], atol=1e-12)
    assert data.effect.ndim == (1 if arm.max() == 1 else 2)
    residual = data.y - response[np.arange(N), arm]
    features = numbers(data.X)
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    for a in range(arm.max() + 1):
        here = arm == a
        assert here.sum() > 1000
        assert_mean_zero(residual[here], f"arm {a}")
        assert_mean_zero(residual[here, None] * features[here], f"arm {a} against the features")
        assert_mean_zero(residual[here, None] * (features[here] ** 2 - 1), f"arm {a} against their squares")
        for column in effect.T:
            edges = np.unique(np.quantile(column, np.linspace(0, 1, 11)[1:-1]))
            which = np.searchsorted(edges, column)
            for part in np.unique(which):
                inside = here & (which == part)
                if inside.sum() > 50:
                    assert_mean_zero(residual[inside], f"arm {a}, slice {part} of the effect")


@every_simulator
def test_assignment_is_as_stated(simulate):
    data = simulate(N, 2)
    arm = codes(data.treatment)
    propensity = data.details.get("propensity")
    if propensity is None:  # randomised: arms of equal size, features alike in every arm
        share = np.bincount(arm) / N
        assert np.abs(share - 1 / len(share)).max() < 0.012
        features = numbers(data.X)
        for a in range(len(share)):
            assert_mean_zero(((arm == a) - share[a])[:, None] * (features - features.mean(axis=0)), f"arm {a}")
    else:
        assert_mean_zero(arm - propensity, "propensity")
        assert_mean_zero((arm - propensity)[:, None] * data.X, "propensity against the features")
        assert (((arm == 1) - 0.5) * data.X[:, 0]).mean() > 0.1


@every_simulator
def test_the_same_seed_gives_the_same_data_and_another_seed_another(simulate):
    a, b, c = simulate(60, 7), simulate(60, 7), simulate(60, 8)
    assert a.y.tobytes() == b.y.tobytes()
    assert a.effect.tobytes() == b.effect.tobytes()
    assert a.treatment.tolist() == b.treatment.tolist()
    if hasattr(a.X, "columns"):
        pd.testing.assert_frame_equal(a.X, b.X)
    else:
        assert a.X.tobytes() == b.X.tobytes()
    assert (a.y.tolist(), a.treatment.tolist()) != (c.y.tolist(), c.treatment.tolist())
    generators = simulate(60, np.random.default_rng(7)), simulate(60, np.random.default_rng(7))
    assert generators[0].y.tobytes() == generators[1].y.tobytes()
    assert len(simulate(60, np.random.RandomState(3))) == len(simulate(60, None)) == 60
    assert len(a) == 60


def naive_pattern(name, x, theta):
    i = min(int(x), 9) + 1
    if name == "crenel1":
        return (1 - theta, theta) if i in (1, 3, 5, 7, 9) else (theta, 1 - theta)
    if name == "crenel2":
        return (1 - theta, theta) if i in (1, 3, 5, 7, 9) else (0.5, 0.5)
    if name == "trigonometric":
        return 0.5 + 0.5 * math.cos(i * 2 * math.pi / 10), 0.5 + 0.5 * math.sin(i * 2 * math.pi / 10)
    if name == "scissors":
        return 1 - i / 10, i / 10
    return 0.5, x / 10


@pytest.mark.parametrize("name", _patterns._PATTERNS)
@pytest.mark.parametrize("theta", [0.6, 1.0])
def test_patterns_written_out(name, theta):
    x = np.append(np.random.default_rng(0).uniform(0, 10, 300), [0.0, 1.0, 5.0, 9.999, 10.0])
    expected = [naive_pattern(name, value, theta) for value in x]
    found = _patterns._pattern_response(name, x, theta)
    np.testing.assert_allclose(found, expected, atol=1e-15)
    assert ((found >= 0) & (found <= 1)).all()


def test_2d_values_of_the_paper():
    data = datasets.simulate_zhao_2d(400_000, 0)
    response = data.details["response"]
    np.testing.assert_allclose(response.mean(axis=0), [25, 25], atol=0.15)
    assert response.max(axis=1).mean() == pytest.approx(26.25, abs=0.1)
    for arm in (0, 1):  # among 400,000 rows also small slips show
        assert_mean_zero((data.y - response[:, arm])[data.treatment == arm], f"arm {arm}")
    x1, in_b = data.X["X1"].to_numpy(), (data.X["X2"] == "B").to_numpy()
    np.testing.assert_allclose(data.effect, np.where(in_b, 5 - x1 / 10, x1 / 10 - 5), atol=1e-12)


def test_50d_values_of_the_paper():
    """5.18 for a fixed arm and 5.79 for the best rule in the paper; 5.185 and 5.785 here."""
    data = datasets.simulate_zhao_50d(200_000, random_state=3)
    response = data.details["response"]
    error = response.std() / math.sqrt(len(data))
    assert np.abs(response.mean(axis=0) - 5.185).max() < 4 * error < 0.01
    assert abs(response.max(axis=1).mean() - 5.785) < 4 * error
    t = np.arange(1, 4)
    np.testing.assert_allclose(data.effect, 0.2 * (data.X[:, t] - data.X[:, :1]), atol=1e-12)


@pytest.mark.parametrize(("arms", "effect_size"), [(2, 1.0), (7, 0.3)])
def test_50d_with_any_number_of_arms(arms, effect_size):
    data = datasets.simulate_zhao_50d(150_000, arms=arms, effect_size=effect_size, random_state=0)
    response = data.details["response"]
    assert response[:, 0].mean() == pytest.approx(4.185 + 2.5 * effect_size, abs=0.02)
    assert response.max(axis=1).mean() == pytest.approx(4.185 + 5 * effect_size * arms / (arms + 1), abs=0.02)
    assert set(np.bincount(data.treatment).tolist()) <= {150_000 // arms, 150_000 // arms + 1}


def test_50d_f_written_out():
    X = np.random.default_rng(5).uniform(0, 10, (4100, 50))  # more than a block of rows
    a, b, c = _responses._bumps(0, 50)
    f = _responses._f(X, 0)
    for row in (0, 1, 4095, 4096, 4099):
        total = 0.0
        for i in range(50):
            total += a[i] * math.exp(-sum(b[i, d] * abs(X[row, d] - c[i, d]) for d in range(50)))
        assert f[row] == pytest.approx(total, rel=1e-12)
    assert (
        datasets.simulate_zhao_50d(10, model_seed=1, random_state=0).y[0]
        != datasets.simulate_zhao_50d(10, random_state=0).y[0]
    )


def brute_force_posterior(network, hidden, row):
    """P(hidden | the rest) from the joint probability of the whole row."""
    joint = []
    for level in range(network.sizes[hidden]):
        values = row.copy()
        values[hidden] = level
        p = 1.0
        for node, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True)):
            configurations = list(itertools.product(*(range(network.sizes[q]) for q in parents)))
            p *= table[configurations.index(tuple(values[parents])), values[node]]
        joint.append(p)
    return np.array(joint) / sum(joint)


@pytest.mark.parametrize("seed", range(3))
def test_customers_effect_by_enumeration(seed):
    rng = np.random.default_rng(seed)
    network, hidden = _customers._random_network(rng, 8, 12)
    assert sum(len(parents) for parents in network.parents) == 12
    values = network.sample(rng, 25)
    expected = [brute_force_posterior(network, hidden, row) for row in values]
    np.testing.assert_allclose(network.posterior(hidden, values), expected, rtol=1e-12)


def test_customers_of_the_paper():
    data = datasets.simulate_customers(random_state=0)
    assert len(data) == 10_000
    assert data.X.shape[1] == 19
    behaviour = {"persuadable": (0, 1), "sure thing": (1, 1), "lost cause": (0, 0), "sleeping dog": (1, 0)}
    group = data.details["group"]
    for name, outcomes in behaviour.items():
        for arm in (0, 1):
            here = (group == name) & (data.treatment == arm)
            assert here.any()
            assert (data.y[here] == outcomes[arm]).all()
    unit = {"persuadable": 1, "sure thing": 0, "lost cause": 0, "sleeping dog": -1}
    assert data.details["unit_effect"].tolist() == [unit[name] for name in group.tolist()]
    assert_mean_zero(data.details["unit_effect"] - data.effect, "unit effects")
    assert data.effect.std() > 0.1  # the features say something about the group


def test_customers_network_has_the_asked_size():
    network, hidden = _customers._random_network(np.random.default_rng(0), 20, 30)
    assert len(network.sizes) == 20
    assert sum(len(parents) for parents in network.parents) == 30
    assert network.sizes[hidden] == 4
    for node, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True)):
        assert all(parent < node for parent in parents)
        assert table.shape == (math.prod(int(network.sizes[q]) for q in parents), network.sizes[node])
        np.testing.assert_allclose(table.sum(axis=1), 1)


def test_crescents_are_separable_by_parallel_lines():
    data = datasets.simulate_crescents(3000, 0)
    group, x = data.details["group"], data.X[:, 0]
    assert np.bincount(group + 1).tolist() == [1000, 1000, 1000]
    assert x[group == -1].max() < -0.7 < x[group == 0].min()
    assert x[group == 0].max() < 0.7 < x[group == 1].min()
    assert data.effect.tolist() == group.tolist()
    # the crescents alone are better told apart along another direction
    between = data.X[group == 1].mean(axis=0) - data.X[group == -1].mean(axis=0)
    assert abs(math.degrees(math.atan2(between[1], between[0]))) > 10


@pytest.mark.parametrize("shape", _patterns._SHAPES)
def test_shapes_have_mean_zero_and_variance_one(shape):
    fine = np.linspace(-9, 9, 400_001)
    density = np.exp(-(fine**2) / 2) / math.sqrt(2 * math.pi) * (fine[1] - fine[0])
    values = shape(fine)
    assert (values * density).sum() == pytest.approx(0, abs=1e-6)
    assert (values**2 * density).sum() == pytest.approx(1, abs=1e-6)


def test_feature_kinds():
    data = datasets.simulate_feature_selection(2000, 3, 2, 5, random_state=0)
    kinds = data.details["kind"]
    assert list(kinds) == list(data.X.columns)
    assert sorted(kinds.values()) == ["class"] * 2 + ["irrelevant"] * 5 + ["uplift"] * 3
    assert all(name.endswith(kind) for name, kind in kinds.items())
    # logits: class features alone explain control, uplift features alone the difference
    logit = np.log(data.details["response"] / (1 - data.details["response"]))
    for target, kind in ((logit[:, 0], "class"), (logit[:, 1] - logit[:, 0], "uplift")):
        columns = [name for name in kinds if kinds[name] == kind]
        shapes = np.column_stack(
            [s(data.X[c].to_numpy()) for c in columns for s in _patterns._SHAPES] + [np.ones(2000)]
        )
        assert np.abs(shapes @ np.linalg.lstsq(shapes, target, rcond=None)[0] - target).max() < 1e-8


def test_weighting_by_the_propensity_repairs_the_biased_set():
    data = datasets.simulate_biased(N, bias=1.5, outcome="real", random_state=0)
    t, y, e = data.treatment, data.y, data.details["propensity"]
    naive = y[t == 1].mean() - y[t == 0].mean()
    w1, w0 = t / e, (1 - t) / (1 - e)
    weighted = (w1 * y).sum() / w1.sum() - (w0 * y).sum() / w0.sum()
    truth = data.effect.mean()
    assert abs(naive - truth) > 0.3
    assert abs(weighted - truth) < 0.08
    assert np.allclose(datasets.simulate_biased(10, bias=0.0, random_state=0).details["propensity"], 0.5)


def test_campaign_has_what_a_campaign_has():
    data = datasets.simulate_campaign(20_000, random_state=0)
    assert [str(dtype) for dtype in data.X.dtypes] == (
        ["float64"] * 4 + ["int64", "category", "category", "bool", "int64"]
    )
    missing = data.X.isna()
    assert missing.sum().to_dict().keys() >= {"age", "income", "channel"}
    assert all(200 < missing[name].sum() < 4000 for name in ("age", "income", "channel"))
    for arm in ("call", "coupon"):  # missing at random with respect to the offer
        a, b = missing[data.treatment == arm].mean(), missing[data.treatment == "control"].mean()
        assert (a - b).abs().max() < 0.02
    assert data.details["cost"] == {"call": 4.0, "coupon": 1.0}
    assert ((data.effect < 0).mean(axis=0) > 0.1).all()  # each offer harms someone
    revenue = datasets.simulate_campaign(20_000, "revenue", random_state=0)
    assert ((revenue.y > 0) == (data.y == 1)).all()
    np.testing.assert_array_equal(revenue.y, data.details["revenue"])
    np.testing.assert_array_equal(revenue.details["response"], data.details["revenue_response"])
    spent = data.details["revenue"][(data.y == 1) & (data.treatment == "control")].mean()
    assert spent == pytest.approx(data.details["value"], rel=0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.simulate_pattern("zigzag"), "pattern='zigzag': expected 'crenel1'"),
        (lambda: datasets.simulate_pattern(n=0), "n=0: expected a whole number of at least 1"),
        (lambda: datasets.simulate_pattern(theta=0.2), "theta=0.2: expected a probability from"),
        (lambda: datasets.simulate_pattern(n=2.5), "n=2.5"),
        (lambda: datasets.simulate_zhao_50d(arms=1), "arms=1"),
        (
            lambda: datasets.simulate_zhao_50d(arms=5, n_features=4),
            "n_features=4: expected at least 5: each of the arms needs a feature",
        ),
        (lambda: datasets.simulate_customers(nodes=4, edges=7), "edges=7: expected 1 to 6"),
        (lambda: datasets.simulate_biased(outcome="count"), "outcome='count'"),
        (lambda: datasets.simulate_biased(n_features=3), "n_features=3"),
        (lambda: datasets.simulate_campaign(outcome="visit"), "outcome='visit'"),
        (lambda: datasets.simulate_feature_selection(n_uplift=0, n_class=0, n_irrelevant=0), "=0: expected"),
    ],
)
def test_errors_say_what_was_expected(call, message):
    with pytest.raises(ValueError, match=message):
        call()
