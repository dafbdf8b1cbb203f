"""Paired differences against a baseline, by set and over sets."""

from __future__ import annotations

import math

import numpy as np
from benchmarks.quality.run import read
from benchmarks.quality.sets import TEST_SHARE

MEASURES = ("auuc", "share", "rank_correlation", "correlation", "policy", "seconds")


def show(path, baseline, measure="auuc", half=None):
    """Print the table."""
    rows = [row for row in read(path) if half is None or row["half"] == half]
    models = sorted({row["model"] for row in rows})
    if baseline not in models:
        raise SystemExit(f"{path.name} has no contestant {baseline!r} to compare with: it has {models}")
    others = [model for model in models if model != baseline]
    print(f"{measure}: {baseline}, and what the others add to it ± standard error (paired by split)")
    print(f"{'set':24}{'splits':>7}{baseline:>20}" + "".join(f"{model:>24}" for model in others))
    collected = {model: [] for model in others}
    for name in sorted({row["set"] for row in rows}):
        mine = [row for row in rows if row["set"] == name]
        base = _by_split(mine, baseline, measure)
        if not base:
            continue
        line = f"{name:24}{len(base):7}{np.mean(list(base.values())):20.4f}"
        for model in others:
            pairs = [(value - base[k]) for k, value in _by_split(mine, model, measure).items() if k in base]
            if not pairs:
                line += f"{'-':>24}"
                continue
            mean, error = float(np.mean(pairs)), standard_error(pairs, mine[0]["simulated"])
            line += f"{mean:+15.4f} ± {error:.4f}"
            unit = mine[0]["scale"] if measure == "auuc" else 1.0
            collected[model].append((mean / unit, mean, error))
        print(line)
    unit = " (over the outcome's standard deviation)" if measure == "auuc" else ""
    print(f"over sets{unit}:")
    for model, found in collected.items():
        if not found:
            continue
        scaled = np.array([one[0] for one in found])
        better = sum(mean > 2 * error for _, mean, error in found)
        worse = sum(mean < -2 * error for _, mean, error in found)
        error = scaled.std(ddof=1) / math.sqrt(len(scaled)) if len(scaled) > 1 else math.nan
        print(
            f"  {model:22}{scaled.mean():+.5f} ± {error:.5f}, median {np.median(scaled):+.5f}, {len(found)} sets; "
            f"clearly better on {better}, worse on {worse}"
        )
    failed = {(row["set"], row["model"]): row["failed"] for row in rows if "failed" in row}
    for model in models:
        mine = sorted(name for name, of in failed if of == model)
        if mine:
            print(f"{model} did not fit {', '.join(mine)}: {failed[mine[0], model]}")


def standard_error(pairs, independent):
    """Of the mean difference; splits of the same rows overlap, which Nadeau and Bengio (2003) correct for."""
    n = len(pairs)
    if n < 2:
        return math.nan
    overlap = 0.0 if independent else TEST_SHARE / (1 - TEST_SHARE)
    return float(np.std(pairs, ddof=1) * math.sqrt(1 / n + overlap))


def _by_split(rows, model, measure):
    return {row["split"]: row[measure] for row in rows if row["model"] == model and row.get(measure) is not None}
