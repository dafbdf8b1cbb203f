"""UpliftAuto with a minute, beside other libraries' models at their defaults: paired differences in AUUC on the same test rows.

    make bench-install
    python experiments/auto_rivals.py [--splits 2] [--minutes 60]

Experiments with arms drawn by lot: those of the reporting half of ``benchmarks/quality``, and four real ones of the other half, which make ten. The interval of a
difference is that of resampled test rows; splits share rows, so their mean is taken to be no surer than one of them. What was found is kept as it
comes, and a run goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.special import ndtr

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.quality.rivals import RIVALS, Rival, available
from benchmarks.quality.sets import load

from upturn.ensemble import UpliftAuto
from upturn.metrics import auuc, compare

REAL = (
    "Hillstrom-conversion-w", "Hillstrom-spend-w", "Hillstrom-visit-m", "Hillstrom-visit-w", "colon-death", "colon-lev-recur",
    "colon-lev5fu-recur", "colon-recur", "pbc", "veteran",
)  # fmt: skip
SIMULATED = (
    "sim-collinear", "sim-crescents", "sim-features", "sim-interaction", "sim-prognostic", "sim-randomised", "sim-randomised-small",
    "sim-spend", "sim-thin", "sim-unbalanced", "sim-zhao-50d",
)  # fmt: skip
OUT = Path(__file__).with_suffix(".json")
OURS = "UpliftAuto"


def one(name, split, rivals):
    """Areas on the test rows of a split, and the difference of each rival to UpliftAuto with its standard error."""
    train, test = load(name).split(split)
    X, y, treatment = train.X, train.y, train.treatment
    began = time.process_time()
    model = UpliftAuto(time_budget=60, metric=None, random_state=split).fit(X, y, treatment)
    found = {OURS: {"seconds": round(time.process_time() - began, 1), "constant": model.constant_}}
    scores = {OURS: model.predict(test.X)}
    for rival in rivals:
        fitted = Rival(rival, split).fit(X, y, treatment)
        try:
            scores[rival] = fitted.predict(test.X)
            found[rival] = {"seconds": round(fitted.seconds, 1)}
        except Exception as error:  # whatever another library makes of the table
            found[rival] = {"failed": str(error).strip().splitlines()[-1][:200]}
    for way, score in scores.items():
        found[way]["auuc"] = _short(auuc(test.y, score, test.treatment))
    paired = compare(test.y, scores, test.treatment, metric="auuc", baseline=OURS, n_bootstrap=200)
    for model_name, difference, se in zip(paired["model"], paired["difference"], paired["se"], strict=True):
        found[model_name] |= {"difference": _short(difference), "se": _short(se)}
    return found


def _short(value):
    return float(f"{float(value):.4g}")


def table(results):
    """A line for every set: UpliftAuto, the best of the rivals, and the rival that is furthest above it in standard errors."""
    lines = [
        "| set | splits | UpliftAuto | constant | best rival | its AUUC | furthest above | difference | in standard errors |",
        "|" + "---|" * 9,
    ]
    tests, above = [], 0
    for name in (*REAL, *SIMULATED):
        rows = results.get(name, [])
        if not rows:
            continue
        rivals = [rival for rival in rows[0] if rival != OURS and all("auuc" in row[rival] for row in rows)]
        area = {way: np.mean([row[way]["auuc"] for row in rows]) for way in (OURS, *rivals)}
        z = {}
        for rival in rivals:
            gap, se = np.array([(row[rival]["difference"], row[rival]["se"]) for row in rows]).T
            spread = np.sqrt(np.mean(se**2))
            z[rival] = gap.mean() / spread if spread > 0 else 0.0
            tests.append((float(ndtr(-z[rival])), z[rival], name, rival))
            above += area[rival] > area[OURS]
        best, furthest = max(rivals, key=area.get), max(rivals, key=z.get)
        cells = [name, str(len(rows)), f"{1000 * area[OURS]:.1f}", str(sum(row[OURS]["constant"] for row in rows))]
        cells += [
            best,
            f"{1000 * area[best]:.1f}",
            furthest,
            f"{1000 * (area[furthest] - area[OURS]):+.1f}",
            f"{z[furthest]:+.2f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if tests:
        tests.sort()
        p, z, name, rival = tests[0]
        raw = sum(p < 0.025 for p, *_ in tests)
        below = sum(z < -1.96 for _, z, *_ in tests)
        lines.append("")
        lines.append(
            f"Of {len(tests)} comparisons of a rival with UpliftAuto, the rival's area is larger in {above}. It is significantly larger in {raw} and significantly smaller in "
            f"{below}, each at 2.5% one-sided, of which {0.025 * len(tests):.0f} would be so by chance in either direction if all were equal. The most extreme of those above ({rival} on {name}, {z:+.2f} standard "
            f"errors) has a p-value of {min(p * len(tests), 1.0):.2g} after Holm's correction. Rivals are left out where they do not take the outcome, and UpliftAuto predicts a constant where it says so."
        )
    return "\n".join(lines)


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--rivals", nargs="*", default=list(RIVALS))
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    end = time.time() + 60 * options.minutes
    rivals = available(options.rivals)
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    for split in range(options.splits):
        for name in (*SIMULATED, *reversed(REAL)):  # the largest last
            rows = results.setdefault(name, [])
            if len(rows) > split or time.time() > end:
                continue
            rows.append(one(name, split, rivals))
            options.out.write_text(json.dumps(results).replace("}}, {", "}},\n{").replace("}}], ", "}}],\n") + "\n")
            print(name, split, flush=True)
    print(table(results))


if __name__ == "__main__":
    main()
