"""Do the forest's 90% intervals cover the true effect? A smooth simulation with a known one.

    python experiments/forest_intervals.py [--rows 8000] [--trees 2000] [--repeats 5] [--features 4]

Features are uniform on [0, 1], the effect is smooth in the first one, the outcome real-valued. Coverage is the share of
1000 test points whose interval holds the true effect, averaged over fresh experiments.
"""

from __future__ import annotations

import argparse

import numpy as np

from upturn.trees import UCTSForest, UpliftForest


def draw(n, p, rng):
    X, arm = rng.uniform(size=(n, p)), rng.integers(0, 2, n)
    effect = 1 / (1 + np.exp(-6 * (X[:, 0] - 0.5)))
    return X, X[:, 1] + arm * effect + rng.normal(size=n), arm, effect


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--trees", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--features", type=int, default=4)
    parser.add_argument("--min-arm", type=float, default=5)
    options = parser.parse_args()
    shared = {"ci_group_size": 2, "max_samples": 0.5, "n_jobs": 2}
    makers = {
        "UpliftForest(honest=True)": lambda seed: UpliftForest(
            options.trees,
            honest=True,
            min_samples_arm=options.min_arm,
            min_share=0.05,
            max_features=None,
            random_state=seed,
            **shared,
        ),
        "UCTSForest": lambda seed: UCTSForest(options.trees, min_samples_split=10, random_state=seed, **shared),
    }
    for name, make in makers.items():
        covered, width, error = [], [], []
        for repeat in range(options.repeats):
            rng = np.random.default_rng(repeat)
            model = make(repeat).fit(*draw(options.rows, options.features, rng)[:3])
            X, _, _, effect = draw(1000, options.features, rng)
            low, high = model.predict_interval(X, interval=0.9)
            covered.append(np.mean((low <= effect) & (effect <= high)))
            width.append(np.mean(high - low))
            error.append(np.sqrt(np.mean((model.predict(X) - effect) ** 2)))
        print(f"{name}: coverage {np.mean(covered):.3f} (by experiment {np.min(covered):.3f} to {np.max(covered):.3f}), mean width "
              f"{np.mean(width):.3f}, root mean squared error {np.mean(error):.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
