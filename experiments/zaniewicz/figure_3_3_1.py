"""Figure 3.3.1: as the ratio C2/C1 grows, the hyperplanes part and turn towards the neutral rectangle."""

from __future__ import annotations

import numpy as np

from experiments import _draw
from experiments._compare import claims, number, table
from experiments._declared import Experiment
from upturn.datasets import simulate_crescents
from upturn.svm import UpliftSVM

EXPERIMENT = Experiment(
    paper="000",
    shows=("Figure 3.3.1",),
    title="The ratio moves and turns the hyperplanes",
    data="Two crescents with effects +1 and -1 and a rectangle without one: `simulate_crescents`, 1,200 points. The paper does not print its own.",
    protocol="p = 1, C1 = 1, four ratios.",
)
PICTURES = ("crescents",)
RATIOS = (1.0, 2.0, 3.0, 4.0)


def plan(size):
    for ratio in RATIOS[:: 3 if size == "smoke" else 1]:
        yield {"ratio": ratio}, 1


def run(case, seed):
    data = simulate_crescents(1200, random_state=seed)
    model = UpliftSVM(C=1.0, ratio=case["ratio"], p=1.0, standardize=False).fit(data.X, data.y, data.treatment)
    sign = model.predict_sign(data.X)
    right = {str(effect): np.mean(sign[data.effect == effect] == effect) for effect in (-1, 0, 1)}
    return {"w": model.coef_, "b": model.intercepts_, "right": right}


def report(found):
    rows, turned, right = [], [], []
    for ratio in RATIOS:
        row = found.one(ratio=ratio)
        if row is None:
            continue
        value = row.values[0]
        (w1, w2), (b1, b2) = value["w"], value["b"]
        turned.append(np.degrees(np.arctan2(w2, w1)))
        right.append(value["right"]["0"])
        shares = [number(value["right"][key], 2) for key in ("-1", "0", "1")]
        rows.append([f"{ratio:g}", f"{turned[-1]:.0f}°", number((b1 - b2) / np.hypot(w1, w2), 2), *shares])
    yield table(["C2/C1", "direction of w", "distance of the hyperplanes", "right: harmed", "unmoved", "helped"], rows)
    why = f"points of our own, as the paper prints none: w lies within {abs(turned[0]):.0f}° of the rectangle's short side from the start, so there is little to turn"
    yield claims([
        ("at C1 = C2 the hyperplanes coincide", rows[0][2] == ".00", f"distance {rows[0][2]}"),
        ("as the ratio grows they part and turn", abs(turned[-1] - turned[0]) > 5, f"from {turned[0]:.0f}° to {turned[-1]:.0f}°", why),
        ("at the last ratio the rectangle falls between them", right[-1] > 0.9, f"{right[-1]:.0%} of its points"),
    ])  # fmt: skip
    yield "![Points and hyperplanes at four ratios](images/crescents.png)"


def summary(found):
    return "drawn on points of our own"


def draw(found):
    data = simulate_crescents(1200, random_state=0)
    figure, axes = _draw.panels(1, len(RATIOS), 3.2, 3.2, sharey=True)
    x = np.array([data.X[:, 0].min(), data.X[:, 0].max()])
    for axis, ratio in zip(axes[0], RATIOS, strict=True):
        value = found.one(ratio=ratio).values[0]
        axis.scatter(*data.X.T, c=data.effect, cmap="coolwarm", s=2)
        for k, b in enumerate(value["b"]):
            axis.plot(x, (b - value["w"][0] * x) / value["w"][1], **_draw.style(2 + k))
        axis.set(title=f"C2/C1 = {ratio:g}", ylim=(data.X[:, 1].min() - 0.3, data.X[:, 1].max() + 0.3))
    return {"crescents": figure}
