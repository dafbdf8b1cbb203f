"""Models of other libraries as contestants, each fitted by its file of ``benchmarks/rivals`` in an interpreter of its own, which fits all of the run.

    make bench-install
    python -m benchmarks.quality run --sets simulated --models forest,econml-causal-forest …

upturn's own environment stays without them; a rival that is not installed is skipped with a message. Rivals take numbers only: levels are 0-1 columns
and missing numbers means, as for upturn's linear models.
"""

from __future__ import annotations

import atexit
import sys
from typing import Any

import numpy as np
from benchmarks.rivals._call import Answer, Session, call, files, installed

# contestant -> the file it is in
RIVALS = {model: name for name, module in files().items() for model in module.MODELS}


def available(models: list[str]) -> list[str]:
    """The contestants that can be run here; the others are named with what they lack."""
    needs = {model: RIVALS.get(model.removesuffix("-tuned")) for model in models}
    absent = [model for model, name in needs.items() if name is not None and name not in installed()]
    for model in absent:
        print(f"{model} is skipped: {needs[model]} is not installed; `make bench-install` does that", file=sys.stderr)
    return [model for model in models if model not in absent]


_sessions: dict[str, Session] = {}


def together(name: str, rows: dict[str, Any]) -> Answer:
    """What a contestant predicts, by the one process of its library that this one has: twenty draws would else load it sixty times."""
    library = RIVALS[name]
    if library not in _sessions:
        _sessions[library] = Session(library)
        atexit.register(_sessions[library].close)
    return _sessions[library].call("MODELS", name, rows)


def alone(name: str, rows: dict[str, Any]) -> Answer:
    """The same by a process that is started for it and ends, so that its time holds that of loading the library."""
    return call(RIVALS[name], "MODELS", name, rows)


class Rival:
    """A model of another library, with the methods that the runner calls; it is fitted when it is asked."""

    def __init__(self, name: str, seed: int, by: Any = alone, **parameters: Any) -> None:
        self.name, self.seed, self.by, self.parameters = name, seed, by, parameters
        self.seconds = float("nan")  # processor time of its fit

    def fit(self, X, y, treatment):
        """Keep the rows, as numbers."""
        from upturn._encode import LinearEncoder
        from upturn._table import read_table

        matrix, self._schema = read_table(X)
        self._encoder = LinearEncoder.fit(matrix, self._schema, standardize=False)
        self._rows = {
            "X": self._encoder.transform(matrix),
            "y": np.asarray(y, float),
            "t": np.asarray(treatment, np.int64),
        }
        return self

    def predict(self, X):
        """Fit in the other interpreter, and the effects it predicts there."""
        from upturn._table import conform_table

        asked = self._encoder.transform(conform_table(X, self._schema, self.name))
        rows = {**self._rows, "asked": asked, "seed": self.seed, **self.parameters}
        answer = self.by(self.name, rows)
        self.seconds, self._score = answer.seconds, answer.result.reshape(len(asked), -1)[:, 0]
        return self._score

    def recommend(self, X):
        """Treat whom it predicts a gain for; of the rows that were asked about last."""
        return (self._score > 0).astype(int)
