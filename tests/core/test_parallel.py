"""Seeds, threads and progress bars."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import upturn
from upturn._parallel import count_threads, interruptible, progress, run_parallel
from upturn._seeds import make_seed

SRC = Path(upturn.__file__).parent.parent


def run_script(script, **options):
    path = os.pathsep.join([str(SRC), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


# --------------------------------------------------------------------------------------------- seeds


@pytest.mark.parametrize("seed", [0, 1, 2**32, 2**64 - 1, np.int64(5), np.uint8(3)])
def test_an_integer_is_its_own_seed(seed):
    assert make_seed(seed) == int(seed)
    assert make_seed(seed).dtype == np.uint64


def test_none_is_fresh_every_time():
    assert len({int(make_seed(None)) for _ in range(10)}) == 10


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_generators_are_advanced_and_reproducible(make):
    generator = make(0)
    first, second = make_seed(generator), make_seed(generator)
    assert first != second
    assert first == make_seed(make(0))


def test_an_integer_leaves_numpys_global_state_alone():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    make_seed(3)
    make_seed(None)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@pytest.mark.parametrize("seed", [-1, 1.0, "1", True, np.array([1]), object])
def test_what_is_no_seed(seed):
    with pytest.raises(
        ValueError, match=r"random_state=.*: expected None, an integer of 0 or more, a RandomState or a Gen"
    ):
        make_seed(seed)


# --------------------------------------------------------------------------------------------- threads


def test_counts_of_threads(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    wanted = {None: 1, 1: 1, 3: 3, 100: 100, -1: 6, -2: 5, -6: 1, -100: 1}
    assert {n_jobs: count_threads(n_jobs) for n_jobs in wanted} == wanted
    with pytest.raises(
        ValueError, match="n_jobs=0 means no worker at all: use None or 1 for one thread, -1 for every core"
    ):
        count_threads(0)


@pytest.mark.parametrize("n_jobs", ["all", 2.5, True])
def test_threads_are_counted(n_jobs):
    with pytest.raises(ValueError, match=r"n_jobs=.* expected None, a number of threads such as 4, or -1"):
        count_threads(n_jobs)


every_count = pytest.mark.parametrize("n_jobs", [None, 1, 2, 5, -1])


@every_count
def test_results_come_in_the_order_of_the_items(n_jobs):
    def slow_at_first(item):
        time.sleep(0.02 if item < 3 else 0)
        return item * item

    assert run_parallel(slow_at_first, range(20), n_jobs=n_jobs) == [item * item for item in range(20)]
    assert run_parallel(slow_at_first, [], n_jobs=n_jobs) == []
    assert run_parallel(slow_at_first, [4], n_jobs=n_jobs) == [16]


def test_work_runs_on_threads_of_this_process_that_share_memory():
    meet = threading.Barrier(2, timeout=20)  # passes only if two items run at the same time
    seen = np.zeros(2)

    def work(item):
        meet.wait()
        seen[item] = 1
        return os.getpid()

    assert set(run_parallel(work, [0, 1], n_jobs=2)) == {os.getpid()}
    assert seen.all()


def test_blas_has_one_thread_inside_our_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    before = threadpool_info()

    def widest(_):
        return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")

    assert run_parallel(widest, [0, 1, 2], n_jobs=2) == [1, 1, 1]
    assert threadpool_info() == before


class Broken(Exception):
    pass


@every_count
def test_an_exception_comes_out_as_it_is(n_jobs):
    def work(item):
        if item == 3:
            raise Broken(f"item {item}")
        return item

    with pytest.raises(Broken, match="item 3"):
        run_parallel(work, range(8), n_jobs=n_jobs)
    assert run_parallel(abs, [-1, -2], n_jobs=n_jobs) == [1, 2]  # and nothing is left broken


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_keyboard_interrupt_comes_out(n_jobs):
    script = f"""if True:
        from upturn._parallel import run_parallel
        def work(item):
            if item == 2:
                raise KeyboardInterrupt
            return item
        try:
            run_parallel(work, range(6), n_jobs={n_jobs})
        except KeyboardInterrupt:
            print("interrupted")
    """
    process = run_script(script)
    assert process.communicate(timeout=60)[0] == "interrupted\n"


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_stops_the_work_soon(n_jobs):
    script = f"""if True:
        import time
        from upturn._parallel import run_parallel
        def work(item):
            if item == 1:
                print("started", flush=True)
            time.sleep(0.1)
        try:
            run_parallel(work, range(3000), n_jobs={n_jobs})
        except KeyboardInterrupt:
            print("interrupted")
    """
    process = run_script(script)
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    start = time.perf_counter()
    out, _ = process.communicate(timeout=60)
    assert out == "interrupted\n"
    assert time.perf_counter() - start < 20  # all items would take 150 s or more


# --------------------------------------------------------------------------------------------- progress


@every_count
def test_verbose_shows_a_bar(n_jobs, capsys):
    run_parallel(abs, range(7), n_jobs=n_jobs, verbose=1, description="Growing trees")
    out, err = capsys.readouterr()
    assert out == ""
    assert "Growing trees" in err
    assert "7/7" in err


@every_count
def test_quiet_says_nothing(n_jobs, capsys):
    run_parallel(abs, range(7), n_jobs=n_jobs)
    assert capsys.readouterr() == ("", "")


def test_progress_passes_items_through(capsys):
    items = iter([1, 2])
    assert progress(items, 0, "x") is items
    assert list(progress([1, 2], 1, "x", total=2)) == [1, 2]
    assert "2/2" in capsys.readouterr().err


def test_workers_start_no_threads_of_their_own():
    import sklearn.ensemble  # noqa: F401, loads OpenMP

    with threadpool_limits(limits=2):
        seen = run_parallel(lambda _: [pool["num_threads"] for pool in threadpool_info()], range(4), n_jobs=2)
        assert all(count == 1 for counts in seen for count in counts)
        assert all(pool["num_threads"] == 2 for pool in threadpool_info() if pool["user_api"] == "openmp")


def test_an_interruptible_call_answers_raises_and_lets_go():
    assert interruptible(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        interruptible(divmod, 7, 0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background of a shell ignores it
    began = time.perf_counter()
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible(time.sleep, 20)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert time.perf_counter() - began < 10


def test_what_was_interrupted_stops_in_the_background_too():
    steps = []

    def walk():
        for step in range(2000):
            steps.append(step)
            time.sleep(0.01)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible(walk)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    time.sleep(0.5)
    seen = len(steps)
    time.sleep(0.5)
    assert len(steps) == seen < 2000


def test_an_interruptible_call_ignores_what_is_ignored_around_it():
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        interruptible(lambda: np.float64(1e300) * np.float64(1e300))


def test_an_interruptible_call_stays_in_a_thread_that_is_not_the_main_one():
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: interruptible(threading.get_ident) == threading.get_ident()).result()
