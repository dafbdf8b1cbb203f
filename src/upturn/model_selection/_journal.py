"""Results kept in a file, so that an interrupted comparison goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from upturn._columns import read_path
from upturn._table import read_table
from upturn._target import Target
from upturn.model_selection._scorers import UpliftScorer

_HEAD = '{"key": '  # of a line, which may be all that an interruption has left


class Lines:
    """Results in a file, one JSON line each with a key and what was found; without a path nothing is kept."""

    def __init__(self, path: str | os.PathLike[str] | None, is_result: Callable[[Any], bool]) -> None:
        self._path = None if path is None else read_path(path, "resume")
        self._lock, self._known = threading.Lock(), dict[str, Any]()
        if self._path is None:
            return
        there = self._path.exists()
        if (there and not self._path.is_file()) or not self._path.absolute().parent.is_dir():
            raise ValueError(f"resume={str(path)!r} cannot be written: expected a file in a folder that is there")
        if not os.access(self._path if there else self._path.absolute().parent, os.W_OK):
            raise ValueError(f"resume={str(path)!r} cannot be written: its permissions forbid it")
        text = self._path.read_text(encoding="utf-8", errors="replace") if there else ""
        ours = not text.strip() or (text.startswith(_HEAD) and "\n" not in text)
        for line in text.splitlines():
            try:
                entry = json.loads(line)
                if isinstance(entry["key"], str) and isinstance(entry["found"], dict):
                    ours = True
                    if is_result(entry["found"]):
                        self._known[entry["key"]] = entry["found"]
            except (ValueError, KeyError, TypeError, RecursionError):
                continue  # a line cut short by the interruption, or not one of ours
        if not ours:
            raise ValueError(
                f"resume={str(path)!r} holds something else than results, which would be added to it: name a new file, or one of an earlier run"
            )

    @property
    def kept(self) -> bool:
        """Whether there is a file."""
        return self._path is not None

    def find_key(self, key: str) -> dict[str, Any] | None:
        """What was found before, or None."""
        return self._known.get(key)

    def add_key(self, key: str, found: dict[str, Any]) -> None:
        """Keep a result, at once."""
        if self._path is None:
            return
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            if file.tell() and not self._ends_a_line():
                file.write("\n")
            file.write(json.dumps({"key": key, "found": found}) + "\n")

    def _ends_a_line(self) -> bool:
        assert self._path is not None
        with self._path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"


class Journal(Lines):
    """Scores of models on splits, found again by what made them."""

    def __init__(self, path: str | os.PathLike[str] | None, X: Any, target: Target, scorer: Any) -> None:
        super().__init__(path, lambda found: isinstance(found["score"], float))
        if self.kept:
            self._data = digest(
                _table_digest(X), fingerprint([target.y, target.arm, target.weight, target.labels, scorer])
            )

    def _key(self, name: str, model: Any, train: Sequence[int], test: Sequence[int]) -> str:
        rows = fingerprint([np.asarray(train), np.asarray(test)])
        return f"{name} {digest(self._data, fingerprint(model), rows)}"

    def find(self, name: str, model: Any, train: Any, test: Any) -> dict[str, Any] | None:
        """What was found before, or None."""
        return self.find_key(self._key(name, model, train, test)) if self.kept else None

    def add(self, name: str, model: Any, train: Any, test: Any, found: dict[str, Any]) -> None:
        """Keep a result, at once."""
        if self.kept:
            self.add_key(self._key(name, model, train, test), found)


def _table_digest(X: Any) -> str:
    try:
        matrix, schema = read_table(X, quiet=True)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"resume must tell this X from another one and cannot read it; leave resume out ({error})"
        ) from error
    return digest(matrix.tobytes(), json.dumps(schema.to_json()))


def fingerprint(value: Any) -> str:
    """A text that differs wherever two values differ: arrays by all their bytes, estimators by all their parameters.

    A ``repr`` alone would not do: it leaves out the middle of an array. It stays for what is none of these; where it shows
    an address, as for a function, the value counts as another one in every session.
    """
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, type):
        return repr(value)
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return f"{kind} {value.dtype} {value.shape} {fingerprint(value.ravel().tolist())}"
        return f"{kind} {value.dtype} {value.shape} {digest(value.tobytes())}"
    if hasattr(value, "get_params"):
        return f"{kind} {fingerprint(value.get_params(deep=False))}"
    if isinstance(value, UpliftScorer):
        return f"{kind} {value.metric} {fingerprint(value.options)}"
    if isinstance(value, np.random.RandomState):
        return f"{kind} {fingerprint(value.get_state(legacy=False))}"
    if isinstance(value, np.random.Generator):
        return f"{kind} {fingerprint(value.bit_generator.state)}"
    if isinstance(value, Mapping):
        return f"{kind} {fingerprint(list(value.items()))}"
    if isinstance(value, list | tuple):
        return f"{kind} [{', '.join(fingerprint(item) for item in value)}]"
    if hasattr(value, "to_numpy"):  # a column or table of pandas, polars or pyarrow
        names = getattr(value, "columns", getattr(value, "name", None))
        return f"{kind} {names!r} {fingerprint(np.asarray(value.to_numpy()))}"
    return f"{kind} {value!r}"


def digest(*parts: str | bytes) -> str:
    """SHA-256 of the parts and of where each one ends."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()
