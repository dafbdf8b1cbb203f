"""The README's ten lines say what the README says they say."""

import contextlib
import io
import os
import re
import warnings
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parent.parent / "README.md").read_text()


def block(after, language):
    """The first block of a language after a heading."""
    return re.search(rf"```{language}\n(.*?)```", README.split(after, 1)[1], re.DOTALL).group(1)


def test_ten_lines_are_ten():
    assert sum(bool(line.strip()) for line in block("## Ten lines", "python").splitlines()) == 10


@pytest.mark.skipif("UPTURN_DATA" not in os.environ, reason="needs the Hillstrom data in UPTURN_DATA")
def test_ten_lines_print_what_the_readme_quotes():
    said = io.StringIO()
    with contextlib.redirect_stdout(said), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(block("## Ten lines", "python"), {})
    assert any("too small" in str(warning.message) for warning in caught)
    printed = [" ".join(line.split()) for line in said.getvalue().splitlines()]
    for line in block("It says, among other things", "").splitlines():
        assert not line or " ".join(line.split()) in printed
