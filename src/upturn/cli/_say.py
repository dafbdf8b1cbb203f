"""What the command says: results on standard output, notes and progress on standard error, or one JSON document.

===============  ==============================  ===========================
flags            standard output                 standard error
===============  ==============================  ===========================
none             the result, for people          notes, progress, errors
``--json``       one JSON document               notes, progress, errors
``--quiet``      nothing                         errors
``--json -q``    one JSON document               errors
===============  ==============================  ===========================
"""

from __future__ import annotations

import contextlib
import difflib
import json
import math
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from upturn.cli._flags import in_flags

_EVERY = 10.0  # seconds between two lines of progress in a log
_NUMBERS = re.compile(r"[\d.,]+")


class UserError(Exception):
    """Something the user can mend: said in one line, exit code 2."""


def put(text: str) -> None:
    """Write to standard output. That its reader has gone, as in ``upturn … | head -1``, is no error."""
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is in its buffer goes nowhere
        if not isinstance(error, BrokenPipeError):
            raise UserError(f"cannot write to standard output: {error.strerror}") from None


def tell(line: str) -> None:
    """Write a line to standard error, if somebody reads it."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def open_streams() -> None:
    """Let standard input, output and error be there, in this order, where they were closed: files would take their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, it stays open


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Words that lead from a name that is not there to one that is, or to all of them."""
    names = list(known)
    folded = {other.casefold(): other for other in reversed(names)}
    near = difflib.get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.6)
    if near:
        return f"did you mean {folded[near[0]]!r}?"
    shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    return f"there are {shown}" if len(names) > 1 else f"there is only {names[0]!r}" if names else "there are none"


def shell_word(text: str) -> str:
    """A name as it is typed after a flag: in quotes where it needs them."""
    import shlex

    return shlex.quote(text)


def one_line(text: object) -> str:
    """A message without line breaks."""
    return " ".join(str(text).split())


class Voice:
    """How a command speaks, by its flags ``--json`` and ``--quiet``."""

    def __init__(self, command: str, as_json: bool = False, quiet: bool = False) -> None:
        self.command, self.as_json, self.quiet = command, as_json, quiet
        self._notes: list[str] = []
        self._last: list[Callable[[], None]] = []

    @property
    def shows_bars(self) -> bool:
        """Whether progress is a bar, which only a person at a terminal wants."""
        return not self.quiet and sys.stderr.isatty()

    def note(self, text: str) -> None:
        """A line about what was found or done; the same line is said once."""
        line = one_line(text)
        if line in self._notes:
            return
        self._notes.append(line)
        if not self.quiet:
            tell(line)

    def at_the_end(self, act: Callable[[], None]) -> None:
        """Do something when the command has its result, and not if it fails."""
        self._last.append(act)

    def result(self, text: str, **values: Any) -> None:
        """The end of a command: words for people, values for machines."""
        while self._last:
            self._last.pop(0)()
        if self.as_json:
            put(json.dumps({"command": self.command, **plain(values), "notes": self._notes}, ensure_ascii=False))
        elif not self.quiet:
            put(text)

    @contextlib.contextmanager
    def hears_warnings(self) -> Iterator[None]:
        """Warnings of the library are notes, each kind of them once, and so is that it compiles."""
        from upturn.kernels import _stamp

        heard: set[str] = set()

        def show(message: Warning | str, category: type[Warning], *_: Any) -> None:
            like = _NUMBERS.sub("", str(message))
            if like not in heard:  # of several folds, models or arms, whose numbers differ
                heard.add(like)
                kind = "note" if issubclass(category, UserWarning) else "warning"
                self.note(f"{kind}: {in_flags(str(message))}")

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for kind in (UserWarning, RuntimeWarning):
                warnings.simplefilter("always", kind)
            warnings.showwarning = show  # type: ignore[assignment]
            before, _stamp.listener = _stamp.listener, self.note
            try:
                yield
            finally:
                _stamp.listener = before

    @contextlib.contextmanager
    def step(self, what: str, has_bar: bool = False) -> Iterator[None]:
        """A piece of work: what it is, and how long it took; on a terminal something moves, if it has no bar of its own."""
        start = time.perf_counter()
        if self.shows_bars and not has_bar:
            from rich.console import Console

            with Console(stderr=True).status(what):
                yield
        else:
            yield
        self.note(f"{what}: {time.perf_counter() - start:.1f} s")

    @contextlib.contextmanager
    def progress(self, what: str, total: int | None) -> Iterator[Any]:
        """Progress in rows: a function to call with each number of rows that is done."""
        start = time.perf_counter()
        if self.shows_bars:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
            with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
                task = bars.add_task(what, total=total)
                yield lambda rows: bars.advance(task, rows)
        else:
            yield _Lines(self, what, total).add
        self.note(f"{what}: {time.perf_counter() - start:.1f} s")

    @contextlib.contextmanager
    def steps(self, what: str) -> Iterator[Callable[[str, int], None]]:
        """Progress in steps: a function to call with the name of each that begins, and how many there are."""
        start, begun = time.perf_counter(), -1
        with contextlib.ExitStack() as stack:
            if self.shows_bars:
                from rich.console import Console
                from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

                columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
                bars = stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
                task = bars.add_task(what, total=None)

                def show(step: str, total: int) -> None:
                    bars.update(task, description=step, completed=begun, total=total)
            else:
                lines = _Lines(self, what, None)

                def show(step: str, total: int) -> None:
                    lines.say(f"step {begun + 1} of {total}, {step}")

            def begin(step: str, total: int) -> None:
                nonlocal begun
                begun += 1
                show(step, total)

            yield begin
        self.note(f"{what}: {time.perf_counter() - start:.1f} s")


class _Lines:
    """Progress in a log: now and then a line."""

    def __init__(self, voice: Voice, what: str, total: int | None) -> None:
        self._voice, self._what, self._total, self._done = voice, what, total, 0
        self._said = time.perf_counter()

    def add(self, rows: int) -> None:
        """Count rows, and say how many they are."""
        self._done += rows
        self.say(f"{self._done:,}{'' if self._total is None else f' of {self._total:,}'} rows")

    def say(self, text: str) -> None:
        """A line, if the last one is a while ago."""
        if time.perf_counter() - self._said > _EVERY:
            self._said = time.perf_counter()
            if not self._voice.quiet:  # and no note: it is of no use afterwards
                tell(f"{self._what}: {text}")


def plain(value: Any) -> Any:
    """A value as JSON has it: numbers of numpy as numbers, what is not finite as null, estimates with their intervals."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "low") and hasattr(value, "interval"):  # an Estimate
        return {"value": plain(float(value)), **{k: plain(getattr(value, k)) for k in ("se", "low", "high", "p_value")}}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def rows_of(table: Any) -> list[dict[str, Any]]:
    """A :class:`upturn.metrics.Table` as a list of rows."""
    columns = {name: plain(table[name]) for name in table.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
