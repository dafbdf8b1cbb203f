"""Tables of rivals.md but for those of speed, which ``python -m benchmarks.rivals`` makes."""

from __future__ import annotations

import numpy as np
from benchmarks.quality import ranks, tuned
from benchmarks.quality.rivals import RIVALS

from page_tables._read import markdown, quality

PICTURES = {"images/ranks.png": "field", "images/ranks-tuned.png": "tuned"}
TUNED = "-tuned"


def _complete(file):
    """Rows of the sets that every model was run on."""
    rows = [row for row in quality(file) if row.get("auuc") is not None]
    models = {row["model"] for row in rows}
    sets = {
        name
        for name in {row["set"] for row in rows}
        if len({row["model"] for row in rows if row["set"] == name}) == len(models)
    }
    return [row for row in rows if row["set"] in sets]


def _finals(rows):
    """Of the models that were tuned, the tuned ones: with those that choose for themselves, they are what is ranked."""
    models = {row["model"] for row in rows}
    return [row for row in rows if row["model"] + TUNED not in models]


def _sets(rows):
    """Which sets, and how many splits, in words."""
    names = sorted({row["set"] for row in rows})
    real = [name for name in names if not name.startswith("sim-")]
    splits = len({(row["set"], row["split"]) for row in rows})
    listed = ", ".join(f"`{name}`" for name in names)
    return f"{len(real)} real sets and {len(names) - len(real)} simulated ones ({listed}), {splits} splits in all"


def _library(model):
    return RIVALS.get(model.removesuffix(TUNED), "upturn")


def _number(value):
    return f"{value:+.3f}".replace("+0.000", "0.000").replace("-0.000", "0.000")


def _interval(found):
    return f"{_number(found.mean)} ({_number(found.low)} to {_number(found.high)})"


def _critical(found):
    return f"Ranks differ by more than chance from a difference of {found.critical:.1f} on (Nemenyi's test at 5%)."


def _below(found, rows):
    """Of how many models the interval against the best lies below 0."""
    best, *others = found.models
    below = [ranks.paired(rows, model, best).high < 0 for model in others]
    theirs = [one for model, one in zip(others, below, strict=True) if _library(model) != "upturn"]
    return f"The interval lies below 0 for {sum(below)} of the {len(others)} others, {sum(theirs)} of them of other libraries; the best was found on these sets, so its own luck counts against all others."


_PAIRED = "the difference to the best by mean rank, paired by split, with its 95% interval over sets, those of one trial counted as one"


def field():
    """Mean ranks of all models at their defaults, how far each is from the best of a set, and from the best of all."""
    rows = _complete("field")
    found, lines = ranks.ranks(rows), []
    names = sorted({row["set"] for row in rows})
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
        paired = "the best" if model == found.models[0] else _interval(ranks.paired(rows, model, found.models[0]))
        lines.append([model, _library(model), f"{rank:.1f}", f"{behind.mean():.3f} ± {error:.3f}", paired])
    text = (
        f"{_sets(rows)}: mean ranks by AUUC on test rows; how far the AUUC lies behind the best of each set (over the outcome's standard deviation, mean over sets ± its standard error); and {_PAIRED}. "
        f"{_critical(found)} {_below(found, rows)}\n\n"
    )
    head = ["model", "library", "mean rank", "behind the best of each set", f"less {found.models[0]}"]
    return "\n" + text + markdown(head, lines) + "\n"


def drawn():
    """Every model with twenty draws of its parameters, beside itself at defaults."""
    rows = _complete("tuned")
    if not rows:
        return "\nNot run yet.\n"
    finals = _finals(rows)
    found, lines = ranks.ranks(finals), []
    for model, rank in zip(found.models, found.mean, strict=True):
        mine = [row for row in finals if row["model"] == model]
        paired = "the best" if model == found.models[0] else _interval(ranks.paired(rows, model, found.models[0]))
        clear = sum(row["high"] < 0 for row in mine)
        plain = model.removesuffix(TUNED)
        added = _interval(ranks.paired(rows, model, plain)) if model != plain else "chooses for itself"
        lines.append([plain, _library(model), f"{rank:.1f}", paired, f"{clear} of {len(mine)}", added])
    sizes = sorted({row["learnt"] for row in rows if row["simulated"]})
    tasks = len({(row["set"], row["split"]) for row in rows})
    gains = [ranks.paired(rows, model, model.removesuffix(TUNED)) for model in found.models if model.endswith(TUNED)]
    clearly = [sum(sign * (one.low if sign > 0 else one.high) > 0 for one in gains) for sign in (1, -1)]
    text = (
        f"{_sets(rows)}; at most {max(row['learnt'] for row in rows):,} rows to learn from, drawn once for all models (simulated sets: {' to '.join(f'{size:,}' for size in dict.fromkeys((sizes[0], sizes[-1])))}). Of {tuned.DRAWS} draws of parameters the one with the largest mean AUUC "
        f"in {tuned.FOLDS} folds of the rows to learn from is fitted to all of them and judged on test rows. Mean ranks of the tuned models; {_PAIRED}; on how many of the {tasks} splits a model is below the best of all that were judged there, tuned or not, "
        f"by the 95% interval of the paired difference over replicates of the test rows; and what tuning adds to the defaults on the same rows. {_critical(found)} {_below(found, finals)} "
        f"Tuning is better than the defaults by its interval for {clearly[0]} of {len(gains)} models, and worse for {clearly[1]}.\n\n"
    )
    head = [
        "model",
        "library",
        "mean rank",
        f"less {found.models[0].removesuffix(TUNED)}",
        "below the best",
        "tuned less defaults",
    ]
    return "\n" + text + markdown(head, lines) + "\n"


TABLES = {"field": field, "drawn": drawn}


def _shown(file):
    rows = _complete(file)
    return ranks.ranks(_finals(rows) if file == "tuned" else rows)


def draw(docs):
    """The critical-difference pictures."""
    for path, file in PICTURES.items():
        if quality(file):
            ranks.draw(_shown(file), docs / path)


def digest(file):
    """The stamp that the picture of committed results has."""
    return ranks.digest(_shown(file))
