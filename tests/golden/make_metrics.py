"""Make metrics.json: the numbers of scikit-uplift and causalml on small experiments without ties.

Run it where both are installed:  python tests/golden/make_metrics.py
The experiments themselves are stored too, so that the test needs neither library.
"""

from __future__ import annotations

import contextlib
import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from causalml.metrics import auuc_score, get_cumgain, get_qini, get_toc, qini_score, rate_score
from sklift import metrics as sklift


def experiment(seed, n, treated, first=None, real=False):
    """n rows without ties; ``first`` forces the arm of the top rows, where one arm is still empty."""
    rng = np.random.default_rng(seed)
    score, treatment = rng.permutation(n) / 7 - n / 20, (rng.random(n) < treated).astype(int)
    if first is not None:
        treatment[np.argsort(-score)[:5]] = first
    rate = 0.3 + 0.3 * treatment * (score > np.median(score))
    y = np.round(rng.normal(rate, 1), 3) if real else (rng.random(n) < rate).astype(int)
    return y, score, treatment


def numbers(y, score, treatment):
    frame = pd.DataFrame({"y": y, "w": treatment, "model": score})
    found = {
        "causalml": {
            "auuc": auuc_score(frame)["model"],
            "qini": qini_score(frame)["model"],
            "autoc": rate_score(frame, weighting="autoc")["model"],
            "uplift_curve": get_cumgain(frame)["model"].tolist(),
            "qini_curve": get_qini(frame)["model"].tolist(),
            "toc_curve": get_toc(frame)["model"].tolist(),
        }
    }
    if set(np.unique(y)) <= {0, 1}:
        found["sklift"] = {
            "auuc": sklift.uplift_auc_score(y, score, treatment),
            "qini": sklift.qini_auc_score(y, score, treatment),
            "uplift_at_separate": sklift.uplift_at_k(y, score, treatment, strategy="by_group", k=0.3),
            "uplift_at_joint": sklift.uplift_at_k(y, score, treatment, strategy="overall", k=0.3),
            "uplift_curve": [column.tolist() for column in sklift.uplift_curve(y, score, treatment)],
            "qini_curve": [column.tolist() for column in sklift.qini_curve(y, score, treatment)],
        }
        with contextlib.suppress(ValueError):  # its perfect curve turns back when the average effect is negative
            found["sklift"]["qini_no_harm"] = sklift.qini_auc_score(y, score, treatment, negative_effect=False)
    return found


def main():
    cases = []
    for seed, n, treated, first, real in [
        (0, 40, 0.5, None, False),
        (1, 61, 0.3, 1, False),
        (2, 61, 0.7, 0, False),
        (3, 200, 0.5, None, False),
        (4, 200, 0.85, None, False),
        (5, 80, 0.5, None, True),
        (6, 61, 0.4, 0, True),
    ]:
        y, score, treatment = experiment(seed, n, treated, first, real)
        cases.append(
            {"y": y.tolist(), "score": score.tolist(), "treatment": treatment.tolist(), **numbers(y, score, treatment)}
        )
    made_by = {name: version(name) for name in ("scikit-uplift", "causalml", "numpy", "pandas")}
    path = Path(__file__).with_name("metrics.json")
    path.write_text(json.dumps({"made_by": made_by, "cases": cases}, indent=None, separators=(",", ":")) + "\n")
    print(f"{path.name}: {len(cases)} experiments, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
