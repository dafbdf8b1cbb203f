"""The rule a plan goes by: how upgrades are priced, and how steep they must be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from upturn._arrays import Arms, Floats
from upturn._target import Label
from upturn.policy._gate import People, read_others
from upturn.policy._path import Path, make_path


def prices(people: People, by_person: bool) -> tuple[Floats, Floats]:
    """What an upgrade uses up, and what it brings, by person and arm."""
    benefit = people.worth
    if not by_person:
        assert people.cost is not None
        return people.cost, np.ascontiguousarray(benefit)
    if people.cost is not None and people.value is not None:
        benefit = benefit - people.cost
    return np.ones_like(benefit), np.ascontiguousarray(benefit)


def break_even(people: People, by_person: bool) -> float:
    """The slope below which an upgrade does not pay."""
    return 0.0 if by_person or people.value is None else 1.0


@dataclass(frozen=True)
class TargetingRule:
    """Who is treated: whoever's upgrade is at least as steep as the last one the plan made.

    Attributes
    ----------
    labels : list of labels
        Of control and the arms.
    slope : float
        Benefit of the last upgrade that was made, per unit of cost or per person; infinite where there was none.
    floor : float
        Upgrades no steeper than this are never made.
    by_person : bool
        Whether a slope is per person, as where people are limited; else per unit of cost.
    with_costs, with_value : bool
        Whether the plan knew costs, and what an outcome is worth.
    value : float or None
        What a unit of the outcome is worth, where that is the same for everybody.
    tied : bool
        Whether an upgrade that was not made is as steep as the last one that was.
    """

    labels: list[Label]
    slope: float
    floor: float
    by_person: bool
    with_costs: bool
    with_value: bool
    value: float | None
    tied: bool

    @classmethod
    def of(cls, people: People, path: Path, cut: int, floor: float, by_person: bool) -> TargetingRule:
        """The rule of a plan for people whose path was followed down to a cut."""
        slope = float(path.slope[cut - 1]) if cut else np.inf
        return cls(
            labels=people.labels,
            slope=slope,
            floor=floor,
            by_person=by_person,
            with_costs=people.cost is not None,
            with_value=people.value is not None,
            value=people.value if isinstance(people.value, float) else None,
            tied=0 < cut < len(path) and slope == path.slope[cut],
        )

    def read(self, score: Any, cost: Any, value: Any) -> People:
        """Other people, whose costs and values must be of the kind the plan was made with."""
        if cost is not None and not self.with_costs:
            raise ValueError(
                "cost was given and the plan was made without costs: leave it out, or pass it to target too"
            )
        if value is not None and not self.with_value:
            raise ValueError(
                "value was given and the plan was made without one: leave it out, or pass it to target too"
            )
        if cost is None and self.with_costs and (self.with_value or not self.by_person):
            raise ValueError(
                "the plan was made with costs: pass what these people cost, as in plan.apply(score, cost=2.0)"
            )
        if value is None and self.with_value and self.value is None:
            raise ValueError(
                "the plan was made with a value per person: pass that of these people, as in plan.apply(score, value=values)"
            )
        return read_others(score, cost, self.value if value is None else value, self.labels)

    def assign(self, people: People) -> Arms:
        """The arm of everybody, by number."""
        if self.slope == np.inf:
            return np.zeros(len(people), dtype=np.uint8)
        steep = max(self.floor, np.nextafter(self.slope, -np.inf))
        path = make_path(*prices(people, self.by_person), steep, np.uint64(0))  # all of it is followed, in any order
        return path.assignment(len(people), len(path))
