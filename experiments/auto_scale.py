"""UpliftAuto on a million rows of twenty features: seconds, memory, and what it found.

python experiments/auto_scale.py [--rows 1000000] [--effort normal] [--jobs 2]
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import warnings
from pathlib import Path

import numpy as np

from upturn.ensemble import UpliftAuto

OUT = Path("experiments/auto_scale.json")


def simulate(n, seed):
    """0/1 outcomes, a main effect of three columns and a smooth effect of three others."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 20))
    t = rng.integers(0, 2, n)
    effect = 0.02 + 0.03 * np.tanh(X[:, 0]) + 0.03 * (X[:, 1] > 0.5) - 0.02 * X[:, 2] * (X[:, 3] > 0)
    chance = np.clip(0.2 + 0.05 * X[:, 4] + 0.05 * np.sin(2 * X[:, 5]), 0.02, 0.9)
    return X, (rng.random(n) < np.clip(chance + t * effect, 0, 1)).astype(float), t, effect


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    small = simulate(2000, 1)
    UpliftAuto("low", metric=None, random_state=0).fit(*small[:3])  # what is compiled is compiled
    X, y, t, effect = simulate(options.rows, 0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, processor = time.monotonic(), time.process_time()
    model = UpliftAuto(options.effort, n_jobs=options.jobs, random_state=0).fit(X, y, t)
    seconds = time.monotonic() - start
    score = model.predict(X[:100_000])
    found = {
        "rows": options.rows,
        "effort": options.effort,
        "jobs": options.jobs,
        "seconds": round(seconds, 1),
        "processor_seconds": round(time.process_time() - processor, 1),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "peak_gb_before": round(before / 2**20, 2),
        "correlation_with_effect": round(float(np.corrcoef(score, effect[:100_000])[0, 1]), 4),
        "held_out": [round(float(v), 6) for v in (model.held_out_, model.held_out_.low, model.held_out_.high)],
        "weights": {
            name: round(float(w), 3) for name, w in zip(model.weights_["model"], model.weights_["weight"], strict=True)
        },
    }
    known = json.loads(options.out.read_text()) if options.out.exists() else {}
    known[f"{options.rows} {options.effort} {options.jobs}"] = found
    options.out.write_text(json.dumps(known, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    print(model.leaderboard_)


if __name__ == "__main__":
    main()
