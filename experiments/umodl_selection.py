"""Section 5 of Rafla et al. (2022): selecting features among added noise. Draws its Figures 6 and 7.

    UPTURN_DATA=... python experiments/umodl_selection.py [--out FOLDER] [--data zenodo criteo simulated]

(`--data` with no name draws what earlier runs left in the folder.)

To each data set 0, 10, ..., 100 columns of standard normal noise are added. In each of ten folds, stratified on arm and
outcome, every selector is fitted on the training part; the filters keep as many features as UMODL-FS does (at least
one). With the features kept, a T-learner with logistic regression and an X-learner with linear regression are fitted
and judged on the test part by the Qini coefficient: the area between the Qini curve and the random line, divided by
that of a perfect ranking (scikit-uplift's convention).

A score of a feature does not depend on the other features, so each fold scores all columns once, and the eleven
variants take the columns they have.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from upturn.datasets import simulate_feature_selection
from upturn.features import FilterSelector, UMODLSelector
from upturn.meta import TLearner, XLearner
from upturn.metrics import qini
from upturn.model_selection import UpliftKFold

NOISE = np.arange(0, 101, 10)
FILTERS = {"KL-filter": "kl", "Chi-filter": "chi2", "ED-filter": "euclidean", "LR-filter": "lr", "F-filter": "f"}
METHODS = ("UMODL-FS", *FILTERS)
LEARNERS = ("T-learner, logistic", "X-learner, linear")
FOLDS = 10


def load(name):
    """Return X, y, treatment of a data set."""
    if name == "simulated":
        data = simulate_feature_selection(n=10_000, random_state=0)
        return data.X, data.y, data.treatment
    folder = Path(os.environ["UPTURN_DATA"])
    if name == "zenodo":
        table = pd.read_csv(folder / "zenodo" / "zenodo3653141_sample5000_kuplift.csv.gz")
        return table.drop(columns=["segment", "visit"]), table["visit"].to_numpy(), table["segment"].to_numpy()
    table = pd.read_csv(folder / "criteo" / "criteo_uplift_v2.1_sample1000.csv.gz")
    return table[[f"f{j}" for j in range(12)]], table["visit"].to_numpy(), table["treatment"].to_numpy()


def learners():
    logistic = make_pipeline(StandardScaler(), LogisticRegression(C=1e3, max_iter=500))  # hardly any penalty
    return TLearner(logistic), XLearner(LinearRegression(), LinearRegression(), propensity="shares")


def judge(X, y, t, train, test):
    """Return the Qini coefficient of both learners on the test rows."""
    fitted = [learner.fit(X[train], y[train], t[train]) for learner in learners()]
    return [qini(y[test], model.predict(X[test]), t[test], convention="sklift") for model in fitted]


def run(X, y, t, seed=0):
    """Return Qini coefficients (learner, method, noise, fold), the share of added noise kept (method, noise, fold), and kept sets."""
    rng = np.random.default_rng(seed)
    own = X.shape[1]
    full = pd.concat(
        [X.reset_index(drop=True), pd.DataFrame(rng.normal(size=(len(y), NOISE[-1]))).add_prefix("noise")], axis=1
    )
    values = full.to_numpy(dtype=float)
    coefficients = np.full((len(LEARNERS), len(METHODS), len(NOISE), FOLDS), np.nan)
    share = np.full((len(METHODS), len(NOISE), FOLDS), np.nan)
    kept_by_umodl = []
    for fold, (train, test) in enumerate(UpliftKFold(FOLDS, random_state=seed).split(full, y, t)):
        arrays = full.iloc[train], y[train], t[train]
        umodl = UMODLSelector().fit(*arrays).scores_
        kept_by_umodl.append(np.flatnonzero(umodl > 0))
        known = {(): [0.0, 0.0]}  # by the features kept; without any there is nothing to rank people by
        ranks = {name: FilterSelector(criterion=s, k="all").fit(*arrays).ranking_ for name, s in FILTERS.items()}
        for v, noise in enumerate(NOISE):
            here = np.arange(own + noise)
            for m, method in enumerate(METHODS):
                chosen = here[umodl[here] > 0]
                if method != "UMODL-FS":
                    chosen = here[np.argsort(ranks[method][here])[: max(len(chosen), 1)]]
                if noise:
                    share[m, v, fold] = (chosen >= own).sum() / noise
                kept = tuple(chosen.tolist())
                if kept not in known:
                    known[kept] = judge(values[:, chosen], y, t, train, test)
                coefficients[:, m, v, fold] = known[kept]
        print(f"  fold {fold + 1} of {FOLDS}: UMODL-FS keeps {len(kept_by_umodl[-1])}", flush=True)
    return coefficients, share, [full.columns[kept].tolist() for kept in kept_by_umodl]


def draw(results, out):
    names = list(results)
    fig, axes = plt.subplots(
        len(LEARNERS), len(names), figsize=(5 * len(names), 7.5), layout="constrained", squeeze=False
    )
    for j, name in enumerate(names):
        coefficients, _, _ = results[name]
        for k, learner in enumerate(LEARNERS):
            ax = axes[k, j]
            for m, method in enumerate(METHODS):
                mean, spread = coefficients[k, m].mean(axis=1), coefficients[k, m].std(axis=1)
                line = ax.plot(
                    NOISE, mean, marker=".", label=method, linewidth=2.2 if m == 0 else 1.1, zorder=3 - (m > 0)
                )
                if m == 0:
                    ax.fill_between(NOISE, mean - spread, mean + spread, color=line[0].get_color(), alpha=0.12)
            ax.set(title=f"{name}: {learner}", xlabel="added noise features", ylabel="Qini coefficient")
    axes[0, 0].legend(fontsize=8)
    fig.savefig(out / "figure6_qini.png", dpi=110)
    plt.close(fig)
    fig, axes = plt.subplots(2, len(names), figsize=(5 * len(names), 7.5), layout="constrained", squeeze=False)
    for j, name in enumerate(names):
        _, share, kept = results[name]
        n_kept = np.maximum(
            [len(fold) for fold in kept], 1
        )  # UMODL-FS keeps no noise, so it is the same for every variant
        for m, method in enumerate(METHODS):
            width = 2.2 if m == 0 else 1.1
            among = (share[m, 1:] * NOISE[1:, None] / n_kept).mean(axis=1)
            axes[0, j].plot(NOISE[1:], 100 * among, marker=".", label=method, linewidth=width)
            axes[1, j].plot(NOISE[1:], 100 * share[m, 1:].mean(axis=1), marker=".", label=method, linewidth=width)
        axes[0, j].set(title=name, xlabel="added noise features", ylabel="% of the kept features that are noise")
        axes[1, j].set(xlabel="added noise features", ylabel="% of the noise features that are kept")
    axes[0, 0].legend(fontsize=8)
    fig.savefig(out / "figure7_noise.png", dpi=110)
    plt.close(fig)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=["zenodo", "criteo", "simulated"])
    parser.add_argument("--out", type=Path, default=Path("results/umodl_selection"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    saved = args.out / "numbers.json"  # data sets of earlier runs stay in the figures
    results = {name: tuple(r) for name, r in json.loads(saved.read_text()).items()} if saved.exists() else {}
    results = {name: (np.array(q), np.array(s), k) for name, (q, s, k) in results.items()}
    for name in args.data:
        X, y, t = load(name)
        print(f"{name}: {X.shape[0]:,} rows, {X.shape[1]} features, treated {t.mean():.2f}, success {y.mean():.3f}")
        results[name] = run(X, y, t)
        coefficients, share, kept = results[name]
        print(
            f"  {'method':<11}{'T, no noise':>13}{'T, 100':>9}{'X, no noise':>13}{'X, 100':>9}   % of 100 noise features kept"
        )
        for m, method in enumerate(METHODS):
            q = coefficients[:, m].mean(axis=2)
            print(
                f"  {method:<11}{q[0, 0]:>13.4f}{q[0, -1]:>9.4f}{q[1, 0]:>13.4f}{q[1, -1]:>9.4f}   {100 * share[m, -1].mean():.2f}"
            )
        counts = pd.Series([feature for fold in kept for feature in fold]).value_counts()
        print("  kept by UMODL-FS (folds):", ", ".join(f"{feature} {k}" for feature, k in counts.items()))
        saved.write_text(json.dumps({name: [q.tolist(), s.tolist(), k] for name, (q, s, k) in results.items()}))
    draw(results, args.out)


if __name__ == "__main__":
    main()
