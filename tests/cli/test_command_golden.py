"""The JSON of a few command lines, run in processes of their own, against what was kept; golden_lines.py writes it anew."""

import json

import pytest
from golden_lines import FOLDERS, GOLDEN, LINES, document, prepare

from upturn.cli import _app


def assert_close(found, expected, place=""):
    """The same document, numbers to a part in a million."""
    assert type(found) is type(expected) or {type(found), type(expected)} == {int, float}, place
    if isinstance(expected, dict):
        assert list(found) == list(expected), place
        for key in expected:
            assert_close(found[key], expected[key], f"{place}/{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), place
        for i, pair in enumerate(zip(found, expected, strict=True)):
            assert_close(*pair, f"{place}/{i}")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9), place
    else:
        assert found == expected, place


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folders that can be made, each made once."""
    made = {name: tmp_path_factory.mktemp(name) for name in FOLDERS}
    return {name: folder for name, folder in made.items() if prepare(name, folder)}


@pytest.mark.parametrize("name", LINES)
def test_golden(name, folders):
    place = LINES[name][0]
    if place not in folders:
        pytest.skip("UPTURN_DATA does not have Hillstrom's file")
    assert_close(document(name, folders[place]), json.loads(GOLDEN.read_text())[name])


def test_every_command_has_golden_json():
    """That of ``demo`` is in test_installed.py, which runs it."""
    lines = [line.split() for _, line in LINES.values()]
    kept = {line[0] for line in lines} | {"demo"}
    assert kept == {*_app._COMMANDS, "datasets"}
    assert {line[1] for line in lines if line[0] == "datasets"} == {"list", "get"}
