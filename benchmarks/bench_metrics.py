"""Metrics beside scikit-uplift and causalml: time and extra memory, side by side in one run.

    python benchmarks/bench_metrics.py [--rows 10000000] [--bootstrap-rows 100000] [--repeats 3]

Every measurement has a process to itself. A contestant is given the data in its own form (a frame for causalml) before
the clock starts; extra memory is the peak of the resident set beyond what it is with the data loaded. Compilation and
imports are not counted: each contestant first runs on a thousand rows.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings

from _measure import PeakMemory, best_time, fresh_process, report, write_json

JOBS = ["auuc", "qini", "autoc", "uplift_at", "deciles", "uplift curve", "qini curve"]
SAME_NUMBER = ["auuc as sklift", "auuc as causalml", "qini as sklift", "qini as causalml"]
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

    call, prepare = CONTESTANTS[name](job)
    call(prepare(make_data(1000)))
    data = prepare(make_data(rows))
    with PeakMemory() as memory:
        value = call(data)
    wall, cpu, _ = best_time(lambda: call(data), repeats)
    report({"seconds": wall, "cpu_seconds": cpu, "extra_bytes": memory.extra, "value": value})


def race(jobs, rows, repeats, rivals):
    from metrics_rivals import CONTESTANTS

    results = {}
    for job in jobs:
        found = {}
        for name in ["upturn", *rivals]:
            if name != "upturn" and not _has(CONTESTANTS[name], job):
                continue
            found[name] = fresh_process(
                __file__, "--contestant", name, "--job", job, "--rows", rows, "--repeats", repeats
            )
        results[job] = found
        print(f"{job:18}", *(_cell(name, found) for name in found), sep="  ", flush=True)
    return results


def _has(library, job):
    try:
        library(job)
    except KeyError:
        return False
    return True


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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--bootstrap-rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
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
    jobs = ["auuc"] if arguments.quick else JOBS + SAME_NUMBER
    boots = BOOTSTRAPS[:1] if arguments.quick else BOOTSTRAPS
    print(f"{arguments.rows:,} rows")
    results = {"rows": arguments.rows, "jobs": race(jobs, arguments.rows, arguments.repeats, rivals)}
    print(f"200 replicates of {arguments.bootstrap_rows:,} rows")
    results["bootstrap_rows"] = arguments.bootstrap_rows
    results["bootstraps"] = race(boots, arguments.bootstrap_rows, arguments.repeats, rivals)
    results["summary"] = summary(results["jobs"] | results["bootstraps"])
    print(json.dumps(results["summary"], indent=1))
    write_json("bench_metrics", results)


if __name__ == "__main__":
    sys.exit(main())
