"""Figures 1 and 2: three machines on simulated customers, uplift curves and ROC curves for persuadables."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

from experiments import _draw
from experiments._compare import claims, held, number, table
from experiments._declared import Experiment
from experiments.kuusisto._machines import COSTS, best
from upturn.datasets import simulate_customers
from upturn.metrics import auu, lift_curve
from upturn.model_selection import UpliftKFold

EXPERIMENT = Experiment(
    paper="003",
    shows=("Figure 1", "Figure 2"),
    title="Three machines on simulated customers",
    data="`simulate_customers`: 10,000 customers of a random Bayesian network with 20 nodes and 30 edges, half of them targeted. The paper has one network; here every repeat draws another.",
    protocol="Ten folds, test scores concatenated (each fold's standardised by those of its training rows); the cost is one of the paper's seven, chosen by AUUC in inner folds: nine in the paper and in --full, three otherwise, "
    "with four costs from .001 to 1. Areas under the uplift curve are in counts.",
    summed=("curve", "roc"),
)
PICTURES = ("customers",)
METHODS = ("SVM-upl", "target-only", "standard")
SHARES = np.linspace(0, 1, 101)


def plan(size):
    inner = 9 if size == "full" else 3
    for method in METHODS:
        case = {"method": method, "rows": 10_000, "folds": 10, "inner": inner}
        if size in ("smoke", "quick"):
            case |= {"rows": 400, "folds": 2} if size == "smoke" else {"rows": 2000, "folds": 5}
        yield case, {"smoke": 1, "quick": 2, "medium": 5, "full": 10}[size]


def _costs(inner):
    return COSTS if inner == 9 else COSTS[1:5]


def run(case, seed):
    data = simulate_customers(case["rows"], network_seed=seed, random_state=seed)
    X = np.column_stack(
        [np.asarray(data.X[c].astype("category").cat.codes) == k for c in data.X for k in range(data.X[c].nunique())]
    )
    X, y, t = X.astype(float), data.y, data.treatment
    score = np.empty(len(y))
    costs = _costs(case["inner"])
    for train, test in UpliftKFold(case["folds"], random_state=0).split(X, y, t):
        model = best(case["method"], X[train], y[train], t[train], case["inner"], seed, costs)
        known = model.predict(X[train])
        score[test] = (model.predict(X[test]) - known.mean()) / max(known.std(), 1e-12)
    persuadable = data.details["group"] == "persuadable"
    treated, control = (lift_curve(y[t == arm], score[t == arm])(SHARES) for arm in (1, 0))
    false, true, _ = roc_curve(persuadable, score)
    return {
        "AUU": auu(y, score, t),
        "ROC": roc_auc_score(persuadable, score),
        "curve": treated - control,
        "roc": np.interp(SHARES, false, true),
    }


def _rows(found):
    """The rows of the most customers, and of the most inner folds that all machines were run with."""
    largest = max(row.case["rows"] for row in found.rows)
    for inner in sorted({row.case["inner"] for row in found.where(rows=largest)}, reverse=True):
        rows = {method: row for method in METHODS if (row := found.one(method=method, rows=largest, inner=inner))}
        if len(rows) == len(METHODS):
            return rows
    return {method: row for method in METHODS if (row := found.one(method=method, rows=largest))}


def _table(found):
    rows, lines = _rows(found), []
    for seed in sorted({seed for row in rows.values() for seed in row.seeds}):
        here = {name: dict(zip(row.seeds, row.values, strict=True)).get(seed) for name, row in rows.items()}
        lines.append(
            [
                str(seed),
                *(number(v["AUU"], 1) if v else "–" for v in here.values()),
                *(number(v["ROC"], 3) if v else "–" for v in here.values()),
            ]
        )
    lines.append(
        [
            "mean",
            *(number(row.mean("AUU")[0], 1) for row in rows.values()),
            *(number(row.mean("ROC")[0], 3) for row in rows.values()),
        ]
    )
    return table(["network", *(f"AUU: {name}" for name in rows), *(f"ROC: {name}" for name in rows)], lines)


def _claims(found):
    rows = _rows(found)
    if len(rows) < len(METHODS):
        return
    for key, words in (
        ("AUU", "the area under the uplift curve"),
        ("ROC", "the area under the ROC curve for persuadables"),
    ):
        values = [row.mean(key)[0] for row in rows.values()]
        yield (
            f"SVM-upl over target-only over standard, mean of {words}",
            bool(values[0] > values[1] > values[2]),
            ", ".join(number(v, 3 if key == "ROC" else 1) for v in values),
        )
        first, last = (
            dict(zip(rows[name].seeds, rows[name].numbers(key), strict=True)) for name in ("SVM-upl", "standard")
        )
        won = [first[seed] > last[seed] for seed in first.keys() & last.keys()]
        yield (
            f"… SVM-upl over standard on every network, {key}",
            all(won) if won else None,
            f"on {sum(won)} of {len(won)}",
            "the paper has one network; not every one is like it",
        )


def report(found):
    rows = _rows(found)
    some = next(iter(rows.values())).case
    yield f"{some['rows']:,} customers a network, {some['inner']} inner folds, {len(_costs(some['inner']))} costs:"
    yield _table(found)
    yield claims(_claims(found))
    yield "![Uplift curves and ROC curves, means over networks](images/customers.png)"


def summary(found):
    rows = _rows(found)
    return f"networks of our own, {next(iter(rows.values())).case['inner']} inner folds; {held(_claims(found))}"


def quotes(found):
    return {"table": _table(found)}


def draw(found):
    figure, axes = _draw.panels(1, 2, 5, 4)
    for k, (name, row) in enumerate(_rows(found).items()):
        axes[0, 0].plot(SHARES, row.mean("curve")[0], label=name, **_draw.style(k))
        axes[0, 1].plot(SHARES, row.mean("roc")[0], label=name, **_draw.style(k))
    axes[0, 1].plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
    axes[0, 0].set(xlabel="share targeted", ylabel="uplift (successes)", title="Uplift curves")
    axes[0, 1].set(xlabel="false positive rate", ylabel="true positive rate", title="Persuadables")
    axes[0, 0].legend(frameon=False)
    return {"customers": figure}
