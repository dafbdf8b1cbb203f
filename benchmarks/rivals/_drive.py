"""Run by a rival's interpreter: one function of its file, on arrays.

    python _drive.py FILE.py TABLE NAME GIVEN.npz ANSWER.npz REPEATS [FIRST.npz]
    python _drive.py FILE.py                # and lines of standard input: TABLE, NAME, GIVEN.npz and ANSWER.npz, tabs between them

``TABLE`` is JOBS or MODELS. What comes out are its result, the least processor time of the repeats and the most memory that the process and those
it started held at once, beyond what they held before the last, when what earlier repeats had left free was given back. ``FIRST`` is a small table that is asked
about before, so that what is loaded and compiled does not count. Of lines that are read the memory is
not looked at, each is answered by a line, empty or what went wrong, and what a library loads or starts (``SHARED`` of its file) serves all of them.
Nothing of upturn is imported here.
"""

import contextlib
import ctypes
import gc
import importlib.util
import os
import random
import resource
import sys
import threading
import time
import warnings
from pathlib import Path

sys.path[:] = [folder for folder in sys.path if Path(folder or ".").resolve() != Path(__file__).resolve().parent]

import numpy as np  # noqa: E402

_TICK, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


def family():
    """Processes of this session and those that they started: (processor seconds so far, bytes they hold); of others the seconds are known to a hundredth."""
    ended, found, session = resource.getrusage(resource.RUSAGE_CHILDREN), {}, os.getsid(0)
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split() if entry.name.isdigit() else None
        except OSError:  # it has ended
            continue
        if fields:
            found[int(entry.name)] = fields
    ours = {pid for pid, fields in found.items() if int(fields[3]) == session}
    while (
        more := {pid for pid, fields in found.items() if int(fields[1]) in ours} - ours
    ):  # H2O's server has a session of its own
        ours |= more
    seconds = time.process_time() + ended.ru_utime + ended.ru_stime
    for pid in ours - {os.getpid()}:
        seconds += sum(map(int, found[pid][11:15])) / _TICK  # those it started and that have ended, too
    return seconds, sum(int(found[pid][21]) * _PAGE for pid in ours)


def give_back():
    """What Python and the C library hold without use goes back to the system, where there is a way to ask for it."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError, TypeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


def own(key):
    """Bytes of this process that the kernel calls ``key``."""
    return int(Path("/proc/self/status").read_text().split(f"{key}:")[1].split()[0]) * 1024


class Peak:
    """The most bytes the session's processes held at once inside the block, beyond what they held at its start.

    A heap that an earlier run has filled and freed would hide what the block takes, so it is given back first. The kernel's own high-water mark, where
    it can be reset, sees what falls between two looks, in this process.
    """

    def __enter__(self):
        give_back()
        try:
            Path("/proc/self/clear_refs").write_text("5")
            self._held = own("VmRSS")
        except (IndexError, OSError):
            self._held = None
        self._start = self._most = family()[1]
        self._end = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()
        return self

    def _look(self):
        while not self._end.wait(0.02):
            self._most = max(self._most, family()[1])

    def __exit__(self, *_):
        self._end.set()
        self._watch.join()
        self.extra = max(self._most, family()[1]) - self._start
        if self._held is not None:
            self.extra = max(self.extra, own("VmHWM") - self._held)


def load(path):
    """A rival's file as a module that is called after it, and hides no library of the same name."""
    spec = importlib.util.spec_from_file_location(f"_rival_{Path(path).stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(given):
    """Arrays, and numbers and words where an array has no axis."""
    return {key: value if value.ndim else value.item() for key, value in np.load(given).items()}


def main(path, table, name, given, answer, repeats, first=None):
    warnings.simplefilter("ignore")
    job, rows, seconds = getattr(load(path), table)[name], read(given), []
    if first:
        job(**read(first))
    for repeat in range(int(repeats)):
        if repeat == int(repeats) - 1:
            with Peak() as peak:
                start = family()[0]
                result = job(**rows)
                seconds.append(family()[0] - start)
        else:
            start = family()[0]
            job(**rows)
            seconds.append(family()[0] - start)
    np.savez(answer, result=np.asarray(result, float), seconds=min(seconds), extra=peak.extra)


def serve(path):
    """Answer lines until there are no more; every call starts from the same state of the global generators, whatever ran before."""
    warnings.simplefilter("ignore")
    module, lines = load(path), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    with getattr(module, "SHARED", contextlib.nullcontext)():
        for line in sys.stdin:
            table, name, given, answer = line.rstrip("\n").split("\t")
            random.seed(0)
            np.random.seed(0)  # noqa: NPY002 - theirs
            try:
                start = family()[0]
                result = np.asarray(getattr(module, table)[name](**read(given)), float)
                np.savez(answer, result=result, seconds=family()[0] - start, extra=0)
                said = ""
            except Exception as error:  # whatever a library raises: the next line may do better
                said = " ".join(f"{type(error).__name__}: {error}".split()) or "failed"
            print(said, file=lines, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) > 2 else serve(sys.argv[1])
