"""The README's ten lines say what the README says they say."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


def block(after, language):
    """The first block of a language after a heading."""
    return re.search(rf"```{language}\n(.*?)```", README.split(after, 1)[1], re.DOTALL).group(1)


def test_ten_lines_are_ten():
    assert sum(bool(line.strip()) for line in block("## Ten lines", "python").splitlines()) == 10


BARE = """
import importlib.abc, sys, warnings
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
warnings.simplefilter("always")
exec({lines!r}, {{}})
"""


@pytest.mark.skipif("UPTURN_DATA" not in os.environ, reason="needs the Hillstrom data in UPTURN_DATA")
def test_ten_lines_print_what_the_readme_quotes_after_the_install_it_names():
    """In a process of its own that finds nothing of other extras than the one the README says to install."""
    extra = re.search(r"`pip install 'upturn\[(\w+)\]'` for the lines below", README)[1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]

    def names(wanted):
        return {re.match(r"[\w-]+", line)[0] for line in wanted if not line.startswith("upturn")}

    there = names(extras[extra]) | names(project["dependencies"])
    others = set().union(*(names(lines) for lines in extras.values())) - there
    assert {"matplotlib", "polars", "skops"} <= others
    absent = {name.replace("-", "_") for name in others}
    code = BARE.format(absent=absent, lines=block("## Ten lines", "python"))
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "too small" in ran.stderr
    printed = [" ".join(line.split()) for line in ran.stdout.splitlines()]
    for line in block("It says, among other things", "").splitlines():
        assert not line or " ".join(line.split()) in printed
