"""The 50-dimensional model of the UCTS paper (section III-B, Figure 4): expected response against training size.

    python experiments/ucts_50d.py [--sizes 500,2000,...] [--repeats 10] [--trees 400] [--rivals rf,knn,ada,svr]
                                   [--min-split 25,100,400] [--most-rows N] [--figure FILE.png]

The data are those of ``upturn.datasets.simulate_zhao_50d``, whose f is of the paper's form and at its level: a fixed arm
earns 5.185, the best rule 5.785. ``min_split`` is chosen on 30% of the training rows by the expected response of the recommended arms, then the
forest is fitted on all of them. Rules are judged by the true means on 20,000 fresh points. ``--most-rows`` saves time at large
sizes: repeats times rows per arm stay below it, with at least one repeat.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from upturn.datasets import simulate_zhao_50d
from upturn.trees import CTSForest, UCTSForest


def tuned(make, grid, X, y, arm, rng):
    """Choose min_split on 30% of the rows, then fit on all of them."""
    if len(grid) > 1:
        held = rng.random(len(y)) < 0.3
        scores = []
        for min_split in grid:
            rule = make(min_split).fit(X[~held], y[~held], arm[~held]).recommend(X[held])
            scores.append(np.where(rule == arm[held], 4.0 * y[held], 0.0).mean())  # every arm has probability 1/4
        grid = [grid[int(np.argmax(scores))]]
    return make(grid[0]).fit(X, y, arm), grid[0]


def separate_models(name, seed):
    from sklearn.ensemble import AdaBoostRegressor, RandomForestRegressor
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.svm import SVR

    return {
        "rf": lambda: RandomForestRegressor(100, max_features=0.5, min_samples_leaf=5, n_jobs=2, random_state=seed),
        "knn": lambda: KNeighborsRegressor(50),
        "ada": lambda: AdaBoostRegressor(n_estimators=50, random_state=seed),
        "svr": lambda: SVR(),
    }[name]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="500,2000,4000,8000,16000,32000")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--trees", type=int, default=400)
    parser.add_argument("--rivals", default="rf,knn")
    parser.add_argument("--rival-most", type=int, default=32000, help="largest size rivals are trained on")
    parser.add_argument("--min-split", default="25,100,400")
    parser.add_argument("--most-rows", type=int, default=1_000_000, help="repeats x rows per arm, at most")
    parser.add_argument("--json")
    parser.add_argument("--figure")
    options = parser.parse_args()
    grid = [float(value) for value in options.min_split.split(",")]
    judges = simulate_zhao_50d(20_000, random_state=1)
    fresh, truth = judges.X, judges.details["response"]
    print(f"a fixed arm {truth.mean():.3f}, the best rule {truth.max(axis=1).mean():.3f}")
    results: dict[str, dict[int, list[float]]] = {}
    for size in map(int, options.sizes.split(",")):
        for repeat in range(max(1, min(options.repeats, options.most_rows // size))):
            rng = np.random.default_rng([size, repeat])
            data = simulate_zhao_50d(4 * size, random_state=rng)
            X, y, arm = data.X, data.y, data.treatment
            assert len(np.unique(y)) == len(y)  # real-valued: nothing to binarise
            runs = {
                "UCTS": lambda m, seed=repeat: UCTSForest(
                    options.trees, min_samples_split=m, random_state=seed, n_jobs=2
                ),
                "CTS": lambda m, seed=repeat: CTSForest(
                    options.trees, min_samples_split=m, min_share=0.0, random_state=seed, n_jobs=2
                ),
            }
            for name, make in runs.items():
                start = time.perf_counter()
                model, chosen = tuned(make, grid, X, y, arm, rng)
                earned = truth[np.arange(len(fresh)), model.recommend(fresh)].mean()
                results.setdefault(name, {}).setdefault(size, []).append(float(earned))
                leaves = model.nodes_.is_leaf.sum() / options.trees
                print(f"{size:6d} {name:8s} {earned:.4f}  min_split {chosen:g}, {leaves:.0f} leaves a tree, "
                      f"{time.perf_counter() - start:.0f} s", flush=True)  # fmt: skip
            for name in filter(None, options.rivals.split(",")):
                if size > options.rival_most:
                    continue
                start = time.perf_counter()
                make = separate_models(name, repeat)
                predicted = np.column_stack([make().fit(X[arm == t], y[arm == t]).predict(fresh) for t in range(4)])
                earned = truth[np.arange(len(fresh)), predicted.argmax(axis=1)].mean()
                results.setdefault(f"SMA-{name}", {}).setdefault(size, []).append(float(earned))
                print(f"{size:6d} SMA-{name:4s} {earned:.4f}  {time.perf_counter() - start:.0f} s", flush=True)
        if options.json:  # after every size: the last one takes longest
            with open(options.json, "w") as file:
                json.dump(results, file, indent=2)
        if options.figure:
            draw_figure(results, truth, options.figure)
    print(f"{'rows per arm':<14}" + "".join(f"{size:>9}" for size in sorted(results["UCTS"])))
    for name, by_size in results.items():
        print(f"{name:<14}" + "".join(f"{np.mean(by_size[size]):>9.4f}" for size in sorted(by_size)))


def draw_figure(results, truth, path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 4.5))
    for name, by_size in results.items():
        sizes = sorted(by_size)
        mean = [np.mean(by_size[size]) for size in sizes]
        error = [1.96 * np.std(by_size[size]) / np.sqrt(len(by_size[size])) for size in sizes]
        axis.errorbar(sizes, mean, yerr=error, marker="o", capsize=3, label=name)
    axis.axhline(truth.mean(), color="0.5", linestyle="--", label="a fixed arm")
    axis.axhline(truth.max(axis=1).mean(), color="k", linestyle="--", label="the best rule")
    axis.set_xscale("log")
    axis.set_xlabel("training rows per arm")
    axis.set_ylabel("expected response")
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
