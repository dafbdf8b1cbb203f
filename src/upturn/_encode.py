"""The encoder of linear models: 0-1 coding of all levels, mean imputation, standardisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from upturn._arrays import Floats, Ints
from upturn._table import Schema


@dataclass(frozen=True)
class LinearEncoder:
    """Turns the matrix of a table into one a linear model can use.

    A numeric column stays one column, its missing values replaced by the mean seen at fit. A categorical column becomes
    one 0-1 column per level, all zero where the value is missing. Then every column is centred by ``mean`` and divided
    by ``scale``; both are trivial when the encoder was made with ``standardize=False``.

    Attributes
    ----------
    source : int array of shape (q,)
        The table's column each encoded column comes from.
    level : int array of shape (q,)
        The level it stands for, -1 for a numeric column.
    fill, mean, scale : float arrays of shape (q,)
    """

    source: Ints
    level: Ints
    fill: Floats
    mean: Floats
    scale: Floats

    @classmethod
    def fit(cls, X: Floats, schema: Schema, weight: Floats | None = None, *, standardize: bool = True) -> LinearEncoder:
        """Learn the means and scales of a table's columns."""
        source, level = [], []
        for j, levels in enumerate(schema.levels):
            codes = [-1] if levels is None else list(range(len(levels)))
            source += [j] * len(codes)
            level += codes
        q, weights = len(source), np.ones(len(X)) if weight is None else weight
        encoder = cls(np.array(source, np.int64), np.array(level, np.int64), np.zeros(q), np.zeros(q), np.ones(q))
        for i in np.flatnonzero(encoder.level < 0):
            column = X[:, encoder.source[i]]
            seen = ~np.isnan(column)
            total = weights[seen].sum()
            encoder.fill[i] = weights[seen] @ column[seen] / total if total > 0 else 0.0
        if standardize:
            raw = encoder.transform(X)
            mean = weights @ raw / weights.sum()
            deviation = raw - mean
            reach = np.abs(deviation).max(
                axis=0, initial=0.0
            )  # squares of deviations / reach neither overflow nor vanish
            reach[reach == 0] = 1.0
            spread = reach * np.sqrt(weights @ (deviation / reach) ** 2 / weights.sum())
            # A column whose spread is only rounding error of its mean is constant: centring it to 0 is all there is to do.
            constant = spread <= 1e-12 * np.maximum(np.abs(mean), np.finfo(float).tiny)
            encoder.mean[:], encoder.scale[:] = mean, np.where(constant, 1.0, spread)
        return encoder

    def transform(self, X: Floats) -> Floats:
        """The encoded matrix, C-contiguous."""
        columns = X[:, self.source]
        numeric = self.level < 0
        encoded = np.where(numeric, np.where(np.isnan(columns), self.fill, columns), columns == self.level)
        return np.ascontiguousarray((encoded - self.mean) / self.scale)

    def names(self, schema: Schema) -> list[str]:
        """Names of the encoded columns, such as ``recency`` and ``channel=web``."""
        made = []
        for j, code in zip(self.source, self.level, strict=True):
            levels = schema.levels[j]
            made.append(schema.names[j] if levels is None else f"{schema.names[j]}={levels[code]}")
        return made

    def get_state(self) -> dict[str, Any]:
        """The encoder as arrays, for a saved model."""
        return {name: getattr(self, name) for name in ("source", "level", "fill", "mean", "scale")}

    @classmethod
    def from_state(cls, state: dict[str, Any], schema: Schema) -> LinearEncoder:
        """Rebuild and check an encoder that was read from a file."""
        arrays = [np.asarray(state[name]) for name in ("source", "level", "fill", "mean", "scale")]
        source, level, fill, mean, scale = arrays
        q = len(source)
        if any(array.shape != (q,) for array in arrays) or source.dtype != np.int64 or level.dtype != np.int64:
            raise ValueError("the encoder's arrays do not fit together")
        if q and (source.min() < 0 or source.max() >= schema.n_features):
            raise ValueError("the encoder names a column that does not exist")
        if not all(array.dtype == np.float64 and np.isfinite(array).all() for array in (fill, mean, scale)):
            raise ValueError("the encoder's numbers are not finite")
        if (scale == 0).any():
            raise ValueError("the encoder divides by zero")
        counts = np.array([-1 if levels is None else len(levels) for levels in schema.levels])[source]
        if ((level < 0) != (counts < 0)).any() or (level >= np.maximum(counts, 0)).any() or (level < -1).any():
            raise ValueError("the encoder names a level that does not exist")
        return cls(source, level, fill, mean, scale)
