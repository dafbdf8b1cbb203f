"""Hillstrom's mailings from CSV to the page of a report, for every model of the command: seconds by the clock and of processors.

    python benchmarks/bench_report.py [model …] [--keep]      # all by default; --keep writes benchmarks/report.json

The command runs as a process of its own, compiled code at hand, three arms. A run of `tree` that is not counted comes first.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KEPT = Path(__file__).resolve().parent / "report.json"
LIMIT = 60.0  # seconds by the clock


def write_table(folder):
    """The mailings as a user has them."""
    from upturn.datasets import load_hillstrom

    data = load_hillstrom("visit", "all")
    table = data.X.assign(segment=data.treatment, visit=data.y)
    table.to_csv(folder / "mailings.csv", index=False)
    return len(table)


def run_one(folder, model):
    line = [sys.executable, "-m", "upturn", "report", "mailings.csv", "--outcome", "visit", "--treatment", "segment"]
    line += ["--model", model, "-o", f"{model}.html", "--quiet", "--seed", "0"]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        line, cwd=folder, env={**os.environ, "COLUMNS": "120"}, capture_output=True, text=True, check=False
    )
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{model}: {done.stderr.strip()[-500:]}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used, 1),
        "megabytes": round(os.path.getsize(folder / f"{model}.html") / 1e6, 2),
    }


def main():
    from upturn.cli._models import MODELS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--keep", action="store_true")
    asked = parser.parse_args()
    found = json.loads(KEPT.read_text()) if asked.keep and KEPT.exists() else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{write_table(folder):,} rows")
        run_one(folder, "tree")
        for model in asked.models:
            found[model] = run_one(folder, model)
            late = "" if found[model]["seconds"] < LIMIT else f"  above {LIMIT:.0f} s"
            print(
                f"{model:18} {found[model]['seconds']:6.1f} s  {found[model]['cpu_seconds']:6.1f} s of processors{late}",
                flush=True,
            )
            if asked.keep:
                KEPT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
