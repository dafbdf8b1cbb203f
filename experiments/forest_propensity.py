"""What a forest makes of arms that were not given at random: the shares of the arms, and what "auto" does instead.

    python experiments/forest_propensity.py [--repeats 20]

Errors of the effects of 10,000 unseen rows, on simulations of ``benchmarks/quality`` whose arms depend on the features, and on others whose arms do not.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.quality.sets import load

from upturn.trees import UpliftForest

SETS = (
    "sim-confounded",
    "sim-confounded-binary",
    "sim-prognostic",
    "sim-prognostic-binary",
    "sim-randomised",
    "sim-thin",
)
OUT = Path(__file__).with_suffix(".json")


def one(name, split):
    """Of each way: root mean squared error, mean error, correlation with the truth, processor seconds, whether shares were kept."""
    train, test = load(name).split(split)
    effect, found = np.ravel(test.effect), {}
    for way in ("shares", "auto"):
        began = time.process_time()
        model = UpliftForest(propensity=way, random_state=split).fit(train.X, train.y, train.treatment)
        seconds, error = time.process_time() - began, np.ravel(model.predict(test.X)) - effect
        numbers = (np.sqrt(np.mean(error**2)), error.mean(), np.corrcoef(error + effect, effect)[0, 1], seconds)
        found[way] = [float(f"{number:.4g}") for number in numbers] + [model.propensity_kind_ == "shares"]
    return found


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    results = {}
    for name in SETS:
        results[name] = [one(name, split) for split in range(repeats)]
        body = ",\n".join(f" {json.dumps(key)}: {json.dumps(rows)}" for key, rows in results.items())
        OUT.write_text(f"{{\n{body}\n}}\n")
        for way in ("shares", "auto"):
            print(name, way, np.mean([row[way] for row in results[name]], axis=0).round(3), flush=True)


if __name__ == "__main__":
    main()
