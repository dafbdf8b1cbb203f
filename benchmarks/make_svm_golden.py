"""Solve the tests' problems with clarabel (and cvxopt) and keep the answers: tests/golden/svm.json.

PYTHONPATH=src:tests python benchmarks/make_svm_golden.py          # needs clarabel and cvxopt
PYTHONPATH=src:tests python benchmarks/make_svm_golden.py --check  # hundreds of problems, nothing written
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from svm_rivals import by_clarabel, by_cvxopt

from naive.svm import KINDS, margin_problem
from upturn.svm._problem import MarginProblem
from upturn.svm._solve import solve

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden" / "svm.json"


def check(seeds, powers):
    """Compare with clarabel on every kind of problem: objective to 1e-7, w to what a gap of 1e-8 allows."""
    worst, count, worse_rival, refused = 0.0, 0, 0, 0
    for kind in KINDS:
        for seed in range(seeds):
            for power in powers:
                data = margin_problem(seed, kind)
                ours = solve(MarginProblem(power=power), data)
                assert ours.gap <= 1e-8, (kind, seed, power, ours.gap)
                try:
                    value, w = by_clarabel(data, power)
                except KeyboardInterrupt:
                    raise
                except BaseException:  # clarabel panics on some of them, which is no Exception
                    refused += 1
                    continue
                excess = (ours.objective - value) / max(abs(value), 1e-12)
                worse_rival += excess < -1e-7
                assert excess <= 1e-7, (kind, seed, power, excess)
                if abs(excess) <= 1e-7:
                    room = np.sqrt(2e-7 * max(value, 1e-12)) + 1e-6
                    assert np.linalg.norm(ours.coef - w) <= room, (
                        kind,
                        seed,
                        power,
                        np.linalg.norm(ours.coef - w),
                        room,
                    )
                    worst = max(worst, abs(excess))
                count += 1
    print(f"clarabel: {count} problems, largest relative difference where both converged {worst:.1e};")
    print(f"  {worse_rival} where clarabel's objective is worse by more than 1e-7, {refused} it failed on")
    worst, count, worse_rival = 0.0, 0, 0
    for kind in KINDS:
        if kind == "one-sided":
            continue
        for seed in range(seeds):
            data = margin_problem(seed, kind)
            ours = solve(MarginProblem(), data)
            try:
                value, _ = by_cvxopt(data)
            except (ArithmeticError, ValueError, np.linalg.LinAlgError):
                continue
            excess = (ours.objective - value) / max(abs(value), 1e-12)
            worse_rival += excess < -1e-7
            assert excess <= 1e-7, (kind, seed, excess)
            if abs(excess) <= 1e-7:
                worst = max(worst, abs(excess))
            count += 1
    print(f"cvxopt: {count} problems, largest difference {worst:.1e}; worse by more than 1e-7 on {worse_rival}")


def write():
    """A few problems of every kind, the objective of clarabel where it converged."""
    rows = []
    for kind in KINDS:
        if kind == "one-sided":
            continue
        for seed in range(3):
            for power in (1.0, 1.5, 2.0):
                data = margin_problem(seed, kind)
                try:
                    value, w = by_clarabel(data, power, 1e-10)
                except KeyboardInterrupt:
                    raise
                except BaseException:
                    continue
                bound = solve(MarginProblem(power=power), data).dual_bound
                if value - bound <= 3e-7 * abs(value):  # clarabel itself is close to optimal
                    rows.append({"kind": kind, "seed": seed, "power": power, "objective": value, "w": w.tolist()})
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(json.dumps(rows, indent=0))
    print(f"{len(rows)} problems in {GOLDEN.name}")


if __name__ == "__main__":
    if "--check" in sys.argv:
        check(15, (1.0, 1.2, 1.5, 2.0))
    else:
        write()
