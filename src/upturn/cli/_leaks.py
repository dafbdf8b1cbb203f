"""Columns that know too much: features that differ strongly between arms, or tell the outcome almost perfectly.

Either is the mark of a column that was measured after the treatment, or made from the outcome. They are named with the
evidence and stay in: only the user knows when a column was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from upturn._arrays import Arms, Bools, Floats
from upturn._balance import mean_ranks
from upturn._check._statistics import auc_test, standardised_difference

if TYPE_CHECKING:
    import polars as pl

_MOST_ROWS = 200_000  # looked at, evenly spaced
_MOST_LEVELS = 100  # of a text column that is looked at level by level
_FEWEST = 20  # rows of a group that can be evidence
_STRONG, _SURE = 0.5, 6.0  # a difference in standard deviations, and in standard errors
_PERFECT = 0.95  # area under the ROC curve, or rank correlation
_CHANCE = 1e-9  # that a group of rows has one outcome only


@dataclass(frozen=True)
class Leak:
    """A suspected leak, and why."""

    column: str
    about: Literal["treatment", "outcome"]
    evidence: str


def suspected_leaks(X: pl.DataFrame, y: Floats, arm: Arms, labels: Sequence[object]) -> list[Leak]:
    """Look at every feature alone; ``arm`` is 0 for control, ``y`` may hold NaN."""
    step = max(1, len(y) // _MOST_ROWS)
    X, y, arm = X.gather_every(step), y[::step], arm[::step]
    leaks = []
    for name in X.columns:
        column = _Column.read(X.get_column(name))
        for about, evidence in (
            ("treatment", _between_arms(column, arm, labels)),
            ("outcome", _of_outcome(column, y)),
        ):
            if evidence:
                leaks.append(Leak(name, about, evidence))  # type: ignore[arg-type]
    return leaks


@dataclass(frozen=True)
class _Column:
    """A feature as numbers; a text one as the numbers of its levels, with their names."""

    values: Floats
    levels: list[str] | None

    @classmethod
    def read(cls, column: pl.Series) -> _Column:
        import polars as pl

        if column.dtype.is_numeric() or column.dtype == pl.Boolean:
            values = column.cast(pl.Float64).fill_nan(None).to_numpy().astype(np.float64)
            return cls(np.where(np.isinf(values), np.nan, values), None)  # which no model takes
        text = column.cast(pl.String)
        levels = text.drop_nulls().unique().sort().to_list()
        if len(levels) > _MOST_LEVELS:
            return cls(np.zeros(len(column)), None)
        where = {level: float(code) for code, level in enumerate(levels)}
        return cls(np.array([where.get(value, np.nan) for value in text.to_list()]), levels)

    def flags(self) -> Iterator[tuple[str, Bools]]:
        """Groups of rows to compare: every level, and what is missing."""
        for code, level in enumerate(self.levels or ()):
            yield repr(level), self.values == code
        missing = np.isnan(self.values)
        if missing.any():
            yield "missing", missing


def _between_arms(column: _Column, arm: Arms, labels: Sequence[object]) -> str:
    for k in range(1, len(labels)):
        pair = (arm == 0) | (arm == k)
        treated = arm[pair] == k
        parts: list[tuple[str, Floats, Bools | None]] = [
            (f"is {word} for", flag[pair].astype(np.float64), None) for word, flag in column.flags()
        ]
        known = ~np.isnan(column.values[pair])
        if column.levels is None:
            parts.append(("is", column.values[pair], known))
        for words, values, some in parts:
            use = np.ones(len(values), dtype=bool) if some is None else some
            t, v = treated[use], values[use]
            n1, n0 = int(t.sum()), int((~t).sum())
            if min(n0, n1) < _FEWEST:
                continue
            size = standardised_difference(v, t, np.ones(len(v)))
            if abs(size) >= _STRONG and abs(size) * np.sqrt(n1 * n0 / (n1 + n0)) >= _SURE:
                there, here = float(v[t].mean()), float(v[~t].mean())
                if some is None:
                    return f"{words} {there:.0%} of arm {labels[k]!r} and {here:.0%} of control"
                return f"{words} {there:.4g} on average in arm {labels[k]!r} and {here:.4g} in control"
    return ""


def _of_outcome(column: _Column, y: Floats) -> str:
    seen = ~np.isnan(y)
    values, y = column.values[seen], y[seen]
    known = ~np.isnan(values)
    if known.sum() < _FEWEST or y.min() == y.max():
        return ""
    return _determined(column, values, y) or _alone(column, values[known], y[known])


def _determined(column: _Column, values: Floats, y: Floats) -> str:
    """A group of rows with one outcome only, too many for that to be chance."""
    found, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    common = found[counts.argmax()]
    name = f"{common:g}" if column.levels is None else repr(column.levels[int(common)])
    for word, group in ((f"is not {name}", values != common), (f"is {name}", values == common)):
        rows = int(group.sum())
        if rows < _FEWEST or rows == len(y):
            continue
        low = float(y[group].min())
        share = float((y == low).mean())
        if low == y[group].max() and rows * np.log(max(share, 1e-300)) < np.log(_CHANCE):
            return f"wherever it {word} ({rows:,} rows) the outcome is {low:g}, as in {share:.1%} of all rows"
    return ""


def _alone(column: _Column, values: Floats, y: Floats) -> str:
    """How well the column alone ranks the outcome."""
    if column.levels is not None:
        codes = values.astype(np.intp)
        counts = np.bincount(codes, minlength=len(column.levels))
        if counts.max(initial=0) < _FEWEST or len(y) < _FEWEST * len(column.levels):
            return ""
        values = (np.bincount(codes, weights=y, minlength=len(counts)) / np.maximum(counts, 1))[codes]
    if len(np.unique(y)) == 2:
        area = auc_test(values, y == y.max())[0]
        return (
            f"alone it tells the outcome (area under the ROC curve {max(area, 1 - area):.3f})"
            if abs(area - 0.5) >= _PERFECT - 0.5
            else ""
        )
    ranks = mean_ranks(values), mean_ranks(y)
    if min(rank.std() for rank in ranks) == 0:
        return ""
    link = float(np.corrcoef(*ranks)[0, 1])
    return f"alone it tells the outcome (rank correlation {link:.3f})" if abs(link) >= _PERFECT else ""
