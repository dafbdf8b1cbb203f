"""Table 6.5.2 and Figures 6.5.2 to 6.5.4: what the energy term does on right heart catheterisation."""

from __future__ import annotations

import itertools

import numpy as np

from experiments import _draw
from experiments._compare import claims, held, number, table
from experiments._declared import Experiment
from experiments.zaniewicz._printed import TABLE_6_5_2
from experiments.zaniewicz._rhc import inverse, rhc, stopped
from upturn.metrics import auuc, uplift_curve
from upturn.model_selection import UpliftKFold
from upturn.svm import UpliftSVM, score_balance

EXPERIMENT = Experiment(
    paper="000",
    shows=("Table 6.5.2", "Figure 6.5.2", "Figure 6.5.3", "Figure 6.5.4"),
    title="The energy term",
    data="Right heart catheterisation: `load_rhc`, 5,735 patients.",
    protocol="Ten times ten folds in the dissertation, scores of the folds concatenated; C1 = C2 = 1, slacks averaged within each group, exponent 1.1; mean imputation and 0-1 coding. Tested under "
    "weights by inverse propensity (logistic regression on all rows, unclipped), as the text says; under those of a regression on unscaled columns that stopped after 25 steps, which has the area of Figure 6.5.1; and without weights. Scaling is not stated in the dissertation; columns are standardised here.",
    version=3,
    summed=("curve", "treated", "control"),
)
PICTURES = ("energy-curves", "energy-distributions", "energy-differences")
BALANCES = (0.0, 0.01, 0.1, 1.0, 10.0, 100.0)
WAYS = {
    "AUUC": "with weights",
    "AUUC, stopped early": "with weights of a regression that stopped early",
    "AUUC, no weights": "without weights",
}
STEPS = 25
SHARES, LEVELS = np.linspace(0, 1, 51), np.linspace(0, 1, 41)


def plan(size):
    if size == "smoke":
        yield {"balance": 0.0, "folds": 2, "rows": 600}, 1
        return
    for balance in BALANCES[:4:3] if size == "quick" else BALANCES:
        yield {"balance": balance, "folds": 10}, {"quick": 1, "medium": 2, "full": 10}[size]


def run(case, seed):
    data, weight = rhc()
    rows = slice(case.get("rows"))
    X, y, t, weight = data.X.iloc[rows], data.y[rows], data.treatment[rows], weight[rows]
    score = np.empty(len(y))
    for train, test in UpliftKFold(case["folds"], random_state=seed).split(X, y, t):
        model = UpliftSVM(p=1.0, balance=case["balance"], group_average=True, tol=1e-6).fit(
            X.iloc[train], y[train], t[train]
        )
        score[test] = model.predict(X.iloc[test])
    found = score_balance(score, t)
    at = np.searchsorted(found.score, np.quantile(score, LEVELS), side="right") - 1
    return {
        "AUUC": auuc(y, score, t, sample_weight=weight),
        "AUUC, stopped early": auuc(
            y, score, t, sample_weight=inverse(stopped(data.X, data.treatment, STEPS)[rows], t)
        ),
        "AUUC, no weights": auuc(y, score, t),
        "difference of means": abs(found.mean_difference),
        "Kolmogorov-Smirnov": found.ks,
        "curve": uplift_curve(y, score, t, sample_weight=weight)(SHARES),
        "treated": found.treated_cdf[at],
        "control": found.control_cdf[at],
    }


def _rows(found):
    return [row for balance in BALANCES if (row := found.one(balance=balance, folds=10))]


def _lines(found):
    lines = []
    for key, printed in TABLE_6_5_2.items():
        lines.append([f"*{key}, paper*", *(f"*{number(value, 4)}*" for value in printed)])
        lines.append([f"{key}, here", *(number(row.mean(key)[0], 4) for row in _rows(found))])
        lines.append(["standard error", *(number(row.mean(key)[1], 5) for row in _rows(found))])
        if key == "AUUC":
            others = {words: [float(row.mean(way)[0]) for row in _rows(found)] for way, words in list(WAYS.items())[1:]}
            lines += [[f"AUUC {words}, here", *(number(area, 4) for area in areas)] for words, areas in others.items()]
            lines.append(["*times that without the term, paper*", *(f"*{area / printed[0]:.2f}*" for area in printed)])
            lines += [
                [f"… here, {words}", *(f"{area / areas[0]:.2f}" for area in areas)] for words, areas in others.items()
            ]
    return lines


def _claims(found):
    gap, ks = ([float(row.mean(key)[0]) for row in _rows(found)] for key in list(TABLE_6_5_2)[1:])
    falls = [all(a > b for a, b in itertools.pairwise(v)) for v in (gap, ks)]
    told = [
        ("the difference of means falls at every step", falls[0], " → ".join(number(v, 3) for v in gap)),
        ("so does the Kolmogorov-Smirnov statistic", falls[1], " → ".join(number(v, 3) for v in ks)),
    ]
    near = "under these weights areas are near 0 here, whatever the term; a regression with the area that Figure 6.5.1 prints has other weights"
    scaling = "the scaling of columns, which decides how strong a weight of the term is, is not stated"
    why = {"AUUC": near, "AUUC, stopped early": scaling, "AUUC, no weights": f"the text names weights; {scaling}"}
    for key, words in WAYS.items():
        area = [float(row.mean(key)[0]) for row in _rows(found)]
        best, times = int(np.argmax(area)), f"{max(area) / area[0]:.2f} times" if area[0] > 0 else "all near 0"
        rises = best == 4 and area[0] > 0 and abs(area[4] / area[0] - 2.68) < 0.5
        told.append((f"tested {words}, the area is largest at 10, 2.68 times that without the term", rises, f"largest at {BALANCES[best]:g}, {times}", why[key]))  # fmt: skip
        told.append((f"tested {words}, at 100 the area is less than without the term", 0 < area[5] < area[0], f"{number(area[5], 4)} against {number(area[0], 4)}", why[key]))  # fmt: skip
    return told


def _grows(found):
    """The ways of testing in which the area grows up to the weight that is best in the paper, and the one of the text, if it is near 0 there."""
    areas = {key: [float(row.mean(key)[0]) for row in _rows(found)] for key in WAYS}
    grows = [key for key, area in areas.items() if area[0] > 0 and all(a < b for a, b in itertools.pairwise(area[1:5]))]
    return grows, max(map(abs, areas["AUUC"])) < 0.5 * max(areas["AUUC, no weights"])


def report(found):
    if len(_rows(found)) < len(BALANCES):
        return
    times = sorted({len(row.seeds) for row in _rows(found)})
    done = f"{times[0]}" if len(times) == 1 else f"{times[0]} to {times[-1]}"
    yield f"Here the ten folds were drawn {done} {'time' if done == '1' else 'times'}."
    yield table(["balance", *(f"{balance:g}" for balance in BALANCES)], _lines(found))
    yield claims(_claims(found))
    grows, near = _grows(found)
    if near and "AUUC, stopped early" in grows:
        yield "Under the weights of a regression that has converged, areas are near 0 here. Under those of one that stopped where its area is near that of Figure 6.5.1, they grow with the term as printed, and without weights, too. A regression that had not converged would explain both this growth and that area; the dissertation does not say."
    yield 'The unit of the printed areas is not stated, nor is the scaling of columns, which decides how strong a weight of the term is. "Standard error" is over repeats of the folds.'
    yield "![Uplift curves at six weights](images/energy-curves.png)"
    yield "![Distribution of scores in the two groups](images/energy-distributions.png)"
    yield "![Differences against the weight](images/energy-differences.png)"


def summary(found):
    if len(_rows(found)) < len(BALANCES):
        return "run in part"
    early = "AUUC, stopped early" in _grows(found)[0]
    return held(_claims(found)) + (
        "; the area grows with the term under weights of a regression that stopped early" if early else ""
    )


def quotes(found):
    return {"table": table(["balance", *(f"{balance:g}" for balance in BALANCES)], _lines(found))}


def draw(found):
    curves, axes = _draw.panels(1, 1, 6, 4.2)
    for k, row in enumerate(_rows(found)):
        axes[0, 0].plot(SHARES, row.mean("curve")[0], label=f"C3 = {row.case['balance']:g}", **_draw.style(k))
    axes[0, 0].set(xlabel="share treated", ylabel="gain in survival")
    axes[0, 0].legend(frameon=False)
    both, axes = _draw.panels(2, 3, 3.4, 2.8, sharex=True, sharey=True)
    for axis, row in zip(axes.flat, _rows(found), strict=True):
        for k, group in enumerate(("treated", "control")):
            axis.plot(LEVELS, row.mean(group)[0], label=group, **_draw.style(k))
        axis.set(title=f"C3 = {row.case['balance']:g}", xlabel="quantile of the score")
    axes[0, 0].legend(frameon=False)
    gaps, axes = _draw.panels(1, 2, 4.4, 3.2)
    for axis, key in zip(axes[0], ("difference of means", "Kolmogorov-Smirnov"), strict=True):
        axis.plot(range(6), [row.mean(key)[0] for row in _rows(found)], marker="o", label="here", **_draw.style(0))
        axis.plot(range(6), TABLE_6_5_2[key], marker="s", label="paper", **_draw.style(1))
        axis.set_xticks(range(6), [f"{balance:g}" for balance in BALANCES])
        axis.set(xlabel="C3", title=key)
    axes[0, 0].legend(frameon=False)
    return dict(zip(PICTURES, (curves, both, gaps), strict=True))
