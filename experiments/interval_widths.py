"""Intervals of ``UpliftForest(inference=True)`` beside those of econml's causal forest: how often they hold the true effect, and how wide they are.

    make bench-install
    python experiments/interval_widths.py [--repeats 20] [--rows 10000] [--only NAME ...] [--minutes M]
    python experiments/interval_widths.py --again     # upturn's part anew
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
    "no effect, two values": "sim-null",
    "steps, two values": "sim-steps",
    "heavy tails, correlated features": "sim-heavy-tails",
}


def drawn(simulation, rows, seed):
    """Features, outcomes and arms of one experiment."""
    data = SIMULATED[simulation][0](rows, FIRST + seed)
    return np.asarray(data.X, float), np.asarray(data.y, float), np.asarray(data.treatment)


def asked(simulation):
    """The points, and their effects."""
    points = SIMULATED[simulation][0](POINTS, POINTS_SEED)
    return np.asarray(points.X, float), np.asarray(points.effect)


def ours(simulation, rows, seed):
    """Coverage, mean width and seconds of upturn's intervals on one experiment."""
    points, effect = asked(simulation)
    data = drawn(simulation, rows, seed)
    start = time.process_time()
    forest = UpliftForest(inference=True, random_state=seed).fit(*data)
    ends = forest.predict_interval(points, interval=NOMINAL)
    return _numbers(ends, effect, time.process_time() - start)


def theirs(simulation, rows, seed):
    """The same of econml's."""
    points, effect = asked(simulation)
    X, y, t = drawn(simulation, rows, seed)
    given = {"X": X, "y": y, "t": t, "asked": points, "seed": seed, "level": NOMINAL}
    found = call("econml", "INTERVALS", "causal forest", given)
    return _numbers(found.result, effect, found.seconds)


def _numbers(ends, effect, seconds):
    low, high = ends
    values = np.mean((low <= effect) & (effect <= high)), np.mean(high - low), seconds
    return [float(f"{value:.5g}") for value in values]


def run(options):
    """Add repeats, case by case in turn, until all have as many as asked for, or time is over."""
    if "econml" not in installed():
        raise SystemExit("econml is not installed: `make bench-install` makes an environment for it")
    end = time.monotonic() + 60 * options.minutes
    results = read()
    for repeat in range(options.repeats):
        for name in options.only or CASES:
            case = results.setdefault(
                name, {"simulation": CASES[name], "rows": options.rows, "upturn": [], "econml": []}
            )
            if len(case["econml"]) > repeat:
                continue
            if time.monotonic() > end:
                return
            for library, measure in {"upturn": ours, "econml": theirs}.items():
                case[library].append(measure(case["simulation"], case["rows"], repeat))
            write(results)


def run_again(options):
    """Measure upturn anew, also on experiments that econml, which takes long, was not measured on."""
    results = read()
    for name in options.only or results:
        case = results[name]
        case["upturn"] = [ours(case["simulation"], case["rows"], seed) for seed in range(options.repeats)]
        write(results)


def read():
    """What was measured so far."""
    return json.loads(OUT.read_text()) if OUT.exists() else {}


def write(results):
    """Keep it, a case a line."""
    body = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in results.items())
    OUT.write_text(f"{{\n{body}\n}}\n")


def held(cover):
    """Mean coverage in percent, with 1.96 standard errors over repeats."""
    margin = f" ± {196 * cover.std(ddof=1) / np.sqrt(len(cover)):.1f}" if len(cover) > 1 else ""
    return f"{100 * cover.mean():.1f}%{margin}"


def table(results):
    """The table of the docs, line by line."""
    lines = [
        "| simulation | rows | repeats | upturn holds | width | econml's repeats | econml holds | width | upturn's width / econml's | seconds | econml's |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, case in results.items():
        (cover, width, seconds), (their_cover, their_width, their_seconds) = (
            np.array(case[who]).T for who in ("upturn", "econml")
        )
        ratio = width[: len(their_width)] / their_width
        lines.append(
            f"| {name} | {case['rows']:,} | {len(cover)} | {held(cover)} | {width.mean():.3g} | {len(their_cover)} | {held(their_cover)} | "
            f"{their_width.mean():.3g} | {ratio.mean():.2f} | {seconds.mean():.1f} | {their_seconds.mean():.1f} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if options.show:
        print("\n".join(table(read())))
    elif options.again:
        run_again(options)
    else:
        run(options)


if __name__ == "__main__":
    main()
