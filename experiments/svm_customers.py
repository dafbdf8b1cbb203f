"""Figures 1 and 2 of Kuusisto et al.: three machines on simulated customers from random Bayesian networks.

Persuadables respond only when targeted, sleeping dogs only when not, sure things always, lost causes never. The machines
are compared by AUU (in counts, ten folds concatenated) and by the ROC area for persuadables, whom no machine is told of.
Costs are chosen by AUUC in cross-validation inside the training folds (3 inner folds; the paper takes 9).

    PYTHONPATH=src python experiments/svm_customers.py [--networks 5] [--rows 10000] [--out build/customers]
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

from upturn.datasets import simulate_customers
from upturn.metrics import auu, auuc
from upturn.model_selection import UpliftKFold
from upturn.svm import DifferentialSVM, StandardSVM, SubgroupSVM

COSTS = (1e-3, 1e-2, 1e-1, 1.0)
MACHINES = {
    "SVM-upl": lambda n: [DifferentialSVM(C=1000 * cost / n**2) for cost in COSTS],
    "target-only": lambda n: [SubgroupSVM(C=cost, tol=1e-6) for cost in COSTS],
    "standard": lambda n: [StandardSVM(C=cost, tol=1e-6) for cost in COSTS],
}
STYLES = {"SVM-upl": ("-", "#0072b2"), "target-only": ("--", "#d55e00"), "standard": (":", "#000000")}


def best(candidates, X, y, t, seed):
    splits = list(UpliftKFold(3, random_state=seed).split(X, y, t))
    areas = [
        np.mean([auuc(y[b], m.fit(X.iloc[a], y[a], t[a]).predict(X.iloc[b]), t[b]) for a, b in splits])
        for m in candidates
    ]
    return candidates[int(np.argmax(areas))]


def out_of_fold(data, seed):
    """Scores of ten folds, concatenated as in the paper; each fold's are standardised by those of its training rows."""
    X, y, t = data.X, data.y, data.treatment
    scores = {name: np.empty(len(y)) for name in MACHINES}
    for train, test in UpliftKFold(10, random_state=0).split(X, y, t):
        part = X.iloc[train]
        for name, make in MACHINES.items():
            model = best(make(len(train)), part, y[train], t[train], seed).fit(part, y[train], t[train])
            known = model.predict(part)
            scores[name][test] = (model.predict(X.iloc[test]) - known.mean()) / max(known.std(), 1e-12)
    return scores


def draw(data, scores, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from upturn.metrics import lift_curve

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    share = np.linspace(0, 1, 201)
    for name, score in scores.items():
        line, colour = STYLES[name]
        treated, control = (
            lift_curve(data.y[rows], score[rows])(share) for rows in (data.treatment == 1, data.treatment == 0)
        )
        left.plot(share, treated - control, line, color=colour, label=name)
        false, true, _ = roc_curve(data.details["group"] == "persuadable", score)
        right.plot(false, true, line, color=colour, label=name)
    right.plot([0, 1], [0, 1], color="#999999", lw=0.8)
    left.set(xlabel="share targeted", ylabel="uplift (successes)", title="Uplift curves")
    right.set(xlabel="false positive rate", ylabel="true positive rate", title="Persuadables")
    left.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    warnings.filterwarnings("ignore", message=".*not seen at fit.*")
    parser = argparse.ArgumentParser()
    parser.add_argument("--networks", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=Path("build/customers"))
    options = parser.parse_args()
    table = []
    for seed in range(options.networks):
        start = time.perf_counter()
        data = simulate_customers(options.rows, network_seed=seed, random_state=seed)
        persuadable = data.details["group"] == "persuadable"
        scores = out_of_fold(data, seed)
        areas = [auu(data.y, score, data.treatment) for score in scores.values()]
        areas += [roc_auc_score(persuadable, score) for score in scores.values()]
        table.append(areas)
        print(f"network {seed}: persuadable {persuadable.mean():.2f}  AUU", end=" ")
        print(" ".join(f"{name} {value:.1f}" for name, value in zip(MACHINES, areas[:3], strict=True)), end="   ROC ")
        print(" ".join(f"{value:.3f}" for value in areas[3:]), f"  {time.perf_counter() - start:.0f} s", flush=True)
        draw(data, scores, options.out / f"network_{seed}.png")
    mean = np.mean(table, axis=0)
    for what, values, digits in (("AUU", mean[:3], 1), ("ROC", mean[3:], 3)):
        order = values[0] > values[1] > values[2]
        text = ", ".join(f"{name} {value:.{digits}f}" for name, value in zip(MACHINES, values, strict=True))
        print(
            f"{'holds' if order else 'does not hold':>13}: SVM-upl over target-only over standard in mean {what} ({text})"
        )


if __name__ == "__main__":
    main()
