"""Two small simulators: the crescents of Figure 3.3.1 (Zaniewicz, 2018), and assignment that is not random."""

from __future__ import annotations

from typing import Literal

import numpy as np

from upturn._arrays import Floats
from upturn._parameters import check, number, one_of, whole
from upturn.datasets._data import UpliftData
from upturn.datasets._random import Seed, bernoulli, coin, experiment, generator, logistic

__all__ = ["simulate_biased", "simulate_crescents"]


def _crescent(rng: np.random.Generator, n: int) -> Floats:
    """Return points of a half ring around the origin that opens to the left, uniform in its area."""
    angle = rng.uniform(-np.pi / 2, np.pi / 2, n)
    radius = np.sqrt(rng.uniform(1.7**2, 2.3**2, n))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def simulate_crescents(n: int = 900, random_state: Seed = None) -> UpliftData:
    """Simulate the example of Figure 3.3.1 in [1]_: two crescents that gain and lose, a rectangle that does neither.

    A third of the points each: a crescent on the right around (1, .8) with effect +1 (treated succeed, untreated
    fail), one on the left around (-1, -.8) with effect -1, and between them the rectangle [-.6, .6] × [-2.5, 2.5]
    with effect 0 (everyone succeeds with probability ½). The figure gives no coordinates. These are chosen to do what
    it shows: two parallel lines separate the three clouds, yet the line that separates the crescents best, with the
    rectangle ignored, has another direction.

    Parameters
    ----------
    n : int
        Number of points; each is treated with probability ½.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    UpliftData
        ``X`` is an array of two columns; ``details["group"]`` is +1, 0 or -1.

    References
    ----------
    .. [1] Ł. Zaniewicz, *Support Vector Machines for Uplift Modeling*, 2018, section 3.3.

    Examples
    --------
    >>> from upturn.datasets import simulate_crescents
    >>> data = simulate_crescents(n=300, random_state=0)
    >>> sorted(set(data.effect.tolist()))
    [-1.0, 0.0, 1.0]
    """
    check("n", n, whole(least=3))
    rng = generator(random_state)
    group = rng.permutation(np.arange(n) % 3) - 1
    X = rng.uniform((-0.6, -2.5), (0.6, 2.5), (n, 2))
    offset = np.array([1.0, 0.8])
    for side in (-1, 1):
        here = group == side
        X[here] = side * (_crescent(rng, int(here.sum())) + offset)
    response = np.column_stack([(1 - group) / 2, (1 + group) / 2])
    arm = coin(rng, n)
    return experiment(
        X,
        bernoulli(rng, response, arm),
        arm,
        response,
        "crescents",
        "Two crescents with effects +1 and -1, and a neutral rectangle between them.",
        group=group,
    )


def simulate_biased(
    n: int = 5000,
    n_features: int = 10,
    bias: float = 1.0,
    outcome: Literal["binary", "real"] = "binary",
    random_state: Seed = None,
) -> UpliftData:
    """Simulate assignment that depends on the features, with a known propensity.

    With standard normal features, the treatment is given with probability (the propensity)

        e(x) = 1 / (1 + exp(-bias · (x_1 + x_2) / √2)),

    and the outcome prefers the same people: with m(x) = (x_1 + x_3) / 2 and τ(x) = (x_2 - x_4) / 2 + ½, a real outcome
    is Y = m + T τ + ε, ε ~ N(0, 1), and a binary one has logit P(Y = 1) = m + T τ. The plain difference of means is
    therefore wrong; weighting by 1/e and 1/(1-e) makes it right.

    Parameters
    ----------
    n, n_features : int
        Numbers of rows and features, of which the first four matter.
    bias : float
        0 is a randomised experiment; 1 gives an area under the ROC curve of about .74 for the true propensity.
    outcome : "binary" or "real"
    random_state : int, Generator, RandomState or None

    Returns
    -------
    UpliftData
        ``details["propensity"]`` is e(x).

    Examples
    --------
    >>> from upturn.datasets import simulate_biased
    >>> data = simulate_biased(n=1000, bias=2.0, random_state=0)
    >>> bool(data.details["propensity"][data.treatment == 1].mean() > 0.6)
    True
    """
    check("n", n, whole(least=1))
    check("n_features", n_features, whole(least=4))
    check("bias", bias, number(least=-1e100, most=1e100))
    check("outcome", outcome, one_of("binary", "real"))
    rng = generator(random_state)
    X = rng.standard_normal((n, n_features))
    propensity = logistic(bias * (X[:, 0] + X[:, 1]) / np.sqrt(2))
    arm = coin(rng, n, propensity)
    base = (X[:, 0] + X[:, 2]) / 2
    linear = np.column_stack([base, base + (X[:, 1] - X[:, 3]) / 2 + 0.5])
    if outcome == "binary":
        response = logistic(linear)
        y: Floats = bernoulli(rng, response, arm).astype(np.float64)
    else:
        response = linear
        y = linear[np.arange(n), arm] + rng.standard_normal(n)
    return experiment(
        X,
        y.astype(np.int64) if outcome == "binary" else y,
        arm,
        response,
        f"biased-{outcome}",
        "Assignment depends on the features; the propensity is known.",
        propensity=propensity,
    )
