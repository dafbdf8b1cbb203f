"""The two-dimensional example of the UCTS paper (section III-A): decision boundaries, their smoothness, and what they earn.

    python experiments/ucts_2d.py [--sets 50] [--figure FILE.png]

X1 is uniform on [0, 100], X2 one of A, B, C. The response is U[0, X1] under arm 1; under arm 2, 0.8 U[0, X1] + 5 where X2
is B and 1.2 U[0, X1] - 5 elsewhere. The best rule changes at X1 = 50, in opposite directions. A fixed arm earns 25, the
best rule 26.25.

Two numbers for smoothness, both along X1 on a fine grid and averaged over the three levels of X2: how often the
recommended arm changes (the best rule changes once), and the total variation of the estimated advantage of arm 2 (the
true one varies by 10). With 1000 rows per arm, rho = 0.5 and min_split = 80 as in the paper, one of the two features drawn
in a node.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from upturn.trees import CTSForest, UCTSForest

LEVELS = np.array(["A", "B", "C"])
GRID = np.linspace(0.05, 99.95, 1000)


def draw(n_per_arm: int, seed: int):
    rng = np.random.default_rng(seed)
    n = 2 * n_per_arm
    X = pd.DataFrame({"X1": rng.uniform(0, 100, n), "X2": rng.choice(LEVELS, n)})
    arm = np.repeat([1, 2], n_per_arm)
    base = rng.uniform(0, X["X1"])
    other = np.where(X["X2"] == "B", 0.8 * base + 5, 1.2 * base - 5)
    return X, np.where(arm == 1, base, other), arm


def means(X: pd.DataFrame):
    first = X["X1"].to_numpy() / 2
    return first, np.where(X["X2"] == "B", 0.8 * first + 5, 1.2 * first - 5)


def models(seed: int):
    yield (
        "UCTS",
        UCTSForest(400, rho=0.5, min_samples_split=80, max_features=1, control=1, random_state=seed, n_jobs=2),
    )
    yield "CTS", CTSForest(400, min_samples_split=80, max_features=1, control=1, random_state=seed, n_jobs=2)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=50)
    parser.add_argument("--figure")
    options = parser.parse_args()
    grid = pd.DataFrame({"X1": np.tile(GRID, 3), "X2": np.repeat(LEVELS, len(GRID))})
    one, two = means(grid)
    changes, variation, earned, rules = {}, {}, {}, {}
    for seed in range(options.sets):
        X, y, arm = draw(1000, seed)
        for name, model in models(seed):
            rule = np.asarray(model.fit(X, y, arm).recommend(grid)).reshape(3, -1)
            advantage = model.predict(grid).reshape(3, -1)
            variation.setdefault(name, []).append(np.abs(np.diff(advantage, axis=1)).sum(axis=1).mean())
            changes.setdefault(name, []).append((rule[:, 1:] != rule[:, :-1]).sum(axis=1).mean())
            earned.setdefault(name, []).append(np.where(rule.ravel() == 1, one, two).mean())
            rules.setdefault(name, []).append(rule)
    print(f"a fixed arm {one.mean():.2f}, the best rule {np.maximum(one, two).mean():.2f}")
    for name in changes:
        e, c, v = np.array(earned[name]), np.array(changes[name]), np.array(variation[name])
        half = 1.96 / np.sqrt(len(e))
        print(f"{name}: expected response {e.mean():.3f} ± {half * e.std(ddof=1):.3f}, changes of arm along X1 {c.mean():.2f} "
              f"± {half * c.std(ddof=1):.2f}, total variation {v.mean():.1f} ± {half * v.std(ddof=1):.1f}")  # fmt: skip
    smoother = np.mean(np.array(variation["UCTS"]) < np.array(variation["CTS"]))
    print(f"UCTS has the smaller total variation in {100 * smoother:.0f}% of the {options.sets} training sets")
    if options.figure:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        shown = min(5, options.sets)
        figure, axes = plt.subplots(shown, 2, figsize=(9, 1.7 * shown), sharex=True, sharey=True, squeeze=False)
        for k, name in enumerate(changes):
            for row in range(shown):
                look = {"aspect": "auto", "extent": (0, 100, 3, 0), "interpolation": "nearest"}
                axes[row, k].imshow(rules[name][row], cmap="coolwarm", vmin=1, vmax=2, **look)
                axes[row, k].set_yticks([0.5, 1.5, 2.5], LEVELS)
                axes[row, k].axvline(50, color="k", linewidth=0.8, linestyle=":")
            axes[0, k].set_title(name)
            axes[-1, k].set_xlabel("X1")
        figure.tight_layout()
        figure.savefig(options.figure, dpi=120)


if __name__ == "__main__":
    main()
