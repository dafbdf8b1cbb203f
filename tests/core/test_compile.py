"""`upturn.compile` makes every kernel ready, and whoever waits is told why."""

import re
from pathlib import Path

import numba
import pytest

import upturn
from upturn import kernels
from upturn._compile import every_kernel
from upturn.kernels import _stamp

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def test_every_kernel_is_ready():
    """As many as the sources declare: none is missed because of the data that a warm-up would take."""
    sources = [path.read_text() for path in Path(kernels.__path__[0]).glob("*.py")]
    declared = sum(len(re.findall(r"^@kernel\(", text, re.MULTILINE)) for text in sources)
    names = [name for name, _ in every_kernel()]
    assert upturn.compile() == len(set(names)) == declared > 60


def test_compiling_is_said_once(monkeypatch, capsys):
    heard = []
    monkeypatch.setattr(_stamp, "_SAID", set())
    monkeypatch.setattr(_stamp, "listener", heard.append)
    _stamp.say_compiling()
    _stamp.say_compiling()
    assert heard == ["upturn: compiling, once per machine (`upturn compile` does all of it in advance)"]
    monkeypatch.setattr(_stamp, "_SAID", set())
    monkeypatch.setattr(_stamp, "listener", None)
    _stamp.say_compiling()
    assert capsys.readouterr().err == ""  # nobody sits at a terminal
