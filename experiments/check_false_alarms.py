"""How often does `upturn.check` cry wolf, and what does it catch?

Sound experiments of many kinds are simulated: 250 to 4,000 rows, two or three arms, equal or unequal shares, normal,
heavy-tailed, rounded and rare features, categories with rare levels, missing values, real, rare and partly missing
outcomes. In each the assignment is random, so any warning is a false alarm. Then faults are planted.

    python experiments/check_false_alarms.py [number of sound experiments]
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pandas as pd
from scipy import stats

from upturn._check import check


def features(rng: np.random.Generator, n: int) -> pd.DataFrame:
    normal = rng.standard_normal((n, 4))
    columns = {
        "normal": normal[:, 0],
        "correlated": normal[:, 0] + 0.5 * normal[:, 1],
        "lognormal": np.exp(1.5 * normal[:, 2]),
        "cauchy": rng.standard_cauchy(n),
        "rounded": normal[:, 3].round(),
        "rare": (rng.random(n) < 0.01).astype(float),
        "mostly zero": rng.poisson(0.02, n),
        "kind": pd.Categorical(rng.choice(list("abcdefgh"), n, p=[0.5, 0.3, 0.1, 0.05, 0.02, 0.01, 0.01, 0.01])),
    }
    frame = pd.DataFrame(columns)
    for name, share in (("normal", 0.1), ("lognormal", 0.01), ("kind", 0.05)):
        frame.loc[rng.random(n) < share, name] = None
    return frame


def sound(seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray, list[float], bool]:
    rng = np.random.default_rng([4, seed])
    n = int(rng.choice([250, 500, 1000, 2000, 4000]))
    shares = [[0.5, 0.5], [0.8, 0.2], [1 / 3, 1 / 3, 1 / 3], [0.6, 0.3, 0.1]][seed % 4]
    X = features(rng, n)
    arm = rng.choice(len(shares), n, p=shares)
    signal = np.nan_to_num(X["correlated"].to_numpy()) + 0.3 * arm
    real = rng.random() < 0.5
    if real:
        y = signal + rng.standard_t(3, n)
    else:
        y = (rng.random(n) < 1 / (1 + np.exp(3 - signal))).astype(float)
    if rng.random() < 0.5:
        y[rng.random(n) < 0.05] = np.nan
    return X, y, arm, shares, real


def planted(fault: str, seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([5, seed])
    n = 100_000 if fault.startswith("48/52") else 20_000
    X = features(rng, n)
    arm = (rng.random(n) < (0.48 if fault.startswith("48/52") else 0.5)).astype(int)
    y = (rng.random(n) < 0.1 + 0.02 * arm).astype(float)
    if fault.startswith("shift"):
        X["correlated"] += 0.1 * X["correlated"].std() * arm
    if fault.startswith("outcome"):
        y[rng.random(n) < np.where(arm == 1, 0.05, 0.035)] = np.nan
    if fault.startswith("feature missing"):
        X.loc[rng.random(n) < np.where(arm == 1, 0.03, 0.02), "rounded"] = np.nan
    if fault.startswith("interaction"):  # both margins agree, only the pair tells the arms apart
        flip = rng.random(n) < 0.75
        X["rounded"] = np.where(flip, np.sign(X["correlated"]) * (2 * arm - 1), rng.choice([-1, 1], n))
    return X, y, arm


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    alarms, kinds = 0, Counter()
    constant, seen = 0, 0  # with a real outcome the effect is the same for everyone
    for seed in range(runs):
        X, y, arm, shares, real = sound(seed)
        report = check(X, y, arm, expected=shares, random_state=seed)
        alarms += not report.ok
        kinds.update(report.warnings)
        constant += real
        seen += real and report["heterogeneity"].seen.startswith("seen")
    interval = stats.binomtest(alarms, runs).proportion_ci()
    print(f"sound experiments: {runs}; false alarms: {alarms} ({alarms / runs:.1%}, 95% interval "
          f"{interval.low:.1%} to {interval.high:.1%}); by check: {dict(kinds)}")  # fmt: skip
    print(
        f"heterogeneity seen in {seen} of {constant} experiments with a constant effect ({seen / constant:.1%}, level 5%)"
    )
    times = 20
    for fault in (
        "48/52 instead of 50/50, 100,000 rows",
        "shift of a feature by .1 sd, 20,000 rows",
        "outcome missing 5% against 3.5%, 20,000 rows",
        "feature missing 3% against 2%, 20,000 rows",
        "interaction: only a pair of features tells the arms apart, 20,000 rows",
    ):
        caught = Counter()
        for seed in range(times):
            caught.update(check(*planted(fault, seed), random_state=seed).warnings)
        print(f"{fault}: warnings in {times} runs: {dict(caught)}")


if __name__ == "__main__":
    main()
