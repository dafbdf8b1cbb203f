"""Meta-learners where those who do well anyway are treated more often: error of the predicted effect.

python experiments/meta_confounding.py [--sets 5] [--rows 3000] [--keep]      # --keep writes meta_confounding.json
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np

from upturn.meta import DRLearner, RLearner, SLearner, TLearner, XLearner


def simulate(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    t = (rng.random(n) < 1 / (1 + np.exp(-(X[:, 0] + 0.5 * X[:, 1])))).astype(int)
    effect = 0.2 + 0.6 * (X[:, 2] > 0)
    y = 2 * X[:, 0] + X[:, 1] ** 2 + np.sin(2 * X[:, 3]) + effect * t + rng.normal(size=n)
    return X, y, t, effect


def main():
    warnings.simplefilter("ignore")  # of clipped propensities
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=5)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    found = {"rows": options.rows, "errors": {}}
    for learner in (SLearner, TLearner, XLearner, DRLearner, RLearner):
        errors = []
        for seed in range(options.sets):
            X, y, t, _ = simulate(options.rows, seed)
            new, _, _, effect = simulate(options.rows, seed + 100)
            predicted = learner(random_state=0).fit(X, y, t).predict(new)
            errors.append(np.sqrt(np.mean((predicted - effect) ** 2)))
        print(
            f"{learner.__name__:<10} {np.mean(errors):.3f} ± {np.std(errors, ddof=1) / np.sqrt(len(errors)):.3f}",
            flush=True,
        )
        found["errors"][learner.__name__] = [float(f"{error:.6g}") for error in errors]
    if options.keep:
        Path(__file__).with_suffix(".json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
