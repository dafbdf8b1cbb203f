"""p = 1 on Hillstrom's mailings, C in six values and the ratio in six: where w = 0 is optimal, and how the scores rank the training rows.

python experiments/svm_hillstrom.py [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import warnings

import numpy as np

from upturn.datasets import load_hillstrom
from upturn.metrics import auuc
from upturn.svm import UpliftSVM, VanishingWarning

CS = 10.0 ** np.arange(-2, 4)
RATIOS = np.linspace(1.0, 2.5, 6)


def main():
    warnings.simplefilter("ignore", VanishingWarning)
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    options = parser.parse_args()
    found = []
    for arms in ("women", "men", "both"):
        data = load_hillstrom("visit", arms)
        X, y, t = data.X, data.y, data.treatment
        for C in CS:
            for ratio in RATIOS:
                model = UpliftSVM(C=C, ratio=ratio, p=1.0).fit(X, y, t)
                score = model.predict(X)
                row = {"arms": arms, "C": C, "ratio": ratio, "vanishing": model.vanishing_, "gap": model.dual_gap_}
                row |= {"auuc": auuc(y, score, t), "distinct": len(np.unique(score)), "spread": float(np.std(score))}
                row |= {"auuc_p1.2": UpliftSVM(C=C, ratio=ratio, p=1.2).fit(X, y, t).score(X, y, t)}
                found.append(row)
                print(
                    {
                        key: value if isinstance(value, str | bool) else float(f"{value:.4g}")
                        for key, value in row.items()
                    },
                    flush=True,
                )
        mine = [row for row in found if row["arms"] == arms]
        areas = [row["auuc"] for row in mine]
        print(
            f"{arms}: w = 0 in {sum(row['vanishing'] for row in mine)} of {len(mine)} fits; training AUUC from {min(areas):.4f} to "
            f"{max(areas):.4f}, {sum(area < 0 for area in areas)} below 0, {sum(row['distinct'] == 1 for row in mine)} constant; "
            f"largest gap {max(row['gap'] for row in mine):.1e}"
        )
    if options.json:
        with open(options.json, "w") as file:
            file.write("[\n" + ",\n".join(" " + json.dumps(row) for row in found) + "\n]\n")


if __name__ == "__main__":
    main()
