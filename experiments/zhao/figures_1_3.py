"""Figures 1 to 3: the rules that UCTS and CTS find in two dimensions, how smooth they are, and what they earn."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pandas as pd

from experiments import _draw
from experiments._compare import claims, held, number, table
from experiments._declared import Experiment
from upturn.datasets import simulate_zhao_2d
from upturn.trees import CTSForest, UCTSForest

EXPERIMENT = Experiment(
    paper="002",
    shows=("Figure 1", "Figure 2", "Figure 3"),
    title="Rules in two dimensions",
    data="`simulate_zhao_2d`, 1,000 rows per arm. A fixed arm earns 25, the best rule 26.25, and it changes once along X1, at 50.",
    protocol="50 sets of data. min_split is the one of six that earns most on 20 other sets (200 trees), and 80, the paper's choice for both forests. Rules are judged by the true means of 20,000 fresh points. "
    "Smoothness along X1: how often the recommended arm changes, and the total variation of the estimated advantage (the true one varies by 10), means over the three levels of X2.",
)
PICTURES = ("rules-2d",)
SPLITS = (5, 10, 20, 40, 80, 160)
LEVELS, ALONG = ("A", "B", "C"), np.linspace(0.05, 99.95, 1000)
FORESTS = {
    "UCTS": UCTSForest,
    "CTS": partial(CTSForest, min_share=0.0),  # the paper's CTS has no smallest share
    "CTS, regularised leaves": partial(CTSForest, min_share=0.0, leaf="regularized"),
}


def plan(size):
    sets, tuning = {"smoke": (1, 0), "quick": (2, 1), "medium": (25, 10), "full": (50, 20)}[size]
    trees = 8 if size == "smoke" else 400
    for name in FORESTS:
        for split in SPLITS if size != "smoke" else (80,):
            if split in (80, 160):
                yield {"forest": name, "min_split": split, "trees": trees, "sets": "judged"}, sets
            if tuning and name != "CTS, regularised leaves":
                yield {"forest": name, "min_split": split, "trees": trees // 2, "sets": "tuning"}, tuning


@cache
def _fresh():
    data = simulate_zhao_2d(20_000, random_state=999)
    return data.X, data.details["response"]


def run(case, seed):
    data = simulate_zhao_2d(2000, random_state=seed + 1000 * (case["sets"] == "tuning"))
    model = FORESTS[case["forest"]](
        case["trees"], min_samples_split=case["min_split"], max_features=1, random_state=seed
    )
    model.fit(data.X, data.y, data.treatment)
    fresh, response = _fresh()
    earned = response[np.arange(len(fresh)), np.asarray(model.recommend(fresh)).astype(int)].mean()
    if case["sets"] == "tuning":
        return {"earned": earned}
    line = pd.DataFrame({"X1": np.tile(ALONG, 3), "X2": np.repeat(LEVELS, len(ALONG))})
    advantage = model.predict(line).reshape(3, -1)
    rule = np.asarray(model.recommend(line)).astype(int).reshape(3, -1)
    changes = [(np.flatnonzero(np.diff(one)) + 1).tolist() for one in rule]
    return {
        "earned": earned,
        "changes": np.mean([len(one) for one in changes]),
        "variation": np.abs(np.diff(advantage, axis=1)).sum(axis=1).mean(),
        "rule": [[int(one[0]), *at] for one, at in zip(rule, changes, strict=True)] if seed < 5 else None,
    }


def _tuned(found, name):
    rows = found.where(forest=name, sets="tuning")
    return max(rows, key=lambda row: row.mean("earned")[0]).case["min_split"] if rows else None


def _judged(found):
    for name in FORESTS:
        for split in SPLITS:
            row = next(
                (row for row in found.where(forest=name, min_split=split, sets="judged") if row.case["trees"] == 400),
                None,
            )
            if row and (split in (80, _tuned(found, name))):
                yield name, split, row


def _table(found):
    rows = []
    for name, split, row in _judged(found):
        how = "chosen" if split == _tuned(found, name) else ""
        cells = [row.mean(key) for key in ("earned", "changes", "variation")]
        digits = (2, 2, 1)
        rows.append(
            [
                name,
                str(split),
                how,
                *(f"{number(m, d)} ± {number(1.96 * e, d)}" for (m, e), d in zip(cells, digits, strict=True)),
                str(len(row.seeds)),
            ]
        )
    return table(
        [
            "forest",
            "min_split",
            "",
            "expected response",
            "changes of arm (truth: 1)",
            "total variation (truth: 10)",
            "sets",
        ],
        rows,
    )


def _at_80(found, chosen):
    """How much more the chosen min_split earns than 80, on the sets that it was chosen by."""
    parts = []
    for name, split in chosen.items():
        rows = [found.one(forest=name, min_split=one, sets="tuning") for one in (split, 80)]
        if split not in (80, None) and all(rows):
            n = min(len(row.seeds) for row in rows)
            gain = rows[0].numbers("earned")[:n] - rows[1].numbers("earned")[:n]
            error = gain.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
            parts.append(
                f"{name} earns {number(gain.mean(), 3)} ± {number(1.96 * error, 3)} more with {split} than with 80"
            )
    return f"not found out; {', '.join(parts)} on the sets that choose" if parts else "not found out"


def _claims(found):
    at = {name: row for name, split, row in _judged(found) if split == 80}
    if not {"UCTS", "CTS"} <= set(at):
        return
    chosen = {name: _tuned(found, name) for name in ("UCTS", "CTS")}
    yield (
        "min_split = 80 is best for both",
        None if None in chosen.values() else set(chosen.values()) == {80},
        ", ".join(f"{name} {split}" for name, split in chosen.items() if split),
        _at_80(found, chosen),
    )
    n = min(len(row.seeds) for row in at.values())
    less = [np.mean(at["UCTS"].numbers(key)[:n] < at["CTS"].numbers(key)[:n]) for key in ("changes", "variation")]
    yield (
        "the boundary of UCTS is much smoother in all sets",
        bool(less[1] == 1.0),
        f"it varies less in {less[1]:.0%} of the sets, and changes arm less often in {less[0]:.0%}",
    )
    gap = at["UCTS"].numbers("earned")[:n] - at["CTS"].numbers("earned")[:n]
    error = gap.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
    yield (
        "UCTS is fully competitive with CTS",
        bool(gap.mean() > -2 * error),
        f"UCTS less CTS {number(gap.mean(), 3)} ± {number(1.96 * error, 3)}",
    )


def report(found):
    yield "Margins are 95%."
    yield _table(found)
    yield claims(_claims(found))
    yield "![Recommended arm by X1 and X2, five sets of data](images/rules-2d.png)"


def summary(found):
    return held(_claims(found))


def quotes(found):
    return {"table": _table(found)}


def draw(found):
    rows = {name: found.one(forest=name, min_split=80, sets="judged") for name in ("UCTS", "CTS")}
    shown = min(5, *(len(row.seeds) for row in rows.values()))
    figure, axes = _draw.panels(shown, 2, 4.4, 1.6, sharex=True, sharey=True)
    for column, (name, row) in enumerate(rows.items()):
        for line in range(shown):
            rule = np.zeros((3, len(ALONG)), int)
            for level, (first, *at) in enumerate(row.values[line]["rule"]):
                rule[level] = (first + np.searchsorted(at, np.arange(len(ALONG)), side="right")) % 2
            axes[line, column].imshow(
                rule, cmap="coolwarm", vmin=0, vmax=1, aspect="auto", extent=(0, 100, 3, 0), interpolation="nearest"
            )
            axes[line, column].set_yticks([0.5, 1.5, 2.5], LEVELS)
            axes[line, column].axvline(50, color="k", linewidth=0.8, linestyle=":")
        axes[0, column].set_title(f"{name}, min_split 80")
        axes[-1, column].set_xlabel("X1")
    return {"rules-2d": figure}
