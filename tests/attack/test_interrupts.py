"""Ctrl-C is heard; ``experiments/attack/interrupts.py`` has the times, of everything that takes long."""

import os
from pathlib import Path

import pytest

import upturn
from hostile import interrupts

GENEROUS = 5.0  # seconds: the promise is 1.5, of which a machine that runs other tests knows nothing


@pytest.fixture(autouse=True)
def paths(monkeypatch):
    here = [str(Path(upturn.__file__).parents[1]), str(Path(interrupts.__file__).parents[1])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(here))
    monkeypatch.setenv("FEWER_ROWS", "4")


@pytest.mark.parametrize("name", interrupts.QUICK)
def test_an_interrupt_reaches_the_caller(name):
    (found,) = interrupts.measure(name, 1, longest=0.3)  # fast machines are done soon
    assert found["ended"] == "interrupted"
    assert found["seconds"] < GENEROUS
