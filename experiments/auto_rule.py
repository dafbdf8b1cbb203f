"""The trials on which UpliftAuto's decision between a stack and one effect for everybody was settled.

    python experiments/auto_rule.py [--trials 16] [--minutes 60]

The five designs of ``auto_power.py``, drawn by other seeds: eight candidates predict every row from four folds of the others. Kept are the p-value of the
decision, and how well the predictions of unseen rows rank true effects, as a share of the best there is: of every candidate, of the
one with the largest cross-validated AUUC, and of the stack, whose weights were learnt on the other folds. What was found is kept as it comes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import Ridge

sys.path.insert(0, str(Path(__file__).resolve().parent))
from auto_power import DESIGNS, N, shape_of, share

from upturn._experiment import Experiment
from upturn._nuisance import crossfit_responses, make_folds
from upturn._table import read_table
from upturn._target import read_target
from upturn.ensemble._combine import combine
from upturn.ensemble._evidence import LEVEL, feature_scores, weigh_evidence
from upturn.ensemble._losses import Problem
from upturn.ensemble._weights import STRONGEST, fit_without_each
from upturn.meta import RLearner, SLearner, TLearner, XLearner
from upturn.metrics import auuc
from upturn.policy import UpliftCalibrator
from upturn.svm import UpliftSVM
from upturn.trees import UpliftForest

OUT = Path(__file__).with_suffix(".json")
KEYS = {"linear": 89708, "thin": 43719, "corner": 2625, "smooth": 70774, "flags": 17046}  # of the draws
SCALES = {
    "linear": 0.39591911300039445,
    "thin": 0.39591911300039445,
    "corner": 0.7677772109150158,
    "smooth": 0.7919865659044055,
    "flags": 1.0152630860671636,
}
CANDIDATES = {
    "forest": UpliftForest(),
    "centred forest": UpliftForest(center=True),
    "S-learner": SLearner(),
    "T-learner": TLearner(),
    "X-learner": XLearner(propensity="shares"),
    "linear X-learner": XLearner(Ridge(), propensity="shares"),
    "linear R-learner": RLearner(Ridge(), propensity="shares"),
    "uplift machine": UpliftCalibrator(UpliftSVM(), cv=2),
}


def predictions(data, folds, trial):
    """Effects of every row by candidates that have not seen its fold, and by the model of outcomes, likewise."""
    binary = set(np.unique(data.y)) <= {0.0, 1.0}
    found = {}
    for name, candidate in CANDIDATES.items():
        if name == "uplift machine" and not binary:
            continue
        effects = np.empty(len(data))
        for train, test in folds:
            model = clone(candidate)
            if "random_state" in model.get_params(deep=False):
                model.random_state = trial
            model._fit(data.take(train))
            effects[test] = model._predict(data.X[test])[:, 0]
        found[name] = effects
    return found, crossfit_responses(None, data, [(0, 1)], folds, np.uint64(trial))[:, 0]


def one(name, differ, trial):
    """What the decision and the stack make of one trial."""
    scale = SCALES[name] if differ else 0.0
    X, y, t, effect = shape_of(np.random.default_rng([KEYS[name], 1000 + trial]), name, N, scale)
    data = Experiment(*read_table(X), read_target(y, t))
    folds = make_folds(data, 5, np.uint64(trial))
    fold = np.empty(N, np.int64)
    for number, (_, test) in enumerate(folds):
        fold[test] = number
    return judge(data, fold, effect, *predictions(data, folds, trial))


def judge(data, fold, effect, found, outcome):
    """The decision, and shares of the best ranking."""
    problem = Problem(np.arange(N), data.y - outcome, data.arm - data.arm.mean(), np.ones(N), fold, True)
    effects = np.column_stack(list(found.values()))
    seen = weigh_evidence(problem, effects, feature_scores(data), 5, 1)
    ridge = combine(problem, effects, 5, "auto").ridge
    centred = effects - effects.mean(axis=0)
    weights = np.array(fit_without_each(problem.grams(centred, 5), 2, min(ridge, STRONGEST)))[:, 2:]
    result = {"pvalue": round(seen.pvalue, 5)}
    if np.ptp(effect) > 1e-12 and data.y.std() > 0:
        areas = [auuc(data.y, column, data.arm) for column in effects.T]
        shares = {name: share(_in_folds(column, fold), effect) for name, column in found.items()}
        result["stack"] = share(_in_folds((centred * weights[fold]).sum(axis=1), fold), effect)
        result |= {"alone": shares, "by auuc": list(shares.values())[int(np.argmax(areas))]}
    return result


def _in_folds(score, fold):
    """A score without the means of folds."""
    return score - (np.bincount(fold, score) / np.bincount(fold))[fold]


def table(results):
    """A line for every design, and what the stack is worth beside the best by AUUC."""
    lines = [
        "| design | trials | constant without differences | not constant with differences | best candidate in hindsight | best by AUUC | stack |",
        "|---|---|---|---|---|---|---|",
    ]
    whole = {True: [], False: []}
    for name in [*DESIGNS, "all"]:
        rows = {differ: results.get(f"{name} {differ}", []) for differ in (False, True)}
        for differ in rows:
            whole[differ] += rows[differ]
        rows = whole if name == "all" else rows
        shares = np.array([[max(row["alone"].values()), row["by auuc"], row["stack"]] for row in rows[True]])
        cells = [
            name,
            f"{len(rows[False])} + {len(rows[True])}",
            str(sum(row["pvalue"] >= LEVEL for row in rows[False])),
        ]
        cells += [
            str(sum(row["pvalue"] < LEVEL for row in rows[True])),
            *(f"{value:.2f}" for value in shares.mean(axis=0)),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    gain = shares[:, 2] - shares[:, 1]
    reach = 1.96 * gain.std(ddof=1) / np.sqrt(len(gain))
    good = shares[:, 0] >= 0.9
    lines += [
        "",
        f"The stack's share is {gain.mean():.3f} larger ({gain.mean() - reach:.3f} to {gain.mean() + reach:.3f}) than that of the candidate with the largest cross-validated "
        f"AUUC. Where some candidate has 90% of the best ranking's area, in {int(good.sum())} trials, the stack has 80% in {int((shares[good, 2] >= 0.8).sum())}.",
    ]
    return "\n".join(lines)


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so long")
    options = parser.parse_args()
    end = time.time() + 60 * options.minutes
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    for trial in range(options.trials):
        for differ in (False, True):
            for name in DESIGNS:
                rows = results.setdefault(f"{name} {differ}", [])
                if any(row["trial"] == trial for row in rows) or time.time() > end:
                    continue
                rows.append({"trial": trial, **one(name, differ, trial)})
                write(results)
    print(table(results))


def write(results):
    """Keep what was found, a line for every trial."""
    OUT.write_text(json.dumps(results, indent=None).replace("}, {", "},\n{") + "\n")


if __name__ == "__main__":
    main()
