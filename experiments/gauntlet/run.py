"""A stranger's gauntlet: every model at its defaults (UpliftAuto without measuring itself) on forty awkward tables, over seeds.

    python experiments/gauntlet/run.py --seeds 10 --minutes 60     # goes on where it stopped
    python experiments/gauntlet/run.py --show                      # results.json and results.md from what was run

What a fit gives is kept as a line of ``run.jsonl``: rank correlation of predictions and true effects on unseen rows, distinct
predictions, warnings, an error if there was one. A model passes a table if its mean rank correlation is more than 2 standard errors
above 0, or if it said in most of its fits why it cannot; where an oracle that knows the shape of the effect would not see it either,
nothing is asked. One prediction for everybody without a word is a failure on any seed.
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
from upturn.ensemble import UpliftAuto, UpliftStacking  # noqa: E402
from upturn.meta import ClassTransformation, DRLearner, RLearner, SLearner, TLearner, XLearner  # noqa: E402
from upturn.policy import UpliftCalibrator  # noqa: E402
from upturn.svm import DifferentialSVM, SubgroupSVM, TwoCostSVM, UpliftSVM, UpliftSVMCV  # noqa: E402
from upturn.trees import CTSForest, UCTSForest, UpliftForest, UpliftTree  # noqa: E402

# All that estimate whom treatment helps; who merely responds is another question (StandardSVM, TreatedOnly).
MODELS = {
    kind.__name__: kind
    for kind in (
        UpliftTree, UpliftForest, CTSForest, UCTSForest, UpliftBoosting, UpliftBagging, ClassTransformation, SLearner, TLearner,
        XLearner, DRLearner, RLearner, UpliftSVM, UpliftSVMCV, DifferentialSVM, TwoCostSVM, SubgroupSVM, UpliftStacking, UpliftAuto,
    )
} | {
    "UpliftCalibrator": lambda **options: UpliftCalibrator(TLearner(**options), **options),
    # on fewer than 20,000 rows it predicts the same without measuring itself on folds, which takes twice the time of the rest
    "UpliftAuto": lambda **options: UpliftAuto(metric=None, **options),
}  # fmt: skip
RUN, RESULTS = HERE / "run.jsonl", HERE / "results.json"
VISIBLE = 2.0  # standard errors at which an oracle sees the effect
SLOW = ("UpliftSVMCV", "UpliftStacking", "UpliftAuto")  # come last


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
    began = time.process_time()
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
    found["seconds"] = round(time.process_time() - began, 2)
    return found


def run(first, seeds, minutes, only, tables, again):
    done = set() if again else {(one["table"], one["model"], one["seed"]) for one in read()}
    end = time.time() + 60 * minutes
    with RUN.open("a") as file:
        for slow, seed in itertools.product((False, True), range(first, seeds)):
            for table, name in itertools.product(tables or TABLES, only or MODELS):
                if (table, name, seed) in done or (name in SLOW) != slow:
                    continue
                if time.time() > end:
                    return
                print(json.dumps(one(table, name, seed)), file=file, flush=True)


def read():
    """Every fit: of the committed results, and of the run, which goes before."""
    own = [json.loads(line) for line in RUN.read_text().splitlines()] if RUN.exists() else []
    return list({(one["table"], one["model"], one["seed"]): one for one in (*read_results(), *own)}.values())


def read_results():
    """Every fit of the committed results."""
    if not RESULTS.exists():
        return []
    found = []
    for line in json.loads(RESULTS.read_text()):
        for values in zip(*line["fits"].values(), strict=True):
            fit = {key: value for key, value in zip(line["fits"], values, strict=True) if value is not None}
            found.append({"table": line["table"], "model": line["model"]} | fit)
    return found


def write(fits):
    """A line for every table and model, with a list over seeds of each number."""
    lines = []
    for (table, name), group in grouped(fits).items():
        keys = dict.fromkeys(key for fit in group for key in fit if key not in ("table", "model"))
        values = {key: [_short(fit.get(key)) for fit in group] for key in keys}
        lines.append(json.dumps({"table": table, "model": name, "fits": values}))
    RESULTS.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def _short(value):
    return float(f"{value:.4g}") if isinstance(value, float) else value


def grouped(fits):
    groups = collections.defaultdict(list)
    for fit in sorted(fits, key=lambda fit: fit["seed"]):
        groups[fit["table"], fit["model"]].append(fit)
    places = {pair: i for i, pair in enumerate(itertools.product(TABLES, MODELS))}
    return dict(sorted(groups.items(), key=lambda item: places[item[0]]))


BAD = ("SILENT CONSTANT", "NOT CONVERGED", "FAILED", "raw error")


def verdict(fits):
    """passed, warned, refused, unseen (by the oracle too), or what is wrong, as in ``BAD``."""
    if all("error" in one for one in fits):
        return "refused" if all(one["ours"] for one in fits) else "raw error"
    if any(one.get("distinct") == 1 and not one["warnings"] for one in fits):
        return "SILENT CONSTANT"
    if any("ConvergenceWarning" in text for one in fits for text in one["warnings"]):
        return "NOT CONVERGED"
    ranks = [one["rank"] for one in fits if "rank" in one]
    spread = np.std(ranks, ddof=1) / np.sqrt(len(ranks)) if len(ranks) > 1 else 0.1
    if np.mean(ranks) > 2 * spread:
        return "passed"
    if np.mean([bool(one["warnings"]) for one in fits]) > 0.5:
        return "warned"
    return "unseen" if np.mean([one["oracle"] for one in fits]) < VISIBLE else "FAILED"


def show():
    groups = grouped(read())
    verdicts = {key: verdict(fits) for key, fits in groups.items()}
    kinds = ["passed", "warned", "refused", "unseen", *BAD]
    seeds = collections.Counter(len(fits) for fits in groups.values())
    easy = [fit for (table, _), fits in groups.items() if table in EASY for fit in fits if "error" not in fit]
    false = [fit for fit in easy if fit["warnings"]]
    counts = ", ".join(f"{n} for {count}" for n, count in sorted(seeds.items(), reverse=True))
    lines = [
        "# A stranger's gauntlet\n",
        f"Made by `python experiments/gauntlet/run.py --show` of {sum(map(len, groups.values())):,} fits: every model at its defaults (UpliftAuto without measuring itself) on {len(TABLES)} tables; seeds for so",
        f"many pairs of table and model: {counts}.\n",
        "Passed: the mean rank correlation with the true effect is more than 2 standard errors above 0. Warned: it is not, and most fits said why. Refused: an error in words,",
        "such as two outcomes wanted. Unseen: an oracle that knows the shape of the effect does not see it either.\n",
        f"Warnings on easy tables: {len(false)} of {len(easy)} fits ({len(false) / max(len(easy), 1):.1%}).\n",
        f"| model | {' | '.join(kinds)} | seconds a fit |",
        f"|---|{'---:|' * (len(kinds) + 1)}",
    ]
    for name in MODELS:
        if not any(model == name for _, model in groups):
            continue
        found = collections.Counter(one for (_, model), one in verdicts.items() if model == name)
        seconds = [fit["seconds"] for (_, model), fits in groups.items() if model == name for fit in fits]
        lines.append(f"| {name} | {' | '.join(str(found[kind]) for kind in kinds)} | {np.mean(seconds or [0.0]):.2f} |")
    absent = [pair for pair in itertools.product(TABLES, MODELS) if pair not in groups]
    tables_of = {name: [table for table, model in absent if model == name] for _, name in absent}
    whole = [name for name, names in tables_of.items() if len(names) == len(TABLES)]
    lines += [f"\nNot run, because they take long: {', '.join(whole)}."] if whole else []
    lines += [
        f"\n{name} was not run on {len(names)} tables: {', '.join(names)}."
        for name, names in tables_of.items()
        if name not in whole
    ]
    lines += [
        "\n## What did not pass\n",
        "| table | model | verdict | rank correlation | oracle, in standard errors | what it said |",
        "|---|---|---|---:|---:|---|",
    ]
    for (table, name), said in verdicts.items():
        if said in (*BAD, "warned"):
            lines.append(_row(table, name, said, groups[table, name]))
    lines.append("\n## Warnings on easy tables\n")
    texts = collections.Counter((one["model"], text[:160]) for one in false for text in set(one["warnings"]))
    lines += [f"- {name} ({count}): {text}" for (name, text), count in texts.most_common(20)] or ["None."]
    write(read())
    (HERE / "results.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def _row(table, name, said, fits):
    ranks = [one["rank"] for one in fits if "rank" in one]
    mean = (
        f"{np.mean(ranks):.2f} ± {np.std(ranks, ddof=1) / np.sqrt(len(ranks)):.2f}"
        if len(ranks) > 1
        else ", ".join(f"{one:.2f}" for one in ranks)
    )
    texts = collections.Counter(
        text[:150] for one in fits for text in [*one["warnings"], *([one["error"]] if "error" in one else [])]
    )
    text = texts.most_common(1)[0][0].replace("|", "/") + " …" if texts else ""
    return f"| {table} | {name} | {said} | {mean} | {np.mean([one['oracle'] for one in fits]):.1f} | {text} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="seed to begin with, for runs side by side")
    parser.add_argument("--only", nargs="*", help="names of models")
    parser.add_argument("--tables", nargs="*", help="names of tables")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--again", action="store_true", help="also what was run before: models have changed")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if not options.show:
        run(options.first, options.seeds, options.minutes, options.only, options.tables, options.again)
    show()
