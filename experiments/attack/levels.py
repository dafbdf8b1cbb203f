"""Text of very many levels, and very many columns: seconds and memory of every model as it comes.

    python experiments/attack/levels.py [--only NAME ...]

Each line in a process of its own, after a fit to the first 500 rows that loads what is needed; memory is what the process grew by
at its peak. Seconds on a busy machine are more than those of processor time. Writes ``levels.json`` and ``levels.md`` beside this file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "src"))

LIMIT = 150.0  # seconds
MODELS = (
    "meta.SLearner", "meta.TLearner", "meta.XLearner", "meta.DRLearner", "meta.RLearner", "meta.TreatedOnly", "meta.ClassTransformation",
    "svm.UpliftSVM", "svm.DifferentialSVM", "svm.StandardSVM", "svm.TwoCostSVM", "svm.SubgroupSVM", "trees.UpliftTree",
    "trees.UpliftForest", "trees.CTSForest", "trees.UCTSForest", "boosting.UpliftBoosting", "boosting.UpliftBagging",
    "features.UMODLSelector", "features.FilterSelector",
)  # fmt: skip
TABLES = {
    "50,000 rows, a text column of 3,000 levels": ("check", "meta.XLearner", "svm.DifferentialSVM"),
    "100,000 rows, a text column of 86,000 levels": ("check", *MODELS),
    "300 rows, 100,000 columns": ("svm.DifferentialSVM", "svm.UpliftSVM", "check"),
}


def table(name: str):
    """The experiment of that name; an effect in the first column."""
    rng = np.random.default_rng(0)
    if name.startswith("300"):
        X = rng.normal(size=(300, 100_000))
        first = X[:, 0]
    else:
        n, levels = (50_000, 3_000) if name.startswith("50") else (100_000, 86_000)
        first = rng.normal(size=n)
        spread = rng.permutation(np.concatenate((np.arange(levels), rng.integers(0, levels, n - levels))))
        X = pd.DataFrame({"x": first, "z": rng.normal(size=n), "id": [f"id{code:06d}" for code in spread]})
    treatment = rng.integers(0, 2, len(first))
    return X, (rng.random(len(first)) < 0.3 + 0.2 * treatment * (first > 0)).astype(float), treatment


def run(table_name: str, what: str) -> dict[str, object]:
    """Seconds and megabytes of one call."""
    import importlib

    import upturn

    warnings.simplefilter("ignore")
    X, y, t = table(table_name)

    def call(rows: slice) -> None:
        data = (X[rows], y[rows], t[rows])
        if what == "check":
            upturn.check(*data)
        else:
            module, name = what.split(".")
            getattr(importlib.import_module(f"upturn.{module}"), name)().fit(*data)

    call(slice(0, 100 if len(y) < 500 else 500))
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before, start, worked = _memory("VmRSS"), time.perf_counter(), time.process_time()
    said = ""
    try:
        call(slice(None))
    except ValueError as error:
        said = str(error)[:200]
    return {
        "seconds": round(time.perf_counter() - start, 2),
        "of_processor": round(time.process_time() - worked, 2),
        "megabytes": round(_memory("VmHWM") - before),
        "said": said,
    }


def _memory(which: str) -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(which))
    return int(line.split()[1]) / 1024


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--only", nargs="*", help="names of models, or parts of names of tables")
    options.add_argument("--one", nargs=2)
    given = options.parse_args()
    if given.one:
        print(json.dumps(run(*given.one)))
        return
    path = HERE / "levels.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    for name, whats in TABLES.items():
        for what in whats:
            if given.only and not any(word in what or word in name for word in given.only):
                continue
            try:
                out = subprocess.run(
                    [sys.executable, __file__, "--one", name, what], capture_output=True, text=True, timeout=LIMIT
                )
                found = (
                    json.loads(out.stdout)
                    if out.returncode == 0
                    else {"seconds": None, "megabytes": None, "said": out.stderr[-200:]}
                )
            except subprocess.TimeoutExpired:
                found = {"seconds": None, "megabytes": None, "said": f"not done in {LIMIT:.0f} s"}
            kept.setdefault(name, {})[what] = found
            print(name, what, found, flush=True)
            path.write_text(json.dumps(kept, indent=1) + "\n")
    lines = [
        "# Very many levels, very many columns",
        "",
        "Made by `python experiments/attack/levels.py`: 3,000 levels on two quiet cores, the rest on cores that others kept busy, where seconds of processor time are those to read.",
        "",
    ]
    for name, found in kept.items():
        lines += [f"**{name}**", "", "| | seconds | of processor time | MB | |", "|---|---:|---:|---:|---|"]
        for what, one in found.items():
            lines.append(
                f"| {what} | {one['seconds'] or ''} | {one.get('of_processor') or ''} | {one['megabytes'] or ''} | {one['said']} |"
            )
        lines.append("")
    path.with_suffix(".md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
