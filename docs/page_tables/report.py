"""Tables of report.md: what benchmarks/bench_report.py found."""

from __future__ import annotations

import json

from page_tables._read import ROOT, markdown

RESULTS = ROOT / "benchmarks" / "report.json"


def times():
    """From CSV to page, by model."""
    found = sorted(json.loads(RESULTS.read_text()).items(), key=lambda item: -item[1]["seconds"])
    rows = [[f"`{name}`", f"{one['seconds']:.0f} s", f"{one['cpu_seconds']:.0f} s"] for name, one in found]
    return markdown(["`--model`", "by the clock", "processor time"], rows)


TABLES = {"times": times}
