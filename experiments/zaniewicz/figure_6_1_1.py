"""Figure 6.1.1: uplift curves of three machines on breast-cancer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from experiments import _draw
from experiments._compare import UNKNOWN, claims, held, number
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


def _gains(found, success):
    """The gains of everybody and of 60% by the uplift machine; nothing if it was not run."""
    curve = _curves(found, success).get("Uplift SVM")
    return None if curve is None else (float(curve[-1]), float(curve[30]))


def _printed(found):
    """The outcomes whose success gives both printed gains."""
    gains = {success: _gains(found, success) for success in SUCCESSES}
    return [
        success for success, one in gains.items() if one and abs(one[0] - 0.04) < 0.01 and abs(one[1] - 0.09) < 0.01
    ]


def _claims(found):
    printed = _printed(found)
    for success in SUCCESSES:
        curves = _curves(found, success)
        uplift = curves.pop("Uplift SVM", None)
        if uplift is None:
            continue
        words, other = f"success of the {success}: ", [one for one in printed if one != success]
        why = [f"with success of the {other[0]} it does"] if other else []
        yield words + "everybody, four points of gain", abs(uplift[-1] - 0.04) < 0.01, number(uplift[-1], 3), *why
        yield (
            words + "60% by the uplift machine, nine points",
            abs(uplift[30] - 0.09) < 0.01,
            number(uplift[30], 3),
            *why,
        )
        if curves:
            best = np.max(list(curves.values()), axis=0)
            above, short = np.mean(uplift[1:-1] >= best[1:-1]), best - uplift
            at = int(short[1:-1].argmax()) + 1
            error = found.one(method="Uplift SVM", success=success).mean("curve")[1][at]
            yield (
                words + "the uplift machine is best over the whole range",
                bool(above == 1.0),
                f"at {above:.0%} of the shares; behind by {number(short[at], 3)} at most",
                UNKNOWN
                + (
                    f"; it is less than two standard errors of a curve, {number(error, 3)} each"
                    if short[at] < 2 * error
                    else ""
                ),
            )


def report(found):
    yield claims(_claims(found))
    printed = _printed(found)
    if len(printed) == 1:
        yield f"The printed gains are those of the {printed[0]}'s outcome, or of the arms exchanged where it is the other, which gives the same curve: the table of areas cannot tell."
    else:
        yield f"The printed gains are found with {'either' if printed else 'neither'} outcome."
    yield "![Uplift curves of three machines](images/breast-cancer.png)"


def summary(found):
    printed = _printed(found)
    said = (
        f"both printed gains, if success is the {printed[0]}'s outcome"
        if printed
        else "the printed gains are not found"
    )
    return f"{said}; {held(_claims(found))}"


def draw(found):
    figure, axes = _draw.panels(1, 2, 5.0, 4)
    for axis, success in zip(axes.flat, SUCCESSES, strict=True):
        curves = _curves(found, success)
        for k, method in enumerate(method for method in METHODS if method in curves):
            axis.plot(SHARES, curves[method], label=method, **_draw.style(k))
        axis.set(xlabel="share targeted", ylabel="gain in the rate of success", title=f"success of the {success}")
    axes.flat[0].legend(frameon=False)
    return {"breast-cancer": figure}
