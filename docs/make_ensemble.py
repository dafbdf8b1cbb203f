"""Write what was measured of UpliftAuto into ensemble.md from the committed results: python docs/make_ensemble.py"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = Path(__file__).with_name("ensemble.md")
START, END = "<!-- measured -->", "<!-- end -->"


def _experiment(name):
    """An experiment's script, and what it has found so far."""
    path = ROOT / "experiments" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    results = path.with_suffix(".json")
    return module, json.loads(results.read_text()) if results.exists() else {}


def measured():
    """The section, as far as there are results."""
    parts = ["## What was measured"]
    power, found = _experiment("auto_power")
    for effort in ("low", "normal"):
        if found.get(f"{effort} linear True"):
            n = sum(len(rows) for key, rows in found.items() if key.startswith(effort))
            parts.append(
                f'Does it know when effects differ? {n} simulated trials of 1,000 rows, `UpliftAuto("{effort}")`: half of them without '
                "differences, and half with differences of which the true effect's AUUC is four standard errors. The looks and their level were settled on "
                "other draws (`experiments/auto_power.py`)."
            )
            parts.append(power.table(found, effort))
    regret, found = _experiment("auto_regret")
    if any(found.values()):
        parts.append(
            "What does choosing cost? Regrets are the AUUC on test rows that is lost to the candidate that turns out best there, in standard errors "
            "of its AUUC; the areas are per 1,000 people. Gains are over one effect for everybody, on the test rows, in standard errors: a number below "
            "−2 would be a set on which UpliftAuto is worse than predicting no differences at all (`experiments/auto_regret.py`; the three looks were taken at 6.5% then)."
        )
        parts.append(regret.table(found))
    _, found = _experiment("auto_scale")
    for one in found.values():
        parts.append(
            f'A fit of `UpliftAuto("{one["effort"]}")` to {one["rows"]:,} rows of 20 features took {one["seconds"]:.0f} seconds on {one["jobs"]} '
            f"threads of a machine that was busy with other work too ({one['processor_seconds']:.0f} of processor time), and at most {one['peak_gb']:.1f} GB of memory, the table included "
            "(`experiments/auto_scale.py`)."
        )
    return "\n\n".join(parts)


def page(text):
    """The page with the section put in."""
    before, rest = text.split(START)
    return f"{before}{START}\n\n{measured()}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
