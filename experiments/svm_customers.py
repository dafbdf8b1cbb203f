"""Paper 003, Figures 1 and 2: simulated customers from random Bayesian networks.

Persuadables respond only when targeted, sleeping dogs only when not, sure things always, lost causes never. Three
machines are compared by AUU (in counts, ten folds concatenated) and by the ROC area for persuadables. Parameters are
chosen by inner cross-validation on the training folds.

    PYTHONPATH=src python experiments/svm_customers.py [--networks 5] [--rows 10000]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from upturn.metrics import auuc
from upturn.model_selection import UpliftKFold
from upturn.svm import DifferentialSVM, StandardSVM, SubgroupSVM


def network(seed, n, nodes=20, edges=30, sharpness=0.5):
    """Rows of a random network, and the node with four values that is the customers' group."""
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for j in range(nodes) for i in range(j)]
    while True:
        chosen = rng.choice(len(pairs), edges, replace=False)
        parents = [[pairs[k][0] for k in chosen if pairs[k][1] == j] for j in range(nodes)]
        values = rng.integers(2, 5, nodes)
        linked = [j for j in range(nodes) if values[j] == 4 and parents[j]]
        if linked and max(len(p) for p in parents) <= 6:
            break
    rows = np.zeros((n, nodes), dtype=int)
    for j in range(nodes):
        shape = [values[p] for p in parents[j]]
        code = np.ravel_multi_index(tuple(rows[:, p] for p in parents[j]), shape) if shape else np.zeros(n, dtype=int)
        table = rng.dirichlet(np.full(values[j], sharpness), int(np.prod(shape)) if shape else 1).cumsum(axis=1)
        rows[:, j] = (rng.random(n)[:, None] > table[code]).sum(axis=1).clip(0, values[j] - 1)
    return rows, int(rng.choice(linked))


def customers(seed, n):
    rows, group = network(seed, n)
    kind = rows[:, group]  # 0 persuadable, 1 sure thing, 2 lost cause, 3 sleeping dog
    targeted = np.random.default_rng((seed, 1)).random(n) < 0.5
    response = np.select([kind == 0, kind == 1, kind == 2], [targeted, True, False], ~targeted)
    X = pd.DataFrame(np.delete(rows, group, axis=1)).astype(str).add_prefix("v")
    X.columns = [f"v{i}" for i in range(X.shape[1])]
    return X, response.astype(int), targeted.astype(int), kind == 0


def auu(y, score, t):
    """Area under the uplift curve in counts: successes by share targeted, treatment minus control."""
    area = 0.0
    for group, sign in ((1, 1.0), (0, -1.0)):
        lift = np.cumsum(y[t == group][np.argsort(-score[t == group], kind="stable")])
        area += sign * lift.mean()
    return area


CANDIDATES = {
    "SVM-upl": lambda n: [DifferentialSVM(C=c / n**2) for c in (1.0, 10.0, 100.0, 1000.0)],
    "target-only": lambda n: [SubgroupSVM(C=c, tol=1e-6) for c in (1e-3, 1e-2, 1e-1, 1.0)],
    "standard": lambda n: [StandardSVM(C=c, tol=1e-6) for c in (1e-3, 1e-2, 1e-1, 1.0)],
}


def best(candidates, X, y, t, seed):
    splits = list(UpliftKFold(3, random_state=seed).split(X, y, t))
    areas = [
        np.mean([auuc(y[b], m.fit(X.iloc[a], y[a], t[a]).predict(X.iloc[b]), t[b]) for a, b in splits])
        for m in candidates
    ]
    return candidates[int(np.argmax(areas))]


def main():
    warnings.filterwarnings("ignore", message=".*not seen at fit.*")
    parser = argparse.ArgumentParser()
    parser.add_argument("--networks", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000)
    options = parser.parse_args()
    table = []
    for seed in range(options.networks):
        X, y, t, persuadable = customers(seed, options.rows)
        scores = {name: np.empty(len(y)) for name in CANDIDATES}
        for train, test in UpliftKFold(10, random_state=0).split(X, y, t):
            for name, make in CANDIDATES.items():
                part = X.iloc[train]
                model = best(make(len(train)), part, y[train], t[train], seed).fit(part, y[train], t[train])
                mean, spread = (f(model.predict(part)) for f in (np.mean, np.std))
                scores[name][test] = (model.predict(X.iloc[test]) - mean) / max(spread, 1e-12)
        row = [auu(y, scores[name], t) for name in CANDIDATES]
        row += [roc_auc_score(persuadable, scores[name]) for name in CANDIDATES]
        table.append(row)
        print(f"network {seed}: persuadable {persuadable.mean():.2f}  AUU", end=" ")
        print(" ".join(f"{n} {v:.1f}" for n, v in zip(CANDIDATES, row[:3], strict=True)), end="   ROC ")
        print(" ".join(f"{v:.3f}" for v in row[3:]), flush=True)
    table = np.array(table)
    print("mean AUU", dict(zip(CANDIDATES, table[:, :3].mean(axis=0).round(1), strict=True)))
    print("mean ROC", dict(zip(CANDIDATES, table[:, 3:].mean(axis=0).round(3), strict=True)))


if __name__ == "__main__":
    main()
