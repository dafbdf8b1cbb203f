"""``upturn score``: what a model says about a table of any size."""

from __future__ import annotations

from typing import Annotated

import typer

from upturn.cli._command import Session

MODEL_FILE = Annotated[str, typer.Argument(metavar="MODEL", help="Model written by `upturn fit`.")]
TRUSTED = Annotated[
    list[str] | None,
    typer.Option("--trust", help="A type of another library that the model file may rebuild; may be repeated."),
]


def score(
    session: Session,
    model: MODEL_FILE,
    output: Annotated[
        str, typer.Option("--output", "-o", help="File to write: .parquet, .csv, .jsonl or .arrow.")
    ] = "scores.parquet",
    recommend: Annotated[bool, typer.Option("--recommend", help="Add the arm that the model would give.")] = False,
    trust: TRUSTED = None,
) -> int:
    """Predict the uplift of everybody in a table of any size, in a stream.

    Written are the identifiers (or the number of the row) and the predicted uplift, a column for each arm. Identifiers of a CSV are written as they stand there.
    """
    import os

    import polars as pl

    from upturn._parallel import count_threads
    from upturn.cli._load import settle
    from upturn.cli._predict import ask_about, count_rows, load_model
    from upturn.cli._write import check_table_name, write_table

    voice = session.voice
    check_table_name(output, [model])
    fitted = load_model(model, trust, 1)
    if recommend:
        fitted._refuse_without_zero()
    # Groups of rows that polars reads ahead: each costs its memory.
    os.environ.setdefault("POLARS_ROW_GROUP_PREFETCH_SIZE", str(max(2, count_threads(session.jobs))))
    asked = ask_about(fitted, settle(voice, session.roles, session.file, experiment=False, writes=[output]))
    types, rows = dict(asked.score_types), 0
    if recommend:
        types["recommended"] = pl.String

    with voice.progress(f"scoring {asked.source.name}", count_rows(asked)) as done, asked.source.in_words():

        def answer(X: pl.DataFrame) -> dict[str, object]:
            nonlocal rows
            found: dict[str, object] = dict(asked.scores(X))
            if recommend:
                found["recommended"] = [str(label) for label in fitted.recommend(X).tolist()]
            rows += len(X)
            done(len(X))
            return found

        write_table(asked.ask(answer, types, session.jobs), output)
    voice.result(
        f"{rows:,} rows with {', '.join(types)}, known by {', '.join(asked.id_names)}: {output}",
        output=output,
        rows=rows,
        ids=asked.id_names,
        columns=list(types),
        control=fitted.control_,
        arms=fitted.arms_,
    )
    return 0
