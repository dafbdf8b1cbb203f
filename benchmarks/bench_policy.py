"""Seconds to plan a budget for a million people, beside scipy's HiGHS on the same linear program.

python benchmarks/bench_policy.py [--keep]      # --keep writes benchmarks/policy.json
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from naive.policy import budget_program
from upturn.policy import target


def fastest(function, repeats):
    times = []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        result = function()
        times.append((time.process_time() - cpu, time.perf_counter() - wall))
    return min(times), result


def main():
    rng, lines = np.random.default_rng(0), []
    target([0.1, 0.2], budget=1, cost=1)  # compile
    for n, k in ((20_000, 3), (1_000_000, 1), (1_000_000, 3), (1_000_000, 5)):
        uplift, cost = rng.normal(0.02, 0.1, (n, k)), rng.uniform(0.1, 2, (n, k))
        (cpu, wall), plan = fastest(lambda u=uplift, c=cost, b=0.1 * n: target(u, budget=b, cost=c), 3)
        line = {"rows": n, "arms": k, "cpu seconds": round(cpu, 3), "wall seconds": round(wall, 3)}
        if n <= 20_000:
            (highs, _), (best, _) = fastest(lambda u=uplift, c=cost, b=0.1 * n: budget_program(c, u, b), 1)
            line |= {"HiGHS cpu seconds": round(highs, 2), "times faster": round(highs / cpu)}
            line["gap to the optimum"] = best - plan.predicted_gain
        lines.append(line)
        print(json.dumps(line), flush=True)
    if "--keep" in sys.argv:
        body = ",\n".join(f" {json.dumps(line)}" for line in lines)
        (Path(__file__).resolve().parent / "policy.json").write_text(f"[\n{body}\n]\n")


if __name__ == "__main__":
    main()
