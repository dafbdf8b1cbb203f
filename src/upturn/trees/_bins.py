"""Bins of the features: learnt once, they turn any matrix into one byte a value (see ``upturn.kernels.binning``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Bools, Floats, Ints
from upturn._parallel import run_parallel
from upturn.kernels.binning import MAX_BINS, distinct_values, encode, quantile_edges
from upturn.kernels.sampling import EDGES, choose, purpose_key

Codes = NDArray[np.uint8]
SAMPLE = 50_000  # rows whose values decide the edges of a feature with many values
KNOWN = 10_000  # values that must be in the sample: a feature that is mostly missing has a sample of its own
_PIECE = 16_384  # rows given to a kernel at a time


@dataclass(frozen=True)
class Bins:
    """Edges of the numeric features, codes of the levels of the categorical ones.

    Attributes
    ----------
    edges : float64 array of shape (p, 255)
        Ascending, padded with infinity.
    level_range : int64 array of shape (p, 2)
        Where a categorical feature's levels lie in ``level_code``; (-1, -1) for a numeric one.
    level_code : int32 array
        Code of each level. The rarest levels of a feature with more than 255 of them share the last code.
    n_codes : int32 array of shape (p,)
        Number of codes of each feature, missing included.
    """

    edges: Floats
    level_range: Ints
    level_code: NDArray[np.int32]
    n_codes: NDArray[np.int32]

    @classmethod
    def learn(
        cls,
        X: Floats,
        n_levels: Sequence[int | None],
        weight: Floats | None = None,
        max_bins: int = MAX_BINS,
        n_jobs: int | None = None,
    ) -> Bins:
        """Learn bins from a matrix; ``n_levels[j]`` is None for a numeric column.

        Quantiles of features with many values are taken from a fixed sample of 50,000 rows when there are more; if it
        holds few values that are not missing, from 50,000 rows in which the feature is not.
        """
        n, p = X.shape
        sample = None if n <= SAMPLE else _sample_rows(np.ones(n, np.bool_))
        heaviest = 1.0 if weight is None else float(weight.max())

        def learn(j: int) -> NDArray[Any]:
            levels = n_levels[j]
            if levels is None:
                return _numeric_edges(X, j, weight, sample, max_bins)
            mass = level_mass(X[:, j], levels, weight, heaviest) if levels > max_bins else None
            return level_codes(mass, levels, max_bins)

        return cls.of(run_parallel(learn, range(p), n_jobs=n_jobs), n_levels)

    @classmethod
    def of(cls, columns: Sequence[NDArray[Any]], n_levels: Sequence[int | None]) -> Bins:
        """Bins from the edges of numeric columns and the levels' codes of categorical ones."""
        p = len(columns)
        edges = np.full((p, MAX_BINS), np.inf)
        level_range = np.full((p, 2), -1, np.int64)
        level_code: list[NDArray[np.int32]] = []
        n_codes = np.empty(p, np.int32)
        start = 0
        for j, column in enumerate(columns):
            if n_levels[j] is None:
                edges[j, : column.size] = column
                n_codes[j] = column.size + 2
            else:
                level_range[j] = start, start + column.size
                start += column.size
                level_code.append(column)
                n_codes[j] = column.max(initial=0) + 1
        return cls(edges, level_range, np.concatenate([*level_code, np.empty(0, np.int32)]), n_codes)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.n_codes)

    @property
    def arrays(self) -> tuple[Floats, Ints, NDArray[np.int32]]:
        """What encoding reads."""
        return self.edges, self.level_range, self.level_code

    @cached_property
    def categorical(self) -> NDArray[np.uint8]:
        """1 for categorical features."""
        return (self.level_range[:, 0] >= 0).astype(np.uint8)

    def encode(self, X: Floats, n_jobs: int | None = None) -> Codes:
        """Codes of all features, feature-major."""
        features = np.arange(self.n_features)
        out = np.empty((self.n_features, len(X)), np.uint8)

        def fill(rows: slice) -> None:
            encode(as_floats(X[rows]), *self.arrays, features, rows.start, 1, len(X), out.reshape(-1))

        run_parallel(fill, pieces(len(X)), n_jobs=n_jobs)
        return out

    def encode_rows(self, X: Floats, features: Ints | None = None, n_jobs: int | None = None) -> Codes:
        """Codes of the listed features, or all, for prediction: row-major, two columns each; others hold anything."""
        width, out = 2 * self.n_features, np.empty((len(X), 2 * self.n_features), np.uint8)
        listed = np.arange(self.n_features) if features is None else features

        def fill(rows: slice) -> None:
            encode(as_floats(X[rows]), *self.arrays, listed, rows.start * width, width, 2, out.reshape(-1))

        run_parallel(fill, pieces(len(X)), n_jobs=n_jobs)
        return out

    def levels_of(self, feature: int, chosen: Bools) -> Ints:
        """Levels of a categorical feature whose codes are chosen (a mask over the 256 codes)."""
        first, last = self.level_range[feature]
        return np.flatnonzero(chosen[self.level_code[first:last]])

    def get_state(self) -> dict[str, Any]:
        """Arrays for the saved form."""
        return {
            "edges": self.edges,
            "level_range": self.level_range,
            "level_code": self.level_code,
            "n_codes": self.n_codes,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], n_features: int) -> Bins:
        """Rebuild bins from a saved form, checking everything a kernel relies on."""
        edges, level_range = state["edges"], state["level_range"]
        level_code, n_codes = state["level_code"], state["n_codes"]
        kinds = ((edges, "<f8"), (level_range, "<i8"), (level_code, "<i4"), (n_codes, "<i4"))
        shapes = (edges.shape, level_range.shape, n_codes.shape) == (
            (n_features, MAX_BINS),
            (n_features, 2),
            (n_features,),
        )
        if not shapes or level_code.ndim != 1 or any(array.dtype.str != kind for array, kind in kinds):
            raise ValueError("the bins have wrong shapes or types")
        numeric = (level_range == -1).all(axis=1)
        lows, highs = level_range[~numeric].T
        sound = (
            not np.isnan(edges).any()
            and (edges[:, 1:] >= edges[:, :-1]).all()
            and (lows >= 0).all()
            and (lows <= highs).all()
            and (highs <= level_code.size).all()
            and ((level_code >= 0) & (level_code <= MAX_BINS)).all()
            and ((n_codes >= 1) & (n_codes <= MAX_BINS + 1)).all()
        )
        if not sound:
            raise ValueError("the bins are out of order or out of range")
        return cls(*(np.ascontiguousarray(array) for array in (edges, level_range, level_code, n_codes)))


def pieces(n: int) -> list[slice]:
    """Rows a piece at a time."""
    return [slice(start, min(start + _PIECE, n)) for start in range(0, n, _PIECE)]


def as_floats(X: NDArray[Any]) -> Floats:
    """A piece of the rows as kernels take it: of float32, no more than that is ever copied."""
    return np.ascontiguousarray(X, dtype=np.float64)


def sample_key() -> np.uint64:
    """The key of the hashes whose smallest decide which rows' values are looked at: the same in every fit."""
    return np.uint64(purpose_key(np.uint64(0), EDGES, np.uint64(0)))


def _sample_rows(known: Bools) -> Ints:
    """The rows of a mask that decide the edges, all or those with the smallest hashes, in their order."""
    count = np.array([np.count_nonzero(known)])
    if count[0] <= SAMPLE:
        return np.flatnonzero(known)
    role = known.astype(np.uint8)
    choose(sample_key(), np.zeros(len(role), np.uint8), 1, 2, count, np.array([SAMPLE]), role)
    return np.flatnonzero(role == 2)


def _numeric_edges(X: Floats, j: int, weight: Floats | None, sample: Ints | None, max_bins: int) -> Floats:
    few = np.empty(MAX_BINS)
    found = distinct_values(X, j, max_bins, few)
    if found <= max_bins:
        return edges_of_few(few[:found], max_bins)
    rows = slice(None) if sample is None else sample
    column = _values(X, j, rows)
    if sample is not None and np.count_nonzero(column == column) < KNOWN:
        column = _values(X, j, slice(None))
        rows = _sample_rows(column == column)
        column = column[rows]
    return edges_of_many(column, None if weight is None else weight[rows], max_bins)


def edges_of_few(values: Floats, max_bins: int) -> Floats:
    """One bin for each of a few values."""
    out = np.empty(MAX_BINS)
    return out[: quantile_edges(np.sort(values), np.ones(len(values)), max_bins, out)].copy()


def edges_of_many(values: Floats, weight: Floats | None, max_bins: int) -> Floats:
    """Bins of about equal weight over the values of a sample, which may be missing."""
    if weight is None:
        values = np.sort(values)  # missing values come last
        values = values[: np.searchsorted(values, np.inf, side="right")]
        mass = np.ones(values.size)
    else:
        known = np.flatnonzero(~np.isnan(values))
        order = known[np.argsort(values[known], kind="stable")]
        values, mass = values[order], weight[order]
    out = np.empty(MAX_BINS)
    return out[: quantile_edges(values, mass, max_bins, out)].copy()


def _values(X: Floats, j: int, rows: Ints | slice) -> Floats:
    """Some rows of a column; -0.0 and 0.0 are one value."""
    return np.add(X[rows, j], 0.0, dtype=np.float64)


def level_mass(column: Floats, n_levels: int, weight: Floats | None, heaviest: float) -> Floats:
    """Rows of every level, or their weight in units of 2^-20 of the ``heaviest``: whole numbers, which add up exactly in any order."""
    known = ~np.isnan(column)
    units = None if weight is None else np.rint(np.ldexp(weight[known], 20 - int(np.frexp(heaviest)[1])))
    return np.bincount(column[known].astype(np.int64), units, n_levels).astype(np.float64)


def level_codes(mass: Floats | None, n_levels: int, max_bins: int) -> NDArray[np.int32]:
    """Code of each level; of too many, the rarest share the last, and ``mass`` says which."""
    if mass is None or n_levels <= max_bins:
        return np.arange(1, n_levels + 1, dtype=np.int32)
    frequent = np.sort(np.argsort(-mass, kind="stable")[: max_bins - 1])
    codes = np.full(n_levels, max_bins, dtype=np.int32)
    codes[frequent] = np.arange(1, max_bins, dtype=np.int32)
    return codes
