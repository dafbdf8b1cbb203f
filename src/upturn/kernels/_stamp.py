"""The stamp of compiled code: a hash of the sources of all kernels. And what is said about compiling: that it goes on, and that
code cannot be kept.

A kernel's machine code contains the functions it calls, which live in other files. numba looks only at the kernel's own
file when it decides whether code on disk is fresh; compiled code of this library therefore carries this stamp as well.
"""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import resources
from typing import Any


def _sources(folder: Any) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _sources(entry)
        elif entry.name.endswith(".py"):
            yield entry.name, entry.read_bytes()


def _digest() -> str:
    total = hashlib.sha256()
    for name, text in _sources(resources.files(__package__)):  # a folder, or a zip file that was imported from
        total.update(f"{name} {len(text)}\n".encode() + text)
    return total.hexdigest()


# Taken before any module of kernels is imported, because each of them imports this one first.
STAMP = _digest()


def sources_changed() -> bool:
    """Say whether sources were edited since this process began: it may then have either text in memory."""
    return _digest() != STAMP


_SAID: set[str] = set()


def _warn_once(kind: str, message: str) -> None:
    if kind not in _SAID:
        _SAID.add(kind)
        warnings.warn(message, RuntimeWarning, stacklevel=2)


# Who is told that code is being compiled; by default whoever reads standard error: a terminal, a notebook, a log.
listener: Callable[[str], None] | None = None


def say_compiling() -> None:
    """Say, once in a process, why the first use takes a while."""
    if "compiling" in _SAID:
        return
    _SAID.add("compiling")
    words = "upturn: compiling, once per machine (`upturn compile` does all of it in advance)"
    if listener is not None:
        listener(words)
    elif sys.stderr is not None:
        print(words, file=sys.stderr, flush=True)


def warn_uncached(found: object) -> None:
    """Warn, once in a process, that compiled code is not kept."""
    _warn_once(
        "uncached",
        f"compiled code cannot be kept on disk ({found}), so upturn compiles its kernels anew in every process; "
        "set NUMBA_CACHE_DIR to a folder with some space that you may write to",
    )


def warn_damaged(folder: object, found: object) -> None:
    """Warn, once in a process, that compiled code on disk was unreadable and is replaced."""
    _warn_once(
        "damaged",
        f"compiled code in {folder} is damaged ({found}), so upturn compiles the kernels concerned anew and replaces it",
    )
