"""The 2-D and 50-D models of Zhao, Fang and Simchi-Levi (2017): real-valued responses, several treatments."""

from __future__ import annotations

import numpy as np

from upturn._arrays import Floats
from upturn._parameters import NONE, check, number, whole
from upturn.datasets._data import UpliftData
from upturn.datasets._random import Seed, equal_arms, experiment, generator
from upturn.datasets._sources import pandas

__all__ = ["simulate_zhao_2d", "simulate_zhao_50d"]

_MEAN_F = 4.185  # puts a fixed arm at 5.185 and the best of four at 5.785; the paper prints 5.18 and 5.79


def simulate_zhao_2d(n: int = 2000, random_state: Seed = None) -> UpliftData:
    """Simulate the two-dimensional example of [1]_, section III-A.

    X_1 is uniform on [0, 100], X_2 is A, B or C. Without treatment (T = 1 in the paper) Y ~ U[0, X_1]; with it
    (T = 2) Y ~ .8 U[0, X_1] + 5 where X_2 = B and 1.2 U[0, X_1] - 5 elsewhere. The effect is 5 - X_1/10 in B and
    X_1/10 - 5 in A and C. Either arm alone is worth 25 on average, the best rule 26.25.

    Parameters
    ----------
    n : int
        Number of rows, shared equally by the two arms.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    UpliftData
        ``X`` is a DataFrame with the columns X1 and X2 (categorical).

    References
    ----------
    .. [1] Y. Zhao, X. Fang, D. Simchi-Levi, "A practically competitive and provably consistent algorithm for uplift
       modeling", ICDM 2017.

    Examples
    --------
    >>> from upturn.datasets import simulate_zhao_2d
    >>> simulate_zhao_2d(n=1000, random_state=0).X.columns.tolist()
    ['X1', 'X2']
    """
    pd = pandas("simulate_zhao_2d")
    check("n", n, whole(least=2))
    rng = generator(random_state)
    x1 = rng.uniform(0, 100, n)
    x2 = rng.integers(0, 3, n)
    in_b = x2 == 1
    scale, shift = np.where(in_b, 0.8, 1.2), np.where(in_b, 5.0, -5.0)
    response = np.column_stack([x1 / 2, scale * x1 / 2 + shift])
    arm = equal_arms(rng, n, 2)
    u = rng.random(n) * x1
    X = pd.DataFrame({"X1": x1, "X2": pd.Categorical.from_codes(x2, categories=["A", "B", "C"])})
    y = np.where(arm == 1, scale * u + shift, u)
    return experiment(X, y, arm, response, "zhao-2d", "The two-dimensional example of Zhao et al. (2017).")


def _bumps(model_seed: int, d: int) -> tuple[Floats, Floats, Floats]:
    """Return the 50 bumps of f: heights a, slopes b (50, d), centres c (50, d), with a mean of f of exactly 4.185."""
    rng = np.random.default_rng([50, model_seed])
    centres = rng.uniform(0, 10, (50, d))
    slopes = np.where(rng.random((50, d)) < 0.3, rng.uniform(0, 0.1, (50, d)), 0.0)
    heights = rng.uniform(0.5, 1.5, 50)
    # the mean of exp(-b|x - c|) over [0, 10] is (2 - exp(-bc) - exp(-b(10 - c))) / (10 b), and 1 for b = 0
    b = np.where(slopes > 0, slopes, 1.0)
    means = np.where(slopes > 0, (2 - np.exp(-b * centres) - np.exp(-b * (10 - centres))) / (10 * b), 1.0)
    heights *= _MEAN_F / float(heights @ means.prod(axis=1))
    return heights, slopes, centres


def _f(X: Floats, model_seed: int) -> Floats:
    """Return f(x) = Σ_i a_i exp(-Σ_d b_id |x_d - c_id|), a block of rows at a time."""
    heights, slopes, centres = _bumps(model_seed, X.shape[1])
    out = np.zeros(len(X))
    for start in range(0, len(X), 4096):
        block = X[start : start + 4096]
        total = out[start : start + 4096]
        for a, b, c in zip(heights, slopes, centres, strict=True):
            used = np.flatnonzero(b)
            total += a * np.exp(-(np.abs(block[:, used] - c[used]) @ b[used]))
    return out


def simulate_zhao_50d(
    n: int = 8000,
    arms: int = 4,
    n_features: int = 50,
    effect_size: float = 0.4,
    noise: float | None = None,
    model_seed: int = 0,
    random_state: Seed = None,
) -> UpliftData:
    """Simulate the high-dimensional model of [1]_, section III-B, with any number of arms.

    With X uniform on [0, 10]^d, the response to treatment t = 1 … K is

        Y = f(X) + U[0, α X_t] + ε,    f(x) = Σ_{i=1}^{50} a_i exp(-Σ_d b_id |x_d - c_id|),    ε ~ N(0, σ²).

    The paper does not print a, b, c: here they are drawn from ``model_seed`` (three in ten slopes b are uniform on
    [0, .1], the others 0) and a is scaled so that f has the mean 4.185 exactly. With the default α = .4 any fixed arm
    is then worth 5.185 and the best of four 5.785; the paper has 5.18 and 5.79. In general a fixed arm is worth
    4.185 + 2.5 α and the best of K 4.185 + 5 α K/(K+1).

    Parameters
    ----------
    n : int
        Number of rows, shared equally by the arms.
    arms : int
        K, all arms counted. The first is labelled 0 and stands for control, the others 1 to K - 1.
    n_features : int
        Number of features d, at least K.
    effect_size : float
        α, the most that a unit of X_t adds to the response.
    noise : float, optional
        σ; twice α when not given, as in the paper.
    model_seed : int
        Draws f. The same f goes with every ``random_state``.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    UpliftData
        ``effect`` has one column per arm but the first, α (X_t - X_1) / 2.

    References
    ----------
    .. [1] Y. Zhao, X. Fang, D. Simchi-Levi, "A practically competitive and provably consistent algorithm for uplift
       modeling", ICDM 2017.

    Examples
    --------
    >>> from upturn.datasets import simulate_zhao_50d
    >>> data = simulate_zhao_50d(n=400, random_state=0)
    >>> data.X.shape, data.effect.shape
    ((400, 50), (400, 3))
    """
    check("arms", arms, whole(least=2))
    check("n", n, whole(least=arms).named(f"a whole number of at least {arms}, a row for each arm"))
    check(
        "n_features",
        n_features,
        whole(least=arms).named(f"at least {arms}: each of the arms needs a feature of its own"),
    )
    check("effect_size", effect_size, number(least=-1e100, most=1e100))
    check("noise", noise, number(least=0, most=1e100) | NONE)
    check("model_seed", model_seed, whole(least=0))
    rng = generator(random_state)
    X = rng.uniform(0, 10, (n, n_features))
    arm = equal_arms(rng, n, arms)
    base = _f(X, model_seed)
    response = base[:, None] + effect_size * X[:, :arms] / 2
    gain = rng.random(n) * effect_size * X[np.arange(n), arm]
    y = base + gain + (2 * effect_size if noise is None else noise) * rng.standard_normal(n)
    return experiment(
        X,
        y,
        arm,
        response,
        f"zhao-{n_features}d",
        f"The {n_features}-dimensional model of Zhao et al. (2017), {arms} arms.",
    )
