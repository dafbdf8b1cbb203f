"""Figures 6.3.1 and 6.3.2: shares of people held to be helped, unmoved and harmed against C2/C1, for four powers of the slacks."""

from __future__ import annotations

import itertools

import numpy as np

from experiments import _draw
from experiments._compare import claims, held, number, table
from experiments._data import load
from experiments._declared import Experiment
from upturn.svm import UpliftSVM, sign_shares

EXPERIMENT = Experiment(
    paper="000",
    shows=("Figure 6.3.1", "Figure 6.3.2"),
    title="Signs against the ratio",
    data='breast cancer and australian, all rows. Levels are categories, or "numbers": the codes of australian as they are written, the levels of breast cancer by their number in the order of the alphabet.',
    protocol="C1 = 5, 31 ratios from 1 to 2.5 (p = 1) or to 5. The paper averages the numbers of the two groups; here shares of all rows are shown.",
)
PICTURES = ("signs-breast-cancer", "signs-breast-cancer-numbers", "signs-australian", "signs-australian-numbers")
POWERS = (1.0, 1.2, 1.5, 2.0)
READINGS = (
    ("breast cancer", "categories"),
    ("breast cancer", "numbers"),
    ("australian", "categories"),
    ("australian", "numbers"),
)


def plan(size):
    for name, codes in READINGS[:: 2 if size == "smoke" else 1]:
        for p in (2.0,) if size == "smoke" else POWERS:
            yield {"set": name, "codes": codes, "p": p}, 1


def run(case, seed):
    data = load(case["set"])
    X = data.X
    if case["codes"] == "numbers":
        X = X.assign(**{column: _numbers(X[column]) for column in X.columns if str(X[column].dtype) == "category"})
    ratios = np.linspace(1.0, 2.5 if case["p"] == 1.0 else 5.0, 31)
    return {"ratios": ratios, "shares": sign_shares(UpliftSVM(C=5.0, p=case["p"]), X, data.y, data.treatment, ratios)}


def _numbers(column):
    """Codes as they are written; levels that are none, by their number."""
    try:
        return column.astype(float)
    except ValueError:
        codes = column.cat.codes.astype(float)
        return codes.where(codes >= 0)


def _steps(found, name, codes):
    """The largest step of the neutral share from one ratio to the next, for every power."""
    rows = [found.one(set=name, codes=codes, p=p) for p in POWERS]
    return [
        None if row is None else float(np.abs(np.diff(np.array(row.values[0]["shares"])[:, 1])).max()) for row in rows
    ]


def _findings(found):
    """For every reading: whether p = 1 jumps, and whether the transition is the smoother the larger p."""
    for name, codes in READINGS:
        steps = _steps(found, name, codes)
        if None not in steps:
            yield name, codes, bool(steps[0] > 0.9), all(a > b for a, b in itertools.pairwise(steps)), steps


def _claims(found):
    everything = list(_findings(found))
    for name, codes, jumps, falls, steps in everything:
        for k, (words, holds, how) in enumerate((
            ("p = 1 jumps", jumps, f"largest step {number(steps[0], 2)}"),
            ("the larger p, the smoother", falls, "steps " + ", ".join(number(step, 3) for step in steps)),
        )):  # fmt: skip
            others = [one for one in everything if one[0] == name and one[1] != codes]
            does = [one[1] for one in others if one[2 + k]]
            nearer = [one for one in others if not k and one[4][0] > steps[0]]
            why = (
                f"with codes as {does[0]} it does"
                if does
                else f"with codes as {nearer[0][1]} it is nearer: {number(nearer[0][4][0], 2)}"
                if nearer
                else "not found out: no reading of the codes gives it"
            )
            yield f"{name} ({codes}): {words}", holds, how, why


def report(found):
    rows = [[name, codes, *(number(step, 3) for step in steps)] for name, codes, *_, steps in _findings(found)]
    yield "The largest step of the neutral share between two neighbouring ratios:"
    yield table(["data", "codes as", *(f"p = {p:g}" for p in POWERS)], rows)
    yield claims(_claims(found))
    jumping = [codes for name, codes, jumps, *_ in _findings(found) if name == "australian" and jumps]
    if jumping == ["numbers"]:
        yield "The jump of p = 1 on australian appears only if its codes are taken for numbers, which is how the dissertation must have read them."
    for name in PICTURES:
        yield f"![Shares of signs against the ratio, {name[6:]}](images/{name}.png)"


def summary(found):
    drawn = [f"{name} with codes as {codes}" for name, codes, jumps, falls, _ in _findings(found) if jumps and falls]
    return f"as described: {', '.join(drawn) or 'none'}; {held(_claims(found))}"


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
