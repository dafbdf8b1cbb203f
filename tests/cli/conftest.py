"""Tables on disk, and the command run inside this process: a start costs a second, and most tests need none."""

import json
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from upturn.cli import main


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def upturn(tmp_path, monkeypatch, capsys):
    """Run a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return run


@pytest.fixture(scope="session")
def mail():
    """An experiment as marketers have it: an id, a date, a leak, text, gaps, and a treatment that works for the young."""
    rng = np.random.default_rng(0)
    n = 2_000
    age = rng.integers(18, 80, n)
    treated = rng.integers(0, 2, n)
    visit = rng.random(n) < 0.2 + 0.3 * treated * (age < 45)
    return pl.DataFrame(
        {
            "customer": [f"{i:05d}" for i in rng.permutation(n)],
            "joined": pl.date_range(pl.date(2018, 1, 1), pl.date(2018, 1, 1) + pl.duration(days=n - 1), eager=True),
            "age": age,
            "region": rng.choice(["north", "south", "west"], n).tolist(),
            "spend_before": [
                None if r < 0.1 else round(s, 2) for r, s in zip(rng.random(n), rng.gamma(2, 30, n), strict=True)
            ],
            "member": rng.random(n) < 0.4,
            "clicks": (visit & (rng.random(n) < 0.7)).astype(int),
            "segment": np.where(treated, "mail", "control").tolist(),
            "visit": visit.astype(int),
        }
    )
