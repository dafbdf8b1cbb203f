"""Figures 3 and 4 of the uplift boosting paper: AUUC against ensemble size, and whether its findings hold.

    UPTURN_DATA=... python experiments/boosting_figures.py [--repeats 256] [--jobs 2] [--only veteran colon-death]

For every data set and for trees of height 1 and 3, the data is split 80/20 by arm many times; the three boosting
algorithms, bagging of 0-1 decisions and the base model in both modalities are fitted to the larger part and judged by
AUUC on the smaller one. A round that ends in a restart repeats the value of the round before. Everything is written to
build/boosting/ as it comes (a run with the same number of repeats goes on where it was stopped), and the findings of the
paper's section 4.3 are printed as "holds" or "does not hold".
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from tqdm import tqdm

from upturn.boosting import UpliftBagging, UpliftBoosting
from upturn.datasets import load_bladder, load_burn, load_colon, load_hillstrom, load_hodg, load_veteran
from upturn.metrics import auuc
from upturn.model_selection import uplift_train_test_split
from upturn.trees import UpliftTree

ROUNDS = 101
ALGORITHMS = ("adaboost", "balanced", "forgetting")
DATA = {
    "hillstrom": lambda: load_hillstrom(outcome="visit", arms="women"),
    "burn": load_burn,
    "hodg": load_hodg,
    "bladder": load_bladder,
    "veteran": load_veteran,
    "colon-death": lambda: load_colon(outcome="death", arms="lev"),
    "colon-recurrence": lambda: load_colon(outcome="recurrence", arms="lev"),
    "colon-death-both": lambda: load_colon(outcome="death", arms="both"),
    "colon-recurrence-both": lambda: load_colon(outcome="recurrence", arms="both"),
}
LARGE = {"hillstrom"}  # a sixteenth of the repeats is plenty


def base_tree(height):
    return UpliftTree(max_depth=height, min_samples_split=2, min_samples_leaf=1, min_samples_arm=1)


def by_round(model, scores):
    """AUUC after every round: a restart adds no member, and before the first member there is no ranking."""
    members = np.cumsum(~model.history_["restarted"])
    return np.array([0.0, *scores])[members]


def one_split(data, height, seed):
    warnings.simplefilter("ignore")  # of empty ensembles, which are part of the result
    X, X_test, y, y_test, t, t_test = uplift_train_test_split(
        data.X, data.y, data.treatment, test_size=0.2, stratify="arm", random_state=seed
    )
    result = {}
    for algorithm in ALGORITHMS:
        model = UpliftBoosting(
            base_tree(height), algorithm=algorithm, n_estimators=ROUNDS, ties="none", random_state=seed
        )
        model.fit(X, y, t)
        result[algorithm] = by_round(model, model.staged_score(X_test, y_test, t_test))
        if algorithm == "adaboost":
            result["imbalance"] = model.imbalance_
    bagging = UpliftBagging(base_tree(height), n_estimators=ROUNDS, average="vote", random_state=seed).fit(X, y, t)
    result["bagging"] = np.array(bagging.staged_score(X_test, y_test, t_test))
    effect = base_tree(height).fit(X, y, t).predict(X_test)
    result["base score"] = auuc(y_test, effect, t_test)
    result["base 0-1"] = auuc(y_test, effect > 0, t_test)
    return result


def run(name, height, repeats, jobs, out):
    repeats = max(1, repeats // 16) if name in LARGE else repeats
    kept = out / f"{name}-height-{height}-repeats-{repeats}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    data = DATA[name]()
    splits = Parallel(n_jobs=jobs, return_as="generator")(
        delayed(one_split)(data, height, seed) for seed in range(repeats)
    )
    results = list(tqdm(splits, total=repeats, desc=f"{name}, height {height}"))
    summary = {key: np.mean([result[key] for result in results], axis=0).tolist() for key in results[0]}
    errors = {key: (np.std([r[key] for r in results], axis=0) / np.sqrt(repeats)).tolist() for key in results[0]}
    largest = max(result["imbalance"] for result in results)
    summary = {"mean": summary, "error": errors, "largest imbalance": largest, "n": repeats}
    kept.write_text(json.dumps(summary))
    return summary


def draw(results, height, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = [name for name, h in results if h == height]
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.4 * columns, 3.1 * rows), layout="constrained", squeeze=False)
    styles = {"adaboost": "-", "balanced": "--", "forgetting": "-.", "bagging": ":"}
    colors = {"adaboost": "#0072b2", "balanced": "#d55e00", "forgetting": "#009e73", "bagging": "#000000"}
    for ax in axes.flat[len(names) :]:
        ax.axis("off")
    for ax, name in zip(axes.flat, names, strict=False):
        mean = results[name, height]["mean"]
        for key, style in styles.items():
            ax.plot(range(1, ROUNDS + 1), mean[key], style, color=colors[key], label=key)
        ax.axhline(mean["base score"], color="#cc79a7", lw=1, label="base, score")
        ax.axhline(mean["base 0-1"], color="#999999", lw=1, label="base, 0-1")
        ax.set(title=name, xlabel="rounds", ylabel="AUUC")
    axes.flat[0].legend(fontsize=7, frameon=False)
    figure.suptitle(f"Uplift boosting, Euclidean trees of height {height}")
    figure.savefig(path, dpi=110)


def findings(results):
    """The paper's qualitative findings, each with the numbers behind it."""
    sets = sorted({name for name, _ in results})

    def last(name, height, key):
        value = results[name, height]["mean"][key]
        return value[-1] if isinstance(value, list) else value

    def say(claim, holds, numbers):
        print(f"{'holds' if holds else 'does not hold':>13}: {claim} ({numbers})")

    for name, height in (("veteran", 1), ("colon-death", 3), ("colon-death-both", 3)):
        if (name, height) in results:
            best = max(last(name, height, a) for a in ALGORITHMS)
            base = max(last(name, height, "base score"), last(name, height, "base 0-1"))
            say(f"boosting beats the base on {name}, height {height}", best > base, f"{best:.4f} against {base:.4f}")
    both = [(name, height) for name in sets for height in (1, 3) if (name, height) in results]
    wins = [max(last(*key, "adaboost"), last(*key, "forgetting")) > last(*key, "balanced") for key in both]
    say("AdaBoost or forgetting beats balanced, usually", np.mean(wins) > 0.5, f"{sum(wins)} of {len(wins)}")
    falls = [max(results[key]["mean"]["forgetting"]) - last(*key, "forgetting") for key in both]
    noise = [results[key]["error"]["forgetting"][-1] for key in both]
    steep = [fall > 2 * error for fall, error in zip(falls, noise, strict=True)]
    say(
        "balanced forgetting falls from its best as the ensemble grows, often",
        np.mean(steep) >= 0.5,
        f"by more than two standard errors in {sum(steep)} of {len(steep)}",
    )
    ratios = {key: results[key]["mean"]["imbalance"] for key in both}
    top = sorted(ratios, key=ratios.get, reverse=True)[:4]
    say(
        "AdaBoost is least balanced on hodg, burn and veteran",
        {name for name, _ in top} <= {"hodg", "burn", "veteran"},
        ", ".join(f"{name} height {height}: {ratios[name, height]:.2f}" for name, height in top),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=256)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", choices=list(DATA), default=list(DATA))
    parser.add_argument("--out", type=Path, default=Path("build/boosting"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    results = {
        (name, height): run(name, height, options.repeats, options.jobs, options.out)
        for height in (1, 3)
        for name in options.only
    }
    for height in (1, 3):
        draw(results, height, options.out / f"auuc_height_{height}.png")
    print(
        f"{'data':<24}{'height':>7}{'splits':>7}"
        + "".join(f"{key:>12}" for key in (*ALGORITHMS, "bagging", "base score", "base 0-1", "imbalance"))
    )
    for (name, height), result in results.items():
        mean = result["mean"]
        cells = [mean[a][-1] for a in (*ALGORITHMS, "bagging")] + [
            mean["base score"],
            mean["base 0-1"],
            mean["imbalance"],
        ]
        print(f"{name:<24}{height:>7}{result['n']:>7}" + "".join(f"{cell:>12.4f}" for cell in cells))
    findings(results)


if __name__ == "__main__":
    main()
