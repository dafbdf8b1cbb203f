"""Rows in several places: a driver asks them for small statistics and never sees them.

An engine is what keeps a state in each place and carries questions to it: it has the two verbs of :class:`Places`, and knows nothing
about trees. States never change: a step makes new ones, so whatever is lost with a worker can be computed again from the table and the steps.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol, Self

import numpy as np

from upturn._parallel import progress

Merge = Callable[[Sequence[Any]], Any]
_CONDITION = re.compile(
    r"\[[A-Z0-9]+([_.][A-Z0-9]+)+\] .*"
)  # what Spark itself says, as in "[FAILED_READ_FILE] while …"
_ERROR = re.compile(r"\w*(Error|Exception): .*")  # a line that ends a traceback, or names a cause


@dataclass(frozen=True)
class AnyOrder:
    """A merge whose result is the same to the last bit in any order: answers may be merged where they are."""

    merge: Merge

    def __call__(self, answers: Sequence[Any]) -> Any:
        return self.merge(answers)


class Places(Protocol):
    """What an engine does."""

    def ask(self, question: Callable[[Any], Any], merge: Merge | None = None) -> Any:
        """Answers of all states, in order; or what they are merged into, some at a time, in any order."""

    def change(self, step: Callable[[Any], Any]) -> Self:
        """The same places with the states that a step makes of them."""


class Weighed:
    """A state with the size of its arrays, which Dask looks at before it moves a state to another worker."""

    def __sizeof__(self) -> int:
        return size_of(vars(self))


def size_of(found: Any) -> int:
    """Bytes of the arrays in something."""
    if isinstance(found, np.ndarray):
        return int(found.nbytes)
    if isinstance(found, dict | list | tuple):
        return sum(map(size_of, found.values() if isinstance(found, dict) else found))
    return size_of(vars(found)) if hasattr(found, "__dict__") and not isinstance(found, type) else 0


@dataclass(frozen=True)
class Failure:
    """What went wrong in a place, in place of its answer: one sentence crosses the network, not a page of traceback."""

    place: int
    kind: str
    words: str

    def raised(self, where: str | None = None) -> Exception:
        """The error for the user, who knows the place by its number or by other words."""
        kind = getattr(builtins, self.kind, RuntimeError)
        sort = kind if isinstance(kind, type) and issubclass(kind, Exception) else RuntimeError
        said = self.words if sort is not RuntimeError or self.kind == "RuntimeError" else f"{self.kind}: {self.words}"
        where = where or f"in partition {self.place}"
        try:
            return sort(f"{where}: {said}")
        except TypeError:  # of a class that is not made of words alone, such as UnicodeDecodeError
            return RuntimeError(f"{where}: {self.kind}: {self.words}")


def forget(*places: Places) -> None:
    """Let engines keep states no longer that will hardly be asked again; of one that is, they are made again."""
    for one in places:
        getattr(one, "forget", nothing)()


def answer(question: Callable[[Any], Any], state: Any, place: int) -> Any:
    """What a state answers; a failure, of this question or of a step before, is passed on."""
    if isinstance(state, Failure):
        return state
    try:
        return question(state)
    except Exception as error:
        return Failure(place, type(error).__name__, str(error))


def merged(merge: Merge, answers: Sequence[Any]) -> Any:
    """Several answers as one; the first failure, if there is one."""
    for one in answers:
        if isinstance(one, Failure):
            return one
    return merge(answers)


def told(result: Any, where: str | None = None) -> Any:
    """An answer, or several; a failure is raised, with its place or other words."""
    for one in result if isinstance(result, list) else [result]:
        if isinstance(one, Failure):
            raise one.raised(where) from None
    return result


def unread(engine: str, error: Exception, place: int | None = None) -> RuntimeError:
    """What is said when the engine itself cannot answer, such as when a file of the table is gone: its own first words, and the place if it is known."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    conditions = [found.group() for line in lines if (found := _CONDITION.search(line))]
    errors = [found.group() for line in lines if (found := _ERROR.search(line))]
    words = [*conditions[:1], *errors[-1:], *lines[:1], ""][0]
    where = "" if place is None else f"in partition {place}: "
    return RuntimeError(
        f"{where}{engine} could not compute the table, or what was asked of it: {type(error).__name__}: {words[:500]}"
    )


def first_that(fails: Callable[[range], bool], n: int) -> int | None:
    """The first of ``n`` places that fails, by halving the range in which one does; None if none does any longer."""
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(range(low, middle)) else (middle, high)
    return low if low < high and fails(range(low, high)) else None


def nothing(*_: Any) -> None:
    """The answer of a place that is asked only whether it can be computed."""


class Watched:
    """Places whose questions, each of them a pass over the table, are counted (see :func:`watched`)."""

    def __init__(self, places: Any, passes: Iterator[int]) -> None:
        self._places, self._passes = places, passes

    def ask(self, question: Callable[[Any], Any], merge: Merge | None = None) -> Any:
        """See :class:`Places`."""
        found = self._places.ask(question, merge)
        next(self._passes)
        return found

    def change(self, step: Callable[[Any], Any]) -> Watched:
        """See :class:`Places`."""
        return Watched(self._places.change(step), self._passes)

    def __getattr__(self, name: str) -> Any:  # what an engine has besides
        return getattr(self._places, name)


@contextmanager
def watched(places: Any, verbose: int) -> Iterator[Any]:
    """The places; if ``verbose``, a progress bar counts how often they are asked."""
    if not verbose:
        yield places
        return
    passes: Any = iter(progress(count(), verbose, "passes over the table"))
    next(passes)  # the bar appears at 0
    try:
        yield Watched(places, passes)
    finally:
        passes.close()


class Here:
    """Places in this process, one state after the other: what other engines are held to."""

    def __init__(self, states: Sequence[Any]) -> None:
        self._states = list(states)

    def ask(self, question: Callable[[Any], Any], merge: Merge | None = None) -> Any:
        """See :class:`Places`."""
        answers = [answer(question, state, place) for place, state in enumerate(self._states)]
        return told(answers if merge is None else merged(merge, answers))

    def change(self, step: Callable[[Any], Any]) -> Here:
        """See :class:`Places`."""
        return Here([answer(step, state, place) for place, state in enumerate(self._states)])
