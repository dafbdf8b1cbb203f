"""The look at the arms before a forest is fitted: how often it takes a trial for something else, and what it costs.

    python experiments/forest_look.py --alarms 3000     # how many of so many randomised tables of each kind have small p-values
    python experiments/forest_look.py --cost            # processor seconds of the look, and of the fit around it

Alarms: of the joint test of balance and of the trees, each at 400 rows unless the kind says otherwise; arms are called unlike below .0001. Both parts are kept in one file.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np

from upturn.trees import UpliftForest, _forest
from upturn.trees._look import Seen, look_at

OUT = Path(__file__).with_suffix(".json")
LEVELS = (0.05, 0.01, 0.001, 0.0001)
KINDS = (
    "numbers",
    "ties",
    "500 levels",
    "yes or no",
    "half missing",
    "100 columns",
    "200 rows",
    "1% treated of 12,000",
    "1% control of 12,000",
    "three arms, 800 rows",
    "weights, log-normal",
    "five copies of each row",
    "households of four, 1,600 rows",
)
SIZES = (100, 1000, 10_000, 100_000, 1_000_000)


def draw(kind, seed):
    """X, arms, number of treatment arms, weights and numbers of levels of a randomised table."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n = {"200 rows": 200, "1% treated of 12,000": 12_000, "1% control of 12,000": 12_000}.get(kind, 400)
    n = {"three arms, 800 rows": 800, "households of four, 1,600 rows": 1600}.get(kind, n)
    X, arm = rng.normal(size=(n, 100 if kind == "100 columns" else 4)), rng.integers(0, 2, n)
    n_arms, weight, levels = 1, None, [None] * X.shape[1]
    if kind == "ties":
        X = np.where(rng.random(X.shape) < 0.8, 0.0, np.round(X))
    elif kind == "500 levels":
        X[:, 0], levels[0] = rng.integers(0, 500, n), [str(k) for k in range(500)]
    elif kind == "yes or no":
        X = (X > 0).astype(float)
    elif kind == "half missing":
        X[rng.random(X.shape) < 0.5] = np.nan
    elif kind == "200 rows":
        arm = rng.permutation(np.arange(n) % 2)
    elif kind.startswith("1%"):
        arm = (rng.permutation(n) < n // 100).astype(int)
        arm = arm if "treated" in kind else 1 - arm
    elif kind.startswith("three arms"):
        n_arms, arm = 3, rng.integers(0, 4, n)
    elif kind.startswith("weights"):
        weight = np.exp(1.5 * rng.normal(size=n))
    elif kind.startswith("five copies"):
        X, arm = np.repeat(X, 5, axis=0), np.repeat(arm, 5)
    elif kind.startswith("households"):
        house = np.repeat(np.arange(n // 4), 4)
        X[:, :2], arm = X[house, :2], arm[house]
    return X, arm.astype(np.uint8), n_arms, weight, levels


def alarms(repeats):
    """Of each kind: tables, those that trees were asked about, and how many p-values are below each level, of the joint test and of the trees."""
    found = {}
    for kind in KINDS:
        joint, trees, asked = [], [], 0
        for seed in range(repeats):
            X, arm, n_arms, weight, levels = draw(kind, seed)
            seen = Seen(np.arange(len(X), dtype=np.uint64), X, arm, weight)
            look = look_at(seen, SimpleNamespace(levels=levels), n_arms)
            joint.append(look.pvalue)
            trees.append(look.told.pvalue)
            asked += look.told.auc is not None
        counts = [[int(np.sum(np.array(one) < level)) for level in LEVELS] for one in (joint, trees)]
        found[kind] = {"tables": repeats, "asked": asked, "joint": counts[0], "trees": counts[1]}
        print(kind, found[kind], flush=True)
    return found


def cost():
    """Of each size and outcome, 12 columns, one thread: processor seconds of the look and of the whole fit, the least of some."""
    found, spent = {}, []
    real = _forest.look_at_arms

    def timed(data):
        began = time.process_time()
        look = real(data)
        spent.append(time.process_time() - began)
        return look

    with patch.object(_forest, "look_at_arms", timed):
        for n in (300, *SIZES):  # the first compiles
            rng = np.random.default_rng(0)
            X, treatment = rng.normal(size=(n, 12)), rng.integers(0, 2, n)
            y = X[:, 0] + treatment * X[:, 1] + rng.normal(size=n)
            for outcome in ("two values", "real-valued")[: 1 if n == SIZES[-1] else 2]:
                spent.clear()
                seconds = []
                for _ in range(5 if n < 50_000 else 1):
                    began = time.process_time()
                    UpliftForest(random_state=0, n_jobs=1).fit(X, y if outcome == "real-valued" else y > 0, treatment)
                    seconds.append(time.process_time() - began)
                found[f"{n} {outcome}"] = [float(f"{min(one):.3g}") for one in (spent, seconds)]
                print(n, outcome, found[f"{n} {outcome}"], flush=True)
    return {key: value for key, value in found.items() if not key.startswith("300 ")}


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--alarms", type=int, default=0, help="tables of each kind")
    parser.add_argument("--cost", action="store_true")
    options = parser.parse_args()
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    if options.cost:
        results["cost"] = cost()
    if options.alarms:
        results["alarms"] = alarms(options.alarms)
    parts = [
        f' "{part}": {{\n' + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items()) + "\n }"
        for part, rows in results.items()
    ]
    OUT.write_text("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    main()
