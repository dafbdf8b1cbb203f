"""Committed results, and tables of them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

from benchmarks.quality import run, show
from experiments._compare import table as markdown

ROOT = Path(__file__).resolve().parents[2]


def experiment(name):
    """A script of experiments/, and what it has kept so far."""
    path = ROOT / "experiments" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    results = path.with_suffix(".json")
    return module, json.loads(results.read_text()) if results.exists() else {}


def quality(*names):
    """Rows of files of benchmarks/quality/results."""
    paths = [ROOT / "benchmarks" / "quality" / "results" / f"{name}.json" for name in names]
    return [row for path in paths if path.exists() for row in run.read(path)]


def added(rows, before, after, measure, digits):
    """What one contestant adds to another over sets; nothing where they never met."""
    found = show.over_sets(rows, before, after, measure)
    if found is None:
        return ""
    if found.sets == 1:
        return f"{found.mean:+.{digits}f} (one set)"
    return f"{found.mean:+.{digits}f} ± {found.error:.{digits}f} ({found.sets} sets: {found.better} better, {found.worse} worse)"


def benchmark(name):
    """What a benchmark kept."""
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


__all__ = ["ROOT", "added", "benchmark", "experiment", "markdown", "quality"]
