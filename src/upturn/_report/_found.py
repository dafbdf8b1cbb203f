"""Everything a page is made of, as it was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from upturn._check import CheckReport
from upturn._report._answer import Answer, Words
from upturn._report._held_out import Experiment, HeldOut
from upturn._report._measure import Measured, Money, Options
from upturn._report._people import People


@dataclass(frozen=True)
class Found:
    """Everything a page is made of."""

    check: CheckReport
    data: Experiment
    held: HeldOut
    measured: Measured
    people: People
    answer: Answer
    money: Money
    options: Options
    words: Words
    source: dict[str, Any]
    lost: int  # rows without an outcome, which only the check has seen

    @property
    def is_flat(self) -> bool:
        """Whether the model of the page tells nobody from anybody."""
        return self.held.is_flat(self.measured.main)

    @property
    def flat_arms(self) -> list[Any]:
        """Labels of the arms whose effect it predicts to be the same for everybody."""
        flat = self.held.flat_arms(self.measured.main)
        return [label for label, same in zip(self.data.target.arms, flat, strict=True) if same]

    @property
    def shows_plan(self) -> bool:
        """Whether there is a ranking that a plan could go by."""
        return self.answer.kind != "random" and not self.is_flat


def table(head: list[str], rows: list[list[Any]], right: int | None = None) -> dict[str, Any]:
    """A table; columns from ``right`` on are numbers."""
    return {"head": head, "rows": rows, "right": len(head) if right is None else right}
