"""Figure 2: the synthetic uplift patterns."""

from __future__ import annotations

import numpy as np

from experiments import _draw
from experiments._declared import Experiment
from upturn.datasets import simulate_pattern

EXPERIMENT = Experiment(
    paper="004",
    shows=("Figure 2",),
    title="The synthetic patterns",
    data="`simulate_pattern`.",
    protocol="The chance of success in both groups along X; θ = .8 for the crenels. Crenel 2 has the level ½ in intervals without effect, which the paper does not give.",
)
PICTURES = ("patterns",)
NAMES = ("crenel1", "crenel2", "trigonometric", "scissors", "continuous")


def plan(size):
    for name in NAMES:
        yield {"pattern": name}, 1


def run(case, seed):
    data = simulate_pattern(
        case["pattern"], n=2000, theta=0.8 if "crenel" in case["pattern"] else 1.0, random_state=seed
    )
    order = np.argsort(data.X[:, 0])[::10]
    return {"x": data.X[order, 0].round(3), "chance": data.details["response"][order].round(4)}


def report(found):
    yield "![Chances of success of both groups in five patterns](images/patterns.png)"


def summary(found):
    return "drawn"


def draw(found):
    figure, axes = _draw.panels(1, len(NAMES), 3, 2.6, sharey=True)
    for axis, name in zip(axes[0], NAMES, strict=True):
        value = found.one(pattern=name).values[0]
        for k, group in enumerate(("control", "treatment")):
            axis.plot(value["x"], np.array(value["chance"])[:, k], label=group, **_draw.style(k))
        axis.set(title=name, xlabel="X")
    axes[0, 0].legend(frameon=False)
    return {"patterns": figure}
