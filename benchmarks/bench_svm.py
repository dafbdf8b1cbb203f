"""Speed of the SVM family beside general solvers, one thread each, everything in one run.

    python benchmarks/bench_svm.py [--quick] [--json FILE]
    python benchmarks/bench_svm.py --fuzz 200 [--json FILE]

The second form fits awkward tables instead, with p = 1 or --power: 10,000 to 1,000,000 rows, success rates from .1% to 50%, arms as unequal as 200 to 1, columns of 0
and 1 that are copies of each other, with the margin band and without. It counts the fits that are not certified to 1e-8.

Rivals (clarabel, cvxopt) are optional: rows that need a missing one are skipped. UPTURN_DATA adds the Hillstrom grid.
Times are CPU seconds. A ratio is the rival's time divided by ours on the same problem; ours is the minimum of several runs, all certified
to a relative gap of 1e-8.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from threadpoolctl import threadpool_limits

from upturn.svm import UpliftSVM, UpliftSVMCV, VanishingWarning, _pairwise
from upturn.svm._energy import EnergyTerm, signed_weights
from upturn.svm._problem import MarginData, MarginProblem
from upturn.svm._solve import solve

RESULTS: list[dict[str, object]] = []


def timed(function, repeats=3):
    best, value = np.inf, None
    for _ in range(repeats):
        start = time.process_time()  # one thread each, so CPU time is fair and other work on the machine matters less
        value = function()
        best = min(best, time.process_time() - start)
    return best, value


def report(job, ours, rival=None, theirs=None, aim=None, note=""):
    row = {"job": job, "seconds": ours, "rival": rival, "rival_seconds": theirs, "aim": aim, "note": note}
    line = f"{job:<34} {ours:>9.4f} s"
    if theirs is not None:
        row["ratio"] = theirs / ours
        line += f"   {rival:<26} {theirs:>9.3f} s   ratio {theirs / ours:>7.1f}" + (f" (aim {aim})" if aim else "")
    print(line + (f"   {note}" if note else ""), flush=True)
    RESULTS.append(row)


def rows(n, m, ratio=1.3, C=1.0, seed=0, lean=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    z = np.where(rng.random(n) < 1 / (1 + np.exp(-lean * X[:, 0] - 0.3 * X[:, 1] - 0.1)), 1.0, -1.0)
    return MarginData(X, z, C * np.stack([np.where(z > 0, 1.0, ratio), np.where(z > 0, ratio, 1.0)]))


def available(name):
    return importlib.util.find_spec(name) is not None


def check(found, value, tolerance=1e-6):
    assert found.gap <= 1e-8, found.gap
    assert found.objective <= value * (1 + tolerance), (found.objective, value)


def l1():
    from svm_rivals import by_clarabel, by_cvxopt

    data = rows(64_000, 10)
    ours, found = timed(lambda: solve(MarginProblem(), data), 5)
    if available("cvxopt"):
        theirs, (value, _) = timed(lambda: by_cvxopt(data), 1)
        check(found, value)
        report("L1 64,000 x 10", ours, "cvxopt, dissertation's KKT", theirs, 25)
    data = rows(10_000, 50)
    ours, found = timed(lambda: solve(MarginProblem(), data), 5)
    if available("clarabel"):
        theirs, (value, _) = timed(lambda: by_clarabel(data, 1.0, 1e-8), 1)
        check(found, value)
        report("L1 10,000 x 50", ours, "clarabel", theirs, 40)


def lp():
    from svm_rivals import by_clarabel

    data = rows(10_000, 10)
    for power in (1.2, 1.5, 2.0):
        ours, found = timed(lambda power=power: solve(MarginProblem(power=power), data), 5)
        if available("clarabel"):
            theirs, (value, _) = timed(lambda power=power: by_clarabel(data, power, 1e-8), 1)
            check(found, value)
            report(f"Lp p={power} 10,000 x 10", ours, "clarabel", theirs, 100)


def large():
    data = rows(1_000_000, 50)
    w = np.ones(50)
    one_pass, _ = timed(lambda: data.X @ w, 5)
    ours, found = timed(lambda: solve(MarginProblem(), data), 3)
    assert found.gap <= 1e-8
    report("L1 1,000,000 x 50", ours, "40 passes over X", 40 * one_pass, "0.5 or more")


def differential(quick):
    rng = np.random.default_rng(0)
    n, m = 64_000, 50
    X, treated = rng.normal(size=(n, m)), rng.random(n) < 0.5
    y = rng.random(n) < 1 / (1 + np.exp(-(0.5 * X[:, 1] + treated * X[:, 0])))
    kinds = [np.flatnonzero(mask) for mask in (treated & y, treated & ~y, ~treated & ~y, ~treated & y)]
    for C in (1e-7, 1e-6) if quick else (1e-7, 1e-6, 1e-5, 1e-4):  # the paper tunes over 1e-5 .. 10
        groups = (_pairwise.PairGroup(*kinds[:2], C), _pairwise.PairGroup(*kinds[2:], C))
        data = _pairwise.PairData(X, np.ones(n), groups)
        ours, found = timed(lambda data=data: _pairwise.solve(data), 3)
        assert found.gap <= 1e-8
        theirs, (value, gap, planes) = timed(lambda data=data: one_slack(data, 1e-5, 60.0), 1)
        assert found.objective <= value * (1 + 1e-8)
        note = f"{planes} planes, gap {gap:.0e}; ours {found.gap:.0e}"
        report(f"SVM-upl 64,000 x 50, C={C:g}", ours, "one-slack cutting plane", theirs, 20, note)


def one_slack(data, tol, patience):
    """Joachims' one-slack cutting plane: a plane an iteration, and a small QP over all planes so far."""
    from cvxopt import matrix, solvers

    start = time.process_time()
    w, planes, offsets, best = np.zeros(data.X.shape[1]), [], [], np.inf
    while True:
        value, slope = _pairwise.objective(data, w)
        best = min(best, value)
        plane = slope - w
        planes.append(plane)
        offsets.append(value - 0.5 * float(w @ w) - float(plane @ w))
        G, c = np.array(planes), np.array(offsets)
        count = len(c)
        scale = max(1.0, np.abs(c).max())  # the dual over the simplex: max cᵀλ - ½ ‖Gᵀλ‖²
        found = solvers.qp(
            matrix(G @ G.T / scale), matrix(-c / scale), matrix(-np.eye(count)), matrix(np.zeros(count)),
            matrix(np.ones((1, count))), matrix(1.0),
            options={"show_progress": False, "abstol": 1e-10, "reltol": 1e-9, "feastol": 1e-9},
        )  # fmt: skip
        weight = np.maximum(np.array(found["x"]).ravel(), 0.0)
        weight /= weight.sum()
        w = -(G.T @ weight)
        bound = float(c @ weight) - 0.5 * float(w @ w)
        gap = (best - bound) / best
        if gap <= tol or time.process_time() - start > patience:
            return best, gap, count


def small():
    rng = np.random.default_rng(0)
    X, treatment = rng.normal(size=(150, 10)), rng.integers(0, 2, 150)
    y = (rng.random(150) < 0.5 + 0.4 * treatment * np.tanh(2 * X[:, 0])).astype(int)
    model = UpliftSVM(ratio=1.2, p=1.0)
    ours, _ = timed(lambda: model.fit(X, y, treatment), 200)
    report("UpliftSVM.fit 150 x 10", ours, note="aim 0.003")
    data = rows(150, 10)
    ours, _ = timed(lambda: solve(MarginProblem(), data), 200)
    report("  the solver alone", ours)
    for n, m in ((125, 5), (375, 10), (750, 30)):
        X, treatment = rng.normal(size=(n, m)), rng.integers(0, 2, n)
        y = (rng.random(n) < 0.5 + 0.3 * treatment * np.tanh(2 * X[:, 0])).astype(int)
        ours, _ = timed(lambda X=X, y=y, t=treatment: UpliftSVMCV(p=1.0, random_state=0).fit(X, y, t), 3)
        report(f"  a fit of a grid, {n * 4 // 5} x {m}", ours / 301, note="301 fits and their AUUC")


def balanced(quick):
    n, m = (16_000 if quick else 64_000), 10
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, m))
    treated = rng.random(n) < 1 / (1 + np.exp(-X[:, 0]))
    y = rng.random(n) < 1 / (1 + np.exp(-(0.5 * X[:, 1] + treated * X[:, 2])))
    z = np.where(y == treated, 1.0, -1.0)
    cost = np.tile(1.0 / np.where(treated, treated.sum(), (~treated).sum()), (2, 1))
    data = MarginData(X, z, cost)
    for exponent in (1.0, 1.1):
        term = EnergyTerm(signed_weights(treated), exponent, 10.0)
        ours, found = timed(lambda term=term: solve(MarginProblem(), data, term), 2)
        assert found.gap <= 1e-8
        from upturn.svm._stochastic import average

        theirs, slow = timed(lambda term=term: average(data, term, 1_000_000 // n, np.uint64(0)), 1)
        excess = (slow.objective - found.objective) / found.objective
        note = f"asgd's objective is {excess:.0e} too high"
        report(f"Szekely exponent={exponent} {n:,} x {m}", ours, "asgd, 1,000,000 steps", theirs, note=note)


def grid(quick):
    """C x ratio with five folds on Hillstrom's women's mailing, warm against cold."""
    folder = os.environ.get("UPTURN_DATA")
    if not folder or not available("pandas"):
        return
    import pandas as pd

    frame = pd.read_csv(os.path.join(folder, "hillstrom", "hillstrom.csv.gz"))
    frame = frame[frame["segment"] != "Mens E-Mail"]
    X = frame.drop(columns=["segment", "visit", "conversion", "spend"])
    y, treatment = frame["visit"].to_numpy(), (frame["segment"] == "Womens E-Mail").astype(int).to_numpy()
    Cs, ratios = (10.0 ** np.arange(-2, 4), np.linspace(1, 2.5, 10))
    if quick:
        Cs, ratios = Cs[1:4:2], ratios[::4]
    model = UpliftSVMCV(Cs=Cs, ratios=ratios, p=1.0, random_state=0)
    warm, _ = timed(lambda: model.fit(X, y, treatment), 1)
    best = model.best_score_
    cold_model = UpliftSVMCV(Cs=Cs, ratios=ratios, p=1.0, random_state=0)
    cold_model.warm_start_folds = False
    cold, _ = timed(lambda: cold_model.fit(X, y, treatment), 1)
    assert abs(best - cold_model.best_score_) < 5e-4, (best, cold_model.best_score_)
    fits = len(Cs) * len(ratios) * 5
    report(
        f"Hillstrom grid {len(Cs)}x{len(ratios)}, 5 folds",
        warm,
        "cold starts",
        cold,
        note=f"{fits} fits, AUUC {best:.4f}",
    )


def awkward(case, seed):
    """A table for the fuzz, with its penalties: rare outcomes, unequal arms, collinear columns."""
    rng = np.random.default_rng([seed, case])
    n = int(10 ** rng.uniform(4, 5.5)) if case % 20 else 1_000_000
    rate, share = 10 ** rng.uniform(-3, -0.3), float(rng.choice([0.5, 0.5, 0.1, 0.01, 0.005]))
    m = int(rng.integers(3, 12))
    X = rng.normal(size=(n, m))
    for j in range(m):
        if rng.random() < 0.5:
            X[:, j] = rng.integers(0, rng.integers(2, 6), n)
    collinear = bool(rng.random() < 0.5)
    if collinear:
        first = (X[:, 0] > 0).astype(float)
        X = np.column_stack([X, first, 1 - first, first])
    # Where the arms can be told by the columns, so can the labels, and w is far from 0 even where they are 200 to 1.
    lean, change = float(rng.choice([0.0, 0.0, 1.0, 4.0])), float(rng.choice([0.8, 5.0]))
    treatment = (
        rng.random(n) < 1 / (1 + np.exp(-np.log(share / (1 - share)) - lean * (X[:, 2] - X[:, 2].mean())))
    ).astype(int)
    y = (rng.random(n) < np.clip(rate * (1 + change * treatment * np.tanh(X[:, 1])), 0, 1)).astype(int)
    about = {
        "case": case,
        "rows": n,
        "columns": X.shape[1],
        "rate": float(y.mean()),
        "treated": float(treatment.mean()),
    }
    about |= {
        "collinear": collinear,
        "lean": lean,
        "C": float(f"{10 ** rng.uniform(-2, 2):.3g}"),
        "ratio": float(rng.choice([1.0, 1.2, 2.0])),
    }
    return X, y, treatment, about


def fuzz(cases, seed, power):
    """Fit awkward tables, each as it comes and, up to 100,000 rows, also without the band."""
    from upturn.svm import _band

    normal = _band.SMALL
    for case in range(cases):
        X, y, treatment, about = awkward(case, seed)
        if y.min() == y.max() or treatment.min() == treatment.max():
            continue
        for band in (True, False) if len(y) <= 100_000 and power == 1.0 else (True,):
            _band.SMALL = normal if band else len(y)
            start = time.process_time()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                warnings.simplefilter("ignore", VanishingWarning)
                model = UpliftSVM(C=about["C"], ratio=about["ratio"], p=power).fit(X, y, treatment)
            used = time.process_time() - start
            row = about | {
                "band": band,
                "gap": float(f"{model.dual_gap_:.2g}"),
                "solver": model.solver_,
                "iterations": model.n_iter_,
            }
            row |= {"vanishing": model.vanishing_}
            row |= {"seconds": round(used, 2), "certified": model.dual_gap_ <= 1e-8}
            if not row["certified"]:
                row["warning"] = "; ".join(str(one.message) for one in caught)
                print("not certified:", row, flush=True)
            RESULTS.append(row)
    _band.SMALL = normal
    bad, zero = sum(not row["certified"] for row in RESULTS), sum(row["vanishing"] for row in RESULTS)
    slowest = max(RESULTS, key=lambda row: row["seconds"])
    print(
        f"{len(RESULTS)} fits, {bad} not certified to 1e-8, w = 0 in {zero}; the slowest took {slowest['seconds']} s for "
        f"{slowest['rows']:,} rows"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="smaller problems where rivals are slow")
    parser.add_argument("--json", help="also write the results to this file")
    parser.add_argument("--only", help="one of l1, lp, large, differential, small, balanced, grid")
    parser.add_argument(
        "--fuzz", type=int, metavar="N", help="fit N awkward tables instead, and count what is not certified"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the awkward tables")
    parser.add_argument("--power", type=float, default=1.0, help="p of the fits to awkward tables")
    options = parser.parse_args()
    jobs = {
        "small": small,
        "l1": l1,
        "lp": lp,
        "large": large,
        "differential": lambda: differential(options.quick),
        "balanced": lambda: balanced(options.quick),
        "grid": lambda: grid(options.quick),
    }
    with threadpool_limits(1):
        if options.fuzz:
            fuzz(options.fuzz, options.seed, options.power)
        for name, job in jobs.items():
            if not options.fuzz and options.only in (None, name):
                job()
    if options.json:
        with open(options.json, "w") as file:
            file.write("[\n" + ",\n".join(" " + json.dumps(row) for row in RESULTS) + "\n]\n")


if __name__ == "__main__":
    main()
