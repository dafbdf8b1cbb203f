"""The two-dimensional example of the UCTS paper (section III-A): decision boundaries, their smoothness, and what they earn.

    python experiments/ucts_2d.py [--sets 50] [--tuning-sets 20] [--figure FILE.png]

The data are those of ``upturn.datasets.simulate_zhao_2d``: X1 is uniform on [0, 100], X2 one of A, B, C. The best rule
changes at X1 = 50, in opposite directions. A fixed arm earns 25, the best rule 26.25.

As in the paper, the parameter of each forest, ``min_split``, is the one that earns most over 20 other sets of data; rho is
0.5, one of the two features is drawn in a node, and there are 1000 rows per arm.

Two numbers for smoothness, both along X1 on a fine grid and averaged over the three levels of X2: how often the
recommended arm changes (the best rule changes once), and the total variation of the estimated advantage of the treatment (the
true one varies by 10). The same numbers follow for min_split = 80, the paper's choice for both.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
import pandas as pd

from upturn.datasets import simulate_zhao_2d
from upturn.trees import CTSForest, UCTSForest

LEVELS = np.array(["A", "B", "C"])
GRID = np.linspace(0.05, 99.95, 1000)


def draw(seed: int):
    data = simulate_zhao_2d(2000, random_state=seed)
    return data.X, data.y, data.treatment


def means(X: pd.DataFrame):
    """The expected responses at any point, which the simulator only gives at those it draws."""
    first = X["X1"].to_numpy() / 2
    return first, np.where(X["X2"] == "B", 0.8 * first + 5, 1.2 * first - 5)


FORESTS = {"UCTS": UCTSForest, "CTS": partial(CTSForest, min_share=0.0)}  # the papers' CTS has no smallest share
SPLITS = (5, 10, 20, 40, 80, 160)
GRID_ROWS = pd.DataFrame({"X1": np.tile(GRID, 3), "X2": np.repeat(LEVELS, len(GRID))})


def judge(name: str, min_split: int, n_trees: int, seeds):
    """Expected response, changes of the rule and variation of the advantage on each set of data; and the rules."""
    one, two = means(GRID_ROWS)
    numbers, rules = [], []
    for seed in seeds:
        X, y, arm = draw(seed)
        model = FORESTS[name](n_trees, min_samples_split=min_split, max_features=1, random_state=seed, n_jobs=2)
        rule = np.asarray(model.fit(X, y, arm).recommend(GRID_ROWS)).reshape(3, -1)
        advantage = model.predict(GRID_ROWS).reshape(3, -1)
        numbers.append((
            np.where(rule.ravel() == 0, one, two).mean(),
            (rule[:, 1:] != rule[:, :-1]).sum(axis=1).mean(),
            np.abs(np.diff(advantage, axis=1)).sum(axis=1).mean(),
        ))  # fmt: skip
        rules.append(rule)
    return np.array(numbers), rules


def report(numbers: dict[str, np.ndarray], min_split: dict[str, int]) -> None:
    for name, result in numbers.items():
        mean, half = result.mean(axis=0), 1.96 * result.std(axis=0, ddof=1) / np.sqrt(len(result))
        print(f"{name}, min_split {min_split[name]}: expected response {mean[0]:.3f} ± {half[0]:.3f}, changes of arm along X1 "
              f"{mean[1]:.2f} ± {half[1]:.2f}, total variation {mean[2]:.1f} ± {half[2]:.1f}")  # fmt: skip
    fewer, smaller = (numbers["UCTS"][:, 1:] < numbers["CTS"][:, 1:]).mean(axis=0)
    print(
        f"of the sets of data, UCTS changes arm less often in {100 * fewer:.0f}% and varies less in {100 * smaller:.0f}%"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=50)
    parser.add_argument("--tuning-sets", type=int, default=20)
    parser.add_argument("--figure")
    options = parser.parse_args()
    one, two = means(GRID_ROWS)
    print(f"a fixed arm {one.mean():.2f}, the best rule {np.maximum(one, two).mean():.2f}")
    tuning, sets = range(1000, 1000 + options.tuning_sets), range(options.sets)
    chosen = {}
    for name in FORESTS:
        earned = {split: judge(name, split, 200, tuning)[0][:, 0].mean() for split in SPLITS}
        chosen[name] = max(earned, key=earned.get)
        print(f"{name}: " + ", ".join(f"min_split {split} earns {value:.3f}" for split, value in earned.items()))
    results = {name: judge(name, chosen[name], 400, sets) for name in FORESTS}
    report({name: numbers for name, (numbers, _) in results.items()}, chosen)
    report({name: judge(name, 80, 400, sets)[0] for name in FORESTS}, dict.fromkeys(FORESTS, 80))
    if options.figure:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        shown = min(5, options.sets)
        figure, axes = plt.subplots(shown, 2, figsize=(9, 1.7 * shown), sharex=True, sharey=True, squeeze=False)
        for k, (name, (_, rules)) in enumerate(results.items()):
            for row in range(shown):
                look = {"aspect": "auto", "extent": (0, 100, 3, 0), "interpolation": "nearest"}
                axes[row, k].imshow(rules[row], cmap="coolwarm", vmin=0, vmax=1, **look)
                axes[row, k].set_yticks([0.5, 1.5, 2.5], LEVELS)
                axes[row, k].axvline(50, color="k", linewidth=0.8, linestyle=":")
            axes[0, k].set_title(f"{name}, min_split {chosen[name]}")
            axes[-1, k].set_xlabel("X1")
        figure.tight_layout()
        figure.savefig(options.figure, dpi=120)


if __name__ == "__main__":
    main()
