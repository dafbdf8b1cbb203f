"""Simulated sets with a known effect: each is a function of (rows, seed)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from upturn.datasets import (
    UpliftData,
    simulate_biased,
    simulate_campaign,
    simulate_crescents,
    simulate_customers,
    simulate_feature_selection,
    simulate_zhao_2d,
    simulate_zhao_50d,
)

Draw = Callable[[int, int], UpliftData]


def _logistic(value):
    return 0.5 * (1 + np.tanh(0.5 * value))


def _binary(rng, X, logit, change, treated=0.5):
    """0/1 outcomes: ``logit`` without the treatment, ``change`` is what it adds to it."""
    n = len(logit)
    t = (rng.random(n) < treated).astype(np.int64)
    response = _logistic(np.column_stack([logit, logit + change]))
    y = (rng.random(n) < response[np.arange(n), t]).astype(np.int64)
    return _data(X, y, t, response)


def _real(rng, X, base, effect, noise, treated=0.5):
    n = len(base)
    t = (rng.random(n) < treated).astype(np.int64)
    return _data(X, base + effect * t + noise, t, np.column_stack([base, base + effect]))


def _data(X, y, t, response):
    return UpliftData(X, y, t, response[:, 1] - response[:, 0], details={"response": response})


def _correlated(rng, n, columns, rho=0.5):
    """Normal columns, neighbours correlated by ``rho``."""
    X = rng.standard_normal((n, columns))
    for j in range(1, columns):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X


def randomised(n, seed):
    """Ten columns, a smooth effect of three of them, a moderate main effect of three others."""
    rng = np.random.default_rng([1, seed])
    X = rng.standard_normal((n, 10))
    return _binary(rng, X, -0.5 + 0.5 * X[:, 3] + 0.3 * X[:, 4], 0.3 + 0.5 * X[:, 0] + 0.5 * np.tanh(2 * X[:, 1]) - 0.3 * X[:, 2])  # fmt: skip


def rare(n, seed):
    """A promotion: 1% buyers, whom it wins among one kind of customers; mostly whole-numbered columns."""
    rng = np.random.default_rng([2, seed])
    X = np.column_stack([rng.integers(0, 4, n), rng.normal(30, 5, n), rng.normal(0, 1, n), *(rng.integers(1, k, n) for k in (3, 5, 5, 3))]).astype(float)  # fmt: skip
    rate = np.full(n, 0.008)
    gain = 0.012 * ((X[:, 3] == 2) & (X[:, 4] < 3))
    t = rng.integers(0, 2, n)
    y = (rng.random(n) < rate + gain * t).astype(np.int64)
    return _data(X, y, t, np.column_stack([rate, rate + gain]))


def thin(n, seed):
    """An effect spread thin over 70 weak columns, beside a main effect over the same ones."""
    rng = np.random.default_rng([3, seed])
    slopes = np.random.default_rng(70).standard_normal((2, 70)) / np.sqrt(70)
    X = _correlated(rng, n, 70, 0.3)
    return _binary(rng, X, -0.5 + 0.7 * X @ slopes[0], 0.2 + 0.9 * X @ slopes[1])


def prognostic(n, seed):
    """Real outcomes driven by strong prognostic features; the effect is a tenth of their spread."""
    rng = np.random.default_rng([4, seed])
    X = rng.standard_normal((n, 12))
    base = 3 * X[:, 0] + 2 * np.sin(2 * X[:, 1]) + 1.5 * X[:, 2] * X[:, 3] + np.abs(X[:, 4])
    return _real(rng, X, base, 0.5 + 0.5 * X[:, 5] + 0.3 * X[:, 0], rng.standard_normal(n))


def prognostic_binary(n, seed):
    """0/1 outcomes driven by strong prognostic features."""
    rng = np.random.default_rng([5, seed])
    X = rng.standard_normal((n, 12))
    return _binary(rng, X, 1.5 * X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2], 0.3 + 0.6 * X[:, 5] - 0.4 * (X[:, 6] > 0))


def heavy_tails(n, seed):
    """Noise of a t distribution with 2.5 degrees of freedom, correlated features."""
    rng = np.random.default_rng([6, seed])
    X = _correlated(rng, n, 15, 0.7)
    effect = np.where(X[:, 0] + X[:, 5] > 0, 1.0, -0.3) + 0.4 * X[:, 10]
    return _real(rng, X, X[:, 1] + 0.5 * X[:, 6] ** 2, effect, rng.standard_t(2.5, n))


def confounded(n, seed):
    """Real outcomes; whom the treatment was given to depends on what drives them, not linearly."""
    rng = np.random.default_rng([7, seed])
    X = rng.standard_normal((n, 10))
    propensity = np.clip(_logistic(0.8 * X[:, 0] + 0.8 * (np.abs(X[:, 1]) - 0.8)), 0.05, 0.95)
    base = 2 * X[:, 0] + 1.5 * np.abs(X[:, 1]) + X[:, 2]
    return _real(rng, X, base, 0.5 * X[:, 3] + 0.5 * (X[:, 4] > 0), rng.standard_normal(n), propensity)


def interaction(n, seed):
    """The effect's sign is that of a product of two columns: neither shows anything alone."""
    rng = np.random.default_rng([8, seed])
    X = rng.standard_normal((n, 8))
    return _binary(rng, X, -0.3 + 0.4 * X[:, 2], 1.2 * np.sign(X[:, 0] * X[:, 1]))


def null(n, seed):
    """No effect on anybody."""
    rng = np.random.default_rng([9, seed])
    X = rng.standard_normal((n, 10))
    return _binary(rng, X, -0.5 + X[:, 0], np.zeros(n))


def constant(n, seed):
    """The same effect on everybody."""
    rng = np.random.default_rng([10, seed])
    X = rng.standard_normal((n, 10))
    return _real(rng, X, X[:, 0] + X[:, 1] ** 2, np.full(n, 0.5), rng.standard_normal(n))


def steps(n, seed):
    """A rule of thumb: the effect is there for one corner of two columns, of uniform features."""
    rng = np.random.default_rng([11, seed])
    X = rng.random((n, 10))
    return _binary(rng, X, -1 + X[:, 3], np.where((X[:, 0] > 0.5) & (X[:, 1] > 0.4), 1.2, -0.2))


def unbalanced(n, seed):
    """A twentieth is treated."""
    rng = np.random.default_rng([12, seed])
    X = rng.standard_normal((n, 8))
    return _binary(rng, X, -0.5 + 0.6 * X[:, 2], 0.4 + 0.8 * X[:, 0] - 0.5 * X[:, 1], 0.05)


def spend(n, seed):
    """Most spend nothing: whether and how much both depend on the features."""
    rng = np.random.default_rng([13, seed])
    X = rng.standard_normal((n, 10))
    chance = _logistic(np.column_stack([-2 + 0.5 * X[:, 0], -1.7 + 0.5 * X[:, 0] + 0.6 * X[:, 1]]))
    mean = 40 * np.exp(0.4 * X[:, 2])
    t = rng.integers(0, 2, n)
    bought = rng.random(n) < chance[np.arange(n), t]
    y = bought * mean * rng.gamma(2.0, 0.5, n)
    return _data(X, y, t, chance * mean[:, None])


def collinear(n, seed):
    """0-1 columns, many of them copies and complements of each other."""
    rng = np.random.default_rng([14, seed])
    first = (rng.random((n, 8)) < 0.4).astype(float)
    X = np.column_stack([first, 1 - first, first[:, :4] * first[:, 4:]])
    return _binary(rng, X, -0.8 + first[:, 0], 0.9 * first[:, 1] - 0.7 * first[:, 2] + 0.5 * X[:, 16])


def one_offer(n, seed):
    """The campaign's customers, with missing values and categories: the call against nothing."""
    data = simulate_campaign(3 * n // 2 + 100, random_state=seed)
    keep = np.flatnonzero(data.treatment != "coupon")[:n]
    t = (data.treatment[keep] == "call").astype(np.int64)
    return UpliftData(
        data.X.iloc[keep],
        data.y[keep],
        t,
        data.effect[keep, 0],
        details={"response": data.details["response"][keep, :2]},
    )


def _of(simulate, **options) -> Draw:
    return lambda n, seed: simulate(n, random_state=seed, **options)


# name -> (draw, training rows)
SIMULATED: dict[str, tuple[Draw, int]] = {
    "sim-campaign": (one_offer, 6000),
    "sim-collinear": (collinear, 5000),
    "sim-confounded": (confounded, 4000),
    "sim-confounded-binary": (_of(simulate_biased), 5000),
    "sim-constant": (constant, 3000),
    "sim-crescents": (_of(simulate_crescents), 900),
    "sim-customers": (_of(simulate_customers), 5000),
    "sim-features": (_of(simulate_feature_selection), 8000),
    "sim-heavy-tails": (heavy_tails, 4000),
    "sim-interaction": (interaction, 5000),
    "sim-null": (null, 4000),
    "sim-prognostic": (prognostic, 4000),
    "sim-prognostic-binary": (prognostic_binary, 5000),
    "sim-randomised": (randomised, 5000),
    "sim-randomised-large": (randomised, 30_000),
    "sim-randomised-small": (randomised, 400),
    "sim-rare": (rare, 20_000),
    "sim-spend": (spend, 8000),
    "sim-steps": (steps, 5000),
    "sim-thin": (thin, 5000),
    "sim-thin-large": (thin, 20_000),
    "sim-unbalanced": (unbalanced, 8000),
    "sim-zhao-2d": (_of(simulate_zhao_2d), 2000),
    "sim-zhao-50d": (_of(simulate_zhao_50d, arms=2), 4000),
}
