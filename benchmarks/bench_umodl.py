"""UMODL beside kuplift, in one run: time, and the cost of what was found, on the same criterion (equation 2) for both.

    python benchmarks/bench_umodl.py [--quick] [--sizes 1000 ...] [--parts feature table sort breaks] [--json FILE]

Times are CPU seconds (the least of a few), of one thread unless said otherwise.

Needs kuplift and its core, the package umodl, in the same environment; without them upturn is timed alone.
"kuplift core" is the time of its C++ program alone (which reads a text file), "kuplift fit" that of its Python class
around it, "kuplift Python" its pure-Python search, tried up to 10,000 rows.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import time
import warnings

import numpy as np
import pandas as pd

from upturn.datasets import simulate_pattern
from upturn.features import UMODLDiscretizer
from upturn.features._cost import interval_prior, part_costs

try:
    import kuplift.optimized_univariate_encoding as kuplift_encoding
    from kuplift import OptimizedUnivariateEncoding
    from kuplift.umodl_search_algorithm import execute_greedy_search_and_post_opt
except ImportError:
    kuplift_encoding = None

PATTERNS = {
    "crenel .8": ("crenel1", 0.8),
    "crenel .6": ("crenel1", 0.6),
    "continuous": ("continuous", 1.0),
    "scissors": ("scissors", 1.0),
}
ROWS = []


def draw(kind, n, seed=0):
    """One feature on [0, 10]; returns x, treatment, y."""
    if kind in PATTERNS:
        pattern, theta = PATTERNS[kind]
        data = simulate_pattern(pattern, n, theta, random_state=seed)
        return data.X[:, 0], data.treatment, data.y
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(0, 10, n), rng.integers(0, 2, n)
    spike = np.floor(20 * x).astype(int) % 40 == 7
    p = {"spikes": np.where(spike & (t == 1), 0.95, 0.2), "noise": np.full(n, 0.3)}[kind]
    return x, t, (rng.random(n) < p).astype(int)


def cost_of(codes, t, y):
    """C(M) of a partition given by the part of each row: equation (2), the better W in each part."""
    parts = int(codes.max()) + 1
    counts = np.bincount(codes * 4 + 2 * t + y, minlength=4 * parts).reshape(parts, 4)
    counts = counts[counts.sum(axis=1) > 0]
    return float(np.minimum(*part_costs(counts, 2, 2)).sum() + interval_prior(len(y), len(counts))[-1])


def cpu_seconds():
    """CPU time of this process and of its finished children: on a shared machine, steadier than the clock."""
    mine, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return mine.ru_utime + mine.ru_stime + children.ru_utime + children.ru_stime


def least_time(repeat, function, *args, clock=cpu_seconds):
    best, result = np.inf, None
    for _ in range(repeat):
        start = clock()
        result = function(*args)
        best = min(best, clock() - start)
    return best, result


class Core:
    """kuplift's C++ program, with the time of the program alone noted on the way."""

    def __init__(self):
        self.seconds = np.inf
        self.run = kuplift_encoding.run_umodl
        kuplift_encoding.run_umodl = self.timed

    def timed(self, *args):
        with open(os.devnull, "w") as null:
            saved = os.dup(1)
            os.dup2(null.fileno(), 1)
            try:
                start = cpu_seconds()
                self.run(*args)
                self.seconds = min(self.seconds, cpu_seconds() - start)
            finally:
                os.dup2(saved, 1)
                os.close(saved)

    def fit(self, frame, t, y):
        model = OptimizedUnivariateEncoding()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(frame, pd.Series(t.astype(str), name="T"), pd.Series(y.astype(str), name="Y"))
        return model.model

    def fit_or_nothing(self, frame, t, y):
        """Return what it found; where it finds nothing at all, its class dies of a KeyError."""
        try:
            return self.fit(frame, t, y)
        except KeyError:
            return {}

    def measure(self, frame, t, y, repeat):
        self.seconds = np.inf
        total, model = least_time(repeat, self.fit_or_nothing, frame, t, y)
        return self.seconds, total, model


def upper_ends(partition):
    return np.array([interval.upper for interval in partition.intervals[:-1]])


def note(**row):
    ROWS.append(row)


def one_feature(sizes):
    print("one feature: CPU seconds, and cost above upturn's (nats, same criterion; not below 0 is the claim)")
    print(f"{'rows':>8} {'pattern':<11}{'upturn':>9}{'core':>9}{'fit':>9}{'Python':>9}   "
          f"{'core/up':>8}{'Py/up':>8}   {'I':>3}{'core I':>7}{'Py I':>6}   {'core cost':>10}{'Py cost':>9}")  # fmt: skip
    core = Core() if kuplift_encoding else None
    for n in sizes:
        for pattern in (*PATTERNS, "spikes"):
            x, t, y = draw(pattern, n)
            repeat = 5 if n <= 100_000 else 2
            ours, model = least_time(repeat, UMODLDiscretizer().fit, x[:, None], y, t)
            mine = cost_of(model.partitions_[0].codes(x), t, y)
            assert abs(mine - model.cost_[0]) < 1e-6 * abs(mine)
            row = {"n": n, "pattern": pattern, "upturn": ours, "intervals": int(model.n_parts_[0]), "cost": mine}
            line = f"{n:8d} {pattern:<11}{ours:9.4f}"
            core_text = python_text = [""] * 4
            if core:
                seconds, total, found = core.measure(pd.DataFrame({"x": x}), t, y, 2 if n <= 100_000 else 1)
                ends = upper_ends(found["x"]) if "x" in found else np.array([])
                theirs = cost_of(np.searchsorted(ends, x, side="right"), t, y) - mine
                row |= {"core": seconds, "fit": total, "core_intervals": len(ends) + 1, "core_cost": theirs}
                core_text = [
                    f"{seconds:9.4f}{total:9.4f}",
                    f"{seconds / ours:8.1f}",
                    f"{len(ends) + 1:7d}",
                    f"{theirs:10.3f}",
                ]
                if n <= 10_000:
                    frame = pd.DataFrame({"x": x, "T": t, "Y": y})
                    start = cpu_seconds()
                    try:
                        with contextlib.redirect_stdout(io.StringIO()):
                            _, bounds, *_ = execute_greedy_search_and_post_opt(frame)
                        seconds = cpu_seconds() - start
                        inner = np.array(bounds[:-1], dtype=float)
                        theirs = cost_of(np.searchsorted(inner, x, side="left"), t, y) - mine
                        row |= {"python": seconds, "python_intervals": len(bounds), "python_cost": theirs}
                        python_text = [
                            f"{seconds:9.3f}",
                            f"{seconds / ours:8.0f}",
                            f"{len(bounds):6d}",
                            f"{theirs:9.3f}",
                        ]
                    except Exception as error:
                        python_text = [f"{type(error).__name__[:9]:>9}", " " * 8, " " * 6, " " * 9]
                else:
                    python_text = [" " * 9, " " * 8, " " * 6, " " * 9]
            print(f"{line}{core_text[0]}{python_text[0]}   {core_text[1]}{python_text[1]}   {model.n_parts_[0]:3d}"
                  f"{core_text[2]}{python_text[2]}   {core_text[3]}{python_text[3]}", flush=True)  # fmt: skip
            note(kind="feature", **row)


def table(n=10_000, p=36):
    rng = np.random.default_rng(0)
    t = rng.integers(0, 2, n)
    X = rng.normal(size=(n, p))
    logit = -1 + X[:, :4].sum(axis=1) * 0.5 + t * (0.3 + X[:, 4] - X[:, 5] ** 2 + np.sin(3 * X[:, 6]))
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    print(f"a table of {p} features x {n:,} rows: CPU seconds")
    one, model = least_time(5, UMODLDiscretizer().fit, X, y, t)
    wall1, _ = least_time(5, UMODLDiscretizer().fit, X, y, t, clock=time.perf_counter)
    wall2, _ = least_time(5, UMODLDiscretizer(n_jobs=2).fit, X, y, t, clock=time.perf_counter)
    print(
        f"  upturn {one:.3f}; by the clock {wall1:.3f}, on two threads {wall2:.3f}; kept {(model.n_parts_ > 1).sum()}"
    )
    row = {"upturn": one, "clock": wall1, "clock_two_threads": wall2}
    if kuplift_encoding:
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(p)])
        core, fit, found = Core().measure(frame, t, y, 3)
        print(f"  kuplift core {core:.3f} ({core / one:.1f}x), kuplift fit {fit:.3f} ({fit / one:.1f}x)")
        above = [
            cost_of(np.searchsorted(upper_ends(found[f"x{j}"]), X[:, j], side="right"), t, y) - model.cost_[j]
            if f"x{j}" in found
            else model.null_cost_[j] - model.cost_[j]
            for j in range(p)
        ]
        print(f"  kuplift's cost above upturn's: least {min(above):.4f}, largest {max(above):.3f} nats")
        row |= {"core": core, "fit": fit, "least_excess": min(above), "largest_excess": max(above)}
    note(kind="table", n=n, p=p, **row)


def many_rows(n):
    print(f"{n:,} rows of one feature: CPU seconds")
    for pattern in ("crenel .8", "continuous", "noise"):
        x, t, y = draw(pattern, n)
        argsort, _ = least_time(2, np.argsort, x)
        sort, _ = least_time(2, np.sort, x)
        ours, model = least_time(2, UMODLDiscretizer().fit, x[:, None], y, t)
        print(f"  {pattern:<11} upturn {ours:.2f}, I = {model.n_parts_[0]}; argsort {argsort:.2f} ({ours / argsort:.2f}x), "
              f"sort {sort:.2f} ({ours / sort:.1f}x)", flush=True)  # fmt: skip
        note(kind="sort", n=n, pattern=pattern, upturn=ours, argsort=argsort, sort=sort)


def breaks():
    print("where kuplift breaks")
    rng = np.random.default_rng(0)
    x, t, y = draw("crenel .8", 2000)
    cases = {
        "noise only": (rng.normal(size=2000), t, rng.integers(0, 2, 2000)),
        "fewer than 1,000 distinct values": (np.round(x, 1), t, y),
        "NaN in X": (np.where(rng.random(2000) < 0.1, np.nan, x), t, y),
        "three arms": (x, np.where(t == 1, rng.integers(1, 3, 2000), 0), y),
        "real-valued y": (x, t, rng.normal(size=2000)),
    }
    for name, (a, b, c) in cases.items():
        said = {}
        try:
            model = UMODLDiscretizer().fit(a[:, None], c, b)
            said["upturn"] = f"works, {model.n_parts_[0]} part(s)"
        except ValueError as error:
            said["upturn"] = f"says: {str(error)[:110]}..."
        if kuplift_encoding:
            said["kuplift Python"] = attempt(
                lambda a=a, b=b, c=c: execute_greedy_search_and_post_opt(pd.DataFrame({"x": a, "T": b, "Y": c}))[1]
            )
            said["kuplift core"] = attempt(lambda a=a, b=b, c=c: Core().fit(pd.DataFrame({"x": a}), b, c)["x"].parts)
        print(f"  {name}")
        for who, what in said.items():
            print(f"    {who:<15}{what}")
        note(kind="breaks", case=name, **said)


def attempt(function):
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = function()
        return f"returns {len(found)} part(s)"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:90]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 10,000 rows")
    parser.add_argument("--sizes", nargs="+", type=int, default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--parts", nargs="+", default=["feature", "table", "sort", "breaks"])
    parser.add_argument("--json", help="write the numbers there, too")
    args = parser.parse_args()
    UMODLDiscretizer().fit(draw("crenel .8", 5000)[0][:, None], *draw("crenel .8", 5000)[:0:-1])  # compile
    if "feature" in args.parts:
        one_feature([n for n in args.sizes if n <= 10_000 or not args.quick])
    if "table" in args.parts:
        table()
    if "sort" in args.parts and not args.quick:
        many_rows(10_000_000)
    if "breaks" in args.parts:
        breaks()
    if args.json:
        with open(args.json, "w") as file:
            json.dump(ROWS, file, indent=1)


if __name__ == "__main__":
    main()
