"""Command lines whose JSON is kept in golden.json. `python tests/cli/golden_lines.py` writes it anew."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
GOLDEN = HERE / "golden.json"
SOURCE = HERE.parent.parent / "src"

# (name, what has to be there before, the line whose JSON is kept); the models are those that change least.
LINES: dict[str, tuple[list[str], str]] = {
    "hillstrom": (
        [],
        "check hillstrom.csv.gz --outcome visit --treatment segment --control 'No E-Mail' --drop conversion,spend",
    ),
    "trial": (["datasets get colon -o colon.parquet"], "check colon.parquet --outcome outcome --treatment treatment"),
    "report": (
        ["datasets get colon -o colon.parquet"],
        "report colon.parquet --outcome outcome --treatment treatment --audience trial --model tree --models '' --folds 2",
    ),
    "campaign": (
        [
            "datasets get campaign --rows 4000 -o campaign.csv",
            "datasets get campaign --rows 3000 --seed 1 -o new.csv",
            "fit campaign.csv --outcome outcome --treatment treatment --model tree --set max_depth=2 -o model.upturn",
        ],
        "target model.upturn new.csv --budget 300 --cost call=4,coupon=1 --value 25 -o list.csv",
    ),
}


def run(line: str, folder: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """One line of the installed command, in a process of its own; without one, of the module."""
    script = Path(sys.executable).with_name("upturn")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    found = subprocess.run(
        [*([str(script)] if script.exists() else [sys.executable, "-m", "upturn"]), *shlex.split(line)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if check and found.returncode:
        raise RuntimeError(f"upturn {line}: {found.returncode}\n{found.stdout}{found.stderr}")
    return found


def prepare(folder: Path) -> bool:
    """Put Hillstrom's file into a folder, if there is one."""
    data = os.environ.get("UPTURN_DATA")
    file = None if data is None else Path(data) / "hillstrom" / "hillstrom.csv.gz"
    if file is None or not file.exists():
        return False
    (folder / file.name).symlink_to(file)
    return True


def document(name: str, folder: Path) -> dict[str, object]:
    """The JSON of a line, without notes, which say how long things took."""
    before, line = LINES[name]
    for step in before:
        run(step, folder)
    found = json.loads(run(f"{line} --json", folder).stdout)
    return {key: value for key, value in found.items() if key != "notes"}


if __name__ == "__main__":
    kept = {}
    for name in LINES:
        with tempfile.TemporaryDirectory() as place:
            if prepare(Path(place)) or name != "hillstrom":
                kept[name] = document(name, Path(place))
    GOLDEN.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    print(f"wrote {len(kept)} documents to {GOLDEN}")
