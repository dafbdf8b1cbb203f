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
from upturn.engines._copies import HELD, WHERE, Uncopied, join_all
from upturn.engines._numbers import Raw
from upturn.engines._places import AnyOrder, Failure, Merge, answer, first_that, merged, nothing, told, unread

NAME = "dask"
_WIDE = 8  # answers merged at a time
_SHARE = 0.6  # of the memory a worker is allowed, from which on it puts things on disk
_PATIENCE = 1.0  # seconds between two looks for workers that are gone
_PIECES = 64  # at most as many pieces that another library learns from


class DaskPlaces:
    """States that Dask keeps (see ``Places``), until they are forgotten: then it makes them, as ``make`` says, whenever they are asked."""

    _where: str | None = None  # in errors, in place of a partition's number
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
            return told(list(self._computed(answers)), self._where)
        put_together = dask.delayed(partial(merged, merge), traverse=False)

        def together(some: list[Any]) -> Any:
            while len(some) > _WIDE:
                some = [put_together(some[i : i + _WIDE]) for i in range(0, len(some), _WIDE)]
            return put_together(some)

        groups = self._by_worker() if isinstance(merge, AnyOrder) else []
        if len(groups) > 1:
            answers = [together([answers[place] for place in group]) for group in groups]
        (result,) = self._computed([together(answers)])
        return told(result, self._where)

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
        client = _client()
        if client is None:
            return []
        from distributed import futures_of

        held = client.who_has(futures_of(self._states))
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

    def copies(self, n_bytes: int, a_tree: int) -> list[int]:
        """Threads that grow trees in every process that may hold a copy of so many bytes, and a tree a thread: of the workers, or of this process."""
        import dask

        client = _client()
        if client is None:
            here = dask.base.get_scheduler() in (None, dask.threaded.get)
            return [count_threads(-1)] if here else []
        known = client.scheduler_info(n_workers=-1)["workers"]

        def threads(worker: str, own: int) -> int:
            limit = known.get(worker, {}).get("memory_limit") or np.inf
            return int(min(own, max((_SHARE * limit - HELD * n_bytes) / a_tree, 0.0)))

        found = [threads(*one) for one in client.nthreads().items()]
        return found if min(found, default=0) > 0 else []

    def together(self, take: Callable[[Any], Any], join: Callable[[int, list[Any]], Any], n: int) -> DaskPlaces:
        """Places with what is joined of what is taken of all states: in each of ``n`` processes, which are told their number."""
        import dask

        taken = self.change(take)
        make, joining = taken._make, dask.delayed(partial(join_all, join), traverse=False)

        def joined(states: list[Any]) -> list[Any]:
            return [joining(k, states) for k in range(n)]

        client = _client()
        if client is None:
            return DaskCopies(lambda: joined(make()), _kept(joined(taken._states)), self._opened)
        workers = list(client.nthreads())[:n]
        if len(workers) < n:
            raise Uncopied
        pairs = zip(joined(taken._states), workers, strict=True)
        bound = [client.persist(one, workers=[own], allow_other_workers=True) for one, own in pairs]
        copies = DaskCopies(lambda: joined(make()), bound, self._opened)
        if not _settled(client, bound, set(workers)):
            copies.drop()
            raise Uncopied
        return copies

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
        """Let go of all states: a cluster drops what is being computed of them, and what waits.

        They are not cancelled: that breaks the connection of the client, with all that it keeps for others, where something was made of them that nobody keeps.
        """
        try:
            from distributed import futures_of
        except ImportError:  # threads of this process: nothing is kept elsewhere
            return
        for future in futures_of(self._kept or []):
            future.release()
        self._kept = []


class DaskCopies(DaskPlaces):
    """Copies of all rows that workers keep."""

    _where = WHERE

    def _computed(self, values: Sequence[Any]) -> Any:
        """Values that follow from the copies; one that does not fit into a worker's memory is none."""
        import dask

        try:
            found = dask.compute(*values)
        except Exception as error:
            if type(error).__name__ in ("KilledWorker", "MemoryError"):
                raise Uncopied from None
            raise unread("Dask", error) from None
        if any(isinstance(one, Failure) and one.kind == "MemoryError" for one in found):
            raise Uncopied
        return found


def _client() -> Any:
    """The client of the cluster that Dask computes with; None where it computes in this process, or in others of this machine."""
    try:
        from distributed import Client
    except ImportError:
        return None
    import dask

    owner = getattr(dask.base.get_scheduler(), "__self__", None)
    return owner if isinstance(owner, Client) else None


def _settled(client: Any, bound: Sequence[Any], workers: set[str]) -> bool:
    """Whether values have been computed that were bound to workers, and are no longer; not if one of these goes meanwhile.

    What is bound waits for ever if all workers are gone before others come, so nothing stays so for longer than it takes, nor what it is made of.
    """
    from distributed import futures_of, wait

    futures = futures_of(bound)
    while not all(future.done() for future in futures):
        if not workers <= set(client.nthreads()):
            return False
        with suppress(TimeoutError):
            wait(futures, timeout=_PATIENCE)
    client.sync(client.scheduler.set_restrictions, worker={future.key: [] for future in futures})
    return all(future.done() for future in futures)


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
    """A frame of pandas with columns of scores; features are named by text, whatever the names of columns are."""
    n = len(part)
    X = part.set_axis([str(name) for name in part.columns], axis=1)[features]
    scores = np.asarray(model.predict(X)).reshape(n, -1) if n else np.empty((0, len(names)))
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
