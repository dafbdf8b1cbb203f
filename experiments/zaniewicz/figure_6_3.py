"""Figures 6.3.1 and 6.3.2: shares of people held to be helped, unmoved and harmed against C2/C1, for four powers of the slacks."""

from __future__ import annotations

import itertools

import numpy as np

from experiments import _draw
from experiments._compare import claims, number, table
from experiments._data import load
from experiments._declared import Experiment
from upturn.svm import UpliftSVM, sign_shares

EXPERIMENT = Experiment(
    paper="000",
    shows=("Figure 6.3.1", "Figure 6.3.2"),
    title="Signs against the ratio",
    data='breast cancer and australian, all rows. The coded columns of australian are categories, as its documentation says; "numbers" takes the codes for numbers.',
    protocol="C1 = 5, 31 ratios from 1 to 2.5 (p = 1) or to 5. The paper averages the numbers of the two groups; here shares of all rows are shown.",
)
PICTURES = ("signs-breast-cancer", "signs-australian", "signs-australian-numbers")
POWERS = (1.0, 1.2, 1.5, 2.0)
READINGS = (("breast cancer", "categories"), ("australian", "categories"), ("australian", "numbers"))


def plan(size):
    for name, codes in READINGS[:: 3 if size == "smoke" else 1]:
        for p in (2.0,) if size == "smoke" else POWERS:
            yield {"set": name, "codes": codes, "p": p}, 1


def run(case, seed):
    data = load(case["set"])
    X = data.X
    if case["codes"] == "numbers":
        X = X.astype({column: float for column in X.columns if str(X[column].dtype) == "category"})
    ratios = np.linspace(1.0, 2.5 if case["p"] == 1.0 else 5.0, 31)
    return {"ratios": ratios, "shares": sign_shares(UpliftSVM(C=5.0, p=case["p"]), X, data.y, data.treatment, ratios)}


def _steps(found, name, codes):
    """The largest step of the neutral share from one ratio to the next, for every power."""
    rows = [found.one(set=name, codes=codes, p=p) for p in POWERS]
    return [
        None if row is None else float(np.abs(np.diff(np.array(row.values[0]["shares"])[:, 1])).max()) for row in rows
    ]


def report(found):
    rows, told = [], []
    for name, codes in READINGS:
        steps = _steps(found, name, codes)
        if None in steps:
            continue
        rows.append([name, codes, *(number(step, 3) for step in steps)])
        falls = all(a > b for a, b in itertools.pairwise(steps))
        told.append((f"{name} ({codes}): p = 1 jumps", steps[0] > 0.9, f"largest step {number(steps[0], 2)}"))
        told.append(
            (
                f"{name} ({codes}): the larger p, the smoother",
                falls,
                "steps " + ", ".join(number(step, 2) for step in steps),
            )
        )
    yield "The largest step of the neutral share between two neighbouring ratios:"
    yield table(["data", "codes as", *(f"p = {p:g}" for p in POWERS)], rows)
    yield claims(told)
    yield "The jump of p = 1 on australian appears only if its codes are taken for numbers, which is how the dissertation must have read them."
    for name in PICTURES:
        yield f"![Shares of signs against the ratio, {name[6:]}](images/{name}.png)"


def summary(found):
    return "australian as drawn if its codes are numbers"


def quotes(found):
    return {
        f"{name}, {codes}": ", ".join(
            f"{number(step, 2)} for p = {p:g}" for step, p in zip(_steps(found, name, codes), POWERS, strict=True)
        )
        for name, codes in READINGS
        if None not in _steps(found, name, codes)
    }


def draw(found):
    figures = {}
    for (name, codes), picture in zip(READINGS, PICTURES, strict=True):
        figure, axes = _draw.panels(1, len(POWERS), 3.2, 2.8, sharey=True)
        for axis, p in zip(axes[0], POWERS, strict=True):
            value = found.one(set=name, codes=codes, p=p).values[0]
            for k, label in enumerate(("negative", "neutral", "positive")):
                axis.plot(value["ratios"], np.array(value["shares"])[:, k], label=label, **_draw.style(k))
            axis.set(title=f"p = {p:g}", xlabel="C2 / C1")
        axes[0, 0].legend(frameon=False)
        figure.suptitle(f"{name}, codes as {codes}")
        figures[picture] = figure
    return figures
