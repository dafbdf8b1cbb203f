"""The experiment `upturn.check` looks at, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools, Floats, Indices
from upturn._table import Schema
from upturn._target import Label


@dataclass(frozen=True)
class Experiment:
    """The experiment as arrays. Rows without an outcome stay: they were assigned too."""

    X: Floats
    schema: Schema
    y: Floats
    observed: Bools
    arm: NDArray[np.uint8]
    weight: Floats
    labels: list[Label]
    seed: int

    @property
    def pairs(self) -> list[tuple[int, Indices, Bools]]:
        """For each arm: its number, the rows of it and of control, and which of these are the arm's."""
        out = []
        for k in range(1, len(self.labels)):
            rows = np.flatnonzero((self.arm == 0) | (self.arm == k))
            out.append((k, rows, self.arm[rows] == k))
        return out
