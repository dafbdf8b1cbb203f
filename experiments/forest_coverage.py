"""How often 90% intervals of ``UpliftForest(inference=True)`` hold the true effect, on simulations of different kinds.

    python experiments/forest_coverage.py [--repeats 100] [--points 1000] [--only NAME ...] [--minutes M] [--out FILE.json]
    python experiments/forest_coverage.py --show [--out FILE.json]

Every repeat draws an experiment anew, fits the forest and asks for intervals at the same points, drawn once. Coverage is averaged
over points, then over repeats; its margin is 1.96 standard errors over repeats. Because the points stay the same, their errors can be
told apart into bias (what is common to all repeats) and variance, which is then compared with the variance that the intervals
are made of. Results are written after every repeat, and a run goes on where the last one ended; ``--minutes`` ends it early.
A case's repeats before ``CHOSEN`` may have been looked at while settings were chosen; the table leaves them out.
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

from upturn.trees import UpliftForest  # noqa: E402

NOMINAL = 0.9
POINTS_SEED = 987_654
CHOSEN = 20  # seeds below were for choosing settings; a run starts here
# name: (simulation, rows)
CASES = {
    "smooth effect, two values": ("sim-randomised", 2000),
    "prognostic features, real-valued": ("sim-prognostic", 2000),
    "the same effect on everybody": ("sim-constant", 2000),
    "no effect, two values": ("sim-null", 2000),
    "confounded, real-valued": ("sim-confounded", 3000),
    "steps, two values": ("sim-steps", 3000),
    "prognostic features, two values": ("sim-prognostic-binary", 3000),
    "a product's sign, two values": ("sim-interaction", 3000),
    "heavy tails, correlated features": ("sim-heavy-tails", 4000),
    "most spend nothing": ("sim-spend", 4000),
    "a twentieth treated, two values": ("sim-unbalanced", 8000),
    "rare outcome": ("sim-rare", 20_000),
    "smooth effect, many rows": ("sim-randomised", 50_000),
}


def one(simulation, rows, X, effect, seed):
    """Of one experiment: [seed, coverage, mean width, mean squared error, mean variance by the intervals, seconds], and the errors."""
    data = SIMULATED[simulation][0](rows, 10_000 + seed)
    start = time.process_time()
    forest = UpliftForest(inference=True, random_state=seed)
    forest.fit(np.asarray(data.X, float), np.asarray(data.y), np.asarray(data.treatment))
    low, high = forest.predict_interval(X, interval=NOMINAL)
    seconds = time.process_time() - start
    error = forest.predict(X) - effect
    variance = ((high - low) / (2 * 1.6448536)) ** 2
    held = (low <= effect) & (effect <= high)
    numbers = [held.mean(), (high - low).mean(), (error**2).mean(), variance.mean(), seconds]
    return [seed, *(float(f"{value:.5g}") for value in numbers)], error


def run(options):
    """Add repeats, case by case in turn, until all have as many as asked for, or time is over."""
    end = time.monotonic() + 60 * options.minutes
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    drawn = {}
    for repeat in range(options.repeats):
        for name in options.only or CASES:
            simulation, rows = CASES[name]
            fresh = {"simulation": simulation, "rows": rows, "points": options.points, "repeats": [], "sum_error": [0.0] * options.points}  # fmt: skip
            case = results.setdefault(name, fresh)
            if len(case["repeats"]) > repeat:
                continue
            if time.monotonic() > end:
                return
            if name not in drawn:
                points = SIMULATED[simulation][0](options.points, POINTS_SEED)
                drawn[name] = np.asarray(points.X, float), np.asarray(points.effect)
            numbers, error = one(simulation, rows, *drawn[name], CHOSEN + len(case["repeats"]))
            case["repeats"].append(numbers)
            case["sum_error"] = [float(f"{a:.5g}") for a in np.add(case["sum_error"], error)]
            body = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in results.items())
            options.out.write_text(f"{{\n{body}\n}}\n")


def table(results):
    """The table of the docs, line by line."""
    lines = [
        "| simulation | rows | repeats | 90% intervals hold | width | squared bias | variance | variance by the intervals | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, case in results.items():
        _, cover, width, squared, variance, seconds = np.array(case["repeats"]).T
        n = len(cover)
        margin = f"{196 * cover.std(ddof=1) / np.sqrt(n):.1f}" if n > 1 else "?"
        total = float((np.square(case["sum_error"]) / n**2).mean())  # squared bias + variance / n
        true = (squared.mean() - total) * n / (n - 1) if n > 1 else float("nan")
        bias = f"{max(squared.mean() - true, 0.0):.2g}" if n > 1 else "?"
        lines.append(
            f"| {name} | {case['rows']:,} | {n} | {100 * cover.mean():.1f}% ± {margin} | {width.mean():.3g} | "
            f"{bias} | {true:.2g} | {variance.mean():.2g} | {seconds.mean():.1f} |"
        )
    return lines


def show(options):
    """Print the table of the docs."""
    print("\n".join(table(json.loads(options.out.read_text()))))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--out", type=Path, default=HERE / "forest_coverage.json")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    (show if options.show else run)(options)


if __name__ == "__main__":
    main()
