"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

import numpy as np

from upturn._arrays import Floats
from upturn._columns import power_of_two

MINUS = "−"
_NONE = "n/a"


def mean_of(values: Floats) -> float:
    """The mean of numbers whose sum may not fit a float."""
    unit = power_of_two(float(np.abs(values).max()) or 1.0)
    return float((values / unit).mean()) * unit


def rounded(value: float, places: int) -> str:
    """A number with so many decimals, thousands apart; a half is rounded up, as browsers do.

    >>> rounded(72.5, 0), rounded(0.125, 2), rounded(1234567.0, 1)
    ('73', '0.13', '1,234,567.0')
    """
    if value >= 1e15:
        return f"{value:,.{places}f}"
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):,f}"


def number(value: float | None, digits: int = 3) -> str:
    """A few significant digits, thousands apart, a true minus sign.

    >>> number(1234567.0), number(0.012345), number(-3.456), number(0)
    ('1,234,567', '0.0123', '−3.46', '0')
    """
    if value is None or math.isnan(value):
        return _NONE
    if math.isinf(value):
        return ("" if value > 0 else MINUS) + "∞"
    size = abs(value)
    if size >= 10 ** (digits - 1) or float(value).is_integer():
        text = rounded(size, 0)
    elif size < 1e-4:
        text = "0" if size == 0 else f"{size:.{digits - 1}e}"
    else:
        text = rounded(size, max(0, digits - 1 - math.floor(math.log10(size))))
    return (MINUS if value < 0 and text.strip("0.,") else "") + text


def signed(value: float) -> str:
    """A number with its sign."""
    text = number(value)
    return text if text.startswith(MINUS) or text in (_NONE, "0") else f"+{text}"


def between(low: float, high: float) -> str:
    """The ends of an interval, in as many digits as the wider end has.

    >>> between(8.2, 16.4)
    '8.2 to 16.4'
    """
    places = _places(low, high)
    return " to ".join(_fixed(end, places) for end in (low, high))


def with_interval(value: float, low: float, high: float) -> str:
    """A number and its interval, all with as many decimals.

    >>> with_interval(12.345, 8.2, 16.4)
    '12.3 (8.2 to 16.4)'
    """
    if math.isnan(value):
        return _NONE
    if math.isnan(low) or math.isnan(high):
        return number(value)
    places = _places(value, low, high)
    return f"{_fixed(value, places)} ({_fixed(low, places)} to {_fixed(high, places)})"


def percent(share: float) -> str:
    """A share in percent: whole ones, or one or two decimals where that would say 0 or 100.

    >>> percent(0.384), percent(0.004), percent(1.0), percent(0.9996), percent(1 - 1e-16)
    ('38%', '0.4%', '100%', '99.96%', '100%')
    """
    if math.isnan(share):
        return _NONE
    for places in (0, 1, 2):
        text = rounded(100 * share, places)
        if float(text) not in (0, 100):
            return f"{text}%"
    return f"{rounded(100 * share, 0)}%"


def listed(names: Sequence[object], last: str = "and") -> str:
    """Names with commas and a word between them."""
    words = [str(name) for name in names]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def condition(text: object) -> str:
    """A condition as it is set in print.

    >>> condition("age <= 46.5")
    'age ≤ 46.5'
    """
    return str(text).replace("<=", "≤")


def p_value(p: float) -> str:
    """A p-value."""
    return _NONE if math.isnan(p) else "< 0.0001" if p < 1e-4 else f"{p:.4f}" if p < 0.1 else f"{p:.2f}"


def _places(*values: float) -> int:
    """Decimals that give the largest of the numbers three digits."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    return 0 if largest == 0 else max(0, 2 - math.floor(math.log10(largest)))


def _fixed(value: float, places: int) -> str:
    text = rounded(abs(value), min(places, 8)) if math.isfinite(value) else f"{abs(value)}"
    return (MINUS if value < 0 and text.strip("0.,") else "") + text
