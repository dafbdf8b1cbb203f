"""Figures 6.3.1 and 6.3.2 (shares of signs against C2/C1) and 3.3.1 (hyperplanes on the crescents).

UPTURN_DATA=... PYTHONPATH=src python experiments/svm_figures.py [--plot FOLDER]
"""

from __future__ import annotations

import argparse
import os

import numpy as np

from upturn.datasets import load_uci_split, simulate_crescents
from upturn.svm import UpliftSVM, sign_shares

POWERS = (1.0, 1.2, 1.5, 2.0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--plot", help="write pictures to this folder (needs matplotlib)")
    options = parser.parse_args()
    pictures = {}
    for name in ("breast-cancer", "australian"):
        data = load_uci_split(name)
        X, y, t = data.X, data.y, data.treatment
        for p in POWERS:
            ratios = np.linspace(1.0, 2.5 if p == 1.0 else 5.0, 31)
            shares = sign_shares(UpliftSVM(C=5.0, p=p), X, y, t, ratios)
            jump = np.abs(np.diff(shares[:, 1])).max()
            at = ratios[int(np.abs(np.diff(shares[:, 1])).argmax())]
            print(f"{name:<14} p={p:<4} neutral from {shares[0, 1]:.2f} to {shares[-1, 1]:.2f}; "
                  f"largest step {jump:.2f} at ratio {at:.2f}", flush=True)  # fmt: skip
            pictures[name, p] = ratios, shares
    data = simulate_crescents(1200, random_state=0)
    X, y, t, effect = data.X, data.y, data.treatment, data.effect
    for ratio in (1.0, 2.0, 3.0, 4.0):
        model = UpliftSVM(C=1.0, ratio=ratio, p=1.0, standardize=False).fit(X, y, t)
        sign = model.predict_sign(X)
        direction = np.degrees(np.arctan2(*model.coef_[::-1]))
        right = [np.mean(sign[effect == e] == e) for e in (-1, 0, 1)]
        print(f"crescents ratio={ratio:g}: w points at {direction:.0f} degrees, b1 - b2 = {model.intercepts_[0] - model.intercepts_[1]:.2f}, "
              f"right: harmed {right[0]:.2f}, unmoved {right[1]:.2f}, helped {right[2]:.2f}")  # fmt: skip
    if options.plot:
        draw(pictures, options.plot)


def draw(pictures, folder):
    import matplotlib.pyplot as plt

    os.makedirs(folder, exist_ok=True)
    for name in {key[0] for key in pictures}:
        figure, axes = plt.subplots(1, len(POWERS), figsize=(14, 3), sharey=True)
        for axis, p in zip(axes, POWERS, strict=True):
            ratios, shares = pictures[name, p]
            for column, label in enumerate(("negative", "neutral", "positive")):
                axis.plot(ratios, shares[:, column], label=label)
            axis.set(title=f"p = {p:g}", xlabel="C2 / C1")
        axes[0].legend()
        figure.suptitle(name)
        figure.savefig(os.path.join(folder, f"signs-{name}.png"), bbox_inches="tight")


if __name__ == "__main__":
    main()
