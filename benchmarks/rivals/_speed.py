"""How long everybody takes at the same job: processor time, memory, and how both grow with the rows."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.rivals._call import OURS, call, files, installed, version_of

RESULTS = Path(__file__).resolve().parent / "results" / "speed.json"
FEW = 500  # rows that a contestant sees before its memory is measured, which loads and compiles
LONGEST = 120.0  # seconds of one run, from which on a contestant is not asked about larger tables


class Job(NamedTuple):
    """Arrays of a size, the sizes, and what is done with them, in words."""

    make: Callable[[int], dict[str, Any]]
    sizes: tuple[int, ...]
    words: str


def campaign(n: int, p: int = 12) -> dict[str, Any]:
    """Outcomes of 0 and 1 with a smooth effect, and a thousand rows to predict."""
    rng = np.random.default_rng(n)
    X, t = rng.normal(size=(n + 1000, p)), rng.integers(0, 2, n)
    effect = 0.1 * np.tanh(X[:n, 0] + X[:n, 1])
    y = (rng.random(n) < 0.3 + 0.05 * X[:n, 2].clip(-2, 2) + t * effect).astype(float)
    return {"X": X[:n], "y": y, "t": t, "asked": X[n:]}


def ranking(n: int) -> dict[str, Any]:
    """A score of which the last digits differ, and outcomes of 0 and 1."""
    rng = np.random.default_rng(n)
    score, t = rng.normal(size=n), rng.integers(0, 2, n)
    return {"y": (rng.random(n) < 0.2 + 0.05 * t * (score > 0)).astype(int), "score": score, "t": t}


def column(n: int) -> dict[str, Any]:
    """One column, whose middle half gains."""
    rng = np.random.default_rng(n)
    x, t = rng.normal(size=n), rng.integers(0, 2, n)
    return {"x": x, "y": (rng.random(n) < 0.3 + 0.2 * t * (np.abs(x) < 0.7)).astype(int), "t": t}


def margins(n: int) -> dict[str, Any]:
    """A margin problem of two planes with ten columns, p = 1."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 10))
    z = np.where(rng.random(n) < 1 / (1 + np.exp(-X[:, 0] - 0.3 * X[:, 1] - 0.1)), 1.0, -1.0)
    return {"X": X, "z": z, "cost": np.stack([np.where(z > 0, 1.0, 1.3), np.where(z > 0, 1.3, 1.0)])}


JOBS = {
    "forest": Job(campaign, (10_000, 40_000, 160_000), "20 trees of depth 8, 12 columns, outcomes of 0 and 1"),
    "honest centred forest": Job(campaign, (2_000, 8_000, 32_000), "100 honest trees on centred outcomes, 12 columns"),
    "T-learner": Job(campaign, (10_000, 40_000, 160_000), "a model of each arm over gradient boosting, as the library makes it"),
    "X-learner": Job(campaign, (10_000, 40_000, 160_000), "the X-learner over gradient boosting, as the library makes it"),
    "AUUC": Job(ranking, (100_000, 400_000, 1_600_000), "the area under the uplift curve of one score"),
    "discretise a column": Job(column, (5_000, 20_000, 80_000), "UMODL intervals of one column of real numbers"),
    "machine": Job(margins, (4_000, 16_000, 64_000), "the L1 uplift machine's problem, 10 columns, to a gap of 1e-8"),
}  # fmt: skip


def run(jobs: list[str], contestants: list[str], repeats: int) -> None:
    """Ask everybody who is here, size by size, in turn; what was measured before of the same job and contestant is replaced."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in jobs:
        job = JOBS[name]
        able = [one for one in contestants if name in files()[one].JOBS]
        found: dict[str, Any] = {
            one: {"version": version_of(one), "rows": [], "seconds": [], "megabytes": []} for one in able
        }
        for n in job.sizes:
            rows = job.make(n)
            for one in able:
                line = found[one]
                if len(line["seconds"]) < len(line["rows"]) or (line["seconds"] and line["seconds"][-1] > LONGEST):
                    continue
                try:
                    answer = call(one, "JOBS", name, rows, repeats)
                except ValueError as error:
                    line["failed"] = str(error)[:200]
                    print(error, file=sys.stderr)
                    continue
                line["rows"].append(n)
                line["seconds"].append(float(f"{answer.seconds:.4g}"))
                line["megabytes"].append(round(answer.extra / 1e6, 1))
                print(f"{name}, {n:,} rows: {one} {answer.seconds:.3g} s, {answer.extra / 1e6:.0f} MB", flush=True)
        results.setdefault(name, {}).update(found)
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(_text(results))


def memory(jobs: list[str], contestants: list[str]) -> None:
    """Measure the memory anew, at the largest size that a contestant was timed at; times stay as they are."""
    results = json.loads(RESULTS.read_text())
    for name in jobs:
        for one in contestants:
            line = results.get(name, {}).get(one)
            if not line or not line["seconds"]:
                continue
            if version_of(one) != line["version"]:
                print(f"{one} is {version_of(one)} here, and was timed as {line['version']}: left out", file=sys.stderr)
                continue
            n = line["rows"][-1]
            answer = call(one, "JOBS", name, JOBS[name].make(n), first=JOBS[name].make(FEW))
            line["megabytes"] = [None] * (len(line["rows"]) - 1) + [round(answer.extra / 1e6, 1)]
            print(f"{name}, {n:,} rows: {one} {answer.extra / 1e6:.0f} MB", flush=True)
            RESULTS.write_text(_text(results))


def _text(results: dict[str, Any]) -> str:
    jobs = []
    for name in JOBS:
        if name in results:
            lines = ",\n".join(f"  {json.dumps(one)}: {json.dumps(line)}" for one, line in results[name].items())
            jobs.append(f" {json.dumps(name)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(jobs) + "\n}\n"


def exponent(rows: list[int], seconds: list[float]) -> float:
    """The power of the rows that the time grows with: the slope of a line through the logarithms."""
    if len(rows) < 2 or min(seconds) <= 0.0:
        return float("nan")
    return float(np.polyfit(np.log(rows), np.log(seconds), 1)[0])


def page(results: dict[str, Any]) -> str:
    """The tables, a job after the other; ratios are at the largest size that both were asked."""
    parts = []
    for name, lines in results.items():
        ours = lines.get(OURS)
        parts += [f"\n### {name}\n", f"{JOBS[name].words[0].upper()}{JOBS[name].words[1:]}.\n"]
        parts += ["| | version | rows | seconds | ratio to upturn | MB | time grows with rows to the power |", "|---|---|---:|---:|---:|---:|---:|"]  # fmt: skip
        for one, line in lines.items():
            if not line["rows"]:
                parts.append(f"| {one} | {line['version']} | – | {line.get('failed', 'not run')} | | | |")
                continue
            n, seconds = line["rows"][-1], line["seconds"][-1]
            same = ours["seconds"][ours["rows"].index(n)] if ours and n in ours["rows"] else None
            ratio = f"{seconds / same:.1f}" if same else "–"
            grows = exponent(line["rows"], line["seconds"])
            shown = f"{grows:.2f}" if len(line["rows"]) > 2 and np.isfinite(grows) else "–"
            parts.append(
                f"| {one} | {line['version']} | {n:,} | {seconds:.3g} | {ratio} | {_megabytes(line)} | {shown} |"
            )
    return "\n".join(parts) + "\n"


def _megabytes(line: dict[str, Any]) -> str:
    """Memory at the largest size; – where it was not measured."""
    taken = line["megabytes"][-1] if line["megabytes"] else None
    return "–" if taken is None else f"{taken:,.0f}"


def contestants(only: list[str] | None) -> list[str]:
    """Those that are installed, or of them the ones asked for; upturn always."""
    here = installed()
    return [name for name in here if only is None or name in (*only, OURS)]
