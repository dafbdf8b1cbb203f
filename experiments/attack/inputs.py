"""The whole attack on inputs: every bad value of the catalogue in every argument of everything public.

    python experiments/attack/inputs.py [--one-in K] [--workers 2] [--minutes M] [--verdicts FILE]

Cases run in worker processes that are replaced when one dies or does not answer in time, so that crashes and hangs are seen.
Writes ``inputs.md`` beside this file: counts by what was attacked, and every case that did not end clear or right. A file of verdicts,
a line each, is added to as they come, and what is in it already is not tried again: a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIMIT = 60.0  # seconds of the processor for one case; by the clock ten times as many, for a machine that is busy
KINDS = ("clear", "right", "raw", "silent", "crash", "hang")

WORKER = """
import json, sys, os
sys.path[:0] = json.loads(sys.argv[1])
from attack import bad_inputs
everything = bad_inputs.cases()
if sys.argv[2] != "1":
    everything = bad_inputs.part_of(everything, int(sys.argv[2]))
out = os.fdopen(int(sys.argv[3]), "w", buffering=1)
print(json.dumps([[case.name for case in everything], bad_inputs.KNOWN]), file=out)
for line in sys.stdin:
    verdict = bad_inputs.attack(everything[int(line)])
    print(json.dumps([verdict.kind, verdict.detail, verdict.leaks]), file=out)
"""


class Worker:
    """A process that takes cases one after the other."""

    def __init__(self, one_in: int) -> None:
        folder = tempfile.mkdtemp()
        read, write = os.pipe()
        paths = json.dumps([str(ROOT / "src"), str(ROOT / "tests")])
        environment = {**os.environ, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, paths, str(one_in), str(write)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, pass_fds=[write], cwd=folder, env=environment, text=True,
        )  # fmt: skip
        os.close(write)
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, args=(os.fdopen(read),), daemon=True).start()
        self.names, self.known = json.loads(self.lines.get(timeout=3600) or "[[], {}]")

    def _read(self, stream) -> None:
        for line in stream:
            self.lines.put(line)
        self.lines.put(None)

    def ask(self, number: int):
        """Verdict of a case: (kind, detail, leaks); the process is dead after a crash or a hang."""
        assert self.process.stdin is not None
        answer, start, used = None, time.time(), self._seconds()
        try:
            print(number, file=self.process.stdin, flush=True)
            while True:
                try:
                    answer = self.lines.get(timeout=5)
                    break
                except queue.Empty:
                    if self._seconds() - used > LIMIT or time.time() - start > 10 * LIMIT:
                        self.process.kill()
                        return "hang", f"no answer in {LIMIT:.0f} s", []
        except BrokenPipeError:
            pass
        if answer is None:
            return "crash", f"the process ended with {self.process.wait()}", []
        return json.loads(answer)

    def _seconds(self) -> float:
        """Processor time of the process, where the system tells, else time by the clock."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return time.time()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(one_in: int, workers: int, minutes: float, kept: Path | None):
    """Names and verdicts of all cases, or of as many as there is time for, in an order that mixes them well."""
    first = Worker(one_in)
    names, waiting = first.names, queue.Queue()
    verdicts = {}
    if kept is not None and kept.exists():
        known = set(names)
        verdicts = {name: found for name, found, _ in map(json.loads, kept.read_text().splitlines()) if name in known}
    for number in sorted(range(len(names)), key=lambda number: zlib.crc32(names[number].encode()[::-1])):
        if names[number] not in verdicts:
            waiting.put(number)
    lock, start = threading.Lock(), time.time()

    def work(worker: Worker) -> None:
        while True:
            try:
                number = waiting.get_nowait()
            except queue.Empty:
                number = None
            if number is None or time.time() - start > 60 * minutes:
                worker.process.stdin.close()
                return
            since = time.time()
            found = worker.ask(number)
            with lock:
                verdicts[names[number]] = found
                if kept is not None:
                    with kept.open("a") as file:
                        print(json.dumps([names[number], found, round(time.time() - since, 3)]), file=file)
                if len(verdicts) % 1000 == 0:
                    print(f"{len(verdicts):,} of {len(names):,} in {time.time() - start:.0f} s", flush=True)
            if found[0] in ("crash", "hang"):
                worker = Worker(one_in)

    threads = [threading.Thread(target=work, args=(first if w == 0 else Worker(one_in),)) for w in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(names), [(name, *verdicts[name]) for name in names if name in verdicts], first.known


def group_of(name: str) -> str:
    """The line of the table that a case counts in."""
    called = name.split(" | ")[0]
    if called.split(".")[0] in ("metrics", "policy", "svm", "model_selection", "plot", "datasets"):
        return called.split(".")[0]
    if called.split(" ")[0] == "report":
        return "report"
    if called.endswith("()"):
        return "parameters of estimators"
    if called.endswith(".fit"):
        return "fit"
    return "methods of fitted models" if "." in called else "check, pack, load, save"


def state_of(folder: Path) -> str:
    """The commit of the sources, and whether they were edited since."""
    return subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=folder, capture_output=True, text=True, check=False
    ).stdout.strip()


def table(found) -> str:
    """Counts, as Markdown."""
    counts = collections.defaultdict(collections.Counter)
    for name, kind, _, leaks in found:
        for group in (group_of(name), "**all**"):
            counts[group]["tried"] += 1
            counts[group][kind] += 1
            counts[group]["leaks"] += bool(leaks)
    columns = ("tried", *KINDS, "leaks")
    lines = ["| attacked | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for group in sorted(counts, key=lambda g: (g == "**all**", g)):
        lines.append(f"| {group} | " + " | ".join(f"{counts[group][c]:,}" for c in columns) + " |")
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--one-in", type=int, default=1)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--verdicts", type=Path, help="a file for every verdict, a line of JSON each")
    options.add_argument("--minutes", type=float, default=float("inf"))
    options.add_argument("--output", default=str(HERE / "inputs.md"))
    options.add_argument("--state", help="of the sources that the verdicts are of, where it is not this one")
    given = options.parse_args()
    cases, found, known = run(given.one_in, given.workers, given.minutes, given.verdicts)
    text = (
        f"# The attack on inputs\n\nMade by `python experiments/attack/inputs.py` of the sources {given.state or state_of(HERE)}; `tests/attack/bad_inputs.py` says what the columns mean.\n\n"
        + f"{len(found):,} of {cases:,} cases were tried{' in the time there was' if len(found) < cases else ''}.\n\n"
        + table(found)
        + "\n"
    )
    rest = [(name, kind, detail) for name, kind, detail, _ in found if kind not in ("clear", "right")]
    if rest:
        why = {name: f" ({reason})" for name, reason in known.items()}
        text += (
            "\nNeither clear nor right:\n\n"
            + "\n".join(f"- `{n}`: {k}, {d}{why.get(n, '')}" for n, k, d in rest)
            + "\n"
        )
    leaks = [(name, leaks[0]) for name, _, _, leaks in found if leaks]
    if leaks:
        text += "\nWarnings of numpy that came through:\n\n" + "\n".join(f"- `{n}`: {w}" for n, w in leaks) + "\n"
    Path(given.output).write_text(text)
    print(table(found))


if __name__ == "__main__":
    main()
