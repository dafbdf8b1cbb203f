"""Searching for the cheapest partition of one numeric feature.

Everything works on the points of ``umodl_points``; a partition is the increasing list of the points it cuts at, both
ends included.

- ``exact_cuts``: dynamic programming, the global optimum over the points given, O(points²).
- ``fast_cuts``: the same over few, well-chosen points, again and again, and ``polish`` at the end.
- ``refined_cuts``: ``fast_cuts`` on micro-points, then all boundary points near the cuts. Work that does not grow with n.
- ``greedy_cuts`` (in ``umodl_polish``): the paper's bottom-up merging with its post-optimisation.

Why the exact search needs no table over the number of intervals I: let F(I) be the least sum of interval costs. The
prior g(I) is concave, so at the optimum I* it lies under its tangent with slope u, and F(I) + u I is least at I*,
too. So the optimum is one of the partitions that a constant price per interval can produce. ``exact_cuts`` walks
along those prices, halving brackets, and drops a bracket as soon as its tangents show that nothing better fits in.
"""

from __future__ import annotations

import numpy as np

from upturn._arrays import Floats, Ints
from upturn.kernels._jit import F8, I4_2, I8, F8_out, I8_out, f8, i8, kernel, void
from upturn.kernels.umodl import costs_up_to
from upturn.kernels.umodl_points import Points, SortedColumn
from upturn.kernels.umodl_polish import TOLERANCE, Cuts, cuts_cost, merged, polish, shifted, table_for, thinned

STORED_POINTS = 4096  # up to here the costs of all intervals are kept (67 MB), beyond they are computed on the fly
ALL_POINTS = 1 << 15  # the fast search works on all boundary points up to so many,
MICRO_BINS = 1 << 15  # else on micro-points that make so many bins;
GRID, FINE_GRID = 256, 768  # it merges them down to so many (the latter if that leaves few for each interval),
NEAR_POINTS = 384  # then so many around the cuts found,
BAND_BUDGET = 1 << 17  # weighs about so many intervals of (nearly) all points, or
BAND_SHARE = 1 << 13  # so many for each interval found, if that is more,
BAND_PASSES = 2  # so many times,
REACH_ROWS = 1024  # and at last opens the bins of so many rows (2 to 16 bins) on either side of each cut,
REFINEMENTS = 4  # at most so many times
FEW_CUTS = 12  # beyond, only intervals of a length like the old ones are weighed


@kernel(void, I4_2, i8, i8, F8, F8_out)
def _all_costs(points, n_arms, n_classes, table, costs):
    for hi in range(1, points.shape[0]):
        row = hi * (hi - 1) // 2
        costs_up_to(points, 0, hi, n_arms, n_classes, table, costs[row : row + hi])


@kernel(void, I4_2, i8, i8, F8, F8, I8, f8, F8_out, I8_out)
def _cheapest_path(points, n_arms, n_classes, table, costs, earliest, price, best, back):
    stored = costs.shape[0] > 0
    buffer = np.empty(0 if stored else points.shape[0])
    best[0] = 0.0
    for hi in range(1, points.shape[0]):
        start = hi * (hi - 1) // 2
        if stored:
            row = costs[start : start + hi]
        else:
            row = buffer[:hi]
            costs_up_to(points, earliest[hi], hi, n_arms, n_classes, table, row)
        least, at = np.inf, 0
        for lo in range(earliest[hi], hi):
            value = best[lo] + row[lo]
            if value < least:
                least, at = value, lo
        best[hi] = least + price
        back[hi] = at


class _Pricing:
    """Cheapest partitions of fixed points at a given price per interval.

    ``earliest`` limits the search: an interval that ends at point k starts at ``earliest[k]`` or later.
    """

    def __init__(self, points: Points, n_arms: int, n_classes: int, earliest: Cuts | None = None) -> None:
        self.problem = (points, n_arms, n_classes, table_for(points, n_classes))
        m = len(points)
        stored = earliest is None and m <= STORED_POINTS
        self.costs = np.empty(m * (m - 1) // 2 if stored else 0)
        if stored:
            _all_costs(*self.problem, self.costs)
        self.earliest = np.zeros(m, dtype=np.int64) if earliest is None else earliest
        self.best, self.back = np.empty(m), np.zeros(m, dtype=np.int64)

    def total(self, cuts: Cuts) -> float:
        points, n_arms, n_classes, table = self.problem
        return float(cuts_cost(points, cuts, n_arms, n_classes, table))

    def cuts_at(self, price: float) -> Cuts:
        _cheapest_path(*self.problem, self.costs, self.earliest, price, self.best, self.back)
        path = [len(self.back) - 1]
        while path[-1] > 0:
            path.append(int(self.back[path[-1]]))
        return np.array(path[::-1], dtype=np.int64)


def exact_cuts(points: Points, n_arms: int, n_classes: int, prior: Floats) -> Cuts:
    """Return the partition of these points with the least sum of interval costs plus ``prior[number of intervals]``."""
    ends = np.array([0, len(points) - 1], dtype=np.int64)
    most = min(len(points) - 1, len(prior) - 1)
    if most < 2:
        return ends
    pricing = _Pricing(points, n_arms, n_classes)
    steps = np.diff(prior[1 : most + 1])
    best, best_total = ends, pricing.total(ends) + prior[1]

    def solve(price: float) -> tuple[int, float, float]:
        nonlocal best, best_total
        cuts = pricing.cuts_at(price)
        intervals, total = len(cuts) - 1, pricing.total(cuts)
        if intervals <= most and total + prior[intervals] < best_total:
            best, best_total = cuts, total + prior[intervals]
        return intervals, total, price

    # Each end of a bracket is (I, F(I), a price at which it is cheapest): F lies above both ends' tangents.
    most_parts = solve(float(steps[-1]))
    brackets = [(solve(float(steps[0])), most_parts)] if most_parts[0] > 1 else []
    while brackets:
        few, many = brackets.pop()
        inside = np.arange(few[0] + 1, min(many[0], most + 1))
        if len(inside) == 0:
            continue
        floor = np.maximum(few[1] - few[2] * (inside - few[0]), many[1] + many[2] * (many[0] - inside))
        if np.min(floor + prior[inside]) >= best_total * (1.0 - TOLERANCE):
            continue
        price = (few[1] - many[1]) / (many[0] - few[0])
        middle = solve(price)
        if few[0] < middle[0] < many[0]:
            brackets += [(few, middle), (middle, many)]
    return best


def fast_cuts(points: Points, n_arms: int, n_classes: int, prior: Floats) -> Cuts:
    """Return a partition of these points whose cost is at or near the optimum, in time that hardly grows with them.

    1. Merge neighbours until a few hundred intervals are left: a grid that is fine where something happens.
    2. The exact search over that grid and some points that share the rows evenly.
    3. The exact search over the neighbourhoods of the cuts found, ever closer, down to single points.
    4. A search over (nearly) all points that only considers intervals of a length like the old ones.
    5. ``polish``.

    The merging of step 1, carried on to its end and polished, is the paper's search: the cheaper of the two is returned.
    """
    for size in (GRID, FINE_GRID):
        grid = thinned(points, n_arms, n_classes, size)
        backbone = np.linspace(0, len(points) - 1, size // 3).astype(np.int64)
        chosen = _union(grid, backbone)
        cuts = chosen[exact_cuts(points[chosen], n_arms, n_classes, prior)]
        if len(cuts) < size // 8:
            break
    greedy = grid[merged(points[grid], n_arms, n_classes, prior, 1)] if len(grid) <= len(prior) else grid[[0, -1]]
    reach = int(np.max(np.diff(chosen)))
    while reach > 1 and len(cuts) > 2:
        around = _around(cuts)
        reach = max(reach // around, 1)
        cuts = _search_near(points, cuts, backbone, reach, around, n_arms, n_classes, prior)
    if len(cuts) > 2:
        cuts = _search_band(points, cuts, n_arms, n_classes, prior)
    starts = [cuts] if np.array_equal(cuts, greedy) else [cuts, greedy]
    found = [polish(points, start, n_arms, n_classes, prior) for start in starts]
    return min(found, key=lambda cuts: _total(points, cuts, n_arms, n_classes, prior))


def refined_cuts(column: SortedColumn, n_arms: int, n_classes: int, prior: Floats) -> tuple[Points, Ints]:
    """Return counts and rows of the cuts that ``fast_cuts`` finds on micro-points, moved to the best places nearby.

    Around every cut all boundary points join the micro-points, and the cuts are searched and polished again, until none
    moves any more.
    """
    points, rows = column.micro_points(MICRO_BINS)
    cuts = fast_cuts(points, n_arms, n_classes, prior)
    found, places = points[cuts], rows[cuts]
    reach = min(max(REACH_ROWS * MICRO_BINS // len(column), 2), 16)
    for _ in range(REFINEMENTS):
        inner = np.searchsorted(rows, places[1:-1])
        fine, fine_rows = column.refine(points, rows, inner, reach)
        first, last = (
            np.searchsorted(fine_rows, rows[np.clip(inner + step, 0, len(rows) - 1)]) for step in (-reach, reach)
        )
        cuts = shifted(fine, np.searchsorted(fine_rows, places), first, last, n_arms, n_classes)
        cuts = polish(fine, cuts, n_arms, n_classes, prior)
        settled = np.array_equal(fine_rows[cuts], places)
        found, places = fine[cuts], fine_rows[cuts]
        if settled:
            break
    return found, places


def _around(cuts: Cuts) -> int:
    """Return how many points on either side of each cut make up a neighbourhood."""
    return max(NEAR_POINTS // (2 * len(cuts)), 6)


def _total(points: Points, cuts: Cuts, n_arms: int, n_classes: int, prior: Floats) -> float:
    return float(cuts_cost(points, cuts, n_arms, n_classes, table_for(points, n_classes)) + prior[len(cuts) - 1])


def _search_band(points: Points, cuts: Cuts, n_arms: int, n_classes: int, prior: Floats) -> Cuts:
    """Search over as many points as the budget allows, some near the cuts and the others evenly spread.

    m points and I old intervals make about m * (4 m / I) / 2 intervals to weigh.
    """
    for _ in range(BAND_PASSES):
        intervals = len(cuts) - 1
        budget = max(BAND_BUDGET, BAND_SHARE * intervals)
        most = int(np.sqrt(2 * budget * max(intervals / 4, 1)))
        stride = max((len(points) - 1) // most, 1)
        found = _search_like(
            points, cuts, np.arange(0, len(points), stride), 1, min(stride, 8), n_arms, n_classes, prior
        )
        if found is cuts:
            break
        cuts = found
    return cuts


def _search_near(
    points: Points, cuts: Cuts, others: Cuts, reach: int, around: int, n_arms: int, n_classes: int, prior: Floats
) -> Cuts:
    """Search over ``around`` points at distances of ``reach`` on either side of each cut, and the others."""
    if len(cuts) > FEW_CUTS:
        return _search_like(points, cuts, others, reach, around, n_arms, n_classes, prior)
    chosen = _neighbourhood(points, cuts, others, reach, around)
    best: Cuts = chosen[exact_cuts(points[chosen], n_arms, n_classes, prior)]
    return best


def _search_like(
    points: Points, cuts: Cuts, others: Cuts, reach: int, around: int, n_arms: int, n_classes: int, prior: Floats
) -> Cuts:
    """Search the same points, but only intervals at most as long as three old ones or so; return ``cuts`` if in vain."""
    chosen, intervals = _neighbourhood(points, cuts, others, reach, around), len(cuts) - 1
    before = np.searchsorted(cuts, chosen) - 1  # the last old cut strictly before each point
    earliest = np.searchsorted(chosen, cuts[np.maximum(before - 2, 0)])
    pricing = _Pricing(points[chosen], n_arms, n_classes, earliest)
    found = chosen[pricing.cuts_at(float(prior[min(intervals + 1, len(prior) - 1)] - prior[intervals]))]
    new, old = (_total(points, c, n_arms, n_classes, prior) for c in (found, cuts))
    return found if new < old * (1.0 - TOLERANCE) else cuts


def _neighbourhood(points: Points, cuts: Cuts, others: Cuts, reach: int, around: int) -> Cuts:
    near = cuts[1:-1, None] + np.arange(-around, around + 1) * reach
    return _union(np.clip(near, 0, len(points) - 1), others, cuts)


def _union(*indices: Cuts) -> Cuts:
    return np.unique(np.concatenate([some.ravel() for some in indices]))
