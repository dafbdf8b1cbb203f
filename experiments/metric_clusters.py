"""How often 95% intervals contain the truth when people come in clusters, with ``groups=`` and without.

Clusters of 2 to 40 people share part of their outcome, of their effect and of their score. Either clusters are assigned as wholes
(shops, centres), or people one by one within them (households). A fixed score is judged, and a noisier one for the paired
difference. The truth is the mean over very many clusters. Run it as

    python experiments/metric_clusters.py [--experiments 400] [--clusters 30 60 200]

which writes metric_clusters.json beside it.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np

from upturn.metrics import RankingWarning, SmallSampleWarning, evaluate

METRICS = ["auuc", "qini", ("uplift_at", {"k": 0.3})]
NAMES = ["auuc", "qini", "uplift_at 0.3"]


def simulate(rng, clusters, whole):
    """y, scores, treatment and the cluster of every row."""
    size = rng.integers(2, 41, clusters)
    groups = np.repeat(np.arange(clusters), size)
    n, level, extra = len(groups), rng.normal(0, 0.5, clusters), rng.normal(0, 0.3, clusters)
    treatment = rng.permutation(np.arange(clusters) % 2)[groups] if whole else rng.integers(0, 2, n)
    effect = 0.2 + extra[groups] + rng.normal(0, 0.3, n)
    y = level[groups] + treatment * effect + rng.normal(0, 1, n)
    return y, {"good": effect + rng.normal(0, 0.3, n), "poor": effect + rng.normal(0, 1, n)}, treatment, groups


def numbers(table):
    """The numbers of a table of both scores, and their differences."""
    found = {name: table["good"][name] for name in NAMES}
    pairs = {f"paired {name}": (table["good"][name], table["poor"][name]) for name in NAMES}
    return found, pairs


def truth(whole, clusters=20_000, parts=25):
    total, rng = {}, np.random.default_rng(1)
    for _ in range(parts):
        y, scores, treatment, _ = simulate(rng, clusters, whole)
        found, pairs = numbers(evaluate(y, scores, treatment, metrics=METRICS, interval=None))
        found |= {name: a - b for name, (a, b) in pairs.items()}
        for name, value in found.items():
            total[name] = total.get(name, 0.0) + float(value) / parts
    return total


def covered(table, true):
    """Whether each interval contains the truth, and its width."""
    found, pairs = numbers(table)
    ends = {name: (value.low, value.high) for name, value in found.items()}
    for name, (a, b) in pairs.items():
        middle, reach = float(a) - float(b), 1.959964 * np.std(a.samples - b.samples, ddof=1)
        ends[name] = (middle - reach, middle + reach)
    return {name: (low <= true[name] <= high) for name, (low, high) in ends.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=400)
    parser.add_argument("--clusters", type=int, nargs="+", default=[30, 60, 200])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", RankingWarning)
    warnings.simplefilter("ignore", SmallSampleWarning)
    results = []
    for whole in (True, False):
        true = truth(whole)
        for clusters in arguments.clusters:
            hits = {"groups": {}, "rows": {}}
            for seed in range(arguments.experiments):
                y, scores, treatment, groups = simulate(np.random.default_rng([2, clusters, seed]), clusters, whole)
                for way, given in (("groups", groups), ("rows", None)):
                    table = evaluate(y, scores, treatment, metrics=METRICS, groups=given, random_state=seed)
                    for name, hit in covered(table, true).items():
                        hits[way].setdefault(name, []).append(bool(hit))
            for way, found in hits.items():
                row = {"assigned": "clusters" if whole else "people", "clusters": clusters, "drawn": way}
                row |= {name: round(float(np.mean(values)), 4) for name, values in found.items()}
                results.append(row)
                print(row, flush=True)
    out = {"experiments": arguments.experiments, "interval": 0.95, "n_bootstrap": 200, "coverage": results}
    Path(__file__).with_suffix(".json").write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
