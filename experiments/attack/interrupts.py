"""Ctrl-C at random moments of everything that takes long: the seconds until the caller has the KeyboardInterrupt.

    python experiments/attack/interrupts.py [--moments 4] [--only NAME ...] [--part 1/4]

Tables are large enough for each task to run for more than four seconds, within which a moment is drawn. Writes ``interrupts.json``
beside this file, task by task, and ``interrupts.md`` from all of it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])

from hostile.interrupts import TASKS, measure  # noqa: E402

PROMISE = 1.5


def table(found: dict) -> str:
    """One line a task, as Markdown."""
    lines = [
        "| task | interrupts | ended before | seconds until it was heard, median | longest |",
        "|---|---:|---:|---:|---:|",
    ]
    longest = []
    for name in (task for task in TASKS if task in found):
        heard = sorted(one["seconds"] for one in found[name] if one["ended"] == "interrupted")
        early = sum(one["ended"] == "ended" for one in found[name])
        longest += heard
        middle, last = (f"{median(heard):.2f}", f"{heard[-1]:.2f}") if heard else ("", "")
        lines.append(f"| {name} | {len(heard)} | {early} | {middle} | {last} |")
    longest.sort()
    lines.append(f"| **all** | {len(longest)} | | {median(longest):.2f} | {longest[-1]:.2f} |")
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--moments", type=int, default=4)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", nargs="*")
    options.add_argument("--part", default="1/1", help="which part of the tasks, as 2/4")
    options.add_argument("--output", type=Path, default=HERE / "interrupts.json")
    given = options.parse_args()
    part, parts = map(int, given.part.split("/"))
    names = given.only or list(TASKS)[part - 1 :: parts]
    kept = json.loads(given.output.read_text()) if given.output.exists() else {}
    for name in names:
        kept[name] = measure(name, given.moments, given.seed)
        print(name, [(one["moment"], one["ended"][:3], one["seconds"]) for one in kept[name]], flush=True)
        given.output.write_text(json.dumps({task: kept[task] for task in TASKS if task in kept}, indent=1) + "\n")
    write(kept, given.output.with_suffix(".md"))


def write(found: dict, path: Path) -> None:
    """The table as a page."""
    path.write_text(
        "# Ctrl-C\n\nMade by `python experiments/attack/interrupts.py`, on two cores that others kept busy (a load of 8 to 10), so the times are "
        f"more than those of a quiet machine. What is promised: at most {PROMISE:g} seconds.\n\n{table(found)}\n"
    )


if __name__ == "__main__":
    main()
