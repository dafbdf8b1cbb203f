"""Tables of umodl.md."""

from __future__ import annotations

from page_tables._read import benchmark, markdown


def speed():
    """One feature beside kuplift, over the patterns."""
    found = [one for one in benchmark("umodl") if one["kind"] == "feature"]
    rows = []
    for n in sorted({one["n"] for one in found}):
        mine = [one for one in found if one["n"] == n]
        python = [one for one in mine if "python" in one]
        cells = [_range([1000 * one["upturn"] for one in mine], 1, " ms")]
        cells.append(_range([one["core"] / one["upturn"] for one in mine], 0, "x"))
        cells.append(_range([one["python"] / one["upturn"] for one in python], 0, "x") if python else "")
        cells.append(_range([one["core_cost"] for one in mine], 1, ""))
        cells.append(_range([one["python_cost"] for one in python], 1, "") if python else "")
        rows.append([f"{n:,} rows", *cells])
    return markdown(
        [
            "one feature",
            "upturn",
            "kuplift's C++ core",
            "kuplift's Python",
            "core's cost above upturn's, nats",
            "Python's",
        ],
        rows,
    )


def _range(values, digits, unit):
    low, high = (f"{round(pick(values), digits) + 0.0:,.{digits}f}" for pick in (min, max))
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def whole_table():
    """A table of many features."""
    one = next(one for one in benchmark("umodl") if one["kind"] == "table")
    theirs = [f"{one[key]:.2f} s ({one[key] / one['upturn']:.0f}x)" for key in ("core", "fit")]
    return (
        f"{one['p']} features × {one['n']:,} rows took {one['upturn']:.3f} s, kuplift's core {theirs[0]} and its class around it {theirs[1]}; "
        f"its models cost {one['least_excess']:.1f} to {one['largest_excess']:.1f} nats more than upturn's"
    )


TABLES = {"speed": speed, "whole table": whole_table}
