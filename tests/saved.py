"""A small experiment on a raw table, a model of it, and files of members: what the tests of saved models share."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pandas as pd

from upturn import persist
from upturn.meta import ClassTransformation

N = 120
rng = np.random.default_rng(0)
TABLE = {
    "age": rng.normal(50, 10, N).tolist(),
    "channel": [None if u < 0.1 else "web" if u < 0.6 else "phône" for u in rng.random(N)],
    "visits": [None if u < 0.2 else int(10 * u) for u in rng.random(N)],
    "size": [1 if u < 0.5 else "large" for u in rng.random(N)],
}
FRAME = pd.DataFrame(TABLE)
NUMBERS = rng.normal(size=(N, 3))
Y = rng.integers(0, 2, N)
SIDE = rng.integers(0, 2, N)
LABELS = {
    "bool": (False, True),
    "int": (0, 7),
    "negative": (0, -1),
    "big": (0, 2**63),
    "float": (0.0, 2.5),
    "str": ("control", 'ma"il\n\ud83d\ude00'.encode("utf-16", "surrogatepass").decode("utf-16")),
    "mixed": (0, "mail"),
    "mixed bool": (False, "mail"),
    "mixed float": ("control", 1.5),
}


def assign(pair):
    column = np.empty(N, dtype=object)
    column[:] = [pair[side] for side in SIDE]
    return column


def native(pair=("control", "mail")):
    return ClassTransformation().fit(FRAME, Y, assign(pair))


def fingerprint(model):
    """All that a file would hold of a model: equal fingerprints, identical models."""
    writer = persist.Writer()
    return json.dumps(writer.encode(model)), tuple(writer.members.items())


def zipped(members, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=compression)
    return buffer.getvalue()
