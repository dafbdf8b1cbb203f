"""Table 6.5.2: the energy term on right heart catheterisation.

Mean imputation, 0-1 coding, C1 = C2 = 1, group-averaged slacks, exponent 1.1, ten times ten folds, and test weights
by inverse propensity (logistic regression on all rows, unclipped).

    UPTURN_DATA=... PYTHONPATH=src python experiments/svm_table_6_5_2.py [--repeats 10] [--plain]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression

from upturn._encode import LinearEncoder
from upturn._table import read_table
from upturn.datasets import load_rhc
from upturn.metrics import auuc
from upturn.model_selection import UpliftKFold
from upturn.svm import UpliftSVM, score_balance

PAPER = {
    "AUUC": [0.1505, 0.1511, 0.1559, 0.2030, 0.4035, 0.0727],
    "mean difference": [0.1051, 0.1050, 0.1036, 0.0839, 0.0202, 0.004],
    "Kolmogorov-Smirnov": [0.3436, 0.3433, 0.3411, 0.3026, 0.1103, 0.0320],
}
BALANCES = [0.0, 0.01, 0.1, 1.0, 10.0, 100.0]


def main():
    warnings.filterwarnings("ignore", message=".*not seen at fit.*")
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--plain", action="store_true", help="without standardisation")
    options = parser.parse_args()
    data = load_rhc()
    X, y, t = data.X, data.y, data.treatment
    matrix, schema = read_table(X)
    encoded = LinearEncoder.fit(matrix, schema).transform(matrix)
    propensity = LogisticRegression(C=1e6, max_iter=5000).fit(encoded, t).predict_proba(encoded)[:, 1]
    weight = np.where(t == 1, 1.0 / propensity, 1.0 / (1.0 - propensity))
    found = np.zeros((3, len(BALANCES), options.repeats))
    for repeat in range(options.repeats):
        scores = np.empty((len(BALANCES), len(y)))
        for train, test in UpliftKFold(10, random_state=repeat).split(X, y, t):
            for k, balance in enumerate(BALANCES):
                model = UpliftSVM(p=1.0, balance=balance, group_average=True, standardize=not options.plain, tol=1e-6)
                model.fit(X.iloc[train], y[train], t[train])
                scores[k, test] = model.predict(X.iloc[test])
        for k in range(len(BALANCES)):
            balance_found = score_balance(scores[k], t)
            area = auuc(y, scores[k], t, sample_weight=weight)
            found[:, k, repeat] = area, abs(balance_found.mean_difference), balance_found.ks
        print(f"after {repeat + 1} x 10 folds", "balance " + "".join(f"{b:>10g}" for b in BALANCES), sep="\n")
        for row, name in enumerate(PAPER):
            mean = found[row, :, : repeat + 1].mean(axis=1)
            print(f"{name:<20}" + "".join(f"{v:>10.4f}" for v in mean), flush=True)
        ratio = found[0, :, : repeat + 1].mean(axis=1)
        print(f"{'AUUC / first':<20}" + "".join(f"{v / ratio[0]:>10.2f}" for v in ratio), flush=True)
    print("paper:")
    for name, values in PAPER.items():
        print(f"{name:<20}" + "".join(f"{v:>10.4f}" for v in values))


if __name__ == "__main__":
    main()
