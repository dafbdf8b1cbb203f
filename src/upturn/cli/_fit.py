"""``upturn fit``: learn a model from an experiment and save it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from upturn.cli._command import Session
from upturn.cli._models import MODELS

if TYPE_CHECKING:
    from upturn.cli._load import Loaded

OUTPUT = Annotated[str, typer.Option("--output", "-o", help="File to write the model to.")]
MODEL = Annotated[
    str,
    typer.Option("--model", "-m", help=f"{', '.join(MODELS)}; or the name of a class."),
]
SETTINGS = Annotated[
    list[str] | None, typer.Option("--set", help="A parameter of the model, NAME=VALUE; may be repeated.")
]


def fit(session: Session, output: OUTPUT = "model.upturn", model: MODEL = "auto", settings: SETTINGS = None) -> int:
    """Learn a model from an experiment and save it.

    To know how good it is on people it has not seen, use `upturn compare`, or `upturn evaluate` with other rows.
    """
    from upturn.cli._load import load, tell_leaks
    from upturn.cli._models import class_name, make_model
    from upturn.cli._write import whole_file
    from upturn.persist._writing import write_model

    voice = session.voice
    class_name(model)  # before anything is read
    data = load(voice, session.roles, session.file, writes=[output])
    arms, seed, jobs = data.target.n_arms, session.seed, session.jobs
    made = make_model(model, settings or (), control=data.control, n_arms=arms, seed=seed, jobs=jobs)
    tell_leaks(voice, data)
    has_bar = "verbose" in made.get_params(deep=False)
    if has_bar:
        made.set_params(verbose=int(voice.shows_bars))
    with whole_file(output) as place, voice.step(f"fitting {type(made).__name__} to {len(data.y):,} rows", has_bar):
        made.fit(data.X, data.y, data.treatment, data.weight)
        write_model(made, place, _about(data))
    named = ", ".join(str(arm) for arm in made.arms_)
    voice.result(
        f"{type(made).__name__} of {named} against {made.control_}, from {len(data.y):,} rows and {data.X.width} features: {output}",
        model=type(made).__name__,
        output=output,
        rows=len(data.y),
        features=data.X.columns,
        control=made.control_,
        arms=made.arms_,
    )
    return 0


def _about(data: Loaded) -> dict[str, Any]:
    """What `upturn show` says of the data a model was fitted to."""
    import numpy as np

    target, found = data.target, []
    for code, label in enumerate(target.labels):
        rows = target.arm == code
        mean = float(np.average(data.y[rows], weights=None if data.weight is None else data.weight[rows]))
        found.append({"arm": str(label), "rows": int(rows.sum()), "mean": mean if np.isfinite(mean) else None})
    return {
        "data": data.source.name,
        "outcome": data.roles.outcome,
        "treatment": data.roles.treatment,
        "fitted to": found,
    }
