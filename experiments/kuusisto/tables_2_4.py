"""Tables 2 to 4 and Figures 3 and 4: the protocol of the medical data, which are private, on a public set that stands in for them."""

from __future__ import annotations

import numpy as np
from scipy.stats import wilcoxon

from experiments import _draw
from experiments._compare import claims, number, table
from experiments._data import load
from experiments._declared import Experiment
from experiments.kuusisto._machines import COSTS, best
from upturn._encode import LinearEncoder
from upturn._table import read_table
from upturn.metrics import auu, lift_area, lift_curve
from upturn.model_selection import UpliftKFold

EXPERIMENT = Experiment(
    paper="003",
    shows=("Table 2", "Table 3", "Table 4", "Figure 3", "Figure 4"),
    title="Five machines, protocol of the medical data",
    data="**A stand-in**: the breast cancer and infarction data are private. Public instead: breast cancer (UCI, split by menopause) and colon death (levamisole with and without 5FU against control).",
    protocol="As printed: ten folds, test scores concatenated, costs chosen in nine inner folds from seven values (smaller runs: three, from four), for two costs from all pairs with the treatment group's above; areas in counts, mean and standard deviation over folds, "
    "and a signed-rank test of the folds against SVM-upl. The baseline is the diagonal.",
    summed=("curve",),
)
PICTURES = ("five-machines",)
METHODS = ("SVM-upl", "two-cost", "target-only", "standard", "flipped")
SETS = ("breast cancer", "colon-death")
SHARES = np.linspace(0, 1, 101)


def plan(size):
    if size == "smoke":
        yield {"set": "breast cancer", "method": "SVM-upl", "folds": 2, "inner": 2, "costs": 2}, 1
        return
    for name in SETS:
        for method in METHODS:
            inner, costs = (9, 7) if size == "full" else (3, 4)
            yield {"set": name, "method": method, "folds": 10, "inner": inner, "costs": costs}, 1


def run(case, seed):
    data = load(case["set"])
    y, t = data.y, data.treatment
    matrix, schema = read_table(data.X)
    X = LinearEncoder.fit(matrix, schema).transform(matrix)
    costs = COSTS[: case["costs"]] if case["costs"] == 7 else COSTS[1 : 1 + case["costs"]]
    score, folds = np.empty(len(y)), []
    for train, test in UpliftKFold(case["folds"], random_state=seed).split(X, y, t):
        model = best(case["method"], X[train], y[train], t[train], case["inner"], seed, costs)
        score[test] = model.predict(X[test])
        folds.append(auu(y[test], score[test], t[test]))
    areas = [lift_area(y[t == arm], score[t == arm]) for arm in (1, 0)]
    curves = [lift_curve(y[t == arm], score[t == arm])(SHARES) for arm in (1, 0)]
    counts = [int(np.sum((t == arm) & (y == value))) for arm in (1, 0) for value in (1, 0)]
    return {
        "counts": counts,
        "AUL treated": areas[0],
        "AUL control": areas[1],
        "AUU": auu(y, score, t),
        "folds": folds,
        "curve": curves[0] - curves[1],
    }


def _rows(found, name):
    """The rows of a set with the most inner folds that all machines were run with."""
    for inner in sorted({row.case["inner"] for row in found.where(set=name, folds=10)}, reverse=True):
        rows = {method: row for method in METHODS if (row := found.one(set=name, folds=10, inner=inner, method=method))}
        if len(rows) == len(METHODS):
            return rows
    return {}


def report(found):
    for name in SETS:
        rows, lines = _rows(found, name), []
        if "SVM-upl" not in rows:
            continue
        first = np.array(rows["SVM-upl"].values[0]["folds"])
        for method, row in rows.items():
            value = row.values[0]
            folds = np.array(value["folds"])
            p = "–" if method == "SVM-upl" else number(wilcoxon(first, folds).pvalue, 3)
            lines.append(
                [
                    method,
                    *(number(value[key], 2) for key in ("AUL treated", "AUL control", "AUU")),
                    number(folds.mean(), 2),
                    number(folds.std(ddof=1), 2),
                    p,
                ]
            )
        case, counts = rows["SVM-upl"].case, rows["SVM-upl"].values[0]["counts"]
        half = counts[0] / 2, counts[2] / 2  # areas of the diagonals
        lines.append(
            [
                "baseline",
                *(number(value, 2) for value in (*half, half[0] - half[1], (half[0] - half[1]) / case["folds"])),
                "",
                "",
            ]
        )
        yield (
            f"{name}: {counts[0]} successes and {counts[1]} failures in treatment, {counts[2]} and {counts[3]} in control; {case['inner']} inner folds, {case['costs']} costs."
        )
        yield table(
            [
                "machine",
                "treatment AUL",
                "control AUL",
                "AUU",
                "per fold: mean",
                "standard deviation",
                "p against SVM-upl",
            ],
            lines,
        )
    first, run = _first(found)
    if run:
        yield claims([
            (
                "SVM-upl has the largest area on both sets",
                len(first) == len(run),
                f"on {', '.join(first) or 'none'} of {', '.join(run)}",
                "other data: public sets stand in",
            )
        ])  # fmt: skip
    yield "![Uplift curves of five machines on two public sets](images/five-machines.png)"


def _first(found):
    """The sets on which SVM-upl has the largest area, and all sets that were run."""
    rows = {name: _rows(found, name) for name in SETS}
    areas = {name: {method: row.values[0]["AUU"] for method, row in one.items()} for name, one in rows.items() if one}
    return [name for name, one in areas.items() if max(one, key=one.get) == "SVM-upl"], list(areas)


def summary(found):
    first, run = _first(found)
    return f"stands in: the protocol on two public sets, as the data are private; SVM-upl, first in both of the paper's, is first on {len(first)} of {len(run)}"


def draw(found):
    figure, axes = _draw.panels(1, 2, 5, 4)
    for axis, name in zip(axes[0], SETS, strict=True):
        for k, (method, row) in enumerate(_rows(found, name).items()):
            axis.plot(SHARES, row.mean("curve")[0], label=method, **_draw.style(k))
        axis.set(title=f"{name} (stands in)", xlabel="share", ylabel="uplift (successes)")
    axes[0, 0].legend(frameon=False)
    return {"five-machines": figure}
