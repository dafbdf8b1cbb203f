"""Rows in the partitions of a Spark DataFrame.

Frames travel as Arrow, and Spark keeps them, in memory or on disk, as they were first read: neither the order of rows nor that of partitions is sure to be the same when it
reads again, and rows are numbered as they lie. (With ``row_id`` nothing depends on it.) States follow from a frame and steps. They lie in files of the machine whose tasks made them, where all its
processes find them (``_store``), for a task is given to any process; a machine that is given a task for the first time, or whose files are gone, makes them again.
"""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial, reduce
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from upturn.engines import _store
from upturn.engines._bases import copied, to_local
from upturn.engines._copies import HELD, WHERE, Uncopied, join_all
from upturn.engines._dask import extended, scored
from upturn.engines._numbers import Raw
from upturn.engines._parts import Part
from upturn.engines._places import Failure, Merge, answer, first_that, merged, nothing, told, unread

NAME = "spark"
_modules = 0  # of this process, when garbage was last looked for among what they hold
_MOST_SHUFFLED = 2**34  # bytes of copies of all rows, one for each core
_WIDE = 8  # tasks whose answers are merged at a time
_TOO_LARGE = ("MemoryError", "Python worker exited unexpectedly")  # what is said where a copy does not fit into memory
_GONE = "FrameGone"  # what a task says on a machine that does not have the frame of its place


class _Step(NamedTuple):
    """How a state is made of the one before, of the frame itself for the first of them; by its name, its files are found."""

    name: str
    sent: Any = None  # the step, as Spark sends it to whoever asks


class _Ledger:
    """What is sent to machines while a table is open, and names of steps whose states nobody asks for any longer."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.released: list[str] = []


class SparkPlaces:
    """States that Spark's machines keep (see ``Places``).

    ``frames`` are those of the table, which Spark keeps, ``numbers`` those of places, which it keeps on the machines that have put the frames into files. Files of
    states that are no longer used here go with the next question; should one be needed after all, it is made again.
    """

    def __init__(self, frames: Any, numbers: Any, steps: tuple[_Step, ...], ledger: _Ledger) -> None:
        self._frames, self._numbers, self._steps, self._ledger = frames, numbers, steps, ledger
        if len(steps) > 1:
            weakref.finalize(self, ledger.released.append, steps[-1].name)

    def ask(self, question: Callable[[Any], Any], merge: Merge | None = None) -> Any:
        """See ``Places``."""
        context, released = self._frames.context, tuple(self._ledger.released)
        sent = context.broadcast(pickle.dumps(question))
        try:
            one = partial(_answer, self._steps, sent, released)
            if merge is None:
                found = dict(self._numbers.map(one).collect())
            else:
                found = self._together(partial(_answer_several, partial(_merge_two, merge), one), merge)
            gone = sorted(place for place, one in found.items() if isinstance(one, Failure) and one.kind == _GONE)
            if gone:
                again = self._frames.map(partial(_answer_frame, self._steps, sent))
                found.update(context.runJob(again, list, gone))
            del self._ledger.released[: len(released)]
        except Exception as error:
            raise unread("Spark", error, self._unread()) from None
        finally:
            sent.destroy()
        in_order = [found[place] for place in sorted(found)]
        return told(in_order if merge is None else merged(merge, in_order))

    def _together(self, several: Callable[[Iterator[int]], Any], merge: Merge) -> dict[int, Any]:
        """Answers merged by the tasks, of which each core gets one, and what these say by a few others.

        Spark's own ``treeReduce`` takes the files that a process has mapped for memory that is running out, and puts whatever it adds up to disk, compressed.
        """
        merge_two = partial(_merge_two, merge)
        said = self._numbers.coalesce(self._frames.context.defaultParallelism).mapPartitions(several)
        while (tasks := said.getNumPartitions()) > _WIDE:
            fewer = -(-tasks // _WIDE)
            said = (
                said.mapPartitionsWithIndex(_numbered)
                .partitionBy(fewer, int)
                .values()
                .mapPartitions(partial(_merged, merge_two))
            )
        return reduce(merge_two, said.collect(), {})

    def copies(self, n_bytes: int, a_tree: int) -> list[int]:
        """Threads of every process that may hold a copy of so many bytes, and a tree: each core has a process."""
        context = self._frames.context
        cores = context.defaultParallelism
        fits = cores * n_bytes <= _MOST_SHUFFLED and HELD * n_bytes + a_tree <= _room(context)
        return [1] * cores if fits else []

    def together(self, take: Callable[[Any], Any], join: Callable[[int, list[Any]], Any], n: int) -> SparkCopies:
        """Places with what is joined of what is taken of all states: in each of ``n`` tasks, which are told their number."""
        context = self._frames.context
        sent = context.broadcast(pickle.dumps(take))
        self._ledger.sent.append(sent)
        one = partial(_answer, self._steps, sent, tuple(self._ledger.released))
        shuffled = self._numbers.map(one).flatMap(partial(_for_each, n)).partitionBy(n, int)
        return SparkCopies(shuffled, join)

    def _unread(self) -> int | None:
        """The first place whose frame Spark cannot make, as its own words name no partition; frames that it has made before it keeps."""
        context = self._frames.context

        def fail(places: range) -> bool:
            try:
                context.runJob(self._frames, partial(map, nothing), list(places))
            except Exception:
                return True
            return False

        with suppress(Exception):  # of a session that has ended
            return None if context._jsc.sc().isStopped() else first_that(fail, self._frames.getNumPartitions())
        return None

    def change(self, step: Callable[[Any], Any]) -> SparkPlaces:
        """See ``Places``."""
        sent = self._frames.context.broadcast(pickle.dumps(step))
        self._ledger.sent.append(sent)
        made = _Step(f"{self._steps[0].name.partition('/')[0]}/{uuid4().hex}", sent)
        return SparkPlaces(self._frames, self._numbers, (*self._steps, made), self._ledger)

    def forget(self) -> None:
        """Remove the files of the states with the next question; frames Spark itself keeps."""
        self._ledger.released.append(self._steps[-1].name)

    def train(self, estimator: Any, read: Callable[[Any], Any], *, weighted: bool, classify: bool, seed: int) -> Any:
        """A base of XGBoost, fitted to the rows that ``read`` finds in the states, as a model of this process."""
        width = max(self.ask(partial(_width, read)))
        names = [f"x{j}" for j in range(width)]
        columns = [*names, "y", *(["weight"] if weighted else [])]
        packed = self._frames.map(partial(_packed, self._steps, read, columns)).toDF("frame binary")
        frame = packed.mapInArrow(_unpacked, ", ".join(f"{name} double" for name in columns))
        model = copied(estimator)
        model.setParams(features_col=names, label_col="y", **({"weight_col": "weight"} if weighted else {}))
        if model.hasParam("random_state") and model.getOrDefault("random_state") is None:
            model.setParams(random_state=seed % 2**31)
        try:
            fitted = model.fit(frame)
        except Exception as error:
            raise unread("Spark", error) from None
        return to_local(fitted, classify=classify)


class SparkCopies:
    """Tasks that each have what is taken of all states; Spark keeps it in the files of its shuffle, so that only the first question takes anything."""

    ROUND = 2 * 10**9  # rows, times trees, that a task grows on its copy, which it reads each time

    def __init__(self, shuffled: Any, join: Callable[[int, list[Any]], Any]) -> None:
        self._shuffled, self._join = shuffled, join

    def ask(self, question: Callable[[Any], Any]) -> Any:
        """What all of them answer, in order."""
        context = self._shuffled.context
        sent = context.broadcast(pickle.dumps((self._join, question)))
        try:
            found = self._shuffled.mapPartitionsWithIndex(partial(_answer_joined, sent)).collect()
        except Exception as error:
            if any(words in str(error) for words in _TOO_LARGE):
                raise Uncopied from None
            raise unread("Spark", error) from None
        finally:
            sent.destroy()
        if any(isinstance(one, Failure) and one.kind in (_GONE, "MemoryError") for one in found):
            raise Uncopied
        return told(found, WHERE)


def _room(context: Any) -> float:
    """Bytes that Python has on each core: of what Spark is told, or of what is granted besides the JVM, in this process half of the machine's memory."""
    given = context.getConf().get

    def megabytes(key: str) -> float | None:
        words = given(f"spark.executor.{key}")
        return (
            None if words is None else float(context._jvm.org.apache.spark.network.util.JavaUtils.byteStringAsMb(words))
        )

    room = megabytes("pyspark.memory")
    if room is None and context.master.startswith("local"):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2 / int(context.defaultParallelism)
    if room is None:
        factor = float(given("spark.executor.memoryOverheadFactor", "0.1"))
        room = megabytes("memoryOverhead") or max(384.0, factor * (megabytes("memory") or 1024.0))
    return room * 2**20 / int(given("spark.executor.cores", "1"))


def _for_each(n: int, taken: tuple[int, Any]) -> Iterator[tuple[int, tuple[int, Any]]]:
    """What a place tells each of several tasks."""
    return ((k, taken) for k in range(n))


def _answer_joined(sent: Any, k: int, taken: Iterator[tuple[int, tuple[int, Any]]]) -> Iterator[Any]:
    """What a task answers that has been told by all places."""
    join, question = pickle.loads(sent.value)
    by_place = dict(map(itemgetter(1), taken))
    joined = join_all(join, k, [by_place.pop(place) for place in sorted(by_place)])
    yield answer(question, joined, k)


def _width(read: Callable[[Any], Any], state: Any) -> int:
    width: int = read(state).X.shape[1]
    return width


def _packed(
    steps: tuple[_Step, ...], read: Callable[[Any], Any], columns: Sequence[str], frame: tuple[int, Any]
) -> tuple[bytes]:
    """The rows of a state as a cell of bytes."""
    import pyarrow as pa

    if not _path(steps[0], frame[0]).exists():
        _file(steps[0], frame)
    found = read(_state(steps, frame[0]))
    arrays = [*found.X.T, found.y, found.weight][: len(columns)]
    batch = pa.RecordBatch.from_arrays([pa.array(one) for one in arrays], list(columns))
    return (_bytes_of(batch),)


def _unpacked(batches: Iterator[Any]) -> Iterator[Any]:
    """The rows in cells of bytes."""
    import pyarrow as pa

    for batch in batches:
        for cell in batch.column(0):
            yield from pa.ipc.open_stream(cell.as_py()).read_all().to_batches()


def _pack(tag: str, batches: Iterator[Any]) -> Iterator[Any]:
    """Rows as cells of bytes, a batch at a time: Spark's own pickling of large cells is slow. The first cell is none, so that every partition has one.

    By the ``tag`` Spark tells the frames of one opening of a table from those of another, which it would keep, and let go of, together.
    """
    import pyarrow as pa

    for cell in chain([None], map(_bytes_of, batches)):
        yield pa.RecordBatch.from_arrays([pa.array([cell], pa.binary())], ["frame"])


def _bytes_of(batch: Any) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpack(names: list[str], place: int, cells: Iterator[Any]) -> Raw:
    """All rows of a partition as one frame, with the names of its columns."""
    import pyarrow as pa

    tables = [pa.ipc.open_stream(cell).read_all() for cell in cells]
    return Raw(place, pa.concat_tables(tables).combine_chunks().rename_columns(names) if tables else pa.table({}))


def _unpack_rows(names: list[str], place: int, rows: Iterator[Any]) -> Iterator[tuple[int, Raw]]:
    """A partition's number and frame, of cells that Spark hands over as rows."""
    yield place, _unpack(names, place, (bytes(row.frame) for row in rows if row.frame is not None))


def _unpack_into_file(names: list[str], first: _Step, batches: Iterator[Any]) -> Iterator[Any]:
    """Put the frame of a partition, which comes with its number, into a file; the number."""
    import pyarrow as pa

    head = next(batches)
    place = head.column(0)[0].as_py()
    cells = (cell.as_buffer() for batch in chain([head], batches) for cell in batch.column(1) if cell.is_valid)
    _file(first, (place, _unpack(names, place, cells)))
    yield pa.RecordBatch.from_arrays([pa.array([place], pa.int32())], ["place"])


def _folder(name: str) -> Path:
    """Where this machine keeps states."""
    from pyspark import SparkFiles

    return Path(SparkFiles.getRootDirectory()) / name


def _path(step: _Step, place: int) -> Path:
    """Where this machine keeps a state."""
    folder, _, name = step.name.partition("/")
    root = _folder(folder)
    root.mkdir(exist_ok=True)
    return root / f"{name}-{place}"


def _state(steps: tuple[_Step, ...], place: int) -> Any:
    """The state of a place: from its file, or made of the one before; a failure if this machine does not have the frame."""
    path = _path(steps[-1], place)
    with suppress(FileNotFoundError):
        return _store.read(path)
    if len(steps) == 1:
        return Failure(place, _GONE, "this machine does not have its frame")
    before = _state(steps[:-1], place)
    made = answer(pickle.loads(steps[-1].sent.value), before, place)
    if not (isinstance(made, Failure) and made.kind == _GONE):
        _store.write(path, made)
    return made


def _answer(steps: tuple[_Step, ...], sent: Any, released: tuple[str, ...], place: int) -> tuple[int, Any]:
    """What the state of a place answers; files of others that are released go."""
    state, desk = _state(steps, place), None
    if isinstance(state, Part):
        desk = _store.Desk(_path(steps[-1], place).with_suffix(".kept"))
        state.kept = desk.take() or {}
    said = answer(pickle.loads(sent.value), state, place)
    if desk is not None and state.kept:
        desk.put(state.kept)
    for name in released:
        path = _path(_Step(name), place)
        for file in (path, *path.parent.glob(f"{path.name}-*"), *path.parent.glob(f"{path.name}.kept*")):
            file.unlink(missing_ok=True)
    _freeze()
    return place, said


def _freeze() -> None:
    """Let the collector of garbage, which Spark calls after every task, pass over all that modules hold: that takes longer than many a task."""
    global _modules
    if len(sys.modules) != _modules:
        _modules = len(sys.modules)
        gc.freeze()


def _answer_frame(steps: tuple[_Step, ...], sent: Any, frame: tuple[int, Any]) -> tuple[int, Any]:
    """The same on a machine that does not have the frame yet."""
    _file(steps[0], frame)
    return _answer(steps, sent, (), frame[0])


def _file(first: _Step, frame: tuple[int, Any]) -> int:
    """Put a frame into a file; its number."""
    place, raw = frame
    _store.write(_path(first, place), raw)
    return place


def _answer_several(
    merge_two: Callable[[Any, Any], Any], one: Callable[[int], tuple[int, Any]], places: Iterator[int]
) -> Iterator[dict[int, Any]]:
    """What several places answer, one after the other."""
    return _merged(merge_two, (dict([one(place)]) for place in places))


def _merged(merge_two: Callable[[Any, Any], Any], answers: Iterator[dict[int, Any]]) -> Iterator[dict[int, Any]]:
    """All of them as one; nothing if there are none."""
    for first in answers:
        yield reduce(merge_two, answers, first)


def _numbered(task: int, answers: Iterator[Any]) -> Iterator[tuple[int, Any]]:
    """What a task says, by its number."""
    return ((task, one) for one in answers)


def _merge_two(merge: Merge, one: dict[int, Any], two: dict[int, Any]) -> dict[int, Any]:
    """Answers merged under the number of one of them; those of machines that did not have the frame stay by themselves."""
    found = {**one, **two}
    here = [place for place, said in found.items() if not (isinstance(said, Failure) and said.kind == _GONE)]
    if len(here) < 2:
        return found
    gone = {place: said for place, said in found.items() if place not in here}
    return {here[0]: merged(merge, [found[place] for place in here]), **gone}


def _remove_files(folder: str) -> None:
    """Remove the files of all states of this machine."""
    shutil.rmtree(_folder(folder), ignore_errors=True)


def _quoted(name: str) -> str:
    """A column's name for Spark, to which a dot in bare names is a field of a column."""
    return "`" + name.replace("`", "``") + "`"


def _plain(table: Any) -> Any:
    """The table with columns c0, c1, …: where Spark hands rows to Python, it asks for columns by names that are not quoted."""
    return table.toDF(*(f"c{k}" for k in range(len(table.columns))))


@contextmanager
def places(table: Any, columns: Sequence[str]) -> Iterator[SparkPlaces]:
    """The partitions of a DataFrame, kept as they are first read; whatever ends their use, also Ctrl-C, ends the jobs."""
    from pyspark import StorageLevel
    from pyspark.sql.functions import spark_partition_id

    context, tag = table.sparkSession.sparkContext, f"upturn-{uuid4().hex}"
    first = _Step(f"{tag}/frame")
    try:
        cells = _plain(table.select(*map(_quoted, columns))).mapInArrow(partial(_pack, tag), "frame binary")
    except Exception as error:
        raise unread("Spark", error) from None
    cells = cells.persist(StorageLevel.MEMORY_AND_DISK)
    try:  # a table of joins or groups is computed up to its last step here
        frames = cells.rdd.mapPartitionsWithIndex(partial(_unpack_rows, list(columns)))
        numbered = cells.select(
            spark_partition_id(), "frame"
        )  # a task may be given several partitions, and has a number of its own
        filed = numbered.mapInArrow(partial(_unpack_into_file, list(columns), first), "place int")
        numbers = filed.rdd.map(itemgetter(0)).persist()
    except BaseException as error:
        cells.unpersist()
        if isinstance(error, Exception):
            raise unread("Spark", error) from None
        raise
    context.addJobTag(tag)
    ledger = _Ledger()
    try:
        yield SparkPlaces(frames, numbers, (first,), ledger)
    except BaseException:
        context.cancelJobsWithTag(tag)
        raise
    finally:
        context.removeJobTag(tag)
        for kept in (numbers.unpersist, cells.unpersist, *(sent.destroy for sent in ledger.sent)):
            with suppress(Exception):  # of a session that has ended
                kept()
        _remove_files(tag)
        if not context.master.startswith(
            "local"
        ):  # Spark removes the folder itself when it ends, whatever happens here
            with suppress(Exception):
                machines = context.parallelize(range(context.defaultParallelism), context.defaultParallelism)
                machines.foreach(lambda _: _remove_files(tag))


def predict(model: Any, table: Any, features: list[str], names: list[str]) -> Any:
    """The table with columns of scores."""
    from pyspark.sql.types import DoubleType, StructField, StructType

    schema = StructType([*table.schema.fields, *(StructField(name, DoubleType()) for name in names)])
    columns = list(table.columns)

    def add(parts: Iterator[Any]) -> Iterator[Any]:
        for part in parts:
            yield scored(part.set_axis(columns, axis=1), model, features, names)

    return _plain(table).mapInPandas(add, schema)


def add_column(table: Any, name: str, make: Callable[[Any], list[Any]], kind: type) -> Any:
    """The table with a column that is made of its parts."""
    from pyspark.sql import types

    sort = {bool: types.BooleanType, int: types.LongType, float: types.DoubleType, str: types.StringType}[kind]
    schema = types.StructType([*table.schema.fields, types.StructField(name, sort())])
    columns = list(table.columns)

    def add(parts: Iterator[Any]) -> Iterator[Any]:
        for part in parts:
            yield extended(part.set_axis(columns, axis=1), name, make, kind)

    return _plain(table).mapInPandas(add, schema)
