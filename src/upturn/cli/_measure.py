"""A saved model on an experiment: its scores beside outcomes, arms and weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from upturn._arrays import Floats
from upturn.cli._command import Session
from upturn.cli._load import Settled, read_labels, read_outcome, refuse_without_outcomes, settle
from upturn.cli._predict import Asked, ask_about
from upturn.cli._say import UserError, Voice, did_you_mean

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Measured:
    """Scores of everybody, and the experiment they were in, where there is one."""

    asked: Asked
    frame: pl.DataFrame
    score: Floats
    y: Floats | None
    treatment: NDArray[Any] | None
    weight: Floats | None
    group: NDArray[Any] | None
    arms: list[Any]  # of the columns of score: all of the model's or, to be measured, those that the experiment has


def measure(
    session: Session,
    model: Any,
    *,
    experiment: bool,
    more: Mapping[str, str] | None = None,
    writes: Sequence[str | None] = (),
) -> Measured:
    """Ask a model about a table; with ``experiment``, outcome and treatment must be there, and rows without them go.

    ``more`` columns of numbers come along, each with the flag that names it.
    """
    settled = settle(session.voice, session.roles, session.file, experiment=experiment, writes=writes)
    with settled.in_words():
        return _measure(session, settled, model, experiment, more or {})


def _measure(session: Session, settled: Settled, model: Any, experiment: bool, more: Mapping[str, str]) -> Measured:
    voice = session.voice
    outcome, success = _outcome(settled)
    roles = settled.asked
    columns = settled.source.columns
    wanted = {"outcome": outcome, "treatment": roles.treatment, "weight": roles.weight, "group": roles.group}
    for role, name in wanted.items():
        said = experiment or getattr(settled.flagged, role) is not None
        if name is None and experiment and role not in ("weight", "group"):
            raise UserError(f"{role} not named: say which column it is, as in --{role} NAME")
        if name is not None and said and name not in columns:
            raise UserError(
                f"--{role} {name}: {settled.source.name} has no column {name!r}; {did_you_mean(name, columns)}"
            )
    for name, flag in more.items():
        if name not in columns:
            raise UserError(
                f"--{flag} {name}: it is no number, and no column of {settled.source.name}; {did_you_mean(name, columns)}"
            )
    numbers = [name for name in (outcome, roles.weight, *more) if name is not None and name in columns]
    asked = ask_about(model, settled, numbers)
    carry = [*numbers, *(name for name in (roles.treatment, roles.group) if name is not None and name in columns)]
    with voice.step(f"scoring {settled.source.name}"), settled.source.in_words():
        frame = asked.ask(asked.scores, asked.score_types, session.jobs, carry).collect(engine="streaming")
    there = outcome in frame.columns and roles.treatment in frame.columns
    y = treatment = weight = group = None
    if there:
        assert outcome is not None
        assert roles.treatment is not None
        if experiment:
            refuse_without_outcomes(frame.get_column(outcome), settled.source.name)
        lost = frame.get_column(outcome).is_null() | frame.get_column(roles.treatment).is_null()
        if lost.any() and experiment:
            voice.note(f"{lost.sum():,} rows without an outcome or a treatment: left out")
            frame = frame.filter(~lost)
            if len(frame) == 0:
                raise UserError(f"{settled.source.name} has no row with both a treatment and an outcome")
        elif lost.any():
            voice.note(f"{lost.sum():,} rows have no outcome or treatment: gains are predicted, not measured")
        if experiment or not lost.any():
            y = read_outcome(voice, frame.get_column(outcome), success)
            treatment = read_labels(frame.get_column(roles.treatment))
            if roles.weight is not None:
                weight = frame.get_column(roles.weight).to_numpy()
            if roles.group is not None and roles.group in frame.columns:
                group = frame.get_column(roles.group).to_numpy()
    score = np.ascontiguousarray(frame.select(asked.score_names).to_numpy())
    found = _arms_of(Measured(asked, frame, score, y, treatment, weight, group, model.arms_), voice, experiment)
    if found.y is not None and _same_file(settled.fitted_to, settled.source.name):
        voice.note(
            f"note: if the model was fitted to {settled.source.name}, what is measured here is too good: use rows it has not seen, or "
            "`upturn compare`"
        )
    return found


def _arms_of(found: Measured, voice: Voice, experiment: bool) -> Measured:
    """What the arms of the table let measure: those that the model knows too, or nothing where people are to be chosen by all of them."""
    treatment, model = found.treatment, found.asked.model
    if treatment is None:
        return found
    labels = sorted({*treatment.tolist()}, key=str)
    known = [arm for arm in model.arms_ if arm in labels]
    strange = [label for label in labels if label not in (model.control_, *model.arms_)]
    if not strange and model.control_ in labels and len(known) == len(model.arms_):
        return found
    theirs = f"the table has the arms {_listed(labels)}, and the model knows {_listed([model.control_, *model.arms_])}"
    if not experiment:
        voice.note(f"{theirs}: gains are predicted, not measured")
        return replace(found, y=None, treatment=None, weight=None, group=None)
    if not known or model.control_ not in labels:
        raise UserError(f"{theirs}: there is nothing to measure; it takes control and at least one arm of the model's")
    voice.note(f"{theirs}: measured is {_listed(known)} against {model.control_}")
    wanted = {model.control_, *known}
    rows = np.flatnonzero([label in wanted for label in treatment.tolist()])

    def part(values: Any) -> Any:
        return None if values is None else values[rows]

    columns = [model.arms_.index(arm) for arm in known]
    return Measured(
        found.asked, found.frame[rows], np.ascontiguousarray(found.score[np.ix_(rows, columns)]),
        part(found.y), treatment[rows], part(found.weight), part(found.group), known,
    )  # fmt: skip


def _listed(labels: list[Any]) -> str:
    return ", ".join(map(str, labels))


def _same_file(first: str | None, second: str) -> bool:
    return first is not None and Path(first).resolve() == Path(second).resolve()


def _outcome(settled: Settled) -> tuple[str | None, str | None]:
    """The column of the outcome, and the value in it that is the success."""
    outcome = settled.asked.outcome
    if outcome is None:
        return None, None
    columns = settled.source.columns
    name, mark, value = outcome.partition("=")
    return (name, value) if mark and outcome not in columns else (outcome, None)
