"""Tables of svm.md."""

from __future__ import annotations

import json

from page_tables._read import ROOT, added, benchmark, markdown, quality


def power():
    """What p above 1 adds to p = 1."""
    results, rows = quality("svm_power"), []
    for half, words in (("choose", "choosing half"), ("report", "reporting half")):
        mine = [row for row in results if row["half"] == half]
        for measure, what, digits in (
            ("auuc", f"{words}: AUUC", 4),
            ("share", "ranking by the truth", 3),
            ("policy", "gain of `recommend`", 3),
        ):
            rows.append([what, *(added(mine, "svm-p1", f"svm-p{p}", measure, digits) for p in ("1.2", "1.5", "2"))])
    return markdown(["", "p = 1.2", "p = 1.5", "p = 2"], rows)


def speed():
    """Beside general solvers."""
    rows = []
    for one in benchmark("svm"):
        rival = f"{one['rival']}, {_seconds(one['rival_seconds'])}" if one["rival"] else ""
        ratio = (
            f"{one['ratio']:.2g}"
            if one["rival"] and one["ratio"] < 10
            else f"{one['ratio']:.0f}"
            if one["rival"]
            else ""
        )
        note = "" if one["note"].startswith("aim") else one["note"]
        rows.append([one["job"].strip(), _seconds(one["seconds"]), rival, ratio, note])
    return markdown(["problem", "upturn", "rival", "ratio", ""], rows)


def _fuzzed(name):
    """Results of benchmarks/bench_svm.py --fuzz."""
    return json.loads((ROOT / "benchmarks" / "quality" / "results" / f"{name}.json").read_text())


def _seconds(value):
    return f"{1000 * value:.2g} ms" if value < 0.01 else f"{value:.2g} s" if value < 10 else f"{value:.0f} s"


def vanishing():
    """How often w was 0 at p = 1."""
    mine = [row for row in quality("svm_power") if row["model"] == "svm-p1"]
    return f"in {sum('VanishingWarning' in row.get('warnings', []) for row in mine):,} of its {len(mine):,} fits"


def fuzz():
    """Awkward tables with p = 1."""
    found = _fuzzed("svm_fuzz")
    last = max(found, key=lambda one: one["seconds"])
    certified, all_of = sum(one["certified"] for one in found), len(found)
    return (
        f"{certified} of {all_of} fits were certified to 1e-8 (w = 0 in {sum(one['vanishing'] for one in found)} of them); the slowest took {last['seconds']:.1f} s, "
        f"for {last['rows']:,} rows"
    )


def fuzz_above():
    """The same with p = 1.2."""
    found = _fuzzed("svm_fuzz_p1.2")
    largest = max(one["rows"] for one in found)
    slowest = max(one["seconds"] for one in found if one["rows"] == largest)
    return (
        f"{sum(one['certified'] for one in found)} of {len(found)} were, {largest:,} rows in {slowest:.1f} s at most; in {sum(one['vanishing'] for one in found)} of "
        "them one label was so rare that w was too short to see"
    )


TABLES = {"power": power, "speed": speed, "vanishing": vanishing, "fuzz": fuzz, "fuzz above": fuzz_above}
