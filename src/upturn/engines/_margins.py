"""Margin problems whose rows lie in several places: what ``MarginData`` is for rows in one.

Solvers ask rows for sums and tell them where to go. Parts hold the same objects that hold rows in memory (``svm._rows``), and answer for their own
rows; sums add up, and the shortest of their longest steps is that of all. Where a part stands follows from what it was told since the start, so every question brings
that along: a part that has lost its place goes there again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal
from uuid import uuid4

import numpy as np

from upturn._arrays import Floats, Ints
from upturn.engines._places import Places, Weighed
from upturn.svm._problem import MarginData, by_label, into_box, shrunk
from upturn.svm._rows import BarrierRows, HingeRows, PowerRows, RowSums
from upturn.svm._solve import one_thread

_Call = tuple[str, tuple[Any, ...]]
MOST_EDGES = 1 << 16  # different edges that come to the driver
_CELLS = 1 << 12  # of a range of edges, each with the sum of its costs


@dataclass
class Margins(Weighed):
    """A part's encoded rows, their labels and prices, and their weights; ``kept`` can be found out again, and is left out when a part travels."""

    X: Floats
    z: Floats
    price: Floats
    weight: Floats
    kept: dict[str, Any] = field(default_factory=dict)
    keeps: bool = True  # whether a point that follows from w alone is kept

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "kept": {}}

    def data(self, prices: Floats) -> MarginData:
        """The rows of a problem; ``prices`` of the labels -1 and +1 at each hyperplane multiply those of rows."""
        return MarginData(self.X, self.z, np.where(self.z > 0.0, prices[:, 1:], prices[:, :1]) * self.price)

    def stored(self, empty: Callable[..., Any]) -> Margins:
        """The same part with its rows in arrays that ``empty`` makes."""
        found = {}
        for name in ("X", "z", "price", "weight"):
            mine = getattr(self, name)
            found[name] = empty(mine.shape, mine.dtype)
            found[name][...] = mine
        return replace(self, **found, keeps=False)


# ------------------------------------------------------------------------------------------- what a part answers


@dataclass(frozen=True)
class Journey:
    """What a part was told since the start: of what kind its rows are, and the calls one after the other.

    What the last one gives is the answer, unless there is a ``question``, which leaves rows as they are.
    """

    token: str
    prices: Floats
    kind: type
    how: tuple[Any, ...]
    calls: tuple[_Call, ...] = ()
    question: _Call | None = None

    def __call__(self, part: Margins) -> Any:
        rows, last = self.walk(part)
        return last if self.question is None else getattr(rows, self.question[0])(*self.question[1])

    def walk(self, part: Margins) -> tuple[Any, Any]:
        """The rows where they are now, and what the last call gave."""
        with one_thread():
            token, rows, done, last = part.kept.get("journey", ("", None, 0, None))
            if token != self.token or done > len(self.calls):
                rows, done, last = self.kind(part.data(self.prices), *self.how), 0, None
                part.kept.clear()
            for number, (name, arguments) in enumerate(self.calls[done:], done + 1):
                rows.summing = number == len(self.calls) and self.question is None
                last = copy.deepcopy(getattr(rows, name)(*arguments))  # of which rows may make use again
            if part.keeps or self.kind is not PowerRows:
                part.kept["journey"] = self.token, rows, len(self.calls), last
        return rows, last


@dataclass(frozen=True)
class Multipliers:
    """Multipliers that stay with the rows: where they are found, the sums of both labels by which they are shrunk, and the exponent."""

    journey: Journey
    name: str
    power: float = 1.0
    sides: tuple[Floats, Floats] | None = None

    def of(self, part: Margins) -> tuple[MarginData, Floats]:
        """A part's rows and their multipliers, inside the box."""
        data = part.data(self.journey.prices)
        alpha = into_box(getattr(self.journey.walk(part)[0], self.name), data.cost, self.power)
        return data, alpha if self.sides is None else shrunk(alpha, data.z, *self.sides)


def _sides(alpha: Multipliers, part: Margins) -> tuple[Floats, Floats]:
    data, own = alpha.of(part)
    return by_label(own, data.z)


def _dual_sums(alpha: Multipliers, part: Margins) -> tuple[Floats, float, float]:
    data, own = alpha.of(part)
    return data.dual_sums(own, alpha.power)


def _costs(prices: Floats, part: Margins) -> tuple[Floats, Floats]:
    return part.data(prices).costs()


def _loss(prices: Floats, power: float, w: Floats, b: Floats, part: Margins) -> float:
    data = part.data(prices)
    return data.loss(power, data.scores(w), b)


def _start_of_barrier(prices: Floats, power: float, part: Margins) -> float:
    return BarrierRows(part.data(prices), power).comp


def _edges(w: Floats, part: Margins) -> Floats:
    """Where the slope of the loss in an intercept changes."""
    return part.X @ w - part.z if np.any(w) else -part.z


def _edge_ends(w: Floats, part: Margins) -> tuple[float, float]:
    edges = _edges(w, part)
    return float(edges.min(initial=np.inf)), float(edges.max(initial=-np.inf))


def _edge_costs(
    prices: Floats, w: Floats, k: int, low: float, high: float, part: Margins
) -> tuple[Floats, Floats] | None:
    """Different edges between two, and the cost of each; None if there are too many."""
    edges, cost = _edges(w, part), part.data(prices).cost[k]
    inside = (edges >= low) & (edges <= high)
    return _distinct(edges[inside], cost[inside])


def _distinct(edges: Floats, cost: Floats) -> tuple[Floats, Floats] | None:
    found, which = np.unique(edges, return_inverse=True)
    return None if len(found) > MOST_EDGES else (found, np.bincount(which, cost, len(found)).astype(np.float64))


def _merge_edges(parts: Sequence[tuple[Floats, Floats] | None]) -> tuple[Floats, Floats] | None:
    some = [part for part in parts if part is not None]
    if len(some) < len(parts):
        return None
    edges, costs = (np.concatenate(column) for column in zip(*some, strict=True))
    return _distinct(edges, costs)


def _edge_cells(prices: Floats, w: Floats, k: int, cuts: Floats, part: Margins) -> Floats:
    """The cost of the edges up to each cut and above the one before; those up to the first, and above the last, are at the ends."""
    at: Ints = np.searchsorted(cuts, _edges(w, part))
    return np.bincount(at, part.data(prices).cost[k], len(cuts) + 1).astype(np.float64)


# ------------------------------------------------------------------------------------------- how answers are put together


def add(parts: Sequence[Any]) -> Any:
    """Sums of numbers, arrays, tuples of them, and ``RowSums``."""
    first = parts[0]
    if isinstance(first, RowSums):
        return RowSums(*(add([getattr(one, f.name) for one in parts]) for f in fields(RowSums)))
    if isinstance(first, tuple):
        return tuple(add(column) for column in zip(*parts, strict=True))
    return first + 0.0 if len(parts) == 1 else sum(parts[1:], first)


def _shortest(parts: Sequence[float]) -> float:
    return min(parts)


def _shortest_and_sum(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return min(one for one, _ in parts), sum(two for _, two in parts)


def _widest(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return min(low for low, _ in parts), max(high for _, high in parts)


# ------------------------------------------------------------------------------------------- what solvers see


class _FarRows:
    """Rows that are moved from here (see ``svm._rows``)."""

    def __init__(self, data: FarData, kind: type, how: tuple[Any, ...]) -> None:
        self._places, self.n_columns, self.n_planes = data.places, data.n_columns, data.n_planes
        self.n_margins = data.n_rows * data.n_planes
        self._journey = Journey(uuid4().hex, data.prices, kind, how)

    def _tell(self, name: str, *arguments: Any) -> None:
        """Something that is done when the next question is asked."""
        kept = tuple(one.copy() if isinstance(one, np.ndarray) else one for one in arguments)
        self._journey = replace(self._journey, calls=(*self._journey.calls, (name, kept)))

    def _ask(self, merge: Callable[[Any], Any], name: str, *arguments: Any) -> Any:
        self._tell(name, *arguments)
        return self._places.ask(self._journey, merge)

    @property
    def kept(self) -> Multipliers:
        """The multipliers remembered."""
        return Multipliers(self._journey, "kept")

    def keep(self) -> None:
        """Remember the multipliers."""
        self._tell("keep")


class FarHinge(_FarRows):
    """``HingeRows``."""

    def system(self, b: Floats) -> RowSums:
        """Sums at the present point."""
        found: RowSums = self._ask(add, "system", b)
        return found

    def predict(self, dw: Floats, db: Floats) -> tuple[float, float]:
        """Longest step of the predictor, and the square term of the complementarity along it."""
        found: tuple[float, float] = self._ask(_shortest_and_sum, "predict", dw, db)
        return found

    def correct(self, target: float) -> tuple[Floats, Floats]:
        """Right-hand side of w and of b, centred on ``target``."""
        found: tuple[Floats, Floats] = self._ask(add, "correct", target)
        return found

    def direct(self, dw: Floats, db: Floats) -> float:
        """Longest step of the corrector."""
        return float(self._ask(_shortest, "direct", dw, db))

    def step(self, length: float) -> None:
        """Go ``length`` along the corrector's direction."""
        self._tell("step", length)


class FarBarrier(_FarRows):
    """``BarrierRows``."""

    def __init__(self, data: FarData, kind: type, how: tuple[Any, ...]) -> None:
        super().__init__(data, kind, how)
        self.comp = float(self._places.ask(partial(_start_of_barrier, data.prices, *how), add))

    def system(self, b: Floats, target: float) -> RowSums:
        """Sums at the present point, centred on alpha s = ``target``."""
        found: RowSums = self._ask(add, "system", b, target)
        return found

    def direct(self, dw: Floats, db: Floats) -> float:
        """Longest step."""
        return float(self._ask(_shortest, "direct", dw, db))

    def step(self, length: float) -> float:
        """Go ``length`` along the direction; returns Σ alpha s."""
        return float(self._ask(add, "step", length))


class FarPower(_FarRows):
    """``PowerRows``: a point is w alone, so a journey begins anew at each."""

    def __init__(self, data: FarData, kind: type, how: tuple[Any, ...]) -> None:
        super().__init__(data, kind, how)
        self._dw: Floats = np.zeros(data.n_columns)
        self._seen = self._journey

    def system(self, b: Floats) -> RowSums:
        """Sums at the present point."""
        found: RowSums = self._ask(add, "system", b)
        self._seen = self._journey
        return found

    def direct(self, dw: Floats) -> None:
        """Turn to a direction."""
        self._dw = dw.copy()
        self._tell("direct", dw)

    def along(self, length: float, b: Floats, db: Floats) -> tuple[float, float]:
        """Slope and curvature of the loss at ``length`` along the direction."""
        question = "along", (length, b.copy(), db.copy())
        found: tuple[float, float] = self._places.ask(replace(self._journey, question=question), add)
        return found

    def step(self, length: float) -> None:
        """Go there."""
        *how, w = self._journey.how
        self._journey = replace(
            self._journey, token=uuid4().hex, how=(*how, w + length * self._dw), calls=()
        )  # fmt: skip

    @property
    def alpha(self) -> Multipliers:
        """The multipliers where sums were last asked for."""
        return Multipliers(self._seen, "alpha")


_KINDS: dict[Any, Any] = {HingeRows: FarHinge, BarrierRows: FarBarrier, PowerRows: FarPower}


@dataclass
class FarData:
    """The rows of a margin problem wherever they lie (see ``MarginData``); a score is known by its w, multipliers by where they are found."""

    places: Places
    n_rows: int
    n_columns: int
    prices: Floats  # (K, 2): of the labels -1 and +1

    @property
    def n_planes(self) -> int:
        """Hyperplanes."""
        return len(self.prices)

    def rows(self, kind: Any, *how: Any) -> Any:
        """The rows as a solver moves them."""
        return _KINDS[kind](self, kind, how)

    def label(self) -> float | None:
        """The label that all rows have, 1 if there is no row; None if they differ."""
        up, down = self.costs()
        return None if up[0] > 0.0 and down[0] > 0.0 else -1.0 if down[0] > 0.0 else 1.0

    def zeros(self) -> None:
        """Multipliers that are 0, which nobody asks for."""
        return

    def costs(self) -> tuple[Floats, Floats]:
        """The cost of all rows with the label +1, and of those with -1, at each hyperplane."""
        found: tuple[Floats, Floats] = self.places.ask(partial(_costs, self.prices), add)
        return found

    def scores(self, w: Floats) -> Floats:
        """What scores are known by."""
        return w

    def loss(self, power: float, scores: Floats, b: Floats) -> float:
        """What slacks cost."""
        return float(self.places.ask(partial(_loss, self.prices, power, scores, b), add))

    def intervals(self, scores: Floats, b: Floats) -> tuple[Floats, Floats]:
        """The ends of the intervals of best intercepts: weighted quantiles of the edges, of which those around come here."""
        low, high = b.copy(), b.copy()
        ups, downs = self.costs()
        ends = self.places.ask(partial(_edge_ends, scores), _widest)
        for k, (up, down) in enumerate(zip(ups.tolist(), downs.tolist(), strict=True)):
            slack = 1e-11 * (up + down)
            if down <= slack:
                low[k], high[k] = -np.inf, ends[0]
            elif up <= slack:
                low[k], high[k] = ends[1], np.inf
            else:
                low[k] = self._edge(scores, k, down - slack, "left", *ends)
                high[k] = self._edge(scores, k, down + slack, "right", *ends)
        return low, high

    def _edge(self, w: Floats, k: int, cost: float, side: Literal["left", "right"], low: float, high: float) -> float:
        """The first edge up to which edges cost as much, or (``"right"``) more; it lies between two, which close in on it."""
        below = 0.0
        while True:
            few = self.places.ask(partial(_edge_costs, self.prices, w, k, low, high), _merge_edges)
            if few is not None:
                at = int(np.cumsum(few[1]).searchsorted(cost - below, side=side))
                return float(few[0][min(at, len(few[0]) - 1)])
            cuts = np.linspace(low, high, _CELLS + 1)
            cells: Floats = self.places.ask(partial(_edge_cells, self.prices, w, k, cuts), add)
            until = np.cumsum(cells[:-1])  # what all edges up to each cut cost
            at = min(int(until.searchsorted(cost, side=side)), _CELLS)
            high = float(cuts[at])
            if at:
                low, below = float(np.nextafter(cuts[at - 1], np.inf)), float(until[at - 1])

    def feasible(self, alpha: Multipliers, power: float, intercept: bool) -> Multipliers:
        """The multipliers moved into the box and onto Σ z alpha_k = 0, by shrinking the heavier side."""
        assert intercept, "a problem without intercepts is solved in one place"
        alpha = replace(alpha, power=power)
        return replace(alpha, sides=self.places.ask(partial(_sides, alpha), add))

    def dual_sums(self, alpha: Multipliers, power: float) -> tuple[Floats, float, float]:
        """Σ z alpha x, Σ alpha, and for p > 1 Σ alpha (alpha / p cost)^(1 / (p - 1))."""
        assert power == alpha.power
        found: tuple[Floats, float, float] = self.places.ask(partial(_dual_sums, alpha), add)
        return found
