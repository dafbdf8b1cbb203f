"""The one rule of units in printed tables and pictures: rates per 1,000 people, money and other outcomes per person.

Floats and frames stay in plain units of the outcome per person.
"""

from __future__ import annotations

from upturn._results import number_text
from upturn._target import Target


def is_rate(target: Target) -> bool:
    """Whether the outcome is yes or no, so that its mean is a rate."""
    return bool(((target.y == 0) | (target.y == 1)).all())


def unit_scale(rate: bool) -> int:
    """What a printed number is multiplied with."""
    return 1000 if rate else 1


def unit_text(rate: bool) -> str:
    """What it is then in."""
    return "per 1,000 people" if rate else "per person"


def units_text(value: float, rate: bool, per_person: bool = True, sign: str = "") -> str:
    """A number in words: what it is printed as, and its unit where it is one of outcomes per person."""
    if not per_person:
        return number_text(value, sign)
    return f"{number_text(unit_scale(rate) * value, sign)} {unit_text(rate)}"
