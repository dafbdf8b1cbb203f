"""The encoder of linear models: 0-1 coding of levels and of what is missing, mean imputation, standardisation.

It reads a table once, in blocks of rows, for the columns' moments, and once more to write the encoded matrix, which is the only
thing of its size that is made. Moments of parts can be merged, so parts may live elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats, Indices, Ints
from upturn._columns import warn_user
from upturn._sparse import SparseMatrix, column_moments, dense, scale_columns
from upturn._table import MOST_LEVELS, Schema, pool_levels, pooled
from upturn.kernels.encoding import block_moments, encode_block

BLOCK = 1 << 17  # numbers of the table in a block of rows: a megabyte, so that it is still in the cache when read again
RARE = 0.01  # share of rows; what is missing, or seen, in fewer has no column of its own
_LOOKED_AT, _DWARFS = 5000, 100.0  # rows, evenly spread; standard deviation over the distance of the quartiles
_NUMBERS = ("fill", "mean", "scale", "spread")
_IS_MISSING = -2  # in place of a level: the 0-1 column of a column's missing values
_SMALLEST = 1e-290  # standard deviation by which a coefficient may be divided


@dataclass(frozen=True)
class Moments:
    """Weight, mean and spread of columns, of all rows or of a part of them.

    Attributes
    ----------
    total : float
        Weight of the rows.
    n : array of shape (q,)
        Weight of the rows where the column is not missing.
    mean : array of shape (q,)
        0 where nothing is seen.
    norm : array of shape (q,)
        Root of the weighted sum of squared deviations from the mean, M2 = norm². The root is kept because squares of very
        large or very small numbers do not fit a float.
    """

    total: float
    n: Floats
    mean: Floats
    norm: Floats

    @classmethod
    def of(cls, X: NDArray[Any], weight: Floats | None = None, layout: ColumnLayout | None = None) -> Moments:
        """Moments of the columns of a matrix, taken block by block and merged in that order."""
        layout = ColumnLayout.plain(X.shape[1]) if layout is None else layout
        none = np.empty(0)
        merged: Moments | None = None
        for rows, block in _blocks(X, layout):
            counts, out = none if weight is None else weight[rows], np.zeros((3, layout.width))
            total = block_moments(block, counts, layout.first, layout.n_levels, out)
            n, mean, squares = out
            part = cls(total, n, mean, _roots(squares, mean, block, counts, layout))
            merged = part if merged is None else merged.merge(part)
        assert merged is not None
        return merged

    def merge(self, other: Moments) -> Moments:
        """The moments of two parts together (Chan, Golub and LeVeque, 1979)."""
        n = self.n + other.n
        share = np.divide(other.n, n, out=np.zeros_like(n), where=n > 0.0)
        apart = other.mean - self.mean
        between = np.abs(apart) * np.sqrt(self.n * share)
        norm = np.hypot(np.hypot(self.norm, other.norm), between)
        return Moments(self.total + other.total, n, self.mean + apart * share, norm)

    def with_missing(self, at: Ints) -> Moments:
        """These, and behind them the moments of the 0-1 columns that say where the columns ``at`` are missing."""
        mean = 1.0 - self.n[at] / self.total
        norm = np.sqrt(self.n[at] * mean)
        return Moments(
            self.total,
            np.concatenate((self.n, np.full(len(at), self.total))),
            np.concatenate((self.mean, mean)),
            np.concatenate((self.norm, norm)),
        )

    @property
    def spread(self) -> Floats:
        """Standard deviation of the columns, a missing value counted as the mean; exactly 0 for a constant column."""
        spread = self.norm / math.sqrt(self.total) if self.total > 0.0 else np.zeros_like(self.norm)
        spread[spread <= 1e-12 * np.abs(self.mean)] = 0.0  # rounding of the mean, nothing of the column
        return spread


def _roots(squares: Floats, mean: Floats, block: Floats, weight: Floats, layout: ColumnLayout) -> Floats:
    """Roots of the sums of squares; those that are too large or too small for a float are taken in other units."""
    roots = np.sqrt(squares)
    if not ((squares > 1e-280) & (squares < np.inf)).all():
        some = np.flatnonzero(~((squares > 1e-280) & (squares < np.inf)) & (layout.level < 0))
        away = np.abs(block[:, layout.source[some]] - mean[some])
        counts = np.where(np.isnan(away), 0.0, weight[:, None] if len(weight) else 1.0)
        away[counts == 0.0] = 0.0
        reach = away.max(axis=0, initial=0.0)
        roots[some] = reach * np.sqrt((counts * (away / np.where(reach > 0.0, reach, 1.0)) ** 2).sum(axis=0))
    return roots


@dataclass(frozen=True)
class ColumnLayout:
    """Where each column of a table goes: to the encoded columns from ``first`` on, one per level, or one of numbers (-1).

    ``pools`` has the places of the levels of columns that have too many of them; see :func:`pool_levels`. ``missing`` are the
    columns of numbers that have another encoded column, behind all others: 1 where they are missing.
    """

    first: Ints
    n_levels: Ints
    width: int
    pools: Mapping[int, Ints] = field(default_factory=dict)
    missing: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @classmethod
    def plain(cls, n_columns: int) -> ColumnLayout:
        """Numbers only."""
        return cls(np.arange(n_columns), np.full(n_columns, -1, np.int64), n_columns)

    @classmethod
    def of(cls, schema: Schema, pools: Mapping[int, Ints] | None = None) -> ColumnLayout:
        """The layout of a table."""
        pools = pools or {}
        sizes = [-1 if levels is None else min(len(levels), MOST_LEVELS) for levels in schema.levels]
        for j, place in pools.items():
            sizes[j] = int(place.max()) + 1
        n_levels = np.array(sizes, dtype=np.int64)
        ends = np.cumsum(np.where(n_levels < 0, 1, n_levels))
        return cls(np.concatenate(([0], ends[:-1])), n_levels, int(ends[-1]), pools)

    @classmethod
    def fit(cls, X: NDArray[Any], schema: Schema, weight: Floats | None = None) -> ColumnLayout:
        """The layout of a table whose levels may be too many."""
        pools = {}
        for j, levels in enumerate(schema.levels):
            place = None if levels is None else pool_levels(X[:, j], len(levels), weight)
            if place is not None:
                pools[j] = place
        return cls.of(schema, pools)

    def with_missing(self, missing: Ints) -> ColumnLayout:
        """A copy of it, with columns that say where these columns of the table are missing."""
        return replace(self, width=self.width + len(missing), missing=missing)

    @cached_property
    def source(self) -> Ints:
        """The table's column each encoded column comes from."""
        columns = np.repeat(np.arange(len(self.first)), np.where(self.n_levels < 0, 1, self.n_levels))
        return np.concatenate((columns, self.missing))

    @cached_property
    def level(self) -> Ints:
        """The level each encoded column stands for, -1 for numbers and -2 for what is missing of them."""
        level = np.where(self.n_levels[self.source] < 0, -1, np.arange(self.width) - self.first[self.source])
        level[self.width - len(self.missing) :] = _IS_MISSING
        return level


def row_blocks(n: int, width: int) -> Iterator[slice]:
    """Blocks of rows of a matrix, of a size that depends on its shape alone; at least one, which may be empty."""
    length = max(1, BLOCK // max(width, 1))
    return (slice(start, start + length) for start in range(0, max(n, 1), length))


def _blocks(X: NDArray[Any], layout: ColumnLayout) -> Iterator[tuple[slice, Floats]]:
    """Blocks of rows as float64, levels by their places; only what is not float64, or has too many levels, is copied."""
    for rows in row_blocks(*X.shape):
        block = np.ascontiguousarray(X[rows], dtype=np.float64)
        if layout.pools:
            block = block.copy()
            for j, place in layout.pools.items():
                block[:, j] = pooled(block[:, j], place)
        yield rows, block


@dataclass(frozen=True)
class LinearEncoder:
    """Turns the matrix of a table into one a linear model can use.

    A numeric column stays one column, its missing values replaced by the mean seen at fit; where at least one row in a hundred
    was missing at fit, and one in a hundred was not, another 0-1 column says so, behind all others, or a linear model could
    not see an effect that goes with being missing. A categorical column becomes one 0-1 column per level, all zero where the
    value is missing; of more than 256 levels, the rarest share one. Then every column is centred by ``mean`` and divided by
    ``scale``; both are trivial when the encoder was made with ``standardize=False``.

    Attributes
    ----------
    layout : ColumnLayout
        Which encoded column comes from which column and level of the table.
    fill, mean, scale : float arrays of shape (q,)
    spread : float array of shape (q,)
        Standard deviations of the columns at fit, before they are divided by ``scale``.
    """

    layout: ColumnLayout
    fill: Floats
    mean: Floats
    scale: Floats
    spread: Floats

    @classmethod
    def fit(
        cls, X: NDArray[Any], schema: Schema, weight: Floats | None = None, *, standardize: bool = True
    ) -> LinearEncoder:
        """Learn the means and scales of a table's columns. Those of a sparse matrix are not centred, only scaled."""
        if isinstance(X, SparseMatrix):
            total, mean, norm = column_moments(X, weight)
            moments = Moments(total, np.full(len(mean), total), mean, norm)
            layout = ColumnLayout.of(schema, {})
            check_sizes(moments, layout, schema, standardize)
            return replace(cls.from_moments(moments, layout, standardize=standardize), mean=np.zeros(layout.width))
        layout = ColumnLayout.fit(X, schema, weight)
        with np.errstate(over="ignore", invalid="ignore"):  # looked at below
            moments = Moments.of(X, weight, layout)
        check_sizes(moments, layout, schema, standardize)
        return cls.from_moments(moments, layout, standardize=standardize)

    @classmethod
    def from_moments(cls, moments: Moments, layout: ColumnLayout, *, standardize: bool = True) -> LinearEncoder:
        """The encoder of rows with these moments, which may have been merged from parts."""
        seen = moments.n[layout.first[layout.n_levels < 0]] / max(moments.total, 1e-300)
        missing = np.flatnonzero(layout.n_levels < 0)[(seen >= RARE) & (seen <= 1.0 - RARE)]
        if len(missing):
            layout, moments = layout.with_missing(missing), moments.with_missing(layout.first[missing])
        spread, fill = moments.spread, moments.mean
        if layout.width and (layout.n_levels.max() >= 0 or len(missing)):
            fill = np.where(layout.level == -1, fill, 0.0)
        if not standardize:
            return cls(layout, fill, np.zeros(layout.width), np.ones(layout.width), spread)
        # Centring a constant column to 0 is all there is to do.
        return cls(layout, fill, moments.mean, np.where(spread == 0.0, 1.0, spread), spread)

    @cached_property
    def _values(self) -> Floats:
        # Columns of 0 and 1 alone: numbers may have a scale whose inverse is no number.
        scale = np.where(self.layout.level == -1, 1.0, self.scale)
        return np.stack([self.fill, self.mean, self.scale, (0.0 - self.mean) / scale, (1.0 - self.mean) / scale])

    def transform(self, X: NDArray[Any]) -> Floats:
        """The encoded matrix, C-contiguous; that of a sparse matrix is sparse, where columns are neither centred nor added."""
        if isinstance(X, SparseMatrix):
            if self.layout.width == X.shape[1] and not self.mean.any():
                return scale_columns(X, 1.0 / self.scale)
            X = dense(X, "a model that was fitted to a dense table")
        encoded = np.empty((len(X), self.layout.width))
        for rows, block in _blocks(X, self.layout):
            encode_block(block, self.layout.first, self.layout.n_levels, self._values, encoded[rows])
            for c, j in enumerate(self.layout.missing, self.layout.width - len(self.layout.missing)):
                encoded[rows, c] = np.where(np.isnan(block[:, j]), *self._values[[4, 3], c])
        return encoded

    def times(self, X: NDArray[Any], w: Floats) -> Floats:
        """Encoded rows times w, of a sparse matrix without encoding it where every column stays one."""
        if isinstance(X, SparseMatrix) and self.layout.width == X.shape[1]:
            v = w / self.scale
            return np.asarray(X @ v - float(self.mean @ v))
        return np.asarray(self.transform(X) @ w)

    def names(self, schema: Schema) -> list[str]:
        """Names of the encoded columns, such as ``recency``, ``channel=web`` and ``age is missing``."""
        made = []
        for j, code in zip(self.layout.source, self.layout.level, strict=True):
            levels, place = schema.levels[j], self.layout.pools.get(j)
            if levels is None:
                made.append(f"{schema.names[j]} is missing" if code == _IS_MISSING else schema.names[j])
            elif place is None:
                made.append(f"{schema.names[j]}={levels[code]}")
            else:
                mine = np.flatnonzero(place == code)
                label = levels[mine[0]] if len(mine) == 1 else "any rarer level" if code else "any level"
                made.append(f"{schema.names[j]}={label}")
        return made

    def dwarfed(self, X: NDArray[Any]) -> Indices:
        """The table's columns whose spread comes from a few rows: half of the others lie within a hundredth of it."""
        numbers = np.flatnonzero(self.layout.n_levels < 0)
        if isinstance(X, SparseMatrix):  # most of whose values are 0, so that quartiles are no measure
            return numbers[:0]
        some = np.sort(X[:: max(len(X) // _LOOKED_AT, 1)][:, numbers], axis=0)  # what is missing comes last
        seen = np.count_nonzero(~np.isnan(some), axis=0)
        low, high = (some[(seen * quarter) // 4, np.arange(len(numbers))] for quarter in (1, 3))
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # quartiles so far apart that no float holds it dwarf nothing
            apart = np.where(seen > 0, high - low, 0.0)
            return numbers[(apart > 0.0) & (self.spread[self.layout.first[numbers]] > _DWARFS * apart)]

    def by_column(self, values: Floats) -> Floats:
        """Values of the encoded columns, added up for every column of the table."""
        return np.asarray(np.bincount(self.layout.source, weights=values, minlength=len(self.layout.first)), np.float64)

    def get_state(self) -> dict[str, Any]:
        """The encoder as arrays, for a saved model."""
        pools = [[j, place] for j, place in self.layout.pools.items()]
        return {"pools": pools, "missing": self.layout.missing, **{name: getattr(self, name) for name in _NUMBERS}}

    @classmethod
    def from_state(cls, state: dict[str, Any], schema: Schema) -> LinearEncoder:
        """Rebuild and check an encoder that was read from a file."""
        layout = ColumnLayout.of(schema, _check_pools(state["pools"], schema))
        layout = layout.with_missing(_check_missing(state["missing"], schema))
        numbers = [np.asarray(state[name]) for name in _NUMBERS]
        fill, mean, scale, spread = numbers
        if any(array.shape != (layout.width,) for array in numbers):
            raise ValueError("the encoder's arrays do not fit the columns")
        if not all(array.dtype == np.float64 and np.isfinite(array).all() for array in numbers):
            raise ValueError("the encoder's numbers are not finite")
        if (scale == 0).any() or (spread < 0).any():
            raise ValueError("the encoder divides by zero, or a spread is negative")
        return cls(layout, fill, mean, scale, spread)


def tell_dwarfed(name: str, encoder: LinearEncoder | None, X: NDArray[Any], schema: Schema) -> None:
    """Warn of columns that a few extreme values make useless to a linear model, ``name``."""
    columns = np.empty(0, np.intp) if encoder is None else encoder.dwarfed(X)
    if len(columns):
        named = ", ".join(repr(schema.names[j]) for j in columns[:5]) + (", …" if len(columns) > 5 else "")
        warn_user(
            f"{name}: half of the values of {len(columns)} column(s) ({named}) lie within a hundredth of the column's standard deviation, which "
            "a few extreme values make, so a linear model hardly tells those rows apart: clip the columns at, say, their 1st and 99th "
            "percentile, or use a model of trees such as UpliftForest, to which only the order matters",
            UserWarning,
        )


def _check_missing(missing: Any, schema: Schema) -> Ints:
    """The columns of numbers that a file says have a column for what is missing."""
    if not isinstance(missing, np.ndarray) or missing.dtype != np.int64 or missing.ndim != 1:
        raise ValueError("the columns with missing values are not well formed")
    if len(missing) and (missing.min() < 0 or missing.max() >= schema.n_features or (np.diff(missing) <= 0).any()):
        raise ValueError("the columns with missing values are out of range or out of order")
    if schema.categorical[missing].any():
        raise ValueError("a column of levels has a column for missing numbers")
    return missing


def check_sizes(moments: Moments, layout: ColumnLayout, schema: Schema, standardize: bool) -> None:
    """Refuse columns of numbers whose mean or spread is none, or (to divide by) whose spread has no inverse."""
    for bad, size, advice in (
        (~(np.isfinite(moments.mean) & np.isfinite(moments.norm)), "large", "divide it by"),
        ((moments.spread > 0.0) & (moments.spread < _SMALLEST) & standardize, "small", "multiply it with"),
    ):
        if bad.any():
            raise ValueError(
                f"column {schema.names[layout.source[bad.argmax()]]!r} holds numbers so {size} that they cannot be standardised in floats: "
                f"{advice} some number"
            )


def _check_pools(pools: Any, schema: Schema) -> dict[int, Ints]:
    """The places of levels that a file holds, one array for each column that has too many."""
    many = {
        j: len(levels) for j, levels in enumerate(schema.levels) if levels is not None and len(levels) > MOST_LEVELS
    }
    if not isinstance(pools, list) or [pair[0] for pair in pools] != list(many):
        raise ValueError("the encoder does not say where the levels of its columns go")
    for j, place in pools:
        if not isinstance(place, np.ndarray) or place.dtype != np.int64 or place.shape != (many[j],):
            raise ValueError("the places of a column's levels are not well formed")
        if place.min() < 0 or place.max() >= MOST_LEVELS:
            raise ValueError("the places of a column's levels are out of range")
        if place.any() and (np.bincount(place, minlength=MOST_LEVELS)[: MOST_LEVELS - 1] != 1).any():
            raise ValueError("two levels of a column share a place that is not for the rare ones")
    return dict(pools)
