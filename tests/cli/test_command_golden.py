"""The JSON of a few command lines, run in processes of their own, against what was kept; golden_lines.py writes it anew."""

import json

import pytest
from golden_lines import GOLDEN, LINES, document, prepare


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


@pytest.mark.parametrize("name", LINES)
def test_golden(name, tmp_path):
    if not prepare(tmp_path) and name == "hillstrom":
        pytest.skip("UPTURN_DATA does not have Hillstrom's file")
    assert_close(document(name, tmp_path), json.loads(GOLDEN.read_text())[name])
