"""Files written whole or not at all: under a temporary name in the same folder, and renamed when they are complete."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from upturn.cli._say import UserError, one_line, plain

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

_STALE = 3600.0  # seconds
_NO_ROOM = re.compile("No space left on device|File too large|Disk quota exceeded")


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[Path]:
    """A place to write to, which becomes ``path`` when the block ends well and disappears when it does not."""
    from upturn._columns import file_to_write

    target = file_to_write(path)
    _sweep(target)
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp{target.suffix}")
    try:
        yield temporary
        with contextlib.suppress(OSError):  # there is no old file
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except Exception as error:
        if temporary.name in str(error) or _NO_ROOM.search(str(error)):  # of the file that was asked for
            why = getattr(error, "strerror", None) or str(error).replace(str(temporary), path)
            raise UserError(f"cannot write {path}: {one_line(why)}") from error
        raise
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _sweep(target: Path) -> None:
    """Remove what was left behind where writing this file was ended by force: nobody has written to it for an hour."""
    name = re.compile(rf"{re.escape(f'.{target.name}.')}\d+-[0-9a-f]{{8}}\.tmp{re.escape(target.suffix)}")
    with contextlib.suppress(OSError), os.scandir(target.parent) as files:
        for file in files:
            if name.fullmatch(file.name) and time.time() - file.stat().st_mtime > _STALE:
                os.unlink(file.path)


def check_output(path: str, reads: Iterable[str] = ()) -> None:
    """Refuse, before any work is done, a file that cannot be written, and one of those that the command ``reads``."""
    from upturn._columns import file_to_write

    target = file_to_write(path)
    for other in map(Path, reads):
        if target == other.resolve() or (target.exists() and other.exists() and target.samefile(other)):
            raise UserError(f"{path} is read by this command, and would be overwritten: name another file to write")
    try:
        tempfile.TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error


def check_table_name(path: str, reads: Iterable[str] = ()) -> str:
    """The ending of a table's name; refused like any output, and if it says no format."""
    check_output(path, reads)
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
