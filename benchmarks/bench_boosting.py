"""101 boosted stumps on Hillstrom (women's mailing, visit), beside the same boosting around causalml's tree; and what
bagging costs beyond a forest of as many trees of the same height, in prediction and in the file.

    UPTURN_DATA=... python benchmarks/bench_boosting.py [--rounds 101] [--rival-rounds 9]

causalml's tree takes no weights, so its loop draws a sample of the rows in every round, which costs it little beside the
tree itself. Its time is that of its fastest round times the number of rounds; upturn's is the whole fit, tables and all.
Predictions are of 50,000 rows of 20 numbers, bagging and forest in turn.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from upturn.boosting import UpliftBagging, UpliftBoosting
from upturn.datasets import load_hillstrom
from upturn.trees import UpliftForest


def best_of(function, repeats=9):
    """Least CPU seconds: everything is on one thread, and a busy machine disturbs less."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def causalml_round(X, y, labels, rng):
    from causalml.inference.tree import UpliftTreeClassifier

    rows = rng.integers(0, len(y), len(y))
    tree = UpliftTreeClassifier(
        max_depth=1, evaluationFunction="ED", control_name="control", n_reg=0, min_samples_leaf=1
    )
    tree.fit(X[rows], labels[rows], y[rows])
    return tree.predict(X)


def beside_a_forest(members):
    """Seconds of prediction and bytes of the file, of bagging, boosting and a forest of as many trees."""
    rng = np.random.default_rng(0)
    X, treatment = rng.normal(size=(50_000, 20)), rng.integers(0, 2, 50_000)
    y = rng.random(50_000) < 0.3 + 0.1 * treatment * (X[:, 0] > 0)
    tree = {"max_depth": 3, "max_features": None, "min_samples_split": 2, "min_samples_leaf": 1, "min_samples_arm": 1}
    models = {
        "forest": UpliftForest(members, normalize=True, random_state=0, **tree),
        "bagging": UpliftBagging(n_estimators=members, random_state=0),
        "boosting": UpliftBoosting(n_estimators=members, random_state=0),
    }
    answers = {name: {"seconds": np.inf} for name in models}
    for model in models.values():
        model.fit(X, y, treatment).predict(X[:10])  # compiles
    for _ in range(7):
        for name, model in models.items():
            answers[name]["seconds"] = min(answers[name]["seconds"], best_of(lambda one=model: one.predict(X), 1))
    with tempfile.TemporaryDirectory() as folder:
        for name, model in models.items():
            model.save(Path(folder) / name)
            answers[name]["bytes"] = (Path(folder) / name).stat().st_size
    forest = answers["forest"]
    for name, found in answers.items():
        found |= {what + "_ratio": found[what] / forest[what] for what in ("seconds", "bytes")}
        print(
            f"{name} of {members}: predicts in {found['seconds']:.3f} s, {found['seconds_ratio']:.2f}x the forest's, from "
            f"{found['bytes'] / 1e6:.2f} MB, {found['bytes_ratio']:.2f}x"
        )
    return answers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--rival-rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "results" / "boosting.json")
    options = parser.parse_args()
    data = load_hillstrom(outcome="visit", arms="women")
    y, treatment = np.asarray(data.y), np.asarray(data.treatment)
    model = UpliftBoosting(n_estimators=options.rounds, random_state=0)
    model.fit(data.X, y, treatment)  # compiles
    ours = best_of(lambda: model.fit(data.X, y, treatment))
    print(f"upturn: {options.rounds} stumps on {len(y):,} rows x {data.X.shape[1]} columns in {ours:.3f} s")
    result = {"rows": len(y), "rounds": options.rounds, "upturn": ours}
    try:
        import causalml  # noqa: F401
    except ImportError:
        print("causalml is not installed: no comparison")
    else:
        numeric = data.X.apply(lambda column: column.astype("category").cat.codes if column.dtype == object else column)
        numeric = numeric.apply(lambda column: column.cat.codes if hasattr(column, "cat") else column)
        X, rng = numeric.to_numpy(dtype=float), np.random.default_rng(0)
        labels = np.where(treatment == model.control_, "control", "treated")
        theirs = best_of(lambda: causalml_round(X, y, labels, rng), options.rival_rounds) * options.rounds
        result |= {"causalml": theirs, "ratio": theirs / ours}
        print(f"causalml's tree in the same loop: {theirs:.1f} s for as many rounds, {theirs / ours:.0f}x as long")
    result["beside_a_forest"] = beside_a_forest(options.rounds)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
