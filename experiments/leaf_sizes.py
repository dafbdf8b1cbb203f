"""How large leaves of ``UpliftForest(inference=True)`` should be: coverage and width of 90% intervals for several fewest rows of an arm in a leaf.

    python experiments/leaf_sizes.py SIMULATION ROWS --leaves 2 4 8 [--seeds 6]     # adds to leaf_sizes.json
    python experiments/leaf_sizes.py --show

On seeds that are kept for choosing (those of ``forest_coverage.py`` below 20). ``trees._inference.rows_in_leaf`` was settled on what is kept here.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from unittest import mock

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.quality.simulated import SIMULATED  # noqa: E402

from upturn.trees import UpliftForest, _forest  # noqa: E402

OUT = HERE / "leaf_sizes.json"
NOMINAL, POINTS, POINTS_SEED = 0.9, 1000, 987_654


def one(simulation, rows, leaf, seed):
    """Coverage and mean width on one experiment."""
    data, points = SIMULATED[simulation][0](rows, 10_000 + seed), SIMULATED[simulation][0](POINTS, POINTS_SEED)
    with mock.patch.object(_forest, "rows_in_leaf", return_value=leaf):
        forest = UpliftForest(inference=True, random_state=seed)
        forest.fit(np.asarray(data.X, float), np.asarray(data.y), np.asarray(data.treatment))
    low, high = forest.predict_interval(np.asarray(points.X, float), interval=NOMINAL)
    effect = np.asarray(points.effect)
    return [round(float(np.mean((low <= effect) & (effect <= high))), 4), float(f"{np.mean(high - low):.4g}")]


def table(found):
    """A line for every simulation and size: coverage and width for each leaf, over the seeds."""
    lines = ["| simulation | rows | seeds | leaves: 90% intervals hold, width |", "|---|---|---|---|"]
    for key, by_leaf in found.items():
        simulation, rows = key.split()
        seeds = {len(runs) for runs in by_leaf.values()}
        cells = (
            f"{leaf}: {np.mean(runs, axis=0)[0]:.1%}, {np.mean(runs, axis=0)[1]:.3g}" for leaf, runs in by_leaf.items()
        )
        lines.append(f"| `{simulation}` | {int(rows):,} | {', '.join(map(str, sorted(seeds)))} | {'; '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("simulation", nargs="?")
    parser.add_argument("rows", nargs="?", type=int)
    parser.add_argument("--leaves", nargs="*", type=int, default=[2, 4, 8])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    found = json.loads(OUT.read_text()) if OUT.exists() else {}
    if options.show:
        print("\n".join(table(found)))
        return
    case = found.setdefault(f"{options.simulation} {options.rows}", {})
    for seed in range(options.seeds):
        for leaf in options.leaves:
            runs = case.setdefault(str(leaf), [])
            if len(runs) == seed:
                runs.append(one(options.simulation, options.rows, leaf, seed))
                body = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
                OUT.write_text(f"{{\n{body}\n}}\n")


if __name__ == "__main__":
    main()
