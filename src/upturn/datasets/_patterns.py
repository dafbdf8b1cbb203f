"""One-dimensional uplift patterns, and a table of uplift, class and irrelevant features (Rafla et al., 2022)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from upturn._arrays import Floats
from upturn._parameters import check, number, one_of, whole
from upturn.datasets._data import UpliftData
from upturn.datasets._random import Seed, bernoulli, coin, experiment, generator, logistic
from upturn.datasets._sources import pandas

__all__ = ["simulate_feature_selection", "simulate_pattern"]

Pattern = Literal["crenel1", "crenel2", "trigonometric", "scissors", "continuous"]
_PATTERNS = ("crenel1", "crenel2", "trigonometric", "scissors", "continuous")


def _pattern_response(pattern: str, x: Floats, theta: float) -> Floats:
    """Return P(Y=1 | x) in control and under treatment."""
    if pattern == "continuous":
        return np.column_stack([np.full_like(x, 0.5), x / 10])
    interval = np.minimum(np.floor(x), 9.0) + 1.0  # ten intervals of length 1 on [0, 10], numbered from 1
    if pattern == "trigonometric":
        angle = interval * (2 * np.pi / 10)
        return np.column_stack([0.5 + 0.5 * np.cos(angle), 0.5 + 0.5 * np.sin(angle)])
    if pattern == "scissors":
        return np.column_stack([1 - interval / 10, interval / 10])
    up = interval % 2 == 1
    if pattern == "crenel1":
        return np.column_stack([np.where(up, 1 - theta, theta), np.where(up, theta, 1 - theta)])
    return np.column_stack([np.where(up, 1 - theta, 0.5), np.where(up, theta, 0.5)])


def simulate_pattern(
    pattern: Pattern = "crenel1", n: int = 10_000, theta: float = 1.0, random_state: Seed = None
) -> UpliftData:
    """Simulate one feature, uniform on [0, 10], with a known uplift pattern (section 4.2 of [1]_).

    With i = 1 … 10 the number of the interval of length 1 that x is in, the success probabilities (p_T, p_C) are

    - ``crenel1``: (θ, 1-θ) for odd i, (1-θ, θ) for even i: effects ±(2θ-1) in turn;
    - ``crenel2``: (θ, 1-θ) for odd i, (½, ½) for even i: an effect 2θ-1 and none in turn. The paper gives no level
      for the intervals without effect; ½ makes the pooled success rate the same everywhere, so that nothing but the
      effect tells the intervals apart;
    - ``trigonometric``: (½ + ½ sin(iπ/5), ½ + ½ cos(iπ/5));
    - ``scissors``: (i/10, 1 - i/10);
    - ``continuous``: (x/10, ½).

    Parameters
    ----------
    pattern : str
        One of the five names.
    n : int
        Number of rows; each is treated with probability ½.
    theta : float in [½, 1]
        The θ of the two crenels; the paper uses .6, .7, .8, .9 and 1.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    UpliftData
        ``X`` is an array of one column.

    References
    ----------
    .. [1] M. Rafla, N. Voisine, B. Crémilleux, M. Boullé, "A non-parametric Bayesian approach for uplift discretization
       and feature selection", ECML PKDD 2022.

    Examples
    --------
    >>> from upturn.datasets import simulate_pattern
    >>> data = simulate_pattern("crenel2", n=50, theta=0.8, random_state=0)
    >>> sorted(set(data.effect.round(6).tolist()))
    [0.0, 0.6]
    """
    check("pattern", pattern, one_of(*_PATTERNS))
    check("n", n, whole(least=1))
    check("theta", theta, number(least=0.5, most=1).named("a probability from 0.5 to 1"))
    rng = generator(random_state)
    x = rng.uniform(0, 10, n)
    arm = coin(rng, n)
    response = _pattern_response(pattern, x, theta)
    return experiment(
        x[:, None],
        bernoulli(rng, response, arm),
        arm,
        response,
        f"{pattern}-{theta:g}" if pattern.startswith("crenel") else pattern,
        f"One feature with the {pattern} uplift pattern.",
    )


# shapes a feature acts by; each has mean 0 and variance 1 under a standard normal feature
_SHAPES = (
    lambda x: x,
    lambda x: (x * x - 1) / np.sqrt(2),
    lambda x: np.sin(2 * x) / np.sqrt(0.5 * (1 - np.exp(-8.0))),
    lambda x: (np.maximum(x, 0) - 1 / np.sqrt(2 * np.pi)) / np.sqrt(0.5 - 0.5 / np.pi),
)


def simulate_feature_selection(
    n: int = 10_000,
    n_uplift: int = 6,
    n_class: int = 10,
    n_irrelevant: int = 20,
    strength: float = 1.0,
    random_state: Seed = None,
) -> UpliftData:
    """Simulate features that drive the effect, features that drive the outcome alone, and noise.

    It has the three kinds of feature of the data sets used in section 5 of [1]_: with standard normal features,

        logit p_C = -1 + a(class features),      logit p_T = logit p_C + .5 + b(uplift features),

    where a and b add up one shape per feature, in turn a line, a parabola, a wave and a ramp, scaled so that each of
    the two sums has standard deviation ``strength``. A class feature changes the success probability by the same logit
    in both groups; as logits are not probabilities, it also changes the difference p_T - p_C a little.

    Parameters
    ----------
    n, n_uplift, n_class, n_irrelevant : int
        Numbers of rows and of features of each kind.
    strength : float
        Standard deviation, in logits, of what the uplift features do, and of what the class features do.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    UpliftData
        ``X`` is a DataFrame with columns in random order, named by number and kind, such as ``x7_uplift``;
        ``details["kind"]`` maps each name to "uplift", "class" or "irrelevant".

    References
    ----------
    .. [1] M. Rafla et al., ECML PKDD 2022, section 5; Z. Zhao, Y. Zhang, T. Harinen, M. Yung, "Feature selection methods
       for uplift modeling", 2020.

    Examples
    --------
    >>> from upturn.datasets import simulate_feature_selection
    >>> data = simulate_feature_selection(100, n_uplift=1, n_class=1, n_irrelevant=1, random_state=0)
    >>> sorted(data.details["kind"].values())
    ['class', 'irrelevant', 'uplift']
    """
    pd = pandas("simulate_feature_selection")
    check("n", n, whole(least=1))
    counts = {"uplift": n_uplift, "class": n_class, "irrelevant": n_irrelevant}
    for name, count in counts.items():
        check(f"n_{name}", count, whole(least=0))
    check("strength", strength, number(least=-1e100, most=1e100))
    p = sum(counts.values())
    check("n_uplift + n_class + n_irrelevant", p, whole(least=1))
    rng = generator(random_state)
    kinds = rng.permutation(np.repeat(list(counts), list(counts.values())))
    X = rng.standard_normal((n, p))
    sums: dict[str, Floats] = {}
    for kind in ("class", "uplift"):
        columns = np.flatnonzero(kinds == kind)
        sums[kind] = np.zeros(n)
        for turn, column in enumerate(columns):
            sums[kind] += _SHAPES[turn % len(_SHAPES)](X[:, column]) * (strength / np.sqrt(len(columns)))
    logit = -1.0 + sums["class"]
    response = np.column_stack([logistic(logit), logistic(logit + 0.5 + sums["uplift"])])
    arm = coin(rng, n)
    names = [f"x{j + 1}_{kind}" for j, kind in enumerate(kinds)]
    return experiment(
        pd.DataFrame(X, columns=names),
        bernoulli(rng, response, arm),
        arm,
        response,
        "feature-selection",
        "Uplift, class and irrelevant features.",
        kind=dict(zip(names, kinds.tolist(), strict=True)),
    )
