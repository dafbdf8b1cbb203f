"""What pictures share: styles, and a stamp that says which results a picture shows."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

from experiments._kept import Found

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#000000", "#cc79a7", "#e69f00", "#56b4e9")
LINES = ("-", "--", "-.", ":", (0, (3, 1, 1, 1)), (0, (5, 1)), (0, (1, 1)))


def panels(rows: int, columns: int, width: float = 4.4, height: float = 3.2, **shared: Any) -> tuple[Any, Any]:
    """A figure of rows × columns axes, as a two-dimensional array."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), layout="constrained", squeeze=False, **shared
    )


def style(k: int) -> dict[str, Any]:
    """Colour and dashes of the k-th line, which black and white tells apart too."""
    return {"color": COLOURS[k % len(COLOURS)], "linestyle": LINES[k % len(LINES)], "linewidth": 1.3}


def digest(found: Found) -> str:
    """A short name of the numbers of results, whoever ran them and however long it took."""
    rows = sorted(json.dumps([row.case, row.seeds, row.values, row.sums], sort_keys=True) for row in found.rows)
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]


def save(figure: Any, path: Path, found: Found) -> None:
    """Write a picture stamped with its results."""
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90, metadata={"Description": digest(found), "Software": None})
    plt.close(figure)


def stamp(path: Path) -> str:
    """The digest in a picture, read without a library."""
    data, at = path.read_bytes(), 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        if kind == b"tEXt" and body.startswith(b"Description\0"):
            return body.split(b"\0", 1)[1].decode("latin-1")
        at += size + 12
    return ""
