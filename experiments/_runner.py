"""Runs what a plan asks for and is not kept yet, in processes, and keeps it as it comes."""

from __future__ import annotations

import os
import subprocess
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from experiments import _kept
from experiments._declared import Case, Part, parts

KEEP_EVERY = 15.0  # seconds between two writings


def run(
    part: Part, size: str, *, jobs: int = 1, folder: Path = _kept.RESULTS, only: str = "", tell: Any = print
) -> int:
    """Run the missing seeds of a plan; return how many were run. A case whose data are not there is named and left out."""
    found = _kept.read(part, folder)
    planned = [(case, seeds) for case, seeds in part.plan(size) if only.lower() in str(case).lower()]
    most = max((seeds for _, seeds in planned), default=0)
    missing = [
        (seeds < most, seed, case)
        for case, seeds in planned
        for seed in range(seeds)
        if seed not in found.of(case).seeds
    ]
    # A run that is stopped has something of every case; those of few repeats are large, and come last.
    missing = [(case, seed) for _, seed, case in sorted(missing, key=lambda one: one[:2])]
    tell(f"{part.name} ({size}): {sum(seeds for _, seeds in planned)} runs, {len(missing)} to do")
    commit, last, done, absent = _commit(), time.monotonic(), 0, set()
    try:
        for case, seed, value, seconds in _results(part, missing, jobs):
            if isinstance(value, Absent):
                absent.add(f"{case}: {value.reason}")
                continue
            found.of(case).add(seed, value, part.declared.summed, seconds, commit)
            done += 1
            if time.monotonic() - last > KEEP_EVERY:
                _kept.write(part, found, folder)
                tell(f"  {done} of {len(missing)}")
                last = time.monotonic()
    finally:  # also when stopped: what is done stays
        if done:
            _kept.write(part, found, folder)
    for line in sorted(absent):
        tell(f"  left out, {line}")
    return done


class Absent:
    """What a run returns whose data are not on this machine."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def _results(part: Part, tasks: list[tuple[Case, int]], jobs: int) -> Iterator[tuple[Case, int, Any, float]]:
    if jobs == 1 or len(tasks) < 2:
        return (_one(part.name, case, seed) for case, seed in tasks)
    workers = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    return workers(delayed(_one)(part.name, case, seed) for case, seed in tasks)


def _one(name: str, case: Case, seed: int) -> tuple[Case, int, Any, float]:
    from upturn.datasets import DataNotFoundError

    part = next(part for part in parts() if part.name == name)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of levels not seen, of w = 0, of empty ensembles: all part of the results
        try:
            value = part.run(case, seed)
        except DataNotFoundError as error:
            value = Absent(str(error).splitlines()[0])
    return case, seed, value, time.process_time() - start


def _commit() -> str:
    """The commit of the source, with a + if files of it have changed since."""
    root = Path(__file__).resolve().parents[1]
    try:
        said = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
            cwd=root, capture_output=True, text=True, check=True, env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return said.stdout.strip()
