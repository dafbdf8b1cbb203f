"""Figure 6.1.1: uplift curves of three machines on breast-cancer."""

from __future__ import annotations

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
    data="breast cancer.",
    protocol="The splits and the tuning of Table 6.4.1; curves are averaged over splits at 51 shares of the population.",
    summed=("curve",),
)
PICTURES = ("breast-cancer",)
METHODS = ("Uplift SVM", "Double SVM", "Class-transf SVM")
SHARES = np.linspace(0, 1, 51)


def plan(size):
    for method in METHODS[:1] if size == "smoke" else METHODS:
        yield {"method": method}, {"smoke": 1, "quick": 2, "medium": 16, "full": 128}[size]


def run(case, seed):
    data = load("breast cancer")
    train, test = split(data, seed)
    score = tuned(case["method"], data, train, test, seed)
    return {"curve": uplift_curve(data.y[test], score, data.treatment[test])(SHARES)}


def report(found):
    curves = {row.case["method"]: row.mean("curve")[0] for row in found.rows}
    uplift = curves.get("Uplift SVM")
    if uplift is not None:
        above = [np.mean(uplift[1:-1] >= curve[1:-1]) for name, curve in curves.items() if name != "Uplift SVM"]
        yield claims([
            ("everybody: four points of gain", abs(uplift[-1] - 0.04) < 0.01, number(uplift[-1], 3)),
            ("about 60% by the uplift machine: nine points", abs(uplift[30] - 0.09) < 0.01, number(uplift[30], 3)),
            ("the uplift machine is best over the whole range", bool(above) and min(above) == 1.0, f"at {min(above):.0%} of the shares" if above else ""),
        ])  # fmt: skip
    yield "![Uplift curves of three machines](images/breast-cancer.png)"


def draw(found):
    figure, axes = _draw.panels(1, 1, 5.5, 4)
    for k, method in enumerate(METHODS):
        row = found.one(method=method)
        if row:
            axes[0, 0].plot(SHARES, row.mean("curve")[0], label=method, **_draw.style(k))
    axes[0, 0].set(xlabel="share targeted", ylabel="gain in the rate of success")
    axes[0, 0].legend(frameon=False)
    return {"breast-cancer": figure}
