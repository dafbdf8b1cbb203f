"""Cells of a table of groups by arms: rows, mean outcome, and the variance of that mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from upturn._arrays import Bools, Floats, Ints
from upturn._target import Target


@dataclass(frozen=True)
class Members:
    """Who is in which group: a code per row where groups are disjoint (-1: in none), and masks where they overlap.

    Attributes
    ----------
    names : list of str
        What the groups are called.
    codes : array of shape (n,) or None
    masks : array of shape (n_groups, n) or None
    """

    names: list[str]
    codes: Ints | None = None
    masks: Bools | None = None

    @classmethod
    def of_masks(cls, names: list[str], masks: Bools) -> Members:
        """Groups by masks, which become codes if nobody is in two."""
        if (masks.sum(axis=0) > 1).any():
            return cls(names, masks=masks)
        codes = np.full(masks.shape[1], -1, dtype=np.int64)
        for code, mask in enumerate(masks):
            codes[mask] = code
        return cls(names, codes)

    @property
    def overlap(self) -> bool:
        """Whether somebody is in two groups."""
        return self.masks is not None


@dataclass(frozen=True)
class Cells:
    r"""What is known of every group (rows) and arm (columns, control first).

    With weights w the variance of a mean m is that of a ratio of sums, :math:`\sum w^2 (y - m)^2 / (\sum w)^2`, and the
    *worth* of a cell the number of rows of equal weight that would say as much, :math:`(\sum w)^2 / \sum w^2`.

    Attributes
    ----------
    rows : int array of shape (G, 1 + K)
    mean, variance, worth : float arrays of shape (G, 1 + K)
        NaN (and a worth of 0) where a cell is empty.
    covariance : array of shape (1 + K, G, G) or None
        Of the means of groups that overlap; None where groups are disjoint, and independent.
    """

    rows: Ints
    mean: Floats
    variance: Floats
    worth: Floats
    covariance: Floats | None = None

    @classmethod
    def of(cls, members: Members, target: Target) -> Cells:
        """The cells of some groups."""
        if members.codes is not None:
            return cls._of_codes(members.codes, len(members.names), target)
        masks = np.asarray(members.masks)
        parts = [cls._of_codes(np.where(mask, 0, -1), 1, target) for mask in masks]
        rows, mean, variance, worth = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "mean", "variance", "worth")
        )
        weight = _scaled(target)
        covariance = np.zeros((target.n_arms + 1, len(masks), len(masks)))
        for arm in range(target.n_arms + 1):
            mine = target.arm == arm
            share = masks[:, mine] * weight[mine]
            total = share.sum(axis=1, keepdims=True)
            with np.errstate(invalid="ignore", divide="ignore"):
                pull = share * (target.y[mine] - mean[:, [arm]]) / total
            covariance[arm] = pull @ pull.T
        return cls(rows, mean, variance, worth, covariance)

    @classmethod
    def whole(cls, target: Target) -> Cells:
        """All rows as one group."""
        return cls._of_codes(np.zeros(len(target), dtype=np.int64), 1, target)

    @classmethod
    def _of_codes(cls, codes: Ints, n_groups: int, target: Target) -> Cells:
        arms = target.n_arms + 1
        inside = np.flatnonzero((codes >= 0) & (target.weights > 0))
        place = codes[inside] * arms + target.arm[inside]
        y, weight = target.y[inside], _scaled(target)[inside]

        def total(values: Floats | None) -> Floats:
            return np.asarray(np.bincount(place, weights=values, minlength=n_groups * arms), dtype=np.float64)

        with np.errstate(invalid="ignore", divide="ignore"):
            sums, squares = total(weight), total(weight * weight)
            mean = total(weight * y) / sums
            variance = total((weight * (y - mean[place])) ** 2) / (sums * sums)
            worth = np.where(sums > 0, sums * sums / squares, 0.0)
        shape = (n_groups, arms)
        return cls(total(None).astype(np.int64).reshape(shape), *(a.reshape(shape) for a in (mean, variance, worth)))


def _scaled(target: Target) -> Floats:
    """Weights whose squares stay within the range of floats."""
    return np.asarray(target.weights / target.weights.max(), dtype=np.float64)
