"""What policy.md says of the time that plans take: benchmarks/bench_policy.py found it."""

from __future__ import annotations

import json

from page_tables._read import ROOT


def speed():
    """The largest plan, and the one that a general solver made, too."""
    found = json.loads((ROOT / "benchmarks" / "policy.json").read_text())
    large = max(found, key=lambda one: one["rows"] * one["arms"])
    both = next(one for one in found if "HiGHS cpu seconds" in one)
    return (
        f"{large['rows']:,} people and {large['arms']} arms take {large['cpu seconds']:.2f} s of processor time, and {both['rows']:,} people and {both['arms']} arms "
        f"{both['cpu seconds']:.3f} s where HiGHS takes {both['HiGHS cpu seconds']:.1f} s"
    )


TABLES = {"speed": speed}
