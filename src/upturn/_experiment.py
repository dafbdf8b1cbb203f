"""An experiment behind the gates: what every ``_fit`` learns from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from upturn._arrays import Arms, Floats
from upturn._table import Schema
from upturn._target import Target


@dataclass(frozen=True)
class Experiment:
    """Features and target of the same rows: checked, encoded, C-contiguous.

    Attributes
    ----------
    X : float array of shape (n, p)
        Numbers, or level codes in categorical columns; NaN is missing. float64, or float32 for models that take it.
    schema : Schema
        Names, kinds and levels of the columns.
    target : Target
        Outcome (0 and 1 for models that need two classes), arms, weights and labels.
    """

    X: Floats
    schema: Schema
    target: Target

    def __post_init__(self) -> None:
        if len(self.X) != len(self.target):
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {len(self.X)}, y has {len(self.target)}; "
                "each row needs one outcome and one treatment"
            )

    def __len__(self) -> int:
        return len(self.target)

    @property
    def y(self) -> Floats:
        """The outcome."""
        return self.target.y

    @property
    def arm(self) -> Arms:
        """0 in control, 1 … K in the treatment arms."""
        return self.target.arm

    @property
    def weight(self) -> Floats | None:
        """The weights; None means 1 everywhere."""
        return self.target.weight

    @property
    def weights(self) -> Floats:
        """The weights, ones when there are none."""
        return self.target.weights

    @property
    def n_arms(self) -> int:
        """K, the number of treatment arms."""
        return self.target.n_arms

    def take(self, rows: NDArray[Any]) -> Experiment:
        """The experiment of some of the rows."""
        return replace(self, X=self.X[rows], target=self.target.take(rows))

    def with_weight(self, weight: Floats | None) -> Experiment:
        """The same rows under other weights."""
        return replace(self, target=replace(self.target, weight=weight))
