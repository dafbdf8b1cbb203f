"""What every loader and simulator returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats
from upturn._results import number_text
from upturn._target import Label, pack

__all__ = ["UpliftData"]


@dataclass(frozen=True, repr=False, eq=False)
class UpliftData:
    """An experiment: features, outcome, treatment and, where it is known, the true effect.

    Parameters
    ----------
    X : table of n rows
        Loaders give a pandas DataFrame that keeps categories and missing values as they are. Simulators of purely
        numeric features give a float64 array.
    y : array of shape (n,)
        The outcome; larger is better. Two-valued outcomes are 0 and 1, and 1 is the success.
    treatment : array of shape (n,)
        0 (control) and 1 (treatment), or more numbers; or labels, one of which is "control".
    effect : array of shape (n,) or (n, K), optional
        The true expected effect of each arm against control given the features, columns in the sorted order of the
        arms' labels, as models have them; only simulators know it.
    name, description : str
        What this is, and which decisions were taken in making it.
    details : mapping
        What else is known: simulators add ``response``, the true expected outcomes of shape (n, 1 + K), control first;
        some add ``propensity``, ``group``, ``cost``; loaders of split data sets add ``removed``, those of survival data
        ``time`` and ``event``.
    control : label, optional
        Which label is control, when its name does not tell: ``data.pack()`` carries it wherever it goes.

    Examples
    --------
    >>> from upturn.datasets import simulate_pattern
    >>> data = simulate_pattern("scissors", n=1000, random_state=0)
    >>> data.X.shape, data.effect.shape
    ((1000, 1), (1000,))

    Said once, the control arm is known to models, metrics and pictures:

    >>> import numpy as np
    >>> from upturn import metrics
    >>> data = UpliftData(np.arange(4.0)[:, None], np.array([0, 1, 1, 0]), np.array(["A", "B"] * 2), control="B")
    >>> metrics.auuc(data.pack(), data.X[:, 0])
    0.25
    """

    X: Any
    y: NDArray[Any]
    treatment: NDArray[Any]
    effect: Floats | None = None
    name: str = ""
    description: str = ""
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    control: Label | None = None

    def __post_init__(self) -> None:
        n = len(self.y)
        found = {"X": self.X.shape[0], "treatment": len(self.treatment)}
        if self.effect is not None:
            found["effect"] = len(self.effect)
        wrong = {what: rows for what, rows in found.items() if rows != n}
        if wrong:
            raise ValueError(f"y has {n} rows, but {wrong} differ: all parts of an experiment need the same rows.")
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))
        if self.control is not None:
            self.pack()  # for its complaints

    def __len__(self) -> int:
        return len(self.y)

    def pack(self, sample_weight: Any = None) -> NDArray[np.void]:
        """Outcome, treatment and control as one target, as :func:`upturn.pack` makes it: everything that takes ``y`` takes it."""
        return pack(self.y, self.treatment, sample_weight, control=self.control)

    def __repr__(self) -> str:
        labels, counts = np.unique(self.treatment, return_counts=True)
        arms = ", ".join(f"{label}: {count:,}" for label, count in zip(labels.tolist(), counts.tolist(), strict=True))
        known = "" if self.control is None else f" (control {self.control!r})"
        truth = "" if self.effect is None else "; the true effect is known"
        return (
            f"<UpliftData {self.name!r}: {len(self):,} rows, {self.X.shape[1]} features; arms {arms}{known}; "
            f"mean outcome {number_text(float(np.mean(self.y)))}{truth}>"
        )
