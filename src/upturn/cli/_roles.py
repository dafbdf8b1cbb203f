"""Which column is what: by flags, by the file ``upturn.toml`` of an earlier run, and by what can be seen.

A flag goes before the file, and the file before what is seen. The file is written by the first run that finds none. Later
flags add to it what it does not say, such as another column to drop; one that contradicts it holds for that run alone.
Columns that cannot be features are found and named, identifiers and dates among them; nothing is left out without a word.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from upturn.cli._dates import undecided_dates
from upturn.cli._say import UserError, did_you_mean, one_line, shell_word
from upturn.cli._write import whole_file

if TYPE_CHECKING:
    import polars as pl

FILE = "upturn.toml"
_NO_ROLES = "--roles names a file such as upturn.toml, and DATA the table"
LISTS = ("id", "drop", "keep")
_ID_NAME = re.compile(
    r"(^|[_\-. ])(id|uid|guid|uuid|key|no|nr|customer|client|patient|person|member|user|household|account)$|(?-i:[a-z]I[dD])$|^(email|e-mail|phone)$",
    re.IGNORECASE,
)
_SEVERAL = 4  # rows of one person, on average, up to which a column of many values is who they are
_MANY = 100  # values of it
_FEWEST = 20  # rows below which nothing looks like an identifier
_FEW_OTHERS = 0.1  # share of values that are no numbers, in a column that was meant to be one
_SIGNS = r"[$€£%,\s]"  # that people put beside numbers


@dataclass(frozen=True)
class Roles:
    """Columns by what they are; None and () where nothing was said."""

    data: str | None = None
    outcome: str | None = None
    treatment: str | None = None
    control: str | None = None
    weight: str | None = None
    group: str | None = None
    id: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    delimiter: str | None = None  # of a CSV

    def over(self, other: Roles) -> Roles:
        """These roles, and where they say nothing about something or some column, the other ones."""
        mine = {*self.id, *self.drop, *self.keep, *self.named.values()}
        values: dict[str, Any] = {}
        for part in fields(Roles):
            own, others = getattr(self, part.name), getattr(other, part.name)
            if part.name in LISTS:
                values[part.name] = own + tuple(name for name in others if name not in mine)
            else:
                values[part.name] = others if own is None else own
        if values["treatment"] != other.treatment and self.control is None:
            values["control"] = None  # the other one's is of other arms
        return Roles(**values)

    def read_lists(self, columns: Sequence[str]) -> Roles:
        """With the names between commas told apart."""
        told: dict[str, Any] = {role: names_in(getattr(self, role), columns) for role in LISTS}
        return replace(self, **told)

    @property
    def named(self) -> dict[str, str]:
        """Columns of one role each, by that role."""
        single = {"outcome": self.outcome, "treatment": self.treatment, "weight": self.weight, "group": self.group}
        return {role: name for role, name in single.items() if name is not None}


@dataclass(frozen=True)
class Found:
    """The roles of a table: its features, and what was seen on the way."""

    roles: Roles
    features: tuple[str, ...]
    success: str | None = None  # the value of a text outcome that counts as 1
    notes: tuple[str, ...] = ()
    seen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # ids, dates, unusable columns that nobody named


def read_roles(path: Path) -> Roles:
    """The roles written in a file."""
    if path.suffix.lower() != ".toml" and not path.is_file():
        raise UserError(f"--roles {path}: expected a file such as upturn.toml, which the first run writes")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path} is not TOML: {one_line(error)}; "
            + ("mend it, or remove it and name the columns by flags" if path.suffix == ".toml" else _NO_ROLES)
        ) from error
    known = {part.name for part in fields(Roles)}
    for key, value in values.items():
        if key not in known:
            raise UserError(f"{path} has an entry {key!r}: {did_you_mean(key, sorted(known))}")
        several = key in LISTS
        good = (
            isinstance(value, list) and all(isinstance(item, str) for item in value)
            if several
            else isinstance(value, str)
        )
        if not good:
            raise UserError(f"{path}: {key} = {value!r}; expected {'a list of names' if several else 'text in quotes'}")
    read: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    return Roles(**read)


def write_roles(path: Path, roles: Roles) -> bool:
    """Write roles to a new file, and say whether that could be done."""
    head = "# Which column is what. Written by the first run of upturn here; later runs read it. Flags go before it."
    lines = [_line(part.name, value) for part in fields(Roles) if (value := getattr(roles, part.name))]
    if path.exists():
        return False
    return _written(path, "\n".join([head, *lines]) + "\n")


def _written(path: Path, text: str) -> bool:
    """Whether a file could be written, whole."""
    try:
        with whole_file(str(path)) as file:
            file.write_text(text, encoding="utf-8")
    except (OSError, UserError):
        return False
    return True


def add_roles(path: Path, before: Roles, after: Roles) -> str | None:
    """Add to a file what it does not say yet, line by line, and say which lines; the rest stays as it is."""
    changed = {}
    for part in fields(Roles):
        old, new = getattr(before, part.name), getattr(after, part.name)
        if new and (set(new) != set(old) if part.name in LISTS else old is None):
            changed[part.name] = new
    if not changed:
        return None
    lines = path.read_text(encoding="utf-8").splitlines()
    for name, value in changed.items():
        places = [i for i, line in enumerate(lines) if re.match(rf"\s*{name}\s*=", line)]
        if places:
            lines[places[0]] = _line(name, value)
        else:
            lines.append(_line(name, value))
    text = "\n".join(lines) + "\n"
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        wanted = "; ".join(_line(name, value) for name, value in changed.items())
        return f"{path} has a list over several lines, and was not changed: write there {wanted}"
    if not (os.access(path, os.W_OK) and _written(path, text)):
        return f"{path} could not be written to, and was not changed"
    return f"{path}: {', '.join(changed)} changed"


def _line(name: str, value: str | tuple[str, ...]) -> str:
    return f"{name} = " + (_quoted(value) if isinstance(value, str) else f"[{', '.join(map(_quoted, value))}]")


def _quoted(text: str) -> str:
    """A basic string of TOML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'


def names_in(values: Iterable[str], columns: Sequence[str]) -> tuple[str, ...]:
    """Columns of an option that may be repeated or have several names between commas; a name that has one is taken whole."""
    names: list[str] = []
    for value in values:
        names += [value] if value in columns else [part.strip() for part in value.split(",") if part.strip()]
    return tuple(dict.fromkeys(names))


# --------------------------------------------------------------------------------------------- finding


def find_roles(frame: pl.DataFrame, asked: Roles, flagged: Roles, source: str) -> Found:
    """Settle which column is what.

    Parameters
    ----------
    frame : table
    asked : what flags and file say together
    flagged : what the flags alone say; of the file, columns to leave out that are not there are passed over
    source : what the table is called in messages
    """
    columns = frame.columns
    need = [role for role in ("outcome", "treatment") if getattr(asked, role) is None]
    if need:
        raise UserError(
            f"{' and '.join(need)} not named: say which column it is, as in --{need[0]} NAME; {source} has the columns "
            f"{', '.join(columns[:20])}{' …' if len(columns) > 20 else ''}"
        )
    outcome, success = _split_outcome(asked.outcome, columns)
    for role, name in {**asked.named, "outcome": outcome}.items():
        _must_be_there(name, role, columns, source, flagged.delimiter)
    for role in LISTS:
        for name in getattr(flagged, role):
            _must_be_there(name, role, columns, source)
    _only_once(asked, outcome)
    taken = {outcome, *asked.named.values(), *asked.id, *asked.drop}
    rest = [name for name in columns if name not in taken]
    kept = set(asked.keep)
    ids, dates, odd, notes = [], [], [], []
    for name in rest:
        column = frame.get_column(name)
        if column.dtype.is_nested() or str(column.dtype) in ("Binary", "Object"):
            odd.append(name)
            notes.append(f"{name}: holds {column.dtype} values, which are no feature; left out")
        elif name in kept:
            continue
        elif column.dtype.is_temporal():
            dates.append(name)
            notes.append(f"{name}: dates; left out (--keep {shell_word(name)} makes them numbers of days)")
        elif undecided_dates(column):
            dates.append(name)
            notes.append(
                f"{name}: dates, as {column.drop_nulls()[0]!r}; left out (written as 2024-12-31, --keep {shell_word(name)} would make them "
                "numbers of days)"
            )
        else:
            reason = looks_like_id(column)
            odd_ones = nearly_numbers(column)
            if odd_ones:
                notes.append(f"{name}: taken as text, because {odd_ones}; mend or empty those for a column of numbers")
            elif reason:
                ids.append(name)
                word = shell_word(name)
                several = column.n_unique() < 0.9 * len(column) and asked.group is None
                together = f"; --group {word} keeps the rows that share one together" if several else ""
                notes.append(
                    f"{name}: looks like an identifier ({reason}); carried along, not a feature (--keep {word} to use it{together})"
                )
    out = {*ids, *dates, *odd}
    features = tuple(name for name in rest if name not in out)
    if not features:
        raise UserError(
            f"{source} has no feature left: every column has another role, is dropped, or looks like an identifier or a date"
        )
    settled = replace(asked, id=(*asked.id, *ids), drop=(*asked.drop, *dates, *odd))
    seen = {"ids": tuple(ids), "dates": tuple(dates), "unusable": tuple(odd)}
    return Found(settled, features, success, tuple(notes), seen)


def _split_outcome(outcome: str | None, columns: Sequence[str]) -> tuple[str, str | None]:
    """``visit=yes`` is the column ``visit``, of which ``yes`` is the success, unless a column is called just that."""
    assert outcome is not None
    name, mark, value = outcome.partition("=")
    return (name, value) if mark and outcome not in columns else (outcome, None)


def _must_be_there(name: str, role: str, columns: Sequence[str], source: str, delimiter: str | None = None) -> None:
    if name in columns:
        return
    if len(columns) == 1:
        mend = (
            "leave --delimiter out, and it is found"
            if delimiter
            else "say what stands between them, as in --delimiter ';'"
        )
        raise UserError(f"--{role} {name}: {source} has a single column, {columns[0]!r}; expected several: {mend}")
    raise UserError(f"--{role} {name}: {source} has no column {name!r}; {did_you_mean(name, columns)}")


def _only_once(roles: Roles, outcome: str) -> None:
    owners: dict[str, str] = {}
    single = {**roles.named, "outcome": outcome}
    for role, names in {**{k: (v,) for k, v in single.items()}, "drop": roles.drop}.items():
        for name in names:
            if name in owners:
                raise UserError(f"column {name!r} is both {owners[name]} and {role}: give it one role")
            owners[name] = role


def nearly_numbers(column: pl.Series) -> str | None:
    """What keeps a column of text from being one of numbers, where that is next to nothing; None elsewhere."""
    import polars as pl

    if column.dtype != pl.String:
        return None
    text = column.drop_nulls()
    others = text.filter(text.str.strip_chars().cast(pl.Float64, strict=False).is_null())
    if not len(others):
        return None
    bare = others.str.replace_all(_SIGNS, "").cast(pl.Float64, strict=False)
    if len(others) > _FEW_OTHERS * len(text) and bare.null_count() > _FEW_OTHERS * len(text):
        return None
    what = "is no plain number" if len(others) == 1 else "are no plain numbers, such as"
    return f"{len(others):,} of {len(text):,} values {what}{':' if len(others) == 1 else ''} {others[0]!r}"


def looks_like_id(column: pl.Series) -> str | None:
    """Why a column looks like an identifier; None if it does not.

    Text of which more than half of the rows have a value of their own, or many that a few rows share; whole numbers that are
    called an id, with as many values, or that count the rows.
    """
    n = len(column) - column.null_count()
    if n < _FEWEST or column.dtype.is_float() or str(column.dtype) == "Boolean":
        return None
    distinct = column.drop_nulls().n_unique()
    seen = f"{distinct:,} different values in {n:,} rows"
    alone = distinct > n / 2 or (distinct >= _MANY and distinct > n / _SEVERAL)
    if not column.dtype.is_numeric():
        return seen if alone else None
    if distinct < n:
        return seen if _ID_NAME.search(column.name) and alone else None
    low, high = (int(column.min()), int(column.max()))  # type: ignore[arg-type]
    return seen if _ID_NAME.search(column.name) or high - low == n - 1 else None
