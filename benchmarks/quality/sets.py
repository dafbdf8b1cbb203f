"""The sets, and to which half each belongs.

The halves were committed before the first run, alternating by sorted name; a set that is added later joins the smaller half, and
no other changes sides. Sets made of the same rows (the colon trial, and
Hillstrom's e-mails) are found in both, so the half "report" is new to what was chosen, but not in every case new rows.

Real sets are split at random, 80 to 20, with arms and outcomes in the same shares; simulated ones are drawn anew for every split,
with 10,000 further rows to test on. Larger sets get fewer splits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from benchmarks.quality.simulated import SIMULATED

from upturn.datasets import PAPER_ROWS, UpliftData, load_hillstrom, paper_benchmarks
from upturn.model_selection import RepeatedUpliftSplit

TEST_SHARE = 0.2
TEST_ROWS = 10_000

HALVES: dict[str, str] = {
    "BMT-agvh": "choose",
    "BMT-cgvh": "report",
    "Hillstrom-conversion-m": "choose",
    "Hillstrom-conversion-w": "report",
    "Hillstrom-spend-m": "choose",
    "Hillstrom-spend-w": "report",
    "Hillstrom-visit": "choose",
    "Hillstrom-visit-m": "report",
    "Hillstrom-visit-w": "choose",
    "australian": "report",
    "bladder": "choose",
    "breast cancer": "report",
    "burn": "choose",
    "colon-death": "report",
    "colon-lev-death": "choose",
    "colon-lev-recur": "report",
    "colon-lev5fu-death": "choose",
    "colon-lev5fu-recur": "report",
    "colon-recur": "choose",
    "credit-a": "report",
    "dermatology": "choose",
    "diabetes": "report",
    "diagnosis": "choose",
    "heart-c": "report",
    "hepatitis": "choose",
    "hodg": "report",
    "labor": "choose",
    "liver-disorders": "report",
    "pbc": "choose",
    "primary-tumor": "report",
    "sim-campaign": "choose",
    "sim-collinear": "report",
    "sim-confounded": "choose",
    "sim-confounded-binary": "report",
    "sim-constant": "choose",
    "sim-crescents": "report",
    "sim-customers": "choose",
    "sim-features": "report",
    "sim-heavy-tails": "choose",
    "sim-interaction": "report",
    "sim-null": "choose",
    "sim-prognostic": "report",
    "sim-prognostic-binary": "choose",
    "sim-randomised": "report",
    "sim-randomised-large": "choose",
    "sim-randomised-small": "report",
    "sim-rare": "choose",
    "sim-spend": "report",
    "sim-steps": "choose",
    "sim-thin": "report",
    "sim-thin-large": "choose",
    "sim-unbalanced": "report",
    "sim-zhao-2d": "choose",
    "sim-zhao-50d": "report",
    "veteran": "choose",
    "winequality-red": "report",
    "winequality-white": "choose",
}


# Sets with two outcomes and one treatment that are compared beside rivals: at defaults, and with draws of parameters
_SIMULATED = (
    "sim-collinear", "sim-crescents", "sim-customers", "sim-interaction", "sim-prognostic-binary", "sim-randomised-small", "sim-steps",
    "sim-unbalanced",
)  # fmt: skip
TABLES = {
    "field": (
        "BMT-agvh", "BMT-cgvh", "colon-death", "colon-lev-death", "colon-lev-recur", "colon-lev5fu-death", "colon-lev5fu-recur", "colon-recur",
        "hodg", "pbc", "veteran", *_SIMULATED,
    ),
    "drawn": (
        "BMT-agvh", "BMT-cgvh", "Hillstrom-visit-m", "Hillstrom-visit-w", "bladder", "burn", "colon-death", "colon-recur", "pbc", "veteran",
        *_SIMULATED,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """Rows to learn from or to test on; ``effect`` is the truth, where it is known."""

    X: object
    y: np.ndarray
    treatment: np.ndarray
    effect: np.ndarray | None

    def some(self, rows: int, seed: int) -> Part:
        """At most so many of the rows, drawn at random, in their order."""
        if len(self.y) <= rows:
            return self
        drawn = np.sort(np.random.default_rng([seed, rows]).permutation(len(self.y))[:rows])
        return _part(self, drawn)


@dataclass(frozen=True)
class QualitySet:
    """One set: ``split(k)`` gives its k-th training and test rows, the same for every contestant."""

    name: str
    half: str
    rows: int
    split: Callable[[int], tuple[Part, Part]]
    simulated: bool

    def splits(self, asked: int) -> int:
        """How many of the splits asked for this set gets."""
        share = 1.0 if self.rows <= 6000 else 0.5 if self.rows <= 12_000 else 0.25
        return max(int(np.ceil(asked * share)), min(asked, 2))


def names(wanted: str) -> list[str]:
    """The sets meant by "choose", "report", "all", "real", "simulated", "field", "drawn", or names with commas; "choose,simulated" is both."""
    groups = {
        **{table: set(own) for table, own in TABLES.items()},
        "all": set(HALVES),
        "simulated": set(SIMULATED),
        "real": set(HALVES) - set(SIMULATED),
        **{half: {name for name, own in HALVES.items() if own == half} for half in ("choose", "report")},
    }
    parts = [part.strip() for part in wanted.split(",")]
    unknown = [part for part in parts if part not in groups and part not in HALVES]
    if unknown:
        raise SystemExit(f"no sets are called {unknown}: there are {sorted(groups)} and {sorted(HALVES)}")
    found = {part for part in parts if part in HALVES}
    chosen = [groups[part] for part in parts if part in groups]
    if chosen:
        found |= set.intersection(*chosen)
    return sorted(found)


@functools.cache
def load(name: str) -> QualitySet:
    """Read or prepare a set by name."""
    if name in SIMULATED:
        draw, rows = SIMULATED[name]
        return QualitySet(name, HALVES[name], rows, functools.partial(_drawn, draw, rows), True)
    data = next(iter(paper_benchmarks([name]))) if name in PAPER_ROWS else _HILLSTROM[name]()
    return QualitySet(name, HALVES[name], len(data), functools.partial(_shared_out, data), False)


_HILLSTROM: dict[str, Callable[[], UpliftData]] = {
    f"Hillstrom-{outcome}-{arm}": functools.partial(load_hillstrom, outcome, arms)
    for outcome, arms, arm in (
        ("visit", "men", "m"),
        ("conversion", "women", "w"),
        ("conversion", "men", "m"),
        ("spend", "women", "w"),
        ("spend", "men", "m"),
    )
}


def _drawn(draw, rows, k):
    data = draw(rows + TEST_ROWS, k)
    return _part(data, np.arange(rows)), _part(data, np.arange(rows, rows + TEST_ROWS))


def _shared_out(data, k):
    split = RepeatedUpliftSplit(1, test_size=TEST_SHARE, random_state=k)
    ((train, test),) = split.split(data.X, data.y, data.treatment)
    return _part(data, train), _part(data, test)


def _part(data, rows):
    X = data.X.iloc[rows] if hasattr(data.X, "iloc") else data.X[rows]
    return Part(X, data.y[rows], data.treatment[rows], None if data.effect is None else data.effect[rows])
