"""Tables of svm.md."""

from __future__ import annotations

from page_tables._read import added, benchmark, markdown, quality


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


def _seconds(value):
    return f"{1000 * value:.2g} ms" if value < 0.01 else f"{value:.2g} s" if value < 10 else f"{value:.0f} s"


TABLES = {"power": power, "speed": speed}
