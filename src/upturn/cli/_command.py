"""Options that commands share, written once and added to the signature of each.

A command is a function whose first parameter is a :class:`Session`; the others are its own arguments and options::

    @command(app, "check", example="upturn check mail.csv --outcome visit --treatment segment")
    def check(session: Session, alpha: Annotated[float, typer.Option(help="…")] = 0.05) -> int: ...
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from upturn.cli._roles import LISTS, Roles
from upturn.cli._say import UserError, Voice

_SINGLE = ("outcome", "treatment", "control", "weight", "group")
_COLUMNS, _ALL = "Columns", "Every command"

Names = list[str] | None


@dataclass(frozen=True)
class Session:
    """What every command is given: how to speak, the seed, the threads, and what the flags say of columns."""

    voice: Voice
    seed: int = 0
    jobs: int = -1
    roles: Roles = Roles()  # noqa: RUF009 - frozen
    file: str | None = None


def _shared_options() -> dict[str, tuple[Any, Any]]:
    def flag(*names: str, text: str) -> Any:
        return Annotated[bool, typer.Option(*names, help=text, rich_help_panel=_ALL)]

    return {
        "json": (flag("--json", text="One JSON document on standard output, for machines."), False),
        "quiet": (flag("--quiet", "-q", text="Say nothing but errors (and the JSON document)."), False),
        "seed": (
            Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.", rich_help_panel=_ALL)],
            0,
        ),
        "jobs": (
            Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for every core.", rich_help_panel=_ALL)],
            -1,
        ),
    }


def _role_options() -> dict[str, tuple[Any, Any]]:
    def column(name: str, text: str) -> tuple[Any, Any]:
        return Annotated[str | None, typer.Option(f"--{name}", help=text, rich_help_panel=_COLUMNS)], None

    def columns(name: str, text: str) -> tuple[Any, Any]:
        return Annotated[Names, typer.Option(f"--{name}", help=text, rich_help_panel=_COLUMNS)], None

    return {
        "outcome": column("outcome", "The outcome; NAME=VALUE says which value of a text column is the success."),
        "treatment": column("treatment", "The arm each row was in."),
        "control": column("control", "The label of the control arm, where its name does not tell."),
        "weight": column("weight", "Weights of the rows."),
        "group": column("group", "Rows that belong together, such as a household: never on both sides of a split."),
        "id": columns("id", "Identifiers: carried into lists, not features. Repeat it, or put commas between names."),
        "drop": columns("drop", "Columns to leave out."),
        "keep": columns("keep", "Columns to use although they look like identifiers or dates."),
        "delimiter": column("delimiter", "What stands between the columns of a CSV, where it is not found."),
        "file": (
            Annotated[
                str | None,
                typer.Option("--roles", help="File with the roles of columns; upturn.toml, written by the first run."),
            ],
            None,
        ),
    }


_DATA = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        show_default=False,
        help="Table: CSV, Parquet, Arrow, JSON lines, xlsx, 'part-*.csv', file.duckdb::table, file.sqlite::table, or - ; "
        "by default the one named in upturn.toml.",
    ),
]


def command(app: typer.Typer, name: str, *, example: str, data: bool = True) -> Callable[[Any], Any]:
    """Register a command; with ``data``, it takes a table and the roles of its columns."""

    def register(function: Callable[..., int]) -> Callable[..., int]:
        hints = typing.get_type_hints(function, include_extras=True)
        own = list(inspect.signature(function).parameters.values())[1:]
        parts: dict[str, tuple[Any, Any]] = {p.name: (hints[p.name], p.default) for p in own}
        first = {key: part for key, part in parts.items() if part[1] is inspect.Parameter.empty}
        rest = {key: part for key, part in parts.items() if key not in first}
        table = {"data": (_DATA, None)} if data else {}
        roles = _role_options() if data else {}
        whole = {**first, **table, **roles, **rest, **_shared_options()}

        @functools.wraps(function)
        def run(**values: Any) -> int:
            if values["jobs"] == 0:
                raise UserError("--jobs 0: expected a number of threads such as 4, or -1 for every core")
            voice = Voice(name, values["json"], values["quiet"])
            flags = Roles()
            if data:
                names: dict[str, Any] = {key: tuple(values[key] or ()) for key in LISTS}
                single = {key: values[key] for key in ("data", "delimiter", *_SINGLE)}
                flags = Roles(**single, **names)
            session = Session(voice, values["seed"], values["jobs"], flags, values.get("file"))
            with voice.hears_warnings():
                return function(session, **{key: values[key] for key in parts})

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(key, kind, default=default, annotation=hint) for key, (hint, default) in whole.items()]
        )
        run.__annotations__ = {key: hint for key, (hint, _) in whole.items()}
        text = re.sub(
            r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(function.__doc__ or "")
        )  # a terminal breaks lines itself
        app.command(name, help=text, epilog=f"Example: {example}")(run)
        return function

    return register
