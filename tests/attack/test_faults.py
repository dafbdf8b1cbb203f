"""Kills, full disks, several saves at once, forks and threads: a file is one model or the other, whole, and nothing is left over."""

from __future__ import annotations

import sys

import pytest

from hostile.faults import TRIALS

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="forks, limits and /proc as Linux has them"),
    # An exception inside the constructor of zipfile, which then complains when it is collected.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.__name__)
def test_faults(trial, tmp_path):
    found = trial(tmp_path, TRIALS[trial][1])
    assert found["wrong"] == 0, found
