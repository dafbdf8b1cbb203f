"""``upturn datasets``: tables to try things on."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from upturn.cli._command import Session
from upturn.cli._say import UserError, Voice, did_you_mean

if TYPE_CHECKING:
    import polars as pl


def _makers() -> dict[str, Any]:
    """Loaders and simulators by the names they have here: ``hillstrom``, ``campaign``."""
    from upturn import datasets

    found = {}
    for name in datasets.__all__:
        for start in ("load_", "simulate_"):
            if name.startswith(start):
                found[name.removeprefix(start)] = getattr(datasets, name)
    return found


def list_sets(session: Session) -> int:
    """List the data sets: those that are loaded or downloaded, and those that are simulated and know the true effect."""
    rows = [
        {
            "name": name,
            "kind": "simulated" if maker.__name__.startswith("simulate") else "real",
            "about": re.sub(
                r" (of|in) \[\d\]_|\*\*|, section [\w.-]+", "", (inspect.getdoc(maker) or "").splitlines()[0]
            ),
        }
        for name, maker in sorted(_makers().items())
    ]
    width = max(len(row["name"]) for row in rows)
    text = "\n".join(f"{row['name']:<{width}}  {row['kind']:<9}  {row['about']}" for row in rows)
    session.voice.result(text, datasets=rows)
    return 0


def get(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name of `upturn datasets list`.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="File to write; NAME.parquet by default.")
    ] = None,
    rows: Annotated[int | None, typer.Option("--rows", min=1, help="Rows of a simulated set.")] = None,
    truth: Annotated[bool, typer.Option("--truth", help="Add the true effects, where they are known.")] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the data set, NAME=VALUE; may be repeated.")
    ] = None,
) -> int:
    """Write a data set as a table with the columns `outcome` and `treatment`."""
    import warnings

    from upturn.cli._write import check_table_name, write_table

    makers = _makers()
    if name not in makers:
        raise UserError(f"there is no data set {name!r}: {did_you_mean(name, sorted(makers))}")
    path = output or f"{name}.parquet"
    check_table_name(path)
    with warnings.catch_warnings(), _downloads_heard(session.voice):
        frame = _table(makers[name](**_options(makers[name], settings or (), rows, session.seed)), truth)
    write_table(frame.lazy(), path)
    session.voice.result(
        f"{len(frame):,} rows of {name}: {path}", name=name, output=path, rows=len(frame), columns=frame.columns
    )
    return 0


@contextlib.contextmanager
def _downloads_heard(voice: Voice) -> Iterator[None]:
    """What pooch writes to standard error while it downloads is a note."""
    if importlib.util.find_spec("pooch") is None:
        yield
        return
    import logging

    import pooch

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            voice.note(record.getMessage())

    log = pooch.get_logger()
    before, log.handlers = log.handlers, [Notes()]
    try:
        yield
    finally:
        log.handlers = before


def _options(maker: Any, settings: Sequence[str], rows: int | None, seed: int) -> dict[str, Any]:
    from upturn.cli._models import read_value

    names = list(inspect.signature(maker).parameters)
    options: dict[str, Any] = {"random_state": seed} if "random_state" in names else {}
    if rows is not None:
        if "n" not in names:
            raise UserError("--rows: this data set is a real one, and has the rows it has")
        options["n"] = rows
    for setting in settings:
        key, mark, value = setting.partition("=")
        if not mark or key not in names:
            raise UserError(f"--set {setting}: expected NAME=VALUE; {did_you_mean(key, names)}")
        options[key] = read_value(value)
    return options


def _table(data: Any, truth: bool) -> pl.DataFrame:
    """An experiment as one table."""
    import numpy as np
    import polars as pl

    if hasattr(data.X, "columns"):
        features = {str(name): _column(data.X[name]) for name in data.X.columns}
    else:
        matrix = np.asarray(data.X)
        features = {f"x{j}": matrix[:, j] for j in range(matrix.shape[1])}
    columns: dict[str, Any] = dict(features)
    for name, values in (("treatment", data.treatment), ("outcome", data.y)):
        columns[name if name not in features else f"{name}_"] = values
    if truth and data.effect is not None:
        effect = np.asarray(data.effect).reshape(len(data.y), -1)
        columns.update({f"true_effect_{k + 1}": effect[:, k] for k in range(effect.shape[1])})
    return pl.DataFrame(columns)


def _column(column: Any) -> Any:
    """A column of pandas as polars takes it without pyarrow."""
    import polars as pl

    if importlib.util.find_spec("pyarrow") is not None:
        return pl.Series(column)
    if column.dtype.kind in "biuf":
        return pl.Series(column.to_numpy()).fill_nan(None) if column.dtype.kind == "f" else pl.Series(column.to_numpy())
    return pl.Series([None if value != value else value for value in column.astype(object).tolist()])
