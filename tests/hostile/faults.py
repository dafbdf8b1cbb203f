"""Faults of the world around a save or a load: kills, full disks, several at once, forks, threads, homes that cannot be written.

Every trial says how often it was tried and how often something was not as promised. Children are forked from a process that has
imported everything, so that hundreds of them are cheap.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import upturn as up
from saved import fingerprint
from upturn.features import UMODLDiscretizer
from upturn.meta import ClassTransformation
from upturn.trees import UpliftForest

_SOURCE = Path(up.__file__).resolve().parent.parent


def experiment(seed=0, n=3000):
    rng = np.random.default_rng(seed)
    X, t = rng.normal(size=(n, 4)), rng.integers(0, 2, n)
    return X, (rng.random(n) < 0.3 + 0.3 * t * (X[:, 0] > 0)).astype(int), t


def two_models():
    """Two forests whose files take a while to write, and what they are known by."""
    models = [UpliftForest(n_estimators=60, random_state=seed).fit(*experiment(seed)) for seed in (0, 1)]
    return models, [fingerprint(model) for model in models]


def forked(work):
    """The process id of a child that does some work and ends: 0 if nothing was raised."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def finished(child, seconds=60.0):
    """The exit code of a child; -9 if it had to be ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -9


def left_over(folder):
    return [path for path in Path(folder).iterdir() if path.name.endswith(".tmp")]


def killed_saves(folder, tries):
    """kill -9 at a random moment of saves: the file is one of the two models whole; what is left is swept up an hour later."""
    (first, second), known = two_models()
    path, draw, bad, torn = Path(folder) / "model", random.Random(0), 0, 0
    first.save(path)
    began = time.monotonic()
    first.save(path)
    took = time.monotonic() - began

    def save():
        while True:
            second.save(path)
            first.save(path)

    for _ in range(tries):
        child = forked(save)
        time.sleep(draw.uniform(0.0, 4.0 * took))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        bad += fingerprint(up.load(path)) not in known
    torn = len(left_over(folder))
    for rubbish in left_over(folder):
        os.utime(rubbish, (time.time() - 7200,) * 2)
    first.save(path)
    return {"tried": tries, "wrong": bad + len(left_over(folder)), "said": f"{torn} saves torn, all swept up"}


def interrupted_saves(folder, tries):
    """An exception at a random moment, as by Ctrl-C: the file is one of the two, and nothing is left over."""
    (first, second), known = two_models()
    path, draw, bad, hit = Path(folder) / "model", random.Random(0), 0, 0
    first.save(path)
    began = time.monotonic()
    first.save(path)
    took = time.monotonic() - began

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        for turn in range(tries):
            try:
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-4, 1.2 * took))
                (first, second)[turn % 2].save(path)
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            except KeyboardInterrupt:
                hit += 1
            bad += fingerprint(up.load(path)) not in known or bool(left_over(folder))
            for rubbish in left_over(folder):
                rubbish.unlink()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    return {"tried": tries, "wrong": bad, "said": f"{hit} saves interrupted"}


def full_disk(folder, tries):
    """A file may not grow beyond so many bytes: an OSError, the file that was there untouched, nothing left over."""
    (first, second), known = two_models()
    path, bad = Path(folder) / "model", 0
    first.save(path)
    size = path.stat().st_size
    for turn in range(tries):
        limit = turn * size // tries

        def save(limit=limit):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            try:
                second.save(path)
            except OSError:
                return
            raise AssertionError("nothing was said")

        bad += finished(forked(save)) != 0 or fingerprint(up.load(path)) != known[0] or bool(left_over(folder))
    return {"tried": tries, "wrong": bad, "said": ""}


def saves_at_once(folder, tries):
    """Four processes save to one path while it is read: what is read is always one of the models, whole."""
    (first, second), known = two_models()
    path, bad = Path(folder) / "model", 0
    first.save(path)

    def save(model):
        for _ in range(tries):
            model.save(path)

    children = [forked(lambda model=model: save(model)) for model in (first, second, first, second)]
    reads, codes = 0, []
    while children:
        bad += fingerprint(up.load(path)) not in known
        reads += 1
        done, status = os.waitpid(-1, os.WNOHANG)
        if done in children:
            children.remove(done)
            codes.append(os.waitstatus_to_exitcode(status))
    bad += sum(code != 0 for code in codes) + len(left_over(folder))
    return {"tried": 4 * tries, "wrong": bad, "said": f"{reads} reads meanwhile"}


def threads_at_once(folder, tries):
    """Threads that save, load and predict at the same time get what one alone gets."""
    (first, second), known = two_models()
    path = Path(folder) / "model"
    first.save(path)
    X = experiment(5)[0]
    expected = first.predict(X)

    def work(turn):
        (first, second)[turn % 2].save(path)
        whole = fingerprint(up.load(path)) in known
        return whole and np.array_equal(first.predict(X), expected)

    with ThreadPoolExecutor(8) as pool:
        good = sum(pool.map(work, range(tries)))
    return {"tried": tries, "wrong": tries - good + len(left_over(folder)), "said": "8 threads"}


def forks_after_threads(folder, tries):
    """A child forked from a process that has fitted and predicted in threads can do so too, with the same bits."""
    data = experiment(3, 20_000)
    expected = UpliftForest(n_estimators=8, random_state=0, n_jobs=2).fit(*data).predict(data[0])
    bad = 0
    for _ in range(tries):

        def work():
            again = UpliftForest(n_estimators=8, random_state=0, n_jobs=2).fit(*data).predict(data[0])
            assert np.array_equal(again, expected)

        bad += finished(forked(work)) != 0
    return {"tried": tries, "wrong": bad, "said": ""}


def forks_while_threads_work(folder, tries):
    """A child forked while another thread is inside a fit is not stuck in a lock it inherited."""
    data, stop = experiment(3, 5000), threading.Event()
    model = ClassTransformation().fit(*data)
    expected = model.predict(data[0])

    def busy():
        while not stop.is_set():
            UpliftForest(n_estimators=4, random_state=0).fit(*data)

    thread = threading.Thread(target=busy)
    thread.start()
    bad = 0

    def work():
        assert np.array_equal(model.predict(data[0]), expected)
        UpliftForest(n_estimators=2, random_state=0).fit(*data)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of any fork beside threads
            for _ in range(tries):
                bad += finished(forked(work)) != 0
    finally:
        stop.set()
        thread.join()
    return {"tried": tries, "wrong": bad, "said": ""}


def homes_that_cannot_be_written(folder, tries):
    """No home, no cache, no place for temporary files: a fit works, and says once that compiled code is not kept."""
    code = (
        "import warnings, numpy as np\n"
        "from upturn.meta import ClassTransformation\n"
        "rng = np.random.default_rng(0); X, t = rng.normal(size=(200, 2)), np.arange(200) % 2\n"
        "y = rng.integers(0, 2, 200)\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    assert np.isfinite(ClassTransformation().fit(X, y, t).predict(X)).all()\n"
        "assert len(said) <= 1, [str(one.message) for one in said]\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(_SOURCE),
        "HOME": "/proc/self/nowhere",
        "XDG_CACHE_HOME": "/proc/self/nowhere",
    }
    environment |= {"NUMBA_CACHE_DIR": "/proc/self/nowhere", "JOBLIB_TEMP_FOLDER": "/proc/self/nowhere"}
    bad = sum(subprocess.run([sys.executable, "-c", code], env=environment).returncode != 0 for _ in range(tries))
    return {"tried": tries, "wrong": bad, "said": ""}


def places_that_cannot_be_saved_to(folder, tries):
    """A folder that is none, a folder in place of a file, a name too long, a full device: an OSError, and nothing is left over."""
    model, bad = UMODLDiscretizer().fit(*experiment(0, 500)), 0
    (Path(folder) / "a folder").mkdir(exist_ok=True)
    places = [
        Path(folder) / "nowhere" / "model",
        Path(folder) / "a folder",
        Path(folder) / ("x" * 300),
        Path("/proc/model"),
    ]
    for turn in range(tries):
        try:
            model.save(places[turn % len(places)])
        except OSError:
            pass
        else:
            bad += 1
        bad += bool(left_over(folder))
    return {"tried": tries, "wrong": bad, "said": ""}


# {trial: tries in the experiment, tries in the tests}
TRIALS = {
    killed_saves: (400, 40),
    interrupted_saves: (400, 60),
    full_disk: (200, 25),
    saves_at_once: (100, 15),
    threads_at_once: (200, 24),
    forks_after_threads: (20, 2),
    forks_while_threads_work: (40, 4),
    homes_that_cannot_be_written: (3, 1),
    places_that_cannot_be_saved_to: (40, 4),
}
