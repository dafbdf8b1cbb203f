"""The commands put together, and the one place where errors become a line and an exit code.

0: done. 1: ``check`` found problems. 2: something the user can mend. 130: interrupted. Anything else that goes wrong is a
defect of this program and shows where it happened: so does a ValueError or TypeError of a line of ours that raises none.
"""

from __future__ import annotations

import contextlib
import difflib
import dis
import itertools
import json
import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

import upturn
from upturn.cli import _check, _compare, _datasets, _demo, _evaluate, _fit, _report, _score, _select, _show, _target
from upturn.cli._command import command
from upturn.cli._flags import in_flags
from upturn.cli._say import UserError, one_line, open_streams, put, tell

_ABOUT = """Uplift modelling from a file: is the experiment sound, for whom did it work, whom to treat next.

Start with `upturn report DATA --outcome … --treatment …`, which does the whole job, or with `upturn demo`. The first run writes what the columns are to upturn.toml, and later ones need no flags."""

_ROLES = "--outcome visit --treatment segment"
# Function, an example that works, and whether it takes a table and the roles of its columns.
_COMMANDS: dict[str, tuple[Any, str, bool]] = {
    "check": (_check.check, f"upturn check mail.csv {_ROLES}", True),
    "report": (_report.report, f"upturn report mail.csv {_ROLES} --cost 1.2 --value 25 -o report.html", True),
    "fit": (_fit.fit, f"upturn fit mail.csv {_ROLES} --model forest --set max_depth=5 -o model.upturn", True),
    "compare": (_compare.compare, f"upturn compare mail.csv {_ROLES} --models forest,x,dr,svm --repeats 20", True),
    "evaluate": (_evaluate.evaluate, f"upturn evaluate model.upturn new.csv {_ROLES} --plots plots", True),
    "score": (_score.score, "upturn score model.upturn people.csv -o scores.parquet", True),
    "target": (
        _target.target,
        "upturn target model.upturn people.csv --budget 3000 --cost 1.2 --value 25 -o list.csv",
        True,
    ),
    "select": (_select.select, f"upturn select mail.csv {_ROLES} --method umodl", True),
    "show": (_show.show, "upturn show model.upturn", False),
    "export": (_show.export, "upturn export model.upturn --to json -o model.json", False),
    "demo": (_demo.demo, "upturn demo --folder upturn-demo", False),
    "compile": (_demo.compile_kernels, "upturn compile", False),
}

# An estimator, a gate or a file that refuses something says so in words for users.
_IN_WORDS = (UserError, ValueError, TypeError, OSError, ImportError)
_INTERRUPTED = 130  # which the parser of command lines makes of Ctrl-C by itself, without a word
_HOUSE = os.path.join(os.path.dirname(upturn.__file__), "")


def make_app() -> typer.Typer:
    """The application; help is plain text in a pipe and coloured on a terminal."""
    app = typer.Typer(
        name="upturn",
        help=_ABOUT,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich" if sys.stdout.isatty() else None,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    for name, (function, example, data) in _COMMANDS.items():
        command(app, name, example=example, data=data)(function)
    sets = typer.Typer(help="Data sets to try things on.", no_args_is_help=True)
    command(sets, "list", example="upturn datasets list", data=False)(_datasets.list_sets)
    command(sets, "get", example="upturn datasets get campaign --rows 20000 -o campaign.csv", data=False)(_datasets.get)
    app.add_typer(sets, name="datasets")

    @app.callback()
    def options(
        version: Annotated[
            bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version and leave.")
        ] = False,
    ) -> None:
        """What goes before any command."""

    return app


def _version(asked: bool) -> None:
    if asked:
        put(f"upturn {upturn.__version__}")
        raise typer.Exit


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code."""
    open_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _call(given)
        return code if code != _INTERRUPTED else _fail("interrupted", given, code)
    except KeyboardInterrupt:
        return _fail("interrupted", given, _INTERRUPTED)
    except Exception as error:
        if type(error).__name__ == "Abort":
            return _fail("interrupted", given, _INTERRUPTED)
        text = _words(error, given)
        if text is None and not isinstance(error, MemoryError):
            error.add_note("This is a defect of upturn: please report it, with the lines above.")
        if text is None or os.environ.get("UPTURN_TRACEBACK"):
            raise
        return _fail(text, given, 2)


def _call(given: list[str]) -> int:
    """The exit code of a command line; a group without a command shows its help."""
    try:
        code = make_app()(given, prog_name="upturn", standalone_mode=False)
    except Exception as error:
        if type(error).__name__ != "NoArgsIsHelpError":
            raise
        if text := error.format_message():  # type: ignore[attr-defined]  # empty where rich has written it
            put(text)
        return 2
    except SystemExit as end:
        if not isinstance(
            end.__context__, BrokenPipeError
        ):  # of the parser of command lines, whose help nobody reads any longer
            raise
        return 0
    return code if isinstance(code, int) else 0


def _words(error: Exception, given: Sequence[str]) -> str | None:
    """What to tell a user; None for a defect of this program."""
    usage: Any = getattr(error, "format_message", None)  # of the parser of command lines
    if usage is not None:
        context = getattr(error, "ctx", None)
        command = f"upturn {given[0]}" if given and given[0] in _COMMANDS else "upturn"
        where = command if context is None else context.command_path
        option = getattr(error, "option_name", None)
        if type(error).__name__ == "NoSuchOption" and option:
            near = difflib.get_close_matches(str(option), getattr(error, "possibilities", None) or (), 1, 0.75)
            return f"there is no option {option}; {f'did you mean {near[0]}?' if near else f'see {where} --help'}"
        text = _expected(usage().rstrip(".").replace("argument(s)", "arguments"), given)
        more = re.search(r"unexpected extra argument\S* \(([^\s)]+)", text)
        if more and os.path.isfile(more[1]):  # a pattern that the shell has filled in
            return f"{text}; put a pattern of several files in quotes, as in upturn check 'part-*{os.path.splitext(more[1])[1]}'"
        return f"{text}{'' if text.endswith('?') else ';'} see {where} --help"
    if type(error).__module__.startswith("polars"):
        return f"the table could not be read: {one_line(error)[:400]}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    refused = isinstance(error, _IN_WORDS) and not _slipped(error)
    return in_flags(str(error)) if refused else None


def _expected(text: str, given: Sequence[str]) -> str:
    """What a number was to be, in the words of all other errors: ``--seed -1: expected …``."""
    found = re.match(r"Invalid value for '(?:.* / )?(--\S+?)'.*?: (.*(?:integer|float|number|>=|equal to).*)", text)
    if found is None:
        return text
    flag, wish = found[1], found[2]
    values = [word.partition("=")[2] for word in given if word.startswith(f"{flag}=")]
    values += [value for word, value in itertools.pairwise(given) if word == flag]
    least = re.search(r"(?:greater than or equal to |>=)(-?[\d.]*\d)", wish)
    what = f"a number of at least {least[1]}" if least else "a whole number" if "integer" in wish else "a number"
    return f"{' '.join([flag, *values[-1:]])}: expected {what}"


def _slipped(error: Exception) -> bool:
    """Whether a line of ours went wrong without raising an error, as where two shapes do not fit: no gate would say so.

    What other libraries say is left to them: they check what they are given, as scikit-learn does with parameters.
    """
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None or not isinstance(error, ValueError | TypeError) or isinstance(error, UnicodeError):
        return False
    code = place.tb_frame.f_code
    return code.co_filename.startswith(_HOUSE) and code.co_code[place.tb_lasti] != dis.opmap["RAISE_VARARGS"]


def _fail(text: str, given: Sequence[str], code: int) -> int:
    line = one_line(text)
    tell(f"upturn: {line}")
    if "--json" in given:
        with contextlib.suppress(UserError):  # it was said
            put(json.dumps({"error": line, "code": code}, ensure_ascii=False))
    return code
