"""Edited model files, checksums put right: what loading them and asking the models that load comes to.

    python experiments/attack/files.py --cases 20000 [--minutes M]

Every estimator in every variant whose state differs is fitted and saved; then arrays, values, parameters and estimators of other
libraries in the file are edited, parts exchanged between models, and each file is loaded and asked in a worker with a limit of
time and memory (tests/hostile). A case is a pure function of its number. Writes files.json and the table files.md.
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent / "src"), str(HERE.parent.parent / "tests")]

from hostile.corpus import files  # noqa: E402
from hostile.workers import MEMORY, SECONDS, judge_all  # noqa: E402

VERDICTS = ("clear", "right", "raw", "silent", "crash", "hang")
NOT_GOOD = VERDICTS[2:]


def state_of(folder):
    """The commit of the sources, and whether they were edited since."""
    return subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=folder, capture_output=True, text=True, check=False
    ).stdout.strip()


def table(title, counts):
    """Markdown: a row per group, a column per verdict."""
    lines = [f"| {title} | tried | {' | '.join(VERDICTS)} |", f"|---|{'---:|' * (len(VERDICTS) + 1)}"]
    for name, found in counts.items():
        lines.append(f"| {name} | {sum(found.values()):,} | {' | '.join(f'{found.get(v, 0):,}' for v in VERDICTS)} |")
    return "\n".join(lines)


def count(found, groups_of):
    counts = collections.defaultdict(collections.Counter)
    for verdict, _, model, edits in found.values():
        for group in groups_of(model, edits):
            counts[group][verdict] += 1
    return {name: dict(counts[name]) for name in sorted(counts)}


def report(result):
    """The table of a result."""
    parts = [
        f"# Edited model files\n\nMade by `python experiments/attack/files.py` of the sources {result['state']}. *Clear* is refused in our words, *right* is loaded and answers in finite "
        "numbers of the right shape, *raw* is any other exception or memory out of proportion, *silent* a wrong answer without a "
        f"word. A case may take {result['seconds_a_case']:g} seconds and {result['memory_a_worker'] // 2**20:,} MiB beyond what a worker has at its start.",
        table("", {"all": result["all"]}),
        table("model", result["by_model"]),
        table("edit (a case may have several)", result["by_edit"]),
    ]
    if result["not_good"]:
        parts.append(
            "## Neither clear nor right\n\n" + "\n".join(f"- {' — '.join(map(str, one))}" for one in result["not_good"])
        )
    return "\n\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, help="stop after so long; the table says how many were tried")
    options = parser.parse_args()
    began = time.time()
    with tempfile.TemporaryDirectory() as folder:
        sound = files(Path(folder))

        def said(found):
            if len(found) % 1000 == 0:
                print(
                    len(found),
                    dict(collections.Counter(one[0] for one in found.values())),
                    f"{time.time() - began:.0f} s",
                    flush=True,
                )

        found = judge_all(
            sound,
            range(options.cases),
            folder,
            seed=options.seed,
            n_workers=options.workers,
            said=said,
            minutes=options.minutes,
        )
    result = {
        "state": state_of(HERE),
        "cases": len(found),
        "seed": options.seed,
        "seconds_a_case": SECONDS,
        "memory_a_worker": MEMORY,
        "all": dict(collections.Counter(one[0] for one in found.values())),
        "by_model": count(found, lambda model, edits: [model]),
        "by_edit": count(found, lambda model, edits: sorted(set(edits.split(" + ")))),
        "not_good": [[number, *one] for number, one in sorted(found.items()) if one[0] in NOT_GOOD],
    }
    (HERE / "files.json").write_text(json.dumps(result, indent=1) + "\n")
    (HERE / "files.md").write_text(report(result))
    print(table("", {"all": result["all"]}))


if __name__ == "__main__":
    main()
