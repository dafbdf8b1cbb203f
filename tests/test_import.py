"""Importing upturn is cheap, lazy and typed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import upturn

PACKAGE = Path(upturn.__file__).parent


def run(code):
    script = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n{code}"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()


def test_import_and_pack_load_neither_scikit_learn_nor_numba():
    loaded = run(
        "import upturn\n"
        "upturn.pack([1, 0], ['mail', 'control'])\n"
        "print(*(name for name in ('sklearn', 'numba', 'scipy', 'pandas', 'matplotlib') if name in sys.modules))"
    )
    assert loaded == []


def test_every_name_loads_and_is_declared_to_type_checkers():
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    declared = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert declared | {"__version__"} == set(upturn.__all__)
    for name in upturn.__all__:
        assert getattr(upturn, name) is not None
    assert dir(upturn) == sorted(upturn.__all__)


def test_unknown_name():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = upturn.nothing
