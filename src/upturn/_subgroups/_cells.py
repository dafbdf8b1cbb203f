"""Cells of a table of groups by arms: rows, mean outcome, and the variance of that mean."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from upturn._arrays import Bools, Floats, Indices, Ints
from upturn._target import Target

_MOST_PAIRS = 16_000_000  # of cells, whose covariances are kept


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
    clusters : int array of shape (G, 1 + K) or None
        Clusters in every cell, where rows come in clusters. Variances are then those of sums over clusters, a cell is worth as
        many rows as it has clusters, and ``across`` has the covariances.
    across : array of shape (1 + K, 1 + K, G, G) or None
        Covariances of the means of arms and groups that share clusters.
    """

    rows: Ints
    mean: Floats
    variance: Floats
    worth: Floats
    covariance: Floats | None = None
    clusters: Ints | None = None
    across: Floats | None = None

    @property
    def independent(self) -> bool:
        """Whether no two cells share rows or clusters."""
        return self.covariance is None and self.across is None

    def between(self, arm: int, other: int) -> Floats | None:
        """Covariances of the means of groups in one arm (rows) and another (columns); None where they are independent."""
        if self.across is not None:
            return np.asarray(self.across[arm, other])
        return None if self.covariance is None or arm != other else np.asarray(self.covariance[arm])

    @classmethod
    def of(cls, members: Members, target: Target, clusters: Indices | None = None) -> Cells:
        """The cells of some groups, whose rows may come in clusters."""
        if clusters is not None:
            return cls.of(members, target)._clustered(members, target, clusters)
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
    def whole(cls, target: Target, clusters: Indices | None = None) -> Cells:
        """All rows as one group."""
        return cls.of(Members(["all"], np.zeros(len(target), dtype=np.int64)), target, clusters)

    def _clustered(self, members: Members, target: Target, clusters: Indices) -> Cells:
        r"""The same cells with variances of sums over clusters c, :math:`\sum_c (\sum_{i \in c} w_i (y_i - m))^2 / (\sum w)^2`."""
        n_groups, arms = self.mean.shape
        if (n_groups * arms) ** 2 > _MOST_PAIRS:
            raise ValueError(
                f"{n_groups} groups of {arms} arms are too many where rows come in clusters: their covariances would not fit; join groups"
            )
        weight, counted = _scaled(target), np.flatnonzero(target.weights > 0)
        if members.codes is not None:
            row = counted[members.codes[counted] >= 0]
            group = members.codes[row]
        else:
            group, place = np.nonzero(np.asarray(members.masks)[:, counted])
            row = counted[place]
        cell = group * arms + target.arm[row]
        total = np.bincount(cell, weights=weight[row], minlength=n_groups * arms)
        pull = weight[row] * (target.y[row] - self.mean.reshape(-1)[cell]) / total[cell]
        sums = sparse.csr_array((pull, (clusters[row], cell)), shape=(int(clusters.max()) + 1, n_groups * arms))
        shared = (sums.T @ sums).toarray().reshape(n_groups, arms, n_groups, arms)
        pairs = np.unique(clusters[row] * (n_groups * arms) + cell)
        counts = np.bincount(pairs % (n_groups * arms), minlength=n_groups * arms).reshape(n_groups, arms)
        return replace(
            self,
            variance=np.where(counts > 0, np.einsum("gaga->ga", shared), np.nan),
            worth=counts.astype(np.float64),
            covariance=None,
            clusters=counts,
            across=np.ascontiguousarray(shared.transpose(1, 3, 0, 2)),
        )

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
        mean, variance, worth = (array.reshape(shape) for array in (mean, variance, worth))
        return cls(total(None).astype(np.int64).reshape(shape), mean, variance, worth)


def _scaled(target: Target) -> Floats:
    """Weights whose squares stay within the range of floats."""
    return np.asarray(target.weights / target.weights.max(), dtype=np.float64)
