"""The compile policy by public means of numba alone, for versions that were not tried.

It takes longer to compile than ``_numba`` and does the same. Fresh code is told from stale by the folder it lies in,
which is named by the stamp of the sources.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from upturn.kernels._stamp import STAMP, sources_changed, warn_uncached


def inner_function(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Make a function that kernels call."""
    return numba.njit(**options)(function)


def _folder() -> Path:
    """Find a folder for code compiled from these sources, where numba would look for one, too."""
    given = numba.config.CACHE_DIR
    own, of_user = Path(__file__).parent / "__pycache__", Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    for parent in [Path(given)] if given else [own, of_user.expanduser() / "upturn"]:
        folder = parent / f"upturn-{STAMP[:16]}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    raise OSError("no folder for it is writable")


def _compile(function: Callable[..., Any], signature: Any, options: dict[str, Any], folder: Path | None) -> Any:
    given = numba.config.CACHE_DIR
    dispatcher = numba.njit(**options)(function)
    if folder is not None:
        numba.config.CACHE_DIR = str(folder)
        try:
            dispatcher.enable_caching()
        finally:
            numba.config.CACHE_DIR = given
    dispatcher.compile(signature)
    return dispatcher


def compile_kernel(function: Callable[..., Any], signature: Any, options: dict[str, Any]) -> Any:
    """Compile a function for one signature, or load what was compiled before."""
    if sources_changed():
        return _compile(function, signature, options, None)
    try:
        return _compile(function, signature, options, _folder())
    except Exception as error:  # no folder, no space, damaged code on disk: all of them end here
        kernel = _compile(function, signature, options, None)  # a mistake in the kernel is raised once more
        warn_uncached(repr(error))
        return kernel
