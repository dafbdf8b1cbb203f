"""The command ``upturn``: from a file to a decision without writing Python. Needs the extra ``[cli]``.

=============  ==========================================================================================================
``_app``       the commands put together, and the one place where errors become a line and an exit code
``_command``   options that commands share, written once
``_say``       what is said: results, notes, progress, JSON; ``_flags`` says of flags what the library says of parameters
``_read``      what the argument DATA means, as a lazy frame of polars; ``_formats`` reads each format, ``_dates`` finds dates in
               text, ``_unreadable`` says what could not be read
``_roles``     which column is what: flags, ``upturn.toml``, and what can be seen
``_leaks``     columns that know too much
``_load``      a table and its roles as an experiment
``_models``    models by name and their parameters
``_predict``   a saved model asked about a table of any size
``_write``     files written whole or not at all
``_short``     what keeps a short command short
=============  ==========================================================================================================

and a file for each command. Nothing heavy is imported before a command runs: help takes a sixth of a second.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the arguments of the process, or these, and return its exit code."""
    absent = [name for name in ("typer", "rich", "polars") if importlib.util.find_spec(name) is None]
    if absent:
        print(f"upturn: the command needs {' and '.join(absent)}: pip install 'upturn[cli]'", file=sys.stderr)
        return 2
    from upturn.cli._app import run
    from upturn.cli._short import own_process

    with own_process() if arguments is None else contextlib.nullcontext():
        return run(arguments)
