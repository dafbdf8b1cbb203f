"""Time and extra memory of one contestant, each in a fresh process, on data that both sides load the same way."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build"


def installed(module):
    return importlib.util.find_spec(module) is not None


def _resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class PeakMemory:
    """The most memory this process held at once inside the block, beyond what it held at its start, in bytes."""

    def __enter__(self):
        self.start = self._peak = _resident()
        try:  # the kernel's own high-water mark, reset to now
            Path("/proc/self/clear_refs").write_text("5")
            self._exact = True
        except OSError:
            self._exact = False
            self._stop = threading.Event()
            self._watch = threading.Thread(target=self._sample, daemon=True)
            self._watch.start()
        return self

    def _sample(self):
        while not self._stop.wait(0.002):
            self._peak = max(self._peak, _resident())

    def __exit__(self, *_):
        if self._exact:
            status = Path("/proc/self/status").read_text()
            self._peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
        else:
            self._stop.set()
            self._watch.join()
        self.extra = max(0, self._peak - self.start)


def best_time(function, repeats):
    """The least wall and processor time of several runs, and the result."""
    wall, cpu, result = [], [], None
    for _ in range(repeats):
        start, used = time.perf_counter(), time.process_time()
        result = function()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    return min(wall), min(cpu), result


def report(answer):
    """Called in the fresh process: hand a JSON answer back."""
    print("RESULT " + json.dumps(answer), flush=True)


def fresh_process(script, *arguments, python=sys.executable):
    """Run ``python script arguments…`` and return the answer it reports; None when it says it cannot run."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(
        [str(python), str(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise RuntimeError(f"{Path(script).name} {' '.join(map(str, arguments))} failed:\n{run.stderr[-2000:]}")
    return json.loads(lines[-1].removeprefix("RESULT "))


class Companion:
    """A process of its own for one source tree that stays alive and answers: requests and answers are lines of JSON."""

    _SIGN = "--companion"

    def __init__(self, script, source, cache):
        self._name = str(source)
        self._process = subprocess.Popen(
            [sys.executable, str(script), self._SIGN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": str(Path(source).resolve()),
                "NUMBA_CACHE_DIR": str(cache),
                "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",
                "MKL_NUM_THREADS": "1",
            },
        )

    def ask(self, **request):
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("RESULT "):
                return json.loads(line.removeprefix("RESULT "))
        raise RuntimeError(f"the process of {self._name} ended while it was asked {request}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait()

    @classmethod
    def is_this_process(cls):
        return cls._SIGN in sys.argv

    @staticmethod
    def serve(answer):
        """Called in the companion: answer until nobody asks."""
        for line in sys.stdin:
            report(answer(json.loads(line)))


def write_json(name, results):
    BUILD.mkdir(exist_ok=True)
    path = BUILD / f"{name}.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(f"written to build/{path.name}")


def limit_of_memory():
    """The process's own high-water mark in bytes, for a last check."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
