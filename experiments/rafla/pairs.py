"""``UMODLSelector(pairs=True)``: how often an interaction is found that no single feature shows, and how often noise is kept."""

from __future__ import annotations

import numpy as np

from experiments._compare import table
from experiments._declared import Experiment
from upturn.features import UMODLSelector

EXPERIMENT = Experiment(
    paper="004",
    shows=(),
    title="Pairs of features",
    data="Ten uniform columns; the effect is ± a size by the sign of the product of the first two, or none, or one of the first column alone. Success without treatment is one half.",
    protocol="`UMODLSelector(pairs=True)`; is the pair found, are others?",
)
KINDS = (("noise", 0.0), ("product", 0.1), ("product", 0.2), ("single", 0.2))
ROWS = (1000, 3000, 10_000)


def plan(size):
    for kind, effect in KINDS[2:3] if size == "smoke" else KINDS:
        for rows in ROWS[:1] if size in ("smoke", "quick") else ROWS:
            yield (
                {"kind": kind, "effect": effect, "rows": rows},
                {"smoke": 1, "quick": 2, "medium": 20, "full": 40}[size],
            )


def run(case, seed):
    rng, n, size = np.random.default_rng(seed), case["rows"], case["effect"]
    X, t = rng.uniform(-1, 1, size=(n, 10)), rng.integers(0, 2, n)
    effect = {"product": size * np.sign(X[:, 0] * X[:, 1]), "noise": np.zeros(n), "single": size * (X[:, 0] > 0)}[
        case["kind"]
    ]
    y = (rng.random(n) < 0.5 + effect * t).astype(int)
    pairs = {tuple(pair) for pair in UMODLSelector(pairs=True).fit(X, y, t).pairs_.tolist()}
    return {"found": (0, 1) in pairs, "others": len(pairs - {(0, 1)})}


def _table(found):
    lines = []
    for kind, effect in KINDS:
        rows = [found.one(kind=kind, effect=effect, rows=n) for n in ROWS]
        cells = [
            f"{row.numbers('found').mean():.0%}, {int(row.numbers('others').sum())} ({len(row.seeds)})" if row else "–"
            for row in rows
        ]
        lines.append([kind, f"±{effect:g}" if kind == "product" else f"{effect:g}", *cells])
    return table(["effect by", "size", *(f"{n:,} rows" for n in ROWS)], lines)


def report(found):
    yield "The share of samples in which the pair is found, the number of other pairs kept in all of them, and (samples):"
    yield _table(found)


def quotes(found):
    return {"table": _table(found)}
