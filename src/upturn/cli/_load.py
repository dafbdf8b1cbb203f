"""A table and its roles as an experiment: what every command that learns or measures starts from."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats
from upturn._results import plural
from upturn._target import Label, Target, read_target
from upturn.cli._read import Source, find_source
from upturn.cli._roles import FILE, Found, Roles, add_roles, find_roles, read_roles, write_roles
from upturn.cli._say import UserError, Voice, did_you_mean, shell_word

if TYPE_CHECKING:
    import polars as pl

    from upturn.cli._leaks import Leak

_ROLE = re.compile(r"--(outcome|treatment|control|weight|group) ")  # at the head of an error
_SUCCESS = {"yes", "true", "y", "t", "success", "1", "ja", "oui", "si", "sí", "sì", "sim", "tak"}
_FAILURE = {"no", "false", "n", "f", "failure", "0", "nein", "non", "nee", "nej", "nei", "não", "nie"}


@dataclass(frozen=True)
class Loaded:
    """An experiment out of a file; rows that cannot be used are left out of everything, ids too."""

    source: Source
    found: Found
    frame: pl.DataFrame  # all of its columns
    X: pl.DataFrame
    y: Floats
    treatment: NDArray[Any]
    weight: Floats | None
    group: NDArray[Any] | None
    target: Target
    armless: int  # rows without a treatment, left out

    @property
    def control(self) -> Label:
        """The control arm."""
        return self.target.control

    @property
    def roles(self) -> Roles:
        """Which column is what."""
        return self.found.roles

    def leaks(self) -> list[Leak]:
        """Features that know too much."""
        from upturn.cli._leaks import suspected_leaks

        return suspected_leaks(self.X, self.y, self.target.arm, self.target.labels)


@dataclass(frozen=True)
class Settled:
    """The table that is meant, what the flags say of it, what they and the file of roles say together, and that file."""

    source: Source
    flagged: Roles
    asked: Roles
    path: Path
    written: Roles | None  # None: there is no file yet; an empty one: it is about another table
    fitted_to: str | None = None  # the table of the file, to which models here were fitted

    @contextlib.contextmanager
    def in_words(self) -> Iterator[None]:
        """What is wrong with a role that no flag has named is said of the file that did."""
        try:
            yield
        except UserError as error:
            text = str(error)
            found = _ROLE.match(text)
            if found is None or getattr(self.flagged, found[1]) is not None:
                raise
            text = f"{self.path} has {found[1]} = {text[found.end() :]}"
            raise UserError(f"{text}{'' if text.endswith('?') else ';'} mend the file, or use --{found[1]}") from error

    def remember(self, voice: Voice, roles: Roles) -> None:
        """Write the file of roles, or add to it what it does not say."""
        data = None if self.source.content is not None else self.source.name
        if self.written is None:
            if not write_roles(self.path, replace(roles, data=data)):
                voice.note(f"{self.path} could not be written: later runs have to be told the columns again")
        elif self.written != Roles():
            same = self.source.name == self.written.data
            kept = replace(roles, data=self.written.data, delimiter=roles.delimiter if same else self.written.delimiter)
            added = add_roles(self.path, self.written, kept)
            if added:
                voice.note(added)


def settle(
    voice: Voice, flagged: Roles, file: str | None, *, experiment: bool = True, writes: Iterable[str | None] = ()
) -> Settled:
    """Find the table, and put together what flags and file say about its columns.

    People to score or to choose from are not an ``experiment``: the outcome may not be there. What the command ``writes`` may
    be none of what it reads.
    """
    from upturn.cli._write import check_output

    path = Path(file or FILE)
    written = read_roles(path) if path.exists() else None
    data = flagged.data if flagged.data is not None or written is None else written.data
    if data == "":
        raise UserError("DATA is empty: expected the name of a table, as in mail.csv")
    if data is None:
        either = f"there is no {path} with one either" if written is None else f"{path} names no data either"
        raise UserError(f"no table was named: give a file, as in `upturn {voice.command} mail.csv …`; {either}")
    same = written is not None and data == written.data
    source = find_source(data, flagged.delimiter or (written.delimiter if written is not None and same else None))
    flagged = replace(flagged, delimiter=source.delimiter)
    for output in writes:
        if output is not None:
            check_output(output, [*source.files, str(path)])
    columns = source.columns
    flagged = flagged.read_lists(columns)
    if written is None:
        return Settled(source, flagged, flagged, path, None)
    outcome = written.outcome
    if not experiment:
        return Settled(source, flagged, flagged.over(written), path, Roles(), written.data)
    if outcome is None or outcome in columns or outcome.partition("=")[0] in columns:
        voice.note(f"roles of columns: {path}" + (", and flags" if replace(flagged, data=None) != Roles() else ""))
        return Settled(source, flagged, flagged.over(written), path, written, written.data)
    if flagged.outcome is None or flagged.treatment is None:
        raise UserError(
            f"{path} is about another table than {source.name}: name the columns by --outcome and --treatment"
        )
    voice.note(f"{path} is about another table: not used")
    return Settled(source, flagged, flagged, path, Roles())


def load(
    voice: Voice,
    flagged: Roles,
    file: str | None,
    *,
    missing_outcomes: bool = False,
    writes: Iterable[str | None] = (),
) -> Loaded:
    """Read a table, settle the roles of its columns and say what was seen; ``writes`` as in :func:`settle`.

    The file of roles is written, if there is none, when the command has its result.
    """
    settled = settle(voice, flagged, file, writes=writes)
    source = settled.source
    frame = read_frame(source, settled.asked)
    with settled.in_words():
        found = find_roles(frame, settled.asked, settled.flagged, source.name)
        loaded = _experiment(voice, source, found, frame, missing_outcomes)
    for note in found.notes:
        voice.note(note)
    voice.at_the_end(lambda: settled.remember(voice, replace(loaded.roles, control=str(loaded.control))))
    return loaded


def tell_leaks(voice: Voice, data: Loaded) -> list[Leak]:
    """Name the features that know too much; they stay in."""
    leaks = data.leaks()
    for leak in leaks:
        drop = f"--drop {shell_word(leak.column)} if it was measured after the treatment"
        voice.note(f"{leak.column}: suspected leak, {leak.evidence} ({drop})")
    return leaks


def read_frame(source: Source, asked: Roles) -> pl.DataFrame:
    """The whole table; identifiers that were named stay as they are written."""
    import polars as pl

    columns = source.columns
    ids = [name for name in asked.id if name in columns]
    with source.in_words():
        frame = source.scan(dict.fromkeys(ids, pl.String)).collect()
    if len(frame) == 0:
        raise UserError(f"{source.name} has no rows")
    return frame


def _experiment(voice: Voice, source: Source, found: Found, frame: pl.DataFrame, missing_outcomes: bool) -> Loaded:
    roles = found.roles
    assert roles.outcome is not None
    assert roles.treatment is not None
    outcome = roles.outcome if found.success is None else roles.outcome.partition("=")[0]
    lost = frame.get_column(roles.treatment).is_null()
    if lost.any():
        voice.note(f"{plural(int(lost.sum()), 'row')} without a {roles.treatment} (the treatment): left out")
        frame = frame.filter(~lost)
    refuse_without_outcomes(frame.get_column(outcome), source.name)
    if not missing_outcomes:
        gone = frame.get_column(outcome).is_null()
        if gone.any():
            voice.note(f"{plural(int(gone.sum()), 'row')} without a {outcome} (the outcome): left out")
            frame = frame.filter(~gone)
    if len(frame) == 0:
        raise UserError(f"{source.name} has no row with both a treatment and an outcome")
    treatment = read_labels(frame.get_column(roles.treatment))
    y = read_outcome(voice, frame.get_column(outcome), found.success)
    known = y[~np.isnan(y)]
    if len(known) and known.min() == known.max():
        voice.note(f"{outcome} (the outcome) is {known[0]:g} in every row: no effect can be seen in it")
    return Loaded(
        source,
        found,
        frame,
        as_features(frame.select(found.features)),
        y,
        treatment,
        None if roles.weight is None else _numbers(frame.get_column(roles.weight), "weight"),
        None if roles.group is None else frame.get_column(roles.group).to_numpy(),
        _target(y, treatment, roles.control),
        int(lost.sum()),
    )


def _target(y: Floats, treatment: NDArray[Any], control: str | None) -> Target:
    """The arms, behind the library's gate; its words about ``control=`` become those of the flag."""
    label = None if control is None else find_label(control, treatment)
    try:
        return read_target(np.where(np.isnan(y), 0.0, y), treatment, control=label)
    except ValueError as error:
        raise UserError(str(error).replace("control=", "--control ")) from error


def as_features(frame: pl.DataFrame) -> pl.DataFrame:
    """Dates as days since 1970, which a model fitted here is also asked with; the rest as it is."""
    import polars as pl
    import polars.selectors as cs

    day = cs.date() | cs.datetime()
    return frame.with_columns(
        day.cast(pl.Datetime("us")).dt.timestamp("us") / 86_400e6,
        (cs.temporal() - day).cast(pl.Int64).cast(pl.Float64),
    )


def read_labels(column: pl.Series) -> NDArray[Any]:
    """Arms of the rows as the library takes them."""
    import polars as pl

    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype.is_temporal() or column.dtype.is_nested():
        raise UserError(
            f"--treatment {column.name}: the column holds {column.dtype} values; expected the labels of arms"
        )
    if column.dtype == pl.String:
        labels: NDArray[Any] = np.array(column.to_list(), dtype=object)
        return labels
    return np.asarray(column.to_numpy())


def find_label(control: str, treatment: NDArray[Any]) -> Label:
    """The label that a word on the command line means."""
    labels = sorted({*treatment.tolist()}, key=str)
    for label in labels:
        if str(label) == control:
            return label  # type: ignore[no-any-return]
    raise UserError(
        f"--control {control}: there is no such arm; {did_you_mean(control, [str(label) for label in labels])}"
    )


def refuse_without_outcomes(column: pl.Series, source: str) -> None:
    """The outcome of some row has to be known."""
    missing = column.is_null() | column.is_nan() if column.dtype.is_float() else column.is_null()
    if len(column) and missing.all():
        raise UserError(
            f"--outcome {column.name}: every value of the outcome is missing in {source}; fill it in, or name another column"
        )


def read_outcome(voice: Voice, column: pl.Series, success: str | None) -> Floats:
    """The outcome as numbers, NaN where it is missing."""
    import polars as pl

    name = column.name
    text = column.cast(pl.String) if column.dtype in (pl.Categorical, pl.Enum) else column
    if success is not None:
        written = text.cast(pl.String)
        values = [str(value) for value in written.drop_nulls().unique().sort().to_list()]
        if success not in values:
            raise UserError(f"--outcome {name}={success}: {name} has no such value; {did_you_mean(success, values)}")
        return _numbers(written == success, "outcome")
    if text.dtype == pl.String:
        values = [str(value) for value in text.drop_nulls().unique().sort().to_list()]
        yes, no = _words_for(values, _SUCCESS), _words_for(values, _FAILURE)
        if len(values) == 2 and len(yes) == len(no) == 1:
            voice.note(f"{name}: {yes[0]!r} counts as 1 and {no[0]!r} as 0")
            return _numbers(text == yes[0], "outcome")
        shown = ", ".join(map(repr, values[:5])) + (" …" if len(values) > 5 else "")
        raise UserError(
            f"--outcome {name}: the column holds text ({shown}); expected numbers, or the value that counts as a success, as "
            f"in --outcome {shell_word(f'{name}={values[-1]}')}"
        )
    return _numbers(text, "outcome")


def _words_for(values: list[str], words: set[str]) -> list[str]:
    return [value for value in values if value.strip().lower() in words]


def success_of(column: pl.Series) -> str | None:
    """The word of a column of two that counts as 1; None where the column holds no words."""
    import polars as pl

    if column.dtype not in (pl.Categorical, pl.Enum, pl.String):
        return None
    (word,) = _words_for(column.cast(pl.String).drop_nulls().unique().to_list(), _SUCCESS)
    return word


def _numbers(column: pl.Series, role: str) -> Floats:
    import polars as pl

    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise UserError(f"--{role} {column.name}: the column holds {column.dtype} values; expected numbers")
    return np.asarray(column.cast(pl.Float64).to_numpy(), dtype=np.float64)
