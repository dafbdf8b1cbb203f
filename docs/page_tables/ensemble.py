"""What was measured of UpliftAuto, for ensemble.md."""

from __future__ import annotations

from page_tables._read import added, experiment, quality


def measured():
    """The section, as far as there are results."""
    parts = ["## What was measured"]
    power, found = experiment("auto_power")
    for effort in ("low", "normal"):
        if found.get(f"{effort} linear True"):
            n = sum(len(rows) for key, rows in found.items() if key.startswith(effort))
            parts.append(
                f'Does it know when effects differ? {n} simulated trials of 1,000 rows, `UpliftAuto("{effort}")`: half of them without '
                "differences, and half with differences of which the true effect's AUUC is four standard errors. The looks and their level were settled on "
                "other draws (`experiments/auto_power.py`)."
            )
            parts.append(power.table(found, effort))
    regret, found = experiment("auto_regret")
    if any(found.values()):
        parts.append(
            "What does choosing cost? Regrets are the AUUC on test rows that is lost to the candidate that turns out best there, in standard errors "
            "of its AUUC; the areas are per 1,000 people. Gains are over one effect for everybody, on the test rows, in standard errors: a number below "
            "−2 would be a set on which UpliftAuto is worse than predicting no differences at all (`experiments/auto_regret.py`)."
        )
        parts.append(regret.table(found))
    rivals, found = experiment("auto_rivals")
    if any(found.values()):
        parts.append(
            "Beside models of other libraries at their defaults: `UpliftAuto(time_budget=60)`, areas per 1,000 people on the test rows of one split, differences with standard errors of resampled test "
            "rows (`experiments/auto_rivals.py`)."
        )
        parts.append(rivals.table(found))
    _, found = experiment("auto_scale")
    for one in found.values():
        parts.append(
            f'A fit of `UpliftAuto("{one["effort"]}")` to {one["rows"]:,} rows of 20 features took {one["seconds"]:.0f} seconds on {one["jobs"]} '
            f"threads of a machine that was busy with other work too ({one['processor_seconds']:.0f} of processor time), and at most {one['peak_gb']:.1f} GB of memory, the table included "
            "(`experiments/auto_scale.py`)."
        )
    return "\n" + "\n\n".join(parts) + "\n"


def gradient():
    """The trial of gradient boosting of uplift trees, and learners over boosting of three libraries: what each adds to the X-learner, and it to each."""
    rows = quality("gradient")
    tried = "gradient-d2-r0.1-l30"
    words = {"x": "X-learner", tried: "gradient boosting of uplift trees, depth 2"}
    words |= {name: f"{name.upper()}-learner" for name in ("dr", "r", "s", "t")}
    for library, named in (("lightgbm", "LightGBM"), ("sklearn", "scikit-learn")):
        words |= {f"{library}-{name}": f"{name.upper()}-learner over {named}'s boosting" for name in ("x", "r", "dr")}
    lines = [
        "| | beside the X-learner, sets for choosing | the same, the reporting half | gradient boosting beside it, the reporting half |",
        "|---|---|---|---|",
    ]
    half = {name: [row for row in rows if row["half"] == name] for name in ("choose", "report")}
    for model, said in words.items():
        cells = [added(half[name], "x", model, "auuc", 4) if model != "x" else "" for name in half]
        cells.append(added(half["report"], model, tried, "auuc", 4) if model != tried else "")
        lines.append(f"| {said} | {' | '.join(cells)} |")
    return "\n".join(lines)


TABLES = {"gradient": gradient, "measured": measured}
