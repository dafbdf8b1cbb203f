"""What command.md says of the time that scores take: benchmarks/bench_score.py found it."""

from __future__ import annotations

import json

from page_tables._read import ROOT


def score():
    """The largest table that was scored."""
    one = max(json.loads((ROOT / "benchmarks" / "score.json").read_text()), key=lambda one: one["rows"])
    return (
        f"{one['rows'] / 1e6:,.0f} million rows of {one['features']} columns of Parquet, a million in a group: {one['score seconds']:.1f} s on two cores, "
        f"{one['score megabytes'] / 1e3:.1f} GB, {one['speed of predict, by the clock']:.2f} of the speed of `predict` on an array by the clock and "
        f"{one['speed of predict, by processor time']:.2f} by processor time"
    )


TABLES = {"score": score}
