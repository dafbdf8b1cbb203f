"""One feature cut into parts: what the UMODL search found, and everything that can be read off it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from upturn._arrays import Bools, Floats, Ints
from upturn._results import number_text

MOST_ROWS = 2**53  # that counts can tell apart in a float


@dataclass(frozen=True)
class Partition:
    """The parts of one feature.

    Attributes
    ----------
    edges : array or None
        Upper ends of all intervals but the last: interval i holds ``edges[i-1] < x <= edges[i]``. None if categorical.
    groups : array or None
        The part of each level of a categorical feature, -1 for a level without rows. None if numeric.
    missing_part : int
        Where missing values go; -1 if there were none and the other rows make several parts.
    counts : int64 array of shape (parts, arms, classes)
        Rows of each part, control first.
    separate : bool array of shape (parts,)
        W of the paper: whether the arms have distributions of their own in this part.
    cost, null_cost : float
        C(M) of equation (2), and that of a single part.
    """

    edges: Floats | None
    groups: Ints | None
    missing_part: int
    counts: Ints
    separate: Bools
    cost: float
    null_cost: float

    @property
    def n_parts(self) -> int:
        """Number of intervals or groups, that of missing values included."""
        return len(self.counts)

    @property
    def compression(self) -> float:
        """1 - cost / null cost: 0 when nothing was found."""
        return 1.0 - self.cost / self.null_cost

    def codes(self, column: Floats) -> Ints:
        """Return the part of each value; -1 for a missing one when there were none at fit."""
        if self.n_parts == 1:
            return np.zeros(len(column), dtype=np.int64)
        missing = np.isnan(column)
        if self.edges is not None:
            found = np.searchsorted(self.edges, column, side="left").astype(np.int64)
        else:
            assert self.groups is not None
            found = self.groups[np.where(missing, 0, column).astype(np.int64)]
            missing |= found < 0
        found[missing] = self.missing_part
        return found

    def shares(self) -> Floats:
        """Distribution of the classes by part and arm, (parts, arms, classes); an empty arm takes that of its part."""
        pooled = self.counts.sum(axis=1, keepdims=True)
        whole = self.counts.sum(axis=2, keepdims=True)
        own, of_part = self.counts / np.maximum(whole, 1), pooled / pooled.sum(axis=2, keepdims=True)
        shares: Floats = np.where(whole > 0, own, of_part)
        return shares

    def responses(self, classes: Floats) -> Floats:
        """Mean outcome by part and arm, (parts, arms); with two classes the rate of the larger."""
        means: Floats = self.shares() @ _values(classes)
        return means

    def standard_errors(self, classes: Floats) -> Floats:
        """Standard errors of the responses, (parts, arms)."""
        values = _values(classes)
        variance = np.maximum(self.shares() @ values**2 - self.responses(classes) ** 2, 0.0)
        errors: Floats = np.sqrt(variance / np.maximum(self.counts.sum(axis=2), 1))
        return errors

    def differences(self, classes: Floats) -> Floats:
        """Mean outcome of each treatment arm less control's, (parts, arms - 1)."""
        means = self.responses(classes)
        gaps: Floats = means[:, 1:] - means[:, :1]
        return gaps

    def effects(self, classes: Floats) -> Floats:
        """Return the differences where the arms have distributions of their own, 0 elsewhere (the paper's CATE_i)."""
        return np.where(self.separate[:, None], self.differences(classes), 0.0)

    def importance(self, effect_only: bool = False) -> float:
        """Equation (11): sum of N_i/N times the squared distance of the arms from control; 0 for a single part.

        With two classes the distance is (p_i - q_i)², with more half the sum over classes, which is the same for two.
        With several arms it is summed over them. ``effect_only`` leaves parts with W_i = 0 out.
        """
        if self.n_parts == 1:
            return 0.0
        shares = self.shares()
        distance = 0.5 * ((shares[:, 1:] - shares[:, :1]) ** 2).sum(axis=(1, 2))
        rows = self.counts.sum(axis=(1, 2))
        if effect_only:
            distance = np.where(self.separate, distance, 0.0)
        return float(rows @ distance / rows.sum())

    def labels(self, levels: tuple[Any, ...] | None) -> list[str]:
        """Return the parts in words."""
        if self.n_parts == 1:
            return ["everything"]
        if self.edges is not None:
            ends = ["-inf", *(number_text(edge, digits=5).replace(",", "") for edge in self.edges), "inf"]
            names = [f"({lo}, {hi}]" for lo, hi in pairwise(ends)]
            names[-1] = names[-1].replace("inf]", "inf)")
        else:
            assert self.groups is not None
            assert levels is not None
            n_groups = int(self.groups.max()) + 1
            members = [[str(levels[v]) for v in np.flatnonzero(self.groups == g)] for g in range(n_groups)]
            names = ["{" + ", ".join(m[:6]) + (f" and {len(m) - 6} more" if len(m) > 6 else "") + "}" for m in members]
        return names + ["missing"] * (self.n_parts - len(names))

    def to_state(self) -> dict[str, Any]:
        """Return the partition as arrays and JSON values."""
        return {
            "edges": self.edges,
            "groups": self.groups,
            "missing_part": self.missing_part,
            "counts": self.counts,
            "separate": self.separate,
            "cost": self.cost,
            "null_cost": self.null_cost,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], n_arms: int, n_classes: int, n_levels: int | None) -> Partition:
        """Rebuild and check a partition read from a file."""
        part = cls(**{name: state[name] for name in cls.__dataclass_fields__})
        counts, n_parts = part.counts, len(part.counts)
        found = part.missing_part in ((0,) if n_parts == 1 else (-1, n_parts - 1))
        if counts.dtype != np.int64 or counts.shape != (n_parts, n_arms, n_classes) or n_parts == 0 or not found:
            raise ValueError("the counts of a partition have the wrong shape")
        # Compared before they are added, which could wrap around.
        if counts.min() < 0 or counts.max() > MOST_ROWS // counts.size or counts.max(axis=(1, 2)).min() == 0:
            raise ValueError("the counts of a partition are negative or too large, or a part is empty")
        if part.separate.dtype != bool or part.separate.shape != (n_parts,):
            raise ValueError("the flags of a partition have the wrong shape")
        if not (np.isfinite(part.cost) and np.isfinite(part.null_cost) and part.null_cost > 0):
            raise ValueError("the cost of a partition is not a number")
        own = n_parts - (n_parts > 1 and part.missing_part >= 0)  # parts of values that are there
        if (part.edges is None) == (part.groups is None) or (part.groups is None) != (n_levels is None):
            raise ValueError("a partition must have edges if its column is numeric, and groups if it is categorical")
        if part.edges is not None:
            good = part.edges.dtype == np.float64 and part.edges.shape == (own - 1,)
            good = good and bool(np.isfinite(part.edges).all() and (np.diff(part.edges) > 0).all())
        else:
            assert part.groups is not None
            good = part.groups.dtype == np.int64 and part.groups.shape == (n_levels,)
            used = set(np.unique(part.groups).tolist()) - {-1}
            good = good and (used <= {0} if n_parts == 1 else used == set(range(own)))
        if not good:
            raise ValueError("the edges or groups of a partition are not well formed")
        return part


def _values(classes: Floats) -> Floats:
    """What the classes count as: 0 and 1 where there are two."""
    return np.array([0.0, 1.0]) if len(classes) == 2 else classes
