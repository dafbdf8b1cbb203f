"""How far from the optimum is the fast search? Its cost beside that of the exact search, over patterns, sizes and seeds.

    python experiments/umodl_optimum.py [--sizes 3000 10000 30000]

The exact search of 30,000 rows takes up to a minute each.
"""

from __future__ import annotations

import argparse

import numpy as np

from upturn.datasets import simulate_pattern
from upturn.features import UMODLDiscretizer

PATTERNS = {
    "crenel .8": ("crenel1", 0.8),
    "crenel .6": ("crenel1", 0.6),
    "continuous": ("continuous", 1.0),
    "scissors": ("scissors", 1.0),
}
SEEDS = {3000: 4, 10_000: 4, 30_000: 3}


def draw_uniform(kind, n, seed):
    """One feature on [0, 10]; returns x, treatment, y."""
    if kind in PATTERNS:
        pattern, theta = PATTERNS[kind]
        data = simulate_pattern(pattern, n, theta, random_state=seed)
        return data.X[:, 0], data.treatment, data.y
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(0, 10, n), rng.integers(0, 2, n)
    spike = np.floor(20 * x).astype(int) % 40 == 7
    p = {"spikes": np.where(spike & (t == 1), 0.95, 0.2), "noise": np.full(n, 0.3)}[kind]
    return x, t, (rng.random(n) < p).astype(int)


def draw_normal(kind, n, seed):
    """One standard normal feature, or something made of it."""
    rng = np.random.default_rng(seed + 100)
    x, t = rng.normal(size=n), rng.integers(0, 2, n)
    if kind == "ties":
        x = np.round(x * 30) / 30
    elif kind == "lognormal":
        x = np.exp(3 * x)
    p = {
        "sine": lambda: 1 / (1 + np.exp(1 - t * (0.3 + np.sin(3 * x)))),
        "square": lambda: 1 / (1 + np.exp(1 - t * (0.3 - x**2))),
        "class only": lambda: 1 / (1 + np.exp(1 - 0.5 * x)),
        "fast sine": lambda: 0.5 + 0.3 * np.sin(40 * x) * (2 * t - 1),
        "rare": lambda: np.where((x > 1.5) & (t == 1), 0.03, 0.01),
        "needle": lambda: np.where((np.abs(x - 0.5) < 20 / n) & (t == 1), 0.95, 0.3),
        "ties": lambda: 0.5 + 0.3 * np.sin(10 * x) * (2 * t - 1),
        "lognormal": lambda: np.where(t == 1, 0.3 + 0.1 * np.tanh(np.log(x)), 0.3),
    }[kind]()
    return x, t, (rng.random(n) < p).astype(int)


UNIFORM = (*PATTERNS, "spikes", "noise")
NORMAL = ("sine", "square", "class only", "fast sine", "rare", "needle", "ties", "lognormal")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=[3000, 10_000, 30_000])
    args = parser.parse_args()
    print(f"{'rows':>7} {'pattern':<12}{'parts':>12}   nats above the optimum")
    for n in args.sizes:
        for kind in UNIFORM + NORMAL:
            parts, gaps = [], []
            for seed in range(SEEDS.get(n, 3)):
                x, t, y = (draw_uniform if kind in UNIFORM else draw_normal)(kind, n, seed)
                exact, fast = (UMODLDiscretizer(search=how).fit(x[:, None], y, t) for how in ("exact", "auto"))
                parts.append(int(exact.n_parts_[0]))
                gaps.append(float(fast.cost_[0] - exact.cost_[0]))
            shown = f"{min(parts)}-{max(parts)}"
            print(f"{n:7d} {kind:<12}{shown:>12}   " + " ".join(f"{gap:.2f}" for gap in gaps), flush=True)


if __name__ == "__main__":
    main()
