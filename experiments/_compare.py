"""The paper's number beside ours: standard error, z, and whether they agree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from experiments._kept import Row

FAR = 3.0  # standard errors from which on two numbers disagree
UNKNOWN = "not found out"
FEWEST = 8  # repeats below which a standard error says too little to judge by


@dataclass(frozen=True)
class Beside:
    """A number of the paper and ours.

    The paper's number is a mean over ``their_n`` random repeats of the same protocol on the same data, so it has an error of its own: ours
    times √(n / their_n). What it was rounded to (``rounded``, half a unit of its last digit) is added as the spread of a uniform error.
    """

    paper: float
    ours: float
    error: float
    n: int
    their_n: int | None = None
    rounded: float = 0.0

    @property
    def z(self) -> float:
        """Distance in standard errors; nan if there are too few repeats for one."""
        if self.n < FEWEST:
            return math.nan
        theirs = self.n / self.their_n if self.their_n else 0.0
        error = math.sqrt(self.error**2 * (1.0 + theirs) + self.rounded**2 / 3.0)
        return (self.ours - self.paper) / error if error > 0 else math.nan

    @property
    def verdict(self) -> str:
        if math.isnan(self.z):
            return "too few runs"
        return "agrees" if abs(self.z) <= FAR else "does not agree"


def beside(
    paper: float, row: Row | None, key: str | None = None, *, their_n: int | None, rounded: float
) -> Beside | None:
    """The comparison of a row that has been run; None otherwise."""
    if row is None or not row.seeds or math.isnan(paper):
        return None
    mean, error = row.mean(key)
    return Beside(paper, float(mean), float(error), len(row.seeds), their_n, rounded)


def number(value: float, digits: int = 4) -> str:
    """A number as tables print it: no zero before the point, – where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    text = f"{value:.{digits}f}"
    if float(text) == 0.0:
        text = text.lstrip("-")
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown."""
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def compared(pairs: Iterable[tuple[Sequence[str], Beside, str]], header: Sequence[str], digits: int = 4) -> str:
    """The table of all comparisons: what, the paper's, ours, error, repeats, z, agrees, why not."""
    rows = [
        [*names, number(one.paper, 3), number(one.ours, digits), number(one.error, digits), str(one.n), number(one.z, 1), one.verdict, why]
        for names, one, why in pairs
    ]  # fmt: skip
    return table([*header, "paper", "here", "standard error", "repeats", "z", "", "why not"], rows)


def count(pairs: Iterable[Beside]) -> str:
    """How many agree, in words."""
    known = [one for one in pairs if not math.isnan(one.z)]
    return f"{sum(one.verdict == 'agrees' for one in known)} of {len(known)}"


def claims(found: Iterable[tuple[str, bool | None, str] | tuple[str, bool | None, str, str]]) -> str:
    """Findings that the paper states in words: whether they hold here, by which numbers, and why not, as far as it is known (fourth)."""
    said = {True: "holds", False: "does not hold", None: "not run yet"}
    rows = [
        [text, said[holds], how, "" if holds in (True, None) else (*why, UNKNOWN)[0]]
        for text, holds, how, *why in found
    ]
    return table(["the paper's finding", "here", "numbers", "why not"], rows)


def held(found: Iterable[tuple[Any, ...]]) -> str:
    """How many findings hold, of those that have been run, in words."""
    told = [one[1] for one in found if one[1] is not None]
    return f"{sum(map(bool, told))} of {len(told)} findings hold"
