"""Run by a rival's interpreter: one function of its file, on arrays.

    python _drive.py FILE.py TABLE NAME GIVEN.npz ANSWER.npz REPEATS

``TABLE`` is JOBS or MODELS. What comes out are its result, the least processor time of the repeats and the most memory that the process and those
it started held at once, beyond what they held before the last, when what earlier repeats had left free was given back. Nothing of upturn is imported here.
"""

import contextlib
import ctypes
import gc
import importlib.util
import os
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
    """Processes of this session: (processor seconds so far, bytes they hold); of others the seconds are known to a hundredth."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, held, session = time.process_time() + ended.ru_utime + ended.ru_stime, 0, os.getsid(0)
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split() if entry.name.isdigit() else None
        except OSError:  # it has ended
            continue
        if fields and int(fields[3]) == session:
            own = int(entry.name) == os.getpid()
            seconds += 0.0 if own else sum(map(int, fields[11:15])) / _TICK  # those it started and that have ended, too
            held += int(fields[21]) * _PAGE
    return seconds, held


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


def main(path, table, name, given, answer, repeats):
    warnings.simplefilter("ignore")
    job = getattr(load(path), table)[name]
    rows = {key: value if value.ndim else value.item() for key, value in np.load(given).items()}
    seconds = []
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


if __name__ == "__main__":
    main(*sys.argv[1:])
