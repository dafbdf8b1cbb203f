"""Whom to treat of a table in parts: the people whom :func:`upturn.policy.target` chooses from the whole table.

Everybody's upgrades have an order over the whole table: by slope, then by a word that is a hash of the row's id. A budget ends at one of
them, found by bisection: parts say what the upgrades down to a slope cost. Then what is left over goes to later upgrades that fit, as many
as parts name at a time. Who is treated is a function of a row's own upgrades and of that end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Arms, Bools, Floats, Indices
from upturn._parameters import SEED, VERBOSE, check
from upturn._results import number_text
from upturn._seeds import make_seed
from upturn._target import Label
from upturn.engines._ids import check_ids
from upturn.engines._kinds import engine_of
from upturn.engines._measured import read_number
from upturn.engines._numbers import Raw, read_ids, series_of
from upturn.engines._open import check_column, names_in, opened
from upturn.engines._places import Places
from upturn.engines._scan import polars, scan, steady
from upturn.kernels.hashing import TIES, words_of
from upturn.policy._gate import People, read_limit, read_others, read_plan
from upturn.policy._path import list_upgrades, rounded_up
from upturn.policy._rule import TargetingRule, break_even, prices

GATHERED = 1 << 16  # upgrades among which the driver looks for the end of the budget
_POINTS = 64  # upgrades that a part names of more
_FITTING = 1 << 12  # later upgrades that fit, named by a part at a time
_LAST = (-np.inf, 2**64 - 1)
_COST, _MONEY, _UPLIFT, _WORTH, _FIRST = range(5)

Key = tuple[float, int]  # slope, falling, then word, rising


@dataclass(frozen=True, repr=False)
class SpreadPlan:
    """Whom to treat of a table in parts. Made by :func:`target`.

    Attributes
    ----------
    table : polars.LazyFrame, or a DataFrame of Dask or Spark
        The table with a column ``recommended``, the label everybody should get, computed when it is asked for. Where an experiment was on the same people,
        :func:`expected_response` of that column measures the plan.
    rule : TargetingRule
        What the plan goes by.
    n, n_treated : int
        People in the table, and how many of them are treated.
    cost, left : float
        What the plan costs (0 without costs), and what is left of the budget (NaN without one).
    filled : int
        Upgrades beyond the cut, which fitted into what the first one that was too dear left over.
    predicted_gain, predicted_profit : float
        By the scores, summed over the people; ``predicted_profit`` is None without a value.
    marginal_gain : float
        Predicted gain per unit of cost (per person, without costs) of the next upgrade that was not made; minus infinity when there is none.
    """

    table: Any
    rule: TargetingRule
    n: int
    n_treated: int
    cost: float
    left: float
    filled: int
    predicted_gain: float
    predicted_profit: float | None
    marginal_gain: float

    def __repr__(self) -> str:
        words = f"Treat {self.n_treated:,} of {self.n:,} people ({self.n_treated / self.n:.1%})"
        if self.cost > 0:
            words += f" at a cost of {number_text(self.cost)}"
        if self.left > 0:
            words += f", {number_text(self.left)} of the budget left"
        lines = [words, f"Predicted gain: {number_text(self.predicted_gain)}"]
        if self.predicted_profit is not None:
            lines.append(f"Predicted net profit: {number_text(self.predicted_profit)}")
        return "\n".join(lines)


class Spec(NamedTuple):
    """Where scores, costs and values are: columns, or what is the same for everybody; what an upgrade must bring."""

    scores: tuple[str, ...]
    cost: tuple[str, ...] | Floats | None
    value: str | float | None
    labels: list[Label]
    row_id: str | None
    by_person: bool
    floor: float
    seed: np.uint64

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        costs = self.cost if isinstance(self.cost, tuple) else ()
        others = [name for name in (self.value, self.row_id) if isinstance(name, str)]
        return list(dict.fromkeys([*self.scores, *costs, *others]))


def target(
    table: Any,
    score: str | Sequence[str] | Mapping[Label, str],
    *,
    fraction: float | None = None,
    budget: float | None = None,
    cost: Any = None,
    value: Any = None,
    control: Label | None = None,
    arms: Sequence[Label] | None = None,
    row_id: str | None = None,
    random_state: Any = 0,
    verbose: int = 0,
) -> SpreadPlan:
    """Choose whom to treat of a table in parts, and with what: the people whom :func:`upturn.policy.target` chooses.

    Parameters
    ----------
    table : path(s), pattern, polars LazyFrame, Dask DataFrame or Spark DataFrame
        People with their scores, such as :func:`predict` adds. It is read more than once and must not change meanwhile.
    score : str, list of str, or mapping from label to str
        Column of predicted uplift, or one for every arm.
    fraction, budget
        Share of people, or money to spend when there are costs, else people to treat; see :func:`upturn.policy.target`.
    cost : number, list, mapping, str or list of str, optional
        What treatment costs: a number, one per arm, or columns of the table, one per arm.
    value : number or str, optional
        What a unit of the outcome is worth, or the column of what it is worth for everybody.
    control, arms : label, list of labels, optional
        Labels of control and of the columns of scores.
    row_id : str, optional
        A column with a whole number for each row, no two the same, by which people who tie at the cut are told apart. Rows of files are
        numbered by their place; on Dask and Spark it is needed where people tie, and an error says so.
    random_state : int, RandomState, Generator or None
        Seed of the order in which people with equal predictions are chosen.
    verbose : int
        Above 0, progress bars show how far parts of files are read, and count passes over the table.

    Returns
    -------
    SpreadPlan
        Its ``table`` has the label everybody should get.

    Examples
    --------
    >>> import polars as pl
    >>> from upturn import engines
    >>> plan = engines.target(pl.LazyFrame({"uplift": [0.05, -0.01, 0.20, 0.02]}), "uplift", fraction=0.5)
    >>> plan.table.collect()["recommended"].to_list(), plan.n_treated
    ([1, 0, 1, 0], 2)
    """
    check("random_state", random_state, SEED)
    check("verbose", verbose, VERBOSE)
    spec = _read_spec(table, score, cost, value, control, arms, row_id, fraction, make_seed(random_state))
    with opened(table, spec.columns, verbose) as places:
        sizes = places.ask(_count)
        n = sum(sizes)
        if not n:
            raise ValueError("the table has no rows: expected one row per person")
        limit = read_limit(fraction, budget, n, spec.by_person)
        offers = places.change(partial(_offers, spec, np.cumsum([0, *sizes]).tolist()))
        if row_id is not None:
            check_ids(offers, n, row_id)
        end = _find_end(offers, limit)
    by_id = end.tied or bool(end.filled)
    if by_id and row_id is None and (engine_of(table) is not None or not steady(scan(table))):
        raise ValueError(
            f"{'people tie at the cut' if end.tied else 'what is left of the budget goes to single people'}, so who is treated depends on what rows are "
            "called: pass row_id=, a column with a whole number for each row, no two the same"
        )
    who = partial(_assigned, spec, end, by_id)
    slope = end.key[0] if end.key is not None else np.inf
    with_value, one_value = spec.value is not None, spec.value if isinstance(spec.value, float) else None
    rule = TargetingRule(
        spec.labels, slope, spec.floor, spec.by_person, spec.cost is not None, with_value, one_value, end.tied
    )
    money = float(end.sums[_MONEY])
    return SpreadPlan(
        table=_labelled(table, who, spec, by_id),
        rule=rule,
        n=n,
        n_treated=round(float(end.sums[_FIRST])),
        cost=money,
        left=max(0.0, limit - float(end.sums[_COST])) if limit is not None and fraction is None else np.nan,
        filled=len(end.filled),
        predicted_gain=float(end.sums[_UPLIFT]),
        predicted_profit=float(end.sums[_WORTH]) - money if with_value else None,
        marginal_gain=end.following,
    )


def _read_spec(
    table: Any, score: Any, cost: Any, value: Any, control: Any, arms: Any, row_id: Any, fraction: Any, seed: np.uint64
) -> Spec:
    columns = names_in(table)
    if isinstance(score, Mapping):
        if arms is not None and list(arms) != list(score):
            raise ValueError(f"score names the arms {list(score)!r} and arms= {arms!r}: leave arms= out")
        arms, score = list(score), list(score.values())
    scores = tuple(score) if isinstance(score, list | tuple) and score else (score,)
    costs = cost if isinstance(cost, list | tuple) else (cost,)
    by_column = bool(costs) and all(isinstance(name, str) for name in costs)
    named = [*((name, "score") for name in scores), *((name, "cost") for name in costs if by_column)]
    named += [(name, role) for name, role in ((value, "value"), (row_id, "row_id")) if isinstance(name, str)]
    for name, role in named:
        check_column(name, columns, role)
    if row_id is not None:
        check_column(row_id, columns, "row_id")
    if by_column and len(costs) != len(scores):
        raise ValueError(
            f"cost={cost!r} names {len(costs)} column(s) and score {len(scores)}: expected one for each arm"
        )
    # A few people who stand for all: their labels, costs and value are read where those of a table in memory are.
    few = np.zeros((len(scores) + 1, len(scores)))
    own_cost, own_value = (None if by_column else cost), (None if isinstance(value, str) else value)
    people, _ = read_plan(
        few, cost=own_cost, value=own_value, y=None, treatment=None, sample_weight=None, control=control, arms=arms
    )
    if isinstance(people.value, np.ndarray):
        raise ValueError(f"value={value!r}: expected a number, or the name of a column")
    price = tuple(costs) if by_column else None if people.cost is None else people.cost[0]
    worth: Any = value if isinstance(value, str) else people.value
    by_person = price is None or fraction is not None
    standing = People(few, people.labels, None if price is None else few, None if worth is None else 1.0)
    floor = break_even(standing, by_person) if fraction is None else -np.inf
    return Spec(scores, price, worth, people.labels, row_id, by_person, floor, seed)


# ------------------------------------------------------------------------------------------- what a part answers


class Offers(NamedTuple):
    """Upgrades of a part's people in their order: ``worth`` has what each uses up, costs, gains, is worth, and whether it is a person's first."""

    slope: Floats
    word: NDArray[np.uint64]
    worth: Floats  # (offers, 5)
    row: Indices
    before: Arms
    after: Arms
    previous: Indices  # the place of the same person's upgrade before, -1 if there is none
    ids: NDArray[np.uint64]  # of people


def _count(raw: Raw) -> int:
    return len(nw.from_native(raw.frame, eager_only=True))


def _people(spec: Spec, raw: Raw) -> People:
    n = _count(raw)
    uplift = np.column_stack([read_number(raw, name) for name in spec.scores])
    cost = spec.cost
    if isinstance(cost, tuple):
        cost = np.column_stack([read_number(raw, name) for name in cost])
    elif cost is not None:
        cost = np.tile(cost, (n, 1))
    value = read_number(raw, spec.value) if isinstance(spec.value, str) else spec.value
    return read_others(uplift, cost, value, spec.labels)


def _offers(spec: Spec, firsts: list[int], raw: Raw) -> Offers:
    n = _count(raw)
    if not n:
        nothing, places, codes = np.empty(0), np.empty(0, np.intp), np.empty(0, np.uint8)
        words = np.empty(0, np.uint64)
        return Offers(nothing, words, np.empty((0, 5)), places, codes, codes, places, words)
    if spec.row_id is None:
        ids = np.arange(firsts[raw.number], firsts[raw.number] + n, dtype=np.uint64)
    else:
        ids = read_ids(series_of(raw, spec.row_id), spec.row_id)
    return offers_of(spec, _people(spec, raw), ids)


def offers_of(spec: Spec, people: People, ids: NDArray[np.uint64]) -> Offers:
    """The upgrades of some people in the order of the whole table."""
    row, before, after, slope, cost, _ = list_upgrades(*prices(people, spec.by_person), spec.floor)
    word = np.empty(len(people), np.uint64)
    words_of(spec.seed, TIES, np.uint64(0), ids, word)
    rows, new, old = row.astype(np.intp), after.astype(np.intp), before.astype(np.intp)

    def more(matrix: Floats) -> Floats:
        padded = np.column_stack([np.zeros(len(people)), matrix])
        return np.asarray(padded[rows, new] - padded[rows, old])

    money = np.zeros(len(row)) if people.cost is None else more(people.cost)
    worth = np.column_stack([cost, money, more(people.uplift), more(people.worth), before == 0])
    previous = np.where(before > 0, np.arange(len(row)) - 1, -1)  # a person's upgrades are listed one after the other
    order = np.lexsort((word[rows], -slope))
    place = np.empty(len(order) + 1, np.intp)
    place[order], place[-1] = np.arange(len(order)), -1
    return Offers(
        slope[order],
        word[rows][order],
        worth[order],
        rows[order],
        before[order],
        after[order],
        place[previous[order]],
        ids,
    )


def _down_to(offers: Offers, key: Key | None) -> int:
    """How many upgrades are at or before a key; none for None."""
    if key is None:
        return 0
    rising = -offers.slope
    low, high = np.searchsorted(rising, -key[0], "left"), np.searchsorted(rising, -key[0], "right")
    return int(low + np.searchsorted(offers.word[low:high], np.uint64(key[1]), "right"))


class Window(NamedTuple):
    """Upgrades after a key and down to another: how many, some of their keys, and all of them if they are few."""

    size: int
    points: list[Key]
    keys: list[Key] | None
    worth: Floats


def _window(after: Key | None, until: Key, offers: Offers) -> Window:
    start, stop = _down_to(offers, after), _down_to(offers, until)
    some = np.linspace(start, stop - 1, min(stop - start, _POINTS)).astype(np.intp)
    few = stop - start <= GATHERED
    keys = _keys(offers, np.arange(start, stop)) if few else None
    return Window(stop - start, _keys(offers, some), keys, offers.worth[start:stop] if few else np.empty((0, 5)))


def _keys(offers: Offers, at: Indices) -> list[Key]:
    return list(zip(offers.slope[at].tolist(), offers.word[at].tolist(), strict=True))


def _merge_windows(parts: Sequence[Window]) -> Window:
    size = sum(part.size for part in parts)
    points = sorted({key for part in parts for key in part.points}, key=_order)
    if size > GATHERED or any(part.keys is None for part in parts):
        return Window(size, points, None, np.empty((0, 5)))
    keys = [key for part in parts for key in part.keys or ()]
    worth = np.concatenate([part.worth for part in parts])
    order = sorted(range(len(keys)), key=lambda i: _order(keys[i]))
    return Window(size, points, [keys[i] for i in order], worth[order])


def _order(key: Key) -> Key:
    return -key[0], key[1]


def _sums(key: Key | None, offers: Offers) -> Floats:
    return np.asarray(offers.worth[: _down_to(offers, key)].sum(axis=0))


def _add(arrays: Sequence[Any]) -> Any:
    return np.sum(arrays, axis=0)


def _next(key: Key | None, offers: Offers) -> float:
    at = _down_to(offers, key)
    return float(offers.slope[at]) if at < len(offers.slope) else -np.inf


def _least(offers: Offers) -> float:
    return float(offers.slope[-1]) if len(offers.slope) else np.inf


class Fit(NamedTuple):
    """A later upgrade that fits: its key, person, arms, what it brings, and whether the person has come as far at the cut."""

    key: Key
    person: int
    before: int
    after: int
    worth: tuple[float, ...]
    ready: bool


def _fitting(cut: Key | None, key: Key | None, left: float, offers: Offers) -> tuple[list[Fit], Key | None]:
    """The next upgrades after a key that fit, and the last of them where there are more."""
    stop, start = _down_to(offers, cut), _down_to(offers, key)
    found = start + np.flatnonzero(offers.worth[start:, _COST] <= left)
    some = found[:_FITTING]
    fits = [
        Fit(at, person, before, after, tuple(worth), ready)
        for at, person, before, after, worth, ready in zip(
            _keys(offers, some),
            offers.ids[offers.row[some]].tolist(),
            offers.before[some].tolist(),
            offers.after[some].tolist(),
            offers.worth[some].tolist(),
            (offers.previous[some] < stop).tolist(),
            strict=True,
        )
    ]
    return fits, fits[-1].key if len(found) > _FITTING else None


# ------------------------------------------------------------------------------------------- what the driver does


class End(NamedTuple):
    """Where a plan ends: the last upgrade from the top, later ones by person, sums of all, the slope of the next one, whether that ties."""

    key: Key | None
    filled: dict[int, int]
    sums: Floats
    following: float
    tied: bool


def _find_end(offers: Places, limit: float | None) -> End:
    if limit is None:
        least = min(offers.ask(_least))
        end = (least, _LAST[1]) if least < np.inf else None
        return End(end, {}, offers.ask(partial(_sums, end), _add), -np.inf, tied=False)
    most, after, until = rounded_up(limit), None, _LAST
    base = np.zeros(5)
    while True:
        window: Window = offers.ask(partial(_window, after, until), _merge_windows)
        if window.keys is not None:
            break
        middle = window.points[(len(window.points) - 1) // 2]
        sums = offers.ask(partial(_sums, middle), _add)
        if sums[_COST] <= most:
            after, base = middle, sums
        else:
            until = middle
    stop = int(np.searchsorted(base[_COST] + np.cumsum(window.worth[:, _COST]), most, side="right"))
    cut = window.keys[stop - 1] if stop else after
    sums = base + window.worth[:stop].sum(axis=0)
    following = max(offers.ask(partial(_next, cut)))
    filled, more = _fill(offers, cut, most - float(sums[_COST])) if following > -np.inf else ({}, np.zeros(5))
    return End(cut, filled, sums + more, following, tied=cut is not None and following == cut[0])


def _fill(offers: Places, cut: Key | None, left: float) -> tuple[dict[int, int], Floats]:
    """Later upgrades that fit into what is left, in their order (see ``kernels.budget.fill``): the arm of each person, and sums."""
    taken: dict[int, int] = {}
    sums, key = np.zeros(5), cut
    while left >= 0.0:
        parts = offers.ask(partial(_fitting, cut, key, left))
        ends = [last for _, last in parts if last is not None]
        until = min(ends, key=_order) if ends else None
        fits = sorted((fit for some, _ in parts for fit in some), key=lambda fit: _order(fit.key))
        for fit in fits:
            if until is not None and _order(fit.key) > _order(until):
                break
            reached = fit.ready if fit.person not in taken else taken[fit.person] == fit.before
            if fit.worth[_COST] <= left and reached:
                taken[fit.person] = fit.after
                sums += fit.worth
                left -= fit.worth[_COST]
        if until is None:
            break
        key = until
    return taken, sums


# ------------------------------------------------------------------------------------------- the list


def _assigned(spec: Spec, end: End, by_id: bool, raw: Raw, ids: NDArray[np.uint64] | None) -> Arms:
    """The arm of everybody in a part."""
    n = _count(raw)
    arm = np.zeros(n, np.uint8)
    if not n or (end.key is None and not end.filled):
        return arm
    offers = offers_of(spec, _people(spec, raw), np.zeros(n, np.uint64) if ids is None else ids)
    key = end.key if by_id or end.key is None else (end.key[0], 2**64 - 1)  # nobody ties: the slope says it all
    stop = _down_to(offers, key)
    arm[offers.row[:stop]] = offers.after[:stop]
    if end.filled and ids is not None:
        known: Bools = np.isin(ids, np.array(list(end.filled), np.uint64))
        arm[known] = [end.filled[person] for person in ids[known].tolist()]
    return arm


def _labels_of(labels: list[Label], arm: Arms) -> list[Any]:
    kind = _kind(labels)
    table = [kind(label) for label in labels]
    return [table[code] for code in arm.tolist()]


def _kind(labels: list[Label]) -> Any:
    """The type of a column of labels: text where they are of several kinds."""
    for kind in (bool, int, float):
        if all(type(label) is kind for label in labels):
            return kind
    return str


def _labelled(table: Any, who: Any, spec: Spec, by_id: bool) -> Any:
    """The table with the label of everybody."""
    taken = names_in(table)
    if "recommended" in taken:
        raise ValueError("the table has a column 'recommended' already, where labels would go: rename it")
    spread, labels, row_id = engine_of(table), spec.labels, spec.row_id if by_id else None
    if spread is not None:
        return spread.add_column(table, "recommended", partial(_make_labels, who, labels, row_id), _kind(labels))
    library, frame = polars(), scan(table)
    position = next(name for name in ("row", "row_", "_upturn_row_") if name not in taken)
    numbered = frame.with_row_index(position)
    kind = {bool: library.Boolean, int: library.Int64, float: library.Float64, str: library.String}[_kind(labels)]

    def labelled(part: Any) -> Any:
        ids = part[position].to_numpy().astype(np.uint64) if spec.row_id is None else None
        made = _make_labels(who, labels, spec.row_id, part, ids)
        return part.drop(position).with_columns(library.Series("recommended", made, dtype=kind))

    schema = {**frame.collect_schema(), "recommended": kind}
    return numbered.map_batches(labelled, projection_pushdown=False, streamable=True, schema=schema)


def _make_labels(
    who: Any, labels: list[Label], row_id: str | None, part: Any, ids: NDArray[np.uint64] | None = None
) -> list[Any]:
    """The labels of a part's people."""
    raw = Raw(0, part)
    if row_id is not None and _count(raw):
        ids = read_ids(series_of(raw, row_id), row_id)
    return _labels_of(labels, who(raw, ids))
