"""python -m experiments list | run | show | check | pages"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from experiments import _kept, _pages, _runner
from experiments._declared import SIZES, chosen

QUICK = Path("build/experiments")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments", description="The papers' experiments.")
    commands = parser.add_subparsers(dest="command", required=True)
    naming = {
        "nargs": "*",
        "metavar": "NAME",
        "help": "papers (000, zaniewicz), tables and figures ('Table 6.4.1'), or files",
    }
    commands.add_parser("list", help="what there is, and what has been run").add_argument("names", **naming)
    run = commands.add_parser("run", help="run what is missing; what is done is kept")
    run.add_argument("names", **naming)
    for size in SIZES[1:]:
        run.add_argument(f"--{size}", dest="size", action="store_const", const=size)
    run.set_defaults(size="quick")
    run.add_argument("--jobs", type=int, default=1, help="processes")
    run.add_argument("--only", default="", help="run cases with this word in them")
    run.add_argument(
        "--out", type=Path, help="folder of results; quick runs go to build/experiments, others to experiments/results"
    )
    show = commands.add_parser("show", help="print what was found")
    show.add_argument("names", **naming)
    show.add_argument("--out", type=Path, default=_kept.RESULTS)
    commands.add_parser("check", help="do pages, quotes and pictures agree with the results?")
    pages = commands.add_parser("pages", help="write pages and quotes from the results, and pictures of those named")
    pages.add_argument("names", **naming)
    asked = parser.parse_args(arguments)
    try:
        return _COMMANDS[asked.command](asked)
    except KeyboardInterrupt:
        _tell("stopped: what is done is kept")
        return 130


def _list(asked: argparse.Namespace) -> int:
    for part in chosen(asked.names):
        runs = sum(len(row.seeds) for row in _kept.read(part).rows)
        shows = ", ".join(part.declared.shows) or "beyond the paper"
        print(f"{part.declared.paper}  {part.name:<28}{shows}: {part.declared.title} ({runs:,} runs kept)")
    return 0


def _run(asked: argparse.Namespace) -> int:
    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # a run that is asked to end keeps what it has, as with Ctrl-C
    folder = asked.out or (QUICK if asked.size == "quick" else _kept.RESULTS)
    wrong = 0
    for part in chosen(asked.names):
        _runner.run(part, asked.size, jobs=asked.jobs, folder=folder, only=asked.only, tell=_tell)
        if folder != _kept.RESULTS:
            wrong += _agree(part, folder)
    return int(wrong > 0)


def _agree(part, folder: Path) -> int:
    """Whether the same cases and seeds gave the committed numbers; a tenth may differ, where a tie of tuning falls otherwise on another machine."""
    committed, wrong, same = _kept.read(part), 0, 0
    for row in _kept.read(part, folder).rows:
        if set(part.declared.shaky) & set(map(str, row.case.values())):
            continue
        kept = committed.of(row.case)
        for seed, value in zip(row.seeds, row.values, strict=True):
            if seed in kept.seeds:
                agrees = _kept.close(value, kept.values[kept.seeds.index(seed)])
                same, wrong = same + agrees, wrong + (not agrees)
                if not agrees:
                    _tell(
                        f"  {row.case}, seed {seed}: {value}, and the results have {kept.values[kept.seeds.index(seed)]}"
                    )
    _tell(f"  {same} runs agree with the results, {wrong} do not")
    return int(wrong > 0.1 * (same + wrong))


def _show(asked: argparse.Namespace) -> int:
    for part in chosen(asked.names):
        print(_pages._section(part, _kept.read(part, asked.out)))
    return 0


def _check(asked: argparse.Namespace) -> int:
    wrong = _pages.stale()
    print("\n".join(wrong) or "pages, quotes and pictures agree with the results")
    return int(bool(wrong))


def _write(asked: argparse.Namespace) -> int:
    _pages.write(chosen(asked.names) if asked.names else [])
    return 0


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


_COMMANDS = {"list": _list, "run": _run, "show": _show, "check": _check, "pages": _write}

if __name__ == "__main__":
    sys.exit(main())
