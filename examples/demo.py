"""The main job in one page: is the experiment sound, which model ranks best, and whom should the next offer go to?

A shop made two offers, a phone call and a coupon, to a third of its customers each; a third got neither. Some customers
are won by one of them, some annoyed, and most would have done the same anyway.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

import upturn as up
from upturn import plot
from upturn.datasets import simulate_campaign
from upturn.meta import TLearner
from upturn.metrics import compare, evaluate
from upturn.model_selection import uplift_train_test_split
from upturn.policy import target
from upturn.trees import UpliftForest

OUTPUT = Path("build/demo")


def heading(text):
    print(f"\n{text}\n{'-' * len(text)}")


def main():
    data = simulate_campaign(30_000, random_state=0)

    heading("1. Is the experiment sound?")
    print(up.check(data.X, data.y, data.treatment))

    heading("2. Two models, judged on customers they have not seen")
    X, X_new, y, y_new, t, t_new = uplift_train_test_split(data.X, data.y, data.treatment, random_state=0)
    models = {
        "forest": UpliftForest(random_state=0, n_jobs=-1).fit(X, y, t),
        "two models": TLearner(random_state=0).fit(X, y, t),
    }
    scores = {name: model.predict(X_new) for name, model in models.items()}
    print(evaluate(y_new, scores, t_new, random_state=0))
    print()
    print(compare(y_new, scores, t_new, random_state=0))

    heading("3. Whom to treat: 3,000 to spend, a purchase is worth its mean revenue")
    forest = models["forest"]
    plan = target(
        scores["forest"], budget=3000, cost=data.details["cost"], value=data.details["value"], y=y_new, treatment=t_new,
        control=forest.control_, arms=forest.arms_,
    )  # fmt: skip
    print(plan)

    OUTPUT.mkdir(parents=True, exist_ok=True)
    draw(y_new, scores, t_new, forest.arms_, OUTPUT / "uplift_curves.png")
    forest.save(OUTPUT / "forest.upturn")
    again = up.load(OUTPUT / "forest.upturn")
    assert np.array_equal(again.predict(X_new), scores["forest"])
    print(f"\nWrote {OUTPUT / 'uplift_curves.png'} and {OUTPUT / 'forest.upturn'}")


def draw(y, scores, treatment, arms, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(arms), figsize=(5.5 * len(arms), 4), layout="constrained")
    for k, (arm, ax) in enumerate(zip(arms, axes, strict=True)):
        rows = np.isin(treatment, ["control", arm])
        plot.uplift_curves(y[rows], {name: score[rows, k] for name, score in scores.items()}, treatment[rows], ax=ax)
        ax.set_title(f"Uplift of the {arm}")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    warnings.simplefilter("default")
    main()
