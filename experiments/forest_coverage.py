"""How often 90% intervals of forests hold the true effect, on simulations of different kinds.

    python experiments/forest_coverage.py [--repeats 100] [--points 1000] [--only NAME ...] [--out FILE.json]

Every repeat draws an experiment anew, fits ``UpliftForest(inference=True)`` and, beside it, the defaults with
``ci_group_size=2``, and asks for intervals at fresh points. Coverage is averaged over points, then over repeats; its
margin is 1.96 standard errors over repeats. With a constant effect up to 98% is what unbiased intervals of a shrinking
variance give. The results of the last run are in ``forest_coverage.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.quality.simulated import SIMULATED  # noqa: E402

from upturn.trees import UpliftForest  # noqa: E402

# name: rows
CASES = {
    "sim-randomised": 4000,
    "sim-prognostic": 4000,
    "sim-prognostic-binary": 4000,
    "sim-steps": 4000,
    "sim-heavy-tails": 4000,
    "sim-constant": 3000,
    "sim-null": 2000,
    "sim-unbalanced": 8000,
    "sim-rare": 20_000,
    "sim-confounded": 4000,
}
MODELS = {
    "inference": lambda seed: UpliftForest(inference=True, random_state=seed),
    "default": lambda seed: UpliftForest(500, ci_group_size=2, random_state=seed),
}


def one(name, rows, points, seed):
    """Coverage and width of every model in one experiment."""
    data = SIMULATED[name][0](rows + points, 10_000 + seed)
    X, y, t = np.asarray(data.X, float), np.asarray(data.y), np.asarray(data.treatment)
    effect = np.asarray(data.effect)[rows:]
    found = {}
    for model, make in MODELS.items():
        start = time.process_time()
        forest = make(seed).fit(X[:rows], y[:rows], t[:rows])
        low, high = forest.predict_interval(X[rows:], interval=0.9)
        found[model] = [
            float(((low <= effect) & (effect <= high)).mean()),
            float((high - low).mean()),
            float(np.sqrt(((forest.predict(X[rows:]) - effect) ** 2).mean())),
            time.process_time() - start,
        ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--only", nargs="*", default=list(CASES))
    parser.add_argument("--out", type=Path, default=HERE / "forest_coverage.json")
    options = parser.parse_args()
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in options.only:
        runs = [one(name, CASES[name], options.points, seed) for seed in range(options.repeats)]
        results[name] = {"rows": CASES[name], "points": options.points, "repeats": options.repeats}
        for model in MODELS:
            cover, width, error, seconds = np.array([run[model] for run in runs]).T
            margin = 1.96 * cover.std(ddof=1) / np.sqrt(len(cover)) if len(cover) > 1 else float("nan")
            results[name][model] = {
                "coverage": round(float(cover.mean()), 4),
                "margin": round(float(margin), 4),
                "width": round(float(width.mean()), 4),
                "error": round(float(error.mean()), 4),
                "seconds": round(float(seconds.mean()), 2),
            }
        print(name, results[name], flush=True)
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
