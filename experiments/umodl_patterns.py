"""Section 4 of Rafla et al. (2022): does UMODL find known uplift patterns, and when? Draws its Figures 3, 4 and 5.

    python experiments/umodl_patterns.py [--sizes 40] [--sets 10] [--largest 100000] [--out FOLDER]

For each pattern, size and repetition a sample is drawn, one feature is discretised, and the estimated effect of the
interval is compared with the true one on 10,000 test rows. At the end: how often pure noise is cut at all.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from upturn.datasets import simulate_pattern
from upturn.features import UMODLDiscretizer

THETAS = (1.0, 0.9, 0.8, 0.7, 0.6)
OTHERS = ("trigonometric", "scissors", "continuous")
TEST_ROWS = 10_000


def draw(pattern, n, theta, seed):
    """Draw a sample that has both arms and both outcomes, which ten rows do not always have."""
    for attempt in range(100):
        data = simulate_pattern(pattern, n=n, theta=theta, random_state=np.random.default_rng([seed, attempt, n]))
        if len(np.unique(data.treatment)) == 2 and len(np.unique(data.y)) == 2:
            return data
    raise RuntimeError("no usable sample in 100 draws")


def run(pattern, theta, sizes, sets):
    """Return the number of intervals and the RMSE, each of shape (sizes, sets)."""
    test = simulate_pattern(pattern, n=TEST_ROWS, theta=theta, random_state=10**6)
    intervals, rmse = np.empty((len(sizes), sets), dtype=int), np.empty((len(sizes), sets))
    for i, n in enumerate(sizes):
        for k in range(sets):
            data = draw(pattern, int(n), theta, k)
            model = UMODLDiscretizer(encode="effect").fit(data.X, data.y, data.treatment)
            intervals[i, k] = model.n_parts_[0]
            rmse[i, k] = np.sqrt(np.mean((model.transform(test.X)[:, 0] - test.effect) ** 2))
    return intervals, rmse


def false_alarms(n, features=1000):
    """Count noise features that are cut at all."""
    rng = np.random.default_rng(n)
    treatment, y = rng.integers(0, 2, n), (rng.random(n) < 0.3).astype(int)
    found = 0
    for _ in range(features // 50):
        model = UMODLDiscretizer(n_jobs=-1).fit(rng.normal(size=(n, 50)), y, treatment)
        found += int((model.n_parts_ > 1).sum())
    return found


def draw_crenel(name, number, results, sizes, out):
    fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for theta in THETAS:
        intervals, rmse = results[f"{name} {theta}"]
        left.plot(sizes, intervals.mean(axis=1), marker=".", markersize=4, linewidth=1.2, label=f"θ = {theta:g}")
        right.plot(sizes, rmse.mean(axis=1), marker=".", markersize=4, linewidth=1.2, label=f"θ = {theta:g}")
    left.axhline(10, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
    left.set(xscale="log", xlabel="rows", ylabel="mean number of intervals", ylim=(0, None))
    right.set(xscale="log", xlabel="rows", ylabel="mean RMSE of the effect", ylim=(0, None))
    left.legend(loc="center left")
    fig.suptitle(f"Crenel pattern {number}")
    fig.savefig(out / f"figure{2 + number}_crenel{number}.png", dpi=110)
    plt.close(fig)


def draw_others(results, sizes, out):
    fig, axes = plt.subplots(1, 3, figsize=(15, 4), layout="constrained")
    for ax, name in zip(axes, OTHERS, strict=True):
        intervals, rmse = results[name]
        ax.plot(sizes, rmse.mean(axis=1), color="tab:blue", marker=".", markersize=4, linewidth=1.2)
        ax.set(xscale="log", xlabel="rows", title=f"{name.capitalize()} pattern", ylim=(0, None))
        ax.set_ylabel("mean RMSE of the effect", color="tab:blue")
        twin = ax.twinx()
        twin.plot(sizes, intervals.mean(axis=1), color="tab:green", marker=".", markersize=4, linewidth=1.2)
        twin.set_ylabel("mean number of intervals", color="tab:green")
        twin.set_ylim(0, None)
    fig.savefig(out / "figure5_others.png", dpi=110)
    plt.close(fig)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, default=40)
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--largest", type=int, default=100_000)
    parser.add_argument("--out", type=Path, default=Path("results/umodl_patterns"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    sizes = np.unique(np.geomspace(10, args.largest, args.sizes).round().astype(int))
    jobs = [(name, theta) for name in ("crenel1", "crenel2") for theta in THETAS] + [(name, 1.0) for name in OTHERS]
    results = {}
    print(f"{'pattern':<16}{'first size with 10':>19}{'largest I':>10}   {'at the largest size: I':>22}{'RMSE':>8}")
    for name, theta in jobs:
        intervals, rmse = run(name, theta, sizes, args.sets)
        key = f"{name} {theta}" if name.startswith("crenel") else name
        results[key] = intervals, rmse
        good = (intervals == 10).all(axis=1)
        stable = next((int(sizes[i]) for i in range(len(sizes)) if good[i:].all()), None)
        print(f"{key:<16}{stable or '-':>19}{intervals.max():>10}   {intervals[-1].mean():>22.1f}{rmse[-1].mean():>8.4f}",
              flush=True)  # fmt: skip
    draw_crenel("crenel1", 1, results, sizes, args.out)
    draw_crenel("crenel2", 2, results, sizes, args.out)
    draw_others(results, sizes, args.out)
    alarms = {}
    for n in (100, 1000, 10_000):
        alarms[n] = false_alarms(n)
        print(f"noise, {n:>6} rows: {alarms[n]} of 1,000 features cut", flush=True)
    numbers = {key: {"intervals": i.tolist(), "rmse": r.tolist()} for key, (i, r) in results.items()}
    text = json.dumps({"sizes": sizes.tolist(), "patterns": numbers, "false_alarms": alarms})
    (args.out / "numbers.json").write_text(text)


if __name__ == "__main__":
    main()
