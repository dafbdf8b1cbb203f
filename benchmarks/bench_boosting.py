"""101 boosted stumps on Hillstrom (women's mailing, visit), beside the same boosting around causalml's tree.

    UPTURN_DATA=... python benchmarks/bench_boosting.py [--rounds 101] [--rival-rounds 9]

causalml's tree takes no weights, so its loop draws a sample of the rows in every round, which costs it little beside the
tree itself. Its time is that of its fastest round times the number of rounds; upturn's is the whole fit, tables and all.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from upturn.boosting import UpliftBoosting
from upturn.datasets import load_hillstrom


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--rival-rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path("build/bench_boosting.json"))
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
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
