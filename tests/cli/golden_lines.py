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

# Folders that lines run in, and what has to be there before; the models are those that change least.
FOLDERS: dict[str, list[str]] = {
    "hillstrom": [],
    "trial": ["datasets get colon -o colon.parquet"],
    "shop": [
        "datasets get campaign --rows 4000 -o campaign.csv",
        "datasets get campaign --rows 3000 --seed 1 -o new.csv",
        "fit campaign.csv --outcome outcome --treatment treatment --model tree --set max_depth=2 -o model.upturn",
    ],
}
# (name, the folder, the line whose JSON is kept)
LINES: dict[str, tuple[str, str]] = {
    "hillstrom": (
        "hillstrom",
        "check hillstrom.csv.gz --outcome visit --treatment segment --control 'No E-Mail' --drop conversion,spend",
    ),
    "trial": ("trial", "check colon.parquet --outcome outcome --treatment treatment"),
    "report": (
        "trial",
        "report colon.parquet --outcome outcome --treatment treatment --audience trial --model tree --models '' --folds 2",
    ),
    "campaign": ("shop", "target model.upturn new.csv --budget 300 --cost call=4,coupon=1 --value 25 -o list.csv"),
    "fit": ("shop", "fit --model tree --set max_depth=1 -o small.upturn"),
    "compare": (
        "shop",
        "compare --models tree,bagging --set tree.max_depth=2 --set bagging.n_estimators=3 --repeats 2",
    ),
    "evaluate": ("shop", "evaluate model.upturn new.csv --metrics auuc,uplift_at"),
    "score": ("shop", "score model.upturn new.csv -o scores.parquet"),
    "select": ("shop", "select --method umodl"),
    "show": ("shop", "show model.upturn"),
    "export": ("shop", "export model.upturn --to json"),
    "export-text": ("shop", "export model.upturn --to text"),
    "datasets-list": ("shop", "datasets list"),
    "datasets-get": ("shop", "datasets get campaign --rows 50 --truth -o fifty.csv"),
    "compile": ("shop", "compile"),
    "error": ("shop", "check campaign.csv --outcome outcom --treatment treatment"),
}
# What differs from machine to machine, or whenever a kernel is added: only of what kind it is.
CHANGING = ("seconds", "kernels", "upturn")


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


def prepare(name: str, folder: Path) -> bool:
    """Make one of the folders; False where Hillstrom's file is not there."""
    if name == "hillstrom":
        data = os.environ.get("UPTURN_DATA")
        file = None if data is None else Path(data) / "hillstrom" / "hillstrom.csv.gz"
        if file is None or not file.exists():
            return False
        (folder / file.name).symlink_to(file)
    for line in FOLDERS[name]:
        run(line, folder)
    return True


def document(name: str, folder: Path) -> dict[str, object]:
    """The JSON of a line, without notes, which say how long things took, and curves, of which there are the areas."""
    found = json.loads(run(f"{LINES[name][1]} --json", folder, check=name != "error").stdout)
    kept = {key: value for key, value in found.items() if key not in ("notes", "curves")}
    return {key: type(value).__name__ if key in CHANGING else value for key, value in kept.items()}


if __name__ == "__main__":
    kept = {}
    for place in FOLDERS:
        with tempfile.TemporaryDirectory() as folder:
            if prepare(place, Path(folder)):
                kept |= {name: document(name, Path(folder)) for name in LINES if LINES[name][0] == place}
    GOLDEN.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    print(f"wrote {len(kept)} documents to {GOLDEN}")
