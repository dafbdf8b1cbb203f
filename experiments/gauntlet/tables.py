"""Forty tables of the awkward kinds, with the true effect of every row.

A table is a function of a random generator that gives a :class:`Made`: features (a frame), outcome, arm of 0 or 1, and effect. Rows
to learn from and rows to be judged by are drawn together, so that both have the same quirks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit

TEST = 2000  # rows to be judged by


@dataclass(frozen=True)
class Made:
    X: pd.DataFrame
    y: np.ndarray
    t: np.ndarray
    effect: np.ndarray


def numbers(rng, n, p):
    return pd.DataFrame(rng.normal(size=(n, p)), columns=[f"x{j}" for j in range(p)])


def outcome(rng, X, t, effect, *, base, main=0.0, noise=None):
    """Outcomes around ``base``: two values if there is no noise, else numbers."""
    level = base + main * X.iloc[:, -1].to_numpy(dtype=float)
    if noise is None:
        low = np.clip(level, 0.0, 1.0)
        high = np.clip(level + effect, 0.0, 1.0)
        return (rng.random(len(t)) < np.where(t == 1, high, low)).astype(float), high - low
    return level + t * effect + noise, effect


def simple(rng, n=2000, p=5, *, size=0.25, share=0.5, base=0.4, kind="step", real=False, tail=None, main=0.05):
    """Numbers, an effect of the first one or two, and nothing odd."""
    X = numbers(rng, n + TEST, p)
    a, b = X["x0"].to_numpy(), X["x1"].to_numpy()
    shape = {"step": np.sign(a), "line": np.clip(a, -1.5, 1.5), "corner": np.where((a > 0) & (b > 0), 2.0, -0.5)}[kind]
    effect = size * shape
    t = (rng.random(len(X)) < share).astype(int)
    noise = None if not real else tail(rng, len(X)) if tail else rng.normal(size=len(X))
    y, effect = outcome(rng, X, t, effect, base=base, main=main, noise=noise)
    return Made(X, y, t, effect)


def with_columns(made, change):
    X = change(made.X.copy())
    return Made(X, made.y, made.t, made.effect)


def with_outcome(made, change):
    """Another scale of the outcome; the ranking of effects stays."""
    return Made(made.X, change(made.y), made.t, made.effect)


def categories(rng, n, levels, *, size=0.25, other=2, name="x0"):
    """One category decides, level by level."""
    code = rng.integers(0, levels, n + TEST)
    help_of = size * np.sign(rng.normal(size=levels))
    X = numbers(rng, n + TEST, other).rename(columns={"x0": "n0", "x1": "n1"})
    X.insert(0, name, pd.Series([f"level {c}" for c in code], dtype=object))
    t = rng.integers(0, 2, len(X))
    y, effect = outcome(rng, X, t, help_of[code], base=0.4, main=0.02)
    return Made(X, y, t, effect)


def confounded(rng, n=4000):
    X = numbers(rng, n + TEST, 5)
    t = (rng.random(len(X)) < expit(X["x4"].to_numpy())).astype(int)
    y, effect = outcome(rng, X, t, 0.8 * np.sign(X["x0"].to_numpy()), base=0.0, main=1.0, noise=rng.normal(size=len(X)))
    return Made(X, y, t, effect)


def _holes(rng, X, name, share):
    X.loc[rng.random(len(X)) < share, name] = np.nan
    return X


def _outliers(rng, X):
    for name in X.columns:
        X.loc[rng.random(len(X)) < 0.002, name] = 1e6 * rng.choice([-1, 1])
    return X


def duplicated(rng):
    made = simple(rng, 300, size=0.35)
    rows = np.concatenate([np.tile(np.arange(300), 10), np.arange(300, 300 + TEST)])
    return Made(made.X.iloc[rows].reset_index(drop=True), made.y[rows], made.t[rows], made.effect[rows])


def by_arm(rng):
    made = simple(rng)
    rows = np.concatenate([np.argsort(made.t[:2000], kind="stable"), np.arange(2000, 2000 + TEST)])
    return Made(made.X.iloc[rows].reset_index(drop=True), made.y[rows], made.t[rows], made.effect[rows])


def missing_tells(rng):
    made = simple(rng)
    hole = made.X["x0"] > 0
    return with_columns(made, lambda X: X.assign(x0=np.where(hole, np.nan, X["x0"])))


def counts(rng):
    X = numbers(rng, 3000 + TEST, 5)
    t = rng.integers(0, 2, len(X))
    rate = np.exp(0.2 + 0.5 * t * np.sign(X["x0"]))
    effect = np.exp(0.2 + 0.5 * np.sign(X["x0"])) - np.exp(0.2)
    return Made(X, rng.poisson(rate).astype(float), t, effect.to_numpy())


def spend(rng):
    """Mostly 0; who buys spends a skewed amount."""
    X = numbers(rng, 8000 + TEST, 5)
    t = rng.integers(0, 2, len(X))
    chance = np.clip(0.08 + 0.06 * t * np.sign(X["x0"]), 0, 1)
    y = (rng.random(len(X)) < chance) * rng.lognormal(3, 0.7, len(X))
    return Made(X, y, t, (0.06 * np.sign(X["x0"])).to_numpy())


def collinear(rng):
    made = simple(rng, 1500, 4)
    mix = rng.normal(size=(4, 196))
    more = pd.DataFrame(made.X.to_numpy() @ mix, columns=[f"c{j}" for j in range(196)])
    return Made(pd.concat([made.X, more], axis=1), made.y, made.t, made.effect)


# Names of the easy ones, on which a warning is a false one.
EASY = ("plain", "real outcome", "line", "many rows", "twenty columns", "five levels", "strong", "halves")
TABLES = {
    "plain": lambda rng: simple(rng),
    "real outcome": lambda rng: simple(rng, real=True, size=0.6, base=0.0),
    "line": lambda rng: simple(rng, kind="line", size=0.2),
    "many rows": lambda rng: simple(rng, 8000),
    "twenty columns": lambda rng: simple(rng, 3000, 20),
    "five levels": lambda rng: categories(rng, 3000, 5),
    "strong": lambda rng: simple(rng, size=0.4, base=0.5),
    "halves": lambda rng: with_columns(simple(rng), lambda X: X.round(1)),
    "corner": lambda rng: simple(rng, 4000, kind="corner", size=0.2),
    "1% outcomes": lambda rng: simple(rng, 12_000, base=0.012, size=0.01, main=0.0),
    "0.3% outcomes": lambda rng: simple(rng, 15_000, base=0.004, size=0.003, main=0.0),
    "99% outcomes": lambda rng: simple(rng, 12_000, base=0.985, size=0.014, main=0.0),
    "1% treated": lambda rng: simple(rng, 8000, share=0.01, size=0.4),
    "1% control": lambda rng: simple(rng, 8000, share=0.99, size=0.4),
    "5% treated": lambda rng: simple(rng, 5000, share=0.05, size=0.35),
    "200 collinear columns": collinear,
    "300 columns, 200 rows": lambda rng: simple(rng, 200, 300, size=0.4, main=0.0),
    "informative column thrice": lambda rng: with_columns(simple(rng), lambda X: X.assign(y0=X["x0"], z0=X["x0"])),
    "constant columns": lambda rng: with_columns(simple(rng), lambda X: X.assign(c=1.0, d=0.0)),
    "empty column": lambda rng: with_columns(simple(rng), lambda X: X.assign(e=np.nan)),
    "99% missing column": lambda rng: with_columns(simple(rng), lambda X: _holes(rng, X.assign(e=rng.normal(size=len(X))), "e", 0.99)),
    "half missing": lambda rng: with_columns(simple(rng, 4000, size=0.3), lambda X: _holes(rng, X, "x0", 0.5)),
    "missing tells": missing_tells,
    "500 levels": lambda rng: categories(rng, 10_000, 500, size=0.4),
    "identifiers": lambda rng: with_columns(simple(rng), lambda X: X.assign(id=[f"person {i}" for i in range(len(X))])),
    "0 and 1 only": lambda rng: with_columns(simple(rng), lambda X: (X > 0).astype(float)),
    "four values": lambda rng: with_columns(simple(rng), lambda X: np.clip(np.floor(X) + 2, 0, 3)),
    "units apart": lambda rng: with_columns(simple(rng), lambda X: X * np.array([1e-9, 1e9, 1.0, 1e5, 1e-5])),
    "features of 1e6": lambda rng: with_columns(simple(rng), lambda X: _outliers(rng, X)),
    "skewed features": lambda rng: with_columns(simple(rng), lambda X: np.exp(2 * X)),
    "100 rows": lambda rng: simple(rng, 100, 3, real=True, size=3.0, base=0.0),
    "60 rows": lambda rng: simple(rng, 60, 2, size=0.45, base=0.5, main=0.0),
    "duplicated rows": duplicated,
    "ordered by arm": by_arm,
    "counts": counts,
    "far from 0": lambda rng: with_outcome(simple(rng, real=True, size=0.6), lambda y: 1e6 + y),
    "outcomes of 1e6": lambda rng: simple(rng, 4000, real=True, size=0.6, tail=lambda r, n: r.normal(size=n) + 1e6 * (r.random(n) < 0.001)),
    "tiny outcomes": lambda rng: with_outcome(simple(rng, real=True, size=0.6), lambda y: 1e-9 * y),
    "heavy tails": lambda rng: simple(rng, 4000, real=True, size=1.0, base=0.0, tail=lambda r, n: r.standard_t(2, n)),
    "confounded": confounded,
}  # fmt: skip
assert len(TABLES) == 40
assert set(EASY) <= set(TABLES)
