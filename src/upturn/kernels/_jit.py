"""The one compile policy of the library.

Two decorators cover every kernel:

``@inner``
    a helper that only other kernels call. It is compiled into its callers and has no signature of its own. It has no
    entry from Python either: that is a good part of what a small function costs to compile.

``@kernel(returns, *arguments)``
    an entry point called from Python, with exactly one signature, compiled at its first call (so importing a
    module of kernels costs nothing) and kept in numba's cache on disk.

Why so strict: array arguments are declared read-only (``F8``, ``I4``, ...) unless the kernel writes them
(``F8_out``, ...), so a memory-mapped or frozen array does not trigger a second compilation. Kernels release the
GIL and are never ``parallel=True``: threads come from joblib, because forked workers die under OpenMP. No jitted
function is passed as an argument or captured in a closure, because that defeats the cache.

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

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher

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


# What follows reaches into numba, whose insides may change. Of a later version than was tried, inner functions are compiled
# as numba would: that takes longer and does the same.
_FAMILIAR = tuple(int(part) for part in numba.__version__.split(".")[:2]) <= (0, 68)


class _InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code of an inner function, kept as it is until a kernel links it in.

    numba would optimise it and make machine code of it here and again, with everything it calls, in each of its callers:
    half of the time that compiling takes. Only the kernel's own library is optimised, as a whole.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Address of a function: there is none."""
        return 0

    @property
    def codegen(self) -> Any:
        """What is asked to remember the function's environment."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Forget the environment: it is for functions that handle Python objects."""


class _InnerCompiler(Compiler):  # type: ignore[misc]
    """numba's compiler, writing into an ``_InnerLibrary``."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        super().__init__(typingctx, targetctx, _InnerLibrary(targetctx.codegen(), "inner"), *rest)


class _Inner(CPUDispatcher):  # type: ignore[misc]
    """A function that kernels call and Python does not; a literal argument does not make it compile once more."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Types of a call, ``3`` being an int64 like any other."""
        return super().get_call_template(tuple(types.unliteral(arg) for arg in args), kws)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.py_func.__name__
        raise TypeError(
            f"{name} is an inner function, which only kernels can call: use {name}.py_func or write a kernel"
        )


def inner(function: Function) -> Function:
    """Compile a helper that is called from other kernels only."""
    if numba.config.DISABLE_JIT:
        return function
    options = {**_OPTIONS, "nopython": True, "no_cpython_wrapper": True}
    compiled: Any = _Inner(function, targetoptions=options, pipeline_class=_InnerCompiler if _FAMILIAR else Compiler)
    return compiled  # type: ignore[no-any-return]


def kernel(returns: Any, *arguments: Any) -> Callable[[Function], Function]:
    """Compile an entry point with one signature, at its first call, cached on disk."""

    def decorate(function: Function) -> Function:
        dispatcher = _cached_dispatcher(function)
        if not hasattr(dispatcher, "compile"):  # NUMBA_DISABLE_JIT=1 hands the Python function back
            return function
        ready = False

        @functools.wraps(function)
        def call(*values: Any) -> Any:
            nonlocal ready
            if not ready:
                with _COMPILING:  # threads that come first together compile once
                    if not ready:
                        dispatcher.compile(returns(*arguments))
                        dispatcher.disable_compile()
                        ready = True
            return dispatcher(*values)

        call.dispatcher = dispatcher  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


def _cached_dispatcher(function: Callable[..., Any]) -> Any:
    try:
        return numba.njit(**_OPTIONS, cache=True)(function)
    except RuntimeError:  # numba found no folder it may write compiled code to
        _warn_uncached()
        return numba.njit(**_OPTIONS)(function)


@functools.cache
def _warn_uncached() -> None:
    warnings.warn(
        "no folder for compiled code is writable, so upturn compiles its kernels anew in every process; "
        "set NUMBA_CACHE_DIR to a folder you may write to",
        RuntimeWarning,
        stacklevel=4,
    )
