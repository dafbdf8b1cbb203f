"""A few long-lived processes that judge files, with a limit of time and of memory; one that dies or hangs is replaced.

The parent tells a worker the number of a case, and hears back a line of JSON. The worker makes the case itself.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import selectors
import subprocess
import sys
import time
from pathlib import Path

SECONDS = 20.0  # a case may take
MEMORY = 2**28  # bytes a worker may use beyond what it has when it is ready
_HERE = Path(__file__).resolve()
_PATHS = [str(_HERE.parent.parent.parent / "src"), str(_HERE.parent.parent)]


class Worker:
    """One process, and the case it is at."""

    def __init__(self, corpus, seed, folder, traps):
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(_PATHS),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hostile.workers", str(corpus), str(seed), str(folder), json.dumps(traps)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
        self.number, self.since, self.ready = None, time.monotonic(), False

    def send(self, number):
        self.number, self.since = number, time.monotonic()
        self.process.stdin.write(b"%d\n" % number)
        self.process.stdin.flush()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def judge_all(
    files, numbers, folder, *, seed=0, n_workers=2, seconds=SECONDS, traps=None, said=lambda done: None, minutes=None
):
    """Judge the cases of these numbers, or as many as there are ``minutes`` for: {number: (verdict, detail, model, edits)}.

    ``traps`` are for those who judge the judges: {number: code that runs in place of upturn.load}.
    """
    corpus = Path(folder) / "corpus.pickle"
    corpus.write_bytes(pickle.dumps(files))
    waiting, found, workers, selector = list(numbers)[::-1], {}, {}, selectors.DefaultSelector()
    began = time.monotonic()

    def start():
        worker = Worker(corpus, seed, folder, traps or {})
        workers[worker.process.stdout] = worker
        selector.register(worker.process.stdout, selectors.EVENT_READ)

    def stop(worker):
        selector.unregister(worker.process.stdout)
        del workers[worker.process.stdout]
        worker.end()

    def lost(worker, verdict):
        if not worker.ready:
            raise RuntimeError("a worker died before it was ready")
        stop(worker)
        found[worker.number] = (verdict, f"code {worker.process.returncode}", *_described(files, worker.number, seed))
        if waiting:
            start()

    for _ in range(min(n_workers, len(waiting))):
        start()
    while workers:
        for key, _ in selector.select(1.0):
            worker = workers[key.fileobj]
            line = key.fileobj.readline()
            if not line:
                lost(worker, "crash")
                continue
            if worker.ready:
                found[worker.number] = tuple(json.loads(line))
                said(found)
            worker.ready = True
            if minutes is not None and time.monotonic() - began > 60 * minutes:
                waiting.clear()
            if waiting:
                worker.send(waiting.pop())
            else:
                stop(worker)
        for worker in list(workers.values()):
            if time.monotonic() - worker.since > (seconds if worker.ready else 300.0):
                lost(worker, "hang")
    return found


def _described(files, number, seed):
    from hostile.edits import edited

    return edited(files, number, seed)[1]


def main(corpus, seed, folder, traps):
    from hostile import use
    from hostile.edits import edited
    from hostile.use import judge

    traps, load = json.loads(traps), use.up.load
    files = pickle.loads(Path(corpus).read_bytes())
    path = Path(folder) / f"model-{os.getpid()}"
    for name in files:  # whatever is compiled or imported late
        assert judge(files[name].pack(), path) == ("right", ""), (name, judge(files[name].pack(), path))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever prints does not talk to the parent
    print("ready", file=out, flush=True)
    for line in sys.stdin:
        content, said = edited(files, int(line), int(seed))
        trap = traps.get(line.strip())
        use.up.load = load if trap is None else lambda path, trap=trap: exec(trap)
        print(json.dumps([*judge(content, path), *said]), file=out, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
