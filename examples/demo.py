"""The main job in one page: an experiment, a model, its uplift curve, and whom to treat.

A campaign mailed half of 20,000 customers an offer. It helps people who have not bought for a while, annoys newcomers,
and leaves the rest alone. Which customers should get the next one?
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from upturn.meta import ClassTransformation
from upturn.metrics import auuc, uplift_curve
from upturn.model_selection import uplift_train_test_split

OUTPUT = Path("build/demo")


def simulate_campaign(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    recency, newcomer, basket = rng.integers(1, 13, n), rng.random(n) < 0.3, rng.lognormal(3, 0.7, n)
    mailed = rng.random(n) < 0.5
    effect = np.where(newcomer, -0.04, 0.015 * (recency - 4))
    chance = 0.10 + 0.02 * (basket > 25) + effect * mailed
    X = np.column_stack([recency, newcomer, basket])
    return X, (rng.random(n) < chance).astype(int), np.where(mailed, "mail", "control")


def draw(curve, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    axes.plot(100 * curve.x, 1000 * curve.y, label="mail the best first")
    axes.plot([0, 100], [0, 1000 * curve.y[-1]], "--", color="grey", label="mail at random")
    axes.set(xlabel="share of customers mailed (%)", ylabel="extra visits per 1,000 customers", title="Uplift curve")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main():
    X, y, treatment = simulate_campaign()
    X_train, X_test, y_train, y_test, t_train, t_test = uplift_train_test_split(X, y, treatment, random_state=0)
    model = ClassTransformation().fit(X_train, y_train, t_train)
    score = model.predict(X_test)
    curve = uplift_curve(y_test, score, t_test)
    area = auuc(y_test, score, t_test, interval=0.95, random_state=0)
    best = curve.y.argmax()
    print(model)
    print(f"AUUC on {len(y_test):,} customers it has not seen: {area!r}")
    print(f"Mail everybody:            {1000 * curve.y[-1]:5.1f} extra visits per 1,000 customers")
    print(f"Mail the best 30%:         {1000 * curve(0.3):5.1f}")
    print(f"Mail the best {curve.x[best]:.0%}, the top: {1000 * curve.y[best]:5.1f}")
    print(f"The model's own rule mails {np.mean(model.recommend(X_test) == 'mail'):.0%} of them.")
    OUTPUT.mkdir(parents=True, exist_ok=True)
    draw(curve, OUTPUT / "uplift_curve.png")
    model.save(OUTPUT / "model.upturn")
    print(f"Wrote {OUTPUT / 'uplift_curve.png'} and {OUTPUT / 'model.upturn'}")


if __name__ == "__main__":
    main()
