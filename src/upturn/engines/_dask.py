"""Rows in the partitions of a Dask DataFrame, on threads, processes or a cluster: whatever Dask computes with.

States are persisted delayed values. Dask knows how each was made, so those of a worker that dies are made again from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from weakref import WeakSet

import numpy as np

from upturn._parallel import count_threads
from upturn.engines._bases import copied, to_local
from upturn.engines._numbers import Raw
from upturn.engines._places import AnyOrder, Merge, answer, first_that, merged, nothing, told, unread

NAME = "dask"
_WIDE = 8  # answers merged at a time
_ROOM = 4  # times a copy of all rows that a worker must be allowed to hold
_PATIENCE = 1.0  # seconds between two looks for workers that are gone
_PIECES = 64  # at most as many pieces that another library learns from


class DaskPlaces:
    """States that Dask keeps (see ``Places``), until they are forgotten: then it makes them, as ``make`` says, whenever they are asked."""

    ROUND = 10**8  # rows, times trees, that a worker grows on its copy before it tells and is heard

    def __init__(self, make: Callable[[], list[Any]], states: Sequence[Any], opened: WeakSet[DaskPlaces]) -> None:
        self._make, self._opened = make, opened
        self._kept: list[Any] | None = list(states)
        opened.add(self)

    @property
    def _states(self) -> list[Any]:
        return self._make() if self._kept is None else self._kept

    def forget(self) -> None:
        """Keep the states no longer; a cluster still knows how to make them for those that were made of them."""
        self._kept = None

    def ask(self, question: Callable[[Any], Any], merge: Merge | None = None) -> Any:
        """See ``Places``."""
        import dask

        once = dask.delayed(question, traverse=False)
        answers = [dask.delayed(answer)(once, state, place) for place, state in enumerate(self._states)]
        if merge is None:
            return told(list(self._computed(answers)))
        put_together = dask.delayed(partial(merged, merge), traverse=False)

        def together(some: list[Any]) -> Any:
            while len(some) > _WIDE:
                some = [put_together(some[i : i + _WIDE]) for i in range(0, len(some), _WIDE)]
            return put_together(some)

        groups = self._by_worker() if isinstance(merge, AnyOrder) else []
        if len(groups) > 1:
            answers = [together([answers[place] for place in group]) for group in groups]
        (result,) = self._computed([together(answers)])
        return told(result)

    def _computed(self, values: Sequence[Any]) -> Any:
        """Values that follow from the states; an error names the state that Dask could not make."""
        import dask

        try:
            return dask.compute(*values)
        except Exception as error:
            raise unread("Dask", error, self._erred()) from None

    def _erred(self) -> int | None:
        """The first place that a cluster could not compute."""
        try:
            from distributed import futures_of
        except ImportError:
            return None
        erred = (any(future.status == "error" for future in futures_of(state)) for state in self._states)
        return next((place for place, found in enumerate(erred) if found), None)

    def _by_worker(self) -> list[list[int]]:
        """Places by the worker that has them, so that answers are merged before they travel; nothing if that is not known."""
        try:
            from distributed import futures_of, get_client

            held = get_client().who_has(futures_of(self._states))
        except (ImportError, ValueError):  # no cluster
            return []
        groups: dict[Any, list[int]] = {}
        for place, state in enumerate(self._states):
            groups.setdefault(next(iter(held.get(state.key, ())), None), []).append(place)
        return list(groups.values())

    def change(self, step: Callable[[Any], Any]) -> DaskPlaces:
        """See ``Places``."""
        import dask

        once = dask.delayed(step, traverse=False)

        def made(states: list[Any]) -> list[Any]:
            return [dask.delayed(answer)(once, state, place) for place, state in enumerate(states)]

        before = self._make
        return DaskPlaces(lambda: made(before()), _kept(made(self._states)), self._opened)

    def copies(self, n_bytes: int) -> list[int]:
        """Threads of every process that may hold so many bytes more: of the workers, or of this process where there is no cluster."""
        import dask

        try:
            from distributed import get_client

            client = get_client()
        except (ImportError, ValueError):
            here = dask.base.get_scheduler() in (None, dask.threaded.get)
            return [count_threads(-1)] if here else []
        limits = [one.get("memory_limit") or np.inf for one in client.scheduler_info()["workers"].values()]
        return list(client.nthreads().values()) if limits and _ROOM * n_bytes <= min(limits) else []

    def together(self, take: Callable[[Any], Any], join: Callable[[int, list[Any]], Any], n: int) -> DaskPlaces:
        """Places with what is joined of what is taken of all states: in each of ``n`` processes, which are told their number."""
        import dask

        taking = dask.delayed(take, traverse=False)
        joining = dask.delayed(partial(_join_all, join), traverse=False)

        def taken() -> list[Any]:
            return [dask.delayed(answer)(taking, state, place) for place, state in enumerate(self._states)]

        def joined(taken: list[Any]) -> list[Any]:
            return [joining(k, taken) for k in range(n)]

        held = _kept(taken())  # what is bound to a worker would bind all that is made on the way to it
        kept = _spread(joined(held))
        return DaskPlaces(lambda: joined(taken()), kept or _kept(joined(taken())), self._opened)

    def train(self, estimator: Any, read: Callable[[Any], Any], *, weighted: bool, classify: bool, seed: int) -> Any:
        """A base of LightGBM or XGBoost, fitted to the rows that ``read`` finds in the states, as a model of this process."""
        import dask
        import dask.array as da

        shapes: list[tuple[int, int, frozenset[float]]] = self.ask(partial(_shape, read, classify))
        once = dask.delayed(partial(_joined, read), traverse=False)
        groups = grouped([n for n, _, _ in shapes], [classes for _, _, classes in shapes])
        rows = _kept([once([self._states[place] for place in group]) for group in groups])
        sizes, width = [sum(shapes[place][0] for place in group) for group in groups], shapes[0][1]

        def column(name: str, *wide: int) -> Any:
            cells = [dask.delayed(getattr)(one, name) for one in rows]
            parts = [da.from_delayed(one, (n, *wide), np.float64) for one, n in zip(cells, sizes, strict=True)]
            return da.concatenate(parts)

        model = copied(estimator)
        if model.get_params().get("random_state", 0) is None:
            model.set_params(random_state=seed % 2**31)
        weights = {"sample_weight": column("weight")} if weighted else {}
        try:
            fitted = model.fit(column("X", width), column("y"), **weights)
        except Exception as error:
            raise unread("Dask", error) from None
        return to_local(fitted, classify=classify)

    def drop(self) -> None:
        """Let go of all states, and of what is being computed of them."""
        try:
            from distributed import futures_of
        except ImportError:  # threads of this process: nothing is kept elsewhere
            return
        for future in futures_of(self._kept or []):
            future.cancel()
        self._kept = []


def _spread(values: Sequence[Any]) -> list[Any] | None:
    """Values that Dask keeps, each on a worker of its own; None without a cluster, or if it loses one of them meanwhile.

    What is bound to a worker waits for ever if all are gone before others come, so nothing stays bound for longer than it takes, nor what it is made of.
    """
    try:
        from distributed import futures_of, get_client, wait

        client = get_client()
    except (ImportError, ValueError):
        return None
    workers = list(client.nthreads())
    if len(workers) < len(values):
        return None
    pairs = list(zip(values, workers, strict=False))
    kept = [client.persist(value, workers=[worker], allow_other_workers=True) for value, worker in pairs]
    futures, bound = futures_of(kept), {worker for _, worker in pairs}
    while not all(future.done() for future in futures):
        if not bound <= set(client.nthreads()):
            return None
        with suppress(TimeoutError):
            wait(futures, timeout=_PATIENCE)
    client.sync(client.scheduler.set_restrictions, worker={future.key: [] for future in futures})
    return kept if all(future.done() for future in futures) else None


def _join_all(join: Callable[[int, list[Any]], Any], k: int, taken: Sequence[Any]) -> Any:
    """What is joined; the first failure, if there is one."""
    return merged(partial(join, k), taken)


def _shape(read: Callable[[Any], Any], classify: bool, state: Any) -> tuple[int, int, frozenset[float]]:
    """Rows and columns of a place, and the classes among its outcomes."""
    found = read(state)
    return (*found.X.shape, frozenset(np.unique(found.y).tolist() if classify else ()))


def grouped(sizes: Sequence[int], classes: Sequence[frozenset[float]]) -> list[list[int]]:
    """Places next to each other, put together until they have a good part of the rows and all classes.

    Libraries that share out rows want several everywhere, and a worker that sees one class alone takes it for the first of them.
    """
    least, groups, filled, seen = max(sum(sizes) // _PIECES, 2), list[list[int]](), 0, frozenset[float]()
    every = frozenset().union(*classes)

    def full() -> bool:
        return filled >= least and seen == every

    for place, size in enumerate(sizes):
        if not groups or full():
            groups.append([])
            filled, seen = 0, frozenset()
        groups[-1].append(place)
        filled, seen = filled + size, seen | classes[place]
    if not full() and len(groups) > 1:
        last = groups.pop()
        groups[-1] += last
    return groups


def _joined(read: Callable[[Any], Any], states: Sequence[Any]) -> Any:
    """What is read of several states, as one."""
    found = [read(state) for state in states]
    columns = zip(*found, strict=True)
    return type(found[0])(*(None if one[0] is None else np.concatenate(one) for one in columns))


def _kept(values: Sequence[Any]) -> Any:
    """Values that Dask keeps: on threads of this process they are computed at once, and may fail here."""
    import dask

    def fail(places: range) -> bool:
        try:
            dask.compute(*(dask.delayed(nothing)(values[place]) for place in places))
        except Exception:
            return True
        return False

    try:
        return dask.persist(*values)
    except Exception as error:
        raise unread("Dask", error, first_that(fail, len(values))) from None


@contextmanager
def places(table: Any, columns: Sequence[str]) -> Iterator[DaskPlaces]:
    """The partitions of a DataFrame, which Dask keeps as long as they are asked, and no longer: whatever ends that, also Ctrl-C."""
    from dask import delayed

    if not all(isinstance(name, str) for name in table.columns):
        table = table.rename(columns={name: str(name) for name in table.columns})
    pieces = table[list(columns)].to_delayed()
    opened: WeakSet[DaskPlaces] = WeakSet()  # of those that somebody still uses: earlier states go with their last user
    raws = [delayed(Raw)(number, piece) for number, piece in enumerate(pieces)]
    places = DaskPlaces(lambda: raws, _kept(raws), opened)
    try:
        yield places
    finally:
        for one in list(opened):
            one.drop()


def predict(model: Any, table: Any, features: list[str], names: list[str]) -> Any:
    """The table with columns of scores."""
    meta = table._meta.assign(**dict.fromkeys(names, 0.0)).astype(dict.fromkeys(names, np.float64))
    return table.map_partitions(scored, model, features, names, meta=meta)


def scored(part: Any, model: Any, features: list[str], names: list[str]) -> Any:
    """A frame of pandas with columns of scores."""
    n = len(part)
    scores = np.asarray(model.predict(part[features])).reshape(n, -1) if n else np.empty((0, len(names)))
    return part.assign(**{name: scores[:, k] for k, name in enumerate(names)})


def add_column(table: Any, name: str, make: Callable[[Any], list[Any]], kind: type) -> Any:
    """The table with a column that is made of each partition."""
    import pandas as pd

    empty = table._meta.assign(**{name: pd.Series([], dtype=kind)})
    return table.map_partitions(extended, name, make, kind, meta=empty)


def extended(part: Any, name: str, make: Callable[[Any], list[Any]], kind: type) -> Any:
    """A frame of pandas with a column that is made of it."""
    import pandas as pd

    return part.assign(**{name: pd.Series(make(part), index=part.index, dtype=kind)})
