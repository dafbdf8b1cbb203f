"""How far from the optimum is the fast search? Its cost beside that of the exact search."""

from __future__ import annotations

import numpy as np

from experiments._compare import number, table
from experiments._declared import Experiment
from upturn.datasets import simulate_pattern
from upturn.features import UMODLDiscretizer

EXPERIMENT = Experiment(
    paper="004",
    shows=(),
    title="The search beside the exact one",
    data="One feature each: four patterns of `simulate_pattern`, spikes, noise, and eight shapes of a normal feature.",
    protocol='Nats by which the model of `search="auto"` costs more than the cheapest of all, which `search="exact"` proves.',
)
PATTERNS = {"crenel .8": ("crenel1", 0.8), "crenel .6": ("crenel1", 0.6), "continuous": ("continuous", 1.0), "scissors": ("scissors", 1.0)}  # fmt: skip
NORMAL = {
    "sine": lambda x, t: 1 / (1 + np.exp(1 - t * (0.3 + np.sin(3 * x)))),
    "square": lambda x, t: 1 / (1 + np.exp(1 - t * (0.3 - x**2))),
    "class only": lambda x, t: 1 / (1 + np.exp(1 - 0.5 * x)),
    "fast sine": lambda x, t: 0.5 + 0.3 * np.sin(40 * x) * (2 * t - 1),
    "rare": lambda x, t: np.where((x > 1.5) & (t == 1), 0.03, 0.01),
    "needle": lambda x, t: np.where((np.abs(x - 0.5) < 20 / len(x)) & (t == 1), 0.95, 0.3),
    "ties": lambda x, t: 0.5 + 0.3 * np.sin(10 * x) * (2 * t - 1),
    "lognormal": lambda x, t: np.where(t == 1, 0.3 + 0.1 * np.tanh(np.log(x)), 0.3),
}
KINDS = (*PATTERNS, "spikes", "noise", *NORMAL)
SIZES = {3000: 4, 10_000: 4, 30_000: 3}


def plan(size):
    if size == "smoke":
        yield {"kind": "crenel .8", "rows": 1000}, 1
        return
    for rows, samples in SIZES.items():
        if rows == 3000 or size != "quick":
            for kind in KINDS:
                if rows < 30_000 or size == "full":
                    yield {"kind": kind, "rows": rows}, 1 if size == "quick" else samples


def draw_sample(kind, n, seed):
    if kind in PATTERNS:
        pattern, theta = PATTERNS[kind]
        data = simulate_pattern(pattern, n, theta, random_state=seed)
        return data.X[:, 0], data.treatment, data.y
    rng = np.random.default_rng(seed if kind not in NORMAL else seed + 100)
    if kind in NORMAL:
        x, t = rng.normal(size=n), rng.integers(0, 2, n)
        x = np.round(x * 30) / 30 if kind == "ties" else np.exp(3 * x) if kind == "lognormal" else x
        p = NORMAL[kind](x, t)
    else:
        x, t = rng.uniform(0, 10, n), rng.integers(0, 2, n)
        spike = np.floor(20 * x).astype(int) % 40 == 7
        p = np.where(spike & (t == 1), 0.95, 0.2) if kind == "spikes" else np.full(n, 0.3)
    return x, t, (rng.random(n) < p).astype(int)


def run(case, seed):
    x, t, y = draw_sample(case["kind"], case["rows"], seed)
    exact, fast = (UMODLDiscretizer(search=how).fit(x[:, None], y, t) for how in ("exact", "auto"))
    return {"parts": int(exact.n_parts_[0]), "above": max(float(fast.cost_[0] - exact.cost_[0]), 0.0)}


def _gaps(found, slow):
    rows = [row for row in found.rows if (row.case["kind"] == "fast sine") == slow and row.case["rows"] >= 3000]
    return np.concatenate([row.numbers("above") for row in rows]) if rows else np.zeros(0)


def report(found):
    lines = []
    for kind in KINDS:
        rows = sorted(found.where(kind=kind), key=lambda row: row.case["rows"])
        parts = np.concatenate([row.numbers("parts") for row in rows]) if rows else []
        if len(parts):
            lines.append(
                [
                    kind,
                    f"{int(min(parts))} to {int(max(parts))}",
                    *(
                        " ".join(number(v, 2) for v in row.numbers("above"))
                        if (row := found.one(kind=kind, rows=n))
                        else "–"
                        for n in SIZES
                    ),
                ]
            )
    yield table(["feature", "intervals", *(f"nats above, {n:,} rows" for n in SIZES)], lines)
    yield f"{quotes(found)['optimum']}."


def quotes(found):
    plain, slow = _gaps(found, False), _gaps(found, True)
    if not len(plain):
        return {}
    text = f"the optimum in {int((plain < 1e-6).sum())} of {len(plain)} samples, at most {number(plain.max(), 2)} nats above it"
    return {
        "optimum": text
        + (
            f"; a fast sine of many intervals ends {number(slow.min(), 2)} to {number(slow.max(), 2)} nats above"
            if len(slow)
            else ""
        )
    }
