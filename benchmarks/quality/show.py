"""Paired differences against a baseline, by set and over sets."""

from __future__ import annotations

import math
from typing import NamedTuple

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
    for name in sorted({row["set"] for row in rows}):
        mine = [row for row in rows if row["set"] == name]
        base = _by_split(mine, baseline, measure)
        if not base:
            continue
        line = f"{name:24}{len(base):7}{np.mean(list(base.values())):20.4f}"
        for model in others:
            found = difference(mine, baseline, model, measure)
            line += f"{'-':>24}" if found is None else f"{found[0]:+15.4f} ± {found[1]:.4f}"
        print(line)
    unit = " (over the outcome's standard deviation)" if measure == "auuc" else ""
    print(f"over sets{unit}:")
    for model in others:
        found = over_sets(rows, baseline, model, measure)
        if found is not None:
            print(
                f"  {model:22}{found.mean:+.5f} ± {found.error:.5f}, median {found.median:+.5f}, {found.sets} sets; "
                f"clearly better on {found.better}, worse on {found.worse}"
            )
    failed = {(row["set"], row["model"]): row["failed"] for row in rows if "failed" in row}
    for model in models:
        mine = sorted(name for name, of in failed if of == model)
        if mine:
            print(f"{model} did not fit {', '.join(mine)}: {failed[mine[0], model]}")


class OverSets(NamedTuple):
    """What a model adds to a baseline: mean over sets, its standard error, and on how many sets it is clearly better and worse."""

    mean: float
    error: float
    median: float
    sets: int
    better: int
    worse: int


def difference(rows, baseline, model, measure):
    """Mean paired difference on the splits of one set, and its standard error; None if there is no pair."""
    base = _by_split(rows, baseline, measure)
    pairs = [value - base[k] for k, value in _by_split(rows, model, measure).items() if k in base]
    return (float(np.mean(pairs)), standard_error(pairs, rows[0]["simulated"])) if pairs else None


def over_sets(rows, baseline, model, measure):
    """The differences of all sets together, those of areas in standard deviations of the outcome."""
    found = []
    for name in sorted({row["set"] for row in rows}):
        mine = [row for row in rows if row["set"] == name]
        one = difference(mine, baseline, model, measure)
        if one is not None:
            found.append((one[0] / (mine[0]["scale"] if measure == "auuc" else 1.0), *one))
    if not found:
        return None
    scaled = np.array([one[0] for one in found])
    error = float(scaled.std(ddof=1)) / math.sqrt(len(scaled)) if len(scaled) > 1 else math.nan
    better, worse = (sum(sign * mean > 2 * error for _, mean, error in found) for sign in (1, -1))
    return OverSets(float(scaled.mean()), error, float(np.median(scaled)), len(found), better, worse)


def standard_error(pairs, independent):
    """Of the mean difference; splits of the same rows overlap, which Nadeau and Bengio (2003) correct for."""
    n = len(pairs)
    if n < 2:
        return math.nan
    overlap = 0.0 if independent else TEST_SHARE / (1 - TEST_SHARE)
    return float(np.std(pairs, ddof=1) * math.sqrt(1 / n + overlap))


def _by_split(rows, model, measure):
    return {row["split"]: row[measure] for row in rows if row["model"] == model and row.get(measure) is not None}
