"""``upturn select``: which columns matter?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from upturn.cli._command import Session
from upturn.cli._say import UserError, did_you_mean, rows_of

METHODS = ("umodl", "kl", "euclidean", "chi2", "f", "lr")


def select(
    session: Session,
    method: Annotated[str, typer.Option("--method", help=f"One of {', '.join(METHODS)}.")] = "umodl",
    best: Annotated[int, typer.Option("--best", min=1, help="How many columns the filters keep (all but umodl).")] = 10,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Write the table to this file as well.")] = None,
) -> int:
    """Rank the columns by how much the effect differs along them.

    umodl cuts every column into intervals or groups by a Bayesian criterion, and keeps those where that tells something; the others are filters that score a column and keep the best.
    """
    import numpy as np

    from upturn.cli._load import load, tell_leaks
    from upturn.cli._write import check_table_name, write_table
    from upturn.features import FilterSelector, UMODLSelector
    from upturn.metrics import Table

    voice = session.voice
    if method not in METHODS:
        raise UserError(f"--method {method}: {did_you_mean(method, METHODS)}")
    if output is not None:
        check_table_name(output)
    data = load(voice, session.roles, session.file, writes=[output])
    tell_leaks(voice, data)
    criterion: Any = method
    common: dict[str, Any] = {"control": data.control, "n_jobs": session.jobs, "verbose": int(voice.shows_bars)}
    selector: Any = (
        UMODLSelector(**common) if method == "umodl" else FilterSelector(criterion=criterion, k=best, **common)
    )
    with voice.step(f"{method} on {data.X.width} columns of {len(data.y):,} rows", has_bar=True):
        selector.fit(data.X, data.y, data.treatment, data.weight)
    pvalues = getattr(selector, "pvalues_", None)
    order = (
        np.lexsort((np.arange(data.X.width), -selector.scores_)) if pvalues is None else np.argsort(selector.ranking_)
    )
    kept = selector.get_support()
    columns: dict[str, Any] = {"column": np.array(data.X.columns)[order], "importance": selector.scores_[order]}
    if pvalues is not None:
        columns["p_value"] = pvalues[order]
    columns["kept"] = ["yes" if keep else "" for keep in kept[order]]
    table = Table(columns, title=f"{int(kept.sum())} of {data.X.width} columns kept by {method}")
    if output is not None:
        import polars as pl

        write_table(pl.DataFrame(rows_of(table)).lazy(), output)
    voice.result(repr(table), method=method, columns=rows_of(table), kept=np.array(data.X.columns)[kept])
    return 0
