"""Make the pictures of gallery.md from the Hillstrom mailing: UPTURN_DATA=… python docs/make_gallery.py

Needs matplotlib and pandas, and the data file hillstrom/hillstrom.csv.gz in the folder UPTURN_DATA.
"""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from upturn import metrics, plot
from upturn.features import UMODLDiscretizer
from upturn.meta import ClassTransformation
from upturn.model_selection import RepeatedUpliftSplit, compare_models, uplift_train_test_split
from upturn.trees import UpliftTree

IMAGES = Path(__file__).with_name("images")
FEATURES = ["recency", "history", "mens", "womens", "zip_code", "newbie", "channel"]


def load():
    """The experiment: features, visits, arms."""
    data = pd.read_csv(Path(os.environ["UPTURN_DATA"]) / "hillstrom" / "hillstrom.csv.gz")
    arms = {"No E-Mail": "control", "Mens E-Mail": "mens", "Womens E-Mail": "womens"}
    return data[FEATURES], data["visit"].to_numpy(), data["segment"].map(arms).to_numpy()


def save(ax, name):
    """Write a picture."""
    figure = ax.figure
    figure.savefig(IMAGES / f"{name}.png", dpi=80)
    plt.close(figure)
    print(f"{name}.png: {(IMAGES / f'{name}.png').stat().st_size:,} bytes")


def main():
    """Make them all."""
    IMAGES.mkdir(exist_ok=True)
    X, y, treatment = load()
    women = np.isin(treatment, ["control", "womens"])
    X_train, X_test, y_train, y_test, t_train, t_test = uplift_train_test_split(
        X[women], y[women], treatment[women], test_size=0.5, random_state=0
    )
    forest = RandomForestClassifier(200, min_samples_leaf=200, random_state=0, n_jobs=2)
    models = {
        "logistic regression": ClassTransformation().fit(X_train, y_train, t_train),
        "forest": ClassTransformation(forest).fit(X_train, y_train, t_train),
    }
    scores = {name: model.predict(X_test) for name, model in models.items()}
    options = {"random_state": 0}
    print(metrics.evaluate(y_test, scores, t_test, random_state=0))
    print(metrics.compare(y_test, scores, t_test, random_state=0))
    save(plot.uplift_curves(y_test, scores, t_test, **options), "uplift")
    save(plot.qini_curves(y_test, scores, t_test, **options), "qini")
    save(plot.toc_curves(y_test, scores, t_test, **options), "toc")
    save(plot.lift_curves(y_test, scores["forest"], t_test, **options), "lift")
    print(metrics.calibration_table(y_test, scores["forest"], t_test, random_state=0))
    save(plot.deciles(y_test, scores["forest"], t_test, **options), "deciles")
    save(plot.score_distributions(scores["forest"], t_test), "scores")

    X1, X2, y1, y2, t1, t2 = uplift_train_test_split(X, y, treatment, test_size=0.5, random_state=0)
    both = np.empty((len(y2), 2))
    for column, arm in enumerate(["mens", "womens"]):
        mine = np.isin(t1, ["control", arm])
        both[:, column] = ClassTransformation(forest).fit(X1[mine], y1[mine], t1[mine]).predict(X2)
    guess = np.random.default_rng(0).normal(size=both.shape)
    save(plot.uplift_curves(y2, both, t2, **options), "uplift_arms")
    save(plot.deciles(y2, both, t2, n_bins=5, **options), "deciles_arms")
    ax = plot.modified_uplift_curves(y2, {"forest": both, "guessing": guess}, t2, **options)
    save(ax, "modified_uplift")
    for name, chosen in {"forest": both, "guessing": guess}.items():
        curve = metrics.modified_uplift_curve(y2, chosen, t2)
        print(
            name, "everybody mailed:", round(curve.y[-1], 4), "arms at random:", [round(end, 4) for end in curve.random]
        )

    cv = RepeatedUpliftSplit(16, random_state=0)
    quick = {
        "logistic regression": ClassTransformation(),
        "strongly shrunk": ClassTransformation(LogisticRegression(C=1e-4)),
    }
    comparison = compare_models(quick, X[women], y[women], treatment[women], cv=cv, n_jobs=2)
    print(comparison)
    ax = plot.curves(
        comparison.curves, scale=1000, ylabel="gain per 1,000 people", title="Mean of 16 splits ± sd over splits"
    )
    save(ax, "splits")

    grown = UpliftTree(max_depth=3, random_state=0).fit(X_train, y_train, t_train)
    save(plot.tree(grown), "tree")
    save(plot.importances(grown), "importances")
    umodl = UMODLDiscretizer().fit(X, y, treatment)
    save(plot.parts(umodl, "recency"), "parts")


if __name__ == "__main__":
    main()
