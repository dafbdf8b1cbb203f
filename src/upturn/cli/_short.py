"""What keeps a short command short."""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys
import types
from collections.abc import Iterator
from typing import Any

_STATISTICS = "scipy.stats"


@contextlib.contextmanager
def own_process() -> Iterator[None]:
    """A process that ends with the block: imports make objects by the ten thousand, and nobody needs to look through them for garbage."""
    gc.set_threshold(100_000)
    try:
        yield
    finally:
        if "duckdb" not in sys.modules:  # which takes what is not looked through for leaks, and lists them
            gc.freeze()  # or all would be looked through once more at the end


def import_sklearn() -> None:
    """Import scikit-learn without the third of it that is ``scipy.stats``, which it imports for a function that no model calls.

    Meanwhile an empty module stands in its place, which fetches the real one for whoever asks it for anything.
    """
    if _STATISTICS in sys.modules:
        return
    instead = types.ModuleType(_STATISTICS)

    def fetch(name: str) -> Any:
        _remove(instead)
        return getattr(importlib.import_module(_STATISTICS), name)

    instead.__getattr__ = fetch  # type: ignore[method-assign]
    importlib.import_module("scipy")
    sys.modules[_STATISTICS] = instead
    try:
        importlib.import_module("sklearn.base")
    finally:
        _remove(instead)


def _remove(instead: types.ModuleType) -> None:
    if sys.modules.get(_STATISTICS) is instead:
        del sys.modules[_STATISTICS]
