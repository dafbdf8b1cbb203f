"""An experiment whose features lie in a file: read in parts, twice, and never in memory as a whole.

The first pass finds what the columns hold (levels, gaps, whether float32 is enough), the second writes the matrix. Outcome, arms and
weights stay in memory: nine bytes a row, seventeen with weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from upturn._experiment import Experiment
from upturn._parallel import progress
from upturn._table import Schema, encode_columns, fits_float32, levels_of, read_columns
from upturn._target import Coded, Label, Outcome, Target, read_target, sort_labels
from upturn.engines._scan import polars, read, spans_of

if TYPE_CHECKING:
    import polars as pl


class Roles(NamedTuple):
    """Which columns of a table are what."""

    y: str
    treatment: str
    sample_weight: str | None
    features: list[str]

    @property
    def taken(self) -> tuple[str, ...]:
        """Columns that are no features."""
        return tuple(dict.fromkeys(name for name in self[:3] if isinstance(name, str)))

    def columns(self, row_id: str | None = None) -> list[str]:
        """All columns, each once, and that of ids if there is one."""
        return list(dict.fromkeys([*self.features, *self.taken, *([] if row_id is None else [row_id])]))


@dataclass
class _Union:
    """The schema of a table that comes in parts, as that of the whole would be."""

    names: tuple[str, ...] = ()
    levels: list[set[Label] | None] = field(default_factory=list)
    gaps: set[str] = field(default_factory=set)
    narrow: bool = True  # whether float32 holds every value

    def add(self, part: Any) -> None:
        columns, self.names = _columns(part)
        self.levels = self.levels or [set() if column.categorical else None for column in columns]
        for column, name, seen in zip(columns, self.names, self.levels, strict=True):
            if seen is not None:
                found = levels_of(column, name)
                seen.update(found)
                self.narrow &= len(seen) <= 1 << 24
                gap = None in column.values
            else:
                self.narrow &= fits_float32(column.values.dtype)
                gap = column.values.dtype.kind == "f" and bool(np.isnan(column.values.min()))
            if gap:
                self.gaps.add(name)

    def schema(self, taken: tuple[str, ...]) -> Schema:
        levels = tuple(None if seen is None else tuple(sort_labels(list(seen))) for seen in self.levels)
        gaps = tuple(name for name in self.names if name in self.gaps)
        return Schema(self.names, True, levels, taken, gaps)


def _columns(part: pl.DataFrame) -> Any:
    """The raw columns of a part and their names."""
    columns, names, _ = read_columns(part)
    return columns, names


def gather(
    frame: pl.LazyFrame,
    roles: Roles,
    folder: Path,
    *,
    control: Label | None,
    outcome: Outcome,
    float32: bool,
    verbose: int = 0,
) -> Experiment:
    """Read a table into an experiment whose matrix is a file of ``folder``."""
    target = _read_target(frame, roles, control, outcome)
    n, p, features = len(target), len(roles.features), frame.select(roles.features)
    union = _Union()
    for span in progress(spans_of(n, p), verbose, "reading"):
        union.add(read(features, span))
    schema, narrow = union.schema(roles.taken), union.narrow and float32
    size = np.float32 if narrow else np.float64
    matrix = np.memmap(folder / "features", size, "w+", shape=(n, p))
    for span in progress(spans_of(n, p), verbose, "reading"):
        columns, _ = _columns(read(features, span))
        matrix[span.start : span.stop] = encode_columns(columns, schema, narrow)
    return Experiment(matrix.view(np.ndarray), schema, target)


def _read_target(frame: pl.LazyFrame, roles: Roles, control: Label | None, outcome: Outcome) -> Target:
    pl = polars()
    y, treatment = pl.col(roles.y).alias("y"), pl.col(roles.treatment).cast(pl.String).alias("treatment")
    weight = (
        pl.lit(None).alias("weight") if roles.sample_weight is None else pl.col(roles.sample_weight).alias("weight")
    )
    texts = None
    if frame.collect_schema()[roles.treatment] in (pl.String, pl.Categorical, pl.Enum):
        texts = frame.select(treatment.unique().sort()).collect()["treatment"].to_list()
    if texts is None or None in texts:  # numbers; or what is refused, with the rows named
        treatment = pl.col(roles.treatment).alias("treatment")
        texts = None
    else:  # a number for each row, and the text of each label once
        treatment = treatment.replace_strict(texts, range(len(texts)), return_dtype=pl.UInt32)
    columns = frame.select(y, treatment, weight).collect()
    labels: Any = columns["treatment"] if texts is None else Coded(texts, columns["treatment"].to_numpy())
    weights = None if roles.sample_weight is None else columns["weight"]
    return read_target(columns["y"], labels, weights, control=control, outcome=outcome)
