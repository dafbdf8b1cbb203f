"""Metrics beside scikit-uplift and causalml: time and extra memory, side by side in one run.

    python benchmarks/bench_metrics.py [--rows 10000000] [--bootstrap-rows 100000] [--repeats 3] [--jobs "auuc" "qini" …]

Every measurement has a process to itself. A contestant is given the data in its own form (a frame for causalml) before
the clock starts; extra memory is the peak of the resident set beyond what it is with the data loaded. Compilation and
imports are not counted: each contestant first runs on a thousand rows. With ``--jobs``, only those are run, and their
results join those of earlier runs in results/metrics.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path

from _measure import BUILD, PeakMemory, best_time, fresh_process, report

KEPT = Path(__file__).resolve().parent / "results" / "metrics.json"
AREAS = ["auuc", "auuc joint", "qini", "autoc", "auu", "lift_area", "uplift_at"]
CURVES = ["uplift curve", "uplift curve joint", "qini curve", "toc curve", "lift curve", "modified uplift curve"]
VALUES = ["expected_response", "policy_value"]
TABLES = ["calibration_table", "calibration_table, no interval", "evaluate", "evaluate, no interval", "compare"]
SAME_NUMBER = ["auuc as sklift", "auuc as causalml", "qini as sklift", "qini as causalml"]
JOBS = AREAS + CURVES + VALUES + TABLES + SAME_NUMBER
BOOTSTRAPS = ["auuc bootstrap", "qini bootstrap", "autoc bootstrap"]


def make_data(rows, seed=0):
    import numpy as np

    rng = np.random.default_rng(seed)
    score, treatment = rng.normal(size=rows), rng.integers(0, 2, rows)
    return (rng.random(rows) < 0.3 + 0.05 * treatment * (score > 0)).astype(np.int64), score, treatment


def contestant(name, job, rows, repeats):
    """In a fresh process: one library, one job."""
    warnings.simplefilter("ignore")
    from metrics_rivals import CONTESTANTS

    try:
        call, prepare = CONTESTANTS[name](job)
    except KeyError:  # it has no such function
        report(None)
        return
    call(prepare(make_data(1000)))
    data = prepare(make_data(rows))
    with PeakMemory() as memory:
        wall, cpu, value = best_time(lambda: call(data), 1)
    for _ in range(repeats - 1):
        again = best_time(lambda: call(data), 1)
        wall, cpu = min(wall, again[0]), min(cpu, again[1])
    report({"seconds": wall, "cpu_seconds": cpu, "extra_bytes": memory.extra, "value": value})


def race(jobs, rows, repeats, rivals):
    """Each rival once, because their times are long; upturn ``repeats`` times, the best of which counts."""
    from metrics_rivals import interpreter

    results = {}
    for job in jobs:
        found = {}
        for name in ["upturn", *rivals]:
            answer = fresh_process(
                __file__,
                "--contestant",
                name,
                "--job",
                job,
                "--rows",
                rows,
                "--repeats",
                repeats if name == "upturn" else 1,
                python=interpreter(name),
            )
            if answer is not None:
                found[name] = answer
        results[job] = found
        print(f"{job:18}", *(_cell(name, found) for name in found), sep="  ", flush=True)
    return results


def _cell(name, found):
    mine, other = found["upturn"], found[name]
    text = f"{name} {other['seconds']:.3f} s, {other['extra_bytes'] / 2**20:,.0f} MB"
    if name == "upturn":
        return text
    memory = f"{mine['extra_bytes'] / other['extra_bytes']:.2f}" if other["extra_bytes"] else "-"
    return f"{text} (upturn {other['seconds'] / mine['seconds']:.1f}x faster, {memory} of its memory)"


def summary(results):
    """What is promised: against the faster rival."""
    lines = {}
    for job, found in results.items():
        rivals = {name: found[name] for name in found if name != "upturn"}
        if rivals:
            fastest = min(rivals, key=lambda name: rivals[name]["seconds"])
            lines[job] = {
                "against": fastest,
                "times_faster": rivals[fastest]["seconds"] / found["upturn"]["seconds"],
                "times_less_processor_time": rivals[fastest]["cpu_seconds"] / found["upturn"]["cpu_seconds"],
                "share_of_memory": found["upturn"]["extra_bytes"] / max(1, rivals[fastest]["extra_bytes"]),
            }
    return lines


def earlier():
    """Results of earlier runs."""
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--bootstrap-rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--jobs", nargs="+", choices=JOBS + BOOTSTRAPS, help="only these, added to earlier results")
    parser.add_argument("--quick", action="store_true", help="only what is promised: auuc, and its bootstrap")
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.contestant:
        contestant(arguments.contestant, arguments.job, arguments.rows, arguments.repeats)
        return
    from metrics_rivals import RIVALS, available

    rivals = available()
    for name in RIVALS.keys() - set(rivals):
        print(f"{RIVALS[name]} is not installed: left out")
    chosen = arguments.jobs or (["auuc", "auuc bootstrap"] if arguments.quick else JOBS + BOOTSTRAPS)
    sizes = {"rows": arguments.rows, "bootstrap_rows": arguments.bootstrap_rows}
    known = earlier() if arguments.jobs else {}
    results = {**sizes, "jobs": {}, "bootstraps": {}}
    if {name: known.get(name) for name in sizes} == sizes:
        results = known
    jobs, boots = ([job for job in part if job in chosen] for part in (JOBS, BOOTSTRAPS))
    if jobs:
        print(f"{arguments.rows:,} rows")
        results["jobs"] |= race(jobs, arguments.rows, arguments.repeats, rivals)
    if boots:
        print(f"200 replicates of {arguments.bootstrap_rows:,} rows")
        results["bootstraps"] |= race(boots, arguments.bootstrap_rows, arguments.repeats, rivals)
    results["summary"] = summary(results["jobs"] | results["bootstraps"])
    print(json.dumps(results["summary"], indent=1) if not arguments.jobs else "")
    whole = {name: parser.get_default(name) for name in sizes} == sizes and not arguments.quick
    path = KEPT if whole else BUILD / "bench_metrics.json"  # the page has what was measured at full size
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
