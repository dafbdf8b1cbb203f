"""Faults of the world around a save, a load or a fit, many times each (tests/hostile/faults.py says what they are).

    python experiments/attack/faults.py

Writes faults.json and the table faults.md.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent / "src"), str(HERE.parent.parent / "tests")]

from hostile.faults import TRIALS  # noqa: E402


def report(results):
    """The table of the results."""
    lines = [
        "# Faults\n",
        "Made by `python experiments/attack/faults.py`.\n",
        "| fault | tried | wrong | |",
        "|---|---:|---:|---|",
    ]
    for name, found in results.items():
        lines.append(
            f"| **{name.replace('_', ' ')}**: {found['what']} | {found['tried']:,} | {found['wrong']:,} | {found['said']} |"
        )
    return "\n".join(lines) + "\n"


def main():
    results = {}
    for trial, (tries, _) in TRIALS.items():
        began = time.time()
        with tempfile.TemporaryDirectory() as folder:
            found = trial(folder, tries)
        results[trial.__name__] = {"what": (trial.__doc__ or "").strip(), **found}
        print(trial.__name__, found, f"{time.time() - began:.0f} s", flush=True)
    (HERE / "faults.json").write_text(json.dumps(results, indent=1) + "\n")
    (HERE / "faults.md").write_text(report(results))


if __name__ == "__main__":
    main()
