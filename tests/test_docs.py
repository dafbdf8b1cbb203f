"""The examples of the documentation run and print what they say."""

import doctest
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import upturn
from upturn.metrics import Curve

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.mark.parametrize("page", ["marketing.md", "metrics.md", "migration.md", "scale.md", "trials.md"])
def test_examples(page):
    result = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=FLAGS)
    assert result.attempted > 5
    assert result.failed == 0


# --------------------------------------------------------------------------------------------- what other libraries call it

ROWS = re.findall(r"^\| (.+?) \| (.+?) \|$", (DOCS / "migration.md").read_text(), re.MULTILINE)
HERE = [here for there, here in ROWS if not there.startswith(("there", "-"))]


def named(text):
    """What a cell names: rooms with a name in them; names alone are of the room named last."""
    room = "metrics"
    for code in re.findall(r"`([^`]+)`", text):
        found = re.match(r"(?:upturn\.)?([a-z_]+)\.([A-Za-z_]+)", code)
        if found and hasattr(upturn, found[1]):
            room = found[1]
            yield room, found[2], code
        elif re.match(r"[A-Z]\w+", code):
            yield room, re.match(r"\w+", code)[0], code


def test_the_tables_of_other_libraries_are_read():
    assert len(HERE) > 15
    assert {room for here in HERE for room, _, _ in named(here)} >= {"meta", "metrics", "trees", "features", "plot"}


@pytest.mark.parametrize("here", HERE)
def test_what_the_tables_name_is_there_and_runs(here):
    """Names exist, keywords are parameters, and metrics with a convention give a number on data."""
    rng = np.random.default_rng(0)
    y, score, treatment = rng.integers(0, 2, 300), rng.normal(size=300), rng.integers(0, 2, 300)
    for room, name, code in named(here):
        thing = getattr(getattr(upturn, room), name)
        keywords = dict(re.findall(r"([a-z_]+)=([^,)]+)", code))
        known = set(inspect.signature(thing).parameters)
        assert set(keywords) <= known, f"{room}.{name} takes {known}, and the page says {code}"
        convention = re.search(r'convention="(\w+)"', here)
        if room == "metrics" and convention and "convention" in known:
            result = thing(y, score, treatment, convention=convention[1])
            assert isinstance(result, Curve) or np.isfinite(result)
