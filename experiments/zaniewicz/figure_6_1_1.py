"""Figure 6.1.1: uplift curves of three machines on breast-cancer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from experiments import _draw
from experiments._compare import claims, number
from experiments._data import load
from experiments._declared import Experiment
from experiments.zaniewicz._methods import split, tuned
from upturn.metrics import uplift_curve

EXPERIMENT = Experiment(
    paper="000",
    shows=("Figure 6.1.1",),
    title="Uplift curves on breast-cancer",
    data="breast cancer. Success is the majority's outcome, no recurrence, by the rule of section 6.2, or the minority's: areas above the diagonal are the same either way, curves are not.",
    protocol="The splits and the tuning of Table 6.4.1; curves are averaged over splits at 51 shares of the population.",
    version=2,
    summed=("curve",),
)
PICTURES = ("breast-cancer",)
METHODS = ("Uplift SVM", "Double SVM", "Class-transf SVM")
SUCCESSES = ("majority", "minority")
SHARES = np.linspace(0, 1, 51)


def plan(size):
    for success in SUCCESSES:
        for method in METHODS[:1] if size == "smoke" else METHODS:
            yield {"method": method, "success": success}, {"smoke": 1, "quick": 2, "medium": 16, "full": 128}[size]


def run(case, seed):
    data = load("breast cancer")
    if case["success"] == "minority":
        data = replace(data, y=1 - data.y)
    train, test = split(data, seed)
    score = tuned(case["method"], data, train, test, seed)
    return {"curve": uplift_curve(data.y[test], score, data.treatment[test])(SHARES)}


def _curves(found, success):
    return {row.case["method"]: row.mean("curve")[0] for row in found.where(success=success)}


def _claims(found):
    for success in SUCCESSES:
        curves = _curves(found, success)
        uplift = curves.pop("Uplift SVM", None)
        if uplift is None:
            continue
        above = min((np.mean(uplift[1:-1] >= curve[1:-1]) for curve in curves.values()), default=None)
        words = f"success of the {success}: "
        yield words + "everybody, four points of gain", abs(uplift[-1] - 0.04) < 0.01, number(uplift[-1], 3)
        yield words + "60% by the uplift machine, nine points", abs(uplift[30] - 0.09) < 0.01, number(uplift[30], 3)
        if above is not None:
            yield (
                words + "the uplift machine is best over the whole range",
                above == 1.0,
                f"at {above:.0%} of the shares",
            )


def report(found):
    yield claims(_claims(found))
    yield "The printed gains are those of the minority's outcome, or of the arms exchanged, which gives the same curve: the table of areas cannot tell."
    yield "![Uplift curves of three machines](images/breast-cancer.png)"


def summary(found):
    held = [holds for words, holds, _ in _claims(found) if "minority" in words and "best" not in words]
    return (
        "both printed gains, if success is the minority's outcome" if all(held) else "the printed gains are not found"
    )


def draw(found):
    figure, axes = _draw.panels(1, 2, 5.0, 4)
    for axis, success in zip(axes.flat, SUCCESSES, strict=True):
        curves = _curves(found, success)
        for k, method in enumerate(method for method in METHODS if method in curves):
            axis.plot(SHARES, curves[method], label=method, **_draw.style(k))
        axis.set(xlabel="share targeted", ylabel="gain in the rate of success", title=f"success of the {success}")
    axes.flat[0].legend(frameon=False)
    return {"breast-cancer": figure}
