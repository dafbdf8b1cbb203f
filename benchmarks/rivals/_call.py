"""Rivals' files, their environments, and a call of one of their functions."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.rivals._drive import load

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENVIRONMENTS = ROOT / "build" / "rivals"
DRIVE = HERE / "_drive.py"
OURS = "upturn"


@dataclass(frozen=True)
class Answer:
    """What a function gave, its processor time in seconds, and the memory it took beyond what was there, in bytes."""

    result: Any
    seconds: float
    extra: int


@functools.cache
def files() -> dict[str, Any]:
    """All files of contestants, upturn's first, by their names."""
    found = {path.stem: load(path) for path in sorted(HERE.glob("[a-z]*.py"))}
    return {OURS: found.pop(OURS), **found}


def python_of(name: str) -> Path:
    """The interpreter of a contestant, whether or not it is there."""
    return Path(sys.executable) if name == OURS else ENVIRONMENTS / name / "bin" / "python"


def installed() -> list[str]:
    """Contestants that can be called here."""
    return [name for name in files() if (python_of(name).parent.parent / ".installed").exists() or name == OURS]


def version_of(name: str) -> str:
    """The version that is installed of the library that a file is about."""
    package = files()[name].REQUIRES[0].split("==")[0]
    if name == OURS:
        return version(package)
    asked = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run(
        [python_of(name), "-c", asked], env=environment(name), capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def install(names: list[str]) -> None:
    """Make the environments that are missing; one that cannot be made is named, and the others go on."""
    for name in names:
        if name in installed():
            continue
        folder = ENVIRONMENTS / name
        print(f"{name}: {' '.join(files()[name].REQUIRES)}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*pip, *files()[name].REQUIRES], check=False).returncode:
            print(f"{name} cannot be installed here", file=sys.stderr)
        else:
            (folder / ".installed").touch()


def environment(name: str) -> dict[str, str]:
    """Variables of a contestant's process: one thread, and upturn's source for upturn alone."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    ours = {"PYTHONPATH": str(ROOT / "src")} if name == OURS else {}
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    return {**kept, **ours, **dict.fromkeys(threads, "1")}


def call(
    contestant: str, table: str, job: str, rows: dict[str, Any], repeats: int = 1, first: dict[str, Any] | None = None
) -> Answer:
    """Call ``TABLE[job]`` of a contestant's file with arrays, in a process and session of its own, and with those of ``first`` before."""
    with tempfile.TemporaryDirectory() as folder:
        given, answer = Path(folder, "given.npz"), Path(folder, "answer.npz")
        np.savez(given, **rows)
        command = [python_of(contestant), DRIVE, HERE / f"{contestant}.py", table, job, given, answer, str(repeats)]
        if first is not None:
            command.append(Path(folder, "first.npz"))
            np.savez(command[-1], **first)
        done = subprocess.run(
            command, env=environment(contestant), capture_output=True, text=True, check=False, start_new_session=True
        )
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise ValueError(f"{contestant}, {job}: {said[-1] if said else f'ended with {done.returncode}'}")
        return _read(answer)


class Session:
    """A process of a contestant that answers one call after the other, so that what its library loads is paid once; it starts at the first call."""

    def __init__(self, contestant: str) -> None:
        self.contestant = contestant
        self._process: subprocess.Popen[str] | None = None

    def call(self, table: str, job: str, rows: dict[str, Any]) -> Answer:
        """As :func:`call`, but that memory is not measured; a process that has ended starts again at the next call."""
        if self._process is None:
            command = [python_of(self.contestant), DRIVE, HERE / f"{self.contestant}.py"]
            self._process = subprocess.Popen(
                command, env=environment(self.contestant), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True, start_new_session=True,
            )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            given, answer = Path(folder, "given.npz"), Path(folder, "answer.npz")
            np.savez(given, **rows)
            said = self._ask("\t".join([table, job, str(given), str(answer)]))
            if said != "\n":
                ended = f"ended with {self.close()}" if not said else said.strip()
                raise ValueError(f"{self.contestant}, {job}: {ended}")
            return _read(answer)

    def _ask(self, line: str) -> str:
        """The line that answers, without its end if the process has ended."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        return self._process.stdout.readline()

    def close(self) -> int | None:
        """End the process; what it ended with."""
        process, self._process = self._process, None
        if process is None:
            return None
        with contextlib.suppress(BrokenPipeError):
            process.communicate()
        return process.returncode


def _read(answer: Path) -> Answer:
    found = np.load(answer)
    return Answer(found["result"], float(found["seconds"]), int(found["extra"]))
