"""A stranger's gauntlet: every model at its defaults on forty awkward tables, over seeds.

    python experiments/gauntlet/run.py --seeds 10 --minutes 60     # goes on where it stopped
    python experiments/gauntlet/run.py --show                      # gauntlet.md from gauntlet.jsonl

A line of ``gauntlet.jsonl`` is one fit: rank correlation of predictions and true effects on unseen rows, distinct predictions, warnings,
an error if there was one. A model passes a table if its mean rank correlation is more than 2 standard errors above 0, or if it said
in most of its fits why it cannot; where an oracle that knows the shape of the effect would not see it either, nothing is asked.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent / "src"), str(HERE)]

from tables import EASY, TABLES, TEST  # noqa: E402

from upturn.boosting import UpliftBagging, UpliftBoosting  # noqa: E402
from upturn.meta import ClassTransformation, DRLearner, RLearner, SLearner, TLearner, XLearner  # noqa: E402
from upturn.policy import UpliftCalibrator  # noqa: E402
from upturn.svm import DifferentialSVM, SubgroupSVM, TwoCostSVM, UpliftSVM, UpliftSVMCV  # noqa: E402
from upturn.trees import CTSForest, UCTSForest, UpliftForest, UpliftTree  # noqa: E402

# All that estimate whom treatment helps; who merely responds is another question (StandardSVM, TreatedOnly).
MODELS = {
    kind.__name__: kind
    for kind in (
        UpliftTree, UpliftForest, CTSForest, UCTSForest, UpliftBoosting, UpliftBagging, ClassTransformation, SLearner, TLearner,
        XLearner, DRLearner, RLearner, UpliftSVM, UpliftSVMCV, DifferentialSVM, TwoCostSVM, SubgroupSVM,
    )
} | {"UpliftCalibrator": lambda **options: UpliftCalibrator(TLearner(**options), **options)}  # fmt: skip
RESULTS = HERE / "gauntlet.jsonl"
VISIBLE = 2.0  # standard errors at which an oracle sees the effect


def oracle(made, rows):
    """How many standard errors the effect is away from 0 for somebody who knows its shape."""
    shape, t, y = made.effect[rows] - made.effect[rows].mean(), made.t[rows] - made.t[rows].mean(), made.y[rows]
    design = np.column_stack([np.ones_like(y), shape, t, shape * t])
    coef, *_ = np.linalg.lstsq(design, y, rcond=None)
    left = y - design @ coef
    inverse = np.linalg.pinv(design.T @ design)
    spread = inverse @ (design.T * left**2) @ design @ inverse
    return float(coef[3] / np.sqrt(max(spread[3, 3], 1e-300)))


def one(table, name, seed):
    rng = np.random.default_rng([seed, sorted(TABLES).index(table)])
    made = TABLES[table](rng)
    n = len(made.X) - TEST
    learn, unseen = slice(0, n), slice(n, None)
    found = {"table": table, "model": name, "seed": seed, "oracle": oracle(made, learn)}
    began = time.time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            try:
                model = MODELS[name](random_state=seed)
            except TypeError:
                model = MODELS[name]()
            model.fit(made.X.iloc[learn], made.y[learn], made.t[learn])
            fitted = len(said)
            score = model.predict(made.X.iloc[unseen])
            found["distinct"] = len(np.unique(score))
            found["rank"] = float(spearmanr(score, made.effect[unseen]).statistic) if found["distinct"] > 1 else 0.0
        except Exception as error:
            fitted = len(said)
            found["error"] = f"{type(error).__name__}: {error}"[:300]
            last = traceback.extract_tb(error.__traceback__)[-1]
            found["ours"] = "upturn" in Path(last.filename).parts and (last.line or "").startswith("raise")
    found["warnings"] = [f"{one.category.__name__}: {one.message}"[:300] for one in said[:fitted]]
    found["seconds"] = round(time.time() - began, 2)
    return found


def run(seeds, minutes):
    done = {(one["table"], one["model"], one["seed"]) for one in read()}
    end = time.time() + 60 * minutes
    with RESULTS.open("a") as file:
        # The slow one comes last of every seed.
        for seed, slow in itertools.product(range(seeds), (False, True)):
            for table, name in itertools.product(TABLES, MODELS):
                if (table, name, seed) in done or (name == "UpliftSVMCV") != slow:
                    continue
                if time.time() > end:
                    return
                print(json.dumps(one(table, name, seed)), file=file, flush=True)


def read():
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def verdict(fits):
    """passed, warned, refused, unseen (by the oracle too), or what is wrong: constant, failed."""
    if all("error" in one for one in fits):
        return "refused" if all(one["ours"] for one in fits) else "raw error"
    ranks = [one["rank"] for one in fits if "rank" in one]
    spread = np.std(ranks, ddof=1) / np.sqrt(len(ranks)) if len(ranks) > 1 else 0.1
    if np.mean(ranks) > 2 * spread:
        return "passed"
    if np.mean([bool(one["warnings"]) for one in fits]) > 0.5:
        return "warned"
    if any(one.get("distinct") == 1 and not one["warnings"] for one in fits):
        return "SILENT CONSTANT"
    return "unseen" if np.mean([one["oracle"] for one in fits]) < VISIBLE else "FAILED"


def show():
    groups = collections.defaultdict(list)
    for fit in read():
        groups[fit["table"], fit["model"]].append(fit)
    verdicts = {key: verdict(fits) for key, fits in groups.items()}
    kinds = ["passed", "warned", "refused", "unseen", "SILENT CONSTANT", "FAILED", "raw error"]
    seeds = collections.Counter(len(fits) for fits in groups.values())
    easy = [fit for (table, _), fits in groups.items() if table in EASY for fit in fits]
    false = [fit for fit in easy if fit["warnings"]]
    lines = [
        "# A stranger's gauntlet\n\nMade by `python experiments/gauntlet/run.py --show`; fits a table and model (seeds: tables and models): "
        + ", ".join(f"{n}: {count}" for n, count in sorted(seeds.items())),
        f"\nWarnings on easy tables: {len(false)} of {len(easy)} fits ({len(false) / max(len(easy), 1):.1%}).\n",
        f"| model | {' | '.join(kinds)} |",
        f"|---|{'---:|' * len(kinds)}",
    ]
    for name in MODELS:
        found = collections.Counter(one for (_, model), one in verdicts.items() if model == name)
        lines.append(f"| {name} | {' | '.join(str(found[kind]) for kind in kinds)} |")
    lines.append("\n## What did not pass\n")
    for (table, name), said in sorted(verdicts.items()):
        if said in ("SILENT CONSTANT", "FAILED", "raw error"):
            fits = groups[table, name]
            ranks = [one["rank"] for one in fits if "rank" in one]
            detail = (
                fits[0].get("error")
                or f"rank correlation {np.mean(ranks):.2f}, oracle {np.mean([o['oracle'] for o in fits]):.1f} errors"
            )
            lines.append(f"- {table}, {name}: {said} ({detail})")
    lines.append("\n## Warnings on easy tables\n")
    texts = collections.Counter((one["model"], text[:160]) for one in false for text in set(one["warnings"]))
    lines += [f"- {name} ({count}): {text}" for (name, text), count in texts.most_common(20)]
    (HERE / "gauntlet.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if not options.show:
        run(options.seeds, options.minutes)
    show()
