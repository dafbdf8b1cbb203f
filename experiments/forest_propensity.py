"""What a forest makes of arms that were not given at random: the shares of the arms, and what "auto" does instead.

    python experiments/forest_propensity.py [--repeats 20]

Errors of the effects of 10,000 unseen rows, on simulations of ``benchmarks/quality`` whose arms depend on the features, and on others whose arms do not.

    python experiments/forest_propensity.py --overlap [--repeats 10]

How much overlap estimated chances leave, and errors with them and with the shares, where one feature drives who is treated, ever more strongly, where whole shops
were, and where the sign of a product of two features drives it (so many in a hundred of those of one sign are treated, and of the other as many are not). The
least overlap with which "auto" uses estimated chances was settled on the seeds 0 to 3 of these, which are not among those kept.

    python experiments/forest_propensity.py --rules [--minutes 10]

The decision of forests beside that of learners, which fit models of the arms: how often either keeps the shares, and how long it takes; and what it is worth. Tables of
``experiments/propensity_auto.py``, 5,000 unseen rows; a run goes on where it was stopped.
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

from experiments.propensity_auto import ASSIGNMENTS, simulate
from upturn._experiment import Experiment
from upturn._nuisance import choose_propensity
from upturn._table import read_table
from upturn._target import read_target
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
OVERLAP, RULES = OUT.with_name("forest_overlap.json"), OUT.with_name("forest_rules.json")
REPEATS = {300: 40, 1000: 30, 5000: 10, 20_000: 4}  # by rows
SLOPES, SHOPS, PRODUCTS = (1, 2, 4, 6, 10, 20), (20, 40, 100, 300, 1000), (60, 70, 90)


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


def draw(kind, size, seed, n=4000):
    """Features, outcomes, arms and effects: log-odds of treatment with a slope, shops of which half were treated, or a product's sign."""
    rng = np.random.default_rng([size, seed])
    if kind == "product":
        X = rng.normal(size=(n, 5))
        sign = np.sign(X[:, 0] * X[:, 1])
        treatment = (rng.random(n) < 0.5 + (size / 100 - 0.5) * sign).astype(int)
        effect = 0.5 + 0.5 * np.sign(X[:, 2])
        return X, sign + X[:, 3] + effect * treatment + rng.normal(size=n), treatment, effect
    if kind == "slope":
        X = rng.normal(size=(n, 5))
        treatment = (rng.random(n) < 1 / (1 + np.exp(-size * X[:, 0]))).astype(int)
        effect = 0.5 + 0.5 * np.sign(X[:, 1])
        return X, X[:, 0] + X[:, 2] + effect * treatment + rng.normal(size=n), treatment, effect
    shop, of_shop = rng.integers(0, size, n), rng.normal(size=(size, 3))
    X = np.column_stack([of_shop[shop], rng.normal(size=(n, 2))])
    treatment = rng.permutation(np.arange(size) % 2)[shop]
    effect = 0.5 + 0.5 * np.sign(X[:, 3])
    return X, X[:, 3] + 0.5 * X[:, 0] + effect * treatment + rng.normal(size=n), treatment, effect


def overlap(kind, size, seed):
    """Of each way: root mean squared error and mean error; what chances leave to compare; and the way of "auto"."""
    X, y, treatment, effect = draw(kind, size, seed)
    found = {}
    for way, center in (("shares", "auto"), ("trees", True), ("auto", "auto")):
        model = UpliftForest(propensity=way, center=center, random_state=seed).fit(X, y, treatment)
        error = model.predict(X) - effect
        found[way] = [float(f"{number:.4g}") for number in (np.sqrt(np.mean(error**2)), error.mean())]
    found["chosen"] = model.propensity_kind_
    found["left"] = None if model._left is None else round(model._left, 4)  # of arms that look alike it is not known
    return found


def rule(n, assignment, seed):
    """Of each way: root mean squared error, mean error, processor seconds; the way of "auto", and that of the learners' rule with its seconds."""
    X, y, treatment = simulate(n, assignment, 1000 + seed)
    unseen = np.random.default_rng(seed).normal(size=(5000, 10))
    effect, found = 1.0 + 0.5 * unseen[:, 3], {}
    for way, center in (("shares", "auto"), ("trees", True), ("auto", "auto")):
        began = time.process_time()
        model = UpliftForest(propensity=way, center=center, random_state=seed).fit(X, y, treatment)
        seconds, error = time.process_time() - began, model.predict(unseen) - effect
        found[way] = [float(f"{number:.4g}") for number in (np.sqrt(np.mean(error**2)), error.mean(), seconds)]
    found["chosen"] = model.propensity_kind_
    began = time.process_time()
    found["learners"] = choose_propensity("auto", Experiment(*read_table(X), read_target(y, treatment, None))).kind
    found["learners_seconds"] = float(f"{time.process_time() - began:.4g}")
    return found


def measure_rules(minutes):
    """The smaller tables first; as many repeats as there is time for."""
    rule(300, "half", 0)  # kernels compile
    end, results = time.monotonic() + 60 * minutes, json.loads(RULES.read_text()) if RULES.exists() else {}
    for n, repeats in REPEATS.items():
        for seed in range(repeats):
            for assignment in ASSIGNMENTS:
                rows = results.setdefault(f"{n} {assignment}", [])
                if len(rows) > seed or time.monotonic() > end:
                    continue
                rows.append(rule(n, assignment, seed))
        write(results, RULES)


def write(results, out):
    """Keep results, a line for each simulation."""
    body = ",\n".join(f" {json.dumps(key)}: {json.dumps(rows)}" for key, rows in results.items())
    out.write_text(f"{{\n{body}\n}}\n")


def measure_overlap(repeats):
    results = {}
    for kind, sizes in (("slope", SLOPES), ("shops", SHOPS), ("product", PRODUCTS)):
        for size in sizes:
            results[f"{kind} {size}"] = rows = [overlap(kind, size, 4 + seed) for seed in range(repeats)]
            write(results, OVERLAP)
            errors = {way: np.mean([row[way] for row in rows], axis=0).round(3) for way in ("shares", "trees", "auto")}
            print(kind, size, errors, [row["left"] for row in rows], flush=True)


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--overlap", action="store_true")
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("--minutes", type=float, default=1e6)
    options = parser.parse_args()
    repeats, results = options.repeats, {}
    if options.overlap:
        measure_overlap(repeats)
        return
    if options.rules:
        measure_rules(options.minutes)
        return
    for name in SETS:
        results[name] = [one(name, split) for split in range(repeats)]
        write(results, OUT)
        for way in ("shares", "auto"):
            print(name, way, np.mean([row[way] for row in results[name]], axis=0).round(3), flush=True)


if __name__ == "__main__":
    main()
