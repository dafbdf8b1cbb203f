"""Has a change slowed a hot kernel down? Base against head, in alternating runs.

    python benchmarks/bench_guard.py BASE_TREE [HEAD_TREE] [--tolerance 0.05] [--runs 21] [--only tree ...]

A tree is a checkout of this repository (``git worktree add ../base main`` makes one); head is the tree of this file
unless given. Two processes, one a tree, stay alive and take turns at each case, so that whatever else the machine does
meets both. A case's ratio is the median, over the runs, of head's processor time divided by base's in the same turn. One
above 1 + tolerance is measured once more, all runs together, and if it stays there the exit status is 1. Each case is a
public call in which one kernel does most of the work, on one thread; compiling comes first and is not counted.
"""

from __future__ import annotations

import argparse
import functools
import gc
import statistics
import sys
import time
import warnings
import zlib
from pathlib import Path

from _measure import BUILD, Companion, write_json

SKIPPED = 77  # for run.py, which knows no base


# --- cases, run in the process of one tree: each makes its data and returns the function that is timed ---


def people(n, p, seed=0, real=False):
    import numpy as np

    rng = np.random.default_rng(seed)
    X, t = rng.normal(size=(n, p)), rng.integers(0, 2, n)
    lean = 0.3 * X[:, 1] + 0.5 * np.tanh(X[:, 0]) * t
    return X, lean + rng.normal(size=n) if real else (rng.random(n) < 1 / (1 + np.exp(-lean))).astype(int), t


def fits(module, name, data, **params):
    """A fit of an estimator; parameters that had another name before are given under the one the tree knows."""
    from importlib import import_module

    from same_bits import make

    model = make(getattr(import_module(f"upturn.{module}"), name), **params)
    return functools.partial(model.fit, *data)


def histograms():
    few = {"n_estimators": 30, "max_depth": 2, "max_features": None, "max_samples": 0.8}
    return fits("trees", "UpliftForest", people(60_000, 12), **few, random_state=0)


def binary_tree():
    return fits("trees", "UpliftTree", people(20_000, 12), max_depth=12, min_samples_arm=5, random_state=0)


def real_tree():
    return fits("trees", "UpliftTree", people(20_000, 12, real=True), max_depth=12, min_samples_arm=5, random_state=0)


def forest_predict():
    X, y, t = people(20_000, 12)
    model = fits("trees", "UpliftForest", (X, y, t), n_estimators=100, random_state=0)()
    return lambda: model.predict(X)


def encode():
    X, y, t = people(500_000, 12)
    stump = fits("trees", "UpliftTree", (X[:5000], y[:5000], t[:5000]), max_depth=1, random_state=0)()
    return lambda: stump.predict(X)


def ranking():
    from upturn import metrics

    X, y, t = people(400_000, 2)
    return lambda: metrics.auuc(y, X[:, 0], t)


def bootstrap():
    from same_bits import make

    from upturn import metrics

    X, y, t = people(20_000, 2)
    area = functools.partial(metrics.auuc, y, X[:, 0], t)
    return lambda: make(area, interval=0.9, n_bootstrap=100, random_state=0)


def interior_point():
    return fits("svm", "UpliftSVM", people(20_000, 10), p=1.0, ratio=1.3)


def pairs():
    return fits("svm", "UpliftSVM", people(8_000, 5), p=1.2, balance=1.0)


def umodl():
    return fits("features", "UMODLDiscretizer", people(40_000, 4))


CASES = {
    "histograms": histograms,
    "tree, binary": binary_tree,
    "tree, real": real_tree,
    "forest predicts": forest_predict,
    "encode to bins": encode,
    "rank and fold": ranking,
    "bootstrap": bootstrap,
    "SVM, interior point": interior_point,
    "SVM, hinge and pairs": pairs,
    "UMODL search": umodl,
}


# --- the process of one tree ---


def fingerprint(function, result):
    """A number that differs if the two trees did different work: of the result, or of what a fitted model makes of X."""
    import numpy as np

    if hasattr(result, "fit"):
        X = function.args[0][:1000]
        result = result.predict(X) if hasattr(result, "predict") else result.transform(X)
    return zlib.crc32(np.asarray(result, dtype=float).tobytes())


def answer(ready, request):
    """Make a case ready, or run it once and say what it took."""
    case = request["case"]
    try:
        if request["do"] == "prepare":
            ready.clear()
            function = CASES[case]()
            ready[case] = function, fingerprint(function, function())
            return {}
        function, same = ready[case]
        gc.collect()
        start = time.process_time()
        function()
        return {"seconds": time.process_time() - start, "fingerprint": same}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


# --- the judge ---


def take_turns(base, head, case, runs):
    """Times of both, turn by turn; who goes first alternates, too."""
    turns = []
    for turn in range(runs):
        first, second = (base, head) if turn % 2 == 0 else (head, base)
        got = {first: first.ask(do="run", case=case), second: second.ask(do="run", case=case)}
        turns.append((got[base], got[head]))
    return turns


def verdict(turns):
    base, head = zip(*turns, strict=True)
    return {
        "base_seconds": statistics.median(run["seconds"] for run in base),
        "head_seconds": statistics.median(run["seconds"] for run in head),
        "ratio": statistics.median(h["seconds"] / b["seconds"] for b, h in turns),
        "runs": len(turns),
        "same_result": len({run["fingerprint"] for run in base + head}) == 1,
    }


def measure(base, head, case, runs, tolerance):
    for tree, companion in (("base", base), ("head", head)):
        failed = companion.ask(do="prepare", case=case).get("failed")
        if failed:
            return {"failed": tree, "error": failed}
    turns = take_turns(base, head, case, runs)
    if verdict(turns)["ratio"] > 1 + tolerance:
        turns += take_turns(base, head, case, runs)
    return verdict(turns)


def line(case, found, tolerance):
    if "failed" in found:
        return f"{case:<22} {found['failed']} cannot run it: {found['error']}"
    slow = "  SLOWER" if found["ratio"] > 1 + tolerance else ""
    other = "" if found["same_result"] else "  (results differ)"
    times = f"{found['base_seconds'] * 1e3:9.1f} {found['head_seconds'] * 1e3:9.1f} ms"
    return f"{case:<22} {times}  {found['ratio']:6.3f}{slow}{other}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?", type=Path)
    parser.add_argument("head", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--tolerance", type=float, default=0.05, help="share by which head may be slower")
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--only", nargs="*", default=[""], help="cases whose names contain one of these")
    options = parser.parse_args()
    if options.base is None:
        print("bench_guard needs the tree to compare with: python benchmarks/bench_guard.py BASE_TREE")
        return SKIPPED
    for tree in (options.base, options.head):
        if not (tree / "src" / "upturn").is_dir():
            parser.error(f"{tree} is not a checkout of upturn: it has no src/upturn")
    cases = [case for case in CASES if any(part in case for part in options.only)]
    if not cases:
        parser.error(f"no case is named like {' or '.join(options.only)}: there are {', '.join(CASES)}")
    script, results = Path(__file__).resolve(), {}
    with (
        Companion(script, options.base / "src", BUILD / "guard") as base,
        Companion(script, options.head / "src", BUILD / "guard") as head,
    ):
        print(f"{'processor time':<22} {'base':>9} {'head':>9}      ratio")
        for case in cases:
            results[case] = measure(base, head, case, options.runs, options.tolerance)
            print(line(case, results[case], options.tolerance), flush=True)
    write_json("bench_guard", {"tolerance": options.tolerance, "cases": results})
    slow = [case for case, found in results.items() if found.get("ratio", 0) > 1 + options.tolerance]
    broken = [case for case, found in results.items() if found.get("failed") == "head"]
    if slow:
        print(f"more than {options.tolerance:.0%} slower: {', '.join(slow)}")
    return 1 if slow or broken else 0


if __name__ == "__main__":
    if Companion.is_this_process():
        warnings.simplefilter("ignore")
        gc.disable()
        Companion.serve(functools.partial(answer, {}))
    else:
        sys.exit(main())
