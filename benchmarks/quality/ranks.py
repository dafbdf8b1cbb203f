"""Who is best over many sets: mean ranks, and how far apart they must be for chance not to explain it (Demšar 2006)."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata, studentized_range, t


class Ranks(NamedTuple):
    """Mean ranks of models over sets, 1 the best, and the least difference that is more than chance, at 5%."""

    models: list[str]
    mean: Any
    critical: float
    sets: int


def ranks(rows: list[dict[str, Any]], measure: str = "auuc") -> Ranks:
    r"""Ranks of the models on every set where all of them were run, by the mean of the measure over splits; ties share theirs.

    The critical difference is Nemenyi's, :math:`q_{.05} \sqrt{k (k + 1) / (6 N)}` for k models on N sets, q being the quantile of
    the studentised range over :math:`\sqrt 2`.
    """
    models = sorted({row["model"] for row in rows})
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row.get(measure) is not None:
            found.setdefault(row["set"], {}).setdefault(row["model"], []).append(row[measure])
    complete = [mine for mine in found.values() if len(mine) == len(models)]
    if not complete:
        raise SystemExit(f"there is no set that all of {models} were run on")
    table = np.array([[np.mean(mine[model]) for model in models] for mine in complete])
    mean = np.mean([rankdata(-line) for line in table], axis=0)
    k, n = len(models), len(table)
    critical = float(studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2) * np.sqrt(k * (k + 1) / (6 * n)))
    order = np.argsort(mean, kind="stable")
    return Ranks([models[i] for i in order], mean[order], critical, n)


class Paired(NamedTuple):
    """What a model has more than another: mean over sets and its 95% interval, nan with a single trial; and on how many sets."""

    mean: float
    low: float
    high: float
    sets: int


def trial_of(name: str) -> str:
    """Whose rows a set is made of: outcomes and arms of one trial are several sets, simulations have rows of their own."""
    return name if name.startswith("sim-") else name.split("-")[0]


def paired(rows: list[dict[str, Any]], model: str, best: str, measure: str = "auuc") -> Paired:
    r"""The measure of a model less that of the best, paired by split, in standard deviations of the outcome.

    Means over splits are averaged over sets. Sets of one trial share their rows, so the standard error sums within trials before it squares:
    :math:`\sqrt{G / (G - 1)} \sqrt{\sum_g (\sum_{s \in g} (d_s - \bar d))^2} / S` for G trials with S sets, and the quantile is that of t with G - 1 degrees.
    """
    ours, theirs = _scaled(rows, model, measure), _scaled(rows, best, measure)
    apart = {
        name: float(np.mean([value - theirs[name][k] for k, value in mine.items() if k in theirs[name]]))
        for name, mine in ours.items()
        if mine.keys() & theirs.get(name, {}).keys()
    }
    mean = float(np.mean(list(apart.values())))
    sums: dict[str, float] = {}
    for name, value in apart.items():
        sums[trial_of(name)] = sums.get(trial_of(name), 0.0) + value - mean
    trials = len(sums)
    error = float("nan")
    if trials > 1:
        error = float(np.sqrt(trials / (trials - 1) * sum(one * one for one in sums.values())) / len(apart))
    reach = float(t.ppf(0.975, max(trials - 1, 1))) * error
    return Paired(mean, mean - reach, mean + reach, len(apart))


def _scaled(rows: list[dict[str, Any]], model: str, measure: str) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        if row["model"] == model and row.get(measure) is not None:
            found.setdefault(row["set"], {})[row["split"]] = row[measure] / row["scale"]
    return found


def cliques(found: Ranks) -> list[tuple[int, int]]:
    """Runs of models, as first and last place, that chance may have put in this order; none inside another."""
    runs: list[tuple[int, int]] = []
    for first, rank in enumerate(found.mean):
        last = int(np.searchsorted(found.mean, rank + found.critical, side="right")) - 1
        if last > first and not any(a <= first and last <= b for a, b in runs):
            runs.append((first, last))
    return runs


def digest(found: Ranks) -> str:
    """A short name of what the picture shows."""
    shown = [found.models, [f"{rank:.6f}" for rank in found.mean], found.sets, f"{found.critical:.6f}"]
    return hashlib.sha256(json.dumps(shown).encode()).hexdigest()[:16]


def draw(found: Ranks, path: Any) -> None:
    """The critical-difference picture, stamped with its digest: models on a line by their mean rank, bars under those that do not differ."""
    from matplotlib.figure import Figure

    k = len(found.models)
    figure = Figure(figsize=(9, 1.2 + 0.3 * k), layout="constrained")
    axes = figure.add_subplot()
    axes.hlines(np.arange(k), 1, found.mean, color="0.85", lw=1)
    axes.plot(found.mean, np.arange(k), "o", color="#0072b2")
    for place, (first, last) in enumerate(cliques(found)):
        axes.plot(
            [float(np.max(found.mean)) + 0.8 + 0.35 * place] * 2,
            [first - 0.2, last + 0.2],
            color="#d55e00",
            lw=3,
            solid_capstyle="butt",
        )
    axes.set_yticks(np.arange(k), found.models)
    axes.invert_yaxis()
    axes.set(
        xlabel=f"mean rank over {found.sets} sets, 1 the best; critical difference {found.critical:.2f}", xlim=(1, None)
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110, metadata={"Description": digest(found), "Software": None})
