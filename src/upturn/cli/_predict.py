"""A saved model asked about a table of any size: batch after batch, in constant memory.

polars reads, asks and writes in a stream; batches are asked about on several threads, one a batch, and come out in order.
"""

from __future__ import annotations

import difflib
import threading
import zipfile
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from upturn._parallel import count_threads
from upturn.cli._load import Settled, as_features
from upturn.cli._read import Source
from upturn.cli._roles import looks_like_id
from upturn.cli._say import UserError, did_you_mean, shell_word
from upturn.cli._short import import_sklearn

if TYPE_CHECKING:
    import polars as pl


def load_model(path: str, trusted: Sequence[str] | None, jobs: int | None) -> Any:
    """A model that can be asked, out of its file."""
    import_sklearn()
    from upturn import load

    try:
        model = load(path, trusted=tuple(trusted or ()), n_jobs=jobs)
        if hasattr(model, "steps"):
            raise UserError(
                f"{path!r} holds a pipeline, and the command asks models only: use it in Python, upturn.load({path!r}).predict(table)"
            )
        return model
    except FileNotFoundError:
        near = _model_like(Path(path))
        mend = f"did you mean {near!r}?" if near else f"make one with `upturn fit DATA … -o {shell_word(path)}`"
        raise UserError(f"there is no model {path!r}: {mend}") from None


def _model_like(path: Path) -> str | None:
    """A model in the same folder whose name was perhaps meant; endings alone are alike anyway."""
    files = {file.name: file for file in path.parent.glob("*") if zipfile.is_zipfile(file)}
    for name in difflib.get_close_matches(path.name, files, 3):
        if difflib.get_close_matches(path.stem, [files[name].stem]):
            return str(files[name])
    return None


@dataclass(frozen=True)
class Asked:
    """A model, the table it is asked about, and which of its columns are carried along."""

    model: Any
    source: Source
    frame: pl.LazyFrame
    ids: tuple[str, ...]
    number: str = "row"  # what numbers of rows are called

    @property
    def score_names(self) -> list[str]:
        """Columns of the scores: ``uplift``, or one for each arm."""
        from upturn.engines._predict import score_names

        return score_names(self.model)

    @property
    def id_names(self) -> list[str]:
        """Columns that say who a row is: the identifiers, or the number of the row, the first being 1."""
        return list(self.ids) or [self.number]

    def ask(
        self,
        answer: Callable[[pl.DataFrame], dict[str, Any]],
        types: dict[str, Any],
        jobs: int,
        carry: Sequence[str] = (),
    ) -> pl.LazyFrame:
        """Ids, columns to ``carry`` and answers, a lazy table; ``answer(X)`` gives columns of these types."""
        import polars as pl

        frame, carried = self.frame, [*self.id_names, *(name for name in carry if name not in self.id_names)]
        self.refuse_names(carried, types)
        if not self.ids:
            frame = frame.with_row_index(self.number, offset=1)
        schema = frame.collect_schema()
        turn = threading.BoundedSemaphore(count_threads(jobs))
        features = [str(name) for name in self.model.feature_names_in_]

        def batch(rows: pl.DataFrame) -> pl.DataFrame:
            if not len(rows):
                return rows.select(carried).with_columns(**{k: pl.lit(None, v) for k, v in types.items()})
            with turn:
                found = answer(as_features(rows.select(features)))
            return rows.select(carried).with_columns(**{k: pl.Series(k, found[k], dtype=v) for k, v in types.items()})

        return frame.map_batches(batch, streamable=True, schema={**{k: schema[k] for k in carried}, **types})

    def refuse_names(self, names: Iterable[str], added: Collection[str]) -> None:
        """Refuse columns of the table with names of those that are ``added``."""
        for name in names:
            if name in added:
                mend = (
                    "rename it, choose others by --id, or leave it out by --drop" if name in self.ids else "rename it"
                )
                raise UserError(f"{self.source.name}: the column {name!r} has the name of one that is written: {mend}")

    def scores(self, X: pl.DataFrame) -> dict[str, Any]:
        """The model's scores as columns."""
        matrix = np.asarray(self.model.predict(X)).reshape(len(X), -1)
        return {name: matrix[:, k] for k, name in enumerate(self.score_names)}

    @property
    def score_types(self) -> dict[str, Any]:
        """Columns of the scores, with their type."""
        import polars as pl

        return dict.fromkeys(self.score_names, pl.Float64)


def ask_about(model: Any, settled: Settled, more: Sequence[str] = ()) -> Asked:
    """Make sure that the table has the columns of the model; of numbers in ``more``, those it has come along."""
    import polars as pl

    source, asked = settled.source, settled.asked
    if not hasattr(model, "feature_names_in_"):
        raise UserError(
            "the model was fitted to columns without names, so a table cannot be matched to it: fit one to a table, as "
            "`upturn fit` does"
        )
    features = [str(name) for name in model.feature_names_in_]
    guess = source.scan(sample=True)
    schema = guess.collect_schema()
    columns = schema.names()
    missing = [name for name in features if name not in columns]
    if missing:
        raise UserError(
            f"{source.name} has no column {missing[0]!r}, which the model was fitted with"
            + (f" (nor {len(missing) - 1} more)" if len(missing) > 1 else "")
            + f"; {did_you_mean(missing[0], columns)}"
        )
    ids = _ids(guess, settled, columns, features)
    extra = [name for name in [*more, asked.treatment, asked.group] if name is not None and name in columns]
    types = _types(model, schema, ids, more, source)
    needed = list(dict.fromkeys([*ids, *features, *extra]))
    frame = source.scan(types, sample=True).select(needed)
    held = frame.collect_schema()
    numbers = [
        name for name in _numbers(model) if held[name] == pl.String
    ]  # of a format that has types, and text in them
    frame, number = frame.with_columns(pl.col(name).cast(pl.Float64) for name in numbers), "row"
    while number in needed:  # which may be a feature's name
        number += "_"
    return Asked(model, source, frame, tuple(ids), number)


def _numbers(model: Any) -> list[str]:
    """The features that were numbers when the model was fitted."""
    pairs = zip(model._schema.names, model._schema.levels, strict=True)
    return [name for name, levels in pairs if levels is None or not any(isinstance(level, str) for level in levels)]


def _ids(guess: pl.LazyFrame, settled: Settled, columns: list[str], features: list[str]) -> list[str]:
    """Identifiers that were named, or written down, or that can be seen in the first rows."""
    for name in settled.flagged.id:
        if name not in columns:
            raise UserError(f"--id {name}: {settled.source.name} has no column {name!r}; {did_you_mean(name, columns)}")
    asked = settled.asked
    named = [name for name in asked.id if name in columns]
    if named:
        return named
    outcome = (asked.outcome or "").partition("=")[0]
    taken = {*features, *asked.drop, *asked.named.values(), outcome}
    others = [name for name in columns if name not in taken]
    head = guess.select(others).head(1000).collect()
    return [name for name in others if not head[name].dtype.is_temporal() and looks_like_id(head[name])]


def _types(model: Any, schema: Any, ids: list[str], more: Sequence[str], source: Source) -> dict[str, Any]:
    """Types to read text with: ids as they are written, levels as text, numbers as floats whatever the first rows hold.

    Other formats have types of their own; there, what is to be text is not read as dates.
    """
    import polars as pl

    types: dict[str, Any] = {name: pl.Float64 for name in more if name in schema and schema[name].is_numeric()}
    types.update(dict.fromkeys(ids, pl.String))
    numbers = set(_numbers(model))
    for name in model._schema.names:
        if name not in numbers:
            types[name] = pl.String
        elif schema[name].is_numeric() or schema[name] == pl.String:
            types[name] = pl.Float64
    if source.is_text or source.kind == "jsonl":
        return types
    return {name: kind for name, kind in types.items() if kind == pl.String}


def count_rows(asked: Asked) -> int | None:
    """Rows of a table where a file says so without being read: for a progress bar."""
    import polars as pl

    if asked.source.kind not in ("parquet", "arrow"):
        return None
    return int(asked.frame.select(pl.len()).collect().item())
