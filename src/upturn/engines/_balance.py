"""Do the arms agree in their features? The tests of balance (``upturn._balance``) of rows that lie in several places, from counts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from upturn._arrays import Arms, Floats, Ints
from upturn._balance import RankTest, level_pvalues
from upturn._columns import read_weight
from upturn._table import Schema, encode_columns, place_levels
from upturn._target import Label, find_labels, read_labels
from upturn.engines._gather import Roles
from upturn.engines._measured import Rows
from upturn.engines._numbers import Raw, column_schema, columns_of, series_of
from upturn.engines._places import Places
from upturn.engines._ranking import Ranking, tables_of
from upturn.engines._views import Views
from upturn.kernels.ranking import ROWS, W1
from upturn.kernels.sampling import NO_IDS


def balance_of_parts(raws: Places, roles: Roles, schema: Schema, labels: Sequence[Label]) -> float:
    """The joint test of all features (see ``_balance.balance_pvalue``), of places of raw frames."""
    n = sum(raws.ask(count_rows))
    pvalues, bare, n_arms = [], roles._replace(sample_weight=None), len(labels)
    for j, name in enumerate(roles.features):
        own, levels = bare._replace(features=[name]), schema.levels[j]
        column: Any = Views(raws, partial(read_column, own, column_schema(schema, j), list(labels), 1.0))
        if levels is None:
            known: Ints = column.ask(partial(_known, n_arms), add)
            found = rank_pvalues(column, name, known)
        else:
            counts = column.ask(partial(level_sums, n_arms, len(levels)), add)[0]
            found = arm_pvalues(pool(counts.astype(np.int64), n))
        pvalues.append(min(1.0, min(found) * len(found)))
    return min(1.0, min(pvalues) * len(pvalues))


def rank_pvalues(places: Places, name: str, known: Ints) -> list[float]:
    """P-values of a column of numbers, for every arm; ``known`` are the rows of each arm that have one."""
    return [_rank_pvalue(places, name, known, k) for k in range(1, len(known))]


def arm_pvalues(counts: Ints) -> list[float]:
    """P-values of all levels and arms, from the rows of every level by arm."""
    return [p for own in counts[1:] for p in level_pvalues(counts[0] + own, own)]


def pool(counts: Ints, n: int, table: Any = None) -> Any:
    """Rows of levels by arm, levels of which there are too many together (see ``place_levels``); or another ``table`` of the same levels."""
    place = place_levels(counts.sum(axis=0), n)
    table = counts if table is None else table
    return table if place is None else np.array([np.bincount(place, row) for row in table]).astype(table.dtype)


def _rank_pvalue(places: Places, name: str, known: Ints, k: int) -> float:
    n, n1 = int(known[0] + known[k]), int(known[k])
    test = RankTest(n, n1)
    if n1 in (0, n):
        return 1.0
    for _, table in tables_of(places, Ranking(name, k, np.zeros(4), 1.0, n)):
        steps = np.diff(table, axis=0)
        test.add(steps[:, ROWS].astype(np.int64), steps[:, W1].astype(np.int64))
    return test.pvalue()


# ------------------------------------------------------------------------------------------- what a part answers


def count_rows(raw: Raw) -> int:
    """Rows of a part."""
    return len(nw.from_native(raw.frame, eager_only=True))


def read_arms(roles: Roles, labels: list[Label], heavy: float, raw: Raw) -> tuple[Arms, Floats]:
    """Arms and weights, divided by ``heavy``, of a part with rows."""
    found, codes = find_labels(read_labels(series_of(raw, roles.treatment)))
    arm = np.array([labels.index(label) for label in found], np.uint8)[codes]
    if roles.sample_weight is None:
        return arm, np.ones(len(arm))
    return arm, read_weight(series_of(raw, roles.sample_weight)) / heavy


def read_column(roles: Roles, schema: Schema, labels: list[Label], heavy: float, raw: Raw) -> Rows:
    """One column of a part, with its arms and weights; the outcome plays no part."""
    (name,) = roles.features
    if not count_rows(raw):
        nothing = np.empty(0)
        return Rows(nothing, np.empty(0, np.uint8), nothing, {name: nothing}, {"weight": nothing}, 0, NO_IDS)
    arm, weight = read_arms(roles, labels, heavy, raw)
    values = np.add(encode_columns(columns_of(raw, [name]), schema, False)[:, 0], 0.0)
    return Rows(np.zeros(len(arm)), arm, np.empty(0), {name: values}, {"weight": weight}, 0, NO_IDS)


def known_values(rows: Rows) -> tuple[Floats, Arms, Floats]:
    """Values that are known, with their arms and weights."""
    ((_, values),) = rows.numbers.items()
    known = ~np.isnan(values)
    return values[known], rows.arm[known], rows.labels["weight"][known]


def level_sums(n_arms: int, n_levels: int, rows: Rows) -> Floats:
    """Rows and weight of every level, by arm."""
    values, arm, weight = known_values(rows)
    cells, shape = arm * np.int64(n_levels) + values.astype(np.int64), (n_arms, n_levels)
    size = n_arms * n_levels
    return np.array([np.bincount(cells, column, size).reshape(shape) for column in (None, weight)], dtype=np.float64)


def _known(n_arms: int, rows: Rows) -> Ints:
    return np.bincount(known_values(rows)[1], minlength=n_arms)


def add(arrays: Sequence[Any]) -> Any:
    """Answers that are added up."""
    return np.sum(arrays, axis=0)
