"""Run every benchmark of this folder that can run, one after the other: python benchmarks/run.py [name …]

A benchmark is a file bench_*.py. It prints ratios measured side by side and writes JSON to build/. One that needs a rival
library says so by exiting with status 77, the usual sign of a skipped test, and is passed over with its message.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKIPPED = 77


def main(names):
    scripts = sorted(HERE.glob("bench_*.py"))
    if names:
        scripts = [script for script in scripts if any(name in script.stem for name in names)]
        if not scripts:
            found = ", ".join(sorted(script.stem for script in HERE.glob("bench_*.py")))
            sys.exit(f"no benchmark is named like {' or '.join(names)}: there are {found}")
    source = os.pathsep.join(filter(None, [str(HERE.parent / "src"), os.environ.get("PYTHONPATH")]))
    failed = []
    for script in scripts:
        print(f"== {script.stem}", flush=True)
        status = subprocess.run(
            [sys.executable, script], env={**os.environ, "PYTHONPATH": source}, check=False
        ).returncode
        if status == SKIPPED:
            print(f"{script.stem} was skipped", flush=True)
        elif status:
            failed.append(script.stem)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
