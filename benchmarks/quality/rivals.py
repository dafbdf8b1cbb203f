"""Models of other libraries as contestants, each fitted in an interpreter of its own, where that library is installed.

    UPTURN_RIVALS=/path/to/venv/bin/python[:/another/bin/python] python -m benchmarks.quality run --sets simulated --models forest,econml-causal-forest …

upturn's own environment stays without them. An interpreter is asked which libraries it has; a rival whose library none has is skipped with
a message. Rivals take numbers only: levels are 0-1 columns and missing numbers means, as for upturn's linear models.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

VARIABLE = "UPTURN_RIVALS"
_SCRIPT = Path(__file__).with_name("_rival.py")

# contestant -> the library it needs; what it is lies in _rival.py, at the library's defaults
RIVALS = {
    "econml-causal-forest": "econml",
    "econml-forest-dr": "econml",
    "causalml-uplift-forest": "causalml",
    "causalml-t": "causalml",
    "causalml-x": "causalml",
    "causalml-r": "causalml",
}


@functools.cache
def interpreters() -> dict[str, str]:
    """The interpreter that has each library, of those the environment variable names."""
    found: dict[str, str] = {}
    for python in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        for library in sorted(set(RIVALS.values()) - set(found)):
            test = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({library!r}) is None)"
            try:
                if subprocess.run([python, "-c", test], env=_environment(), check=False).returncode == 0:
                    found[library] = python
            except OSError as error:
                print(f"{VARIABLE} names {python}, which cannot be run: {error}", file=sys.stderr)
    return found


def available(models: list[str]) -> list[str]:
    """The contestants that can be run here; the others are named with what they lack."""
    absent = [model for model in models if model in RIVALS and RIVALS[model] not in interpreters()]
    for model in absent:
        print(
            f"{model} is skipped: {VARIABLE} names no interpreter that has {RIVALS[model]}; install it into an environment of its own "
            f"and set {VARIABLE} to that environment's python",
            file=sys.stderr,
        )
    return [model for model in models if model not in absent]


class Rival:
    """A model of another library, with the methods that the runner calls; it is fitted when it is asked."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.seed = name, seed
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
        with tempfile.TemporaryDirectory() as folder:
            given, answer = Path(folder, "rows.npz"), Path(folder, "answer.json")
            np.savez(given, asked=asked, **self._rows)
            command = [
                interpreters()[RIVALS[self.name]],
                str(_SCRIPT),
                self.name,
                str(self.seed),
                str(given),
                str(answer),
            ]
            done = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)
            if done.returncode:
                raise ValueError(
                    f"{self.name}: {done.stderr.strip().splitlines()[-1] if done.stderr else done.returncode}"
                )
            found = json.loads(answer.read_text())
        self.seconds, self._score = found["seconds"], np.array(found["score"])
        return self._score

    def recommend(self, X):
        """Treat whom it predicts a gain for; of the rows that were asked about last."""
        return (self._score > 0).astype(int)


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
