"""The data sets of Table 6.4.1 and of the other papers, read once a process."""

from __future__ import annotations

from functools import cache

from upturn.datasets import UpliftData, load_colon, load_hillstrom, paper_benchmarks


@cache
def load(name: str) -> UpliftData:
    """A row of Table 6.4.1 by its name there."""
    if name == "Hillstrom-visit-m":
        return load_hillstrom("visit", "men")
    return next(iter(paper_benchmarks([name])))


@cache
def load_trial(name: str) -> UpliftData:
    """A data set of the boosting paper; its colon is levamisole alone in the text, both treatments by its Table 2."""
    readings = {
        "Hillstrom": lambda: load("Hillstrom-visit-w"),
        "colon death": lambda: load_colon("death", "lev"),
        "colon recurrence": lambda: load_colon("recurrence", "lev"),
        "colon death, both": lambda: load_colon("death", "both"),
        "colon recurrence, both": lambda: load_colon("recurrence", "both"),
    }
    return readings[name]() if name in readings else load(name)
