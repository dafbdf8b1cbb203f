"""The worked example and the pictures of docs/meta.md and docs/policy.md, on real data.

UPTURN_DATA=... PYTHONPATH=src python docs/make_decisions.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from upturn import plot
from upturn.boosting import UpliftBoosting
from upturn.datasets import load_hillstrom, load_rhc
from upturn.meta import DRLearner, TLearner
from upturn.metrics import calibration_table, compare
from upturn.model_selection import uplift_train_test_split
from upturn.policy import UpliftCalibrator, four_groups, gain_curve, overlap, target

IMAGES = Path(__file__).resolve().parent / "images"


def keep(name, ax):
    ax.figure.savefig(IMAGES / name, dpi=110)
    plt.close(ax.figure)


def show(title, *things):
    print(f"--- {title}")
    for thing in things:
        print(thing)


def main():
    for outcome, value, prices in (
        ("visit", 2.0, {"men": 0.12, "women": 0.06}),
        ("spend", 1.0, {"men": 0.12, "women": 0.06}),
    ):
        data = load_hillstrom(outcome, "all")
        parts = uplift_train_test_split(data.X, data.y, data.treatment, test_size=0.5, stratify="arm", random_state=0)
        X, X_new, y, y_new, t, t_new = parts
        uplift = DRLearner(propensity="shares", random_state=0).fit(X, y, t).predict(X_new)
        plan = target(uplift, budget=1000, cost=prices, value=value, y=y_new, treatment=t_new)
        show(f"two mailings for a budget of 1,000, outcome {outcome}", plan, plan.comparison)
        curve = gain_curve(y_new, uplift, t_new, cost=prices, value=value)
        show("gain curve", curve)
        if outcome == "visit":
            keep("gain.png", plot.gain(curve))

    data = load_hillstrom("visit", "women")
    parts = uplift_train_test_split(data.X, data.y, data.treatment, test_size=0.5, random_state=0)
    X, X_new, y, y_new, t, t_new = parts
    effects = UpliftCalibrator(UpliftBoosting(random_state=0), random_state=0).fit(X, y, t)
    show("scores of boosting", effects.estimator_.predict(X_new[:3]), effects.predict(X_new[:3]))
    show("calibrated", effects.table_)
    keep("calibration.png", plot.calibration(calibration_table(y_new, effects.predict(X_new), t_new)))
    two = TLearner(random_state=0).fit(X, y, t)
    show("four groups", four_groups(two.predict_response(X_new), margin=0.02))
    scores = {"two models": two.predict(X_new), "calibrated boosting": effects.predict(X_new)}
    show("compared", compare(y_new, scores, t_new, random_state=0))

    data = load_rhc()
    found = overlap(data.X, data.treatment, propensity="logistic")
    show("right heart catheterisation", found, np.sort(found.weights)[-5:])
    keep("overlap.png", plot.overlap(found))


if __name__ == "__main__":
    main()
