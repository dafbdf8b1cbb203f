"""The one compile policy of the library.

Three decorators cover every kernel:

``@inner``
    a helper that only other kernels call. It is compiled into its callers and has no signature of its own. It has no
    entry from Python either: that is a good part of what a small function costs to compile.

``@inlined``
    the same, and always part of its caller's code, whatever the compiler thinks of its size: for a function of a few lines
    that passes tuples on, which a call would lay out in memory.

``@kernel(returns, *arguments)``
    an entry point called from Python, with exactly one signature, compiled at its first call (so importing a
    module of kernels costs nothing) and kept in numba's cache on disk, stamped with a hash of the sources of all kernels:
    an edit of any of them, also of a function in another file, is seen by the next process.

Why so strict: array arguments are declared read-only (``F8``, ``I4``, ...) unless the kernel writes them
(``F8_out``, ...), so a memory-mapped or frozen array does not trigger a second compilation. Kernels release the
GIL and are never ``parallel=True``: threads come from joblib, because forked workers die under OpenMP. No jitted
function is passed as an argument or captured in the closure of an entry point, because that defeats the cache.

>>> import numpy as np
>>> @kernel(f8, F8)
... def total(x):
...     s = 0.0
...     for value in x:
...         s += value
...     return s
>>> total(np.array([1.0, 2.0]))
3.0
"""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numba
from numba import types

# Newer versions than were tried are used by their public means only, which takes longer and does the same.
TRIED = (0, 68)
if tuple(int(part) for part in numba.__version__.split(".")[:2]) <= TRIED:
    from upturn.kernels._numba import compile_kernel, inner_function
else:
    from upturn.kernels._plain import compile_kernel, inner_function

Function = TypeVar("Function", bound=Callable[..., Any])

_COMPILING = threading.RLock()

f8, i8, u8, i4, u4, u1, b1, void = (
    types.float64,
    types.int64,
    types.uint64,
    types.int32,
    types.uint32,
    types.uint8,
    types.boolean,
    types.void,
)


def _array(dtype: Any, ndim: int, readonly: bool) -> Any:
    return types.Array(dtype, ndim, "C", readonly=readonly)


def _family(dtype: Any, readonly: bool) -> tuple[Any, Any, Any]:
    return _array(dtype, 1, readonly), _array(dtype, 2, readonly), _array(dtype, 3, readonly)


# C-contiguous arrays: F8 is a read-only vector of float64, F8_2 a matrix, F8_3 a cube; *_out may be written.
F8, F8_2, F8_3 = _family(f8, True)
I8, I8_2, I8_3 = _family(i8, True)
I4, I4_2, I4_3 = _family(i4, True)
U8, U8_2, U8_3 = _family(u8, True)
U4, U4_2, U4_3 = _family(u4, True)
U1, U1_2, U1_3 = _family(u1, True)
B1, B1_2, B1_3 = _family(b1, True)
F8_out, F8_2_out, F8_3_out = _family(f8, False)
I8_out, I8_2_out, I8_3_out = _family(i8, False)
I4_out, I4_2_out, I4_3_out = _family(i4, False)
U8_out, U8_2_out, U8_3_out = _family(u8, False)
U4_out, U4_2_out, U4_3_out = _family(u4, False)
U1_out, U1_2_out, U1_3_out = _family(u1, False)
B1_out, B1_2_out, B1_3_out = _family(b1, False)


_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def inner(function: Function) -> Function:
    """Compile a helper that is called from other kernels only."""
    if numba.config.DISABLE_JIT:
        return function
    return inner_function(function, _OPTIONS)  # type: ignore[no-any-return]


def inlined(function: Function) -> Function:
    """Compile a helper that becomes part of each of its callers."""
    if numba.config.DISABLE_JIT:
        return function
    return inner_function(function, {**_OPTIONS, "forceinline": True})  # type: ignore[no-any-return]


@contextlib.contextmanager
def ctrl_c_heard() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end, if Ctrl-C came at a moment when LLVM calls Python and whatever is raised there is lost."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    heard = False

    def hear(number: int, frame: Any) -> None:
        nonlocal heard
        heard = True
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if heard:
        raise KeyboardInterrupt


def kernel(returns: Any, *arguments: Any) -> Callable[[Function], Function]:
    """Compile an entry point with one signature, at its first call, cached on disk."""

    def decorate(function: Function) -> Function:
        if numba.config.DISABLE_JIT:
            return function
        compiled: Any = None

        def make_ready() -> None:
            nonlocal compiled
            with _COMPILING, ctrl_c_heard():  # threads that come first together compile once
                if compiled is None:
                    fresh = compile_kernel(function, returns(*arguments), _OPTIONS)
                    fresh.disable_compile()
                    compiled = fresh

        @functools.wraps(function)
        def call(*values: Any) -> Any:
            if compiled is None:
                make_ready()
            return compiled(*values)

        call.make_ready = make_ready  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate
