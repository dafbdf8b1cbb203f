"""Pairs of features that matter only together: UMODL on the grid of both.

Every column is cut into a few percentile bins (or its commonest levels), and the cells of the grid that two of them span are
grouped by UMODL as the levels of one categorical feature are. A pair is kept where the grouping saves more, in nats, than the two columns
by themselves and the choice among all pairs looked at, log(number of pairs). Noise pairs come out as one group.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from upturn._arrays import Floats, Ints
from upturn._experiment import Experiment
from upturn._parallel import run_parallel
from upturn.features._cells import Cells
from upturn.features._column import column_of, partition_column
from upturn.features._partition import Partition
from upturn.features._percentiles import bins_of

MOST_PAIRS = 2000  # of the columns in which the arms are farthest apart, if there are more
_BINS = 4  # of a column
_LEVELS = 6  # of a categorical column; all others are one more


def find_pairs(
    data: Experiment, cells: Cells, partitions: list[Partition], order: Ints, n_jobs: int | None
) -> tuple[Ints, Floats]:
    """Return the pairs of columns that say more together, shape (pairs, 2), and the importance (11) of each.

    ``order`` has the columns, the best first: of more than ``MOST_PAIRS`` pairs, those of the first ones are looked at.
    """
    n_columns = min(len(order), int((1 + np.sqrt(1 + 8 * MOST_PAIRS)) / 2))
    chosen = np.sort(order[:n_columns])
    codes = {int(j): _coarse(data, int(j)) for j in chosen}
    alone = {int(j): partitions[j].null_cost - partitions[j].cost for j in chosen}
    pairs = list(combinations(map(int, chosen), 2))
    price = np.log(max(len(pairs), 1))

    def look(pair: tuple[int, int]) -> float:
        first, second = (codes[j] for j in pair)
        width = int(second.max()) + 1
        grid = (first * width + second).astype(np.float64)
        found = partition_column(grid, cells, int(first.max() + 1) * width, "auto")
        saved = found.null_cost - found.cost
        return found.importance() if saved > price + sum(alone[j] for j in pair) else 0.0

    scores = np.array(run_parallel(look, pairs, n_jobs=n_jobs), dtype=np.float64)
    kept = scores > 0
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)[kept], scores[kept]


def _coarse(data: Experiment, j: int) -> Ints:
    """A few bins of a column: percentiles, or its commonest levels; missing values are one of them."""
    column, levels = column_of(data.X, j), data.schema.levels[j]
    if levels is None:
        return bins_of(column, None, _BINS)
    known = ~np.isnan(column)
    counts = np.bincount(column[known].astype(np.int64), minlength=len(levels))
    common = np.argsort(-counts, kind="stable")[:_LEVELS]
    place = np.full(len(levels) + 1, len(common), dtype=np.int64)
    place[common] = np.arange(len(common))
    place[-1] = len(common) + 1
    return place[np.where(known, column, len(levels)).astype(np.int64)]
