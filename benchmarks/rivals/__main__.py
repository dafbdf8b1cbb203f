"""The command line: see ``python -m benchmarks.rivals --help``."""

from __future__ import annotations

import argparse
import json

from benchmarks.rivals import _speed as speed
from benchmarks.rivals._call import OURS, ROOT, files, install, installed, version_of

PAGE = ROOT / "docs" / "rivals.md"
BEGIN, END = "<!-- speed -->", "<!-- end -->"


def page(text: str) -> str:
    """The page with what the committed results say between its marks."""
    head, rest = text.split(BEGIN, 1)
    made = speed.page(json.loads(speed.RESULTS.read_text())) if speed.RESULTS.exists() else "\nNot measured yet.\n"
    return f"{head}{BEGIN}\n{made}\n{END}{rest.split(END, 1)[1]}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rivals", description="Other libraries beside upturn.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="contestants, their versions and jobs")
    installs = commands.add_parser("install", help="an environment for every library, under build/rivals")
    installs.add_argument("names", nargs="*", help="of these alone")
    speeds = commands.add_parser("speed", help="run every job at every size and write the results and the page")
    speeds.add_argument("--jobs", nargs="*", default=list(speed.JOBS), choices=list(speed.JOBS))
    speeds.add_argument("--only", nargs="*", help="names of contestants; upturn always runs")
    speeds.add_argument("--repeats", type=int, default=3)
    memories = commands.add_parser(
        "memory", help="measure the memory anew at the largest size of every job, not the time"
    )
    memories.add_argument("--jobs", nargs="*", default=list(speed.JOBS), choices=list(speed.JOBS))
    memories.add_argument("--only", nargs="*", help="names of contestants; upturn always runs")
    commands.add_parser("page", help="write docs/rivals.md from the results")
    asked = parser.parse_args(arguments)
    if asked.command == "list":
        for name, module in files().items():
            here = version_of(name) if name in installed() else "not installed"
            print(f"{name:10} {here:14} {', '.join(module.JOBS)}")
    elif asked.command == "install":
        install(asked.names or [name for name in files() if name != OURS])
    elif asked.command == "speed":
        speed.run(asked.jobs, speed.contestants(asked.only), asked.repeats)
        PAGE.write_text(page(PAGE.read_text()))
    elif asked.command == "memory":
        speed.memory(asked.jobs, speed.contestants(asked.only))
        PAGE.write_text(page(PAGE.read_text()))
    else:
        PAGE.write_text(page(PAGE.read_text()))


if __name__ == "__main__":
    main()
