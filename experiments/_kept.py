"""Results as they are kept: for every case the seeds that were run, and what came out of each.

A file is JSON with a line for every case, so that a difference can be read: ``case``, ``seeds``, ``values`` (one for each seed), ``sums``
(see ``Experiment.summed``), CPU ``seconds`` of all seeds together, and the ``commits`` of the source they were run with, which are a
record and no key.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from experiments._declared import HERE, Case, Part

RESULTS = HERE / "results"


@dataclass
class Row:
    """What was found of one case."""

    case: Case
    seeds: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    sums: dict[str, list[list[float]]] = field(default_factory=dict)  # by key: sums, and sums of squares
    seconds: float = 0.0
    commits: list[str] = field(default_factory=list)

    def add(self, seed: int, value: Any, summed: tuple[str, ...], seconds: float, commit: str) -> None:
        if seed in self.seeds:
            return
        value = plain(value)
        for key in summed if isinstance(value, dict) else ():
            if key in value:
                one = np.asarray(value.pop(key), float)
                total = np.array(self.sums.get(key, np.zeros((2, *one.shape))))
                self.sums[key] = plain(total + np.stack([one, one * one]), 12)
        at = int(np.searchsorted(self.seeds, seed))
        self.seeds.insert(at, seed)
        self.values.insert(at, value)
        self.seconds = round(self.seconds + seconds, 2)
        self.commits = sorted({*self.commits, commit})

    def numbers(self, key: str | None = None) -> np.ndarray:
        """One number (or list of them) for each seed."""
        return np.array([value if key is None else value[key] for value in self.values], float)

    def mean(self, key: str | None = None) -> tuple[Any, Any]:
        """The mean over seeds and its standard error (nan for a single seed)."""
        n = len(self.seeds)
        if key in self.sums:
            total, squares = np.array(self.sums[key])
            mean = total / n
            spread = np.sqrt(np.maximum(squares / n - mean * mean, 0.0) * n / max(n - 1, 1))
        else:
            values = self.numbers(key)
            mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1) if n > 1 else np.zeros(values.shape[1:])
        return mean, spread / math.sqrt(n) if n > 1 else np.full(np.shape(mean), np.nan)


class Found:
    """All rows of an experiment."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows

    def __bool__(self) -> bool:
        return any(row.seeds for row in self.rows)

    def where(self, **wanted: Any) -> list[Row]:
        """Rows whose case has these values."""
        return [row for row in self.rows if all(row.case.get(key) == value for key, value in wanted.items())]

    def one(self, **wanted: Any) -> Row | None:
        """The row of these values with most seeds."""
        return max(self.where(**wanted), key=lambda row: len(row.seeds), default=None)

    def of(self, case: Case) -> Row:
        """The row of exactly this case, new if there is none."""
        for row in self.rows:
            if row.case == case:
                return row
        self.rows.append(Row(dict(case)))
        return self.rows[-1]


def path_of(part: Part, folder: Path = RESULTS) -> Path:
    paper, file = part.name.split(".")
    return folder / paper / f"{file}.json"


def read(part: Part, folder: Path = RESULTS) -> Found:
    """What is kept of an experiment's present version."""
    path = path_of(part, folder)
    if not path.exists():
        return Found([])
    kept = json.loads(path.read_text())
    return Found([Row(**row) for row in kept["rows"]] if kept["version"] == part.declared.version else [])


def write(part: Part, found: Found, folder: Path = RESULTS) -> None:
    """Keep all rows; a reader never sees half a file."""
    import upturn

    path = path_of(part, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {
        "experiment": part.name,
        "version": part.declared.version,
        "software": {"upturn": upturn.__version__, "numpy": np.__version__},
    }
    rows = sorted((row for row in found.rows if row.seeds), key=lambda row: json.dumps(row.case, sort_keys=True))
    lines = [json.dumps({key: value for key, value in vars(row).items() if value != {}}) for row in rows]
    text = json.dumps(head)[:-1] + ', "rows": [\n' + ",\n".join(lines) + "\n]}\n"
    part_written = path.with_suffix(".part")
    part_written.write_text(text)
    os.replace(part_written, path)


def plain(value: Any, digits: int = 7) -> Any:
    """A value as JSON has it, floats with some significant digits."""
    if isinstance(value, dict):
        return {str(key): plain(one, digits) for key, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(one, digits) for one in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None
    return value


def close(first: Any, second: Any, relative: float = 1e-4) -> bool:
    """Whether two values are the same, but for the last digits that another machine may have."""
    if isinstance(first, dict) and isinstance(second, dict):
        return all(close(first[key], second[key], relative) for key in first.keys() & second.keys())
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(close(a, b, relative) for a, b in zip(first, second, strict=True))
    if isinstance(first, float | int) and isinstance(second, float | int):
        return math.isclose(first, second, rel_tol=relative, abs_tol=1e-9)
    return bool(first == second)
