"""The appendix: what the table holds, and how the page was made."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

import numpy as np

import upturn
from upturn._report._found import Found, table
from upturn._report._words import mean_of, number, percent
from upturn._results import level_text
from upturn._table import few_levels, read_table


def data_card(found: Found) -> dict[str, Any]:
    """What the table holds."""
    matrix, schema = read_table(found.data.X, quiet=True)
    rows = []
    for j, name in enumerate(schema.names):
        column, n_levels = few_levels(matrix[:, j], schema.levels[j])
        known = column[~np.isnan(column)]
        missing = percent(1 - len(known) / len(column))
        levels = schema.levels[j]
        if not len(known):
            kind, values = "empty", ""
        elif n_levels is None or levels is None:
            kind, values = (
                "number",
                f"{number(float(known.min()))} to {number(float(known.max()))}, mean {number(mean_of(known))}",
            )
        else:
            counts = np.bincount(known.astype(np.int64), minlength=n_levels)
            top = np.argsort(-counts, kind="stable")[:3]
            kind = f"{len(levels)} levels"
            values = (
                ", ".join(f"{levels[k]} {percent(counts[k] / len(known))}" for k in top)
                if n_levels == len(levels)
                else ""
            )
        rows.append([name, kind, missing, values])
    return table(["feature", "kind", "missing", "values"], rows)


def left_out(found: Found) -> dict[str, Any] | None:
    """What the table holds that no model has seen, and why; None where it is nothing."""
    rows = [[name, why] for name, why in found.source.get("left out", {}).items()]
    for count, why in ((found.source.get("without an arm", 0), "without an arm"), (found.lost, "without an outcome")):
        rows += [[f"{count:,} row{'' if count == 1 else 's'}", why]] if count else []
    return table(["left out", "why"], rows) if rows else None


def settings(found: Found) -> dict[str, Any]:
    held, options, money = found.held, found.options, found.money
    rows = [[f"model {name}", " ".join(repr(model).split())] for name, model in held.models.items()]
    rows += [
        ["folds", str(held.folds)],
        ["intervals", f"{level_text(options.interval)}, {options.n_bootstrap} replicates"],
        ["seed", str(options.seed)],
    ]
    for name in ("cost", "value", "budget", "fraction"):
        value = getattr(money, name)
        if value is not None:
            rows.append([name, str(value) if np.ndim(value) == 0 else "one per person"])
    if "source" in found.source:
        rows.insert(0, ["data", str(found.source["source"])])
    tools = ("numpy", "scipy", "scikit-learn", "numba")
    rows.append(
        [
            "versions",
            f"upturn {upturn.__version__}, Python {platform.python_version()}, "
            + ", ".join(f"{tool} {version(tool)}" for tool in tools),
        ]
    )
    return table(["setting", "value"], rows)
