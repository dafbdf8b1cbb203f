"""Rows in the partitions of a Spark DataFrame.

Frames travel as Arrow, states are pickled into an RDD that Spark keeps in memory or on disk. A task that fails is tried again by Spark; a state that
is lost with an executor is made again from the frame and the steps. Numbers of rows are their places in the frame as it was first read, which is kept for that
reason: neither the order of rows nor that of partitions is sure to be the same when Spark reads again. With ``row_id`` nothing depends on it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import uuid4

from upturn.engines._dask import extended, scored
from upturn.engines._numbers import Raw
from upturn.engines._parts import Part, size_of
from upturn.engines._places import Merge, answer, merged, told, unread

_MOST_KEPT = 2**31  # bytes that a process of an executor keeps beside states
_kept: dict[tuple[str, int], dict[Any, Any]] = {}  # of this process, by states and place


class SparkPlaces:
    """States that Spark keeps (see ``Places``).

    What a state keeps beside it stays in the process that was asked, as long as there is room: the next task of that place may be given to the same process, or to
    another, which makes it again.
    """

    def __init__(self, states: Any, opened: list[Any]) -> None:
        self._states, self._opened, self._token = states, opened, uuid4().hex

    def ask(self, question: Callable[[Any], Any], merge: Merge | None = None) -> Any:
        """See ``Places``."""
        sent = self._states.context.broadcast(pickle.dumps(question))
        answers = self._states.map(partial(_answer, self._token, sent))
        put_together = partial(merged, merge) if merge is not None else None
        try:
            if put_together is None:
                found = dict(answers.collect())
                result = [found[place] for place in sorted(found)]
            else:
                result = answers.map(_second).treeReduce(lambda one, two: put_together([one, two]))
        except Exception as error:
            raise unread("Spark", error) from None
        finally:
            sent.destroy()
        return told(result)

    def change(self, step: Callable[[Any], Any]) -> SparkPlaces:
        """See ``Places``."""
        sent = self._states.context.broadcast(pickle.dumps(step))
        return SparkPlaces(_keep(self._states.map(partial(_answer, self._token, sent)), self._opened), self._opened)


def _keep(states: Any, opened: list[Any]) -> Any:
    """States that Spark keeps until ``opened`` are let go."""
    from pyspark import StorageLevel

    kept = states.persist(StorageLevel.MEMORY_AND_DISK_DESER)  # as bytes that are neither written again nor compressed
    opened.append(kept)
    return kept


def _pack(batches: Iterator[Any]) -> Iterator[Any]:
    """Rows as cells of bytes, a batch at a time: Spark's own pickling of large cells is slow."""
    import pyarrow as pa

    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["frame"])


def _unpack(place: int, rows: Iterator[Any]) -> Iterator[tuple[int, Raw]]:
    """All rows of a partition as one frame."""
    import pyarrow as pa

    tables = [pa.ipc.open_stream(bytes(row.frame)).read_all() for row in rows]
    yield place, Raw(place, pa.concat_tables(tables).combine_chunks() if tables else pa.table({}))


def _answer(token: str, sent: Any, state: tuple[int, Any]) -> tuple[int, Any]:
    place, own = state
    if isinstance(own, Part):
        own.kept = _kept.pop((token, place), {})
    said = answer(pickle.loads(sent.value), own, place)
    if isinstance(own, Part):
        for old in [key for key in _kept if key[0] != token]:
            del _kept[old]
        if size_of(own.kept) + sum(map(size_of, _kept.values())) <= _MOST_KEPT:
            _kept[token, place] = own.kept
    return place, said


def _second(pair: tuple[int, Any]) -> Any:
    return pair[1]


@contextmanager
def places(table: Any, columns: Sequence[str]) -> Iterator[SparkPlaces]:
    """The partitions of a DataFrame, kept as they are first read; whatever ends their use, also Ctrl-C, ends the jobs."""
    frames = table.select(*columns).mapInArrow(_pack, "frame binary").rdd
    opened: list[Any] = []
    context, tag = table.sparkSession.sparkContext, f"upturn-{uuid4().hex}"
    context.addJobTag(tag)
    try:
        yield SparkPlaces(_keep(frames.mapPartitionsWithIndex(_unpack), opened), opened)
    except BaseException:
        context.cancelJobsWithTag(tag)
        raise
    finally:
        context.removeJobTag(tag)
        for states in opened:
            states.unpersist()


def predict(model: Any, table: Any, features: list[str], names: list[str]) -> Any:
    """The table with columns of scores."""
    from pyspark.sql.types import DoubleType, StructField, StructType

    schema = StructType([*table.schema.fields, *(StructField(name, DoubleType()) for name in names)])

    def add(parts: Iterator[Any]) -> Iterator[Any]:
        for part in parts:
            yield scored(part, model, features, names)

    return table.mapInPandas(add, schema)


def add_column(table: Any, name: str, make: Callable[[Any], list[Any]], kind: type) -> Any:
    """The table with a column that is made of its parts."""
    from pyspark.sql import types

    sort = {bool: types.BooleanType, int: types.LongType, float: types.DoubleType, str: types.StringType}[kind]
    schema = types.StructType([*table.schema.fields, types.StructField(name, sort())])

    def add(parts: Iterator[Any]) -> Iterator[Any]:
        for part in parts:
            yield extended(part, name, make, kind)

    return table.mapInPandas(add, schema)
