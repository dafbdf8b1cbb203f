"""Searching for the cheapest partition of one numeric feature.

Everything works on the points of ``_points``; a partition is the increasing list of the points it cuts at, both ends
included.

- ``exact_cuts``: dynamic programming, the global optimum over the points given, O(points²).
- ``fast_cuts``: the same over few, well-chosen points, again and again, and ``polish`` at the end.
- ``refined_cuts``: ``fast_cuts`` on micro-points, then all boundary points near the cuts. Work that does not grow with n.
- ``greedy_cuts``: the paper's bottom-up merging with its post-optimisation.

Why the exact search needs no table over the number of intervals I: let F(I) be the least sum of interval costs. The
prior g(I) is concave, so at the optimum I* it lies under its tangent with slope u, and F(I) + u I is least at I*,
too. So the optimum is one of the partitions that a constant price per interval can produce. ``exact_cuts`` walks
along those prices, halving brackets, and drops a bracket as soon as its tangents show that nothing better fits in.
"""

from __future__ import annotations

import numpy as np

from upturn._arrays import Floats, Ints
from upturn.features._moves import merged, polish, shifted, thinned
from upturn.features._points import Cuts, Points, SortedColumn
from upturn.kernels.umodl import TOLERANCE
from upturn.kernels.umodl_cutting import all_costs, cheapest_path

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


class _Pricing:
    """Cheapest partitions of fixed points at a given price per interval.

    ``earliest`` limits the search: an interval that ends at point k starts at ``earliest[k]`` or later.
    """

    def __init__(self, points: Points, earliest: Cuts | None = None) -> None:
        self.points = points
        m = len(points)
        stored = earliest is None and m <= STORED_POINTS
        self.costs = np.empty(m * (m - 1) // 2 if stored else 0)
        if stored:
            all_costs(*points.problem, self.costs)
        self.earliest = np.zeros(m, dtype=np.int64) if earliest is None else earliest
        self.best, self.back = np.empty(m), np.zeros(m, dtype=np.int64)

    def cuts_at(self, price: float) -> Cuts:
        cheapest_path(*self.points.problem, self.costs, self.earliest, price, self.best, self.back)
        path = [len(self.back) - 1]
        while path[-1] > 0:
            path.append(int(self.back[path[-1]]))
        return np.array(path[::-1], dtype=np.int64)


def exact_cuts(points: Points, prior: Floats) -> Cuts:
    """Return the partition of these points with the least sum of interval costs plus ``prior[number of intervals]``."""
    most = min(len(points) - 1, len(prior) - 1)
    if most < 2:
        return points.ends
    pricing = _Pricing(points)
    steps = np.diff(prior[1 : most + 1])
    best, best_total = points.ends, points.total(points.ends, prior)

    def solve(price: float) -> tuple[int, float, float]:
        nonlocal best, best_total
        cuts = pricing.cuts_at(price)
        intervals, cost = len(cuts) - 1, points.cost(cuts)
        if intervals <= most and cost + prior[intervals] < best_total:
            best, best_total = cuts, float(cost + prior[intervals])
        return intervals, cost, price

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


def greedy_cuts(points: Points, prior: Floats) -> Cuts:
    """Return the paper's solution: merge neighbours while the cost falls, best merge first, then post-optimise.

    ``points`` are all distinct values here, and ``prior`` must reach that many intervals.
    """
    return polish(points, merged(points, prior, 1), prior)


def fast_cuts(points: Points, prior: Floats) -> Cuts:
    """Return a partition of these points whose cost is at or near the optimum, in time that hardly grows with them.

    1. Merge neighbours until a few hundred intervals are left: a grid that is fine where something happens.
    2. The exact search over that grid and some points that share the rows evenly.
    3. The exact search over the neighbourhoods of the cuts found, ever closer, down to single points.
    4. A search over (nearly) all points that only considers intervals of a length like the old ones.
    5. ``polish``.

    The merging of step 1, carried on to its end and polished, is the paper's search: the cheaper of the two is returned.
    """
    for size in (GRID, FINE_GRID):
        grid = thinned(points, size)
        backbone = np.linspace(0, len(points) - 1, size // 3).astype(np.int64)
        chosen = _union(grid, backbone)
        cuts = chosen[exact_cuts(points.take(chosen), prior)]
        if len(cuts) < size // 8:
            break
    greedy = grid[merged(points.take(grid), prior, 1)] if len(grid) <= len(prior) else grid[[0, -1]]
    reach = int(np.max(np.diff(chosen)))
    while reach > 1 and len(cuts) > 2:
        around = _around(cuts)
        reach = max(reach // around, 1)
        cuts = _search_near(points, cuts, backbone, reach, around, prior)
    if len(cuts) > 2:
        cuts = _search_band(points, cuts, prior)
    starts = [cuts] if np.array_equal(cuts, greedy) else [cuts, greedy]
    found = [polish(points, start, prior) for start in starts]
    return min(found, key=lambda cuts: points.total(cuts, prior))


def refined_cuts(column: SortedColumn, prior: Floats) -> tuple[Points, Ints]:
    """Return the points and rows of the cuts that ``fast_cuts`` finds on micro-points, moved to the best places nearby.

    Around every cut all boundary points join the micro-points, and the cuts are searched and polished again, until none
    moves any more.
    """
    points, rows = column.micro_points(MICRO_BINS)
    cuts = fast_cuts(points, prior)
    found, places = points.take(cuts), rows[cuts]
    reach = min(max(REACH_ROWS * MICRO_BINS // len(column), 2), 16)
    for _ in range(REFINEMENTS):
        inner = np.searchsorted(rows, places[1:-1])
        fine, fine_rows = column.refine(points, rows, inner, reach)
        first, last = (
            np.searchsorted(fine_rows, rows[np.clip(inner + step, 0, len(rows) - 1)]) for step in (-reach, reach)
        )
        cuts = shifted(fine, np.searchsorted(fine_rows, places), first, last)
        cuts = polish(fine, cuts, prior)
        settled = np.array_equal(fine_rows[cuts], places)
        found, places = fine.take(cuts), fine_rows[cuts]
        if settled:
            break
    return found, places


def _around(cuts: Cuts) -> int:
    """Return how many points on either side of each cut make up a neighbourhood."""
    return max(NEAR_POINTS // (2 * len(cuts)), 6)


def _search_band(points: Points, cuts: Cuts, prior: Floats) -> Cuts:
    """Search over as many points as the budget allows, some near the cuts and the others evenly spread.

    m points and I old intervals make about m * (4 m / I) / 2 intervals to weigh.
    """
    for _ in range(BAND_PASSES):
        intervals = len(cuts) - 1
        budget = max(BAND_BUDGET, BAND_SHARE * intervals)
        most = int(np.sqrt(2 * budget * max(intervals / 4, 1)))
        stride = max((len(points) - 1) // most, 1)
        found = _search_like(points, cuts, np.arange(0, len(points), stride), 1, min(stride, 8), prior)
        if found is cuts:
            break
        cuts = found
    return cuts


def _search_near(points: Points, cuts: Cuts, others: Cuts, reach: int, around: int, prior: Floats) -> Cuts:
    """Search over ``around`` points at distances of ``reach`` on either side of each cut, and the others."""
    if len(cuts) > FEW_CUTS:
        return _search_like(points, cuts, others, reach, around, prior)
    chosen = _neighbourhood(points, cuts, others, reach, around)
    best: Cuts = chosen[exact_cuts(points.take(chosen), prior)]
    return best


def _search_like(points: Points, cuts: Cuts, others: Cuts, reach: int, around: int, prior: Floats) -> Cuts:
    """Search the same points, but only intervals at most as long as three old ones or so; return ``cuts`` if in vain."""
    chosen, intervals = _neighbourhood(points, cuts, others, reach, around), len(cuts) - 1
    before = np.searchsorted(cuts, chosen) - 1  # the last old cut strictly before each point
    earliest = np.searchsorted(chosen, cuts[np.maximum(before - 2, 0)])
    pricing = _Pricing(points.take(chosen), earliest)
    found = chosen[pricing.cuts_at(float(prior[min(intervals + 1, len(prior) - 1)] - prior[intervals]))]
    new, old = (points.total(c, prior) for c in (found, cuts))
    return found if new < old * (1.0 - TOLERANCE) else cuts


def _neighbourhood(points: Points, cuts: Cuts, others: Cuts, reach: int, around: int) -> Cuts:
    near = cuts[1:-1, None] + np.arange(-around, around + 1) * reach
    return _union(np.clip(near, 0, len(points) - 1), others, cuts)


def _union(*indices: Cuts) -> Cuts:
    return np.unique(np.concatenate([some.ravel() for some in indices]))
