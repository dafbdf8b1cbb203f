"""Tables of rivals.md but for those of speed, which ``python -m benchmarks.rivals`` makes."""

from __future__ import annotations

import numpy as np
from benchmarks.quality import ranks
from benchmarks.quality.rivals import RIVALS

from page_tables._read import markdown, quality

PICTURE = "images/ranks.png"


def _complete():
    """Rows of the sets that every model was run on."""
    rows = [row for row in quality("field") if row.get("auuc") is not None]
    models = {row["model"] for row in rows}
    sets = {
        name
        for name in {row["set"] for row in rows}
        if len({row["model"] for row in rows if row["set"] == name}) == len(models)
    }
    return [row for row in rows if row["set"] in sets]


def field():
    """Mean ranks of all models at their defaults, and how far each is from the best of a set."""
    rows = _complete()
    found, lines = ranks.ranks(rows), []
    names = sorted({row["set"] for row in rows})
    splits = {name: len({row["split"] for row in rows if row["set"] == name}) for name in names}
    area = {
        (model, name): np.mean(
            [row["auuc"] / row["scale"] for row in rows if row["model"] == model and row["set"] == name]
        )
        for model in found.models
        for name in names
    }
    best = np.array([max(area[model, name] for model in found.models) for name in names])
    for model, rank in zip(found.models, found.mean, strict=True):
        behind = best - np.array([area[model, name] for name in names])
        error = behind.std(ddof=1) / np.sqrt(len(names))
        library = RIVALS.get(model, "upturn")
        lines.append([model, library, f"{rank:.1f}", f"{behind.mean():.3f} ± {error:.3f}"])
    real = [name for name in names if not name.startswith("sim-")]
    text = (
        f"{len(real)} real sets and {len(names) - len(real)} simulated ones ({', '.join(f'`{name}`' for name in names)}), {sum(splits.values())} splits in all: mean ranks by AUUC on test rows, and "
        f"how far the AUUC lies behind the best of each set (over the outcome's standard deviation, mean over sets ± its standard error). Ranks differ by more "
        f"than chance from a difference of {found.critical:.1f} on (Nemenyi's test at 5%).\n\n"
    )
    return "\n" + text + markdown(["model", "library", "mean rank", "behind the best"], lines) + "\n"


TABLES = {"field": field}


def draw(path):
    """The critical-difference picture."""
    ranks.draw(ranks.ranks(_complete()), path)


def digest():
    """The stamp that the picture of the committed results has."""
    return ranks.digest(ranks.ranks(_complete()))
