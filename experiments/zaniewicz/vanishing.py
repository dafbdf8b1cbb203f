"""Lemma 3.4.2 on Hillstrom's mailings: where w = 0 is optimal for p = 1, and how the scores rank the training rows."""

from __future__ import annotations

import numpy as np

from experiments._compare import number, table
from experiments._declared import Experiment
from upturn.datasets import load_hillstrom
from upturn.metrics import auuc
from upturn.svm import UpliftSVM

EXPERIMENT = Experiment(
    paper="000",
    shows=(),
    title="Where w = 0 is optimal",
    data="Hillstrom's mailings, visits, all rows: `load_hillstrom`.",
    protocol="p = 1, C from .01 to 1,000 in six steps, the ratio from 1 to 2.5 in six; AUUC on the training rows.",
)
ARMS = ("women", "men", "both")


def plan(size):
    costs = {"smoke": [1.0], "quick": [0.01]}.get(size, (10.0 ** np.arange(-2, 4)).tolist())
    ratios = [1.0] if size in ("smoke", "quick") else np.linspace(1.0, 2.5, 6).tolist()
    for arms in ARMS[:1] if size == "smoke" else ARMS:
        for C in costs:
            for ratio in ratios:
                yield {"arms": arms, "C": C, "ratio": ratio} | ({"rows": 2000} if size == "smoke" else {}), 1


def run(case, seed):
    data = load_hillstrom("visit", case["arms"])
    rows = slice(case.get("rows"))
    X, y, t = data.X.iloc[rows], data.y[rows], data.treatment[rows]
    model = UpliftSVM(C=case["C"], ratio=case["ratio"], p=1.0).fit(X, y, t)
    score = model.predict(X)
    return {
        "vanishing": model.vanishing_,
        "gap": model.dual_gap_,
        "auuc": auuc(y, score, t),
        "distinct": len(np.unique(score)),
    }


def _by_arms(found):
    for arms in ARMS:
        values = [row.values[0] for row in found.where(arms=arms) if "rows" not in row.case]
        if values:
            yield arms, values


def report(found):
    rows = [
        [arms, f"{sum(v['vanishing'] for v in values)} of {len(values)}", number(min(v["auuc"] for v in values)), number(max(v["auuc"] for v in values))]
        for arms, values in _by_arms(found)
    ]  # fmt: skip
    yield table(["mailing", "fits with w = 0", "smallest AUUC", "largest AUUC"], rows)


def quotes(found):
    everything = list(_by_arms(found))
    return {
        "fits": " and ".join(
            sorted({f"{sum(v['vanishing'] for v in values)} of {len(values)}" for _, values in everything})
        ),
        "areas": "; ".join(
            f"{arms} {number(min(v['auuc'] for v in values))} to {number(max(v['auuc'] for v in values))}"
            for arms, values in everything
        ),
    }
