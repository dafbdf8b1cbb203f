"""The command line: see ``python -m benchmarks.quality --help``."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main(arguments=None):
    sys.path.insert(0, str(ROOT / "src"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    from benchmarks.quality import contestants, ranks, run, sets, show

    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description="How well models rank.")
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="fit contestants on sets and write results/NAME.json")
    runs.add_argument(
        "--sets", default="choose", help="choose, report, all, real, simulated, field, drawn, or names with commas"
    )
    runs.add_argument("--models", required=True, help="contestants, or all of upturn, rivals or tuned, with commas")
    runs.add_argument("--splits", type=int, default=10, help="splits of a small set; larger ones get fewer")
    runs.add_argument("--jobs", type=int, default=1, help="processes")
    runs.add_argument("--rows", type=int, help="learn from at most so many rows of a set")
    runs.add_argument("--resume", action="store_true", help="go on where an earlier run of this name stopped")
    runs.add_argument("--name", required=True, help="the results' name; an existing file is added to")
    shows = commands.add_parser("show", help="paired differences against a baseline")
    shows.add_argument("name")
    shows.add_argument("--baseline", required=True)
    shows.add_argument("--measure", default="auuc", choices=show.MEASURES)
    shows.add_argument("--half", choices=("choose", "report"))
    ranking = commands.add_parser("ranks", help="mean ranks over sets, and the critical-difference picture")
    ranking.add_argument("name")
    ranking.add_argument("--measure", default="auuc", choices=show.MEASURES)
    ranking.add_argument("--picture", type=Path)
    asked = parser.parse_args(arguments)
    path = run.RESULTS / f"{asked.name}.json"
    if asked.command == "run":
        kept = ROOT / "build" / "quality" / asked.name
        if not asked.resume:
            shutil.rmtree(kept, ignore_errors=True)
        run.run(
            sets.names(asked.sets), contestants.named(asked.models), asked.splits, asked.jobs, path, asked.rows, kept
        )
    elif asked.command == "ranks":
        found = ranks.ranks(run.read(path), asked.measure)
        for model, mean in zip(found.models, found.mean, strict=True):
            print(f"{mean:6.2f}  {model}")
        print(f"{found.sets} sets; ranks differ by more than chance from a difference of {found.critical:.2f} on")
        if asked.picture:
            ranks.draw(found, asked.picture)
    else:
        show.show(path, asked.baseline, asked.measure, asked.half)


if __name__ == "__main__":
    main()
