"""What ``propensity="auto"`` does: how often sound trials lose their shares, and the average effect on confounded tables.

    python experiments/propensity_auto.py [--repeats 100] [--sizes 300 1000 5000 20000 50000] [--minutes 60]

Three kinds of assignment: at random (one half, and one tenth, treated); by a logistic regression of two columns; by steps
(the sign of a product of two columns), which a line cannot see. For each, the choice that was made and the doubly robust average
effect of ``DRLearner`` under "auto", "shares" and "logistic": its bias, and how often its 95% interval covers the truth. Larger
sizes get fewer repeats. What was found is kept as it comes, and a run goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import Ridge

from upturn.meta import DRLearner

HOW = ("auto", "shares", "logistic")
ASSIGNMENTS = ("half", "tenth", "logistic", "steps")
SIZES = (300, 1000, 5000, 20_000, 50_000)
EFFECT = 1.0  # on average


def simulate(n, assignment, seed):
    """Ten columns, two of which drive outcome and, where it is confounded, assignment."""
    rng = np.random.default_rng([seed, n, ASSIGNMENTS.index(assignment)])
    X = rng.normal(size=(n, 10))
    driver = 2.0 * (X[:, 0] * X[:, 1] > 0) - 1.0 if assignment == "steps" else X[:, 0] + 0.5 * X[:, 1]
    chance = {"half": 0.5, "tenth": 0.1}.get(assignment, 1 / (1 + np.exp(-0.7 * driver)))
    t = (rng.random(n) < chance).astype(int)
    y = driver + X[:, 2] + t * (EFFECT + 0.5 * X[:, 3]) + rng.normal(size=n)
    return X, y, t


def one(n, assignment, seed):
    """The choice, and (estimate, standard error) under every way; outcome models are linear, hence wrong about steps."""
    X, y, t = simulate(n, assignment, seed)
    found = {}
    for how in HOW:
        model = DRLearner(Ridge(), propensity=how, random_state=seed).fit(X, y, t)
        found[how] = [float(model.average_effects_[0]), float(model.average_effects_se_[0])]
        if how == "auto":
            found["kind"], found["auc"], found["p"] = (
                model.propensity_kind_,
                model.propensity_auc_,
                model.propensity_pvalue_,
            )
    return found


def repeats_of(n, repeats):
    return max(10, repeats if n <= 1000 else repeats // 2 if n <= 5000 else repeats // 5)


def table(results):
    lines = [
        "| rows | assignment | repeats | shares kept | logistic | boosting | bias of auto | covers | of shares | covers | of logistic | covers |"
    ]
    lines.append("|" + "---|" * 12)
    for key, rows in results.items():
        if len(rows) < 2:
            continue
        n, assignment = key.split()
        kinds = [row["kind"] for row in rows]
        line = [f"{int(n):,}", assignment, str(len(rows))]
        line += [f"{np.mean([k == kind for k in kinds]):.0%}" for kind in ("shares", "logistic", "boosting")]
        for how in HOW:
            estimate, error = np.array([row[how] for row in rows]).T
            bias, spread = estimate.mean() - EFFECT, estimate.std(ddof=1) / np.sqrt(len(rows))
            line += [f"{bias:+.3f} ± {spread:.3f}", f"{np.mean(np.abs(estimate - EFFECT) <= 1.96 * error):.0%}"]
        lines.append("| " + " | ".join(line) + " |")
    return "\n".join(lines)


def main():
    warnings.simplefilter("ignore")  # of clipped propensities
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--out", type=Path, default=Path("experiments/propensity_auto.json"))
    options = parser.parse_args()
    end = time.time() + 60 * options.minutes
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for n in options.sizes:
        for assignment in ASSIGNMENTS:
            rows = results.setdefault(f"{n} {assignment}", [])
            for seed in range(len(rows), repeats_of(n, options.repeats)):
                if time.time() > end:
                    break
                rows.append(one(n, assignment, seed))
            options.out.write_text(json.dumps(results, indent=None).replace("}, {", "},\n{") + "\n")
            print(f"{n} {assignment}: {len(rows)}", flush=True)
    print(table(results))


if __name__ == "__main__":
    main()
