"""`upturn.compile`: compile everything now, so that nothing has to be compiled later."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator

from upturn import kernels


def every_kernel() -> Iterator[tuple[str, Callable[[], None]]]:
    """Every kernel by its name, and what makes it ready; none where the compiler is switched off."""
    for module in pkgutil.iter_modules(kernels.__path__):
        home = importlib.import_module(f"{kernels.__name__}.{module.name}")
        for name, thing in vars(home).items():
            if hasattr(thing, "make_ready") and thing.__module__ == home.__name__:
                yield f"{module.name}.{name}", thing.make_ready


def compile() -> int:
    """Compile all kernels and keep them on disk: once per machine, a minute or two.

    Compiled code is kept beside the library, or in the folder that ``NUMBA_CACHE_DIR`` names, and made anew only when
    upturn is upgraded. Without this call every kernel is compiled when it is first needed.

    Returns
    -------
    int
        How many kernels are ready.

    Examples
    --------
    >>> import upturn
    >>> upturn.compile()  # doctest: +SKIP
    104
    """
    count = 0
    for _, make_ready in every_kernel():
        make_ready()
        count += 1
    return count
