"""``upturn demo``: the whole job on a simulated campaign. And ``upturn compile``."""

from __future__ import annotations

import contextlib
import shlex
import time
from pathlib import Path
from typing import Annotated

import typer

from upturn.cli._command import Session
from upturn.cli._say import UserError, put

# The whole job, as a user would type it.
STEPS = [
    (
        "A shop made two offers to a third of its customers each, a call and a coupon.",
        "datasets get campaign --rows 20000 -o campaign.csv",
    ),
    ("Is the experiment sound?", "check campaign.csv --outcome outcome --treatment treatment"),
    ("Learn for whom each offer works; which column is what is known by now.", "fit -o forest.upturn"),
    (
        "Later, another campaign: how good is the model on customers it has not seen?",
        "datasets get campaign --rows 10000 --seed 1 -o new.csv",
    ),
    ("", "evaluate forest.upturn new.csv --plots plots"),
    (
        "3,000 to spend; a call costs 4 and a coupon 1, and a purchase is worth 25.",
        "target forest.upturn new.csv --budget 3000 --cost call=4,coupon=1 --value 25 -o list.csv",
    ),
    (
        "All of it on one page, to open in a browser and to send on.",
        "report campaign.csv --cost call=4,coupon=1 --value 25 --folds 3 -o report.html",
    ),
]


def steps(seed: int) -> list[tuple[str, str]]:
    """Words and lines of the whole job; its two campaigns have seeds of their own."""
    return [
        (
            words,
            line.replace("--seed 1", f"--seed {seed + 1}") if "--seed" in line or not seed else f"{line} --seed {seed}",
        )
        for words, line in STEPS
    ]


def demo(
    session: Session,
    folder: Annotated[str, typer.Option("--folder", help="Folder to make and to work in.")] = "upturn-demo",
) -> int:
    """Do the whole job on a simulated campaign, showing every command: check, fit, evaluate, whom to treat, and the report."""
    from upturn.cli._app import run

    place = Path(folder)
    if place.exists() and any(place.iterdir()):
        raise UserError(f"there is a folder {folder!r} with something in it: remove it, or name another with --folder")
    place.mkdir(parents=True, exist_ok=True)
    voice, commands = session.voice, []
    with contextlib.chdir(place):
        for words, line in steps(session.seed):
            if not (voice.quiet or voice.as_json):
                put(f"\n{words}\n$ upturn {line}" if words else f"\n$ upturn {line}")
            code = run(
                [
                    *shlex.split(line),
                    *(["--quiet"] if voice.quiet or voice.as_json else []),
                    "--jobs",
                    str(session.jobs),
                ]
            )
            commands.append({"command": line, "code": code})
            if code == 2:
                return 2
    files = sorted(str(file) for file in place.rglob("*") if file.is_file())
    voice.result(
        f"\nAll of it is in {folder}: {', '.join(sorted(p.name for p in place.iterdir()))}\n"
        f"The report: {(place / 'report.html').resolve().as_uri()}",
        commands=commands,
        files=files,
    )
    return 0


def compile_kernels(session: Session) -> int:
    """Compile all of upturn's kernels now, once per machine, so that no later run has to wait for it."""
    import upturn

    start = time.perf_counter()
    with session.voice.step("compiling, once per machine"):
        count = upturn.compile()
    seconds = time.perf_counter() - start
    session.voice.result(f"{count} kernels are ready ({seconds:.0f} s)", kernels=count, seconds=seconds)
    return 0
