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
from upturn.engines._places import Merge, answer, merged, told, unread


class SparkPlaces:
    """States that Spark keeps (see ``Places``)."""

    def __init__(self, states: Any, opened: list[Any]) -> None:
        self._states, self._opened = states, opened

    def ask(self, question: Callable[[Any], Any], merge: Merge | None = None) -> Any:
        """See ``Places``."""
        sent = self._states.context.broadcast(pickle.dumps(question))
        answers = self._states.map(partial(_answer, sent))
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
        return SparkPlaces(_keep(self._states.map(partial(_answer, sent)), self._opened), self._opened)


def _keep(states: Any, opened: list[Any]) -> Any:
    """States that Spark keeps until ``opened`` are let go."""
    from pyspark import StorageLevel

    kept = states.persist(StorageLevel.MEMORY_AND_DISK)
    opened.append(kept)
    return kept


def _pack(batches: Iterator[Any]) -> Iterator[Any]:
    """All rows of a partition as one cell of bytes, beside the partition's number."""
    import pyarrow as pa
    from pyspark import TaskContext

    place = TaskContext.get().partitionId()
    table = list(batches)
    sink = pa.BufferOutputStream()
    if table:
        with pa.ipc.new_stream(sink, table[0].schema) as stream:
            for batch in table:
                stream.write_batch(batch)
    frame = pa.array([sink.getvalue().to_pybytes()], pa.binary())
    yield pa.RecordBatch.from_arrays([pa.array([place], pa.int32()), frame], ["place", "frame"])


def _unpack(row: Any) -> tuple[int, Raw]:
    import pyarrow as pa

    frame = pa.table({}) if not row.frame else pa.ipc.open_stream(bytes(row.frame)).read_all()
    return row.place, Raw(row.place, frame)


def _answer(sent: Any, state: tuple[int, Any]) -> tuple[int, Any]:
    place, own = state
    return place, answer(pickle.loads(sent.value), own, place)


def _second(pair: tuple[int, Any]) -> Any:
    return pair[1]


@contextmanager
def places(table: Any, columns: Sequence[str]) -> Iterator[SparkPlaces]:
    """The partitions of a DataFrame, kept as they are first read; whatever ends their use, also Ctrl-C, ends the jobs."""
    frames = table.select(*columns).mapInArrow(_pack, "place int, frame binary").rdd
    opened: list[Any] = []
    context, tag = table.sparkSession.sparkContext, f"upturn-{uuid4().hex}"
    context.addJobTag(tag)
    try:
        yield SparkPlaces(_keep(frames.map(_unpack), opened), opened)
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
