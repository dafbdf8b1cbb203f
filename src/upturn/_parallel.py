"""How work is run: threads that share memory, and progress bars."""

from __future__ import annotations

import contextvars
import ctypes
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

Item = TypeVar("Item")
Result = TypeVar("Result")


def count_threads(n_jobs: int | None) -> int:
    """Threads for an ``n_jobs`` as scikit-learn means it: None is 1, -1 is every core this process may use."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, int | np.integer) or isinstance(n_jobs, bool):
        raise ValueError(f"n_jobs={n_jobs!r}: expected None, a number of threads such as 4, or -1 for every core")
    if n_jobs == 0:
        raise ValueError("n_jobs=0 means no worker at all: use None or 1 for one thread, -1 for every core")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))


def run_parallel(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
    description: str = "",
) -> list[Result]:
    """``[function(item) for item in items]`` on threads that share memory, in the order of the items.

    Kernels release the GIL, so threads are enough; BLAS and OpenMP are held at one thread inside them. With ``verbose``
    there is a progress bar.
    """
    threads = min(count_threads(n_jobs), max(1, len(items)))
    if threads == 1:
        return [function(item) for item in progress(items, verbose, description)]
    from joblib import Parallel, delayed
    from threadpoolctl import ThreadpoolController

    pools = ThreadpoolController()
    openmp = pools.select(user_api="openmp")

    context = contextvars.copy_context()

    def alone(item: Item) -> Result:
        with openmp.limit(limits=1):  # OpenMP counts its threads for each thread that calls it, BLAS for all
            return context.copy().run(function, item)

    # Filters of warnings belong to the process, and scikit-learn changes them for a moment in many places: threads that do so at
    # once put back what they found of each other. What was there before them is put back here.
    with pools.limit(limits=1), warnings.catch_warnings():
        results = Parallel(n_jobs=threads, backend="threading", return_as="generator")(
            delayed(alone)(item) for item in items
        )
        return list(progress(results, verbose, description, total=len(items)))


def interruptible(function: Callable[..., Result], *arguments: Any) -> Result:
    """``function(*arguments)`` beside the main thread, which hears Ctrl-C meanwhile.

    For calls of compiled code that take seconds and let go of the GIL, such as numpy's products, sorts and factorisations: the
    interpreter does not run between its lines, so an interrupt would have to wait for its end. A call that was interrupted
    stops in the background where the interpreter runs again, at the latest at its end. The answer is the same, bit by bit.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    answer: list[Result] = []
    error: list[BaseException] = []

    errors: Any = np.geterr()  # what numpy ignores here it ignores there

    def work() -> None:
        try:
            with np.errstate(**errors):
                answer.append(function(*arguments))
        except BaseException as raised:
            error.append(raised)

    thread = threading.Thread(target=work, daemon=True)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(0.2)
    except BaseException:
        if thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
        raise
    if error:
        raise error[0]
    return answer[0]


def progress(items: Iterable[Item], verbose: int, description: str, total: int | None = None) -> Iterable[Item]:
    """The items, behind a progress bar if ``verbose``."""
    if not verbose:
        return items
    from tqdm.auto import tqdm

    bar: Iterable[Item] = tqdm(items, desc=description, total=total)
    return bar
