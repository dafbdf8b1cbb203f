"""The one checker of parameters: a class declares what each may be, and ``fit`` holds it to that.

A :class:`Rule` is a test and the words for what passes it; ``|`` allows either of two::

    _parameters = {
        "C": number(above=0),
        "ratio": number(least=1) | one_of("auto"),
        "n_components": whole(least=1) | NONE,
        "standardize": FLAG,
        "random_state": SEED,
    }

Functions check their options with the same rules: ``check("n_bins", n_bins, whole(least=2))``. A Rule sees one value; what
two parameters must be together is said where the model uses them.

>>> check("C", -1.0, number(above=0))
Traceback (most recent call last):
    ...
ValueError: C=-1.0: expected a number above 0
"""

from __future__ import annotations

import functools
import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Rule:
    """What a parameter may be: a test, and the words an error uses for it."""

    text: str
    accepts: Callable[[Any], bool]

    def __or__(self, other: Rule) -> Rule:
        return Rule(f"{self.text}, or {other.text}", lambda value: self.accepts(value) or other.accepts(value))

    def named(self, text: str) -> Rule:
        """The same test in other words, with advice perhaps."""
        return Rule(text, self.accepts)


def is_flag(value: Any) -> bool:
    """True or False, of Python or numpy; 0, 1 and words are neither."""
    return isinstance(value, bool | np.bool_)


def is_whole(value: Any) -> bool:
    """A whole number that fits 64 bits, and no flag."""
    return isinstance(value, int | np.integer) and not is_flag(value) and -(2**63) <= int(value) < 2**63


def is_number(value: Any) -> bool:
    """A finite number, and no flag."""
    if not isinstance(value, float | np.floating):
        return is_whole(value)
    with np.errstate(over="ignore"):  # of a wider type
        return math.isfinite(float(value))


def _bounds(least: float | None, above: float | None, most: float | None, below: float | None) -> str:
    low = f"of at least {least:g}" if least is not None else f"above {above:g}" if above is not None else ""
    high = f"at most {most:g}" if most is not None else f"below {below:g}" if below is not None else ""
    return "".join(f" {part}" for part in [" and ".join(filter(None, (low, high)))] if part)


def _inside(least: float | None, above: float | None, most: float | None, below: float | None, value: Any) -> bool:
    if isinstance(value, np.floating):
        value = float(value)  # a bound may not fit a narrower type
    return (
        (least is None or value >= least)
        and (above is None or value > above)
        and (most is None or value <= most)
        and (below is None or value < below)
    )


def number(
    *, least: float | None = None, above: float | None = None, most: float | None = None, below: float | None = None
) -> Rule:
    """A finite number within bounds."""
    return Rule(
        f"a number{_bounds(least, above, most, below)}",
        lambda value: is_number(value) and _inside(least, above, most, below, value),
    )


def whole(*, least: int | None = None, most: int | None = None) -> Rule:
    """A whole number within bounds."""
    return Rule(
        f"a whole number{_bounds(least, None, most, None)}",
        lambda value: is_whole(value) and _inside(least, None, most, None, value),
    )


def one_of(*words: str) -> Rule:
    """One of a few words."""
    listed = " or ".join(filter(None, (", ".join(map(repr, words[:-1])), repr(words[-1]))))
    return Rule(listed, lambda value: isinstance(value, str) and value in words)


NONE = Rule("None", lambda value: value is None)
FLAG = Rule("True or False", is_flag)
JOBS = Rule(
    "None, a number of threads such as 4, or -1 for every core",
    lambda value: value is None or (is_whole(value) and value != 0),
)
VERBOSE = Rule(
    "0 for silence, or 1 for a progress bar", lambda value: is_flag(value) or (is_whole(value) and value >= 0)
)
SEED = Rule(
    "None, an integer of 0 or more, a RandomState or a Generator",
    lambda value: (
        value is None
        or isinstance(value, np.random.RandomState | np.random.Generator)
        or (isinstance(value, int | np.integer) and not is_flag(value) and int(value) >= 0)
    ),
)
TEXT = Rule("text", lambda value: isinstance(value, str))
LABEL = Rule(
    "None, or the label of the control arm: a number, a word, True or False",
    lambda value: value is None or isinstance(value, bool | int | float | str | np.bool_ | np.integer | np.floating),
)
INTERVAL = number(above=0, below=1).named("a confidence level between 0 and 1, such as 0.95")
# What only the code that uses it can judge: another estimator, a splitter, a specification with a reader of its own.
ELSEWHERE = Rule("anything", lambda value: True)


def check(name: str, value: Any, rule: Rule) -> None:
    """Refuse a value that the rule does not accept."""
    try:
        good = rule.accepts(value)
    except Exception:  # an array has no truth, and other things raise what they like
        good = False
    if not good:
        raise ValueError(f"{name}={reprlib.repr(value)}: expected {rule.text}")


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:
    """Names of a class's parameters: reading a signature takes longer than a small fit."""
    return tuple(kind._get_param_names())


def check_parameters(model: Any) -> None:
    """Check every declared parameter of a model, and of the models of ours inside it."""
    rules: Mapping[str, Rule] = model._parameters
    for name in _names(type(model)):  # type: ignore[arg-type]
        value = getattr(model, name)
        if name in rules:
            check(name, value, rules[name])
        if hasattr(value, "_parameters") and hasattr(value, "get_params") and not isinstance(value, type):
            check_parameters(value)
