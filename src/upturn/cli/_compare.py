"""``upturn compare``: which model is better, on splits that all of them share?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from upturn.cli._command import Session
from upturn.cli._models import MODELS
from upturn.cli._say import UserError, rows_of

if TYPE_CHECKING:
    from upturn.cli._load import Loaded


def compare(
    session: Session,
    models: Annotated[
        str, typer.Option("--models", help=f"Names with commas between: {', '.join(MODELS)}.")
    ] = "forest,t",
    repeats: Annotated[
        int, typer.Option("--repeats", min=2, help="Random splits into four fifths and one fifth.")
    ] = 10,
    metric: Annotated[str, typer.Option("--metric", help="What is measured: auuc, qini, autoc, uplift_at …")] = "auuc",
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="The model the others are compared with; the first by default.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of a model, MODEL.NAME=VALUE; may be repeated.")
    ] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", help="File to keep results in; run again, it goes on where it stopped.")
    ] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Write the table to this file as well.")] = None,
) -> int:
    """Fit several models to the same random splits and compare them on the parts they have not seen.

    Differences are paired, with 95% intervals corrected for what splits have in common. Whatever a model tunes, it tunes inside its own part of a split.
    """
    from upturn.cli._load import load, tell_leaks
    from upturn.cli._models import class_name, make_model, settings_of
    from upturn.cli._write import check_table_name
    from upturn.metrics._registry import find_metric
    from upturn.model_selection import compare_models
    from upturn.model_selection._journal import Lines

    voice = session.voice
    names = list(dict.fromkeys(name.strip() for name in models.split(",") if name.strip()))
    if len(names) < 2:
        raise UserError(f"--models {models}: expected at least two models with a comma between, as in forest,t")
    for name in names:
        class_name(name)
    if baseline is not None and baseline not in names:
        raise UserError(f"--baseline {baseline}: it is not among the models {', '.join(names)}")
    find_metric(metric, measures="predict")
    if output is not None:
        check_table_name(output, [] if resume is None else [resume])
    if resume is not None:
        Lines(resume, bool)  # refuses a file that is none of results
    data = load(voice, session.roles, session.file, writes=[output, resume])
    tell_leaks(voice, data)
    common: dict[str, Any] = {"control": data.control, "n_arms": data.target.n_arms, "seed": session.seed, "jobs": 1}
    made = {name: make_model(name, settings_of(name, settings or (), names), **common) for name in names}
    with voice.step(f"{len(names)} models on {repeats} splits of {len(data.y):,} rows", has_bar=True):
        found = compare_models(
            made,
            data.X,
            data.y,
            data.treatment,
            data.weight,
            cv=_splits(data, repeats, session.seed),
            metric=metric,
            baseline=baseline,
            resume=resume,
            n_jobs=session.jobs,
            verbose=int(voice.shows_bars),
            random_state=session.seed,
        )
    table = found.table()
    if output is not None:
        import polars as pl

        from upturn.cli._write import write_table

        write_table(pl.DataFrame(rows_of(table)).lazy(), output)
    voice.result(
        repr(table),
        metric=metric,
        baseline=found.baseline,
        repeats=repeats,
        models=rows_of(table),
        scores={name: found[name] for name in found},
    )
    return 0


def _splits(data: Loaded, repeats: int, seed: int) -> Any:
    """Random splits; where rows belong together, of their groups."""
    from upturn.model_selection import RepeatedUpliftSplit

    if data.group is None:
        return RepeatedUpliftSplit(repeats, random_state=seed)
    from sklearn.model_selection import GroupShuffleSplit

    return list(GroupShuffleSplit(repeats, test_size=0.2, random_state=seed).split(data.X, groups=data.group))
