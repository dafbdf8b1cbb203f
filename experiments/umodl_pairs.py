"""``UMODLSelector(pairs=True)``: how often an interaction that no single feature shows is found, and how often noise is kept.

    python experiments/umodl_pairs.py [--repeats 40] [--out experiments/umodl_pairs.json]

The effect is ±``size`` by the sign of the product of the first two of ten columns (uniform, so neither shows anything alone), or
nothing at all, or a plain effect of the first column. Success without treatment is one half. Also CPU seconds for 50 columns of
20,000 rows.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from upturn.features import UMODLSelector


def simulate(n, kind, size, seed, columns=10):
    rng = np.random.default_rng(seed)
    X, t = rng.uniform(-1, 1, size=(n, columns)), rng.integers(0, 2, n)
    effect = {"product": size * np.sign(X[:, 0] * X[:, 1]), "noise": np.zeros(n), "single": size * (X[:, 0] > 0)}[kind]
    return X, (rng.random(n) < 0.5 + effect * t).astype(int), t


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("experiments/umodl_pairs.json"))
    options = parser.parse_args()
    found = {"repeats": options.repeats, "cases": []}
    for n in (1000, 3000, 10_000):
        for kind, size in (("noise", 0.0), ("product", 0.1), ("product", 0.2), ("single", 0.2)):
            kept = []
            for seed in range(options.repeats):
                X, y, t = simulate(n, kind, size, seed)
                model = UMODLSelector(pairs=True).fit(X, y, t)
                pairs = {tuple(pair) for pair in model.pairs_.tolist()}
                kept.append(((0, 1) in pairs, len(pairs - {(0, 1)}) > 0, bool(model.scores_[:2].min() > 0)))
            right, others, both = np.mean(kept, axis=0)
            case = {"rows": n, "kind": kind, "size": size, "found": right, "other pairs": others, "both kept": both}
            found["cases"].append(case)
            print(case, flush=True)
    X, y, t = simulate(20_000, "product", 0.2, 0, columns=50)
    UMODLSelector(pairs=True).fit(X[:500], y[:500], t[:500])  # compiles
    for pairs in (False, True):
        start = time.process_time()
        UMODLSelector(pairs=pairs).fit(X, y, t)
        found[f"seconds, 50 columns x 20,000 rows, pairs={pairs}"] = round(time.process_time() - start, 2)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(found)


if __name__ == "__main__":
    main()
