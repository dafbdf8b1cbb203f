"""Files written whole or not at all: under a temporary name in the same folder, and renamed when they are complete."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from upturn.cli._say import UserError, plain

if TYPE_CHECKING:
    import polars as pl

# What tables are written as, by the ending of the file's name.
_SINKS = {
    ".parquet": "sink_parquet",
    ".csv": "sink_csv",
    ".jsonl": "sink_ndjson",
    ".ndjson": "sink_ndjson",
    ".arrow": "sink_ipc",
    ".feather": "sink_ipc",
}
# Identifiers and scores hardly become smaller, and what packs them tighter takes longer.
_OPTIONS: dict[str, dict[str, Any]] = {".parquet": {"compression": "snappy"}}


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[Path]:
    """A place to write to, which becomes ``path`` when the block ends well and disappears when it does not."""
    from upturn._columns import followed

    try:
        target = followed(Path(path))  # through a link, the file it points to is replaced
    except OSError as error:
        raise UserError(f"cannot write {path}: {error}") from error
    _check_place(target, path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp{target.suffix}")
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _check_place(target: Path, path: str) -> None:
    if target.is_dir():
        raise UserError(f"{path} is a folder: name a file to write")
    if not target.parent.is_dir():
        raise UserError(f"cannot write {path}: there is no folder {target.parent}; make it first")


def check_table_name(path: str) -> str:
    """The ending of a table's name; refused, before any work is done, if it says no format or lies in no folder."""
    _check_place(Path(path).absolute(), path)
    ending = Path(path).suffix.lower()
    if ending not in _SINKS:
        raise UserError(f"{path}: the name should end in one of {', '.join(_SINKS)}, which says what to write")
    return ending


def write_table(frame: pl.LazyFrame, path: str) -> None:
    """Write a lazy table as its name says, streaming."""
    ending = check_table_name(path)
    with whole_file(path) as place:
        getattr(frame, _SINKS[ending])(place, **_OPTIONS.get(ending, {}))


def write_text(text: str, path: str) -> None:
    """Write text."""
    with whole_file(path) as place:
        place.write_text(text, encoding="utf-8")


def as_json(value: Any) -> str:
    """A value as readable JSON."""
    return json.dumps(plain(value), ensure_ascii=False, indent=1)
