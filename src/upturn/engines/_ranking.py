"""Rankings of rows that lie in several places: sums per distinct score, walked down range by range.

Every part adds up its rows of one score before anything travels, so a constant score is one row. Where all distinct scores together are at most
``MOST``, their sums come to the driver at once; where there are more, they come in ranges of scores from the top down, and the walk goes
on from the five running sums at the border. Replicates are drawn where the rows are and come as sums of some thousand cells of the ranking, the same
for every partitioning, a block of replicates at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats, Ints
from upturn.engines._measured import Measured, Rows
from upturn.engines._places import Places
from upturn.kernels.ranking import ROWS
from upturn.kernels.resampling import replicate_cells
from upturn.kernels.sorting import argsort_descending
from upturn.kernels.walking import run_down, thin_table, walk_tables
from upturn.metrics._ranked import arm_shares
from upturn.metrics._replicates import BLOCK, Replicates
from upturn.metrics._statistic import SCHEMES, Plan, Statistic, warn_if_thin

MOST = 1 << 22  # distinct scores whose sums are at the driver at once, 200 MB
CELLS = 1 << 12  # about as many cells a replicate is summed in
_POINTS = 1 << 10  # scores that a part tells of too many


class Sums(NamedTuple):
    """Sums per distinct score, from the top: weight and outcome of control and of the arm, and rows. Or, of too many, points of their scale."""

    score: Floats
    sums: Floats | None
    points: Floats  # every so many'th distinct score, the largest and the smallest included
    distinct: int  # how many there are, or a few more

    @classmethod
    def of(cls, score: Floats, sums: Floats, most: int) -> Sums:
        """All of them, if they are at most so many."""
        return cls(score, sums, _thinned(score), len(score)) if len(score) <= most else cls.many(score, len(score))

    @classmethod
    def many(cls, score: Floats, distinct: int) -> Sums:
        """Points only."""
        return cls(np.empty(0), None, _thinned(score), distinct)


def _thinned(score: Floats) -> Floats:
    return score[np.linspace(0, len(score) - 1, min(len(score), _POINTS)).astype(np.intp)] if len(score) else score


class Ranking(NamedTuple):
    """The rows of control and arm ``code`` by a column of scores; ``totals`` is the last row of its table of running sums."""

    column: str
    code: int
    totals: Floats
    unit: float
    rows: int

    @classmethod
    def of(cls, measured: Measured, column: str, code: int) -> Ranking:
        """One arm beside control."""
        mass, outcome = measured.target.mass, measured.outcome
        totals = np.array([mass[0], outcome[0], mass[code], outcome[code]])
        return cls(column, code, totals, measured.target.unit, int(measured.used[0] + measured.used[code]))


def tables_of(places: Places, ranking: Ranking) -> Iterator[tuple[Floats, Floats]]:
    """Distinct scores and the table of running sums, range by range from the top; its first row is where the last one ended."""
    before = np.zeros(5)
    for score, sums in _ranges(places, ranking, -np.inf, np.inf):
        table = np.empty((len(sums) + 1, 5))
        table[0] = before
        np.cumsum(sums, axis=0, out=table[1:])
        table[1:] += before
        before = table[-1].copy()
        yield score, table


def _ranges(places: Places, ranking: Ranking, low: float, high: float) -> Iterator[tuple[Floats, Floats]]:
    """Sums of the scores above ``low`` and up to ``high``, cut into ranges until each comes whole."""
    found: Sums = places.ask(partial(_sums_by_score, ranking, low, high, MOST), partial(_merge_sums, MOST))
    if found.sums is not None:
        if len(found.sums):
            yield found.score, found.sums
        return
    points = found.points  # falling
    pieces = min(1 + 2 * found.distinct // MOST, len(points) - 1)
    inside = points[np.linspace(0, len(points) - 1, pieces + 1).astype(np.intp)[1:-1]]
    borders = [high, *inside.tolist(), low]
    for above, below in pairwise(borders):
        yield from _ranges(places, ranking, below, above)


def _merge_sums(most: int, answers: Sequence[Sums]) -> Sums:
    if any(one.sums is None for one in answers):
        points = np.unique(np.concatenate([one.points for one in answers]))[::-1]
        return Sums.many(points, sum(one.distinct for one in answers))
    score = np.concatenate([one.score for one in answers])
    sums = np.concatenate([one.sums for one in answers if one.sums is not None])
    return Sums.of(*_together(score, sums), most)


def _together(score: Floats, sums: Floats) -> tuple[Floats, Floats]:
    """Rows of equal score added up, the largest score first."""
    if not len(score):
        return score, sums
    order, last = argsort_descending(score)
    starts = np.concatenate(([0], np.flatnonzero(last[:-1]) + 1))
    return score[order[starts]], np.add.reduceat(sums[order], starts, axis=0)


def _sums_by_score(ranking: Ranking, low: float, high: float, most: int, rows: Rows) -> Sums:
    """What a part knows of a range."""
    score = rows.numbers[ranking.column]
    mine = np.flatnonzero(((rows.arm == 0) | (rows.arm == ranking.code)) & (score > low) & (score <= high))
    sums = np.zeros((len(mine), 5))
    weight, side = rows.weight[mine] if len(rows.weight) else np.ones(len(mine)), 2 * (rows.arm[mine] > 0)
    place = np.arange(len(mine))
    sums[place, side], sums[place, side + 1], sums[:, ROWS] = weight, weight * rows.y[mine], 1.0
    return Sums.of(*_together(score[mine], sums), most)


# ------------------------------------------------------------------------------------------- the data themselves


class Walked(NamedTuple):
    """What a walk down a ranking found: the sums of a plan, the scores at which cells end, the table there, or the whole one."""

    sums: list[Floats]
    ends: Floats
    table: Floats
    ranking: Ranking  # with the last row of that table, to the last bit


def walk_down(places: Places, ranking: Ranking, plan: Plan) -> Walked:
    """Walk down a ranking once."""
    gathered, kept, ends, rows = _Gathered(plan, 1), 0.0, [], [np.zeros((1, 5))]
    whole: Floats | None = None
    for number, (score, table) in enumerate(tables_of(places, ranking)):
        whole = table if number == 0 else None
        final = bool(table[-1, ROWS] == ranking.rows)
        if whole is not None and final:  # a constant score is exactly the random line
            ranking = ranking._replace(totals=table[-1, :4].copy())
        people = np.ascontiguousarray(table[1:, ROWS])
        stays = np.empty(len(people), np.bool_)
        thin_table(people, float(ranking.rows), kept, CELLS, stays)
        ends.append(score[stays])
        rows.append(table[1:][stays])
        kept = float(rows[-1][-1, ROWS]) if stays.any() else kept
        gathered.walk(ranking.totals[None, :], table[None], np.array([len(table)]), final=final)
    cells = np.concatenate(rows)
    return Walked(plan.sums(*gathered.found), np.concatenate(ends), cells if whole is None else whole, ranking)


class _Gathered:
    """What is read off tables on the way down."""

    def __init__(self, plan: Plan, n: int) -> None:
        self._plan, self._places = plan, np.zeros((n, 3), np.int64)
        at, arms_at = np.empty((n, len(plan.shares), 4)), np.empty((n, len(plan.arm_shares), 4))
        self.found = np.zeros((n, len(plan.codes), 2)), at, arms_at

    def walk(self, totals: Floats, tables: Floats, ends: Ints, *, final: bool) -> None:
        plan, sizes = self._plan, np.ascontiguousarray(totals)
        walk_tables(plan.codes, plan.shares, plan.arm_shares, sizes, tables, ends, final, self._places, *self.found)


# ------------------------------------------------------------------------------------------- replicates


def _replicated(
    ranking: Ranking, ends: Floats, scheme: int, seed: np.uint64, numbers: range, rows: Rows
) -> NDArray[np.float64]:
    """A part's share of some replicates: sums of every cell (cells, 5, replicates)."""
    sums = np.zeros((len(ends), 5, len(numbers)))
    mine = np.flatnonzero((rows.arm == 0) | (rows.arm == ranking.code))
    ids = rows.ids[mine] if len(rows.ids) else mine.astype(np.uint64) + np.uint64(rows.first)
    if len(mine):
        score = rows.numbers[ranking.column][mine]
        cell = len(ends) - np.searchsorted(
            ends[::-1], score, side="right"
        )  # ends fall: a row is in the first that is no larger
        side = (rows.arm[mine] > 0).view(np.uint8)
        weight = rows.weight[mine] if len(rows.weight) else rows.weight
        replicate_cells(scheme, seed, numbers.start, ids, cell, side, rows.y[mine], weight, sums)
    return sums


def _add(arrays: Sequence[Any]) -> Any:
    return np.sum(arrays, axis=0)


def replicate_ranking(
    places: Places, ranking: Ranking, ends: Floats, plan: Plan, scheme: int, replicates: Replicates
) -> tuple[list[Floats], Floats]:
    """The sums of every statistic of a plan on every replicate, and the last rows of the tables."""
    found, tops = [], []
    for first in range(0, replicates.n, BLOCK):
        numbers = range(first, min(first + BLOCK, replicates.n))
        sums = places.ask(partial(_replicated, ranking, ends, scheme, replicates.seed, numbers), _add)
        tables, rows = np.empty((len(numbers), len(sums) + 1, 5)), np.empty(len(numbers), np.int64)
        run_down(np.ascontiguousarray(sums), tables, rows)
        totals = tables[np.arange(len(numbers)), rows - 1, :4]
        gathered = _Gathered(plan, len(numbers))
        gathered.walk(totals, tables, rows, final=True)
        found.append(plan.sums(*gathered.found))
        tops.append(totals)
    return [np.concatenate(parts) for parts in zip(*found, strict=True)], np.concatenate(tops)


def judge_parts(
    measured: Measured, statistics: Sequence[Statistic], columns: Sequence[str], replicates: Replicates | None
) -> tuple[list[Floats], list[Floats]]:
    """Each statistic of one model, whose scores of every arm are ``columns``: its values, and those on every replicate."""
    values: list[Any] = [0.0] * len(statistics)
    samples: list[Any] = [0.0] * len(statistics)
    plan = Plan(statistics)
    for code, (column, share) in enumerate(zip(columns, arm_shares(measured.target).tolist(), strict=True), start=1):
        ranking = Ranking.of(measured, column, code)
        walked = walk_down(measured.places, ranking, plan)
        for j, statistic in enumerate(statistics):
            values[j] = values[j] + share * statistic.end(walked.sums[j][0], walked.ranking.totals, walked.ranking)
        if replicates is None:
            continue
        for scheme, drawn in SCHEMES.items():
            mine = [j for j, statistic in enumerate(statistics) if statistic.scheme == scheme]
            if not mine:
                continue
            own = Plan([statistics[j] for j in mine])
            sums, tops = replicate_ranking(measured.places, ranking, walked.ends, own, drawn, replicates)
            with np.errstate(invalid="ignore", divide="ignore"):  # a replicate may be without an arm of few rows
                for found, j in zip(sums, mine, strict=True):
                    samples[j] = samples[j] + share * statistics[j].end(found, tops, ranking)
    return [np.asarray(value) for value in values], [np.asarray(found) for found in samples]


def warn_if_few(measured: Measured, statistics: Sequence[Statistic]) -> None:
    """Say so when intervals would be of too few rows."""
    measured.strata.warn_if_few()
    warn_if_thin(statistics, measured.strata)
