"""Intervals of ``UpliftForest(inference=True)`` beside those of econml's causal forest: how often they hold the true effect, and how wide they are.

    make bench-install
    python experiments/interval_widths.py [--repeats 20] [--rows 10000] [--only NAME ...] [--minutes M]
    python experiments/interval_widths.py --show

Both are fitted to the same rows, anew in every repeat, and asked for 90% intervals at the same 1,000 points. Results are written after every repeat, and a
run goes on where the last one ended.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.quality.simulated import SIMULATED  # noqa: E402
from benchmarks.rivals._call import call, installed  # noqa: E402

from upturn.trees import UpliftForest  # noqa: E402

OUT = HERE / "interval_widths.json"
NOMINAL, POINTS, POINTS_SEED = 0.9, 1000, 987_654
FIRST = 20_000  # seeds that nothing was chosen on
CASES = {
    "smooth effect, two values": "sim-randomised",
    "prognostic features, real-valued": "sim-prognostic",
    "the same effect on everybody": "sim-constant",
    "steps, two values": "sim-steps",
    "heavy tails, correlated features": "sim-heavy-tails",
}


def one(simulation, rows, seed, points):
    """[seed, coverage and mean width of upturn's, of econml's, seconds of both] on one experiment."""
    data = SIMULATED[simulation][0](rows, FIRST + seed)
    X, y, t = np.asarray(data.X, float), np.asarray(data.y, float), np.asarray(data.treatment)
    asked, effect = np.asarray(points.X, float), np.asarray(points.effect)
    start = time.process_time()
    forest = UpliftForest(inference=True, random_state=seed).fit(X, y, t)
    ours = forest.predict_interval(asked, interval=NOMINAL)
    seconds = time.process_time() - start
    given = {"X": X, "y": y, "t": t, "asked": asked, "seed": seed, "level": NOMINAL}
    theirs = call("econml", "INTERVALS", "causal forest", given)
    numbers = []
    for low, high in (ours, theirs.result):
        numbers += [np.mean((low <= effect) & (effect <= high)), np.mean(high - low)]
    return [seed, *(float(f"{value:.5g}") for value in (*numbers, seconds, theirs.seconds))]


def run(options):
    """Add repeats, case by case in turn, until all have as many as asked for, or time is over."""
    if "econml" not in installed():
        raise SystemExit("econml is not installed: `make bench-install` makes an environment for it")
    end = time.monotonic() + 60 * options.minutes
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    for repeat in range(options.repeats):
        for name in options.only or CASES:
            case = results.setdefault(name, {"simulation": CASES[name], "rows": options.rows, "repeats": []})
            if len(case["repeats"]) > repeat:
                continue
            if time.monotonic() > end:
                return
            points = SIMULATED[CASES[name]][0](POINTS, POINTS_SEED)
            case["repeats"].append(one(CASES[name], case["rows"], repeat, points))
            body = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in results.items())
            OUT.write_text(f"{{\n{body}\n}}\n")


def held(cover):
    """Mean coverage in percent, with 1.96 standard errors over repeats."""
    margin = f" ± {196 * cover.std(ddof=1) / np.sqrt(len(cover)):.1f}" if len(cover) > 1 else ""
    return f"{100 * cover.mean():.1f}%{margin}"


def table(results):
    """The table of the docs, line by line."""
    lines = [
        "| simulation | rows | repeats | upturn holds | width | econml holds | width | upturn's width / econml's | seconds | econml's |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, case in results.items():
        _, cover, width, their_cover, their_width, seconds, their_seconds = np.array(case["repeats"]).T
        ratio = width / their_width
        lines.append(
            f"| {name} | {case['rows']:,} | {len(cover)} | {held(cover)} | {width.mean():.3g} | {held(their_cover)} | {their_width.mean():.3g} | "
            f"{ratio.mean():.2f} | {seconds.mean():.1f} | {their_seconds.mean():.1f} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if options.show:
        print("\n".join(table(json.loads(OUT.read_text()))))
    else:
        run(options)


if __name__ == "__main__":
    main()
