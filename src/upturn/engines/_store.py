"""Objects with large arrays in files that all processes of a machine share: what one has written, another maps into its memory, and no byte travels.

Spark gives the tasks of a partition to whichever of its processes is free, so what a process has in memory of its own is there for the next task only by chance.
"""

from __future__ import annotations

import mmap
import os
import pickle
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

_ALIGNED = 64  # bytes, at which arrays begin
_MOST_MAPPED = 8  # files at a time


def write(path: Path, thing: Any) -> None:
    """Put something into a file, whole or not at all."""
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    arrays, before = f"{path.name}-{uuid4().hex}-arrays", _arrays_of(path)
    _write_head(path, pickled, _write_arrays(path.with_name(arrays), buffers), arrays)
    if before is not None:  # whoever has it mapped keeps it
        before.unlink(missing_ok=True)


def _arrays_of(path: Path) -> Path | None:
    """Where the arrays of a file lie, if there is one."""
    try:
        return path.with_name(_read_head(path)[2])
    except FileNotFoundError:
        return None


def read(path: Path) -> Any:
    """What is in a file, its arrays mapped into memory; what is written to them stays here. ``FileNotFoundError`` if it is gone."""
    pickled, spans, arrays = _read_head(path)
    mapped = _mapped(path.with_name(arrays), mmap.ACCESS_COPY)
    return pickle.loads(pickled, buffers=[mapped[start:stop] for start, stop in spans])


class Desk:
    """Something that is worked on in place, by one process at a time: whoever takes it leaves nothing behind for others until it is put back.

    So what a process that died may have half changed is never seen again.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._arrays = path, ""
        self._mapped: memoryview | None = None

    def take(self) -> Any:
        """What lies there; None if nothing does."""
        mine = self._path.with_name(f"{self._path.name}-{uuid4().hex}")
        try:
            os.rename(self._path, mine)
        except FileNotFoundError:
            return None
        pickled, spans, self._arrays = _read_head(mine)
        os.unlink(mine)
        try:
            self._mapped = _shared(self._path.with_name(self._arrays))
        except FileNotFoundError:
            self._arrays = ""
            return None
        mapped = self._mapped
        return pickle.loads(pickled, buffers=[mapped[start:stop] for start, stop in spans])

    def put(self, thing: Any) -> None:
        """Put it back, or something else: arrays that lie in the file stay where they are."""
        buffers: list[pickle.PickleBuffer] = []
        pickled = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
        spans = [_place(buffer, self._mapped) for buffer in buffers]
        known = [span for span in spans if span is not None]
        if len(known) < len(spans) or not self._arrays:
            old, self._arrays = self._arrays, f"{self._path.name}-{uuid4().hex}-arrays"
            known = _write_arrays(self._path.with_name(self._arrays), buffers)
            if old:
                self._path.with_name(old).unlink(missing_ok=True)
        _write_head(self._path, pickled, known, self._arrays)


def _write_arrays(path: Path, buffers: Sequence[pickle.PickleBuffer]) -> list[tuple[int, int]]:
    """Write arrays one after the other; where each begins and ends."""
    spans, at = [], 0
    with open(path, "wb") as file:
        for buffer in buffers:
            raw = buffer.raw()
            file.seek(at)
            file.write(raw)
            spans.append((at, at + raw.nbytes))
            at = -(-(at + raw.nbytes) // _ALIGNED) * _ALIGNED
    return spans


def _write_head(path: Path, pickled: bytes, spans: Sequence[tuple[int, int]], arrays: str) -> None:
    new = path.with_name(f"{path.name}-{uuid4().hex}")
    new.write_bytes(pickle.dumps((pickled, list(spans), arrays)))
    os.replace(new, path)


def _read_head(path: Path) -> tuple[bytes, list[tuple[int, int]], str]:
    head: tuple[bytes, list[tuple[int, int]], str] = pickle.loads(path.read_bytes())
    return head


def _mapped(path: Path, access: int) -> memoryview:
    """All of a file, in memory as far as it is looked at."""
    with open(path, "rb" if access == mmap.ACCESS_COPY else "r+b") as file:
        if not os.fstat(file.fileno()).st_size:
            return memoryview(bytearray())
        return memoryview(mmap.mmap(file.fileno(), 0, access=access))


@lru_cache(maxsize=_MOST_MAPPED)
def _shared(path: Path) -> memoryview:
    """A file that several processes write to, one after the other: it stays mapped, as that takes time again for every page."""
    return _mapped(path, mmap.ACCESS_WRITE)


def _place(buffer: pickle.PickleBuffer, mapped: memoryview | None) -> tuple[int, int] | None:
    """Where in a mapped file an array lies, if it does."""
    raw = buffer.raw()
    if not raw.nbytes:
        return 0, 0
    if mapped is None or not mapped.nbytes:
        return None
    start = _address(raw) - _address(mapped)
    return (start, start + raw.nbytes) if 0 <= start <= mapped.nbytes - raw.nbytes else None


def _address(view: memoryview) -> int:
    address: int = np.frombuffer(view, np.uint8).__array_interface__["data"][0]
    return address
