"""`upturn.compile` makes every kernel ready, and whoever waits is told why."""

import os
import re
import subprocess
import sys
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
    _stamp.say_compiling()
    assert capsys.readouterr().err.count("once per machine") == 1  # in a notebook, a pipe or a log as well


ONE_KERNEL = """
import numpy as np
from upturn.kernels.hashing import words
words(np.uint64(1), np.uint64(2), np.uint64(3), np.empty(4, np.uint64))
words(np.uint64(1), np.uint64(2), np.uint64(3), np.empty(4, np.uint64))
print('{"result": 1}')
"""


def test_whoever_waits_in_a_pipe_is_told_once_and_only_once_per_machine(tmp_path):
    """On standard error, so that results in standard output stay whole."""
    source = str(Path(upturn.__file__).parent.parent)
    place = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": source}
    first, second = (
        subprocess.run([sys.executable, "-c", ONE_KERNEL], env=place, capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert first.stdout == second.stdout == '{"result": 1}\n'
    assert first.stderr.count("compiling, once per machine") == 1
    assert second.stderr == ""


@pytest.mark.parametrize("flags", [{"quiet": True}, {"as_json": True}, {}])
def test_a_command_says_it_on_standard_error_unless_quiet(flags, monkeypatch, capsys):
    pytest.importorskip("polars")
    from upturn.cli._say import Voice

    monkeypatch.setattr(_stamp, "_SAID", set())
    with Voice("fit", **flags).hears_warnings():
        _stamp.say_compiling()
    heard = capsys.readouterr()
    assert heard.out == ""
    assert ("once per machine" in heard.err) == ("quiet" not in flags)
