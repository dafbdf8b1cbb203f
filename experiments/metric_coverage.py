"""How often 95% intervals of auuc, qini, autoc and of paired differences contain the truth.

A simulated experiment of n rows is judged by a fixed score, and by a second, noisier one for the paired difference. The
truth is the mean over very many experiments' worth of rows from the same simulation. Run it as

    python experiments/metric_coverage.py [--experiments 500] [--rows 1000]

which writes metric_coverage.json beside it.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np

from upturn.metrics import RankingWarning, autoc, auuc, compare, evaluate, qini

METRICS = {"auuc": auuc, "qini": qini, "autoc": autoc}


def simulate(rng, n, outcome):
    """People of uniform effect -0.2 … 0.4, a score that knows half of it, and another that knows less."""
    effect = rng.uniform(-0.2, 0.4, n)
    good, poor = effect + rng.normal(0, 0.17, n), effect + rng.normal(0, 0.5, n)
    treatment = (rng.random(n) < 0.4).astype(int)
    mean = 0.4 + effect * treatment
    y = (rng.random(n) < mean).astype(float) if outcome == "binary" else mean + rng.exponential(1.0, n) - 1.0
    return y, {"good": good, "poor": poor}, treatment


def truth(outcome, rows=40_000_000, seed=1, parts=20):
    """The three numbers of both scores, and their differences, from the true effect of very many rows."""
    sums, rng = {}, np.random.default_rng(seed)
    for _ in range(parts):
        y, scores, treatment = simulate(rng, rows // parts, outcome)
        for model, score in scores.items():
            for name, metric in METRICS.items():
                sums[model, name] = sums.get((model, name), 0.0) + metric(y, score, treatment) / parts
    return sums


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=500)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 4000])
    parser.add_argument("--truth-rows", type=int, default=40_000_000)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", RankingWarning)
    print(f"{arguments.experiments} experiments, 95% intervals, 200 replicates each; share that contains the truth")
    results = []
    for outcome in ("binary", "skewed"):
        true = truth(outcome, arguments.truth_rows)
        print(f"{outcome} outcome; truth of the good score:", {name: round(true["good", name], 5) for name in METRICS})
        for n in arguments.rows:
            hits = {}
            for seed in range(arguments.experiments):
                y, scores, treatment = simulate(np.random.default_rng([2, n, seed]), n, outcome)
                table = evaluate(y, scores, treatment, metrics=list(METRICS), random_state=seed)
                for name in METRICS:
                    value = table["good"][name]
                    hits.setdefault(name, []).append(value.low <= true["good", name] <= value.high)
                    pair = compare(y, scores, treatment, metric=name, baseline="poor", random_state=seed)
                    difference = true["good", name] - true["poor", name]
                    hits.setdefault(f"paired {name}", []).append(pair["low"][0] <= difference <= pair["high"][0])
            held = {name: round(float(np.mean(values)), 4) for name, values in hits.items()}
            results.append({"outcome": outcome, "rows": n, "held": held})
            line = "  ".join(f"{name} {share:.1%}" for name, share in held.items())
            print(f"  n = {n:5,}: {line}", flush=True)
    out = {"experiments": arguments.experiments, "interval": 0.95, "n_bootstrap": 200, "coverage": results}
    Path(__file__).with_suffix(".json").write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
