"""Where the library reaches into numba: inner functions without machine code of their own, and a cache with a seal.

Insides may change, so ``_jit`` takes this file for versions of numba that were tried and ``_plain`` for any other.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable
from typing import Any

import numba
from numba import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from upturn.kernels._stamp import STAMP, say_compiling, sources_changed, warn_damaged, warn_uncached

# --- inner functions ---


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


def inner_function(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Make a function that kernels call and that is compiled into them."""
    options = {**options, "nopython": True, "no_cpython_wrapper": True}
    return _Inner(function, targetoptions=options, pipeline_class=_InnerCompiler)


# --- the cache ---


def _is_numbas(environment: Any) -> bool:
    return str(environment.globals.get("__name__")).startswith("numba.")


class _SealedCode(CompileResultCacheImpl):  # type: ignore[misc]
    """How compiled code is written and read: sealed with the stamp of the sources and a checksum.

    The seal lies in the same file as the code. A stamp in numba's index would not do: of two processes with different
    sources that save at once, one may write the index and the other the code.
    """

    def reduce(self, result: Any) -> tuple[str, int, bytes]:
        """What is saved of a result of the compiler.

        An environment holds the Python objects of a function. One of a function of numba that has none would only have its
        module imported when the code is loaded, and with it a good part of numba.
        """
        *rest, environments = super().reduce(result)
        code = dumps((*rest, tuple(one for one in environments if one.consts or not _is_numbas(one))))
        return STAMP, zlib.crc32(code), code

    def rebuild(self, context: Any, sealed: tuple[str, int, bytes]) -> Any:
        """Rebuild the result that was saved; None if other sources made it."""
        if sealed[0] != STAMP:
            return None
        _, checksum, code = sealed
        if zlib.crc32(code) != checksum:
            raise ValueError("its checksum is wrong")
        return super().rebuild(context, pickle.loads(code))


# What numba does to load code, by the names it uses: if it is more than this, it is left to numba.
_STEPS = {"refresh", "_guard_against_spurious_io_errors", "_load_overload"}


class _Cache(FunctionCache):  # type: ignore[misc]
    """A cache on disk that is never a reason for a kernel not to run."""

    _impl_class = _SealedCode

    def _load(self, signature: Any, context: Any) -> Any:
        """Load compiled code without the registries of numba.

        numba imports and installs, before it looks for code, all that it knows how to compile: a fifth of a second. Code that
        is there needs of this the runtime, which owns arrays that kernels make; the compiler sees to its registries itself.
        """
        if set(FunctionCache.load_overload.__code__.co_names) != _STEPS:
            return super().load_overload(signature, context)
        rtsys.initialize(context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, context)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Load compiled code; None if there is none, of other sources, or damaged."""
        try:
            found = self._load(signature, context)
            if found is None:
                say_compiling()
            return found
        except Exception as error:  # unpickling a damaged file may raise anything
            try:
                self.flush()
            except OSError:
                self.disable()
            warn_damaged(self.cache_path, repr(error))
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Save compiled code, if the sources on disk are still those it was made of."""
        if sources_changed():
            return
        try:
            super().save_overload(signature, result)
        except Warning:  # this kernel can never be cached, which is our mistake: for a test to see
            raise
        except Exception as error:
            warn_uncached(repr(error))


def compile_kernel(function: Callable[..., Any], signature: Any, options: dict[str, Any]) -> Any:
    """Compile a function for one signature, or load what was compiled before."""
    dispatcher = numba.njit(**options)(function)
    try:
        dispatcher._cache = _Cache(function)
    except (RuntimeError, OSError) as error:  # numba found no folder it may write to
        warn_uncached(error)
    dispatcher.compile(signature)
    return dispatcher
