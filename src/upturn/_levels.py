"""How the levels of categorical columns are numbered for boosted trees.

The numbers of a column are an array ``code[level]``, -1 for a level that had no row in the fit; None is a column of numbers.
"""

from __future__ import annotations

import numpy as np

from upturn._arrays import Floats, Ints
from upturn._table import Schema

LevelCodes = list[Ints | None]  # one per column

MOST_LEVELS = 255  # with one code for what is missing they fill a byte; of more levels, the rare ones share a code


def number_levels(X: Floats, schema: Schema) -> LevelCodes:
    """The numbers of the levels of every column."""
    return [None if levels is None else _number(X[:, j], len(levels)) for j, levels in enumerate(schema.levels)]


def _number(column: Floats, n_levels: int) -> Ints:
    counts = np.bincount(column[~np.isnan(column)].astype(np.int64), minlength=n_levels)
    seen = counts > 0
    code = np.full(n_levels, -1, dtype=np.int64)
    if seen.sum() <= MOST_LEVELS:
        code[seen] = np.arange(seen.sum())
    else:
        frequent = np.argsort(-counts, kind="stable")[: MOST_LEVELS - 1]
        code[seen] = MOST_LEVELS - 1
        code[np.sort(frequent)] = np.arange(MOST_LEVELS - 1)
    return code


def code_levels(X: Floats, codes: LevelCodes) -> Floats:
    """The matrix that trees are grown on: levels by their numbers, NaN where one is missing or had no row in the fit."""
    if all(code is None for code in codes):
        return X
    coded = X.copy()
    for j, code in enumerate(codes):
        if code is not None:
            known = ~np.isnan(X[:, j])
            numbers = code[X[known, j].astype(np.int64)]
            coded[known, j] = np.where(numbers < 0, np.nan, numbers)
    return coded
